//! Every order of single accesses of a ring's memory, by one producer and one consumer that follow the
//! functions of `ring.rs`: for rings of one, two and four lines, two and four slots, and indices whose low half
//! wraps. No message is taken twice, out of order or from where another lies, and none is left.
//!
//! Accesses are in one order for both sides here. What weaker memory does is loom's to find (`loom.rs`), where
//! rings of several lines take few messages; here they take enough to go round, and there is no bound on who
//! runs when. Stores that no fence parts are made in either order, and so are the two reads of a look.
#![cfg(not(any(loom, miri)))]

use ring_shared::ring::{Control, Seen, decide, may_go_inline, room, stamp, window};
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

/// A control atom without its credit.
type Words = (u32, u32);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    // The producer's own.
    next: u64,
    run_start: u64,
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
        let words = (start as u32, start as u32); // as `Doorbell::reset` leaves it
        State {
            next: start,
            run_start: start,
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
        if left > 0 && may_go_inline(self.next, self.consumed, self.run_start, window) {
            let (index, next) = (self.next, self.next + 1);
            let control = Control::behind_inline(next, 0);
            let pending = Pending {
                stamp: Some(index),
                controls: vec![(index, (control.first, control.tail))],
                ..Pending::default()
            };
            found.push(State { next, run_start: next, pending, ..self.clone() });
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
        let words = (control.first, control.tail);
        let mut controls = vec![(self.next, words)];
        if self.lines.len() > 1 {
            controls.push((0, words));
        }
        let pending = Pending { slots: (self.next..tail).collect(), stamp: None, controls };
        State { next: tail, pending, ..self.clone() }
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
    fn decided(&self, size: Size, found: u32, (first, tail): Words) -> Result<State, String> {
        let (at, begins) = (self.at, State { look: Look::Begins, ..self.clone() });
        Ok(match decide(Control { credit: 0, first, tail }, at, size.capacity) {
            Seen::Nothing => begins,
            Seen::Inline if found == stamp(at) => State { at: at + 1, tail: at + 1, ..begins },
            Seen::Inline => begins,
            Seen::Slots(n) => State { tail: at + u64::from(n), ..begins },
            Seen::Corrupt(corrupt) => return Err(format!("at {at}: {corrupt:?}")),
        })
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
