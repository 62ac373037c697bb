//! What the first lane has in registers of a message that comes inline and that it handles by itself: the request, and what is emitted.
//! Block-shared memory costs such a message a hundred cycles for each of these: the lane reads what others have written, and
//! writes what it reads again when it sends that.

use super::known::Look;
use crate::block::{Cooperate, Piece};
use crate::dispatch::channel::Channel;
use crate::emissions::Stages;
use crate::kernel::{Kernel, Scope};
use core::mem::MaybeUninit;
use ring_shared::Message;
use ring_shared::ring::payload_of;

/// Words of the messages that come inline, at most: seven atoms of three.
const WORDS: usize = 21;

/// A stage of one lane. The compiler keeps it in registers where it knows of each access where that goes, and else in the thread's local
/// memory.
#[repr(C, align(16))]
pub(super) struct OwnStage([MaybeUninit<Piece>; 32]);

impl OwnStage {
    pub const UNINIT: OwnStage = OwnStage([MaybeUninit::uninit(); 32]);

    #[inline(always)]
    pub fn stages(&mut self) -> Stages {
        Stages::new(self.0.as_mut_ptr().cast())
    }
}

impl<K: Kernel> Channel<'_, K> {
    /// Whether the first lane handles a message that comes inline by itself, with what it has to do in registers, if each port has one
    /// output: it emits one message to each at most, so that it is known where that is.
    pub(super) const IN_REGISTERS: bool = {
        let (mut is, mut p) = (Self::FIT_ONE_PASS && Self::BY_ONE_THREAD, 0);
        while p < Self::PORTS.len() {
            is &= Self::PORTS[p].most == 1;
            p += 1;
        }
        is && !<K::Scope as Scope<K>>::EMITS_IN_ORDER && Self::STAGE_STRIDE <= size_of::<OwnStage>()
    };

    /// Sets what is behind the end of a message in a stage's last piece of it to zero. A stage that begins as zero, or is
    /// moved, would be kept in memory.
    #[inline(always)]
    pub(super) fn zero_ends(own: &mut OwnStage) {
        each_port!(port => {
            let last = Self::offset_of(port, 0, 0) / 16 + Self::PORTS[port].atoms - 1;
            if last < own.0.len() {
                own.0[last].write(Piece([0; 2]));
            }
        });
    }

    /// The first warp: for each lane the words of the inline message that a look shows, by lanes from `first` on.
    #[inline(always)]
    pub(super) fn gather(&self, look: Look, first: u32) -> [u32; WORDS] {
        let (mine, mut all) = (payload_of(look.words), [0; WORDS]);
        // There is no loop: from one the compiler does not take which word goes where.
        let mut from = |k: usize| {
            if 12 * k < size_of::<K::Request>() {
                let lane = first + k as u32;
                all[3 * k] = self.shuffle32(mine[0], lane);
                all[3 * k + 1] = self.shuffle32(mine[1], lane);
                all[3 * k + 2] = self.shuffle32(mine[2], lane);
            }
        };
        from(0);
        from(1);
        from(2);
        from(3);
        from(4);
        from(5);
        from(6);
        all
    }

    /// The first lane: tells the compiler of the request in the first of some stages, by pairs of words, so that it takes from registers
    /// what a handler reads there. A handler may keep a reference to it all the same, or read what is known only as it runs.
    ///
    /// # Safety
    /// These are the words of the request that is there.
    #[inline(always)]
    pub(super) unsafe fn assume_request(stages: Stages, words: [u32; WORDS]) {
        let request = stages.stage(0, 0).cast_const().cast::<u64>();
        let is = |k: usize| {
            if 8 * (k + 1) <= size_of::<K::Request>() {
                let pair = u64::from(words[2 * k]) | u64::from(words[2 * k + 1]) << 32;
                // SAFETY: two words of the request, at a multiple of 8, and what they are: the caller's promise.
                unsafe { core::hint::assert_unchecked(request.wrapping_add(k).read() == pair) };
            }
        };
        is(0);
        is(1);
        is(2);
        is(3);
        is(4);
        is(5);
        is(6);
        is(7);
        is(8);
        is(9);
    }

    /// The first lane: puts what it has emitted in a stage of its own into the first stage of the block's memory, where the warp finds it
    /// behind a barrier.
    #[inline(always)]
    pub(super) fn keep_emitted(&self, own: Stages, to: Stages) {
        let emitted = |stages: Stages| {
            stages.stage(0, 0).cast::<Piece>().wrapping_add(K::Request::SLOT_ATOMS)
        };
        let pieces = Self::STAGE_STRIDE / 16 - K::Request::SLOT_ATOMS;
        // SAFETY: two stages, each of which has room for so many pieces behind the request; both are this lane's now.
        unsafe { emitted(own).copy_to_nonoverlapping(emitted(to), pieces) };
    }
}
