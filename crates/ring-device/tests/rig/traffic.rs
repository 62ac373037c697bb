//! Messages at random through many launches: each once, in order, whatever ends a launch.

use super::{Budgets, Dice, ENDLESS, Ends, Next, NextInOrder, Rig};
use ring_device::Kernel;
use ring_shared::layout::{Exit, Processing, State, UNLIMITED};
use std::marker::PhantomData;
use std::sync::atomic::Ordering::Relaxed;

/// An index near which its low 32 bits come round.
pub const NEAR_END: u64 = (1 << 32) - 37;

/// Messages of a channel in [`many_launches`].
const TOTAL: u64 = 150;

/// A kernel whose requests and responses follow from their number, from 0 on.
pub trait Numbered: Kernel {
    /// Request `i`.
    fn request(i: u64) -> Self::Request;
    /// Fails if this is not the response to request `i`.
    fn check(i: u64, response: &Self::Response);
}

impl Numbered for Next {
    fn request(i: u64) -> u64 {
        i
    }

    fn check(i: u64, response: &u64) {
        assert_eq!(*response, i + 1, "response {i}");
    }
}

impl Numbered for NextInOrder {
    fn request(i: u64) -> u64 {
        i
    }

    fn check(i: u64, response: &u64) {
        Next::check(i, response);
    }
}

/// What the host does to a channel between and during launches: sends and takes at random, and checks
/// the order.
pub struct Traffic<K> {
    pub ends: Ends,
    pub sent: u64,
    pub got: u64,
    total: u64,
    kernel: PhantomData<K>,
}

impl<K: Numbered> Traffic<K> {
    /// No message yet, of `total` on this channel.
    pub fn new(ends: Ends, total: u64) -> Traffic<K> {
        Traffic { ends, sent: 0, got: 0, total, kernel: PhantomData }
    }

    /// Whether every message was sent and answered.
    pub fn is_done(&self) -> bool {
        self.got == self.total
    }

    /// Sends one message, by the line if it may be; whether there was room.
    pub fn one(&mut self) -> bool {
        let sent = self.ends.push(K::request(self.sent));
        self.sent += u64::from(sent);
        sent
    }

    /// Sends up to `n` messages through slots; how many there was room for.
    pub fn some(&mut self, n: u64) -> u64 {
        let messages: Vec<K::Request> = (self.sent..self.sent + n).map(K::request).collect();
        let sent = self.ends.push_slice(&messages) as u64;
        self.sent += sent;
        sent
    }

    /// Takes a response, if there is one, and checks it.
    pub fn take(&mut self) -> bool {
        let Some(response) = self.ends.pop::<K::Response>() else { return false };
        K::check(self.got, &response);
        self.got += 1;
        true
    }

    /// Takes up to `n` responses.
    pub fn take_some(&mut self, n: u64) {
        for _ in 0..n {
            if !self.take() {
                break;
            }
        }
    }

    /// Does something at random.
    pub fn step(&mut self, dice: &mut Dice) {
        let left = self.total - self.sent;
        match dice.roll(4) {
            0 if left > 0 => drop(self.one()),
            1 if left > 0 => drop(self.some(left.min(1 + dice.roll(7)))),
            _ => self.take_some(dice.roll(6)),
        }
        if dice.roll(3) == 0 {
            self.ends.consumer.publish();
        }
    }
}

/// Launches with random budgets until every message is answered, over rings of so many lines; with messages sent and
/// taken between launches, and `during` them.
pub fn many_launches<K: Numbered>(lines: u32, seed: u64, channels: u32, start: u64, during: bool) {
    let mut dice = Dice(seed);
    let mut rig = Rig::<K>::new(channels, (dice.pick(&[1, 4, 16]), lines), start);
    rig.command(State::Active);
    let mut traffic: Vec<Traffic<K>> =
        (0..channels).map(|channel| Traffic::new(rig.ends(channel), TOTAL)).collect();
    while !traffic.iter().all(Traffic::is_done) {
        for t in &mut traffic {
            (0..dice.roll(4)).for_each(|_| t.step(&mut dice));
        }
        let budgets = match dice.roll(4) {
            0 => Budgets { iterations: 1 + dice.roll(3), ..ENDLESS },
            1 => Budgets { idle: 0, ..ENDLESS },
            2 => Budgets { idle: 20_000, iterations: dice.pick(&[1, 30, UNLIMITED]), ..ENDLESS },
            _ => Budgets { time: dice.pick(&[0, 1000, 50_000]), ..ENDLESS },
        };
        rig.budgets(budgets);
        let mode = dice.pick(&[Processing::Continuous, Processing::Batch, Processing::Adaptive]);
        rig.processing(mode as u32, dice.pick(&[1, 3, u32::MAX]));
        assert!(rig.launches < 20_000, "no progress");
        let running = rig.launch();
        while during && !running.ended() {
            for t in &mut traffic {
                t.step(&mut dice);
            }
            std::thread::yield_now(); // the channels may want this core
        }
        running.join();
        rig.check_left();
        for channel in 0..channels {
            assert!(rig.exit(channel).is_yield(), "{:?} after {budgets:?}", rig.exit(channel));
        }
    }
    for channel in 0..channels {
        assert_eq!(rig.processed(channel), TOTAL);
    }
    rig.command(State::Terminated);
    assert_eq!(rig.whole(), Exit::Asked);
}

/// So many windows of so many messages, as the mode says; budgets count windows, and one look before them.
pub fn windows<K: Numbered>(lines: u32) {
    use Processing::{Adaptive, Batch, Continuous};
    for (mode, max, windows, expected) in [
        (Continuous, 100, 1, 1),
        (Continuous, 100, 3, 3),
        (Batch, 7, 1, 7),
        (Batch, 7, 3, 21),
        (Adaptive, 100, 1, 1),
        (Adaptive, 100, 3, 1 + 2 + 4),
        (Adaptive, 5, 4, 1 + 2 + 4 + 5),
        (Adaptive, 1, 4, 4),
    ] {
        let mut rig = Rig::<K>::new(1, (64, lines), 0);
        rig.command(State::Active);
        rig.processing(mode as u32, max);
        rig.budgets(Budgets { iterations: 1 + windows, ..ENDLESS });
        let mut traffic = Traffic::<K>::new(rig.ends(0), u64::MAX);
        assert_eq!(traffic.some(60), 60);
        assert_eq!(rig.whole(), Exit::IterationsSpent);
        let name = K::NAME;
        assert_eq!(rig.processed(0), expected, "{name}, {mode:?} of {max}, {windows} windows");
        assert_eq!(rig.channel(0).status.depth.load(Relaxed), 60 - expected);
    }
}
