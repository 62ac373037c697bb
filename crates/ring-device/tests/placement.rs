//! Where rings lie: in the memory of their kernel, anywhere behind its blocks, and nowhere else.

mod rig;

use rig::{Budgets, Dice, ENDLESS, LINES, Next, NextInOrder, Rig, Rings};
use ring_device::Kernel;
use ring_shared::layout::{Exit, Placement, State};
use ring_shared::ring::MAX_LINES;
use std::sync::atomic::Ordering::Relaxed;

/// Sends `n` messages of varied runs, and receives each answer once and in order, over many launches or
/// one.
fn answers<K: Kernel<Request = u64, Response = u64>>(mut rig: Rig<K>, n: u64) {
    let mut ends = rig.ends(0);
    let (mut dice, mut sent, mut got) = (Dice(n), 0, 0);
    rig.command(State::Active);
    rig.budgets(Budgets { idle: 0, ..ENDLESS });
    while got < n {
        let run: Vec<u64> = (sent..n).take(1 + dice.roll(9) as usize).collect();
        sent += ends.push_slice(&run) as u64;
        assert_eq!(rig.whole(), Exit::Idle);
        for answer in ends.drain::<u64>() {
            assert_eq!(answer, got + 1);
            got += 1;
        }
    }
    rig.budgets(ENDLESS); // a launch that would not wait could leave before the push
    let running = rig.launch();
    assert!(ends.push(n));
    rig::until("an answer", || ends.pop::<u64>() == Some(n + 1));
    rig.command(State::Terminated);
    running.join();
}

const NEAR_END: u64 = (1 << 32) - 20;

#[test]
fn lines_may_lie_behind_the_blocks() {
    for lines in LINES {
        let rings = Rings { capacity: [8, 8], lines, elsewhere: true };
        answers(Rig::<Next>::new(2, rings, NEAR_END), 200);
        answers(Rig::<NextInOrder>::new(2, rings, NEAR_END), 200);
    }
}

#[test]
fn rings_of_a_pair_may_differ_in_capacity() {
    for capacity in [[4, 32], [32, 4], [1, 8], [16, 1]] {
        for lines in LINES {
            let here = Rings { capacity, lines, elsewhere: false };
            answers(Rig::<Next>::new(1, here, NEAR_END), 200);
            answers(Rig::<NextInOrder>::new(1, Rings { elsewhere: true, ..here }, NEAR_END), 200);
        }
    }
}

/// What the two descriptors of channel 1 of a kernel with two are made.
type Spoil = fn(Placement, Placement) -> (Placement, Placement);

#[test]
fn a_ring_that_cannot_lie_there_is_refused() {
    let spoils: [(&str, Spoil); 10] = [
        ("slots that overlap", |q, r| (q, Placement { slots: q.slots + 64, ..r })),
        ("one ring twice", |q, _| (q, q)),
        ("lines over slots", |q, r| (Placement { lines: r.slots & !127, ..q }, r)),
        ("slots over the blocks", |q, r| (Placement { slots: q.lines, ..q }, r)),
        ("slots below the memory", |q, r| (Placement { slots: 4096, ..q }, r)),
        ("slots beyond the memory", |q, r| (q, Placement { capacity: 1 << 20, ..r })),
        ("a credit line at null", |q, r| (q, Placement { credit: 0, ..r })),
        ("misaligned slots", |q, r| (Placement { slots: q.slots + 8, ..q }, r)),
        ("a misaligned line", |q, r| (q, Placement { lines: r.lines + 16, ..r })),
        ("three lines", |q, r| (Placement { line_count: 3, ..q }, r)),
    ];
    for (what, spoil) in spoils {
        for (lines, elsewhere) in [(1, false), (1, true), (2, true), (MAX_LINES, false)] {
            let mut rig = Rig::<Next>::new(2, Rings { capacity: [8, 8], lines, elsewhere }, 5);
            let mut ends = rig.ends(1);
            rig.command(State::Active);
            assert_eq!(ends.push_slice(&[1u64, 2]), 2);
            let (requests, responses) = spoil(rig.placement(1, 0), rig.placement(1, 1));
            rig.channel(1).request.describe(&requests);
            rig.channel(1).response.describe(&responses);
            rig.budgets(Budgets { idle: 0, ..ENDLESS });
            rig.launch().join();
            let status = &rig.channel(1).status;
            assert_eq!((rig.exit(1), status.errors.load(Relaxed)), (Exit::BadConfig, 0), "{what}");
            assert_eq!(rig.exit(0), Exit::Idle, "the other channel is sound");
            assert_eq!(ends.pop::<u64>(), None, "{what}: nothing was answered");
        }
    }
}
