//! By Rust-CUDA: what both the release of cuda_std and its repository have.
//!
//! Assembly is left where the release has no name: [`shuffle`] and [`all`]. And, in `assembly`, where
//! ptxas refuses what cuda_std writes: `nanosleep` lacks its type, and it and the clock a semicolon.

use core::sync::atomic::Ordering;
use cuda_std::atomic::mid;
use cuda_std::{thread, warp};

const WARP: u32 = u32::MAX;

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

/// Waits for all threads of the block; what they wrote before is seen after.
///
/// # Safety
/// Every thread of the block calls it.
#[inline(always)]
pub(crate) unsafe fn sync_threads() {
    thread::sync_threads();
}

/// Waits for all threads of the warp; what they wrote before is seen after.
#[inline(always)]
pub(crate) fn sync_warp() {
    // SAFETY: all 32 threads of the warp call it.
    unsafe { warp::sync_warp(WARP) }
}

/// The `value` of thread `from` of the warp.
#[cfg(target_arch = "nvptx64")]
#[inline(always)]
pub(crate) fn shuffle(value: u32, from: u32) -> u32 {
    let there: u32;
    // SAFETY: registers only; all 32 threads of the warp call it.
    unsafe {
        core::arch::asm!("shfl.sync.idx.b32 {there}, {value}, {from}, 31, {mask};",
            there = out(reg32) there, value = in(reg32) value, from = in(reg32) from,
            mask = in(reg32) WARP, options(nostack));
    }
    there
}

/// Whether `holds` is true in every thread of the warp.
#[cfg(target_arch = "nvptx64")]
#[inline(always)]
pub(crate) fn all(holds: bool) -> bool {
    let all: u32;
    // SAFETY: registers only; all 32 threads of the warp call it.
    unsafe {
        core::arch::asm!("{{ .reg .pred %h; setp.ne.u32 %h, {holds}, 0; vote.sync.all.pred %h, %h, {mask}; selp.u32 {all}, 1, 0, %h; }}",
            holds = in(reg32) u32::from(holds), mask = in(reg32) WARP, all = out(reg32) all,
            options(nostack));
    }
    all != 0
}

/// Whether every thread of the warp still runs; waits for those that do.
#[cfg(target_arch = "nvptx64")]
#[inline(always)]
pub(crate) fn all_run() -> bool {
    let run: u32;
    // SAFETY: registers only; all threads of the warp that have not ended call it, and no others are
    // waited for.
    unsafe {
        core::arch::asm!("{{ .reg .pred %t; setp.eq.u32 %t, 0, 0; vote.sync.ballot.b32 {run}, %t, {mask}; }}",
            mask = in(reg32) WARP, run = out(reg32) run, options(nostack));
    }
    run == WARP
}

/// Orders this thread's accesses, and those it has seen of its block, for the whole system.
#[inline(always)]
pub(crate) fn fence_system() {
    mid::system_thread_fence(Ordering::AcqRel);
}

/// Orders this thread's accesses for its block. (The release of cuda_std orders them for the system.)
#[inline(always)]
pub(crate) fn fence_block() {
    mid::block_thread_fence(Ordering::AcqRel);
}
