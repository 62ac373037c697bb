//! Waiting: the polling warps look at the doorbell until there is something for the whole block,
//! and answer inline messages by themselves where the kernel's scope allows it.

use super::channel::{Channel, launch};
use crate::block::Cooperate;
use crate::block::cell::Word;
use crate::kernel::Kernel;
use crate::memory::inbox::Look;
use crate::memory::signals::{Decision, Wake};
use ring_shared::Message;
use ring_shared::ring::{Seen, decide, stamp};

/// Looks at the doorbell for each look at the host's command line.
const LOOKS_PER_COMMAND: u32 = 16;

impl<K: Kernel> Channel<'_, K> {
    /// Returns when the block is woken; threads that do not poll return at once.
    #[inline(always)]
    pub fn wait(&self) {
        let Some(poller) = self.poller() else { return };
        let active = self.broadcast(u64::from(self.memory().life.active.get())) != 0;
        if poller > 0 && !active {
            return; // one warp is enough to wait for a command
        }
        let (eager, limited) = (self.memory().budget.is_eager(), self.memory().budget.is_limited());
        let (mut turns, mut looks) = (0u32, 0u32); // of this wait; idle ones in a row
        // An inline message that is not counted yet: the launch may have begun with one.
        let (mut answered, mut fresh) = (false, false);
        if poller == 0 {
            let signals = &self.memory().signals;
            answered = self.broadcast(u64::from(signals.answered_first.get())) != 0;
            // The boot made the first look, and its command is obeyed.
            fresh = self.broadcast(u64::from(signals.fresh.get())) != 0;
            if self.is_lane_0() {
                signals.answered_first.set(false);
                signals.fresh.set(false);
            }
            self.warp_sync();
        }
        loop {
            let this = self.optimization_barrier();
            let (m, threads) = (this.memory(), this.threads_of_block());
            if this.agreed(m.signals.wake.get() != Wake::None) {
                break;
            }
            let first = core::mem::take(&mut fresh);
            let often = eager || !active || this.may_sleep(looks);
            let often = often || turns.is_multiple_of(LOOKS_PER_COMMAND);
            let at_command = poller == 0 && !first && often;
            let next = this.broadcast(m.inbox.next.get());
            let look = if first {
                Look::of_boot(threads, &m.boot)
            } else {
                let caller = if at_command { this.caller() } else { None };
                let host = at_command.then(|| this.host());
                m.inbox.look((threads, &m.telemetry), this.requests().bell(), host, caller)
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
            if answered {
                this.settle(poller, now);
                answered = false;
            }
            let known = at_command.then(|| this.broadcast(m.life.acknowledged.get()));
            let acted = if Self::ANSWERS_INLINE
                && active
                && look.is_next(threads, next, Self::ATOMS, known)
            {
                answered |= this.answer_inline(look, next, poller);
                true
            } else {
                let command = look.command(threads);
                if known.is_some_and(|known| command != known) {
                    this.wake_with(Wake::Command, |signals| signals.command.set(command));
                    continue;
                }
                active && this.act_on(look, next, poller, &mut answered)
            };
            if at_command {
                let (control, mut due) = (look.control(threads), false);
                if this.is_lane_0() {
                    m.inbox.seen_tail.set(u64::from(control.tail));
                    due = this.beat(m.inbox.next.get(), now);
                }
                if this.agreed(due) {
                    this.flush();
                    if this.agreed(m.lease.has_expired()) {
                        this.wake_to_leave(Decision::LeaseOver); // unless the block is awake: the next heartbeat finds it again
                        continue;
                    }
                }
            }
            if poller == 0 && limited {
                let asked = (first || at_command) && this.caller().is_some();
                let called = asked && look.call(threads) == launch(this.block);
                let mut spent = Decision::Continue;
                if this.is_lane_0() {
                    spent = m.budget.spend(now, !acted, called, || this.channels());
                    if spent == Decision::Idle && !called && this.other_poller_answers() {
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
        if answered {
            self.settle(poller, self.now());
        }
    }

    /// One thread: whether a request is claimed whose response is not out yet.
    #[inline(always)]
    fn other_poller_answers(&self) -> bool {
        let (next, committed) = (&self.memory().inbox.next, &self.memory().outbox.committed);
        let answers = committed.get() != next.get();
        self.fence_block(); // before this warp writes behind that response
        answers
    }

    /// A polling warp: what is left to do about an inline message that it answered, while it has
    /// nothing better to do.
    #[inline(always)]
    fn settle(&self, poller: u32, now: u64) {
        if self.is_lane_0() {
            let (m, tally) = (self.memory(), self.memory().telemetry.tally(poller));
            m.telemetry.count(poller, 1, tally.took.get(), tally.waited.get());
            m.budget.next_batch_limit(false);
            self.note_handled(now);
        }
        self.warp_sync();
    }

    /// Acts on what a look shows; whether it showed something, all of it. Sets `answered` if the calling warp has
    /// answered a message.
    #[inline(always)]
    fn act_on(&self, look: Look, next: u64, poller: u32, answered: &mut bool) -> bool {
        let (m, threads) = (self.memory(), self.threads_of_block());
        let control = look.control(threads);
        match decide(control, next, self.requests().capacity()) {
            Seen::Nothing => false,
            Seen::Inline => {
                if !K::Request::FITS_INLINE {
                    self.wake_to_leave(Decision::CorruptRing);
                    return true;
                }
                if !look.is_stamped(threads, Self::ATOMS, stamp(next)) {
                    return false;
                }
                // The answer may go inline if the host has read everything we answered. Why nobody
                // acquires that is said in `commit_inline`.
                let line_is_free = control.credit == next as u32;
                if !Self::BY_WARP {
                    self.stage_for_block(look, next, poller);
                } else if Self::ANSWERS_INLINE && line_is_free {
                    *answered |= self.answer_inline(look, next, poller);
                } else if self.has_room(control, next) {
                    *answered |= self.answer_in_slot(look, next, poller);
                } else {
                    return false;
                }
                true
            }
            Seen::Slots(n) => {
                // Before slots are read, and overwritten: by the thread that read the doorbell, and for
                // lane 0, which passes its credit on.
                self.fence();
                self.warp_sync();
                self.wake_with(Wake::Slots, |_| {
                    self.fence_block(); // for the other polling warp, if it uses this credit
                    m.inbox.tail.set(next + u64::from(n));
                    m.inbox.seen_tail.set(u64::from(control.tail));
                    let tally = m.telemetry.tally(poller);
                    m.telemetry.seen.set(tally.at.get());
                    m.telemetry.unseen.set(tally.before.get());
                    m.outbox.note_credit(self.responses(), control, next);
                });
                true
            }
            Seen::Corrupt(_) => {
                // If the other polling warp answered since we read `next`, the host may rightly be
                // a full ring ahead of that answer: look again.
                if self.broadcast(m.inbox.next.get()) == next {
                    self.wake_to_leave(Decision::CorruptRing);
                }
                true
            }
        }
    }
}
