//! What a channel notes of the messages that it has handled, and of what was emitted for them, in its trace ring.

use super::Area;
use super::look::Watch;
use crate::block::{Cooperate, Threads};
use crate::dispatch::channel::Channel;
use crate::kernel::Kernel;
use crate::memory::flow::Turn;
use crate::memory::trace::{Handled, Times};
use core::sync::atomic::Ordering::Relaxed;
use ring_shared::trace::OfEnd;

impl<K: Kernel> Channel<'_, K> {
    /// All threads of a warp, when the chunk in an area is handled and what was emitted has its places: notes which messages these are, by
    /// the number of their input, the low half of the first one's index, and how many they are; and what each output got.
    #[inline(always)]
    pub(super) fn trace_chunk(&self, area: Area, messages: (u32, u32, u32), times: Times) {
        if self.has_trace() {
            self.note_chunk(area, messages, times);
        }
    }

    /// All threads of a warp: whether there is a trace ring.
    #[inline(always)]
    fn has_trace(&self) -> bool {
        Self::TRACES && self.agreed(self.memory().trace.is_on())
    }

    /// All threads of a warp, if there is a trace ring: as [`trace_chunk`](Self::trace_chunk).
    #[inline(always)]
    fn note_chunk(&self, area: Area, (input, index, n): (u32, u32, u32), times: Times) {
        let trace = &self.memory().trace;
        let count = |output: u32| match output < area.outputs {
            true => area.of_output(output).load(Relaxed),
            false => 0,
        };
        let (mut first, mut following) = (0, 0);
        while first < area.outputs {
            following += self.ballot(count(first + self.lane()) > 0).count_ones();
            first += Threads::WARP;
        }
        let mut position = 0;
        if self.is_lane_0() {
            let of = OfEnd { index, end: input as u16, following: following as u16 };
            let handled = Handled { index: of.to_word(), n, times };
            position = trace.note_with(self.threads_of_block(), handled, following);
        }
        position = self.shuffle32(position, 0);
        first = 0;
        while first < area.outputs {
            let output = first + self.lane();
            let n = count(output);
            let have = self.ballot(n > 0);
            if n > 0 {
                let before = (have & ((1 << self.lane()) - 1)).count_ones();
                let index = area.placed(output).get().index;
                let end = (self.layout().inputs + output) as u16;
                let of = OfEnd { index, end, following: 0 };
                trace.note_emitted(position.wrapping_add(before), of, n);
            }
            position = position.wrapping_add(have.count_ones());
            first += Threads::WARP;
        }
        self.warp_sync();
    }

    /// The first warp, while there is no stream, before a message that came inline is handled: notes where outputs are.
    #[inline(always)]
    pub(super) fn trace_places(&self, watch: &Watch<'_>, area: Area) {
        if !self.has_trace() {
            return;
        }
        let (mut output, step) = self.outputs_of_lane(watch);
        while output < watch.outputs {
            // SAFETY: an output of this lane; only this warp touches its end.
            let index = unsafe { &(*self.output(output)).sink }.next() as u32;
            let chunk = self.chunks_begun().wrapping_sub(1); // of no chunk to come
            area.placed(output).set(Turn { chunk, index });
            output += step;
        }
        self.warp_sync();
    }

    /// The first warp, when that message is handled, and what was emitted for it is sent: notes it.
    #[inline(always)]
    pub(super) fn trace_alone(&self, watch: &Watch<'_>, area: Area, times: Times) {
        if !self.has_trace() {
            return;
        }
        let (mut output, step) = self.outputs_of_lane(watch);
        while output < watch.outputs {
            // SAFETY: an output of this lane; only this warp touches its end.
            let next = unsafe { &(*self.output(output)).sink }.next() as u32;
            let n = next.wrapping_sub(area.placed(output).get().index);
            area.of_output(output).store(n, Relaxed);
            output += step;
        }
        self.warp_sync();
        // SAFETY: an input; only this warp touches its end, and none of its lanes does now.
        let next = unsafe { &(*self.input(watch.input)).source }.next() as u32;
        self.note_chunk(area, (watch.input, next.wrapping_sub(1), 1), times);
    }
}
