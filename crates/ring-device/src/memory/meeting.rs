//! What meetings of a grid's blocks and meetings of several devices' blocks have in common.

use crate::block::{Cooperate, Threads};

/// Most blocks of a kernel of scope [`Grid`](crate::Grid).
pub const MAX_GRID_BLOCKS: u32 = 1024;

/// Copies of what a block brings to a meeting: polls of all blocks at one line would delay the stores to it.
pub(crate) const PLACES: usize = 4;

/// How many of them are used: as many as threads of a warp can write.
pub(crate) const USED: usize =
    if PLACES < Threads::WARP as usize { PLACES } else { Threads::WARP as usize };

/// Stamps are below this number, and then from zero on again.
pub(crate) const STAMPS: u32 = 1 << 30;

/// Looks at a block for each look at what else may have happened.
pub(crate) const LOOKS: u32 = 64;

/// Why blocks did not meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub(crate) enum Trouble {
    /// A handler has returned where another one waits at a barrier.
    Missed = 1,
    /// A handler has panicked.
    Panicked = 2,
    /// The grid of another device is lost.
    Elsewhere = 3,
}

impl Trouble {
    /// The one of that number, if it is one.
    #[inline(always)]
    pub fn from_word(word: u64) -> Option<Trouble> {
        match word {
            0 => None,
            1 => Some(Trouble::Missed),
            3 => Some(Trouble::Elsewhere),
            _ => Some(Trouble::Panicked),
        }
    }
}

/// How far a block has come: in all blocks the same, where they meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Progress {
    /// The last stamp: that of a message, or of the end of a launch.
    pub stamp: u32,
    /// Meetings, wrapping.
    pub meetings: u32,
}

impl Progress {
    /// At the next message, or at the end of the launch.
    #[inline(always)]
    pub fn next(self) -> Progress {
        Progress { stamp: self.stamp.wrapping_add(1) % STAMPS, ..self }
    }

    /// At the next meeting.
    #[inline(always)]
    pub fn meeting(self) -> Progress {
        Progress { meetings: self.meetings.wrapping_add(1), ..self }
    }
}
