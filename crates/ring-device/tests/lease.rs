//! A channel leaves by itself when its host has not renewed the lease, and only then. The clock is the
//! test's own, so that nothing here depends on how busy the machine is.

mod rig;

use rig::traffic::{Numbered, Traffic};
use rig::{Budgets, ENDLESS, Next, NextInOrder, Rig, Running, until};
use ring_shared::layout::{Exit, Processing, State};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::{Arc, Mutex};

/// A lease, in nanoseconds.
const LEASE: u64 = 1_000_000_000;

/// A tenth of it: how far apart a channel looks.
const STEP: u64 = LEASE / 10;

/// The channels' clock. One test at a time sets it.
static CLOCK: AtomicU64 = AtomicU64::new(0);
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// How often each channel has read it.
static READS: [AtomicU64; 4] = [const { AtomicU64::new(0) }; 4];

fn leased(channels: u32, capacity: u32) -> Rig<Next> {
    CLOCK.store(1 << 40, Relaxed);
    let mut rig = Rig::<Next>::new(channels, capacity, 0);
    rig.clock = Some(Arc::new(|channel| {
        READS[channel as usize].fetch_add(1, Release);
        CLOCK.load(Relaxed)
    }));
    rig.control().config.lease.store(LEASE, Relaxed);
    rig
}

fn renew(rig: &Rig<Next>) {
    rig.control().host.renewed.fetch_add(1, Relaxed);
}

/// Lets the clock go on (or back), and waits until every channel has seen it, and looked at its lease, or left.
fn pass(rig: &Rig<Next>, running: &Running, time: u64) {
    let now = CLOCK.load(Relaxed).wrapping_add(time);
    CLOCK.store(now, Relaxed);
    for channel in 0..rig.channels {
        let beat = || rig.channel(channel).status.heartbeat.load(Acquire) == now;
        until("the channel's heart beats", || running.ended() || beat());
        // Of its reads of the clock one belongs to that heartbeat; before the next it looks at its lease.
        let reads = || READS[channel as usize].load(Acquire);
        let before = reads();
        until("the channel reads the clock again", || running.ended() || reads() >= before + 2);
    }
}

/// Renews the lease once more, and lets it run out: no channel leaves before nine looks have shown nothing
/// new, and then all do.
fn runs_out(rig: &Rig<Next>, running: Running) {
    renew(rig);
    (0..9).for_each(|_| pass(rig, &running, STEP)); // the first shows the renewal
    assert!((0..rig.channels).all(|channel| rig.exit(channel) == Exit::Running), "too early");
    CLOCK.fetch_add(STEP, Relaxed);
    running.join();
    for channel in 0..rig.channels {
        assert_eq!(rig.exit(channel), Exit::LeaseOver);
        assert_eq!(rig.acknowledged(channel).1, Some(State::Faulted));
    }
    rig.check_left();
}

#[test]
fn a_channel_leaves_when_its_lease_is_over() {
    let _one = ONE_AT_A_TIME.lock();
    for channels in [1, 3] {
        for state in [None, Some(State::Active), Some(State::Inactive)] {
            let mut rig = leased(channels, 8);
            let running = rig.launch();
            if let Some(state) = state {
                rig.command_and_wait(state);
            }
            pass(&rig, &running, STEP);
            runs_out(&rig, running);
        }
    }
}

#[test]
fn a_channel_stays_while_its_lease_is_renewed() {
    let _one = ONE_AT_A_TIME.lock();
    let mut rig = leased(2, 8);
    let running = rig.launch();
    rig.command_and_wait(State::Active);
    for step in 0..100 {
        if step % 8 == 0 {
            renew(&rig);
        }
        pass(&rig, &running, STEP);
        assert!(!running.ended(), "after {step} steps");
    }
    rig.command(State::Terminated);
    running.join();
    assert_eq!(rig.exit(0), Exit::Asked);
}

/// A clock that jumps, as when the machine was asleep, costs one look: the host has its time again.
#[test]
fn a_clock_that_jumps_ends_no_lease() {
    let _one = ONE_AT_A_TIME.lock();
    let mut rig = leased(1, 8);
    let running = rig.launch();
    rig.command_and_wait(State::Active);
    for jump in [3600 * LEASE, 0u64.wrapping_sub(1800 * LEASE), LEASE, 0u64.wrapping_sub(LEASE)] {
        renew(&rig);
        pass(&rig, &running, STEP);
        for _ in 0..4 {
            pass(&rig, &running, jump);
        }
        assert!(!running.ended(), "after jumps by {jump}");
    }
    rig.command(State::Terminated);
    running.join();
    assert_eq!(rig.exit(0), Exit::Asked);
}

/// A clock that goes back, however often, is no sign that the host is gone.
#[test]
fn a_clock_that_goes_back_again_and_again_ends_no_lease() {
    let _one = ONE_AT_A_TIME.lock();
    let mut rig = leased(1, 8);
    let running = rig.launch();
    rig.command_and_wait(State::Active);
    for back in 0..30 {
        pass(&rig, &running, 0u64.wrapping_sub(3 * LEASE));
        assert!(!running.ended(), "{back} times back");
    }
    rig.command(State::Terminated);
    running.join();
    assert_eq!(rig.exit(0), Exit::Asked);
}

/// A host that never renews has its whole lease, from the launch on.
#[test]
fn a_lease_that_is_never_renewed_lasts_from_the_launch_on() {
    let _one = ONE_AT_A_TIME.lock();
    let mut rig = leased(2, 8);
    let running = rig.launch();
    rig.command_and_wait(State::Active);
    (0..9).for_each(|_| pass(&rig, &running, STEP)); // the first look is none that was missed
    assert!((0..rig.channels).all(|channel| rig.exit(channel) == Exit::Running), "too early");
    CLOCK.fetch_add(STEP, Relaxed);
    running.join();
    assert_eq!((rig.exit(0), rig.exit(1)), (Exit::LeaseOver, Exit::LeaseOver));
}

/// However often a channel has a heartbeat, it looks at the lease a tenth of that apart.
#[test]
fn heartbeats_do_not_shorten_a_lease() {
    let _one = ONE_AT_A_TIME.lock();
    let mut rig = leased(1, 8);
    let running = rig.launch();
    rig.command_and_wait(State::Active);
    for beats in 0..30 {
        pass(&rig, &running, 200_000);
        assert!(!running.ended(), "after {beats} heartbeats");
    }
    runs_out(&rig, running);
}

/// A channel that always has something to do finds out, too: time goes on by a tenth of the lease with each
/// look at the clock, and messages are answered one by one.
fn under_way<K: Numbered>() {
    CLOCK.store(1 << 40, Relaxed);
    let mut rig = Rig::<K>::new(1, 1024, 0);
    rig.clock = Some(Arc::new(|_| CLOCK.fetch_add(STEP, Relaxed)));
    rig.control().config.lease.store(LEASE, Relaxed);
    rig.processing(Processing::Continuous as u32, 1);
    rig.command(State::Active);
    let mut traffic = Traffic::<K>::new(rig.ends(0), u64::MAX);
    assert_eq!(traffic.some(1000), 1000);
    assert_eq!(rig.whole(), Exit::LeaseOver);
    assert!((1..100).contains(&rig.processed(0)), "{}", rig.processed(0));
}

#[test]
fn a_channel_that_always_has_work_leaves_when_its_lease_is_over() {
    let _one = ONE_AT_A_TIME.lock();
    under_way::<Next>();
    under_way::<NextInOrder>();
}

/// What was answered is there, and what was not is counted.
#[test]
fn under_load_nothing_is_lost_with_the_lease() {
    let _one = ONE_AT_A_TIME.lock();
    for budgets in [ENDLESS, Budgets { time: 1 << 50, ..ENDLESS }] {
        let mut rig = leased(1, 4);
        rig.budgets(budgets);
        let mut ends = rig.ends(0);
        let running = rig.launch();
        rig.command_and_wait(State::Active);
        let (mut sent, mut received) = (0u64, 0);
        while !running.ended() {
            let batch: Vec<u64> = (sent..sent + 3).collect();
            sent += ends.push_slice(&batch) as u64;
            for answer in ends.drain::<u64>() {
                assert_eq!(answer, received + 1);
                received += 1;
            }
            CLOCK.fetch_add(STEP / 100, Relaxed);
            std::thread::yield_now();
        }
        running.join();
        assert_eq!(rig.exit(0), Exit::LeaseOver);
        for answer in ends.drain::<u64>() {
            assert_eq!(answer, received + 1);
            received += 1;
        }
        assert_eq!(rig.processed(0), received, "what was handled was answered");
        assert!(sent >= received && sent - received <= 8);
        rig.check_left();
    }
}

/// A channel that waits for room for its answers leaves too.
#[test]
fn a_channel_without_room_for_answers_leaves() {
    let _one = ONE_AT_A_TIME.lock();
    let mut rig = leased(1, 4);
    let mut ends = rig.ends(0);
    let running = rig.launch();
    rig.command_and_wait(State::Active);
    let mut sent = 0;
    while sent < 8 {
        sent += ends.push_slice(&[sent, sent + 1][..1 + (sent % 2) as usize]) as u64;
    }
    runs_out(&rig, running);
    let mut answers = 0;
    while let Some(answer) = ends.pop::<u64>() {
        answers += 1;
        assert_eq!(answer, answers);
    }
    assert_eq!((answers, rig.processed(0)), (4, 4), "four found room, four were not handled");
}
