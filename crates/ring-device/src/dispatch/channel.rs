//! A channel, as each thread of its block has it, and what it tells the host of itself.

use crate::block::{Cooperate, Threads};
use crate::context::Payload;
use crate::kernel::{Group, Kernel, Messages, Scope};
use crate::memory::BlockMemory;
use crate::memory::boot;
use crate::memory::budget::{BUSY, Channels};
use crate::memory::end::End;
use crate::memory::span::Span;
use crate::thread_block::ThreadBlock;
use core::marker::PhantomData;
use core::mem::offset_of;
use core::ops::Deref;
use core::ptr::with_exposed_provenance;
use core::sync::atomic::Ordering::{Relaxed, Release};
use ring_shared::layout::{
    ChannelBlock, Command, ConfigLine, ControlBlock, Exit, HostLine, State, StatusLine,
};
use ring_shared::message::span_of_pair;

/// Nanoseconds between two heartbeats.
const HEARTBEAT: u64 = 100_000;

/// The channel that the calling thread's block runs. Where its lines are is in the block's memory: registers
/// are dearer.
pub(super) struct Channel<'a, K> {
    pub block: ThreadBlock<'a>,
    kernel: PhantomData<K>,
}

impl<'a, K> Deref for Channel<'a, K> {
    type Target = ThreadBlock<'a>;

    #[inline(always)]
    fn deref(&self) -> &ThreadBlock<'a> {
        &self.block
    }
}

impl<'a, K: Kernel> Channel<'a, K> {
    /// Whether each warp handles messages of its own.
    pub const BY_WARP: bool = matches!(<K::Scope as Scope<K>>::GROUP, Group::Warp);

    /// Whether thread 0 handles each message behind the one before it.
    pub const IN_ORDER: bool = matches!(<K::Scope as Scope<K>>::GROUP, Group::One);

    /// Doorbell lines of a request and of a response.
    pub const SPAN: Span = Span(span_of_pair::<K::Request, K::Response>());

    /// The channel of a block whose memory says where its lines are.
    #[inline(always)]
    pub fn new(block: ThreadBlock<'a>) -> Self {
        Channel { block, kernel: PhantomData }
    }

    /// The same channel; the compiler takes it for another. It would compute whatever it can from a channel
    /// before a loop begins, and keep it in registers, of which a block of many threads has few.
    #[inline(always)]
    pub fn optimization_barrier(&self) -> Self {
        Channel::new(self.block.optimization_barrier())
    }

    /// A thread of the first warp, of which `lane` is the number there: the same, as
    /// [`optimization_barrier`](Self::optimization_barrier) says.
    #[inline(always)]
    pub fn optimization_barrier_of_first_warp(&self, lane: u32) -> Self {
        Channel::new(self.block.optimization_barrier_of_first_warp(lane))
    }

    /// The calling thread.
    #[inline(always)]
    pub fn threads_of_block(&self) -> Threads {
        *self.block
    }

    /// What the block's threads share.
    #[inline(always)]
    pub fn memory(&self) -> &BlockMemory {
        self.block.memory()
    }

    #[inline(always)]
    pub fn control(&self) -> &ControlBlock {
        let at = self.memory().life.control.get() as usize;
        // SAFETY: `run` stored the address of the control block, all atomics and padding, that its caller
        // promised.
        unsafe { &*with_exposed_provenance(at) }
    }

    #[inline(always)]
    pub fn host(&self) -> &HostLine {
        &self.control().host
    }

    /// This channel's block.
    #[inline(always)]
    pub fn lines(&self) -> &ChannelBlock {
        let at = self.memory().life.lines.get() as usize;
        // SAFETY: `run` stored the address of this channel's block, all atomics and padding, that its caller
        // promised.
        unsafe { &*with_exposed_provenance(at) }
    }

    #[inline(always)]
    pub fn status(&self) -> &StatusLine {
        &self.lines().status
    }

    /// Where requests come from.
    #[inline(always)]
    pub fn requests(&self) -> End<'_> {
        End::of_requests::<K::Request>(&self.memory().boot, Self::SPAN)
    }

    /// Where responses go.
    #[inline(always)]
    pub fn responses(&self) -> End<'_> {
        End::of_responses::<K::Response>(&self.memory().boot, Self::SPAN)
    }

    /// The payload arena.
    #[inline(always)]
    pub fn payload(&self) -> Payload<'_> {
        // SAFETY: `run`'s caller promised it; it is this kernel's own.
        unsafe { payload(self.block, K::USES_PAYLOAD) }
    }

    /// Where the blocks of all channels begin: behind the control block. A reference to the control block
    /// would not reach them.
    #[inline(always)]
    fn blocks(&self) -> *const ChannelBlock {
        let at = self.memory().life.control.get() as usize + size_of::<ControlBlock>();
        with_exposed_provenance(at)
    }

    /// All channels of the kernel.
    #[inline(always)]
    pub fn channels(&self) -> Channels<'_> {
        let n = self.memory().boot.half(boot::HOST, offset_of!(HostLine, channels)) as usize;
        // SAFETY: `run`'s caller promised so many blocks behind the control block, all atomics and padding.
        let blocks = unsafe { core::slice::from_raw_parts(self.blocks(), n) };
        Channels { blocks, own: self.channel() }
    }

    /// Channel 0's status line, if this channel is to look there for channel 0's call.
    #[inline(always)]
    pub fn caller(&self) -> Option<&StatusLine> {
        // SAFETY: channel 0's block, which `run`'s caller promised, all atomics and padding.
        let first = unsafe { &(*self.blocks()).status };
        (self.memory().budget.is_limited() && self.channel() > 0).then_some(first)
    }

    /// Whether channel 0 has called the others to leave this launch.
    #[inline(always)]
    pub fn called(&self) -> bool {
        self.caller().is_some_and(|first| first.call.load(Relaxed) == launch(self.block))
    }

    /// A warp: handles the `n` messages in its memory at `stage`, one `stride` bytes behind the other.
    ///
    /// # Safety
    /// Room for so many messages, each as large as `STAGE` says of the scope or larger, of the calling warp alone, with a request in
    /// each; the warp synchronises before and after.
    #[inline(always)]
    pub unsafe fn handle_by_warp(&self, stage: *mut u8, stride: usize, n: u32) {
        let (_, response) = <K::Scope as Scope<K>>::STAGE;
        let messages = Messages {
            requests: stage,
            responses: stage.wrapping_add(16 * response),
            request_stride: stride,
            response_stride: stride,
        };
        // SAFETY: the caller's promise.
        unsafe { <K::Scope as Scope<K>>::handle(self.block, self.payload(), messages, n) }
    }

    /// One thread, before a message is handled.
    #[inline(always)]
    pub fn note_work(&self) {
        let budget = &self.memory().budget;
        if budget.is_told_of(self.channel()) {
            self.status().busy.store(BUSY, Relaxed);
        }
    }

    /// One thread, after a message was handled, `now`.
    #[inline(always)]
    pub fn note_handled(&self, now: u64) {
        let budget = &self.memory().budget;
        if budget.note_handled(now) && budget.is_told_of(self.channel()) {
            self.status().busy.store(now.min(BUSY - 1), Relaxed);
        }
    }

    /// Thread 0: whether the host wants something else than what was acknowledged last; it is then in
    /// `Signals::command`.
    #[inline(always)]
    pub fn is_commanded(&self) -> bool {
        let (command, m) = (self.host().command.load(Relaxed), self.memory());
        m.signals.command.set(command);
        command != m.life.acknowledged.get()
    }

    /// One thread: tells the host that requests below `next` are consumed.
    #[inline(always)]
    pub fn publish_consumed(&self, next: u64) {
        self.memory().inbox.publish_consumed(self.threads_of_block(), self.requests(), next);
    }

    /// Thread 0: says that the last command is obeyed, after exact counters.
    #[inline(always)]
    pub fn acknowledge(&self, state: State) {
        self.report();
        let epoch = Command::from_word(self.memory().life.acknowledged.get()).epoch;
        let done = Command { epoch, state: state as u32 };
        // SYNC: releases the counters to the host's acquire of `acknowledged`.
        self.status().acknowledged.store(done.to_word(), Release);
    }

    /// Thread 0: writes counters, heartbeat and the exact credit for requests.
    #[inline(always)]
    fn report(&self) {
        let next = self.memory().inbox.next.get();
        if !Self::EMITS {
            self.publish_consumed(next); // a kernel with ports tells each producer by itself
        }
        let now = self.now();
        self.publish_counters(next, now);
    }

    /// Thread 0, between two messages: counters and heartbeat, if it is time; whether it was. The lease is looked at then. And a
    /// [tick](Self::tick) of the state, if it has some.
    #[inline(always)]
    pub fn beat(&self, next: u64, now: u64) -> bool {
        let due = now.wrapping_sub(self.memory().telemetry.beat.get()) >= HEARTBEAT;
        if due {
            self.publish_counters(next, now);
            self.memory().lease.look(now, self.control());
        }
        self.tick(now);
        due
    }

    /// Whether its handlers call the host.
    pub const CALLS: bool = K::CALLS > 0;

    /// Whether it can note what it does in a trace ring.
    pub const TRACES: bool = K::TRACED;

    /// Whether its state has ticks.
    pub const TICKS: bool = <K::Scope as Scope<K>>::TICKS_APART > 0;

    /// Thread 0, between two messages: gives the state a tick, if it is time and the channel is active.
    #[inline(always)]
    fn tick(&self, now: u64) {
        let (m, apart) = (self.memory(), <K::Scope as Scope<K>>::TICKS_APART);
        if !Self::TICKS || !m.life.active.get() || !m.ticks.is_due(now, apart) {
            return;
        }
        self.status().ticked.store(now, Relaxed);
        if K::USES_PAYLOAD {
            self.fence(); // what the host wrote before is seen
        }
        // SAFETY: this is the thread that handles all messages of a channel with a state, and it handles none now. Where the host may
        // have written the state there was a fence since, when the channel was made active.
        unsafe { <K::Scope as Scope<K>>::tick(self.block, self.payload()) }
        if K::USES_PAYLOAD {
            self.fence();
        }
    }

    /// A warp, behind a [tick](Self::tick): ends if that panicked.
    #[inline(always)]
    pub fn exit_if_tick_panicked(&self) {
        if Self::TICKS {
            self.exit_if_warp_panicked();
            self.warp_sync();
        }
    }

    /// Thread 0: writes counters and heartbeat.
    #[inline(always)]
    fn publish_counters(&self, next: u64, now: u64) {
        let (m, status) = (self.memory(), self.status());
        m.telemetry.beat.set(now);
        let ahead = (m.inbox.seen_tail.get() as u32).wrapping_sub(next as u32);
        let depth = if ahead <= self.requests().capacity() { ahead } else { 0 };
        // Inside a run of slots the line that was looked at does not tell of it.
        let depth = u64::from(depth).max(m.inbox.tail.get().saturating_sub(next));
        status.processed.store(next - self.requests().start(), Relaxed);
        status.refused.store(m.telemetry.refused.get(), Relaxed);
        status.depth.store(depth, Relaxed);
        status.heartbeat.store(now, Relaxed);
        status.ticks.store(self.ticks(), Relaxed);
    }

    /// Warp 0: writes the histograms to the channel's block, and of a channel with ports how far the ends of its rings are.
    #[inline(always)]
    pub fn flush(&self) {
        let telemetry = &self.memory().telemetry;
        telemetry.flush(
            self.threads_of_block(),
            &self.lines().times,
            Self::BY_WARP || Self::EMITS || Self::ANSWERS_INLINE,
        );
        if Self::EMITS {
            self.report_links();
        }
    }

    /// Warp 0: leaves exact counters, and what the next launch goes on from, and ends the channel.
    #[inline(always)]
    pub fn leave(&self, why: Exit) {
        self.flush();
        if Self::TICKS && why.is_yield() {
            // Launches may be shorter than it is from one look at the clock to the next.
            if self.is_lane_0() {
                self.tick(self.now());
            }
            self.exit_if_tick_panicked();
        }
        if self.is_lane_0() {
            let (m, status) = (self.memory(), self.status());
            m.budget.call_others(why, self.channel(), launch(self.block), status);
            self.report();
            let before = m.boot.word(boot::STATUS, offset_of!(StatusLine, errors));
            let errors = before.wrapping_add(u64::from(why == Exit::CorruptRing));
            status.errors.store(errors, Relaxed);
            let (next, is_open) =
                (m.inbox.next.get(), m.outbox.slots_end.get() == m.inbox.next.get());
            let run_start = if is_open { m.outbox.run_start.get() } else { next };
            status.run_start.store(run_start, Relaxed);
            status.scrubbed.store(m.outbox.scrubbed.get(), Relaxed);
            if Self::CALLS {
                status.called.store(m.calls.next.load(Relaxed), Relaxed);
            }
            if Self::TRACES && m.trace.is_on() {
                status.traced.store(m.trace.traced(), Relaxed);
            }
            let epoch = Command::from_word(m.life.acknowledged.get()).epoch;
            publish_exit(self.block, self.lines(), epoch, why);
        }
    }
}

/// The number of this launch, from 1.
#[inline(always)]
pub(super) fn launch(block: ThreadBlock<'_>) -> u64 {
    block.memory().boot.word(boot::STATUS, offset_of!(StatusLine, launches_left)).wrapping_add(1)
}

/// The payload arena of the configuration, for a handler whose kernel declares that it uses such memory or not.
///
/// # Safety
/// It is memory of this kernel's own, 128-byte aligned, that stays for as long as it is used.
#[inline(always)]
pub(super) unsafe fn payload<'a>(block: ThreadBlock<'a>, is_declared: bool) -> Payload<'a> {
    let boot = &block.memory().boot;
    let at = boot.word(boot::CONFIG, offset_of!(ConfigLine, payload));
    let bytes = boot.word(boot::CONFIG, offset_of!(ConfigLine, payload_bytes));
    // SAFETY: the caller's promise.
    unsafe { Payload::new((at, bytes), is_declared, &block.memory().signals.uses_payload) }
}

/// One thread: writes the last that a channel says in a launch. Nothing is written after it, but for what other
/// threads of the block write, when it is called by one whose handler panicked.
#[inline(always)]
pub(super) fn publish_exit(block: ThreadBlock<'_>, lines: &ChannelBlock, epoch: u32, why: Exit) {
    let (status, launch) = (&lines.status, launch(block));
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
    status.launches_left.store(launch, Release);
}
