//! Ring memory on the heap: for tests, model checking and examples.

use crate::atomics::{Atom, AtomicU64};
use crate::layout::{CreditLine, Doorbell};
use crate::message::Message;
use crate::ring::Ring;
use core::ptr::NonNull;

/// The three parts of one ring.
#[derive(Debug)]
pub struct RingMemory {
    /// What loom watches; ends before the memory does.
    #[cfg(loom)]
    watched: Vec<crate::atomics::model::Shared>,
    lines: Vec<Doorbell>,
    credit: CreditLine,
    slots: Vec<Atom>,
    line_count: u32,
    capacity: u32,
    start: u64,
}

impl RingMemory {
    /// Memory for `capacity` messages of type `T`, the first of index `start`.
    ///
    /// The memory is shared by everything made of [`ring`](Self::ring) and is never given back:
    /// keep it for tests.
    ///
    /// # Panics
    /// If the capacity is not a power of two up to [`MAX_CAPACITY`](crate::ring::MAX_CAPACITY).
    pub fn new<T: Message>(capacity: u32, start: u64) -> &'static RingMemory {
        Box::leak(Self::boxed::<T>(capacity, start))
    }

    /// As [`new`](Self::new), but given back when dropped: for the model checker, which makes
    /// rings by the million.
    #[doc(hidden)]
    pub fn boxed<T: Message>(capacity: u32, start: u64) -> Box<RingMemory> {
        Self::with_lines::<T>(1, capacity, start)
    }

    /// As [`boxed`](Self::boxed), with doorbell lines for so many messages, as many lines each as a message takes.
    #[doc(hidden)]
    pub fn with_lines<T: Message>(line_count: u32, capacity: u32, start: u64) -> Box<RingMemory> {
        let zero = || Atom::new([0, 0]);
        let lines = line_count * T::SPAN as u32;
        #[cfg_attr(not(loom), allow(unused_mut))]
        let mut memory = Box::new(RingMemory {
            #[cfg(loom)]
            watched: Vec::new(),
            lines: (0..lines)
                .map(|_| Doorbell { atoms: core::array::from_fn(|_| zero()) })
                .collect(),
            credit: CreditLine::new(AtomicU64::new(0)),
            slots: (0..capacity as usize * T::SLOT_ATOMS).map(|_| zero()).collect(),
            line_count,
            capacity,
            start,
        });
        // SAFETY: the memory is not dropped in this statement.
        unsafe { memory.ring_for_now() }.reset();
        #[cfg(loom)]
        {
            use crate::atomics::model::{Kind, share};
            let of_lines = share(&memory.lines[..], |_| Some(Kind::Atomic));
            let of_credit = share(&memory.credit, |_| Some(Kind::Atomic));
            let of_slots = share(&memory.slots[..], |_| Some(Kind::Atomic));
            memory.watched = vec![of_lines, of_credit, of_slots];
        }
        memory
    }

    /// The ring in this memory.
    pub fn ring(&'static self) -> Ring {
        // SAFETY: the memory is never dropped.
        unsafe { self.ring_for_now() }
    }

    /// The ring in this memory, which may end.
    ///
    /// # Safety
    /// The memory stays where it is for as long as the ring or a copy of it is used.
    #[doc(hidden)]
    pub unsafe fn ring_for_now(&self) -> Ring {
        let atoms = self.slots.len() as u32 / self.capacity;
        let span = self.lines.len() as u32 / self.line_count;
        // SAFETY: the three parts stay as long as the caller promised, and `slots` has `capacity`
        // slots.
        unsafe {
            Ring::from_raw(
                (
                    NonNull::new(self.lines.as_ptr().cast_mut()).expect("a vector's pointer"),
                    NonNull::from(&self.credit),
                    NonNull::new(self.slots.as_ptr().cast_mut()).expect("a vector's pointer"),
                ),
                (self.line_count, span),
                (self.capacity, atoms),
                self.start,
            )
        }
        .expect("powers of two")
    }
}
