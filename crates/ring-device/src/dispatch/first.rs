//! The first answer of a launch. A host that launches a kernel for one message waits for all that
//! comes before the answer, so if the message is there already and one warp can answer it, that warp
//! does, before the channel is made ready for more.

use super::channel::Channel;
use super::resume::{self, EPOCH, First};
use crate::block::Cooperate;
use crate::kernel::Kernel;
use crate::memory::boot;
use crate::memory::inbox::{Look, Sought};
use core::mem::offset_of;
use ring_shared::layout::{ChannelBlock, Command, State, StatusLine};

impl<K: Kernel> Channel<'_, K> {
    /// All threads: answer the message that the boot's look shows, if it is the next one, the kernel is
    /// active, the message is whole, and its answer may go inline. The boot's words are then as if the launch
    /// before had answered it. Only warp 0 does something.
    ///
    /// # Safety
    /// As for [`run`](super::run): `lines` is the channel's block if the boot shows a kernel of our kind.
    #[inline(always)]
    pub unsafe fn answer_first(&self, lines: *const ChannelBlock, ticks: u64) -> First {
        // Of a message that takes several lines the boot shows the first only, and where a state or call slots are is not known yet.
        let is_ready = Self::ANSWERS_INLINE && !Self::IN_ORDER && !Self::CALLS;
        if !is_ready || Self::SPAN.0 > 1 || !self.is_first_warp() {
            return First::NONE;
        }
        self.warp_sync(); // the boot's words are there
        let (m, threads) = (self.memory(), self.threads_of_block());
        if self.is_lane_0() {
            let epoch = m.boot.half(boot::STATUS, EPOCH);
            m.life.acknowledged.set(u64::from(epoch) << 32); // should the handler panic
        }
        let (boot, look) = (&m.boot, Look::of_boot((threads, Self::SPAN), &m.boot));
        let (command, index) = (boot.word(boot::COMMAND, 0), boot.word(boot::REQUEST_CREDIT, 0));
        let ours = resume::is_ours(self.block)
            && !resume::is_lost(self.block)
            && self.requests().fits()
            && self.responses().fits()
            && resume::has_own_lines(self.requests(), self.responses(), lines);
        let known = command >> 32 == u64::from(boot.half(boot::STATUS, EPOCH));
        let active = known && Command::from_word(command).state == State::Active as u32;
        if !(ours && active) {
            return First::NONE;
        }
        let next = index as u32;
        let (aim, at) = (self.aim(next, 0), self.atoms_of(next));
        let of = Sought {
            atoms: Self::ATOMS,
            window: 1,
            slots_end: next,
            known: next.wrapping_sub(1), // the line itself must tell more
            next,
            credited: next, // which no request of this look has
        };
        if look.ready((threads, Self::SPAN), of, aim, at) & 1 == 0 {
            return First::NONE;
        }
        if self.is_lane_0() {
            m.telemetry.refused.set(0);
        }
        // SAFETY: this is warp 0, and nobody else uses the scratch memory yet; payload and lines are those of the
        // boot's configuration.
        let (began, ended) = unsafe { self.answer_alone(look, aim) };
        let mut first = First::NONE;
        if self.is_lane_0() {
            let next = index.wrapping_add(1); // not checked yet: it may be any number
            m.inbox.publish_consumed(threads, self.requests(), next);
            boot.set(boot::REQUEST_CREDIT, 0, next);
            boot.set(boot::STATUS, offset_of!(StatusLine, run_start), next);
            let refused = m.telemetry.refused.get();
            let (took, waited) = (ended.wrapping_sub(began), began.wrapping_sub(ticks));
            first = First { answered: true, took, waited, ended, refused };
        }
        First { answered: self.agreed(first.answered), ..first }
    }
}
