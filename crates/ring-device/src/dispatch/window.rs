//! Windows, for handlers of the whole block: the block brings requests into one half of its scratch memory, an
//! atom a thread at a time, handles them one after the other, and writes the responses from the other
//! half.

use super::channel::Channel;
use crate::block::{Cooperate, Words};
use crate::kernel::{Kernel, Messages, Scope};
use crate::memory::claims::Claims;
use crate::memory::inbox::Aim;
use crate::memory::outbox::commit_inline;
use crate::memory::scratch::SCRATCH_BYTES;
use crate::memory::signals::{Decision, Wake};
use ring_shared::Message;
use ring_shared::ring::{CONTROL, Control, Seen, credit_is_due, decide, room};

/// Where the output window begins; the input window is as long and in front of it.
pub(super) const OUTPUT: usize = SCRATCH_BYTES / 2;

impl<K: Kernel> Channel<'_, K> {
    /// Messages that fit a window, requests and responses.
    pub const WINDOW: u64 = {
        let (a, b) = (K::Request::SLOT_ATOMS, K::Response::SLOT_ATOMS);
        (OUTPUT / 16 / if a > b { a } else { b }) as u64
    };

    /// All threads: answers the requests in slots up to the inbox's tail, and what came meanwhile; or the
    /// inline request `staged` in the input window, inline if it may. Returns whether to continue, to obey,
    /// or to leave.
    #[inline(always)]
    pub fn answer_by_block(&self, staged: bool) -> Decision {
        let inbox = &self.memory().inbox;
        let (mut next, mut tail) = (inbox.next.get(), inbox.tail.get());
        if staged {
            // A polling warp may have answered it after all.
            tail = if inbox.staged.get() == next { next + 1 } else { next };
        }
        let inline = staged && K::Response::FITS_INLINE && inbox.answers_inline.get();
        let mut decision = Decision::Continue;
        while next < tail {
            let this = self.optimization_barrier();
            decision = this.await_room(next);
            let consumed = this.memory().outbox.consumed.get();
            if decision != Decision::Continue {
                break; // what is left stays in the ring, or in the line
            }
            let n = (tail - next).min(this.memory().budget.batch_limit.get());
            let n = n.min(u64::from(room(next, consumed, this.responses().capacity()))) as u32;
            if !staged {
                this.load(next, n);
            }
            this.answer_window((next, n), tail, consumed, inline);
            next += u64::from(n);
            decision = this.memory().signals.stop.get();
            if staged || decision != Decision::Continue {
                break;
            }
            if next >= tail {
                decision = this.look_again(next);
                if decision != Decision::Continue {
                    break;
                }
                tail = this.memory().inbox.tail.get();
            }
        }
        let this = self.optimization_barrier();
        if this.thread() == 0 {
            this.memory().inbox.next.set(next);
            this.publish_consumed(next);
        }
        if decision == Decision::Wait { Decision::Continue } else { decision }
    }

    /// All threads: wait until a response has a free slot, the host commands something, or the channel is
    /// to leave.
    #[inline(always)]
    fn await_room(&self, next: u64) -> Decision {
        let full = u64::from(self.responses().capacity());
        let known = self.memory().outbox.consumed.get();
        if known <= next && next - known < full {
            return Decision::Continue;
        }
        self.sync();
        if self.is_first_warp() {
            let mut looks = 0u32;
            let found = loop {
                let (mut found, mut due) = (None, false);
                if self.is_lane_0() {
                    found = self.look_for_room(next, looks == 0);
                    due = self.beat(next, self.now());
                    if due && found.is_none() && self.memory().lease.has_expired() {
                        found = Some(Decision::LeaseOver);
                    }
                }
                self.exit_if_tick_panicked();
                if self.agreed(due) {
                    self.flush();
                }
                if self.agreed(found.is_some()) {
                    break found.unwrap_or(Decision::Continue);
                }
                looks = looks.saturating_add(1);
                self.pause(looks, true);
            };
            if self.is_lane_0() {
                self.fence(); // before slots are overwritten
                self.memory().signals.decision.set(found);
            }
        }
        self.sync();
        self.memory().signals.decision.get()
    }

    /// Thread 0: whether a response has a free slot now, or there is another end to waiting for one.
    #[inline(always)]
    fn look_for_room(&self, next: u64, first: bool) -> Option<Decision> {
        let m = self.memory();
        if first {
            self.publish_consumed(next); // the host may fill those slots while we wait
            m.budget.expect_work();
        }
        // The host's credit comes by its credit line, and by the doorbell if it sends.
        let control = Control::from_words(self.requests().line(next).atoms[CONTROL].observe());
        m.inbox.seen_tail.set(u64::from(control.tail));
        m.outbox.note_credit(self.responses(), control, next);
        m.outbox.note_first(self.requests(), self.responses(), next);
        if !m.outbox.refresh(self.threads_of_block(), self.responses(), next) {
            return Some(Decision::CorruptRing);
        }
        if next - m.outbox.consumed.get() < u64::from(self.responses().capacity()) {
            return Some(Decision::Continue);
        }
        if self.is_commanded() {
            return Some(Decision::Obey);
        }
        let why = if m.budget.is_limited() {
            m.budget.spend(self.now(), true, self.called(), || self.channels())
        } else {
            Decision::Continue
        };
        (why != Decision::Continue).then_some(why)
    }

    /// The requests and the responses of both windows.
    #[inline(always)]
    pub fn window(&self) -> Messages {
        let scratch = &self.memory().scratch;
        Messages {
            requests: scratch.bytes(0),
            responses: scratch.bytes(OUTPUT),
            request_stride: 16 * K::Request::SLOT_ATOMS,
            response_stride: 16 * K::Response::SLOT_ATOMS,
        }
    }

    /// All threads: bring `n` requests into the input window, each thread four atoms at a time: a read across the bus takes
    /// about a microsecond.
    #[inline(always)]
    fn load(&self, next: u64, n: u32) {
        let window = self.memory().scratch.bytes(0).cast::<Words>();
        let (all, step) = (n * K::Request::SLOT_ATOMS as u32, self.threads());
        let read = |t: u32| match self.requests().atom(next, t) {
            Some(atom) if t < all => atom.load(),
            _ => [0; 2],
        };
        let keep = |t: u32, words: Words| {
            if t < all {
                // SAFETY: `t` is below `n` slots, which the window holds; each `t` has one thread.
                unsafe { window.add(t as usize).write(words) };
            }
        };
        let mut first = 0;
        while first < all {
            let t = first + self.thread();
            let words = [read(t), read(t + step), read(t + 2 * step), read(t + 3 * step)];
            self.warp_sync(); // all in flight before the first is used
            keep(t, words[0]);
            keep(t + step, words[1]);
            keep(t + 2 * step, words[2]);
            keep(t + 3 * step, words[3]);
            first += 4 * step;
        }
        // SAFETY: `n` is at most WINDOW, so the output window holds so many; the responses before were written, and a
        // barrier followed.
        unsafe { <K::Scope as Scope<K>>::prepare(self.window(), n, self.thread(), step) };
        self.sync();
    }

    /// All threads: handle the `n` requests in the input window, of those up to `tail`, and commit their
    /// responses, in slots or, if there is only one, `inline`.
    #[inline(always)]
    fn answer_window(&self, (next, n): (u64, u32), tail: u64, consumed: u64, inline: bool) {
        let (mut began, mut took, mut due) = (0, 0, false); // of thread 0
        if self.thread() == 0 {
            self.note_work();
            began = self.ticks();
        }
        let scratch = &self.memory().scratch;
        // SAFETY: `n` is at most WINDOW, so both windows hold it; all threads are here, and
        // synchronised after the input was written and before the output is read.
        unsafe { <K::Scope as Scope<K>>::handle(self.block, self.payload(), self.window(), n) };
        self.sync();
        let end = next + u64::from(n);
        if self.thread() == 0 {
            took = self.ticks().wrapping_sub(began);
        }
        if inline && self.is_first_warp() {
            self.commit_staged(self.aim_of_staged(next), self.has_used_payload());
        }
        let window = scratch.bytes(OUTPUT).cast::<Words>();
        let mut t = if inline { u32::MAX } else { self.thread() };
        while t < n * K::Response::SLOT_ATOMS as u32 {
            if let Some(atom) = self.responses().atom(next, t) {
                // SAFETY: `t` is below `n` slots, which the window holds; nobody writes it now.
                atom.store(unsafe { window.add(t as usize).read() });
            }
            t += self.threads();
        }
        if !inline {
            self.sync();
        }
        if self.thread() == 0 {
            let m = self.memory();
            if K::USES_PAYLOAD {
                m.signals.uses_payload.set(false); // no handler runs; a barrier follows
            }
            if !inline {
                let responses = self.responses();
                let release = || self.fence(); // the block's stores, seen through the barrier, before the tail
                m.outbox.commit(responses, (next, end), consumed, release);
            }
            // The clock that all channels share takes long to read: behind the answer.
            let now = self.now();
            due = self.beat(next, now);
            m.signals.stop.set(self.after_window(now, due));
            m.budget.next_batch_limit(end < tail);
            self.note_handled(now);
            if credit_is_due(end, m.inbox.published.get(), self.requests().capacity()) {
                self.publish_consumed(end);
            }
            let waited = began.wrapping_sub(m.telemetry.unseen.get());
            m.telemetry.count(u64::from(n), took, waited);
            self.trace((next, n), (began, began.wrapping_add(took)), m.telemetry.unseen.get());
        }
        if self.is_first_warp() && self.agreed(due) {
            self.flush();
        }
        self.sync(); // all know whether to stop, and the windows may be written anew
    }

    /// All threads, behind [`Wake::InlineBoth`]: answers the staged request inline, and is done with it. Until the next barrier
    /// only the first warp, which polls, does anything: it looks at the next request without meeting the others.
    #[inline(always)]
    pub fn answer_staged(&self) {
        let m = self.memory();
        let next = m.inbox.next.get();
        let (began, mut took) = (self.ticks(), 0);
        let answer = || {
            // While the others come.
            let aim = self.is_first_warp().then(|| self.aim_of_staged(next));
            let uses_payload = self.sync_and(|| self.has_used_payload());
            if let Some(aim) = aim {
                took = self.ticks().wrapping_sub(began);
                self.commit_staged(aim, uses_payload);
            }
        };
        let (payload, window) = (self.payload(), self.window());
        // SAFETY: the polling warp has brought one request, and a barrier followed; all threads are here.
        unsafe { <K::Scope as Scope<K>>::handle_one(self.block, payload, window, answer) };
        if !self.is_first_warp() {
            return;
        }
        if self.is_lane_0() {
            if K::USES_PAYLOAD {
                m.signals.uses_payload.set(false); // no handler runs; the next one does so behind a barrier
            }
            m.inbox.next.set(next + 1);
            m.inbox.claims.set(Claims::open(next + 1));
            m.signals.wake.set(Wake::None);
            self.publish_consumed(next + 1);
            m.budget.next_batch_limit(false);
            let unseen = m.telemetry.unseen.get();
            m.telemetry.count(1, took, began.wrapping_sub(unseen));
            self.trace((next, 1), (began, began.wrapping_add(took)), unseen);
            if Self::HOLDS {
                self.plan_look();
            }
        }
        self.warp_sync();
    }

    /// Behind the barrier that follows the handler: whether it has used the payload, or memory that the host or other blocks see.
    #[inline(always)]
    fn has_used_payload(&self) -> bool {
        K::USES_PAYLOAD && self.memory().signals.uses_payload.get()
    }

    /// The first warp: from where to where each thread brings an atom of the response to request `next`, if it goes inline.
    #[inline(always)]
    fn aim_of_staged<'s>(&'s self, next: u64) -> impl Fn(usize) -> Aim<'s> + Copy + use<'s, K> {
        self.aim_at(next as u32, self.memory().scratch.bytes(OUTPUT), 0)
    }

    /// The first warp: commits the response in the output window inline, behind the barrier that follows the handler.
    #[inline(always)]
    fn commit_staged<'a>(&self, aim: impl Fn(usize) -> Aim<'a> + Copy, uses_payload: bool) {
        if uses_payload {
            self.fence(); // the block's stores, seen through the barrier, before the response
        }
        let warp = (self.threads_of_block(), Self::SPAN);
        // SAFETY: the output window, which is longer than an inline message; nobody writes it now.
        unsafe { commit_inline(warp, 1, 0, aim, |_| self.note_committed()) };
    }

    /// Thread 0: whether to continue after this window. The command line is across the bus, so it is looked at
    /// only with a heartbeat, unless the budget asks for it after every iteration.
    #[inline(always)]
    fn after_window(&self, now: u64, due: bool) -> Decision {
        let m = self.memory();
        let look = due || m.budget.is_eager();
        if look && self.is_commanded() {
            Decision::Obey
        } else if due && m.lease.has_expired() {
            Decision::LeaseOver
        } else if m.budget.is_limited() {
            m.budget.spend(now, false, look && self.called(), || self.channels())
        } else {
            Decision::Continue
        }
    }

    /// All threads: the doorbell and the command line are read once more before the block goes back to
    /// waiting; whether there is more, up to the inbox's tail.
    #[inline(always)]
    fn look_again(&self, next: u64) -> Decision {
        if self.thread() == 0 {
            let m = self.memory();
            let (commanded, called) = (self.is_commanded(), self.called());
            m.telemetry.unseen.set(m.telemetry.seen.get());
            m.telemetry.seen.set(self.ticks());
            let control = Control::from_words(self.requests().line(next).atoms[CONTROL].observe());
            m.inbox.seen_tail.set(u64::from(control.tail));
            let (tail, decision) = match decide(control, next, self.requests().capacity()) {
                Seen::Corrupt(_) => (next, Decision::CorruptRing),
                _ if commanded => (next, Decision::Obey),
                _ if called => (next, Decision::Idle),
                Seen::Slots(n) => (next + u64::from(n), Decision::Continue),
                _ => (next, Decision::Wait),
            };
            m.inbox.tail.set(tail); // acquired by the look; a barrier follows
            m.signals.decision.set(decision);
        }
        self.sync();
        self.memory().signals.decision.get()
    }
}
