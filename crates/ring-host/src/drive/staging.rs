//! Keeping the host's copy of a kernel's memory and the device's alike, where they are not one.
//!
//! Each side writes into its own copy, by the ring protocol. A *trip* carries what is new: **out**
//! (slots, then the doorbell and credit lines, one copy behind the other) or **back** (the device's
//! lines first; then, if they tell of slots, the slots; and only then are the lines shown to the
//! receiver). So on either side a message is there before it is announced. In which order a copy reads
//! its lines nobody says, so what a channel says of the others (that it has obeyed, that it has left) is shown
//! a trip later than it is read: with lines that were read after it. Lines are composed in, and
//! received into, room of their own ([`Mail`](crate::memory::region::Mail)), so nobody writes what is being
//! copied. Nothing is taken off a ring here: staging holds what the rings hold, and a full ring is
//! full for the sender.

use crate::device::{Cells, Station};
use crate::drive::scheduler::patiently;
use crate::error::{DeviceFault, DriverError};
use crate::memory::region::{BACK_AT, BACK_ATOMS, OUT_AT, OUT_ATOMS, Region};
use ring_shared::atomics::{Atom, Ordering};
use ring_shared::layout::{ChannelBlock, ControlBlock, HostLine, StatusLine, Times};
use ring_shared::ring::{CONTROL, Control, Corrupt, Seen, decide, stamp, widen};
use std::mem::offset_of;
use std::ops::Range;
use std::ptr::NonNull;

const ATOM: usize = size_of::<Atom>();
/// Atoms in front of those of the times, which come back on request only.
const BACK_LINES: usize = BACK_ATOMS - size_of::<Times>() / ATOM;
/// Where the device's credit line and doorbell are among what comes back.
const CREDIT_BACK: usize = (offset_of!(ChannelBlock, request_credit) - BACK_AT) / ATOM;
const BELL_BACK: usize = (offset_of!(ChannelBlock, response_bell) - BACK_AT) / ATOM;
/// The words of the status that tell of other lines, as places among what comes back: atom and half.
const ACKNOWLEDGED: (usize, usize) = word_of(offset_of!(StatusLine, acknowledged));
const LEFT: (usize, usize) = word_of(offset_of!(StatusLine, left));
/// Where the host's credit line is among what goes out.
const CREDIT_OUT: usize = (offset_of!(ChannelBlock, response_credit) - OUT_AT) / ATOM;
/// The atom of the control block that holds the host's command.
const COMMAND_AT: usize = offset_of!(ControlBlock, host) + offset_of!(HostLine, command);
const _: () = assert!(COMMAND_AT.is_multiple_of(ATOM));
// Each is a whole number of atoms, and the place that it is named for: what is shown last tells that all
// before it is here, so an order that is off by a line is a message too early.
const _: () = assert!((BACK_ATOMS - BACK_LINES) * ATOM == size_of::<Times>());
const _: () = assert!(BACK_AT + CREDIT_BACK * ATOM == offset_of!(ChannelBlock, request_credit));
const _: () = assert!(BACK_AT + BELL_BACK * ATOM == offset_of!(ChannelBlock, response_bell));
const _: () = assert!(OUT_AT + CREDIT_OUT * ATOM == offset_of!(ChannelBlock, response_credit));

const fn word_of(at: usize) -> (usize, usize) {
    (at / ATOM, at % ATOM / 8)
}

/// What a channel says of all its lines: the command it has obeyed, and the launches it has left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Word {
    acknowledged: u64,
    left: u64,
}

/// What was carried of one channel.
#[derive(Clone, Debug)]
struct Carried {
    /// Requests below this index are on the device.
    out: u64,
    /// The request doorbell's control atom when it last went out.
    control: [u64; 2],
    /// The credit for responses when it last went out.
    credit: u64,
    /// Responses below this index are here.
    back: u64,
    /// Responses below this index are being copied.
    coming: u64,
    /// What the channel said when its lines last came back.
    said: Word,
    /// What of that is shown.
    shown: Word,
}

/// What is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trip {
    None,
    Out,
    Lines(Back),
    Slots(Back),
}

/// A trip back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Back {
    /// With the channels' times.
    pub times: bool,
    /// Nothing was on the device any more when it began: all lines are as they were left.
    pub last: bool,
}

/// Carries a kernel's lines and slots. One trip at a time.
#[derive(Debug)]
pub(crate) struct Courier {
    channels: Box<[Carried]>,
    /// The command when it last went out.
    command: u64,
    trip: Trip,
    /// Trips back that have been delivered.
    pub delivered: u64,
}

impl Courier {
    /// Nothing carried yet but the memory as the region was initialised, by [`go_first`](Self::go_first).
    pub fn new(region: &Region) -> Courier {
        let start = region.start();
        let channel = |channel| Carried {
            out: start,
            control: region.channel(channel).request_bell.atoms[CONTROL].observe(),
            credit: start,
            back: start,
            coming: start,
            said: Word::default(),
            shown: Word::default(),
        };
        Courier {
            channels: (0..region.channels()).map(channel).collect(),
            command: 0,
            trip: Trip::None,
            delivered: 0,
        }
    }

    /// Begins to carry the control block and all channels' blocks, before the first launch.
    pub fn go_first(&mut self, region: &Region, station: &dyn Station) -> Result<(), DriverError> {
        let bytes = size_of::<ControlBlock>() + self.channels.len() * size_of::<ChannelBlock>();
        self.trip = Trip::Out;
        // SAFETY: the beginning of both copies, which the region keeps until the station is over.
        patiently(|| unsafe {
            station.copy_in(region.device_at(0), region.host_at(0), bytes, Cells::Atoms)
        })
    }

    /// Begins to carry the budgets. Only while no launch is on the device.
    pub fn go_with_budgets(
        &mut self,
        region: &Region,
        station: &dyn Station,
    ) -> Result<(), DriverError> {
        let at = offset_of!(ControlBlock, config);
        let bytes = size_of::<ControlBlock>() - at;
        self.trip = Trip::Out;
        // SAFETY: the configuration line of both copies; as above.
        patiently(|| unsafe {
            station.copy_in(region.device_at(at), region.host_at(at), bytes, Cells::Atoms)
        })
    }

    /// Whether no trip is under way.
    pub fn is_home(&self) -> bool {
        self.trip == Trip::None
    }

    /// Whether answers to requests that are on the device have not come back.
    pub fn is_owed(&self) -> bool {
        self.channels.iter().any(|channel| channel.out > channel.back)
    }

    /// Whether a channel has said more of itself than is shown: one more trip back shows it.
    pub fn is_behind(&self) -> bool {
        self.channels.iter().any(|channel| channel.said != channel.shown)
    }

    /// Begins a trip out, if something is new or `all`; whether it was begun.
    pub fn go_out(
        &mut self,
        (region, station): (&Region, &dyn Station),
        received: impl Fn(u32) -> u64,
        all: bool,
    ) -> Result<bool, DriverError> {
        let mut gone = false;
        self.trip = Trip::Out; // also if it fails half way: what was begun must be over first
        for channel in 0..region.channels() {
            let bell = &region.channel(channel).request_bell;
            // SYNC: acquires the sender's `publish_control`: slots and stamps are there.
            let words = bell.atoms[CONTROL].observe();
            let credit = received(channel);
            let carried = &mut self.channels[channel as usize];
            let starved =
                credit.wrapping_sub(carried.credit) >= u64::from(region.capacity() / 2).max(1);
            if !(all || words != carried.control || starved) {
                continue;
            }
            let control = Control::from_words(words);
            let tail = widen(control.tail, carried.out);
            let alone = tail == carried.out + 1 && control.inline == carried.out as u32;
            if !alone {
                copy_slots((region, station), channel, 0, carried.out..tail)?;
            }
            let out = &region.mail(channel).out;
            for (to, from) in out.iter().zip(&bell.atoms[..CONTROL]) {
                to.store(from.observe());
            }
            out[CONTROL].store(words);
            out[CREDIT_OUT].store([credit, 0]);
            let at = region.device_at(region.channel_at(channel) + OUT_AT);
            // SAFETY: the lines of this channel that the host writes, and room for as many, which the
            // region keeps until the station is over. Only a trip writes that room: this one.
            patiently(|| unsafe {
                station.copy_in(at, beginning(out), OUT_ATOMS * ATOM, Cells::Atoms)
            })?;
            (carried.out, carried.control, carried.credit) = (tail, words, credit);
            gone = true;
        }
        let command = region.control().host.command.load(Ordering::Relaxed);
        if all || command != self.command {
            let (to, from) = (region.device_at(COMMAND_AT), region.host_at(COMMAND_AT));
            // SAFETY: the atom that holds the command, in both copies.
            patiently(|| unsafe { station.copy_in(to, from, ATOM, Cells::Atoms) })?;
            self.command = command;
            gone = true;
        }
        if !gone {
            self.trip = Trip::None;
        }
        Ok(gone)
    }

    /// Begins a trip back.
    pub fn go_back(
        &mut self,
        region: &Region,
        station: &dyn Station,
        back: Back,
    ) -> Result<(), DriverError> {
        let atoms = if back.times { BACK_ATOMS } else { BACK_LINES };
        self.trip = Trip::Out; // if it fails half way there is nothing to read
        for channel in 0..region.channels() {
            let from = region.device_at(region.channel_at(channel) + BACK_AT);
            let to = beginning(&region.mail(channel).back);
            // SAFETY: the lines of this channel that the device writes, and room for as many, which
            // the region keeps until the station is over.
            patiently(|| unsafe { station.copy_out(to, from, atoms * ATOM, Cells::Atoms) })?;
        }
        self.trip = Trip::Lines(back);
        Ok(())
    }

    /// Goes on with a trip whose copies are over.
    pub fn arrive(
        &mut self,
        region: &Region,
        station: &dyn Station,
        corrupt: impl Fn(u32, Corrupt) -> DeviceFault,
    ) -> Result<Result<(), DriverError>, DeviceFault> {
        match self.trip {
            Trip::None => {}
            Trip::Out => self.trip = Trip::None,
            Trip::Lines(back) => {
                let mut slots = false;
                for channel in 0..region.channels() {
                    match self.read_lines(region, station, channel) {
                        Ok(more) => slots |= more,
                        Err(Trouble::Corrupt(found)) => return Err(corrupt(channel, found)),
                        Err(Trouble::Driver(error)) => {
                            self.trip = Trip::Out; // nothing more to read, but it must be over
                            return Ok(Err(error));
                        }
                    }
                }
                self.trip = Trip::Slots(back);
                if !slots {
                    self.deliver(region, back);
                }
            }
            Trip::Slots(back) => self.deliver(region, back),
        }
        Ok(Ok(()))
    }

    /// Reads the doorbell that came back; begins to copy the slots that it tells of, if any.
    fn read_lines(
        &mut self,
        region: &Region,
        station: &dyn Station,
        channel: u32,
    ) -> Result<bool, Trouble> {
        let carried = &mut self.channels[channel as usize];
        let bell = &region.mail(channel).back[BELL_BACK..BELL_BACK + CONTROL + 1];
        let (here, control) = (carried.back, Control::from_words(bell[CONTROL].load()));
        carried.coming = here;
        if let Seen::Corrupt(found) = decide(control, here, region.capacity()) {
            return Err(Trouble::Corrupt(found));
        }
        let ahead = u64::from(control.tail.wrapping_sub(here as u32));
        if ahead > u64::from(region.capacity()) {
            return Ok(false); // behind: a line read before one that was shown
        }
        let inline = widen(control.inline, here);
        if inline < here + ahead {
            // The copy may have read atoms before the device wrote them: then the next trip brings
            // them.
            let stamped = |atom: &Atom| (atom.load()[1] >> 32) as u32 == stamp(inline);
            if !bell[..region.answer_stamps()].iter().all(stamped) {
                return Ok(false);
            }
        }
        carried.coming = here + ahead;
        let slots = ahead > u64::from(inline == here);
        if slots {
            copy_slots((region, station), channel, 1, here..here + ahead)?;
        }
        Ok(slots)
    }

    /// Shows the receiver what came back.
    fn deliver(&mut self, region: &Region, trip: Back) {
        for channel in 0..region.channels() {
            let (back, block) = (&region.mail(channel).back, region.channel_at(channel));
            let show = |k: usize, words: [u64; 2]| {
                let to = region.host_at::<Atom>(block + BACK_AT + k * ATOM);
                // SAFETY: an atom of the channel's lines, which hold atomics only, all of eight
                // bytes. SYNC: released to whoever acquires a word of it.
                unsafe { to.as_ref() }.publish(words);
            };
            let show_all = |atoms: Range<usize>| atoms.for_each(|k| show(k, back[k].load()));
            let carried = &mut self.channels[channel as usize];
            if carried.coming > carried.back {
                show_all(BELL_BACK..BELL_BACK + CONTROL + 1); // inline atoms, then the control atom
                carried.back = carried.coming;
            }
            if trip.times {
                show_all(BACK_LINES..BACK_ATOMS);
            }
            show_all(CREDIT_BACK..BELL_BACK);
            let word = |(k, half): (usize, usize)| back[k].load()[half];
            let now = Word { acknowledged: word(ACKNOWLEDGED), left: word(LEFT) };
            let before = std::mem::replace(&mut carried.said, now);
            for (k, atom) in back[..CREDIT_BACK].iter().enumerate() {
                let mut words = atom.load();
                for ((at, half), shown) in
                    [(ACKNOWLEDGED, carried.shown.acknowledged), (LEFT, carried.shown.left)]
                {
                    if at == k {
                        words[half] = shown; // as it is: it has its turn below
                    }
                }
                show(k, words);
            }
            carried.shown = if trip.last { now } else { before };
            let status = &region.channel(channel).status;
            // SYNC: released to `StatusLine::obeyed` and `launches_left`: all that was stored before the
            // channel said so is here.
            status.acknowledged.store(carried.shown.acknowledged, Ordering::Release);
            status.left.store(carried.shown.left, Ordering::Release);
        }
        self.trip = Trip::None;
        self.delivered += 1;
    }
}

/// Why lines could not be read.
enum Trouble {
    Corrupt(Corrupt),
    Driver(DriverError),
}

impl From<DriverError> for Trouble {
    fn from(error: DriverError) -> Trouble {
        Trouble::Driver(error)
    }
}

/// Copies the slots of messages `range` of a channel's ring, to the device (0: requests) or from it
/// (1: responses): one copy, or two around the ring's end.
fn copy_slots(
    (region, station): (&Region, &dyn Station),
    channel: u32,
    which: usize,
    range: Range<u64>,
) -> Result<(), DriverError> {
    let (capacity, slot) = (u64::from(region.capacity()), region.slot_bytes(which));
    let mut from = range.start;
    while from < range.end {
        let first = from & (capacity - 1);
        let n = (range.end - from).min(capacity - first);
        let at = region.slots_at(channel, which) + first as usize * slot;
        let bytes = n as usize * slot;
        // SAFETY: whole slots of this ring in both copies, which the region keeps until the station
        // is over. By the ring's rules the slots of messages that are announced and not consumed
        // are written by nobody; on the receiving side they are free, and not announced yet.
        patiently(|| unsafe {
            let (host, device) = (region.host_at(at), region.device_at(at));
            match which {
                0 => station.copy_in(device, host, bytes, Cells::Atoms),
                _ => station.copy_out(host, device, bytes, Cells::Atoms),
            }
        })?;
        from += n;
    }
    Ok(())
}

/// Where a run of atoms begins.
fn beginning(atoms: &[Atom]) -> NonNull<u8> {
    NonNull::from(atoms).cast()
}

#[cfg(all(test, not(loom)))]
mod order;
#[cfg(test)]
pub(crate) mod rig;
