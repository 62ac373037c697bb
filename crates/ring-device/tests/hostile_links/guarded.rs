//! Memory with guards: what is written beside its parts is found.

use ring_shared::atomics::Atom;
use ring_shared::layout::{CreditLine, Doorbell, Far, LINE, Link, Placement};
use ring_shared::ring::CONTROL;
use ring_shared::{Message, Ring};
use std::alloc::Layout;
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// Bytes of a guard.
const GUARD: usize = 8 * LINE;

/// Some parts in one allocation, zeroed, with a guard before, between and behind them.
pub struct Guarded {
    base: NonNull<u8>,
    layout: Layout,
    parts: Vec<(usize, usize)>,
}

// SAFETY: owned memory, of which only atomics are used.
unsafe impl Send for Guarded {}
// SAFETY: as above.
unsafe impl Sync for Guarded {}

impl Guarded {
    /// Parts of so many bytes each, each at a whole line.
    pub fn new(bytes: &[usize]) -> Guarded {
        let mut at = GUARD;
        let mut parts = Vec::new();
        for bytes in bytes {
            parts.push((at, *bytes));
            at = (at + bytes).next_multiple_of(LINE) + GUARD;
        }
        let layout = Layout::from_size_align(at, LINE).expect("a small layout");
        // SAFETY: not of size zero.
        let base = NonNull::new(unsafe { std::alloc::alloc_zeroed(layout) }).expect("memory");
        base.as_ptr().expose_provenance();
        let guarded = Guarded { base, layout, parts };
        guarded.guards().for_each(|(word, pattern)| word.store(pattern, Relaxed));
        guarded
    }

    /// The words of all guards, and what is in them.
    fn guards(&self) -> impl Iterator<Item = (&AtomicU64, u64)> {
        let is_of_part = |at: usize| {
            let holds = |(begin, bytes): &(usize, usize)| {
                (*begin..(begin + bytes).next_multiple_of(8)).contains(&at)
            };
            self.parts.iter().any(holds)
        };
        let words = (0..self.layout.size()).step_by(8).filter(move |at| !is_of_part(*at));
        words.map(|at| {
            // SAFETY: inside the memory, at a multiple of 8; only atomics are there.
            let word = unsafe { self.base.add(at).cast::<AtomicU64>().as_ref() };
            (word, (at as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15))
        })
    }

    /// Whether nobody has written to a guard.
    pub fn is_whole(&self) -> bool {
        self.guards().all(|(word, pattern)| word.load(Relaxed) == pattern)
    }

    /// The `k`th part.
    pub fn part(&self, k: usize) -> NonNull<u8> {
        // SAFETY: inside the memory.
        unsafe { self.base.add(self.parts[k].0) }
    }

    /// Where it is.
    pub fn address(&self, k: usize) -> u64 {
        self.part(k).as_ptr().expose_provenance() as u64
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            // SAFETY: of that layout; whoever used it has left, or a test would be panicking.
            unsafe { std::alloc::dealloc(self.base.as_ptr(), self.layout) };
        }
    }
}

/// A ring of a link in guarded memory.
pub struct GuardedRing {
    memory: Guarded,
    pub capacity: u32,
    pub atoms: u32,
    start: u64,
}

impl GuardedRing {
    /// A ring for messages `M`, as it is before the first, of index `start`.
    pub fn new<M: Message>(capacity: u32, start: u64) -> GuardedRing {
        let atoms = M::SLOT_ATOMS as u32;
        let memory = Guarded::new(&[LINE, LINE, 16 * (capacity * atoms) as usize]);
        let ring = GuardedRing { memory, capacity, atoms, start };
        ring.ring().reset();
        ring
    }

    /// The ring; whoever uses it keeps the memory.
    pub fn ring(&self) -> Ring {
        let parts = (
            self.memory.part(0).cast::<Doorbell>(),
            self.memory.part(1).cast::<CreditLine>(),
            self.memory.part(2).cast::<Atom>(),
        );
        // SAFETY: parts of memory that the tests keep longer than its rings, zeroed before.
        let ring =
            unsafe { Ring::from_raw(parts, (1, 1), (self.capacity, self.atoms), self.start) };
        ring.expect("a sound ring")
    }

    /// Tells a channel of it.
    pub fn describe(&self, link: &Link, far: Far) {
        link.ring.describe(&Placement {
            lines: self.memory.address(0),
            credit: self.memory.address(1),
            slots: self.memory.address(2),
            start: self.start,
            capacity: self.capacity,
            slot_bytes: 16 * self.atoms,
            line_count: 1,
            span: 1,
        });
        link.far.store(far.to_u32(), Relaxed);
    }

    /// Index of the first message.
    pub fn start(&self) -> u64 {
        self.start
    }

    /// The atoms of its line, the control atom last.
    pub fn line(&self) -> [[u64; 2]; CONTROL + 1] {
        let ring = self.ring();
        std::array::from_fn(|k| ring.line(0).atoms[k].load())
    }

    /// The atoms of the `k`th slot.
    pub fn slot(&self, k: u32) -> Vec<[u64; 2]> {
        self.ring().slot(k.into()).iter().map(Atom::load).collect()
    }

    /// What its consumer says that it has consumed.
    pub fn consumed(&self) -> u64 {
        self.ring().credit().consumed.load(Relaxed)
    }

    /// Whether nobody has written beside its parts.
    pub fn is_whole(&self) -> bool {
        self.memory.is_whole()
    }
}
