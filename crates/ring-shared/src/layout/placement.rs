//! Where a ring lies, and whether it can lie there.

use super::{ChannelBlock, ControlBlock, CreditLine, Doorbell, LINE};
use crate::ring::{MAX_CAPACITY, MAX_LINES, MAX_SPAN, MAX_START};
use core::fmt;
use core::mem::offset_of;
use core::ops::Range;

/// Where a ring lies, by device addresses, and how its slots are cut: what a
/// [`RingDescriptor`](super::RingDescriptor) says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placement {
    /// Address of the first doorbell line.
    pub lines: u64,
    /// Address of the credit line.
    pub credit: u64,
    /// Address of the first slot.
    pub slots: u64,
    /// Index of the first message.
    pub start: u64,
    /// Slots, a power of two.
    pub capacity: u32,
    /// Bytes from one slot to the next, a multiple of 16.
    pub slot_bytes: u32,
    /// Messages that the doorbell lines, which lie side by side, have room for.
    pub line_count: u32,
    /// Doorbell lines of each of them.
    pub span: u32,
}

/// A part of a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Part {
    /// The doorbell line.
    Lines,
    /// The credit line.
    Credit,
    /// The slots.
    Slots,
}

/// Why a ring cannot lie where a [`Placement`] says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PlacementError {
    /// The capacity is no power of two, or above [`MAX_CAPACITY`].
    Capacity(u32),
    /// The first index is above [`MAX_START`].
    Start(u64),
    /// The slots have no bytes, or not a multiple of 16.
    SlotBytes(u32),
    /// The number of doorbell lines is no power of two, or above [`MAX_LINES`].
    LineCount(u32),
    /// A message takes no doorbell line, or more than [`MAX_SPAN`].
    Span(u32),
    /// A part is not aligned: lines to 128 bytes, slots to 16.
    Misaligned(Part, u64),
    /// A part is not all in the memory that both sides see, or lies over the blocks of control and channels.
    Outside(Part, u64),
    /// Two parts overlap, of one ring or of two.
    Overlap(Part, Part),
}

impl fmt::Display for PlacementError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Capacity(found) => {
                write!(f, "a capacity of {found} is not a power of two in 1..={MAX_CAPACITY}")
            }
            Self::Start(found) => write!(f, "start index {found} is above {MAX_START}"),
            Self::SlotBytes(found) => write!(f, "slots of {found} bytes are not whole atoms of 16"),
            Self::LineCount(found) => {
                write!(f, "{found} doorbell lines are not a power of two in 1..={MAX_LINES}")
            }
            Self::Span(found) => {
                write!(f, "{found} doorbell lines for a message are not in 1..={MAX_SPAN}")
            }
            Self::Misaligned(part, at) => write!(f, "the {part} at {at:#x} are not aligned"),
            Self::Outside(part, at) => {
                write!(f, "the {part} at {at:#x} are not in the kernel's memory behind its blocks")
            }
            Self::Overlap(a, b) => write!(f, "the {a} of a ring and the {b} of one overlap"),
        }
    }
}

impl core::error::Error for PlacementError {}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Part::Lines => "doorbell lines",
            Part::Credit => "bytes of the credit line",
            Part::Slots => "slots",
        })
    }
}

/// A part, where it begins, and its bytes.
type At = (Part, u64, u64);

impl Placement {
    /// The ring of requests whose lines are in the channel's block, which the device sees at `block`.
    pub const fn of_requests(block: u64, slots: u64, capacity: u32, slot_bytes: u32) -> Placement {
        Placement {
            lines: block + offset_of!(ChannelBlock, request_bell) as u64,
            credit: block + offset_of!(ChannelBlock, request_credit) as u64,
            slots,
            start: 0,
            capacity,
            slot_bytes,
            line_count: 1,
            span: 1,
        }
    }

    /// The ring of responses whose lines are in the channel's block, likewise.
    pub const fn of_responses(block: u64, slots: u64, capacity: u32, slot_bytes: u32) -> Placement {
        Placement {
            lines: block + offset_of!(ChannelBlock, response_bell) as u64,
            credit: block + offset_of!(ChannelBlock, response_credit) as u64,
            slots,
            start: 0,
            capacity,
            slot_bytes,
            line_count: 1,
            span: 1,
        }
    }

    /// The same with `start` as the index of the first message.
    pub const fn starting_at(self, start: u64) -> Placement {
        Placement { start, ..self }
    }

    /// The same with doorbell lines side by side for `line_count` messages of `span` lines each, the first at `lines`.
    pub const fn with_lines(self, lines: u64, line_count: u32, span: u32) -> Placement {
        Placement { lines, line_count, span, ..self }
    }

    /// Checks what does not depend on other rings. `memory` is what both sides see, `blocks` its beginning:
    /// control block and channel blocks; `own` says where lines may be among those.
    #[inline(always)]
    fn check_alone(
        &self,
        memory: &Range<u64>,
        blocks: u64,
        own: &Placement,
    ) -> Result<(), PlacementError> {
        if !self.capacity.is_power_of_two() || self.capacity > MAX_CAPACITY {
            return Err(PlacementError::Capacity(self.capacity));
        }
        if self.start > MAX_START {
            return Err(PlacementError::Start(self.start));
        }
        if self.slot_bytes == 0 || !self.slot_bytes.is_multiple_of(16) {
            return Err(PlacementError::SlotBytes(self.slot_bytes));
        }
        if !self.line_count.is_power_of_two() || self.line_count > MAX_LINES {
            return Err(PlacementError::LineCount(self.line_count));
        }
        if self.span == 0 || self.span > MAX_SPAN {
            return Err(PlacementError::Span(self.span));
        }
        let parts = self.parts();
        let aligned = [LINE as u64, LINE as u64, 16];
        let own = [own.lines, own.credit, 0];
        let mut k = 0;
        while k < 3 {
            let (part, at, bytes) = parts[k];
            if !at.is_multiple_of(aligned[k]) {
                return Err(PlacementError::Misaligned(part, at));
            }
            let end = at.wrapping_add(bytes);
            let fits = at >= blocks && end >= at && end <= memory.end;
            // One line of the channel's block, or lines behind all blocks.
            let is_own = at == own[k] && bytes == LINE as u64;
            if !fits && !is_own {
                return Err(PlacementError::Outside(part, at));
            }
            k += 1;
        }
        Ok(())
    }

    /// The parts.
    #[inline(always)]
    fn parts(&self) -> [At; 3] {
        let slots = u64::from(self.capacity) * u64::from(self.slot_bytes);
        let lines =
            u64::from(self.line_count) * u64::from(self.span) * size_of::<Doorbell>() as u64;
        [
            (Part::Lines, self.lines, lines),
            (Part::Credit, self.credit, size_of::<CreditLine>() as u64),
            (Part::Slots, self.slots, slots),
        ]
    }

    /// Checks the two rings of channel `channel` of a kernel whose control block is at `control`, with
    /// `channels` blocks behind it, in `memory_bytes` bytes that both sides see: each can lie where it is
    /// said to, and no part of them overlaps another.
    #[inline(always)]
    pub fn check(
        requests: &Placement,
        responses: &Placement,
        (control, memory_bytes): (u64, u64),
        (channel, channels): (u32, u32),
    ) -> Result<(), PlacementError> {
        let memory = control..control.wrapping_add(memory_bytes);
        let first = control + size_of::<ControlBlock>() as u64;
        let block = |channel| first + u64::from(channel) * size_of::<ChannelBlock>() as u64;
        let (own, blocks) = (block(channel), block(channels));
        requests.check_alone(&memory, blocks, &Placement::of_requests(own, 0, 1, 16))?;
        responses.check_alone(&memory, blocks, &Placement::of_responses(own, 0, 1, 16))?;
        // Pair by pair: what a loop goes through lies in a GPU thread's local memory.
        let ([a, b, c], [d, e, f]) = (requests.parts(), responses.parts());
        let of_requests = apart(a, b).and(apart(a, c)).and(apart(b, c));
        let of_responses = apart(d, e).and(apart(d, f)).and(apart(e, f));
        let of_lines = apart(a, d).and(apart(a, e)).and(apart(a, f));
        let of_credit = apart(b, d).and(apart(b, e)).and(apart(b, f));
        let of_slots = apart(c, d).and(apart(c, e)).and(apart(c, f));
        of_requests.and(of_responses).and(of_lines).and(of_credit).and(of_slots)
    }
}

/// Checks that two parts do not overlap.
#[inline(always)]
fn apart((one, at, bytes): At, (other, begin, length): At) -> Result<(), PlacementError> {
    match at < begin + length && begin < at + bytes {
        true => Err(PlacementError::Overlap(one, other)),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONTROL: u64 = 1 << 20;
    const BLOCKS: u64 = CONTROL + 256 + 2 * 1280;
    const BYTES: u64 = 256 + 2 * 1280 + 4 * 1024;

    fn pair() -> (Placement, Placement) {
        let block = CONTROL + 256 + 1280;
        let requests = Placement::of_requests(block, BLOCKS, 16, 64);
        (requests, Placement::of_responses(block, BLOCKS + 1024, 16, 32).starting_at(7))
    }

    fn check(requests: Placement, responses: Placement) -> Result<(), PlacementError> {
        Placement::check(&requests, &responses, (CONTROL, BYTES), (1, 2))
    }

    #[test]
    fn rings_lie_in_their_kernels_memory_and_nowhere_else() {
        let (q, r) = pair();
        assert_eq!(check(q, r), Ok(()));
        // Elsewhere, behind the blocks.
        let far = Placement { lines: BLOCKS + 2048, credit: BLOCKS + 2176, ..q };
        assert_eq!(check(far, r), Ok(()));
        for (bad, part) in [
            (Placement { slots: BLOCKS - 16, ..q }, Part::Slots),
            (Placement { slots: CONTROL + BYTES - 1008, ..q }, Part::Slots),
            (Placement { slots: u64::MAX - 511, ..q }, Part::Slots),
            (Placement { lines: CONTROL, ..q }, Part::Lines),
            (Placement { lines: q.lines - 1280, ..q }, Part::Lines), // another channel's
            (Placement { credit: CONTROL + BYTES, ..q }, Part::Credit),
        ] {
            assert!(
                matches!(check(bad, r), Err(PlacementError::Outside(found, _)) if found == part)
            );
        }
        for (bad, part) in [
            (Placement { slots: q.slots + 8, ..q }, Part::Slots),
            (Placement { lines: q.lines + 16, ..q }, Part::Lines),
            (Placement { credit: BLOCKS + 2048 + 64, ..q }, Part::Credit),
        ] {
            let misaligned =
                |error| matches!(error, PlacementError::Misaligned(found, _) if found == part);
            assert!(misaligned(check(bad, r).unwrap_err()));
        }
    }

    #[test]
    fn several_lines_lie_behind_the_blocks() {
        let (q, r) = pair();
        let free = BLOCKS + 2048;
        assert_eq!(check(q.with_lines(free, 8, 1), r.with_lines(free + 1024, 8, 1)), Ok(()));
        assert_eq!(check(q.with_lines(free, 2, 4), r.with_lines(free + 1024, 2, 3)), Ok(()));
        let overlap = Err(PlacementError::Overlap(Part::Lines, Part::Lines));
        for bad in [q.with_lines(free, 16, 1), q.with_lines(free, 4, 3)] {
            assert_eq!(check(bad, r.with_lines(free + 1024, 8, 1)), overlap);
        }
        for bad in [
            q.with_lines(q.lines, 2, 1),
            q.with_lines(q.lines, 1, 2),
            q.with_lines(free + 1024, 16, 1),
            q.with_lines(free + 1024, 4, 4),
        ] {
            let found = check(bad, r);
            assert!(matches!(found, Err(PlacementError::Outside(Part::Lines, _))), "{found:?}");
        }
    }

    #[test]
    fn rings_do_not_overlap() {
        let (q, r) = pair();
        let overlap = |a, b| Err(PlacementError::Overlap(a, b));
        assert_eq!(
            check(q, Placement { slots: q.slots + 1008, ..r }),
            overlap(Part::Slots, Part::Slots)
        );
        assert_eq!(check(q, Placement { slots: q.slots + 1024, ..r }), Ok(()));
        let far = BLOCKS + 2048;
        let lines = Placement { lines: far, ..q };
        assert_eq!(
            check(lines, Placement { credit: far, ..r }),
            overlap(Part::Lines, Part::Credit)
        );
        assert_eq!(
            check(Placement { credit: far, ..lines }, r),
            overlap(Part::Lines, Part::Credit)
        );
        assert_eq!(check(q, Placement { lines: q.slots, ..r }), overlap(Part::Slots, Part::Lines));
    }

    #[test]
    fn a_ring_is_cut_as_rings_are() {
        let (q, r) = pair();
        for capacity in [0, 3, MAX_CAPACITY * 2] {
            assert_eq!(
                check(Placement { capacity, ..q }, r),
                Err(PlacementError::Capacity(capacity))
            );
        }
        for slot_bytes in [0, 8, 24] {
            let bad = Placement { slot_bytes, ..q };
            assert_eq!(check(bad, r), Err(PlacementError::SlotBytes(slot_bytes)));
        }
        let start = MAX_START + 1;
        assert_eq!(check(q.starting_at(start), r), Err(PlacementError::Start(start)));
        for line_count in [0, 3, 2 * MAX_LINES] {
            let bad = Placement { line_count, ..q };
            assert_eq!(check(bad, r), Err(PlacementError::LineCount(line_count)));
        }
        for span in [0, 5, u32::MAX] {
            let bad = Placement { span, ..q };
            assert_eq!(check(bad, r), Err(PlacementError::Span(span)));
        }
    }
}
