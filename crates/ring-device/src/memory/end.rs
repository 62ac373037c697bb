//! A channel's rings as the launch found them: the descriptors, once checked, are read in the block's
//! memory each time, for registers are dearer.

use super::boot;
use super::span::Span;
use core::marker::PhantomData;
use core::mem::offset_of;
use core::ptr::with_exposed_provenance;
use ring_shared::Message;
use ring_shared::atomics::Atom;
use ring_shared::layout::{ChannelBlock, CreditLine, Doorbell, Placement, RingDescriptor};
use ring_shared::ring::{span_in, window};

/// The producer's lines of one ring.
#[derive(Clone, Copy)]
pub(crate) struct Lines<'a> {
    at: usize,
    mask: u32,
    span: Span,
    of: PhantomData<&'a Doorbell>,
}

impl<'a> Lines<'a> {
    /// The line for the message whose index has the low half `index`, or the first of its lines.
    #[inline(always)]
    pub fn line(self, index: u32) -> &'a Doorbell {
        self.line_of(index, 0)
    }

    /// The `line`th line of those for that message, below the span; the first, if the ring has no others.
    #[inline(always)]
    pub fn line_of(self, index: u32, line: usize) -> &'a Doorbell {
        let line = if self.span.0 > 1 && self.mask == 0 { 0 } else { line };
        let at = (index & self.mask) as usize * self.span.0 + line;
        let line = with_exposed_provenance::<Doorbell>(self.at).wrapping_add(at);
        // SAFETY: `check` found so many lines there, aligned, in memory that `run`'s caller promised: one, or the span
        // for each of as many messages as the mask lets through. They hold atomics only.
        unsafe { &*line }
    }

    /// Doorbell lines of a message.
    #[inline(always)]
    pub fn span(self) -> Span {
        self.span
    }

    /// Atom `k` of the lines for that message.
    #[inline(always)]
    pub fn atom(self, index: u32, k: usize) -> &'a Atom {
        &self.line_of(index, self.span.line(k)).atoms[k % 8]
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
    /// Doorbell lines of a message in both rings of the kernel, and those that one of this ring takes.
    span: Span,
    takes: usize,
}

impl<'a> End<'a> {
    /// The end of the channel's ring of requests `M`.
    #[inline(always)]
    pub fn of_requests<M: Message>(boot: &'a boot::Words, span: Span) -> End<'a> {
        End::new::<M>(boot, offset_of!(ChannelBlock, request), span)
    }

    /// The end of its ring of responses `M`.
    #[inline(always)]
    pub fn of_responses<M: Message>(boot: &'a boot::Words, span: Span) -> End<'a> {
        End::new::<M>(boot, offset_of!(ChannelBlock, response), span)
    }

    #[inline(always)]
    fn new<M: Message>(boot: &'a boot::Words, at: usize, span: Span) -> End<'a> {
        End { boot, at, atoms: M::SLOT_ATOMS, span, takes: M::SPAN }
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
            span: self.half(offset_of!(RingDescriptor, span)),
        }
    }

    /// Whether its slots and lines are made for those messages. A ring of one line takes large ones by slots only.
    #[inline(always)]
    pub fn fits(&self) -> bool {
        let span = span_in(self.line_count(), self.span.0 as u32) as usize;
        self.half(offset_of!(RingDescriptor, slot_bytes)) as usize == 16 * self.atoms
            && self.half(offset_of!(RingDescriptor, span)) as usize == span
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
        Lines { at, mask: self.line_count() - 1, span: self.span, of: PhantomData }
    }

    /// Messages that the producer's lines have room for, a power of two.
    #[inline(always)]
    pub fn line_count(&self) -> u32 {
        self.half(offset_of!(RingDescriptor, line_count))
    }

    /// Most messages that may be inline and unread at once: none, if the ring has one line and they take more.
    #[inline(always)]
    pub fn window(&self) -> u32 {
        match self.line_count() {
            1 if self.takes > 1 => 0,
            lines => window(lines, self.capacity()),
        }
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
