//! How the first warp looks at the ends of rings that the block has, each of which belongs to one lane of that warp.

use super::known::{Known, Look};
use crate::block::cell::Word;
use crate::block::{Cooperate, Threads, Words};
use crate::dispatch::channel::Channel;
use crate::emissions::{Stages, most_of_ports};
use crate::kernel::Kernel;
use crate::memory::boot;
use crate::memory::flow::MOST_OF_STEP;
use crate::memory::links::{Lane, NARROW, Output};
use crate::memory::signals::Decision;
use core::mem::offset_of;
use core::sync::atomic::Ordering::Acquire;
use ring_shared::Corrupt;
use ring_shared::atomics::{Atom, AtomicU64, MemoryScope, System};
use ring_shared::inbox::Found;
use ring_shared::layout::{Command, HostLine, State};
use ring_shared::ring::{CONTROL, Control};

/// A message that came inline, where else is a number of messages in slots.
pub(super) const INLINE: u32 = 1 << 31;

/// An end of a ring is corrupt.
pub(super) const CORRUPT: u32 = u32::MAX;

/// Looks of a CPU's thread for each at the host's command; one that finds nothing counts as four.
const TURNS: u32 = 64;

/// Ticks of a GPU's processor from one look at the host's command to the next: at least so many, and so many for each channel of
/// the kernel. All channels read the same word of the host's memory, and on an H200 64 of them that do so without a pause let a
/// fence of any kernel of the GPU take 60 us instead of one.
const BETWEEN_COMMANDS: (u32, u32) = (1 << 16, 1 << 13);

/// What the first warp keeps in registers from one look to the next. Lanes differ in `at` and `known` only.
#[derive(Clone, Copy)]
pub(super) struct Watch<'a> {
    /// What the lane looks at, where one look shows all rings. They have one line each, so it stays the same.
    at: *const Atom,
    /// What it looks at instead where it needs to see nothing: a part of a line at which others look in any case. So all lanes have
    /// the same to do.
    other: *const Atom,
    /// What the lane knows of the end whose ring it looks at, where one look shows all rings.
    pub known: Known,
    /// Where the lane tells the producer of its input how much is consumed.
    pub credit: Option<&'a AtomicU64>,
    /// The number of the lane: to read it from its register takes longer.
    pub lane: u32,
    /// The first output, behind which the others lie.
    pub first_output: *mut Output,
    /// Whether each port has one output, to which one thread sends a message by itself, and one look shows all rings.
    pub is_direct: bool,
    /// Where a request is handled that came inline.
    pub stages: Stages,
    /// When the last look began, and when the one before that: what it shows had not come then. In ticks.
    pub seen: u64,
    pub unseen: u64,
    /// Whether one look shows all rings. If not, each lane looks at its inputs one after the other.
    pub is_narrow: bool,
    /// Whether a ring leads to the host or to another device.
    leaves_device: bool,
    pub inputs: u32,
    pub outputs: u32,
    /// The input in which messages were found last.
    pub input: u32,
    /// Of a CPU's thread: looks since the last one at the host's command.
    turns: u32,
    /// Of a GPU's warp: which look was the last one at the command as well, by when it began, and after how long the next one is
    /// due, in ticks: the low halves, which come round after two seconds.
    asked: u32,
    between: u32,
}

impl<'c, K: Kernel> Channel<'c, K> {
    /// The first warp, when the channel begins.
    #[inline(always)]
    pub(super) fn watch(&self) -> Watch<'c> {
        let layout = self.layout();
        let (inputs, outputs, is_narrow) = (layout.inputs, layout.outputs, layout.is_narrow());
        let other: *const Atom = match is_narrow {
            true => {
                // SAFETY: an input; its ring stays where it is.
                let ring = unsafe { &(*self.input(0)).ring };
                &raw const ring.line(ring.start()).atoms[self.lane() as usize % 8]
            }
            false => core::ptr::null(),
        };
        let at: *const Atom = match Lane::of(self.lane()) {
            Lane::Input { input, atom } if is_narrow && input < inputs => {
                // SAFETY: an input; its ring stays where it is.
                let ring = unsafe { &(*self.input(input)).ring };
                &raw const ring.line(ring.start()).atoms[atom as usize % 8]
            }
            Lane::Output(output) if is_narrow && output < outputs => {
                // SAFETY: an output, likewise.
                let ring = unsafe { &(*self.output(output)).ring };
                core::ptr::from_ref(ring.credit()).cast()
            }
            _ => other,
        };
        let channels = self.memory().boot.half(boot::HOST, offset_of!(HostLine, channels));
        let between = BETWEEN_COMMANDS.0.max(BETWEEN_COMMANDS.1.saturating_mul(channels));
        let began = self.ticks();
        Watch {
            at,
            other,
            is_narrow,
            leaves_device: self.flow().leaves_device.get(),
            inputs,
            outputs,
            input: 0,
            turns: TURNS,
            known: Known::NOTHING, // until it begins to look
            credit: match Lane::of(self.lane()) {
                Lane::Input { input, .. } if input < inputs => {
                    // SAFETY: an input; its ring stays where it is.
                    let ring = unsafe { &(*self.input(input)).ring };
                    Some(&ring.credit().consumed)
                }
                _ => None,
            },
            lane: self.lane(),
            first_output: self.output(0),
            is_direct: is_narrow && self.has_one_output_each(),
            stages: self.area(0).stages,
            seen: began,
            unseen: self.memory().telemetry.seen.get(),
            asked: (began as u32).wrapping_sub(between), // the first look is at the host, too
            between,
        }
    }

    /// The first warp: begins a look. On the GPU what follows goes on meanwhile, until `words` are used.
    #[inline(always)]
    pub(super) fn begin_look(&self, watch: &Watch<'_>) -> Look {
        let is_idle = watch.known.has_idle_output();
        let words = match watch.is_narrow {
            true => {
                let at = if is_idle { watch.other } else { watch.at };
                // SAFETY: an atom of a line, or the 16 bytes at the beginning of a credit line: the word and padding.
                self.look_at(unsafe { &*at })
            }
            false => [0, 0],
        };
        Look { is_idle, words }
    }

    /// The first warp, when a look begins: notes when that is.
    #[inline(always)]
    pub(super) fn note_look(&self, watch: &mut Watch<'_>) {
        watch.unseen = watch.seen;
        watch.seen = self.ticks();
    }

    /// A lane of the first warp: an atom of a ring, without waiting for it.
    #[inline(always)]
    pub(super) fn look_at(&self, at: &Atom) -> Words {
        System::load_whole(at)
    }

    /// The first warp: a fence for both sides of all rings.
    #[inline(always)]
    pub(super) fn fence_links(&self, watch: &Watch<'_>) {
        if watch.leaves_device {
            self.fence();
        } else {
            self.fence_device();
        }
    }

    /// The first warp: whether it is time to look at the host, too.
    #[inline(always)]
    pub(super) fn is_host_due(&self, watch: &mut Watch<'_>, active: bool) -> bool {
        if Threads::WARP == 1 {
            let due = !active || watch.turns >= TURNS;
            watch.turns = if due { 0 } else { watch.turns };
            return due;
        }
        let due = self.agreed(watch.is_late());
        watch.asked = if due { watch.seen as u32 } else { watch.asked };
        due
    }

    /// The first warp: renews what the channel says of itself, if it is time, and looks at the host's command.
    #[inline(always)]
    pub(super) fn look_at_host(&self) -> Decision {
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
                self.flow().drains.set(drains);
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

    /// The first warp: ends a look: notes what it shows, and the first input with messages that no step has taken, from that
    /// behind the last on; how many it has, or [`INLINE`], or [`CORRUPT`].
    #[inline(always)]
    pub(super) fn end_look(&self, watch: &mut Watch<'_>, look: Look) -> u32 {
        let found = self.found_in(watch, look);
        if Threads::WARP == 1 {
            watch.turns += if found == 0 { 4 } else { 1 };
        }
        found
    }

    /// The first warp: what the look shows, as [`end_look`](Self::end_look) says it.
    #[inline(always)]
    fn found_in(&self, watch: &mut Watch<'_>, look: Look) -> u32 {
        if watch.is_narrow {
            let found = self.end_narrow_look(watch, look);
            let there = self.ballot(found != 0);
            if there == 0 {
                return 0;
            }
            if self.ballot(found == CORRUPT) != 0 {
                return CORRUPT;
            }
            let other = watch.input ^ 1; // there are two at most
            if there >> Lane::of_control(other) & 1 != 0 {
                watch.input = other;
            }
            return self.shuffle32(found, Lane::of_control(watch.input));
        }
        let (inputs, last) = (watch.inputs, watch.input);
        // The least distance from the last input to one with messages; an end that is corrupt is nearest.
        let (mut nearest, mut there, mut k) = (u32::MAX, 0, self.lane());
        while k < inputs {
            // SAFETY: an input of this lane; only this warp touches its end.
            let control = unsafe { &(*self.input(k)).source }.look();
            let found = self.find_in(k, control);
            let distance = match found {
                0 => u32::MAX,
                CORRUPT => 0,
                _ if k > last => k - last,
                _ => k + inputs - last,
            };
            if distance < nearest {
                (nearest, there) = (distance, found);
            }
            k += Threads::WARP;
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
        watch.input = chosen;
        self.shuffle32(there, watch.lane_of_input(chosen))
    }

    /// The first warp, where one look shows all rings: what it shows of the ring that the calling lane has the end of.
    #[inline(always)]
    fn end_narrow_look(&self, watch: &mut Watch<'_>, look: Look) -> u32 {
        let mut found = 0;
        match Lane::of(self.lane()) {
            Lane::Input { input, atom } if atom == CONTROL as u32 && input < watch.inputs => {
                found = self.find_in(input, Control::from_words(look.words));
            }
            Lane::Output(output) if output < watch.outputs && !look.is_idle => {
                // SAFETY: an output of this lane; only this warp touches its end.
                let sink = unsafe { &mut (*self.output(output)).sink };
                if sink.note_credit(look.words[0]).is_err() {
                    found = CORRUPT;
                }
                watch.known.consumed = sink.consumed();
            }
            _ => {}
        }
        self.warp_sync();
        found
    }

    /// The lane that an input belongs to: what the control atom of its line shows. If there is nothing, the producer is told all
    /// that was consumed.
    #[inline(always)]
    fn find_in(&self, input: u32, control: Control) -> u32 {
        // SAFETY: an input of this lane; only this warp touches its end.
        let source = unsafe { &mut (*self.input(input)).source };
        // SAFETY: likewise.
        let ahead = unsafe { (*self.input(input)).ahead };
        match source.find_in::<K::Request>(control) {
            Ok(Found::Nothing) => {
                if let Some(credit) = source.credit_to_tell(true) {
                    self.tell_producer(input, credit);
                }
                0
            }
            Ok(Found::Inline) => INLINE,
            Ok(Found::Slots(n)) => n.saturating_sub(ahead),
            Err(Corrupt { .. }) => CORRUPT,
        }
    }

    /// The lane that an input belongs to, behind its reads: tells the producer how much is consumed.
    #[inline(always)]
    pub(super) fn tell_producer(&self, input: u32, credit: u64) {
        // SAFETY: an input; nobody changes its ring.
        let ring = unsafe { (*self.input(input)).ring };
        // SYNC: releases our reads of line and slots to `ring_shared::Outbox::free_slots`, or to the look of the producer's
        // channel. On the GPU they are over: their values went into the block's memory, and the warps that read them have told
        // the first warp.
        self.store_after_reads(&ring.credit().consumed, credit);
    }

    /// The first output that belongs to the calling lane, or some number that is none, and how far it is to the next.
    #[inline(always)]
    pub(super) fn outputs_of_lane(&self, watch: &Watch<'_>) -> (u32, u32) {
        match Lane::of(self.lane()) {
            Lane::Output(output) if watch.is_narrow => (output, NARROW.1),
            Lane::Input { .. } if watch.is_narrow => (watch.outputs, NARROW.1),
            _ => (self.lane(), Threads::WARP),
        }
    }

    /// The first warp: for how many of `wanted` requests, a step's at most, there is room in all outputs, beside those under way,
    /// whatever their handlers emit; `None` if an output's ring is corrupt. By what is known, where one look shows all rings.
    #[inline(always)]
    pub(super) fn room_for(&self, watch: &Watch<'_>, wanted: u32, under_way: u32) -> Option<u32> {
        let wanted = wanted.min(MOST_OF_STEP);
        let (mut k, step) = self.outputs_of_lane(watch);
        let mut room = wanted;
        while k < watch.outputs {
            // SAFETY: an output of this lane; only this warp touches its end.
            let sink = unsafe { &mut (*self.output(k)).sink };
            // SAFETY: an output; nobody changes that.
            let most = unsafe { (*self.output(k)).most };
            // Whose consumer has taken all has no more room than is known, and the host's credit is across the bus.
            let free = match watch.is_narrow || sink.is_idle() {
                true => Ok(sink.known_free()),
                false => sink.free_slots((wanted + under_way) * most.get()),
            };
            match free {
                Ok(free) => {
                    let is_one = const { most_of_ports(Self::PORTS) == 1 };
                    let requests = if is_one { free } else { most.of(free) };
                    room = room.min(requests.saturating_sub(under_way));
                }
                Err(Corrupt { .. }) => {
                    room = CORRUPT;
                    break;
                }
            }
            k += step;
        }
        if self.all(room == wanted) {
            return Some(wanted);
        }
        if watch.is_narrow && watch.outputs == 1 {
            return Some(self.shuffle32(room, Lane::of_output(0)));
        }
        // As the least of `room + 1`, a corrupt ring is 0.
        let least = self.warp_min32(room.wrapping_add(1));
        least.checked_sub(1)
    }

    /// The first warp, where there is a message that was not taken, and none is under way: notes for which outputs it waits.
    #[inline(always)]
    pub(super) fn note_stalls(&self, watch: &Watch<'_>) {
        let (mut k, step) = self.outputs_of_lane(watch);
        while k < watch.outputs {
            // SAFETY: an output of this lane; only this warp touches its end, and its stalls.
            let (sink, stalls) =
                unsafe { (&(*self.output(k)).sink, &mut (*self.output(k)).stalls) };
            // SAFETY: an output; nobody changes that.
            let most = unsafe { (*self.output(k)).most };
            if sink.known_free() < most.get() {
                stalls.note(sink.next());
            }
            k += step;
        }
    }
}

impl Watch<'_> {
    /// On a GPU, whether the last look began long enough after that at the host's command.
    #[inline(always)]
    pub(super) fn is_late(&self) -> bool {
        (self.seen as u32).wrapping_sub(self.asked) >= self.between
    }

    /// That of a warp that does not look.
    pub(super) const NONE: Watch<'static> = Watch {
        at: core::ptr::null(),
        other: core::ptr::null(),
        known: Known::NOTHING,
        credit: None,
        lane: 0,
        first_output: core::ptr::null_mut(),
        is_direct: false,
        stages: Stages::new(core::ptr::null_mut()),
        seen: 0,
        unseen: 0,
        is_narrow: false,
        leaves_device: false,
        inputs: 0,
        outputs: 0,
        input: 0,
        turns: 0,
        asked: 0,
        between: 0,
    };

    /// The lane that an input belongs to.
    #[inline(always)]
    pub(super) fn lane_of_input(&self, input: u32) -> u32 {
        if self.is_narrow { Lane::of_control(input) } else { input & (Threads::WARP - 1) }
    }
}
