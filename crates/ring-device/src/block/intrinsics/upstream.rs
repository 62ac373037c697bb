//! By upstream rustc: core's intrinsics.

use core::arch::asm;
pub(crate) use core::arch::nvptx::{
    _block_dim_x as block_dim, _block_idx_x as block_index, _syncthreads as sync_threads,
    _thread_idx_x as thread_index,
};

/// Orders this thread's accesses, and those it has seen of its block, for the whole system.
#[inline(always)]
pub(crate) fn fence_system() {
    // SAFETY: a fence.
    unsafe { asm!("fence.acq_rel.sys;", options(nostack)) }
}

/// Orders this thread's accesses, and those it has seen of its block, for all threads of the GPU.
#[inline(always)]
pub(crate) fn fence_device() {
    // SAFETY: a fence.
    unsafe { asm!("fence.acq_rel.gpu;", options(nostack)) }
}

/// Orders this thread's accesses for its block.
#[inline(always)]
pub(crate) fn fence_block() {
    // SAFETY: a fence.
    unsafe { asm!("fence.acq_rel.cta;", options(nostack)) }
}
