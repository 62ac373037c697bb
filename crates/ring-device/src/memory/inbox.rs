//! The inbox: the block's end of the ring of requests. It looks at the doorbell, takes inline messages out
//! of it, and says what is consumed.

use super::boot;
use super::claims::Claims;
use super::end::{End, Lines};
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
    /// Tail of the requests as last seen in the doorbell: the low half of an index.
    pub seen_tail: Cell<u64>,
    /// Requests that the host was told to be consumed, as an index.
    pub published: Cell<u64>,
}

/// Atoms of a look: those of several lines, or of one and what may be asked for besides.
const ATOMS: usize = if Threads::LINES > 1 { 8 * Threads::LINES } else { boot::CALL + 1 };

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
/// 0's call, those are in place of two atoms of the second line, [`boot::COMMAND`] and [`boot::CALL`].
#[derive(Clone, Copy)]
pub(crate) struct Look(<Threads as Cooperate>::Spread<ATOMS>);

/// What one look of a stream's poller shows.
#[derive(Clone, Copy)]
pub(crate) struct Poll {
    /// The control atom of the first request line, which tells of slots first.
    pub control: Control,
    /// That of the line in which the request after those that are known may be.
    pub next: Control,
    /// The host's command word.
    pub command: u64,
    /// The launch that channel 0 has called to leave.
    pub call: u64,
    /// Responses consumed, by the host's credit line.
    pub credit: u64,
}

/// Reads an atom that the host may write. A GPU does not wait for it.
///
/// SYNC: on a CPU it acquires `ring_shared::Outbox::publish` of the host's end, or `HostLine::give`. On a GPU it
/// acquires nothing by itself; stamps prove their own atom. Before anything is read for which the doorbell or the
/// command vouches (slots, payload, state), or a slot is overwritten for which its credit does, the whole warp
/// fences, so that the thread that read the word does.
#[inline(always)]
fn poll(atom: &Atom) -> Words {
    System::load_whole(atom)
}

impl Inbox {
    /// A polling warp: looks at the line of request `next`, or at `many`, those from `next` on, and, if asked, at
    /// the host's command and at the word by which channel 0 calls the others to leave, all at once.
    #[inline(always)]
    pub fn look(
        &self,
        (threads, telemetry): (Threads, &Telemetry),
        (requests, next): (Lines<'_>, u32),
        many: bool,
        host: Option<&HostLine>,
        first: Option<&StatusLine>,
    ) -> Look {
        let at = |k: usize| {
            let line = if many { k as u32 / 8 } else { 0 };
            let line = requests.line(next.wrapping_add(line));
            let mut at: *const Atom = line.atoms.as_ptr().wrapping_add(k & 7);
            // Few looks ask for more: those that do not are spared to choose, for a branch is what the barrier keeps it.
            if host.is_some() || first.is_some() {
                at = Threads::opaque(at);
                if let (boot::COMMAND, Some(line)) = (k, host) {
                    at = boot::command(line);
                }
                if let (boot::CALL, Some(line)) = (k, first) {
                    at = boot::call(line);
                }
            }
            // SAFETY: an atom of the line, or the 16 bytes at `HostLine::command` (that word and
            // padding behind it), or at `StatusLine::busy` (that word and `call`), each at a multiple
            // of 16 in its line.
            unsafe { &*at }
        };
        if Threads::WARP > 1 {
            return Look(threads.spread::<ATOMS>(|k| poll(at(k))));
        }
        let (command, call) = (
            host.map_or([0; 2], |_| poll(at(boot::COMMAND))),
            first.map_or([0; 2], |_| poll(at(boot::CALL))),
        );
        // The control atom comes before the others, so that they are at least as new.
        let control = poll(&requests.line(next).atoms[CONTROL]);
        let news = Control::from_words(control).tail != next;
        note_look(threads, telemetry, news);
        Look(threads.spread::<ATOMS>(|k| match k {
            CONTROL => control,
            boot::COMMAND => command,
            boot::CALL => call,
            // Who looks at the other half of the line takes it from the producer, who is about to
            // write it.
            _ if !news => [0; 2],
            k => poll(at(k)),
        }))
    }

    /// The polling warp of a stream: reads all that the host says, in one transaction, and acquires it.
    #[inline(always)]
    pub fn poll(
        &self,
        threads: Threads,
        (requests, responses): (End<'_>, End<'_>),
        host: &HostLine,
        first: Option<&StatusLine>,
    ) -> Poll {
        let tail = threads.broadcast(self.tail.get());
        let atoms = threads.spread::<5>(|k| {
            let at: Option<*const Atom> = match k {
                0 => Some(&requests.line(0).atoms[CONTROL]),
                4 if requests.line_count() > 1 => Some(&requests.line(tail).atoms[CONTROL]),
                1 => Some(boot::command(host)),
                2 => first.map(boot::call),
                3 => Some(core::ptr::from_ref(responses.credit()).cast()),
                _ => None,
            };
            // SAFETY: an atom of the doorbell, or the first 16 bytes of the credit line, or as in `look`.
            // SYNC: acquires `publish` of the host's ends, `ring_shared::Outbox` and `ring_shared::Inbox`, and
            // `HostLine::give`.
            at.map_or([0; 2], |at| unsafe { &*at }.observe())
        });
        let half = |k, half| threads.half::<5>(atoms, k, half);
        let control = |k| Control::from_words([half(k, 0), half(k, 1)]);
        Poll {
            control: control(0),
            next: if requests.line_count() > 1 { control(4) } else { control(0) },
            command: half(1, 0),
            call: half(2, 1),
            credit: half(3, 0),
        }
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
    /// The look that the launch began with.
    #[inline(always)]
    pub fn of_boot(threads: Threads, words: &boot::Words) -> Look {
        Look(threads.spread::<ATOMS>(|k| words.atom(k)))
    }

    #[inline(always)]
    fn half(self, threads: Threads, k: usize, half: usize) -> u64 {
        threads.half::<ATOMS>(self.0, k, half)
    }

    /// The control atom of the `line`th line.
    #[inline(always)]
    pub fn control(self, threads: Threads, line: u32) -> Control {
        let k = if Threads::LINES > 1 { 8 * line as usize + CONTROL } else { CONTROL };
        Control::from_words([self.half(threads, k, 0), self.half(threads, k, 1)])
    }

    /// The thread that has the control atom of the first line: keeps its tail.
    #[inline(always)]
    pub fn tell_tail(self, threads: Threads, to: &Cell<u64>) {
        threads.each::<ATOMS>(self.0, |k, words| {
            if k as u32 == CONTROL as u32 {
                to.set(Control::from_words(words).tail.into());
            }
        });
    }

    /// Whether the host commands something else than `known`, if the look asked for it.
    #[inline(always)]
    pub fn commands(self, threads: Threads, known: u64) -> bool {
        !threads.holds::<ATOMS>(self.0, |k, [command, _]| k != boot::COMMAND || command == known)
    }

    /// The host's command word, if the look asked for it.
    #[inline(always)]
    pub fn command(self, threads: Threads) -> u64 {
        self.half(threads, boot::COMMAND, 0)
    }

    /// The number of the launch that channel 0 has called to leave, if the look asked for it.
    #[inline(always)]
    pub fn call(self, threads: Threads) -> u64 {
        self.half(threads, boot::CALL, 1)
    }

    /// Which requests, a bit each, are whole in their lines, `atoms` each with the stamp that `aim` says, with nothing
    /// in slots before them and each with credit for its answer to go into a line, of which there are `window`; the
    /// last answer in a slot is before `slots_end`. The one with the stamp `credited` needs no credit of its own. One
    /// vote. Of lines that the look was not at, it says anything.
    #[inline(always)]
    pub fn ready<'a>(
        self,
        threads: Threads,
        (atoms, window, slots_end, credited): (usize, u32, u32, u32),
        aim: impl Fn(usize) -> Aim<'a>,
    ) -> u32 {
        threads.lines::<ATOMS>(self.0, |k, words| {
            let (stamp, k) = (aim(k).stamp, k as u32 % 8);
            // Without branches: all of it is less than one of them costs.
            let control = Control::from_words(words);
            let unread = stamp.wrapping_sub(1).wrapping_sub(control.credit);
            let all_inline = is_behind(control.credit, slots_end);
            // The first line's tail may be that of slots behind the message by now.
            let is_inline = is_behind(control.tail, stamp) & is_behind(control.first, stamp);
            let may = is_inline & ((unread < window) & all_inline | (stamp == credited));
            let stamped = (stamp_of(words) == stamp) | (k >= atoms as u32);
            (stamped | (k == CONTROL as u32)) & (may | (k != CONTROL as u32))
        })
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

    /// Whether the `line`th line tells of request `next` or of others behind it.
    #[inline(always)]
    pub fn tells_of(self, threads: Threads, line: u32, next: u64) -> bool {
        let control = if Threads::LINES > 1 { 8 * line as usize + CONTROL } else { CONTROL };
        !threads.holds::<ATOMS>(self.0, |k, words| {
            k != control || Control::from_words(words).ahead_of(next).is_none()
        })
    }

    /// Whether the first `n` atoms of the `line`th line carry `stamp`.
    #[inline(always)]
    pub fn is_stamped(self, threads: Threads, line: u32, n: usize, stamp: u32) -> bool {
        let first = if Threads::LINES > 1 { 8 * line as usize } else { 0 };
        threads.holds::<ATOMS>(self.0, |k, words| {
            !(first..first + n).contains(&k) || stamp_of(words) == stamp
        })
    }

    /// All threads of a warp: takes the payload of the first `atoms` atoms of each line to where `aim` says. What was not
    /// read from a line is taken as well.
    ///
    /// # Safety
    /// That is 4-byte aligned room for the twelve bytes of each payload atom of as many lines as a warp reads at once,
    /// which no other warp uses.
    #[inline(always)]
    pub unsafe fn take<'a>(self, threads: Threads, atoms: usize, aim: impl Fn(usize) -> Aim<'a>) {
        threads.each::<ATOMS>(self.0, |k, words| {
            if (k as u32 % 8) < atoms as u32 && k < 8 * Threads::LINES {
                // SAFETY: the caller's room; those twelve bytes are written once.
                unsafe { aim(k).stage.cast::<[u32; 3]>().write(payload_of(words)) };
            }
        });
        threads.warp_sync();
    }

    /// All threads of a warp: takes the payload of the first `atoms` atoms of the `line`th line to `to`.
    ///
    /// # Safety
    /// `to` is 4-byte aligned room for `12 * atoms` bytes, that no other warp uses.
    #[inline(always)]
    pub unsafe fn take_one(self, threads: Threads, line: u32, atoms: usize, to: *mut u8) {
        threads.each::<ATOMS>(self.0, |k, words| {
            let k = if Threads::LINES > 1 { k.wrapping_sub(8 * line as usize) } else { k };
            if k < atoms {
                // SAFETY: the caller's room; those twelve bytes are written once.
                unsafe { to.wrapping_add(12 * k).cast::<[u32; 3]>().write(payload_of(words)) };
            }
        });
        threads.warp_sync();
    }
}

/// Whether index `a` is `b` or behind it: the low halves.
#[inline(always)]
fn is_behind(a: u32, b: u32) -> bool {
    a.wrapping_sub(b) as i32 >= 0
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
