//! The ring protocol, all of it: a window of doorbell lines over plain slots.
//!
//! Message `i` (a `u64` that only grows) lies in slot `i & (capacity - 1)` or, if it is *inline*, in
//! doorbell line `i & (lines - 1)`. Where messages are larger than a line, *line* means the two to four lines side by
//! side that hold one of them, the ring's *span*; the control atom is that of the first. A ring has three parts, each
//! with one writer:
//!
//! - **doorbell lines** (producer): in each, seven atoms of 12 payload bytes and a stamp, `i + 1`
//!   ([`stamped`]); and a [`Control`] atom: which messages lie in slots, and the producer's credit for
//!   the opposite ring.
//! - **slots** (producer): plain bytes, never cleared.
//! - **credit line** (consumer): how many messages it has consumed.
//!
//! A consumer at index `i` reads line `i & (lines - 1)` and [`decide`]s: nothing; message `i` is inline
//! there (wait until all its atoms are stamped `i + 1`: they arrive one by one); or a run of slots. So an
//! idle consumer has a small message after one read, several small messages are under way at once, each
//! in a line of its own, and a busy consumer takes slots in batches.
//!
//! A control atom states a fact that stays true: messages `first..tail` lie in slots. So whichever control a
//! consumer reads, however old, never leads to a slot that does not hold the message. `first` reaches back to
//! the beginning of the open run of slots, so that a consumer inside the run finds the fact in whichever line
//! it looks at. A producer sends message `i` inline only when every message before it that is unread has another
//! line ([`may_go_inline`]): so it overwrites no unread message, and no control by which the consumer finds an
//! unread one. If a message before it may be unread in a slot, the inline message lies in its slot too: it is one
//! of the run, which goes on, and later controls may lead to the slot. Then it is not to be taken before those in
//! slots are ([`Control::early`]), by a consumer that takes inline messages out of order.
//!
//! Line 0 has the newest control of a run of slots too, whatever the run's own line: there a consumer that
//! takes slots by the batch finds how far it may go on, and the newest credit. An inline message in line 0 leaves it so
//! while messages in slots may be unread.
//!
//! Indices and stamps have 32 bits in a line: what was left there for [`SCRUB`] messages is overwritten before
//! it could match again ([`scrub`]).
//!
//! Both ends on both sides follow the functions of this file: [`Inbox`](crate::Inbox) and
//! [`Outbox`](crate::Outbox) of one thread, and those of a GPU's block in `ring-device`.

use crate::atomics::{Atom, Ordering::Relaxed};
use crate::layout::{CreditLine, Doorbell};
use core::marker::PhantomData;
use core::num::NonZeroU32;
use core::ops::Range;
use core::ptr::NonNull;

/// Most slots a ring may have.
pub const MAX_CAPACITY: u32 = 1 << 20;

/// Greatest index of a first message: far enough from the end of 64 bits.
pub const MAX_START: u64 = 1 << 63;

/// Most messages that the doorbell lines of a ring may have room for.
pub const MAX_LINES: u32 = 128;

/// Most messages of a batch that may be inline: what comes at once beyond that goes through slots sooner.
pub const INLINE_BATCH: u32 = MAX_LINES / 2;

/// Messages sent at once that count as single ones, for which there is the whole window.
const FEW: usize = 8;

/// Most doorbell lines that one message may take.
pub const MAX_SPAN: u32 = 4;

/// Messages after which stale stamps and controls in a doorbell line are overwritten.
pub const SCRUB: u64 = 1 << 30;

/// Atom of the doorbell line that is the [`Control`].
pub const CONTROL: usize = 7;

/// The other side wrote an index that cannot be. Nothing was read or written by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Corrupt {
    /// What was found (indices in a doorbell are 32 bits).
    pub found: u64,
    /// The least it could have been.
    pub low: u64,
    /// The most it could have been.
    pub high: u64,
}

/// Why a message was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PushError {
    /// No free slot.
    Full,
    /// The consumer's credit is impossible.
    Corrupt(Corrupt),
}

impl From<Corrupt> for PushError {
    fn from(corrupt: Corrupt) -> PushError {
        PushError::Corrupt(corrupt)
    }
}

/// The control atom of a doorbell line. Half `lo` is `[credit, early]`, half `hi`, which publishes,
/// `[first, tail]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Control {
    /// Messages that the writer has consumed from the opposite ring, as the low half of an index; for
    /// two rings that are a pair.
    pub credit: u32,
    /// How many messages before its turn the inline message of this line may be taken: only inline ones are
    /// so near before it.
    pub early: u32,
    /// Index of a message that lies in a slot, as do all from it up to `tail`; `tail` if none does
    /// that the consumer must take from there.
    pub first: u32,
    /// Index after the last message, slot or inline.
    pub tail: u32,
}

impl Control {
    /// How many messages it tells of from `next` on. `None` if of none: also if it was read before one that was
    /// already acted on.
    #[inline(always)]
    pub fn ahead_of(self, next: u64) -> Option<u32> {
        let ahead = self.tail.wrapping_sub(next as u32);
        (ahead != 0 && ahead <= u32::MAX / 2).then_some(ahead)
    }

    /// The control behind an inline message that is to be taken in its turn: `tail` is the index after it.
    #[inline(always)]
    pub fn behind_inline(tail: u64, credit: u64) -> Control {
        Control { credit: credit as u32, early: 0, first: tail as u32, tail: tail as u32 }
    }

    /// The control of a producer whose messages before `tail` are written: those from `run_start` on
    /// are in slots, and all below `consumed` are known to be consumed.
    #[inline(always)]
    pub fn behind_slots(run_start: u64, consumed: u64, tail: u64, credit: u64) -> Control {
        let first = if run_start > consumed { run_start } else { consumed };
        Control { credit: credit as u32, early: 0, first: first as u32, tail: tail as u32 }
    }

    /// The atom's two halves.
    #[inline(always)]
    pub fn to_words(self) -> [u64; 2] {
        [
            u64::from(self.credit) | u64::from(self.early) << 32,
            u64::from(self.first) | u64::from(self.tail) << 32,
        ]
    }

    /// The control in an atom read from memory.
    #[inline(always)]
    pub fn from_words([lo, hi]: [u64; 2]) -> Control {
        Control {
            credit: lo as u32,
            early: (lo >> 32) as u32,
            first: hi as u32,
            tail: (hi >> 32) as u32,
        }
    }
}

/// What a consumer finds in a doorbell line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    /// No message.
    Nothing,
    /// The next message is in the line itself, or about to be: its stamps tell.
    Inline,
    /// So many messages are in slots, from the next one on.
    Slots(u32),
    /// The tail is further ahead, or the run of slots longer, than the ring is long.
    Corrupt(Corrupt),
}

/// What `control` means to a consumer whose next index is `next`.
#[inline]
pub fn decide(control: Control, next: u64, capacity: u32) -> Seen {
    let Some(ahead) = control.ahead_of(next) else { return Seen::Nothing };
    let here = next as u32;
    let run = control.tail.wrapping_sub(control.first);
    if ahead > capacity {
        let high = u64::from(here.wrapping_add(capacity));
        return Seen::Corrupt(Corrupt { found: control.tail.into(), low: here.into(), high });
    }
    if run > capacity {
        let low = u64::from(control.tail.wrapping_sub(capacity));
        let (found, high) = (control.first.into(), control.tail.into());
        return Seen::Corrupt(Corrupt { found, low, high });
    }
    if run < ahead { Seen::Inline } else { Seen::Slots(ahead) }
}

/// Whether a producer may send `n` messages inline, if they fit, in a ring whose [`window`] is so long and where `unread`
/// may be unread: none of those has the same line. A batch must leave half of the window free. So must all messages as long
/// as there are unread ones in slots: what has gone through slots goes on so until there are clearly fewer in flight, since
/// each change from one way to the other takes the consumer as long as several messages.
#[inline(always)]
pub fn may_go_inline(unread: u64, n: usize, is_behind_slots: bool, window: u32) -> bool {
    let window = if is_behind_slots || n > FEW { window / 2 } else { window };
    unread + n as u64 <= u64::from(window)
}

/// [`Control::early`] of inline message `index` behind slots: all messages from `slots_end` on are inline, and those before
/// that may be unread in slots.
#[inline(always)]
pub fn early(index: u64, slots_end: u64) -> u32 {
    (index - slots_end) as u32
}

/// Most messages that may be inline and unread at once: as many as there are lines, but no more than there
/// are slots, one of which the answer to each may take.
#[inline(always)]
pub fn window(lines: u32, capacity: u32) -> u32 {
    if lines < capacity { lines } else { capacity }
}

/// Doorbell lines that a message takes in a ring that has lines for `line_count`, where its kernel's messages take `span`:
/// a ring with room for one has a single line, which lies in the channel's block, and takes larger ones by slots.
#[inline(always)]
pub fn span_in(line_count: u32, span: u32) -> u32 {
    if line_count == 1 { 1 } else { span }
}

/// An atom of an inline message: twelve bytes of payload, then the stamp.
#[inline(always)]
pub fn stamped([a, b, c]: [u32; 3], stamp: u32) -> [u64; 2] {
    [u64::from(a) | u64::from(b) << 32, u64::from(c) | u64::from(stamp) << 32]
}

/// The payload in such an atom.
#[inline(always)]
pub fn payload_of([lo, hi]: [u64; 2]) -> [u32; 3] {
    [lo as u32, (lo >> 32) as u32, hi as u32]
}

/// The stamp in such an atom.
#[inline(always)]
pub fn stamp_of([_, hi]: [u64; 2]) -> u32 {
    (hi >> 32) as u32
}

/// What a producer writes over the stamps of one of its `lines` before it moves the tail to `tail`, if it is time
/// for the next of them: it did so last at `scrubbed`, and what a line holds came round if it were left there for
/// ever. The new stamp is that of the last message known to be consumed: no consumer waits for it, not even
/// one that looks at stamps before it looks at the control atom. `None` also while an inline message, all of
/// which are before `inline_end`, may be unread.
#[inline(always)]
pub fn scrub(
    tail: u64,
    scrubbed: u64,
    inline_end: u64,
    consumed: u64,
    lines: u32,
) -> Option<[u64; 2]> {
    let due = tail.wrapping_sub(scrubbed) > scrub_step(lines) && inline_end <= consumed;
    due.then(|| stamped([0; 3], consumed as u32))
}

/// The line to be scrubbed when [`scrub`] says that it is time at `tail`, by an index that leads to it: that behind the
/// one before; and what `scrubbed` is then. A producer whose tail has gone further since is due again at once, so that no
/// line is passed over.
#[inline(always)]
pub fn scrub_next(tail: u64, scrubbed: u64, lines: u32) -> (u64, u64) {
    if lines == 1 {
        return (0, tail);
    }
    let to = scrubbed.wrapping_add(scrub_step(lines));
    (to >> (SCRUB.trailing_zeros() - lines.trailing_zeros()), to)
}

/// Messages after which the next of `lines` doorbell lines, a power of two, is scrubbed.
#[inline(always)]
fn scrub_step(lines: u32) -> u64 {
    SCRUB >> lines.trailing_zeros()
}

/// Messages that a consumer may consume before it tells the producer: a quarter of a ring.
#[inline(always)]
pub fn credit_step(capacity: u32) -> u32 {
    (capacity / 4).max(1)
}

/// Whether a consumer that has consumed all below `consumed` is to tell the producer, whom it told last at
/// `published`. It tells it also when it finds nothing to take.
#[inline(always)]
pub fn credit_is_due(consumed: u64, published: u64, capacity: u32) -> bool {
    consumed.wrapping_sub(published) >= u64::from(credit_step(capacity))
}

/// The index that a [`Control::credit`] means to a producer whose next message is `next`; `None` if it
/// cannot be, or is older than a whole ring.
#[inline(always)]
pub fn credit_index(credit: u32, next: u64, capacity: u32) -> Option<u64> {
    let behind = (next as u32).wrapping_sub(credit);
    (behind <= capacity && u64::from(behind) <= next).then(|| next - u64::from(behind))
}

/// The stamp of message `index`.
#[inline]
pub fn stamp(index: u64) -> u32 {
    (index as u32).wrapping_add(1)
}

/// The 64-bit index meant by the 32 bits `wire`, at or after `low`.
#[inline]
pub fn widen(wire: u32, low: u64) -> u64 {
    low + u64::from(wire.wrapping_sub(low as u32))
}

/// Free slots of a ring whose producer is at `next` and whose consumer has consumed `consumed`.
#[inline]
pub fn room(next: u64, consumed: u64, capacity: u32) -> u32 {
    capacity - (next - consumed) as u32
}

/// Where the slots of messages `index..index + n` lie: first a run that may go up to the ring's end,
/// then one from its beginning. Never more than the `capacity` slots, each once.
#[inline]
pub fn runs(index: u64, n: usize, capacity: u32) -> [Range<usize>; 2] {
    let at = index as usize & (capacity as usize - 1);
    let first = n.min(capacity as usize - at);
    [at..at + first, 0..(n - first).min(at)]
}

/// A ring in memory: where its three parts are. Copies name the same ring.
#[derive(Clone, Copy, Debug)]
pub struct Ring {
    lines: NonNull<Doorbell>,
    credit: NonNull<CreditLine>,
    slots: NonNull<Atom>,
    line_count: u32,
    span: u32,
    capacity: u32,
    slot_atoms: u32,
    start: u64,
}

// SAFETY: all that a `Ring` leads to are atomics, valid for as long as `from_raw`'s caller promised.
unsafe impl Send for Ring {}

impl Ring {
    /// A ring of doorbell lines for `line_count` messages, `span` lines each, and `capacity` slots of `slot_atoms`
    /// atoms, whose first message has index `start`. `None` if there is not a power of two of lines up to [`MAX_LINES`]
    /// and of slots up to [`MAX_CAPACITY`], the span is not in `1..=MAX_SPAN`, a slot is empty, or `start` is above
    /// [`MAX_START`].
    ///
    /// # Safety
    /// The three parts must be readable and writable, as large as said, initialised, and stay so
    /// for as long as this ring or a copy of it is used.
    pub unsafe fn from_raw(
        (lines, credit, slots): (NonNull<Doorbell>, NonNull<CreditLine>, NonNull<Atom>),
        (line_count, span): (u32, u32),
        (capacity, slot_atoms): (u32, u32),
        start: u64,
    ) -> Option<Ring> {
        let sound = line_count.is_power_of_two()
            && line_count <= MAX_LINES
            && (1..=MAX_SPAN).contains(&span)
            && capacity.is_power_of_two()
            && capacity <= MAX_CAPACITY
            && slot_atoms > 0
            && start <= MAX_START;
        sound.then_some(Ring {
            lines,
            credit,
            slots,
            line_count,
            span,
            capacity,
            slot_atoms,
            start,
        })
    }

    /// The doorbell line that message `index` may lie in, and that a consumer at `index` looks at; the first, if it
    /// takes several.
    #[inline]
    pub fn line(&self, index: u64) -> &Doorbell {
        let at = index as usize & (self.line_count as usize - 1);
        // SAFETY: the mask keeps it below `line_count`, and so many times `span` lines are valid by the promise to
        // `from_raw`; they hold atomics only, so `&` is enough.
        unsafe { self.lines.add(at * self.span as usize).as_ref() }
    }

    /// All doorbell lines that message `index` may lie in.
    #[inline]
    pub fn lines_of(&self, index: u64) -> &[Doorbell] {
        let at = (index as usize & (self.line_count as usize - 1)) * self.span as usize;
        // SAFETY: as for `line`.
        unsafe { core::slice::from_raw_parts(self.lines.add(at).as_ptr(), self.span as usize) }
    }

    /// Where inline atom `k` of message `index` lies, which takes no more lines than the span.
    #[inline]
    pub(crate) fn inline_atom(&self, index: u64, k: usize) -> &Atom {
        // The first line without a bound to check: it is there.
        match k / CONTROL {
            0 => &self.line(index).atoms[k],
            line => &self.lines_of(index)[line].atoms[k % CONTROL],
        }
    }

    /// Doorbell lines that one message may take.
    #[inline]
    pub fn span(&self) -> u32 {
        self.span
    }

    /// Messages that the doorbell lines have room for, a power of two.
    #[inline]
    pub fn line_count(&self) -> u32 {
        self.line_count
    }

    /// The consumer's line.
    #[inline]
    pub fn credit(&self) -> &CreditLine {
        // SAFETY: valid by the promise to `from_raw`; it holds atomics only, so `&` is enough.
        unsafe { self.credit.as_ref() }
    }

    /// The atoms of the slot of message `index`.
    #[inline]
    pub fn slot(&self, index: u64) -> &[Atom] {
        let at = (index as usize & (self.capacity as usize - 1)) * self.slot_atoms as usize;
        // SAFETY: `at` is a whole slot inside the `capacity * slot_atoms` atoms that `from_raw`'s
        // caller promised, since the mask keeps the slot below `capacity`.
        unsafe {
            core::slice::from_raw_parts(self.slots.add(at).as_ptr(), self.slot_atoms as usize)
        }
    }

    /// Its slots, if they have `atoms` atoms each.
    #[inline(always)]
    pub fn slots_of(&self, atoms: NonZeroU32) -> Option<SlotsOf<'_>> {
        let slots = SlotsOf { slots: self.slots, mask: self.capacity - 1, atoms, of: PhantomData };
        (atoms.get() == self.slot_atoms).then_some(slots)
    }

    /// The slots at `run`, which [`runs`] gave.
    ///
    /// # Panics
    /// If the ring has no such slots.
    #[inline]
    pub(crate) fn slots(&self, run: Range<usize>) -> impl Iterator<Item = &[Atom]> {
        assert!(run.end <= self.capacity as usize, "slots beyond the ring");
        let (slots, atoms) = (self.slots, self.slot_atoms as usize);
        run.map(move |at| {
            // SAFETY: slot `at` is below the capacity, so it is inside the `capacity * slot_atoms`
            // atoms that `from_raw`'s caller promised.
            unsafe { core::slice::from_raw_parts(slots.add(at * atoms).as_ptr(), atoms) }
        })
    }

    /// Number of slots, a power of two.
    #[inline]
    pub fn capacity(&self) -> u32 {
        self.capacity
    }

    /// Index of the first message.
    #[inline]
    pub fn start(&self) -> u64 {
        self.start
    }

    /// The control in the line of message `index`, as it is now.
    #[cfg(not(target_arch = "nvptx64"))]
    fn control(&self, index: u64) -> Control {
        Control::from_words(self.line(index).atoms[CONTROL].load())
    }

    /// How many messages from `index` on a consumer can take one after the other, by what the producer told; as many as
    /// there are slots if that is impossible, so that the consumer looks for itself and learns it.
    #[cfg(not(target_arch = "nvptx64"))]
    pub fn there_from(&self, index: u64) -> u32 {
        let mut there = 0;
        while there < self.capacity {
            let next = index + u64::from(there);
            there += match decide(self.control(next), next, self.capacity) {
                Seen::Nothing => break,
                Seen::Inline => 1,
                Seen::Slots(n) => n,
                Seen::Corrupt(_) => self.capacity,
            };
        }
        there.min(self.capacity)
    }

    /// How many messages from `index` on there are by what the producer told, in whichever line: the other side's
    /// word, and not bounded.
    #[cfg(not(target_arch = "nvptx64"))]
    pub fn told_from(&self, index: u64) -> u32 {
        let ahead = |line| self.control(line).tail.wrapping_sub(index as u32);
        let lines = (0..u64::from(self.line_count)).map(ahead);
        lines.filter(|ahead| *ahead <= u32::MAX / 2).max().unwrap_or(0)
    }

    /// Whether a consumer that remembers nothing but that message `index` is its next finds it if the producer has told of
    /// it: in that message's line, or in line 0. It does not while the producer, in the middle of telling of a batch to which
    /// the message belongs, has written the line of the batch's first message and not yet line 0.
    #[cfg(not(target_arch = "nvptx64"))]
    pub fn can_resume_from(&self, index: u64) -> bool {
        let tells = |line| self.control(line).ahead_of(index).is_some();
        self.told_from(index) == 0 || tells(index) || tells(0)
    }

    /// Sets lines as they are before the first message: before anybody uses the ring.
    pub fn reset(&self) {
        for index in 0..u64::from(self.line_count) {
            for line in self.lines_of(index) {
                line.reset(self.start);
            }
        }
        self.credit().reset(self.start);
    }
}

/// The slots of a ring, for threads that move atoms of many messages side by side. Where the number of their atoms is a constant,
/// to find one takes few instructions and no branch.
#[derive(Clone, Copy, Debug)]
pub struct SlotsOf<'a> {
    slots: NonNull<Atom>,
    mask: u32,
    atoms: NonZeroU32,
    of: PhantomData<&'a Atom>,
}

impl<'a> SlotsOf<'a> {
    /// The same, if they have `atoms` atoms each: to whoever kept them for a while the compiler tells the number again.
    #[inline(always)]
    pub fn of(self, atoms: NonZeroU32) -> Option<SlotsOf<'a>> {
        (atoms == self.atoms).then_some(SlotsOf { atoms, ..self })
    }

    /// Atom `t` of those of the messages from `index` on, of which only the low half counts.
    #[inline(always)]
    pub fn atom(&self, index: u32, t: u32) -> &'a Atom {
        let slot = index.wrapping_add(t / self.atoms) & self.mask;
        let at = slot as usize * self.atoms.get() as usize + (t % self.atoms) as usize;
        // SAFETY: inside the `capacity * slot_atoms` atoms that `from_raw`'s caller promised: the mask keeps the slot below
        // `capacity`, the remainder is below `atoms`, and `slots_of` has found that to be `slot_atoms`.
        unsafe { &*self.slots.as_ptr().add(at) }
    }
}

impl Doorbell {
    /// Makes the line as it is before message `start`, the first.
    pub fn reset(&self, start: u64) {
        for atom in &self.atoms[..CONTROL] {
            atom.store(stamped([0; 3], start as u32)); // the stamp of the message before
        }
        self.atoms[CONTROL].store(Control::behind_inline(start, start).to_words());
    }
}

impl CreditLine {
    /// Makes the line as it is before message `start`, the first.
    pub fn reset(&self, start: u64) {
        self.consumed.store(start, Relaxed);
    }
}
