//! What both compilers make of the same assembly: each is one instruction or two.

use crate::block::HasThreads;
use core::arch::asm;

/// Compares and swaps a word of block-shared memory; what was there before.
///
/// # Safety
/// `at` is an aligned word in block-shared memory.
#[inline(always)]
pub(crate) unsafe fn swap_shared(at: *mut u64, old: u64, new: u64) -> u64 {
    let was: u64;
    // SAFETY: the caller's word, in the shared window.
    unsafe {
        asm!("{{ .reg .u64 %a; cvta.to.shared.u64 %a, {at}; atom.shared.cas.b64 {was}, [%a], {old}, {new}; }}",
            at = in(reg64) at, old = in(reg64) old, new = in(reg64) new, was = out(reg64) was,
            options(nostack));
    }
    was
}

/// Loads a word of block-shared memory; what comes behind it sees what was told before the word was set.
///
/// # Safety
/// `at` is an aligned word in block-shared memory.
#[inline(always)]
pub(crate) unsafe fn acquire_shared(at: *const u64) -> u64 {
    let value: u64;
    // SAFETY: the caller's word, in the shared window.
    unsafe {
        asm!("{{ .reg .u64 %a; cvta.to.shared.u64 %a, {at}; ld.acquire.cta.shared.b64 {value}, [%a]; }}",
            at = in(reg64) at, value = out(reg64) value, options(nostack));
    }
    value
}

/// Adds to a word of block-shared memory.
///
/// # Safety
/// `at` is an aligned word in block-shared memory.
#[inline(always)]
pub(crate) unsafe fn add_shared(at: *mut u64, n: u64) {
    // SAFETY: the caller's word, in the shared window.
    unsafe {
        asm!("{{ .reg .u64 %a; cvta.to.shared.u64 %a, {at}; red.shared.add.u64 [%a], {n}; }}",
            at = in(reg64) at, n = in(reg64) n, options(nostack));
    }
}

/// Adds to a 32-bit word of block-shared memory.
///
/// # Safety
/// `at` is an aligned word in block-shared memory.
#[inline(always)]
pub(crate) unsafe fn add_shared32(at: *mut u32, n: u32) {
    // SAFETY: the caller's word, in the shared window.
    unsafe {
        asm!("{{ .reg .u64 %a; cvta.to.shared.u64 %a, {at}; red.shared.add.u32 [%a], {n}; }}",
            at = in(reg64) at, n = in(reg32) n, options(nostack));
    }
}

/// Takes what a 32-bit word of block-shared memory holds, and leaves zero.
///
/// # Safety
/// `at` is an aligned word in block-shared memory.
#[inline(always)]
pub(crate) unsafe fn take_shared32(at: *mut u32) -> u32 {
    let was: u32;
    // SAFETY: the caller's word, in the shared window.
    unsafe {
        asm!("{{ .reg .u64 %a; cvta.to.shared.u64 %a, {at}; atom.shared.exch.b32 {was}, [%a], 0; }}",
            at = in(reg64) at, was = out(reg32) was, options(nostack));
    }
    was
}

/// The address in the shared window of what has that generic address in block-shared memory: by it the functions below read and write. A
/// thread that has it once reads what lies behind it without arithmetic: an instruction has a distance beside its address.
#[inline(always)]
pub(crate) fn in_shared_window<T>(at: *mut T) -> *mut T {
    let window: *mut T;
    // SAFETY: arithmetic.
    unsafe {
        asm!("cvta.to.shared.u64 {window}, {at};",
            window = out(reg64) window, at = in(reg64) at, options(nostack, preserves_flags, pure, nomem));
    }
    window
}

/// Reads and writes elements of block-shared memory: by the 32-bit and 64-bit instruction.
macro_rules! elements {
    ($($word:ty, $reg:ident, $bits:literal: $load:ident $store:ident;)*) => {$(
        #[doc = concat!("Reads ", $bits, " bits of block-shared memory.")]
        ///
        /// # Safety
        /// `at` is an aligned word [in the shared window](in_shared_window).
        #[inline(always)]
        pub(crate) unsafe fn $load(at: *const $word) -> $word {
            let value: $word;
            // SAFETY: the caller's word, in the shared window.
            unsafe {
                asm!(concat!("ld.relaxed.cta.shared.b", $bits, " {value}, [{at}];"),
                    at = in(reg64) at, value = out($reg) value, options(nostack, preserves_flags, pure, readonly));
            }
            value
        }

        #[doc = concat!("Writes ", $bits, " bits of block-shared memory.")]
        ///
        /// # Safety
        /// `at` is an aligned word [in the shared window](in_shared_window).
        #[inline(always)]
        pub(crate) unsafe fn $store(at: *mut $word, value: $word) {
            // SAFETY: the caller's word, in the shared window.
            unsafe {
                asm!(concat!("st.relaxed.cta.shared.b", $bits, " [{at}], {value};"),
                    at = in(reg64) at, value = in($reg) value, options(nostack, preserves_flags));
            }
        }
    )*};
}
elements! {
    u32, reg32, "32": load_shared32 store_shared32;
    u64, reg64, "64": load_shared64 store_shared64;
}

/// Reads four words of 32 bits by one instruction, which is weak: PTX has no relaxed one of four.
///
/// # Safety
/// `at` is four words [in the shared window](in_shared_window), at a multiple of 16.
#[inline(always)]
pub(crate) unsafe fn load_four_shared32(at: *const u32) -> [u32; 4] {
    let (a, b, c, d): (u32, u32, u32, u32);
    // SAFETY: the caller's words, in the shared window.
    unsafe {
        asm!("ld.weak.shared.v4.b32 {{{a}, {b}, {c}, {d}}}, [{at}];",
            a = out(reg32) a, b = out(reg32) b, c = out(reg32) c, d = out(reg32) d,
            at = in(reg64) at, options(nostack, preserves_flags, pure, readonly));
    }
    [a, b, c, d]
}

/// Writes four words of 32 bits by one instruction, which is weak as that of [`load_four_shared32`] is.
///
/// # Safety
/// As for [`load_four_shared32`].
#[inline(always)]
pub(crate) unsafe fn store_four_shared32(at: *mut u32, [a, b, c, d]: [u32; 4]) {
    // SAFETY: the caller's words, in the shared window.
    unsafe {
        asm!("st.weak.shared.v4.b32 [{at}], {{{a}, {b}, {c}, {d}}};",
            a = in(reg32) a, b = in(reg32) b, c = in(reg32) c, d = in(reg32) d,
            at = in(reg64) at, options(nostack, preserves_flags));
    }
}

/// Which threads of the warp execute this together, a bit each.
#[inline(always)]
pub(crate) fn active_threads() -> u32 {
    let threads: u32;
    // SAFETY: reads which threads there are.
    unsafe {
        asm!("activemask.b32 {threads};", threads = out(reg32) threads, options(nostack, nomem))
    }
    threads
}

/// The same number, of which the compiler knows nothing.
#[inline(always)]
pub(crate) fn opaque32(mut n: u32) -> u32 {
    // SAFETY: no instruction.
    unsafe { asm!("// {n}", n = inout(reg32) n, options(nostack, nomem)) }
    n
}

/// The same address, of which the compiler knows nothing.
#[inline(always)]
pub(crate) fn opaque64<T>(mut at: *const T) -> *const T {
    // SAFETY: no instruction.
    unsafe { asm!("// {at}", at = inout(reg64) at, options(nostack, nomem)) }
    at
}

/// Says how many threads the kernel's blocks have: ring-builder lets none of them have more registers than a multiprocessor has for
/// so many.
#[inline(always)]
pub(crate) fn limit_registers<K: HasThreads>() {
    // SAFETY: no instruction.
    unsafe { asm!("// ring: registers for {} threads", const K::THREADS, options(nostack)) }
}

/// Bytes of block-shared memory that the block has, declared and by launch.
#[inline(always)]
pub(crate) fn shared_bytes() -> u32 {
    let n: u32;
    // SAFETY: reads a register.
    unsafe { asm!("mov.u32 {n}, %total_smem_size;", n = out(reg32) n, options(nostack, nomem)) }
    n
}

/// Blocks of the grid, along its first dimension.
#[inline(always)]
pub(crate) fn grid_blocks() -> u32 {
    let n: u32;
    // SAFETY: reads a register.
    unsafe { asm!("mov.u32 {n}, %nctaid.x;", n = out(reg32) n, options(nostack, nomem)) }
    n
}

/// The device's clock in nanoseconds; it ticks about every microsecond.
#[inline(always)]
pub(crate) fn global_timer() -> u64 {
    let t: u64;
    // SAFETY: reads a register.
    unsafe { asm!("mov.u64 {t}, %globaltimer;", t = out(reg64) t, options(nostack, nomem)) }
    t
}

/// The multiprocessor's clock, in cycles.
#[inline(always)]
pub(crate) fn cycles() -> u64 {
    let t: u64;
    // SAFETY: reads a register.
    unsafe { asm!("mov.u64 {t}, %clock64;", t = out(reg64) t, options(nostack)) }
    t
}

/// The same, where memory that is read or written around it may be so before or behind it as well.
#[inline(always)]
pub(crate) fn cycles_about() -> u64 {
    let t: u64;
    // SAFETY: reads a register.
    unsafe { asm!("mov.u64 {t}, %clock64;", t = out(reg64) t, options(nostack, nomem)) }
    t
}

/// Sleeps for about `ns` nanoseconds.
#[inline(always)]
pub(crate) fn sleep(ns: u32) {
    // SAFETY: no memory.
    unsafe { asm!("nanosleep.u32 {ns};", ns = in(reg32) ns, options(nostack)) }
}

/// Ends the calling thread. Barriers count it no more.
#[inline(always)]
pub(crate) fn exit() -> ! {
    // SAFETY: the thread has nothing that would have to be given back.
    unsafe { asm!("exit;", options(noreturn, nostack)) }
}

/// A function of one number, by one instruction. Numbers are moved as words: one of the compilers takes no others.
macro_rules! by_instruction {
    ($($(#[$doc:meta])* $name:ident: $instruction:literal;)*) => {$(
        $(#[$doc])*
        #[inline(always)]
        pub(crate) fn $name(x: f32) -> f32 {
            let y: u32;
            // SAFETY: registers only.
            unsafe {
                asm!(concat!($instruction, " {y}, {x};"), x = in(reg32) x.to_bits(), y = out(reg32) y,
                    options(pure, nomem, nostack));
            }
            f32::from_bits(y)
        }
    )*};
}
by_instruction! {
    /// The square root, rounded to nearest.
    sqrt: "sqrt.rn.f32";
    /// One divided by the square root, by about 2^-22.9 of itself.
    rsqrt: "rsqrt.approx.f32";
    /// One divided by the number, by about 2^-23 of itself.
    recip: "rcp.approx.f32";
    /// Two to that power, by about 2^-22.5 of itself.
    exp2: "ex2.approx.f32";
}

/// `x y + z`, rounded once.
#[inline(always)]
pub(crate) fn fma(x: f32, y: f32, z: f32) -> f32 {
    let sum: u32;
    // SAFETY: registers only.
    unsafe {
        asm!("fma.rn.f32 {sum}, {x}, {y}, {z};", x = in(reg32) x.to_bits(), y = in(reg32) y.to_bits(),
            z = in(reg32) z.to_bits(), sum = out(reg32) sum, options(pure, nomem, nostack));
    }
    f32::from_bits(sum)
}

/// The two numbers of 16 bits in a word.
#[inline(always)]
pub(crate) fn unpack_f16(word: u32) -> [f32; 2] {
    let (low, high): (u32, u32);
    // SAFETY: registers only.
    unsafe {
        asm!("{{ .reg .b16 %low, %high; mov.b32 {{%low, %high}}, {word}; cvt.f32.f16 {low}, %low; cvt.f32.f16 {high}, %high; }}",
            word = in(reg32) word, low = out(reg32) low, high = out(reg32) high, options(pure, nomem, nostack));
    }
    [f32::from_bits(low), f32::from_bits(high)]
}
