//! Many launches over the same memory: each message once, in order, whatever ends a launch.

mod rig;

use rig::traffic::{NEAR_END, many_launches};
use rig::{Budgets, ENDLESS, Ends, LINES, MS, Next, Rig, until};
use ring_shared::layout::{Exit, Processing, State, UNLIMITED};
use ring_shared::ring::MAX_START;
use std::sync::atomic::Ordering::Relaxed;

#[test]
fn each_message_once_with_the_host_quiet_during_a_launch() {
    for lines in LINES {
        for (seed, start) in [0, 1, NEAR_END, 1 << 40].into_iter().enumerate() {
            many_launches::<Next>(lines, seed as u64, 1, start, false);
            many_launches::<Next>(lines, seed as u64 + 100, 2, start, false);
        }
    }
}

fn host_busy(lines: u32) {
    for (seed, start) in [0, NEAR_END, NEAR_END + 30].into_iter().enumerate() {
        many_launches::<Next>(lines, seed as u64 + 200, 1, start, true);
        many_launches::<Next>(lines, seed as u64 + 300, 3, start, true);
    }
}

#[test]
fn each_message_once_with_the_host_busy_during_a_launch() {
    host_busy(1);
}

#[test]
fn each_message_once_with_the_host_busy_during_a_launch_over_several_lines() {
    LINES[1..].iter().copied().for_each(host_busy);
}

#[test]
fn what_there_is_is_answered_before_a_launch_without_idle_time_leaves() {
    for lines in LINES {
        let mut rig = Rig::<Next>::new(2, (64, lines), NEAR_END);
        rig.command(State::Active);
        rig.budgets(Budgets { idle: 0, ..ENDLESS });
        let (mut a, mut b) = (rig.ends(0), rig.ends(1));
        assert_eq!(a.push_slice(&[0u64, 1, 2]), 3);
        let all: Vec<u64> = (0..50).collect();
        assert_eq!(b.push_slice(&all), 50);
        assert_eq!(rig.whole(), Exit::Idle);
        assert_eq!((a.drain::<u64>().len(), b.drain::<u64>().len()), (3, 50));
        assert!(a.push(3u64), "inline");
        assert_eq!(rig.whole(), Exit::Idle);
        assert_eq!(a.drain::<u64>(), [4]);
    }
}

#[test]
fn answers_without_room_wait_for_a_later_launch() {
    for lines in LINES {
        for budgets in [
            Budgets { idle: 0, ..ENDLESS },
            Budgets { idle: MS, ..ENDLESS },
            Budgets { iterations: 3, ..ENDLESS },
            Budgets { time: MS, ..ENDLESS },
        ] {
            let mut rig = Rig::<Next>::new(1, (4, lines), NEAR_END);
            rig.command(State::Active);
            rig.budgets(budgets);
            let mut ends = rig.ends(0);
            let send = |ends: &mut Ends, from: u64| {
                let messages: Vec<u64> = (from..from + 4).collect();
                ends.producer.push_slice(&messages, ends.consumer.next()).unwrap()
            };
            let settle = |rig: &mut Rig<Next>, processed| {
                for _ in 0..10 {
                    assert!(rig.whole().is_yield());
                }
                assert_eq!(rig.processed(0), processed, "{budgets:?}");
            };
            assert_eq!(send(&mut ends, 0), 4);
            settle(&mut rig, 4);
            assert_eq!(send(&mut ends, 4), 4, "the requests are consumed");
            settle(&mut rig, 4);
            assert_eq!(rig.channel(0).status.depth.load(Relaxed), 4);
            assert_eq!(rig.exit(0) == Exit::Idle, budgets.idle != UNLIMITED);
            assert_eq!((ends.pop::<u64>(), ends.pop::<u64>()), (Some(1), Some(2)));
            ends.consumer.publish();
            settle(&mut rig, 6);
            assert_eq!(ends.drain::<u64>(), [3, 4, 5, 6]);
            settle(&mut rig, 8);
            assert_eq!(ends.drain::<u64>(), [7, 8]);
        }
    }
}

#[test]
fn commands_reach_across_launches() {
    for lines in LINES {
        let mut rig = Rig::<Next>::new(2, (8, lines), 0);
        let mut ends = rig.ends(1);
        rig.budgets(Budgets { idle: 0, ..ENDLESS });
        assert_eq!(rig.whole(), Exit::Idle, "launched, never activated");
        assert_eq!(rig.acknowledged(1), (0, Some(State::Yielded)));
        rig.command(State::Inactive);
        assert_eq!(ends.push_slice(&[1u64, 2, 3]), 3);
        assert_eq!(rig.whole(), Exit::Idle);
        assert_eq!(rig.acknowledged(1), (1, Some(State::Yielded)));
        assert_eq!((rig.processed(1), rig.channel(1).status.depth.load(Relaxed)), (0, 3));
        rig.command(State::Active);
        rig.whole();
        assert_eq!(rig.acknowledged(1), (2, Some(State::Yielded)));
        assert_eq!(ends.drain::<u64>(), [2, 3, 4]);
        rig.command(State::Inactive);
        rig.whole();
        assert!(ends.push(4u64));
        rig.whole();
        assert_eq!(rig.processed(1), 3);
        rig.command(State::Terminated);
        for _ in 0..2 {
            assert_eq!(rig.whole(), Exit::Asked);
            assert_eq!(rig.acknowledged(1), (4, Some(State::Terminated)));
        }
    }
}

#[test]
fn a_launch_that_stays_acknowledges_as_ever() {
    for lines in LINES {
        let mut rig = Rig::<Next>::new(2, (8, lines), NEAR_END);
        let mut ends = rig.ends(1);
        let running = rig.launch();
        rig.command_and_wait(State::Active);
        for i in 0..200u64 {
            let messages = [i * 3, i * 3 + 1, i * 3 + 2];
            if i % 2 == 0 {
                assert!(messages.iter().all(|m| ends.push(*m)));
            } else {
                assert_eq!(ends.push_slice(&messages), 3);
            }
            for m in messages {
                let mut answer = None;
                until("an answer", || {
                    answer = ends.pop::<u64>();
                    answer.is_some()
                });
                assert_eq!(answer, Some(m + 1));
            }
        }
        rig.command_and_wait(State::Inactive);
        assert_eq!(rig.processed(1), 600);
        assert!(ends.push(9u64));
        rig.command_and_wait(State::Active);
        until("an answer", || ends.pop::<u64>() == Some(10));
        rig.command_and_wait(State::Terminated);
        running.join();
        rig.check_left();
    }
}

#[test]
fn what_cannot_be_resumed_is_refused() {
    for lines in LINES {
        let fault = |spoil: fn(&Rig<Next>), exit, errors| {
            let mut rig = Rig::<Next>::new(1, (8, lines), 5);
            rig.command(State::Active);
            spoil(&rig);
            rig.launch().join();
            let status = &rig.channel(0).status;
            assert_eq!((rig.exit(0), status.errors.load(Relaxed)), (exit, errors));
            assert_eq!(rig.acknowledged(0), (0, Some(State::Faulted)));
            assert_eq!(status.launches_left.load(Relaxed), 1);
        };
        fault(|rig| rig.processing(Processing::Batch as u32, 0), Exit::BadConfig, 0);
        fault(|rig| rig.processing(3, 1), Exit::BadConfig, 0);
        fault(|rig| rig.channel(0).request.capacity.store(7, Relaxed), Exit::BadConfig, 0);
        fault(|rig| rig.channel(0).response.start.store(6, Relaxed), Exit::BadConfig, 0);
        fault(
            |rig| rig.channel(0).response_credit.consumed.store(4, Relaxed),
            Exit::CorruptRing,
            1,
        );
        fault(
            |rig| rig.channel(0).response_credit.consumed.store(6, Relaxed),
            Exit::CorruptRing,
            1,
        );
        fault(
            |rig| rig.channel(0).request_credit.consumed.store(99, Relaxed),
            Exit::CorruptRing,
            1,
        );
        fault(|rig| rig.channel(0).request_credit.consumed.store(4, Relaxed), Exit::CorruptRing, 1);
        fault(|rig| rig.channel(0).status.run_start.store(6, Relaxed), Exit::CorruptRing, 1);
        fault(|rig| rig.channel(0).status.scrubbed.store(4, Relaxed), Exit::CorruptRing, 1);
        fault(|rig| rig.channel(0).status.scrubbed.store(6, Relaxed), Exit::CorruptRing, 1);
    }
}

/// A channel whose lines are spoilt after some commands leaves with the epoch of the last it acknowledged.
#[test]
fn a_refusal_has_the_command_acknowledged_last() {
    let mut rig = Rig::<Next>::new(1, 8, 5);
    rig.budgets(Budgets { idle: 0, ..ENDLESS });
    let mut epoch = 0;
    while epoch < 1000 {
        epoch = rig.command(State::Active); // no number of a state
    }
    assert_eq!(rig.whole(), Exit::Idle);
    assert_eq!(rig.acknowledged(0).0, epoch);
    rig.channel(0).status.scrubbed.store(4, Relaxed);
    rig.launch().join();
    assert_eq!(rig.acknowledged(0), (epoch, Some(State::Faulted)));
}

/// From the greatest index that a ring may begin at, launches go on.
#[test]
fn a_channel_that_begins_at_the_greatest_index_goes_on() {
    for lines in LINES {
        let mut rig = Rig::<Next>::new(1, (8, lines), MAX_START);
        rig.command(State::Active);
        rig.budgets(Budgets { idle: 0, ..ENDLESS });
        let mut ends = rig.ends(0);
        for launch in 0..4u64 {
            assert_eq!(ends.push_slice(&[launch, 7, 9]), 3);
            assert_eq!(rig.whole(), Exit::Idle);
            assert_eq!(ends.drain::<u64>(), [launch + 1, 8, 10]);
        }
    }
}

/// So near to the end of 64 bits no channel comes, and none may count on from there.
#[test]
fn indices_at_the_end_of_64_bits_are_refused() {
    for lines in LINES {
        for below in [0, 1, 40] {
            let mut rig = Rig::<Next>::new(1, (8, lines), 5);
            rig.command(State::Active);
            let (channel, head) = (rig.channel(0), u64::MAX - below);
            channel.request_credit.consumed.store(head, Relaxed);
            channel.response_credit.consumed.store(head, Relaxed);
            let tail = (head as u32).wrapping_add(8);
            let control = ring_shared::ring::Control {
                credit: head as u32,
                early: 0,
                first: head as u32,
                tail,
            };
            rig.line(0, 0, head).atoms[7].store(control.to_words());
            rig.launch().join();
            assert_eq!(rig.exit(0), Exit::CorruptRing);
            assert_eq!(
                rig.channel(0).request_credit.consumed.load(Relaxed),
                head,
                "nothing was taken"
            );
        }
    }
}

/// The same if a message is there that could be answered at once, before anything is checked.
#[test]
fn the_last_index_of_all_is_refused_with_a_message_too() {
    for lines in LINES {
        let mut rig = Rig::<Next>::new(1, (8, lines), 5);
        let epoch = rig.command(State::Active);
        let (channel, head) = (rig.channel(0), u64::MAX);
        channel.status.acknowledged.store(u64::from(epoch) << 32, Relaxed);
        channel.request_credit.consumed.store(head, Relaxed);
        channel.response_credit.consumed.store(head, Relaxed);
        let control = ring_shared::ring::Control { credit: !0, early: 0, first: 0, tail: 0 };
        rig.line(0, 0, head).atoms[0].store([7, 0]);
        rig.line(0, 0, head).atoms[7].store(control.to_words());
        rig.launch().join();
        assert_eq!(rig.exit(0), Exit::CorruptRing);
    }
}

/// A doorbell may have a credit ahead of that in the credit line, by a whole ring and more.
#[test]
fn credit_of_the_doorbell_counts_when_a_launch_begins() {
    for lines in LINES {
        let mut rig = Rig::<Next>::new(1, (8, lines), 5);
        rig.command(State::Active);
        rig.budgets(Budgets { idle: 0, ..ENDLESS });
        let (channel, head) = (rig.channel(0), 5 + 20);
        channel.request_credit.consumed.store(head, Relaxed);
        let control = ring_shared::ring::Control {
            early: 0,
            credit: head as u32 - 3,
            first: head as u32,
            tail: head as u32,
        };
        rig.line(0, 0, head).atoms[7].store(control.to_words());
        rig.launch().join();
        assert_eq!(rig.exit(0), Exit::Idle);
        let late = ring_shared::ring::Control { credit: head as u32 - 9, ..control };
        rig.line(0, 0, head).atoms[7].store(late.to_words());
        rig.launch().join();
        assert_eq!(rig.exit(0), Exit::CorruptRing);
    }
}

/// The launch before may have answered a whole ring ahead of a credit that the boot does not see any more.
#[test]
fn a_credit_that_the_boot_does_not_see_is_made_up_for_when_a_launch_begins() {
    for lines in LINES {
        for (behind, exit) in [(12, Exit::Idle), (16, Exit::Idle), (17, Exit::CorruptRing)] {
            let mut rig = Rig::<Next>::new(1, (8, lines), 5);
            rig.command(State::Active);
            rig.budgets(Budgets { idle: 0, ..ENDLESS });
            let head = 5 + 20;
            rig.channel(0).request_credit.consumed.store(head, Relaxed);
            rig.channel(0).response_credit.consumed.store(head - behind, Relaxed);
            rig.launch().join();
            assert_eq!(rig.exit(0), exit, "{behind} behind");
        }
    }
}

#[test]
fn an_impossible_tail_ends_the_channel_and_is_counted() {
    for lines in LINES {
        let mut rig = Rig::<Next>::new(1, (8, lines), 0);
        rig.command(State::Active);
        let control = ring_shared::ring::Control { credit: 0, early: 0, first: 0, tail: 100 };
        rig.line(0, 0, 0).atoms[7].store(control.to_words());
        assert_eq!(rig.whole(), Exit::CorruptRing);
        assert_eq!(rig.channel(0).status.errors.load(Relaxed), 1);
        assert_eq!(rig.acknowledged(0), (1, Some(State::Faulted)));
    }
}

#[test]
fn a_count_of_errors_that_is_full_comes_round() {
    let mut rig = Rig::<Next>::new(1, 8, 0);
    rig.command(State::Active);
    rig.channel(0).status.errors.store(u64::MAX, Relaxed);
    let control = ring_shared::ring::Control { credit: 0, early: 0, first: 0, tail: 100 };
    rig.line(0, 0, 0).atoms[7].store(control.to_words());
    assert_eq!(rig.whole(), Exit::CorruptRing);
    assert_eq!(rig.channel(0).status.errors.load(Relaxed), 0);
}

#[test]
fn a_kernel_of_another_kind_is_left_alone() {
    let mut rig = Rig::<Next>::new(1, 8, 0);
    rig.control().host.abi_version.store(0, Relaxed);
    rig.launch().join();
    rig.control().host.abi_version.store(ring_shared::ABI_VERSION, Relaxed);
    rig.control().host.magic.store(1, Relaxed);
    rig.launch().join();
    assert_eq!(rig.channel(0).status.launches_left.load(Relaxed), 0);
}

/// Counters are exact at an acknowledgement: they count what the host has sent before the launch.
#[test]
fn what_was_sent_before_a_launch_is_counted_in_the_first_acknowledgement() {
    for lines in LINES {
        let mut rig = Rig::<Next>::new(1, (8, lines), NEAR_END);
        rig.clock = Some(std::sync::Arc::new(|_| 1 << 41)); // so that no heartbeat writes more
        rig.command(State::Inactive);
        let mut ends = rig.ends(0);
        assert_eq!(ends.push_slice(&[1u64, 2, 3, 4, 5]), 5);
        let running = rig.launch();
        until("acknowledged", || rig.acknowledged(0).1 == Some(State::Inactive));
        assert_eq!(rig.channel(0).status.depth.load(Relaxed), 5);
        rig.command_and_wait(State::Terminated);
        running.join();
    }
}
