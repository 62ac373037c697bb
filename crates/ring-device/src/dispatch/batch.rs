//! Batches, for handlers of the whole block: the team moves requests through its windows, an atom a
//! thread at a time, and handles them one after the other.

use super::{Channel, verdict};
use crate::kernel::{Kernel, Scope};
use crate::team::{POOL_BYTES, Words};
use core::sync::atomic::Ordering::Relaxed;
use ring_shared::Message;
use ring_shared::layout::Exit;
use ring_shared::ring::{CONTROL, Control, Seen, credit_is_due, decide, room};

/// Where the output window begins; the input window is as long and in front of it.
const OUTPUT: usize = POOL_BYTES / 2;

impl<K: Kernel> Channel<'_, K> {
    /// Messages that fit a window, requests and responses.
    pub(super) const WINDOW: u64 = {
        let (a, b) = (K::Request::SLOT_ATOMS, K::Response::SLOT_ATOMS);
        (OUTPUT / 16 / if a > b { a } else { b }) as u64
    };

    /// Answers the requests in slots up to `Shared::tail`, and what came meanwhile; or the inline
    /// request `staged` in the input window, through a slot: its answer may not go inline, or the
    /// scope needs the whole team. `GO_ON`, `COMMAND`, or why the channel is to leave.
    #[inline(always)]
    pub(super) fn answer(&self, staged: bool) -> u64 {
        let mut head = self.shared().head.load(Relaxed);
        let mut tail = self.shared().tail.load(Relaxed);
        if staged {
            // A polling warp may have answered it after all.
            tail = if self.shared().staged.load(Relaxed) == head { head + 1 } else { head };
        }
        let mut found = verdict::GO_ON;
        while head < tail {
            let this = self.afresh();
            found = this.await_room(head);
            let credit = this.shared().credit.load(Relaxed);
            if found != verdict::GO_ON {
                break; // what is left stays in the ring, or in the line
            }
            let n = (tail - head).min(this.shared().limit.load(Relaxed));
            let n = n.min(u64::from(room(head, credit, this.outbox().capacity()))) as u32;
            if !staged {
                this.load(head, n);
            }
            this.answer_window(head, n, tail, credit);
            head += u64::from(n);
            found = this.shared().stop.load(Relaxed);
            if staged || found != verdict::GO_ON {
                break;
            }
            if head >= tail {
                found = this.look_again(head);
                if found != verdict::GO_ON {
                    break;
                }
                tail = this.shared().tail.load(Relaxed);
            }
        }
        let this = self.afresh();
        if this.team.thread() == 0 {
            this.shared().head.store(head, Relaxed);
            this.publish_consumed(head);
        }
        if found == verdict::STOP { verdict::GO_ON } else { found }
    }

    /// Waits until an answer has a free slot, the host commands something, or the channel is to leave.
    #[inline(always)]
    fn await_room(&self, head: u64) -> u64 {
        let shared = self.team.shared();
        let full = u64::from(self.outbox().capacity());
        let known = shared.credit.load(Relaxed);
        if known <= head && head - known < full {
            return verdict::GO_ON;
        }
        self.team.sync();
        if self.team.poller() == Some(0) {
            let mut looks = 0u32;
            let found = loop {
                let (mut found, mut due) = (None, false);
                if self.team.is_leader() {
                    found = self.look_for_room(head, looks == 0);
                    due = self.beat(head, self.team.now());
                    if due && found.is_none() && self.lease_is_over() {
                        found = Some(Exit::LeaseOver as u64);
                    }
                }
                if self.team.agreed(due) {
                    self.flush();
                }
                if self.team.agreed(found.is_some()) {
                    break found.unwrap_or(verdict::GO_ON);
                }
                looks = looks.saturating_add(1);
                self.team.rest(looks, true);
            };
            if self.team.is_leader() {
                self.team.fence(); // before slots are overwritten
                shared.verdict.store(found, Relaxed);
            }
        }
        self.team.sync();
        self.shared().verdict.load(Relaxed)
    }

    /// Thread 0: whether an answer has a free slot now, or there is another end to waiting for one.
    #[inline(always)]
    fn look_for_room(&self, head: u64, first: bool) -> Option<u64> {
        let s = self.team.shared();
        if first {
            self.publish_consumed(head); // the host may fill those slots while we wait
            s.allowed.store(s.idle.load(Relaxed), Relaxed); // there is something to do
        }
        // The host's credit comes by its credit line, and by the doorbell if it sends.
        let control = Control::from_words(self.inbox().bell().atoms[CONTROL].observe());
        s.wire.store(u64::from(control.tail), Relaxed);
        self.credit_of_doorbell(control, head);
        if !self.refresh_credit(head) {
            return Some(Exit::CorruptRing as u64);
        }
        if head - s.credit.load(Relaxed) < u64::from(self.outbox().capacity()) {
            return Some(verdict::GO_ON);
        }
        if self.commanded() {
            return Some(verdict::COMMAND);
        }
        let why = if self.is_limited() {
            self.spent(self.team.now(), true, self.called())
        } else {
            verdict::GO_ON
        };
        (why != verdict::GO_ON).then_some(why)
    }

    /// Brings `n` requests into the input window.
    #[inline(always)]
    fn load(&self, head: u64, n: u32) {
        let window = self.team.memory().pool.bytes(0).cast::<Words>();
        let mut t = self.team.thread();
        while t < n * K::Request::SLOT_ATOMS as u32 {
            if let Some(atom) = self.inbox().atom(head, t) {
                // SAFETY: `t` is below `n` slots, which the window holds; each `t` has one thread.
                unsafe { window.add(t as usize).write(atom.load()) };
            }
            t += self.team.threads();
        }
        self.team.sync();
    }

    /// Handles the `n` requests in the input window, of those up to `tail`, and publishes their
    /// answers.
    #[inline(always)]
    fn answer_window(&self, head: u64, n: u32, tail: u64, credit: u64) {
        let (mut began, mut took, mut due) = (0, 0, false); // of thread 0
        if self.team.thread() == 0 {
            self.note_work();
            began = self.team.ticks();
        }
        let pool = &self.team.memory().pool;
        let (input, output) = (pool.bytes(0), pool.bytes(OUTPUT));
        // SAFETY: `n` is at most WINDOW, so both windows hold it; all threads are here, and
        // synchronised after the input was written and before the output is read.
        unsafe { <K::Scope as Scope<K>>::window(self.team, self.payload(), input, output, n) };
        self.team.sync();
        let end = head + u64::from(n);
        if self.team.thread() == 0 {
            took = self.team.ticks().wrapping_sub(began);
            let now = self.team.now();
            due = self.beat(head, now);
            // Both are read by all after the last barrier below.
            self.shared().stop.store(self.after_window(now, due), Relaxed);
            self.next_limit(end < tail);
            self.note_rest(now);
        }
        let window = output.cast::<Words>();
        let mut t = self.team.thread();
        while t < n * K::Response::SLOT_ATOMS as u32 {
            if let Some(atom) = self.outbox().atom(head, t) {
                // SAFETY: `t` is below `n` slots, which the window holds; nobody writes it now.
                atom.store(unsafe { window.add(t as usize).read() });
            }
            t += self.team.threads();
        }
        self.team.sync();
        if self.team.thread() == 0 {
            self.team.fence(); // the block's stores, seen through the barrier, before the tail
            self.publish_tail(end, credit);
            let published = self.shared().published.load(Relaxed);
            if credit_is_due(end, published, self.inbox().capacity()) {
                self.publish_consumed(end);
            }
            let waited = began.wrapping_sub(self.shared().unseen.load(Relaxed));
            self.count(0, u64::from(n), took, waited);
        }
        if self.team.poller() == Some(0) && self.team.agreed(due) {
            self.flush();
        }
    }

    /// Thread 0: a verdict on going on after this window. The command line is across the bus, so it
    /// is looked at only as often as the heart beats, if the kernel was not told otherwise.
    #[inline(always)]
    fn after_window(&self, now: u64, due: bool) -> u64 {
        let look = due || self.is_eager();
        if look && self.commanded() {
            verdict::COMMAND
        } else if due && self.lease_is_over() {
            Exit::LeaseOver as u64
        } else if self.is_limited() {
            self.spent(now, false, look && self.called())
        } else {
            verdict::GO_ON
        }
    }

    /// One thread: the most messages of the next window, after one that left messages behind or
    /// did not.
    #[inline(always)]
    pub(super) fn next_limit(&self, left: bool) {
        let s = self.shared();
        let limit = s.limit.load(Relaxed);
        let (floor, ceiling) = (s.floor.load(Relaxed), s.ceiling.load(Relaxed));
        let next = if left { (2 * limit).min(ceiling) } else { (limit / 2).max(floor) };
        s.limit.store(next, Relaxed);
    }

    /// Reads the doorbell and the command line once more before the team goes back to waiting:
    /// whether there is more, up to `Shared::tail`.
    #[inline(always)]
    fn look_again(&self, head: u64) -> u64 {
        if self.team.thread() == 0 {
            let s = self.shared();
            let (commanded, called) = (self.commanded(), self.called());
            s.unseen.store(s.seen.load(Relaxed), Relaxed);
            s.seen.store(self.team.ticks(), Relaxed);
            let control = Control::from_words(self.inbox().bell().atoms[CONTROL].observe());
            s.wire.store(u64::from(control.tail), Relaxed);
            let (tail, found) = match decide(control, head, self.inbox().capacity()) {
                Seen::Corrupt(_) => (head, Exit::CorruptRing as u64),
                _ if commanded => (head, verdict::COMMAND),
                _ if called => (head, Exit::Idle as u64),
                Seen::Slots(n) => (head + u64::from(n), verdict::GO_ON),
                _ => (head, verdict::STOP),
            };
            self.team.fence(); // before the slots are read
            s.tail.store(tail, Relaxed);
            s.verdict.store(found, Relaxed);
        }
        self.team.sync();
        self.shared().verdict.load(Relaxed)
    }
}
