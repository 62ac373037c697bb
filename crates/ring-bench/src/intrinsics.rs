//! The PTX instructions that core has no name for.

use core::arch::asm;
use core::sync::atomic::AtomicU64;

/// Orders this thread's accesses, and those it has seen of its block, for the whole system.
#[inline(always)]
pub(crate) fn fence_system() {
    // SAFETY: a fence.
    unsafe { asm!("fence.acq_rel.sys;", options(nostack)) }
}

/// The device's clock in nanoseconds; it ticks about every microsecond.
#[inline(always)]
pub(crate) fn global_timer() -> u64 {
    let t: u64;
    // SAFETY: reads a register.
    unsafe { asm!("mov.u64 {t}, %globaltimer;", t = out(reg64) t, options(nostack)) }
    t
}

/// Index of the calling thread in its block.
#[inline(always)]
pub(crate) fn thread_index() -> u32 {
    // SAFETY: reads a register.
    unsafe { core::arch::nvptx::_thread_idx_x() as u32 }
}

/// Index of the block.
#[inline(always)]
pub(crate) fn block_index() -> u32 {
    // SAFETY: reads a register.
    unsafe { core::arch::nvptx::_block_idx_x() as u32 }
}

/// Threads of the block.
#[inline(always)]
pub(crate) fn block_dim() -> u32 {
    // SAFETY: reads a register.
    unsafe { core::arch::nvptx::_block_dim_x() as u32 }
}

/// Waits for all threads of the block; what they wrote before is seen after.
#[inline(always)]
pub(crate) fn sync_threads() {
    // SAFETY: every thread of the block comes here: branches around it are uniform.
    unsafe { core::arch::nvptx::_syncthreads() }
}

/// Two words of block-shared memory, the same for every thread of the block.
#[inline(always)]
pub(crate) fn shared_words<'a>() -> [&'a AtomicU64; 2] {
    let at: *const AtomicU64;
    // SAFETY: declares memory and takes its generic address.
    unsafe {
        asm!("{{ .shared .align 16 .b8 bench_words[16]; .reg .u64 %a; mov.u64 %a, bench_words; cvta.shared.u64 {at}, %a; }}",
            at = out(reg64) at, options(nostack));
    }
    // SAFETY: sixteen bytes that live as long as the block, only ever accessed as these two.
    unsafe { [&*at, &*at.add(1)] }
}

/// Reads 16 bytes past all caches, adds one to each half, and writes them without keeping them.
///
/// # Safety
/// Both are 16 bytes of global memory at such a boundary; nobody writes the first or touches the
/// second meanwhile.
#[inline(always)]
pub(crate) unsafe fn copy_plus_one(from: u64, to: u64) {
    let (a, b): (u64, u64);
    // SAFETY: the caller's promise.
    unsafe {
        asm!("ld.global.cv.v2.u64 {{{a}, {b}}}, [{from}];",
            a = out(reg64) a, b = out(reg64) b, from = in(reg64) from, options(nostack));
        asm!("st.global.cs.v2.u64 [{to}], {{{a}, {b}}};",
            a = in(reg64) a.wrapping_add(1), b = in(reg64) b.wrapping_add(1), to = in(reg64) to,
            options(nostack));
    }
}
