//! Commands, acknowledgements and ends of launches, as the host writes and reads them. The channel's side is in
//! `ring-device`, which moves these words with others.

use super::{ChannelBlock, Command, HostLine, StatusLine};
use crate::atomics::Ordering::{Acquire, Release};

impl HostLine {
    /// Gives the channels a command. If the host has written meanwhile what channels read, every channel has
    /// acknowledged the command before.
    #[inline]
    pub fn give(&self, command: Command) {
        // SYNC: releases all that the host wrote before to a channel's look at the command.
        self.command.store(command.to_word(), Release);
    }

    /// Tells the blocks of a grid that one is lost which they meet on another device.
    pub fn lack_device(&self) {
        self.lacks_device.store(1, Release);
    }
}

impl StatusLine {
    /// The command that the channel has acknowledged last, with the state it is in. All that it wrote before it
    /// acknowledged is visible: its counters; and if it takes messages no more, its responses and its state.
    #[inline]
    pub fn acknowledgement(&self) -> Command {
        // SYNC: acquires the channel's acknowledgement.
        Command::from_word(self.acknowledged.load(Acquire))
    }

    /// Launches that the channel has left: but for what another thread of its block writes after a panic, it
    /// touches nothing more in any of them.
    #[inline]
    pub fn launches_left(&self) -> u64 {
        // SYNC: acquires the channel's last store of a launch, and all that it wrote before.
        self.launches_left.load(Acquire)
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
