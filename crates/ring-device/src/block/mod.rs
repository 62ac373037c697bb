//! What the threads of a block, and of its warps, can do together: a thread block on the GPU, a single
//! thread on the CPU. Nothing here knows of messages.

pub(crate) mod cell;
#[cfg(not(target_arch = "nvptx64"))]
mod cpu;
#[cfg(target_arch = "nvptx64")]
mod gpu;
#[cfg(any(target_arch = "nvptx64", feature = "rust-cuda"))]
pub(crate) mod intrinsics;

#[cfg(not(target_arch = "nvptx64"))]
pub use cpu::{Hooks, Threads};
#[cfg(target_arch = "nvptx64")]
pub use gpu::Threads;

use cell::Cell;
use ring_shared::atomics::{AtomicU32, AtomicU64};
use ring_shared::{Element, Element32};

/// Most warps of a block.
pub(crate) const MOST_WARPS: usize = 32;

/// Half `lo`, half `hi` of 16 bytes that crossed the bus as one.
pub(crate) type Words = [u64; 2];

/// The same at a multiple of 16 in the block's memory, where one access reads or writes it.
#[repr(C, align(16))]
#[derive(Clone, Copy)]
pub(crate) struct Piece(pub Words);

/// A kernel, as far as its blocks' size goes.
pub(crate) trait HasThreads {
    /// Threads of a block where a launch does not say otherwise.
    const THREADS: u32;
}

/// A thread of a block, and what it does with the others. Where a method says that all threads of the warp
/// or of the block call it, they do so at one place of the kernel.
pub(crate) trait Cooperate: Copy {
    /// Threads of a warp.
    const WARP: u32;
    /// Doorbell lines that a warp reads or writes at once, an atom a thread.
    const LINES: usize = if Self::WARP > 1 { Self::WARP as usize / 8 } else { 1 };

    /// `N` atoms, at most 32, spread over the threads of a warp: thread `k` has atom `k`.
    type Spread<const N: usize>: Copy;

    /// Index of the block in its grid.
    fn block_index(self) -> u32;
    /// Blocks of the grid.
    fn blocks(self) -> u32;
    /// Index of the calling thread in the block.
    fn thread(self) -> u32;
    /// Threads of the block.
    fn threads(self) -> u32;

    /// All threads of the block: waits for all of them; what they wrote before is seen after.
    fn barrier(self);
    /// All threads of a warp: waits for all of them; what they wrote before is seen after.
    fn warp_sync(self);
    /// Orders this thread's accesses, and those it has seen of its block, for the host.
    fn fence(self);
    /// The same, for the threads of this GPU.
    fn fence_device(self);
    /// Orders this thread's accesses for the other threads of its block.
    fn fence_block(self);

    /// All threads of a warp: what thread `from` brings.
    fn shuffle(self, value: u64, from: u32) -> u64;
    /// The same of 32 bits.
    fn shuffle32(self, value: u32, from: u32) -> u32;
    /// All threads of a warp: the condition as thread 0 of the warp knows it.
    fn agreed(self, holds: bool) -> bool;
    /// All threads of a warp: whether the condition holds for each.
    fn all(self, holds: bool) -> bool;
    /// All threads of a warp: a bit for each for which the condition holds.
    fn ballot(self, holds: bool) -> u32;
    /// The threads of a warp that still run: whether none has exited.
    fn all_run(self) -> bool;
    /// Ends the calling thread. Barriers count it no more.
    fn exit(self);
    /// Unwinds the calling thread, if it is a CPU's.
    fn unwind(self);

    /// All threads of a warp: spreads what `of` gives for each `k`. A GPU calls it for the `k` of each
    /// thread, up to 31.
    fn spread<const N: usize>(self, of: impl Fn(usize) -> Words) -> Self::Spread<N>;
    /// What `of` gives for an atom, worked out here and now where a thread has only one. A GPU calls it for the
    /// `k` of each thread, up to 31.
    fn early<T: Copy>(self, of: impl Fn(usize) -> T + Copy) -> impl Fn(usize) -> T + Copy;
    /// Atom `k`, which is one of the calling thread's.
    fn own<const N: usize>(self, spread: Self::Spread<N>, k: usize) -> Words;
    /// Each thread of a warp: calls `each` with its atoms.
    fn each<const N: usize>(self, spread: Self::Spread<N>, each: impl FnMut(usize, Words));
    /// All threads of a warp: whether it holds for all atoms. A GPU asks for each of its threads.
    fn holds<const N: usize>(
        self,
        spread: Self::Spread<N>,
        holds: impl Fn(usize, Words) -> bool,
    ) -> bool;
    /// All threads of a warp: of which doorbell lines, a bit each, it holds for all eight atoms: atom `k` is atom
    /// `k % 8` of line `k / 8`, and there are [`LINES`](Self::LINES).
    fn lines<const N: usize>(
        self,
        spread: Self::Spread<N>,
        holds: impl Fn(usize, Words) -> bool,
    ) -> u32;
    /// All threads of a warp: half `half` of atom `k`.
    fn half<const N: usize>(self, spread: Self::Spread<N>, k: usize, half: usize) -> u64;

    /// A word of the block's memory, behind which is seen what another thread had told, with a fence of the block,
    /// before it set the word.
    fn acquire(self, at: &AtomicU64) -> u64;
    /// Compares and swaps a word of the block's memory; whether it was `old`.
    fn compare_and_swap(self, at: &AtomicU64, old: u64, new: u64) -> bool;
    /// Adds to a counter in the block's memory to which other threads add as well.
    fn add(self, at: &Cell<u64>, n: u64);
    /// The same for a counter of 32 bits.
    fn add32(self, at: &AtomicU32, n: u32);
    /// Takes what such a counter holds, and leaves zero.
    fn take32(self, at: &AtomicU32) -> u32;

    /// How the functions below name what lies there in the memory that handlers of the block share: on a GPU an address of a window of its
    /// own, as far from others as the one that it is of.
    fn in_shared_window<T>(at: *mut T) -> *mut T;
    /// Reads an element of the memory that handlers of the block share.
    ///
    /// # Safety
    /// `at` is an aligned element there, [in its window](Self::in_shared_window).
    unsafe fn load_shared<T: Element>(at: *const T) -> T;
    /// Writes one.
    ///
    /// # Safety
    /// As for [`load_shared`](Self::load_shared).
    unsafe fn store_shared<T: Element>(at: *mut T, value: T);
    /// Reads four.
    ///
    /// # Safety
    /// `at` is four elements there, at a multiple of 16 bytes on a GPU.
    unsafe fn load_four_shared<T: Element32>(at: *const T) -> [T; 4];
    /// Writes four.
    ///
    /// # Safety
    /// As for [`load_four_shared`](Self::load_four_shared).
    unsafe fn store_four_shared<T: Element32>(at: *mut T, values: [T; 4]);

    /// Which threads of the calling thread's warp come here together with it, a bit each; they may be fewer than could.
    fn converged(self) -> u32;
    /// Those `threads` of a warp, all of them: the `value` of thread `from`, which is one of them.
    fn pass_on(self, threads: u32, value: u64, from: u32) -> u64;

    /// Nanoseconds of a clock that all channels share.
    fn now(self) -> u64;
    /// The clock of what [`Times`](ring_shared::layout::Times) holds.
    fn ticks(self) -> u64;
    /// Both clocks at one moment, as far as they can be read so.
    fn now_and_ticks(self) -> (u64, u64);
    /// The same clock, where the compiler may move what is written to memory before the reading behind it, and the other way round:
    /// what a handler has written may stay in registers.
    fn ticks_of_handler(self) -> u64;
    /// Pauses between two looks, after `looks` idle ones in a row. A GPU's thread sleeps only if the channel is
    /// not `active`.
    fn pause(self, looks: u32, active: bool);
    /// Pauses between two questions to the block's memory whether there is something to do; `long` where there is
    /// seldom something.
    fn rest(self, long: bool);
    /// Whether the pause after `looks` idle looks may be long.
    fn may_sleep(self, looks: u32) -> bool;
    /// Stores `value` after this thread's reads.
    fn store_after_reads(self, at: &AtomicU64, value: u64);

    /// Tells whoever builds the kernel that its threads are to have no more registers than there are for as many of them as a
    /// launch has by default. Nothing else comes of it.
    fn limit_registers<K: HasThreads>(self);
    /// The same thread, of whose index the compiler knows nothing: it would compute what it can from it before
    /// a loop begins, and keep it in registers, of which a block of many threads has few.
    fn optimization_barrier(self) -> Self;
    /// The same thread, which is `lane` of the first warp: to read it from its register takes longer.
    fn of_first_warp(self, lane: u32) -> Self;
    /// The same number, of which the compiler knows nothing.
    fn opaque32(n: u32) -> u32;
    /// The same address, of which the compiler knows nothing.
    fn opaque<T>(at: *const T) -> *const T;

    /// Index of the calling thread in its warp.
    #[inline(always)]
    fn lane(self) -> u32 {
        self.thread() % Self::WARP
    }

    /// Whether the calling thread is the first of its warp.
    #[inline(always)]
    fn is_lane_0(self) -> bool {
        self.lane() == 0
    }

    /// Index of the calling thread's warp.
    #[inline(always)]
    fn warp(self) -> u32 {
        self.thread() / Self::WARP
    }

    /// Whole warps of the block.
    #[inline(always)]
    fn warps(self) -> u32 {
        self.threads() / Self::WARP
    }

    /// All threads of a warp: the value as thread 0 of the warp has it.
    #[inline(always)]
    fn broadcast(self, value: u64) -> u64 {
        self.shuffle(value, 0)
    }

    /// The same of 32 bits.
    #[inline(always)]
    fn broadcast32(self, value: u32) -> u32 {
        self.shuffle32(value, 0)
    }

    /// All threads of a warp: the least value that one of them brings.
    #[inline(always)]
    fn warp_min32(self, mut value: u32) -> u32 {
        let mut step = Self::WARP / 2;
        while step > 0 {
            value = value.min(self.shuffle32(value, self.lane() ^ step));
            step /= 2;
        }
        value
    }

    /// All threads of a warp, some of which bring a value below `count`: each of these is told, by a bit for each thread, who brings
    /// the same. By a vote for each bit of the values: to match them (`match.any`) took an H100 some 25 cycles for each that differs.
    #[inline(always)]
    fn peers(self, value: Option<u32>, count: u32) -> u32 {
        let mut peers = self.ballot(value.is_some());
        let (mut bits, mut left) = (value.unwrap_or(0), count.saturating_sub(1));
        loop {
            let mut k = 0;
            while k < 4 {
                let ones = self.ballot(bits >> k & 1 != 0);
                peers &= if bits >> k & 1 != 0 { ones } else { !ones };
                k += 1;
            }
            (bits, left) = (bits >> 4, left >> 4);
            if left == 0 {
                return peers;
            }
        }
    }

    /// All threads of a warp: the sum of what they bring, wrapping.
    #[inline(always)]
    fn warp_sum(self, mut value: u64) -> u64 {
        let mut step = Self::WARP / 2;
        while step > 0 {
            value = value.wrapping_add(self.shuffle(value, self.lane() ^ step));
            step /= 2;
        }
        value
    }
}
