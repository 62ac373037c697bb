//! A worker of a stream: takes its chunks of steps, handles their messages, and writes what is emitted to the outputs.
//!
//! A chunk takes a warp some thousand cycles, of which it issues instructions in an eighth: for the rest it waits for the one before, for
//! block-shared memory, or at a branch. So what every chunk comes through has few loads that wait for each other, and few branches:
//! lanes that have nothing to do read what the last one with something to do reads, and do not write.

use super::worker::{TakenStep, Worker};
use super::{Area, fits_once};
use crate::block::{Cooperate, Piece, Threads, Words};
use crate::dispatch::channel::Channel;
use crate::emissions::Stages;
use crate::kernel::{Kernel, Scope};
use crate::memory::flow::STEPS;
use crate::memory::signals::Decision;
use crate::memory::trace::Times;
use core::sync::atomic::Ordering::Relaxed;
use ring_shared::Message;
use ring_shared::atomics::{Gpu, MemoryScope, System};
use ring_shared::ring::SlotsOf;

/// Looks at whose turn it is for each at whether it is over: the next worker waits for this one.
pub(super) const LOOKS: u32 = 64;

/// A chunk of a step.
#[derive(Clone, Copy)]
pub(super) struct Chunk {
    /// Its number.
    number: u32,
    /// The low half of the index of its first message.
    index: u32,
    /// How many there are.
    pub n: u32,
}

impl<'c, K: Kernel> Channel<'c, K> {
    /// A worker: does all that is to do for the chunk of that number, if it is there; whether it is.
    #[inline(always)]
    pub(super) fn work_on(&self, worker: &mut Worker<'c>, number: u32) -> bool {
        let Some(chunk) = self.find_chunk(worker, number) else { return false };
        self.bring_chunk(worker, &chunk);
        let this = self.optimization_barrier();
        let in_order = <K::Scope as Scope<K>>::EMITS_IN_ORDER;
        if in_order && !this.await_turn(number) {
            return true;
        }
        let (began, unseen) = (this.ticks(), this.memory().telemetry.unseen.get());
        let mut fits = true;
        // SAFETY: the stages of this worker, with as many requests in them as the chunk has; the warp synchronises before and
        // after. In order, it is this worker's turn.
        unsafe {
            let (stages, n) = (worker.area.stages.aligned(), chunk.n);
            <K::Scope as Scope<K>>::emit(this.block, this.payload(), stages, n, |its| fits = its);
        }
        this.exit_if_warp_panicked();
        this.warp_sync();
        let times = Times::new((began, this.ticks()), unseen);
        let fits = this.all(fits);
        if in_order && fits {
            this.pass_turn_on(number);
        }
        this.finish_chunk(worker, &chunk, fits, times);
        true
    }

    /// A worker: brings a chunk, which is of the step that it has, to the stages of its area.
    #[inline(always)]
    pub(super) fn bring_chunk(&self, worker: &Worker<'c>, chunk: &Chunk) {
        let (stages, step) = (worker.area.stages, &worker.step);
        let slots = step.slots.and_then(|slots| slots.of(Self::REQUEST_ATOMS));
        let Some(slots) = slots else { return }; // never: it was checked
        match step.far.is_on_device() {
            true => self.read_slots::<Gpu>(chunk, slots, stages),
            false => self.read_slots::<System>(chunk, slots, stages),
        }
        self.warp_sync();
    }

    /// A worker: sends on what was emitted for a chunk to the outputs' slots, and says so, or what is wrong: if not all
    /// `fits`, its handlers have emitted too many.
    #[inline(always)]
    pub(super) fn finish_chunk(
        &self,
        worker: &Worker<'c>,
        chunk: &Chunk,
        fits: bool,
        times: Times,
    ) {
        let this = self.optimization_barrier();
        let (are_there, emitted) = this.list(worker, chunk.n);
        if !this.all(fits && are_there) {
            let wrong = if fits { Decision::NoSuchChannel } else { Decision::EmittedTooMany };
            this.tell_of_wrong(worker.area, chunk.number, wrong);
            return;
        }
        let Some(index) = this.place(worker, &emitted, chunk.number) else { return };
        let this = self.optimization_barrier();
        this.write_emissions(worker, &emitted, index);
        this.warp_sync();
        if this.is_lane_0() {
            this.fence_block(); // the warp's messages, for the first warp
            let next = chunk.number.wrapping_add(this.layout().areas.workers);
            this.flow().next_of(worker.me).store(next, Relaxed);
            let threads = this.threads_of_block();
            this.memory().telemetry.count_some(threads, chunk.n, times.took, times.waited);
        }
        this.warp_sync();
        this.trace_chunk(worker.area, (worker.step.input, chunk.index, chunk.n), times);
    }

    /// A worker: the chunk of that number, which is its own, if it is there. Its step is the one that the worker has then.
    #[inline(always)]
    pub(super) fn find_chunk(&self, worker: &mut Worker<'c>, number: u32) -> Option<Chunk> {
        let before = match worker.step.chunks.before(number) {
            Some(before) => before, // they came together
            None => {
                worker.step = self.find_step(number)?;
                worker.step.chunks.before(number)?
            }
        };
        let (step, most) = (&worker.step, worker.area.chunk);
        let first = before * most;
        let index = step.index.wrapping_add(first);
        Some(Chunk { number, index, n: (step.n - first).min(most) })
    }

    /// A worker: the step of the chunk of that number, if it is there.
    #[inline(always)]
    fn find_step(&self, number: u32) -> Option<TakenStep<'c>> {
        let flow = self.flow();
        let ahead = self.broadcast32(flow.chunks.load(Relaxed)).wrapping_sub(number);
        if ahead as i32 <= 0 {
            return None;
        }
        self.fence_block(); // the step, and what the first warp has acquired
        // Each lane looks at a step. That of the chunk stays as it is until the chunk is done.
        let mut place = 0;
        if Threads::WARP > 1 {
            let chunks = flow.step(self.lane()).chunks.get();
            place = self.ballot(chunks.before(number).is_some()).trailing_zeros() % STEPS as u32;
        }
        let step = flow.step(place);
        let input = step.input.load(Relaxed);
        let (slots, far) = self.slots_of_input(input);
        Some(TakenStep {
            chunks: step.chunks.get(),
            n: step.n.load(Relaxed),
            index: step.index.load(Relaxed),
            slots,
            far,
            input,
        })
    }

    /// Whether no chunk is worked on any more, as the calling thread knows it.
    #[inline(always)]
    pub(super) fn is_over(&self) -> bool {
        self.flow().wrong.get() != Decision::Continue
            || self.memory().progress.end.get() != Decision::Continue
    }

    /// A worker, where messages are handled one after the other: waits until all before the chunk are handled; false if that is
    /// not to be.
    #[inline(always)]
    fn await_turn(&self, number: u32) -> bool {
        let turn = &self.flow().turn;
        let is_turn = loop {
            let mut looks = 0;
            while turn.load(Relaxed) != number && looks < LOOKS {
                looks += 1;
            }
            if self.agreed(looks < LOOKS) {
                break true;
            }
            if self.agreed(self.is_over()) {
                break false;
            }
        };
        self.fence_block(); // what the worker before has left
        self.warp_sync();
        is_turn
    }

    /// A worker: lets the next one handle messages.
    #[inline(always)]
    fn pass_turn_on(&self, number: u32) {
        self.fence_block(); // what the handler has left
        self.warp_sync();
        if self.is_lane_0() {
            self.flow().turn.store(number.wrapping_add(1), Relaxed);
        }
    }

    /// A worker: waits for the chunk's turn in all outputs, and says what is wrong with it. Nothing of it is sent, and nobody's
    /// turn comes any more.
    #[cold]
    #[inline(always)]
    fn tell_of_wrong(&self, area: Area, number: u32, wrong: Decision) {
        let (mut k, mut is_turn) = (0, true);
        while k < area.outputs && is_turn {
            is_turn = self.await_place((k + self.lane()).min(area.outputs - 1), number);
            k += Threads::WARP;
        }
        if is_turn && self.is_lane_0() {
            let flow = self.flow();
            flow.wrong_at.set(number.into());
            self.fence_block(); // where, before what
            flow.wrong.set(wrong);
        }
        self.warp_sync();
    }

    /// A worker: waits for the turn of a chunk in an output of each lane; false if their turn is not to come.
    #[inline(always)]
    fn await_place(&self, output: u32, number: u32) -> bool {
        let turn = self.turn_of(output);
        loop {
            let (mut looks, mut seen) = (0, turn.get());
            while seen.chunk != number && looks < LOOKS {
                seen = turn.get();
                looks += 1;
            }
            if self.all(seen.chunk == number) {
                return true;
            }
            if self.agreed(self.is_over()) {
                return false;
            }
        }
    }

    /// A worker: brings a chunk from its slots, which the threads of `S` share, to `stages`.
    #[inline(always)]
    fn read_slots<S: MemoryScope>(&self, chunk: &Chunk, slots: SlotsOf<'_>, stages: Stages) {
        let atoms = Self::REQUEST_ATOMS;
        let (all, step) = (chunk.n * atoms.get(), Threads::WARP);
        let read = |t: u32| S::load(slots.atom(chunk.index, t.min(all - 1)));
        let keep = |t: u32, words: Words| {
            if t < all {
                let stage = stages.stage(Self::STAGE_STRIDE, t / atoms);
                let at = stage.wrapping_add(16 * (t % atoms) as usize).cast::<Piece>();
                // SAFETY: an atom of the request of message `t / atoms` of the chunk, in the stages, which begin at multiples of 16;
                // each has one thread.
                unsafe { at.write(Piece(words)) };
            }
        };
        let mut first = 0;
        loop {
            let t = first + self.lane();
            let words = [read(t), read(t + step), read(t + 2 * step), read(t + 3 * step)];
            self.warp_sync(); // all in flight before the first is used
            keep(t, words[0]);
            keep(t + step, words[1]);
            keep(t + 2 * step, words[2]);
            keep(t + 3 * step, words[3]);
            first += 4 * step;
            if fits_once(K::Request::SLOT_ATOMS) || first >= all {
                return;
            }
        }
    }
}
