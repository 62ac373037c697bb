//! The resident loop itself under loom, on the CPU's block: commands, leaving, yielding, launches that
//! follow each other.
//!
//!     RUSTFLAGS="--cfg loom" cargo test --release -p ring-device --test loom
#![cfg(loom)]

mod links;
mod rig;

use loom::sync::atomic::AtomicU64;
use loom::thread::{self, yield_now};
use rig::{
    Alone, Budgets, ENDLESS, Ends, Rig, START, Sequence, check, count, handled, read, state, until,
};
use ring_device::Kernel;
use ring_shared::layout::{Exit, State};
use ring_shared::ring::{CONTROL, Control, SCRUB};
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

trait Any: Kernel<Request = u64, Response = u64> {}
impl<K: Kernel<Request = u64, Response = u64>> Any for K {}

/// Nothing to wait for: a launch answers what its first look shows, and leaves.
const BRIEF: Budgets = Budgets { idle: 0, ..ENDLESS };

/// A message before a deactivation and one after it: what is not taken waits, the host changes the
/// state meanwhile.
fn deactivated<K: Any>() {
    check(3, || {
        let mut rig = Rig::<K>::new(1, 2, ENDLESS);
        let mut ends = rig.ends(0, 2);
        rig.launch(1);
        rig.ask(State::Active, &[]);
        assert!(ends.push());
        rig.ask(State::Inactive, &[]);
        let (processed, unhandled) = rig.summary(&ends);
        assert_eq!(processed + unhandled, 1);
        assert_eq!(state(0, read), processed as u32);
        state(0, count);
        rig.ask(State::Active, &[]);
        ends.take_until(1);
        rig.end(&mut [ends]);
    });
}

#[test]
fn alone_deactivated() {
    deactivated::<Alone>();
}

#[test]
fn in_order_deactivated() {
    deactivated::<Sequence>();
}

/// Terminated with messages under way: each is answered, or counted as unhandled.
fn terminated<K: Any>() {
    check(3, || {
        let mut rig = Rig::<K>::new(1, 2, ENDLESS);
        let mut ends = rig.ends(0, 2);
        rig.launch(1);
        rig.ask(State::Active, &[]);
        ends.push_two();
        ends.receiver.take();
        rig.end(&mut [ends]);
    });
}

#[test]
fn alone_terminated() {
    terminated::<Alone>();
}

#[test]
fn in_order_terminated() {
    terminated::<Sequence>();
}

/// Launches as an event-driven kernel's: each leaves when there is nothing to do, the next goes on where
/// it left, with what the host has changed meanwhile.
fn relaunched<K: Any>() {
    check(2, || {
        let mut rig = Rig::<K>::new(1, 1, BRIEF);
        let mut ends = rig.ends(0, 1);
        rig.ask(State::Active, &[&ends]);
        while ends.got() < 2 {
            if ends.sent() < 2 {
                ends.push();
            }
            rig.step(&ends);
            if !ends.receiver.take() {
                yield_now();
            }
        }
        rig.ask(State::Inactive, &[&ends]);
        let handled = rig.summary(&ends);
        assert_eq!(handled, (2, 0));
        assert_eq!(state(0, read), 2);
        state(0, count);
        rig.end(&mut [ends]);
    });
}

#[test]
fn alone_relaunched() {
    relaunched::<Alone>();
}

#[test]
fn in_order_relaunched() {
    relaunched::<Sequence>();
}

/// Two launches one behind the other on the device: the second may begin with the message that the
/// first left without.
fn queued<K: Any>(budgets: Budgets) {
    check(2, move || {
        let mut rig = Rig::<K>::new(1, 2, budgets);
        let mut ends = rig.ends(0, 2);
        rig.order(State::Active);
        rig.launch(2);
        assert!(ends.push());
        until(|| rig.rests());
        rig.budgets(BRIEF);
        let (processed, unhandled) = rig.summary(&ends);
        assert_eq!((processed + unhandled, state(0, read)), (1, processed as u32));
        state(0, count);
        rig.step(&ends);
        ends.take_until(1);
        rig.end(&mut [ends]);
    });
}

#[test]
fn alone_queued() {
    queued::<Alone>(BRIEF);
    queued::<Alone>(Budgets { iterations: 2, ..ENDLESS });
}

#[test]
fn in_order_queued() {
    queued::<Sequence>(BRIEF);
}

/// Channel 0 counts looks and calls channel 1 to leave with it, which has messages.
#[test]
fn called_to_leave() {
    check(3, || {
        let mut rig = Rig::<Alone>::new(2, 2, Budgets { iterations: 1, idle: 1, ..ENDLESS });
        let mut ends = [rig.ends(0, 2), rig.ends(1, 2)];
        rig.order(State::Active);
        rig.launch(1);
        ends[1].push_two();
        rig.join();
        assert_eq!(rig.exit(0), Some(Exit::IterationsSpent));
        rig.end(&mut ends);
    });
}

/// The host writes over a request as soon as the channel's credit line lets it, before it has any answer.
fn one_slot<K: Any>() {
    check(2, || {
        let mut rig = Rig::<K>::new(1, 1, ENDLESS);
        let mut ends = rig.ends(0, 1);
        rig.order(State::Active);
        rig.launch(1);
        until(|| ends.sender.push_slot());
        until(|| ends.sender.push_slot());
        ends.take_until(2);
        rig.end(&mut [ends]);
    });
}

#[test]
fn alone_in_one_slot() {
    one_slot::<Alone>();
}

#[test]
fn in_order_in_one_slot() {
    one_slot::<Sequence>();
}

/// A message in a slot behind two that may be at work: the channel finds it without going back to waiting.
/// The host says nothing after it from which the channel could learn of it too.
fn one_more<K: Any>() {
    check(2, || {
        let mut rig = Rig::<K>::new(1, 4, BRIEF);
        let mut ends = rig.ends(0, 4);
        rig.order(State::Active);
        ends.push_two();
        rig.launch(1);
        assert!(ends.push());
        rig.join();
        rig.step(&ends);
        ends.take_until(3);
        rig.end(&mut [ends]);
    });
}

#[test]
fn alone_with_one_more() {
    one_more::<Alone>();
}

#[test]
fn in_order_with_one_more() {
    one_more::<Sequence>();
}

/// The two halves of a channel on two threads: the receiver publishes how far it is to the sender, whose
/// doorbell publishes it to the channel, which then writes over those answers.
#[test]
fn credit_by_way_of_the_sender() {
    check(1, || {
        let mut rig = Rig::<Sequence>::new(1, 1, ENDLESS);
        let Ends { mut sender, mut receiver } = rig.ends(0, 1);
        rig.order(State::Active);
        rig.launch(1);
        // As `publish_received` of `ring-host`.
        let received = Arc::new(AtomicU64::new(START));
        let noted = Arc::clone(&received);
        assert!(sender.push(START));
        until(|| sender.push(START));
        let sending = thread::spawn(move || {
            // Without room for it the doorbell has the credit alone.
            let sent = sender.push(noted.load(Acquire));
            (sender, sent)
        });
        until(|| receiver.take());
        received.store(receiver.next(), Release);
        let (mut sender, sent) = sending.join().expect("the sender's assertions");
        until(|| receiver.take());
        assert!(sent || sender.push(receiver.next()), "two answers prove that there is room");
        until(|| receiver.take());
        rig.end(&mut [Ends { sender, receiver }]);
    });
}

/// A channel that leaves with an error writes why; launches behind it leave too, and leave all as it is.
#[test]
fn lost() {
    check(3, || {
        let mut rig = Rig::<Alone>::new(1, 1, ENDLESS);
        let ends = rig.ends(0, 1);
        rig.order(State::Active);
        rig.launch(2);
        let beyond = Control { credit: START as u32, early: 0, first: START as u32, tail: 1 };
        rig.channel(0).request_bell.atoms[CONTROL].publish(beyond.to_words());
        until(|| rig.channel(0).status.acknowledgement().state == State::Faulted as u32);
        assert_eq!(rig.exit(0), Some(Exit::CorruptRing));
        assert_eq!(rig.channel(0).status.errors.load(Relaxed), 1);
        until(|| rig.rests());
        assert_eq!(rig.summary(&ends).0, 0);
        rig.over();
    });
}

/// A handler that panics loses the channel. The launch behind it finds the message still in the line, whole and
/// next, and must not run its handler again.
#[test]
fn lost_with_its_message() {
    check(3, || {
        let mut rig = Rig::<Alone>::new(1, 1, ENDLESS);
        let mut ends = rig.ends(0, 1);
        rig.order(State::Active);
        rig.launch(2);
        ends.sender.push_panic();
        until(|| rig.rests());
        assert_eq!(rig.exit(0), Some(Exit::HandlerPanicked));
        assert_eq!(handled(0, 0), 1, "the message was handled again");
        assert_eq!(rig.summary(&ends), (0, 1));
        assert!(!ends.receiver.take());
        rig.over();
    });
}

/// The channel overwrites stamps that would come round, while the host takes the answers for which it does.
#[test]
fn old_stamps_are_overwritten() {
    check(2, || {
        let mut rig = Rig::<Alone>::new(1, 2, ENDLESS);
        let mut ends = rig.ends(0, 2);
        rig.skip(&mut ends, SCRUB - 1);
        rig.order(State::Active);
        rig.launch(1);
        ends.push_two();
        ends.take_until(2);
        // As the last answer's doorbell brings it: the stamp of an answer that was received.
        let atom = rig.channel(0).response_bell.atoms[0].observe();
        let received = [START + SCRUB - 1, START + SCRUB].map(|index| index as u32);
        assert!(received.contains(&((atom[1] >> 32) as u32)), "an old stamp: {atom:x?}");
        assert!(ends.push());
        ends.take_until(3);
        rig.end(&mut [ends]);
    });
}
