//! A look at all rings at once, and what the first warp keeps in registers of their ends to compare it with. The ends themselves
//! are in the block's memory.

use crate::block::{Cooperate, Words};
use crate::dispatch::channel::Channel;
use crate::emissions::line_atoms;
use crate::kernel::Kernel;
use crate::memory::links::Lane;
use ring_shared::ring::CONTROL;

/// What a lane of the first warp knows of the end whose ring it looks at, where one look shows all rings: a copy of what is in
/// the block's memory, and which words of a look are compared with it.
#[derive(Clone, Copy)]
pub(super) struct Known {
    /// Index of the ring's next message.
    pub next: u64,
    /// Messages known to be consumed, as an index, if it is an output.
    pub consumed: u64,
    /// All ones if the atom's last word says of which message it is: atoms of a request, and the control atom.
    is_of_message: u32,
    /// All ones if it is a control atom.
    is_control: u32,
    /// All ones if it is the credit of an output.
    is_credit: u32,
    /// All ones if there is no such input, or none of its messages comes inline.
    is_missing: u32,
    /// Not zero if an input is not [settled](ring_shared::Inbox::is_settled).
    is_unsettled: u32,
}

/// A look that has begun, by each lane of the first warp.
#[derive(Clone, Copy)]
pub(super) struct Look {
    /// The lane has an output whose consumer has taken all. Its credit need not be looked at: that of the host is across the
    /// bus.
    pub is_idle: bool,
    /// What was seen, where one look shows all rings.
    pub words: Words,
}

impl Known {
    /// A lane that looks at nothing.
    pub const NOTHING: Known = Known {
        next: 0,
        consumed: 0,
        is_of_message: 0,
        is_control: 0,
        is_credit: 0,
        is_missing: 0,
        is_unsettled: 0,
    };

    /// Whether it is an output whose consumer has taken all.
    #[inline(always)]
    pub fn has_idle_output(&self) -> bool {
        self.is_credit != 0 && self.next == self.consumed
    }

    /// Whether the look shows the lane's part of an inline message, the next one, or an output that is idle; or if there is
    /// nothing that it could show.
    #[inline(always)]
    pub fn is_whole(&self, look: Look) -> bool {
        let [low, high] = look.words;
        let turn = (self.next as u32).wrapping_add(1);
        let of_message = ((high >> 32) as u32 ^ turn) & self.is_of_message;
        let of_control = (high as u32 ^ turn) & self.is_control;
        let of_credit = different(low, self.next) & self.is_credit_of(look);
        of_message | of_control | of_credit | self.is_missing == 0
    }

    /// Whether the look shows nothing new, and nothing of before is left to do.
    #[inline(always)]
    pub fn is_quiet(&self, look: Look) -> bool {
        let [low, high] = look.words;
        let of_control = ((high >> 32) as u32 ^ self.next as u32) & self.is_control;
        let of_credit = different(low, self.consumed) & self.is_credit_of(look);
        of_control | of_credit | self.is_unsettled == 0
    }

    /// All ones if the look shows the credit of an output; there is none to see of one that is idle.
    #[inline(always)]
    fn is_credit_of(&self, look: Look) -> u32 {
        if look.is_idle { 0 } else { self.is_credit }
    }
}

/// Zero if both are the same.
#[inline(always)]
fn different(a: u64, b: u64) -> u32 {
    (a ^ b) as u32 | ((a ^ b) >> 32) as u32
}

impl<K: Kernel> Channel<'_, K> {
    /// A lane of the first warp: what it knows of the end whose ring it looks at.
    #[inline(always)]
    pub(super) fn known(&self, is_narrow: bool) -> Known {
        let layout = self.layout();
        match Lane::of(self.lane()) {
            _ if !is_narrow => Known::NOTHING,
            Lane::Input { input, .. } if input >= layout.inputs => {
                Known { is_missing: u32::MAX, ..Known::NOTHING }
            }
            Lane::Input { input, atom } => {
                // SAFETY: an input; only this warp touches its end.
                let source = unsafe { &(*self.input(input)).source };
                let is_control = atom == CONTROL as u32;
                let atoms = const { line_atoms::<K::Request>() };
                let is_of_message = is_control || (atom as usize) < atoms;
                let is_unsettled = is_control && !source.is_settled();
                Known {
                    next: source.next(),
                    is_of_message: ones(is_of_message),
                    is_control: ones(is_control),
                    is_missing: ones(atoms == 0),
                    is_unsettled: ones(is_unsettled),
                    ..Known::NOTHING
                }
            }
            Lane::Output(output) if output < layout.outputs => {
                // SAFETY: an output; only this warp touches its end.
                let sink = unsafe { &(*self.output(output)).sink };
                let (next, consumed) = (sink.next(), sink.consumed());
                Known { next, consumed, is_credit: u32::MAX, ..Known::NOTHING }
            }
            Lane::Output(_) => Known::NOTHING,
        }
    }
}

/// All ones, if it holds.
#[inline(always)]
fn ones(holds: bool) -> u32 {
    u32::from(holds).wrapping_neg()
}
