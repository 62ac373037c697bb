//! Episodes of one kernel, one after the other: launched, used on all channels by threads of their own while it is
//! deactivated and activated, and terminated.

use crate::dice::Dice;
use crate::load::Load;
use ring_host::{Channel, Kernel, LaunchConfig, Processing, Runtime, TryRecvError, TrySendError};
use ring_tests::{LONG, WAYS, mixed};
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Most messages that are sent or received by one call.
const MOST: u64 = 4096;

/// Powers of two below which the most messages in flight are drawn: up to 32,768.
const DEPTHS: u64 = 16;

/// Counts of one kernel.
#[derive(Debug, Default)]
pub struct Tally {
    /// How many answers are enough.
    share: u64,
    received: AtomicU64,
    unhandled: AtomicU64,
    launches: AtomicU64,
    pauses: AtomicU64,
}

impl Tally {
    fn is_enough(&self) -> bool {
        self.received.load(Relaxed) >= self.share
    }
}

/// Counts of all kernels.
#[derive(Debug)]
pub struct Tallies(pub [Tally; KERNELS]);

/// How many kernels there are.
const KERNELS: usize = 4;

impl Tallies {
    /// Each is to answer its part of so many messages.
    pub fn new(messages: u64) -> Tallies {
        let share = messages.div_ceil(KERNELS as u64);
        Tallies(std::array::from_fn(|_| Tally { share, ..Tally::default() }))
    }

    pub fn received(&self) -> u64 {
        self.sum(|tally| &tally.received)
    }

    fn sum(&self, of: fn(&Tally) -> &AtomicU64) -> u64 {
        self.0.iter().map(|tally| of(tally).load(Relaxed)).sum()
    }
}

impl fmt::Display for Tallies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (received, launches) = (self.received(), self.sum(|tally| &tally.launches));
        let (pauses, unhandled) =
            (self.sum(|tally| &tally.pauses), self.sum(|tally| &tally.unhandled));
        write!(
            f,
            "{received} answers, {launches} launches, {pauses} deactivations, {unhandled} unhandled"
        )
    }
}

/// Episodes until the kernel has answered enough.
///
/// # Panics
/// If a message is lost, doubled, reordered, changed or not accounted for, or a call fails.
pub fn episodes<L: Load>(host: &Runtime, channels: u32, seed: u64, tally: &Tally) {
    let (mut dice, mut launches, mut answers) = (Dice(seed), 0, 0);
    while !tally.is_enough() {
        answers += episode::<L>(host, channels, &mut dice, tally);
        launches += 1;
    }
    println!("{}: {answers} answers in {launches} launches", L::Kernel::NAME);
}

fn episode<L: Load>(host: &Runtime, channels: u32, dice: &mut Dice, tally: &Tally) -> u64 {
    let name = L::Kernel::NAME;
    // Three of four in the first way: persistent in mapped memory.
    let (mode, memory) = if dice.below(4) > 0 { WAYS[0] } else { dice.pick(&WAYS[1..]) };
    let processing = dice.pick(&[Processing::Batch, Processing::Batch, Processing::Adaptive]);
    let capacity = dice.pick(&[64, 1024, 4096, 8192]);
    let start = dice.pick(&[0, (1 << 32) - 1000, 1 << 40]);
    let launch = LaunchConfig::default().mode(mode).memory(memory).capacity(capacity);
    let launch = L::launch(launch.channels(channels).processing(processing).start_index(start));
    let mut kernel = host.launch::<L::Kernel>(launch).unwrap();
    kernel.activate(LONG).unwrap();
    tally.launches.fetch_add(1, Relaxed);
    let (leave, end) =
        (AtomicBool::new(false), Instant::now() + Duration::from_millis(200 + dice.below(1500)));
    let users: Vec<_> = std::thread::scope(|threads| {
        let users: Vec<_> = (0..channels)
            .map(|channel| {
                let user = User::<L>::new(kernel.take_channel(channel).unwrap(), dice.roll());
                let leave = &leave;
                threads.spawn(move || user.run(leave, tally))
            })
            .collect();
        while Instant::now() < end && !tally.is_enough() {
            std::thread::sleep(Duration::from_millis(dice.below(60)));
            kernel.deactivate(LONG).unwrap();
            std::thread::sleep(Duration::from_micros(dice.below(3000)));
            kernel.activate(LONG).unwrap();
            tally.pauses.fetch_add(1, Relaxed);
        }
        leave.store(true, Relaxed);
        kernel.terminate(LONG).unwrap();
        let users: Vec<_> = users.into_iter().map(|user| user.join().unwrap()).collect();
        let summary = kernel.summary(); // a send may have gone on while the kernel terminated
        let sum = |of: fn(&User<L>) -> u64| users.iter().map(of).sum::<u64>();
        let (sent, received) = (sum(|user| user.sent), sum(|user| user.received));
        assert_eq!(summary.processed, received, "{name}: all that was handled was received");
        assert_eq!(summary.processed + summary.unhandled, sent, "{name}: the rest is counted");
        tally.unhandled.fetch_add(summary.unhandled, Relaxed);
        users
    });
    for (channel, user) in (0..).zip(&users) {
        L::check(&mut kernel, channel, &user.model);
    }
    users.iter().map(|user| user.received).sum()
}

/// Who uses a channel.
struct User<L: Load> {
    channel: Channel<L::Kernel>,
    dice: Dice,
    key: u64,
    sent: u64,
    received: u64,
    counted: u64,
    model: L::Model,
    /// The first answer that was wrong.
    wrong: Option<u64>,
    /// Most messages in flight, until so many are sent.
    depth: u64,
    until: u64,
}

impl<L: Load> User<L> {
    fn new(channel: Channel<L::Kernel>, seed: u64) -> User<L> {
        let (dice, key) = (Dice(seed), mixed(seed));
        User {
            channel,
            dice,
            key,
            sent: 0,
            received: 0,
            counted: 0,
            model: L::model(),
            wrong: None,
            depth: 1,
            until: 0,
        }
    }

    /// Sends and receives until it is asked to leave, then receives what is left.
    fn run(mut self, leave: &AtomicBool, tally: &Tally) -> User<L> {
        let name = L::Kernel::NAME;
        let mut moved_at = Instant::now();
        while !leave.load(Relaxed) {
            let (sent, received) = (self.send(), self.receive().unwrap_or(0));
            self.tell(tally);
            if sent + received > 0 {
                moved_at = Instant::now();
            } else {
                std::thread::yield_now();
            }
            assert!(
                moved_at.elapsed() < LONG,
                "{name}: {} sent, {} received",
                self.sent,
                self.received
            );
            if self.dice.below(2000) == 0 {
                std::thread::sleep(Duration::from_micros(self.dice.below(500)));
            }
        }
        let begun = Instant::now();
        while self.receive().is_some() {
            assert!(begun.elapsed() < LONG, "{name}: no end");
        }
        self.tell(tally);
        assert_eq!(self.wrong, None, "{name}: a wrong answer, at that place");
        self
    }

    /// Sends one request or some, up to as many in flight as are drawn anew now and then: from one, which is answered
    /// alone, to all that the rings take.
    fn send(&mut self) -> u64 {
        if self.sent >= self.until {
            let most = 1 << self.dice.below(DEPTHS);
            self.depth = 1 + self.dice.below(most);
            self.until = self.sent + 64 * self.depth;
        }
        let free = self.depth.saturating_sub(self.sent - self.received);
        let most = (1 + self.dice.below(MOST)).min(free) as usize;
        if most == 0 {
            return 0;
        }
        let (key, first, singly) = (self.key, self.sent, self.dice.below(8) == 0);
        let request = |k: usize| L::request(key ^ (first + k as u64));
        let sent = match singly {
            true => match self.channel.try_send(request(0)) {
                Err(TrySendError::Full(_)) => Ok(0),
                sent => sent.map(|()| 1).map_err(TrySendError::without_message),
            },
            false => self.channel.try_send_each(most, request),
        };
        let sent = match sent {
            Ok(sent) => sent as u64,
            Err(TrySendError::NotActive { .. } | TrySendError::Closed { .. }) => 0,
            Err(error) => panic!("{}: {error}", L::Kernel::NAME),
        };
        self.sent += sent;
        sent
    }

    /// How many were received; `None` when there will be no more.
    fn receive(&mut self) -> Option<u64> {
        let most = 1 + self.dice.below(MOST) as usize;
        let User { channel, key, received, model, wrong, .. } = self;
        let taken = channel.try_recv_each(most, |response| {
            if !L::answers(model, &L::request(*key ^ *received), response) {
                wrong.get_or_insert(*received);
            }
            *received += 1;
        });
        match taken {
            Ok(taken) => Some(taken as u64),
            Err(TryRecvError::Closed { .. }) => None,
            Err(error) => panic!("{error}"),
        }
    }

    fn tell(&mut self, tally: &Tally) {
        tally.received.fetch_add(self.received - self.counted, Relaxed);
        self.counted = self.received;
    }
}
