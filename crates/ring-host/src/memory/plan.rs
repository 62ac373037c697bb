//! What a kernel needs memory for, and where each part of it lies.

use crate::mode::Memory;
use ring_shared::atomics::Atom;
use ring_shared::layout::{Budgets, ChannelBlock, ControlBlock, LINE, Processing};

/// Largest part of the payload that one copy moves: what pinned staging is taken for.
const STAGING: usize = 64 * 1024;

/// What a kernel needs memory for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub memory: Memory,
    pub channels: u32,
    pub capacity: u32,
    pub start: u64,
    /// Atoms a slot, requests and responses.
    pub slot_atoms: [u32; 2],
    /// Stamped atoms of an inline response.
    pub answer_stamps: usize,
    pub payload_bytes: usize,
    /// Bytes that each channel keeps in device memory from message to message.
    pub state_bytes: usize,
    /// A launch's budgets, as the device counts them.
    pub budgets: Budgets,
    pub processing: Processing,
    pub max_messages: u32,
    /// How long a channel stays that the host tells nothing, in nanoseconds.
    pub lease: u64,
}

/// Which of a channel's two rings. As a number: where it is in arrays of both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    /// From the host to the device.
    Requests = 0,
    /// From the device to the host.
    Responses = 1,
}

/// Room to compose the lines of a channel that go to the device, and to receive those that come back.
#[repr(C, align(128))]
#[derive(Debug)]
pub(crate) struct BounceBuffer {
    pub out: [Atom; OUT_ATOMS],
    pub back: [Atom; BACK_ATOMS],
}

/// Atoms of the lines of a channel that the host writes, and of those that the device writes.
pub(crate) const OUT_ATOMS: usize = (size_of::<ChannelBlock>() - OUT_AT) / size_of::<Atom>();
pub(crate) const BACK_ATOMS: usize = (OUT_AT - BACK_AT) / size_of::<Atom>();
/// Where they begin in a channel's block.
pub(crate) const OUT_AT: usize = std::mem::offset_of!(ChannelBlock, request_bell);
pub(crate) const BACK_AT: usize = std::mem::offset_of!(ChannelBlock, status);

/// Offsets into the host's memory, and but for the last three into the device's.
#[derive(Clone, Copy, Debug)]
pub(super) struct Offsets {
    pub slots: [usize; 2],
    /// End of what both sides lay out alike.
    pub mirrored: usize,
    pub bounce_buffers: usize,
    pub staging: usize,
    pub end: usize,
}

impl Plan {
    fn slots_bytes(&self, direction: Direction) -> Option<usize> {
        (self.capacity as usize).checked_mul(16 * self.slot_atoms[direction as usize] as usize)
    }

    pub(super) fn offsets(&self) -> Option<Offsets> {
        let n = self.channels as usize;
        let requests =
            size_of::<ControlBlock>().checked_add(n.checked_mul(size_of::<ChannelBlock>())?)?;
        let all = |direction| n.checked_mul(self.slots_bytes(direction)?);
        let responses = requests.checked_add(all(Direction::Requests)?)?;
        let mirrored =
            responses.checked_add(all(Direction::Responses)?)?.checked_next_multiple_of(128)?;
        let bounce_buffers =
            if self.memory == Memory::Mapped { 0 } else { n * size_of::<BounceBuffer>() };
        let staging = mirrored.checked_add(bounce_buffers)?;
        let copied = self.payload_bytes.max(self.state_bytes).min(STAGING);
        let end = staging.checked_add(copied.next_multiple_of(4))?;
        Some(Offsets {
            slots: [requests, responses],
            mirrored,
            bounce_buffers: mirrored,
            staging,
            end,
        })
    }

    /// Bytes from one channel's state to the next.
    pub(super) fn state_stride(&self) -> usize {
        self.state_bytes.next_multiple_of(LINE)
    }

    /// Bytes of host memory; `usize::MAX` if they cannot be counted.
    pub fn host_bytes(&self) -> usize {
        self.offsets().map_or(usize::MAX, |o| o.end)
    }
}
