//! What a handler sees that all blocks of a grid run.

use crate::block::{self, Cooperate, Threads};
use crate::buffers::{self, View};
use crate::context::Payload;
use crate::dispatch::fell_out;
use crate::memory::grid::{GridMemory, Progress, Trouble};
use crate::thread_block::ThreadBlock;
use core::cell::Cell;
use core::fmt;
use core::ops::Range;
use ring_shared::{BufferRef, Element};

/// Seen by a [`GridHandler`](crate::GridHandler): the calling thread's place in the grid, and where the grid meets.
pub struct GridContext<'a> {
    block: ThreadBlock<'a>,
    payload: Payload<'a>,
    grid: GridMemory<'a>,
    /// How far the handler has come; in all threads of the grid the same.
    progress: Cell<Progress>,
    /// Whether blocks read what others write: the kernel declares that it uses a payload.
    shares_memory: bool,
}

impl fmt::Debug for GridContext<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GridContext").field("block", &self.block).finish_non_exhaustive()
    }
}

impl<'a> GridContext<'a> {
    #[inline(always)]
    pub(crate) fn new(
        block: ThreadBlock<'a>,
        payload: Payload<'a>,
        (grid, shares_memory): (GridMemory<'a>, bool),
        progress: Progress,
    ) -> Self {
        GridContext { block, payload, grid, progress: Cell::new(progress), shares_memory }
    }

    /// How far the handler has come.
    #[inline(always)]
    pub(crate) fn progress(&self) -> Progress {
        self.progress.get()
    }

    /// Index of the calling thread's block in the grid, from 0.
    #[inline(always)]
    pub fn block(&self) -> usize {
        self.block.block_index() as usize
    }

    /// Blocks in the grid.
    #[inline(always)]
    pub fn blocks(&self) -> usize {
        self.block.blocks() as usize
    }

    /// Index of the calling thread in its block, from 0.
    #[inline(always)]
    pub fn thread(&self) -> usize {
        self.block.thread() as usize
    }

    /// Threads in each block; 1 on the CPU device.
    #[inline(always)]
    pub fn threads(&self) -> usize {
        self.block.threads() as usize
    }

    /// Index of the calling thread in the grid, from 0: threads of a block are side by side.
    #[inline(always)]
    pub fn index(&self) -> usize {
        self.block() * self.threads() + self.thread()
    }

    /// Threads in the grid.
    #[inline(always)]
    pub fn size(&self) -> usize {
        self.blocks() * self.threads()
    }

    /// The calling thread's indices of `0..n`: its own in the grid, and then in steps of the grid's size. Threads side by side so
    /// have indices side by side, which is best for memory that each index names.
    #[inline(always)]
    pub fn each(&self, n: usize) -> impl Iterator<Item = usize> + use<> {
        (self.index()..n).step_by(self.size())
    }

    /// The indices of `0..n` of the calling thread's block: a run of them, as long as that of any other block, or by one longer.
    #[inline(always)]
    pub fn share(&self, n: usize) -> Range<usize> {
        let (blocks, block) = (self.blocks(), self.block());
        let (each, more) = (n / blocks, n % blocks);
        let first = block * each + block.min(more);
        first..first + each + usize::from(block < more)
    }

    /// Counts this message as refused in the channel's telemetry. Call it once a message: by one of the threads of block 0. In other
    /// blocks it does nothing.
    #[inline(always)]
    pub fn refuse(&self) {
        if self.block() == 0 {
            self.block.add(&self.block.memory().telemetry.refused, 1);
        }
    }

    /// The payload arena.
    #[inline(always)]
    pub fn payload(&self) -> Payload<'a> {
        self.payload
    }

    /// The elements of a buffer that a reference names, as all threads of the grid share them. `None` if the buffer was given back, is
    /// not of this kernel's runtime or shorter than the reference says, if its memory is not aligned for `T`, or if the kernel is not
    /// declared with `uses_payload: true` ([`Kernel::USES_PAYLOAD`](crate::Kernel::USES_PAYLOAD)). Of a buffer that was given back before
    /// the message was sent some threads may still find the elements, and others none: a handler that goes on to a barrier lets all
    /// agree first, by [`max`](Self::max) of whether a view is missing.
    #[inline(always)]
    pub fn view<T: Element>(&self, reference: &BufferRef<T>) -> Option<View<'a, T>> {
        buffers::view(self.block, self.shares_memory, reference)
    }

    /// Waits until all threads of the block are here; what they wrote before is seen after by the block.
    #[inline(always)]
    pub fn sync_block(&self) {
        self.block.sync();
    }

    /// Waits until all threads of all blocks are here; what they wrote before is seen after by all, if the kernel declares
    /// [`uses_payload`](crate::Kernel::USES_PAYLOAD): without that there is no memory that blocks share.
    #[inline(always)]
    pub fn sync(&self) {
        self.block.sync();
        self.meet(None);
        self.block.sync();
    }

    /// The sum of what each thread of the grid brings, for all of them; integers wrap. Of floating-point numbers the order in which
    /// they are added is fixed by the numbers of blocks and of threads, so a launch of the same size gives the same. A
    /// barrier, as [`sync`](Self::sync) is.
    #[inline(always)]
    pub fn sum<T: Number>(&self, value: T) -> T {
        self.reduce(value, T::ZERO, T::plus)
    }

    /// The greatest of what the threads of the grid bring, for all of them; a NaN counts only where all bring it. A
    /// barrier, as [`sync`](Self::sync) is.
    #[inline(always)]
    pub fn max<T: Number>(&self, value: T) -> T {
        self.reduce(value, T::LEAST, T::greater)
    }

    /// What the threads of the grid bring, taken together two by two; `nothing` changes nothing.
    #[inline(always)]
    fn reduce<T: Number>(&self, value: T, nothing: T, both: impl Fn(T, T) -> T) -> T {
        let cells = &self.block.memory().grid;
        let [of_block, of_grid] = &cells.sums;
        let of_warp = self.reduce_warp(value, &both);
        let keep = |sums: &[block::cell::Cell<u64>], value: T| {
            if self.block.is_lane_0()
                && let Some(sum) = sums.get(self.block.warp() as usize)
            {
                sum.set(value.to_word());
            }
        };
        let of_all = |sums: &[block::cell::Cell<u64>]| {
            let warps = self.block.warps();
            let mut own = nothing;
            // There are no more warps than a warp has threads, on a GPU; on a CPU there is one.
            if self.block.lane() < warps
                && let Some(sum) = sums.get(self.block.lane() as usize)
            {
                own = T::from_word(sum.get());
            }
            self.reduce_warp(own, &both)
        };
        keep(of_block, of_warp);
        self.block.sync();
        let value = self.block.is_first_warp().then(|| of_all(of_block).to_word());
        self.meet(value);
        self.block.sync();
        let brought = self.grid.brought(*self.block, self.progress.get());
        let own = brought.map(T::from_word).fold(nothing, &both);
        keep(of_grid, self.reduce_warp(own, &both));
        self.block.sync();
        of_all(of_grid)
    }

    /// The same of the threads of a warp.
    #[inline(always)]
    fn reduce_warp<T: Number>(&self, mut value: T, both: &impl Fn(T, T) -> T) -> T {
        let mut step = Threads::WARP / 2;
        while step > 0 {
            let other = self.block.shuffle(value.to_word(), self.block.lane() ^ step);
            value = both(value, T::from_word(other));
            step /= 2;
        }
        value
    }

    /// All threads, behind a barrier of the block: the next barrier of the grid, where each block brings the value that thread 0 has,
    /// if there is any. A barrier of the block must follow.
    #[inline(always)]
    fn meet(&self, value: Option<u64>) {
        let before = self.progress.get();
        let at = Progress { barriers: before.barriers + 1, ..before };
        self.progress.set(at);
        if !self.block.is_first_warp() {
            return;
        }
        let (mut releases, acquires) = (value.is_some(), value.is_some() || self.shares_memory);
        if let Some(value) = value
            && self.block.is_lane_0()
        {
            self.grid.bring(*self.block, at, value);
        }
        if self.shares_memory {
            // No handler writes other memory than what it has asked for.
            releases |= self.block.memory().signals.uses_payload.get();
        }
        if let Err(why) = self.grid.meet(*self.block, at, releases, acquires) {
            give_up(self.block, why);
        }
    }
}

/// The first warp of a block whose grid has not met: all threads of the block end at the next barrier. Block 0 tells the host.
#[cold]
pub(crate) fn give_up(block: ThreadBlock<'_>, why: Trouble) {
    let memory = block.memory();
    memory.grid.note_trouble(*block, why);
    if Threads::WARP > 1 {
        if block.is_lane_0() {
            memory.life.panicked.set(true);
            // SAFETY: the thread is one of a block that runs a handler.
            unsafe { fell_out(block) };
        }
        block.warp_sync();
    } else {
        block.unwind();
    }
}

/// What the threads of a grid can add up and compare.
pub trait Number: sealed::Sealed + Copy {
    /// Zero.
    #[doc(hidden)]
    const ZERO: Self;
    /// No number is less.
    #[doc(hidden)]
    const LEAST: Self;
    /// The sum, wrapping.
    #[doc(hidden)]
    fn plus(self, other: Self) -> Self;
    /// The greater one.
    #[doc(hidden)]
    fn greater(self, other: Self) -> Self;
    /// As a word.
    #[doc(hidden)]
    fn to_word(self) -> u64;
    /// Of the word that `to_word` made.
    #[doc(hidden)]
    fn from_word(word: u64) -> Self;
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! integers {
    ($($t:ty)*) => {$(
        impl sealed::Sealed for $t {}
        impl Number for $t {
            const ZERO: $t = 0;
            const LEAST: $t = <$t>::MIN;
            #[inline(always)]
            fn plus(self, other: $t) -> $t {
                self.wrapping_add(other)
            }
            #[inline(always)]
            fn greater(self, other: $t) -> $t {
                if self > other { self } else { other }
            }
            #[inline(always)]
            fn to_word(self) -> u64 {
                self as u64
            }
            #[inline(always)]
            fn from_word(word: u64) -> $t {
                word as $t
            }
        }
    )*};
}
integers!(u32 i32 u64 i64);

macro_rules! floats {
    ($($t:ty)*) => {$(
        impl sealed::Sealed for $t {}
        impl Number for $t {
            const ZERO: $t = 0.0;
            const LEAST: $t = <$t>::NEG_INFINITY;
            #[inline(always)]
            fn plus(self, other: $t) -> $t {
                self + other
            }
            #[inline(always)]
            fn greater(self, other: $t) -> $t {
                self.max(other)
            }
            #[inline(always)]
            fn to_word(self) -> u64 {
                self.to_bits().into()
            }
            #[inline(always)]
            fn from_word(word: u64) -> $t {
                <$t>::from_bits(word as _)
            }
        }
    )*};
}
floats!(f32 f64);
