//! What a user does to a payload arena.

use crate::sequences::life::{Order, orders};
use crate::sequences::mixed;
use proptest::prelude::*;
use ring_host::PayloadMemory;
use std::ops::Range;

/// A run of words: first byte, how many.
pub type Run = (u64, usize);

/// What a user does next.
#[derive(Clone, Debug)]
pub enum Act {
    Write(Run, u32, bool),
    Read(Run, bool),
    /// Lengths of A, B and C.
    Add([usize; 3], u32),
    /// A request of one's own: elements, in the arena, offset.
    Request(u32, bool, u64),
    /// A request whose answer is left to be dropped.
    Leave(u32),
    TakeChannel,
    Order((Order, bool)),
    Look,
    Terminate,
}

fn runs() -> impl Strategy<Value = Run> {
    let offset = prop_oneof![
        6 => (0..80u64).prop_map(|word| 4 * word),
        1 => (0..40_000u64).prop_map(|word| 4 * word),
        1 => 0..300u64,
        1 => u64::MAX - 400..=u64::MAX,
    ];
    (offset, prop_oneof![5 => 0..60usize, 1 => 0..40_000usize])
}

/// So many acts, one after the other.
pub fn acts(count: Range<usize>) -> impl Strategy<Value = Vec<Act>> {
    let length = || prop_oneof![4 => 0..30usize, 2 => 20..100usize, 1 => 0..20_000usize];
    let lengths = prop_oneof![
        5 => length().prop_map(|n| [n; 3]),
        1 => [length(), length(), length()],
        1 => (length(), 0..3usize).prop_map(|(n, off)| [n, n, n + off]),
    ];
    let in_time = || prop::bool::weighted(0.9);
    let act = prop_oneof![
        5 => (runs(), any::<u32>(), in_time()).prop_map(|(run, of, in_time)| Act::Write(run, of, in_time)),
        5 => (runs(), in_time()).prop_map(|(run, in_time)| Act::Read(run, in_time)),
        5 => (lengths, any::<u32>()).prop_map(|(lengths, of)| Act::Add(lengths, of)),
        3 => (0..60u32, any::<bool>(), runs()).prop_map(|(n, arena, run)| Act::Request(n, arena, run.0)),
        1 => (1..26u32).prop_map(Act::Leave),
        1 => Just(Act::TakeChannel),
        4 => orders().prop_map(Act::Order),
        1 => Just(Act::Look),
    ];
    mixed(count, act, Just(Act::Terminate))
}

/// Arenas: none, not even a vector, few, the largest that lies in mapped memory and one that is larger, and several
/// copies long; where each lies.
pub fn arenas() -> impl Strategy<Value = (usize, PayloadMemory)> {
    let sizes = prop::sample::select(vec![0, 7, 300, 1 << 16, (1 << 16) + 4, 200_000]);
    (sizes, prop_oneof![3 => Just(PayloadMemory::Auto), 1 => Just(PayloadMemory::Device)])
}
