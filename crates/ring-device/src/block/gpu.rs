//! A thread of a GPU's block.

use super::cell::Cell;
use super::{Cooperate, HasThreads, Words, intrinsics as ptx};
use core::sync::atomic::Ordering::Relaxed;
use ring_shared::atomics::{AtomicU32, AtomicU64};
use ring_shared::{Element, Element32};

/// The calling thread.
#[derive(Clone, Copy, Debug)]
pub struct Threads {
    thread: u32,
}

impl Threads {
    /// Bytes of block-shared memory that the block has.
    #[inline(always)]
    pub fn shared_bytes(self) -> usize {
        ptx::shared_bytes() as usize
    }

    /// The calling thread of its block.
    ///
    /// # Safety
    /// Every thread of the block calls it.
    #[inline(always)]
    pub unsafe fn of_block() -> Threads {
        // SAFETY: reads a register.
        Threads { thread: unsafe { ptx::thread_index() as u32 } }
    }
}

impl Cooperate for Threads {
    const WARP: u32 = 32;
    type Spread<const N: usize> = Words;

    #[inline(always)]
    fn block_index(self) -> u32 {
        // SAFETY: reads a register.
        unsafe { ptx::block_index() as u32 }
    }

    #[inline(always)]
    fn blocks(self) -> u32 {
        ptx::grid_blocks()
    }

    #[inline(always)]
    fn thread(self) -> u32 {
        self.thread
    }

    #[inline(always)]
    fn threads(self) -> u32 {
        // SAFETY: reads a register.
        unsafe { ptx::block_dim() as u32 }
    }

    #[inline(always)]
    fn barrier(self) {
        // SAFETY: every thread of the block comes here: branches around it are uniform.
        unsafe { ptx::sync_threads() }
    }

    #[inline(always)]
    fn warp_sync(self) {
        ptx::sync_warp();
    }

    #[inline(always)]
    fn fence(self) {
        ptx::fence_system();
    }

    #[inline(always)]
    fn fence_device(self) {
        ptx::fence_device();
    }

    #[inline(always)]
    fn fence_block(self) {
        ptx::fence_block();
    }

    #[inline(always)]
    fn shuffle(self, value: u64, from: u32) -> u64 {
        ptx::shuffle64(value, from)
    }

    #[inline(always)]
    fn shuffle32(self, value: u32, from: u32) -> u32 {
        ptx::shuffle(value, from)
    }

    #[inline(always)]
    fn agreed(self, holds: bool) -> bool {
        ptx::shuffle(u32::from(holds), 0) != 0
    }

    #[inline(always)]
    fn all(self, holds: bool) -> bool {
        ptx::all(holds)
    }

    #[inline(always)]
    fn ballot(self, holds: bool) -> u32 {
        ptx::ballot(holds)
    }

    #[inline(always)]
    fn all_run(self) -> bool {
        ptx::all_run()
    }

    #[inline(always)]
    fn converged(self) -> u32 {
        ptx::active_threads()
    }

    #[inline(always)]
    fn pass_on(self, threads: u32, value: u64, from: u32) -> u64 {
        // SAFETY: the caller's promise, and `converged` has found them together.
        unsafe { ptx::shuffle64_among(threads, value, from) }
    }

    #[inline(always)]
    fn exit(self) {
        ptx::exit()
    }

    #[inline(always)]
    fn unwind(self) {}

    #[inline(always)]
    fn spread<const N: usize>(self, of: impl Fn(usize) -> Words) -> Words {
        of(self.lane() as usize)
    }

    #[inline(always)]
    fn early<T: Copy>(self, of: impl Fn(usize) -> T + Copy) -> impl Fn(usize) -> T + Copy {
        let own = of(self.lane() as usize);
        move |_| own
    }

    #[inline(always)]
    fn own<const N: usize>(self, words: Words, _: usize) -> Words {
        words
    }

    #[inline(always)]
    fn each<const N: usize>(self, words: Words, mut each: impl FnMut(usize, Words)) {
        let k = self.lane() as usize;
        if k < N {
            each(k, words);
        }
    }

    #[inline(always)]
    fn holds<const N: usize>(self, words: Words, holds: impl Fn(usize, Words) -> bool) -> bool {
        ptx::all(holds(self.lane() as usize, words))
    }

    #[inline(always)]
    fn lines<const N: usize>(self, words: Words, holds: impl Fn(usize, Words) -> bool) -> u32 {
        let votes = ptx::ballot(holds(self.lane() as usize, words));
        // A byte of ones carries into its own highest bit, which is one; those bits side by side.
        let full = (votes & 0x7f7f_7f7f).wrapping_add(0x0101_0101) & votes & 0x8080_8080;
        (full >> 7).wrapping_mul(0x0102_0408) >> 24
    }

    #[inline(always)]
    fn half<const N: usize>(self, words: Words, k: usize, half: usize) -> u64 {
        ptx::shuffle64(words[half], k as u32)
    }

    #[inline(always)]
    fn acquire(self, at: &AtomicU64) -> u64 {
        // SAFETY: a word of block-shared memory.
        unsafe { ptx::acquire_shared(at.as_ptr()) }
    }

    #[inline(always)]
    fn compare_and_swap(self, at: &AtomicU64, old: u64, new: u64) -> bool {
        // SAFETY: a word of block-shared memory.
        unsafe { ptx::swap_shared(at.as_ptr(), old, new) == old }
    }

    #[inline(always)]
    fn add(self, at: &Cell<u64>, n: u64) {
        // SAFETY: a word of block-shared memory.
        unsafe { ptx::add_shared(at.word().as_ptr(), n) }
    }

    #[inline(always)]
    fn add32(self, at: &AtomicU32, n: u32) {
        // SAFETY: a word of block-shared memory.
        unsafe { ptx::add_shared32(at.as_ptr(), n) }
    }

    #[inline(always)]
    fn take32(self, at: &AtomicU32) -> u32 {
        // SAFETY: a word of block-shared memory.
        unsafe { ptx::take_shared32(at.as_ptr()) }
    }

    #[inline(always)]
    fn in_shared_window<T>(at: *mut T) -> *mut T {
        ptx::in_shared_window(at)
    }

    #[inline(always)]
    unsafe fn load_shared<T: Element>(at: *const T) -> T {
        // SAFETY: the caller's promise. An element has 4 bytes or 8, and is as well such an integer.
        unsafe {
            match size_of::<T>() {
                4 => bytemuck::cast(ptx::load_shared32(at.cast())),
                _ => bytemuck::cast(ptx::load_shared64(at.cast())),
            }
        }
    }

    #[inline(always)]
    unsafe fn store_shared<T: Element>(at: *mut T, value: T) {
        // SAFETY: as for `load_shared`.
        unsafe {
            match size_of::<T>() {
                4 => ptx::store_shared32(at.cast(), bytemuck::cast(value)),
                _ => ptx::store_shared64(at.cast(), bytemuck::cast(value)),
            }
        }
    }

    #[inline(always)]
    unsafe fn load_four_shared<T: Element32>(at: *const T) -> [T; 4] {
        // SAFETY: the caller's promise.
        unsafe { ptx::load_four_shared32(at.cast()) }.map(bytemuck::cast)
    }

    #[inline(always)]
    unsafe fn store_four_shared<T: Element32>(at: *mut T, values: [T; 4]) {
        // SAFETY: the caller's promise.
        unsafe { ptx::store_four_shared32(at.cast(), values.map(bytemuck::cast)) }
    }

    #[inline(always)]
    fn now(self) -> u64 {
        ptx::global_timer()
    }

    #[inline(always)]
    fn ticks(self) -> u64 {
        ptx::cycles()
    }

    #[inline(always)]
    fn now_and_ticks(self) -> (u64, u64) {
        (ptx::global_timer(), ptx::cycles())
    }

    #[inline(always)]
    fn ticks_of_handler(self) -> u64 {
        ptx::cycles_about()
    }

    #[inline(always)]
    fn pause(self, _: u32, active: bool) {
        if !active {
            ptx::sleep(1000);
        }
    }

    #[inline(always)]
    fn rest(self, long: bool) {
        // Each question takes some hundred cycles of the processor, which those that have something to do share.
        ptx::sleep(if long { 4000 } else { 250 });
    }

    /// Never while it takes messages.
    #[inline(always)]
    fn may_sleep(self, _: u32) -> bool {
        false
    }

    #[inline(always)]
    fn limit_registers<K: HasThreads>(self) {
        ptx::limit_registers::<K>();
    }

    #[inline(always)]
    fn optimization_barrier(self) -> Self {
        Threads { thread: ptx::opaque32(self.thread) }
    }

    #[inline(always)]
    fn of_first_warp(self, lane: u32) -> Self {
        Threads { thread: ptx::opaque32(lane) }
    }

    #[inline(always)]
    fn opaque32(n: u32) -> u32 {
        ptx::opaque32(n)
    }

    #[inline(always)]
    fn opaque<T>(at: *const T) -> *const T {
        ptx::opaque64(at)
    }

    /// A release would wait for the bus. By the rules of PTX a relaxed store may be seen before an earlier
    /// load is made. This relies on a GPU making its accesses in order so far: the values that were loaded
    /// have been used (they went into answers, or into the block's memory before a barrier), so the loads are
    /// over when the store is issued, and what the host writes after it has seen the store cannot be what
    /// they read.
    #[inline(always)]
    fn store_after_reads(self, at: &AtomicU64, value: u64) {
        at.store(value, Relaxed);
    }
}
