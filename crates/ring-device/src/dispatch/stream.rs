//! Streams: warps that answer messages each by itself, side by side, while messages come.
//!
//! Indices are cut into chunks, and chunk after chunk belongs to worker after worker, so nobody
//! claims anything. A **worker** brings its next chunk, or what there is of it, over the bus, handles
//! it and writes the answers; then it moves its cursor. The **committer** sets how far workers may go,
//! and commits all answers below the least of their cursors: one fence for all of them. The **poller**
//! keeps looking at what the host writes. So the bus is read, written, waited for and looked at all at
//! once. A block of few warps, or of one CPU thread, takes these parts in turns.
//!
//! A stream ends when a look that began after the last answer shows nothing new, and for whatever
//! ends a window.

use super::channel::{Channel, launch};
use crate::block::{Cooperate, Threads, Words};
use crate::kernel::{Kernel, Scope};
use crate::memory::signals::Decision;
use crate::stages::{chunk, stride, workers};
use crate::thread_block::ThreadBlock;
use ring_shared::Message;
use ring_shared::ring::{Seen, credit_is_due, decide};

/// Chunks of each worker by which the dispatch limit may be ahead of what is answered: enough to hide the
/// time from an answer to the next limit. A command waits until they are answered.
const AHEAD: usize = if Threads::WARP > 1 { 4 } else { 1 };

impl<K: Kernel> Channel<'_, K> {
    /// Bytes from one message to the next in a stage.
    const STRIDE: usize = stride::<K>();

    /// Most messages of a chunk, a power of two.
    const CHUNK: usize = chunk::<K>(Threads::WARP > 1);

    /// Whether a chunk has more for each thread of a warp to read than four atoms.
    const WIDE: bool = Self::CHUNK * K::Request::SLOT_ATOMS > 4 * 32;

    /// The first worker's warp, and how many workers there are.
    #[inline(always)]
    fn workers(block: ThreadBlock<'_>) -> (u32, u32) {
        workers(block.warps(), block.scratch_bytes(), Self::CHUNK * Self::STRIDE)
    }

    /// Most messages of an iteration; in a launch of limited time such that one more call of the
    /// handler is all that can come after the time is over.
    #[inline(always)]
    pub fn most(block: ThreadBlock<'_>, timed: bool) -> u64 {
        let parallelism = <K::Scope as Scope<K>>::parallelism(block);
        match (Self::BY_WARP, timed) {
            (true, true) => {
                let chunk = parallelism.min(Self::CHUNK as u32);
                u64::from((Self::workers(block).1 - 1) * chunk + 1)
            }
            (true, false) => u64::from(Self::workers(block).1) * (AHEAD * Self::CHUNK) as u64,
            (false, true) => 1,
            (false, false) => Self::WINDOW,
        }
    }

    /// Messages of a chunk: no more than either ring holds, so that a chunk never passes its end.
    #[inline(always)]
    pub fn chunk_of(block: ThreadBlock<'_>, timed: bool, capacity: u32) -> u64 {
        let parallelism = <K::Scope as Scope<K>>::parallelism(block);
        let most = if timed { parallelism } else { u32::MAX };
        u64::from(capacity.min(most).min(Self::CHUNK as u32))
    }

    /// All threads: answer the requests in slots up to the inbox's tail, and what comes meanwhile.
    /// Returns whether to continue, to obey, or to leave.
    #[inline(always)]
    pub fn answer_by_warps(&self) -> Decision {
        let (first, workers) = Self::workers(self.block);
        let me = self.warp().wrapping_sub(first);
        if self.is_first_warp() {
            self.begin_stream(workers);
        }
        self.sync();
        let mut cursor = self.first_cursor(self.memory().inbox.next.get(), me);
        let (mut looks, mut fruitless) = (0, 0u32);
        let last = self.warps().min(2) - 1;
        loop {
            if me < workers {
                let before = cursor;
                cursor = self.optimization_barrier().work(cursor, me, workers);
                fruitless = if cursor == before { fruitless.saturating_add(1) } else { 0 };
            }
            if self.is_first_warp() {
                looks = self.optimization_barrier().commit(workers, looks);
            }
            if self.warp() == last {
                self.optimization_barrier().poll();
            }
            if self.optimization_barrier().stream_has_ended() {
                break;
            }
            self.pause(fruitless, true);
        }
        self.sync();
        match self.memory().progress.end.get() {
            Decision::Wait => Decision::Continue,
            end => end,
        }
    }

    /// Whether the stream has ended.
    #[inline(always)]
    fn stream_has_ended(&self) -> bool {
        self.agreed(self.memory().progress.end.get() != Decision::Continue)
    }

    /// Where worker `me` begins in a stream from request `next` on.
    #[inline(always)]
    fn first_cursor(&self, next: u64, me: u32) -> u64 {
        let chunk = self.memory().progress.chunk.get();
        if me == 0 { next } else { (next & !(chunk - 1)) + u64::from(me) * chunk }
    }

    /// Warp 0: the beginning of a stream, before a barrier.
    #[inline(always)]
    fn begin_stream(&self, workers: u32) {
        let m = self.memory();
        let next = m.inbox.next.get();
        let mut w = self.lane();
        while w < workers {
            if let Some(cursor) = m.progress.cursors.get(w as usize) {
                cursor.set(self.first_cursor(next, w));
            }
            w += Threads::WARP;
        }
        if self.is_lane_0() {
            let progress = &m.progress;
            progress.committed.set(next);
            m.signals.stop.set(Decision::Continue);
            progress.end.set(Decision::Continue);
            progress.polled_through.set(0);
            progress.corrupt.set(false);
            progress.called.set(0);
            progress.looks.set(0);
            // The other polling warp may have answered what the wake was about.
            let tail = m.inbox.tail.get().max(next);
            m.inbox.tail.set(tail);
            m.telemetry.split.set(tail);
            m.telemetry.unseen_next.set(m.telemetry.unseen.get());
            let limit = self.reach(next);
            progress.dispatch_limit.set(limit);
            m.budget.next_batch_limit(m.inbox.tail.get() > limit);
            if limit > next {
                self.note_work();
            }
        }
    }

    /// A worker's step: handles what there is of its chunk; where its cursor is then.
    #[inline(always)]
    fn work(&self, cursor: u64, me: u32, workers: u32) -> u64 {
        let limit = self.broadcast(self.memory().progress.dispatch_limit.get());
        if cursor >= limit {
            return cursor;
        }
        // What the poller has acquired is there for the thread that read the limit, and then for all of the
        // warp: the shuffle that tells them of it orders nothing.
        self.fence_block();
        self.warp_sync();
        let last = self.memory().progress.chunk.get() as u32 - 1;
        let n = (limit - cursor).min(u64::from(last - (cursor as u32 & last) + 1)) as u32;
        let (took, waited) = match self.handle_in_place(cursor, n) {
            Some(times) => times,
            None => {
                self.bring(cursor, n, self.stage_of(me));
                self.warp_sync();
                let this = self.optimization_barrier();
                let times = this.handle_stage(cursor, n, this.stage_of(me));
                self.exit_if_warp_panicked();
                self.warp_sync();
                let this = self.optimization_barrier();
                this.write(cursor, n, this.stage_of(me));
                times
            }
        };
        let this = self.optimization_barrier();
        this.warp_sync();
        let (m, mut cursor) = (this.memory(), cursor + u64::from(n));
        let chunk = m.progress.chunk.get() as u32;
        if cursor as u32 & (chunk - 1) == 0 {
            cursor += u64::from((workers - 1) * chunk);
        }
        if this.is_lane_0() {
            this.fence_block(); // the warp's answers, for the committer
            if let Some(mine) = m.progress.cursors.get(me as usize) {
                mine.set(cursor);
            }
            m.telemetry.count_some(this.threads_of_block(), n, took, waited);
        }
        cursor
    }

    /// The stage of worker `me`.
    #[inline(always)]
    fn stage_of(&self, me: u32) -> *mut u8 {
        self.memory().scratch.bytes(me as usize * Self::CHUNK * Self::STRIDE)
    }

    /// A worker that is all the block: handles `n` messages from `cursor` on from ring to ring; ticks
    /// that they took, and waited at most.
    #[inline(always)]
    fn handle_in_place(&self, cursor: u64, n: u32) -> Option<(u64, u64)> {
        if Threads::WARP > 1 {
            return None;
        }
        let unseen = self.unseen(cursor);
        let (began, payload) = (self.ticks(), self.payload());
        let (from, to) = (self.requests().from(cursor), self.responses().from(cursor));
        let done = <K::Scope as Scope<K>>::handle_in_place(self.block, payload, from, to, n);
        done.then(|| (self.ticks().wrapping_sub(began), began.wrapping_sub(unseen)))
    }

    /// A worker: handles the `n` messages in its stage, from `cursor` on; ticks that they took, and
    /// waited at most.
    #[inline(always)]
    fn handle_stage(&self, cursor: u64, n: u32, stage: *mut u8) -> (u64, u64) {
        let unseen = self.unseen(cursor);
        let began = self.ticks();
        // SAFETY: the `n` messages of this worker's own stage, at most CHUNK; the warp synchronises.
        unsafe { self.handle_by_warp(stage, n) };
        (self.ticks().wrapping_sub(began), began.wrapping_sub(unseen))
    }

    /// When the last look began that did not show message `cursor`.
    #[inline(always)]
    fn unseen(&self, cursor: u64) -> u64 {
        let telemetry = &self.memory().telemetry;
        // In this order: see the poller.
        let next = telemetry.unseen_next.get();
        let (split, unseen) = (telemetry.split.get(), telemetry.unseen.get());
        if cursor < split { unseen } else { next }
    }

    /// A worker: reads requests `cursor..cursor + n` into its stage.
    #[inline(always)]
    fn bring(&self, cursor: u64, n: u32, stage: *mut u8) {
        let atoms = K::Request::SLOT_ATOMS as u32;
        // A chunk does not pass the ring's end.
        let Some(slots) = self.requests().from(cursor).get(..(n * atoms) as usize) else { return };
        let read = |t: u32| slots.get(t as usize).map_or([0; 2], |atom| atom.load());
        let keep = |t: u32, words: Words| {
            if (t as usize) < slots.len() {
                // SAFETY: an atom of message `m < n` of this worker's stage; each has one thread.
                unsafe { Self::in_stage(stage, t, atoms).write(words) };
            }
        };
        let (mut first, step) = (0, Threads::WARP);
        while (first as usize) < slots.len() {
            let t = first + self.lane();
            let four = |t| [read(t), read(t + step), read(t + 2 * step), read(t + 3 * step)];
            let keep_four = |t, words: [Words; 4]| {
                keep(t, words[0]);
                keep(t + step, words[1]);
                keep(t + 2 * step, words[2]);
                keep(t + 3 * step, words[3]);
            };
            let words = four(t);
            let more = if Self::WIDE { four(t + 4 * step) } else { [[0; 2]; 4] };
            // All in flight before the first is used: without this barrier ptxas stored some of them to the stage before it
            // read the others.
            self.warp_sync();
            keep_four(t, words);
            if Self::WIDE {
                keep_four(t + 4 * step, more);
            }
            first += if Self::WIDE { 8 * step } else { 4 * step };
        }
    }

    /// A worker: writes responses `cursor..cursor + n` from its stage.
    #[inline(always)]
    fn write(&self, cursor: u64, n: u32, stage: *mut u8) {
        let atoms = K::Response::SLOT_ATOMS as u32;
        // A chunk does not pass the ring's end.
        let Some(slots) = self.responses().from(cursor).get(..(n * atoms) as usize) else { return };
        let answers = stage.wrapping_add(16 * <K::Scope as Scope<K>>::STAGE.1);
        let read = |t: u32| match slots.get(t as usize) {
            // SAFETY: an atom of the response to message `m < n` in this worker's stage.
            Some(_) => unsafe { Self::in_stage(answers, t, atoms).read() },
            None => [0; 2],
        };
        let write = |t: u32, words: Words| {
            if let Some(atom) = slots.get(t as usize) {
                atom.store(words);
            }
        };
        let (mut t, step) = (self.lane(), Threads::WARP);
        while (t as usize) < slots.len() {
            let words = [read(t), read(t + step), read(t + 2 * step), read(t + 3 * step)];
            write(t, words[0]);
            write(t + step, words[1]);
            write(t + 2 * step, words[2]);
            write(t + 3 * step, words[3]);
            t += 4 * step;
        }
    }

    /// Where atom `t` of messages of so many atoms is in a stage.
    #[inline(always)]
    fn in_stage(stage: *mut u8, t: u32, atoms: u32) -> *mut Words {
        let at = (t / atoms) as usize * Self::STRIDE + 16 * (t % atoms) as usize;
        stage.wrapping_add(at).cast()
    }

    /// Thread 0: how far workers may go when all below `committed` is answered.
    #[inline(always)]
    fn reach(&self, committed: u64) -> u64 {
        let m = self.memory();
        let room = m.outbox.consumed.get() + u64::from(self.responses().capacity());
        let limit = committed.saturating_add(m.budget.batch_limit.get());
        // A credit that is too old does not take back what was dispatched.
        m.inbox.tail.get().min(room).min(limit).max(committed)
    }

    /// The committer's step: commits what was answered, and lets workers go on. `looked` is how many
    /// looks there were at its last step.
    #[inline(always)]
    fn commit(&self, workers: u32, looked: u64) -> u64 {
        let m = self.memory();
        let (mut least, mut w) = (u64::MAX, self.lane());
        while w < workers {
            let cursor = m.progress.cursors.get(w as usize).map_or(u64::MAX, |cursor| cursor.get());
            least = least.min(cursor);
            w += Threads::WARP;
        }
        let committed = self.warp_min(least);
        self.fence_block(); // the answers below their cursors, for lane 0 to pass on
        self.warp_sync();
        let (mut due, mut looks) = (false, looked);
        if self.is_lane_0() {
            looks = m.progress.looks.get();
            let now = self.now();
            let before = m.progress.committed.get();
            let progress = committed != before;
            m.progress.committed.set(committed);
            self.fence_block(); // before the host sees the answers: the poller checks its indices against this
            self.let_workers_go(committed, now, progress, looks != looked);
            due = self.beat(committed, now);
            if due && m.lease.has_expired() && m.signals.stop.get() == Decision::Continue {
                m.signals.stop.set(Decision::LeaseOver);
            }
            if progress {
                self.fence(); // the answers of all workers, before the tail
                let consumed = m.outbox.consumed.get();
                let (threads, responses) = (self.threads_of_block(), self.responses());
                m.outbox.commit(threads, responses, (before, committed), consumed);
                if credit_is_due(committed, m.inbox.published.get(), self.requests().capacity()) {
                    self.publish_consumed(committed);
                }
            }
            self.perhaps_end(committed);
        }
        if self.agreed(due) {
            self.flush();
        }
        self.broadcast(looks)
    }

    /// Thread 0, requests below `committed` being answered: lets workers go further, if there is more,
    /// there is room for it, and nothing is in the way.
    #[inline(always)]
    fn let_workers_go(&self, committed: u64, now: u64, progress: bool, looked: bool) {
        let m = self.memory();
        let limit = m.progress.dispatch_limit.get();
        let all_answered = committed == limit;
        if all_answered && progress {
            self.note_handled(now);
        }
        if m.signals.stop.get() != Decision::Continue {
            return;
        }
        if m.budget.is_eager() {
            let polled = m.progress.polled_through.get();
            self.fence_block(); // what that look showed
            if polled < committed {
                return; // not before a look that began after the last answer
            }
        }
        if m.progress.corrupt.get() {
            m.signals.stop.set(Decision::CorruptRing);
            return;
        }
        if m.signals.command.get() != m.life.acknowledged.get() {
            m.signals.stop.set(Decision::Obey);
            return;
        }
        let to = self.reach(committed);
        let more = to > limit;
        let starved = all_answered && !more && m.inbox.tail.get() > committed;
        if starved {
            m.budget.expect_work();
            if m.inbox.published.get() != committed {
                self.publish_consumed(committed); // the host may fill those slots while we wait
            }
        }
        if m.budget.is_limited() && (more || (all_answered && looked)) {
            let called = self.caller().is_some() && m.progress.called.get() == launch(self.block);
            let why = m.budget.spend(now, all_answered && !more, called, || self.channels());
            if why != Decision::Continue {
                m.signals.stop.set(why);
                return;
            }
        }
        if more {
            self.note_work();
            m.budget.next_batch_limit(m.inbox.tail.get() > to);
            self.fence_block(); // what the poller has acquired, for the workers
            m.progress.dispatch_limit.set(to);
        }
    }

    /// Thread 0: ends the stream if all that was dispatched is answered, and there is a reason or nothing to do.
    #[inline(always)]
    fn perhaps_end(&self, committed: u64) {
        let m = self.memory();
        if committed < m.progress.dispatch_limit.get() {
            return;
        }
        let stop = m.signals.stop.get();
        let polled = m.progress.polled_through.get();
        self.fence_block(); // the tail that was seen with it
        let nothing = committed >= m.inbox.tail.get() && polled >= committed;
        let end = match stop {
            Decision::Continue if nothing => Decision::Wait,
            stop => stop,
        };
        if end != Decision::Continue {
            m.inbox.next.set(committed);
            self.publish_consumed(committed);
            self.fence_block(); // all that was written before the end
            m.progress.end.set(end);
        }
    }

    /// The poller's step: one look at all that the host writes.
    #[inline(always)]
    fn poll(&self) {
        let m = self.memory();
        let (through, began) = (self.broadcast(m.progress.committed.get()), self.ticks());
        let ends = (self.requests(), self.responses());
        let seen = m.inbox.poll(self.threads_of_block(), ends, self.host(), self.caller());
        self.warp_sync(); // what each thread has acquired, for lane 0 to pass on
        if self.is_lane_0() {
            self.fence_block();
            let (committed, tail) = (m.progress.committed.get(), m.inbox.tail.get());
            let mut wrong = !m.outbox.note_consumed(self.responses(), seen.credit, committed);
            m.outbox.note_credit(self.responses(), seen.control, committed);
            m.outbox.note_credit(self.responses(), seen.next, committed);
            m.inbox.seen_tail.set(u64::from(seen.control.tail));
            m.signals.command.set(seen.command);
            m.progress.called.set(seen.call);
            let mut until = through;
            let capacity = self.requests().capacity();
            let found = match decide(seen.control, tail, capacity) {
                Seen::Nothing => decide(seen.next, tail, capacity),
                found => found,
            };
            match found {
                Seen::Nothing => {}
                // Nothing before it is unread, so the stream ends, and a polling warp takes it.
                Seen::Inline => until = u64::MAX,
                Seen::Slots(n) => {
                    let new = tail + u64::from(n);
                    wrong |= new.saturating_sub(committed) > u64::from(capacity);
                    // Telemetry keeps the times of two looks; what a third one shows waits until one is free.
                    if !wrong && committed >= m.telemetry.split.get() {
                        m.telemetry.unseen.set(m.telemetry.unseen_next.get());
                        m.telemetry.split.set(tail);
                        m.telemetry.unseen_next.set(m.telemetry.seen.get());
                        m.inbox.tail.set(new);
                    }
                }
                Seen::Corrupt(_) => wrong = true,
            }
            m.telemetry.seen.set(began);
            if wrong {
                m.progress.corrupt.set(true);
            }
            self.fence_block(); // the tail before how far was polled
            m.progress.polled_through.set(until);
            m.progress.looks.count(1);
        }
        self.warp_sync();
    }
}
