//! An exhaustive model of a stream of a kernel with ports: the first warp begins steps of one chunk or of two and tells of the
//! chunks that are done, while two workers, with chunks of their own, look for the chunk's step, place what it emits, which is one
//! message or none, and write it. Every order of their steps, with room for two steps under way.
//!
//! Each worker finds its chunk; messages lie in the order of the chunks that they come from; what is told of is written, and all of
//! those chunks is told; and from each state that can be reached, the end can be. A step whose chunks are told by two words breaks
//! the first, a worker that says that it is done before it has written the third, and a first warp that does not ask of which chunk
//! the place is that a worker has noted, the second or the third.

extern crate std;

use super::model::explore;
use std::vec::Vec;

const WORKERS: u8 = 2;
const PLACES: usize = 2;

/// Chunks in all.
const LIMIT: u8 = 5;

/// What is done the wrong way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mistake {
    None,
    /// The number of a step's first chunk and how many there are, are two words.
    TwoWords,
    /// A chunk is done before it is written.
    DoneFirst,
    /// The first warp takes the place that a worker has noted for that of the chunk it looks for.
    AnyPlace,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Step {
    first: u8,
    count: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Worker {
    Free,
    /// It has looked at the steps before this place, and found its chunk's, if it has.
    Looks(usize, Option<usize>),
    /// It has the chunk, which emits so many messages.
    Has(u8),
    /// They have their place, from the index on, and the next worker its turn.
    Passed(u8, u8),
    /// That is noted.
    Placed(u8, u8),
    /// They are written.
    Written,
    /// It has said that they are, and has not written them: the mistake.
    Late(u8, u8),
}

/// How far the first warp is to tell of chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Tells {
    Nothing,
    /// It has looked at the first worker's next chunk.
    Saw(u8),
    /// All chunks before that number are done, which the worker has.
    Knows(u8, usize),
    /// And the chunk has its place.
    HasPlace(u8, usize),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct State {
    steps: [Step; PLACES],
    begun: u8,
    told: u8,
    tells: Tells,
    /// Chunks of which was told.
    done: u8,
    /// Chunks that the first warp has in steps, and those that workers may take.
    chunks: u8,
    published: u8,
    /// The first warp has changed how many chunks the step has, and is to change the number of the first.
    half: Option<u8>,
    turn: (u8, u8),
    /// Of each worker its next chunk, as it has said, and the turn in which it has placed the last one.
    next: [u8; WORKERS as usize],
    placed: [(u8, u8); WORKERS as usize],
    workers: [(u8, Worker); WORKERS as usize],
    /// Which chunk the message at each index comes from; 0 is none, else its number and one.
    slots: [u8; LIMIT as usize],
    committed: u8,
}

const BEGIN: State = State {
    steps: [Step { first: 0, count: 0 }; PLACES],
    begun: 0,
    told: 0,
    tells: Tells::Nothing,
    done: 0,
    chunks: 0,
    published: 0,
    half: None,
    turn: (0, 0),
    next: [0, 1],
    placed: [(u8::MAX, 0); WORKERS as usize],
    workers: [(0, Worker::Free), (1, Worker::Free)],
    slots: [0; LIMIT as usize],
    committed: 0,
};

impl State {
    /// The states after a step of the first warp; `None` if what it would tell of is not written, or out of order.
    fn lead(self, mistake: Mistake) -> Option<Vec<State>> {
        let mut next = Vec::new();
        if let Some(first) = self.half {
            let mut state = self;
            state.steps[(self.begun - 1) as usize % PLACES].first = first;
            state.half = None;
            next.push(state);
        } else if self.published < self.chunks {
            next.push(State { published: self.chunks, ..self });
        } else if self.chunks < LIMIT && usize::from(self.begun - self.told) < PLACES {
            for count in [1, 2] {
                let count = count.min(LIMIT - self.chunks);
                let mut state = self;
                let step = &mut state.steps[self.begun as usize % PLACES];
                let first = if mistake == Mistake::TwoWords { step.first } else { self.chunks };
                *step = Step { first, count };
                state.half = (mistake == Mistake::TwoWords).then_some(self.chunks);
                (state.begun, state.chunks) = (self.begun + 1, self.chunks + count);
                next.push(state);
            }
        }
        match self.tells {
            Tells::Nothing => next.push(self.so_far(Tells::Saw(self.next[0]))),
            Tells::Saw(first) => {
                let (second, is_first) = (self.next[1], first < self.next[1]);
                let (upto, worker) = if is_first { (first, 0) } else { (second, 1) };
                let knows = Tells::Knows(upto, worker);
                next.push(self.so_far(if upto > self.done { knows } else { Tells::Nothing }));
            }
            Tells::Knows(upto, worker) if self.turn.0 != upto => {
                next.push(self.so_far(Tells::HasPlace(upto, worker)));
            }
            Tells::Knows(upto, _) => next.push(self.tell_of(upto, self.turn.1)?),
            Tells::HasPlace(upto, worker) => {
                let (chunk, end) = self.placed[worker];
                next.push(match chunk == upto || mistake == Mistake::AnyPlace {
                    true => self.tell_of(upto, end)?,
                    false => self.so_far(Tells::Nothing), // it is noted later, or the next one is
                });
            }
        }
        Some(next)
    }

    /// As it is, but for how far the first warp is.
    fn so_far(mut self, tells: Tells) -> State {
        self.tells = tells;
        self
    }

    /// What is after it is told of all chunks before `upto`, the messages of which end at the index `end`; `None` if they are not
    /// written, out of order, or end elsewhere.
    fn tell_of(self, upto: u8, end: u8) -> Option<State> {
        let told = self.slots.get(self.committed as usize..end as usize)?;
        let is_written = told.iter().all(|chunk| *chunk > 0);
        let all = &self.slots[..end as usize];
        let is_in_order = all.windows(2).all(|two| two[0] < two[1]);
        // Chunks are in `slots` by their number and one.
        let are_all = all.iter().all(|chunk| *chunk <= upto)
            && self.slots[end as usize..].iter().all(|chunk| *chunk == 0 || *chunk > upto);
        let mut state = State { tells: Tells::Nothing, done: upto, committed: end, ..self };
        while state.told < state.begun {
            let step = state.steps[state.told as usize % PLACES];
            if step.first + step.count > upto {
                break;
            }
            state.told += 1;
        }
        (is_written && is_in_order && are_all).then_some(state)
    }

    /// The states after a step of worker `w`; `None` if it has not found its chunk's step.
    fn work(self, w: usize, mistake: Mistake) -> Option<Vec<State>> {
        let (number, worker) = self.workers[w];
        let with = |state: State, number: u8, worker: Worker| {
            let mut state = state;
            state.workers[w] = (number, worker);
            state
        };
        let write = |mut state: State, from: u8, n: u8| {
            (from..from + n).for_each(|index| state.slots[index as usize] = number + 1);
            state
        };
        let next = match worker {
            Worker::Free if number < self.published => with(self, number, Worker::Looks(0, None)),
            Worker::Free => return Some(Vec::new()),
            Worker::Looks(place, found) if place < PLACES => {
                let step = self.steps[place];
                let is_its = number.wrapping_sub(step.first) < step.count;
                let found = found.or(is_its.then_some(place));
                with(self, number, Worker::Looks(place + 1, found))
            }
            Worker::Looks(_, found) => {
                let place = found?;
                let step = self.steps[place];
                if number.wrapping_sub(step.first) >= step.count {
                    return None; // another step's
                }
                return Some([0, 1].map(|n| with(self, number, Worker::Has(n))).into());
            }
            Worker::Has(_) if self.turn.0 != number => return Some(Vec::new()),
            Worker::Has(n) => {
                let from = self.turn.1;
                let state = State { turn: (number + 1, from + n), ..self };
                with(state, number, Worker::Passed(from, n))
            }
            Worker::Passed(from, n) => {
                let mut state = self;
                state.placed[w] = (number, from);
                with(state, number, Worker::Placed(from, n))
            }
            Worker::Placed(from, n) if mistake == Mistake::DoneFirst => {
                let mut state = self;
                state.next[w] = number + WORKERS;
                with(state, number, Worker::Late(from, n))
            }
            Worker::Placed(from, n) => with(write(self, from, n), number, Worker::Written),
            Worker::Written => {
                let mut state = self;
                state.next[w] = number + WORKERS;
                with(state, number + WORKERS, Worker::Free)
            }
            Worker::Late(from, n) => with(write(self, from, n), number + WORKERS, Worker::Free),
        };
        Some([next].into())
    }
}

/// How many states there are; `None` if something is not as it should be.
fn check(mistake: Mistake) -> Option<usize> {
    let after = |state: &State| {
        let mut next = state.lead(mistake)?;
        for w in 0..usize::from(WORKERS) {
            next.extend(state.work(w, mistake)?);
        }
        Some(next)
    };
    explore(BEGIN, after, |state| state.done == LIMIT && state.told == state.begun)
}

#[test]
fn what_is_told_of_is_written_and_in_order() {
    let states = check(Mistake::None).expect("lost, out of order, or of another step");
    assert!(states > 1000, "only {states} states");
}

#[test]
fn chunks_told_by_two_words_are_found() {
    assert_eq!(check(Mistake::TwoWords), None);
}

#[test]
fn a_place_of_another_chunk_is_found() {
    assert_eq!(check(Mistake::AnyPlace), None);
}

#[test]
fn done_before_it_is_written_is_found() {
    assert_eq!(check(Mistake::DoneFirst), None);
}
