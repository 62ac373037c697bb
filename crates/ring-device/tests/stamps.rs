//! Stamps of inline answers come round after 2^32 messages, so a channel overwrites old ones before.

mod rig;

use rig::{Budgets, ENDLESS, Next, Rig};
use ring_shared::layout::{Exit, State};
use ring_shared::ring::{CONTROL, SCRUB};
use std::sync::atomic::Ordering::{Relaxed, Release};

const START: u64 = 5;

/// A channel at rest whose first answer went inline, and whose next are those after index `head`: all
/// between went through slots, and were received.
fn at(head: u64) -> (Rig<Next>, rig::Ends) {
    let mut rig = Rig::<Next>::new(1, 8, START);
    rig.command(State::Active);
    rig.budgets(Budgets { idle: 0, ..ENDLESS });
    let mut ends = rig.ends(0);
    assert!(ends.push(1u64));
    assert_eq!(rig.whole(), Exit::Idle);
    assert_eq!(ends.drain::<u64>(), [2], "received by the line");
    go_on(&rig, &mut ends, head);
    (rig, ends)
}

/// Goes on as if all messages up to index `head` had been answered and received.
fn go_on(rig: &Rig<Next>, ends: &mut rig::Ends, head: u64) {
    let ahead = head - ends.consumer.next();
    ends.consumer.fast_forward(ahead);
    ends.producer.fast_forward(ahead, head);
    let block = rig.channel(0);
    block.request_credit.consumed.store(head, Release);
    block.status.processed.store(head - START, Relaxed);
}

/// Answers two messages through slots, in a launch of their own.
fn two(rig: &mut Rig<Next>, ends: &mut rig::Ends) {
    assert_eq!(ends.push_slice(&[10u64, 20]), 2);
    rig.launch().join();
    assert_eq!(rig.exit(0), Exit::Idle);
    assert_eq!(ends.drain::<u64>(), [11, 21]);
}

fn stamps(rig: &Rig<Next>) -> Vec<u32> {
    let atoms = &rig.channel(0).response_bell.atoms[..CONTROL];
    atoms.iter().map(|atom| (atom.load()[1] >> 32) as u32).collect()
}

fn scrubbed(rig: &Rig<Next>) -> u64 {
    rig.channel(0).status.scrubbed.load(Relaxed)
}

#[test]
fn a_channel_overwrites_stamps_before_they_come_round() {
    let stamped = START + 1; // index after the inline answer, and its stamp
    // Up to SCRUB answers behind it, it stays.
    let (mut rig, mut ends) = at(stamped + SCRUB - 2);
    two(&mut rig, &mut ends);
    assert_eq!((stamps(&rig), scrubbed(&rig)), (vec![stamped as u32; CONTROL], START));
    // One more and it goes; what is there instead is the stamp of an answer that was received.
    let head = stamped + SCRUB + 2;
    go_on(&rig, &mut ends, head);
    two(&mut rig, &mut ends);
    assert_eq!((stamps(&rig), scrubbed(&rig)), (vec![head as u32; CONTROL], head + 2));
    // The next launch knows of it, and waits as long again.
    let later = head + 2 + SCRUB - 2;
    go_on(&rig, &mut ends, later);
    two(&mut rig, &mut ends);
    assert_eq!((stamps(&rig), scrubbed(&rig)), (vec![head as u32; CONTROL], head + 2));
    go_on(&rig, &mut ends, later + 3);
    two(&mut rig, &mut ends);
    assert_eq!((stamps(&rig), scrubbed(&rig)), (vec![(later + 3) as u32; CONTROL], later + 5));
}

#[test]
fn one_answer_more_than_that_is_enough() {
    let head = START + 1 + SCRUB - 1;
    let (mut rig, mut ends) = at(head);
    two(&mut rig, &mut ends);
    assert_eq!((stamps(&rig), scrubbed(&rig)), (vec![head as u32; CONTROL], head + 2));
}
