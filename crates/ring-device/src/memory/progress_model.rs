//! An exhaustive model of workers that take requests from one index while the committer looks how far they are: every
//! order of their steps, with chunks of one and of two requests.
//!
//! Each request is taken once; what the committer makes of index and cursors is answered, all of it; and from each state
//! that can be reached, the end can be. A worker that says where it begins only behind the swap breaks that.

extern crate std;

use super::model::explore;
use std::vec::Vec;

const WORKERS: usize = 2;

/// Requests that may be handled.
const LIMIT: u8 = 4;

/// The cursor of a worker that has none.
const NONE: u8 = u8::MAX;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Worker {
    Free,
    /// It has read `taken`.
    Seen(u8),
    /// Its cursor says so.
    Said(u8),
    /// It has taken the requests from the first number up to the second, and answers.
    Has(u8, u8),
    /// It has, and its cursor does not say so yet: the mistake.
    Silent(u8, u8),
    /// They are answered; its cursor does not say so yet.
    Done,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Committer {
    /// The least of what it has read so far.
    least: u8,
    /// Cursors that it has read; `None` before it has read `taken`.
    read: Option<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct State {
    taken: u8,
    cursors: [u8; WORKERS],
    workers: [Worker; WORKERS],
    committer: Committer,
    committed: u8,
    /// A bit for each request.
    answered: u8,
}

const BEGIN: State = State {
    taken: 0,
    cursors: [NONE; WORKERS],
    workers: [Worker::Free; WORKERS],
    committer: Committer { least: NONE, read: None },
    committed: 0,
    answered: 0,
};

const fn below(index: u8) -> u8 {
    (1 << index) - 1
}

impl State {
    /// The states after a step of worker `w`; in the `right` order it says where it begins before it swaps.
    fn work(mut self, w: usize, right: bool) -> Vec<State> {
        let mut next = Vec::new();
        let mut to = |state: State, worker| {
            let mut state = state;
            state.workers[w] = worker;
            next.push(state);
        };
        match self.workers[w] {
            Worker::Free if self.taken < LIMIT => to(self, Worker::Seen(self.taken)),
            Worker::Free => {
                self.cursors[w] = NONE;
                to(self, Worker::Free);
            }
            Worker::Seen(taken) if right => {
                self.cursors[w] = taken;
                to(self, Worker::Said(taken));
            }
            Worker::Seen(taken) | Worker::Said(taken) if taken != self.taken => {
                to(self, Worker::Free);
            }
            Worker::Seen(taken) | Worker::Said(taken) => {
                for n in [1, 2] {
                    self.taken = (taken + n).min(LIMIT);
                    let has = if right { Worker::Has } else { Worker::Silent };
                    to(self, has(taken, self.taken));
                }
            }
            Worker::Silent(from, end) => {
                self.cursors[w] = from;
                to(self, Worker::Has(from, end));
            }
            Worker::Has(from, end) => {
                let these = below(end) & !below(from);
                assert_eq!(self.answered & these, 0, "taken twice: {self:?}");
                self.answered |= these;
                to(self, Worker::Done);
            }
            Worker::Done => {
                self.cursors[w] = NONE;
                to(self, Worker::Free);
            }
        }
        next
    }

    /// The state after the committer's next step; `None` if what it would commit is not answered.
    fn commit(mut self) -> Option<State> {
        let Committer { least, read } = self.committer;
        self.committer = match read {
            None => Committer { least: self.taken, read: Some(0) },
            Some(w) if w < WORKERS => {
                Committer { least: least.min(self.cursors[w]), read: Some(w + 1) }
            }
            Some(_) => {
                self.committed = self.committed.max(least);
                BEGIN.committer
            }
        };
        (below(self.committed) & !self.answered == 0).then_some(self)
    }
}

/// How many states there are; `None` if the committer commits what is not answered.
fn check(right: bool) -> Option<usize> {
    let after = |state: &State| {
        let mut next = Vec::from([state.commit()?]);
        (0..WORKERS).for_each(|w| next.extend(state.work(w, right)));
        Some(next)
    };
    explore(BEGIN, after, |state| state.committed == LIMIT)
}

#[test]
fn what_is_committed_is_answered_in_every_order() {
    let states = check(true).expect("committed before it was answered");
    assert!(states > 1000, "only {states} states");
}

#[test]
fn a_cursor_set_behind_the_swap_is_found() {
    assert_eq!(check(false), None);
}
