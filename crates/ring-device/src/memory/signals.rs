//! What sends a block from waiting to work, and from work back to waiting or off the device.

use crate::block::cell::{Cell, Word};
use ring_shared::layout::Exit;

/// What a polling warp found for the whole block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub(crate) enum Wake {
    /// Nothing yet.
    None = 0,
    /// Requests up to [`Inbox::tail`](super::inbox::Inbox::tail) are in slots.
    Slots = 1,
    /// Request [`Inbox::staged`](super::inbox::Inbox::staged) came inline and is in the input window.
    Inline = 2,
    /// The host wrote [`Signals::command`].
    Command = 3,
    /// The channel is to leave; [`Signals::decision`] says why.
    Leave = 4,
}

impl Word for Wake {
    #[inline(always)]
    fn to_word(self) -> u64 {
        self as u64
    }

    #[inline(always)]
    fn from_word(word: u64) -> Wake {
        match word {
            0 => Wake::None,
            1 => Wake::Slots,
            2 => Wake::Inline,
            3 => Wake::Command,
            _ => Wake::Leave,
        }
    }
}

/// What one thread decides for all threads of the block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    /// Go on.
    Continue,
    /// Go back to waiting.
    Wait,
    /// Obey [`Signals::command`] at once: the polling warps might not come to it, since the one that looks
    /// for commands may find each time that the other has raised a wake for the same message.
    Obey,
    /// Leave the device.
    Leave(Exit),
}

impl Word for Decision {
    #[inline(always)]
    fn to_word(self) -> u64 {
        match self {
            Decision::Continue => 0,
            Decision::Leave(why) => why as u64,
            Decision::Wait => u64::MAX,
            Decision::Obey => u64::MAX - 1,
        }
    }

    #[inline(always)]
    fn from_word(word: u64) -> Decision {
        const ASKED: u64 = Exit::Asked as u64;
        const TIME: u64 = Exit::TimeSpent as u64;
        const ITERATIONS: u64 = Exit::IterationsSpent as u64;
        const IDLE: u64 = Exit::Idle as u64;
        const LEASE: u64 = Exit::LeaseOver as u64;
        const WAIT: u64 = u64::MAX;
        const OBEY: u64 = u64::MAX - 1;
        Decision::Leave(match word {
            0 => return Decision::Continue,
            WAIT => return Decision::Wait,
            OBEY => return Decision::Obey,
            ASKED => Exit::Asked,
            TIME => Exit::TimeSpent,
            ITERATIONS => Exit::IterationsSpent,
            IDLE => Exit::Idle,
            LEASE => Exit::LeaseOver,
            _ => Exit::CorruptRing,
        })
    }
}

/// What the threads of a block signal to each other. `wake` is raced for by the polling warps; the rest is set by
/// the thread that won it, or looked, and read by all behind a barrier.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Signals {
    /// What the block wakes for.
    pub wake: Cell<Wake>,
    /// With [`Wake::Leave`], and where one thread has looked for all.
    pub decision: Cell<Decision>,
    /// Whether to continue after a window; in a stream, why the committer dispatches no more.
    pub stop: Cell<Decision>,
    /// The command word of the host that was read last.
    pub command: Cell<u64>,
    /// The boot's look is the only one of this launch so far.
    pub fresh: Cell<bool>,
    /// The launch began with an answer, which is not counted yet.
    pub answered_first: Cell<bool>,
}

/// The channel's state on the device. Set by thread 0, `panicked` by any.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Life {
    /// The last command word acknowledged.
    pub acknowledged: Cell<u64>,
    /// Messages are taken.
    pub active: Cell<bool>,
    /// A handler has panicked: the block's threads end, one after the other.
    pub panicked: Cell<bool>,
    /// Address of the control block.
    pub control: Cell<u64>,
    /// Address of the channel's block.
    pub lines: Cell<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decisions_and_wakes_survive() {
        let exits = [1, 3, 5, 6, 7, 8].map(|n| Decision::Leave(Exit::from_u32(n).unwrap()));
        for decision in
            [Decision::Continue, Decision::Wait, Decision::Obey].into_iter().chain(exits)
        {
            assert_eq!(Decision::from_word(decision.to_word()), decision);
        }
        for wake in [Wake::None, Wake::Slots, Wake::Inline, Wake::Command, Wake::Leave] {
            assert_eq!(Wake::from_word(wake.to_word()), wake);
        }
    }
}
