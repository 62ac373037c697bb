//! The resident loop: wait, handle, answer, obey. One source for the GPU and the CPU.
//!
//! A team keeps three things in common: `head`, the next request's index; an [`event`] that sends
//! all threads from waiting to work; and after a barrier whatever one thread found for all.
//! Response `i` goes to index `i` of the response ring, so channels answer in order. Work is a
//! [`stream`] where a warp answers messages by itself, and [`batch`]es where the whole block does.
//!
//! A kernel is launched once and stays, or many times over the same memory: each launch goes on
//! where the last one left, until the host ends it or one of its budgets is spent.

mod at_once;
mod batch;
mod budget;
mod end;
mod lease;
mod resume;
mod stream;
mod times;
mod wait;

use self::at_once::First;
use crate::kernel::{Kernel, Scope};
use crate::team::{Shared, Team};
use core::marker::PhantomData;
use core::ptr::with_exposed_provenance;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use ring_shared::layout::{ChannelBlock, Command, ControlBlock, Exit, HostLine, State};
use ring_shared::ring::{CONTROL, Control, credit_index, scrub};

/// What sends a team from waiting to work.
pub(crate) mod event {
    /// Nothing yet.
    pub const NONE: u32 = 0;
    /// Requests up to `Shared::tail` are in slots.
    pub const SLOTS: u32 = 1;
    /// Request `Shared::staged` came in the line and is in the input window.
    pub const INLINE: u32 = 2;
    /// The host wrote `Shared::command`.
    pub const COMMAND: u32 = 3;
    /// The channel is to leave; `Shared::verdict` says why.
    pub const LEAVE: u32 = 4;
}

/// What the thread that looked tells the others: one of these, or an [`Exit`]: the channel leaves.
pub(crate) mod verdict {
    /// Go on. No exit has this number.
    pub const GO_ON: u64 = 0;
    /// Go back to waiting.
    pub const STOP: u64 = u64::MAX;
    /// Obey `Shared::command` at once: the polling warps might not come to it, since the one that
    /// looks for commands may find each time that the other has raised an event for the same message.
    pub const COMMAND: u64 = u64::MAX - 1;
}

/// Nanoseconds between two heartbeats.
const HEARTBEAT: u64 = 100_000;

/// Runs one channel of kernel `K` until the host terminates it or a budget of the launch is spent.
/// Every thread of the channel calls it.
///
/// # Safety
/// `control` points to a [`ControlBlock`] that, with everything it names and a [`ChannelBlock`] for
/// every team of the launch right behind it, was set up by `ring-host` for `K` and stays until this
/// returns; `team` is the calling thread's team, in memory no other team uses; no other launch
/// runs over the same memory.
#[inline(always)]
pub unsafe fn run<K: Kernel>(team: &Team<'_>, control: *const ControlBlock) {
    let team = *team;
    let began = (team.now(), team.ticks());
    // SAFETY: the caller's promise: the blocks are there.
    unsafe { team.boot(control) };
    let blocks = control.wrapping_add(1).cast::<ChannelBlock>();
    let at = blocks.wrapping_add(team.channel() as usize);
    if team.thread() == 0 {
        team.shared().broken.store(0, Relaxed);
        team.shared().control.store(control.expose_provenance() as u64, Relaxed);
        team.shared().block.store(at.expose_provenance() as u64, Relaxed);
    }
    // SAFETY: the caller's promise.
    let first = unsafe { at_once::answer::<K>(team, at, began.1) };
    team.sync();
    if !resume::is_ours(team) {
        return; // the host sees the kernel gone without an acknowledgement
    }
    // SAFETY: the caller's promise: the block of each channel, all atomics and padding.
    let block = unsafe { &*at };
    if resume::is_lost(team) {
        return resume::pass(team, block);
    }
    // SAFETY: the host wrote a configuration for memory that stays while we run.
    match unsafe { resume::check::<K>(team, control, at) } {
        None => Channel::<K> { team, kernel: PhantomData }.run(began, first),
        Some(why) => resume::refuse(team, block, why),
    }
}

/// All that the entry point of kernel `K` does on a GPU: runs the block's channel.
///
/// In a module with kernels of `ring` an entry point that is not made of this must not panic: the panic
/// handler tells the channel that it thinks it is in.
///
/// # Safety
/// As for [`run`]: `control` is the parameter of a launch by `ring-host`. Called by every thread of the
/// block, at one place of the kernel.
#[cfg(target_arch = "nvptx64")]
#[inline(always)]
pub unsafe fn enter<K: Kernel>(control: *const ControlBlock) {
    // SAFETY: every thread of the block comes here, once.
    let team = unsafe { Team::of_block() };
    // SAFETY: the caller's promise; the team's memory is this block's.
    unsafe { run::<K>(&team, control) }
}

/// One thread: writes a channel's last words. Nothing is written after them.
#[inline(always)]
fn part(team: Team<'_>, block: &ChannelBlock, epoch: u32, why: Exit) {
    let (status, launch) = (&block.status, budget::launch(team));
    let state = match why {
        Exit::Asked => State::Terminated,
        why if why.is_yield() => State::Yielded,
        _ => State::Faulted,
    };
    status.exit.store(why as u64, Relaxed);
    let last = Command { epoch, state: state as u32 }.to_word();
    // SYNC: releases the channel's last answers, counters and what the next launch resumes from, of
    // all threads that we met at a barrier, to the host's acquire of it.
    status.acknowledged.store(last, Release);
    // SYNC: releases all of that, and the acknowledgement, to the host's acquire of it.
    status.left.store(launch, Release);
}

/// What a thread of a GPU's block does whose handler panicked, before it ends: it tells the host, and all
/// that wait for it. Every other thread finds out at its next barrier, or as it next looks what to do.
///
/// # Safety
/// The thread is one of a team in [`run`].
#[cfg(all(target_arch = "nvptx64", not(feature = "rust-cuda")))]
pub(crate) unsafe fn panicked(team: Team<'_>) {
    let s = team.shared();
    // SAFETY: `run` stored the address of this channel's block before any handler was called.
    let block = unsafe { &*(s.block.load(Relaxed) as usize as *const ChannelBlock) };
    s.broken.store(1, Relaxed);
    // The other channels must not wait for this one.
    block.status.busy.store(0, Relaxed);
    if team.channel() == 0 {
        block.status.leave.store(budget::launch(team), Relaxed);
    }
    let epoch = Command::from_word(s.obeyed.load(Relaxed)).epoch;
    part(team, block, epoch, Exit::HandlerPanicked);
    team.fence_team(); // `broken` before what sends the others to a barrier
    s.over.store(Exit::HandlerPanicked as u64, Relaxed);
    s.event.store(u64::from(event::LEAVE), Relaxed);
    team.fence_team();
}

/// A channel, as each thread of its block has it. Where its blocks are is in the team's memory: registers
/// are dearer.
struct Channel<'a, K> {
    team: Team<'a>,
    kernel: PhantomData<K>,
}

impl<K: Kernel> Channel<'_, K> {
    #[inline(always)]
    fn shared(&self) -> &Shared {
        self.team.shared()
    }

    /// The same channel; the compiler takes it for another. It would compute whatever it can from a channel
    /// before a loop begins, and keep it in registers, of which a block of many threads has few.
    #[inline(always)]
    fn afresh(&self) -> Self {
        Channel { team: self.team.afresh(), kernel: self.kernel }
    }

    #[inline(always)]
    fn control(&self) -> &ControlBlock {
        let at = self.shared().control.load(Relaxed) as usize;
        // SAFETY: `run` stored the address of the control block, all atomics and padding, that its caller
        // promised.
        unsafe { &*with_exposed_provenance(at) }
    }

    #[inline(always)]
    fn host(&self) -> &HostLine {
        &self.control().host
    }

    /// The blocks of all channels.
    #[inline(always)]
    fn blocks(&self) -> *const ChannelBlock {
        core::ptr::from_ref(self.control()).wrapping_add(1).cast()
    }

    /// This channel's block.
    #[inline(always)]
    fn block(&self) -> &ChannelBlock {
        let at = self.shared().block.load(Relaxed) as usize;
        // SAFETY: `run` stored the address of this channel's block, all atomics and padding, that its caller
        // promised.
        unsafe { &*with_exposed_provenance(at) }
    }

    #[inline(always)]
    fn run(&self, began: (u64, u64), first: First) {
        self.begin(began, first);
        let why = loop {
            let this = self.afresh();
            this.team.sync();
            this.wait();
            this.team.sync();
            let mut found = match this.shared().event.load(Relaxed) as u32 {
                event::SLOTS if <K::Scope as Scope<K>>::ALONE => this.stream(),
                found @ (event::SLOTS | event::INLINE) if !<K::Scope as Scope<K>>::ALONE => {
                    this.answer(found == event::INLINE)
                }
                event::COMMAND => verdict::COMMAND,
                _ => this.shared().verdict.load(Relaxed),
            };
            if found == verdict::COMMAND {
                found = this.obey();
            }
            this.team.sync();
            if found != verdict::GO_ON {
                break found;
            }
            if this.team.thread() == 0 {
                let s = this.shared();
                s.answered.store(s.head.load(Relaxed), Relaxed);
                s.event.store(u64::from(event::NONE), Relaxed);
            }
        };
        let this = self.afresh();
        if this.team.poller() == Some(0) {
            this.leave(exit(why));
        }
    }

    /// Obeys the host's command: `GO_ON`, or that the channel is to leave.
    #[inline(always)]
    fn obey(&self) -> u64 {
        let s = self.shared();
        let command = s.command.load(Relaxed);
        let state = State::from_u32(Command::from_word(command).state);
        if <K::Scope as Scope<K>>::STATE_BYTES > 0 && self.team.poller() == Some(0) {
            // The host may have written the state meanwhile. The command was read by a thread of this warp;
            // a barrier follows.
            self.team.fence();
        }
        if self.team.thread() == 0 {
            s.obeyed.store(command, Relaxed);
            match state {
                Some(state @ (State::Active | State::Inactive)) => {
                    s.active.store(u64::from(state == State::Active), Relaxed);
                    self.acknowledge(state);
                }
                Some(State::Terminated) => {}
                // Not a command; the host sees that it is not acknowledged.
                _ => self.team.add(&s.refused, 1),
            }
        }
        if state == Some(State::Terminated) { Exit::Asked as u64 } else { verdict::GO_ON }
    }

    /// A polling warp: whether messages are taken.
    #[inline(always)]
    fn is_active(&self) -> bool {
        self.team.uniform(self.shared().active.load(Relaxed)) != 0
    }

    /// Warp 0: leaves exact counters, and what the next launch goes on from, and ends the channel.
    #[inline(always)]
    fn leave(&self, why: Exit) {
        self.flush();
        if self.team.is_leader() {
            self.call_others(why);
            self.report();
            let (s, status) = (self.shared(), &self.block().status);
            let errors = self.errors_before().wrapping_add(u64::from(why == Exit::CorruptRing));
            status.errors.store(errors, Relaxed);
            status.run_start.store(s.run_start.load(Relaxed), Relaxed);
            status.scrubbed.store(s.scrubbed.load(Relaxed), Relaxed);
            let epoch = Command::from_word(s.obeyed.load(Relaxed)).epoch;
            part(self.team, self.block(), epoch, why);
        }
    }

    /// Thread 0: says that the last command is obeyed, after exact counters.
    #[inline(always)]
    fn acknowledge(&self, state: State) {
        self.report();
        let epoch = Command::from_word(self.shared().obeyed.load(Relaxed)).epoch;
        let done = Command { epoch, state: state as u32 };
        // SYNC: releases the counters to the host's acquire of `acknowledged`.
        self.block().status.acknowledged.store(done.to_word(), Release);
    }

    /// Thread 0: writes counters, heartbeat and the exact credit for requests.
    #[inline(always)]
    fn report(&self) {
        let head = self.shared().head.load(Relaxed);
        self.publish_consumed(head);
        let now = self.team.now();
        self.tell(head, now);
    }

    /// Thread 0: counters and heartbeat, if it is time; whether it was. A lease that is over is noted
    /// then.
    #[inline(always)]
    fn beat(&self, head: u64, now: u64) -> bool {
        let due = now.wrapping_sub(self.shared().beat.load(Relaxed)) >= HEARTBEAT;
        if due {
            self.tell(head, now);
            if self.is_orphaned(now) {
                self.shared().orphaned.store(1, Relaxed);
            }
        }
        due
    }

    /// Whether the lease was over at the last heartbeat.
    #[inline(always)]
    fn lease_is_over(&self) -> bool {
        self.shared().orphaned.load(Relaxed) != 0
    }

    /// Thread 0: writes counters and heartbeat.
    #[inline(always)]
    fn tell(&self, head: u64, now: u64) {
        let (s, status) = (self.shared(), &self.block().status);
        s.beat.store(now, Relaxed);
        let ahead = (s.wire.load(Relaxed) as u32).wrapping_sub(head as u32);
        let depth = if ahead <= self.inbox().capacity() { ahead } else { 0 };
        status.processed.store(head - self.start(), Relaxed);
        status.refused.store(s.refused.load(Relaxed), Relaxed);
        status.depth.store(u64::from(depth), Relaxed);
        status.heartbeat.store(now, Relaxed);
        status.ticks.store(self.team.ticks(), Relaxed);
    }

    /// Thread 0: whether the host wants something else than what was obeyed last; it is then in
    /// `Shared::command`.
    #[inline(always)]
    fn commanded(&self) -> bool {
        let command = self.host().command.load(Relaxed);
        self.shared().command.store(command, Relaxed);
        command != self.shared().obeyed.load(Relaxed)
    }

    /// Thread 0: tells the host that requests below `head` are consumed.
    #[inline(always)]
    fn publish_consumed(&self, head: u64) {
        self.shared().published.store(head, Relaxed);
        // SYNC: releases our reads of line and slots to `Outbox::refresh`. On the GPU they are
        // over: their values went into answers, or through a barrier into shared memory.
        self.team.publish_read(&self.inbox().credit().consumed, head);
    }

    /// One thread: rings the response doorbell for answers in slots below `tail`.
    #[inline(always)]
    fn publish_tail(&self, tail: u64, credit: u64) {
        let run_start = self.shared().run_start.load(Relaxed);
        let stamped = self.shared().scrubbed.load(Relaxed).max(run_start);
        let bell = self.outbox().bell();
        if let Some(words) = scrub(tail, stamped, run_start, credit) {
            for atom in bell.atoms.iter().take(CONTROL) {
                atom.publish(words);
            }
            self.shared().scrubbed.store(tail, Relaxed);
        }
        let control = Control::behind_slots(run_start, credit, tail, tail);
        // SYNC: with the fence before it, releases the slots to `Inbox::find`.
        bell.atoms[CONTROL].publish(control.to_words());
    }

    /// Thread 0: learns the host's credit for responses from its credit line. False if it cannot
    /// be. The line may be behind what a doorbell has told us.
    #[inline(always)]
    fn refresh_credit(&self, head: u64) -> bool {
        // SYNC: acquires `Inbox::publish`: the host has read those slots.
        let credit = self.outbox().credit().consumed.load(Acquire);
        self.team.fence_team(); // for the other polling warp, should it go by this credit
        self.take_credit(credit, head)
    }

    /// Thread 0: takes note of a credit for responses. False if it cannot be.
    #[inline(always)]
    fn take_credit(&self, credit: u64, head: u64) -> bool {
        let can_be = credit <= head && credit >= self.start();
        if can_be && credit > self.shared().credit.load(Relaxed) {
            self.shared().credit.store(credit, Relaxed);
        }
        can_be
    }

    /// One thread: learns the host's credit for responses from a request doorbell, which may be
    /// ahead of the credit line, or old.
    #[inline(always)]
    fn credit_of_doorbell(&self, control: Control, head: u64) {
        let known = &self.shared().credit;
        if let Some(credit) = credit_index(control.credit, head, self.outbox().capacity())
            && credit > known.load(Relaxed)
        {
            known.store(credit, Relaxed);
        }
    }
}

/// The exit that a verdict names.
#[inline(always)]
fn exit(verdict: u64) -> Exit {
    const ASKED: u64 = Exit::Asked as u64;
    const TIME: u64 = Exit::TimeSpent as u64;
    const ITERATIONS: u64 = Exit::IterationsSpent as u64;
    const IDLE: u64 = Exit::Idle as u64;
    const LEASE: u64 = Exit::LeaseOver as u64;
    match verdict {
        ASKED => Exit::Asked,
        TIME => Exit::TimeSpent,
        ITERATIONS => Exit::IterationsSpent,
        IDLE => Exit::Idle,
        LEASE => Exit::LeaseOver,
        _ => Exit::CorruptRing,
    }
}
