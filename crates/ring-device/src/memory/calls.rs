//! Calls to the host: what a block knows of its channel's call slots.

use crate::block::cell::Cell;
use ring_shared::atomics::AtomicU64;

/// What a block knows of its channel's call slots. Set by thread 0 at the beginning of a launch.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Calls {
    /// Their device address; 0 if there are none.
    pub slots: Cell<u64>,
    /// Their [shape](ring_shared::calls::CallSlots::SHAPE).
    pub shape: Cell<u64>,
    /// Calls made so far. Any thread takes the next.
    pub next: AtomicU64,
    /// Calls below this are over for the host, as far as is known. Set by any thread that needs to know more.
    pub released: Cell<u64>,
}

impl Calls {
    /// Begins a launch of a channel with those slots, whose shape is in the low bits of their address, behind so many calls.
    #[inline(always)]
    pub fn begin(&self, slots: u64, called: u64) {
        let shape = slots % ring_shared::layout::LINE as u64;
        self.slots.set(slots - shape);
        self.shape.set(shape);
        self.next.store(called, core::sync::atomic::Ordering::Relaxed);
        self.released.set(called.saturating_sub(ring_shared::calls::CALL_SLOTS.into()));
    }
}
