//! Kernels with a state, an order book a lane: whenever the host may look, it is what the messages so
//! far have made of it, and while it may not, that is said.

use super::launches::{Launched, launch};
use super::life::{Life, Order as Command, orders};
use super::mixed;
use super::platforms::Platform;
use crate::state::{Naive, order};
use proptest::prelude::*;
use ring_example_kernels::{Book, BookState, Fill, PTX};
use ring_host::{
    Kernel, LaneError, PayloadError, RecvError, Resident, Runtime, SendError, StateError,
};
use ring_tests::{LONG, with_ptx};
use std::collections::VecDeque;
use std::ops::Range;
use std::time::Duration;

/// What a user does next. Lanes are counted modulo those there are.
#[derive(Clone, Debug)]
pub enum Act {
    Send(u32, usize),
    Receive(u32, usize),
    ReceiveAll(u32),
    Read(u32, bool),
    ReadInto(u32),
    /// Writes an empty book, or what is there.
    Write(u32, bool, bool),
    NoLane(u32),
    Order((Command, bool)),
    Look,
    Rest,
    Terminate,
}

/// So many acts, one after the other.
pub fn acts(count: Range<usize>) -> impl Strategy<Value = Vec<Act>> {
    let (lane, in_time) = (|| 0..3u32, || prop::bool::weighted(0.9));
    let act = prop_oneof![
        6 => (lane(), 0..40usize).prop_map(|(lane, n)| Act::Send(lane, n)),
        4 => (lane(), 0..40usize).prop_map(|(lane, n)| Act::Receive(lane, n)),
        3 => lane().prop_map(Act::ReceiveAll),
        3 => (lane(), in_time()).prop_map(|(lane, in_time)| Act::Read(lane, in_time)),
        1 => lane().prop_map(Act::ReadInto),
        3 => (lane(), any::<bool>(), in_time())
            .prop_map(|(lane, empty, in_time)| Act::Write(lane, empty, in_time)),
        1 => (0..3u32).prop_map(Act::NoLane),
        7 => orders().prop_map(Act::Order),
        1 => Just(Act::Look),
        1 => Just(Act::Rest),
    ];
    mixed(count, act, Just(Act::Terminate))
}

/// A lane: what its book must be once `applied` orders were handled.
#[derive(Default)]
struct Track {
    /// None after a write that may not have been made.
    book: Option<Naive>,
    sent: u64,
    applied: u64,
    received: u64,
    /// Answers to orders that were applied here and not received yet.
    answers: VecDeque<Option<Fill>>,
}

impl Track {
    /// Applies orders as the kernel has, up to the `to`th.
    fn apply(&mut self, lane: u32, to: u64) {
        for n in self.applied..to {
            self.answers.push_back(self.book.as_mut().map(|book| book.take(order(lane, n))));
        }
        self.applied = self.applied.max(to);
    }

    fn take(&mut self, lane: u32, fill: &Fill) {
        assert!(self.received < self.sent, "an answer to nothing");
        self.apply(lane, self.received + 1);
        let expected = self.answers.pop_front().expect("it was applied");
        let right = expected.is_none_or(|expected| expected == *fill);
        assert!(right, "answer {} of lane {lane}: {fill:?}, not {expected:?}", self.received);
        self.received += 1;
    }
}

/// A kernel, and what must be true of it.
struct Model {
    kernel: Resident<Book>,
    life: Life,
    lanes: Vec<Track>,
}

impl Model {
    fn launch(platform: &Platform, host: &Runtime, launched: &Launched) -> Option<Model> {
        let launched = launched.clone().with(|launch| with_ptx(launch, PTX.as_bytes()));
        let kernel = launch::<Book>(platform, host, &launched)?;
        let new = |_| Track { book: Some(Naive::default()), ..Track::default() };
        let lanes = (0..launched.lanes).map(new).collect();
        Some(Model { kernel, life: Life::new(platform.breaks), lanes })
    }

    fn nth(&self, lane: u32) -> u32 {
        lane % self.lanes.len() as u32
    }

    fn send(&mut self, lane: u32, most: usize) {
        let track = &mut self.lanes[lane as usize];
        let first = track.sent;
        let sent =
            self.kernel.lane(lane).unwrap().try_send_each(most, |k| order(lane, first + k as u64));
        match sent {
            Ok(n) => {
                self.life.is_kept();
                assert!(self.life.is_active(), "accepted although {:?}", self.life.state);
                track.sent += n as u64;
            }
            Err(error) => self.life.refused::<()>(Book::NAME, without(error)),
        }
    }

    fn receive(&mut self, lane: u32, most: usize) {
        let track = &mut self.lanes[lane as usize];
        let received = self.kernel.lane(lane).unwrap().try_recv_each(most, |fill| {
            track.take(lane, fill);
        });
        match received {
            Ok(_) => {}
            Err(RecvError::Fault(fault)) => self.life.lose(fault),
            Err(RecvError::Terminated { .. }) => {
                assert_eq!(self.life.state, ring_host::State::Terminated);
            }
            Err(error) => panic!("{error}"),
        }
    }

    fn receive_all(&mut self, lane: u32) {
        let track = &mut self.lanes[lane as usize];
        while self.life.is_active() && track.received < track.sent {
            match self.kernel.lane(lane).unwrap().recv(LONG) {
                Ok(fill) => track.take(lane, &fill),
                Err(RecvError::Fault(fault)) => self.life.lose(fault),
                Err(error) => panic!("{error}"),
            }
        }
    }

    /// Whether the host may look; a command that timed out leaves that open.
    fn may_look(&self) -> Option<bool> {
        match (self.life.is_active(), self.life.settled) {
            (true, true) => Some(false),
            (false, true) => Some(true),
            (_, false) => None,
        }
    }

    /// Whether a copy of a state was made. It must have been, or be refused, as the kernel is active or
    /// not; but for want of time, and on a platform that breaks.
    fn copied(&mut self, in_time: bool, done: Result<(), StateError>) -> bool {
        match done {
            Ok(()) => {
                self.life.is_kept();
                assert_ne!(self.may_look(), Some(false), "looked at while it changes");
                return true;
            }
            Err(StateError::Active { kernel }) => {
                self.life.is_kept();
                assert!(kernel == Book::NAME && self.may_look() != Some(true), "not active");
            }
            Err(StateError::Copy(PayloadError::Fault(fault))) => self.life.lose(fault),
            Err(StateError::Copy(PayloadError::Timeout { .. })) if !in_time => {}
            Err(StateError::Copy(PayloadError::Driver(error))) if self.life.may_break() => {
                assert!(error.to_string().contains("a quirk"), "{error}");
            }
            Err(error) => panic!("{error}"),
        }
        false
    }

    /// The book of a lane is what the orders that it has handled have made of it.
    fn compare(&mut self, lane: u32, state: &BookState) {
        let handled = self.kernel.lane_telemetry(lane).unwrap().processed;
        let track = &mut self.lanes[lane as usize];
        if !self.life.settled {
            return; // how many it has handled is not known yet
        }
        assert!((track.received..=track.sent).contains(&handled), "{handled} handled");
        track.apply(lane, handled);
        if let Some(book) = &track.book {
            book.is(state);
        }
    }

    fn read(&mut self, lane: u32, in_time: bool, into: bool) {
        let mut state: BookState = bytemuck::Zeroable::zeroed();
        let limit = if in_time { LONG } else { Duration::ZERO };
        let done = match into {
            true => self.kernel.read_state_into(lane, &mut state, limit),
            false => self.kernel.read_state(lane, limit).map(|found| state = found),
        };
        if self.copied(in_time, done) {
            self.compare(lane, &state);
        }
    }

    fn write(&mut self, lane: u32, empty: bool, in_time: bool) {
        if !self.life.settled {
            return; // which orders come before it would not be known
        }
        let mut state: BookState = bytemuck::Zeroable::zeroed();
        if !empty {
            let read = self.kernel.read_state(lane, LONG).map(|found| state = found);
            if !self.copied(true, read) {
                return;
            }
        }
        let handled = self.kernel.lane_telemetry(lane).unwrap().processed;
        let limit = if in_time { LONG } else { Duration::ZERO };
        let done = self.kernel.write_state(lane, &state, limit);
        let refused = matches!(done, Err(StateError::Active { .. }));
        let written = self.copied(in_time, done);
        if !refused && self.life.lost.is_none() {
            let track = &mut self.lanes[lane as usize];
            track.apply(lane, handled);
            match (written, empty) {
                (true, true) => track.book = Some(Naive::default()),
                (true, false) => {}
                (false, _) => track.book = None,
            }
        }
    }

    fn look(&mut self) {
        self.life.look(&self.kernel);
        let telemetry = self.kernel.telemetry();
        assert_eq!((telemetry.errors, telemetry.refused), (0, 0));
    }

    fn end(&mut self) {
        (0..self.lanes.len() as u32).for_each(|lane| self.receive_all(lane));
        self.life.end(&mut self.kernel);
        for lane in 0..self.lanes.len() as u32 {
            self.read(lane, true, true);
            self.receive(lane, usize::MAX);
        }
        self.look();
    }

    fn act(&mut self, act: &Act) {
        match *act {
            Act::Send(lane, n) => self.send(self.nth(lane), n),
            Act::Receive(lane, n) => self.receive(self.nth(lane), n),
            Act::ReceiveAll(lane) => self.receive_all(self.nth(lane)),
            Act::Read(lane, in_time) => self.read(self.nth(lane), in_time, false),
            Act::ReadInto(lane) => self.read(self.nth(lane), true, true),
            Act::Write(lane, empty, in_time) => self.write(self.nth(lane), empty, in_time),
            Act::NoLane(beyond) => {
                let lanes = self.kernel.lanes();
                let lane = lanes + beyond;
                let none = Err(StateError::Lane(LaneError::OutOfRange { lane, lanes }));
                assert_eq!(self.kernel.read_state(lane, LONG).map(drop), none);
                let zero = bytemuck::Zeroable::zeroed();
                assert_eq!(self.kernel.write_state(lane, &zero, LONG), none);
            }
            Act::Order(order) => self.life.order(&mut self.kernel, order),
            Act::Look => self.look(),
            Act::Rest => {
                (0..self.lanes.len() as u32).for_each(|lane| self.receive_all(lane));
                self.life.rest(&mut self.kernel, true);
            }
            Act::Terminate => unreachable!("done by the caller"),
        }
    }
}

fn without<T>(error: SendError<T>) -> SendError<()> {
    error.without_message()
}

/// Plays one sequence.
pub fn play(platform: &Platform, host: &Runtime, launched: &Launched, acts: &[Act]) {
    let Some(mut model) = Model::launch(platform, host, launched) else { return };
    for act in acts {
        if matches!(act, Act::Terminate) {
            model.end();
            let Some(again) = Model::launch(platform, host, launched) else { return };
            model = again;
        } else {
            model.act(act);
        }
    }
    model.end();
}
