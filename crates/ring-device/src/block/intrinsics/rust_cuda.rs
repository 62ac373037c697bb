//! By Rust-CUDA: what both the release of cuda_std and its repository have.
//!
//! LLVM's own name stands for the block's barrier, as in `warp`: cuda_std's is a function that has it inside, of which
//! LLVM does not know that it is convergent. Assembly is left in `assembly`, where ptxas refuses what cuda_std
//! writes: `nanosleep` lacks its type, and it and the clock a semicolon.

use core::sync::atomic::Ordering;
use cuda_std::atomic::mid;
use cuda_std::thread;

/// Index of the thread in its block.
///
/// # Safety
/// None needed; as core's intrinsic.
#[inline(always)]
pub(crate) unsafe fn thread_index() -> i32 {
    thread::thread_idx_x() as i32
}

/// Index of the block in its grid.
///
/// # Safety
/// None needed; as core's intrinsic.
#[inline(always)]
pub(crate) unsafe fn block_index() -> i32 {
    thread::block_idx_x() as i32
}

/// Threads of the block.
///
/// # Safety
/// None needed; as core's intrinsic.
#[inline(always)]
pub(crate) unsafe fn block_dim() -> i32 {
    thread::block_dim_x() as i32
}

#[cfg(target_arch = "nvptx64")]
unsafe extern "C" {
    #[link_name = "llvm.nvvm.barrier0"]
    fn barrier();
}

/// Waits for all threads of the block; what they wrote before is seen after.
///
/// # Safety
/// Every thread of the block calls it.
#[cfg(target_arch = "nvptx64")]
#[inline(always)]
pub(crate) unsafe fn sync_threads() {
    // SAFETY: the caller's promise.
    unsafe { barrier() }
}

/// Orders this thread's accesses, and those it has seen of its block, for the whole system.
#[inline(always)]
pub(crate) fn fence_system() {
    mid::system_thread_fence(Ordering::AcqRel);
}

/// Orders this thread's accesses, and those it has seen of its block, for all threads of the GPU.
#[inline(always)]
pub(crate) fn fence_device() {
    mid::device_thread_fence(Ordering::AcqRel);
}

/// Orders this thread's accesses for its block. (The release of cuda_std orders them for the system.)
#[inline(always)]
pub(crate) fn fence_block() {
    mid::block_thread_fence(Ordering::AcqRel);
}
