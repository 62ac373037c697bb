//! When a launch ends, and how much it takes at a time.

mod rig;

use rig::{Budgets, ENDLESS, LINES, MS, Next, Rig, now, until};
use ring_device::ring_kernel;
use ring_shared::layout::{Exit, Processing, State, UNLIMITED};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

const SLOW: u64 = 200_000;

ring_kernel! {
    /// Takes 200 us a message.
    struct Slow {
        name: "slow",
        entry: "test_slow",
    }

    fn handle(request: &u64) -> u64 {
        let began = now();
        while now() - began < SLOW {}
        *request
    }
}

#[test]
fn the_time_budget_ends_an_idle_launch() {
    for lines in LINES {
        for (channels, state) in [(1, State::Active), (3, State::Active), (1, State::Inactive)] {
            let mut rig = Rig::<Next>::new(channels, (8, lines), 0);
            rig.command(state);
            rig.budgets(Budgets { time: 2 * MS, ..ENDLESS });
            let began = now();
            assert_eq!(rig.whole(), Exit::TimeSpent);
            assert!(now() - began >= 2 * MS);
            for channel in 0..channels {
                assert!(matches!(rig.exit(channel), Exit::TimeSpent | Exit::Idle));
            }
        }
    }
}

#[test]
fn the_time_budget_ends_a_launch_under_load_after_one_more_message() {
    for lines in LINES {
        let mut rig = Rig::<Slow>::new(1, (128, lines), 0);
        rig.command(State::Active);
        rig.budgets(Budgets { time: 2 * MS, ..ENDLESS });
        let mut ends = rig.ends(0);
        let messages: Vec<u64> = (0..100).collect();
        assert_eq!(ends.push_slice(&messages), 100);
        let mut before = 0;
        while before < 100 {
            let exit = rig.whole();
            let processed = rig.processed(0) - before;
            // Each began before the time was over: the tenth ends when it is.
            assert!((1..=10).contains(&processed), "{processed} messages");
            assert!(before + processed == 100 || exit == Exit::TimeSpent);
            before += processed;
        }
        assert_eq!(ends.drain::<u64>(), messages);
    }
}

#[test]
fn a_launch_without_time_answers_one_message() {
    for lines in LINES {
        let mut rig = Rig::<Next>::new(1, (16, lines), 0);
        rig.command(State::Active);
        rig.budgets(Budgets { time: 0, ..ENDLESS });
        let mut ends = rig.ends(0);
        assert_eq!(ends.push_slice(&[1u64, 2, 3]), 3);
        for n in 1..=3 {
            assert_eq!((rig.whole(), rig.processed(0)), (Exit::TimeSpent, n));
        }
    }
}

#[test]
fn a_launch_that_finds_nothing_does_not_wait_for_the_idle_budget() {
    for lines in LINES {
        for channels in [1, 3] {
            let mut rig = Rig::<Next>::new(channels, (8, lines), 0);
            rig.command(State::Active);
            rig.budgets(Budgets { time: 3_600_000 * MS, idle: 3_600_000 * MS, ..ENDLESS });
            assert_eq!(rig.whole(), Exit::Idle);
            for channel in 0..channels {
                assert_eq!(rig.exit(channel), Exit::Idle);
            }
        }
    }
}

#[test]
fn an_idle_launch_ends_after_its_budget() {
    let mut rig = Rig::<Next>::new(1, 8, 0);
    rig.command(State::Active);
    rig.budgets(Budgets { idle: 20 * MS, ..ENDLESS });
    let mut ends = rig.ends(0);
    assert!(ends.push(1u64));
    let began = now();
    assert_eq!(rig.whole(), Exit::Idle);
    assert!(now() - began >= 20 * MS);
    assert_eq!(ends.drain::<u64>(), [2]);
}

/// The clock is the test's own, so that it stands still while the test waits.
#[test]
fn a_message_on_any_channel_keeps_all_of_them() {
    for lines in LINES {
        const IDLE: u64 = 10 * MS;
        let mut rig = Rig::<Next>::new(3, (8, lines), 0);
        rig.command(State::Active);
        rig.budgets(Budgets { idle: IDLE, ..ENDLESS });
        let time = Arc::new(AtomicU64::new(1 << 40));
        let seen = Arc::clone(&time);
        rig.clock = Some(Arc::new(move |_| seen.load(Relaxed)));
        let (mut first, mut last) = (rig.ends(0), rig.ends(2));
        assert!(first.push(0u64)); // or channel 0 may leave before the others are there
        let running = rig.launch();
        let pass = |by| {
            let now = time.fetch_add(by, Relaxed) + by;
            until("channel 0 sees it", || {
                running.ended() || rig.channel(0).status.heartbeat.load(Relaxed) == now
            });
            now
        };
        let mut sent = 0u64;
        for _ in 0..20 {
            assert!(last.push(sent));
            sent += 1;
            until("an answer", || last.pop::<u64>() == Some(sent));
            let now = time.load(Relaxed);
            until("channel 2 rests", || rig.channel(2).status.busy.load(Relaxed) == now);
            pass(IDLE / 2);
            assert!(!running.ended(), "after {sent} messages");
        }
        pass(IDLE / 2 - 1);
        assert!(!running.ended(), "idle counts from the last message");
        pass(1);
        running.join();
        rig.check_left();
        for channel in 0..3 {
            assert_eq!(rig.exit(channel), Exit::Idle);
        }
        assert_eq!(rig.processed(2), sent);
    }
}

#[test]
fn channel_0_counts_iterations_for_all_channels() {
    let mut rig = Rig::<Next>::new(3, 8, 0);
    rig.command(State::Active);
    rig.budgets(Budgets { iterations: 1000, ..ENDLESS });
    assert_eq!(rig.whole(), Exit::IterationsSpent);
    for channel in [1, 2] {
        assert_eq!(rig.exit(channel), Exit::Idle, "called by channel 0");
        assert_eq!(rig.channel(0).status.call.load(Relaxed), 1);
    }
}

#[test]
fn a_channel_that_comes_late_still_takes_a_window() {
    for lines in LINES {
        let mut rig = Rig::<Next>::new(2, (8, lines), 0);
        rig.command(State::Active);
        rig.budgets(Budgets { idle: MS, ..ENDLESS });
        let mut ends = rig.ends(1);
        for i in 0..200 {
            assert_eq!(ends.push_slice(&[2 * i, 2 * i + 1]), 2);
            assert_eq!(rig.whole(), Exit::Idle);
            assert_eq!(ends.drain::<u64>(), [2 * i + 1, 2 * i + 2]);
        }
    }
}

/// A window of Batch takes what there is, where that is not more than it may.
#[test]
fn a_window_takes_all_that_there_is() {
    for lines in LINES {
        let mut rig = Rig::<Next>::new(1, (64, lines), 0);
        rig.command(State::Active);
        rig.processing(Processing::Batch as u32, 100);
        rig.budgets(Budgets { iterations: 2, ..ENDLESS }); // a look, and a window
        let mut ends = rig.ends(0);
        assert_eq!(ends.push_slice(&(0..60).collect::<Vec<u64>>()), 60);
        assert_eq!(rig.whole(), Exit::IterationsSpent);
        assert_eq!((rig.processed(0), rig.channel(0).status.depth.load(Relaxed)), (60, 0));
    }
}

#[test]
fn no_budget_no_end() {
    assert_eq!(ENDLESS.time & ENDLESS.iterations & ENDLESS.idle, UNLIMITED);
    let mut rig = Rig::<Next>::new(2, 8, 0);
    rig.command(State::Active);
    let running = rig.launch();
    std::thread::sleep(Duration::from_millis(50));
    assert!(!running.ended());
    rig.command_and_wait(State::Terminated);
    running.join();
}
