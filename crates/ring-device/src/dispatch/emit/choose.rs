//! What the first warp does between two steps: it looks for messages and for room, obeys the host, tells producers and
//! consumers of the step that is done, and handles single messages. Each end of a ring belongs to one lane of that warp.

use crate::block::cell::Word;
use crate::block::{Cooperate, Threads, Words};
use crate::dispatch::channel::Channel;
use crate::emissions::Stages;
use crate::kernel::{Kernel, Scope};
use crate::memory::links::{Lane, NARROW};
use crate::memory::signals::Decision;
use core::sync::atomic::Ordering::{Acquire, Relaxed};
use ring_shared::Corrupt;
use ring_shared::Message;
use ring_shared::atomics::{Atom, Gpu, MemoryScope, System};
use ring_shared::inbox::Found;
use ring_shared::layout::{Command, Routing, State};
use ring_shared::ring::{CONTROL, Control, payload_of, stamp, stamp_of, stamped};

/// Steps for each look at the host's command; a look that finds nothing counts as four.
const TURNS: u64 = 64;

/// A message that came inline, where else is a number of messages in slots.
const INLINE: u32 = 1 << 31;

/// An end of a ring is corrupt.
const CORRUPT: u32 = u32::MAX;

impl<K: Kernel> Channel<'_, K> {
    /// The first warp: finds what the block is to do next.
    #[inline(always)]
    pub(super) fn choose(&self) {
        let mut looks = 0u32;
        let at = self.looks_at();
        let decision = loop {
            let this = self.optimization_barrier();
            let (m, step) = (this.memory(), this.step());
            let (is_narrow, active) =
                (this.agreed(step.is_narrow.get()), this.agreed(m.life.active.get()));
            // That the inputs are empty is found by a look that begins behind the command.
            let drains = this.agreed(step.drains.get());
            let is_idle = this.has_idle_output();
            let words = match at {
                // On the GPU what is told of the last step, and its fence, go on meanwhile.
                Some(at) if is_narrow && !is_idle => this.look_at(at),
                _ => [0; 2],
            };
            let mut is_fenced = false;
            if this.agreed(step.is_untold.get()) {
                this.fence_links();
                this.tell_of_step();
                is_fenced = true;
            }
            let mut turns = this.broadcast(step.turns.get());
            if !active || turns >= TURNS {
                turns = 0;
                let decision = this.look_at_host();
                if decision != Decision::Continue {
                    break decision;
                }
            }
            if active {
                let unseen = m.telemetry.seen.get();
                let found = this.look_at_inputs((is_narrow, is_idle), words);
                if this.is_lane_0() {
                    step.turns.set(turns + if found == 0 { 4 } else { 1 });
                    m.telemetry.unseen.set(unseen);
                    m.telemetry.seen.set(this.ticks());
                }
                let decision = match found {
                    0 if drains => Decision::Obey,
                    0 => Decision::Wait,
                    CORRUPT => Decision::CorruptRing,
                    INLINE => {
                        let (decision, was_taken) = this.take_alone((is_narrow, is_fenced), words);
                        if was_taken && decision == Decision::Wait {
                            looks = 0;
                            continue;
                        }
                        decision
                    }
                    n => {
                        if is_narrow && !is_fenced {
                            this.fence_links(); // before slots are read that the look vouches for, or written
                        }
                        this.take_slots(is_narrow, n)
                    }
                };
                if decision != Decision::Wait {
                    break decision;
                }
            }
            looks = looks.saturating_add(1);
            this.pause(looks, active);
        };
        if self.is_lane_0() {
            let step = self.step();
            if decision == Decision::Obey {
                step.drains.set(false);
            }
            step.decision.set(decision);
        }
        self.warp_sync();
    }

    /// The first warp: what each lane looks at where one look shows all rings. They have one line each, so it stays the same.
    #[inline(always)]
    fn looks_at(&self) -> Option<&Atom> {
        let step = self.step();
        if !step.is_narrow.get() {
            return None;
        }
        let (inputs, outputs) = (step.inputs.get() as u32, step.outputs.get() as u32);
        let at: *const Atom = match Lane::of(self.lane()) {
            Lane::Input { input, atom } if input < inputs => {
                // SAFETY: an input; the ends stay where they are, and only this warp changes them.
                let (ring, next) = unsafe { &*self.input(input) }.0.place();
                &raw const ring.line(next).atoms[atom as usize % 8]
            }
            Lane::Output(output) if output < outputs => {
                // SAFETY: an output, likewise.
                let (ring, _) = unsafe { &*self.output(output) }.sink.place();
                core::ptr::from_ref(ring.credit()).cast()
            }
            _ => return None,
        };
        // SAFETY: an atom of a line, or the 16 bytes at the beginning of a credit line: the word and padding.
        Some(unsafe { &*at })
    }

    /// A lane of the first warp: an atom of a ring, without waiting for it.
    #[inline(always)]
    fn look_at(&self, at: &Atom) -> Words {
        match self.step().has_host.get() {
            true => System::load_whole(at),
            false => Gpu::load_whole(at),
        }
    }

    /// A lane of the first warp, where one look shows all rings: whether it has an output whose consumer has taken all. Its
    /// credit need not be looked at: that of the host is across the bus.
    #[inline(always)]
    fn has_idle_output(&self) -> bool {
        let step = self.step();
        match Lane::of(self.lane()) {
            Lane::Output(output) if step.is_narrow.get() && output < step.outputs.get() as u32 => {
                // SAFETY: an output; only this warp changes it.
                unsafe { &*self.output(output) }.sink.is_idle()
            }
            _ => false,
        }
    }

    /// The first warp: a fence for both sides of all rings.
    #[inline(always)]
    fn fence_links(&self) {
        if self.agreed(self.step().has_host.get()) {
            self.fence();
        } else {
            self.fence_device();
        }
    }

    /// The first warp: renews what the channel says of itself, if it is time, and looks at the host's command.
    #[inline(always)]
    fn look_at_host(&self) -> Decision {
        let (m, mut decision, mut due) = (self.memory(), Decision::Continue, false);
        if self.is_lane_0() {
            // SYNC: acquires the host's `HostLine::give`: what it sent before it asked the channel to become inactive, and what
            // kernels before this one have sent, is found by the next look.
            let command = self.host().command.load(Acquire);
            m.signals.command.set(command);
            if command != m.life.acknowledged.get() {
                let asked = Command::from_word(command).state;
                // To become inactive is to drain first.
                let drains = asked == State::Inactive as u32 && m.life.active.get();
                self.step().drains.set(drains);
                decision = if drains { Decision::Continue } else { Decision::Obey };
            }
            due = self.beat(m.inbox.next.get(), self.now());
            if due && m.lease.has_expired() && decision == Decision::Continue {
                decision = Decision::LeaseOver;
            }
        }
        if self.agreed(due) {
            self.flush();
        }
        Decision::from_word(self.broadcast(decision.to_word()))
    }

    /// The first warp: looks at all inputs, by `words` if one look shows all rings, and notes the first that has messages, from
    /// that behind the last on; how many it has, or [`INLINE`], or [`CORRUPT`]. Credit of the same look is noted.
    #[inline(always)]
    fn look_at_inputs(&self, (is_narrow, is_idle): (bool, bool), words: Words) -> u32 {
        let step = self.step();
        let inputs = self.broadcast(step.inputs.get()) as u32;
        let last = self.broadcast(step.input.get()) as u32;
        // The least distance from the last input to one with messages; an end that is corrupt is nearest.
        let (mut nearest, mut there) = (u32::MAX, 0);
        let note = |k: u32, found: Result<Found, Corrupt>, nearest: &mut u32, there: &mut u32| {
            let found = match found {
                Ok(Found::Nothing) => return,
                Ok(Found::Inline) => INLINE,
                Ok(Found::Slots(n)) => n,
                Err(Corrupt { .. }) => CORRUPT,
            };
            let distance = match found {
                CORRUPT => 0,
                _ if k > last => k - last,
                _ => k + inputs - last,
            };
            if distance < *nearest {
                (*nearest, *there) = (distance, found);
            }
        };
        if is_narrow {
            match Lane::of(self.lane()) {
                Lane::Input { input, atom } if atom == CONTROL as u32 && input < inputs => {
                    // SAFETY: an input of this lane; the block waits at a barrier.
                    let source = unsafe { &mut (*self.input(input)).0 };
                    let found = source.find_in::<K::Request>(Control::from_words(words));
                    if found == Ok(Found::Nothing)
                        && let Some(credit) = source.credit_to_tell(true)
                    {
                        self.tell_producer(input, credit);
                    }
                    note(input, found, &mut nearest, &mut there);
                }
                Lane::Output(output) if output < step.outputs.get() as u32 && !is_idle => {
                    // SAFETY: an output of this lane; the block waits at a barrier.
                    let noted = unsafe { &mut *self.output(output) }.sink.note_credit(words[0]);
                    if noted.is_err() {
                        (nearest, there) = (0, CORRUPT);
                    }
                }
                _ => {}
            }
        } else {
            let mut k = self.lane();
            while k < inputs {
                // SAFETY: an input of this lane; the block waits at a barrier.
                let found = unsafe { &mut *self.input(k) }.0.find::<K::Request>();
                note(k, found, &mut nearest, &mut there);
                k += Threads::WARP;
            }
        }
        self.warp_sync();
        let least = self.warp_min32(nearest);
        if least == u32::MAX {
            return 0;
        }
        if least == 0 {
            return CORRUPT;
        }
        let chosen = if last + least < inputs { last + least } else { last + least - inputs };
        if self.is_lane_0() {
            step.input.set(chosen.into());
        }
        self.warp_sync();
        self.shuffle32(there, self.lane_of_input(is_narrow, chosen))
    }

    /// The lane that an input belongs to.
    #[inline(always)]
    fn lane_of_input(&self, is_narrow: bool, input: u32) -> u32 {
        if is_narrow { Lane::of_control(input) } else { input & (Threads::WARP - 1) }
    }

    /// The first output that belongs to the calling lane, or `outputs` if none does, and how far it is to the next.
    #[inline(always)]
    fn outputs_of_lane(&self, is_narrow: bool, outputs: u32) -> (u32, u32) {
        match Lane::of(self.lane()) {
            Lane::Output(output) if is_narrow => (output, NARROW.1),
            Lane::Input { .. } if is_narrow => (outputs, NARROW.1),
            _ => (self.lane(), Threads::WARP),
        }
    }

    /// The lane that an input belongs to, behind its reads: tells the producer how much is consumed.
    #[inline(always)]
    fn tell_producer(&self, input: u32, credit: u64) {
        // SAFETY: an input of this lane.
        let (ring, _) = unsafe { &*self.input(input) }.0.place();
        // SYNC: releases our reads of line and slots to `ring_shared::Outbox::free_slots`, or to the look of the producer's
        // channel. On the GPU they are over: their values went into the block's memory, and a barrier followed.
        self.store_after_reads(&ring.credit().consumed, credit);
    }

    /// The first warp: for how many of `wanted` requests there is room in all outputs, whatever their handlers emit; `None` if
    /// an output's ring is corrupt. By what is known, where one look shows all rings.
    #[inline(always)]
    fn room_for(&self, is_narrow: bool, wanted: u32) -> Option<u32> {
        let outputs = self.broadcast(self.step().outputs.get()) as u32;
        let (mut k, step) = self.outputs_of_lane(is_narrow, outputs);
        let mut room = wanted;
        while k < outputs {
            // SAFETY: an output of this lane; the block waits at a barrier.
            let output = unsafe { &mut *self.output(k) };
            let emitted = output.most;
            let free = match is_narrow {
                true => Ok(output.sink.known_free()),
                false => output.sink.free_slots(wanted * emitted.get()),
            };
            match free {
                Ok(free) => room = room.min(free / emitted),
                Err(Corrupt { .. }) => {
                    room = CORRUPT;
                    break;
                }
            }
            k += step;
        }
        // As the least of `room + 1`, a corrupt ring is 0.
        let least = self.warp_min32(room.wrapping_add(1));
        least.checked_sub(1)
    }

    /// The first warp: makes a step of as many of the `n` messages that were found as have room; [`Decision::Wait`] if none has.
    #[inline(always)]
    fn take_slots(&self, is_narrow: bool, n: u32) -> Decision {
        let step = self.step();
        let most = self.broadcast(step.most.get()) as u32;
        let n = match self.room_for(is_narrow, n.min(most)) {
            None => return Decision::CorruptRing,
            Some(0) => return Decision::Wait,
            Some(n) => n,
        };
        if self.is_lane_0() {
            step.n.set(n.into());
            step.is_inline.set(false);
        }
        Decision::Continue
    }

    /// The first warp: takes the message that came inline, if it is all there and there is room for what it emits, handles it,
    /// and sends what it emits inline, if that may go so. Else that is left to the block. What is to do next, and whether a message
    /// was taken.
    #[inline(always)]
    fn take_alone(&self, (is_narrow, is_fenced): (bool, bool), words: Words) -> (Decision, bool) {
        match self.room_for(is_narrow, 1) {
            None => return (Decision::CorruptRing, false),
            Some(0) => return (Decision::Wait, false),
            Some(_) => {}
        }
        let chosen = self.broadcast(self.step().input.get()) as u32;
        if !self.take_inline(is_narrow, chosen, words) {
            return (Decision::Wait, false); // it is on its way
        }
        // What was written before the message, where it is more than the message; and before slots are written.
        let acquire = || {
            if is_narrow && !is_fenced {
                self.fence_links();
            }
        };
        if K::USES_PAYLOAD {
            acquire();
        }
        let this = self.optimization_barrier();
        this.handle(1);
        this.exit_if_warp_panicked();
        this.warp_sync();
        let step = this.step();
        let wrong = Decision::from_word(this.broadcast(step.wrong.get().to_word()));
        if wrong != Decision::Continue {
            return (wrong, true);
        }
        if this.is_lane_0() {
            step.n.set(1);
            step.is_inline.set(true);
        }
        this.warp_sync();
        if !this.may_all_go_inline() {
            acquire();
            return (Decision::Continue, true);
        }
        if K::USES_PAYLOAD {
            this.fence_links();
        }
        let mut port = 0;
        while port < Self::PORTS.len() {
            if this.emitted(0, port) > 0 {
                let (first, count) = this.targets(port);
                let mut k = first;
                while k < first + count {
                    this.send_inline(port, k);
                    k += 1;
                }
            }
            port += 1;
        }
        if this.is_lane_0() {
            this.count_handled(1);
        }
        this.warp_sync();
        (Decision::Wait, true)
    }

    /// The first warp, before the channel leaves: tells all producers how much is consumed.
    #[inline(always)]
    pub(super) fn tell_all(&self) {
        let is_narrow = self.agreed(self.step().is_narrow.get());
        let inputs = self.broadcast(self.step().inputs.get()) as u32;
        let mut k = 0;
        while k < inputs {
            if self.lane() == self.lane_of_input(is_narrow, k) {
                // SAFETY: an input of this lane.
                let credit = unsafe { &mut *self.input(k) }.0.credit_to_tell(true);
                if let Some(credit) = credit {
                    self.tell_producer(k, credit);
                }
            }
            k += 1;
        }
        self.warp_sync();
    }

    /// The first warp: takes an inline message to the first stage, if it is all there.
    #[inline(always)]
    fn take_inline(&self, is_narrow: bool, chosen: u32, words: Words) -> bool {
        let stage = self.stages().stage(0, 0);
        if Threads::WARP == 1 {
            // SAFETY: the first stage, which has room for a request, at a multiple of 16. Of scratch memory any bytes are values
            // of plain bytes.
            let request = unsafe { &mut *stage.cast::<K::Request>() };
            // SAFETY: an input of this lane.
            return unsafe { &mut *self.input(chosen) }.0.take_inline(request);
        }
        // SAFETY: an input; only this warp changes it.
        let (ring, next) = unsafe { &*self.input(chosen) }.0.place();
        let (first, lane) = (if is_narrow { 8 * chosen } else { 0 }, self.lane());
        let k = lane.wrapping_sub(first);
        let mut words = words;
        if !is_narrow && k < 8 {
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
            if lane == self.lane_of_input(is_narrow, chosen) {
                // SAFETY: an input of this lane.
                let source = unsafe { &mut (*self.input(chosen)).0 };
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
    fn may_all_go_inline(&self) -> bool {
        let (mut may, mut port) = (true, 0);
        while port < Self::PORTS.len() {
            let emitted = self.emitted(0, port);
            if emitted > 0 {
                may &= emitted == 1 && Self::PORTS[port].inline_atoms > 0;
                let (first, count) = self.targets(port);
                may &= count > 0; // else the block finds that there is no such channel
                let mut k = first;
                while k < first + count {
                    // SAFETY: an output; the block waits at a barrier, and only this warp changes it.
                    may &= unsafe { &*self.output(k) }.sink.is_idle();
                    k += 1;
                }
            }
            port += 1;
        }
        self.agreed(may)
    }

    /// The outputs that the one message of a port goes to: the first, and how many side by side; none if there is no such.
    #[inline(always)]
    fn targets(&self, port: usize) -> (u32, u32) {
        let links = self.step().port(port);
        let (first, count) = (u32::from(links.first), u32::from(links.count));
        if links.routing == Routing::All {
            return (first, count);
        }
        // SAFETY: a message of that port, in the first stage.
        let key = unsafe {
            <K::Scope as Scope<K>>::key(port, self.message_at(Self::offset_of(port, 0, 0) as u32))
        };
        let by_index = links.routing == Routing::ByIndex;
        let chosen = if by_index { key } else { key.checked_rem(count).unwrap_or(0) };
        (first + chosen.min(count), u32::from(chosen < count))
    }

    /// The first warp: sends the one message of a port to an output, inline, eight lanes an atom each.
    #[inline(always)]
    fn send_inline(&self, port: usize, output: u32) {
        // SAFETY: an output; the block waits at a barrier, and only this warp changes it.
        let (ring, next) = unsafe { &*self.output(output) }.sink.place();
        let message = self.message_at(Self::offset_of(port, 0, 0) as u32);
        let atoms = self.spread::<8>(|k| {
            if k % 8 == CONTROL {
                return Control::behind_inline(next + 1, 0).to_words();
            }
            // SAFETY: twelve bytes of the message, or behind it of what else is in the block's memory: a stage ends with an atom
            // of counts, and lists lie behind all stages.
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
            unsafe { &mut *self.output(output) }.sink.note_inline();
        }
        self.warp_sync();
    }

    /// One thread: counts messages that were handled.
    #[inline(always)]
    fn count_handled(&self, n: u64) {
        let inbox = &self.memory().inbox;
        let handled = inbox.next.get() + n;
        inbox.next.set(handled);
        inbox.tail.set(handled);
        inbox.seen_tail.set(handled);
    }

    /// The first warp, behind a barrier and a fence: sends what was written to the outputs, and says that the step's requests
    /// are consumed.
    #[inline(always)]
    fn tell_of_step(&self) {
        let step = self.step();
        let is_narrow = self.agreed(step.is_narrow.get());
        let outputs = self.broadcast(step.outputs.get()) as u32;
        let (mut k, next) = self.outputs_of_lane(is_narrow, outputs);
        while k < outputs {
            // SAFETY: an output of this lane; the other threads wait at a barrier.
            let output = unsafe { &mut *self.output(k) };
            let sent = output.n.load(Relaxed);
            if sent > 0 {
                output.sink.commit_slots(sent);
                output.n.store(0, Relaxed);
            }
            k += next;
        }
        let chosen = self.broadcast(step.input.get()) as u32;
        let n = self.broadcast(step.n.get());
        if self.lane() == self.lane_of_input(is_narrow, chosen) {
            // SAFETY: an input of this lane.
            let source = unsafe { &mut (*self.input(chosen)).0 };
            if !step.is_inline.get() {
                source.take_slots(n as u32);
            }
            if let Some(credit) = source.credit_to_tell(false) {
                self.tell_producer(chosen, credit);
            }
        }
        if self.is_lane_0() {
            self.count_handled(n);
            step.is_untold.set(false);
        }
        self.warp_sync();
    }

    /// Where message `k` that stage `m` has emitted to a port lies, as an offset from the first stage.
    #[inline(always)]
    pub(super) fn offset_of(port: usize, m: u32, k: u32) -> usize {
        let in_stage = Stages::message(K::Request::SLOT_ATOMS, Self::PORTS, port, k);
        m as usize * Self::STAGE_STRIDE + in_stage
    }

    /// The message at such an offset.
    #[inline(always)]
    pub(super) fn message_at(&self, offset: u32) -> *const u8 {
        self.stages().stage(0, 0).wrapping_add(offset as usize)
    }
}
