//! The inbox: the block's end of the ring of requests. It looks at the doorbell, takes inline messages out
//! of it, and says what is consumed.

use super::boot;
use super::claims::Claims;
use super::end::{End, Lines};
use super::progress::Progress;
use super::signals::Signals;
use super::span::Span;
use super::telemetry::Telemetry;
use crate::block::cell::{Cell, Word};
use crate::block::{Cooperate, Threads, Words};
use ring_shared::atomics::{Atom, MemoryScope, System};
use ring_shared::layout::{HostLine, StatusLine};
use ring_shared::ring::{CONTROL, Control, payload_of, stamp_of};

/// Looks of a CPU's thread for each at the clock.
const LOOKS_PER_TIME: u64 = 16;

/// What a block knows of its requests.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Inbox {
    /// Index of the next request while no warp polls. Set by thread 0, or by the warp that closes the claims.
    pub next: Cell<u64>,
    /// Which requests from there on the polling warps have claimed, by compare-and-swap.
    pub claims: Cell<Claims>,
    /// How far polling warps look: 0 if one pair of them looks at one line, `w` if up to `2^w` pairs look at
    /// [`Threads::LINES`] lines each.
    pub width: Cell<u64>,
    /// Looks of the woken block at a request that it has to answer first. Counted by polling warp 0.
    pub missing: Cell<u64>,
    /// Index after the last request known to be in a slot.
    pub tail: Cell<u64>,
    /// Index of the request that [`Wake::Inline`](super::signals::Wake::Inline) is about.
    pub staged: Cell<u64>,
    /// Whether its response may go inline, if it fits.
    pub answers_inline: Cell<bool>,
    /// Looks of the polling warp where the block is woken for each message: a wait goes on counting where the one before
    /// ended, so that every so many'th look is at the host's command, too.
    pub turns: Cell<u64>,
    /// Whether the host had no other request in flight when it sent the one that was answered last. Set by the thread that has
    /// its control atom, where looks behind answers are timed; so are the next two, by lane 0 of the only polling warp.
    pub was_alone: Cell<bool>,
    /// When the first look behind the answer to such a request is due, in ticks; 0 for at once.
    pub look_due: Cell<u64>,
    /// Ticks between such an answer and a look behind it, as they have proved best.
    pub timed: Cell<u64>,
    /// Tail of the requests as last seen in the doorbell: the low half of an index.
    pub seen_tail: Cell<u64>,
    /// Requests that the host was told to be consumed, as an index.
    pub published: Cell<u64>,
}

/// Atoms of a look: those of several lines, or of one and what may be asked for besides.
const ATOMS: usize = if Threads::LINES > 1 { 8 * Threads::LINES } else { boot::CALL + 1 };

/// Which atoms of a look at one message are the host's command and channel 0's call, if it was asked for them. Where a
/// message takes several lines, they are in place of the last atoms of its second and third line, which hold nothing.
#[inline(always)]
const fn asked_atoms(span: Span) -> (usize, usize) {
    if Threads::LINES > 1 && span.0 > 1 {
        (8 + CONTROL, 16 + CONTROL)
    } else {
        (boot::COMMAND, boot::CALL)
    }
}

/// What a thread does with an atom of an inline request and with that of its response.
#[derive(Clone, Copy)]
pub(crate) struct Aim<'a> {
    /// The stamp of both.
    pub stamp: u32,
    /// Where the request's twelve bytes are taken to.
    pub stage: *mut u8,
    /// Where the response's atom goes.
    pub answer: &'a Atom,
}

/// A look at as many doorbell lines as a warp reads at once. If it was asked for the host's command or channel
/// 0's call, those are in place of two atoms that a look at one message does not need. On a CPU it is at the first line of
/// a message: the others are read when they are needed.
#[derive(Clone, Copy)]
pub(crate) struct Look(<Threads as Cooperate>::Spread<ATOMS>);

/// What one look of a stream's poller shows of requests.
#[derive(Clone, Copy)]
pub(crate) struct Poll {
    /// The control atom of the first request line, which tells of slots first.
    pub control: Control,
    /// That of the line in which the request after those that are known may be.
    pub next: Control,
}

/// By what requests are chosen that can be answered inline. Indices and stamps are low halves.
#[derive(Clone, Copy, Default)]
pub(crate) struct Sought {
    /// Atoms of a request's payload.
    pub atoms: usize,
    /// Most responses that may be inline and unread.
    pub window: u32,
    /// Index after the last response in a slot.
    pub slots_end: u32,
    /// Responses known to be read.
    pub known: u32,
    /// The first unclaimed request.
    pub next: u32,
    /// Stamp of a request whose response surely has a line.
    pub credited: u32,
}

/// Reads an atom that the host may write. A GPU does not wait for it, unless it is to acquire.
///
/// SYNC: on a CPU, and if it `acquires`, it acquires `ring_shared::Outbox::publish` or `push_inline` of the host's end, or
/// `HostLine::give`. On a GPU it acquires nothing else; stamps prove their own atom. Before anything is read for which
/// the doorbell or the command vouches (slots, payload, state), or a slot is overwritten for which its credit does, the
/// whole warp then fences, so that the thread that read the word does.
#[inline(always)]
fn poll(atom: &Atom, acquires: bool) -> Words {
    if acquires { System::observe(atom) } else { System::load_whole(atom) }
}

impl Inbox {
    /// A polling warp: looks at the lines of request `next`, or of `many`, those from `next` on, and, if asked, at
    /// the host's command and at the word by which channel 0 calls the others to leave, all at once. If it `acquires`, the
    /// warp waits for the look, and then needs no fence: a barrier of the warp passes on what its threads have acquired.
    #[inline(always)]
    pub fn look(
        &self,
        (threads, telemetry): (Threads, &Telemetry),
        (requests, next): (Lines<'_>, u32),
        (many, acquires): (bool, bool),
        host: Option<&HostLine>,
        first: Option<&StatusLine>,
    ) -> Look {
        let (span, (command_at, call_at)) = (requests.span(), asked_atoms(requests.span()));
        let at = |k: usize| {
            let message = if many { span.message(k) } else { 0 };
            let line = requests.line_of(next.wrapping_add(message), span.line(k));
            let mut at: *const Atom = line.atoms.as_ptr().wrapping_add(k & 7);
            // Few looks ask for more: those that do not are spared to choose, for a branch is what the barrier keeps it.
            if host.is_some() || first.is_some() {
                at = Threads::opaque(at);
                if let (true, Some(line)) = (k == command_at, host) {
                    at = boot::command(line);
                }
                if let (true, Some(line)) = (k == call_at, first) {
                    at = boot::call(line);
                }
            }
            // SAFETY: an atom of the line, or the 16 bytes at `HostLine::command` (that word and
            // padding behind it), or at `StatusLine::busy` (that word and `call`), each at a multiple
            // of 16 in its line.
            unsafe { &*at }
        };
        if Threads::WARP > 1 {
            return Look(threads.spread::<ATOMS>(|k| poll(at(k), acquires)));
        }
        let (command, call) = (
            host.map_or([0; 2], |_| poll(at(boot::COMMAND), acquires)),
            first.map_or([0; 2], |_| poll(at(boot::CALL), acquires)),
        );
        // The control atom comes before the others, so that they are at least as new.
        let control = poll(&requests.line(next).atoms[CONTROL], acquires);
        let news = Control::from_words(control).tail != next;
        note_look(threads, telemetry, news);
        Look(threads.spread::<ATOMS>(|k| match k {
            CONTROL => control,
            boot::COMMAND => command,
            boot::CALL => call,
            // Who looks at the other half of the line takes it from the producer, who is about to
            // write it.
            _ if !news => [0; 2],
            k => poll(at(k), acquires),
        }))
    }

    /// The polling warp of a stream: reads the newest control atom of requests in slots, which its lane 0 then knows; or, if
    /// there is `all` to look at, all that the host says, at once, and keeps in the block's memory what is not of requests.
    /// It acquires what it reads. Five lines take 0.25 us longer than one on an H200.
    #[inline(always)]
    pub fn poll(
        &self,
        threads: Threads,
        (requests, responses): (End<'_>, End<'_>),
        (host, first): (&HostLine, Option<&StatusLine>),
        all: Option<(&Signals, &Progress)>,
    ) -> Poll {
        let control = |index| -> *const Atom { &requests.line(index).atoms[CONTROL] };
        let Some((signals, progress)) = all else {
            let mut newest = Control::default();
            if threads.is_lane_0() {
                // SYNC: acquires `ring_shared::Outbox::publish`.
                newest = Control::from_words(requests.line(0).atoms[CONTROL].observe());
            }
            return Poll { control: newest, next: newest };
        };
        let (tail, command) = (threads.broadcast(self.tail.get()), boot::command(host));
        // All addresses are there before a thread chooses its own: threads that came here by branches of their own would
        // read one after the other, and each read takes as long as all.
        let [newest, command, call, credit, next] = [
            control(0),
            command,
            first.map_or(command, boot::call),
            core::ptr::from_ref(responses.credit()).cast(),
            control(tail),
        ]
        .map(Threads::opaque);
        let atoms = threads.spread::<5>(|k| {
            let at = match k {
                1 => command,
                2 => call,
                3 => credit,
                4 => next,
                _ => newest,
            };
            // SAFETY: an atom of the doorbell, or the first 16 bytes of the credit line, or as in `look`.
            // SYNC: acquires `publish` of the host's ends, `ring_shared::Outbox` and `ring_shared::Inbox`, and
            // `HostLine::give`.
            unsafe { &*at }.observe()
        });
        threads.each::<5>(atoms, |k, [lo, hi]| match k {
            1 => signals.command.set(lo),
            2 => progress.seen_call.set(hi),
            3 => progress.seen_credit.set(lo),
            _ => {}
        });
        let half = |k, half| threads.half::<5>(atoms, k, half);
        let control = |k| Control::from_words([half(k, 0), half(k, 1)]);
        Poll { control: control(0), next: control(4) }
    }

    /// Lane 0 of a polling warp that has seen the claims as `seen`: makes them `claimed`; whether it has.
    #[inline(always)]
    pub fn claim(&self, threads: Threads, seen: Claims, claimed: Claims) -> bool {
        threads.compare_and_swap(self.claims.word(), seen.to_word(), claimed.to_word())
    }

    /// All threads of a polling warp: claims the first of the requests `lines`, of those `most` from `base` on, that is
    /// still unclaimed, and those side by side with it: which these are. None if `may` does not hold behind the claims
    /// as they are then: since the look, an answer may have gone to a slot.
    #[inline(always)]
    pub fn claim_what_is_left(
        &self,
        threads: Threads,
        (base, lines, most): (u32, u32, u32),
        may: impl Fn() -> bool,
    ) -> u32 {
        const AGAIN: u32 = 1 << 31;
        loop {
            // SYNC: acquires what was told before the claims were opened, behind `note_committed`'s fence.
            let seen = Claims::from_word(threads.acquire(self.claims.word()));
            let left = if may() { lines & seen.unclaimed(base, most) } else { 0 };
            // All threads work it out, and what thread 0 finds counts: in a branch of its own it would stay apart from
            // the others, and the warp run all that follows twice.
            let (mut run, claimed) = (first_run(left), seen.with(base, first_run(left)));
            if threads.is_lane_0() && run != 0 && !self.claim(threads, seen, claimed) {
                run = AGAIN;
            }
            run = threads.broadcast32(run);
            if run != AGAIN {
                return run;
            }
        }
    }

    /// Lane 0 of a polling warp that has seen the claims as `seen`: closes them, with `next` as the first unclaimed
    /// request then; whether it has. It cannot if a request behind the first unclaimed one is claimed.
    #[inline(always)]
    pub fn close(&self, threads: Threads, seen: Claims, next: u64) -> bool {
        let closed = Claims::closed(next);
        seen.is_contiguous()
            && threads.compare_and_swap(self.claims.word(), seen.to_word(), closed.to_word())
    }

    /// One thread: tells the host that requests below `next` are consumed.
    #[inline(always)]
    pub fn publish_consumed(&self, threads: Threads, requests: End<'_>, next: u64) {
        self.published.set(next);
        // SYNC: releases our reads of line and slots to `ring_shared::Outbox::refresh`. On the GPU they are
        // over: their values went into answers, or through a barrier into shared memory.
        threads.store_after_reads(&requests.credit().consumed, next);
    }
}

impl Look {
    /// The look that the launch began with, at the first line of a message. In place of others is anything.
    #[inline(always)]
    pub fn of_boot((threads, span): (Threads, Span), words: &boot::Words) -> Look {
        let (command, call) = asked_atoms(span);
        Look(threads.spread::<ATOMS>(|k| {
            words.atom(match k {
                k if k == command => boot::COMMAND,
                k if k == call => boot::CALL,
                k => k,
            })
        }))
    }

    #[inline(always)]
    fn half(self, threads: Threads, k: usize, half: usize) -> u64 {
        threads.half::<ATOMS>(self.0, k, half)
    }

    /// The control atom of the `message`th message.
    #[inline(always)]
    pub fn control(self, (threads, span): (Threads, Span), message: u32) -> Control {
        let k = span.control(message);
        Control::from_words([self.half(threads, k, 0), self.half(threads, k, 1)])
    }

    /// Tells the control atom of the first line, to `tell`, of the thread that has it.
    #[inline(always)]
    pub fn tell_control(self, threads: Threads, tell: impl Fn(Control)) {
        threads.each::<ATOMS>(self.0, |k, words| {
            if k as u32 == CONTROL as u32 {
                tell(Control::from_words(words));
            }
        });
    }

    /// Whether the host commands something else than `known`, if the look asked for it.
    #[inline(always)]
    pub fn commands(self, (threads, span): (Threads, Span), known: u64) -> bool {
        let (at, _) = asked_atoms(span);
        !threads.holds::<ATOMS>(self.0, |k, [command, _]| k != at || command == known)
    }

    /// The host's command word, if the look asked for it.
    #[inline(always)]
    pub fn command(self, (threads, span): (Threads, Span)) -> u64 {
        self.half(threads, asked_atoms(span).0, 0)
    }

    /// The number of the launch that channel 0 has called to leave, if the look asked for it.
    #[inline(always)]
    pub fn call(self, (threads, span): (Threads, Span)) -> u64 {
        self.half(threads, asked_atoms(span).1, 1)
    }

    /// Which requests, a bit each, are whole in their lines, `atoms` each with the stamp that `aim` says, may be taken
    /// when all before `next` are, and each have credit for the answer to go into a line, of which there are `window`: by
    /// the line itself, or by what others told, `known`. The last answer in a slot is before `slots_end`. The request
    /// with the stamp `credited` needs no credit of its own. One vote. Of lines that the look was not at, it says anything.
    /// `at` gives the atoms of the first request.
    #[inline(always)]
    pub fn ready<'a, 'b>(
        self,
        (threads, span): (Threads, Span),
        Sought { atoms, window, slots_end, known, next, credited }: Sought,
        aim: impl Fn(usize) -> Aim<'a>,
        at: impl Fn(usize) -> &'b Atom,
    ) -> u32 {
        let lines = threads.lines::<ATOMS>(self.0, |k, words| {
            let stamp = aim(k).stamp;
            // Without branches: all of it is less than one of them costs.
            let control = Control::from_words(words);
            let (index, credit) = (stamp.wrapping_sub(1), control.credit);
            let credit = newest(credit, known);
            let has_line = has_line(index, credit, (window, slots_end));
            // The control may be one written behind the message by now, of slots: what it says holds for the message too.
            let is_told = is_behind(control.tail, stamp);
            let in_turn = index.wrapping_sub(next) <= control.early;
            let may = is_told & in_turn & (has_line | (stamp == credited));
            let stamped = (stamp_of(words) == stamp) | (span.payload(k) as u32 >= atoms as u32);
            (stamped | (k as u32 % 8 == CONTROL as u32)) & (may | !span.is_control(k))
        });
        let whole = lines != 0 && beyond_are_stamped(span, atoms, aim(0).stamp, at);
        if whole { span.whole(lines) } else { 0 }
    }

    /// How many messages the host had in flight when it sent the request of a line, for the thread that has the
    /// control atom of that.
    #[inline(always)]
    pub fn depth<'a>(
        self,
        threads: Threads,
        aim: impl Fn(usize) -> Aim<'a> + Copy,
    ) -> impl Fn(usize) -> u32 + Copy {
        threads.early(move |k| {
            let credit = Control::from_words(threads.own::<ATOMS>(self.0, k)).credit;
            aim(k).stamp.wrapping_sub(credit)
        })
    }

    /// Whether the control atom of the `message`th message tells of request `next` or of others behind it.
    #[inline(always)]
    pub fn tells_of(self, (threads, span): (Threads, Span), message: u32, next: u64) -> bool {
        let control = span.control(message);
        !threads.holds::<ATOMS>(self.0, |k, words| {
            k != control || Control::from_words(words).ahead_of(next).is_none()
        })
    }

    /// Whether the `atoms` payload atoms of the `message`th message, whose atoms `at` gives, carry `stamp`.
    #[inline(always)]
    pub fn is_stamped<'a>(
        self,
        (threads, span): (Threads, Span),
        message: u32,
        (atoms, stamp): (usize, u32),
        at: impl Fn(usize) -> &'a Atom,
    ) -> bool {
        let first = span.first(message);
        threads.holds::<ATOMS>(self.0, |k, words| {
            let k = k.wrapping_sub(first);
            let is_one = k < 8 * span.0.min(Threads::LINES) && k % 8 != CONTROL;
            !is_one || span.payload(k) >= atoms || stamp_of(words) == stamp
        }) && beyond_are_stamped(span, atoms, stamp, at)
    }

    /// All threads of a warp: takes the payload of the first `atoms` atoms of each message to where `aim` says. What was
    /// not read from a line is taken as well. `at` gives the atoms of the first message.
    ///
    /// # Safety
    /// That is 4-byte aligned room for the twelve bytes of each payload atom of as many lines as a warp reads at once,
    /// which no other warp uses.
    #[inline(always)]
    pub unsafe fn take<'a, 'b>(
        self,
        (threads, span): (Threads, Span),
        atoms: usize,
        aim: impl Fn(usize) -> Aim<'a>,
        at: impl Fn(usize) -> &'b Atom,
    ) {
        let take = |k: usize, words| {
            if k as u32 % 8 != CONTROL as u32 && (span.payload(k) as u32) < atoms as u32 {
                // SAFETY: the caller's room; those twelve bytes are written once.
                unsafe { aim(k).stage.cast::<[u32; 3]>().write(payload_of(words)) };
            }
        };
        threads.each::<ATOMS>(self.0, |k, words| {
            if k < 8 * Threads::LINES {
                take(k, words);
            }
        });
        span.beyond().for_each(|k| take(k, poll(at(k), true)));
        threads.warp_sync();
    }

    /// All threads of a warp: takes the payload of the first `atoms` atoms of the `message`th message, whose atoms `at`
    /// gives, to `to`.
    ///
    /// # Safety
    /// `to` is 4-byte aligned room for `12 * atoms` bytes, that no other warp uses.
    #[inline(always)]
    pub unsafe fn take_one<'a>(
        self,
        (threads, span): (Threads, Span),
        message: u32,
        atoms: usize,
        to: *mut u8,
        at: impl Fn(usize) -> &'a Atom,
    ) {
        let take = |k: usize, words| {
            let k = k.wrapping_sub(span.first(message));
            if k < 8 * span.0 && k % 8 != CONTROL && span.payload(k) < atoms {
                let to = to.wrapping_add(12 * span.payload(k));
                // SAFETY: the caller's room; those twelve bytes are written once.
                unsafe { to.cast::<[u32; 3]>().write(payload_of(words)) };
            }
        };
        threads.each::<ATOMS>(self.0, |k, words| {
            if k < 8 * Threads::LINES {
                take(k, words);
            }
        });
        span.beyond().for_each(|k| take(k, poll(at(k), true)));
        threads.warp_sync();
    }
}

/// A CPU's thread: whether those of a message's `atoms` payload atoms that are beyond its first line carry `stamp`. `at`
/// gives its atoms.
#[inline(always)]
fn beyond_are_stamped<'a>(
    span: Span,
    atoms: usize,
    stamp: u32,
    at: impl Fn(usize) -> &'a Atom,
) -> bool {
    let mut beyond = span.beyond().filter(|k| span.payload(*k) < atoms);
    beyond.all(|k| stamp_of(poll(at(k), true)) == stamp)
}

/// Whether response `index` may go inline, if it fits: the host has consumed all before `credit`, so whatever was in its line
/// of the `window`, and all in slots, which are before `slots_end`. Low halves.
#[inline(always)]
pub(crate) fn has_line(index: u32, credit: u32, (window, slots_end): (u32, u32)) -> bool {
    (index.wrapping_sub(credit) < window) & is_behind(credit, slots_end)
}

/// Whether index `a` is `b` or behind it: the low halves.
#[inline(always)]
fn is_behind(a: u32, b: u32) -> bool {
    a.wrapping_sub(b) as i32 >= 0
}

/// The one of two indices that is behind the other: the low halves.
#[inline(always)]
pub(crate) fn newest(a: u32, b: u32) -> u32 {
    if is_behind(a, b) { a } else { b }
}

/// The first of `lines`, a bit each, and those side by side with it.
#[inline(always)]
fn first_run(lines: u32) -> u32 {
    lines & !lines.wrapping_add(lines & lines.wrapping_neg())
}

/// A CPU's thread: keeps when the last look was that showed nothing, or some earlier one: to look at the clock
/// costs more than to look at the doorbell.
#[inline(always)]
fn note_look(threads: Threads, telemetry: &Telemetry, news: bool) {
    let (tally, looked) = (telemetry.tally(0), telemetry.looked(0));
    let looks = looked.get().wrapping_add(1);
    looked.set(looks);
    if news {
        tally.before.set(tally.at.get());
    } else if looks.is_multiple_of(LOOKS_PER_TIME) {
        tally.at.set(threads.ticks());
    }
}
