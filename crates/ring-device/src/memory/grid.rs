//! Where the blocks of a kernel of scope [`Grid`](crate::Grid) meet, in device memory, and what each of them keeps of that.
//!
//! Block 0 tells the others of a request, all meet at barriers of the handler, and block 0 waits until the handler has returned in
//! all. A barrier is a meeting, and so is the handlers' return. All blocks count meetings. Each writes the number of the meeting that it
//! has come to, and what it brings, where those that wait for it read it: there is no counter that all add to, and what a block brings
//! is there as soon as it is known that the block has come.

use super::boot;
use super::devices::DevicesCells;
use super::meeting::{MAX_GRID_BLOCKS, PLACES, Progress, Trouble, USED, wait_for_all};
use crate::block::cell::Cell;
use crate::block::{Cooperate, MOST_WARPS, Threads};
use crate::kernel::{Kernel, Scope};
use crate::thread_block::ThreadBlock;
use core::marker::PhantomData;
use core::mem::offset_of;
use core::ptr::with_exposed_provenance;
use core::sync::atomic::Ordering::Relaxed;
use ring_shared::atomics::{Atom, AtomicU64, Gpu, MemoryScope};
use ring_shared::layout::{ChannelBlock, DevicesLine};
use ring_shared::ring::{payload_of, stamp_of, stamped};

/// Most copies of a request that block 0 writes: blocks that all polled one line would wait for each other, and one warp writes all
/// copies before the last block finds its own. On an H200 a command takes 3.8 us by 8 of them, 3.9 by 16 and 4.1 by 32.
const MOST_COPIES: usize = 8;

/// Atoms of all copies, if one copy has no more.
const ATOMS_OF_COPIES: usize = 2048;

/// A stamp with this bit says that the launch ends.
const END: u32 = 1 << 31;

/// The stamp that says that the kernel is lost.
const LOST: u32 = u32::MAX;

/// What a block comes to a meeting for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub(crate) enum Meeting {
    /// A barrier of the handler.
    Barrier = 1,
    /// The handler has returned.
    Return = 2,
    /// The same; it has used memory that other blocks or the host see.
    ReturnUsed = 3,
}

impl Meeting {
    /// Whether a block that has come for that meets those that have come for this.
    #[inline(always)]
    pub fn meets(self, kind: u32) -> bool {
        (self as u32 == Meeting::Barrier as u32) == (kind == Meeting::Barrier as u32)
    }
}

/// What each block has.
type Each<T> = [T; MAX_GRID_BLOCKS as usize];

/// The beginning of the memory; the copies of a request lie behind it.
#[repr(C, align(128))]
struct Places {
    /// Where blocks meet those of other devices, as the host has written it before the first launch.
    devices: DevicesLine,
    /// Number of a [`Trouble`], if there is one.
    lost: Lost,
    /// What each block brings to even and to odd meetings, stamped with the meeting's number: a value, and the kind of the [`Meeting`].
    /// A block brings something to the next but one when all have come to the next, and so have seen this. In copies, each for some
    /// of the blocks that read it.
    brought: [[Each<Atom>; PLACES]; 2],
    /// Where each block has left the launch before: the last stamp, meetings, and in the upper half of that word meetings with blocks of
    /// other devices.
    left: Each<Atom>,
}

/// On a line of its own.
#[repr(C, align(128))]
struct Lost(AtomicU64);

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
    /// How far the block has come, while no handler runs: stamp, meetings.
    progress: [Cell<u64>; 2],
    /// Number of a [`Trouble`], if there is one.
    trouble: Cell<u64>,
    /// What the grid meets of other devices.
    pub devices: DevicesCells,
    /// There is a request; else the launch ends.
    pub has_request: Cell<bool>,
    /// Of block 0: the others have been told of the message that it handles next.
    pub has_told: Cell<bool>,
    /// Of block 0: the number of the last meeting to which those blocks have come that each of its warps waits for behind an answer.
    returned: [Cell<u64>; MOST_WARPS],
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

    /// The memory that the block has entered, which `GridMemory::of` has found to be enough; none if it is not one of a grid.
    #[inline(always)]
    pub fn memory(&self) -> Option<GridMemory<'_>> {
        let at = self.at.get() as usize;
        (at != 0).then(|| GridMemory { at: with_exposed_provenance(at), of: PhantomData })
    }

    /// One thread, which has found why the blocks do not meet; whether it is the first of its block to.
    #[inline(always)]
    pub fn note_trouble(&self, threads: Threads, why: Trouble) -> bool {
        threads.compare_and_swap(self.trouble.word(), 0, why as u64)
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
        let [stamp, meetings] = &self.progress;
        Progress { stamp: stamp.get() as u32, meetings: meetings.get() as u32 }
    }

    /// Thread 0: the block has come so far.
    #[inline(always)]
    pub fn set_progress(&self, Progress { stamp, meetings }: Progress) {
        self.progress[0].set(stamp.into());
        self.progress[1].set(meetings.into());
    }

    /// A warp of block 0 that waits for others behind an answer: those have come to the last meeting of `at`.
    #[inline(always)]
    pub fn note_return(&self, threads: Threads, at: Progress) {
        if threads.is_lane_0()
            && let Some(returned) = self.returned.get((threads.thread() / Threads::WARP) as usize)
        {
            // SYNC: behind the caller's fence, released to the fence in `have_returned`.
            returned.set(at.meetings.into());
        }
    }

    /// The first warp of block 0: whether all blocks have come to the last meeting that block 0 has.
    #[inline(always)]
    pub fn have_returned(&self, threads: Threads) -> bool {
        let last = self.progress[1].get();
        let warp = (threads.lane() + 1) as usize;
        let waits = warp < (threads.threads() / Threads::WARP) as usize;
        let returned = self.returned.get(warp).is_none_or(|returned| returned.get() == last);
        let all = threads.all(!waits || returned);
        threads.fence_block(); // SYNC: acquires what those warps have acquired before `note_return`
        all
    }

    /// Any thread: the block takes part no more, for the trouble that was found, or for a panic. The others find that where they
    /// would wait for it.
    #[inline(always)]
    pub fn fall_out(&self, threads: Threads) {
        let Some(grid) = self.memory() else { return };
        let why = self.trouble().unwrap_or(Trouble::Panicked);
        grid.places().lost.0.store(why as u64, Relaxed);
        if let Some(all) = self.devices.all() {
            all.fall_out(why);
        }
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
        // SAFETY: `of` found room for it there, aligned, which is this kernel's own for as long as it runs; no block enters another.
        // Atomics only.
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
        cells.has_told.set(false);
        let left = self.places().left.get(threads.block_index() as usize);
        let [stamp, meetings] = left.map_or([0; 2], Gpu::load_whole);
        cells.set_progress(Progress { stamp: stamp as u32, meetings: meetings as u32 });
        cells.devices.enter(threads, &self.places().devices, (meetings >> 32) as u32);
    }

    /// Thread 0 of a block, when it leaves the launch.
    #[inline(always)]
    pub fn leave(self, threads: Threads, cells: &GridCells, at: Progress) {
        if let Some(left) = self.places().left.get(threads.block_index() as usize) {
            let meetings = u64::from(at.meetings) | u64::from(cells.devices.meetings()) << 32;
            // Read by the same block in the next launch.
            Gpu::store_whole(left, [at.stamp.into(), meetings]);
        }
    }

    /// Thread 0 of block 0: tells the others that the launch ends.
    #[inline(always)]
    pub fn tell_end(self, cells: &GridCells, at: Progress) {
        cells.tell_stamp(at.stamp | END);
    }

    /// Threads `first..` of `step` of block 0: tell the others of a request.
    ///
    /// By the rules of PTX a fence would have to stand before it, for what the host has written before it sent the request, and other
    /// blocks before they answered the one before, to be seen by all that acquire it in `receive`. It would take about 0.4 us. This
    /// relies on a GPU whose threads all see in L2, or in the host's memory, what one of them has seen there: all that was written
    /// before has come there when this block's thread has seen the request, or that the other blocks have returned. What this block
    /// has written itself, it has fenced before its answer.
    ///
    /// # Safety
    /// `request` is readable, whole words of it up to the end of its slot; nobody writes it now.
    #[inline(always)]
    pub unsafe fn tell<Q>(
        self,
        (threads, first, step): (Threads, u32, u32),
        stamp: u32,
        request: *const Q,
    ) {
        let words = size_of::<Q>().next_multiple_of(16) / 4;
        let others = threads.blocks().saturating_sub(1) as usize;
        let copies = if others < copies::<Q>() { others } else { copies::<Q>() };
        let mut k = first as usize;
        while k < pieces::<Q>() {
            // Behind the last word it is read once more: less than a branch takes.
            // SAFETY: a word of the request's slot, which has some.
            let word =
                |w: usize| unsafe { request.cast::<u32>().add((3 * k + w).min(words - 1)).read() };
            let piece = stamped([word(0), word(1), word(2)], stamp);
            let mut copy = 0;
            while copy < copies {
                Gpu::store_whole(self.atom::<Q>(copy, k), piece);
                copy += 1;
            }
            k += step as usize;
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

    /// The first warp of a block, when all its threads have come to a meeting, the last one of `at`: the block brings a value there. If
    /// it `releases`, what the block has seen before is seen behind the meeting by all that acquire.
    #[inline(always)]
    pub fn come(
        self,
        threads: Threads,
        at: Progress,
        (meeting, value): (Meeting, u64),
        releases: bool,
    ) {
        let copies = &self.places().brought[at.meetings as usize % 2];
        let own = copies.get(threads.lane() as usize);
        let Some(own) = own.and_then(|copy| copy.get(threads.block_index() as usize)) else {
            return;
        };
        let words = [value as u32, (value >> 32) as u32, meeting as u32];
        let words = stamped(words, at.meetings);
        match releases {
            // SYNC: releases to the acquire in `meet` of every block.
            true => Gpu::publish(own, words),
            false => Gpu::store_whole(own, words),
        }
    }

    /// Any thread: whether a block has come to the meeting behind the last one of `at`.
    pub fn has_come(self, threads: Threads, block: u32, at: Progress) -> bool {
        let next = at.meeting().meetings;
        let copies = &self.places().brought[next as usize % 2][..USED];
        let brought = &copies[threads.block_index() as usize % copies.len()];
        // SYNC: acquires what that block has released in `come`.
        brought.get(block as usize).is_some_and(|atom| stamp_of(Gpu::observe(atom)) == next)
    }

    /// A warp of block 0, but not the first if there are others: waits until its share of the blocks has come to the last meeting of `at`, where
    /// they return, and `each` is told by what kind.
    #[inline(always)]
    pub fn meet_by_warps(
        self,
        threads: Threads,
        at: Progress,
        acquires: bool,
        mut each: impl FnMut(u32),
    ) -> Result<(), Trouble> {
        let (warps, warp) = (threads.threads() / Threads::WARP, threads.thread() / Threads::WARP);
        let waiting = if warps > 1 {
            (Threads::WARP * (warp - 1), Threads::WARP * (warps - 1))
        } else {
            (0, Threads::WARP)
        };
        let each = |kind, _| each(kind);
        self.wait(threads, waiting, (Meeting::Return, at), acquires, each)
    }

    /// All threads of a block, each of which has come to that meeting of `at`: wait for the blocks, as [`wait_for_all`] does; `each` is
    /// told by what kind of meeting a block has come, and of what it brings.
    #[inline(always)]
    pub fn meet(
        self,
        threads: Threads,
        (meeting, at): (Meeting, Progress),
        acquires: bool,
        each: impl FnMut(u32, u64),
    ) -> Result<(), Trouble> {
        let all = (threads.thread() - threads.lane(), threads.threads());
        self.wait(threads, all, (meeting, at), acquires, each)
    }

    /// A warp: waits for the blocks from one on, and then for as many from those that are so much further on.
    #[inline(always)]
    fn wait(
        self,
        threads: Threads,
        waiting: (u32, u32),
        (meeting, at): (Meeting, Progress),
        acquires: bool,
        each: impl FnMut(u32, u64),
    ) -> Result<(), Trouble> {
        let places = self.places();
        let copies = &places.brought[at.meetings as usize % 2][..USED];
        let brought = &copies[threads.block_index() as usize % copies.len()];
        let lost = |_| Trouble::from_word(threads.broadcast(Gpu::look(&places.lost.0)));
        let how = (threads.blocks(), at.meetings, acquires);
        wait_for_all::<Gpu>(
            threads,
            waiting,
            brought,
            how,
            (lost, |kind| meeting.meets(kind)),
            each,
        )
    }
}
