//! A stream of a kernel with ports: the first warp begins steps while there are messages and room, and tells consumers and
//! producers of those that are done; the other warps are workers.

use super::Area;
use super::known::Look;
use super::look::{CORRUPT, INLINE, Watch};
use crate::block::{Cooperate, Threads};
use crate::dispatch::channel::Channel;
use crate::kernel::Kernel;
use crate::memory::flow::{Chunks, STEPS, Turn};
use crate::memory::signals::Decision;
use core::sync::atomic::Ordering::Relaxed;
use ring_shared::atomics::{Gpu, MemoryScope, System};
use ring_shared::layout::Far;

/// Turns of the first warp in a row that find nothing, or no room, before a stream ends. Where a link is short for what goes over
/// it, there is more within a few of them, and a new stream would begin with two barriers of the block.
const LINGERS: u32 = if Threads::WARP > 1 { 32 } else { 0 };

/// What the first warp keeps in registers of a stream, from one turn to the next.
pub(super) struct Steps {
    /// Steps that have begun, and those of which consumers and producers were told; and messages that are under way.
    begun: u32,
    told: u32,
    under_way: u32,
    /// Of the next step to tell of: messages of which was told.
    part: u32,
    /// Turns, the last ones, in which nothing was found.
    fruitless: u32,
    /// Of the launch: chunks that workers may take, and those of which was told; and the worker that has the next one.
    chunks: u32,
    pub done: u32,
    worker: u32,
    /// Why no more steps begin, if so: the stream ends when those under way are done.
    stop: Decision,
}

impl<'c, K: Kernel> Channel<'c, K> {
    /// All threads: a stream, whose first step has begun. Whether to go on, to obey, or to leave.
    #[inline(always)]
    pub(super) fn stream(&self, watch: &mut Watch<'c>) -> Decision {
        if Threads::WARP == 1 {
            self.do_all(watch);
        } else if self.is_first_warp() {
            let mut steps = self.first_step();
            while !self.is_ended() {
                self.optimization_barrier().tend(watch, &mut steps);
            }
        } else {
            *watch = Watch::NONE; // it takes no registers meanwhile
            self.work_in_turns();
        }
        self.sync();
        match self.memory().progress.end.get() {
            Decision::Wait => Decision::Continue,
            end => end,
        }
    }

    /// A warp: whether the stream has ended.
    #[inline(always)]
    fn is_ended(&self) -> bool {
        let this = self.optimization_barrier();
        this.agreed(this.memory().progress.end.get() != Decision::Continue)
    }

    /// A warp that is not the first: does its share of the chunks, if it has an area.
    #[inline(always)]
    fn work_in_turns(&self) {
        let (me, workers) = (self.warp() - 1, self.layout().areas.workers);
        if me >= workers {
            return;
        }
        let (mut worker, mut next) = (self.worker(me), self.flow().next_of(me).load(Relaxed));
        loop {
            if self.optimization_barrier().work_on(&mut worker, next) {
                next = next.wrapping_add(workers); // workers take chunks in turns
            } else if self.is_ended() {
                return;
            }
        }
    }

    /// A CPU's thread: tends the stream, and does all its chunks.
    #[inline(always)]
    fn do_all(&self, watch: &mut Watch<'c>) {
        let (mut worker, mut fruitless) = (self.worker(0), 0u32);
        let mut steps = self.first_step();
        let mut next = self.flow().next_of(0).load(Relaxed);
        loop {
            if self.work_on(&mut worker, next) {
                next = next.wrapping_add(1);
                continue;
            }
            self.tend(watch, &mut steps);
            if self.is_ended() {
                return;
            }
            fruitless = fruitless.saturating_add(1);
            self.pause(fruitless, true);
        }
    }

    /// The first warp, before a barrier: begins a stream, with a step of `n` messages, as [`begin_step`](Self::begin_step) does.
    #[inline(always)]
    pub(super) fn begin_steps(&self, watch: &Watch<'_>, n: u32) {
        let first = self.chunks_begun();
        self.place_behind_sent(watch, first);
        if self.is_lane_0() {
            self.flow().is_inline.set(false);
            self.memory().progress.end.set(Decision::Continue);
        }
        self.warp_sync();
        self.begin_step(watch, (0, first), n);
    }

    /// The first warp, when a stream has begun: its one step.
    #[inline(always)]
    pub(super) fn first_step(&self) -> Steps {
        let (flow, stop) = (self.flow(), Decision::Continue);
        let (step, chunks, worker) = (flow.step(0), self.chunks_begun(), flow.worker.load(Relaxed));
        let (under_way, done) = (step.n.load(Relaxed), step.chunks.get().first);
        Steps { begun: 1, told: 0, under_way, part: 0, fruitless: 0, chunks, done, worker, stop }
    }

    /// The first warp: chunks of the launch that workers may take.
    #[inline(always)]
    pub(super) fn chunks_begun(&self) -> u32 {
        self.flow().chunks.load(Relaxed)
    }

    /// The first warp, while there is no stream: what the chunk of that number emits goes behind what was sent.
    #[inline(always)]
    pub(super) fn place_behind_sent(&self, watch: &Watch<'_>, chunk: u32) {
        let mut k = self.lane();
        while k < watch.outputs {
            // SAFETY: an output; only this warp touches its end.
            let next = unsafe { &(*self.output(k)).sink }.next();
            self.turn_of(k).set(Turn { chunk, index: next as u32 });
            k += Threads::WARP;
        }
    }

    /// The first warp: begins a step of `n` messages of the input in which they were found, in slots, behind those that other
    /// steps have taken; at most as many as a step may have; where `begun` steps have begun in the stream, and `first` chunks in the
    /// launch. What the look vouched for is acquired. Fewer steps than [`STEPS`] are under way. How many messages it has, and how
    /// many chunks have begun then.
    #[inline(always)]
    fn begin_step(&self, watch: &Watch<'_>, (begun, first): (u32, u32), n: u32) -> (u32, u32) {
        let (layout, flow) = (self.layout(), self.flow());
        let n = n.min(layout.most);
        let step = flow.step(begun);
        let of_chunk = layout.areas.chunk.max(1); // it is one at least, and the compiler is to know it
        let chunks = first.wrapping_add(n.div_ceil(of_chunk));
        if self.lane() == watch.lane_of_input(watch.input) {
            // SAFETY: an input of this lane; only this warp touches its end.
            let next = unsafe { &(*self.input(watch.input)).source }.next() as u32;
            // SAFETY: likewise.
            let ahead = unsafe { &mut (*self.input(watch.input)).ahead };
            step.index.store(next.wrapping_add(*ahead), Relaxed);
            let count = chunks.wrapping_sub(first);
            step.chunks.set(Chunks { first, count });
            step.n.store(n, Relaxed);
            step.input.store(watch.input, Relaxed);
            *ahead += n;
            self.fence_block(); // what this lane has acquired and set, for the workers
            flow.chunks.store(chunks, Relaxed);
        }
        self.warp_sync();
        (n, chunks)
    }

    /// The first warp's turn in a stream: tells of chunks that are done, begins another step, or ends the stream.
    #[inline(always)]
    pub(super) fn tend(&self, watch: &mut Watch<'_>, steps: &mut Steps) {
        // A CPU's thread has done all its steps when it comes here, and looks between two streams.
        let looks = Threads::WARP > 1 && steps.stop == Decision::Continue;
        let look = if looks { Some(self.begin_look(watch)) } else { None };
        let is_fenced = self.tell_of_chunks(watch, steps);
        let found = match look {
            Some(look) => self.look_for_step(watch, steps, look, is_fenced),
            None => 0,
        };
        steps.fruitless = if found == 0 { steps.fruitless.saturating_add(1) } else { 0 };
        let (flow, progress) = (self.flow(), &self.memory().progress);
        // Who finds something wrong is not done with its chunk.
        let wrong = !is_fenced && self.agreed(flow.wrong.get() != Decision::Continue);
        if wrong {
            // Chunks before the one that went wrong are sent.
            if self.is_lane_0() {
                self.fence_block(); // where, behind what
                if flow.wrong_at.get() == u64::from(steps.done) {
                    progress.end.set(flow.wrong.get());
                }
            }
        } else if steps.under_way == 0
            && (steps.stop != Decision::Continue || steps.fruitless > LINGERS || found == INLINE)
            && self.is_lane_0()
        {
            let stop = steps.stop;
            flow.worker.store(steps.worker, Relaxed);
            progress.end.set(if stop == Decision::Continue { Decision::Wait } else { stop });
        }
        self.warp_sync();
    }

    /// The first warp, in a stream whose end nobody has asked for: begins a step by what a look has shown, if there may be one
    /// more; what was found, or 0 if there is no room for it. Now and then it looks at the host's command.
    #[inline(always)]
    fn look_for_step(
        &self,
        watch: &mut Watch<'_>,
        steps: &mut Steps,
        look: Look,
        is_fenced: bool,
    ) -> u32 {
        let telemetry = &self.memory().telemetry;
        self.note_look(watch);
        if self.is_lane_0() {
            telemetry.unseen.set(watch.unseen);
        }
        if self.is_host_due(watch, true) {
            steps.stop = self.look_at_host();
            if self.agreed(self.flow().drains.get()) {
                steps.fruitless = LINGERS; // that all inputs are empty is found when there is no stream
            }
        }
        let found = self.end_look(watch, look);
        if found == CORRUPT {
            steps.stop = Decision::CorruptRing;
        }
        let may = steps.stop == Decision::Continue && steps.begun - steps.told < STEPS as u32;
        if found == 0 || found == INLINE || !may {
            return found;
        }
        match self.room_for(watch, found, steps.under_way) {
            None => steps.stop = Decision::CorruptRing,
            Some(0) => {
                if steps.under_way == 0 {
                    self.note_stalls(watch);
                }
                return 0;
            }
            Some(n) => {
                if watch.is_narrow && !is_fenced {
                    self.fence_links(watch); // before slots are read that the look vouches for, or written
                }
                let (n, chunks) = self.begin_step(watch, (steps.begun, steps.chunks), n);
                steps.chunks = chunks;
                steps.under_way += n;
                steps.begun += 1;
            }
        }
        found
    }

    /// The first warp: tells consumers and producers of all chunks that are done and have none before them that is not; whether
    /// there are any, behind a fence then.
    #[inline(always)]
    fn tell_of_chunks(&self, watch: &mut Watch<'_>, steps: &mut Steps) -> bool {
        let (n, worker) = self.chunks_done(steps);
        let done = steps.done.wrapping_add(n);
        if n == 0 || !self.note_ends(watch, done, self.area(worker)) {
            return false;
        }
        steps.worker = worker;
        self.fence_links(watch);
        self.send_noted(watch);
        self.take_chunks(watch, steps, done);
        true
    }

    /// The first warp: how many chunks are done behind those of which was told, and the worker that has the first one that is not.
    #[inline(always)]
    fn chunks_done(&self, steps: &Steps) -> (u32, u32) {
        let (workers, first) = (self.layout().areas.workers, steps.worker);
        // A lane has a worker: from the first chunk of which was not told, how far it is to the worker's next one, and to the first
        // that is the worker's.
        let me = self.lane();
        let ahead = self.flow().next_of(me).load(Relaxed).wrapping_sub(steps.done);
        let (mut its, mut all, mut worker) =
            (if me < first { me + workers - first } else { me - first }, 0, first);
        loop {
            // From that worker on, in the order of their chunks.
            let done = self.ballot(me < workers && ahead > its);
            let done = u64::from(done) >> first | u64::from(done) << (workers - first);
            let n = done.trailing_ones().min(workers);
            all += n;
            if n < workers {
                worker += n;
                return (all, if worker < workers { worker } else { worker - workers });
            }
            its += workers;
        }
    }

    /// The first warp, behind a fence: notes that all chunks before that of number `done` are done, and tells the producers of their
    /// messages.
    #[inline(always)]
    fn take_chunks(&self, watch: &Watch<'_>, steps: &mut Steps, done: u32) {
        let (flow, of_chunk) = (self.flow(), self.layout().areas.chunk);
        let mut handled = 0;
        while steps.told < steps.begun {
            let step = flow.step(steps.told);
            let (chunks, all) = (step.chunks.get(), step.n.load(Relaxed));
            let behind = done.wrapping_sub(chunks.first).min(chunks.count);
            let upto = if behind < chunks.count { behind * of_chunk } else { all };
            let (input, n) = (step.input.load(Relaxed), upto - steps.part);
            handled += n;
            if n > 0 && self.lane() == watch.lane_of_input(input) {
                // SAFETY: an input of this lane; only this warp touches its end.
                let source = unsafe { &mut (*self.input(input)).source };
                source.take_slots(n);
                // SAFETY: likewise.
                unsafe { (*self.input(input)).ahead -= n };
                if let Some(credit) = source.credit_to_tell(false) {
                    self.tell_producer(input, credit);
                }
            }
            if upto < all {
                steps.part = upto;
                break;
            }
            steps.part = 0;
            steps.told += 1;
        }
        steps.done = done;
        steps.under_way -= handled;
        if self.is_lane_0() {
            self.count_handled(handled.into());
        }
        self.warp_sync();
    }

    /// The first warp: notes for each output where the messages end that chunks before `number` have placed there; false if that is
    /// not known yet. `area` is that of the worker which has the chunk of that number, and is not done with it.
    #[inline(always)]
    pub(super) fn note_ends(&self, watch: &Watch<'_>, number: u32, area: Area) -> bool {
        let (mut output, step) = self.outputs_of_lane(watch);
        let mut are_known = true;
        while output < watch.outputs {
            let mut ends = self.turn_of(output).get();
            if ends.chunk != number {
                ends = area.placed(output).get(); // it has its place
            }
            are_known &= ends.chunk == number;
            // SAFETY: an output of this lane; only this warp touches that.
            unsafe { (*self.output(output)).ends = ends.index };
            output += step;
        }
        self.all(are_known)
    }

    /// The first warp, behind a fence: sends what was [noted](Self::note_ends).
    #[inline(always)]
    pub(super) fn send_noted(&self, watch: &mut Watch<'_>) {
        let (mut output, step) = self.outputs_of_lane(watch);
        while output < watch.outputs {
            // SAFETY: an output of this lane; only this warp touches its end, and what was noted.
            let (sink, ends) =
                unsafe { (&mut (*self.output(output)).sink, (*self.output(output)).ends) };
            // SAFETY: an output; nobody changes who has the other end.
            let far = unsafe { (*self.output(output)).far };
            let n = ends.wrapping_sub(sink.next() as u32);
            if n > 0 {
                let (atom, control) = sink.commit_slots(n);
                match far {
                    // SYNC: releases slots to the consumer's look, behind the fence.
                    Far::Channel => Gpu::store_whole(atom, control),
                    Far::Host | Far::Peer => System::store_whole(atom, control),
                }
                watch.known.next += u64::from(n); // of the lane's one output, where it keeps that
            }
            output += step;
        }
    }

    /// One thread: counts messages that were handled.
    #[inline(always)]
    pub(super) fn count_handled(&self, n: u64) {
        let inbox = &self.memory().inbox;
        let handled = inbox.next.get() + n;
        inbox.next.set(handled);
        inbox.tail.set(handled);
        inbox.seen_tail.set(handled);
    }

    /// The first warp, before the channel leaves: tells all producers how much is consumed.
    #[inline(always)]
    pub(super) fn tell_all(&self, watch: &Watch<'_>) {
        let mut k = 0;
        while k < watch.inputs {
            if self.lane() == watch.lane_of_input(k) {
                // SAFETY: an input of this lane; only this warp touches its end.
                let source = unsafe { &mut (*self.input(k)).source };
                if let Some(credit) = source.credit_to_tell(true) {
                    self.tell_producer(k, credit);
                }
            }
            k += 1;
        }
        self.warp_sync();
    }
}
