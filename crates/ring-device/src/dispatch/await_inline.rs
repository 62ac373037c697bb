//! The only polling warp of a block looks for the next inline request, and for nothing else: what lies between two looks, and between
//! the look that shows a request and its handler, is part of each round trip.

use super::channel::Channel;
use crate::block::{Cooperate, Threads};
use crate::kernel::Kernel;
use crate::memory::claims::Claims;
use crate::memory::end::Lines;
use crate::memory::inbox::{Look, Sought};

/// Ticks of a look, about: a read across the bus, there and back. Looks follow each other so.
const LOOK: u64 = 2400;

/// The latest look that is timed, in ticks behind an answer. A host that sends again at once has sent by then.
const LATEST: u64 = MOST_LOOKS as u64 * LOOK - 1;

/// Looks behind an answer, at most, before one that shows the next request of such a host.
const MOST_LOOKS: u32 = 4;

/// Ticks by which looks come later when the timed one came too early for the next request, and sooner when it did not. So it comes too early
/// for one request in five. Such a request waits for another look, more than a microsecond; a later look costs each of the other
/// four what it is later.
const LATER: u64 = 48;
const SOONER: u64 = 12;

/// How long the first look behind an answer is held back, so that one of those that follow each other comes `timed` ticks behind it.
#[inline(always)]
fn hold(timed: u64) -> u64 {
    timed % LOOK
}

/// When the look is to come that is timed, where it was to come at `timed` and the request was there after `looks` others.
#[inline(always)]
fn next_timed(timed: u64, looks: u32) -> u64 {
    let before = (timed / LOOK) as u32; // looks before the one that is timed
    if looks <= before {
        timed.saturating_sub(SOONER)
    } else if looks <= MOST_LOOKS {
        (timed + LATER).min(LATEST)
    } else {
        timed // the host has done something else between
    }
}

/// Inline messages that a polling warp has answered, of which it has not told or counted yet. Times are those that
/// lane 0 knows, in ticks, the low halves.
#[derive(Clone, Copy)]
pub(super) struct Answered {
    pub n: u32,
    pub took: u32,
    pub waited: u32,
}

impl Answered {
    pub const NONE: Answered = Answered { n: 0, took: 0, waited: 0 };

    /// `n` of them, by a handler that `began` and `ended`; the look `before` did not show them.
    #[inline(always)]
    pub fn new(n: u32, (began, ended): (u64, u64), before: u64) -> Answered {
        let short = |ticks: u64| if ticks >> 32 == 0 { ticks as u32 } else { u32::MAX };
        let (took, waited) = (ended.wrapping_sub(began), began.wrapping_sub(before));
        Answered { n, took: short(took), waited: short(waited) }
    }
}

/// What a warp has found that looked for the next inline request.
pub(super) enum Awaited {
    /// The last look, which may tell of requests that want something else.
    Look(Look),
    /// The request is in the input window, and the block is woken for it.
    Staged,
    /// It is answered.
    Answered(Answered),
}

impl<K: Kernel> Channel<'_, K> {
    /// Whether the only polling warp of a block does all that comes between a look and the handler of an inline request.
    pub const AWAITS_INLINE: bool = Self::STAGES || Self::ANSWERS_ALONE;

    /// Whether that warp answers by itself.
    const ANSWERS_ALONE: bool = Self::ANSWERS_INLINE && Self::POLLS_ALONE && Self::IN_ORDER;

    /// Whether the first look behind an answer is held back: where that warp answers, and where the block does whose messages take several
    /// lines, which the host reads and writes one behind the other. Where the block answers one of one line, the host has sent
    /// the next by the time that the block polls again.
    pub const HOLDS: bool =
        Self::ANSWERS_ALONE || Self::STAGES && Self::POLLS_ALONE && Self::SPAN.0 > 1;

    /// The only polling warp, which has noted when it began to look, of an active channel with no budget to look after: looks for
    /// request `next`, `most` times at most, until a look tells of requests. If that is in its line, whole, and its
    /// response may go inline, it is answered, or the block woken for it. How many looks there were before the last one, too.
    #[inline(always)]
    pub fn await_inline(&self, requests: Lines<'_>, next: u64, most: u32) -> (u32, Awaited) {
        let (m, threads) = (self.memory(), self.threads_of_block());
        let (warp, index) = ((threads, Self::SPAN), next as u32);
        // All that can be done before a look, which on a GPU may wait for what it reads.
        if Self::STAGES {
            self.prepare_window();
        }
        let slots_end = m.outbox.slots_end.get() as u32;
        let sought = Sought {
            atoms: Self::ATOMS,
            window: self.responses().window(),
            slots_end,
            known: m.outbox.line_credit.get() as u32,
            next: index,
            credited: index, // which no request of this look has as its stamp
        };
        let aim = self.aim_at(index, m.scratch.bytes(0), Self::INLINE_STRIDE);
        let tally = m.telemetry.tally(0);
        let (mut before, mut at) = (tally.before.get(), tally.at.get());
        // A CPU's thread pauses after each look.
        let most = if Threads::WARP == 1 { 1 } else { most };
        let mut looks = 0;
        let was_due = Self::HOLDS && self.await_look(&mut at);
        loop {
            let request = (requests, index);
            let kind = (false, Self::ACQUIRES);
            let look = m.inbox.look((threads, &m.telemetry), request, kind, None, None);
            let is_ready = look.ready(warp, sought, aim, self.atoms_of(index)) & 1 != 0;
            if !is_ready && looks + 1 < most && !look.tells_of(warp, 0, next) {
                looks += 1;
                (before, at) = (at, self.ticks());
                continue;
            }
            if looks > 0 && self.is_lane_0() {
                tally.before.set(before);
                tally.at.set(at);
            }
            if !is_ready {
                return (looks, Awaited::Look(look));
            }
            if was_due && self.is_lane_0() {
                m.inbox.timed.set(next_timed(m.inbox.timed.get(), looks));
            }
            // On a CPU `look` has noted when looks began.
            let unseen = if Threads::WARP == 1 { tally.before.get() } else { before };
            if Self::STAGES {
                self.stage_for_block(look, (next, 0), (true, false), unseen);
                return (looks, Awaited::Staged);
            }
            self.note_in_flight(look, next);
            let of = (next, index, 1, false);
            let claims = Claims::open(next);
            let (n, began, ended) =
                self.answer_inline(look, claims, of, slots_end, (0, false), aim);
            if self.is_lane_0() {
                self.plan_look();
            }
            return (looks, Awaited::Answered(Answered::new(n, (began, ended), unseen)));
        }
    }

    /// The only polling warp: notes whether the host had another request in flight when it sent request `next`, the first of a look.
    #[inline(always)]
    pub fn note_in_flight(&self, look: Look, next: u64) {
        look.tell_control(self.threads_of_block(), |control| {
            let in_flight = (next as u32).wrapping_sub(control.credit);
            self.memory().inbox.was_alone.set(in_flight == 0);
        });
    }

    /// Lane 0 of the only polling warp, when an answer is out: says when the next look is due. A host that waits for the answer before it
    /// sends again cannot have sent yet: a look that begins at once misses its request, and the next one begins a microsecond later.
    #[inline(always)]
    pub fn plan_look(&self) {
        let inbox = &self.memory().inbox;
        if inbox.was_alone.get() {
            inbox.look_due.set(self.ticks().wrapping_add(hold(inbox.timed.get())));
        }
    }

    /// The only polling warp: waits until a look is due that was planned; whether one was. It begins `at` then.
    #[inline(always)]
    fn await_look(&self, at: &mut u64) -> bool {
        let inbox = &self.memory().inbox;
        let due = inbox.look_due.get();
        if due == 0 {
            return false;
        }
        self.warp_sync();
        loop {
            *at = self.ticks();
            let left = due.wrapping_sub(*at);
            if left == 0 || left > LOOK {
                break;
            }
        }
        self.warp_sync();
        if self.is_lane_0() {
            inbox.look_due.set(0);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::{LATEST, LOOK, hold, next_timed};

    /// When the timed look comes after requests that come so many ticks behind each answer by turns, and how many of the
    /// last thousand it was too early for.
    fn timed_for(ticks: &[u64]) -> (u64, usize) {
        let (mut timed, mut missed) = (0, 0);
        for n in 0..4000 {
            let request = ticks[n % ticks.len()];
            let looks = request.saturating_sub(hold(timed)).div_ceil(LOOK) as u32;
            missed += usize::from(timed < request && n >= 3000);
            timed = next_timed(timed, looks);
        }
        (timed, missed)
    }

    #[test]
    fn a_look_comes_when_most_requests_are_there() {
        assert_eq!(timed_for(&[0]), (0, 0));
        for at in [500, 2000, LOOK - 20, LOOK + 20, 3700, 9000] {
            let (timed, missed) = timed_for(&[at]);
            assert!(
                timed.abs_diff(at) < 60 && (150..250).contains(&missed),
                "{at}: {timed} {missed}"
            );
        }
        // One in ten comes later: the others do not wait for it.
        let mut ticks = [300; 10];
        ticks[9] = 1100;
        let (timed, _) = timed_for(&ticks);
        assert!(timed < 400, "{timed}");
    }

    #[test]
    fn no_look_is_timed_for_a_host_that_does_other_things() {
        assert_eq!(next_timed(700, 5), 700);
        assert_eq!(next_timed(700, u32::MAX), 700);
        assert_eq!(next_timed(LATEST, 4), LATEST);
        let (timed, missed) = timed_for(&[5 * LOOK]);
        assert_eq!((timed, missed), (0, 1000));
    }
}
