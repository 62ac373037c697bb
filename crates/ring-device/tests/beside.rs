//! Channels beside each other in launches of limited budgets: who keeps whom, and who calls whom to leave.
//! What a channel waits for here is another one's heartbeat, not that time passes.

mod rig;

use rig::{Budgets, ENDLESS, Gate, LINES, MS, Next, Rig, gated, now, until};
use ring_device::{Kernel, ring_kernel};
use ring_shared::layout::{Exit, Processing, State};
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed};

gated!(Alone, Thread, ALONE);
gated!(Ordered, InOrder, ORDERED);
gated!(AloneToo, Thread, ALONE_TOO);
gated!(OrderedToo, InOrder, ORDERED_TOO);

/// A kernel whose messages are plain numbers.
trait Plain: Kernel<Request = u64, Response = u64> {}
impl<K: Kernel<Request = u64, Response = u64>> Plain for K {}

/// Waits until a channel's clock has gone on by so many nanoseconds; fails if channel `left` leaves meanwhile.
fn goes_on<K: Plain>(rig: &Rig<K>, channel: u32, time: u64, left: u32) {
    let beat = || rig.channel(channel).status.heartbeat.load(Relaxed);
    let begin = now();
    until("a channel's heart beats", || {
        assert_eq!(
            rig.channel(left).status.launches_left.load(Acquire),
            rig.launches - 1,
            "channel {left} left"
        );
        beat() >= begin + time
    });
}

/// A channel at work keeps the launch, whichever channel it is, and however long it is at it.
fn a_channel_at_work_keeps_all<K: Plain>(gate: &'static Gate) {
    for channel in [1, 2, 3, 4, 5, 9] {
        for n in [1, 2] {
            gate.close();
            let mut rig = Rig::<K>::new(10, 8, 0);
            // For channel 0 time begins when the other is at work.
            let begun = |channel| channel > 0 || gate.begun.load(Acquire) > 0;
            rig.clock = Some(Arc::new(move |channel| if begun(channel) { now() } else { 1 << 41 }));
            rig.command(State::Active);
            rig.budgets(Budgets { idle: MS, ..ENDLESS });
            let mut ends = rig.ends(channel);
            if n == 1 {
                assert!(ends.push(0u64));
            } else {
                assert_eq!(ends.push_slice(&[0u64, 1]), 2);
            }
            let running = rig.launch();
            goes_on(&rig, 0, 5 * MS, 0);
            gate.open(u64::MAX);
            running.join();
            rig.check_left();
            assert_eq!((rig.exit(0), rig.processed(channel)), (Exit::Idle, n));
        }
    }
}

#[test]
fn a_channel_at_work_keeps_the_others() {
    a_channel_at_work_keeps_all::<Alone>(&ALONE);
    a_channel_at_work_keeps_all::<Ordered>(&ORDERED);
}

/// Whether the launch has nothing to do is for channel 0 to say: for it no time passes here.
#[test]
fn a_channel_with_nothing_to_do_stays_until_it_is_called() {
    for lines in LINES {
        let mut rig = Rig::<Next>::new(2, (8, lines), 0);
        rig.clock = Some(Arc::new(|channel| if channel == 0 { 1 << 41 } else { now() }));
        rig.budgets(Budgets { idle: MS, ..ENDLESS });
        let running = rig.launch();
        rig.command_and_wait(State::Active);
        goes_on(&rig, 1, 5 * MS, 1);
        // Neither does it leave when it has had messages.
        let mut ends = rig.ends(1);
        for n in 1..4 {
            assert_eq!(ends.push_slice(&vec![7u64; n]), n);
            let mut got = 0;
            until("answers", || {
                got += usize::from(ends.pop::<u64>().is_some());
                got == n
            });
            ends.consumer.publish();
            goes_on(&rig, 1, 2 * MS, 1);
        }
        rig.command_and_wait(State::Terminated);
        running.join();
        rig.check_left();
        assert_eq!((rig.exit(0), rig.exit(1)), (Exit::Asked, Exit::Asked));
    }
}

/// Without idle time each channel leaves by itself, when it has answered what there is: it is not called by
/// channel 0, which has left before.
fn each_by_itself<K: Plain>(gate: &Gate) {
    let mut rig = Rig::<K>::new(2, 16, 0);
    rig.command(State::Active);
    rig.processing(Processing::Continuous as u32, 1);
    rig.budgets(Budgets { idle: 0, ..ENDLESS });
    let mut ends = rig.ends(1);
    assert_eq!(ends.push_slice(&(0..10).collect::<Vec<u64>>()), 10);
    let running = rig.launch();
    until("channel 0 leaves", || rig.channel(0).status.launches_left.load(Acquire) == 1);
    gate.open(u64::MAX);
    running.join();
    rig.check_left();
    assert_eq!((rig.exit(1), rig.processed(1)), (Exit::Idle, 10));
}

#[test]
fn without_idle_time_each_channel_leaves_by_itself() {
    each_by_itself::<AloneToo>(&ALONE_TOO);
    each_by_itself::<OrderedToo>(&ORDERED_TOO);
}

ring_kernel! {
    /// Answers with what was asked.
    struct Same;

    fn handle(request: &u64) -> u64 {
        *request
    }
}

/// Channel 0 looks at channels only, not at what lies behind them: slots full of what a
/// channel at work would write.
#[test]
fn what_lies_behind_the_channels_is_no_channel() {
    for channels in 2..6 {
        let mut rig = Rig::<Same>::new(channels, 64, 0);
        rig.command(State::Active);
        let mut ends: Vec<_> = (0..channels).map(|channel| rig.ends(channel)).collect();
        rig.budgets(Budgets { idle: 0, ..ENDLESS });
        for ends in &mut ends {
            assert_eq!(ends.push_slice(&[u64::MAX; 64]), 64);
        }
        assert_eq!(rig.whole(), Exit::Idle);
        for ends in &mut ends {
            assert_eq!(ends.drain::<u64>(), [u64::MAX; 64]);
        }
        rig.budgets(Budgets { idle: MS, ..ENDLESS });
        assert_eq!(rig.whole(), Exit::Idle);
    }
}

/// A block beyond the channels that the host laid out touches nothing.
#[test]
fn a_block_beyond_the_channels_touches_nothing() {
    for lines in LINES {
        let mut rig = Rig::<Next>::new(3, (8, lines), 0);
        rig.command(State::Active);
        rig.control().host.channels.store(2, Relaxed);
        rig.budgets(Budgets { idle: 0, ..ENDLESS });
        rig.launch().join();
        let left = |channel| rig.channel(channel).status.launches_left.load(Relaxed);
        assert_eq!([left(0), left(1), left(2)], [1, 1, 0]);
        assert_eq!(rig.acknowledged(2), (0, Some(State::Launched)), "nothing was written");
    }
}
