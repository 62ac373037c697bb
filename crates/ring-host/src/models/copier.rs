//! A kernel in staged memory: lines and slots are copied atom by atom while both sides go on.

use super::rig::{Channel, Receiving, Rig, check};
use crate::kernel::core::KernelCore;
use crate::mode::{Memory, Mode};
use loom::thread::{self, yield_now};
use ring_shared::layout::State;
use ring_shared::ring::{CONTROL, Control};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// Once the channel is known to have obeyed, its counters and all its answers are here.
fn all_that_is_told_is_here(core: &KernelCore) {
    let channel = core.device.region().channel(0);
    if channel.status.acknowledgement().epoch != 1 {
        return;
    }
    let processed = channel.status.processed.load(Relaxed);
    assert_eq!(
        processed,
        channel.consumed() - core.device.region().plan.start,
        "counter and credit"
    );
    let tail = Control::from_words(channel.response_bell.atoms[CONTROL].load()).tail;
    let answers = tail.wrapping_sub(core.device.region().plan.start as u32);
    assert_eq!(u64::from(answers), processed, "an answer that is not here");
}

/// Messages to a channel, and an order that it obeys: on either side nothing is announced before it is there.
/// Lines are copied from the first atom to the last, or `backwards`: in which order a device does, nobody says.
fn carried(backwards: bool, inline: bool) {
    check(1, move || {
        let mut rig = Rig::new((Mode::Persistent, Memory::StagedAsync), inline, backwards);
        let (mut sender, receiver) = rig.kernel.take_channel(0).unwrap().into_split();
        let mut channel = rig.channel();
        let mut receiving = Receiving::new(receiver);
        let core = rig.kernel.core();
        let answer = if inline { Channel::answer } else { Channel::answer_two };
        let obeying = thread::spawn(move || {
            answer(&mut channel);
            channel.acknowledge(1, State::Inactive);
            channel
        });
        core.device.publish_command(State::Inactive);
        let messages = if inline { &[0][..] } else { &[0, 1] };
        assert_eq!(sender.try_send_batch(messages), Ok(messages.len()));
        receiving = receiving.looks(1);
        all_that_is_told_is_here(core);
        let mut channel: Channel = obeying.join().unwrap();
        // What was read beside the channel is shown by and by.
        for _ in 0..3 {
            receiving = receiving.looks(1);
            all_that_is_told_is_here(core);
        }
        // What it left is carried, and nothing is lost.
        while receiving.received < messages.len() as u64 {
            answer(&mut channel);
            receiving = receiving.looks(1);
        }
        assert_eq!(core.device.fault(), None);
        channel.acknowledge(1, State::Terminated);
        channel.leave(1);
        rig.place.end();
    });
}

#[test]
fn inline_there_and_back() {
    carried(false, true);
    carried(true, true);
}

#[test]
fn slots_there_and_back() {
    carried(false, false);
    carried(true, false);
}

/// The halves on two threads, each of which drives the copier now and then, with the channel between their transfers:
/// what one of them carries is there for the other.
fn by_either_half(inline: bool) {
    check(3, move || {
        let mut rig = Rig::new((Mode::Persistent, Memory::StagedAsync), inline, false);
        let (mut sender, receiver) = rig.kernel.take_channel(0).unwrap().into_split();
        let mut channel = rig.channel();
        let core = rig.kernel.core();
        let answer = if inline { Channel::answer } else { Channel::answer_two };
        let receiving = thread::spawn(move || Receiving::new(receiver).looks(2));
        let messages = if inline { &[0][..] } else { &[0, 1] };
        assert_eq!(sender.try_send_batch(messages), Ok(messages.len()));
        for _ in 0..2 {
            core.after_idle_poll();
            answer(&mut channel);
        }
        let mut receiving = receiving.join().unwrap();
        while receiving.received < messages.len() as u64 {
            answer(&mut channel);
            receiving = receiving.looks(1);
        }
        channel.acknowledge(1, State::Terminated);
        channel.leave(1);
        rig.place.end();
    });
}

#[test]
fn inline_by_either_half() {
    by_either_half(true);
}

#[test]
fn slots_by_either_half() {
    by_either_half(false);
}

/// One thread carries, another looks: once it is told that the channel has obeyed, or left, all of that is here.
#[test]
fn told_to_who_does_not_carry() {
    check(3, || {
        let mut rig = Rig::new((Mode::Persistent, Memory::StagedAsync), false, false);
        let (mut sender, receiver) = rig.kernel.take_channel(0).unwrap().into_split();
        let mut channel = rig.channel();
        let core = Arc::clone(rig.kernel.core());
        core.device.publish_command(State::Inactive);
        assert_eq!(sender.try_send_batch(&[0, 1]), Ok(2));
        core.after_idle_poll();
        channel.answer_two();
        channel.acknowledge(1, State::Inactive);
        channel.leave(1);
        let looking = {
            let core = Arc::clone(&core);
            thread::spawn(move || {
                let status = &core.device.region().channel(0).status;
                while status.launches_left() < 1 {
                    all_that_is_told_is_here(&core);
                    yield_now();
                }
                assert_eq!(status.acknowledgement().epoch, 1, "it left before it obeyed");
                all_that_is_told_is_here(&core);
            })
        };
        let mut receiving = Receiving::new(receiver);
        while receiving.received < 2 || core.device.region().channel(0).status.launches_left() < 1 {
            receiving = receiving.looks(1);
        }
        looking.join().unwrap();
        rig.place.end();
    });
}
