//! A clock and a pipe for tests: no test waits for a real one.

use super::clock::Clock;
use crate::bench::drive::Pipe;
use std::cell::Cell;
use std::collections::VecDeque;
use std::rc::Rc;

/// Nanoseconds that each reading and each call of a pipe takes.
const STEP: u64 = 10;

/// A clock that goes on when it is read or a pipe is used.
#[derive(Clone, Debug)]
pub struct FakeClock(Rc<Cell<u64>>);

impl FakeClock {
    /// At some moment.
    pub fn new() -> FakeClock {
        FakeClock(Rc::new(Cell::new(5_000_000)))
    }

    fn forward(&self, nanoseconds: u64) -> u64 {
        self.0.set(self.0.get() + nanoseconds);
        self.0.get()
    }
}

impl Clock for FakeClock {
    fn now(&self) -> u64 {
        self.forward(STEP)
    }
}

/// A pipe whose answers take a fixed time, and are no denser than a rate.
#[derive(Debug)]
pub struct FakePipe {
    clock: FakeClock,
    /// When each answer on its way is there.
    answers: VecDeque<u64>,
    /// From a message to its answer.
    way: u64,
    /// From one answer to the next, at least.
    apart: u64,
    /// The call that takes long, counted from now, and how long.
    stall: Option<(u64, u64)>,
    last: u64,
    deepest: usize,
}

impl FakePipe {
    /// A pipe whose answers come so many nanoseconds after their messages.
    pub fn new(clock: &FakeClock, way: u64) -> FakePipe {
        let (clock, answers) = (clock.clone(), VecDeque::new());
        FakePipe { clock, answers, way, apart: 0, stall: None, last: 0, deepest: 0 }
    }

    /// The same with so many nanoseconds between answers.
    pub fn apart(self, apart: u64) -> FakePipe {
        FakePipe { apart, ..self }
    }

    /// The same, but the `call`th receive takes so many nanoseconds.
    pub fn stall(self, call: u64, nanoseconds: u64) -> FakePipe {
        FakePipe { stall: Some((call, nanoseconds)), ..self }
    }

    /// Messages on their way now.
    pub fn in_flight(&self) -> usize {
        self.answers.len()
    }

    /// Most messages that ever were.
    pub fn deepest(&self) -> usize {
        self.deepest
    }
}

impl Pipe for FakePipe {
    fn send(&mut self, most: usize) -> Result<usize, String> {
        let now = self.clock.forward(STEP);
        for _ in 0..most {
            self.last = (now + self.way).max(self.last + self.apart);
            self.answers.push_back(self.last);
        }
        self.deepest = self.deepest.max(self.answers.len());
        Ok(most)
    }

    fn receive(&mut self, most: usize) -> Result<usize, String> {
        let mut now = self.clock.forward(STEP);
        if let Some((calls, nanoseconds)) = &mut self.stall {
            match calls.checked_sub(1) {
                Some(left) => *calls = left,
                None => now = self.clock.forward(std::mem::take(nanoseconds)),
            }
        }
        let there = self.answers.iter().take(most).take_while(|at| **at <= now).count();
        self.answers.drain(..there);
        Ok(there)
    }
}
