//! What must be true of one channel: each accepted request is answered once, and in order.

use super::ends::{Ends, ROOM};
use super::life::Life;
use proptest::prelude::*;
use ring_host::Kernel;
use ring_host::kernels::{Echo, EchoMessage};
use ring_tests::{CallError, LONG};
use std::time::Duration;

/// Requests and answers of a channel so far.
pub struct Track {
    pub channel: u32,
    pub sent: u64,
    pub received: u64,
    /// Its receiver has returned the end: nothing follows.
    pub over: bool,
    capacity: u64,
}

/// What is done at the ends of a channel.
#[derive(Clone, Copy, Debug)]
pub enum Step {
    Send(u64),
    SendInTime(u64),
    SendBatch(usize),
    SendEach(usize),
    Receive(u64),
    ReceiveInTime(u64),
    ReceiveBatch(usize),
    ReceiveEach(usize),
    Drain,
    ReceiveAll,
    /// Sends so many one by one, and receives one by one so that no more than that are under way.
    InFlight(u64, u64),
}

pub fn steps() -> impl Strategy<Value = Step> {
    prop_oneof![
        5 => (1..40u64).prop_map(Step::Send),
        2 => (1..20u64).prop_map(Step::SendInTime),
        3 => (0..100usize).prop_map(Step::SendBatch),
        3 => (0..100usize).prop_map(Step::SendEach),
        4 => (1..40u64).prop_map(Step::Receive),
        2 => (1..20u64).prop_map(Step::ReceiveInTime),
        2 => (0..100usize).prop_map(Step::ReceiveBatch),
        2 => (0..100usize).prop_map(Step::ReceiveEach),
        1 => Just(Step::Drain),
        3 => Just(Step::ReceiveAll),
        5 => (1..=100u64, 1..200u64).prop_map(|(depth, n)| Step::InFlight(n, depth)),
    ]
}

impl Track {
    pub fn new(channel: u32, capacity: u32) -> Track {
        Track { channel, sent: 0, received: 0, over: false, capacity: u64::from(capacity) }
    }

    /// Request `i` of channel `channel`.
    pub fn request(channel: u32, i: u64) -> EchoMessage {
        EchoMessage::from_seed(i ^ 0x5eed ^ u64::from(channel) << 48)
    }

    fn next(&self) -> EchoMessage {
        Self::request(self.channel, self.sent)
    }

    /// So many of `most` were accepted. All are, unless the ring is full; and whoever sends knows that
    /// what was answered was consumed. What is sent one by one may be lost in between.
    fn accepted(&mut self, life: &Life, (n, most): (usize, usize), at_once: bool) {
        life.is_kept();
        assert!(life.is_active(), "accepted although {:?}", life.state);
        self.sent += n as u64;
        let under_way = self.sent - self.received;
        let cut = under_way >= self.capacity || (!at_once && life.may_break());
        assert!(n == most || cut, "full with {under_way} in it");
        assert!(under_way <= 2 * self.capacity, "{under_way} in two rings");
    }

    /// That answer came.
    pub fn take(&mut self, response: &EchoMessage) {
        assert!(self.received < self.sent, "an answer to nothing");
        let expected = Self::request(self.channel, self.received).answer();
        assert_eq!(*response, expected, "answer {} of channel {}", self.received, self.channel);
        self.received += 1;
    }

    /// One request; whether it was accepted.
    fn sent(&mut self, life: &mut Life, done: Result<(), CallError<EchoMessage>>) -> bool {
        match done {
            Ok(()) => self.accepted(life, (1, 1), true),
            Err(CallError::Full(back)) => {
                assert_eq!(back, self.next(), "the message is given back");
                self.accepted(life, (0, 1), true);
                return false;
            }
            Err(error) => {
                life.refused(Echo::NAME, error);
                return false;
            }
        }
        true
    }

    /// Why nothing is received, or nothing more.
    fn ended(&mut self, life: &mut Life, error: CallError) {
        self.over = true;
        match error {
            CallError::Fault(fault) => life.lose(fault),
            CallError::Closed { kernel } => {
                life.is_kept();
                assert_eq!((kernel, life.state), (Echo::NAME, ring_host::State::Terminated));
            }
            error => panic!("{error}"),
        }
    }

    /// Nothing is there.
    fn found_nothing(&self, life: &Life) {
        life.is_kept();
        assert!(!life.ended, "neither an answer nor the end of a kernel that has ended");
    }

    fn receive(&mut self, life: &mut Life, ends: &mut dyn Ends) -> bool {
        match ends.try_recv() {
            Ok(response) => self.take(&response),
            Err(CallError::Empty) => {
                self.found_nothing(life);
                return false;
            }
            Err(error) => {
                self.ended(life, error);
                return false;
            }
        }
        true
    }

    /// Waits for an answer if one must come; whether it came.
    fn receive_in_time(&mut self, life: &mut Life, ends: &mut dyn Ends) -> bool {
        let comes = life.is_active() && self.received < self.sent;
        match ends.recv(if comes { LONG } else { Duration::ZERO }) {
            Ok(response) => self.take(&response),
            Err(CallError::Late { kernel }) if !comes => {
                assert_eq!(kernel, Echo::NAME);
                self.found_nothing(life);
                return false;
            }
            Err(error) => {
                self.ended(life, error);
                return false;
            }
        }
        true
    }

    /// So many were received at once, of which the caller has taken each.
    fn taken(&mut self, life: &mut Life, n: Result<usize, CallError>, most: usize) -> usize {
        match n {
            Ok(0) if most > 0 => self.found_nothing(life),
            Ok(n) => {
                assert!(n <= most, "{n} received, but there was room for {most}");
                return n;
            }
            Err(error) => self.ended(life, error),
        }
        0
    }

    /// Receives what is sent, while it must be answered.
    pub fn receive_all(&mut self, life: &mut Life, ends: &mut dyn Ends) {
        while life.is_active() && self.received < self.sent {
            if !self.receive_in_time(life, ends) {
                return;
            }
        }
    }

    /// Receives what there is up to the end, which must come.
    pub fn receive_to_the_end(&mut self, life: &mut Life, ends: &mut dyn Ends) {
        loop {
            match ends.recv(LONG) {
                Ok(response) => self.take(&response),
                Err(error) => return self.ended(life, error),
            }
        }
    }

    /// Takes a step, of which more may follow, and looks whether the count is right.
    pub fn step(&mut self, life: &mut Life, ends: &mut dyn Ends, step: Step) {
        match step {
            Step::Send(n) => {
                let _ = (0..n).all(|_| self.sent(life, ends.try_send(self.next())));
            }
            Step::SendInTime(n) => {
                let _ = (0..n).all(|_| {
                    let has_room = self.sent - self.received < self.capacity;
                    let limit = if has_room { LONG } else { Duration::ZERO };
                    self.sent(life, ends.send(self.next(), limit))
                });
            }
            Step::SendBatch(most) => {
                let requests: Vec<_> =
                    (self.sent..).take(most).map(|i| Self::request(self.channel, i)).collect();
                match ends.try_send_batch(&requests) {
                    Ok(n) => self.accepted(life, (n, most), ends.at_once()),
                    Err(error) => life.refused(Echo::NAME, error),
                }
            }
            Step::SendEach(most) => {
                let (channel, first, mut made) = (self.channel, self.sent, 0);
                let sent = ends.try_send_each(most, &mut |k| {
                    assert_eq!(k, made, "asked for in order");
                    made += 1;
                    Self::request(channel, first + k as u64)
                });
                match sent {
                    Ok(n) => {
                        assert_eq!(n, made, "each that was made was sent");
                        self.accepted(life, (n, most), ends.at_once());
                    }
                    Err(error) => life.refused(Echo::NAME, error),
                }
            }
            Step::Receive(n) => {
                let _ = (0..n).all(|_| self.receive(life, ends));
            }
            Step::ReceiveInTime(n) => {
                let _ = (0..n).all(|_| self.receive_in_time(life, ends));
            }
            Step::ReceiveBatch(most) => {
                let mut responses = vec![EchoMessage { words: [0; 8] }; most];
                let n = self.taken(life, ends.try_recv_batch(&mut responses), most);
                responses[..n].iter().for_each(|response| self.take(response));
            }
            Step::ReceiveEach(most) => {
                let before = self.received;
                let n = ends.try_recv_each(most, &mut |response| self.take(response));
                let n = self.taken(life, n, most);
                assert_eq!(self.received, before + n as u64, "each was shown");
            }
            Step::Drain => {
                let responses = ends.drain();
                responses.iter().for_each(|response| self.take(response));
                if responses.len() < ROOM {
                    self.receive(life, ends); // its error says why there are no more
                }
            }
            Step::ReceiveAll => self.receive_all(life, ends),
            Step::InFlight(n, depth) => {
                let (end, most) = (self.sent + n, depth.min(self.capacity));
                while self.sent < end {
                    let goes_on = match self.sent - self.received < most {
                        true => self.sent(life, ends.send(self.next(), LONG)),
                        false => self.receive_in_time(life, ends),
                    };
                    if !goes_on {
                        break;
                    }
                }
            }
        }
        if let Some(owed) = ends.owed() {
            assert_eq!(owed, self.sent - self.received);
        }
    }
}
