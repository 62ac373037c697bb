//! What a hostile side writes.

use libfuzzer_sys::arbitrary::{self, Arbitrary};

/// Something to write where another value would be honest: anything, or close to it, since what is
/// nearly right passes the most checks.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub enum Lie {
    /// This, whatever is honest.
    Any(u64),
    /// A small number.
    Small(u8),
    /// Off by so many.
    Near(i8),
    /// Off by that power of two.
    Far(u8),
    /// As many below what a word holds.
    Last(u8),
}

impl Lie {
    /// What is written in place of `honest`.
    pub fn apply(self, honest: u64) -> u64 {
        match self {
            Lie::Any(word) => word,
            Lie::Small(number) => number.into(),
            Lie::Near(off) => honest.wrapping_add_signed(off.into()),
            Lie::Far(power) => honest.wrapping_add(1 << (power % 64)),
            Lie::Last(below) => u64::MAX - u64::from(below),
        }
    }

    /// The same in 32 bits.
    pub fn apply32(self, honest: u32) -> u32 {
        match self {
            Lie::Last(below) => u32::MAX - u32::from(below),
            Lie::Far(power) => honest.wrapping_add(1 << (power % 32)),
            other => other.apply(honest.into()) as u32,
        }
    }
}

/// Index of a ring's first message: any that is allowed, most of them where 32 bits come round.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub enum Start {
    /// The usual.
    Zero,
    /// As many below a multiple of 2^32.
    Round(u8, u16),
    /// Any.
    Any(u64),
    /// As many below the greatest.
    Last(u8),
}

impl Start {
    /// The index.
    pub fn index(self) -> u64 {
        use ring_shared::ring::MAX_START;
        let start = match self {
            Start::Zero => 0,
            Start::Round(below, of) => ((1 + u64::from(of)) << 32) - u64::from(below),
            Start::Any(index) => index,
            Start::Last(below) => MAX_START - u64::from(below),
        };
        start.min(MAX_START)
    }
}
