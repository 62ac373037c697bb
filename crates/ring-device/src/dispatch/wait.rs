//! Waiting: the polling warps look at the doorbell until there is something for the whole team,
//! and answer inline messages by themselves where the kernel's scope allows it.

use super::at_once::{handle, line_to_line, take};
use super::budget::launch;
use super::{Channel, event, verdict};
use crate::kernel::{Kernel, Scope};
use crate::team::{Look, Words};
use core::sync::atomic::Ordering::Relaxed;
use ring_shared::Message;
use ring_shared::layout::Exit;
use ring_shared::ring::{Control, Seen, decide, stamp};

/// Looks at the doorbell for each look at the host's command line.
const LOOKS_PER_COMMAND: u32 = 16;

impl<K: Kernel> Channel<'_, K> {
    /// Atoms of an inline request.
    const ATOMS: usize = K::Request::INLINE_ATOMS;

    /// Whether a polling warp can answer from line to line.
    const QUICK: bool =
        <K::Scope as Scope<K>>::ALONE && K::Request::FITS_INLINE && K::Response::FITS_INLINE;

    /// Returns when an event is raised; threads that do not poll return at once.
    #[inline(always)]
    pub(super) fn wait(&self) {
        let Some(poller) = self.team.poller() else { return };
        let active = self.is_active();
        if poller > 0 && !active {
            return; // one warp is enough to wait for a command
        }
        let (eager, limited) = (self.is_eager(), self.is_limited());
        let (mut turns, mut looks) = (0u32, 0u32); // since we wait; fruitless ones in a row
        // An inline message that is not counted yet: the launch may have begun with one.
        let (mut answered, mut fresh) = (false, false);
        if poller == 0 {
            let s = self.shared();
            answered = self.team.uniform(s.first.load(Relaxed)) != 0;
            // The first look was made when the launch began, and the command obeyed.
            fresh = self.team.uniform(s.fresh.load(Relaxed)) != 0;
            if self.team.is_leader() {
                s.first.store(0, Relaxed);
                s.fresh.store(0, Relaxed);
            }
            self.team.warp_sync();
        }
        loop {
            let this = self.afresh();
            if this.team.uniform(this.shared().event.load(Relaxed)) as u32 != event::NONE {
                break;
            }
            let first = core::mem::take(&mut fresh);
            let often = eager || !active || this.team.may_sleep(looks);
            let often = often || turns.is_multiple_of(LOOKS_PER_COMMAND);
            let at_command = poller == 0 && !first && often;
            let head = this.team.uniform(this.shared().head.load(Relaxed));
            let look = if first {
                this.team.first_look()
            } else {
                let caller = if at_command { this.caller() } else { None };
                this.team.look(this.inbox().bell(), at_command.then(|| this.host()), caller)
            };
            // On the GPU the bus takes a microsecond from here to where `look` is used.
            (turns, looks) = (turns.wrapping_add(1), looks.saturating_add(1));
            if poller == 0 && !first && !this.is_added() {
                this.add_earlier();
            }
            let mut now = 0;
            if at_command || limited {
                now = this.team.now();
            }
            if answered {
                this.settle(poller, now);
                answered = false;
            }
            let obeyed = this.shared().obeyed.load(Relaxed);
            let known = at_command.then(|| this.team.uniform(obeyed));
            let acted =
                if Self::QUICK && active && this.team.is_next(look, head, Self::ATOMS, known) {
                    this.answer_inline(look, head, poller, &mut answered);
                    true
                } else {
                    let command = this.team.command(look);
                    if known.is_some_and(|known| command != known) {
                        this.raise(event::COMMAND, |s| s.command.store(command, Relaxed));
                        continue;
                    }
                    active && this.act_on(look, head, poller, &mut answered)
                };
            if at_command {
                let (control, mut due) = (this.team.control(look), false);
                if this.team.is_leader() {
                    this.shared().wire.store(u64::from(control.tail), Relaxed);
                    due = this.beat(this.shared().head.load(Relaxed), now);
                }
                if this.team.agreed(due) {
                    this.flush();
                    if this.team.agreed(this.lease_is_over()) {
                        // If there is an event already, it is acted on first; the next heartbeat says
                        // it again.
                        let why = Exit::LeaseOver as u64;
                        this.raise(event::LEAVE, |s| s.verdict.store(why, Relaxed));
                        continue;
                    }
                }
            }
            if poller == 0 && limited {
                let asked = (first || at_command) && this.caller().is_some();
                let called = asked && this.team.call(look) == launch(this.team);
                let mut why = verdict::GO_ON;
                if this.team.is_leader() {
                    why = this.spent(now, !acted, called);
                }
                let why = this.team.uniform(why);
                if why != verdict::GO_ON {
                    // If there is an event already, it is acted on first, and budgets looked at
                    // after it.
                    this.raise(event::LEAVE, |s| s.verdict.store(why, Relaxed));
                    continue;
                }
            }
            if acted {
                looks = 0;
            } else {
                this.team.rest(looks, active);
            }
        }
        if answered {
            self.settle(poller, self.team.now());
        }
    }

    /// A polling warp: what is left to do about an inline message that it answered, while it has
    /// nothing better to do.
    #[inline(always)]
    fn settle(&self, poller: u32, now: u64) {
        if self.team.is_leader() {
            let tally = self.team.tally(poller);
            self.count(poller, 1, tally.took.load(Relaxed), tally.waited.load(Relaxed));
            self.next_limit(false);
            self.note_rest(now);
        }
        self.team.warp_sync();
    }

    /// True if there was something, and all of it; `answered`, if that is done with.
    #[inline(always)]
    fn act_on(&self, look: Look, head: u64, poller: u32, answered: &mut bool) -> bool {
        let control = self.team.control(look);
        match decide(control, head, self.inbox().capacity()) {
            Seen::Nothing => false,
            Seen::Inline => {
                if !K::Request::FITS_INLINE {
                    self.raise_corrupt();
                    return true;
                }
                if !self.team.stamped(look, Self::ATOMS, stamp(head)) {
                    return false;
                }
                // The answer may go inline if the host has read everything we answered. On why nobody
                // acquires that: `Team::ring`.
                let line_is_free = control.credit == head as u32;
                if !<K::Scope as Scope<K>>::ALONE {
                    self.stage(look, head, poller);
                } else if Self::QUICK && line_is_free {
                    self.answer_inline(look, head, poller, answered);
                } else if self.has_room(control, head) {
                    self.answer_in_slot(look, head, poller, answered);
                } else {
                    return false;
                }
                true
            }
            Seen::Slots(n) => {
                // Before slots are read, and overwritten: by the thread that read the doorbell, and for the
                // leader, which passes its credit on.
                self.team.fence();
                self.team.warp_sync();
                self.raise(event::SLOTS, |s| {
                    self.team.fence_team(); // for the other polling warp, should it go by this credit
                    s.tail.store(head + u64::from(n), Relaxed);
                    s.wire.store(u64::from(control.tail), Relaxed);
                    let tally = self.team.tally(poller);
                    s.seen.store(tally.at.load(Relaxed), Relaxed);
                    s.unseen.store(tally.before.load(Relaxed), Relaxed);
                    self.credit_of_doorbell(control, head);
                });
                true
            }
            Seen::Corrupt(_) => {
                // If the other polling warp answered since we read `head`, the host may rightly be
                // a full ring ahead of that answer: look again.
                if self.team.uniform(self.shared().head.load(Relaxed)) == head {
                    self.raise_corrupt();
                }
                true
            }
        }
    }

    /// Raises an event for the team; the warp that wins tells the details.
    #[inline(always)]
    fn raise(&self, event: u32, tell: impl FnOnce(&crate::team::Shared)) {
        if self.team.raise(event) && self.team.is_leader() {
            tell(self.shared());
        }
    }

    #[inline(always)]
    fn raise_corrupt(&self) {
        self.raise(event::LEAVE, |s| s.verdict.store(Exit::CorruptRing as u64, Relaxed));
    }

    /// Leaves the inline message in the input window for the whole team.
    #[inline(always)]
    fn stage(&self, look: Look, head: u64, poller: u32) {
        if self.team.raise(event::INLINE) {
            let window = self.team.memory().pool.bytes(0);
            // SAFETY: the window is larger than a line; only the warp that won the event writes
            // it, and the team reads it after the barrier.
            unsafe { self.team.stage(look, Self::ATOMS, window) };
            if K::USES_PAYLOAD {
                // The threads that read the line acquire what was written before it; a barrier follows.
                self.team.fence();
            }
            if self.team.is_leader() {
                let s = self.shared();
                s.staged.store(head, Relaxed);
                s.unseen.store(self.team.tally(poller).before.load(Relaxed), Relaxed);
            }
        }
    }

    /// Whether the answer to request `head` has a free slot, as far as is known, and the one before is out;
    /// if there is none, the host's credit line is looked at for the next time.
    #[inline(always)]
    fn has_room(&self, control: Control, head: u64) -> bool {
        const NO: u64 = 0;
        const YES: u64 = 1;
        const LOOK: u64 = 2;
        const CORRUPT: u64 = 3;
        let (team, s) = (self.team, self.shared());
        let full = u64::from(self.outbox().capacity());
        let free = || head.saturating_sub(s.credit.load(Relaxed)) < full;
        let mut found = NO;
        if team.is_leader() {
            // The other warp may still write the control atom of its answer, which ours is to follow. An
            // honest host does not send so early.
            if s.answered.load(Relaxed) == head {
                found = if free() { YES } else { LOOK };
            }
            // What the other warp has written, and acquired with the credit that it noted. The rest of this
            // warp has it by `claim`, before the slot is written.
            team.fence_team();
        }
        found = team.uniform(found);
        if found == LOOK {
            // The thread that read the doorbell acquires its credit, before slots are overwritten.
            team.fence();
            team.warp_sync();
            if team.is_leader() {
                team.fence_team(); // for the other polling warp, should it go by this credit
                self.credit_of_doorbell(control, head);
                found = u64::from(free());
                if found == NO {
                    s.allowed.store(s.idle.load(Relaxed), Relaxed); // there is something to do
                    found = if self.refresh_credit(head) { u64::from(free()) } else { CORRUPT };
                }
            }
            found = team.uniform(found);
        }
        if found == CORRUPT && team.uniform(s.head.load(Relaxed)) == head {
            // Else the other warp answered meanwhile, and the credit may rightly be ahead of `head`.
            self.raise_corrupt();
        }
        found == YES
    }

    /// One thread: says to the other polling warp that answers below `head` are out, its own store of the last
    /// one's control atom included.
    #[inline(always)]
    fn tell_answered(&self, head: u64) {
        self.team.fence_team();
        self.shared().answered.store(head, Relaxed);
    }

    /// Answers request `head` from the line and into the line, unless the other warp does.
    #[inline(always)]
    fn answer_inline(&self, look: Look, head: u64, poller: u32, answered: &mut bool) {
        if !self.claim(look, head, poller) {
            return;
        }
        if self.team.is_leader() {
            self.note_work();
            // Before the answer: once it is out, the other warp may claim and answer the next.
            self.shared().run_start.store(head + 1, Relaxed);
        }
        // SAFETY: this is warp `poller`, which claimed the request.
        let times = unsafe { line_to_line::<K>(self.team, self.payload(), head, poller) };
        if self.team.rings() {
            self.tell_answered(head + 1);
        }
        self.answered(head, poller, times);
        *answered = true;
    }

    /// Answers request `head` from the line into a slot that is free, unless the other warp does.
    #[inline(always)]
    fn answer_in_slot(&self, look: Look, head: u64, poller: u32, answered: &mut bool) {
        let team = self.team;
        if !self.claim(look, head, poller) {
            return;
        }
        if team.is_leader() {
            self.note_work();
        }
        // SAFETY: this is warp `poller`, which claimed the request.
        let (response, began, ended) = unsafe { handle::<K>(team, self.payload(), poller) };
        let mut t = team.in_warp();
        while t < K::Response::SLOT_ATOMS as u32 {
            if let Some(atom) = self.outbox().atom(head, t) {
                // SAFETY: an atom of the response, in this warp's half of the pool.
                atom.store(unsafe { response.cast::<Words>().add(t as usize).read() });
            }
            t += team.warp_size();
        }
        team.warp_sync();
        if team.is_leader() {
            team.fence(); // the warp's stores before the tail
            self.publish_tail(head + 1, self.shared().credit.load(Relaxed));
            self.tell_answered(head + 1);
        }
        self.answered(head, poller, (began, ended));
        *answered = true;
    }

    /// Takes request `head` out of the line; false if it is the other warp's.
    #[inline(always)]
    fn claim(&self, look: Look, head: u64, poller: u32) -> bool {
        let claim = self.team.claim(head);
        // SAFETY: this is warp `poller`, and the team waits for an event.
        unsafe { take::<K>(self.team, look, poller) };
        self.team.has_claimed(claim)
    }

    /// Request `head` is answered.
    #[inline(always)]
    fn answered(&self, head: u64, poller: u32, (began, ended): (u64, u64)) {
        if self.team.is_leader() {
            // Behind the answer, or the host could ring the next before this is answered. The two stores may
            // still land the other way round, and then nothing goes wrong either: the answer is proved by
            // its own stamps, the other warp answers the next into the line only when the host has this
            // one, and into a slot only after `tell_answered`, so that its control atom follows this one's.
            // Its credit for that one may land before this: the host takes the greater.
            self.publish_consumed(head + 1);
            let tally = self.team.tally(poller);
            tally.took.store(ended.wrapping_sub(began), Relaxed);
            tally.waited.store(began.wrapping_sub(tally.before.load(Relaxed)), Relaxed);
        }
        self.team.warp_sync();
    }
}
