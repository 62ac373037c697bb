//! The beginning of a launch: what the launch before left, checked, and the host's command.

use super::at_once::First;
use super::end::End;
use super::{Channel, event, part};
use crate::context::Payload;
use crate::kernel::{Kernel, Scope};
use crate::team::{Team, boot, flag};
use core::mem::offset_of;
use core::sync::atomic::Ordering::{Relaxed, Release};
use ring_shared::layout::{
    ChannelBlock, Command, ConfigLine, ControlBlock, Exit, HostLine, Placement, Processing,
    RingDescriptor, State, StatusLine, UNLIMITED,
};
use ring_shared::ring::{CONTROL, Control, MAX_START, credit_index};
use ring_shared::{ABI_VERSION, MAGIC, Message};

/// Nanoseconds that a launch without any message yet may be idle, if the idle budget is longer: a
/// launch that was queued behind another one usually finds that nothing is left to do.
pub(super) const GRACE: u64 = 20_000;

/// The greatest index that a launch goes on from: as far from the end of 64 bits as no launch comes.
const MAX_HEAD: u64 = MAX_START + (1 << 62);

/// The payload arena of the configuration.
///
/// # Safety
/// It is memory of this kernel's own, 128-byte aligned, that stays for as long as it is used.
#[inline(always)]
pub(super) unsafe fn payload<'a>(team: Team<'a>) -> Payload<'a> {
    let boot = &team.memory().boot;
    let at = boot.word(boot::CONFIG, offset_of!(ConfigLine, payload));
    let bytes = boot.word(boot::CONFIG, offset_of!(ConfigLine, payload_bytes));
    // SAFETY: the caller's promise.
    unsafe { Payload::new(at, bytes) }
}

/// Whether there is a kernel of our kind, and the channel is one of its channels.
#[inline(always)]
pub(super) fn is_ours(team: Team<'_>) -> bool {
    let boot = &team.memory().boot;
    boot.word(boot::HOST, offset_of!(HostLine, magic)) == MAGIC
        && boot.half(boot::HOST, offset_of!(HostLine, abi_version)) == ABI_VERSION
        && team.channel() < boot.half(boot::HOST, offset_of!(HostLine, channels))
}

/// Why the channel, as the launch before left it, cannot run, if so. Called by all threads.
///
/// # Safety
/// The memory that the configuration names is there and stays for as long as the channel is used.
#[inline(always)]
pub(super) unsafe fn check<K: Kernel>(
    team: Team<'_>,
    control: *const ControlBlock,
    block: *const ChannelBlock,
) -> Option<Exit> {
    let boot = &team.memory().boot;
    let (requests, responses) = ends::<K>(boot);
    let channels = boot.half(boot::HOST, offset_of!(HostLine, channels));
    let memory = boot.word(boot::CONFIG, offset_of!(ConfigLine, memory_bytes));
    let placed = Placement::check(
        &requests.placement(),
        &responses.placement(),
        (control as usize as u64, memory),
        (team.channel(), channels),
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
    if (<K::Scope as Scope<K>>::STATE_BYTES as u64) > state || limits::<K>(team).is_none() {
        return Some(Exit::BadConfig);
    }
    if !has_own_lines(requests, responses, block) {
        team.sync(); // all have read what the boot's look showed
        // SAFETY: lines in the kernel's memory, as just checked.
        unsafe {
            team.reread(|k| match k {
                boot::REQUEST_CREDIT => Some(core::ptr::from_ref(requests.credit()).cast()),
                boot::RESPONSE_CREDIT => Some(core::ptr::from_ref(responses.credit()).cast()),
                k => requests.bell().atoms.get(k.wrapping_sub(boot::BELL)).map(core::ptr::from_ref),
            });
        }
        team.sync();
    }
    (!can_be(team, requests, responses)).then_some(Exit::CorruptRing)
}

/// Both rings of the channel.
#[inline(always)]
pub(super) fn ends<K: Kernel>(boot: &boot::Words) -> (End<'_>, End<'_>) {
    (
        End::of_requests(boot, K::Request::SLOT_ATOMS),
        End::of_responses(boot, K::Response::SLOT_ATOMS),
    )
}

/// Whether the rings' lines are those in the channel's block, at which the boot has looked.
#[inline(always)]
pub(super) fn has_own_lines(
    requests: End<'_>,
    responses: End<'_>,
    block: *const ChannelBlock,
) -> bool {
    let (at, lines) = (block as usize as u64, |p: Placement| (p.lines, p.credit, p.line_count));
    lines(requests.placement()) == lines(Placement::of_requests(at, 0, 1, 16))
        && lines(responses.placement()) == lines(Placement::of_responses(at, 0, 1, 16))
}

/// Offset of the epoch in an acknowledgement.
pub(super) const EPOCH: usize = offset_of!(StatusLine, acknowledged) + 4;

/// The fewest and the most messages of an iteration.
#[inline(always)]
fn limits<K: Kernel>(team: Team<'_>) -> Option<(u64, u64)> {
    const CONTINUOUS: u32 = Processing::Continuous as u32;
    const BATCH: u32 = Processing::Batch as u32;
    const ADAPTIVE: u32 = Processing::Adaptive as u32;
    let boot = &team.memory().boot;
    let asked = u64::from(boot.half(boot::CONFIG, offset_of!(ConfigLine, max_messages)));
    let timed = boot.word(boot::CONFIG, offset_of!(ConfigLine, time)) != UNLIMITED;
    let most = asked.min(Channel::<K>::most(team, timed));
    if most == 0 {
        return None;
    }
    match boot.half(boot::CONFIG, offset_of!(ConfigLine, processing)) {
        CONTINUOUS => Some((1, 1)),
        BATCH => Some((most, most)),
        ADAPTIVE => Some((1, most)),
        _ => None,
    }
}

/// The host's credit for responses: its credit line, or its doorbell where that is ahead, as when
/// answers went out by it and the line is renewed now and then only.
#[inline(always)]
fn credit(team: Team<'_>, capacity: u32) -> u64 {
    let boot = &team.memory().boot;
    let (line, head) = (boot.word(boot::RESPONSE_CREDIT, 0), boot.word(boot::REQUEST_CREDIT, 0));
    let told = Control::from_words(boot.atom(boot::BELL + CONTROL)).credit;
    let told = credit_index(told, head, capacity).unwrap_or(0);
    if line <= head && told > line { told } else { line }
}

/// Whether the indices that launches before and the host left fit each other.
#[inline(always)]
fn can_be(team: Team<'_>, requests: End<'_>, responses: End<'_>) -> bool {
    let boot = &team.memory().boot;
    let (start, head) = (requests.start(), boot.word(boot::REQUEST_CREDIT, 0));
    let credit = credit(team, responses.capacity());
    let run_start = boot.word(boot::STATUS, offset_of!(StatusLine, run_start));
    let scrubbed = boot.word(boot::STATUS, offset_of!(StatusLine, scrubbed));
    let so_far = start..=head;
    head <= MAX_HEAD
        && so_far.contains(&boot.word(boot::RESPONSE_CREDIT, 0))
        && so_far.contains(&credit)
        && head - credit <= u64::from(responses.capacity())
        && so_far.contains(&run_start)
        && so_far.contains(&scrubbed)
}

/// Whether an earlier launch lost the channel: one may be queued behind it.
#[inline(always)]
pub(super) fn is_lost(team: Team<'_>) -> bool {
    let boot = &team.memory().boot;
    boot.half(boot::STATUS, offset_of!(StatusLine, acknowledged)) == State::Faulted as u32
}

/// A lost channel leaves as it is, and does not keep the others.
#[inline(always)]
pub(super) fn pass(team: Team<'_>, block: &ChannelBlock) {
    if team.thread() == 0 {
        let launch = super::budget::launch(team);
        block.status.busy.store(0, Relaxed);
        if team.channel() == 0 {
            block.status.leave.store(launch, Relaxed);
        }
        // SYNC: released to the host's acquire of `left`.
        block.status.left.store(launch, Release);
    }
}

/// A channel that cannot run leaves: its counters stay as they are.
#[inline(always)]
pub(super) fn refuse(team: Team<'_>, block: &ChannelBlock, why: Exit) {
    if team.thread() == 0 {
        let boot = &team.memory().boot;
        if team.channel() == 0 {
            block.status.leave.store(super::budget::launch(team), Relaxed);
        }
        if why == Exit::CorruptRing {
            let errors = boot.word(boot::STATUS, offset_of!(StatusLine, errors));
            block.status.errors.store(errors.wrapping_add(1), Relaxed);
        }
        part(team, block, boot.half(boot::STATUS, EPOCH), why);
    }
}

impl<K: Kernel> Channel<'_, K> {
    /// Fills the team's memory, and takes the host's command as it was when the launch began.
    #[inline(always)]
    pub(super) fn begin(&self, began: (u64, u64), answered: First) {
        let boot = &self.team.memory().boot;
        self.clear_times();
        let command = boot.word(boot::COMMAND, 0);
        let state = Command::from_word(command).state;
        let epoch = boot.half(boot::STATUS, EPOCH);
        // Nothing yet, or acknowledged by a launch before: this one only goes on.
        let known = command >> 32 == u64::from(epoch) && state != State::Terminated as u32;
        if self.team.thread() == 0 {
            let s = self.shared();
            let first = if known { event::NONE } else { event::COMMAND };
            self.begin_shared(first, command, began);
            s.obeyed.store(if known { command } else { u64::from(epoch) << 32 }, Relaxed);
            s.active.store(u64::from(known && state == State::Active as u32), Relaxed);
            s.first.store(u64::from(answered.answered), Relaxed);
            let tally = self.team.tally(0);
            tally.took.store(answered.took, Relaxed);
            tally.waited.store(answered.waited, Relaxed);
            self.team.add(&self.shared().refused, answered.refused);
            if command == 0 {
                self.acknowledge(State::Launched);
            }
        }
    }

    /// Thread 0: what the team has in common.
    #[inline(always)]
    fn begin_shared(&self, first: u32, command: u64, (began, ticks): (u64, u64)) {
        let (team, s) = (self.team, self.shared());
        let boot = &team.memory().boot;
        let status = |at| boot.word(boot::STATUS, at);
        let config = |at| boot.word(boot::CONFIG, at);
        let head = boot.word(boot::REQUEST_CREDIT, 0);
        let idle = config(offset_of!(ConfigLine, idle));
        let (floor, ceiling) = limits::<K>(team).unwrap_or((1, 1));
        let time = config(offset_of!(ConfigLine, time));
        let counted = config(offset_of!(ConfigLine, iterations));
        let processing = boot.half(boot::CONFIG, offset_of!(ConfigLine, processing));
        let mut flags = 0;
        if time & counted & idle != UNLIMITED {
            flags |= flag::LIMITED;
        }
        if processing == Processing::Continuous as u32 {
            flags |= flag::EAGER;
        }
        let iterations = match team.channel() {
            0 => counted,
            _ => UNLIMITED, // channel 0 counts for all
        };
        s.flags.store(flags, Relaxed);
        s.fresh.store(1, Relaxed);
        s.added.store(0, Relaxed);
        let capacity = self.inbox().capacity().min(self.outbox().capacity());
        s.chunk.store(Self::chunk_of(team, time != UNLIMITED, capacity), Relaxed);
        s.head.store(head, Relaxed);
        s.answered.store(head, Relaxed);
        s.run_start.store(status(offset_of!(StatusLine, run_start)), Relaxed);
        s.credit.store(credit(team, self.outbox().capacity()), Relaxed);
        s.published.store(head, Relaxed);
        s.beat.store(began, Relaxed);
        s.lease_at.store(began, Relaxed);
        s.lease_apart.store(0, Relaxed); // the first heartbeat learns it
        s.lease_renewed.store(!boot.word(boot::COMMAND, 8), Relaxed); // so the first look counts as renewed
        s.lease_missed.store(0, Relaxed);
        s.orphaned.store(0, Relaxed);
        s.scrubbed.store(status(offset_of!(StatusLine, scrubbed)), Relaxed);
        s.command.store(command, Relaxed);
        s.looked.store(ticks, Relaxed);
        s.event.store(u64::from(first), Relaxed);
        s.began.store(began, Relaxed);
        s.time.store(time, Relaxed);
        s.iterations.store(iterations, Relaxed);
        s.idle.store(idle, Relaxed);
        s.quiet.store(began, Relaxed);
        // Without a time budget nobody queues launches: this one is to stay.
        let stays = idle == UNLIMITED || config(offset_of!(ConfigLine, time)) == UNLIMITED;
        let grace = if stays { idle } else { idle.min(GRACE) };
        s.allowed.store(grace, Relaxed);
        s.limit.store(floor, Relaxed);
        s.floor.store(floor, Relaxed);
        s.ceiling.store(ceiling, Relaxed);
        s.refused.store(status(offset_of!(StatusLine, refused)), Relaxed);
        s.wire.store(boot.word(boot::BELL + CONTROL, 8) >> 32, Relaxed);
        for poller in 0..crate::team::POLLERS as u32 {
            let tally = team.tally(poller);
            tally.at.store(ticks, Relaxed);
            tally.before.store(ticks, Relaxed);
        }
    }

    /// Index of the first message of both rings. Read in the team's memory: registers are dearer.
    #[inline(always)]
    pub(super) fn start(&self) -> u64 {
        self.team.memory().boot.word(boot::RINGS, offset_of!(RingDescriptor, start))
    }

    /// The payload arena.
    #[inline(always)]
    pub(super) fn payload(&self) -> Payload<'_> {
        // SAFETY: `run`'s caller promised it; it is this kernel's own.
        unsafe { payload(self.team) }
    }

    /// Indices that could not be, as counted by the launches before.
    #[inline(always)]
    pub(super) fn errors_before(&self) -> u64 {
        self.team.memory().boot.word(boot::STATUS, offset_of!(StatusLine, errors))
    }
}
