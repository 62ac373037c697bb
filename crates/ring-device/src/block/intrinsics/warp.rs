//! What the threads of a warp do together, by LLVM's own names, which both compilers know. LLVM knows too that
//! these are convergent, so it neither copies them into diverging branches nor moves them. It may do both to
//! an `asm!`.

const WARP: u32 = u32::MAX;

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

/// The `value` of thread `from` of those `threads` of the warp.
///
/// # Safety
/// All of those threads call it with the same `threads`, of which `from` is one; no other thread does.
#[inline(always)]
unsafe fn shuffle_among(threads: u32, value: u32, from: u32) -> u32 {
    // libNVVM copies a block of two instructions, a shuffle and a branch on its result, to the end of each branch that
    // leads to it, and the threads of a warp then shuffle at several places. With the statement of assembly in
    // it the block has three, and is not copied.
    #[cfg(feature = "rust-cuda")]
    let value = super::assembly::opaque32(value);
    // SAFETY: registers only; the caller's promise.
    unsafe { shfl_sync_idx(threads, value, from, 31) }
}

/// Both halves of a `u64`, likewise.
///
/// # Safety
/// As for [`shuffle_among`].
#[inline(always)]
pub(crate) unsafe fn shuffle64_among(threads: u32, value: u64, from: u32) -> u64 {
    // SAFETY: the caller's promise.
    let half = |value: u32| unsafe { shuffle_among(threads, value, from) };
    let (lo, hi) = (half(value as u32), half((value >> 32) as u32));
    u64::from(lo) | u64::from(hi) << 32
}

/// The `value` of thread `from` of the warp.
#[inline(always)]
pub(crate) fn shuffle(value: u32, from: u32) -> u32 {
    // SAFETY: all 32 threads of the warp call it.
    unsafe { shuffle_among(WARP, value, from) }
}

/// Both halves of a `u64`, from thread `from` of the warp.
#[inline(always)]
pub(crate) fn shuffle64(value: u64, from: u32) -> u64 {
    // SAFETY: all 32 threads of the warp call it.
    unsafe { shuffle64_among(WARP, value, from) }
}

/// Whether `holds` is true in every thread of the warp.
#[inline(always)]
pub(crate) fn all(holds: bool) -> bool {
    // SAFETY: registers only; all 32 threads of the warp call it.
    unsafe { vote_all_sync(WARP, holds) }
}

/// Bit `k` says whether `holds` is true in thread `k` of the warp.
#[inline(always)]
pub(crate) fn ballot(holds: bool) -> u32 {
    // SAFETY: registers only; all 32 threads of the warp call it.
    unsafe { vote_ballot_sync(WARP, holds) }
}

/// Whether every thread of the warp still runs; waits for those that do.
#[inline(always)]
pub(crate) fn all_run() -> bool {
    // SAFETY: registers only; all threads of the warp that have not ended call it, and no others are
    // waited for.
    unsafe { vote_ballot_sync(WARP, true) == WARP }
}
