//! A channel's rings as the launch found them: the descriptors, once checked, are read in the block's
//! memory each time, for registers are dearer.

use super::boot;
use core::marker::PhantomData;
use core::mem::offset_of;
use core::ptr::with_exposed_provenance;
use ring_shared::atomics::Atom;
use ring_shared::layout::{ChannelBlock, CreditLine, Doorbell, Placement, RingDescriptor};
use ring_shared::ring::window;

/// The producer's lines of one ring.
#[derive(Clone, Copy)]
pub(crate) struct Lines<'a> {
    at: usize,
    mask: u32,
    of: PhantomData<&'a Doorbell>,
}

impl<'a> Lines<'a> {
    /// The line for the message whose index has the low half `index`.
    #[inline(always)]
    pub fn line(self, index: u32) -> &'a Doorbell {
        let line =
            with_exposed_provenance::<Doorbell>(self.at).wrapping_add((index & self.mask) as usize);
        // SAFETY: `check` found so many lines there, aligned, in memory that `run`'s caller promised, and the
        // mask keeps the index below their number; they hold atomics only.
        unsafe { &*line }
    }
}

/// Where one ring lies.
#[derive(Clone, Copy)]
pub(crate) struct End<'a> {
    boot: &'a boot::Words,
    /// Offset of the descriptor in the channel's block.
    at: usize,
    /// Atoms of a slot.
    atoms: usize,
}

impl<'a> End<'a> {
    /// The end of the channel's ring of requests, for messages of so many atoms.
    #[inline(always)]
    pub fn of_requests(boot: &'a boot::Words, atoms: usize) -> End<'a> {
        End { boot, at: offset_of!(ChannelBlock, request), atoms }
    }

    /// The end of its ring of responses.
    #[inline(always)]
    pub fn of_responses(boot: &'a boot::Words, atoms: usize) -> End<'a> {
        End { boot, at: offset_of!(ChannelBlock, response), atoms }
    }

    #[inline(always)]
    fn word(&self, at: usize) -> u64 {
        self.boot.word(boot::RINGS, self.at + at)
    }

    #[inline(always)]
    fn half(&self, at: usize) -> u32 {
        self.boot.half(boot::RINGS, self.at + at)
    }

    /// What the descriptor says.
    #[inline(always)]
    pub fn placement(&self) -> Placement {
        Placement {
            lines: self.word(offset_of!(RingDescriptor, lines)),
            credit: self.word(offset_of!(RingDescriptor, credit)),
            slots: self.word(offset_of!(RingDescriptor, slots)),
            start: self.start(),
            capacity: self.capacity(),
            slot_bytes: self.half(offset_of!(RingDescriptor, slot_bytes)),
            line_count: self.line_count(),
        }
    }

    /// Whether its slots are made for those messages.
    #[inline(always)]
    pub fn fits(&self) -> bool {
        self.half(offset_of!(RingDescriptor, slot_bytes)) as usize == 16 * self.atoms
    }

    /// Index of the first message.
    #[inline(always)]
    pub fn start(&self) -> u64 {
        self.word(offset_of!(RingDescriptor, start))
    }

    /// Number of slots, a power of two.
    #[inline(always)]
    pub fn capacity(&self) -> u32 {
        self.half(offset_of!(RingDescriptor, capacity))
    }

    /// The producer's line for message `index`.
    #[inline(always)]
    pub fn line(&self, index: u64) -> &'a Doorbell {
        self.lines().line(index as u32)
    }

    /// All of the producer's lines, for one who needs to know where they are before there is a message.
    #[inline(always)]
    pub fn lines(&self) -> Lines<'a> {
        let at = self.word(offset_of!(RingDescriptor, lines)) as usize;
        Lines { at, mask: self.line_count() - 1, of: PhantomData }
    }

    /// Number of the producer's lines, a power of two.
    #[inline(always)]
    pub fn line_count(&self) -> u32 {
        self.half(offset_of!(RingDescriptor, line_count))
    }

    /// Most messages that may be inline and unread at once.
    #[inline(always)]
    pub fn window(&self) -> u32 {
        window(self.line_count(), self.capacity())
    }

    /// The consumer's line.
    #[inline(always)]
    pub fn credit(&self) -> &'a CreditLine {
        let at = self.word(offset_of!(RingDescriptor, credit)) as usize;
        // SAFETY: as for `line`.
        unsafe { &*with_exposed_provenance(at) }
    }

    /// Atoms from the slot of message `index` to the ring's end.
    #[inline(always)]
    pub fn from(&self, index: u64) -> &'a [Atom] {
        let capacity = self.capacity() as usize;
        let skipped = (index as usize & (capacity - 1)) * self.atoms;
        let base = self.word(offset_of!(RingDescriptor, slots));
        let base = with_exposed_provenance::<Atom>(base as usize).wrapping_add(skipped);
        // SAFETY: `run`'s caller promised `capacity` slots of that many atoms there, and `skipped`
        // is less, since the mask keeps the slot below `capacity`.
        unsafe { core::slice::from_raw_parts(base, capacity * self.atoms - skipped) }
    }

    /// Atom `t` of the run of slots that begins with message `index`; `t` counts on over slots, comes
    /// round at the ring's end, and must be less than all atoms of the ring.
    #[inline(always)]
    pub fn atom(&self, index: u64, t: u32) -> Option<&'a Atom> {
        let front = self.from(index);
        front.get(t as usize).or_else(|| self.from(0).get(t as usize - front.len()))
    }
}
