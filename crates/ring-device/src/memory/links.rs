//! What the block of a kernel with ports knows of its links, at the beginning of its scratch memory: its ends of the rings,
//! what the current step is, and where the rest of the memory begins.

use crate::block::cell::Cell;
use crate::block::{Cooperate, MOST_WARPS, Threads};
use crate::emissions::{PortShape, Stages};
use crate::memory::signals::Decision;
use core::num::NonZeroU32;
use core::ptr::{NonNull, with_exposed_provenance_mut};
use core::sync::atomic::Ordering::Relaxed;
use ring_shared::atomics::{AtomicU32, Gpu, System};
use ring_shared::inbox::Found;
use ring_shared::layout::{Far, Link, MAX_PORTS, PortLinks};
use ring_shared::ring::Control;
use ring_shared::{Corrupt, Inbox, Message, Outbox, Ring};

/// What the block's threads share of a step. Set by lane 0 of the first warp, but for `wrong`, and read behind a barrier.
#[repr(C, align(16))]
#[derive(Debug)]
pub(crate) struct Step {
    /// Whether there is a step to take, or else what to do.
    pub decision: Cell<Decision>,
    /// The input that it takes messages from.
    pub input: Cell<u64>,
    /// How many.
    pub n: Cell<u64>,
    /// Whether it is one message, which came inline, is in the first stage, and was handled.
    pub is_inline: Cell<bool>,
    /// Whether the step is done, and consumers and producers are not told of it.
    pub is_untold: Cell<bool>,
    /// Counts steps, and looks that found nothing, since the last look at the host's command.
    pub turns: Cell<u64>,
    /// The host has asked the channel to become inactive, which it does when its inputs are empty.
    pub drains: Cell<bool>,
    /// Rings.
    pub inputs: Cell<u64>,
    pub outputs: Cell<u64>,
    /// Whether one look of the first warp shows all of them: see [`Lane`].
    pub is_narrow: Cell<bool>,
    /// Whether one of them leads to the host.
    pub has_host: Cell<bool>,
    /// Most messages of a step.
    pub most: Cell<u64>,
    /// Where areas of the scratch memory begin: see [`Areas`].
    pub outputs_at: Cell<u64>,
    pub counts_at: Cell<u64>,
    pub stages_at: Cell<u64>,
    pub list_at: Cell<u64>,
    pub places_at: Cell<u64>,
    /// What is wrong with the step. Set by any thread.
    pub wrong: Cell<Decision>,
    /// A [`PortLinks`] for each port.
    ports: [Cell<u64>; MAX_PORTS],
    /// Sums of warps.
    pub sums: [AtomicU32; MOST_WARPS],
}

/// What a lane of the first warp looks at where there are few rings: lanes 0 to 7 at the atoms of the first input's line, lanes
/// 8 to 15 at those of the second's, and each of the others at the credit line of an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lane {
    /// An atom of an input's line.
    Input { input: u32, atom: u32 },
    /// An output's credit.
    Output(u32),
}

/// Most inputs and outputs that one look shows.
pub(crate) const NARROW: (u32, u32) = (2, 16);

impl Lane {
    #[inline(always)]
    pub const fn of(lane: u32) -> Lane {
        if lane < 16 {
            Lane::Input { input: lane / 8, atom: lane % 8 }
        } else {
            Lane::Output(lane - 16)
        }
    }

    /// The lane that has the control atom of an input.
    #[inline(always)]
    pub const fn of_control(input: u32) -> u32 {
        8 * input + 7
    }
}

impl Step {
    /// One thread: as it is before the first step.
    pub fn begin(&self, (inputs, outputs): (u32, u32), areas: Areas, most: u32) {
        self.decision.set(Decision::Continue);
        self.input.set(0);
        self.n.set(0);
        self.is_inline.set(false);
        self.is_untold.set(false);
        self.turns.set(u64::MAX); // the first look is at the host, too
        self.drains.set(false);
        self.inputs.set(inputs.into());
        self.outputs.set(outputs.into());
        self.is_narrow.set(Threads::WARP > 1 && inputs <= NARROW.0 && outputs <= NARROW.1);
        self.has_host.set(false);
        self.most.set(most.into());
        self.outputs_at.set(areas.outputs as u64);
        self.counts_at.set(areas.counts as u64);
        self.stages_at.set(areas.stages as u64);
        self.list_at.set(areas.list as u64);
        self.places_at.set(areas.places as u64);
        self.wrong.set(Decision::Continue);
    }

    /// The links of a port.
    #[inline(always)]
    pub fn port(&self, port: usize) -> PortLinks {
        PortLinks::from_word(self.ports[port].get())
    }

    /// One thread: sets the links of a port.
    pub fn set_port(&self, port: usize, links: PortLinks) {
        self.ports[port].set(links.to_word());
    }
}

/// The consuming end of a ring, used by one lane of the first warp.
#[derive(Debug)]
pub(crate) enum Source {
    Channel(Inbox<Gpu>),
    Host(Inbox<System>),
}

impl Source {
    fn new(ring: Ring, far: Far) -> Source {
        match far {
            Far::Channel => Source::Channel(Inbox::with_scope(ring, Gpu)),
            Far::Host => Source::Host(Inbox::new(ring)),
        }
    }

    /// As [`Inbox::find`].
    #[inline(always)]
    pub fn find<M: Message>(&mut self) -> Result<Found, Corrupt> {
        match self {
            Source::Channel(inbox) => inbox.find::<M>(),
            Source::Host(inbox) => inbox.find::<M>(),
        }
    }

    /// As [`Inbox::find_in`].
    #[inline(always)]
    pub fn find_in<M: Message>(&mut self, control: Control) -> Result<Found, Corrupt> {
        match self {
            Source::Channel(inbox) => inbox.find_in::<M>(control),
            Source::Host(inbox) => inbox.find_in::<M>(control),
        }
    }

    /// As [`Inbox::note_inline`].
    #[inline(always)]
    pub fn note_inline(&mut self) {
        match self {
            Source::Channel(inbox) => inbox.note_inline(),
            Source::Host(inbox) => inbox.note_inline(),
        }
    }

    /// As [`Inbox::credit_to_tell`].
    #[inline(always)]
    pub fn credit_to_tell(&mut self, all: bool) -> Option<u64> {
        match self {
            Source::Channel(inbox) => inbox.credit_to_tell(all),
            Source::Host(inbox) => inbox.credit_to_tell(all),
        }
    }

    /// As [`Inbox::take_inline`].
    #[inline(always)]
    pub fn take_inline<M: Message>(&mut self, message: &mut M) -> bool {
        match self {
            Source::Channel(inbox) => inbox.take_inline(message),
            Source::Host(inbox) => inbox.take_inline(message),
        }
    }

    /// As [`Inbox::take_slots`].
    #[inline(always)]
    pub fn take_slots(&mut self, n: u32) {
        match self {
            Source::Channel(inbox) => inbox.take_slots(n),
            Source::Host(inbox) => inbox.take_slots(n),
        }
    }

    /// The ring and the next index, for the threads that read slots.
    #[inline(always)]
    pub fn place(&self) -> (Ring, u64) {
        match self {
            Source::Channel(inbox) => (inbox.ring(), inbox.next()),
            Source::Host(inbox) => (inbox.ring(), inbox.next()),
        }
    }
}

/// The producing end of a ring, likewise.
#[derive(Debug)]
pub(crate) enum Sink {
    Channel(Outbox<Gpu>),
    Host(Outbox<System>),
}

impl Sink {
    fn new(ring: Ring, far: Far) -> Sink {
        match far {
            Far::Channel => Sink::Channel(Outbox::with_scope(ring, Gpu)),
            Far::Host => Sink::Host(Outbox::new(ring)),
        }
    }

    /// As [`Outbox::free_slots`].
    #[inline(always)]
    pub fn free_slots(&mut self, wanted: u32) -> Result<u32, Corrupt> {
        match self {
            Sink::Channel(outbox) => outbox.free_slots(wanted),
            Sink::Host(outbox) => outbox.free_slots(wanted),
        }
    }

    /// Slots known to be free.
    #[inline(always)]
    pub fn known_free(&self) -> u32 {
        match self {
            Sink::Channel(outbox) => outbox.known_free(),
            Sink::Host(outbox) => outbox.known_free(),
        }
    }

    /// As [`Outbox::note_credit`].
    #[inline(always)]
    pub fn note_credit(&mut self, found: u64) -> Result<(), Corrupt> {
        match self {
            Sink::Channel(outbox) => outbox.note_credit(found),
            Sink::Host(outbox) => outbox.note_credit(found),
        }
    }

    /// As [`Outbox::is_idle`].
    #[inline(always)]
    pub fn is_idle(&self) -> bool {
        match self {
            Sink::Channel(outbox) => outbox.is_idle(),
            Sink::Host(outbox) => outbox.is_idle(),
        }
    }

    /// As [`Outbox::note_inline`].
    #[inline(always)]
    pub fn note_inline(&mut self) {
        match self {
            Sink::Channel(outbox) => outbox.note_inline(),
            Sink::Host(outbox) => outbox.note_inline(),
        }
    }

    /// As [`Outbox::commit_slots`], behind a fence of the caller's.
    #[inline(always)]
    pub fn commit_slots(&mut self, n: u32) {
        match self {
            Sink::Channel(outbox) => outbox.commit_slots(n, || {}),
            Sink::Host(outbox) => outbox.commit_slots(n, || {}),
        }
    }

    /// The ring and the next index, for the threads that write slots.
    #[inline(always)]
    pub fn place(&self) -> (Ring, u64) {
        match self {
            Sink::Channel(outbox) => (outbox.ring(), outbox.next()),
            Sink::Host(outbox) => (outbox.ring(), outbox.next()),
        }
    }
}

/// An output: its end, and what the step sends there.
#[repr(C, align(16))]
#[derive(Debug)]
pub(crate) struct Output {
    pub sink: Sink,
    /// Most messages that one request emits to it.
    pub most: NonZeroU32,
    /// Messages of the step. Set between barriers by the one thread that counts them.
    pub n: AtomicU32,
}

/// An input.
#[repr(C, align(16))]
#[derive(Debug)]
pub(crate) struct Input(pub Source);

/// Where the ring of a link is; `None` if there can be no such ring.
///
/// # Safety
/// What the link names is there and stays, as large as it says.
unsafe fn ring_of(link: &Link, atoms: usize) -> Option<Ring> {
    let ring = &link.ring;
    let at = |address: u64| NonNull::new(with_exposed_provenance_mut::<u8>(address as usize));
    let parts = (
        at(ring.lines.load(Relaxed))?.cast(),
        at(ring.credit.load(Relaxed))?.cast(),
        at(ring.slots.load(Relaxed))?.cast(),
    );
    let lines = (ring.line_count.load(Relaxed), ring.span.load(Relaxed));
    let fits = ring.slot_bytes.load(Relaxed) as usize == 16 * atoms;
    let slots = (ring.capacity.load(Relaxed), atoms as u32);
    // SAFETY: the caller's promise.
    let ring = unsafe { Ring::from_raw(parts, lines, slots, ring.start.load(Relaxed)) };
    ring.filter(|ring| fits && ring.line_count() == 1)
}

/// Where what a block has of its links lies in the scratch memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Areas {
    /// Inputs, then outputs.
    pub inputs: usize,
    pub outputs: usize,
    /// For each warp, how many messages go to each output of a port.
    pub counts: usize,
    /// Stages of messages.
    pub stages: usize,
    /// Which stages the messages of a port are in, and where each goes; a word for each.
    pub list: usize,
    pub places: usize,
    /// Most messages of a step; 0 if there is no room for one.
    pub most: u32,
}

/// Most messages of a step, whatever room there is.
const MOST: usize = 1024;

impl Areas {
    /// For a kernel of such requests and ports, in `room` bytes of scratch memory.
    #[inline(always)]
    pub const fn new(
        (request_atoms, ports): (usize, &[PortShape]),
        (inputs, outputs): (usize, usize),
        (threads, warps): (usize, usize),
        room: usize,
    ) -> Areas {
        let inputs_at = size_of::<Step>();
        let outputs_at = inputs_at + inputs * size_of::<Input>();
        let counts_at = outputs_at + outputs * size_of::<Output>();
        let stages_at = (counts_at + 4 * warps * outputs).next_multiple_of(16);
        let (mut longest, mut p) = (1, 0);
        while p < ports.len() {
            let most = ports[p].most as usize;
            longest = if most > longest { most } else { longest };
            p += 1;
        }
        let stride = Stages::stride(request_atoms, ports);
        // An inline message is read by whole pieces, which may end behind a short one: see `send_inline`.
        let room = room.saturating_sub(stages_at + 96);
        let mut most = room / (stride + 8 * longest);
        // A GPU's thread has at most two messages; places have 16 bits.
        let limits = [if threads > 1 { 2 * threads } else { 256 }, 0xffff / longest, MOST];
        let mut k = 0;
        while k < limits.len() {
            most = if limits[k] < most { limits[k] } else { most };
            k += 1;
        }
        let list = stages_at + most * stride;
        let places = list + 4 * most * longest;
        Areas {
            inputs: inputs_at,
            outputs: outputs_at,
            counts: counts_at,
            stages: stages_at,
            list,
            places,
            most: most as u32,
        }
    }
}

/// One thread: makes an input's end at `at`. False if its ring cannot be. The ring of another channel is made ready: its
/// producer begins when the host has seen that this channel takes messages.
///
/// # Safety
/// `at` has aligned room for it, of the calling thread. What the link names is there and stays, as large as it says.
pub(crate) unsafe fn begin_input(step: &Step, at: *mut Input, link: &Link, atoms: usize) -> bool {
    // SAFETY: the caller's promise.
    let Some(ring) = (unsafe { ring_of(link, atoms) }) else { return false };
    let far = Far::from_u32(link.far.load(Relaxed));
    if far == Far::Channel {
        ring.reset();
    } else {
        step.has_host.set(true);
    }
    // SAFETY: the caller's room.
    unsafe { at.write(Input(Source::new(ring, far))) };
    true
}

/// One thread: makes the end of an output of `port` at `at`. False if its ring cannot be.
///
/// # Safety
/// As for [`begin_input`].
pub(crate) unsafe fn begin_output(
    step: &Step,
    at: *mut Output,
    link: &Link,
    port: &PortShape,
) -> bool {
    // SAFETY: the caller's promise.
    let Some(ring) = (unsafe { ring_of(link, port.atoms) }) else { return false };
    let far = Far::from_u32(link.far.load(Relaxed));
    if far == Far::Host {
        step.has_host.set(true);
    }
    let sink = Sink::new(ring, far);
    let most = NonZeroU32::new(port.most).unwrap_or(NonZeroU32::MIN); // it is one at least
    let output = Output { sink, most, n: AtomicU32::new(0) };
    // SAFETY: the caller's room.
    unsafe { at.write(output) };
    true
}
