//! Clocks that jump forwards by hours, go back, stand still, come round at the end of 64 bits: no channel
//! panics, loses a message, or stays beyond its budgets once the clock goes on; all acknowledge commands.

mod rig;

use rig::{Budgets, Dice, ENDLESS, Ends, LINES, MS, Next, NextInOrder, Rig, until};
use ring_device::Kernel;
use ring_shared::layout::{Exit, Processing, State, UNLIMITED};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

const HOUR: u64 = 3600 * 1000 * MS;

trait Any: Kernel<Request = u64, Response = u64> {}
impl<K: Kernel<Request = u64, Response = u64>> Any for K {}

/// Time that goes on by `step` with each look at it, and jumps when the test asks. What is counted of a
/// channel is counted by its own looks, so it does not depend on when which thread runs.
struct Jumpy {
    at: AtomicU64,
    step: AtomicU64,
    channels: Vec<Looks>,
}

/// One channel's looks at the clock.
#[derive(Default)]
struct Looks {
    /// Since the last jump.
    looks: AtomicU64,
    /// What the last showed.
    last: AtomicU64,
    /// What the first showed after the clock had jumped, or come round.
    since: AtomicU64,
    /// Those that came when the channel was to leave.
    late: AtomicU64,
}

impl Jumpy {
    fn of<K: Any>(rig: &mut Rig<K>, at: u64, step: u64) -> Arc<Jumpy> {
        Jumpy::with(rig, at, step, |_, _| false)
    }

    /// With `is_late`, which says of a channel whether it is to leave when it has seen the clock go on by so
    /// much since that jumped.
    fn with<K: Any>(
        rig: &mut Rig<K>,
        at: u64,
        step: u64,
        is_late: impl Fn(u32, u64) -> bool + Send + Sync + 'static,
    ) -> Arc<Jumpy> {
        let channels = (0..rig.channels).map(|_| Looks::default()).collect();
        let clock =
            Arc::new(Jumpy { at: AtomicU64::new(at), step: AtomicU64::new(step), channels });
        let seen = Arc::clone(&clock);
        rig.clock = Some(Arc::new(move |channel| seen.look(channel, &is_late)));
        clock
    }

    fn look(&self, channel: u32, is_late: impl Fn(u32, u64) -> bool) -> u64 {
        let now = self.at.fetch_add(self.step.load(Relaxed), Relaxed);
        let mine = &self.channels[channel as usize];
        if mine.looks.fetch_add(1, Relaxed) == 0 || now < mine.last.load(Relaxed) {
            mine.since.store(now, Relaxed);
        }
        mine.last.store(now, Relaxed);
        if is_late(channel, now - mine.since.load(Relaxed)) {
            mine.late.fetch_add(1, Relaxed);
        }
        now
    }

    fn jump(&self, to: u64) {
        self.at.store(to, Relaxed);
        self.channels.iter().for_each(|channel| channel.looks.store(0, Relaxed));
    }

    /// Waits until each channel has looked so often that it has nothing left to do.
    fn goes_on(&self) {
        for channel in &self.channels {
            let looks = channel.looks.load(Relaxed);
            until("looks at the clock", || channel.looks.load(Relaxed) >= looks + 40);
        }
    }
}

/// From a clock at `from`: hours ahead, hours back, to zero, to where it comes round soon.
fn jumps(from: u64) -> [u64; 6] {
    [from + 3 * HOUR, from - HOUR, from - 2000 * MS, 0, u64::MAX - 20_000, u64::MAX]
}

/// One inline message, then two in slots, answered.
fn works(ends: &mut Ends) {
    for n in [1, 2] {
        let messages: Vec<u64> = (10..10 + n).collect();
        assert_eq!(ends.push_slice(&messages), n as usize);
        for message in messages {
            let mut answer = None;
            until("an answer", || {
                answer = ends.pop::<u64>();
                answer.is_some()
            });
            assert_eq!(answer, Some(message + 1));
        }
    }
}

fn acknowledges_whatever_the_clock_does<K: Any>(lines: u32) {
    for budgets in [ENDLESS, Budgets { time: 1, idle: 1, ..ENDLESS }] {
        let mut rig = Rig::<K>::new(2, (8, lines), 0);
        rig.budgets(budgets);
        let clock = Jumpy::of(&mut rig, 10 * HOUR, 0);
        let mut ends = [rig.ends(0), rig.ends(1)];
        let running = rig.launch();
        rig.command_and_wait(State::Active);
        // With budgets it must stand still, or the launch would end.
        let jumps = if budgets.time == UNLIMITED { &jumps(10 * HOUR)[..] } else { &[] };
        for jump in jumps.iter().copied().chain([10 * HOUR]) {
            clock.jump(jump);
            ends.iter_mut().for_each(works);
            rig.command_and_wait(State::Inactive);
            rig.command_and_wait(State::Active);
            assert!(!running.ended());
        }
        rig.command_and_wait(State::Terminated);
        running.join();
        rig.check_left();
    }
}

#[test]
fn acknowledges_with_the_clock_standing_still_or_jumping() {
    for lines in LINES {
        acknowledges_whatever_the_clock_does::<Next>(lines);
        acknowledges_whatever_the_clock_does::<NextInOrder>(lines);
    }
}

/// A launch whose clock jumps while it runs ends by its budgets of time or idleness, counted from
/// the jump at the latest: each channel a few looks after it has seen that the time is over, or that channel 0
/// calls it.
fn ends_in_time<K: Any>(budgets: Budgets, limit: u64, exit: Exit) {
    // How far the clock goes with a look. Looks of a channel that may come when it is to leave: it looks for
    // the call, as for the host's command, each sixteenth time.
    const STEP: u64 = 1000;
    const LATE: u64 = 40;
    let from = 10 * HOUR;
    for channels in [1, 3] {
        for jump in jumps(from) {
            let mut rig = Rig::<K>::new(channels, 8, 0);
            rig.budgets(budgets);
            rig.command(State::Active);
            let call = std::ptr::from_ref(&rig.channel(0).status.call).addr();
            let clock = Jumpy::with(&mut rig, from, 0, move |channel, time| {
                // SAFETY: in the rig's memory, which outlives its launches.
                let call = unsafe { &*std::ptr::with_exposed_provenance::<AtomicU64>(call) };
                let keeps_time = channel == 0 || budgets.time != UNLIMITED;
                (keeps_time && time >= limit) || call.load(Relaxed) == 1
            });
            let mut ends = rig.ends(channels - 1);
            let running = rig.launch();
            until("active", || {
                (0..channels).all(|channel| rig.acknowledged(channel) == (1, Some(State::Active)))
            });
            works(&mut ends);
            clock.goes_on();
            assert!(!running.ended(), "no more time has passed for it");
            clock.jump(jump);
            clock.step.store(STEP, Relaxed);
            running.join();
            rig.check_left();
            for (channel, looks) in clock.channels.iter().enumerate() {
                let late = looks.late.load(Relaxed);
                assert!(late <= LATE, "{late} looks of channel {channel} of {channels}, to {jump}");
            }
            assert!([exit, Exit::Idle].contains(&rig.exit(0)), "{:?}", rig.exit(0));
        }
    }
}

#[test]
fn time_is_over_in_time_after_a_jump() {
    let budgets = Budgets { time: MS, ..ENDLESS };
    ends_in_time::<Next>(budgets, MS, Exit::TimeSpent);
    ends_in_time::<NextInOrder>(budgets, MS, Exit::TimeSpent);
}

#[test]
fn idleness_is_noticed_in_time_after_a_jump() {
    let budgets = Budgets { idle: MS, ..ENDLESS };
    ends_in_time::<Next>(budgets, MS, Exit::Idle);
    ends_in_time::<NextInOrder>(budgets, MS, Exit::Idle);
}

/// The last nanosecond that a clock can show is a time like others: who handled a message then is idle from then on.
fn is_idle_after_the_last_nanosecond<K: Any>() {
    let mut rig = Rig::<K>::new(2, 8, 0);
    rig.budgets(Budgets { idle: MS, ..ENDLESS });
    rig.command(State::Active);
    let clock = Jumpy::of(&mut rig, u64::MAX, 0);
    let mut ends = rig.ends(1);
    let running = rig.launch();
    works(&mut ends);
    clock.jump(HOUR);
    clock.step.store(1000, Relaxed);
    running.join();
    rig.check_left();
    assert_eq!(rig.exit(0), Exit::Idle);
}

#[test]
fn idleness_is_noticed_after_the_last_nanosecond() {
    is_idle_after_the_last_nanosecond::<Next>();
    is_idle_after_the_last_nanosecond::<NextInOrder>();
}

/// Launches by the dozen, with the clock anywhere whenever they look.
fn each_message_once<K: Any>(lines: u32, seed: u64) {
    const TOTAL: u64 = 200;
    let mut dice = Dice(seed);
    let mut rig = Rig::<K>::new(2, (dice.pick(&[1, 4, 16]), lines), (1 << 32) - 37);
    rig.command(State::Active);
    let clock = Jumpy::of(&mut rig, 10 * HOUR, 100);
    let mut ends = [rig.ends(0), rig.ends(1)];
    let (mut sent, mut got) = ([0; 2], [0; 2]);
    while got != [TOTAL; 2] {
        let budgets = match dice.roll(4) {
            0 => Budgets { iterations: 1 + dice.roll(5), ..ENDLESS },
            1 => Budgets { idle: dice.pick(&[0, 1000, 30_000]), ..ENDLESS },
            2 => Budgets { idle: MS, iterations: 300, ..ENDLESS },
            _ => Budgets { time: dice.pick(&[0, 1000, 50_000]), ..ENDLESS },
        };
        rig.budgets(budgets);
        let mode = dice.pick(&[Processing::Continuous, Processing::Batch, Processing::Adaptive]);
        rig.processing(mode as u32, dice.pick(&[1, 3, u32::MAX]));
        assert!(rig.launches < 20_000, "no progress");
        let mut step = |dice: &mut Dice| {
            for (channel, ends) in ends.iter_mut().enumerate() {
                let n = dice.roll(5).min(TOTAL - sent[channel]);
                let messages: Vec<u64> = (sent[channel]..sent[channel] + n).collect();
                sent[channel] += ends.push_slice(&messages) as u64;
                while let Some(answer) = ends.pop::<u64>() {
                    assert_eq!(answer, got[channel] + 1, "lost, doubled or out of order");
                    got[channel] += 1;
                }
            }
        };
        step(&mut dice); // there is progress with each launch, even if this thread does not run beside it
        let running = rig.launch();
        while !running.ended() {
            if dice.roll(20) == 0 {
                clock.jump(dice.pick(&jumps(10 * HOUR)));
            }
            step(&mut dice);
            std::thread::yield_now(); // the channels may want this core
        }
        running.join();
        rig.check_left();
        assert!(rig.exit(0).is_yield() && rig.exit(1).is_yield());
    }
    assert_eq!((rig.processed(0), rig.processed(1)), (TOTAL, TOTAL));
    rig.command(State::Terminated);
    assert_eq!(rig.whole(), Exit::Asked);
}

#[test]
fn each_message_once_whatever_the_clock_does() {
    for lines in LINES {
        for seed in 0..4 {
            each_message_once::<Next>(lines, seed);
            each_message_once::<NextInOrder>(lines, seed + 100);
        }
    }
}
