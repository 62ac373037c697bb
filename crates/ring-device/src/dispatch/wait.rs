//! Waiting: the polling warps look at the doorbell until there is something for the whole block,
//! and answer inline messages by themselves where the kernel's scope allows it.

use super::await_inline::{Answered, Awaited};
use super::channel::{Channel, launch};
use crate::block::cell::Word;
use crate::block::{Cooperate, Threads};
use crate::kernel::Kernel;
use crate::memory::claims::Claims;
use crate::memory::inbox::{Look, Sought, has_line};
use crate::memory::outbox::PATIENCE;
use crate::memory::signals::{Decision, Wake};
use ring_shared::Message;
use ring_shared::atomics::Ordering::{Acquire, Relaxed};
use ring_shared::ring::{Seen, decide, stamp};

/// Idle looks in a row after which one pair of warps looks.
const NARROW: u32 = 32;

/// Looks at the doorbell for each look at the host's command line.
pub(super) const LOOKS_PER_COMMAND: u32 = 16;

/// What a polling warp knows before it looks.
#[derive(Clone, Copy)]
struct Turn {
    claims: Claims,
    /// How far warps look.
    width: u32,
    /// The block is woken.
    woken: bool,
    /// It is the warp's turn to look.
    may_look: bool,
}

/// Cycles that must lie between two looks of a pair of warps, nearly half a read across the bus, or a round trip that
/// fits the looks' rhythm brings both into step: on an H200 the median round trip is then 2.75 us and not 2.0.
const APART: u32 = 800;

/// The same where there are many messages in flight, at several lines: two thirds of a look, which takes 2700 cycles while the
/// host writes those lines. Reads of one line queue up: 400 cycles apart, both looks take longer, and the later one mostly
/// shows what the other warp has claimed by then.
const APART_MANY: u32 = 1800;

impl<K: Kernel> Channel<'_, K> {
    /// Returns when the block is woken; threads that do not poll return at once.
    #[inline(always)]
    pub fn wait(&self) {
        let poller = self.warp();
        if poller >= self.pollers() {
            return;
        }
        let active = self.broadcast(u64::from(self.memory().life.active.get())) != 0;
        if poller > 0 && !active {
            return; // one warp is enough to wait for a command
        }
        let (eager, limited) = (self.memory().budget.is_eager(), self.memory().budget.is_limited());
        let awaits = Self::AWAITS_INLINE && active && !limited;
        // Looks of this wait, or of all waits where each message ends one; idle looks in a row.
        let (mut turns, mut looks) = (0u32, 0u32);
        if Self::STAGES {
            turns = self.broadcast(self.memory().inbox.turns.get()) as u32;
        }
        // What is not told and counted yet: the launch may have begun with an answer.
        let (mut answered, mut fresh) = (Answered::NONE, false);
        let mut next = self.broadcast(self.memory().inbox.next.get());
        if poller == 0 {
            let signals = &self.memory().signals;
            let n = self.broadcast(u64::from(signals.answered_first.get())) as u32;
            let [took, waited, ended] = &self.memory().telemetry.first;
            answered = Answered { n, took: took.get() as u32, waited: waited.get() as u32 };
            if Self::TRACES && n > 0 && self.is_lane_0() {
                let began = ended.get().wrapping_sub(took.get());
                let unseen = began.wrapping_sub(waited.get());
                self.trace((next.wrapping_sub(1), 1), (began, ended.get()), unseen);
            }
            // The boot made the first look. It is used when messages are taken, however much later: inside a run of slots no
            // line but the first, at which only the boot looks, tells of the next.
            fresh = active && self.broadcast(u64::from(signals.fresh.get())) != 0;
            if self.is_lane_0() {
                signals.answered_first.set(false);
                if active {
                    signals.fresh.set(false);
                }
            }
            self.warp_sync();
            // What is known to be in slots no line but the first may tell of.
            if active && self.agreed(self.memory().inbox.tail.get() > next) {
                self.wake_with(Wake::Slots, |_| {});
            }
        }
        loop {
            let this = self.optimization_barrier();
            let (m, threads) = (this.memory(), this.threads_of_block());
            let (requests, warp) = (this.requests().lines(), (threads, Self::SPAN));
            let turn = this.turn(poller, next);
            next = turn.claims.next(next);
            let Turn { claims, woken, width, .. } = turn;
            if woken {
                if poller > 0 || this.stand_still(claims, next) {
                    break;
                }
            } else if !turn.may_look && !fresh {
                if poller >= 2 << width {
                    this.settle(&mut answered, next, || this.now());
                    this.rest(width == 0);
                }
                continue;
            }
            let first = core::mem::take(&mut fresh);
            // Of a request that takes several lines the boot has looked at the first only; a CPU reads the others later.
            let whole = !first || Self::SPAN.0 == 1 || Threads::LINES == 1;
            let often = eager || !active || this.may_sleep(looks);
            let often = often || turns.is_multiple_of(LOOKS_PER_COMMAND);
            let at_command = poller == 0 && !first && often && !woken;
            let several = width > 0 || !claims.is_contiguous();
            let many = Self::ANSWERS_INLINE && several && !first && !at_command && !woken;
            // Each pair of warps has every so many'th group of requests, as many as it sees in one look.
            let (mut base, most) = (next as u32, if many { Self::SPAN.messages() } else { 1 });
            if many && !Self::IN_ORDER {
                let group = base / most;
                let behind = (poller / 2).wrapping_sub(group) & ((1 << width) - 1);
                base = group.wrapping_add(behind).wrapping_mul(most);
            }
            let look = if first {
                Look::of_boot(warp, &m.boot)
            } else if awaits && width == 0 && !at_command && !woken {
                if !Self::STAGES {
                    this.settle(&mut answered, next, || this.now()); // while the look is held back
                }
                let looks_until_command = LOOKS_PER_COMMAND - turns % LOOKS_PER_COMMAND;
                let (before, awaited) = this.await_inline(requests, next, looks_until_command);
                turns = turns.wrapping_add(before);
                looks = looks.saturating_add(before);
                match awaited {
                    Awaited::Look(look) => look,
                    Awaited::Staged => {
                        turns = turns.wrapping_add(1);
                        break;
                    }
                    Awaited::Answered(inline) => {
                        turns = turns.wrapping_add(1);
                        (answered, looks) = (inline, 0);
                        next += u64::from(inline.n);
                        continue;
                    }
                }
            } else {
                let caller = if at_command { this.caller() } else { None };
                let host = at_command.then(|| this.host());
                m.inbox.look(
                    (threads, &m.telemetry),
                    (requests, base),
                    (many, Self::ACQUIRES),
                    host,
                    caller,
                )
            };
            // On the GPU the bus takes a microsecond from here to where `look` is used.
            (turns, looks) = (turns.wrapping_add(1), looks.saturating_add(1));
            if poller == 0 && !first && !m.telemetry.has_earlier(threads) {
                m.telemetry.add_earlier(threads, &this.lines().times);
            }
            let mut now = 0;
            if at_command || limited {
                now = this.now();
            }
            this.settle(&mut answered, next, || now);
            let (free, aim) = (claims.unclaimed(base, most), this.aim(base, poller));
            let free = Threads::opaque32(free); // worked out here, and not when the look is there
            let sought = if Self::ANSWERS_INLINE {
                // A claimed request behind the first unclaimed one had credit that covers that one too, which could not
                // be answered in a slot any more. (`base` is no stamp of this look.)
                let credited =
                    if claims.is_contiguous() { base } else { (next as u32).wrapping_add(1) };
                let (slots_end, known) = (m.outbox.slots_end.get(), m.outbox.line_credit.get());
                Sought {
                    atoms: Self::ATOMS,
                    window: this.responses().window(),
                    slots_end: slots_end as u32,
                    known: known as u32,
                    next: next as u32,
                    credited,
                }
            } else {
                Sought::default()
            };
            if at_command {
                if look.commands(warp, m.life.acknowledged.get()) {
                    let command = look.command(warp);
                    this.wake_with(Wake::Command, |signals| signals.command.set(command));
                    continue;
                }
                look.tell_control(threads, |control| {
                    m.inbox.seen_tail.set(control.tail.into());
                    m.outbox.note_line_credit(control.credit); // long before it could be 2^31 messages behind
                });
            }
            // All of the look that is of use behind an answer, which needs its registers.
            let asked_call = (first || at_command) && limited && this.caller().is_some();
            let called = asked_call && look.call(warp) == launch(this.block);
            let mut ready = 0;
            if Self::ANSWERS_INLINE && active && whole {
                ready = free & look.ready(warp, sought, aim, this.atoms_of(base));
                // `base` is the next request. Until it is there, none behind it may be handled.
                ready = if Self::IN_ORDER && ready & 1 == 0 { 0 } else { ready };
            }
            let acted = if Self::ANSWERS_INLINE && ready != 0 {
                let of = (next, base, ready, many);
                let by = (poller, limited);
                let slots_end = sought.slots_end;
                let (n, began, ended) = this.answer_inline(look, claims, of, slots_end, by, aim);
                answered = Answered::new(n, (began, ended), m.telemetry.before(poller));
                if Self::POLLS_ALONE {
                    next += u64::from(n);
                }
                true
            } else {
                // Only who looks at the next request finds what else there is to do.
                let message = (next as u32).wrapping_sub(base);
                let shown = active && !woken && message < most;
                let shown = shown && look.tells_of(warp, message, next);
                let is_inline = || {
                    let capacity = this.requests().capacity();
                    decide(look.control(warp, message), next, capacity) == Seen::Inline
                };
                let shown = shown && (whole || !is_inline());
                shown && {
                    let (acted, done) = this.act_on(look, (claims, next), message, poller);
                    answered = done;
                    acted
                }
            };
            if acted && Self::STAGES && !limited && !at_command {
                break; // it has woken the block, and nobody claims
            }
            if at_command {
                let mut due = false;
                if this.is_lane_0() {
                    due = this.beat(next, now);
                }
                this.exit_if_tick_panicked();
                if Threads::LINES > 1 && looks > NARROW && this.is_lane_0() {
                    m.inbox.width.set(0);
                }
                if this.agreed(due) {
                    if this.is_lane_0() {
                        this.publish_consumed(next); // warps tell in any order
                    }
                    this.flush();
                    if this.agreed(m.lease.has_expired()) {
                        this.wake_to_leave(Decision::LeaseOver); // unless the block is awake: the next heartbeat finds it again
                        continue;
                    }
                }
            }
            if poller == 0 && limited {
                let mut spent = Decision::Continue;
                if this.is_lane_0() {
                    spent = m.budget.spend(now, !acted, called, || this.channels());
                    if spent == Decision::Idle && !called && this.other_poller_answers(next) {
                        m.budget.note_handled(now);
                        spent = Decision::Continue;
                    }
                }
                let spent = Decision::from_word(this.broadcast(spent.to_word()));
                if spent != Decision::Continue {
                    this.wake_to_leave(spent); // unless the block is awake: budgets are looked at again
                    continue;
                }
            }
            if acted {
                looks = 0;
            } else {
                this.pause(looks, active);
            }
        }
        if Self::STAGES && self.is_lane_0() {
            self.memory().inbox.turns.set(turns.into());
        }
        self.settle(&mut answered, next, || self.now());
    }

    /// A polling warp: what it must know before it looks. Lane 0 reads all of it at once and decides; the others are
    /// told. The first unclaimed request was `next` before.
    #[inline(always)]
    fn turn(&self, poller: u32, next: u64) -> Turn {
        let (m, threads) = (self.memory(), self.threads_of_block());
        if Self::POLLS_ALONE {
            return self.turn_alone(next);
        }
        let (claims, width) = (m.inbox.claims.get(), m.inbox.width.get() as u32);
        let woken = m.signals.wake.get() != Wake::None;
        if Threads::WARP == 1 {
            return Turn { claims, width, woken, may_look: true };
        }
        let looked = m.telemetry.looked(poller);
        let (last, now) = (looked.get(), self.ticks());
        let mut may_look = false;
        if self.is_lane_0() {
            let apart = if width > 0 { APART_MANY } else { APART };
            let passed = (now as u32).wrapping_sub(last as u32);
            let is_due = poller < 2 << width && passed >= apart;
            // One warp of a pair wins: two that looked at once would come back at once, and do so for ever.
            may_look = !woken && is_due && threads.compare_and_swap(looked.word(), last, now);
            if may_look {
                let tally = m.telemetry.tally(poller);
                tally.before.set(last);
                tally.at.set(now);
            }
        }
        let found = u32::from(woken) | u32::from(may_look) << 1 | width << 2;
        let found = self.broadcast32(found);
        Turn {
            claims: Claims::from_word(self.broadcast(claims.to_word())),
            woken: found & 1 != 0,
            may_look: found & 2 != 0,
            width: found >> 2,
        }
    }

    /// The same where one warp polls: it knows by itself what it has claimed.
    #[inline(always)]
    fn turn_alone(&self, next: u64) -> Turn {
        let m = self.memory();
        self.warp_sync(); // what its threads have set before
        if self.is_lane_0() {
            let tally = m.telemetry.tally(0);
            tally.before.set(tally.at.get());
            tally.at.set(self.ticks());
        }
        let width = if Self::IN_ORDER { m.inbox.width.get() as u32 } else { 0 };
        let woken = m.signals.wake.get() != Wake::None;
        Turn { claims: Claims::open(next), width, woken, may_look: !woken }
    }

    /// One thread: `depth` messages were in flight when one of them was sent that its warp has answered.
    #[inline(always)]
    pub fn widen(&self, depth: u32) {
        if Threads::LINES == 1 {
            return;
        }
        // 0 for one message, 1 for two, 2 for six, 3 for fourteen, if a warp sees four at once, and for fewer if it sees
        // fewer; each pair is two warps, and a block has not always as many.
        let depth = match depth {
            2.. => depth.saturating_mul(Threads::LINES as u32 / Self::SPAN.messages()),
            depth => depth,
        };
        let most = if Self::IN_ORDER { 1 } else { (self.pollers() / 2).max(1).ilog2() };
        let best = u64::from((depth.saturating_add(2).ilog2().max(1) - 1).min(most));
        let width = &self.memory().inbox.width;
        if width.get() != best {
            width.set(best);
        }
    }

    /// Polling warp 0, when the block is woken: whether it may go to work. Before, all requests must be answered
    /// up to the last that is claimed, and nobody may claim more. If one of them is not there for long, it will not be.
    #[inline(always)]
    fn stand_still(&self, claims: Claims, next: u64) -> bool {
        const MOST_LOOKS: u64 = 1 << 12;
        let (m, threads) = (self.memory(), self.threads_of_block());
        let mut still = false;
        if self.is_lane_0() {
            still = m.inbox.close(threads, claims, next);
            if !still && m.life.panicked.get() {
                still = true;
            } else if !still && !claims.is_closed() {
                m.inbox.missing.count(1);
                if m.inbox.missing.get() > MOST_LOOKS {
                    m.signals.decision.set(Decision::CorruptRing);
                    m.signals.wake.set(Wake::Leave);
                    still = true;
                }
            }
            if still {
                m.inbox.next.set(next);
            }
        }
        self.agreed(still)
    }

    /// One thread: whether a request is claimed whose response is not out yet; `next` was the first unclaimed one.
    #[inline(always)]
    fn other_poller_answers(&self, next: u64) -> bool {
        let (claims, committed) = (&self.memory().inbox.claims, &self.memory().outbox.committed);
        let claims = claims.get();
        let claimed = claims.next(next) + u64::from(claims.claimed_ahead());
        let answers = committed.load(Relaxed) != claimed as u32;
        self.fence_block(); // before this warp writes behind that response
        answers
    }

    /// A polling warp: what is left to do about inline messages that it `answered`, while it has nothing better to do.
    /// Requests before `next` are claimed.
    #[inline(always)]
    fn settle(&self, answered: &mut Answered, next: u64, now: impl Fn() -> u64) {
        let Answered { n, took, waited } = core::mem::replace(answered, Answered::NONE);
        if n == 0 {
            return;
        }
        if self.is_lane_0() {
            // Requests before that may still be under way in other warps, or their answers land later. Nothing goes
            // wrong then: the host sends the next one of the same line, and each answer is proved by its own
            // stamps, goes inline only when the host has read what was in its line, and into a slot only when
            // all before it are out. Credit of another warp may land before this: the host takes the greater.
            self.publish_consumed(next);
            let m = self.memory();
            m.telemetry.count_some(self.threads_of_block(), n, took.into(), waited.into());
            m.budget.next_batch_limit(false);
            self.note_handled(now());
        }
        self.warp_sync();
    }

    /// Acts on what a look shows of request `next`, its `message`th: whether it showed something, all of it, and
    /// what the calling warp has answered. The claims were `seen` when `next` was the first unclaimed request.
    #[inline(always)]
    fn act_on(
        &self,
        look: Look,
        (seen, next): (Claims, u64),
        message: u32,
        poller: u32,
    ) -> (bool, Answered) {
        const NOTHING: (bool, Answered) = (false, Answered::NONE);
        const ACTED: (bool, Answered) = (true, Answered::NONE);
        let (m, warp) = (self.memory(), (self.threads_of_block(), Self::SPAN));
        let control = look.control(warp, message);
        match decide(control, next, self.requests().capacity()) {
            Seen::Nothing => NOTHING,
            Seen::Inline => {
                let takes_several = K::Request::SPAN > 1;
                if !K::Request::FITS_INLINE || (takes_several && self.requests().window() == 0) {
                    self.wake_to_leave(Decision::CorruptRing);
                    return ACTED;
                }
                let sought = (Self::ATOMS, stamp(next));
                if !look.is_stamped(warp, message, sought, self.atoms_of(next as u32)) {
                    return NOTHING;
                }
                // Why nobody acquires the credit is said in `commit_inline`.
                let (index, credit) = (next as u32, m.outbox.newest_credit(control.credit));
                let (window, slots_end) = (self.responses().window(), m.outbox.slots_end.get());
                let line_is_free = has_line(index, credit, (window, slots_end as u32));
                let may_wait = K::Response::FITS_INLINE && window > 0;
                if may_wait && !self.agreed(line_is_free) && self.awaits_credit(next, credit) {
                    return NOTHING;
                }
                if !Self::BY_WARP {
                    if !Self::STAGES && self.agreed(line_is_free) {
                        return NOTHING; // the poller answers it by itself, at another look
                    }
                    self.prepare_window();
                    let is_checked = m.budget.is_limited() || m.budget.is_eager();
                    let unseen = m.telemetry.before(poller);
                    self.stage_for_block(look, (next, message), (line_is_free, is_checked), unseen);
                    return ACTED;
                }
                if Self::ANSWERS_INLINE && self.agreed(line_is_free) {
                    return NOTHING; // another warp has claimed it, or the claims are closed
                }
                if !self.has_room(control, next) {
                    return NOTHING;
                }
                match self.answer_in_slot(look, (seen, next), message, poller) {
                    Some(times) => (true, Answered::new(1, times, m.telemetry.before(poller))),
                    None => ACTED,
                }
            }
            Seen::Slots(n) => {
                // Before slots are read, and overwritten: by the thread that read the doorbell, and for
                // lane 0, which passes its credit on.
                self.acquire_look();
                self.wake_with(Wake::Slots, |_| {
                    self.fence_block(); // for the other polling warp, if it uses this credit
                    m.inbox.tail.set(next + u64::from(n));
                    m.inbox.seen_tail.set(u64::from(control.tail));
                    let tally = m.telemetry.tally(poller);
                    m.telemetry.seen.set(tally.at.get());
                    m.telemetry.unseen.set(tally.before.get());
                    m.outbox.note_credit(self.responses(), control, next);
                });
                ACTED
            }
            Seen::Corrupt(_) => {
                // If the other polling warp answered since we read `next`, the host may rightly be
                // a full ring ahead of that answer: look again.
                if self.is_unclaimed(next) {
                    self.wake_to_leave(Decision::CorruptRing);
                }
                ACTED
            }
        }
    }

    /// A polling warp, where request `next` came inline and its response may not go inline by `credit`, the newest there
    /// is: whether the host is given more time to read responses before it. Its credit line is looked at.
    #[inline(always)]
    fn awaits_credit(&self, next: u64, credit: u32) -> bool {
        let outbox = &self.memory().outbox;
        let mut waits = false;
        if self.is_lane_0() {
            let mut reads = outbox.note_line_credit(credit);
            let patience = outbox.patience.get();
            // Without patience, now and then: the look takes as long as an answer in a slot.
            if patience > 0 || next.is_multiple_of(2) {
                // SYNC: acquires `ring_shared::Inbox::publish`: the host has read the lines.
                let consumed = self.responses().credit().consumed.load(Acquire);
                // One that cannot be is reported when a slot is needed.
                reads |= consumed <= next && outbox.note_line_credit(consumed as u32);
            }
            waits = reads || patience > 0;
            if waits {
                self.memory().budget.expect_work();
            }
            outbox.patience.set(if reads { PATIENCE } else { patience.saturating_sub(1) });
        }
        self.agreed(waits)
    }
}
