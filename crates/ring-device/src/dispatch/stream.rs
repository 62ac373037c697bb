//! Streams: warps that answer messages each by itself, side by side, while messages come.
//!
//! The **poller** keeps looking at what the host writes, and sets how far workers may go. A **worker** takes
//! the next chunk, or what there is of it, by compare-and-swap, brings it over the bus, handles it and writes
//! the answers; meanwhile its cursor says where that begins. So what comes late goes to a worker that is idle,
//! and waits for none that is busy. The **committer** commits all answers below the least of the cursors: one
//! fence for all of them. The bus is read, written, waited for and looked at all at once. A block of few warps,
//! or of one CPU thread, takes these parts in turns.
//!
//! A stream ends when a look that began after the last answer shows nothing new, and for whatever
//! ends a window.

use super::channel::{Channel, launch};
use super::wait::LOOKS_PER_COMMAND;
use crate::block::{Cooperate, Threads, Words};
use crate::kernel::{Kernel, Scope};
use crate::memory::inbox::Poll;
use crate::memory::outbox::consumed_by_line;
use crate::memory::signals::Decision;
use crate::stages::{chunk, stride, workers};
use crate::thread_block::ThreadBlock;
use ring_shared::Message;
use ring_shared::ring::{Control, Seen, credit_index, credit_is_due, decide};

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
        workers(block.warps(), block.scratch_bytes(K::SHARED_BYTES), Self::CHUNK * Self::STRIDE)
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
            self.begin_stream();
        }
        self.sync();
        let mut fruitless = 0u32;
        let last = self.warps().min(2) - 1;
        loop {
            if me < workers {
                let has_worked = self.optimization_barrier().work(me);
                fruitless = if has_worked { 0 } else { fruitless.saturating_add(1) };
            }
            if self.is_first_warp() {
                self.optimization_barrier().commit();
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
        // Polling warps go on from here, and so does the host's producer.
        if self.thread() == 0 {
            let m = self.memory();
            let next = m.progress.committed.get();
            m.inbox.next.set(next);
            self.publish_consumed(next);
        }
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

    /// Warp 0: the beginning of a stream, before a barrier.
    #[inline(always)]
    fn begin_stream(&self) {
        let m = self.memory();
        let next = m.inbox.next.get();
        let mut w = self.lane();
        // The others wait at the barrier, so the order is free: `taken` comes first because `xtask`'s rules check that no
        // worker takes messages between setting its cursor and the fence behind that.
        if w == 0 {
            m.progress.taken.set(next);
        }
        while w < self.warps() {
            if let Some(cursor) = m.progress.cursors.get(w as usize) {
                cursor.set(u64::MAX);
            }
            w += Threads::WARP;
        }
        if self.is_lane_0() {
            let progress = &m.progress;
            progress.committed.set(next);
            m.signals.stop.set(Decision::Continue);
            progress.end.set(Decision::Continue);
            progress.noted.set(next);
            progress.is_starved.set(false);
            progress.polls.set(0);
            // The other polling warp may have answered what the wake was about.
            let tail = m.inbox.tail.get().max(next);
            m.inbox.tail.set(tail);
            let limit = self.reach(next, tail, m.outbox.consumed.get());
            progress.dispatch_limit.set(limit);
            m.telemetry.split.set(tail);
            m.telemetry.unseen_next.set(m.telemetry.unseen.get());
            m.budget.next_batch_limit(m.inbox.tail.get() > limit);
            if limit > next {
                self.note_work();
            }
        }
    }

    /// A worker: takes some of the requests that may be handled and nobody has taken: the first, and how many. If another
    /// worker is quicker, none.
    #[inline(always)]
    fn take(&self) -> Option<(u64, u32)> {
        let progress = &self.memory().progress;
        let taken = self.broadcast(progress.taken.get());
        let limit = self.broadcast(progress.dispatch_limit.get());
        if taken >= limit {
            if self.is_lane_0() {
                self.set_cursor(u64::MAX); // it says something else if another worker was quicker
            }
            return None;
        }
        let chunk = progress.chunk.get() as u32;
        let n = (limit - taken).min(u64::from(chunk - (taken as u32 & (chunk - 1)))) as u32;
        let mut has_taken = false;
        if self.is_lane_0() {
            // Before they are taken: who reads `taken` behind that finds here that they are not answered.
            self.set_cursor(taken);
            self.fence_block();
            let to = taken + u64::from(n);
            has_taken = self.compare_and_swap(progress.taken.word(), taken, to);
        }
        self.agreed(has_taken).then_some((taken, n))
    }

    /// Lane 0 of a worker.
    #[inline(always)]
    fn set_cursor(&self, cursor: u64) {
        if let Some(mine) = self.memory().progress.cursors.get(self.warp() as usize) {
            mine.set(cursor);
        }
    }

    /// A worker's step: takes requests, if there are any, and answers them; whether it has.
    #[inline(always)]
    fn work(&self, me: u32) -> bool {
        let Some((cursor, n)) = self.take() else { return false };
        // What the poller has acquired is there for the thread that read the limit, and then for all of the
        // warp: the shuffle that tells them of it orders nothing.
        self.fence_block();
        self.warp_sync();
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
        this.fence_block(); // the warp's answers, for the committer
        if this.is_lane_0() {
            let m = this.memory();
            if Self::TRACES && m.trace.is_on() {
                // Before the committer may tell the host of the answers.
                let ended = this.ticks();
                let began = ended.wrapping_sub(took);
                this.trace((cursor, n), (began, ended), began.wrapping_sub(waited));
            }
            this.set_cursor(u64::MAX);
            m.telemetry.count_some(this.threads_of_block(), n, took, waited);
        }
        true
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
        unsafe { self.handle_by_warp(stage, stride::<K>(), n) };
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

    /// One thread: how far workers may go when all below `committed` is answered, requests below `tail` are in slots, and the
    /// host has consumed the responses below `consumed`.
    #[inline(always)]
    fn reach(&self, committed: u64, tail: u64, consumed: u64) -> u64 {
        let room = consumed + u64::from(self.responses().capacity());
        let limit = committed.saturating_add(self.memory().budget.batch_limit.get());
        // A credit that is too old does not take back what was dispatched.
        tail.min(room).min(limit).max(committed)
    }

    /// The committer's step: commits what was answered. What the host does not wait for comes last.
    #[inline(always)]
    fn commit(&self) {
        let m = self.memory();
        let before = m.progress.committed.get();
        // By how much each is ahead of that: half as many words to compare. A worker that was late to take what another one
        // has taken says less for a moment.
        let ahead = |index: u64| u32::try_from(index.saturating_sub(before)).unwrap_or(u32::MAX);
        let mut least = ahead(m.progress.taken.get());
        self.fence_block(); // the cursors of all who have taken what is below it
        let mut w = self.lane();
        while w < self.warps() {
            let cursor = m.progress.cursors.get(w as usize).map_or(u64::MAX, |cursor| cursor.get());
            least = least.min(ahead(cursor));
            w += Threads::WARP;
        }
        let least = self.warp_min32(least);
        self.fence_block(); // the answers below it, for lane 0 to pass on
        self.warp_sync();
        let mut due = false;
        if self.is_lane_0() {
            let committed = before + u64::from(least);
            if least > 0 {
                m.progress.committed.set(committed); // before the host sees the answers: the poller checks its indices by it
                let (consumed, answers) = (m.outbox.consumed.get(), (before, committed));
                let responses = self.responses();
                let release = || self.fence(); // the answers of all workers, before the tail
                m.outbox.commit(responses, answers, consumed, release);
            }
            let published = m.inbox.published.get();
            let starved = m.progress.is_starved.get() && committed != published;
            if starved || credit_is_due(committed, published, self.requests().capacity()) {
                self.publish_consumed(committed);
            }
            due = self.beat(committed, self.now());
            if due && m.lease.has_expired() && m.signals.stop.get() == Decision::Continue {
                m.signals.stop.set(Decision::LeaseOver);
            }
        }
        if self.agreed(due) {
            self.flush();
        }
    }

    /// The poller's step: one look at what the host writes.
    #[inline(always)]
    fn poll(&self) {
        let m = self.memory();
        let (through, began) = (self.broadcast(m.progress.committed.get()), self.ticks());
        let ends = (self.requests(), self.responses());
        // While it finds requests, a GPU reads all else now and then, and the credit line also where there may soon be no room
        // for responses: what the host sends has newer credit.
        let limit = m.progress.dispatch_limit.get();
        let is_short =
            limit.saturating_sub(m.outbox.consumed.get()) > u64::from(ends.1.capacity()) / 2;
        let asked = Threads::LINES == 1
            || is_short
            || m.progress.polls.get() == 0
            || m.budget.is_eager()
            || m.budget.is_limited();
        let all = self.agreed(asked).then_some((&m.signals, &m.progress));
        let lines = (self.host(), self.caller());
        let seen = m.inbox.poll(self.threads_of_block(), ends, lines, all);
        self.warp_sync(); // what each thread has acquired, for lane 0 to pass on
        if self.is_lane_0() {
            self.fence_block();
            self.act_on_poll(seen, (through, began));
        }
        self.warp_sync();
    }

    /// The poller's lane 0, behind a look that `began` when requests below `through` were answered: lets workers go further,
    /// if there is more, there is room for it, and nothing is in the way; or ends the stream. Workers wait for the first
    /// part, so it has no branch that it can do without, and reads what it needs side by side.
    #[inline(always)]
    fn act_on_poll(&self, seen: Poll, (through, began): (u64, u64)) {
        let m = self.memory();
        let (progress, telemetry) = (&m.progress, &m.telemetry);
        let (committed, limit) = (progress.committed.get(), progress.dispatch_limit.get());
        let (tail, consumed) = (m.inbox.tail.get(), m.outbox.consumed.get());
        let (capacity, room) = (self.requests().capacity(), self.responses().capacity());
        let start = self.responses().start();

        let credit = progress.seen_credit.get();
        let mut wrong = !consumed_by_line(credit, (start, committed));
        let by_line = if wrong { consumed } else { consumed.max(credit) };
        let by = |control: Control| credit_index(control.credit, committed, room).unwrap_or(0);
        let consumed = by_line.max(by(seen.control)).max(by(seen.next));
        m.outbox.consumed.set(consumed);
        let found = match decide(seen.control, tail, capacity) {
            Seen::Nothing => decide(seen.next, tail, capacity),
            found => found,
        };
        let (mut through, mut new) = (through, tail);
        match found {
            Seen::Nothing => {}
            // Nothing before it is unread, so the stream ends, and a polling warp takes it.
            Seen::Inline => through = u64::MAX,
            Seen::Slots(n) => {
                let to = tail + u64::from(n);
                wrong |= to.saturating_sub(committed) > u64::from(capacity);
                // Telemetry keeps the times of two looks; what a third one shows waits until one is free.
                if !wrong && committed >= telemetry.split.get() {
                    let (unseen_next, seen) = (telemetry.unseen_next.get(), telemetry.seen.get());
                    telemetry.unseen.set(unseen_next);
                    telemetry.split.set(tail);
                    telemetry.unseen_next.set(seen);
                    m.inbox.tail.set(to);
                    new = to;
                }
            }
            Seen::Corrupt(_) => wrong = true,
        }
        let to = self.reach(committed, new, consumed);
        let (stop, is_limited) = (m.signals.stop.get(), m.budget.is_limited());
        let is_commanded = m.signals.command.get() != m.life.acknowledged.get();
        // If eager, not before a look that began after the last answer.
        let waits = m.budget.is_eager() && through < committed;
        let may = stop == Decision::Continue && !waits;
        if may && !wrong && !is_commanded && !is_limited && to > limit {
            self.dispatch(to);
        }

        telemetry.seen.set(began);
        m.inbox.seen_tail.set(u64::from(seen.control.tail));
        let all_answered = committed == limit;
        let now = if is_limited { self.now() } else { 0 };
        if all_answered && progress.noted.get() != committed {
            self.note_handled(now);
        }
        progress.noted.set(committed);
        if may {
            let limited = is_limited.then_some((now, progress.seen_call.get()));
            let why = match (wrong, is_commanded) {
                (true, _) => Decision::CorruptRing,
                (false, true) => Decision::Obey,
                _ => self.go_on((committed, new), (limit, to), limited),
            };
            if why != Decision::Continue {
                m.signals.stop.set(why);
            }
        }
        let polls = progress.polls.get() + 1;
        let finds = matches!(found, Seen::Slots(_));
        let goes_on = finds && polls < u64::from(LOOKS_PER_COMMAND);
        progress.polls.set(if goes_on { polls } else { 0 });
        self.perhaps_end((through, committed), new);
    }

    /// The poller's lane 0, when workers may go from `limit` as far as `to`, of requests in slots below `tail`, and do so
    /// already unless a budget is `limited`, with the time and what was seen of channel 0's call then: why they may not.
    #[inline(always)]
    fn go_on(
        &self,
        (committed, tail): (u64, u64),
        (limit, to): (u64, u64),
        limited: Option<(u64, u64)>,
    ) -> Decision {
        let m = self.memory();
        let (more, all_answered) = (to > limit, committed == limit);
        let starved = all_answered && !more && tail > committed;
        m.progress.is_starved.set(starved); // the host may fill those slots while we wait
        if starved {
            m.budget.expect_work();
        }
        if let Some((now, call)) = limited
            && (more || all_answered)
        {
            let called = self.caller().is_some() && call == launch(self.block);
            let why = m.budget.spend(now, all_answered && !more, called, || self.channels());
            if why != Decision::Continue {
                return why;
            }
            if more {
                self.note_work();
                self.dispatch(to);
            }
        }
        if more {
            m.budget.next_batch_limit(tail > to);
        }
        Decision::Continue
    }

    /// The poller's lane 0: lets workers go as far as `to`.
    #[inline(always)]
    fn dispatch(&self, to: u64) {
        self.fence_block(); // what the look has acquired, and when requests were not seen yet, for the workers
        self.memory().progress.dispatch_limit.set(to);
    }

    /// The poller's lane 0: ends the stream if all that was dispatched is answered, and there is a reason or nothing to do.
    #[inline(always)]
    fn perhaps_end(&self, (through, committed): (u64, u64), tail: u64) {
        let m = self.memory();
        if committed < m.progress.dispatch_limit.get() {
            return;
        }
        let nothing = committed >= tail && through >= committed;
        let end = match m.signals.stop.get() {
            Decision::Continue if nothing => Decision::Wait,
            stop => stop,
        };
        if end != Decision::Continue {
            m.progress.end.set(end); // who reads it meets the others at a barrier next
        }
    }
}
