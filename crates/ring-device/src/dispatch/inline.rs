//! Inline messages: a warp answers one by itself, from the request's line into the response's line, or
//! into a slot.

use super::channel::Channel;
use crate::block::{Cooperate, Threads, Words};
use crate::kernel::{Kernel, Scope};
use crate::memory::inbox::Look;
use crate::memory::outbox::{commit_inline, commits};
use crate::memory::signals::{Decision, Wake};
use crate::memory::{SCRATCH_BYTES, signals::Signals};
use ring_shared::Message;
use ring_shared::ring::Control;

impl<K: Kernel> Channel<'_, K> {
    /// Atoms of an inline request.
    pub const ATOMS: usize = K::Request::INLINE_ATOMS;

    /// Whether a polling warp can answer from line to line.
    pub const ANSWERS_INLINE: bool =
        Self::BY_WARP && K::Request::FITS_INLINE && K::Response::FITS_INLINE;

    /// Where polling warp `poller` handles messages by itself: a half of the scratch memory, which holds the
    /// largest request and the largest response.
    #[inline(always)]
    fn stage_of_poller(&self, poller: u32) -> *mut u8 {
        self.memory().scratch.bytes(if poller == 0 { 0 } else { SCRATCH_BYTES / 2 })
    }

    /// Takes the inline request of a look into the memory of polling warp `poller`.
    ///
    /// # Safety
    /// The calling warp is that polling warp, and the block waits.
    #[inline(always)]
    pub unsafe fn take(&self, look: Look, poller: u32) {
        // SAFETY: this warp's own half of the scratch memory while the block waits.
        unsafe { look.take(self.threads_of_block(), Self::ATOMS, self.stage_of_poller(poller)) }
    }

    /// Handles the request that was [taken](Self::take): where its response is, and ticks before and after
    /// the handler, for lane 0.
    ///
    /// # Safety
    /// The calling warp is polling warp `poller`, the only one to answer that request, and the block waits.
    #[inline(always)]
    unsafe fn handle_taken(&self, poller: u32) -> (*const u8, u64, u64) {
        let stage = self.stage_of_poller(poller);
        if K::USES_PAYLOAD {
            self.fence();
        }
        let began = self.ticks();
        // SAFETY: this warp's own half of the scratch memory while the block waits; it synchronises before
        // and after.
        unsafe { self.handle_by_warp(stage, 1) };
        let ended = self.ticks();
        self.exit_if_warp_panicked();
        self.warp_sync();
        if K::USES_PAYLOAD {
            self.fence();
        }
        (stage.wrapping_add(16 * <K::Scope as Scope<K>>::STAGE.1), began, ended)
    }

    /// Answers request `next`, which was [taken](Self::take), inline; ticks before and after the handler,
    /// for lane 0.
    ///
    /// # Safety
    /// As for [`handle_taken`](Self::handle_taken).
    #[inline(always)]
    pub unsafe fn answer_taken(&self, next: u64, poller: u32) -> (u64, u64) {
        // SAFETY: the caller's promise.
        let (response, began, ended) = unsafe { self.handle_taken(poller) };
        // SAFETY: 84 bytes of this warp's half of the scratch memory.
        unsafe { commit_inline(self.threads_of_block(), self.responses(), next, response) };
        (began, ended)
    }

    /// Takes request `next` out of the line; false if it is the other warp's.
    #[inline(always)]
    fn claim(&self, look: Look, next: u64, poller: u32) -> bool {
        let claim = self.memory().inbox.claim(self.threads_of_block(), next);
        // SAFETY: this is warp `poller`, and the block waits for a wake.
        unsafe { self.take(look, poller) };
        self.agreed(claim)
    }

    /// Answers request `next` from the line and into the line, unless the other warp does; whether it did.
    #[inline(always)]
    pub fn answer_inline(&self, look: Look, next: u64, poller: u32) -> bool {
        if !self.claim(look, next, poller) {
            return false;
        }
        if self.is_lane_0() {
            self.note_work();
            // Before the answer: once it is out, the other warp may claim and answer the next.
            self.memory().outbox.run_start.set(next + 1);
        }
        // SAFETY: this is warp `poller`, which claimed the request.
        let times = unsafe { self.answer_taken(next, poller) };
        if commits(self.threads_of_block()) {
            self.note_committed(next + 1);
        }
        self.note_answered(next, poller, times);
        true
    }

    /// Answers request `next` from the line into a slot that is free, unless the other warp does; whether it
    /// did.
    #[inline(always)]
    pub fn answer_in_slot(&self, look: Look, next: u64, poller: u32) -> bool {
        if !self.claim(look, next, poller) {
            return false;
        }
        if self.is_lane_0() {
            self.note_work();
        }
        // SAFETY: this is warp `poller`, which claimed the request.
        let (response, began, ended) = unsafe { self.handle_taken(poller) };
        let mut t = self.lane();
        while t < K::Response::SLOT_ATOMS as u32 {
            if let Some(atom) = self.responses().atom(next, t) {
                // SAFETY: an atom of the response, in this warp's half of the scratch memory.
                atom.store(unsafe { response.cast::<Words>().add(t as usize).read() });
            }
            t += Threads::WARP;
        }
        self.warp_sync();
        if self.is_lane_0() {
            let outbox = &self.memory().outbox;
            self.fence(); // the warp's stores before the tail
            outbox.commit(self.responses(), next + 1, outbox.consumed.get());
            self.note_committed(next + 1);
        }
        self.note_answered(next, poller, (began, ended));
        true
    }

    /// One thread: tells the other polling warp that responses below `tail` are out, its own store of the last
    /// one's control atom included.
    #[inline(always)]
    fn note_committed(&self, tail: u64) {
        self.fence_block();
        self.memory().outbox.committed.set(tail);
    }

    /// A polling warp: request `next` is answered.
    #[inline(always)]
    fn note_answered(&self, next: u64, poller: u32, (began, ended): (u64, u64)) {
        if self.is_lane_0() {
            // Behind the answer, or the host could send the next before this is answered. The two stores may
            // still land the other way round, and then nothing goes wrong either: the answer is proved by
            // its own stamps, the other warp answers the next into the line only when the host has this
            // one, and into a slot only after `note_committed`, so that its control atom follows this one's.
            // Its credit for that one may land before this: the host takes the greater.
            self.publish_consumed(next + 1);
            let tally = self.memory().telemetry.tally(poller);
            tally.took.set(ended.wrapping_sub(began));
            tally.waited.set(began.wrapping_sub(tally.before.get()));
        }
        self.warp_sync();
    }

    /// Leaves the inline request in the input window for the whole block.
    #[inline(always)]
    pub fn stage_for_block(&self, look: Look, next: u64, poller: u32) {
        if self.wake(Wake::Inline) {
            let window = self.memory().scratch.bytes(0);
            // SAFETY: the window is larger than a line; only the warp that won the wake writes
            // it, and the block reads it after the barrier.
            unsafe { look.take(self.threads_of_block(), Self::ATOMS, window) };
            if K::USES_PAYLOAD {
                // The threads that read the line acquire what was written before it; a barrier follows.
                self.fence();
            }
            if self.is_lane_0() {
                let m = self.memory();
                m.inbox.staged.set(next);
                m.telemetry.unseen.set(m.telemetry.tally(poller).before.get());
            }
        }
    }

    /// Whether the response to request `next` has a free slot, as far as is known, and the one before is out;
    /// if there is none, the host's credit line is looked at for the next time.
    #[inline(always)]
    pub fn has_room(&self, control: Control, next: u64) -> bool {
        const NO: u64 = 0;
        const YES: u64 = 1;
        const LOOK: u64 = 2;
        const CORRUPT: u64 = 3;
        let m = self.memory();
        let free = || m.outbox.has_room(self.responses(), next);
        let mut found = NO;
        if self.is_lane_0() {
            // The other warp may still write the control atom of its answer, which ours is to follow. An
            // honest host does not send so early.
            if m.outbox.committed.get() == next {
                found = if free() { YES } else { LOOK };
            }
            // What the other warp has written, and acquired with the credit that it noted. The rest of this
            // warp has it by `claim`, before the slot is written.
            self.fence_block();
        }
        found = self.broadcast(found);
        if found == LOOK {
            // The thread that read the doorbell acquires its credit, before slots are overwritten.
            self.fence();
            self.warp_sync();
            if self.is_lane_0() {
                self.fence_block(); // for the other polling warp, if it uses this credit
                m.outbox.note_credit(self.responses(), control, next);
                found = u64::from(free());
                if found == NO {
                    m.budget.expect_work();
                    let sound = m.outbox.refresh(self.threads_of_block(), self.responses(), next);
                    found = if sound { u64::from(free()) } else { CORRUPT };
                }
            }
            found = self.broadcast(found);
        }
        if found == CORRUPT && self.broadcast(m.inbox.next.get()) == next {
            // Else the other warp answered meanwhile, and the credit may rightly be ahead of `next`.
            self.wake_to_leave(Decision::CorruptRing);
        }
        found == YES
    }

    /// A polling warp: wakes the block; true for the warp that did.
    #[inline(always)]
    fn wake(&self, wake: Wake) -> bool {
        let at = self.memory().signals.wake.word();
        let mut won = false;
        if self.is_lane_0() {
            won = self.compare_and_swap(at, Wake::None as u64, wake as u64);
        }
        self.agreed(won)
    }

    /// A polling warp: wakes the block; the warp that does writes what belongs to the wake.
    #[inline(always)]
    pub fn wake_with(&self, wake: Wake, tell: impl FnOnce(&Signals)) {
        if self.wake(wake) && self.is_lane_0() {
            tell(&self.memory().signals);
        }
    }

    /// A polling warp: wakes the block to leave. If it is awake already, it acts on that first.
    #[inline(always)]
    pub fn wake_to_leave(&self, why: Decision) {
        self.wake_with(Wake::Leave, |signals| signals.decision.set(why));
    }
}
