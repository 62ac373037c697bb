//! By upstream rustc: core's intrinsics, and LLVM's.

use core::arch::asm;
pub(crate) use core::arch::nvptx::{
    _block_dim_x as block_dim, _block_idx_x as block_index, _syncthreads as sync_threads,
    _thread_idx_x as thread_index,
};

const WARP: u32 = u32::MAX;

// LLVM's own names, not assembly: it knows that these are convergent, so it neither copies them
// into diverging branches nor moves them. It may do both to an `asm!`.
#[allow(improper_ctypes)]
unsafe extern "unadjusted" {
    #[link_name = "llvm.nvvm.bar.warp.sync"]
    fn bar_warp_sync(mask: u32);
    #[link_name = "llvm.nvvm.shfl.sync.idx.i32"]
    fn shfl_sync_idx(mask: u32, value: u32, from: u32, width: u32) -> u32;
    #[link_name = "llvm.nvvm.vote.all.sync"]
    fn vote_all_sync(mask: u32, holds: bool) -> bool;
    #[link_name = "llvm.nvvm.vote.ballot.sync"]
    fn vote_ballot_sync(mask: u32, holds: bool) -> u32;
}

/// Waits for all threads of the warp; what they wrote before is seen after.
#[inline(always)]
pub(crate) fn sync_warp() {
    // SAFETY: all 32 threads of the warp call it.
    unsafe { bar_warp_sync(WARP) }
}

/// The `value` of thread `from` of the warp.
#[inline(always)]
pub(crate) fn shuffle(value: u32, from: u32) -> u32 {
    // SAFETY: registers only; all 32 threads of the warp call it.
    unsafe { shfl_sync_idx(WARP, value, from, 31) }
}

/// Whether `holds` is true in every thread of the warp.
#[inline(always)]
pub(crate) fn all(holds: bool) -> bool {
    // SAFETY: registers only; all 32 threads of the warp call it.
    unsafe { vote_all_sync(WARP, holds) }
}

/// Whether every thread of the warp still runs; waits for those that do.
#[inline(always)]
pub(crate) fn all_run() -> bool {
    // SAFETY: registers only; all threads of the warp that have not ended call it, and no others are
    // waited for.
    unsafe { vote_ballot_sync(WARP, true) == WARP }
}

/// Orders this thread's accesses, and those it has seen of its block, for the whole system.
#[inline(always)]
pub(crate) fn fence_system() {
    // SAFETY: a fence.
    unsafe { asm!("fence.acq_rel.sys;", options(nostack)) }
}

/// Orders this thread's accesses for its block.
#[inline(always)]
pub(crate) fn fence_block() {
    // SAFETY: a fence.
    unsafe { asm!("fence.acq_rel.cta;", options(nostack)) }
}
