//! Waiting: the polling warps look at the doorbell until there is something for the whole team,
//! and answer express messages by themselves where the kernel's scope allows it.

use super::at_once::line_to_line;
use super::budget::launch;
use super::{Lane, event, verdict};
use crate::kernel::{Kernel, Scope};
use crate::team::Look;
use core::sync::atomic::Ordering::Relaxed;
use ring_shared::Message;
use ring_shared::layout::Exit;
use ring_shared::ring::{Seen, decide, stamp};

/// Looks at the doorbell for each look at the host's command line.
const LOOKS_PER_COMMAND: u32 = 16;

impl<K: Kernel> Lane<'_, K> {
    /// Returns when an event is raised; threads that do not poll return at once.
    #[inline(always)]
    pub(super) fn wait(&mut self) {
        let Some(poller) = self.team.poller() else { return };
        if poller > 0 && !self.active {
            return; // one warp is enough to wait for a command
        }
        let (eager, limited) = (self.is_eager(), self.is_limited());
        let (mut turns, mut looks) = (0u32, 0u32); // since we wait; fruitless ones in a row
        // An express message that is not counted yet: the launch may have begun with one.
        let mut answered = poller == 0 && self.first;
        self.first = false;
        while self.team.uniform(self.shared().event.load(Relaxed)) as u32 == event::NONE {
            // The first look was made when the launch began, and the command obeyed.
            let first = poller == 0 && self.fresh;
            let often = eager || !self.active || turns.is_multiple_of(LOOKS_PER_COMMAND);
            let at_command = poller == 0 && !first && often;
            let head = self.team.uniform(self.shared().head.load(Relaxed));
            let atoms = if first {
                self.fresh = false;
                self.team.first_look()
            } else {
                let caller = if at_command { self.caller() } else { None };
                self.team.look(self.requests.bell(), at_command.then_some(self.host), caller)
            };
            // On the GPU the bus takes a microsecond from here to where `atoms` are used.
            (turns, looks) = (turns.wrapping_add(1), looks.saturating_add(1));
            if poller == 0 && !first && !self.added {
                self.add_earlier();
            }
            let mut now = 0;
            if at_command || limited {
                now = self.team.now();
            }
            if answered {
                self.settle(poller, now);
                answered = false;
            }
            let look = self.team.seen(atoms);
            if at_command {
                let command = self.team.command(&look);
                if command != self.obeyed {
                    self.raise(event::COMMAND, |s| s.command.store(command, Relaxed));
                    continue;
                }
                let mut due = false;
                if self.team.is_leader() {
                    self.shared().wire.store(u64::from(look.control.tail), Relaxed);
                    due = self.beat(head, now);
                }
                if self.team.agreed(due) {
                    self.flush();
                }
            }
            let acted = self.active && self.act_on(&look, head, poller, &mut answered);
            if poller == 0 && limited {
                let asked = (first || at_command) && self.caller().is_some();
                let called = asked && self.team.call(&look) == launch(self.team);
                let mut why = verdict::GO_ON;
                if self.team.is_leader() {
                    why = self.spent(now, !acted, called);
                }
                let why = self.team.uniform(why);
                if why != verdict::GO_ON {
                    // If there is an event already, it is acted on first, and budgets looked at
                    // after it.
                    self.raise(event::LEAVE, |s| s.verdict.store(why, Relaxed));
                    continue;
                }
            }
            if acted {
                looks = 0;
            } else {
                self.team.rest(looks, self.active);
            }
        }
        if answered {
            self.settle(poller, self.team.now());
        }
    }

    /// A polling warp: what is left to do about an express message that it answered, while it has
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
    fn act_on(&mut self, look: &Look, head: u64, poller: u32, answered: &mut bool) -> bool {
        match decide(look.control, head, self.requests.capacity()) {
            Seen::Nothing => false,
            Seen::Express => {
                let atoms = K::Request::EXPRESS_ATOMS;
                if !K::Request::FITS_EXPRESS {
                    self.raise_corrupt();
                    return true;
                }
                let whole = self.team.stamped(look, atoms, stamp(head));
                if whole {
                    // The answer may go express if the host has read everything we answered.
                    let line_is_free = look.control.credit == head as u32;
                    let alone = <K::Scope as Scope<K>>::ALONE && K::Response::FITS_EXPRESS;
                    if alone && line_is_free {
                        if self.team.claim(head) {
                            self.answer_express(look, head, poller);
                            *answered = true;
                        }
                    } else {
                        self.stage(look, head, poller);
                    }
                }
                whole
            }
            Seen::Slots(n) => {
                self.team.fence(); // before the slots are read
                self.raise(event::SLOTS, |s| {
                    s.tail.store(head + u64::from(n), Relaxed);
                    s.wire.store(u64::from(look.control.tail), Relaxed);
                    let tally = self.team.tally(poller);
                    s.seen.store(tally.at.load(Relaxed), Relaxed);
                    s.unseen.store(tally.before.load(Relaxed), Relaxed);
                    self.credit_of_doorbell(look.control, head);
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

    /// Leaves the express message in the input window for the whole team.
    #[inline(always)]
    fn stage(&self, look: &Look, head: u64, poller: u32) {
        if self.team.raise(event::EXPRESS) {
            let window = self.team.memory().input.bytes();
            // SAFETY: the window is larger than a line; only the warp that won the event writes
            // it, and the team reads it after the barrier.
            unsafe { self.team.stage(look, K::Request::EXPRESS_ATOMS, window) };
            if self.team.is_leader() {
                let s = self.shared();
                s.staged.store(head, Relaxed);
                s.unseen.store(self.team.tally(poller).before.load(Relaxed), Relaxed);
            }
        }
    }

    /// Answers request `head`, which this warp claimed, from the line and into the line.
    #[inline(always)]
    fn answer_express(&mut self, look: &Look, head: u64, poller: u32) {
        let team = self.team;
        if team.is_leader() {
            self.note_work();
            // Before the answer: once it is out, the other warp may claim and answer the next.
            self.shared().last_express.store(head, Relaxed);
        }
        let bell = self.responses.bell();
        // SAFETY: this is warp `poller`, which claimed the request.
        let (began, ended) =
            unsafe { line_to_line::<K>(team, self.payload(), look, head, poller, bell) };
        if team.is_leader() {
            // After it, or the host could ring the next before this is answered. The other warp's
            // credit for that one may then land first: the host takes the greater.
            self.publish_consumed(head + 1);
            let tally = team.tally(poller);
            tally.took.store(ended.wrapping_sub(began), Relaxed);
            tally.waited.store(began.wrapping_sub(tally.before.load(Relaxed)), Relaxed);
        }
        team.warp_sync();
    }
}
