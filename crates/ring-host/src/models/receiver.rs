//! Receiving while the kernel leaves, is launched again, or is lost.

use super::rig::{Alone, LONG, Receiving, Rig, check};
use crate::error::{DeviceFault, TryRecvError};
use crate::mode::{Memory, Mode};
use loom::thread::{self, yield_now};
use ring_shared::layout::{Exit, State};
use std::sync::Arc;
use std::sync::atomic::Ordering::Release;

/// What was answered before a resident kernel left is received before its end is told.
fn told_the_end(preemptions: usize, send: fn(&mut crate::Sender<Alone>)) {
    check(preemptions, move || {
        let mut rig = Rig::new((Mode::Persistent, Memory::Mapped), true, false);
        let (mut sender, receiver) = rig.kernel.take_channel(0).unwrap().into_split();
        let (mut channel, place) = (rig.channel(), Arc::clone(&rig.place));
        send(&mut sender);
        let playing = thread::spawn(move || {
            channel.stay();
            place.ended.store(1, Release);
        });
        let receiving = thread::spawn(move || Receiving::new(receiver).looks(3));
        let summary = rig.kernel.terminate(LONG).unwrap();
        let (received, end) = receiving.join().unwrap().to_the_end();
        assert_eq!(end, TryRecvError::Closed { kernel: "alone" });
        assert_eq!(received, summary.processed, "an answer that was not received");
        playing.join().unwrap();
    });
}

#[test]
fn inline_before_the_end() {
    told_the_end(2, |sender| sender.try_send(0).unwrap());
}

#[test]
fn slots_before_the_end() {
    told_the_end(1, |sender| {
        assert_eq!(sender.try_send_batch(&[0, 1]), Ok(2));
    });
}

/// The halves on two threads, and the channel: the receiver tells the sender how far it is, whose doorbell tells the
/// channel, which then writes over those answers.
#[test]
fn credit_by_way_of_the_sender() {
    check(1, || {
        let mut rig = Rig::new((Mode::Persistent, Memory::Mapped), true, false);
        let (mut sender, receiver) = rig.kernel.take_channel(0).unwrap().into_split();
        let (mut channel, place) = (rig.channel(), Arc::clone(&rig.place));
        assert_eq!(sender.try_send_batch(&[0, 1]), Ok(2));
        let playing = thread::spawn(move || {
            channel.stay();
            place.ended.store(1, Release);
        });
        let receiving = thread::spawn(move || Receiving::new(receiver).looks(2));
        // Two answers were in slots, and two more are written over them.
        let mut sent = 2;
        while sent < 4 {
            match sender.try_send_batch(&[2, 3][sent - 2..]).unwrap() {
                0 => yield_now(),
                n => sent += n,
            }
        }
        let receiving = receiving.join().unwrap();
        let summary = rig.kernel.terminate(LONG).unwrap();
        assert_eq!(summary.processed + summary.unhandled, sent as u64, "a message lost or doubled");
        assert_eq!(receiving.to_the_end().0, summary.processed, "an answer that was not received");
        playing.join().unwrap();
    });
}

/// A channel that was lost may publish answers from before: those that were there when it said so are received,
/// and none after the end was told.
#[test]
fn the_end_of_a_lost_kernel() {
    check(2, || {
        let mut rig = Rig::new((Mode::Persistent, Memory::Mapped), true, false);
        let (mut sender, receiver) = rig.kernel.take_channel(0).unwrap().into_split();
        let (mut channel, place) = (rig.channel(), Arc::clone(&rig.place));
        assert_eq!(sender.try_send_batch(&[0, 1]), Ok(2));
        let playing = thread::spawn(move || {
            assert!(channel.answer());
            let exit = Exit::HandlerPanicked as u64;
            channel.say_exit(exit);
            channel.acknowledge(0, State::Faulted);
            channel.leave(1);
            assert!(channel.answer(), "by another warp, which was at it");
            place.ended.store(1, Release);
        });
        let receiving = thread::spawn(move || Receiving::new(receiver).looks(3));
        let fault = loop {
            match rig.kernel.core().check() {
                Ok(()) => yield_now(),
                Err(fault) => break fault,
            }
        };
        assert!(matches!(fault, DeviceFault::HandlerPanicked { .. }), "{fault}");
        let (received, end) = receiving.join().unwrap().to_the_end();
        assert_eq!(end, TryRecvError::Fault(fault));
        assert!(received >= 1, "what was answered before");
        playing.join().unwrap();
    });
}

/// The receiver drives a kernel that leaves when there is nothing to do, while another thread sends and
/// terminates it: launches follow each other, each message is answered once or counted, and the end comes
/// behind the last answer.
#[test]
fn launched_again_and_ended() {
    check(1, || {
        let mut rig = Rig::new((Mode::EventDriven, Memory::Mapped), true, false);
        let (mut sender, receiver) = rig.kernel.take_channel(0).unwrap().into_split();
        let (mut channel, place) = (rig.channel(), Arc::clone(&rig.place));
        let playing = thread::spawn(move || {
            for n in 0.. {
                if !place.wait_for(n) {
                    return;
                }
                while channel.answer() {}
                let command = channel.command();
                let state = match command.state == State::Terminated as u32 {
                    true => State::Terminated,
                    false => State::Yielded,
                };
                channel.acknowledge(command.epoch, state);
                channel.leave(n + 1);
                place.ended.store(n + 1, Release);
            }
        });
        let receiving = thread::spawn(move || Receiving::new(receiver).looks(1));
        sender.try_send(0).unwrap();
        sender.try_send(1).unwrap();
        let summary = rig.kernel.terminate(LONG).unwrap();
        assert_eq!(summary.processed + summary.unhandled, 2, "a message lost or doubled");
        let (received, end) = receiving.join().unwrap().to_the_end();
        assert_eq!(end, TryRecvError::Closed { kernel: "alone" });
        assert_eq!(received, summary.processed, "an answer that was not received");
        rig.place.stop();
        playing.join().unwrap();
    });
}
