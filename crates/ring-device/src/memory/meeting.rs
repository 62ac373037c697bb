//! What meetings of a grid's blocks and meetings of several devices' blocks have in common.

use crate::block::{Cooperate, Threads};
use ring_shared::atomics::{Atom, MemoryScope};
use ring_shared::ring::{payload_of, stamp_of};

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

/// Warps of a block: wait until the first `blocks` atoms have that stamp, each thread for some of them, always the same ones, and for
/// no more than one at a time: a warp for those side by side from `first` on, and then for as many that are `step` further on. `each` is told
/// of what an atom brings: its third word, by which `meets` tells whether the block has come to this meeting, and the value in the first
/// two. `trouble` says with every [`LOOKS`]th look, of which it is told, whether it cannot take place. A warp returns when those that its
/// threads wait for are there, so that a barrier of the block must follow where all are to know it.
#[inline(always)]
pub(crate) fn wait_for_all<S: MemoryScope>(
    threads: Threads,
    (mut first, step): (u32, u32),
    brought: &[Atom],
    (blocks, stamp, acquires): (u32, u32, bool),
    (trouble, meets): (impl Fn(u32) -> Option<Trouble>, impl Fn(u32) -> bool),
    mut each: impl FnMut(u32, u64),
) -> Result<(), Trouble> {
    while first < blocks {
        let of = first + threads.lane();
        let waits = of < blocks;
        let Some(atom) = brought.get(if waits { of as usize } else { 0 }) else { break };
        let mut looks = 0u32;
        let words = loop {
            let words = match acquires {
                // SYNC: acquires what that block has released in `come`.
                true => S::observe(atom),
                false => S::load_whole(atom),
            };
            if threads.all(!waits || stamp_of(words) == stamp) {
                break words;
            }
            looks = looks.saturating_add(1);
            if looks.is_multiple_of(LOOKS)
                && let Some(trouble) = trouble(looks)
            {
                return Err(trouble);
            }
            threads.pause(looks, true);
        };
        let [low, high, third] = payload_of(words);
        if !threads.all(!waits || meets(third)) {
            return Err(Trouble::Missed);
        }
        if waits {
            each(third, u64::from(low) | u64::from(high) << 32);
        }
        first += step;
    }
    Ok(())
}
