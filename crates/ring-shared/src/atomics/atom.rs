use super::AtomicU64;
#[cfg(not(target_arch = "nvptx64"))]
use super::Ordering;

/// Sixteen bytes that cross the bus as one: the unit in which lines and slots are moved.
///
/// Two halves, `lo` (bytes 0..8) and `hi` (bytes 8..16). On the GPU both are read or written by
/// one 16-byte access. On the CPU they are two accesses, and `hi` is the half that publishes: it
/// is written last and read first, so whoever sees a `hi` sees a `lo` at least as new. That the
/// GPU's one access sees them so too rests on a read of one 64-byte line of host memory being a
/// snapshot of that line: true of coherent x86 machines, not promised by PCIe.
#[repr(C, align(16))]
#[derive(Debug)]
pub struct Atom {
    lo: AtomicU64,
    hi: AtomicU64,
}

impl Atom {
    /// An atom holding `[lo, hi]`.
    pub fn new([lo, hi]: [u64; 2]) -> Self {
        Atom { lo: AtomicU64::new(lo), hi: AtomicU64::new(hi) }
    }
}

#[cfg(not(target_arch = "nvptx64"))]
impl Atom {
    /// Reads both halves, in no order. For bytes that another access has already published.
    #[inline]
    pub fn load(&self) -> [u64; 2] {
        [self.lo.load(Ordering::Relaxed), self.hi.load(Ordering::Relaxed)]
    }

    /// Writes both halves, in no order. For bytes that another access will publish.
    #[inline]
    pub fn store(&self, [lo, hi]: [u64; 2]) {
        self.lo.store(lo, Ordering::Relaxed);
        self.hi.store(hi, Ordering::Relaxed);
    }

    /// Reads `hi`, then `lo`: the `lo` is at least as new as the `hi`.
    #[inline]
    pub fn observe(&self) -> [u64; 2] {
        // SYNC: acquires what `publish` released into `hi` (stamp or tail), then into `lo`
        // (credit), whichever side of the bus the publisher is on.
        let hi = self.hi.load(Ordering::Acquire);
        [self.lo.load(Ordering::Acquire), hi]
    }

    /// Writes the atom so that whoever observes its new `hi` observes its new `lo`. For code that runs on a GPU
    /// too, where what is to be seen before it needs a fence before the call; here nothing more is needed.
    #[inline]
    pub fn store_whole(&self, words: [u64; 2]) {
        self.publish(words);
    }

    /// Writes `lo`, then `hi`, each after everything written or read before.
    #[inline]
    pub fn publish(&self, [lo, hi]: [u64; 2]) {
        // SYNC: released to `observe` on the other side, or to its 16-byte load.
        self.lo.store(lo, Ordering::Release);
        self.hi.store(hi, Ordering::Release);
    }
}

/// Reads the 16 bytes of an atom at once, with that order and memory scope of PTX.
#[cfg(target_arch = "nvptx64")]
macro_rules! load_atom {
    ($order:expr, $atom:expr) => {{
        let atom: &Atom = $atom;
        let (lo, hi): (u64, u64);
        // SAFETY: 16 readable bytes, aligned, every one of them in an atomic cell.
        unsafe {
            core::arch::asm!(
                concat!("{{ .reg .b128 %atom; ld.", $order, ".global.b128 %atom, [{at}]; mov.b128 {{{lo}, {hi}}}, %atom; }}"),
                lo = out(reg64) lo, hi = out(reg64) hi, at = in(reg64) atom,
                options(nostack, preserves_flags)
            );
        }
        [lo, hi]
    }};
}

/// Writes the 16 bytes of an atom at once, likewise.
#[cfg(target_arch = "nvptx64")]
macro_rules! store_atom {
    ($order:expr, $atom:expr, $words:expr) => {{
        let (atom, [lo, hi]): (&Atom, [u64; 2]) = ($atom, $words);
        // SAFETY: 16 writable bytes, aligned, every one of them in an atomic cell.
        unsafe {
            core::arch::asm!(
                concat!("{{ .reg .b128 %atom; mov.b128 %atom, {{{lo}, {hi}}}; st.", $order, ".global.b128 [{at}], %atom; }}"),
                lo = in(reg64) lo, hi = in(reg64) hi, at = in(reg64) atom,
                options(nostack, preserves_flags)
            );
        }
    }};
}

#[cfg(target_arch = "nvptx64")]
pub(super) use {load_atom, store_atom};

/// On a GPU, each at system scope.
#[cfg(target_arch = "nvptx64")]
impl Atom {
    /// Reads the 16 bytes at once, relaxed.
    #[inline(always)]
    pub fn load(&self) -> [u64; 2] {
        load_atom!("relaxed.sys", self)
    }

    /// Writes the 16 bytes at once, relaxed.
    #[inline(always)]
    pub fn store(&self, words: [u64; 2]) {
        store_atom!("relaxed.sys", self, words);
    }

    /// Reads the 16 bytes at once, acquiring. It waits for them; where there is something better to do
    /// meanwhile, a load and a fence when it is found to matter are faster.
    #[inline(always)]
    pub fn observe(&self) -> [u64; 2] {
        // SYNC: acquires what the other side had a fence or a release before its `publish` for.
        load_atom!("acquire.sys", self)
    }

    /// Writes the atom so that whoever observes its new `hi` observes its new `lo`. What is to be seen before
    /// it needs a fence of system scope before the call.
    #[inline(always)]
    pub fn store_whole(&self, words: [u64; 2]) {
        self.store(words);
    }
}

mod layout {
    use super::Atom;
    use static_assertions::{assert_eq_align, assert_eq_size, const_assert_eq};
    assert_eq_size!(Atom, [u64; 2]);
    assert_eq_align!(Atom, u128);
    const_assert_eq!(core::mem::offset_of!(Atom, lo), 0);
    const_assert_eq!(core::mem::offset_of!(Atom, hi), 8);
}
