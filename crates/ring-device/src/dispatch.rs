//! The resident loop: wait, handle, answer, obey. One source for the GPU and the CPU.
//!
//! A team keeps three things in common: `head`, the next request's index; an [`Event`] that sends
//! all threads from waiting to work; and after a barrier whatever one thread found for all.
//! Response `i` goes to index `i` of the response ring, so lanes answer in order.

mod batch;
mod wait;

use crate::context::Payload;
use crate::kernel::Kernel;
use crate::team::{Shared, Team};
use core::ptr::NonNull;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use ring_shared::layout::{
    Command, ControlBlock, Exit, HostLine, LaneBlock, RingDescriptor, State,
};
use ring_shared::ring::Control;
use ring_shared::{ABI_VERSION, MAGIC, Message, Ring};

/// What sends a team from waiting to work.
pub(crate) mod event {
    /// Nothing yet.
    pub const NONE: u32 = 0;
    /// Requests up to `Shared::tail` are in slots.
    pub const SLOTS: u32 = 1;
    /// Request `Shared::staged` came in the line and is in the input window.
    pub const EXPRESS: u32 = 2;
    /// The host wrote `Shared::command`.
    pub const COMMAND: u32 = 3;
    /// The host wrote an index that cannot be.
    pub const CORRUPT: u32 = 4;
}

/// Nanoseconds between two heartbeats.
const HEARTBEAT: u64 = 100_000;

/// Runs one lane of kernel `K` until the host terminates it. Every thread of the lane calls it.
///
/// # Safety
/// `control` points to a [`ControlBlock`] that, with everything it names, was set up by
/// `ring-host` for `K` and stays until this returns; `team` is the calling thread's team, in
/// memory no other team uses.
#[inline(always)]
pub unsafe fn run<K: Kernel>(team: &Team<'_>, control: *const ControlBlock) {
    // SAFETY: the caller's promise.
    let control = unsafe { &*control };
    let host = &control.host;
    let same = host.magic.load(Relaxed) == MAGIC && host.abi_version.load(Relaxed) == ABI_VERSION;
    if !same || team.lane() >= host.lanes.load(Relaxed) {
        return; // the host sees the kernel gone without an acknowledgement
    }
    let blocks = control.config.lane_blocks.load(Relaxed) as usize as *const LaneBlock;
    // SAFETY: the host promised `lanes` blocks there, and the lane is one of them.
    let block = unsafe { &*blocks.wrapping_add(team.lane() as usize) };
    let (base, bytes) = (&control.config.payload, &control.config.payload_bytes);
    // SAFETY: the host promised that arena; it is 128-byte aligned and this kernel's own.
    let payload = unsafe { Payload::new(base.load(Relaxed), bytes.load(Relaxed)) };
    // SAFETY: the descriptors were written by the host for memory that stays while we run.
    let rings =
        unsafe { (open::<K::Request>(&block.request), open::<K::Response>(&block.response)) };
    let (Some(requests), Some(responses)) = rings else {
        leave(team, block, 0, Exit::BadConfig);
        return;
    };
    let start = requests.start();
    if start != responses.start() {
        leave(team, block, 0, Exit::BadConfig); // response i answers request i
        return;
    }
    let mut lane: Lane<'_, K> = Lane {
        team,
        host,
        block,
        requests,
        responses,
        payload,
        obeyed: 0,
        active: false,
        published: start,
        last_scrub: start,
        beat: 0,
        kernel: core::marker::PhantomData,
    };
    lane.run();
}

/// The ring of a descriptor, if it fits messages of type `M`.
///
/// # Safety
/// The descriptor's addresses lead to a ring of its capacity and slot size.
#[inline(always)]
unsafe fn open<M: Message>(d: &RingDescriptor) -> Option<Ring> {
    let at = |address: u64| NonNull::new(address as usize as *mut u8);
    let bell = at(d.bell.load(Relaxed))?.cast();
    let credit = at(d.credit.load(Relaxed))?.cast();
    let slots = at(d.slots.load(Relaxed))?.cast();
    let (capacity, start) = (d.capacity.load(Relaxed), d.start.load(Relaxed));
    let fits = d.slot_bytes.load(Relaxed) as usize == 16 * M::SLOT_ATOMS;
    // SAFETY: the caller's promise.
    let ring =
        unsafe { Ring::from_raw((bell, credit, slots), capacity, M::SLOT_ATOMS as u32, start) };
    ring.filter(|_| fits)
}

/// Writes a lane's last words.
#[inline(always)]
fn leave(team: &Team<'_>, block: &LaneBlock, epoch: u32, why: Exit) {
    if team.thread() == 0 {
        let status = &block.status;
        let state = if why == Exit::Asked { State::Terminated } else { State::Faulted };
        status.exit.store(why as u32, Relaxed);
        team.fence();
        // SYNC: releases the lane's last answers and counters to the host's acquire of it.
        status.acknowledged.store(Command { epoch, state: state as u32 }.to_word(), Release);
    }
}

struct Lane<'a, K> {
    team: &'a Team<'a>,
    host: &'a HostLine,
    block: &'a LaneBlock,
    requests: Ring,
    responses: Ring,
    payload: Payload<'a>,
    /// The last command word obeyed.
    obeyed: u64,
    active: bool,
    /// Thread 0: requests reported as consumed by batches, as an index.
    published: u64,
    /// Thread 0: index at which the response doorbell's stamps were last overwritten.
    last_scrub: u64,
    /// When the last heartbeat was.
    beat: u64,
    kernel: core::marker::PhantomData<K>,
}

impl<K: Kernel> Lane<'_, K> {
    #[inline(always)]
    fn shared(&self) -> &Shared {
        self.team.shared()
    }

    #[inline(always)]
    fn run(&mut self) {
        let start = self.requests.start();
        if self.team.thread() == 0 {
            let s = self.shared();
            s.head.store(start, Relaxed);
            s.credit.store(start, Relaxed);
            s.last_express.store(start.wrapping_sub(1), Relaxed);
            s.event.store(u64::from(event::NONE), Relaxed);
            self.acknowledge(State::Launched);
        }
        loop {
            self.team.sync();
            self.wait();
            self.team.sync();
            let stay = match self.shared().event.load(Relaxed) as u32 {
                event::SLOTS => self.answer_slots(),
                event::EXPRESS => self.answer_staged(),
                event::COMMAND => self.obey(),
                _ => {
                    self.leave(self.shared().head.load(Relaxed), Exit::CorruptRing);
                    false
                }
            };
            if !stay {
                return;
            }
            self.team.sync();
            if self.team.thread() == 0 {
                self.shared().event.store(u64::from(event::NONE), Relaxed);
            }
        }
    }

    /// Obeys the host's command; false if the lane is to leave.
    #[inline(always)]
    fn obey(&mut self) -> bool {
        self.obeyed = self.shared().command.load(Relaxed);
        match State::from_u32(Command::from_word(self.obeyed).state) {
            Some(State::Active) => self.active = true,
            Some(State::Inactive) => self.active = false,
            Some(State::Terminated) => {
                self.leave(self.shared().head.load(Relaxed), Exit::Asked);
                return false;
            }
            _ => return true, // not a command; the host sees that it is not acknowledged
        }
        if self.team.thread() == 0 {
            self.acknowledge(if self.active { State::Active } else { State::Inactive });
        }
        true
    }

    #[inline(always)]
    fn leave(&mut self, head: u64, why: Exit) {
        if self.team.thread() == 0 {
            self.shared().head.store(head, Relaxed);
            self.report();
        }
        leave(self.team, self.block, Command::from_word(self.obeyed).epoch, why);
    }

    /// Thread 0: says that the last command is obeyed, after exact counters.
    #[inline(always)]
    fn acknowledge(&mut self, state: State) {
        self.report();
        let done = Command { epoch: Command::from_word(self.obeyed).epoch, state: state as u32 };
        self.team.fence();
        // SYNC: releases the counters to the host's acquire of `acknowledged`.
        self.block.status.acknowledged.store(done.to_word(), Release);
    }

    /// Thread 0: writes counters, heartbeat and the exact credit for requests.
    #[inline(always)]
    fn report(&mut self) {
        let head = self.shared().head.load(Relaxed);
        self.publish_consumed(head);
        self.block.status.processed.store(head - self.requests.start(), Relaxed);
        self.beat = self.team.now();
        self.block.status.heartbeat.store(self.beat, Relaxed);
    }

    /// Thread 0: counters and heartbeat, if it is time; whether it was.
    #[inline(always)]
    fn beat(&mut self, head: u64) -> bool {
        let now = self.team.now();
        let due = now.wrapping_sub(self.beat) >= HEARTBEAT;
        if due {
            self.beat = now;
            self.block.status.processed.store(head - self.requests.start(), Relaxed);
            self.block.status.heartbeat.store(now, Relaxed);
        }
        due
    }

    /// Whether the host wants something else than what was obeyed last.
    #[inline(always)]
    fn commanded(&self) -> bool {
        self.host.command.load(Relaxed) != self.obeyed
    }

    /// Thread 0: tells the host that requests below `head` are consumed.
    #[inline(always)]
    fn publish_consumed(&mut self, head: u64) {
        self.published = head;
        // SYNC: releases our reads of line and slots to `Producer::refresh`. On the GPU they are
        // over: their values went into answers, or through a barrier into shared memory.
        self.team.publish_read(&self.requests.credit().consumed, head);
    }

    /// Thread 0: learns the host's credit for responses from its credit line. False if it cannot
    /// be. The line may be behind what a doorbell has told us.
    #[inline(always)]
    fn refresh_credit(&self, head: u64) -> bool {
        // SYNC: acquires `Consumer::publish`: the host has read those slots.
        let credit = self.responses.credit().consumed.load(Acquire);
        let can_be = credit <= head && credit >= self.responses.start();
        if can_be && credit > self.shared().credit.load(Relaxed) {
            self.shared().credit.store(credit, Relaxed);
        }
        can_be
    }

    /// One thread: learns the host's credit for responses from a request doorbell, which may be
    /// ahead of the credit line, or old.
    #[inline(always)]
    fn credit_of_doorbell(&self, control: Control, head: u64) {
        let behind = (head as u32).wrapping_sub(control.credit);
        let known = &self.shared().credit;
        if behind <= self.responses.capacity()
            && head.saturating_sub(known.load(Relaxed)) > u64::from(behind)
        {
            known.store(head - u64::from(behind), Relaxed);
        }
    }
}
