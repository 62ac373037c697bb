//! Where the blocks of a kernel's grids on several devices meet, in the memory of each device, and what each block keeps of that.
//!
//! Each block tells all devices when it comes to such a meeting, by a store to the memory of each, and waits for the blocks of all
//! devices where its own device is told of them: no block reads the memory of another device.

use super::meeting::{
    LOOKS, MAX_GRID_BLOCKS, PLACES, Progress, STAMPS, Trouble, USED, wait_for_all,
};
use crate::block::cell::Cell;
use crate::block::{Cooperate, Threads};
use core::ptr::with_exposed_provenance;
use ring_shared::atomics::{Atom, AtomicU64, Gpu, MemoryScope, System};
use ring_shared::layout::{DevicesLine, MAX_DEVICES};
use ring_shared::ring::{stamp_of, stamped};

/// Most blocks of a kernel's grids on all its devices.
pub const MAX_BLOCKS_OF_DEVICES: u32 = 2 * MAX_GRID_BLOCKS;

/// Bytes of device memory that each device of such a kernel has for its meetings.
pub const MEETING_BYTES: usize = size_of::<Places>();

/// So many times [`LOOKS`] for each look at what takes long to find out.
const RARELY: u32 = 16;

/// What each block of all devices has.
type Each<T> = [T; MAX_BLOCKS_OF_DEVICES as usize];

/// Where the blocks of a device are told of those of all devices. Zero before the first launch. The host, which takes the memory, has the
/// same layout.
#[repr(C, align(128))]
struct Places {
    /// Number of a [`Trouble`], if the device's own grid is lost: written by that.
    lost: AtomicU64,
    /// The same, if a grid of another device is lost: written by that.
    lost_elsewhere: AtomicU64,
    pad: [AtomicU64; 14],
    /// What each block brings to even and to odd meetings, stamped with the meeting's number: a value, and the number of the message.
    /// A block brings something to the next but one when all have come to the next, and so have seen this. In copies, each for some
    /// of the blocks that read it.
    brought: [[Each<Atom>; PLACES]; 2],
    /// Of each device the last message of which the handler has returned in all its blocks, and the meetings until then.
    returned: [Atom; MAX_DEVICES],
}

const _: () = assert!(
    size_of::<Places>() == 128 + 16 * (2 * PLACES * MAX_BLOCKS_OF_DEVICES as usize + MAX_DEVICES)
);

/// What a block keeps of that. Set by thread 0.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct DevicesCells {
    /// Devices; 0 if the kernel is on one.
    count: Cell<u64>,
    /// The number of the block's own.
    own: Cell<u64>,
    /// The number of its first block among all, and how many blocks there are in all.
    first: Cell<u64>,
    blocks: Cell<u64>,
    /// Meetings, wrapping. Behind the barrier at which a meeting ends, and before that at which the next one begins.
    meetings: Cell<u64>,
    /// Where each device is told.
    pub(super) places: [Cell<u64>; MAX_DEVICES],
}

impl DevicesCells {
    /// Thread 0 of a block, when a launch of its grid begins: what the host has said, and the meetings of the launches before. What
    /// cannot be is as if there were no other device.
    #[inline(always)]
    pub fn enter(&self, threads: Threads, line: &DevicesLine, meetings: u32) {
        let [devices, size] = Gpu::load_whole(&line.size);
        let [count, first] = [devices, size].map(|word| word as u32);
        let [own, blocks] = [devices, size].map(|word| (word >> 32) as u32);
        let fits = count as usize <= MAX_DEVICES
            && own < count
            && blocks <= MAX_BLOCKS_OF_DEVICES
            && first <= blocks
            && threads.blocks() <= blocks - first;
        self.count.set(if fits { count.into() } else { 0 });
        self.own.set(own.into());
        self.first.set(first.into());
        self.blocks.set(blocks.into());
        self.meetings.set(meetings.into());
        if fits {
            for (places, two) in self.places.as_chunks::<2>().0.iter().zip(&line.places) {
                let at = Gpu::load_whole(two);
                places[0].set(at[0]);
                places[1].set(at[1]);
            }
        }
    }

    /// What a block has of its kernel's grids, if they are on several devices.
    #[inline(always)]
    pub fn all(&self) -> Option<DevicesMemory<'_>> {
        (self.count.get() > 0).then_some(DevicesMemory { cells: self })
    }

    /// The meetings until now.
    #[inline(always)]
    pub fn meetings(&self) -> u32 {
        self.meetings.get() as u32
    }
}

/// What a block has of its kernel's grids on several devices.
#[derive(Clone, Copy)]
pub(crate) struct DevicesMemory<'a> {
    cells: &'a DevicesCells,
}

/// A meeting.
#[derive(Clone, Copy)]
pub(crate) struct MeetingOfDevices {
    /// Its number.
    pub number: u32,
    /// How far the handler has come in its own grid.
    pub at: Progress,
}

impl<'a> DevicesMemory<'a> {
    /// How many devices there are, one at least.
    #[inline(always)]
    pub fn count(self) -> u32 {
        self.cells.count.get() as u32
    }

    /// The number of the block's own device.
    #[inline(always)]
    pub fn own(self) -> u32 {
        self.cells.own.get() as u32
    }

    /// The blocks of all devices.
    #[inline(always)]
    pub fn blocks(self) -> u32 {
        self.cells.blocks.get() as u32
    }

    /// Where that device is told.
    #[inline(always)]
    fn places(self, device: usize) -> &'a Places {
        let device = if device < MAX_DEVICES { device } else { 0 };
        let at = self.cells.places[device].get();
        // SAFETY: the host has said that there are places of that device, which this one reaches, zeroed, and stay for as long as a
        // grid of the kernel is launched. Atomics only.
        unsafe { &*with_exposed_provenance(at as usize) }
    }

    /// The next meeting.
    #[inline(always)]
    pub fn next(self, at: Progress) -> MeetingOfDevices {
        MeetingOfDevices { number: self.cells.meetings().wrapping_add(1), at }
    }

    /// Thread 0, behind the barrier at which a meeting ends.
    #[inline(always)]
    pub fn have_met(self, MeetingOfDevices { number, .. }: MeetingOfDevices) {
        self.cells.meetings.set(number.into());
    }

    /// The first warp of a block, when all its threads have come to a meeting: the block brings a value there. If it `releases`, what the
    /// block has seen before is seen behind the meeting by all that acquire.
    #[inline(always)]
    pub fn come(
        self,
        threads: Threads,
        MeetingOfDevices { number, at }: MeetingOfDevices,
        value: u64,
        releases: bool,
    ) {
        let words = stamped([value as u32, (value >> 32) as u32, at.stamp], number);
        let block = self.cells.first.get() as usize + threads.block_index() as usize;
        let mut k = threads.lane() as usize;
        while k < self.count() as usize * USED {
            let device = k / USED;
            let copies = &self.places(device).brought[number as usize % 2];
            let copy = copies.get(k - device * USED);
            if let Some(own) = copy.and_then(|copy| copy.get(block)) {
                match releases {
                    // SYNC: releases to the acquire in `meet` of every block of every device.
                    true => System::publish(own, words),
                    false => System::store_whole(own, words),
                }
            }
            k += Threads::WARP as usize;
        }
    }

    /// All threads of a block, each of which has come to that meeting: wait for the blocks of all devices, as [`wait_for_all`] does;
    /// `each` is told of what a block brings. `is_ahead` says of a block of the own device whether it has come to the grid's next
    /// meeting, and `lacks_device` whether the host says that a device is lost: both are asked seldom.
    #[inline(always)]
    pub fn meet(
        self,
        threads: Threads,
        meeting: MeetingOfDevices,
        acquires: bool,
        (is_ahead, lacks_device): (impl Fn(u32) -> bool, impl Fn() -> bool),
        mut each: impl FnMut(u64),
    ) -> Result<(), Trouble> {
        let own = self.places(self.own() as usize);
        let copies = &own.brought[meeting.number as usize % 2][..USED];
        let brought = &copies[threads.block_index() as usize % copies.len()];
        let look = |at| Trouble::from_word(threads.broadcast(System::look(at)));
        let lost = || look(&own.lost).or_else(|| look(&own.lost_elsewhere));
        let trouble = |looks: u32| {
            let is_rare = || looks.is_multiple_of(RARELY * LOOKS);
            if let Some(trouble) = lost() {
                Some(trouble)
            } else if is_rare() && threads.agreed(lacks_device()) {
                // Before the host has found that, the grid that it is about has told its own blocks.
                Some(lost().unwrap_or(Trouble::Elsewhere))
            } else if is_rare() && self.is_missed(threads, meeting, brought, &is_ahead) {
                Some(Trouble::Missed)
            } else {
                None
            }
        };
        let meets = |message| message == meeting.at.stamp;
        let how = (self.blocks(), meeting.number, acquires);
        let all = (threads.thread() - threads.lane(), threads.threads());
        wait_for_all::<System>(threads, all, brought, how, (trouble, meets), |_, value| each(value))
    }

    /// All threads of a warp that waits at a meeting: whether it cannot take place. Then a device has returned from the message without
    /// it, or a block of the own device has come to the grid's next meeting without it.
    ///
    /// What such a block has brought to this meeting, if anything, it has stored before: it is found by whoever finds it there, for
    /// it has waited for all blocks in between, and a store takes less than that.
    #[cold]
    fn is_missed(
        self,
        threads: Threads,
        meeting: MeetingOfDevices,
        brought: &Each<Atom>,
        is_ahead: &impl Fn(u32) -> bool,
    ) -> bool {
        let mut device = threads.lane();
        let mut is_missed = false;
        while device < self.count() {
            if let Some(returned) = self.places(self.own() as usize).returned.get(device as usize) {
                let [message, meetings] = System::load_whole(returned).map(|word| word as u32);
                let behind = message.wrapping_sub(meeting.at.stamp) % STAMPS;
                is_missed |=
                    behind < STAMPS / 2 && (meetings.wrapping_sub(meeting.number) as i32) < 0;
            }
            device += Threads::WARP;
        }
        let mut block = threads.lane();
        while block < threads.blocks() {
            if is_ahead(block)
                && let Some(atom) = brought.get(self.cells.first.get() as usize + block as usize)
            {
                is_missed |= stamp_of(System::load_whole(atom)) != meeting.number;
            }
            block += Threads::WARP;
        }
        !threads.all(!is_missed)
    }

    /// The first warp of block 0, when the handler has returned in all blocks of its device.
    #[inline(always)]
    pub fn tell_return(self, threads: Threads, at: Progress) {
        let words = [at.stamp.into(), self.cells.meetings().into()];
        let mut device = threads.lane();
        while device < self.count() {
            if let Some(own) = self.places(device as usize).returned.get(self.own() as usize) {
                System::store_whole(own, words);
            }
            device += Threads::WARP;
        }
    }

    /// Any thread: its grid is lost, for that trouble. Who waits for it on any device finds that.
    #[cold]
    #[inline(never)]
    pub fn fall_out(self, why: Trouble) {
        if why == Trouble::Elsewhere {
            return; // all have been told by where it was
        }
        // Its own blocks first: the host may tell them that a device is lost, when it has found what the others make of it.
        System::store_release(&self.places(self.own() as usize).lost, why as u64);
        let mut device = 0;
        while device < self.count() {
            if device != self.own() {
                let lost = &self.places(device as usize).lost_elsewhere;
                // SYNC: releases what its own blocks were told, by way of that device's exit and of the host, to `lacks_device`.
                System::store_release(lost, Trouble::Elsewhere as u64);
            }
            device += 1;
        }
    }
}
