//! Every order of single accesses of a ring's memory, by one producer and one consumer that follow the
//! functions of `ring.rs`: for rings of one, two and four lines, two and four slots, and indices whose low half
//! wraps. No message is taken twice, out of order or from where another lies, and none is left. Of a consumer that takes
//! inline messages out of order, only inline ones are before what a line says may be taken.
//!
//! The producer sends inline whenever the line is free, more often than `may_go_inline` lets it: what that says besides is
//! for speed.
//!
//! Accesses are in one order for both sides here. What weaker memory does is loom's to find (`loom.rs`), where
//! rings of several lines take few messages; here they take enough to go round, and there is no bound on who
//! runs when. Stores that no fence parts are made in either order, and so are the two reads of a look.
#![cfg(not(any(loom, miri)))]

use ring_shared::ring::{Control, Seen, decide, early, room, stamp, window};
use std::collections::HashSet;

/// A ring, and how many messages go through it.
#[derive(Clone, Copy, Debug)]
struct Size {
    lines: u32,
    capacity: u32,
    start: u64,
    messages: u64,
}

/// What a producer is about to store, in any order; slots before it, one by one.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
struct Pending {
    slots: Vec<u64>,
    stamp: Option<u64>,
    /// In the line of that index.
    controls: Vec<(u64, Words)>,
}

/// A control atom without its credit: `first`, `tail`, `early`.
type Words = (u32, u32, u32);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    // The producer's own.
    next: u64,
    run_start: u64,
    slots_end: u64,
    consumed: u64,
    pending: Pending,
    // Memory.
    lines: Vec<(u32, Words)>,
    slots: Vec<Option<u64>>,
    told: u64,
    // The consumer's own.
    at: u64,
    tail: u64,
    look: Look,
}

/// What a consumer has read of the line at which it looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Look {
    Begins,
    Stamp(u32),
    Control(Words),
}

impl State {
    fn new(size: Size) -> State {
        let start = size.start;
        let words = (start as u32, start as u32, 0); // as `Doorbell::reset` leaves it
        State {
            next: start,
            run_start: start,
            slots_end: start,
            consumed: start,
            pending: Pending::default(),
            lines: vec![(start as u32, words); size.lines as usize],
            slots: vec![None; size.capacity as usize],
            told: start,
            at: start,
            tail: start,
            look: Look::Begins,
        }
    }

    fn line(&self, index: u64) -> usize {
        index as usize % self.lines.len()
    }

    /// Where the producer may go on to.
    fn produced(&self, size: Size) -> Vec<State> {
        let mut found = Vec::new();
        if self.pending != Pending::default() {
            return self.stored();
        }
        if self.consumed != self.told {
            found.push(State { consumed: self.told, ..self.clone() });
        }
        let left = size.start + size.messages - self.next;
        let window = window(size.lines, size.capacity);
        if left > 0 && self.next - self.consumed < u64::from(window) {
            let (index, next) = (self.next, self.next + 1);
            let is_behind_slots = self.slots_end > self.consumed;
            let run_start = if is_behind_slots { self.run_start } else { next };
            let control = match is_behind_slots && self.line(index) == 0 {
                true => Control::behind_slots(run_start, self.consumed, next, 0),
                false => Control::behind_inline(next, 0),
            };
            let early = if is_behind_slots { early(index, self.slots_end) } else { u32::MAX };
            let pending = Pending {
                slots: if is_behind_slots { vec![index] } else { Vec::new() },
                stamp: Some(index),
                controls: vec![(index, (control.first, control.tail, early))],
            };
            found.push(State { next, run_start, pending, ..self.clone() });
        }
        for n in 1..=2.min(left) {
            if n <= u64::from(room(self.next, self.consumed, size.capacity)) {
                found.push(self.committing(self.next + n));
            }
        }
        found
    }

    /// The credit is renewed, by a producer that has no room.
    fn renewing(&self, size: Size) -> Option<State> {
        let full = room(self.next, self.consumed, size.capacity) == 0;
        (full && self.pending == Pending::default()).then(|| self.committing(self.next))
    }

    /// As it stores the messages before `tail` in slots.
    fn committing(&self, tail: u64) -> State {
        let control = Control::behind_slots(self.run_start, self.consumed, tail, 0);
        let words = |line: u64| (control.first, control.tail, self.lines[self.line(line)].1.2);
        let mut controls = vec![(self.next, words(self.next))];
        if self.lines.len() > 1 {
            controls.push((0, words(0)));
        }
        let pending = Pending { slots: (self.next..tail).collect(), stamp: None, controls };
        let slots_end = if tail > self.next { tail } else { self.slots_end };
        State { next: tail, slots_end, pending, ..self.clone() }
    }

    /// One of the stores that are pending is made.
    fn stored(&self) -> Vec<State> {
        let mut found = Vec::new();
        if let [index, rest @ ..] = self.pending.slots.as_slice() {
            let mut one = self.clone();
            one.slots[*index as usize % self.slots.len()] = Some(*index);
            one.pending.slots = rest.to_vec();
            return vec![one]; // a fence stands before the control
        }
        if let Some(index) = self.pending.stamp {
            let mut one = self.clone();
            let line = self.line(index);
            one.lines[line].0 = stamp(index);
            one.pending.stamp = None;
            found.push(one);
        }
        for k in 0..self.pending.controls.len() {
            let mut one = self.clone();
            let (index, words) = one.pending.controls.remove(k);
            let line = self.line(index);
            one.lines[line].1 = words;
            found.push(one);
        }
        found
    }

    /// Where the consumer may go on to, or what is wrong.
    fn consumed(&self, size: Size) -> Result<Vec<State>, String> {
        let mut found = Vec::new();
        if self.told != self.at {
            found.push(State { told: self.at, ..self.clone() });
        }
        if self.at == size.start + size.messages {
            return Ok(found);
        }
        let at = self.at;
        if self.tail != at {
            let there = self.slots[at as usize % self.slots.len()];
            if there != Some(at) {
                return Err(format!("message {at} is taken from a slot that holds {there:?}"));
            }
            found.push(State { at: at + 1, ..self.clone() });
            return Ok(found);
        }
        let (seen_stamp, words) = self.lines[self.line(at)];
        let look = |look| State { look, ..self.clone() };
        match self.look {
            Look::Begins => {
                found.extend([look(Look::Stamp(seen_stamp)), look(Look::Control(words))])
            }
            Look::Stamp(seen_stamp) => found.push(self.decided(size, seen_stamp, words)?),
            Look::Control(words) => found.push(self.decided(size, seen_stamp, words)?),
        }
        Ok(found)
    }

    /// The consumer acts on a look.
    fn decided(&self, size: Size, found: u32, (first, tail, _): Words) -> Result<State, String> {
        let (at, begins) = (self.at, State { look: Look::Begins, ..self.clone() });
        let control = Control { first, tail, ..Control::default() };
        Ok(match decide(control, at, size.capacity) {
            Seen::Nothing => begins,
            Seen::Inline if found == stamp(at) => State { at: at + 1, tail: at + 1, ..begins },
            Seen::Inline => begins,
            Seen::Slots(n) => State { tail: at + u64::from(n), ..begins },
            Seen::Corrupt(corrupt) => return Err(format!("at {at}: {corrupt:?}")),
        })
    }

    /// What a consumer finds that takes inline messages out of order: none is in a slot that is before one it may take.
    fn check_early(&self, size: Size) -> Result<(), String> {
        let is_whole = |index: u64| self.lines[self.line(index)].0 == stamp(index);
        for index in self.at..self.next {
            let (_, tail, early) = self.lines[self.line(index)].1;
            let is_told = tail.wrapping_sub(stamp(index)) as i32 >= 0;
            if !is_whole(index) || !is_told {
                continue;
            }
            let first = index.saturating_sub(early.into()).max(self.at).max(size.start);
            if let Some(before) = (first..index).find(|before| !is_whole(*before)) {
                return Err(format!("{index} may be taken before {before}, which is in a slot"));
            }
        }
        Ok(())
    }
}

/// Goes through all states; how many there are.
fn search(size: Size) -> Result<usize, String> {
    let start = State::new(size);
    let (mut seen, mut todo) = (HashSet::from([start.clone()]), vec![start]);
    let end = size.start + size.messages;
    while let Some(state) = todo.pop() {
        let mut next = state.produced(size);
        next.extend(state.consumed(size).map_err(|wrong| format!("{wrong}\n{state:?}"))?);
        state.check_early(size).map_err(|wrong| format!("{wrong}\n{state:?}"))?;
        // A look that shows nothing changes nothing: so it must not be all that can happen.
        let looks_only = |one: &State| State { look: state.look, ..one.clone() } == state;
        if state.at < end && state.look == Look::Begins && next.iter().all(looks_only) {
            let line = state.lines[state.line(state.at)];
            let shows = state.decided(size, line.0, line.1)?;
            if shows == state {
                return Err(format!("nothing happens any more\n{state:?}"));
            }
        }
        next.extend(state.renewing(size));
        for one in next {
            if seen.insert(one.clone()) {
                todo.push(one);
            }
        }
    }
    Ok(seen.len())
}

#[test]
fn every_order_of_accesses_takes_each_message_once() {
    for lines in [1, 2, 4] {
        for capacity in [1, 2, 4] {
            for start in [0, (1 << 32) - 3] {
                let messages = if lines == 4 && capacity == 4 { 6 } else { 7 };
                let size = Size { lines, capacity, start, messages };
                let states = search(size).unwrap_or_else(|wrong| panic!("{size:?}: {wrong}"));
                println!("{size:?}: {states} states");
            }
        }
    }
}
