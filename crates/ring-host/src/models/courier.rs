//! A kernel in staged memory: lines and slots are copied atom by atom while both sides go on.

use super::rig::{Lane, Receiving, Rig, check};
use crate::mode::{Memory, Mode};
use crate::shared::Shared;
use loom::thread;
use ring_shared::layout::State;
use ring_shared::ring::{CONTROL, Control};
use std::sync::atomic::Ordering::Relaxed;

/// Once the lane is known to have obeyed, its counters and all its answers are here.
fn all_that_is_told_is_here(shared: &Shared) {
    let lane = shared.region().lane(0);
    if lane.status.obeyed().epoch != 1 {
        return;
    }
    let processed = lane.status.processed.load(Relaxed);
    assert_eq!(processed, lane.consumed() - shared.region().start(), "counter and credit");
    let tail = Control::from_words(lane.response_bell.atoms[CONTROL].load()).tail;
    let answers = tail.wrapping_sub(shared.region().start() as u32);
    assert_eq!(u64::from(answers), processed, "an answer that is not here");
}

/// Messages to a lane, and an order that it obeys: on either side nothing is announced before it is there.
/// Lines are copied from the first atom to the last, or `backwards`: in which order a device does, nobody says.
fn carried(backwards: bool, express: bool) {
    check(1, move || {
        let mut rig = Rig::new((Mode::Persistent, Memory::StagedAsync), express, backwards);
        let (mut sender, receiver) = rig.kernel.take_lane(0).unwrap().into_split();
        let mut lane = rig.lane();
        let mut receiving = Receiving::new(receiver);
        let shared = rig.kernel.shared();
        let answer = if express { Lane::answer } else { Lane::answer_two };
        let obeying = thread::spawn(move || {
            answer(&mut lane);
            lane.acknowledge(1, State::Inactive);
            lane
        });
        shared.order(1, State::Inactive);
        let messages = if express { &[0][..] } else { &[0, 1] };
        assert_eq!(sender.try_send_batch(messages), Ok(messages.len()));
        receiving = receiving.looks(1);
        all_that_is_told_is_here(shared);
        let mut lane: Lane = obeying.join().unwrap();
        // What was read beside the lane is shown by and by.
        for _ in 0..3 {
            receiving = receiving.looks(1);
            all_that_is_told_is_here(shared);
        }
        // What it left is carried, and nothing is lost.
        while receiving.received < messages.len() as u64 {
            answer(&mut lane);
            receiving = receiving.looks(1);
        }
        assert_eq!(shared.fault(), None);
        lane.acknowledge(1, State::Terminated);
        lane.leave(1);
        rig.place.end();
    });
}

#[test]
fn express_there_and_back() {
    carried(false, true);
    carried(true, true);
}

#[test]
fn slots_there_and_back() {
    carried(false, false);
    carried(true, false);
}
