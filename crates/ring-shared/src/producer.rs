//! The producing end of a ring, run by one thread.

use crate::atomics::Ordering;
use crate::message::{Message, stamped, word64};
use crate::ring::{CONTROL, Control, Corrupt, PushError, Ring, SCRUB, express_field, room, stamp};

/// Puts messages into a ring. There must be one producer a ring; a second would overwrite what
/// the first wrote (but never out of bounds).
#[derive(Debug)]
pub struct Producer {
    ring: Ring,
    next: u64,
    consumed: u64,
    last_express: u64,
    last_stamped: u64,
    /// Credit last written into the doorbell.
    told: u64,
}

impl Producer {
    /// The producer of a ring that was [reset](Ring::reset) and not used since.
    pub fn new(ring: Ring) -> Producer {
        let next = ring.start();
        Producer {
            ring,
            next,
            consumed: next,
            last_express: next.wrapping_sub(1),
            last_stamped: next,
            told: next,
        }
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

    /// Says that everything before `index` is consumed, as an answer to message `index - 1`
    /// proves. Saves the read of the credit line and lets the next message travel express.
    #[inline]
    pub fn note_consumed(&mut self, index: u64) {
        if index > self.consumed && index <= self.next {
            self.consumed = index;
        }
    }

    /// Pushes one message, express if everything before it is consumed and it fits. `credit` is
    /// the number of messages this side has consumed from the opposite ring, as an index.
    #[inline]
    pub fn push<T: Message>(&mut self, message: &T, credit: u64) -> Result<(), PushError> {
        if T::FITS_EXPRESS && self.all_consumed()? {
            self.push_express(message, credit);
            return Ok(());
        }
        if self.free_slots(1)? == 0 {
            self.tell_credit(credit);
            return Err(PushError::Full);
        }
        self.fill(self.next, message);
        self.ring_tail(self.next + 1, credit);
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
        let n = messages.len().min(self.free_slots(messages.len())? as usize);
        if n == 0 {
            self.tell_credit(credit);
        }
        for (index, message) in (self.next..).zip(&messages[..n]) {
            self.fill(index, message);
        }
        if n > 0 {
            self.ring_tail(self.next + n as u64, credit);
        }
        Ok(n)
    }

    /// Whether the consumer has taken everything; looks at its credit line only if need be.
    #[inline]
    fn all_consumed(&mut self) -> Result<bool, Corrupt> {
        if self.consumed != self.next {
            self.refresh()?;
        }
        Ok(self.consumed == self.next)
    }

    /// Free slots, after a look at the credit line if fewer than `wanted` are known to be free.
    #[inline]
    fn free_slots(&mut self, wanted: usize) -> Result<u32, Corrupt> {
        let known = room(self.next, self.consumed, self.ring.capacity());
        if known as usize >= wanted {
            return Ok(known);
        }
        self.refresh()?;
        Ok(room(self.next, self.consumed, self.ring.capacity()))
    }

    fn refresh(&mut self) -> Result<(), Corrupt> {
        // SYNC: acquires the consumer's release in `Consumer::publish` (or the lane's store after
        // its fence): its reads of the slots came before, ours and new writes come after.
        let found = self.ring.credit().consumed.load(Ordering::Acquire);
        if found > self.next || found < self.ring.start() {
            return Err(Corrupt { found, low: self.ring.start(), high: self.next });
        }
        self.note_consumed(found); // an answer may have told more already
        Ok(())
    }

    #[inline]
    fn push_express<T: Message>(&mut self, message: &T, credit: u64) {
        let (index, bell) = (self.next, self.ring.bell());
        for k in 0..T::EXPRESS_ATOMS {
            // SYNC: each stamp is released to the consumer's `observe` of the same atom.
            bell.atoms[k].publish(stamped(message, k, stamp(index)));
        }
        (self.last_express, self.last_stamped) = (index, index);
        self.next = index + 1;
        self.publish_control(index as u32, credit);
    }

    #[inline]
    fn fill<T: Message>(&self, index: u64, message: &T) {
        for (k, atom) in self.ring.slot(index).iter().take(T::SLOT_ATOMS).enumerate() {
            atom.store([word64(message, 16 * k), word64(message, 16 * k + 8)]);
        }
    }

    #[inline]
    fn ring_tail(&mut self, tail: u64, credit: u64) {
        if tail - self.last_stamped > SCRUB && self.last_express.wrapping_add(1) <= self.consumed {
            self.scrub();
        }
        self.next = tail;
        self.publish_control(express_field(self.last_express, self.consumed, tail), credit);
    }

    #[inline]
    fn publish_control(&mut self, express: u32, credit: u64) {
        self.told = credit;
        let control = Control { credit: credit as u32, express, tail: self.next as u32 };
        // SYNC: releases slots and stamps (with the tail) and our reads of the opposite ring's
        // slots (with the credit) to the consumer's `observe` of the control atom.
        self.ring.bell().atoms[CONTROL].publish(control.to_words());
    }

    /// Renews the credit in the doorbell although there is nothing to send: the consumer may be
    /// waiting for it before it can make room for us.
    #[cold]
    fn tell_credit(&mut self, credit: u64) {
        if credit != self.told {
            self.publish_control(
                express_field(self.last_express, self.consumed, self.next),
                credit,
            );
        }
    }

    /// Overwrites stamps so old that their 32 bits could come round again. The new stamp is that of
    /// the last message known to be consumed: no reader waits for it, not even one that looks at
    /// stamps before it looks at the control atom.
    #[cold]
    fn scrub(&mut self) {
        for atom in &self.ring.bell().atoms[..CONTROL] {
            atom.publish([0, self.consumed << 32]);
        }
        self.last_stamped = self.consumed;
    }

    /// Goes on as if `n` messages had been pushed and consumed through slots, `n` at most
    /// [`SCRUB`] a step: for tests of what happens after billions of messages.
    #[doc(hidden)]
    pub fn fast_forward(&mut self, n: u64, credit: u64) {
        (self.next, self.consumed) = (self.next + n, self.next + n);
        self.ring_tail(self.next, credit);
    }
}
