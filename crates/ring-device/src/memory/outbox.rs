//! The outbox: the block's end of the ring of responses. It knows how much room there is, and commits
//! responses, inline or in slots.

use super::end::End;
use super::inbox::{Aim, newest};
use super::span::Span;
use crate::block::cell::Cell;
use crate::block::{Cooperate, Threads, Words};
use core::sync::atomic::Ordering::Acquire;
use ring_shared::atomics::{Atom, AtomicU32};
use ring_shared::layout::Doorbell;
use ring_shared::ring::{CONTROL, Control, credit_index, scrub, scrub_next, stamped};

/// Looks for which polling warps wait, after responses in slots, for the host to read those, so that what it has sent inline
/// meanwhile is answered inline. Answered in a slot, each of them would delay the next: the host must read it first. They wait
/// on as long as the host reads on; one that reads nothing before all is answered pays for so many looks once.
pub(crate) const PATIENCE: u64 = 8;

/// What a block knows of its responses.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Outbox {
    /// Responses that the host has consumed, as an index.
    pub consumed: Cell<u64>,
    /// The same, the low half, by what a request's line or the credit line has told a polling warp: perhaps newer, but not
    /// acquired for the block. It is enough to overwrite a line by, and not a slot.
    pub line_credit: Cell<u64>,
    /// For how many looks polling warps leave a response to go inline when the host has read those in slots before it.
    pub patience: Cell<u64>,
    /// Where the last run of responses in slots begins.
    pub run_start: Cell<u64>,
    /// Index after the last response that went to a slot.
    pub slots_end: Cell<u64>,
    /// Index at which the stamps of the doorbell were last overwritten.
    pub scrubbed: Cell<u64>,
    /// How many responses are out, as the low half of an index: equal to that of
    /// [`Inbox::next`](super::inbox::Inbox::next) when all are whose requests are claimed. A polling warp that answers
    /// by itself adds its own for the others.
    pub committed: AtomicU32,
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
        let can_be = consumed_by_line(consumed, (responses.start(), next));
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

    /// One thread, before requests are polled for: so many looks may wait for the host to read responses in slots. None where
    /// a launch begins: if its budget were over before, the next one would wait anew.
    #[inline(always)]
    pub fn await_credit(&self, patience: u64) {
        self.line_credit.set(self.consumed.get());
        self.patience.set(patience);
    }

    /// One thread: a request's line told that the responses before `credit`, the low half of an index, are consumed;
    /// whether that is more than was known.
    #[inline(always)]
    pub fn note_line_credit(&self, credit: u32) -> bool {
        let known = self.line_credit.get() as u32;
        let is_newer = newest(known, credit) != known;
        if is_newer {
            self.line_credit.set(credit.into());
        }
        is_newer
    }

    /// One thread: that, or what is known besides if it is newer.
    #[inline(always)]
    pub fn newest_credit(&self, credit: u32) -> u32 {
        newest(credit, self.line_credit.get() as u32)
    }

    /// One thread: learns that from the first request line, which has the newest credit if the host cannot send.
    #[inline(always)]
    pub fn note_first(&self, requests: End<'_>, responses: End<'_>, next: u64) {
        if requests.line_count() > 1 {
            // SYNC: acquires `ring_shared::Outbox::publish`: the host has read those slots.
            let control = Control::from_words(requests.line(0).atoms[CONTROL].observe());
            self.note_credit(responses, control, next);
        }
    }

    /// One thread: tells the host of responses in slots from `first` to `tail`, behind a fence, which `release` is. `consumed`
    /// of them are known to be consumed. A response to each request is credit for it.
    #[inline(always)]
    pub fn commit(
        &self,
        responses: End<'_>,
        (first, tail): (u64, u64),
        consumed: u64,
        release: impl FnOnce(),
    ) {
        if self.slots_end.get() != first {
            self.run_start.set(first);
        }
        self.slots_end.set(tail);
        let (run_start, lines) = (self.run_start.get(), responses.line_count());
        // Where they go is worked out before the fence: behind it the host waits.
        let [own, newest] = [first, 0].map(|index| {
            let at: *const Atom = &responses.line(index).atoms[CONTROL];
            // SAFETY: it is where it was.
            unsafe { &*Threads::opaque(at) }
        });
        // Several lines are scrubbed one after the other. A single one was overwritten by what was inline last.
        let scrubbed = self.scrubbed.get();
        let scrubbed = if lines > 1 { scrubbed } else { scrubbed.max(run_start) };
        let scrubs = scrub(tail, scrubbed, run_start, consumed, lines);
        release();
        if let Some(words) = scrubs {
            let (index, to) = scrub_next(tail, scrubbed, lines);
            let line = responses.line(index);
            overwrite(line, words);
            for beyond in 1..responses.lines().span().0 {
                overwrite(responses.lines().line_of(index as u32, beyond), words);
            }
            let control = Control::behind_slots(run_start, consumed, first, first);
            line.atoms[CONTROL].store_whole(control.to_words());
            self.scrubbed.set(to);
        }
        let control = Control::behind_slots(run_start, consumed, tail, tail);
        // SYNC: with the fence before it, releases the slots to `ring_shared::Inbox::find`.
        own.store_whole(control.to_words());
        if lines > 1 {
            // SYNC: as above.
            newest.store_whole(control.to_words());
        }
    }
}

/// Whether the host's credit line may say that responses below `consumed` are: the first has index `start`, the next one
/// `next`.
#[inline(always)]
pub(crate) fn consumed_by_line(consumed: u64, (start, next): (u64, u64)) -> bool {
    consumed <= next && consumed >= start
}

/// One thread: overwrites the stamps of a line.
#[inline(always)]
fn overwrite(line: &Doorbell, words: Words) {
    // A loop, once in a billion messages: unrolled, its stores take more registers than all else does.
    let (mut k, stamped) = (0, Threads::opaque32(CONTROL as u32) as usize);
    while k < stamped {
        if let Some(atom) = line.atoms.get(k) {
            atom.store_whole(words);
        }
        k += 1;
    }
}

/// Atoms of the lines that a warp writes at once.
const ATOMS: usize = 8 * Threads::LINES;

/// All threads of a warp: commits the responses `messages`, a bit each, inline: eight threads a whole line. `aim` says
/// which stamp each atom has, where its twelve bytes of a response lie but for `offset`, and where it goes. The thread
/// that has written the control atom of a response calls `committed`.
///
/// # Safety
/// Those bytes are 4-byte aligned and readable for each atom of as many lines as a warp writes at once, also where there
/// is no payload.
#[inline(always)]
pub(crate) unsafe fn commit_inline<'a>(
    (threads, span): (Threads, Span),
    messages: u32,
    offset: usize,
    aim: impl Fn(usize) -> Aim<'a>,
    committed: impl Fn(usize),
) {
    let words = |k: usize| {
        let Aim { stamp, stage, .. } = aim(k);
        // SAFETY: the caller's bytes.
        let payload = unsafe { stage.wrapping_add(offset).cast::<[u32; 3]>().read() };
        if k as u32 % 8 == CONTROL as u32 {
            // The index after the response is its stamp, and credit for all requests up to that.
            Control::behind_inline(stamp.into(), stamp.into()).to_words()
        } else {
            stamped(payload, stamp)
        }
    };
    // A CPU's thread: the control atom comes last.
    span.beyond().for_each(|k| aim(k).answer.store_whole(words(k)));
    let words = threads.spread::<ATOMS>(words);
    // All eight atoms of a line in one transaction. Without this barrier libNVVM stored the control atom on a branch of its
    // own, and the other seven behind the fence that its thread makes next: 0.13 us a round trip on an H200.
    threads.warp_sync();
    threads.each::<ATOMS>(words, |k, words| {
        if messages >> span.message(k) & 1 == 1 {
            // SYNC: the stamp proves the payload to `ring_shared::Inbox::take_inline`; on a GPU the control atom may
            // arrive before the others, which then do not match yet. Nothing here acquires the credit by
            // which the host gave the line free: a fence would add its time to each round trip. This relies
            // on a GPU making no store before the loads that decide on it have returned. The branch to here
            // was taken by that credit, and the host published it after it had read the line.
            aim(k).answer.store_whole(words);
            if span.is_control(k) {
                committed(k);
            }
        }
    });
}
