//! Messages that the whole block handles, one after the other. The first warp is the one worker: it brings messages to its
//! stages, and sends on what was emitted for them. Before they are handled, and after, all threads meet at a barrier, so
//! that the other warps need to know nothing but how many there are.

use super::Area;
use super::known::Look;
use super::look::Watch;
use super::stream::Steps;
use super::work::Chunk;
use super::worker::Worker;
use crate::block::Cooperate;
use crate::dispatch::channel::Channel;
use crate::kernel::{Emitters, Kernel, Scope};
use crate::memory::signals::Decision;
use crate::memory::trace::Times;
use core::sync::atomic::Ordering::Relaxed;
use ring_shared::atomics::AtomicU32;

impl<'c, K: Kernel> Channel<'c, K> {
    /// Whether the whole block handles each message.
    pub(super) const TOGETHER: bool = matches!(<K::Scope as Scope<K>>::EMITTERS, Emitters::Block);

    /// How many messages in the first stages all threads are to handle next; 0 if the stream is over. It is the word of whose turn it
    /// is among workers that handle messages one after the other, of which there is one here.
    #[inline(always)]
    fn brought(&self) -> &AtomicU32 {
        &self.flow().turn
    }

    /// The first warp, while there is no stream: takes the message that came inline to the first stage, if it is all there and
    /// there is room for what it emits, for all threads to handle. What is to do next.
    #[inline(always)]
    pub(super) fn take_together(&self, watch: &Watch<'_>, look: Look) -> Decision {
        if let Err(why) = self.take_inline(watch, look) {
            return why;
        }
        self.begin_taken(watch);
        if self.is_lane_0() {
            self.flow().is_inline.set(true);
        }
        self.warp_sync();
        Decision::Continue
    }

    /// All threads: handles the message that [came inline](Self::take_together), or the steps of a stream, whose first has begun.
    /// Whether to go on, to obey, or to leave.
    #[inline(always)]
    pub(super) fn together(&self, watch: &mut Watch<'_>) -> Decision {
        if self.flow().is_inline.get() {
            self.handle_one(watch, self.area(0));
        } else {
            self.handle_steps(watch);
        }
        self.sync();
        match self.memory().progress.end.get() {
            Decision::Wait => Decision::Continue,
            end => end,
        }
    }

    /// All threads, behind a barrier: handles the messages in the first `n` stages, up to another barrier. False for a thread
    /// whose handler emitted too many.
    #[inline(always)]
    fn handle_brought(&self, area: Area, n: u32) -> (bool, Times) {
        let (began, unseen) = (self.ticks(), self.memory().telemetry.unseen.get());
        let mut fits = true;
        // SAFETY: the stages of the one worker, with as many requests in them; all threads come here, with a barrier before and
        // after.
        unsafe {
            let stages = area.stages.aligned();
            <K::Scope as Scope<K>>::emit(self.block, self.payload(), stages, n, |its| fits = its);
        }
        self.sync();
        (fits, Times::new((began, self.ticks()), unseen))
    }

    /// All threads: handles the message that came inline, and sends what it emits. The first warp says how it ended.
    #[inline(always)]
    fn handle_one(&self, watch: &mut Watch<'_>, area: Area) {
        if self.is_first_warp() {
            self.trace_places(watch, area);
        }
        let (fits, times) = self.handle_brought(area, 1);
        let this = self.optimization_barrier();
        if this.is_first_warp() {
            let m = this.memory();
            if this.is_lane_0() {
                m.telemetry.count(1, times.took, times.waited);
            }
            let (end, _) = this.send_emitted(watch, fits, false);
            if this.is_lane_0() {
                if end == Decision::Wait {
                    this.count_handled(1);
                }
                m.progress.end.set(end);
            }
            this.warp_sync();
            if end == Decision::Wait {
                this.trace_alone(watch, area, times);
            }
        }
    }

    /// All threads: handles the steps of a stream, a chunk between two barriers.
    #[inline(always)]
    fn handle_steps(&self, watch: &mut Watch<'_>) {
        let (mut steps, mut worker) = (self.first_step(), self.worker(0));
        let mut number = steps.done;
        loop {
            let this = self.optimization_barrier();
            let mut chunk = None;
            if this.is_first_warp() {
                chunk = this.next_chunk(watch, &mut steps, &mut worker, number);
                if this.is_lane_0() {
                    this.brought().store(chunk.map_or(0, |chunk| chunk.n), Relaxed);
                }
            }
            this.sync();
            let n = this.brought().load(Relaxed);
            if n == 0 {
                return;
            }
            let (fits, times) = this.handle_brought(worker.area, n);
            // The first warp has it. The word is read by all before it is written again, behind this barrier.
            if let Some(chunk) = &chunk {
                this.finish_chunk(&worker, chunk, this.all(fits), times);
            }
            number = number.wrapping_add(1);
        }
    }

    /// The first warp: brings the chunk of that number, and tells meanwhile of chunks that are done and begins steps; `None` when the
    /// stream is over.
    #[inline(always)]
    fn next_chunk(
        &self,
        watch: &mut Watch<'_>,
        steps: &mut Steps,
        worker: &mut Worker<'c>,
        number: u32,
    ) -> Option<Chunk> {
        let mut looks = 0u32;
        loop {
            let this = self.optimization_barrier();
            // Behind one that went wrong none is handled.
            let is_well = this.agreed(this.flow().wrong.get() == Decision::Continue);
            if is_well && let Some(chunk) = this.find_chunk(worker, number) {
                this.bring_chunk(worker, &chunk);
                return Some(chunk);
            }
            this.tend(watch, steps);
            if this.agreed(this.memory().progress.end.get() != Decision::Continue) {
                return None;
            }
            looks = looks.saturating_add(1);
            this.pause(looks, true);
        }
    }
}
