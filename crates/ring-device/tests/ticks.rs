//! Ticks of a state, as they are declared.

use core::time::Duration;
use ring_device::{InOrderHandler, Kernel};

ring_device::ring_kernel! {
    /// Counts ticks.
    struct Counts { tick_every: Duration::from_micros(250), }

    /// Adds.
    fn handle(sum: &mut u64, n: &u64) -> u64 {
        *sum = sum.wrapping_add(*n);
        *sum
    }

    /// Adds one.
    fn tick(sum: &mut u64) {
        *sum = sum.wrapping_add(1);
    }
}

ring_device::ring_kernel! {
    /// Several handlers and a tick.
    struct Several;

    /// With the context.
    fn tick(ctx: &ThreadContext, sum: &mut u64) {
        *sum = ctx.now();
    }

    /// One.
    fn one(sum: &mut u64, n: &u64) -> u64 {
        *sum ^ *n
    }

    /// Two.
    fn two(n: &u32) -> u32 {
        *n
    }
}

ring_device::ring_kernel! {
    /// Without.
    struct None;

    fn handle(sum: &mut u64, n: &u64) -> u64 {
        *sum ^ *n
    }
}

#[test]
fn they_are_as_often_as_declared() {
    assert_eq!(Counts::NAME, "Counts");
    assert_eq!(Counts::TICK_EVERY, Some(Duration::from_micros(250)));
    assert_eq!(Several::TICK_EVERY, Some(Duration::from_millis(1)));
    assert_eq!(None::TICK_EVERY, Option::None);
    assert_eq!(Several::two.name(), "two");
}
