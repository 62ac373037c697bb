//! What a kernel needs memory for, and where each part of it lies.

use crate::mode::{Memory, PayloadMemory};
use ring_shared::atomics::Atom;
use ring_shared::calls::bytes_of;
use ring_shared::layout::{Budgets, ChannelBlock, ControlBlock, LINE, Processing};
use ring_shared::ring::span_in;
use ring_shared::trace;

/// Largest part of the payload that one copy moves: what pinned staging is taken for.
const STAGING: usize = 64 * 1024;

/// What a kernel needs memory for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub memory: Memory,
    pub channels: u32,
    pub capacity: u32,
    /// Messages for which each ring has doorbell lines: the line for one is in the channel's block, those for several are
    /// behind the blocks.
    pub lines: u32,
    /// Doorbell lines that a message takes where there are several.
    pub span: u32,
    pub start: u64,
    /// Atoms a slot, requests and responses.
    pub slot_atoms: [u32; 2],
    /// Stamped atoms of an inline response.
    pub answer_stamps: usize,
    pub payload_bytes: usize,
    /// Where the payload was asked for; where it lies follows from `memory` too.
    pub payload_memory: PayloadMemory,
    /// Bytes that each channel keeps in device memory from message to message.
    pub state_bytes: usize,
    /// The shape of each channel's slots for calls to the host; 0 for none. Only in mapped memory.
    pub calls: u64,
    /// Records of each channel's trace ring; 0 for none. Only in mapped memory.
    pub trace: u32,
    /// Device address of the table of buffers; 0 for none.
    pub buffers: u64,
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

/// Offsets into the host's memory, and but for the last six into the device's; all at multiples of 128. In mapped
/// memory the two are one, and the device sees the payload, the calls and the traces too.
#[derive(Clone, Copy, Debug)]
pub(super) struct Offsets {
    pub lines: usize,
    /// Bytes from one channel's lines to the next, for requests and then for responses.
    pub lines_stride: usize,
    pub slots: [usize; 2],
    /// Bytes from one channel's slots to the next.
    pub slots_stride: [usize; 2],
    /// End of what both sides lay out alike.
    pub mirrored: usize,
    pub bounce_buffers: usize,
    pub payload: usize,
    pub calls: usize,
    pub traces: usize,
    pub staging: usize,
    pub end: usize,
}

impl Plan {
    /// Whether the payload lies in mapped memory; else it is in the device's.
    pub fn payload_is_mapped(&self) -> bool {
        self.memory == Memory::Mapped
            && match self.payload_memory {
                PayloadMemory::Auto => self.payload_bytes <= PayloadMemory::AUTO_MAPPED,
                PayloadMemory::Mapped => true,
                PayloadMemory::Device => false,
            }
    }

    /// Bytes of the payload in mapped memory and in the device's.
    pub(super) fn payload_parts(&self) -> [usize; 2] {
        match self.payload_is_mapped() {
            true => [self.payload_bytes, 0],
            false => [0, self.payload_bytes],
        }
    }

    /// Bytes from one channel's slots to the next: whole lines, so that each line has one writer.
    fn slots_stride(&self, direction: Direction) -> Option<usize> {
        let bytes = 16 * self.slot_atoms[direction as usize] as usize;
        (self.capacity as usize).checked_mul(bytes)?.checked_next_multiple_of(LINE)
    }

    pub(super) fn offsets(&self) -> Option<Offsets> {
        let n = self.channels as usize;
        let lines =
            size_of::<ControlBlock>().checked_add(n.checked_mul(size_of::<ChannelBlock>())?)?;
        let lines_stride = match self.lines {
            1 => 0,
            lines => 2 * lines as usize * self.span() as usize * LINE,
        };
        let requests = lines.checked_add(n.checked_mul(lines_stride)?)?;
        let slots_stride =
            [self.slots_stride(Direction::Requests)?, self.slots_stride(Direction::Responses)?];
        let responses = requests.checked_add(n.checked_mul(slots_stride[0])?)?;
        let mirrored = responses.checked_add(n.checked_mul(slots_stride[1])?)?;
        let bounce_buffers =
            if self.memory == Memory::Mapped { 0 } else { n * size_of::<BounceBuffer>() };
        let payload = mirrored.checked_add(bounce_buffers)?;
        let [mapped, copied] = self.payload_parts();
        // Whole lines: what is behind them has other writers.
        let calls = payload.checked_add(mapped.checked_next_multiple_of(LINE)?)?;
        let traces = calls.checked_add(n.checked_mul(bytes_of(self.calls))?)?;
        let staging = traces.checked_add(n.checked_mul(trace::bytes_of(self.trace))?)?;
        let copied = copied.max(self.state_bytes).min(STAGING);
        let end = staging.checked_add(copied.next_multiple_of(4))?;
        Some(Offsets {
            lines,
            lines_stride,
            slots: [requests, responses],
            slots_stride,
            mirrored,
            bounce_buffers: mirrored,
            payload,
            calls,
            traces,
            staging,
            end,
        })
    }

    /// Doorbell lines that a message takes.
    pub fn span(&self) -> u32 {
        span_in(self.lines, self.span)
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

#[cfg(test)]
mod tests {
    use super::{LINE, Memory, PayloadMemory, Plan, STAGING};
    use ring_shared::layout::{Budgets, Processing};

    fn plan(capacity: u32, slot_atoms: [u32; 2]) -> Plan {
        Plan {
            memory: Memory::Mapped,
            channels: 3,
            capacity,
            lines: 1,
            span: 1,
            start: 0,
            slot_atoms,
            answer_stamps: 1,
            payload_bytes: 0,
            payload_memory: PayloadMemory::Auto,
            state_bytes: 0,
            calls: 0,
            trace: 0,
            buffers: 0,
            budgets: Budgets::UNLIMITED,
            processing: Processing::Continuous,
            max_messages: 1,
            lease: 1,
        }
    }

    #[test]
    fn slots_of_two_rings_share_no_line() {
        for (capacity, slot_atoms) in [(1, [1, 1]), (2, [1, 5]), (4, [3, 1]), (64, [1, 2])] {
            let offsets = plan(capacity, slot_atoms).offsets().unwrap();
            let ends = [offsets.slots[1], offsets.mirrored];
            for (k, end) in ends.into_iter().enumerate() {
                let (stride, bytes) =
                    (offsets.slots_stride[k], 16 * (capacity * slot_atoms[k]) as usize);
                assert!(stride >= bytes && stride.is_multiple_of(LINE), "{stride} for {bytes}");
                assert!(offsets.slots[k].is_multiple_of(LINE));
                assert_eq!(offsets.slots[k] + 3 * stride, end);
            }
        }
    }

    #[test]
    fn a_payload_shares_no_line_and_is_staged_only_where_it_is_copied() {
        use {
            Memory::{Mapped, StagedAsync, StagedSync},
            PayloadMemory::Device,
        };
        const LIMIT: usize = PayloadMemory::AUTO_MAPPED;
        let cases = [
            (Mapped, PayloadMemory::Auto, LIMIT, true),
            (Mapped, PayloadMemory::Auto, LIMIT + 1, false),
            (Mapped, PayloadMemory::Mapped, LIMIT + 1, true),
            (Mapped, PayloadMemory::Mapped, 7, true),
            (Mapped, Device, 7, false),
            (StagedAsync, PayloadMemory::Auto, 7, false),
            (StagedSync, PayloadMemory::Mapped, 7, false),
        ];
        for (memory, payload_memory, payload_bytes, is_mapped) in cases {
            for state_bytes in [0, 40] {
                let plan =
                    Plan { memory, payload_bytes, payload_memory, state_bytes, ..plan(2, [1, 5]) };
                assert_eq!(plan.payload_is_mapped(), is_mapped, "{plan:?}");
                let (o, room) =
                    (plan.offsets().unwrap(), payload_bytes.checked_next_multiple_of(LINE));
                assert!([o.payload, o.staging].iter().all(|at| at.is_multiple_of(LINE)));
                let mapped = if is_mapped { room.unwrap() } else { 0 };
                assert_eq!(o.staging - o.payload, mapped, "{plan:?}");
                let copied = if is_mapped { 0 } else { payload_bytes };
                let staged = copied.max(state_bytes).min(STAGING).next_multiple_of(4);
                assert_eq!(o.end - o.staging, staged, "{plan:?}");
            }
        }
        let endless = Plan {
            payload_bytes: usize::MAX,
            payload_memory: PayloadMemory::Mapped,
            ..plan(1, [1, 1])
        };
        assert_eq!(endless.host_bytes(), usize::MAX);
    }
}
