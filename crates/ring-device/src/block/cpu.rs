//! One CPU thread as a block of one.

use super::cell::Cell;
use super::{Cooperate, HasThreads, Words};
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use ring_shared::atomics::{AtomicU32, AtomicU64};
use ring_shared::{Element, Element32};

/// Idle looks in a row after which a channel may sleep between two.
const WAKEFUL: u32 = 1000;

/// What `no_std` lacks, lent by the host runtime.
#[derive(Clone, Copy, Debug)]
pub struct Hooks {
    /// Nanoseconds of a clock that only grows.
    pub now: fn() -> u64,
    /// Called for the `n`-th idle look in a row: spin or yield, from the thousandth on perhaps sleep.
    pub rest: fn(n: u32),
    /// Unwinds the calling thread without a panic's message: the blocks of its grid have not met.
    pub unwind: fn() -> !,
}

/// The calling thread: all of its block.
#[derive(Clone, Copy, Debug)]
pub struct Threads {
    block: u32,
    blocks: u32,
    hooks: Hooks,
}

impl Threads {
    /// The one thread of block `block` of so many.
    pub fn new((block, blocks): (u32, u32), hooks: Hooks) -> Threads {
        Threads { block, blocks, hooks }
    }
}

impl Cooperate for Threads {
    const WARP: u32 = 1;
    type Spread<const N: usize> = [Words; N];

    fn block_index(self) -> u32 {
        self.block
    }

    fn blocks(self) -> u32 {
        self.blocks
    }

    #[inline(always)]
    fn thread(self) -> u32 {
        0
    }

    #[inline(always)]
    fn threads(self) -> u32 {
        1
    }

    #[inline(always)]
    fn barrier(self) {}

    #[inline(always)]
    fn warp_sync(self) {}

    /// The atoms' own acquires and releases suffice between threads of one CPU.
    #[inline(always)]
    fn fence(self) {}

    #[inline(always)]
    fn fence_device(self) {}

    #[inline(always)]
    fn fence_block(self) {}

    #[inline(always)]
    fn shuffle(self, value: u64, _: u32) -> u64 {
        value
    }

    #[inline(always)]
    fn shuffle32(self, value: u32, _: u32) -> u32 {
        value
    }

    #[inline(always)]
    fn agreed(self, holds: bool) -> bool {
        holds
    }

    #[inline(always)]
    fn all(self, holds: bool) -> bool {
        holds
    }

    #[inline(always)]
    fn ballot(self, holds: bool) -> u32 {
        u32::from(holds)
    }

    #[inline(always)]
    fn all_run(self) -> bool {
        true
    }

    #[inline(always)]
    fn converged(self) -> u32 {
        1
    }

    #[inline(always)]
    fn pass_on(self, _: u32, value: u64, _: u32) -> u64 {
        value
    }

    /// A handler that panics unwinds this thread.
    fn exit(self) {}

    fn unwind(self) {
        (self.hooks.unwind)()
    }

    #[inline(always)]
    fn spread<const N: usize>(self, of: impl Fn(usize) -> Words) -> [Words; N] {
        core::array::from_fn(of)
    }

    #[inline(always)]
    fn early<T: Copy>(self, of: impl Fn(usize) -> T + Copy) -> impl Fn(usize) -> T + Copy {
        of
    }

    #[inline(always)]
    fn own<const N: usize>(self, spread: [Words; N], k: usize) -> Words {
        spread[k]
    }

    #[inline(always)]
    fn each<const N: usize>(self, spread: [Words; N], mut each: impl FnMut(usize, Words)) {
        for (k, words) in spread.into_iter().enumerate() {
            each(k, words);
        }
    }

    #[inline(always)]
    fn holds<const N: usize>(
        self,
        spread: [Words; N],
        holds: impl Fn(usize, Words) -> bool,
    ) -> bool {
        spread.into_iter().enumerate().all(|(k, words)| holds(k, words))
    }

    #[inline(always)]
    fn lines<const N: usize>(
        self,
        spread: [Words; N],
        holds: impl Fn(usize, Words) -> bool,
    ) -> u32 {
        u32::from(spread.into_iter().take(8).enumerate().all(|(k, words)| holds(k, words)))
    }

    #[inline(always)]
    fn half<const N: usize>(self, spread: [Words; N], k: usize, half: usize) -> u64 {
        spread[k][half]
    }

    #[inline(always)]
    fn acquire(self, at: &AtomicU64) -> u64 {
        at.load(Acquire)
    }

    #[inline(always)]
    fn compare_and_swap(self, at: &AtomicU64, old: u64, new: u64) -> bool {
        let is = at.load(Relaxed) == old;
        if is {
            at.store(new, Relaxed);
        }
        is
    }

    #[inline(always)]
    fn add(self, at: &Cell<u64>, n: u64) {
        at.count(n);
    }

    #[inline(always)]
    fn add32(self, at: &AtomicU32, n: u32) {
        at.store(at.load(Relaxed).wrapping_add(n), Relaxed);
    }

    #[inline(always)]
    fn take32(self, at: &AtomicU32) -> u32 {
        let n = at.load(Relaxed);
        at.store(0, Relaxed);
        n
    }

    #[inline(always)]
    fn in_shared_window<T>(at: *mut T) -> *mut T {
        at
    }

    #[inline(always)]
    unsafe fn load_shared<T: Element>(at: *const T) -> T {
        // SAFETY: the caller's promise; this thread is all of the block.
        unsafe { at.read() }
    }

    #[inline(always)]
    unsafe fn store_shared<T: Element>(at: *mut T, value: T) {
        // SAFETY: as for `load_shared`.
        unsafe { at.write(value) }
    }

    #[inline(always)]
    unsafe fn load_four_shared<T: Element32>(at: *const T) -> [T; 4] {
        // SAFETY: as for `load_shared`.
        unsafe { at.cast::<[T; 4]>().read() }
    }

    #[inline(always)]
    unsafe fn store_four_shared<T: Element32>(at: *mut T, values: [T; 4]) {
        // SAFETY: as for `load_shared`.
        unsafe { at.cast::<[T; 4]>().write(values) }
    }

    fn now(self) -> u64 {
        (self.hooks.now)()
    }

    fn ticks(self) -> u64 {
        self.now()
    }

    fn now_and_ticks(self) -> (u64, u64) {
        let now = self.now(); // they are the same, and its thread may be interrupted between two readings
        (now, now)
    }

    fn ticks_of_handler(self) -> u64 {
        self.now()
    }

    fn pause(self, looks: u32, _: bool) {
        (self.hooks.rest)(looks);
    }

    fn rest(self, _: bool) {}

    #[inline(always)]
    fn may_sleep(self, looks: u32) -> bool {
        looks >= WAKEFUL
    }

    #[inline(always)]
    fn limit_registers<K: HasThreads>(self) {
        const { assert!(K::THREADS > 0) }; // a thread has no registers of its own to limit
    }

    #[inline(always)]
    fn optimization_barrier(self) -> Self {
        self
    }

    #[inline(always)]
    fn of_first_warp(self, _: u32) -> Self {
        self
    }

    #[inline(always)]
    fn opaque32(n: u32) -> u32 {
        n
    }

    #[inline(always)]
    fn opaque<T>(at: *const T) -> *const T {
        at
    }

    #[inline(always)]
    fn store_after_reads(self, at: &AtomicU64, value: u64) {
        at.store(value, Release);
    }
}
