//! Channels that cannot go on: launches behind a lost one leave everything as it is, and a channel that leaves
//! before it has begun does not keep the others.

mod rig;

use rig::{Budgets, ENDLESS, LINES, MS, Next, Rig, until};
use ring_device::{Kernel, ring_kernel};
use ring_shared::layout::{Command, Exit, State};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed};

/// Idle time that no test waits for: a channel beside channel 0 leaves when it is called, and not before.
const NEVER: Budgets = Budgets { idle: 3_600_000 * MS, ..ENDLESS };

/// Messages that [`Counted`] was called with.
static CALLS: AtomicU64 = AtomicU64::new(0);

ring_kernel! {
    struct Counted {
        name: "counted",
        entry: "test_counted",
    }

    fn handle(request: &u64) -> u64 {
        CALLS.fetch_add(1, Relaxed);
        *request
    }
}

/// Leaves the channel as a handler's panic does, in a launch that had acknowledged the command `epoch`.
fn lose<K: Kernel>(rig: &Rig<K>, channel: u32, epoch: u32) {
    let status = &rig.channel(channel).status;
    status.exit.store(Exit::HandlerPanicked as u64, Relaxed);
    status.acknowledged.store(Command { epoch, state: State::Faulted as u32 }.to_word(), Relaxed);
}

/// The message that a handler panicked over is still in the line when the launch behind that one begins,
/// and looks like one that could be answered at once.
#[test]
fn a_launch_behind_a_lost_one_does_not_run_its_message_again() {
    for lines in LINES {
        let mut rig = Rig::<Counted>::new(1, (8, lines), 5);
        let epoch = rig.command(State::Active);
        let mut ends = rig.ends(0);
        lose(&rig, 0, epoch);
        assert!(ends.push(7u64), "it goes inline");
        rig.launch().join();
        let block = rig.channel(0);
        assert_eq!(CALLS.load(Relaxed), 0, "the handler ran again");
        assert_eq!(block.request_credit.consumed.load(Acquire), 5, "the message stays unhandled");
        assert_eq!(ends.pop::<u64>(), None);
        assert_eq!(
            (rig.exit(0), block.status.launches_left.load(Acquire)),
            (Exit::HandlerPanicked, 1)
        );
        assert_eq!(rig.acknowledged(0), (epoch, Some(State::Faulted)));
    }
}

/// Channel 0 counts for all channels when to leave. Lost before the launch, or refused as it begins, it leaves
/// at once, and must take the others with it.
fn the_others_leave(spoil: fn(&Rig<Next>, u32), exit: Exit) {
    let mut rig = Rig::<Next>::new(3, 8, 5);
    let epoch = rig.command(State::Active);
    rig.budgets(NEVER);
    spoil(&rig, epoch);
    rig.channel(0).status.busy.store(u64::MAX, Relaxed);
    rig.launch().join();
    assert_eq!(rig.exit(0), exit);
    for channel in [1, 2] {
        assert_eq!(rig.exit(channel), Exit::Idle, "called by channel 0");
        assert_eq!(rig.acknowledged(channel), (epoch, Some(State::Yielded)));
    }
}

#[test]
fn a_refused_channel_0_calls_the_others() {
    the_others_leave(|rig, _| rig.channel(0).request.capacity.store(7, Relaxed), Exit::BadConfig);
    the_others_leave(|rig, _| rig.channel(0).status.scrubbed.store(9, Relaxed), Exit::CorruptRing);
}

#[test]
fn a_lost_channel_0_calls_the_others() {
    the_others_leave(|rig, epoch| lose(rig, 0, epoch), Exit::HandlerPanicked);
}

/// A channel that was lost while it had a message said that it was busy. The launches behind it say that it
/// is not, or channel 0 would wait for it.
#[test]
fn a_lost_channel_is_not_busy() {
    let mut rig = Rig::<Next>::new(2, 8, 5);
    let epoch = rig.command(State::Active);
    rig.budgets(Budgets { idle: MS, ..ENDLESS });
    lose(&rig, 1, epoch);
    rig.channel(1).status.busy.store(u64::MAX, Relaxed);
    let running = rig.launch();
    until("channel 1 leaves", || rig.channel(1).status.launches_left.load(Acquire) == 1);
    running.join();
    assert_eq!((rig.exit(0), rig.exit(1)), (Exit::Idle, Exit::HandlerPanicked));
    assert_eq!(rig.channel(1).status.busy.load(Relaxed), 0);
}
