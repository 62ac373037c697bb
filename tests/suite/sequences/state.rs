//! Kernels with a state, an order book a channel: whenever the host may look, it is what the messages so
//! far have made of it, and while it may not, that is said.

use super::launches::{Launched, launch};
use super::life::{Life, Order as Command, orders};
use super::mixed;
use super::platforms::Platform;
use crate::state::{Naive, order};
use proptest::prelude::*;
use ring_example_kernels::{Book, BookState, Fill};
use ring_host::error::DriverReason;
use ring_host::{
    ChannelError, Kernel, KernelHandle, PayloadError, RecvTimeoutError, Runtime, StateError,
    TryRecvError,
};
use ring_tests::LONG;
use ring_tests::kernels::of_examples;
use std::collections::VecDeque;
use std::ops::Range;
use std::time::Duration;

/// What a user does next. Channels are counted modulo those there are.
#[derive(Clone, Debug)]
pub enum Act {
    Send(u32, usize),
    Receive(u32, usize),
    ReceiveAll(u32),
    Read(u32, bool),
    ReadInto(u32),
    /// Writes an empty book, or what is there.
    Write(u32, bool, bool),
    NoChannel(u32),
    Order((Command, bool)),
    Look,
    Rest,
    Terminate,
}

/// So many acts, one after the other.
pub fn acts(count: Range<usize>) -> impl Strategy<Value = Vec<Act>> {
    let (channel, in_time) = (|| 0..3u32, || prop::bool::weighted(0.9));
    let act = prop_oneof![
        6 => (channel(), 0..40usize).prop_map(|(channel, n)| Act::Send(channel, n)),
        4 => (channel(), 0..40usize).prop_map(|(channel, n)| Act::Receive(channel, n)),
        3 => channel().prop_map(Act::ReceiveAll),
        3 => (channel(), in_time()).prop_map(|(channel, in_time)| Act::Read(channel, in_time)),
        1 => channel().prop_map(Act::ReadInto),
        3 => (channel(), any::<bool>(), in_time())
            .prop_map(|(channel, empty, in_time)| Act::Write(channel, empty, in_time)),
        1 => (0..3u32).prop_map(Act::NoChannel),
        7 => orders().prop_map(Act::Order),
        1 => Just(Act::Look),
        1 => Just(Act::Rest),
    ];
    mixed(count, act, Just(Act::Terminate))
}

/// A channel: what its book must be once `applied` orders were handled.
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
    fn apply(&mut self, channel: u32, to: u64) {
        for n in self.applied..to {
            self.answers.push_back(self.book.as_mut().map(|book| book.take(order(channel, n))));
        }
        self.applied = self.applied.max(to);
    }

    fn take(&mut self, channel: u32, fill: &Fill) {
        assert!(self.received < self.sent, "an answer to nothing");
        self.apply(channel, self.received + 1);
        let expected = self.answers.pop_front().expect("it was applied");
        let right = expected.is_none_or(|expected| expected == *fill);
        assert!(right, "answer {} of channel {channel}: {fill:?}, not {expected:?}", self.received);
        self.received += 1;
    }
}

/// A kernel, and what must be true of it.
struct Model {
    kernel: KernelHandle<Book>,
    life: Life,
    channels: Vec<Track>,
}

impl Model {
    fn launch(platform: &Platform, host: &Runtime, launched: &Launched) -> Option<Model> {
        let launched = launched.clone().with(|launch| launch.kernels(of_examples::<Book>()));
        let kernel = launch::<Book>(platform, host, &launched)?;
        let new = |_| Track { book: Some(Naive::default()), ..Track::default() };
        let channels = (0..launched.channels).map(new).collect();
        Some(Model { kernel, life: Life::new(platform.breaks), channels })
    }

    fn nth(&self, channel: u32) -> u32 {
        channel % self.channels.len() as u32
    }

    fn send(&mut self, channel: u32, most: usize) {
        let track = &mut self.channels[channel as usize];
        let first = track.sent;
        let sent = self
            .kernel
            .channel(channel)
            .unwrap()
            .try_send_each(most, |k| order(channel, first + k as u64));
        match sent {
            Ok(n) => {
                self.life.is_kept();
                assert!(self.life.is_active(), "accepted although {:?}", self.life.state);
                track.sent += n as u64;
            }
            Err(error) => self.life.refused(Book::NAME, error),
        }
    }

    fn receive(&mut self, channel: u32, most: usize) {
        let track = &mut self.channels[channel as usize];
        let received = self.kernel.channel(channel).unwrap().try_recv_each(most, |fill| {
            track.take(channel, fill);
        });
        match received {
            Ok(_) => {}
            Err(TryRecvError::Fault(fault)) => self.life.lose(fault),
            Err(TryRecvError::Closed { .. }) => {
                assert_eq!(self.life.state, ring_host::State::Terminated);
            }
            Err(error) => panic!("{error}"),
        }
    }

    fn receive_all(&mut self, channel: u32) {
        let track = &mut self.channels[channel as usize];
        while self.life.is_active() && track.received < track.sent {
            match self.kernel.channel(channel).unwrap().recv(LONG) {
                Ok(fill) => track.take(channel, &fill),
                Err(RecvTimeoutError::Fault(fault)) => self.life.lose(fault),
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
                assert!(matches!(error.reason, DriverReason::Emulated(_)), "{error}");
            }
            Err(error) => panic!("{error}"),
        }
        false
    }

    /// The book of a channel is what the orders that it has handled have made of it.
    fn compare(&mut self, channel: u32, state: &BookState) {
        let handled = self.kernel.channel_telemetry(channel).unwrap().processed;
        let track = &mut self.channels[channel as usize];
        if !self.life.settled {
            return; // how many it has handled is not known yet
        }
        assert!((track.received..=track.sent).contains(&handled), "{handled} handled");
        track.apply(channel, handled);
        if let Some(book) = &track.book {
            book.is(state);
        }
    }

    fn read(&mut self, channel: u32, in_time: bool, into: bool) {
        let mut state: BookState = bytemuck::Zeroable::zeroed();
        let limit = if in_time { LONG } else { Duration::ZERO };
        let done = match into {
            true => self.kernel.read_state_into(channel, &mut state, limit),
            false => self.kernel.read_state(channel, limit).map(|found| state = found),
        };
        if self.copied(in_time, done) {
            self.compare(channel, &state);
        }
    }

    fn write(&mut self, channel: u32, empty: bool, in_time: bool) {
        if !self.life.settled {
            return; // which orders come before it would not be known
        }
        let mut state: BookState = bytemuck::Zeroable::zeroed();
        if !empty {
            let read = self.kernel.read_state(channel, LONG).map(|found| state = found);
            if !self.copied(true, read) {
                return;
            }
        }
        let handled = self.kernel.channel_telemetry(channel).unwrap().processed;
        let limit = if in_time { LONG } else { Duration::ZERO };
        let done = self.kernel.write_state(channel, &state, limit);
        let refused = matches!(done, Err(StateError::Active { .. }));
        let written = self.copied(in_time, done);
        if !refused && self.life.lost.is_none() {
            let track = &mut self.channels[channel as usize];
            track.apply(channel, handled);
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
        (0..self.channels.len() as u32).for_each(|channel| self.receive_all(channel));
        self.life.end(&mut self.kernel);
        for channel in 0..self.channels.len() as u32 {
            self.read(channel, true, true);
            self.receive(channel, usize::MAX);
        }
        self.look();
    }

    fn act(&mut self, act: &Act) {
        match *act {
            Act::Send(channel, n) => self.send(self.nth(channel), n),
            Act::Receive(channel, n) => self.receive(self.nth(channel), n),
            Act::ReceiveAll(channel) => self.receive_all(self.nth(channel)),
            Act::Read(channel, in_time) => self.read(self.nth(channel), in_time, false),
            Act::ReadInto(channel) => self.read(self.nth(channel), true, true),
            Act::Write(channel, empty, in_time) => self.write(self.nth(channel), empty, in_time),
            Act::NoChannel(beyond) => {
                let channels = self.kernel.channels();
                let channel = channels + beyond;
                let none = Err(StateError::Channel(ChannelError::OutOfRange { channel, channels }));
                assert_eq!(self.kernel.read_state(channel, LONG).map(drop), none);
                let zero = bytemuck::Zeroable::zeroed();
                assert_eq!(self.kernel.write_state(channel, &zero, LONG), none);
            }
            Act::Order(order) => self.life.order(&mut self.kernel, order),
            Act::Look => self.look(),
            Act::Rest => {
                (0..self.channels.len() as u32).for_each(|channel| self.receive_all(channel));
                self.life.rest(&mut self.kernel, true);
            }
            Act::Terminate => unreachable!("done by the caller"),
        }
    }
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
