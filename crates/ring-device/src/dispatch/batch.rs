//! Batches: the whole team moves requests through its windows, an atom a thread at a time, so that
//! many reads of the bus are in flight and every line is written whole.

use super::Lane;
use crate::kernel::{Kernel, Scope};
use crate::team::WINDOW_BYTES;
use core::sync::atomic::Ordering::Relaxed;
use ring_shared::Message;
use ring_shared::layout::Exit;
use ring_shared::ring::{CONTROL, Control, SCRUB, Seen, decide, express_field, room};

/// What the thread that looked tells the others.
mod verdict {
    pub const GO_ON: u64 = 0;
    pub const STOP: u64 = 1;
    pub const CORRUPT: u64 = 2;
}

impl<K: Kernel> Lane<'_, K> {
    /// Messages that fit a window, requests and responses.
    const WINDOW: u64 = {
        let (a, b) = (K::Request::SLOT_ATOMS, K::Response::SLOT_ATOMS);
        (WINDOW_BYTES / 16 / if a > b { a } else { b }) as u64
    };

    /// Answers the requests in slots up to `Shared::tail`, and what came meanwhile. False if the
    /// lane has left.
    #[inline(always)]
    pub(super) fn answer_slots(&mut self) -> bool {
        let mut head = self.shared().head.load(Relaxed);
        let mut tail = self.shared().tail.load(Relaxed);
        while head < tail {
            let Some(credit) = self.await_room(head) else { return false };
            let n = (tail - head).min(Self::WINDOW);
            let n = n.min(u64::from(room(head, credit, self.responses.capacity())));
            if n == 0 {
                break; // a command came while there was no room
            }
            self.load(head, n as u32);
            self.answer_window(head, n as u32, credit);
            head += n;
            if self.shared().stop.load(Relaxed) != 0 {
                break; // a command came; what is left stays in the ring
            }
            if head >= tail {
                match self.look_again(head) {
                    Some(more) => tail = more,
                    None => return false,
                }
            }
        }
        if self.team.thread() == 0 {
            self.shared().head.store(head, Relaxed);
            self.publish_consumed(head);
        }
        true
    }

    /// Answers the express request in the input window through a slot: its answer may not go
    /// express, or the scope needs the whole team. False if the lane has left.
    #[inline(always)]
    pub(super) fn answer_staged(&mut self) -> bool {
        let head = self.shared().head.load(Relaxed);
        if self.shared().staged.load(Relaxed) != head {
            return true; // a polling warp answered it after all
        }
        let Some(credit) = self.await_room(head) else { return false };
        if room(head, credit, self.responses.capacity()) == 0 {
            return true; // a command came first; the message is still in the line
        }
        if K::USES_PAYLOAD {
            self.team.fence();
        }
        self.answer_window(head, 1, credit);
        if self.team.thread() == 0 {
            self.shared().head.store(head + 1, Relaxed);
            self.publish_consumed(head + 1);
        }
        true
    }

    /// Waits until an answer has a free slot or the host commands something; the host's credit as
    /// then known. `None`: the lane has left.
    #[inline(always)]
    fn await_room(&mut self, head: u64) -> Option<u64> {
        let shared = self.team.shared();
        let full = u64::from(self.responses.capacity());
        let known = shared.credit.load(Relaxed);
        if known <= head && head - known < full {
            return Some(known);
        }
        self.team.sync();
        if self.team.thread() == 0 {
            let mut looks = 0u32;
            self.publish_consumed(head); // the host may fill those slots while we wait
            let found = loop {
                // The host's credit comes by its credit line, and by the doorbell if it sends.
                let control = self.requests.bell().atoms[CONTROL].observe();
                self.credit_of_doorbell(Control::from_words(control), head);
                if !self.refresh_credit(head) {
                    break verdict::CORRUPT;
                }
                if self.commanded() || head - shared.credit.load(Relaxed) < full {
                    break verdict::GO_ON;
                }
                self.beat(head);
                looks = looks.saturating_add(1);
                self.team.rest(looks, true);
            };
            self.team.fence(); // before slots are overwritten
            shared.verdict.store(found, Relaxed);
        }
        self.team.sync();
        if self.shared().verdict.load(Relaxed) == verdict::CORRUPT {
            self.leave(head, Exit::CorruptRing);
            return None;
        }
        Some(self.shared().credit.load(Relaxed))
    }

    /// Brings `n` requests into the input window.
    #[inline(always)]
    fn load(&self, head: u64, n: u32) {
        let window = self.team.memory().input.words();
        let mut t = self.team.thread();
        while t < n * K::Request::SLOT_ATOMS as u32 {
            let words = self.requests.atom(head, t).load();
            // SAFETY: `t` is below `n` slots, which the window holds; each `t` has one thread.
            unsafe { window.add(t as usize).write(words) };
            t += self.team.threads();
        }
        self.team.sync();
    }

    /// Handles the `n` requests in the input window and publishes their answers.
    #[inline(always)]
    fn answer_window(&mut self, head: u64, n: u32, credit: u64) {
        if self.team.thread() == 0 {
            // Read by all after the last barrier below. The command line is across the bus, so it
            // is looked at as often as the heart beats.
            let stop = self.beat(head) && self.commanded();
            self.shared().stop.store(u64::from(stop), Relaxed);
        }
        let memory = self.team.memory();
        let (input, output) = (memory.input.bytes(), memory.output.bytes());
        // SAFETY: `n` is at most WINDOW, so both windows hold it; all threads are here, and
        // synchronised after the input was written and before the output is read.
        unsafe { <K::Scope as Scope<K>>::window(self.team, self.payload, input, output, n) };
        self.team.sync();
        let window = memory.output.words();
        let mut t = self.team.thread();
        while t < n * K::Response::SLOT_ATOMS as u32 {
            // SAFETY: `t` is below `n` slots, which the window holds; nobody writes it now.
            self.responses.atom(head, t).store(unsafe { window.add(t as usize).read() });
            t += self.team.threads();
        }
        self.team.sync();
        if self.team.thread() == 0 {
            self.team.fence(); // the block's stores, seen through the barrier, before the tail
            self.publish_tail(head + u64::from(n), credit);
            let head = head + u64::from(n);
            if head - self.published >= u64::from(self.requests.capacity()).div_ceil(4) {
                self.publish_consumed(head);
            }
        }
    }

    /// Thread 0: rings the response doorbell for answers in slots below `tail`.
    #[inline(always)]
    fn publish_tail(&mut self, tail: u64, credit: u64) {
        let last_express = self.shared().last_express.load(Relaxed);
        let stamped = self.last_scrub.max(last_express.wrapping_add(1));
        let bell = self.responses.bell();
        if tail - stamped > SCRUB && last_express.wrapping_add(1) <= credit {
            for atom in bell.atoms.iter().take(CONTROL) {
                atom.publish([0, credit << 32]);
            }
            self.last_scrub = tail;
        }
        let express = express_field(last_express, credit, tail);
        let control = Control { credit: tail as u32, express, tail: tail as u32 };
        // SYNC: with the fence before it, releases the slots to `Consumer::look`.
        bell.atoms[CONTROL].publish(control.to_words());
    }

    /// Reads the doorbell and the command line once more before the team goes back to waiting:
    /// the tail to go on to, or `head`. `None`: the lane has left.
    #[inline(always)]
    fn look_again(&mut self, head: u64) -> Option<u64> {
        if self.team.thread() == 0 {
            let shared = self.shared();
            let commanded = self.commanded();
            let control = Control::from_words(self.requests.bell().atoms[CONTROL].observe());
            let (tail, found) = match decide(control, head, self.requests.capacity()) {
                Seen::Slots(n) if !commanded => (head + u64::from(n), verdict::GO_ON),
                Seen::Corrupt(_) => (head, verdict::CORRUPT),
                _ => (head, verdict::STOP),
            };
            self.team.fence(); // before the slots are read
            shared.tail.store(tail, Relaxed);
            shared.verdict.store(found, Relaxed);
        }
        self.team.sync();
        if self.shared().verdict.load(Relaxed) == verdict::CORRUPT {
            self.leave(head, Exit::CorruptRing);
            return None;
        }
        Some(self.shared().tail.load(Relaxed))
    }
}
