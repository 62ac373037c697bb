//! The outbox: the block's end of the ring of responses. It knows how much room there is, and commits
//! responses, inline or in slots.

use super::end::End;
use crate::block::cell::Cell;
use crate::block::{Cooperate, Threads};
use core::sync::atomic::Ordering::Acquire;
use ring_shared::ring::{CONTROL, Control, credit_index, scrub, stamp, stamped};

/// What a block knows of its responses.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Outbox {
    /// Responses that the host has consumed, as an index.
    pub consumed: Cell<u64>,
    /// Index after the last response that was inline; those from it on are in slots.
    pub run_start: Cell<u64>,
    /// Index at which the stamps of the doorbell were last overwritten.
    pub scrubbed: Cell<u64>,
    /// Responses below this index are out. A polling warp that answers by itself says so to the other one.
    pub committed: Cell<u64>,
}

impl Outbox {
    /// Whether response `next` has a free slot, by what is known.
    #[inline(always)]
    pub fn has_room(&self, responses: End<'_>, next: u64) -> bool {
        next.saturating_sub(self.consumed.get()) < u64::from(responses.capacity())
    }

    /// One thread: learns from the host's credit line what it has consumed of the responses before `next`. False
    /// if it cannot be. The line may be behind what a doorbell has told us.
    #[inline(always)]
    pub fn refresh(&self, threads: Threads, responses: End<'_>, next: u64) -> bool {
        // SYNC: acquires `ring_shared::Inbox::publish`: the host has read those slots.
        let consumed = responses.credit().consumed.load(Acquire);
        threads.fence_block(); // for the other polling warp, should it go by this credit
        self.note_consumed(responses, consumed, next)
    }

    /// One thread: takes note of how many responses before `next` are consumed. False if it cannot be.
    #[inline(always)]
    pub fn note_consumed(&self, responses: End<'_>, consumed: u64, next: u64) -> bool {
        let can_be = consumed <= next && consumed >= responses.start();
        if can_be && consumed > self.consumed.get() {
            self.consumed.set(consumed);
        }
        can_be
    }

    /// One thread: learns that from a request doorbell, which may be ahead of the credit line, or old.
    #[inline(always)]
    pub fn note_credit(&self, responses: End<'_>, control: Control, next: u64) {
        if let Some(consumed) = credit_index(control.credit, next, responses.capacity())
            && consumed > self.consumed.get()
        {
            self.consumed.set(consumed);
        }
    }

    /// One thread: tells the host of responses in slots below `tail`, which its fence came behind. `consumed` of
    /// them are known to be consumed. A response to each request is credit for it.
    #[inline(always)]
    pub fn commit(&self, responses: End<'_>, tail: u64, consumed: u64) {
        let (run_start, bell) = (self.run_start.get(), responses.bell());
        let stamped = self.scrubbed.get().max(run_start);
        if let Some(words) = scrub(tail, stamped, run_start, consumed) {
            for atom in bell.atoms.iter().take(CONTROL) {
                atom.store_whole(words);
            }
            self.scrubbed.set(tail);
        }
        let control = Control::behind_slots(run_start, consumed, tail, tail);
        // SYNC: with the fence before it, releases the slots to `ring_shared::Inbox::find`.
        bell.atoms[CONTROL].store_whole(control.to_words());
    }
}

/// All threads of a warp: commits response `index` inline, with the 84 bytes at `from`: eight threads, one whole
/// line.
///
/// # Safety
/// `from` is 4-byte aligned and readable for 84 bytes.
#[inline(always)]
pub(crate) unsafe fn commit_inline(
    threads: Threads,
    responses: End<'_>,
    index: u64,
    from: *const u8,
) {
    let (tail, bell) = (index.wrapping_add(1), responses.bell());
    let words = threads.spread::<8>(|k| {
        if k < CONTROL {
            // SAFETY: the caller's 84 bytes.
            let payload = unsafe { from.wrapping_add(12 * k).cast::<[u32; 3]>().read() };
            stamped(payload, stamp(index))
        } else {
            Control::behind_inline(tail, tail).to_words()
        }
    });
    // All eight atoms in one transaction. Without this barrier libNVVM stored the control atom on a branch of its own,
    // and the other seven behind the fence that its thread makes next: 0.13 us a round trip on an H200.
    threads.warp_sync();
    threads.each::<8>(words, |k, words| {
        if let Some(atom) = bell.atoms.get(k) {
            // SYNC: the stamp proves the payload to `ring_shared::Inbox::take_inline`; on a GPU the control atom may
            // arrive before the others, which then do not match yet. Nothing here acquires the credit by
            // which the host gave the line free: a fence would add its time to each round trip. This relies
            // on a GPU making no store before the loads that decide on it have returned. The branch to here
            // was taken by that credit, and the host published it after it had read the line.
            atom.store_whole(words);
        }
    });
}

/// Whether the calling thread writes the control atom of an inline response.
#[inline(always)]
pub(crate) fn commits(threads: Threads) -> bool {
    Threads::WARP == 1 || threads.lane() == CONTROL as u32
}
