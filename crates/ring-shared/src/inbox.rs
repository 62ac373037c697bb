//! The consuming end of a ring, used by one thread.

use crate::atomics::{MemoryScope, System};
use crate::message::{InlinePayload, Message, set_word64, takes_inline, unrolled};
use crate::ring::{
    CONTROL, Control, Corrupt, Ring, Seen, credit_is_due, credit_step, decide, payload_of, runs,
    stamp, stamp_of,
};
use crate::slot;
use core::marker::PhantomData;

/// Takes messages out of a ring, in order, each once. There must be one consumer a ring. Its producer's
/// [`Outbox`](crate::Outbox) has the same scope.
#[derive(Debug)]
pub struct Inbox<S = System> {
    scope: PhantomData<S>,
    ring: Ring,
    next: u64,
    /// Messages below this index are in slots and may be read.
    tail: u64,
    published: u64,
    /// Credit for the opposite ring, as last seen in the doorbell.
    credit: u32,
}

/// What there is to take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// Nothing.
    Nothing,
    /// A message in the line, if all of it has arrived.
    Inline,
    /// So many messages in slots, from the next one on.
    Slots(u32),
}

impl Inbox {
    /// The consumer of a ring that was [reset](Ring::reset) and not used since, for host and devices.
    pub fn new(ring: Ring) -> Inbox {
        Inbox::with_scope(ring, System)
    }
}

impl<S: MemoryScope> Inbox<S> {
    /// The consumer of such a ring that the threads of `scope` share.
    #[inline]
    pub fn with_scope(ring: Ring, _: S) -> Inbox<S> {
        let (scope, next) = (PhantomData, ring.start());
        Inbox { scope, ring, next, tail: next, published: next, credit: next as u32 }
    }

    /// The ring.
    #[inline]
    pub fn ring(&self) -> Ring {
        self.ring
    }

    /// Index of the next message: `start` plus the messages taken so far.
    #[inline]
    pub fn next(&self) -> u64 {
        self.next
    }

    /// What the producer said, when the doorbell was last read, it has consumed of the opposite
    /// ring: the low 32 bits of an index.
    #[inline]
    pub fn credit(&self) -> u32 {
        self.credit
    }

    /// Messages that can be taken one after the other, as far as the producer has told; the last one may not have arrived
    /// whole yet. As many as there are slots if what it told is impossible: taking one then says so.
    #[cfg(not(target_arch = "nvptx64"))]
    #[inline]
    pub fn there(&self) -> u32 {
        let known = self.in_slots() as u32;
        known.saturating_add(self.ring.there_from(self.tail)).min(self.ring.capacity())
    }

    /// Takes the next message, or says that there is none.
    #[inline]
    pub fn pop<T: Message>(&mut self) -> Result<Option<T>, Corrupt> {
        match self.pop_of_run() {
            Some(message) => Ok(Some(message)),
            None => self.pop_found(),
        }
    }

    /// Takes the next message if it is one of a run that is known, or whole in its line; if it is not taken,
    /// [`pop`](Self::pop) says why. In line with the caller, the message in registers: put together in memory, it would
    /// be read by wider words than it was written by, which on x86 waits for the store buffer.
    #[inline]
    pub fn pop_short<T: Message>(&mut self) -> Option<T> {
        if self.tail != self.next {
            return self.pop_of_run();
        }
        let (control, next) = (self.look(), self.next);
        let mut message = T::zeroed();
        let is_inline = takes_inline::<T>(&self.ring)
            && decide(control, next, self.ring.capacity()) == Seen::Inline;
        if !is_inline || !self.take_inline(&mut message) {
            return None;
        }
        self.credit = control.credit;
        Some(message)
    }

    /// Takes the next message if it is one of a run that is known, and slots are large enough.
    #[inline]
    fn pop_of_run<T: Message>(&mut self) -> Option<T> {
        let slot = self.ring.slot(self.next);
        if self.tail == self.next || slot.len() < T::SLOT_ATOMS {
            return None;
        }
        let mut message = T::zeroed();
        slot::read_whole::<T, S>(slot, &mut message);
        self.advance();
        Some(message)
    }

    /// The long way: after a look, or of a slot too small.
    #[inline(never)]
    fn pop_found<T: Message>(&mut self) -> Result<Option<T>, Corrupt> {
        let mut message = T::zeroed();
        if self.pop_into(&mut message)? { Ok(Some(message)) } else { Ok(None) }
    }

    /// Takes the next message into `message`, and says whether there was one. If not, `message` may hold
    /// parts of one that has not arrived whole.
    ///
    /// Unlike [`pop`](Self::pop) it needs no room on a GPU thread's stack.
    #[inline]
    pub fn pop_into<T: Message>(&mut self, message: &mut T) -> Result<bool, Corrupt> {
        match self.find::<T>()? {
            Found::Nothing => Ok(false),
            Found::Inline => Ok(self.take_inline(message)),
            Found::Slots(_) => {
                slot::read::<T, S>(self.ring.slot(self.next), message);
                self.advance();
                Ok(true)
            }
        }
    }

    /// Takes as many messages as are there and fit, in order, and says how many that is. An error
    /// is told only when nothing was taken, so no message is lost with it; `out` beyond the
    /// messages taken holds nothing of meaning.
    #[inline]
    pub fn pop_slice<T: Message>(&mut self, out: &mut [T]) -> Result<usize, Corrupt> {
        let mut taken = 0;
        while let Some(free) = out.get_mut(taken..).filter(|free| !free.is_empty()) {
            taken += match self.find::<T>() {
                Ok(Found::Nothing) => break,
                Ok(Found::Inline) => match self.take_inline(&mut free[0]) {
                    true => 1,
                    false => break,
                },
                Ok(Found::Slots(n)) => {
                    let n = (n as usize).min(free.len());
                    self.read_slots(&mut free[..n]);
                    n
                }
                Err(_) if taken > 0 => break, // the next call finds it again
                Err(corrupt) => return Err(corrupt),
            };
        }
        Ok(taken)
    }

    /// Shows up to `most` messages, in order, to `each`, and says how many were there. Each is
    /// taken before it is shown: if `each` panics, the next call goes on behind that message. As
    /// with [`pop_slice`](Self::pop_slice), an error is told only when nothing was taken.
    ///
    /// What is shown is a copy, made just before: the ring's own bytes can change while one looks.
    ///
    /// ```
    /// use ring_shared::{Inbox, Outbox, heap::RingMemory};
    ///
    /// let memory = RingMemory::new::<u64>(4, 0);
    /// let (mut outbox, mut inbox) = (Outbox::new(memory.ring()), Inbox::new(memory.ring()));
    /// outbox.push_slice(&[1u64, 2, 3], 0).unwrap();
    /// let mut sum = 0;
    /// assert_eq!(inbox.pop_each(8, |number: &u64| sum += number), Ok(3));
    /// assert_eq!(sum, 6);
    /// ```
    #[inline]
    pub fn pop_each<T: Message>(
        &mut self,
        most: usize,
        mut each: impl FnMut(&T),
    ) -> Result<usize, Corrupt> {
        if !slot::fits::<T>(&self.ring) {
            return self.pop_each_cut(most, each);
        }
        let mut taken = 0;
        while taken < most {
            taken += match self.find::<T>() {
                Ok(Found::Nothing) => break,
                Ok(Found::Inline) => {
                    let mut message = T::zeroed();
                    if !self.take_inline(&mut message) {
                        break;
                    }
                    each(&message);
                    1
                }
                Ok(Found::Slots(n)) => {
                    // No further at once than the producer may wait for.
                    let step = credit_step(self.ring.capacity()) as usize;
                    let n = (n as usize).min(most - taken).min(step);
                    self.show_slots(n, &mut each);
                    n
                }
                Err(_) if taken > 0 => break, // the next call finds it again
                Err(corrupt) => return Err(corrupt),
            };
        }
        Ok(taken)
    }

    /// Apart, so that what `each` uses may stay in registers otherwise.
    #[cold]
    #[inline(never)]
    fn pop_each_cut<T: Message>(
        &mut self,
        most: usize,
        mut each: impl FnMut(&T),
    ) -> Result<usize, Corrupt> {
        for taken in 0..most {
            match self.pop() {
                Ok(Some(message)) => each(&message),
                Err(corrupt) if taken == 0 => return Err(corrupt),
                _ => return Ok(taken),
            }
        }
        Ok(most)
    }

    /// What there is to take; the doorbell is looked at when no slots are left of the last look. If there is nothing, the
    /// producer is told all that was consumed. For a consumer of several threads, which read the slots side
    /// by side before one of them [takes](Self::take_slots) all.
    #[inline]
    pub fn find<T: Message>(&mut self) -> Result<Found, Corrupt> {
        let next = self.next;
        if self.tail == next {
            let control = self.look();
            let seen = decide(control, next, self.ring.capacity());
            // A line that shows nothing new may hold an old credit, unless it says where we are.
            if seen != Seen::Nothing || control.tail == next as u32 {
                self.credit = control.credit;
            }
            match seen {
                Seen::Nothing => {
                    // The moment to tell the producer all we consumed.
                    self.publish_if_empty();
                    return Ok(Found::Nothing);
                }
                Seen::Inline if takes_inline::<T>(&self.ring) => return Ok(Found::Inline),
                Seen::Inline => {
                    return Err(Corrupt { found: next, low: next + 1, high: next + 1 });
                }
                Seen::Slots(n) => self.tail = next + u64::from(n),
                Seen::Corrupt(corrupt) => return Err(corrupt),
            }
        }
        Ok(Found::Slots(self.in_slots() as u32))
    }

    /// The same by a control that was read from the next message's line, and is acquired before slots are read: for a consumer
    /// that reads it together with other things. The producer is told nothing.
    #[inline]
    pub fn find_in<T: Message>(&mut self, control: Control) -> Result<Found, Corrupt> {
        let (next, is_known) = (self.next, self.tail != self.next);
        match decide(control, next, self.ring.capacity()) {
            Seen::Slots(n) => self.tail = self.tail.max(next + u64::from(n)),
            Seen::Corrupt(corrupt) => return Err(corrupt),
            Seen::Inline if is_known => {}
            Seen::Inline if takes_inline::<T>(&self.ring) => return Ok(Found::Inline),
            Seen::Inline => return Err(Corrupt { found: next, low: next + 1, high: next + 1 }),
            Seen::Nothing => {}
        }
        Ok(if self.tail == next { Found::Nothing } else { Found::Slots(self.in_slots() as u32) })
    }

    /// Takes `n` messages, which were read from their slots, of those that were found there, and tells the producer nothing.
    #[inline]
    pub fn take_slots(&mut self, n: u32) {
        self.next += u64::from(n).min(self.tail - self.next);
    }

    /// Takes an inline message that the caller has found and read, with all its stamps, and tells the producer nothing.
    #[inline]
    pub fn note_inline(&mut self) {
        self.next += 1;
        self.tail = self.next;
    }

    /// Whether no message is known to be there, and the producer was told of all that were taken.
    #[inline]
    pub fn is_settled(&self) -> bool {
        self.tail == self.next && self.published == self.next
    }

    /// What the producer is to be told, if it is time, or if there is anything to tell and it is to know `all`: the caller then
    /// stores it in the credit line behind its reads.
    #[inline]
    pub fn credit_to_tell(&mut self, all: bool) -> Option<u64> {
        let due = credit_is_due(self.next, self.published, self.ring.capacity());
        let tells = due || (all && self.published != self.next);
        if tells {
            self.published = self.next;
        }
        tells.then_some(self.next)
    }

    /// What the next message's line says, for [`find_in`](Self::find_in).
    #[inline]
    pub fn look(&self) -> Control {
        // SYNC: acquires the producer's `publish`, so slots below the tail may be read.
        Control::from_words(S::observe(&self.ring.line(self.next).atoms[CONTROL]))
    }

    /// Messages known to be in slots.
    #[inline]
    fn in_slots(&self) -> usize {
        (self.tail - self.next) as usize
    }

    /// Takes the inline message that was found, if all its atoms have arrived; whether it has.
    #[inline]
    pub fn take_inline<T: Message>(&mut self, message: &mut T) -> bool {
        let whole = match T::SPAN {
            1 => self.put_together(message),
            _ => self.put_in_place(message),
        };
        if whole {
            self.advance();
            self.tail = self.next;
        }
        whole
    }

    /// Puts the inline message of one line together, if all its atoms have arrived.
    #[inline]
    fn put_together<T: Message>(&self, message: &mut T) -> bool {
        let (mut late, expected) = (0, stamp(self.next));
        let mut payload = InlinePayload::EMPTY;
        for k in 0..T::INLINE_ATOMS {
            // SYNC: a stamp proves its own atom; on a CPU it acquires what `push_inline` (or the channel)
            // released into it. On a GPU the control atom was acquired, and each stamp comes after the same
            // fence of the producer's as that does.
            let words = S::load_whole(self.ring.inline_atom(self.next, k));
            late |= stamp_of(words) ^ expected;
            payload = payload.with(k, words);
        }
        if late != 0 {
            return false;
        }
        payload.into(message);
        true
    }

    /// The same of a message of several lines, put together where it is: two atoms fill three words of it.
    #[inline]
    fn put_in_place<T: Message>(&self, message: &mut T) -> bool {
        let (mut late, expected) = (0, stamp(self.next));
        unrolled!(T::INLINE_ATOMS.div_ceil(2), pair => {
            let mut take = |k: usize| {
                if k >= T::INLINE_ATOMS {
                    return [0; 3];
                }
                // SYNC: as in `put_together`.
                let words = S::load_whole(self.ring.inline_atom(self.next, k));
                late |= stamp_of(words) ^ expected;
                payload_of(words).map(u64::from)
            };
            let ([a, b, c], [d, e, f]) = (take(2 * pair), take(2 * pair + 1));
            for (k, word) in [a | b << 32, c | d << 32, e | f << 32].into_iter().enumerate() {
                set_word64(message, 24 * pair + 8 * k, word);
            }
        });
        late == 0
    }

    /// The next message is taken.
    #[inline]
    fn advance(&mut self) {
        self.next += 1;
        self.publish_late();
    }

    /// Takes as many messages as `out` is long, all of them below the tail.
    #[inline]
    fn read_slots<T: Message>(&mut self, out: &mut [T]) {
        let [first, second] = runs(self.next, out.len(), self.ring.capacity());
        self.next += out.len() as u64;
        let (of_first, of_second) = out.split_at_mut(first.len());
        for (run, out) in [(first, of_first), (second, of_second)] {
            for (slot, message) in self.ring.slots(run).zip(out) {
                slot::read::<T, S>(slot, message);
            }
        }
        self.publish_late();
    }

    /// Takes and shows `n` messages, all of them below the tail.
    #[inline]
    fn show_slots<T: Message>(&mut self, n: usize, each: &mut impl FnMut(&T)) {
        /// The producer is told in time also when `each` panics.
        struct InTime<'a, S: MemoryScope>(&'a mut Inbox<S>);
        impl<S: MemoryScope> Drop for InTime<'_, S> {
            #[inline]
            fn drop(&mut self) {
                self.0.publish_late();
            }
        }
        let (ring, mut message) = (self.ring, T::zeroed());
        let consumer = InTime(self);
        for run in runs(consumer.0.next, n, ring.capacity()) {
            for slot in ring.slots(run) {
                slot::read_whole::<T, S>(slot, &mut message);
                consumer.0.next += 1;
                each(&message);
            }
        }
    }

    #[inline]
    fn publish_late(&mut self) {
        if credit_is_due(self.next, self.published, self.ring.capacity()) {
            self.publish();
        }
    }

    /// Tells the producer how much is consumed, if it does not know, and no more messages are known to be there: then it may send the
    /// next one inline at once.
    #[inline]
    pub fn publish_if_empty(&mut self) {
        if self.tail == self.next && self.published != self.next {
            self.publish();
        }
    }

    /// Tells the producer how much is consumed, now.
    #[inline]
    pub fn publish(&mut self) {
        self.published = self.next;
        // SYNC: releases our reads of the slots to `Outbox::refresh`, or to the channel's.
        S::store_release(&self.ring.credit().consumed, self.next);
    }

    /// Goes on as if `n` messages had been taken from slots; see `Outbox::fast_forward`.
    #[doc(hidden)]
    pub fn fast_forward(&mut self, n: u64) {
        self.next += n;
        self.tail = self.next;
        self.publish();
    }
}
