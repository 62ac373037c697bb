//! Words that the threads of a block share.

use core::marker::PhantomData;
use core::sync::atomic::Ordering::Relaxed;
use ring_shared::atomics::AtomicU64;

/// What fits in a word.
pub(crate) trait Word: Copy {
    /// The word.
    fn to_word(self) -> u64;
    /// What the word means; `to_word` made it, or it is zero.
    fn from_word(word: u64) -> Self;
}

impl Word for u64 {
    #[inline(always)]
    fn to_word(self) -> u64 {
        self
    }

    #[inline(always)]
    fn from_word(word: u64) -> u64 {
        word
    }
}

impl Word for bool {
    #[inline(always)]
    fn to_word(self) -> u64 {
        u64::from(self)
    }

    #[inline(always)]
    fn from_word(word: u64) -> bool {
        word != 0
    }
}

/// A word in a block's memory that any thread of the block may get and set. What is set is seen by other
/// threads behind a barrier, or a fence of the block on both sides; each struct of cells says which thread
/// sets what.
#[repr(transparent)]
#[derive(Debug)]
pub(crate) struct Cell<T>(AtomicU64, PhantomData<T>);

impl<T: Word> Cell<T> {
    /// What it holds.
    #[inline(always)]
    pub fn get(&self) -> T {
        T::from_word(self.0.load(Relaxed))
    }

    /// Whether it holds `value`: one comparison, where what depends on [`get`](Self::get) may be a table of branches.
    #[inline(always)]
    pub fn is(&self, value: T) -> bool {
        self.0.load(Relaxed) == value.to_word()
    }

    /// Makes it hold `value`.
    #[inline(always)]
    pub fn set(&self, value: T) {
        self.0.store(value.to_word(), Relaxed);
    }
}

impl Cell<u64> {
    /// Adds to a number that no other thread changes now.
    #[inline(always)]
    pub fn count(&self, n: u64) {
        self.set(self.get().wrapping_add(n));
    }
}

impl<T> Cell<T> {
    /// The word, for an operation on block-shared memory that several threads make at once.
    #[inline(always)]
    pub fn word(&self) -> &AtomicU64 {
        &self.0
    }
}
