//! A ring, and what is done to it.

use crate::Parts;
use crate::lie::Start;
use libfuzzer_sys::arbitrary::{self, Arbitrary};

/// A ring and the acts of a target.
#[derive(Arbitrary, Debug)]
pub struct Input<A> {
    log2: u8,
    slot_atoms: u8,
    start: Start,
    size: u8,
    lines: u8,
    span: u8,
    /// What is done.
    pub acts: Vec<A>,
}

impl<A> Input<A> {
    /// The ring, of lines for up to 64 messages, up to four each, and up to 64 slots. Its slots may be too small for the message, as when a kernel and a host disagree.
    pub fn parts(&self) -> Parts {
        let (capacity, lines) = (1 << (self.log2 % 7), 1 << (self.lines % 7));
        let slot_atoms = 1 + u32::from(self.slot_atoms % 9);
        let span = 1 + u32::from(self.span % 4);
        Parts::with_lines((lines, span), capacity, slot_atoms, self.start.index())
    }

    /// Which of five sizes its messages have.
    pub fn size(&self) -> u8 {
        self.size % 5
    }
}
