//! Messages that come inline: the first warp handles each by itself, and sends what it emits inline where that may be. What is
//! written down of a message is written when what it led to is on its way; only its producer is told before, so that who waits for
//! what it led to may send the next one inline at once.

use super::known::Look;
use super::look::Watch;
use super::registers::OwnStage;
use crate::block::{Cooperate, Threads};
use crate::dispatch::channel::Channel;
use crate::emissions::Stages;
use crate::kernel::{Emitters, Kernel, Scope};
use crate::memory::links::Lane;
use crate::memory::signals::Decision;
use crate::memory::trace::Times;
use ring_shared::Message;
use ring_shared::atomics::{MemoryScope, System};
use ring_shared::layout::{Doorbell, MAX_PORTS, PortLinks, Routing};
use ring_shared::ring::{CONTROL, Control, payload_of, stamp, stamp_of, stamped};

/// Ports whose messages a warp sends at the same time.
const PORTS_AT_ONCE: usize = if Threads::WARP > 1 { Threads::WARP as usize / 8 } else { 1 };

/// For each port, if it has one output: its line, and which message is the next one there.
type Places = [(*const Doorbell, u64); MAX_PORTS];

/// How a message that came inline is taken.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Taken {
    /// By the ends of the rings: it may not be all there, or there may be no room for what it emits.
    ByEnds,
    /// By the look, which shows all of it, and that all outputs are idle.
    ByLook,
    /// Likewise, and it is [handled in registers](Channel::IN_REGISTERS): each port has one output.
    InRegisters,
}

/// The counts of one message of each port.
const ONE_EACH: u64 = 0x0101_0101_0101_0101;

/// For each port that the calling lane has to do with, the outputs that the one message goes to which was emitted there: the first,
/// and how many.
type Targets = [(u32, u32); MAX_PORTS];

impl<K: Kernel> Channel<'_, K> {
    /// The first warp, while there is no stream: takes the message of the chosen input that came inline, if it is all there and
    /// there is room for what it emits, handles it, and sends what it emits. What is to do next, and whether a message was taken.
    #[inline(always)]
    pub(super) fn take_alone(
        &self,
        watch: &mut Watch<'_>,
        look: Look,
        how: Taken,
    ) -> (Decision, bool) {
        let (is_whole, in_registers) = (how != Taken::ByEnds, how == Taken::InRegisters);
        let words = if in_registers { self.gather(look, 8 * watch.input) } else { [0; _] };
        if is_whole {
            self.stage(watch, look, 8 * watch.input);
            if let Some(credit) = watch.credit
                && watch.lane == Lane::of_control(watch.input)
            {
                // SYNC: as in `tell_producer`: what the look has read is in the registers of lanes that have judged it.
                self.store_after_reads(credit, watch.known.next + 1);
            }
        } else if let Err(why) = self.take_inline(watch, look) {
            return (why, false);
        }
        self.begin_taken(watch);
        self.trace_places(watch, self.area(0));
        let this = self.optimization_barrier_of_first_warp(watch.lane);
        let (request, mut own) = (watch.stages.aligned(), OwnStage::UNINIT);
        if in_registers {
            Self::zero_ends(&mut own);
        }
        let stages = if in_registers { own.stages() } else { request };
        let (is_direct, places) = (is_whole && watch.is_direct, this.places(watch));
        let (mut took, mut fits, mut is_sent) = (0, true, false);
        // What is in registers is not written to memory because of the clock.
        let began = if in_registers { this.ticks_of_handler() } else { this.ticks() };
        let mut send = |its| {
            took = this.ticks_of_handler().wrapping_sub(began);
            fits = its;
            if in_registers || is_direct {
                is_sent = this.send_direct(watch, stages, its, places);
                if in_registers && !is_sent {
                    this.keep_emitted(stages, request);
                }
            }
        };
        if !in_registers {
            // SAFETY: the first stage, of this warp alone while there is no stream, with a request in it.
            unsafe { <K::Scope as Scope<K>>::emit(this.block, this.payload(), stages, 1, send) };
        } else if this.is_lane_0() {
            // SAFETY: the lanes have put these words there, and a barrier of the warp was behind that.
            unsafe { Self::assume_request(request, words) };
            let (from, to) = (request.stage(0, 0).cast_const(), stages.stage(0, 0));
            // SAFETY: the request in the first stage, which nobody writes now, and a stage of this lane alone.
            send(unsafe { <K::Scope as Scope<K>>::emit_one(this.block, this.payload(), from, to) });
        }
        this.exit_if_warp_panicked();
        this.warp_sync();
        let (decision, is_inline) = match (in_registers || is_direct) && this.agreed(is_sent) {
            true => (Decision::Wait, true),
            false => this.send_emitted(watch, fits, is_whole),
        };
        if is_whole {
            this.note_taken(watch);
        }
        if !is_whole || !is_inline {
            watch.known = this.known(watch.is_narrow);
        }
        if this.is_lane_0() {
            let telemetry = &this.memory().telemetry;
            telemetry.count(1, took, began.wrapping_sub(watch.unseen));
            if decision == Decision::Wait {
                this.count_handled(1);
            }
        }
        this.warp_sync();
        if decision == Decision::Wait {
            let times = Times::new((began, began.wrapping_add(took)), watch.unseen);
            this.trace_alone(watch, this.area(0), times);
        }
        (decision, true)
    }

    /// The first warp, while there is no stream: sends what the first stage has emitted, inline where that may be; `are_idle`: all
    /// outputs are. What is wrong, if so: nothing is sent then; and whether it went inline.
    #[inline(always)]
    pub(super) fn send_emitted(
        &self,
        watch: &mut Watch<'_>,
        fits: bool,
        are_idle: bool,
    ) -> (Decision, bool) {
        if !self.all(fits) {
            return (Decision::EmittedTooMany, false);
        }
        if let Some(targets) = self.targets_of_emitted(watch, are_idle) {
            if K::USES_PAYLOAD {
                self.fence_links(watch);
            }
            self.send_inline(watch.stages, targets);
            self.note_sent(targets);
            return (Decision::Wait, true);
        }
        if !K::USES_PAYLOAD && watch.is_narrow {
            self.fence_links(watch); // before slots are written; with a payload there was one
        }
        let is_sent = self.send_by_slots(watch);
        (if is_sent { Decision::Wait } else { Decision::NoSuchChannel }, false)
    }

    /// Whether all ports' messages may go inline at the same time, each by eight lanes.
    pub(super) const FIT_ONE_PASS: bool = {
        let (mut fit, mut p) = (Self::PORTS.len() <= PORTS_AT_ONCE && Threads::WARP > 1, 0);
        while p < Self::PORTS.len() {
            fit &= Self::PORTS[p].inline_atoms > 0;
            p += 1;
        }
        fit && p > 0
    };

    /// Whether each port has one output, and the messages of all may go inline at the same time.
    #[inline(always)]
    pub(super) fn has_one_output_each(&self) -> bool {
        let (mut has, mut p) = (Self::FIT_ONE_PASS, 0);
        while has && p < Self::PORTS.len() {
            has &= self.layout().ports[p].count == 1;
            p += 1;
        }
        has
    }

    /// Whether one thread handles the message, the one that sends it if it goes directly.
    pub(super) const BY_ONE_THREAD: bool =
        matches!(<K::Scope as Scope<K>>::EMITTERS, Emitters::Thread);

    /// Where the message of each port goes, if each has one output.
    #[inline(always)]
    fn places(&self, watch: &Watch<'_>) -> Places {
        let mut places: Places = [(core::ptr::null(), 0); MAX_PORTS];
        if Self::FIT_ONE_PASS {
            each_port!(port => {
                // SAFETY: an output, as there is one for each port at least; only this warp touches its end.
                let sink = unsafe { &(*watch.first_output.wrapping_add(port)).sink };
                places[port] = (core::ptr::from_ref(sink.ring().line(0)), sink.next());
            });
        }
        places
    }

    /// The first warp, where each port has one output, all of which are idle: its first lane sends what is emitted in the first
    /// stage, if that is one message of each port at most; what it returns is whether it has. What others return means nothing. Where
    /// one thread handles, it calls this as soon as it has: what it has written is in registers yet.
    #[inline(always)]
    fn send_direct(
        &self,
        watch: &Watch<'_>,
        stages: Stages,
        mut fits: bool,
        places: Places,
    ) -> bool {
        if !Self::BY_ONE_THREAD {
            self.exit_if_warp_panicked();
            self.warp_sync();
            fits = self.all(fits);
        }
        if !Self::FIT_ONE_PASS || !self.is_lane_0() {
            return false;
        }
        // SAFETY: the counts behind the messages: the thread that handled has written them, this one, or before a barrier.
        let counts = unsafe { Self::counts_of(stages, 0).cast::<u64>().read() };
        if !fits || counts & !ONE_EACH != 0 {
            return false;
        }
        if K::USES_PAYLOAD {
            self.fence_links(watch);
        }
        each_port!(port => {
            if counts >> (8 * port) & 1 != 0 {
                let (line, next) = places[port];
                // SAFETY: the line of an output.
                let atoms = unsafe { &(*line).atoms };
                let message = Self::message_at(stages, Self::offset_of(port, 0, 0) as u32);
                let (atoms_of_line, words) = (Self::PORTS[port].inline_atoms, 4 * Self::PORTS[port].atoms);
                let word = |k: usize| match k < words {
                    // SAFETY: a word of the message, or of the room for it.
                    true => unsafe { message.wrapping_add(4 * k).cast::<u32>().read() },
                    false => 0,
                };
                let piece = |k: usize| match k < atoms_of_line {
                    true => [word(3 * k), word(3 * k + 1), word(3 * k + 2)],
                    false => [0; 3],
                };
                // All is read before anything is stored: else it would be loaded from the block's memory. There is no loop: from
                // one the compiler does not take the pieces' places.
                let pieces = [piece(0), piece(1), piece(2), piece(3), piece(4), piece(5), piece(6)];
                let send = |k: usize| {
                    if k < atoms_of_line {
                        System::store_whole(&atoms[k], stamped(pieces[k], stamp(next)));
                    }
                };
                // SYNC: each stamp proves its payload to the consumer's look; the control atom tells of nothing else.
                send(0);
                send(1);
                send(2);
                send(3);
                send(4);
                send(5);
                send(6);
                // The last one, so that who sees it sees the others as a rule.
                System::store_whole(&atoms[CONTROL], Control::behind_inline(next + 1, 0).to_words());
                // SAFETY: an output; only this warp touches its end.
                unsafe { &mut (*watch.first_output.wrapping_add(port)).sink }.note_inline();
            }
        });
        true
    }

    /// Atom `atom` of an inline message: the part of the one message that the first stage has emitted to a port.
    #[inline(always)]
    fn piece(&self, stages: Stages, port: usize, atom: usize) -> [u32; 3] {
        let message = Self::message_at(stages, Self::first_of_port(port));
        let message = message.wrapping_add(12 * (atom % 7)).cast::<[u32; 3]>();
        // SAFETY: twelve bytes of the message, or behind it of what else is in the block's memory, which has room behind all
        // stages.
        unsafe { message.read() }
    }

    /// The first warp: puts the inline message that a look shows, by eight lanes from `first` on, into the first stage. A barrier
    /// of the warp is to follow.
    #[inline(always)]
    fn stage(&self, watch: &Watch<'_>, look: Look, first: u32) {
        let k = watch.lane.wrapping_sub(first);
        if k < 7 && (k as usize) < K::Request::INLINE_ATOMS {
            let at = watch.stages.stage(0, 0).wrapping_add(12 * k as usize).cast::<[u32; 3]>();
            // SAFETY: the first stage has room for a request of so many pieces, and for the rest of the last one: what is
            // emitted, or its counts, lie behind it.
            unsafe { at.write(payload_of(look.words)) };
        }
    }

    /// The first warp, where a look has shown all of an inline message and that all outputs were idle: notes that.
    #[inline(always)]
    fn note_taken(&self, watch: &mut Watch<'_>) {
        match Lane::of(self.lane()) {
            Lane::Input { input, atom } if input == watch.input => {
                watch.known.next += 1;
                if atom == CONTROL as u32 {
                    // SAFETY: an input of this lane; only this warp touches its end.
                    let source = unsafe { &mut (*self.input(input)).source };
                    source.note_inline();
                    source.credit_to_tell(true); // it was told
                }
            }
            Lane::Output(output) if output < watch.outputs => {
                // SAFETY: an output of this lane; only this warp touches its end.
                let sink = unsafe { &mut (*self.output(output)).sink };
                sink.note_consumed(watch.known.consumed);
                watch.known.next = sink.next();
            }
            _ => {}
        }
    }

    /// The first warp, when a request is in the first stage, before it is handled.
    #[inline(always)]
    pub(super) fn begin_taken(&self, watch: &Watch<'_>) {
        self.warp_sync();
        // What was written before the message, where it is more than the message.
        if K::USES_PAYLOAD && watch.is_narrow {
            self.fence_links(watch);
        }
    }

    /// The first warp, while there is no stream: takes the message of the chosen input that came inline to the first stage, if it is
    /// all there and there is room for what it emits, and notes that; what is to do next, if it is not taken.
    #[inline(always)]
    pub(super) fn take_inline(&self, watch: &Watch<'_>, look: Look) -> Result<(), Decision> {
        match self.room_for(watch, 1, 0) {
            None => Err(Decision::CorruptRing),
            Some(0) => Err(Decision::Wait),
            // Or it is on its way.
            Some(_) => {
                if self.take_arrived(watch, look) {
                    Ok(())
                } else {
                    Err(Decision::Wait)
                }
            }
        }
    }

    /// The first warp: takes an inline message to the first stage, if it is all there, and notes that.
    #[inline(always)]
    fn take_arrived(&self, watch: &Watch<'_>, look: Look) -> bool {
        let chosen = watch.input;
        if Threads::WARP == 1 {
            // SAFETY: the first stage, which has room for a request, at a multiple of 16. Of scratch memory any bytes are values
            // of plain bytes.
            let request = unsafe { &mut *watch.stages.stage(0, 0).cast::<K::Request>() };
            // SAFETY: an input of this lane; only this warp touches its end.
            return unsafe { &mut (*self.input(chosen)).source }.take_inline(request);
        }
        // SAFETY: an input; only this warp touches its end.
        let source = unsafe { &(*self.input(chosen)).source };
        let (ring, next) = (source.ring(), source.next());
        let (lane, first) = (self.lane(), if watch.is_narrow { 8 * chosen } else { 0 });
        let (k, mut look) = (lane.wrapping_sub(first), look);
        if !watch.is_narrow && k < 8 {
            look.words = self.look_at(&ring.line(next).atoms[k as usize % 8]);
        }
        let is_payload = k < 7 && (k as usize) < K::Request::INLINE_ATOMS;
        let is_whole = self.all(!is_payload || stamp_of(look.words) == stamp(next));
        if is_whole {
            self.stage(watch, look, first);
            if lane == watch.lane_of_input(chosen) {
                // SAFETY: an input of this lane; only this warp touches its end.
                let source = unsafe { &mut (*self.input(chosen)).source };
                source.note_inline();
                if let Some(credit) = source.credit_to_tell(true) {
                    self.tell_producer(chosen, credit);
                }
            }
        }
        is_whole
    }

    /// Port `pass` of those that the calling lane has to do with when messages are sent inline; eight lanes have the same.
    #[inline(always)]
    fn port_of_lane(&self, pass: usize) -> usize {
        pass * PORTS_AT_ONCE + self.lane() as usize / 8
    }

    /// What `of` gives for that port, worked out by the compiler for each.
    #[inline(always)]
    fn of_port(port: usize, of: impl Fn(usize) -> usize) -> usize {
        let (mut value, mut p) = (0, 0);
        while p < Self::PORTS.len() {
            value = if p == port { of(p) } else { value };
            p += 1;
        }
        value
    }

    /// The first warp: where each message goes that the first stage has emitted, if all may go inline: at most one of each port, to
    /// outputs that are idle, as `are_idle` says of all.
    #[inline(always)]
    fn targets_of_emitted(&self, watch: &Watch<'_>, are_idle: bool) -> Option<Targets> {
        let (mut may, mut pass, mut targets) = (true, 0, [(0, 0); MAX_PORTS]);
        while pass * PORTS_AT_ONCE < Self::PORTS.len() {
            let port = self.port_of_lane(pass);
            let is_one = port < Self::PORTS.len();
            let emitted = if is_one { Self::emitted(watch.stages, 0, port) } else { 0 };
            if emitted > 0 {
                let links = self.layout().ports[port];
                let (first, count) = self.targets(watch.stages, port, links);
                targets[pass] = (first, count);
                may &= emitted == 1 && Self::of_port(port, |p| Self::PORTS[p].inline_atoms) > 0;
                may &= count > 0; // else it is found below that there is no such channel
                let mut k = if are_idle { count } else { 0 };
                while k < count {
                    // SAFETY: an output; only this warp touches its end.
                    may &= unsafe { &(*self.output(first + k)).sink }.is_idle();
                    k += 1;
                }
            }
            pass += 1;
        }
        if self.all(may) { Some(targets) } else { None }
    }

    /// The outputs that the one message of a port goes to: the first, and how many side by side; none if there is no such.
    #[inline(always)]
    fn targets(&self, stages: Stages, port: usize, links: PortLinks) -> (u32, u32) {
        let (first, count) = (u32::from(links.first), u32::from(links.count));
        if links.routing == Routing::All {
            return (first, count);
        }
        let message = Self::message_at(stages, Self::first_of_port(port));
        // SAFETY: a message of that port, in the first stage.
        let key = unsafe { <K::Scope as Scope<K>>::key(port, message) };
        let by_index = links.routing == Routing::ByIndex;
        let chosen = if by_index { key } else { key.checked_rem(count).unwrap_or(0) };
        (first + chosen.min(count), u32::from(chosen < count))
    }

    /// Where the first message of a port lies that the first stage has emitted.
    #[inline(always)]
    fn first_of_port(port: usize) -> u32 {
        Self::of_port(port, |p| Self::offset_of(p, 0, 0)) as u32
    }

    /// The first warp: sends the one message of each port to its outputs, inline, eight lanes an atom each.
    #[inline(always)]
    fn send_inline(&self, stages: Stages, targets: Targets) {
        let mut pass = 0;
        while pass * PORTS_AT_ONCE < Self::PORTS.len() {
            let (port, (first, count)) = (self.port_of_lane(pass), targets[pass]);
            let atoms = Self::of_port(port, |p| Self::PORTS[p].inline_atoms);
            let mut atom = self.lane() as usize % 8;
            while atom < 8 {
                if atom == CONTROL || atom < atoms {
                    let payload = self.piece(stages, port, atom);
                    let mut k = first;
                    while k < first + count {
                        // SAFETY: an output; only this warp touches its end.
                        let sink = unsafe { &(*self.output(k)).sink };
                        let (ring, next) = (sink.ring(), sink.next());
                        let words = match atom {
                            CONTROL => Control::behind_inline(next + 1, 0).to_words(),
                            _ => stamped(payload, stamp(next)),
                        };
                        // SYNC: the stamp proves the payload to the consumer's look; the control atom tells of nothing else.
                        System::store_whole(&ring.line(next).atoms[atom % 8], words);
                        k += 1;
                    }
                }
                atom += if Threads::WARP > 1 { 8 } else { 1 };
            }
            pass += 1;
        }
        self.warp_sync(); // all have read which message is next
    }

    /// The first warp: notes what was sent inline.
    #[inline(always)]
    fn note_sent(&self, targets: Targets) {
        let mut pass = 0;
        while pass * PORTS_AT_ONCE < Self::PORTS.len() {
            let (first, count) = targets[pass];
            let mut k = first;
            while k < first + count && self.lane().is_multiple_of(8) {
                // SAFETY: an output, to which only one port sends; only this warp touches its end.
                unsafe { &mut (*self.output(k)).sink }.note_inline();
                k += 1;
            }
            pass += 1;
        }
        self.warp_sync();
    }

    /// The first warp, while there is no stream: sends what the first stage has emitted by slots; false if there is no such
    /// channel as a message asks for, and nothing is sent.
    #[inline(always)]
    fn send_by_slots(&self, watch: &mut Watch<'_>) -> bool {
        let (worker, next) = (&self.worker(0), self.chunks_begun());
        let number = next.wrapping_sub(1); // of no chunk to come
        self.place_behind_sent(watch, number);
        self.warp_sync();
        let this = self.optimization_barrier();
        let (fits, emitted) = this.list(worker, 1);
        if !this.all(fits) {
            return false;
        }
        let place = this.place(worker, &emitted, number); // nobody else has a turn
        let this = this.optimization_barrier();
        if let Some(index) = place {
            this.write_emissions(worker, &emitted, index);
        }
        this.warp_sync();
        if place.is_none() || !this.note_ends(watch, next, worker.area) {
            return false; // never: nobody else has a turn
        }
        this.fence_links(watch);
        this.send_noted(watch);
        this.warp_sync();
        true
    }
}
