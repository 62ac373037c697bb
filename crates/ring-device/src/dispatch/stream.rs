//! Streams: warps that answer messages each by itself, side by side, while messages come.
//!
//! Indices are cut into chunks, and chunk after chunk belongs to worker after worker, so nobody
//! claims anything. A **worker** brings its next chunk, or what there is of it, over the bus, handles
//! it and writes the answers; then it says which request it handles next. The **conductor** says how
//! far workers may go, and tells the host of all answers below the least of their places: one fence
//! for all of them. The **scout** keeps looking at what the host says. So the bus is read, written,
//! waited for and looked at all at once. A team of few warps, or of one CPU thread, takes these parts
//! in turns.
//!
//! A stream ends when a look that began after the last answer shows nothing new, and for whatever
//! ends a batch.

use super::{Channel, verdict};
use crate::kernel::{Kernel, Scope};
use crate::team::{AHEAD, POLLERS, POOL_BYTES, STAGE, Team, Words};
use core::sync::atomic::Ordering::Relaxed;
use ring_shared::Message;
use ring_shared::layout::Exit;
use ring_shared::ring::{Seen, credit_is_due, decide};

impl<K: Kernel> Channel<'_, K> {
    /// Bytes from one message to the next in a stage.
    const STRIDE: usize = 16 * <K::Scope as Scope<K>>::STRIDE;

    /// Most messages of a chunk, a power of two.
    const CHUNK: usize = {
        let (bytes, most) = STAGE;
        let fit = bytes / Self::STRIDE;
        let fit = if fit < most { fit } else { most };
        if fit == 0 { 1 } else { 1 << fit.ilog2() }
    };

    /// Whether a chunk has more for each thread of a warp to read than four atoms.
    const WIDE: bool = Self::CHUNK * K::Request::SLOT_ATOMS > 4 * 32;

    /// Most workers: each has a stage.
    const CREW: u32 = (POOL_BYTES / (Self::CHUNK * Self::STRIDE)) as u32;

    /// The first worker's warp, and how many workers there are: the first two warps have other
    /// things to do, if there are more.
    #[inline(always)]
    fn crew(team: Team<'_>) -> (u32, u32) {
        let first = team.warps().min(POLLERS as u32 + 1) - 1;
        (first, (team.warps() - first).min(Self::CREW))
    }

    /// Most messages of an iteration; in a launch of limited time such that one more call of the
    /// handler is all that can come after the time is over.
    #[inline(always)]
    pub(super) fn most(team: Team<'_>, timed: bool) -> u64 {
        let (alone, abreast) =
            (<K::Scope as Scope<K>>::ALONE, <K::Scope as Scope<K>>::abreast(team));
        match (alone, timed) {
            (true, true) => {
                let chunk = abreast.min(Self::CHUNK as u32);
                u64::from((Self::crew(team).1 - 1) * chunk + 1)
            }
            (true, false) => u64::from(Self::crew(team).1) * (AHEAD * Self::CHUNK) as u64,
            (false, true) => 1,
            (false, false) => Self::WINDOW,
        }
    }

    /// Messages of a chunk: no more than the ring holds, so that a chunk never passes its end.
    #[inline(always)]
    pub(super) fn chunk_of(team: Team<'_>, timed: bool, capacity: u32) -> u64 {
        let abreast = if timed { <K::Scope as Scope<K>>::abreast(team) } else { u32::MAX };
        u64::from(capacity.min(abreast).min(Self::CHUNK as u32))
    }

    /// Answers the requests in slots up to `Shared::tail`, and what comes meanwhile. `GO_ON`,
    /// `COMMAND`, or why the channel is to leave.
    #[inline(always)]
    pub(super) fn stream(&self) -> u64 {
        let (team, s) = (self.team, self.shared());
        let (first, crew) = Self::crew(team);
        let me = team.warp().wrapping_sub(first);
        if team.poller() == Some(0) {
            self.begin_stream(crew);
        }
        team.sync();
        let mut place = self.first_place(s.head.load(Relaxed), me);
        let (mut looks, mut fruitless) = (0u32, 0u32);
        let last = team.pollers() - 1;
        loop {
            if me < crew {
                let before = place;
                place = self.afresh().work(place, me, crew);
                fruitless = if place == before { fruitless.saturating_add(1) } else { 0 };
            }
            if team.poller() == Some(0) {
                looks = self.afresh().conduct(crew, looks);
            }
            if team.poller() == Some(last) {
                self.afresh().scout();
            }
            if self.afresh().is_over() {
                break;
            }
            team.rest(fruitless, true);
        }
        team.sync();
        let found = s.over.load(Relaxed);
        if found == verdict::STOP { verdict::GO_ON } else { found }
    }

    /// Whether the stream has ended.
    #[inline(always)]
    fn is_over(&self) -> bool {
        self.team.uniform(self.shared().over.load(Relaxed)) != verdict::GO_ON
    }

    /// Where worker `me` begins in a stream from request `head` on.
    #[inline(always)]
    fn first_place(&self, head: u64, me: u32) -> u64 {
        let chunk = self.shared().chunk.load(Relaxed);
        if me == 0 { head } else { (head & !(chunk - 1)) + u64::from(me) * chunk }
    }

    /// Warp 0: the beginning of a stream, before a barrier.
    #[inline(always)]
    fn begin_stream(&self, crew: u32) {
        let (team, s) = (self.team, self.shared());
        let head = s.head.load(Relaxed);
        let mut w = team.in_warp();
        while w < crew {
            if let Some(place) = s.places.get(w as usize) {
                place.store(self.first_place(head, w), Relaxed);
            }
            w += team.warp_size();
        }
        if team.is_leader() {
            s.done.store(head, Relaxed);
            s.stop.store(verdict::GO_ON, Relaxed);
            s.over.store(verdict::GO_ON, Relaxed);
            s.covered.store(0, Relaxed);
            s.corrupt.store(0, Relaxed);
            s.called.store(0, Relaxed);
            s.looks.store(0, Relaxed);
            // The other polling warp may have answered what the event was about.
            let tail = s.tail.load(Relaxed).max(head);
            s.tail.store(tail, Relaxed);
            s.split.store(tail, Relaxed);
            s.unseen_next.store(s.unseen.load(Relaxed), Relaxed);
            let go = self.reach(head);
            s.go.store(go, Relaxed);
            self.next_limit(s.tail.load(Relaxed) > go);
            if go > head {
                self.note_work();
            }
        }
    }

    /// A worker's step: handles what there is of its chunk; its next place.
    #[inline(always)]
    fn work(&self, place: u64, me: u32, crew: u32) -> u64 {
        let (team, s) = (self.team, self.shared());
        let go = team.uniform(s.go.load(Relaxed));
        if place >= go {
            return place;
        }
        // What the scout has acquired is there for the thread that read `go`, and then for all of the
        // warp: the shuffle that tells them of it orders nothing.
        team.fence_team();
        team.warp_sync();
        let last = s.chunk.load(Relaxed) as u32 - 1;
        let n = (go - place).min(u64::from(last - (place as u32 & last) + 1)) as u32;
        let (took, waited) = match self.pass(place, n) {
            Some(times) => times,
            None => {
                let this = self.afresh();
                this.bring(place, n, this.stage_of(me));
                team.warp_sync();
                let this = self.afresh();
                let times = this.handle(place, n, this.stage_of(me));
                team.survive();
                team.warp_sync();
                let this = self.afresh();
                this.send(place, n, this.stage_of(me));
                times
            }
        };
        let this = self.afresh();
        team.warp_sync();
        let (s, mut place) = (this.shared(), place + u64::from(n));
        let chunk = s.chunk.load(Relaxed) as u32;
        if place as u32 & (chunk - 1) == 0 {
            place += u64::from((crew - 1) * chunk);
        }
        if team.is_leader() {
            team.fence_team(); // the warp's answers, for the conductor
            if let Some(mine) = s.places.get(me as usize) {
                mine.store(place, Relaxed);
            }
            this.count_some(n, took, waited);
        }
        place
    }

    /// The stage of worker `me`.
    #[inline(always)]
    fn stage_of(&self, me: u32) -> *mut u8 {
        self.team.memory().pool.bytes(me as usize * Self::CHUNK * Self::STRIDE)
    }

    /// A worker that is all the team: handles `n` messages from `place` on from ring to ring; ticks
    /// that they took, and waited at most.
    #[inline(always)]
    fn pass(&self, place: u64, n: u32) -> Option<(u64, u64)> {
        if cfg!(target_arch = "nvptx64") {
            return None;
        }
        let unseen = self.unseen(place);
        let (began, payload) = (self.team.ticks(), self.payload());
        let (from, to) = (self.inbox().from(place), self.outbox().from(place));
        let done = <K::Scope as Scope<K>>::straight(self.team, payload, from, to, n);
        done.then(|| (self.team.ticks().wrapping_sub(began), began.wrapping_sub(unseen)))
    }

    /// A worker: handles the `n` messages in its stage, from `place` on; ticks that they took, and
    /// waited at most.
    #[inline(always)]
    fn handle(&self, place: u64, n: u32, stage: *mut u8) -> (u64, u64) {
        let team = self.team;
        let unseen = self.unseen(place);
        let began = team.ticks();
        // SAFETY: the `n` messages of this worker's own stage, at most CHUNK; the warp synchronises.
        unsafe { <K::Scope as Scope<K>>::warp(team, self.payload(), stage, n) };
        (team.ticks().wrapping_sub(began), began.wrapping_sub(unseen))
    }

    /// When the last look began that did not show message `place`.
    #[inline(always)]
    fn unseen(&self, place: u64) -> u64 {
        let s = self.shared();
        // In this order: see the scout.
        let next = s.unseen_next.load(Relaxed);
        let (split, unseen) = (s.split.load(Relaxed), s.unseen.load(Relaxed));
        if place < split { unseen } else { next }
    }

    /// A worker: reads requests `place..place + n` into its stage.
    #[inline(always)]
    fn bring(&self, place: u64, n: u32, stage: *mut u8) {
        let (team, atoms) = (self.team, K::Request::SLOT_ATOMS as u32);
        // A chunk does not pass the ring's end.
        let Some(slots) = self.inbox().from(place).get(..(n * atoms) as usize) else { return };
        let read = |t: u32| slots.get(t as usize).map_or([0; 2], |atom| atom.load());
        let keep = |t: u32, words: Words| {
            if (t as usize) < slots.len() {
                // SAFETY: an atom of message `m < n` of this worker's stage; each has one thread.
                unsafe { Self::in_stage(stage, t, atoms).write(words) };
            }
        };
        let (mut t, step) = (team.in_warp(), team.warp_size());
        while (t as usize) < slots.len() {
            // All in flight before the first is used.
            let four = |t| [read(t), read(t + step), read(t + 2 * step), read(t + 3 * step)];
            let keep_four = |t, words: [Words; 4]| {
                keep(t, words[0]);
                keep(t + step, words[1]);
                keep(t + 2 * step, words[2]);
                keep(t + 3 * step, words[3]);
            };
            let words = four(t);
            if Self::WIDE {
                let more = four(t + 4 * step);
                keep_four(t, words);
                keep_four(t + 4 * step, more);
                t += 8 * step;
            } else {
                keep_four(t, words);
                t += 4 * step;
            }
        }
    }

    /// A worker: writes responses `place..place + n` from its stage.
    #[inline(always)]
    fn send(&self, place: u64, n: u32, stage: *mut u8) {
        let (team, atoms) = (self.team, K::Response::SLOT_ATOMS as u32);
        // A chunk does not pass the ring's end.
        let Some(slots) = self.outbox().from(place).get(..(n * atoms) as usize) else { return };
        let answers = stage.wrapping_add(16 * <K::Scope as Scope<K>>::ANSWER);
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
        let (mut t, step) = (team.in_warp(), team.warp_size());
        while (t as usize) < slots.len() {
            let words = [read(t), read(t + step)];
            write(t, words[0]);
            write(t + step, words[1]);
            t += 2 * step;
        }
    }

    /// Where atom `t` of messages of so many atoms is in a stage.
    #[inline(always)]
    fn in_stage(stage: *mut u8, t: u32, atoms: u32) -> *mut Words {
        let at = (t / atoms) as usize * Self::STRIDE + 16 * (t % atoms) as usize;
        stage.wrapping_add(at).cast()
    }

    /// Thread 0: how far workers may go from `done` on.
    #[inline(always)]
    fn reach(&self, done: u64) -> u64 {
        let s = self.shared();
        let room = s.credit.load(Relaxed) + u64::from(self.outbox().capacity());
        let limit = done.saturating_add(s.limit.load(Relaxed));
        // A credit that is too far behind is not to call anybody back.
        s.tail.load(Relaxed).min(room).min(limit).max(done)
    }

    /// The conductor's step: tells of what was answered, and lets workers go on. `looked` is how many
    /// looks there were at its last step.
    #[inline(always)]
    fn conduct(&self, crew: u32, looked: u32) -> u32 {
        let (team, s) = (self.team, self.shared());
        let (mut least, mut w) = (u64::MAX, team.in_warp());
        while w < crew {
            let place = s.places.get(w as usize).map_or(u64::MAX, |place| place.load(Relaxed));
            least = least.min(place);
            w += team.warp_size();
        }
        let done = team.warp_min(least);
        team.fence_team(); // the answers below their places, for the leader to pass on
        team.warp_sync();
        let (mut due, mut looks) = (false, looked);
        if team.is_leader() {
            looks = s.looks.load(Relaxed) as u32;
            let now = team.now();
            let progress = done != s.done.load(Relaxed);
            s.done.store(done, Relaxed);
            team.fence_team(); // before the host hears of it: the scout checks by it what it says
            self.let_go(done, now, progress, looks != looked);
            due = self.beat(done, now);
            if due && self.lease_is_over() && s.stop.load(Relaxed) == verdict::GO_ON {
                s.stop.store(Exit::LeaseOver as u64, Relaxed);
            }
            if progress {
                team.fence(); // the answers of all workers, before the tail
                self.publish_tail(done, s.credit.load(Relaxed));
                let published = s.published.load(Relaxed);
                if credit_is_due(done, published, self.inbox().capacity()) {
                    self.publish_consumed(done);
                }
            }
            self.perhaps_end(done);
        }
        if team.agreed(due) {
            self.flush();
        }
        team.uniform(u64::from(looks)) as u32
    }

    /// Thread 0, requests below `done` being answered: lets workers go further, if there is more,
    /// there is room for it, and nothing is in the way.
    #[inline(always)]
    fn let_go(&self, done: u64, now: u64, progress: bool, looked: bool) {
        let s = self.shared();
        let go = s.go.load(Relaxed);
        let rests = done == go;
        if rests && progress {
            self.note_rest(now);
        }
        if s.stop.load(Relaxed) != verdict::GO_ON {
            return;
        }
        if self.is_eager() {
            let covered = s.covered.load(Relaxed);
            self.team.fence_team(); // what that look showed
            if covered < done {
                return; // not before a look that began after the last answer
            }
        }
        if s.corrupt.load(Relaxed) != 0 {
            s.stop.store(Exit::CorruptRing as u64, Relaxed);
            return;
        }
        if s.command.load(Relaxed) != s.obeyed.load(Relaxed) {
            s.stop.store(verdict::COMMAND, Relaxed);
            return;
        }
        let to = self.reach(done);
        let more = to > go;
        let starved = rests && !more && s.tail.load(Relaxed) > done;
        if starved {
            s.allowed.store(s.idle.load(Relaxed), Relaxed); // there is something to do
            if s.published.load(Relaxed) != done {
                self.publish_consumed(done); // the host may fill those slots while we wait
            }
        }
        if self.is_limited() && (more || (rests && looked)) {
            let called = self.caller().is_some()
                && s.called.load(Relaxed) == super::budget::launch(self.team);
            let why = self.spent(now, rests && !more, called);
            if why != verdict::GO_ON {
                s.stop.store(why, Relaxed);
                return;
            }
        }
        if more {
            self.note_work();
            self.next_limit(s.tail.load(Relaxed) > to);
            self.team.fence_team(); // what the scout has acquired, for the workers
            s.go.store(to, Relaxed);
        }
    }

    /// Thread 0: ends the stream if nobody is at work, and there is a reason or nothing to do.
    #[inline(always)]
    fn perhaps_end(&self, done: u64) {
        let s = self.shared();
        if done < s.go.load(Relaxed) {
            return;
        }
        let stop = s.stop.load(Relaxed);
        let covered = s.covered.load(Relaxed);
        self.team.fence_team(); // the tail that was seen with it
        let nothing = done >= s.tail.load(Relaxed) && covered >= done;
        let over = match stop {
            verdict::GO_ON if nothing => verdict::STOP,
            stop => stop,
        };
        if over != verdict::GO_ON {
            s.head.store(done, Relaxed);
            self.publish_consumed(done);
            self.team.fence_team(); // all that was said before the end
            s.over.store(over, Relaxed);
        }
    }

    /// The scout's step: one look at all that the host says.
    #[inline(always)]
    fn scout(&self) {
        let (team, s) = (self.team, self.shared());
        let (covered, began) = (team.uniform(s.done.load(Relaxed)), team.ticks());
        let lines = (self.inbox().bell(), self.outbox().credit());
        let seen = team.glance(lines, self.host(), self.caller());
        team.warp_sync(); // what each thread has acquired, for the leader to pass on
        if team.is_leader() {
            team.fence_team();
            let (done, tail) = (s.done.load(Relaxed), s.tail.load(Relaxed));
            let mut wrong = !self.take_credit(seen.credit, done);
            self.credit_of_doorbell(seen.control, done);
            s.wire.store(u64::from(seen.control.tail), Relaxed);
            s.command.store(seen.command, Relaxed);
            s.called.store(seen.call, Relaxed);
            let mut until = covered;
            match decide(seen.control, tail, self.inbox().capacity()) {
                Seen::Nothing => {}
                // Rung when all before was consumed: for the polling warps.
                Seen::Inline => until = u64::MAX,
                Seen::Slots(n) => {
                    let new = tail + u64::from(n);
                    wrong |= new.saturating_sub(done) > u64::from(self.inbox().capacity());
                    // What is known of times reaches back two looks, so the third waits.
                    if !wrong && done >= s.split.load(Relaxed) {
                        s.unseen.store(s.unseen_next.load(Relaxed), Relaxed);
                        s.split.store(tail, Relaxed);
                        s.unseen_next.store(s.seen.load(Relaxed), Relaxed);
                        s.tail.store(new, Relaxed);
                    }
                }
                Seen::Corrupt(_) => wrong = true,
            }
            s.seen.store(began, Relaxed);
            if wrong {
                s.corrupt.store(1, Relaxed);
            }
            team.fence_team(); // the tail before `covered`
            s.covered.store(until, Relaxed);
            s.looks.store(s.looks.load(Relaxed).wrapping_add(1), Relaxed);
        }
        team.warp_sync();
    }
}
