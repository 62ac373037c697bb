//! Messages of a channel are handled one after the other, with a state.

use crate::block::Cooperate;
use crate::context::{Payload, ThreadContext};
use crate::kernel::{Group, Kernel, Messages, Scope, sealed::Sealed};
use crate::memory::boot;
use crate::thread_block::ThreadBlock;
use bytemuck::Pod;
use core::mem::offset_of;
use core::ptr::{NonNull, with_exposed_provenance_mut};
use core::time::Duration;
use ring_shared::Message;
use ring_shared::atomics::Atom;
use ring_shared::layout::ChannelBlock;

/// Largest state of a channel, in bytes.
pub const MAX_STATE_BYTES: usize = 1 << 24;

/// A handler with a state: one thread of a channel runs it on one message after the other, in order, and
/// keeps the state from message to message. For what has to be exact and in sequence: an order book, a
/// counter, a session. A channel takes some million messages a second so; more channels take more, each with a
/// state of its own.
pub trait InOrderHandler: Kernel<Scope = InOrder> {
    /// What a channel keeps, in device memory: plain bytes, zero at first unless the host writes it. It
    /// stays through deactivation and relaunches, and can be read by the host while the kernel is not
    /// active, and after it was terminated.
    type State: Pod; // #[repr(C)] #[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
    /// Answers one request. If it panics, the channel is lost, and its state with it.
    fn handle(
        ctx: &ThreadContext<'_>,
        state: &mut Self::State,
        request: &Self::Request,
    ) -> Self::Response;

    /// About how long it is from one [`tick`](Self::tick) to the next, or none if there are no ticks.
    const TICK_EVERY: Option<Duration> = None;

    /// Changes the state because time has passed, between two messages, whether there are any or not. Only while the channel is active
    /// and on the device. Ticks that were missed are not made up for: [`ThreadContext::now`] says what time it is.
    fn tick(ctx: &ThreadContext<'_>, state: &mut Self::State) {
        let _ = (ctx, state);
    }
}

/// Nanoseconds from one tick to the next; 0 for none.
const fn ticks_apart(every: Option<Duration>) -> u64 {
    let Some(every) = every else { return 0 };
    match every.as_nanos() {
        0 => 1,
        apart if apart > u64::MAX as u128 => u64::MAX,
        apart => apart as u64,
    }
}

/// Bytes of a state `S`.
pub(super) const fn state_bytes<S>() -> usize {
    assert!(align_of::<S>() <= 128, "a state may be aligned to at most 128 bytes");
    assert!(
        size_of::<S>() <= MAX_STATE_BYTES,
        "a state must fit MAX_STATE_BYTES; keep more in the payload arena"
    );
    size_of::<S>()
}

/// The channel's state.
///
/// # Safety
/// The caller is the one thread of a channel that handles messages of a kernel with such a state now, sees what those before it
/// have written, and has no other reference to it.
#[inline(always)]
pub(super) unsafe fn state_of<'a, S: Pod>(block: ThreadBlock<'a>) -> &'a mut S {
    let at = block.memory().boot.word(boot::RINGS, offset_of!(ChannelBlock, state));
    let at: *mut S = match size_of::<S>() {
        0 => NonNull::dangling().as_ptr(),
        _ => with_exposed_provenance_mut(at as usize),
    };
    // SAFETY: `resume::check` found room for it there, at a multiple of 128, which is this channel's own
    // for as long as it runs; plain bytes, which the host has written. Only the caller touches it now, and the host only while
    // the channel is not active.
    unsafe { &mut *at }
}

/// Messages of a channel are handled one after the other, with a state ([`InOrderHandler`]).
#[derive(Debug)]
pub struct InOrder;

impl Sealed for InOrder {}

impl<K: InOrderHandler> Scope<K> for InOrder {
    const GROUP: Group = Group::One;
    const STATE_BYTES: usize = state_bytes::<K::State>();
    const TICKS_APART: u64 = ticks_apart(K::TICK_EVERY);
    const STAGE: (usize, usize) =
        (K::Request::SLOT_ATOMS + K::Response::SLOT_ATOMS, K::Request::SLOT_ATOMS);

    #[inline(always)]
    unsafe fn tick(block: ThreadBlock<'_>, payload: Payload<'_>) {
        // SAFETY: the caller's promise.
        let state = unsafe { state_of::<K::State>(block) };
        K::tick(&ThreadContext::new(block, payload, block.shared(K::SHARED_BYTES)), state);
    }

    #[inline(always)]
    fn parallelism(_: ThreadBlock<'_>) -> u32 {
        1
    }

    #[inline(always)]
    unsafe fn handle(block: ThreadBlock<'_>, payload: Payload<'_>, messages: Messages, n: u32) {
        if block.thread() != 0 {
            return;
        }
        // SAFETY: this is thread 0 of the channel.
        let state = unsafe { state_of::<K::State>(block) };
        let mut m = 0;
        while m < n {
            // SAFETY: message `m < n`, plain bytes, aligned, that nobody writes now.
            let request = unsafe { &*messages.request(m) };
            let response = K::handle(
                &ThreadContext::new(block, payload, block.shared(K::SHARED_BYTES)),
                state,
                request,
            );
            // SAFETY: response `m < n`, aligned, that only this thread touches now.
            unsafe { messages.response::<K::Response>(m).write(response) };
            m += 1;
        }
    }

    #[inline(always)]
    fn handle_in_place(_: ThreadBlock<'_>, _: Payload<'_>, _: &[Atom], _: &[Atom], _: u32) -> bool {
        false
    }
}
