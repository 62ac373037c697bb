//! Atoms by the widest moves of the CPU, for bytes that another access publishes.
//!
//! A slot is filled and read by relaxed accesses of 8 bytes, as [`Atom::store`] and [`Atom::load`]
//! make them: whoever breaks the rule of one producer and one consumer, or is a device that writes
//! when it should not, gets or leaves garbage, but there is no undefined behaviour, and each byte
//! is read once. Two neighbours may be moved by one instruction, since nothing is promised about
//! the order of relaxed accesses: that is what the assembly here does, and the compiler will not.
//!
//! A CPU has one memory scope; on a GPU the moves are those of the scope.
//!
//! Tools that watch memory do not see into assembly. Loom and Miri get the plain atomics, and so do
//! other CPUs; `--cfg ring_atomic_slots` asks for them, as a build for a sanitizer should.

use super::{Atom, MemoryScope};

pub(crate) use moves::{load, load_four, store, store_four};

#[cfg(all(
    target_arch = "x86_64",
    target_feature = "sse2",
    not(any(loom, miri, ring_atomic_slots))
))]
#[expect(clippy::extra_unused_type_parameters, reason = "a CPU has one memory scope")]
mod moves {
    use super::{Atom, MemoryScope};
    use core::arch::asm;

    /// The bytes of an atom.
    type Bytes = core::arch::x86_64::__m128i;

    /// The move, with whatever code is built for: the two encodings are slow side by side.
    #[cfg(not(target_feature = "avx"))]
    macro_rules! mov {
        ($operands:literal) => {
            concat!("movaps ", $operands)
        };
    }
    #[cfg(target_feature = "avx")]
    macro_rules! mov {
        ($operands:literal) => {
            concat!("vmovaps ", $operands)
        };
    }

    /// Reads an atom, once.
    #[inline]
    pub(crate) fn load<S: MemoryScope>(atom: &Atom) -> Bytes {
        let bytes;
        // SAFETY: 16 readable bytes, aligned to 16, all of them atomic cells: two relaxed loads.
        unsafe {
            asm!(mov!("{}, [{}]"), out(xmm_reg) bytes, in(reg) atom,
                options(nostack, preserves_flags, readonly));
        }
        bytes
    }

    /// Writes an atom.
    #[inline]
    pub(crate) fn store<S: MemoryScope>(atom: &Atom, bytes: Bytes) {
        // SAFETY: 16 writable bytes, aligned to 16, all of them atomic cells: two relaxed stores.
        unsafe {
            asm!(mov!("[{}], {}"), in(reg) atom, in(xmm_reg) bytes,
                options(nostack, preserves_flags));
        }
    }

    /// Reads four atoms, each once.
    #[inline]
    pub(crate) fn load_four<S: MemoryScope>(atoms: &[Atom; 4]) -> [Bytes; 4] {
        let (a, b, c, d);
        // SAFETY: 64 readable bytes, aligned to 16, all of them atomic cells: eight relaxed loads.
        unsafe {
            asm!(
                mov!("{a}, [{at}]"),
                mov!("{b}, [{at} + 16]"),
                mov!("{c}, [{at} + 32]"),
                mov!("{d}, [{at} + 48]"),
                a = out(xmm_reg) a, b = out(xmm_reg) b, c = out(xmm_reg) c, d = out(xmm_reg) d,
                at = in(reg) atoms,
                options(nostack, preserves_flags, readonly)
            );
        }
        [a, b, c, d]
    }

    /// Writes four atoms.
    #[inline]
    pub(crate) fn store_four<S: MemoryScope>(atoms: &[Atom; 4], [a, b, c, d]: [Bytes; 4]) {
        // SAFETY: 64 writable bytes, aligned to 16, all of them atomic cells: eight relaxed stores.
        unsafe {
            asm!(
                mov!("[{at}], {a}"),
                mov!("[{at} + 16], {b}"),
                mov!("[{at} + 32], {c}"),
                mov!("[{at} + 48], {d}"),
                a = in(xmm_reg) a, b = in(xmm_reg) b, c = in(xmm_reg) c, d = in(xmm_reg) d,
                at = in(reg) atoms,
                options(nostack, preserves_flags)
            );
        }
    }
}

#[cfg(not(all(
    target_arch = "x86_64",
    target_feature = "sse2",
    not(any(loom, miri, ring_atomic_slots))
)))]
mod moves {
    use super::{Atom, MemoryScope};

    /// The bytes of an atom.
    type Bytes = [u64; 2];

    /// Reads an atom, once.
    #[inline]
    pub(crate) fn load<S: MemoryScope>(atom: &Atom) -> Bytes {
        S::load(atom)
    }

    /// Writes an atom.
    #[inline]
    pub(crate) fn store<S: MemoryScope>(atom: &Atom, bytes: Bytes) {
        S::store(atom, bytes);
    }

    /// Reads four atoms, each once.
    #[inline]
    pub(crate) fn load_four<S: MemoryScope>(atoms: &[Atom; 4]) -> [Bytes; 4] {
        atoms.each_ref().map(S::load)
    }

    /// Writes four atoms.
    #[inline]
    pub(crate) fn store_four<S: MemoryScope>(atoms: &[Atom; 4], bytes: [Bytes; 4]) {
        for (atom, bytes) in atoms.iter().zip(bytes) {
            S::store(atom, bytes);
        }
    }
}
