//! The memory of a kernel with one channel and messages of eight bytes, without the kernel: for tests and models
//! of what is carried, and in which order.

use crate::device::{Driver, cpu::Cpu};
use crate::memory::arena::Arena;
use crate::memory::plan::{Direction, Plan};
use crate::memory::region::Region;
use crate::mode::{Memory, PayloadMemory};
use ring_shared::atomics::Atom;
use ring_shared::layout::{Budgets, ChannelBlock, Processing, UNLIMITED};
use ring_shared::{Message, Ring};
use std::ptr::NonNull;
use std::sync::Arc;

std::thread_local! {
    // Taken once: a model needs a region for each of its executions, of which there are many.
    static ARENAS: [Arc<Arena>; 2] = {
        let driver: Arc<dyn Driver> = Cpu::open();
        [Arena::pinned(&driver, 1 << 14).unwrap(), Arena::device(&driver, 1 << 14).unwrap()]
    };
}

/// Memory in which indices begin at `start`.
pub fn region(memory: Memory, capacity: u32, start: u64) -> Region {
    let [pinned, device] = ARENAS.with(Clone::clone);
    let plan = Plan {
        memory,
        channels: 1,
        capacity,
        lines: 1,
        span: 1,
        start,
        slot_atoms: [1, 1],
        answer_stamps: u64::INLINE_ATOMS,
        payload_bytes: 0,
        payload_memory: PayloadMemory::Auto,
        state_bytes: 0,
        calls: 0,
        trace: 0,
        buffers: 0,
        budgets: Budgets::UNLIMITED,
        processing: Processing::Batch,
        max_messages: u32::MAX,
        lease: UNLIMITED,
    };
    Region::new(plan, Some(&pinned), &device).unwrap()
}

/// What the device sees at `offset`.
pub fn on_device<T>(region: &Region, offset: usize) -> NonNull<T> {
    let at = region.device_at(offset) as usize;
    NonNull::new(std::ptr::with_exposed_provenance_mut(at)).unwrap()
}

/// The channel's block as the device sees it.
pub fn block(region: &Region) -> &ChannelBlock {
    // SAFETY: laid out there by the first transfer, or by `Region::new` in mapped memory; atomics only; it lives
    // as long as the region.
    unsafe { on_device::<ChannelBlock>(region, region.channel_at(0)).as_ref() }
}

/// The channel's ring as the device sees it.
pub fn ring(region: &Region, direction: Direction) -> Ring {
    let block = block(region);
    let (bell, credit) = match direction {
        Direction::Requests => (&block.request_bell, &block.request_credit),
        Direction::Responses => (&block.response_bell, &block.response_credit),
    };
    let slots = on_device::<Atom>(region, region.slots_at(0, direction));
    let parts = (NonNull::from(bell), NonNull::from(credit), slots);
    // SAFETY: as for `block`; the tests keep the region longer than its rings.
    unsafe { Ring::from_raw(parts, (1, 1), (region.plan.capacity, 1), region.plan.start) }.unwrap()
}

/// Bytes that both copies have.
#[cfg(loom)]
pub fn shared_bytes(region: &Region) -> usize {
    region.slots_at(0, Direction::Responses)
        + region.plan.capacity as usize * region.slot_bytes(Direction::Responses)
}
