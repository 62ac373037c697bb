//! Inline messages: a warp answers one by itself, from the request's line into the response's line, or
//! into a slot.

use super::channel::Channel;
use crate::block::{Cooperate, Threads, Words};
use crate::kernel::{Kernel, Scope};
use crate::memory::claims::Claims;
use crate::memory::inbox::{Aim, Look};
use crate::memory::outbox::commit_inline;
use crate::memory::scratch::SCRATCH_BYTES;
use crate::memory::signals::Signals;
use crate::memory::signals::{Decision, Wake};
use crate::memory::telemetry::POLLERS;
use crate::memory::trace::{Handled, Times};
use ring_shared::Message;
use ring_shared::atomics::Atom;
use ring_shared::atomics::Ordering::Relaxed;
use ring_shared::message::INLINE_ATOM_BYTES;
use ring_shared::ring::Control;

/// Messages of a look, side by side.
#[derive(Clone, Copy)]
struct Run {
    /// A bit each.
    messages: u32,
    first: u32,
    n: u32,
}

impl Run {
    #[inline(always)]
    fn of(messages: u32) -> Run {
        Run { messages, first: messages.trailing_zeros(), n: messages.count_ones() }
    }
}

impl<K: Kernel> Channel<'_, K> {
    /// Atoms of an inline request.
    pub const ATOMS: usize = K::Request::INLINE_ATOMS;

    /// Whether a polling warp can answer from line to line.
    pub const ANSWERS_INLINE: bool = (Self::BY_WARP || Self::IN_ORDER)
        && !Self::EMITS
        && K::Request::FITS_INLINE
        && K::Response::FITS_INLINE;

    /// Whether a polling warp leaves inline requests to the whole block.
    pub const STAGES: bool = !Self::BY_WARP && !Self::ANSWERS_INLINE && K::Request::FITS_INLINE;

    /// Most warps that poll: several where each can answer by itself what it sees. Where the block is woken for it there is
    /// one, since a second one's look would have to be over before the block can begin. Where thread 0 handles all messages
    /// it is the only one that polls, too, so that no other thread touches the state.
    pub const POLLERS: u32 = match Threads::LINES > 1 {
        true if !Self::BY_WARP => 1,
        true if Self::ANSWERS_INLINE => POLLERS as u32,
        _ => 2,
    };

    /// Whether one warp polls, and others do nothing meanwhile.
    pub const POLLS_ALONE: bool = Threads::WARP > 1 && Self::POLLERS == 1;

    /// Whether looks at requests acquire what the host wrote before it sent them: where a handler may read the payload arena.
    /// An acquiring load takes as long as another one, and a fence behind it about a microsecond; but a warp can do nothing
    /// until its look is there. Where there is no payload, a fence comes before slots are read, and messages need none.
    pub const ACQUIRES: bool = K::USES_PAYLOAD;

    /// How many warps poll.
    #[inline(always)]
    pub fn pollers(&self) -> u32 {
        self.warps().min(Self::POLLERS)
    }

    /// Where polling warp `poller` handles messages by itself: its part of the scratch memory, which holds the
    /// largest request and the largest response that it may be.
    #[inline(always)]
    fn stage_of_poller(&self, poller: u32) -> *mut u8 {
        self.memory().scratch.bytes(poller as usize * (SCRATCH_BYTES / Self::POLLERS as usize))
    }

    /// Bytes from one inline message to the next where a warp handles them. Each of a request's inline atoms is written there whole, and
    /// the last may have more bytes than the request: they must not be those of the next one. Where the response lies behind the request
    /// they are its, which is written later. An odd number of atoms, as [`STAGE`](Scope::STAGE) has.
    pub const INLINE_STRIDE: usize = {
        let (stride, response) = <K::Scope as Scope<K>>::STAGE;
        let written = (INLINE_ATOM_BYTES * Self::ATOMS).div_ceil(16);
        16 * if response == 0 && written > stride { written | 1 } else { stride }
    };

    /// Where the response is in a stage.
    const RESPONSE: usize = 16 * <K::Scope as Scope<K>>::STAGE.1;

    /// What each thread of polling warp `poller` does with the atoms of requests from `base` on and with those of
    /// their responses. Worked out while the look is under way.
    #[inline(always)]
    pub fn aim<'s>(
        &'s self,
        base: u32,
        poller: u32,
    ) -> impl Fn(usize) -> Aim<'s> + Copy + use<'s, K> {
        const {
            let inline = Threads::LINES.div_ceil(Self::SPAN.0) * Self::INLINE_STRIDE;
            assert!(!Self::ANSWERS_INLINE || inline <= SCRATCH_BYTES / Self::POLLERS as usize);
        }
        self.aim_at(base, self.stage_of_poller(poller), Self::INLINE_STRIDE)
    }

    /// The same of messages that are handled at `stage`, one `stride` bytes behind the other.
    #[inline(always)]
    pub fn aim_at<'s>(
        &'s self,
        base: u32,
        stage: *mut u8,
        stride: usize,
    ) -> impl Fn(usize) -> Aim<'s> + Copy + use<'s, K> {
        let (lines, span) = (self.responses().lines(), Self::SPAN);
        self.early(move |k| {
            let index = base.wrapping_add(span.message(k));
            let stage = stage.wrapping_add(span.offset(k, stride));
            let answer = Threads::opaque(core::ptr::from_ref(lines.atom(index, k)));
            Aim {
                stamp: index.wrapping_add(1),
                stage,
                // SAFETY: it is where it was.
                answer: unsafe { &*answer },
            }
        })
    }

    /// The atoms of the lines of request `index`: a CPU's thread reads those beyond the first line by it.
    #[inline(always)]
    pub fn atoms_of<'s>(&'s self, index: u32) -> impl Fn(usize) -> &'s Atom + use<'s, K> {
        move |k| self.requests().lines().atom(index, k)
    }

    /// Handles the `n` requests that were taken from `stage` on; ticks before and after the handler, for lane 0.
    ///
    /// # Safety
    /// The stage is one of the calling warp, the only one to answer those requests, and the block waits.
    #[inline(always)]
    unsafe fn handle_taken(&self, n: u32, stage: *mut u8) -> (u64, u64) {
        let began = self.ticks();
        // SAFETY: this warp's own part of the scratch memory while the block waits; it synchronises before
        // and after.
        unsafe { self.handle_by_warp(stage, Self::INLINE_STRIDE, n) };
        let ended = self.ticks();
        self.exit_if_warp_panicked();
        self.warp_sync();
        if K::USES_PAYLOAD {
            self.fence();
        }
        (began, ended)
    }

    /// Answers the requests of a run, which were taken to the stage of polling warp
    /// `poller`, inline; ticks before and after the handler, for lane 0. `committed` is as in [`commit_inline`].
    ///
    /// # Safety
    /// As for [`handle_taken`](Self::handle_taken); the calling warp is that polling warp.
    #[inline(always)]
    unsafe fn answer_taken<'a>(
        &self,
        Run { messages, first, n }: Run,
        poller: u32,
        aim: impl Fn(usize) -> Aim<'a>,
        committed: impl Fn(usize),
    ) -> (u64, u64) {
        let skipped = Self::INLINE_STRIDE * first as usize;
        let stage = self.stage_of_poller(poller).wrapping_add(skipped);
        // SAFETY: the caller's promise.
        let times = unsafe { self.handle_taken(n, stage) };
        let (warp, offset) = ((self.threads_of_block(), Self::SPAN), Self::RESPONSE);
        // SAFETY: each message has room for the largest response in this warp's part of the scratch memory, and that ends
        // before the block's memory does.
        unsafe { commit_inline(warp, messages, offset, aim, committed) };
        times
    }

    /// Warp 0: answers the first request of a look, inline; ticks before and after the handler, for lane 0. Its messages
    /// take one line.
    ///
    /// # Safety
    /// Nobody else answers it, or uses the scratch memory. `aim` is that of warp 0.
    #[inline(always)]
    pub unsafe fn answer_alone<'a>(
        &self,
        look: Look,
        aim: impl Fn(usize) -> Aim<'a> + Copy,
    ) -> (u64, u64) {
        // SAFETY: the caller's promise.
        unsafe {
            let at = |k| -> &Atom { aim(k).answer }; // of lines beyond the first, which there are not
            look.take((self.threads_of_block(), Self::SPAN), Self::ATOMS, aim, at);
            self.answer_taken(Run::of(1), 0, aim, |_| {})
        }
    }

    /// Answers the first of those requests of a look that are in `ready`, a bit each, and those side by side with it,
    /// from their lines and into lines, but for what other warps answer: how many it did, and ticks before and after the
    /// handler, for lane 0. When the look began, which was at the requests from `base` on, if at `many`, the claims were
    /// `seen`, and `next` the first unclaimed request; `ready` is by the last answer in a slot before `slots_end`.
    /// `told`: somebody may have to be told that there is work.
    #[inline(always)]
    pub fn answer_inline<'a>(
        &self,
        look: Look,
        seen: Claims,
        (next, base, ready, many): (u64, u32, u32, bool),
        slots_end: u32,
        (poller, told): (u32, bool),
        aim: impl Fn(usize) -> Aim<'a> + Copy,
    ) -> (u32, u64, u64) {
        let (threads, m) = (self.threads_of_block(), self.memory());
        // Before it is known which are claimed: the others do no harm there.
        // SAFETY: this is warp `poller`, and the block waits for a wake.
        unsafe { look.take((threads, Self::SPAN), Self::ATOMS, aim, self.atoms_of(base)) };
        let run = Run::of(if Self::POLLS_ALONE && !many {
            if self.is_lane_0() {
                m.inbox.claims.set(seen.after_next());
            }
            1
        } else if !many && seen.is_contiguous() {
            let claimed = self.is_lane_0() && m.inbox.claim(threads, seen, seen.after_next());
            self.broadcast32(u32::from(claimed))
        } else {
            let may = || m.outbox.slots_end.get() as u32 == slots_end;
            let most = if many { Self::SPAN.messages() } else { 1 };
            m.inbox.claim_what_is_left(threads, (base, ready, most), may)
        });
        if run.messages == 0 {
            return (0, 0, 0);
        }
        let depth = look.depth(threads, aim);
        if told && self.is_lane_0() {
            self.note_work();
        }
        // SAFETY: this is warp `poller`, which claimed the requests.
        let (began, ended) = unsafe {
            self.answer_taken(run, poller, aim, |k| {
                self.note_committed();
                self.widen(depth(k));
            })
        };
        if Self::TRACES && self.is_lane_0() {
            let ahead = base.wrapping_add(run.first).wrapping_sub(next as u32);
            let index = next.wrapping_add(ahead.into());
            self.trace((index, run.n), (began, ended), m.telemetry.before(poller));
        }
        (run.n, began, ended)
    }

    /// Answers request `next`, the `message`th of a look, into a slot that is free; ticks before and after the handler, for
    /// lane 0, if it did.
    /// The claims were `seen` when it was the first unclaimed request. Nothing else is claimed meanwhile: no
    /// response may go inline behind one in a slot that is unread, or change the lines that tell of it.
    #[inline(always)]
    pub fn answer_in_slot(
        &self,
        look: Look,
        (seen, next): (Claims, u64),
        message: u32,
        poller: u32,
    ) -> Option<(u64, u64)> {
        let (threads, inbox) = (self.threads_of_block(), &self.memory().inbox);
        if !self.agreed(self.is_lane_0() && inbox.close(threads, seen, next + 1)) {
            return None;
        }
        let stage = self.stage_of_poller(poller);
        // SAFETY: this is warp `poller`, and the block waits for a wake.
        unsafe {
            let at = self.atoms_of(next as u32);
            look.take_one((threads, Self::SPAN), message, Self::ATOMS, stage, at);
        }
        if self.is_lane_0() {
            self.note_work();
        }
        // SAFETY: this is warp `poller`, which claimed the request.
        let times = unsafe { self.handle_taken(1, stage) };
        let response = stage.wrapping_add(Self::RESPONSE).cast::<Words>();
        let mut t = self.lane();
        while t < K::Response::SLOT_ATOMS as u32 {
            if let Some(atom) = self.responses().atom(next, t) {
                // SAFETY: an atom of the response, in this warp's part of the scratch memory.
                atom.store(unsafe { response.add(t as usize).read() });
            }
            t += Threads::WARP;
        }
        self.warp_sync();
        if self.is_lane_0() {
            let outbox = &self.memory().outbox;
            let (responses, consumed) = (self.responses(), outbox.consumed.get());
            let release = || self.fence(); // the warp's stores before the tail
            outbox.commit(responses, (next, next + 1), consumed, release);
            self.note_committed(); // its fence is one between where the run of slots ends and opening the claims
            inbox.claims.set(Claims::open(next + 1));
            self.trace((next, 1), times, self.memory().telemetry.before(poller));
        }
        Some(times)
    }

    /// One thread, when `n` messages from `index` on were handled together, whose handler began and ended at so many ticks, and which the
    /// look at `unseen` did not show: notes it, if there is a trace ring. It costs nothing where the kernel is not declared so.
    #[inline(always)]
    pub fn trace(&self, (index, n): (u64, u32), times: (u64, u64), unseen: u64) {
        if !Self::TRACES {
            return;
        }
        let handled = Handled { index, n, times: Times::new(times, unseen) };
        self.memory().trace.note(self.threads_of_block(), handled);
    }

    /// All threads of a polling warp, behind a look: what the host wrote before what they have seen is there for each of them.
    #[inline(always)]
    pub fn acquire_look(&self) {
        if !Self::ACQUIRES {
            self.fence();
        }
        self.warp_sync();
    }

    /// One thread: tells the other polling warps that one response more is out, its own store of the control atom
    /// included.
    #[inline(always)]
    pub fn note_committed(&self) {
        self.fence_block();
        self.add32(&self.memory().outbox.committed, 1);
    }

    /// The only polling warp: readies the output window for the response to one request.
    #[inline(always)]
    pub fn prepare_window(&self) {
        // SAFETY: the window has room for a response; the block waits, and reads it after a barrier.
        unsafe { <K::Scope as Scope<K>>::prepare(self.window(), 1, self.lane(), Threads::WARP) };
    }

    /// The only polling warp, while the block waits: leaves the inline request `next`, the `message`th of a look, in the input window, and wakes
    /// the whole block for it. The output window is [ready](Self::prepare_window). `line_is_free`: the response may go
    /// inline, if it fits. `is_checked`: there is a budget to look after. The look before the one that shows it was at `unseen`.
    #[inline(always)]
    pub fn stage_for_block(
        &self,
        look: Look,
        (next, message): (u64, u32),
        (line_is_free, is_checked): (bool, bool),
        unseen: u64,
    ) {
        let (m, warp) = (self.memory(), (self.threads_of_block(), Self::SPAN));
        let window = m.scratch.bytes(0);
        // SAFETY: the window is larger than an inline message; only this warp writes it, and the block reads it after the
        // barrier.
        unsafe { look.take_one(warp, message, Self::ATOMS, window, self.atoms_of(next as u32)) };
        let both = Self::STAGES && K::Response::FITS_INLINE && line_is_free && !is_checked;
        if self.is_lane_0() {
            m.inbox.staged.set(next);
            m.inbox.answers_inline.set(line_is_free);
            m.telemetry.unseen.set(unseen);
            m.signals.wake.set(if both { Wake::InlineBoth } else { Wake::Inline });
        }
        if <K::Scope as Scope<K>>::IS_GRID && both {
            // SAFETY: the request is in the window, and the block handles it before anything else.
            unsafe { <K::Scope as Scope<K>>::announce(self.block, self.window()) };
        }
        if Self::HOLDS {
            self.note_in_flight(look, next);
        }
    }

    /// Whether `next`, which was the first unclaimed request, still is.
    #[inline(always)]
    pub fn is_unclaimed(&self, next: u64) -> bool {
        if Self::POLLS_ALONE {
            return true; // nobody else claims
        }
        let claims = &self.memory().inbox.claims;
        self.agreed(claims.get().next(next) == next)
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
            if m.outbox.committed.load(Relaxed) == next as u32 {
                found = if free() { YES } else { LOOK };
            }
            // What the other warp has written, and acquired with the credit that it noted. The rest of this
            // warp has it by `claim`, before the slot is written.
            self.fence_block();
        }
        found = self.broadcast(found);
        if found == LOOK {
            // The thread that read the doorbell acquires its credit, before slots are overwritten.
            self.acquire_look();
            if self.is_lane_0() {
                self.fence_block(); // for the other polling warp, if it uses this credit
                m.outbox.note_credit(self.responses(), control, next);
                found = u64::from(free());
                if found == NO {
                    m.budget.expect_work();
                    m.outbox.note_first(self.requests(), self.responses(), next);
                    let sound = m.outbox.refresh(self.threads_of_block(), self.responses(), next);
                    found = if sound { u64::from(free()) } else { CORRUPT };
                }
            }
            found = self.broadcast(found);
        }
        if found == CORRUPT && self.is_unclaimed(next) {
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
