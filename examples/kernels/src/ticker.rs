//! What happens by time alone.

use bytemuck::{Pod, Zeroable};
use core::time::Duration;

/// What a channel of [`Ticker`] keeps.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct Ticked {
    /// Ticks so far.
    pub ticks: u64,
    /// When the last was, in nanoseconds of the device's clock.
    pub at: u64,
    /// How long the last two were apart, in nanoseconds; 0 before the second.
    pub apart: u64,
    /// Messages so far.
    pub messages: u64,
    /// The next tick panics.
    pub panics: u64,
}

ring_device::ring_kernel! {
    /// Counts ticks.
    pub struct Ticker {
        name: "ticker",
        threads: 64,
        tick_every: Ticker::EVERY,
    }

    /// A number that is not 0 lets the next tick panic.
    fn handle(state: &mut Ticked, panics: &u64) -> Ticked {
        state.messages = state.messages.wrapping_add(1);
        state.panics = *panics;
        *state
    }

    fn tick(ctx: &ThreadContext, state: &mut Ticked) {
        assert!(state.panics == 0, "as it was asked to");
        let now = ctx.now();
        state.apart = if state.ticks == 0 { 0 } else { now.wrapping_sub(state.at) };
        state.at = now;
        state.ticks = state.ticks.wrapping_add(1);
    }
}

impl Ticker {
    /// From one tick to the next.
    pub const EVERY: Duration = Duration::from_micros(200);
}
