//! An exhaustive model of several warps that share [`Claims`]: every order of their steps, with every choice of lines to
//! look at, and a host that sends inline, sends through slots and commands whenever it may: inline also behind what is
//! unread in slots.
//!
//! Each message is answered once; an answer in a slot comes when all before it are out and nothing behind it; a woken
//! block goes to work when all is answered up to one message and nothing behind that; and from each state that can be
//! reached, the end can be.

extern crate std;

use super::claims::Claims;
use super::model::explore;
use std::vec::Vec;

/// How a message comes, and how its answer has to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Inline,
    /// It comes inline, but the host has not read enough answers yet for this one to go inline too.
    AnsweredInSlot,
    /// It comes in a slot: the whole block takes it.
    Slot,
}

/// What a woken block has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Woken {
    No,
    ForSlots,
    ForCommand,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Step {
    /// It reads the claims and whether the block is woken.
    Top,
    /// It has seen the claims and looks at so many requests from `base` on.
    Look { seen: Claims, base: u32, most: u32 },
    /// Its look has shown requests below `sent`, and no answer was in a slot from `slots_end` on.
    Act { seen: Claims, base: u32, most: u32, sent: u32, slots_end: u32, commanded: bool },
    /// Others may have changed the claims since it has looked: what is left of `lines`?
    Again { base: u32, most: u32, lines: u32, slots_end: u32 },
    /// The claims are `seen` now; was there no answer in a slot meanwhile?
    May { seen: Claims, base: u32, most: u32, lines: u32, slots_end: u32 },
    /// It tries to claim that with the claims as it has seen them then.
    Claim { seen: Claims, base: u32, most: u32, lines: u32, slots_end: u32 },
    /// It has claimed them, and answers.
    Answer { base: u32, lines: u32, slots_end: u32 },
    /// It has answered them, and tells the others one by one.
    Told { left: u32 },
    /// It alone may answer, and answers into a slot.
    InSlot { index: u32 },
    /// It has, and lets the others claim again.
    Reopen { next: u32 },
    /// It waits at the barrier, for work.
    Barrier,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State<const WARPS: usize> {
    /// Requests that the host has sent.
    sent: u32,
    commanded: bool,
    obeyed: bool,
    claims: Claims,
    committed: u32,
    woken: Woken,
    /// The first unclaimed request when warp 0 closed the claims.
    next: u32,
    /// A bit for each request that is answered.
    answered: u32,
    /// The answer after the last one in a slot that a warp gave by itself.
    slots_end: u32,
    warps: [Step; WARPS],
}

struct Model<const WARPS: usize> {
    ways: &'static [Way],
    /// Requests that a look at several lines is at.
    lines: u32,
}

impl<const WARPS: usize> Model<WARPS> {
    fn all(&self) -> u32 {
        self.ways.len() as u32
    }

    fn way(&self, index: u32) -> Option<Way> {
        self.ways.get(index as usize).copied()
    }

    fn answer(&self, state: &mut State<WARPS>, index: u32) {
        assert_eq!(state.answered >> index & 1, 0, "{index} is answered twice: {state:?}");
        state.answered |= 1 << index;
    }

    /// Which of the requests from `base` on a look shows that can be answered inline: its line says that it may be taken
    /// before its turn if only inline ones are before it. If one behind the first unclaimed one is claimed, the host has
    /// read enough answers for that one too.
    fn ready(&self, seen: Claims, base: u32, most: u32, sent: u32) -> u32 {
        let ready = |k: &u32| {
            let index = base + k;
            let next = seen.next(0) as u32;
            let must = !seen.is_contiguous() && index == next;
            let in_turn = (next..index).all(|before| self.way(before) != Some(Way::Slot));
            index < sent
                && in_turn
                && match self.way(index) {
                    Some(Way::Inline) => true,
                    Some(Way::AnsweredInSlot) => must,
                    _ => false,
                }
        };
        (0..most).filter(ready).map(|k| 1 << k).sum()
    }

    /// All states that may follow.
    fn after(&self, state: &State<WARPS>) -> Vec<State<WARPS>> {
        let mut after = Vec::new();
        self.host(state, &mut after);
        for w in 0..WARPS {
            self.step(state, w, &mut after);
        }
        if state.warps.iter().all(|step| *step == Step::Barrier) {
            after.push(self.work(state));
        }
        after
    }

    fn host(&self, state: &State<WARPS>, after: &mut Vec<State<WARPS>>) {
        if state.sent < self.all() {
            after.push(State { sent: state.sent + 1, ..state.clone() });
        }
        if !state.commanded {
            after.push(State { commanded: true, ..state.clone() });
        }
    }

    fn step(&self, state: &State<WARPS>, w: usize, after: &mut Vec<State<WARPS>>) {
        let mut go = |step: Step, change: &dyn Fn(&mut State<WARPS>)| {
            let mut next = state.clone();
            next.warps[w] = step;
            change(&mut next);
            after.push(next);
        };
        let same = |_: &mut State<WARPS>| {};
        match state.warps[w] {
            Step::Top => {
                let (seen, next) = (state.claims, state.claims.next(0) as u32);
                if state.woken != Woken::No && w > 0 {
                    return go(Step::Barrier, &same);
                }
                if state.woken != Woken::No && seen.is_contiguous() {
                    // One step: the claims are compared and swapped, and nothing else was read.
                    return go(Step::Barrier, &|s| {
                        (s.claims, s.next) = (Claims::closed(next.into()), next);
                    });
                }
                go(Step::Look { seen, base: next, most: 1 }, &same);
                if state.woken == Woken::No {
                    let first = next - next % self.lines;
                    for group in 0..2 {
                        let base = first + group * self.lines;
                        go(Step::Look { seen, base, most: self.lines }, &same);
                    }
                }
            }
            Step::Look { seen, base, most } => {
                let (sent, slots_end) = (state.sent, state.slots_end);
                let commanded = state.commanded && !state.obeyed;
                go(Step::Act { seen, base, most, sent, slots_end, commanded }, &same);
            }
            Step::Act { seen, base, most, sent, slots_end, commanded } => {
                let lines = self.ready(seen, base, most, sent) & seen.unclaimed(base, most);
                let next = seen.next(0) as u32;
                if lines != 0 && most == 1 && seen.is_contiguous() {
                    return go(Step::Claim { seen, base, most, lines, slots_end }, &same);
                }
                if lines != 0 {
                    return go(Step::Again { base, most, lines, slots_end }, &same);
                }
                let found = if w == 0 && commanded {
                    Woken::ForCommand
                } else if next < sent && self.way(next) == Some(Way::Slot) {
                    Woken::ForSlots
                } else {
                    Woken::No
                };
                let here = next >= base && next - base < most && next < sent;
                if found != Woken::No && (found == Woken::ForCommand || here) {
                    let woken = if state.woken == Woken::No { found } else { state.woken };
                    return go(Step::Top, &|s| s.woken = woken);
                }
                let in_slot = self.way(next) == Some(Way::AnsweredInSlot);
                let all_out = state.committed == next && seen.is_contiguous();
                if here && in_slot && all_out && state.claims == seen {
                    let closed = Claims::closed(u64::from(next) + 1);
                    return go(Step::InSlot { index: next }, &|s| s.claims = closed);
                }
                go(Step::Top, &same);
            }
            Step::Claim { seen, base, most, lines, slots_end } => {
                let run = lines & !lines.wrapping_add(lines & lines.wrapping_neg());
                if state.claims == seen {
                    let claimed = seen.with(base, run);
                    go(Step::Answer { base, lines: run, slots_end }, &|s| s.claims = claimed);
                } else {
                    go(Step::Again { base, most, lines, slots_end }, &same);
                }
            }
            Step::Again { base, most, lines, slots_end } => {
                let (seen, lines) = (state.claims, lines & state.claims.unclaimed(base, most));
                match lines {
                    0 => go(Step::Top, &same),
                    _ => go(Step::May { seen, base, most, lines, slots_end }, &same),
                }
            }
            Step::May { seen, base, most, lines, slots_end } => match state.slots_end {
                end if end == slots_end => {
                    go(Step::Claim { seen, base, most, lines, slots_end }, &same)
                }
                _ => go(Step::Top, &same),
            },
            Step::Answer { base, lines, slots_end } => {
                go(Step::Told { left: lines.count_ones() }, &|s| {
                    assert_eq!(s.slots_end, slots_end, "inline behind one in a slot: {s:?}");
                    for k in (0..32).filter(|k| lines >> k & 1 == 1) {
                        self.answer(s, base + k);
                    }
                })
            }
            Step::Told { left } => {
                let step = if left == 1 { Step::Top } else { Step::Told { left: left - 1 } };
                go(step, &|s| s.committed += 1);
            }
            Step::InSlot { index } => go(Step::Reopen { next: index + 1 }, &|s| {
                assert_eq!(s.answered, (1 << index) - 1, "an answer in a slot out of order: {s:?}");
                self.answer(s, index);
                (s.committed, s.slots_end) = (s.committed + 1, index + 1);
            }),
            Step::Reopen { next } => go(Step::Top, &|s| {
                assert_eq!(s.answered, (1 << next) - 1, "an answer behind one in a slot: {s:?}");
                s.claims = Claims::open(next.into());
            }),
            Step::Barrier => {}
        }
    }

    /// All warps have met: what they do together.
    fn work(&self, state: &State<WARPS>) -> State<WARPS> {
        let mut state = state.clone();
        assert!(state.claims.is_closed(), "{state:?}");
        assert_eq!(
            state.answered,
            (1 << state.next) - 1,
            "work with a hole or behind it: {state:?}"
        );
        assert_eq!(state.committed, state.next, "{state:?}");
        match state.woken {
            Woken::No => panic!("at work without being woken: {state:?}"),
            Woken::ForSlots => {
                while state.next < state.sent && self.way(state.next) == Some(Way::Slot) {
                    let next = state.next;
                    self.answer(&mut state, next);
                    state.next += 1;
                }
            }
            Woken::ForCommand => state.obeyed = true,
        }
        (state.committed, state.woken) = (state.next, Woken::No);
        state.claims = Claims::open(state.next.into());
        state.warps = [Step::Top; WARPS];
        state
    }

    /// Walks through all states; how many there are.
    fn check(&self) -> usize {
        let begin = State {
            sent: 0,
            commanded: false,
            obeyed: false,
            claims: Claims::open(0),
            committed: 0,
            woken: Woken::No,
            next: 0,
            answered: 0,
            slots_end: 0,
            warps: [Step::Top; WARPS],
        };
        let is_end = |state: &State<WARPS>| {
            let is_over = state.answered == (1 << self.all()) - 1 && state.obeyed;
            is_over && state.warps == [Step::Top; WARPS] && state.woken == Woken::No
        };
        explore(begin, |state| Some(self.after(state)), is_end).expect("`after` asserts")
    }
}

const I: Way = Way::Inline;
const A: Way = Way::AnsweredInSlot;
const S: Way = Way::Slot;

#[test]
fn three_warps_answer_each_message_once() {
    let cases: [&'static [Way]; 4] = [&[I, I], &[A, I], &[S, I], &[S, I, I]];
    for ways in cases {
        let states = Model::<3> { ways, lines: 1 }.check();
        assert!(states > 1000, "{ways:?}: {states} states only");
    }
}

#[test]
fn two_warps_answer_each_message_once() {
    let cases: [&'static [Way]; 8] = [
        &[I, I, I, I],
        &[I, I, A, I],
        &[I, A, I, I],
        &[I, S, S, I],
        &[S, I, A, S],
        &[A, A, I, I],
        &[S, I, I, S],
        &[I, S, I, I],
    ];
    for ways in cases {
        for lines in [1, 2] {
            let states = Model::<2> { ways, lines }.check();
            assert!(states > 1000, "{ways:?} {lines}: {states} states only");
        }
    }
}
