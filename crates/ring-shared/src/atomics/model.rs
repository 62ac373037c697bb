//! Atomics for the model checker: of the same size and bytes as core's, so that layouts, zeroed memory
//! and casts between them hold for it too, and the same sources run under it unchanged.
//!
//! A word is core's until [`share`] says what it is to loom: an atomic, whose every access may be where
//! threads are switched and whose loads may return old values, or a cell, for words that another access
//! publishes: loom fails a model that reads or writes it without having acquired what was written there.
//! Words that one thread has for itself are not shared, and cost loom nothing.

use core::sync::atomic::{self, Ordering, Ordering::Relaxed};
use loom::cell::UnsafeCell;
use std::cell::RefCell;
use std::rc::Rc;

/// What a word of eight bytes is to loom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An atomic.
    Atomic,
    /// Plain memory, published by an atomic.
    Cell,
}

#[derive(Debug)]
enum Word {
    Atomic(loom::sync::atomic::AtomicU64),
    Cell(UnsafeCell<u64>),
    Unwatched,
}

#[derive(Debug)]
struct Range {
    begin: usize,
    words: Vec<Word>,
}

std::thread_local! {
    // Loom runs all threads of a model on the one that began it.
    static RANGES: RefCell<Vec<Rc<Range>>> = const { RefCell::new(Vec::new()) };
}

/// Memory that loom watches until this is dropped, which must be before the model's function returns.
#[derive(Debug)]
pub struct Shared(usize);

impl Drop for Shared {
    fn drop(&mut self) {
        RANGES.with_borrow_mut(|ranges| ranges.retain(|range| range.begin != self.0));
    }
}

/// Lets loom watch the memory of `of`, as it is now; `kind` says what the word at so many bytes is,
/// `None` that it is not watched after all.
///
/// # Panics
/// If it is not of whole words.
pub fn share<T: ?Sized>(of: &T, kind: impl Fn(usize) -> Option<Kind>) -> Shared {
    let begin = core::ptr::from_ref(of).cast::<atomic::AtomicU64>();
    let bytes = size_of_val(of);
    assert!(begin.addr().is_multiple_of(8) && bytes.is_multiple_of(8), "not whole words");
    let word = |k: usize| {
        // SAFETY: word `k` of `of`, whose every word is in atomics of this module.
        let value = unsafe { &*begin.wrapping_add(k) }.load(Relaxed);
        match kind(8 * k) {
            Some(Kind::Atomic) => Word::Atomic(loom::sync::atomic::AtomicU64::new(value)),
            Some(Kind::Cell) => Word::Cell(UnsafeCell::new(value)),
            None => Word::Unwatched,
        }
    };
    let words = (0..bytes / 8).map(word).collect();
    let range = Rc::new(Range { begin: begin.addr(), words });
    RANGES.with_borrow_mut(|ranges| ranges.push(range));
    Shared(begin.addr())
}

/// Calls `then` with the shared word at `address` (rounded down to a word), if it is one.
#[inline]
fn with<T>(address: usize, then: impl FnOnce(Option<&Word>) -> T) -> T {
    // Not borrowed while loom may switch to another thread.
    let range = RANGES.with_borrow(|ranges| {
        let holds = |range: &&Rc<Range>| {
            address.checked_sub(range.begin).is_some_and(|at| at / 8 < range.words.len())
        };
        ranges.iter().find(holds).cloned()
    });
    let word = range.as_deref().map(|range| &range.words[(address - range.begin) / 8]);
    then(word.filter(|word| !matches!(word, Word::Unwatched)))
}

impl Word {
    fn load(&self, order: Ordering) -> u64 {
        match self {
            Word::Atomic(word) => word.load(order),
            // SAFETY: loom fails the model if another thread writes it meanwhile.
            Word::Cell(cell) => cell.with(|at| unsafe { *at }),
            Word::Unwatched => unreachable!("`with` finds watched words"),
        }
    }

    fn store(&self, value: u64, order: Ordering) {
        match self {
            Word::Atomic(word) => word.store(value, order),
            // SAFETY: loom fails the model if another thread is here meanwhile.
            Word::Cell(cell) => cell.with_mut(|at| unsafe { *at = value }),
            Word::Unwatched => unreachable!("`with` finds watched words"),
        }
    }
}

impl AtomicU64 {
    /// As core's, for words that are not watched or that are atomics.
    ///
    /// # Panics
    /// If it is watched as plain memory.
    #[inline]
    pub fn fetch_add(&self, n: u64, order: Ordering) -> u64 {
        with(self.0.as_ptr().addr(), |word| match word {
            Some(Word::Atomic(word)) => word.fetch_add(n, order),
            Some(_) => panic!("a counter is watched as plain memory"),
            None => self.0.fetch_add(n, order),
        })
    }
}

/// As core's.
#[repr(transparent)]
#[derive(Debug)]
pub struct AtomicU64(atomic::AtomicU64);

impl AtomicU64 {
    /// An atomic of that value.
    pub const fn new(value: u64) -> AtomicU64 {
        AtomicU64(atomic::AtomicU64::new(value))
    }

    /// As core's.
    #[inline]
    pub fn load(&self, order: Ordering) -> u64 {
        with(core::ptr::from_ref(self).addr(), |word| match word {
            Some(word) => word.load(order),
            None => self.0.load(order),
        })
    }

    /// As core's.
    #[inline]
    pub fn store(&self, value: u64, order: Ordering) {
        with(core::ptr::from_ref(self).addr(), |word| match word {
            Some(word) => word.store(value, order),
            None => self.0.store(value, order),
        });
    }
}

/// As core's. Where it is shared it is half of a [cell](Kind::Cell).
#[repr(transparent)]
#[derive(Debug)]
pub struct AtomicU32(atomic::AtomicU32);

impl AtomicU32 {
    /// An atomic of that value.
    pub const fn new(value: u32) -> AtomicU32 {
        AtomicU32(atomic::AtomicU32::new(value))
    }

    fn shift(&self) -> u32 {
        8 * (core::ptr::from_ref(self).addr() % 8) as u32
    }

    /// As core's, of what is no atomic to loom.
    #[inline]
    pub fn fetch_add(&self, n: u32, order: Ordering) -> u32 {
        self.0.fetch_add(n, order)
    }

    /// As core's, of what is no atomic to loom.
    #[inline]
    pub fn compare_exchange(
        &self,
        old: u32,
        new: u32,
        order: Ordering,
        of_failure: Ordering,
    ) -> Result<u32, u32> {
        self.0.compare_exchange(old, new, order, of_failure)
    }

    /// As core's.
    #[inline]
    pub fn load(&self, order: Ordering) -> u32 {
        with(core::ptr::from_ref(self).addr(), |word| match word {
            Some(word) => (word.load(order) >> self.shift()) as u32,
            None => self.0.load(order),
        })
    }

    /// As core's.
    ///
    /// # Panics
    /// If the word is an atomic to loom: half of it cannot be stored alone.
    #[inline]
    pub fn store(&self, value: u32, order: Ordering) {
        with(core::ptr::from_ref(self).addr(), |word| match word {
            Some(word) => {
                assert!(matches!(word, Word::Cell(_)), "a half is no atomic of a model");
                let others = word.load(order) & !(u64::from(u32::MAX) << self.shift());
                word.store(others | u64::from(value) << self.shift(), order);
            }
            None => self.0.store(value, order),
        });
    }
}
