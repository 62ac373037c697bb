//! A ring in three allocations, each of just its size, so that one byte too far is nobody's. The fuzz targets
//! of rings use it too.
#![allow(dead_code)] // each uses a part

use ring_shared::atomics::Atom;
use ring_shared::layout::{CreditLine, Doorbell};
use ring_shared::ring::Control;
use ring_shared::{Corrupt, Ring};
use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ptr::NonNull;

/// Zeroed memory of just its size, which goes with this.
#[derive(Debug)]
pub struct Memory {
    at: NonNull<u8>,
    layout: Layout,
}

impl Memory {
    /// So many bytes, at least one, at a multiple of `align`.
    pub fn new(bytes: usize, align: usize) -> Memory {
        let layout = Layout::from_size_align(bytes.max(1), align).expect("a small layout");
        // SAFETY: not of size zero.
        let at = unsafe { alloc_zeroed(layout) };
        at.expose_provenance();
        Memory { at: NonNull::new(at).unwrap_or_else(|| handle_alloc_error(layout)), layout }
    }

    /// Where it is.
    pub fn at<T>(&self) -> NonNull<T> {
        assert!(self.layout.size() >= size_of::<T>() && self.layout.align() >= align_of::<T>());
        self.at.cast()
    }

    /// Where it is, as its descriptor says.
    pub fn address(&self) -> u64 {
        self.at.as_ptr().addr() as u64
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: from `alloc_zeroed` with this layout, and not used any more.
        unsafe { dealloc(self.at.as_ptr(), self.layout) };
    }
}

/// The parts of a ring.
#[derive(Debug)]
pub struct Parts {
    lines: Memory,
    credit: Memory,
    slots: Memory,
    line_count: u32,
    span: u32,
    capacity: u32,
    slot_atoms: u32,
    start: u64,
}

impl Parts {
    /// A ring of one line as it is before the first message.
    pub fn new(capacity: u32, slot_atoms: u32, start: u64) -> Parts {
        Parts::with_lines((1, 1), capacity, slot_atoms, start)
    }

    /// A ring as it is before the first message, with lines for so many messages, and so many lines each.
    pub fn with_lines(
        (line_count, span): (u32, u32),
        capacity: u32,
        slot_atoms: u32,
        start: u64,
    ) -> Parts {
        let lines = (line_count * span) as usize;
        let parts = Parts {
            lines: Memory::new(lines * size_of::<Doorbell>(), align_of::<Doorbell>()),
            credit: Memory::new(size_of::<CreditLine>(), align_of::<CreditLine>()),
            slots: Memory::new((capacity * slot_atoms) as usize * size_of::<Atom>(), 16),
            line_count,
            span,
            capacity,
            slot_atoms,
            start,
        };
        parts.ring().reset();
        parts
    }

    /// The ring.
    pub fn ring(&self) -> Ring {
        let parts = (self.lines.at(), self.credit.at(), self.slots.at());
        // SAFETY: three parts of those sizes, zeroed, which is a valid state of atomics; nobody here
        // keeps a ring longer than its parts.
        unsafe {
            Ring::from_raw(
                parts,
                (self.line_count, self.span),
                (self.capacity, self.slot_atoms),
                self.start,
            )
        }
        .expect("powers of two")
    }
}

/// Asserts that a control that cannot be is refused, with what was found and what could have been.
pub fn check_look(got: Result<bool, Corrupt>, control: Control, next: u64, capacity: u32) {
    let Control { first, tail, .. } = control;
    let ahead = tail.wrapping_sub(next as u32);
    let impossible = ahead > capacity && ahead <= u32::MAX / 2;
    match got {
        Ok(taken) => {
            assert!(!impossible, "tail {tail:#x} acted on at {next:#x} with {capacity} slots");
            assert!(!taken || (1..=capacity).contains(&ahead));
        }
        Err(corrupt) if impossible => {
            let (low, high) = (next as u32, (next as u32).wrapping_add(capacity));
            let expected = Corrupt { found: tail.into(), low: low.into(), high: high.into() };
            assert_eq!(corrupt, expected);
        }
        Err(corrupt) if (1..=capacity).contains(&ahead) && tail.wrapping_sub(first) > capacity => {
            let low = tail.wrapping_sub(capacity);
            let expected = Corrupt { found: first.into(), low: low.into(), high: tail.into() };
            assert_eq!(corrupt, expected);
        }
        // The next message is in no slot, and such messages are never inline.
        Err(corrupt) => assert_eq!((corrupt.found, corrupt.low), (next, next + 1)),
    }
}
