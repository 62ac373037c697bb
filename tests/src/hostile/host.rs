//! The host's side: everything that a user can call, with short deadlines, and what must be true of
//! what comes back.

use super::device::Liar;
use super::{Bytes, Known, Truth};
use crate::CallError;
use bytemuck::{Zeroable, bytes_of};
use ring_host::{ControlError, KernelHandle, PayloadError, Receiver, Sender, State, StateError};
use std::time::{Duration, Instant};

/// What a call may take beyond its deadline: generous, for machines that do something else too.
const GRACE: Duration = Duration::from_secs(5);

/// Deadlines, in microseconds.
const DEADLINES: [u64; 6] = [0, 20, 100, 300, 1000, 3000];

/// How long what is certain is waited for where it must be carried.
const CARRIED: Duration = Duration::from_secs(20);

fn deadline(script: &mut Bytes<'_>) -> Duration {
    Duration::from_micros(script.pick(&DEADLINES))
}

/// A call that must end.
fn ends<T>(what: &str, call: impl FnOnce() -> T) -> T {
    let begun = Instant::now();
    let done = call();
    assert!(begun.elapsed() < GRACE, "{what} took {:?}", begun.elapsed());
    done
}

/// Who uses a kernel.
pub(super) struct User<K: Known> {
    pub kernel: KernelHandle<K>,
    pub truth: Truth,
    /// Channels that were taken out.
    halves: Vec<Option<(Sender<K>, Receiver<K>)>>,
}

impl<K: Known> User<K> {
    pub fn new(kernel: KernelHandle<K>, truth: Truth) -> User<K> {
        let halves = truth.channels.iter().map(|_| None).collect();
        User { kernel, truth, halves }
    }

    fn sender(&mut self, channel: usize) -> &mut Sender<K> {
        match &mut self.halves[channel] {
            Some((sender, _)) => sender,
            None => self.kernel.channel(channel as u32).expect("a channel").split().0,
        }
    }

    fn receiver(&mut self, channel: usize) -> &mut Receiver<K> {
        match &mut self.halves[channel] {
            Some((_, receiver)) => receiver,
            None => self.kernel.channel(channel as u32).expect("a channel").split().1,
        }
    }

    /// Activates the kernel, with an honest device.
    pub fn activate(&mut self, device: &Liar<'_>) {
        let (begun, channels) = (Instant::now(), self.truth.channels.len());
        while let Err(error) = self.kernel.activate(Duration::from_micros(200)) {
            assert!(matches!(error, ControlError::Timeout { .. }), "{error}");
            assert!(begun.elapsed() < CARRIED, "{error}");
            device.acknowledge(channels, 1, Some(State::Active));
            if !self.truth.stays {
                // In staged-sync memory what it says comes back then.
                device.leave(&mut self.truth, self.kernel.launches());
            }
        }
        self.truth.active = true;
    }

    /// A call of some kind.
    pub fn act(&mut self, script: &mut Bytes<'_>, channel: usize, device: &Liar<'_>) {
        match script.below(16) {
            0 => self.send(channel, script.below(70)),
            1 => self.send_batch(channel, script.below(70)),
            2 => self.send_each(channel, script.below(70)),
            3 => self.send_waiting(channel, deadline(script)),
            4 => self.receive(channel, script.below(70)),
            5 => self.receive_batch(channel, script.below(70)),
            6 => self.receive_each(channel, script.below(70)),
            7 => self.receive_waiting(channel, deadline(script)),
            8..11 => self.ask(State::Active, script, device),
            11 if script.below(2) == 0 => self.ask(State::Inactive, script, device),
            11 if script.below(4) == 0 => self.ask(State::Terminated, script, device),
            12 => self.look(channel),
            13 => self.rest(deadline(script)),
            14 => self.copy(channel, script),
            15 if script.below(4) == 0 && self.halves[channel].is_none() => {
                self.halves[channel] =
                    self.kernel.take_channel(channel as u32).ok().map(|l| l.into_split());
            }
            _ => {}
        }
    }

    fn send(&mut self, channel: usize, n: usize) {
        for _ in 0..n {
            let request = K::request(self.truth.channels[channel].sent);
            let sent = ends("try_send", || self.sender(channel).try_send(request));
            if !self.sent(channel, sent.map(|()| 1).map_err(|error| error.map(Some).into())) {
                break;
            }
        }
    }

    fn send_batch(&mut self, channel: usize, n: usize) {
        let requests: Vec<_> =
            (self.truth.channels[channel].sent..).take(n).map(K::request).collect();
        let sent = ends("try_send_batch", || self.sender(channel).try_send_batch(&requests));
        self.sent(channel, sent.map_err(|error| error.map(|()| None).into()));
    }

    fn send_each(&mut self, channel: usize, most: usize) {
        let first = self.truth.channels[channel].sent;
        let request = |k: usize| K::request(first + k as u64);
        let sent = ends("try_send_each", || self.sender(channel).try_send_each(most, request));
        self.sent(channel, sent.map_err(|error| error.map(|()| None).into()));
    }

    fn send_waiting(&mut self, channel: usize, deadline: Duration) {
        let request = K::request(self.truth.channels[channel].sent);
        let sent = ends("send", || self.sender(channel).send(request, deadline));
        self.sent(channel, sent.map(|()| 1).map_err(|error| error.map(Some).into()));
    }

    /// After a send of any kind; whether another may be accepted.
    fn sent(&mut self, channel: usize, sent: Result<usize, CallError<Option<K::Request>>>) -> bool {
        let active = self.truth.active;
        match sent {
            Ok(n) => {
                assert!(active, "accepted although not active");
                let channel = &mut self.truth.channels[channel];
                channel.sent += n as u64;
                let claimed = channel
                    .consumed
                    .iter()
                    .copied()
                    .filter(|claimed| *claimed <= channel.sent)
                    .max();
                let freed = claimed.unwrap_or(0).max(channel.received.min(channel.sent));
                assert!(
                    channel.sent - freed <= channel.capacity,
                    "more than the ring holds: {channel:?}"
                );
                n > 0
            }
            Err(CallError::Full(Some(request))) => {
                let channel = &self.truth.channels[channel];
                assert_eq!(bytes_of(&request), bytes_of(&K::request(channel.sent)), "given back");
                assert!(channel.sent > 0, "full, and nothing was sent");
                false
            }
            Err(CallError::NotActive { state, .. }) => {
                assert!(!active && state != State::Active);
                false
            }
            Err(CallError::Closed { .. }) => {
                assert!(!active);
                false
            }
            Err(CallError::Fault(fault)) => {
                self.truth.explain(&fault);
                false
            }
            Err(error) => panic!("{}", error.without_message()),
        }
    }

    fn receive(&mut self, channel: usize, n: usize) {
        for _ in 0..n {
            let popped = ends("try_recv", || self.receiver(channel).try_recv());
            let popped = match popped.map_err(CallError::from) {
                Err(CallError::Empty) => Ok(Vec::new()),
                popped => popped.map(|response| vec![response]),
            };
            if !self.received(channel, 1, popped) {
                break;
            }
        }
    }

    fn receive_batch(&mut self, channel: usize, n: usize) {
        let mut room = vec![K::Response::zeroed(); n];
        let taken = ends("try_recv_batch", || self.receiver(channel).try_recv_batch(&mut room));
        self.received(channel, n, taken.map(|n| room[..n].to_vec()).map_err(CallError::from));
    }

    fn receive_each(&mut self, channel: usize, most: usize) {
        let mut shown = Vec::new();
        let each = |response: &K::Response| shown.push(*response);
        let taken = ends("try_recv_each", || self.receiver(channel).try_recv_each(most, each));
        self.received(
            channel,
            most,
            taken.map(|n| Vec::from(&shown[..n])).map_err(CallError::from),
        );
    }

    fn receive_waiting(&mut self, channel: usize, deadline: Duration) {
        let received = ends("recv", || self.receiver(channel).recv(deadline));
        let received = match received.map_err(CallError::from) {
            Err(CallError::Late { .. }) => Ok(Vec::new()),
            received => received.map(|response| vec![response]),
        };
        self.received(channel, 1, received);
    }

    /// After a receive of any kind that had room for so many; whether there may be more.
    fn received(
        &mut self,
        channel: usize,
        room: usize,
        received: Result<Vec<K::Response>, CallError>,
    ) -> bool {
        let (mapped, leaving) = (self.truth.mapped, self.truth.leaving);
        let state = &mut self.truth.channels[channel];
        let (before, certain) = (state.received, state.certain());
        let n = received.as_ref().map_or(0, Vec::len);
        // What it had seen before, and then at most a full ring.
        let end = before + n as u64;
        assert!(end <= state.bound + state.capacity && n <= room, "more than the ring holds");
        state.bound = if n < room { end } else { state.bound.max(end + state.capacity) };
        for response in received.as_deref().unwrap_or_default() {
            if state.received < certain && !state.lies.slots {
                let answer = K::answer(state.received);
                assert_eq!(bytes_of(response), bytes_of(&answer), "answer {}", state.received);
            }
            state.received += 1;
            assert!(state.lies.bell || state.received <= state.announced, "never announced");
        }
        // It looks at the next answer's line when it has taken what it saw there last.
        if mapped && !state.lies.bell {
            while state.seen < before + room as u64 && state.looked() > state.seen {
                state.seen = state.looked();
            }
        }
        state.seen = state.seen.max(state.received);
        let missed = certain.saturating_sub(state.received).min((room - n) as u64);
        let over = state.over;
        state.over |= received.is_err();
        assert!(!over || n == 0, "{n} answers after the end: {state:?}");
        assert!(!mapped || over || missed == 0, "{missed} more answers are there: {state:?}");
        match received {
            Ok(_) => n > 0,
            Err(CallError::Fault(fault)) => {
                self.truth.explain(&fault);
                false
            }
            Err(CallError::Closed { .. }) if leaving => false,
            Err(error) => panic!("{error}"),
        }
    }

    /// A command, which the device acknowledges in advance, or not.
    fn ask(&mut self, asked: State, script: &mut Bytes<'_>, device: &Liar<'_>) {
        let (deadline, foreseen) = (deadline(script), script.below(4) != 0);
        if foreseen {
            device.acknowledge(self.truth.channels.len(), 1, Some(asked));
        }
        let done = ends("a command", || match asked {
            State::Active => self.kernel.activate(deadline),
            State::Inactive => self.kernel.deactivate(deadline),
            _ => self.kernel.terminate(deadline).map(drop),
        });
        let refused = matches!(done, Err(ControlError::Fault(_) | ControlError::Terminated { .. }));
        match asked {
            State::Active => self.truth.active |= done.is_ok(),
            State::Inactive => self.truth.active &= refused,
            _ => self.truth.leaving = true,
        }
        self.truth.active &= !self.truth.leaving;
        self.commanded(done);
    }

    fn commanded(&mut self, done: Result<(), ControlError>) {
        match done {
            Ok(()) | Err(ControlError::Timeout { .. } | ControlError::Staying { .. }) => {}
            Err(ControlError::Terminated { .. }) => assert!(self.truth.leaving),
            Err(ControlError::Fault(fault)) => self.truth.explain(&fault),
            Err(error) => panic!("{error}"),
        }
    }

    fn rest(&mut self, deadline: Duration) {
        let rested = ends("rest", || self.kernel.rest(deadline));
        self.commanded(rested);
    }

    fn look(&mut self, channel: usize) {
        ends("looking", || {
            let status = self.kernel.status();
            assert_eq!(status.state == State::Active, self.truth.active && !self.is_lost());
            let capacities =
                self.truth.channels.iter().map(|channel| channel.capacity).sum::<u64>();
            assert!(self.kernel.summary().unhandled <= capacities);
            let telemetry = self.kernel.telemetry();
            let _ = (telemetry.handler.quantile(0.5), telemetry.queueing.quantile(0.99));
            assert!(self.kernel.channel_telemetry(channel as u32).is_ok());
            assert!(self.kernel.channel_telemetry(self.kernel.channels()).is_err());
            let _ = (self.kernel.is_resting(), self.kernel.launches(), self.kernel.runs_as());
            assert_eq!(self.kernel.fallbacks().count(), 0, "no operation failed");
        });
    }

    /// Whether a call has said so, or one would.
    fn is_lost(&self) -> bool {
        self.truth.fault.is_some() || self.kernel.status().state == State::Faulted
    }

    fn copy(&mut self, channel: usize, script: &mut Bytes<'_>) {
        let (limit, offset, mut words) = (deadline(script), 4 * script.below(80) as u64, [0u32; 4]);
        let sent = [script.word() as u32; 4];
        let written = ends("write_payload", || self.kernel.write_payload(offset, &sent, limit));
        let read = ends("read_payload", || self.kernel.read_payload(offset, &mut words, limit));
        if written.is_ok() && read.is_ok() {
            assert_eq!(words, sent, "payload at {offset}");
        }
        [written, read].into_iter().for_each(|copied| self.copied(copied, offset > 240));
        match ends("the state", || K::keep(&mut self.kernel, channel as u32, limit)) {
            Ok(()) | Err(StateError::Active { .. }) => {}
            Err(StateError::Copy(error)) => self.copied(Err(error), false),
            Err(error) => panic!("{error}"),
        }
    }

    fn copied(&mut self, copied: Result<(), PayloadError>, outside: bool) {
        match copied {
            Ok(()) => assert!(!outside, "outside the arena"),
            Err(PayloadError::OutOfBounds { .. }) => assert!(outside),
            Err(PayloadError::Timeout { .. }) => {}
            Err(PayloadError::Fault(fault)) => self.truth.explain(&fault),
            Err(error) => panic!("{error}"),
        }
    }

    /// What was announced before the first lie arrives, whatever was lost since; where it must be
    /// carried, unless a fault ended that.
    pub fn receive_what_is_certain(&mut self) {
        for channel in 0..self.halves.len() {
            let begun = Instant::now();
            loop {
                self.receive(channel, 100);
                let left =
                    self.truth.channels[channel].certain() > self.truth.channels[channel].received;
                if !left || self.truth.mapped || !self.is_carried() {
                    break;
                }
                assert!(begun.elapsed() < CARRIED, "never carried: {:?}", self.truth);
            }
        }
    }

    /// Whether answers are carried for as long as there are some: between launches they come once.
    fn is_carried(&self) -> bool {
        let (_, memory) = self.kernel.runs_as();
        let stays =
            !self.truth.ended && self.truth.channels.iter().all(|channel| !channel.lies.left);
        stays && !self.is_lost() && memory == ring_host::Memory::StagedAsync
    }

    /// Drops everything, the kernel first or last.
    pub fn leave(self) {
        let User { kernel, truth, halves } = self;
        ends("dropping it", || match truth.channels[0].received.is_multiple_of(2) {
            true => drop((kernel, halves)),
            false => drop((halves, kernel)),
        });
    }
}
