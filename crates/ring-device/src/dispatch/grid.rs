//! The blocks of a grid, from a launch's beginning to its end: the first one is the channel's, and the others follow it.

use super::channel::payload;
use super::resume;
use super::window::OUTPUT;
use crate::block::Cooperate;
use crate::buffers::UNREAD;
use crate::kernel::{Kernel, Scope};
use crate::memory::grid::GridMemory;
use crate::thread_block::ThreadBlock;
use ring_shared::layout::{ChannelBlock, ControlBlock};

/// All threads of any block of a grid: find where it meets, if it was found out that this is a kernel of ours. A barrier follows in
/// block 0.
#[inline(always)]
pub(super) fn enter<K: Kernel>(block: ThreadBlock<'_>) {
    if <K::Scope as Scope<K>>::IS_GRID {
        block.limit_registers::<K>(); // else ptxas may take more than a block of so many threads has
    }
    if let Some(grid) = GridMemory::of::<K>(block)
        && block.thread() == 0
    {
        grid.enter::<K::Request>(*block, &block.memory().grid);
    }
    block.sync();
}

/// All threads of block 0, when it has left: the others leave too.
#[inline(always)]
pub(super) fn dismiss<K: Kernel>(block: ThreadBlock<'_>) {
    if let Some(grid) = GridMemory::of::<K>(block)
        && block.thread() == 0
    {
        let cells = &block.memory().grid;
        let at = cells.progress().next();
        grid.leave(*block, cells, at);
        grid.tell_end(cells, at);
    }
}

/// All threads of another block: handle what block 0 tells of, until it leaves.
///
/// # Safety
/// As for [`run`](super::run).
#[inline(always)]
pub(super) unsafe fn follow<K: Kernel>(block: ThreadBlock<'_>, control: *const ControlBlock) {
    let m = block.memory();
    // SAFETY: the caller's promise: the block of channel 0 is there.
    unsafe { m.boot.read(*block, control, 0) };
    if block.thread() == 0 {
        m.life.panicked.set(false);
        m.grid.reset();
        m.signals.uses_payload.set(false);
        m.life.buffers.set(UNREAD);
        m.life.control.set(control.expose_provenance() as u64);
        let lines = control.wrapping_add(1).cast::<ChannelBlock>();
        m.life.lines.set(lines.expose_provenance() as u64);
    }
    block.sync();
    // Block 0 finds the same, or has left by now, and then with an error.
    if !resume::is_ours_of(block, 0) || resume::is_lost(block) {
        return;
    }
    enter::<K>(block);
    let room = (m.scratch.bytes(0), m.scratch.bytes(OUTPUT));
    // SAFETY: the caller's promise for the payload; the two halves of this block's scratch memory, each of which holds more than the
    // largest message.
    unsafe { <K::Scope as Scope<K>>::follow(block, payload(block, K::USES_PAYLOAD), room) };
}
