//! What a user does to a kernel and its channels.

use crate::sequences::launches::{Flaw, flaws};
use crate::sequences::life::{Order, orders};
use crate::sequences::mixed;
use crate::sequences::track::{Step, steps};
use proptest::prelude::*;
use std::ops::Range;

/// What a user does next. Channels are counted modulo those there are.
#[derive(Clone, Debug)]
pub enum Act {
    /// At the ends of a channel; through which calls, where there is more than one way.
    At(u32, u32, Step),
    /// Takes a channel out of the kernel.
    TakeOut(u32),
    /// Takes a channel that was taken out apart.
    Split(u32),
    /// Makes sink and stream of halves, or halves of those.
    Flow(u32),
    /// Halves of one channel on threads.
    Threads(u32, u64),
    /// Halves of all channels that were taken out, while the kernel pauses so often.
    AllThreads(u64, u32),
    Order((Order, bool)),
    /// Asks for channels that are not there.
    NoChannel(u32),
    Look,
    Rest(bool),
    Pause(u64),
    Refused(Flaw),
    /// Drops the kernel; channels that were taken out stay.
    Drop,
    /// Ends the kernel, receives what is left, and launches it again.
    Terminate,
}

/// So many acts, one after the other.
pub fn acts(count: Range<usize>) -> impl Strategy<Value = Vec<Act>> {
    let channel = || 0..3u32;
    let act = prop_oneof![
        28 => (channel(), 0..3u32, steps()).prop_map(|(channel, by, step)| Act::At(channel, by, step)),
        2 => channel().prop_map(Act::TakeOut),
        1 => channel().prop_map(Act::Split),
        2 => channel().prop_map(Act::Flow),
        1 => (channel(), 1..60u64).prop_map(|(channel, n)| Act::Threads(channel, n)),
        1 => (1..60u64, 0..3u32).prop_map(|(n, pauses)| Act::AllThreads(n, pauses)),
        8 => orders().prop_map(Act::Order),
        1 => (0..4u32).prop_map(Act::NoChannel),
        2 => Just(Act::Look),
        2 => prop::bool::ANY.prop_map(Act::Rest),
        2 => (0..400u64).prop_map(Act::Pause),
        1 => flaws().prop_map(Act::Refused),
    ];
    let end = prop_oneof![
        1 => Just(Act::Order((Order::Terminate, false))),
        1 => Just(Act::Drop),
        3 => Just(Act::Terminate),
    ];
    mixed(count, act, end)
}
