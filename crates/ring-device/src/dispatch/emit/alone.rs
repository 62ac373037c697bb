//! Messages that come inline: the first warp handles each by itself, and sends what it emits inline where that may be.

use super::Area;
use super::look::{Look, Watch};
use crate::block::{Cooperate, Threads};
use crate::dispatch::channel::Channel;
use crate::emissions::Stages;
use crate::kernel::{Kernel, Scope};
use crate::memory::signals::Decision;
use ring_shared::Message;
use ring_shared::atomics::{MemoryScope, System};
use ring_shared::layout::Routing;
use ring_shared::ring::{CONTROL, Control, payload_of, stamp, stamp_of, stamped};

impl<K: Kernel> Channel<'_, K> {
    /// The first warp, while there is no stream: takes the message that came inline, if it is all there and there is room for
    /// what it emits, handles it, and sends what it emits. What is to do next, and whether a message was taken.
    #[inline(always)]
    pub(super) fn take_alone(&self, watch: &Watch<'_>, look: Look) -> (Decision, bool) {
        match self.room_for(watch, 1) {
            None => return (Decision::CorruptRing, false),
            Some(0) => return (Decision::Wait, false),
            Some(_) => {}
        }
        let area = self.area(0);
        let stages = area.stages;
        if !self.take_inline(watch, look, stages) {
            return (Decision::Wait, false); // it is on its way
        }
        // What was written before the message, where it is more than the message; and before slots are written.
        let acquire = || {
            if watch.is_narrow {
                self.fence_links(watch);
            }
        };
        if K::USES_PAYLOAD {
            acquire();
        }
        let this = self.optimization_barrier();
        let (began, m) = (this.ticks(), this.memory());
        // SAFETY: the first stage, of this warp alone while there is no stream, with a request in it.
        let fits = unsafe { <K::Scope as Scope<K>>::emit(this.block, this.payload(), stages, 1) };
        this.exit_if_warp_panicked();
        this.warp_sync();
        if this.is_lane_0() {
            let took = this.ticks().wrapping_sub(began);
            m.telemetry.count(1, took, began.wrapping_sub(m.telemetry.unseen.get()));
        }
        if !this.all(fits) {
            return (Decision::EmittedTooMany, true); // nothing of it is sent
        }
        let this = this.optimization_barrier();
        if this.may_all_go_inline(stages) {
            if K::USES_PAYLOAD {
                this.fence_links(watch);
            }
            this.send_all_inline(stages);
        } else {
            if !K::USES_PAYLOAD {
                acquire();
            }
            if !this.send_one_by_slots(watch, area) {
                return (Decision::NoSuchChannel, true);
            }
        }
        if this.is_lane_0() {
            this.count_handled(1);
        }
        this.warp_sync();
        (Decision::Wait, true)
    }

    /// The first warp: takes an inline message to the first stage, if it is all there.
    #[inline(always)]
    pub(super) fn take_inline(&self, watch: &Watch<'_>, look: Look, stages: Stages) -> bool {
        let (stage, chosen) = (stages.stage(0, 0), watch.input);
        if Threads::WARP == 1 {
            // SAFETY: the first stage, which has room for a request, at a multiple of 16. Of scratch memory any bytes are values
            // of plain bytes.
            let request = unsafe { &mut *stage.cast::<K::Request>() };
            // SAFETY: an input of this lane; only this warp touches its end.
            return unsafe { &mut (*self.input(chosen)).source }.take_inline(request);
        }
        // SAFETY: an input; only this warp touches its end.
        let source = unsafe { &(*self.input(chosen)).source };
        let (ring, next) = (source.ring(), source.next());
        let (first, lane) = (if watch.is_narrow { 8 * chosen } else { 0 }, self.lane());
        let k = lane.wrapping_sub(first);
        let mut words = look.words;
        if !watch.is_narrow && k < 8 {
            words = self.look_at(&ring.line(next).atoms[k as usize % 8]);
        }
        let is_payload = k < 7 && (k as usize) < K::Request::INLINE_ATOMS;
        let is_whole = self.all(!is_payload || stamp_of(words) == stamp(next));
        if is_whole {
            if is_payload {
                let at = stage.wrapping_add(12 * k as usize).cast::<[u32; 3]>();
                // SAFETY: the first stage has room for a request of so many pieces, and for the rest of the last one: what is
                // emitted, or its counts, lie behind it.
                unsafe { at.write(payload_of(words)) };
            }
            if lane == watch.lane_of_input(chosen) {
                // SAFETY: an input of this lane; only this warp touches its end.
                let source = unsafe { &mut (*self.input(chosen)).source };
                source.note_inline();
                // Now, so that the producer may send the next one inline as soon as it has what this one leads to.
                if let Some(credit) = source.credit_to_tell(true) {
                    self.tell_producer(chosen, credit);
                }
            }
        }
        self.warp_sync();
        is_whole
    }

    /// The first warp: whether all that the first stage has emitted may go inline: at most one message of each port, to outputs
    /// whose consumers have taken all before it.
    #[inline(always)]
    pub(super) fn may_all_go_inline(&self, stages: Stages) -> bool {
        let (mut may, mut port) = (true, 0);
        while port < Self::PORTS.len() {
            let emitted = Self::emitted(stages, 0, port);
            if emitted > 0 {
                may &= emitted == 1 && Self::PORTS[port].inline_atoms > 0;
                let (first, count) = self.targets(stages, port);
                may &= count > 0; // else it is found below that there is no such channel
                let mut k = first;
                while k < first + count {
                    // SAFETY: an output; only this warp touches its end.
                    may &= unsafe { &(*self.output(k)).sink }.is_idle();
                    k += 1;
                }
            }
            port += 1;
        }
        self.agreed(may)
    }

    /// The outputs that the one message of a port goes to: the first, and how many side by side; none if there is no such.
    #[inline(always)]
    fn targets(&self, stages: Stages, port: usize) -> (u32, u32) {
        let links = self.layout().ports[port];
        let (first, count) = (u32::from(links.first), u32::from(links.count));
        if links.routing == Routing::All {
            return (first, count);
        }
        let message = Self::message_at(stages, Self::offset_of(port, 0, 0) as u32);
        // SAFETY: a message of that port, in the first stage.
        let key = unsafe { <K::Scope as Scope<K>>::key(port, message) };
        let by_index = links.routing == Routing::ByIndex;
        let chosen = if by_index { key } else { key.checked_rem(count).unwrap_or(0) };
        (first + chosen.min(count), u32::from(chosen < count))
    }

    /// The first warp: sends all that the first stage has emitted, inline.
    #[inline(always)]
    pub(super) fn send_all_inline(&self, stages: Stages) {
        let mut port = 0;
        while port < Self::PORTS.len() {
            if Self::emitted(stages, 0, port) > 0 {
                let (first, count) = self.targets(stages, port);
                let mut k = first;
                while k < first + count {
                    self.send_inline(stages, port, k);
                    k += 1;
                }
            }
            port += 1;
        }
    }

    /// The first warp: sends the one message of a port to an output, inline, eight lanes an atom each.
    #[inline(always)]
    fn send_inline(&self, stages: Stages, port: usize, output: u32) {
        // SAFETY: an output; only this warp touches its end.
        let sink = unsafe { &(*self.output(output)).sink };
        let (ring, next) = (sink.ring(), sink.next());
        let message = Self::message_at(stages, Self::offset_of(port, 0, 0) as u32);
        let atoms = self.spread::<8>(|k| {
            if k % 8 == CONTROL {
                return Control::behind_inline(next + 1, 0).to_words();
            }
            // SAFETY: twelve bytes of the message, or behind it of what else is in the block's memory, which has room behind
            // all stages.
            let payload = unsafe { message.wrapping_add(12 * (k % 7)).cast::<[u32; 3]>().read() };
            stamped(payload, stamp(next))
        });
        self.warp_sync();
        self.each::<8>(atoms, |k, words| {
            if k == CONTROL || k < Self::PORTS[port].inline_atoms {
                // SYNC: the stamp proves the payload to the consumer's look; the control atom tells of nothing else.
                System::store_whole(&ring.line(next).atoms[k % 8], words);
            }
        });
        if self.is_lane_0() {
            // SAFETY: as above.
            unsafe { &mut (*self.output(output)).sink }.note_inline();
        }
        self.warp_sync();
    }

    /// The first warp, while there is no stream: sends what the first stage has emitted by slots; false if there is no such
    /// channel as a message asks for, and nothing is sent.
    #[inline(always)]
    pub(super) fn send_one_by_slots(&self, watch: &Watch<'_>, area: Area) -> bool {
        self.place_behind_sent(watch);
        self.warp_sync();
        let this = self.optimization_barrier();
        let (fits, totals) = this.list(area, 1);
        if !this.all(fits) {
            return false;
        }
        let is_placed = this.place(area, totals, 0, Some(0)); // nobody else has a turn
        let this = this.optimization_barrier();
        this.write_emissions(area, totals);
        this.warp_sync();
        this.fence_links(watch);
        this.send_placed(watch, 0);
        this.warp_sync();
        is_placed
    }
}
