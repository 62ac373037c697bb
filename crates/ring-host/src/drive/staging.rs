//! Keeping the host's copy of a kernel's memory and the device's alike, where they are not one.
//!
//! Each side writes into its own copy, by the ring protocol. A *transfer* copies what is new. **Push**, to the
//! device: slots, then the doorbell and credit lines, one copy behind the other. **Pull**, to the host: the
//! device's lines first; then, if they announce slots, the slots; and only then are the lines published to the
//! receiver. So on either side a message is there before it is announced. In which order a copy reads its lines
//! is not known, so what a channel reports of the others (a command acknowledged, a launch left) is published a
//! transfer later than it is read: with lines that were read after it. Lines are composed in, and received
//! into, [bounce buffers](crate::memory::plan::BounceBuffer), so nobody writes what is being copied. Nothing is
//! taken off a ring here: staging holds what the rings hold, and a full ring is full for the sender.

use crate::device::retry::retry;
use crate::device::{Cells, CopyKind, LaunchSlot, MemoryCopy};
use crate::error::DriverError;
use crate::memory::plan::{BACK_AT, BACK_ATOMS, Direction, OUT_AT, OUT_ATOMS};
use crate::memory::region::Region;
use ring_shared::atomics::{Atom, Ordering};
use ring_shared::layout::{ChannelBlock, ControlBlock, HostLine, StatusLine, Times};
use ring_shared::ring::{CONTROL, Control, Corrupt, Seen, decide, stamp, stamp_of, widen};
use std::mem::offset_of;
use std::ops::Range;
use std::ptr::NonNull;

const ATOM: usize = size_of::<Atom>();
/// Atoms of a pull in front of the channels' times, which are pulled on request only.
const BACK_LINES: usize = BACK_ATOMS - size_of::<Times>() / ATOM;
/// Where the device's credit line and doorbell are in a pull.
const CREDIT_BACK: usize = (offset_of!(ChannelBlock, request_credit) - BACK_AT) / ATOM;
const BELL_BACK: usize = (offset_of!(ChannelBlock, response_bell) - BACK_AT) / ATOM;
/// The words of the status that report on other lines, by where they are in a pull: atom and half.
const ACKNOWLEDGED: (usize, usize) = word_of(offset_of!(StatusLine, acknowledged));
const LEFT: (usize, usize) = word_of(offset_of!(StatusLine, launches_left));
/// Where the host's credit line is in a push.
const CREDIT_OUT: usize = (offset_of!(ChannelBlock, response_credit) - OUT_AT) / ATOM;
/// The atom of the control block that holds the host's command.
const COMMAND_AT: usize = offset_of!(ControlBlock, host) + offset_of!(HostLine, command);
const _: () = assert!(COMMAND_AT.is_multiple_of(ATOM));
// Each is a whole number of atoms, and the line that it is named for: what is published last announces all
// before it, so an offset that is wrong by a line announces a message too early.
const _: () = assert!((BACK_ATOMS - BACK_LINES) * ATOM == size_of::<Times>());
const _: () = assert!(BACK_AT + CREDIT_BACK * ATOM == offset_of!(ChannelBlock, request_credit));
const _: () = assert!(BACK_AT + BELL_BACK * ATOM == offset_of!(ChannelBlock, response_bell));
const _: () = assert!(OUT_AT + CREDIT_OUT * ATOM == offset_of!(ChannelBlock, response_credit));

const fn word_of(at: usize) -> (usize, usize) {
    (at / ATOM, at % ATOM / 8)
}

/// A kernel's memory, and the launch slot that copies between its two sides.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sides<'a> {
    pub region: &'a Region,
    pub launch_slot: &'a dyn LaunchSlot,
}

impl Sides<'_> {
    /// Begins to copy atoms between host memory and the device's copy of what lies at `offset`.
    ///
    /// # Safety
    /// Both have so many bytes, which are used as atoms and stay until the launch slot is over.
    unsafe fn copy(
        self,
        kind: CopyKind,
        host: NonNull<u8>,
        offset: usize,
        bytes: usize,
    ) -> Result<(), DriverError> {
        let device = self.region.device_at(offset);
        let copy = MemoryCopy { kind, host, device, bytes, cells: Cells::Atoms };
        // SAFETY: the caller's promise.
        retry(|| unsafe { self.launch_slot.copy(copy) })
    }
}

/// What a channel reports of all its lines: the command it has acknowledged, and the launches it has left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Report {
    acknowledged: u64,
    left: u64,
}

/// How far one channel was copied.
#[derive(Clone, Debug)]
struct Progress {
    /// Requests below this index are on the device.
    pushed: u64,
    /// The request doorbell's control atom when it was last pushed.
    control: [u64; 2],
    /// The credit for responses when it was last pushed.
    credit: u64,
    /// Responses below this index are here.
    pulled: u64,
    /// Responses below this index are being copied.
    pulling: u64,
    /// What the channel reported in its lines when they were last pulled.
    read: Report,
    /// What of that is published.
    published: Report,
}

/// What is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Transfer {
    None,
    /// To the device; or one that failed, whose copies must be over before the next.
    Push,
    PullLines(Pull),
    PullSlots(Pull),
}

/// How the device's lines are pulled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pull {
    /// With the channels' times.
    pub times: bool,
    /// Nothing was on the device any more when it began: all lines are as they were left.
    pub last: bool,
}

/// Copies a kernel's lines and slots. One transfer at a time.
#[derive(Debug)]
pub(crate) struct StagingCopier {
    channels: Box<[Progress]>,
    /// The command when it was last pushed.
    command: u64,
    transfer: Transfer,
    /// Pulls that have been published.
    pub delivered: u64,
}

impl StagingCopier {
    /// Nothing is copied yet; [`push_all`](Self::push_all) comes first.
    pub fn new(region: &Region) -> StagingCopier {
        let start = region.plan.start;
        let channel = |channel| Progress {
            pushed: start,
            control: region.channel(channel).request_bell.atoms[CONTROL].observe(),
            credit: start,
            pulled: start,
            pulling: start,
            read: Report::default(),
            published: Report::default(),
        };
        StagingCopier {
            channels: (0..region.plan.channels).map(channel).collect(),
            command: 0,
            transfer: Transfer::None,
            delivered: 0,
        }
    }

    /// Begins to push the control block and all channels' blocks, before the first launch.
    pub fn push_all(&mut self, sides: Sides<'_>) -> Result<(), DriverError> {
        let bytes = size_of::<ControlBlock>() + self.channels.len() * size_of::<ChannelBlock>();
        self.transfer = Transfer::Push;
        // SAFETY: the beginning of both copies, which the region keeps until the launch slot is over.
        unsafe { sides.copy(CopyKind::HostToDevice, sides.region.host_at(0), 0, bytes) }
    }

    /// Begins to push the budgets. Only while no launch is on the device.
    pub fn push_budgets(&mut self, sides: Sides<'_>) -> Result<(), DriverError> {
        let at = offset_of!(ControlBlock, config);
        let bytes = size_of::<ControlBlock>() - at;
        self.transfer = Transfer::Push;
        // SAFETY: the configuration line of both copies; as above.
        unsafe { sides.copy(CopyKind::HostToDevice, sides.region.host_at(at), at, bytes) }
    }

    /// Whether no transfer is under way.
    pub fn is_idle(&self) -> bool {
        self.transfer == Transfer::None
    }

    /// Whether answers to requests that are on the device were not pulled.
    pub fn awaits_answers(&self) -> bool {
        self.channels.iter().any(|channel| channel.pushed > channel.pulled)
    }

    /// Whether a channel has reported what is not published: one more pull publishes it.
    pub fn has_unpublished(&self) -> bool {
        self.channels.iter().any(|channel| channel.read != channel.published)
    }

    /// Begins a push, if something is new or `all`; whether it was begun.
    pub fn push(
        &mut self,
        sides: Sides<'_>,
        received: impl Fn(u32) -> u64,
        all: bool,
    ) -> Result<bool, DriverError> {
        let (region, mut begun) = (sides.region, false);
        self.transfer = Transfer::Push; // also if it fails half way: what was begun must be over first
        for channel in 0..region.plan.channels {
            let bell = &region.channel(channel).request_bell;
            // SYNC: acquires the sender's `Outbox::publish`: slots and stamps are there.
            let words = bell.atoms[CONTROL].observe();
            let credit = received(channel);
            let progress = &mut self.channels[channel as usize];
            let starved =
                credit.wrapping_sub(progress.credit) >= u64::from(region.plan.capacity / 2).max(1);
            if !(all || words != progress.control || starved) {
                continue;
            }
            let control = Control::from_words(words);
            let tail = widen(control.tail, progress.pushed);
            let none_in_slots = tail == progress.pushed + 1 && control.first == control.tail;
            if !none_in_slots {
                copy_slots(sides, channel, Direction::Requests, progress.pushed..tail)?;
            }
            let out = &region.bounce_buffer(channel).out;
            for (to, from) in out.iter().zip(&bell.atoms[..CONTROL]) {
                to.store(from.observe());
            }
            out[CONTROL].store(words);
            out[CREDIT_OUT].store([credit, 0]);
            let (from, to) = (beginning(out), region.channel_at(channel) + OUT_AT);
            // SAFETY: the lines of this channel that the host writes, and room for as many, which the
            // region keeps until the launch slot is over. Only a transfer writes that room: this one.
            unsafe { sides.copy(CopyKind::HostToDevice, from, to, OUT_ATOMS * ATOM) }?;
            (progress.pushed, progress.control, progress.credit) = (tail, words, credit);
            begun = true;
        }
        let command = region.control().host.command.load(Ordering::Relaxed);
        if all || command != self.command {
            let from = region.host_at(COMMAND_AT);
            // SAFETY: the atom that holds the command, in both copies.
            unsafe { sides.copy(CopyKind::HostToDevice, from, COMMAND_AT, ATOM) }?;
            self.command = command;
            begun = true;
        }
        if !begun {
            self.transfer = Transfer::None;
        }
        Ok(begun)
    }

    /// Begins a pull.
    pub fn pull(&mut self, sides: Sides<'_>, back: Pull) -> Result<(), DriverError> {
        let region = sides.region;
        let atoms = if back.times { BACK_ATOMS } else { BACK_LINES };
        self.transfer = Transfer::Push; // if it fails half way there is nothing to read
        for channel in 0..region.plan.channels {
            let from = region.channel_at(channel) + BACK_AT;
            let to = beginning(&region.bounce_buffer(channel).back);
            // SAFETY: the lines of this channel that the device writes, and room for as many, which
            // the region keeps until the launch slot is over.
            unsafe { sides.copy(CopyKind::DeviceToHost, to, from, atoms * ATOM) }?;
        }
        self.transfer = Transfer::PullLines(back);
        Ok(())
    }

    /// Goes on with a transfer whose copies are over.
    pub fn advance(&mut self, sides: Sides<'_>) -> Result<(), PullError> {
        let region = sides.region;
        match self.transfer {
            Transfer::None => {}
            Transfer::Push => self.transfer = Transfer::None,
            Transfer::PullLines(back) => {
                self.transfer = Transfer::Push; // if it fails half way there is nothing more to read
                let mut slots = false;
                for channel in 0..region.plan.channels {
                    slots |= self.read_lines(sides, channel)?;
                }
                self.transfer = Transfer::PullSlots(back);
                if !slots {
                    self.publish(region, back);
                }
            }
            Transfer::PullSlots(back) => self.publish(region, back),
        }
        Ok(())
    }

    /// Reads the doorbell that was pulled; begins to copy the slots that it announces, if any.
    fn read_lines(&mut self, sides: Sides<'_>, channel: u32) -> Result<bool, PullError> {
        let region = sides.region;
        let progress = &mut self.channels[channel as usize];
        let bell = &region.bounce_buffer(channel).back[BELL_BACK..BELL_BACK + CONTROL + 1];
        let (here, control) = (progress.pulled, Control::from_words(bell[CONTROL].load()));
        progress.pulling = here;
        let ahead = u64::from(control.tail.wrapping_sub(here as u32));
        let slots = match decide(control, here, region.plan.capacity) {
            Seen::Corrupt(found) => return Err(PullError::Corrupt(channel, found)),
            Seen::Nothing => return Ok(false), // or a line read before one that was published
            Seen::Slots(_) => true,
            Seen::Inline => {
                // The copy may have read atoms before the device wrote them: then the next pull brings
                // them.
                let stamped = |atom: &Atom| stamp_of(atom.load()) == stamp(here);
                if !bell[..region.answer_stamps()].iter().all(stamped) {
                    return Ok(false);
                }
                ahead > 1
            }
        };
        progress.pulling = here + ahead;
        if slots {
            copy_slots(sides, channel, Direction::Responses, here..here + ahead)?;
        }
        Ok(slots)
    }

    /// Publishes what was pulled to the receiver.
    fn publish(&mut self, region: &Region, transfer: Pull) {
        for channel in 0..region.plan.channels {
            let (back, block) = (&region.bounce_buffer(channel).back, region.channel_at(channel));
            let publish = |k: usize, words: [u64; 2]| {
                let to = region.host_at::<Atom>(block + BACK_AT + k * ATOM);
                // SAFETY: an atom of the channel's lines, which hold atomics only, all of eight
                // bytes. SYNC: released to whoever acquires a word of it.
                unsafe { to.as_ref() }.publish(words);
            };
            let publish_all = |atoms: Range<usize>| atoms.for_each(|k| publish(k, back[k].load()));
            let progress = &mut self.channels[channel as usize];
            if progress.pulling > progress.pulled {
                publish_all(BELL_BACK..BELL_BACK + CONTROL + 1); // inline atoms, then the control atom
                progress.pulled = progress.pulling;
            }
            if transfer.times {
                publish_all(BACK_LINES..BACK_ATOMS);
            }
            publish_all(CREDIT_BACK..BELL_BACK);
            let word = |(k, half): (usize, usize)| back[k].load()[half];
            let now = Report { acknowledged: word(ACKNOWLEDGED), left: word(LEFT) };
            let before = std::mem::replace(&mut progress.read, now);
            for (k, atom) in back[..CREDIT_BACK].iter().enumerate() {
                let mut words = atom.load();
                for ((at, half), published) in [
                    (ACKNOWLEDGED, progress.published.acknowledged),
                    (LEFT, progress.published.left),
                ] {
                    if at == k {
                        words[half] = published; // unchanged until below
                    }
                }
                publish(k, words);
            }
            progress.published = if transfer.last { now } else { before };
            let status = &region.channel(channel).status;
            // SYNC: released to `StatusLine::acknowledgement` and `launches_left`: all that was stored before the
            // channel reported it is here.
            status.acknowledged.store(progress.published.acknowledged, Ordering::Release);
            status.launches_left.store(progress.published.left, Ordering::Release);
        }
        self.transfer = Transfer::None;
        self.delivered += 1;
    }
}

/// Why a pull does not go on.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PullError {
    /// The device wrote an index of that channel that cannot be.
    #[error("{1:?} on channel {0}")]
    Corrupt(u32, Corrupt),
    /// A copy was not made.
    #[error(transparent)]
    Driver(#[from] DriverError),
}

/// Copies the slots of messages `range` of a channel's ring, to the device or from it: one copy,
/// or two around the ring's end.
fn copy_slots(
    sides: Sides<'_>,
    channel: u32,
    direction: Direction,
    range: Range<u64>,
) -> Result<(), DriverError> {
    let region = sides.region;
    let kind = match direction {
        Direction::Requests => CopyKind::HostToDevice,
        Direction::Responses => CopyKind::DeviceToHost,
    };
    let (capacity, slot) = (u64::from(region.plan.capacity), region.slot_bytes(direction));
    let mut from = range.start;
    while from < range.end {
        let first = from & (capacity - 1);
        let n = (range.end - from).min(capacity - first);
        let at = region.slots_at(channel, direction) + first as usize * slot;
        // SAFETY: whole slots of this ring in both copies, which the region keeps until the launch slot
        // is over. By the ring's rules the slots of messages that are announced and not consumed
        // are written by nobody; on the receiving side they are free, and not announced yet.
        unsafe { sides.copy(kind, region.host_at(at), at, n as usize * slot) }?;
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
