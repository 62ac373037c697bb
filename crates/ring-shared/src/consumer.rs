//! The consuming end of a ring, run by one thread.

use crate::atomics::Ordering;
use crate::message::{Message, set_word64, unstamp};
use crate::ring::{CONTROL, Control, Corrupt, Ring, Seen, decide, stamp};

/// Takes messages out of a ring, in order, each once. There must be one consumer a ring.
#[derive(Debug)]
pub struct Consumer {
    ring: Ring,
    next: u64,
    /// Messages below this index are in slots and may be read.
    tail: u64,
    published: u64,
    /// Credit for the opposite ring, as last seen in the doorbell.
    credit: u32,
}

impl Consumer {
    /// The consumer of a ring that was [reset](Ring::reset) and not used since.
    pub fn new(ring: Ring) -> Consumer {
        let next = ring.start();
        Consumer { ring, next, tail: next, published: next, credit: next as u32 }
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

    /// Takes the next message, or says that there is none.
    #[inline]
    pub fn pop<T: Message>(&mut self) -> Result<Option<T>, Corrupt> {
        let mut message = T::zeroed();
        Ok((self.pop_slice(core::slice::from_mut(&mut message))? == 1).then_some(message))
    }

    /// Takes as many messages as are there and fit, in order, and says how many that is. An error
    /// is told only when nothing was taken, so no message is lost with it; `out` beyond the
    /// messages taken holds nothing of meaning.
    #[inline]
    pub fn pop_slice<T: Message>(&mut self, out: &mut [T]) -> Result<usize, Corrupt> {
        let mut taken = 0;
        while taken < out.len() {
            if self.tail == self.next {
                match self.look::<T>() {
                    Ok(Seen::Express) => {
                        if !self.take_express(&mut out[taken]) {
                            break;
                        }
                        taken += 1;
                        continue;
                    }
                    Ok(Seen::Slots(n)) => self.tail = self.next + u64::from(n),
                    Ok(_) => break,
                    Err(_) if taken > 0 => break, // the next call finds it again
                    Err(corrupt) => return Err(corrupt),
                }
            }
            let n = (out.len() - taken).min((self.tail - self.next) as usize);
            for message in &mut out[taken..taken + n] {
                self.read_slot(message);
                self.next += 1;
            }
            taken += n;
            self.publish_late();
        }
        Ok(taken)
    }

    /// Reads the control atom. Finding nothing is the moment to tell the producer all we consumed.
    #[inline]
    fn look<T: Message>(&mut self) -> Result<Seen, Corrupt> {
        // SYNC: acquires the producer's `publish_control`, so slots below the tail may be read.
        let control = Control::from_words(self.ring.bell().atoms[CONTROL].observe());
        self.credit = control.credit;
        match decide(control, self.next, self.ring.capacity()) {
            Seen::Nothing if self.published != self.next => {
                self.publish();
                Ok(Seen::Nothing)
            }
            Seen::Express if !T::FITS_EXPRESS => {
                let (found, low) = (self.next, self.next + 1);
                Err(Corrupt { found, low, high: low })
            }
            Seen::Corrupt(corrupt) => Err(corrupt),
            seen => Ok(seen),
        }
    }

    /// Reads the express message if all its atoms have arrived.
    #[inline]
    fn take_express<T: Message>(&mut self, message: &mut T) -> bool {
        for (k, atom) in self.ring.bell().atoms.iter().take(T::EXPRESS_ATOMS).enumerate() {
            // SYNC: acquires the stamp that `push_express` (or the lane) released into this atom.
            let words = atom.observe();
            if (words[1] >> 32) as u32 != stamp(self.next) {
                return false;
            }
            unstamp(message, k, words);
        }
        self.next += 1;
        self.tail = self.next;
        self.publish_late();
        true
    }

    #[inline]
    fn read_slot<T: Message>(&self, message: &mut T) {
        for (k, atom) in self.ring.slot(self.next).iter().take(T::SLOT_ATOMS).enumerate() {
            let [lo, hi] = atom.load();
            set_word64(message, 16 * k, lo);
            set_word64(message, 16 * k + 8, hi);
        }
    }

    #[inline]
    fn publish_late(&mut self) {
        if self.next - self.published >= u64::from(self.ring.capacity()).div_ceil(4) {
            self.publish();
        }
    }

    /// Tells the producer how much is consumed, now.
    #[inline]
    pub fn publish(&mut self) {
        self.published = self.next;
        // SYNC: releases our reads of the slots to `Producer::refresh`, or to the lane's.
        self.ring.credit().consumed.store(self.next, Ordering::Release);
    }

    /// Goes on as if `n` messages had been taken from slots; see `Producer::fast_forward`.
    #[doc(hidden)]
    pub fn fast_forward(&mut self, n: u64) {
        self.next += n;
        self.tail = self.next;
        self.publish();
    }
}
