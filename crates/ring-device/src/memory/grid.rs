//! Where the blocks of a kernel of scope [`Grid`](crate::Grid) meet, in device memory, and what each of them keeps of that.
//!
//! Block 0 tells the others of a request, all meet at barriers of the handler, and block 0 waits until the handler has returned in
//! all. All blocks count messages and barriers, and so know what counters show when all have come: none is ever cleared.

use super::boot;
use crate::block::cell::Cell;
use crate::block::{Cooperate, MOST_WARPS, Threads};
use crate::kernel::{Kernel, Scope};
use crate::thread_block::ThreadBlock;
use core::marker::PhantomData;
use core::mem::offset_of;
use core::ptr::with_exposed_provenance;
use core::sync::atomic::Ordering::Relaxed;
use ring_shared::atomics::{Atom, AtomicU64, Gpu, MemoryScope};
use ring_shared::layout::ChannelBlock;
use ring_shared::ring::{payload_of, stamp_of, stamped};

/// Most blocks of a kernel of scope [`Grid`](crate::Grid).
pub const MAX_GRID_BLOCKS: u32 = 1024;

/// Most copies of a request that block 0 writes: blocks that all polled one line would wait for each other.
const MOST_COPIES: usize = 32;

/// Atoms of all copies, if one copy has no more.
const ATOMS_OF_COPIES: usize = 2048;

/// Stamps are below this number, and then from zero on again.
const STAMPS: u32 = 1 << 30;

/// A stamp with this bit says that the launch ends.
const END: u32 = 1 << 31;

/// The stamp that says that the kernel is lost.
const LOST: u32 = u32::MAX;

/// Looks at a counter for each look at what else may have happened.
const LOOKS: u32 = 64;

/// Why blocks did not meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub(crate) enum Trouble {
    /// A handler has returned where another one waits at a barrier.
    Missed = 1,
    /// A handler has panicked.
    Panicked = 2,
}

impl Trouble {
    /// The one of that number, if it is one.
    #[inline(always)]
    fn from_word(word: u64) -> Option<Trouble> {
        match word {
            0 => None,
            1 => Some(Trouble::Missed),
            _ => Some(Trouble::Panicked),
        }
    }
}

/// A counter on a line of its own.
#[repr(C, align(128))]
struct Counter(AtomicU64);

/// A word of each block.
type Each<T> = [T; MAX_GRID_BLOCKS as usize];

/// The beginning of the memory; the copies of a request lie behind it. Counters are of all launches.
#[repr(C, align(128))]
struct Places {
    /// Blocks that have come to barriers: at the `n`th, `n` times their number.
    arrived: Counter,
    /// Handlers that have returned, in the lower half: for each message those of all blocks but the first. In the upper half those of them that
    /// have asked for memory which the host reads behind the answer, and what the lower half carries.
    returned: Counter,
    /// Number of a [`Trouble`], if there is one.
    lost: Counter,
    /// What each block brings to even and to odd barriers: none is replaced before all have seen it.
    brought: [Each<AtomicU64>; 2],
    /// Where each block has left the launch before: the last stamp and barriers, and messages.
    left: Each<[Atom; 2]>,
}

/// How far a block has come: in all blocks the same, where they meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Progress {
    /// The last stamp: that of a message, or of the end of a launch.
    pub stamp: u32,
    /// Barriers.
    pub barriers: u64,
    /// Messages.
    pub messages: u64,
}

impl Progress {
    /// At the next message.
    #[inline(always)]
    pub fn next(self) -> Progress {
        Progress { messages: self.messages + 1, ..self.end() }
    }

    /// At the end of the launch.
    #[inline(always)]
    pub fn end(self) -> Progress {
        Progress { stamp: self.stamp.wrapping_add(1) % STAMPS, ..self }
    }
}

/// Atoms of a copy of a request, each with twelve bytes of it and a stamp.
const fn pieces<Q>() -> usize {
    let n = size_of::<Q>().div_ceil(12);
    if n == 0 { 1 } else { n }
}

/// Atoms from one copy to the next: whole lines.
const fn stride<Q>() -> usize {
    pieces::<Q>().next_multiple_of(8)
}

/// How many copies there are.
const fn copies<Q>() -> usize {
    let fit = ATOMS_OF_COPIES / stride::<Q>();
    match fit {
        0 => 1,
        1..MOST_COPIES => fit,
        _ => MOST_COPIES,
    }
}

/// Bytes of that memory for requests `Q`.
pub(crate) const fn grid_bytes<Q>() -> usize {
    size_of::<Places>() + 16 * copies::<Q>() * stride::<Q>()
}

/// What a block keeps of the grid that it is one of. Set by thread 0.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct GridCells {
    /// Address of the memory where blocks meet; 0 in a kernel of another scope.
    pub(super) at: Cell<u64>,
    /// Bytes of a copy of a request, and how many there are.
    copies: [Cell<u64>; 2],
    /// How far the block has come, while no handler runs: stamp, barriers, messages.
    progress: [Cell<u64>; 3],
    /// Of block 0: the handlers that have returned, as it has seen them last.
    returned: Cell<u64>,
    /// Number of a [`Trouble`], if there is one.
    trouble: Cell<u64>,
    /// There is a request; else the launch ends.
    pub has_request: Cell<bool>,
    /// What warps bring to a sum of the block, and to one of the grid.
    pub sums: [[Cell<u64>; MOST_WARPS]; 2],
}

impl GridCells {
    /// Thread 0, before anything else: the block is of no grid, as far as is known.
    #[inline(always)]
    pub fn reset(&self) {
        self.at.set(0);
        self.trouble.set(0);
    }

    /// The memory where blocks meet, if the block is one of a grid.
    #[inline(always)]
    fn places(&self) -> Option<&Places> {
        let at = self.at.get() as usize;
        // SAFETY: `GridMemory::enter` stored the address of memory that `GridMemory::of` has checked; it holds atomics only.
        (at != 0).then(|| unsafe { &*with_exposed_provenance(at) })
    }

    /// The first warp of a block, which has found why the blocks do not meet.
    #[inline(always)]
    pub fn note_trouble(&self, threads: Threads, why: Trouble) {
        if threads.is_lane_0() {
            self.trouble.set(why as u64);
        }
    }

    /// Whether the block is one of a grid, and not its first.
    #[inline(always)]
    pub fn is_follower(&self, threads: Threads) -> bool {
        self.at.get() != 0 && threads.block_index() > 0
    }

    /// Why the blocks did not meet, if so.
    #[inline(always)]
    pub fn trouble(&self) -> Option<Trouble> {
        Trouble::from_word(self.trouble.get())
    }

    /// How far the block has come, while no handler runs.
    #[inline(always)]
    pub fn progress(&self) -> Progress {
        let [stamp, barriers, messages] = &self.progress;
        Progress { stamp: stamp.get() as u32, barriers: barriers.get(), messages: messages.get() }
    }

    /// Thread 0: the block has come so far.
    #[inline(always)]
    pub fn set_progress(&self, Progress { stamp, barriers, messages }: Progress) {
        self.progress[0].set(stamp.into());
        self.progress[1].set(barriers);
        self.progress[2].set(messages);
    }

    /// Any thread: the block takes part no more, for the trouble that was found, or for a panic. The others find that where they
    /// would wait for it.
    #[inline(always)]
    pub fn fall_out(&self, threads: Threads) {
        let Some(places) = self.places() else { return };
        let why = self.trouble().unwrap_or(Trouble::Panicked);
        places.lost.0.store(why as u64, Relaxed);
        if threads.block_index() == 0 {
            self.tell_stamp(LOST);
        }
    }

    /// A thread of block 0: tells the others in the first atom of each copy.
    #[inline(always)]
    fn tell_stamp(&self, stamp: u32) {
        let behind = self.at.get() as usize + size_of::<Places>();
        let mut copy = 0;
        while copy < self.copies[1].get() as usize {
            let at = behind + copy * self.copies[0].get() as usize;
            // SAFETY: the first atom of one of the copies in the memory that `GridMemory::of` has checked.
            Gpu::store_whole(unsafe { &*with_exposed_provenance(at) }, stamped([0; 3], stamp));
            copy += 1;
        }
    }
}

/// The memory where the blocks of a grid meet.
#[derive(Clone, Copy)]
pub(crate) struct GridMemory<'a> {
    at: *const Places,
    of: PhantomData<&'a Places>,
}

impl<'a> GridMemory<'a> {
    /// That of the block's kernel, if the boot names enough of it. All blocks find the same.
    #[inline(always)]
    pub fn of<K: Kernel>(block: ThreadBlock<'a>) -> Option<GridMemory<'a>> {
        let boot = &block.memory().boot;
        let at = boot.word(boot::RINGS, offset_of!(ChannelBlock, state));
        let bytes = boot.word(boot::RINGS, offset_of!(ChannelBlock, state_bytes));
        let fits = at != 0
            && at.is_multiple_of(align_of::<Places>() as u64)
            && bytes >= <K::Scope as Scope<K>>::STATE_BYTES as u64
            && block.blocks() <= MAX_GRID_BLOCKS;
        fits.then(|| GridMemory { at: with_exposed_provenance(at as usize), of: PhantomData })
    }

    #[inline(always)]
    fn places(self) -> &'a Places {
        // SAFETY: `of` found room for it there, aligned, which is this kernel's own for as long as it runs; atomics only.
        unsafe { &*self.at }
    }

    /// Atom `k` of a copy.
    #[inline(always)]
    fn atom<Q>(self, copy: usize, k: usize) -> &'a Atom {
        let first = self.at.wrapping_add(1).cast::<Atom>();
        let k = if k < pieces::<Q>() { k } else { pieces::<Q>() - 1 };
        let copy = if copy < copies::<Q>() { copy } else { 0 };
        // SAFETY: an atom of one of the copies, for which `of` found room behind the places.
        unsafe { &*first.wrapping_add(copy * stride::<Q>() + k) }
    }

    /// Thread 0 of a block, when it begins a launch: goes on from where it left the one before.
    #[inline(always)]
    pub fn enter<Q>(self, threads: Threads, cells: &GridCells) {
        cells.at.set(self.at.expose_provenance() as u64);
        cells.copies[0].set(16 * stride::<Q>() as u64);
        cells.copies[1].set(copies::<Q>() as u64);
        cells.returned.set(Gpu::look(&self.places().returned.0));
        let left = self.places().left.get(threads.block_index() as usize);
        let [[stamp, barriers], [messages, _]] = left
            .map_or([[0; 2]; 2], |[counts, more]| [Gpu::load_whole(counts), Gpu::load_whole(more)]);
        cells.set_progress(Progress { stamp: stamp as u32, barriers, messages });
    }

    /// Thread 0 of a block, when it leaves the launch.
    #[inline(always)]
    pub fn leave(self, threads: Threads, at: Progress) {
        if let Some([counts, more]) = self.places().left.get(threads.block_index() as usize) {
            // Read by the same block in the next launch.
            Gpu::store_whole(counts, [at.stamp.into(), at.barriers]);
            Gpu::store_whole(more, [at.messages, 0]);
        }
    }

    /// Thread 0 of block 0: tells the others that the launch ends.
    #[inline(always)]
    pub fn tell_end(self, cells: &GridCells, at: Progress) {
        cells.tell_stamp(at.stamp | END);
    }

    /// All threads of block 0: tell the others of a request.
    ///
    /// By the rules of PTX a fence would have to stand before it, for what the host has written before it sent the request, and other
    /// blocks before they answered the one before, to be seen by all that acquire it in `receive`. It would take about 0.4 us. This
    /// relies on a GPU whose threads all see in L2, or in the host's memory, what one of them has seen there: all that was written
    /// before has come there when this block's thread has seen the request, or the counter of blocks. What this block has written
    /// itself, it has fenced before its answer.
    ///
    /// # Safety
    /// `request` is readable, whole words of it up to the end of its slot; nobody writes it now.
    #[inline(always)]
    pub unsafe fn tell<Q>(self, threads: Threads, stamp: u32, request: *const Q) {
        let words = size_of::<Q>().next_multiple_of(16) / 4;
        let others = threads.blocks().saturating_sub(1) as usize;
        let copies = if others < copies::<Q>() { others } else { copies::<Q>() };
        let mut t = threads.thread() as usize;
        while t < copies * pieces::<Q>() {
            let (copy, k) = (t / pieces::<Q>(), t % pieces::<Q>());
            let word = |w: usize| match 3 * k + w < words {
                // SAFETY: a word of the request's slot.
                true => unsafe { request.cast::<u32>().add(3 * k + w).read() },
                false => 0,
            };
            let payload = [word(0), word(1), word(2)];
            Gpu::store_whole(self.atom::<Q>(copy, k), stamped(payload, stamp));
            t += threads.threads() as usize;
        }
    }

    /// The first warp of another block: waits for what block 0 tells with that stamp, and acquires, if asked, what block 0 has released
    /// before it. A request is brought to `to`; false if the launch ends.
    ///
    /// # Safety
    /// `to` has aligned room for the request and twelve bytes more, which only this warp uses now.
    #[inline(always)]
    pub unsafe fn receive<Q>(
        self,
        threads: Threads,
        stamp: u32,
        acquires: bool,
        to: *mut u32,
    ) -> bool {
        let copy = threads.block_index().saturating_sub(1) as usize % copies::<Q>();
        let mut first = 0;
        while first < pieces::<Q>() {
            let k = first + threads.lane() as usize;
            let atom = self.atom::<Q>(copy, k);
            let mut looks = 0u32;
            let words = loop {
                let words = match acquires {
                    // SYNC: acquires what the threads of block 0 have released before `tell`.
                    true => Gpu::observe(atom),
                    false => Gpu::load_whole(atom),
                };
                let found = stamp_of(words);
                if threads.all(found == stamp) {
                    break words;
                }
                if threads.agreed(found == stamp | END || found == LOST) {
                    return false;
                }
                looks = looks.saturating_add(1);
                threads.pause(looks, true);
            };
            if k < pieces::<Q>() {
                let [a, b, c] = payload_of(words);
                // SAFETY: the caller's room.
                unsafe {
                    to.add(3 * k).write(a);
                    to.add(3 * k + 1).write(b);
                    to.add(3 * k + 2).write(c);
                }
            }
            first += Threads::WARP as usize;
        }
        true
    }

    /// One thread of a block, before it arrives at a barrier and releases: what the block brings there.
    #[inline(always)]
    pub fn bring(self, threads: Threads, at: Progress, value: u64) {
        let values = &self.places().brought[at.barriers as usize % 2];
        if let Some(own) = values.get(threads.block_index() as usize) {
            own.store(value, Relaxed);
        }
    }

    /// All threads of a block that has met the others at the last barrier, and acquired, behind a barrier of the block: what some
    /// blocks have brought there, always the same ones for a thread.
    #[inline(always)]
    pub fn brought(self, threads: Threads, at: Progress) -> impl Iterator<Item = u64> + use<'a> {
        let values = &self.places().brought[at.barriers as usize % 2];
        let of = (threads.thread()..threads.blocks()).step_by(threads.threads() as usize);
        of.map_while(|of| values.get(of as usize)).map(|value| value.load(Relaxed))
    }

    /// The first warp of a block, when all its threads have come to a barrier, the last one of `at`: waits until all blocks have. What
    /// a block that `releases` has seen before is seen behind it by all that acquire.
    #[inline(always)]
    pub fn meet(
        self,
        threads: Threads,
        at: Progress,
        releases: bool,
        acquires: bool,
    ) -> Result<(), Trouble> {
        let (places, blocks) = (self.places(), u64::from(threads.blocks()));
        if blocks == 1 {
            return Ok(());
        }
        if threads.is_lane_0() {
            // SYNC: releases to the acquire in `wait` of every block.
            Gpu::add(&places.arrived.0, 1, releases);
        }
        let all = at.barriers * blocks;
        // Handlers that have returned for this message are not to be there while others wait.
        let before = ((at.messages - 1) * (blocks - 1)) as u32;
        let is_missed = || Gpu::look(&places.returned.0) as u32 != before;
        self.wait(threads, &places.arrived.0, acquires, |came| came >= all, is_missed).map(drop)
    }

    /// One thread of a block but the first, when its handler has returned in all threads. If it has used memory that other blocks or the
    /// host see, this is released to who acquires it in `await_all`.
    #[inline(always)]
    pub fn handler_returned(self, has_used: bool) {
        // SYNC: releases to the acquire in `wait` of block 0.
        Gpu::add(&self.places().returned.0, 1 | u64::from(has_used) << 32, has_used);
    }

    /// The first warp of block 0, when its handler has returned: waits until all others have, and acquires, if asked, what they have
    /// released; whether one of them has used memory that other blocks or the host see.
    #[inline(always)]
    pub fn await_all(
        self,
        threads: Threads,
        cells: &GridCells,
        at: Progress,
        acquires: bool,
    ) -> Result<bool, Trouble> {
        let (places, blocks) = (self.places(), u64::from(threads.blocks()));
        if blocks == 1 {
            return Ok(false);
        }
        let all = (at.messages * (blocks - 1)) as u32;
        // Nobody is to wait at a barrier which this block has not come to.
        let is_missed = || Gpu::look(&places.arrived.0) > at.barriers * blocks;
        let is_all = |came| came as u32 == all;
        let came = self.wait(threads, &places.returned.0, acquires, is_all, is_missed)?;
        let before = threads.broadcast(cells.returned.get());
        if threads.is_lane_0() {
            cells.returned.set(came);
        }
        Ok(came.wrapping_sub(before) >> 32 != 0)
    }

    /// A warp: its first thread waits until a counter shows that all blocks have come, and then for what it shows; or finds why they do
    /// not.
    #[inline(always)]
    fn wait(
        self,
        threads: Threads,
        counter: &AtomicU64,
        acquires: bool,
        is_all: impl Fn(u64) -> bool,
        is_missed: impl Fn() -> bool,
    ) -> Result<u64, Trouble> {
        let (mut looks, mut is_late, mut trouble, mut came) = (0u32, false, 0, 0);
        while threads.is_lane_0() {
            came = match acquires {
                // SYNC: acquires what all blocks have released with what they added.
                true => Gpu::load_acquire(counter),
                false => Gpu::look(counter),
            };
            if is_all(came) {
                break;
            }
            if is_late {
                trouble = Trouble::Missed as u64; // it was so before this look, which does not show all
                break;
            }
            looks = looks.saturating_add(1);
            if looks.is_multiple_of(LOOKS) {
                trouble = Gpu::look(&self.places().lost.0);
                if trouble != 0 {
                    break;
                }
                is_late = is_missed();
                Gpu::release(); // a fence, on a GPU: the next look comes behind this one
            }
            threads.pause(looks, true);
        }
        threads.warp_sync();
        match Trouble::from_word(threads.broadcast(trouble)) {
            None => Ok(threads.broadcast(came)),
            Some(trouble) => Err(trouble),
        }
    }
}
