//! The producing end of a ring, used by one thread.

use crate::atomics::{Atom, MemoryScope, System};
use crate::message::{Message, inline_atom, takes_inline, unrolled};
use crate::ring::{
    CONTROL, Control, Corrupt, PushError, Ring, early, may_go_inline, room, runs, scrub, stamp,
    window,
};
use crate::slot;
use core::marker::PhantomData;
#[cfg(not(target_arch = "nvptx64"))]
use {crate::ring::INLINE_BATCH, core::mem::MaybeUninit};

/// Puts messages into a ring. There must be one producer a ring; a second would overwrite what
/// the first wrote (but never out of bounds). Its consumer's [`Inbox`](crate::Inbox) has the same scope.
#[derive(Debug)]
pub struct Outbox<S = System> {
    scope: PhantomData<S>,
    ring: Ring,
    next: u64,
    /// Messages known to be consumed, as an index.
    consumed: u64,
    /// Messages from this index on are in slots: the index after the last message that lies in its line alone.
    run_start: u64,
    /// Index after the last message that lies in a slot alone, and after the last that is inline.
    slots_end: u64,
    inline_end: u64,
    /// Where a line was last scrubbed, and the next one to be.
    scrubbed: u64,
    scrub_next: u64,
    /// Credit last written into the doorbell.
    told: u64,
}

impl Outbox {
    /// The producer of a ring that was [reset](Ring::reset) and not used since, for host and devices.
    pub fn new(ring: Ring) -> Outbox {
        Outbox::with_scope(ring, System)
    }
}

impl<S: MemoryScope> Outbox<S> {
    /// The producer of such a ring that the threads of `scope` share.
    #[inline]
    pub fn with_scope(ring: Ring, _: S) -> Outbox<S> {
        let (scope, next) = (PhantomData, ring.start());
        Outbox {
            scope,
            ring,
            next,
            consumed: next,
            run_start: next,
            slots_end: next,
            inline_end: next,
            scrubbed: next,
            scrub_next: next,
            told: next,
        }
    }

    /// The ring.
    #[inline]
    pub fn ring(&self) -> Ring {
        self.ring
    }

    /// Index of the next message: `start` plus the messages pushed so far.
    #[inline]
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Messages known to be consumed, as an index.
    #[inline]
    pub fn consumed(&self) -> u64 {
        self.consumed
    }

    /// Whether the message that was pushed last lies in a slot alone, and is not inline.
    #[inline]
    pub fn ends_in_slots(&self) -> bool {
        self.slots_end == self.next
    }

    /// Says that everything before `index` is consumed, as an answer to message `index - 1`
    /// proves. Saves a read of the credit line.
    #[inline]
    pub fn note_consumed(&mut self, index: u64) {
        if index > self.consumed && index <= self.next {
            self.consumed = index;
        }
    }

    /// For how many of `wanted` messages there are free slots from the next one on, after a look at the credit line if
    /// need be: for a producer of several threads that write those slots side by side, before one of them
    /// [commits](Self::commit_slots) all.
    #[inline]
    pub fn free_slots(&mut self, wanted: u32) -> Result<u32, Corrupt> {
        if self.room() < wanted as usize {
            self.refresh()?;
        }
        Ok(self.room().min(wanted as usize) as u32)
    }

    /// Commits the next `n` messages, which are in their slots, in a ring of one line: the control atom, and what is to be stored
    /// there as a whole. The caller does that, behind a fence of its own, by the scope that the two ends share.
    #[inline]
    pub fn commit_slots(&mut self, n: u32) -> (&Atom, [u64; 2]) {
        self.advance(self.next + u64::from(n), 0);
        let control = Control::behind_slots(self.run_start, self.consumed, self.next, 0);
        (&self.ring.line(0).atoms[CONTROL], control.to_words())
    }

    /// Slots known to be free.
    #[inline]
    pub fn known_free(&self) -> u32 {
        self.room() as u32
    }

    /// What was read in the credit line: for a producer that reads it together with other things. It acquires it before slots
    /// are written.
    #[inline]
    pub fn note_credit(&mut self, found: u64) -> Result<(), Corrupt> {
        let (low, high) = (self.ring.start(), self.next);
        if found.wrapping_sub(low) > high - low {
            return Err(Corrupt { found, low, high });
        }
        self.consumed = self.consumed.max(found); // an answer may have told more already
        Ok(())
    }

    /// Whether the consumer is known to have taken all that was sent.
    #[inline]
    pub fn is_idle(&self) -> bool {
        self.next == self.consumed
    }

    /// Says that the caller has written the next message inline, with [`Control::behind_inline`] as its control: a producer of
    /// several threads that found it [idle](Self::is_idle). The message fits one line.
    #[inline]
    pub fn note_inline(&mut self) {
        self.next += 1;
        (self.run_start, self.inline_end) = (self.next, self.next);
    }

    /// Whether the next message has room, after a look at the credit line if need be. If there is none,
    /// what waits for our credit learns of it.
    pub fn has_room(&mut self, credit: u64) -> Result<bool, Corrupt> {
        self.make_room(1, credit).map(|n| n > 0)
    }

    /// Pushes one message: inline, if it fits and [`may_go_inline`] says so. `credit` is the number of messages this side
    /// has consumed from the opposite ring, as an index.
    #[inline]
    pub fn push<T: Message>(&mut self, message: &T, credit: u64) -> Result<(), PushError> {
        if !self.may_go_inline() && (takes_inline::<T>(&self.ring) || self.room() == 0) {
            self.refresh()?;
        }
        if takes_inline::<T>(&self.ring) && self.may_go_inline() {
            self.push_inline(message, credit);
            return Ok(());
        }
        if self.room() == 0 {
            self.tell_credit(credit);
            return Err(PushError::Full);
        }
        slot::write::<T, S>(self.ring.slot(self.next), message);
        self.commit(self.next + 1, credit);
        Ok(())
    }

    /// Pushes as many of the messages as there is room for, in order, and says how many that is.
    #[inline]
    pub fn push_slice<T: Message>(
        &mut self,
        messages: &[T],
        credit: u64,
    ) -> Result<usize, Corrupt> {
        if let [message] = messages {
            return match self.push(message, credit) {
                Ok(()) => Ok(1),
                Err(PushError::Full) => Ok(0),
                Err(PushError::Corrupt(corrupt)) => Err(corrupt),
            };
        }
        let n = self.make_room(messages.len(), credit)?;
        if n > 0 {
            let [first, second] = runs(self.next, n, self.ring.capacity());
            let (of_first, of_second) = messages[..n].split_at(first.len());
            for (run, messages) in [(first, of_first), (second, of_second)] {
                for (slot, message) in self.ring.slots(run).zip(messages) {
                    slot::write::<T, S>(slot, message);
                }
            }
            self.commit(self.next + n as u64, credit);
        }
        Ok(n)
    }

    /// Pushes up to `most` messages, as many as there is room for, and says how many that is: the
    /// `k`th is what `message(k)` makes, and goes from there straight into the ring. `message` is
    /// not called for what has no room. If it panics, none of this call's messages is sent, and the
    /// next call begins where this one did.
    ///
    /// ```
    /// use ring_shared::{Inbox, Outbox, heap::RingMemory};
    ///
    /// let memory = RingMemory::new::<u64>(4, 0);
    /// let (mut outbox, mut inbox) = (Outbox::new(memory.ring()), Inbox::new(memory.ring()));
    /// assert_eq!(outbox.push_each(8, 0, |k| 10 * k as u64), Ok(4));
    /// let mut out = [0u64; 8];
    /// assert_eq!(inbox.pop_slice(&mut out), Ok(4));
    /// assert_eq!(out[..4], [0, 10, 20, 30]);
    /// ```
    #[inline]
    pub fn push_each<T: Message>(
        &mut self,
        most: usize,
        credit: u64,
        mut message: impl FnMut(usize) -> T,
    ) -> Result<usize, Corrupt> {
        if most == 1 && takes_inline::<T>(&self.ring) {
            if !self.may_go_inline() {
                self.refresh()?;
            }
            if self.may_go_inline() {
                self.push_inline(&message(0), credit);
                return Ok(1);
            }
        }
        let n = self.make_room(most, credit)?;
        if n > 0 {
            match slot::fits::<T>(&self.ring) {
                true => self.make(n, message, slot::write_whole::<T, S>),
                false => self.make_cut(n, message),
            }
            self.commit(self.next + n as u64, credit);
        }
        Ok(n)
    }

    /// Pushes all of the messages inline, one after the other, if all of them may go so; whether it has. That takes the
    /// producer longer than [`push_slice`](Self::push_slice), and lets the consumer begin with the first.
    #[cfg(not(target_arch = "nvptx64"))]
    #[inline]
    pub fn push_slice_inline<T: Message>(
        &mut self,
        messages: &[T],
        credit: u64,
    ) -> Result<bool, Corrupt> {
        let may = self.may_all_go_inline::<T>(messages.len())?;
        if may {
            for message in messages {
                self.push_inline(message, credit);
            }
        }
        Ok(may)
    }

    /// The same with `n` messages of which `message(k)` makes the `k`th, as in [`push_each`](Self::push_each). They are sent
    /// when the last one is made.
    #[cfg(not(target_arch = "nvptx64"))]
    #[inline]
    pub fn push_each_inline<T: Message>(
        &mut self,
        n: usize,
        credit: u64,
        message: impl FnMut(usize) -> T,
    ) -> Result<bool, Corrupt> {
        let may = self.may_all_go_inline::<T>(n)?;
        if may {
            self.make_inline(n, credit, message);
        }
        Ok(may)
    }

    /// Makes and sends `n` messages that all may go inline.
    #[cfg(not(target_arch = "nvptx64"))]
    #[inline(never)] // their place is no part of the caller's frame
    fn make_inline<T: Message>(
        &mut self,
        n: usize,
        credit: u64,
        mut message: impl FnMut(usize) -> T,
    ) {
        let mut made = [const { MaybeUninit::<T>::uninit() }; INLINE_BATCH as usize];
        let made = &mut made[..n];
        for (k, place) in made.iter_mut().enumerate() {
            place.write(message(k));
        }
        for place in made {
            // SAFETY: it was written above.
            self.push_inline(unsafe { place.assume_init_ref() }, credit);
        }
    }

    /// Makes `n` messages in the next slots, by `write`.
    #[inline]
    fn make<T: Message>(
        &self,
        n: usize,
        mut message: impl FnMut(usize) -> T,
        write: impl Fn(&[Atom], &T),
    ) {
        let [first, second] = runs(self.next, n, self.ring.capacity());
        let of_second = first.len();
        for (run, from) in [(first, 0), (second, of_second)] {
            for (slot, k) in self.ring.slots(run).zip(from..) {
                write(slot, &message(k));
            }
        }
    }

    /// Apart, so that what `message` uses may stay in registers otherwise.
    #[cold]
    #[inline(never)]
    fn make_cut<T: Message>(&self, n: usize, message: impl FnMut(usize) -> T) {
        self.make(n, message, slot::write::<T, S>);
    }

    /// Whether the next message may go inline, if it fits, by what is known.
    #[inline]
    fn may_go_inline(&self) -> bool {
        self.may_go_inline_together(1)
    }

    /// The same of the next `n` messages.
    #[inline]
    fn may_go_inline_together(&self, n: usize) -> bool {
        let window = window(self.ring.line_count(), self.ring.capacity());
        may_go_inline(self.next - self.consumed, n, self.is_behind_slots(), window)
    }

    /// Whether a message that lies in a slot alone may be unread.
    #[inline]
    fn is_behind_slots(&self) -> bool {
        self.slots_end > self.consumed
    }

    /// Whether the next `n` messages may all go inline, after a look at the credit line if need be.
    #[cfg(not(target_arch = "nvptx64"))]
    #[inline]
    fn may_all_go_inline<T: Message>(&mut self, n: usize) -> Result<bool, Corrupt> {
        let window = window(self.ring.line_count(), self.ring.capacity());
        // Nor would they if all were consumed: then the credit line, which the consumer may be writing, stays untouched.
        if !takes_inline::<T>(&self.ring) || n == 0 || !may_go_inline(0, n, false, window) {
            return Ok(false);
        }
        if self.may_go_inline_together(n) {
            return Ok(true);
        }
        self.refresh()?;
        Ok(self.may_go_inline_together(n))
    }

    /// Slots known to be free.
    #[inline]
    fn room(&self) -> usize {
        room(self.next, self.consumed, self.ring.capacity()) as usize
    }

    /// For how many of `wanted` messages there is room, after a look at the credit line if need be.
    /// If there is none, what waits for our credit learns of it.
    #[inline]
    fn make_room(&mut self, wanted: usize, credit: u64) -> Result<usize, Corrupt> {
        if self.room() < wanted {
            self.refresh()?;
        }
        let n = self.room().min(wanted);
        if n == 0 {
            self.tell_credit(credit);
        }
        Ok(n)
    }

    #[inline]
    fn refresh(&mut self) -> Result<(), Corrupt> {
        // SYNC: acquires the consumer's release in `Inbox::publish` (or the channel's store after
        // its fence): its reads of the slots came before, ours and new writes come after.
        self.note_credit(S::load_acquire(&self.ring.credit().consumed))
    }

    /// Apart from its callers, which are short without it; on a GPU a call would keep `self` on the stack.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    #[cfg_attr(not(target_arch = "nvptx64"), inline(never))]
    fn push_inline<T: Message>(&mut self, message: &T, credit: u64) {
        let (index, ring) = (self.next, self.ring);
        // As a pair of words, which stays in registers: a structure that a call returns is written to the stack by halves of
        // words and read back by whole ones, which waits until the store buffer is empty, so for lines that the other side
        // holds.
        let control = if self.is_behind_slots() {
            self.write_behind_slots(message, credit)
        } else {
            self.run_start = index + 1;
            let control = Control { early: u32::MAX, ..Control::behind_inline(index + 1, credit) };
            control.to_words().into()
        };
        S::release();
        unrolled!(T::INLINE_ATOMS, k => {
            // SYNC: each stamp is released to the consumer's `load_whole` of the same atom.
            S::store_whole(ring.inline_atom(index, k), inline_atom(message, k, stamp(index)));
        });
        (self.next, self.inline_end) = (index + 1, index + 1);
        self.store_control(index, control.into());
    }

    /// Writes an inline message that is one of the run of slots, too, into its slot; the control for its line, as words.
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    #[cfg_attr(not(target_arch = "nvptx64"), inline(never))]
    fn write_behind_slots<T: Message>(&self, message: &T, credit: u64) -> (u64, u64) {
        let (index, tail) = (self.next, self.next + 1);
        slot::write::<T, S>(self.ring.slot(index), message);
        let control = match index & u64::from(self.ring.line_count() - 1) {
            // Line 0 goes on to tell of the run.
            0 => Control::behind_slots(self.run_start, self.consumed, tail, credit),
            _ => Control::behind_inline(tail, credit),
        };
        Control { early: early(index, self.slots_end), ..control }.to_words().into()
    }

    /// Says that the messages before `tail` are in their slots: in the line that a consumer looks at behind
    /// what was sent before, and in line 0.
    #[inline]
    fn commit(&mut self, tail: u64, credit: u64) {
        let first = self.next;
        self.advance(tail, credit);
        self.publish(first, credit);
    }

    /// Goes on behind messages in slots: the next one is `tail`. Overwrites a line's stamps, if it is time.
    #[inline]
    fn advance(&mut self, tail: u64, credit: u64) {
        let lines = self.ring.line_count();
        let (inline_end, consumed) = (self.inline_end, self.consumed);
        if let Some(atom) = scrub(tail, self.scrubbed, inline_end, consumed, lines) {
            self.scrub(tail, atom, credit);
        }
        (self.next, self.slots_end) = (tail, tail);
    }

    /// Publishes what is in slots, and the credit, in the line of message `index` and in line 0.
    #[inline]
    fn publish(&mut self, index: u64, credit: u64) {
        let control = Control::behind_slots(self.run_start, self.consumed, self.next, credit);
        S::release();
        self.store_control(index, self.keeping_early(index, control).to_words());
        if self.ring.line_count() > 1 {
            self.store_control(0, self.keeping_early(0, control).to_words());
        }
        self.told = credit;
    }

    /// `control` for the line of message `index`, in which an inline message may be unread: how early that may be taken
    /// stays. On a GPU, where each consumer takes messages in their turn, it need not be known.
    #[inline]
    fn keeping_early(&self, index: u64, control: Control) -> Control {
        if cfg!(target_arch = "nvptx64") {
            return control;
        }
        let before = Control::from_words(S::load_whole(&self.ring.line(index).atoms[CONTROL]));
        Control { early: before.early, ..control }
    }

    /// The control atom of the line of message `index`, behind [`MemoryScope::release`].
    #[inline]
    fn store_control(&self, index: u64, control: [u64; 2]) {
        // SYNC: releases slots and stamps (with the tail) and our reads of the opposite ring's
        // slots (with the credit) to the consumer's `observe` of the control atom.
        S::store_whole(&self.ring.line(index).atoms[CONTROL], control);
    }

    /// Renews the credit in the doorbell although there is nothing to send: the consumer may be
    /// waiting for it before it can make room for us.
    #[cold]
    fn tell_credit(&mut self, credit: u64) {
        if credit != self.told {
            self.publish(self.next, credit);
        }
    }

    /// Overwrites one line; what is there are facts of long ago.
    #[cold]
    fn scrub(&mut self, tail: u64, words: [u64; 2], credit: u64) {
        let (ring, index) = (self.ring, self.scrub_next);
        for line in ring.lines_of(index) {
            for atom in &line.atoms[..CONTROL] {
                S::store_whole(atom, words);
            }
        }
        let control = Control::behind_slots(self.run_start, self.consumed, self.next, credit);
        S::release();
        self.store_control(index, control.to_words());
        (self.scrubbed, self.scrub_next) = (tail, index + 1);
    }

    /// Goes on as if `n` messages had been pushed and consumed through slots, `n` at most
    /// [`SCRUB`](crate::ring::SCRUB) over the lines a step: for tests of what happens after billions of messages.
    #[doc(hidden)]
    pub fn fast_forward(&mut self, n: u64, credit: u64) {
        (self.next, self.consumed) = (self.next + n, self.next + n);
        self.commit(self.next, credit);
    }
}
