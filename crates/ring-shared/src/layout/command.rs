//! What host and channel say to each other of orders and launches, read and written by the host. The
//! channel's side is in `ring-device`, which moves these words with others.

use super::{ChannelBlock, Command, HostLine, StatusLine};
use crate::atomics::Ordering::{Acquire, Release};

impl HostLine {
    /// Orders that. The host has seen every channel obey the order before, if it has written meanwhile what
    /// channels read.
    #[inline]
    pub fn order(&self, command: Command) {
        // SYNC: releases all that the host wrote before to a channel's look at the command.
        self.command.store(command.to_word(), Release);
    }
}

impl StatusLine {
    /// What the channel has obeyed, and the state it is in. All that it did before it said so is there: its
    /// counters; and if it takes messages no more, its answers and its state.
    #[inline]
    pub fn obeyed(&self) -> Command {
        // SYNC: acquires the channel's acknowledgement.
        Command::from_word(self.acknowledged.load(Acquire))
    }

    /// Launches that the channel has left: it touches nothing more in any of them.
    #[inline]
    pub fn launches_left(&self) -> u64 {
        // SYNC: acquires the channel's last store of a launch, and all that it wrote before.
        self.left.load(Acquire)
    }
}

impl ChannelBlock {
    /// Index after the last request that the channel has said to be consumed: of one that has left, exact.
    #[inline]
    pub fn consumed(&self) -> u64 {
        // SYNC: acquires the channel's credit: its reads of those slots come before our new messages.
        self.request_credit.consumed.load(Acquire)
    }
}
