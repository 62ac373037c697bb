//! Elements of buffers: memory that the threads of a device, and copies of the host, use at the same time.
//!
//! On a GPU an access is relaxed and of the block's scope: L1 may answer it. Whoever needs what another block or a
//! copy has written acquires first. Only an addition is of the GPU's scope: threads of several blocks add to the same element. On a CPU an access is relaxed, and the cell is 4 bytes for elements of every size:
//! threads that use the same memory by elements of 4 and of 8 bytes make no accesses of mixed sizes so.

#[cfg(not(target_arch = "nvptx64"))]
use super::{AtomicU32, Ordering::Relaxed};

/// Reads 4 bytes.
///
/// # Safety
/// `at` is 4 bytes of global memory, at a multiple of 4, that are readable, and written meanwhile by such accesses only.
#[cfg(target_arch = "nvptx64")]
#[inline(always)]
pub(crate) unsafe fn load32(at: *const u32) -> u32 {
    let value: u32;
    // SAFETY: the caller's promise.
    unsafe {
        core::arch::asm!("ld.relaxed.cta.global.b32 {value}, [{at}];",
            value = out(reg32) value, at = in(reg64) at,
            options(nostack, preserves_flags, readonly));
    }
    value
}

/// Writes 4 bytes.
///
/// # Safety
/// As for [`load32`], and they are writable.
#[cfg(target_arch = "nvptx64")]
#[inline(always)]
pub(crate) unsafe fn store32(at: *mut u32, value: u32) {
    // SAFETY: the caller's promise.
    unsafe {
        core::arch::asm!("st.relaxed.cta.global.b32 [{at}], {value};",
            value = in(reg32) value, at = in(reg64) at, options(nostack, preserves_flags));
    }
}

/// Reads 8 bytes.
///
/// # Safety
/// As for [`load32`], of 8 bytes at a multiple of 8.
#[cfg(target_arch = "nvptx64")]
#[inline(always)]
pub(crate) unsafe fn load64(at: *const u64) -> u64 {
    let value: u64;
    // SAFETY: the caller's promise.
    unsafe {
        core::arch::asm!("ld.relaxed.cta.global.b64 {value}, [{at}];",
            value = out(reg64) value, at = in(reg64) at,
            options(nostack, preserves_flags, readonly));
    }
    value
}

/// Writes 8 bytes.
///
/// # Safety
/// As for [`load64`], and they are writable.
#[cfg(target_arch = "nvptx64")]
#[inline(always)]
pub(crate) unsafe fn store64(at: *mut u64, value: u64) {
    // SAFETY: the caller's promise.
    unsafe {
        core::arch::asm!("st.relaxed.cta.global.b64 [{at}], {value};",
            value = in(reg64) value, at = in(reg64) at, options(nostack, preserves_flags));
    }
}

/// Adds to 8 bytes, wrapping, for all threads of the GPU.
///
/// # Safety
/// As for [`store64`].
#[cfg(target_arch = "nvptx64")]
#[inline(always)]
pub(crate) unsafe fn add64(at: *mut u64, n: u64) {
    // SAFETY: the caller's promise.
    unsafe {
        core::arch::asm!("red.relaxed.gpu.global.add.u64 [{at}], {n};",
            n = in(reg64) n, at = in(reg64) at, options(nostack, preserves_flags));
    }
}

/// Changes 4 bytes for all threads of the GPU; what was there before.
#[cfg(target_arch = "nvptx64")]
macro_rules! atomics {
    ($($(#[$doc:meta])* $name:ident: $what:literal;)*) => {$(
        $(#[$doc])*
        ///
        /// # Safety
        /// As for [`store32`].
        #[cfg(target_arch = "nvptx64")]
        #[inline(always)]
        pub(crate) unsafe fn $name(at: *mut u32, n: u32) -> u32 {
            let was: u32;
            // SAFETY: the caller's promise.
            unsafe {
                core::arch::asm!(concat!("atom.relaxed.gpu.global.", $what, " {was}, [{at}], {n};"),
                    n = in(reg32) n, at = in(reg64) at, was = out(reg32) was, options(nostack, preserves_flags));
            }
            was
        }
    )*};
}

#[cfg(target_arch = "nvptx64")]
atomics! {
    /// Adds, wrapping; what was there before.
    fetch_add32: "add.u32";
    /// Adds numbers of floating point; what was there before.
    fetch_add_f32: "add.f32";
    /// Leaves the greater one; what was there before.
    fetch_max32: "max.u32";
    /// The same of signed numbers.
    fetch_max_i32: "max.s32";
    /// Leaves the lesser one; what was there before.
    fetch_min32: "min.u32";
    /// The same of signed numbers.
    fetch_min_i32: "min.s32";
}

/// Writes `new` where `old` is, for all threads of the GPU; what was there before.
///
/// # Safety
/// As for [`store32`].
#[cfg(target_arch = "nvptx64")]
#[inline(always)]
pub(crate) unsafe fn compare_exchange32(at: *mut u32, old: u32, new: u32) -> u32 {
    let was: u32;
    // SAFETY: the caller's promise.
    unsafe {
        core::arch::asm!("atom.relaxed.gpu.global.cas.b32 {was}, [{at}], {old}, {new};", old = in(reg32) old, new = in(reg32) new,
            at = in(reg64) at, was = out(reg32) was, options(nostack, preserves_flags));
    }
    was
}

/// Reads four times 4 bytes by one instruction, which is weak: PTX has no relaxed one of four.
///
/// # Safety
/// As for [`load32`], of 16 bytes at a multiple of 16.
#[cfg(target_arch = "nvptx64")]
#[inline(always)]
pub(crate) unsafe fn load_four32(at: *const u32) -> [u32; 4] {
    let (a, b, c, d): (u32, u32, u32, u32);
    // SAFETY: the caller's promise.
    unsafe {
        core::arch::asm!("ld.weak.global.v4.b32 {{{a}, {b}, {c}, {d}}}, [{at}];",
            a = out(reg32) a, b = out(reg32) b, c = out(reg32) c, d = out(reg32) d,
            at = in(reg64) at, options(nostack, preserves_flags, readonly));
    }
    [a, b, c, d]
}

/// Writes four times 4 bytes by one instruction, which is weak as that of [`load_four32`] is.
///
/// # Safety
/// As for [`load_four32`], and they are writable.
#[cfg(target_arch = "nvptx64")]
#[inline(always)]
pub(crate) unsafe fn store_four32(at: *mut u32, [a, b, c, d]: [u32; 4]) {
    // SAFETY: the caller's promise.
    unsafe {
        core::arch::asm!("st.weak.global.v4.b32 [{at}], {{{a}, {b}, {c}, {d}}};",
            a = in(reg32) a, b = in(reg32) b, c = in(reg32) c, d = in(reg32) d,
            at = in(reg64) at, options(nostack, preserves_flags));
    }
}

/// Reads 4 bytes.
///
/// # Safety
/// `at` is 4 bytes at a multiple of 4 that are readable, and written meanwhile by such accesses only.
#[cfg(not(target_arch = "nvptx64"))]
#[inline(always)]
pub(crate) unsafe fn load32(at: *const u32) -> u32 {
    // SAFETY: the caller's promise.
    unsafe { &*at.cast::<AtomicU32>() }.load(Relaxed)
}

/// Writes 4 bytes.
///
/// # Safety
/// As for [`load32`], and they are writable.
#[cfg(not(target_arch = "nvptx64"))]
#[inline(always)]
pub(crate) unsafe fn store32(at: *mut u32, value: u32) {
    // SAFETY: the caller's promise.
    unsafe { &*at.cast::<AtomicU32>() }.store(value, Relaxed);
}

/// Reads 8 bytes, half by half.
///
/// # Safety
/// As for [`load32`], of both halves.
#[cfg(not(target_arch = "nvptx64"))]
#[inline(always)]
pub(crate) unsafe fn load64(at: *const u64) -> u64 {
    let at = at.cast::<u32>();
    // SAFETY: the caller's promise.
    let [first, second] = unsafe { [load32(at), load32(at.add(1))] };
    bytemuck::cast([first, second])
}

/// Writes 8 bytes, half by half.
///
/// # Safety
/// As for [`load64`], and they are writable.
#[cfg(not(target_arch = "nvptx64"))]
#[inline(always)]
pub(crate) unsafe fn store64(at: *mut u64, value: u64) {
    let [first, second]: [u32; 2] = bytemuck::cast(value);
    let at = at.cast::<u32>();
    // SAFETY: the caller's promise.
    unsafe {
        store32(at, first);
        store32(at.add(1), second);
    }
}

/// Adds to 8 bytes, wrapping, half by half: what the lower half has no room for goes to the upper one. All parts of a sum are in it
/// when all are added.
///
/// # Safety
/// As for [`store64`].
#[cfg(not(target_arch = "nvptx64"))]
#[inline(always)]
pub(crate) unsafe fn add64(at: *mut u64, n: u64) {
    let [low, high] = [n as u32, (n >> 32) as u32];
    // In memory the lower half is the first or the last.
    let first = usize::from(cfg!(target_endian = "big"));
    let at = at.cast::<AtomicU32>();
    // SAFETY: the caller's promise.
    let halves = unsafe { [&*at.add(first), &*at.add(1 - first)] };
    let before = halves[0].fetch_add(low, Relaxed);
    halves[1].fetch_add(high.wrapping_add(before.overflowing_add(low).1.into()), Relaxed);
}

/// Changes 4 bytes; what was there before.
#[cfg(not(target_arch = "nvptx64"))]
macro_rules! atomics {
    ($($(#[$doc:meta])* $name:ident: |$was:ident, $n:ident| $new:expr;)*) => {$(
        $(#[$doc])*
        ///
        /// # Safety
        /// As for [`store32`].
        #[inline(always)]
        pub(crate) unsafe fn $name(at: *mut u32, $n: u32) -> u32 {
            // SAFETY: the caller's promise.
            let cell = unsafe { &*at.cast::<AtomicU32>() };
            let mut $was = cell.load(Relaxed);
            while let Err(now) = cell.compare_exchange($was, $new, Relaxed, Relaxed) {
                $was = now;
            }
            $was
        }
    )*};
}

#[cfg(not(target_arch = "nvptx64"))]
atomics! {
    /// Adds, wrapping; what was there before.
    fetch_add32: |was, n| was.wrapping_add(n);
    /// Adds numbers of floating point; what was there before.
    fetch_add_f32: |was, n| (f32::from_bits(was) + f32::from_bits(n)).to_bits();
    /// Leaves the greater one; what was there before.
    fetch_max32: |was, n| was.max(n);
    /// The same of signed numbers.
    fetch_max_i32: |was, n| (was as i32).max(n as i32) as u32;
    /// Leaves the lesser one; what was there before.
    fetch_min32: |was, n| was.min(n);
    /// The same of signed numbers.
    fetch_min_i32: |was, n| (was as i32).min(n as i32) as u32;
}

/// Writes `new` where `old` is; what was there before.
///
/// # Safety
/// As for [`store32`].
#[cfg(not(target_arch = "nvptx64"))]
#[inline(always)]
pub(crate) unsafe fn compare_exchange32(at: *mut u32, old: u32, new: u32) -> u32 {
    // SAFETY: the caller's promise.
    let cell = unsafe { &*at.cast::<AtomicU32>() };
    cell.compare_exchange(old, new, Relaxed, Relaxed).unwrap_or_else(|was| was)
}

/// Reads four times 4 bytes.
///
/// # Safety
/// As for [`load32`], of 16 bytes.
#[cfg(not(target_arch = "nvptx64"))]
#[inline(always)]
pub(crate) unsafe fn load_four32(at: *const u32) -> [u32; 4] {
    // SAFETY: the caller's promise.
    unsafe { [load32(at), load32(at.add(1)), load32(at.add(2)), load32(at.add(3))] }
}

/// Writes four times 4 bytes.
///
/// # Safety
/// As for [`load_four32`], and they are writable.
#[cfg(not(target_arch = "nvptx64"))]
#[inline(always)]
pub(crate) unsafe fn store_four32(at: *mut u32, [a, b, c, d]: [u32; 4]) {
    // SAFETY: the caller's promise.
    unsafe {
        store32(at, a);
        store32(at.add(1), b);
        store32(at.add(2), c);
        store32(at.add(3), d);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn an_addition_carries_and_wraps() {
        for (a, b) in
            [(1, 2), (0xffff_ffff, 1), (7 << 32 | 0x8000_0000, 0x8000_0000), (u64::MAX, 3)]
        {
            let mut sum = a;
            // SAFETY: 8 bytes of this thread alone.
            unsafe { add64(&raw mut sum, b) };
            assert_eq!(sum, a.wrapping_add(b), "{a:#x} + {b:#x}");
        }
    }
}
