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
    /// The same of the next request; its response goes inline, and there is no budget to look after.
    InlineBoth = 5,
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
            5 => Wake::InlineBoth,
            _ => Wake::Leave,
        }
    }
}

/// What one thread decides for all threads of the block: to go on, to go back to waiting, to obey a command, or
/// to leave the device, and then why. Flat, and with the numbers of [`Exit`]: a decision and its word are
/// made of each other without a branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub(crate) enum Decision {
    /// Go on.
    Continue = 0,
    /// Leave: [`Exit::Asked`].
    Asked = 1,
    /// Leave: [`Exit::BadConfig`].
    BadConfig = 2,
    /// Leave: [`Exit::CorruptRing`].
    CorruptRing = 3,
    /// Leave: [`Exit::HandlerPanicked`].
    HandlerPanicked = 4,
    /// Leave: [`Exit::TimeSpent`].
    TimeSpent = 5,
    /// Leave: [`Exit::IterationsSpent`].
    IterationsSpent = 6,
    /// Leave: [`Exit::Idle`].
    Idle = 7,
    /// Leave: [`Exit::LeaseOver`].
    LeaseOver = 8,
    /// Leave: [`Exit::EmittedTooMany`].
    EmittedTooMany = 9,
    /// Leave: [`Exit::NoSuchChannel`].
    NoSuchChannel = 10,
    /// Go back to waiting.
    Wait = 11,
    /// Obey [`Signals::command`] at once: the polling warps might not come to it, since the one that looks
    /// for commands may find each time that the other has raised a wake for the same message.
    Obey = 12,
}

impl Decision {
    /// Why to leave, if that was decided.
    #[inline(always)]
    pub fn exit(self) -> Option<Exit> {
        Some(match self {
            Decision::Continue | Decision::Wait | Decision::Obey => return None,
            Decision::Asked => Exit::Asked,
            Decision::BadConfig => Exit::BadConfig,
            Decision::CorruptRing => Exit::CorruptRing,
            Decision::HandlerPanicked => Exit::HandlerPanicked,
            Decision::TimeSpent => Exit::TimeSpent,
            Decision::IterationsSpent => Exit::IterationsSpent,
            Decision::Idle => Exit::Idle,
            Decision::LeaseOver => Exit::LeaseOver,
            Decision::EmittedTooMany => Exit::EmittedTooMany,
            Decision::NoSuchChannel => Exit::NoSuchChannel,
        })
    }
}

impl Word for Decision {
    #[inline(always)]
    fn to_word(self) -> u64 {
        self as u64
    }

    #[inline(always)]
    fn from_word(word: u64) -> Decision {
        match word {
            0 => Decision::Continue,
            1 => Decision::Asked,
            2 => Decision::BadConfig,
            4 => Decision::HandlerPanicked,
            5 => Decision::TimeSpent,
            6 => Decision::IterationsSpent,
            7 => Decision::Idle,
            8 => Decision::LeaseOver,
            9 => Decision::EmittedTooMany,
            10 => Decision::NoSuchChannel,
            11 => Decision::Wait,
            12 => Decision::Obey,
            _ => Decision::CorruptRing,
        }
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
    /// A handler has asked for words of the payload arena, which it may write. Set by any thread that a handler runs in;
    /// where the whole block answers, thread 0 takes it back behind the answer.
    pub uses_payload: Cell<bool>,
    /// The boot's look is the only one of this launch so far that messages could be taken by.
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
    /// Address of the runtime's table of buffers: 0 until a handler asks for a view, 1 if there is none. Set by any
    /// thread that a handler runs in, all to the same.
    pub buffers: Cell<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decisions_and_wakes_survive() {
        for word in 0..=12 {
            let decision = Decision::from_word(word);
            assert_eq!(decision.to_word(), word);
            let exit = (1..11).contains(&word).then(|| Exit::from_u32(word as u32).unwrap());
            assert_eq!(decision.exit(), exit);
        }
        use Wake::{Command, Inline, InlineBoth, Leave, None, Slots};
        for wake in [None, Slots, Inline, InlineBoth, Command, Leave] {
            assert_eq!(Wake::from_word(wake.to_word()), wake);
        }
    }
}
