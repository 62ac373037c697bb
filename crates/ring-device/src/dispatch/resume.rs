//! The beginning of a launch: what the launch before left, checked, and the host's command.

use super::channel::{Channel, launch, publish_exit};
use crate::block::{Cooperate, Threads};
use crate::kernel::{Kernel, Scope};
use crate::memory::boot;
use crate::memory::budget::Limits;
use crate::memory::claims::Claims;
use crate::memory::end::End;
use crate::memory::grid::GridMemory;
use crate::memory::signals::Wake;
use crate::thread_block::ThreadBlock;
use core::mem::offset_of;
use core::sync::atomic::Ordering::{Relaxed, Release};
use ring_shared::layout::{
    ChannelBlock, Command, ConfigLine, ControlBlock, CreditLine, Exit, HostLine, Placement,
    Processing, State, StatusLine, TRACED, UNLIMITED,
};
use ring_shared::ring::{CONTROL, Control, MAX_START, credit_index};
use ring_shared::{ABI_VERSION, MAGIC};

/// The greatest index that a launch resumes from: so far from the end of 64 bits that no launch reaches it.
const MAX_NEXT: u64 = MAX_START + (1 << 62);

/// The message that a launch answered before it began, if there was one.
#[derive(Clone, Copy)]
pub(super) struct First {
    /// Whether there was one.
    pub answered: bool,
    /// Ticks of its handler.
    pub took: u64,
    /// Ticks from the beginning of the launch to that of the handler.
    pub waited: u64,
    /// When it ended, in ticks.
    pub ended: u64,
    /// Whether, or how often, the handler refused it.
    pub refused: u64,
}

impl First {
    pub const NONE: First = First { answered: false, took: 0, waited: 0, ended: 0, refused: 0 };
}

/// Whether there is a kernel of our kind, and the channel is one of its channels.
#[inline(always)]
pub(super) fn is_ours(block: ThreadBlock<'_>) -> bool {
    is_ours_of(block, block.channel())
}

/// The same of that channel.
#[inline(always)]
pub(super) fn is_ours_of(block: ThreadBlock<'_>, channel: u32) -> bool {
    let boot = &block.memory().boot;
    boot.word(boot::HOST, offset_of!(HostLine, magic)) == MAGIC
        && boot.half(boot::HOST, offset_of!(HostLine, abi_version)) == ABI_VERSION
        && channel < boot.half(boot::HOST, offset_of!(HostLine, channels))
}

/// Why the channel, as the launch before left it, cannot run, if so. Called by all threads.
///
/// # Safety
/// The memory that the configuration names is there and stays for as long as the channel is used.
#[inline(always)]
pub(super) unsafe fn check<K: Kernel>(
    block: ThreadBlock<'_>,
    control: *const ControlBlock,
    lines: *const ChannelBlock,
) -> Option<Exit> {
    let boot = &block.memory().boot;
    let (requests, responses) = ends::<K>(boot);
    let channels = boot.half(boot::HOST, offset_of!(HostLine, channels));
    let memory = boot.word(boot::CONFIG, offset_of!(ConfigLine, memory_bytes));
    let placed = Placement::check(
        &requests.placement(),
        &responses.placement(),
        (control as usize as u64, memory),
        (block.channel(), channels),
    );
    // Response i answers request i.
    if placed.is_err()
        || !requests.fits()
        || !responses.fits()
        || requests.start() != responses.start()
    {
        return Some(Exit::BadConfig);
    }
    let state = boot.word(boot::RINGS, offset_of!(ChannelBlock, state_bytes));
    if (<K::Scope as Scope<K>>::STATE_BYTES as u64) > state || limits::<K>(block).is_none() {
        return Some(Exit::BadConfig);
    }
    if <K::Scope as Scope<K>>::IS_GRID && GridMemory::of::<K>(block).is_none() {
        return Some(Exit::BadConfig);
    }
    if !has_own_lines(requests, responses, lines) {
        block.sync(); // all have read what the boot's look showed
        let credits = boot::REQUEST_CREDIT..boot::FIRST_CONTROL;
        // Two addresses, and not one that is read from a place which depends on the thread: by these it is told what
        // a thread reads.
        let at = |credit| Threads::opaque(core::ptr::from_ref::<CreditLine>(credit)).cast();
        let (request_credit, response_credit) = (at(requests.credit()), at(responses.credit()));
        // SAFETY: lines in the kernel's memory, as just checked.
        unsafe {
            boot.read_from(*block, credits, |k| match k {
                boot::REQUEST_CREDIT => Some(request_credit),
                boot::RESPONSE_CREDIT => Some(response_credit),
                _ => None,
            });
        }
        block.sync();
        let next = boot.word(boot::REQUEST_CREDIT, 0);
        let (line, first) = (requests.line(next), requests.line(0));
        let last = requests.line(next.wrapping_sub(1));
        // SAFETY: as above.
        unsafe {
            boot.read_from(*block, 0..boot::ATOMS, |k| match k {
                boot::FIRST_CONTROL => Some(core::ptr::from_ref(&first.atoms[CONTROL])),
                boot::LAST_CONTROL => Some(core::ptr::from_ref(&last.atoms[CONTROL])),
                k => line.atoms.get(k.wrapping_sub(boot::BELL)).map(core::ptr::from_ref),
            });
        }
        block.sync();
        // Inside a run of slots the first line tells of them.
        let control = |at| Control::from_words(boot.atom(at));
        let told = control(boot::FIRST_CONTROL).ahead_of(next).is_some();
        if block.thread() == 0 && told && control(boot::BELL + CONTROL).ahead_of(next).is_none() {
            boot.keep(boot::BELL + CONTROL, boot.atom(boot::FIRST_CONTROL));
        }
        block.sync();
    }
    (!can_be(block, requests, responses)).then_some(Exit::CorruptRing)
}

/// Both rings of the channel.
#[inline(always)]
pub(super) fn ends<K: Kernel>(boot: &boot::Words) -> (End<'_>, End<'_>) {
    (
        End::of_requests::<K::Request>(boot, Channel::<K>::SPAN),
        End::of_responses::<K::Response>(boot, Channel::<K>::SPAN),
    )
}

/// Whether the rings' lines are those in the channel's block, at which the boot has looked.
#[inline(always)]
pub(super) fn has_own_lines(
    requests: End<'_>,
    responses: End<'_>,
    lines: *const ChannelBlock,
) -> bool {
    let at = lines as usize as u64;
    let lines = |p: Placement| (p.lines, p.credit, p.line_count, p.span);
    lines(requests.placement()) == lines(Placement::of_requests(at, 0, 1, 16))
        && lines(responses.placement()) == lines(Placement::of_responses(at, 0, 1, 16))
}

/// Offset of the epoch in an acknowledgement.
pub(super) const EPOCH: usize = offset_of!(StatusLine, acknowledged) + 4;

/// The fewest and the most messages of an iteration.
#[inline(always)]
fn limits<K: Kernel>(block: ThreadBlock<'_>) -> Option<(u64, u64)> {
    const CONTINUOUS: u32 = Processing::Continuous as u32;
    const BATCH: u32 = Processing::Batch as u32;
    const ADAPTIVE: u32 = Processing::Adaptive as u32;
    let boot = &block.memory().boot;
    let asked = u64::from(boot.half(boot::CONFIG, offset_of!(ConfigLine, max_messages)));
    let timed = boot.word(boot::CONFIG, offset_of!(ConfigLine, time)) != UNLIMITED;
    let most = asked.min(Channel::<K>::most(block, timed));
    if most == 0 {
        return None;
    }
    match boot.half(boot::CONFIG, offset_of!(ConfigLine, processing)) & !TRACED {
        CONTINUOUS => Some((1, 1)),
        BATCH => Some((most, most)),
        ADAPTIVE => Some((1, most)),
        _ => None,
    }
}

/// The host's credit for responses as far as the boot has seen it: its credit line, or the newest of its doorbell lines
/// where that is ahead, as when answers went out by them and the credit line is renewed now and then only. The launch
/// before may have known of more, by a line at which the boot does not look.
#[inline(always)]
fn seen_credit(block: ThreadBlock<'_>, capacity: u32) -> u64 {
    let boot = &block.memory().boot;
    let (line, head) = (boot.word(boot::RESPONSE_CREDIT, 0), boot.word(boot::REQUEST_CREDIT, 0));
    let told = |at: usize| {
        let control = Control::from_words(boot.atom(at));
        credit_index(control.credit, head, capacity).unwrap_or(0)
    };
    let told =
        told(boot::BELL + CONTROL).max(told(boot::FIRST_CONTROL)).max(told(boot::LAST_CONTROL));
    if line <= head && told > line { told } else { line }
}

/// Whether the indices that launches before and the host left fit each other.
#[inline(always)]
fn can_be(block: ThreadBlock<'_>, requests: End<'_>, responses: End<'_>) -> bool {
    let boot = &block.memory().boot;
    let (start, head) = (requests.start(), boot.word(boot::REQUEST_CREDIT, 0));
    let credit = seen_credit(block, responses.capacity());
    let run_start = boot.word(boot::STATUS, offset_of!(StatusLine, run_start));
    let scrubbed = boot.word(boot::STATUS, offset_of!(StatusLine, scrubbed));
    let so_far = start..=head;
    head <= MAX_NEXT
        && so_far.contains(&boot.word(boot::RESPONSE_CREDIT, 0))
        && so_far.contains(&credit)
        // One ring of answers ahead of the host's credit, which its credit line follows by less than another.
        && head - credit <= 2 * u64::from(responses.capacity())
        && so_far.contains(&run_start)
        && so_far.contains(&scrubbed)
}

/// Whether an earlier launch lost the channel: one may be queued behind it.
#[inline(always)]
pub(super) fn is_lost(block: ThreadBlock<'_>) -> bool {
    let boot = &block.memory().boot;
    boot.half(boot::STATUS, offset_of!(StatusLine, acknowledged)) == State::Faulted as u32
}

/// A lost channel leaves as it is, and does not keep the others.
#[inline(always)]
pub(super) fn skip_launch(block: ThreadBlock<'_>, lines: &ChannelBlock) {
    if block.thread() == 0 {
        let launch = launch(block);
        lines.status.busy.store(0, Relaxed);
        if block.channel() == 0 {
            lines.status.call.store(launch, Relaxed);
        }
        // SYNC: released to the host's acquire of `launches_left`.
        lines.status.launches_left.store(launch, Release);
    }
}

/// A channel that cannot run leaves: its counters stay as they are.
#[inline(always)]
pub(super) fn refuse(block: ThreadBlock<'_>, lines: &ChannelBlock, why: Exit) {
    if block.thread() == 0 {
        let boot = &block.memory().boot;
        if block.channel() == 0 {
            lines.status.call.store(launch(block), Relaxed);
        }
        if why == Exit::CorruptRing {
            let errors = boot.word(boot::STATUS, offset_of!(StatusLine, errors));
            lines.status.errors.store(errors.wrapping_add(1), Relaxed);
        }
        publish_exit(block, lines, boot.half(boot::STATUS, EPOCH), why);
    }
}

impl<K: Kernel> Channel<'_, K> {
    /// Fills the block's memory, and takes the host's command as it was when the launch began, at
    /// `began` nanoseconds and `ticks`.
    #[inline(always)]
    pub fn begin(&self, (began, ticks): (u64, u64), first: First) {
        let m = self.memory();
        m.telemetry.clear(self.threads_of_block());
        let command = m.boot.word(boot::COMMAND, 0);
        let state = Command::from_word(command).state;
        let epoch = m.boot.half(boot::STATUS, EPOCH);
        // No command yet, or one that an earlier launch acknowledged.
        let known = command >> 32 == u64::from(epoch) && state != State::Terminated as u32;
        if self.thread() == 0 {
            self.begin_pieces(began, ticks);
            m.signals.wake.set(if known { Wake::None } else { Wake::Command });
            m.signals.command.set(command);
            m.signals.fresh.set(true);
            m.signals.answered_first.set(first.answered);
            m.life.acknowledged.set(if known { command } else { u64::from(epoch) << 32 });
            m.life.active.set(known && state == State::Active as u32);
            m.telemetry.first[0].set(first.took);
            m.telemetry.first[1].set(first.waited);
            m.telemetry.first[2].set(first.ended);
            self.add(&m.telemetry.refused, first.refused);
            if command == 0 {
                self.acknowledge(State::Launched);
            }
        }
    }

    /// Thread 0: what the block's memory says when the launch begins.
    #[inline(always)]
    fn begin_pieces(&self, began: u64, ticks: u64) {
        let m = self.memory();
        let status = |at| m.boot.word(boot::STATUS, at);
        let config = |at| m.boot.word(boot::CONFIG, at);
        let next = m.boot.word(boot::REQUEST_CREDIT, 0);
        let time = config(offset_of!(ConfigLine, time));
        let processing = m.boot.half(boot::CONFIG, offset_of!(ConfigLine, processing));
        let (processing, is_traced) = (processing & !TRACED, processing & TRACED != 0);
        m.inbox.next.set(next);
        m.inbox.tail.set(next);
        m.inbox.claims.set(Claims::open(next));
        m.inbox.width.set(0);
        m.inbox.missing.set(0);
        m.inbox.turns.set(1); // look 0 would be at the command, at which the boot has looked
        m.inbox.look_due.set(0);
        m.inbox.timed.set(0);
        m.inbox.published.set(next);
        m.inbox.seen_tail.set(m.boot.word(boot::BELL + CONTROL, 8) >> 32);
        m.outbox.committed.store(next as u32, Relaxed);
        let capacity = self.responses().capacity();
        // The launch before had room for each of its answers, so the host has read all but a ring's of them.
        let answered = next.saturating_sub(u64::from(capacity));
        m.outbox.consumed.set(seen_credit(self.block, capacity).max(answered));
        m.outbox.run_start.set(status(offset_of!(StatusLine, run_start)));
        // Else the last was inline, for which all before it in slots were read.
        let is_open = m.outbox.run_start.get() != next;
        m.outbox.slots_end.set(if is_open { next } else { m.outbox.consumed.get() });
        m.outbox.await_credit(0);
        m.outbox.scrubbed.set(status(offset_of!(StatusLine, scrubbed)));
        let capacity = self.requests().capacity().min(self.responses().capacity());
        m.progress.chunk.set(Self::chunk_of(self.block, time != UNLIMITED, capacity));
        m.budget.begin(
            began,
            self.channel(),
            Limits {
                time,
                iterations: config(offset_of!(ConfigLine, iterations)),
                idle: config(offset_of!(ConfigLine, idle)),
                eager: processing == Processing::Continuous as u32,
                messages: limits::<K>(self.block).unwrap_or((1, 1)),
            },
        );
        if Self::TICKS {
            let ticked = &self.status().ticked; // a read across the bus
            ticked.store(m.ticks.begin(began, ticked.load(Relaxed)), Relaxed);
        }
        if Self::CALLS {
            let slots = self.lines().calls.load(Relaxed); // two reads across the bus
            m.calls.begin(slots, self.status().called.load(Relaxed));
        }
        if Self::TRACES && !is_traced {
            m.trace.begin_without();
        } else if Self::TRACES {
            let rings = self.control().config.trace.load(Relaxed); // two reads across the bus
            m.trace.begin(rings, self.channel(), self.status().traced.load(Relaxed));
        }
        m.lease.begin(began, m.boot.word(boot::COMMAND, 8));
        m.telemetry.begin(began, ticks, status(offset_of!(StatusLine, refused)));
    }
}
