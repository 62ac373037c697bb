//! What host and lane say to each other of orders and launches, read and written by the host. The
//! lane's side is in `ring-device`, which moves these words with others.

use super::{Command, HostLine, LaneBlock, StatusLine};
use crate::atomics::Ordering::{Acquire, Release};

impl HostLine {
    /// Orders that. The host has seen every lane obey the order before, if it has written meanwhile what
    /// lanes read.
    #[inline]
    pub fn order(&self, command: Command) {
        // SYNC: releases all that the host wrote before to a lane's look at the command.
        self.command.store(command.to_word(), Release);
    }
}

impl StatusLine {
    /// What the lane has obeyed, and the state it is in. All that it did before it said so is there: its
    /// counters; and if it takes messages no more, its answers and its state.
    #[inline]
    pub fn obeyed(&self) -> Command {
        // SYNC: acquires the lane's acknowledgement.
        Command::from_word(self.acknowledged.load(Acquire))
    }

    /// Launches that the lane has left: it touches nothing more in any of them.
    #[inline]
    pub fn launches_left(&self) -> u64 {
        // SYNC: acquires the lane's last store of a launch, and all that it wrote before.
        self.left.load(Acquire)
    }
}

impl LaneBlock {
    /// Index after the last request that the lane has said to be consumed: of one that has left, exact.
    #[inline]
    pub fn consumed(&self) -> u64 {
        // SYNC: acquires the lane's credit: its reads of those slots come before our new messages.
        self.request_credit.consumed.load(Acquire)
    }
}
