//! Waiting: the polling warps look at the doorbell until there is something for the whole team,
//! and answer express messages by themselves where the kernel's scope allows it.

use super::{Lane, event};
use crate::kernel::{Kernel, Scope};
use crate::team::Look;
use core::sync::atomic::Ordering::Relaxed;
use ring_shared::Message;
use ring_shared::ring::{Control, Seen, decide, stamp};

/// Looks at the doorbell for each look at the host's command line.
const LOOKS_PER_COMMAND: u32 = 16;

/// Bytes of a window that a polling warp has for itself: an express message has at most 84.
const WARP_BYTES: usize = 128;

impl<K: Kernel> Lane<'_, K> {
    /// Returns when an event is raised; threads that do not poll return at once.
    #[inline(always)]
    pub(super) fn wait(&mut self) {
        let Some(poller) = self.team.poller() else { return };
        if poller > 0 && !self.active {
            return; // one warp is enough to wait for a command
        }
        let (mut turns, mut looks) = (0u32, 0u32); // since we wait; fruitless ones in a row
        while self.team.uniform(self.shared().event.load(Relaxed)) as u32 == event::NONE {
            let at_command =
                poller == 0 && (turns.is_multiple_of(LOOKS_PER_COMMAND) || !self.active);
            let head = self.team.uniform(self.shared().head.load(Relaxed));
            let look = self.team.look(self.requests.bell(), at_command.then_some(self.host));
            (turns, looks) = (turns.wrapping_add(1), looks.saturating_add(1));
            if at_command {
                if look.command != self.obeyed {
                    self.raise(event::COMMAND, |s| s.command.store(look.command, Relaxed));
                    continue;
                }
                if self.team.is_leader() {
                    self.beat(head);
                }
            }
            if self.active {
                if self.act_on(&look, head, poller) {
                    looks = 0;
                } else {
                    self.team.rest(looks, true);
                }
            } else {
                self.team.rest(looks, false);
            }
        }
    }

    /// True if there was something.
    #[inline(always)]
    fn act_on(&mut self, look: &Look, head: u64, poller: u32) -> bool {
        match decide(look.control, head, self.requests.capacity()) {
            Seen::Nothing => false,
            Seen::Express => {
                let atoms = K::Request::EXPRESS_ATOMS;
                if !K::Request::FITS_EXPRESS {
                    self.raise(event::CORRUPT, |_| {});
                } else if self.team.stamped(look, atoms, stamp(head)) {
                    // The answer may go express if the host has read everything we answered.
                    let line_is_free = look.control.credit == head as u32;
                    let alone = <K::Scope as Scope<K>>::ALONE && K::Response::FITS_EXPRESS;
                    if alone && line_is_free {
                        if self.team.claim(head) {
                            self.answer_express(look, head, poller);
                        }
                    } else {
                        self.stage(look, head);
                    }
                }
                true
            }
            Seen::Slots(n) => {
                self.team.fence(); // before the slots are read
                self.raise(event::SLOTS, |s| {
                    s.tail.store(head + u64::from(n), Relaxed);
                    self.credit_of_doorbell(look.control, head);
                });
                true
            }
            Seen::Corrupt(_) => {
                // If the other polling warp answered since we read `head`, the host may rightly be
                // a full ring ahead of that answer: look again.
                if self.team.uniform(self.shared().head.load(Relaxed)) == head {
                    self.raise(event::CORRUPT, |_| {});
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

    /// Leaves the express message in the input window for the whole team.
    #[inline(always)]
    fn stage(&self, look: &Look, head: u64) {
        if self.team.raise(event::EXPRESS) {
            let window = self.team.memory().input.bytes();
            // SAFETY: the window is larger than a line; only the warp that won the event writes
            // it, and the team reads it after the barrier.
            unsafe { self.team.stage(look, K::Request::EXPRESS_ATOMS, window) };
            if self.team.is_leader() {
                self.shared().staged.store(head, Relaxed);
            }
        }
    }

    /// Answers request `head`, which this warp claimed, from the line and into the line.
    #[inline(always)]
    fn answer_express(&mut self, look: &Look, head: u64, poller: u32) {
        let (team, memory) = (self.team, self.team.memory());
        // Behind what `stage` uses, so that no two warps share a byte.
        let at = (1 + poller as usize) * WARP_BYTES;
        let input = memory.input.bytes().wrapping_add(at);
        let output = memory.output.bytes().wrapping_add(at);
        if K::USES_PAYLOAD {
            team.fence();
        }
        // SAFETY: this warp's own part of the windows, 128 bytes each, 16-byte aligned: room for
        // an express request and response. One thread handles; the warp waits before and after.
        unsafe {
            team.stage(look, K::Request::EXPRESS_ATOMS, input);
            if team.is_leader() {
                <K::Scope as Scope<K>>::alone(self.payload, input, output);
            }
        }
        team.warp_sync();
        if K::USES_PAYLOAD {
            team.fence();
        }
        let index = head as u32;
        let tail = index.wrapping_add(1);
        let control = Control { credit: tail, express: index, tail };
        if team.is_leader() {
            // Before the answer: once it is out, the other warp may claim and answer the next.
            self.shared().last_express.store(head, Relaxed);
        }
        // SAFETY: 84 of this warp's 128 bytes.
        unsafe { team.ring(self.responses.bell(), output, stamp(head), control) };
        if team.is_leader() {
            // After it, or the host could ring the next before this is answered. The other warp's
            // credit for that one may then land first: the host takes the greater.
            self.publish_consumed(head + 1);
        }
        team.warp_sync();
    }
}
