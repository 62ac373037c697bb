//! Messages in slots, and what a host may do to them that it should not.

mod rig;

use rig::{Budgets, ENDLESS, LINES, MS, Next, Rig, now, until};
use ring_shared::layout::{Exit, State};
use ring_shared::ring::{CONTROL, Control};
use std::sync::atomic::Ordering::{Acquire, Relaxed};

/// Rings `control` in the line of message `index`: behind an inline message with that word, or, as it tells of slots,
/// in the first line too.
fn ring(rig: &Rig<Next>, index: u32, message: Option<u64>, control: Control) {
    let line = rig.line(0, 0, index.into());
    match message {
        Some(word) => line.atoms[0].publish([word, u64::from(index + 1) << 32]),
        None => rig.line(0, 0, 0).atoms[CONTROL].publish(control.to_words()),
    }
    line.atoms[CONTROL].publish(control.to_words());
}

#[test]
fn a_credit_that_is_far_behind_does_not_keep_a_channel_from_leaving() {
    for lines in LINES {
        let mut rig = Rig::<Next>::new(1, (4, lines), 0);
        rig.command(State::Active);
        let running = rig.launch();
        for i in 0..10u32 {
            // Answers that went out by the line; the credit line is never renewed.
            let control = Control { credit: i, early: 0, first: i + 1, tail: i + 1 };
            ring(&rig, i, Some(i.into()), control);
            let consumed = || rig.channel(0).request_credit.consumed.load(Acquire);
            until("an answer", || consumed() == u64::from(i) + 1);
        }
        ring(&rig, 10, None, Control { credit: 500, early: 0, first: 10, tail: 12 });
        std::thread::sleep(std::time::Duration::from_millis(20));
        rig.command(State::Terminated);
        running.join();
        assert!(matches!(rig.exit(0), Exit::Asked | Exit::CorruptRing), "{:?}", rig.exit(0));
    }
}

#[test]
fn a_tail_beyond_the_ring_ends_the_channel_in_a_stream_too() {
    for lines in LINES {
        let mut rig = Rig::<Next>::new(1, (4, lines), 0);
        rig.command(State::Active);
        let mut ends = rig.ends(0);
        assert_eq!(ends.push_slice(&[1u64, 2, 3, 4]), 4);
        let running = rig.launch();
        until("answers", || rig.channel(0).request_credit.consumed.load(Acquire) == 4);
        ring(&rig, 4, None, Control { credit: 0, early: 0, first: 4, tail: 40 });
        running.join();
        assert_eq!(rig.exit(0), Exit::CorruptRing);
    }
}

/// Each tail is no further ahead of the one before than the ring is long, but both together are: the channel
/// has answered none of what is between.
#[test]
fn a_tail_beyond_what_is_answered_ends_the_channel() {
    for lines in LINES {
        let mut rig = Rig::<Next>::new(1, (4, lines), 0);
        rig.command(State::Active);
        let mut ends = rig.ends(0);
        assert_eq!(ends.push_slice(&[1u64, 2, 3, 4]), 4);
        let running = rig.launch();
        let status = &rig.channel(0).status;
        let counted = || (status.processed.load(Relaxed), status.depth.load(Relaxed));
        until("answers", || counted() == (4, 0));
        // No answer is received, so these four wait for room.
        ring(&rig, 4, None, Control { credit: 0, early: 0, first: 4, tail: 8 });
        until("the channel knows of them", || counted() == (4, 4));
        assert!(!running.ended());
        ring(&rig, 8, None, Control { credit: 0, early: 0, first: 8, tail: 12 });
        running.join();
        assert_eq!((rig.exit(0), status.errors.load(Relaxed)), (Exit::CorruptRing, 1));
        assert_eq!(rig.channel(0).request_credit.consumed.load(Acquire), 4);
    }
}

#[test]
fn a_launch_that_waits_for_room_has_its_whole_idle_budget() {
    for lines in LINES {
        const IDLE: u64 = 50 * MS;
        let mut rig = Rig::<Next>::new(1, (4, lines), 0);
        rig.command(State::Active);
        let mut ends = rig.ends(0);
        let send = |ends: &mut rig::Ends, from: u64| {
            let messages: Vec<u64> = (from..from + 4).collect();
            ends.producer.push_slice(&messages, ends.consumer.next()).unwrap()
        };
        assert_eq!(send(&mut ends, 0), 4);
        rig.budgets(Budgets { idle: 0, ..ENDLESS });
        assert_eq!(rig.whole(), Exit::Idle);
        assert_eq!(send(&mut ends, 4), 4, "answered, not received");
        // A launch that was queued behind another one.
        rig.budgets(Budgets { time: 3_600_000 * MS, idle: IDLE, ..ENDLESS });
        let began = now();
        assert_eq!(rig.whole(), Exit::Idle);
        assert!(now() - began >= IDLE, "{} ns", now() - began);
        assert_eq!(rig.processed(0), 4);
    }
}
