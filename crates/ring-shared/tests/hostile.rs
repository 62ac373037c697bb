//! The other side writes whatever it likes into its own lines, between any two calls of ours.
//! Neither end panics, reads or writes outside its ring, takes more than there is room for, or
//! believes an index that cannot be.
//!
//! Bounds are best watched by AddressSanitizer, for which each part of the ring is an allocation
//! of its own, of just its size:
//!
//!     RUSTFLAGS=-Zsanitizer=address cargo +nightly test --target x86_64-unknown-linux-gnu \
//!         -p ring-shared --features std
#![cfg(not(loom))]

mod parts;

use parts::{Parts, check_look};
use proptest::prelude::*;
use ring_shared::message::takes_inline;
use ring_shared::ring::{CONTROL, Control, stamp};
use ring_shared::{Corrupt, Inbox, Message, Outbox, PushError};
use std::sync::atomic::Ordering::Relaxed;

/// Something hostile to write, given an index that would be honest: anything, or close to it,
/// since what is nearly right passes the most checks.
#[derive(Clone, Copy, Debug)]
enum Lie {
    Any(u64),
    Near(i32),
}

impl Lie {
    fn apply(self, honest: u64) -> u64 {
        match self {
            Lie::Any(word) => word,
            Lie::Near(off) => honest.wrapping_add_signed(i64::from(off)),
        }
    }
}

fn lie() -> impl Strategy<Value = Lie> {
    prop_oneof![
        any::<u64>().prop_map(Lie::Any),
        any::<u32>().prop_map(|w| Lie::Any(w.into())),
        (-20..=20i32).prop_map(Lie::Near),
        (-20..=20i32).prop_map(Lie::Near),
        Just(Lie::Any(u64::MAX)),
        Just(Lie::Any(0)),
    ]
}

fn starts() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0), Just((1 << 32) - 2), Just((1 << 33) - 1), 0..u64::MAX >> 1]
}

#[derive(Clone, Debug)]
enum ToConsumer {
    /// Tail, first in slots, and credit.
    Control(Lie, Lie, u32),
    /// A stamp: which atom, and of which message.
    Stamp(usize, Lie),
    /// All stamps, of one message.
    Stamps(Lie),
    Slot(u64, u64),
    Pop,
    PopSlice(usize),
    PopEach(usize),
    Publish,
}

fn to_consumer() -> impl Strategy<Value = ToConsumer> {
    prop_oneof![
        3 => (lie(), lie(), any::<u32>()).prop_map(|(t, e, c)| ToConsumer::Control(t, e, c)),
        1 => (0..28usize, lie()).prop_map(|(k, s)| ToConsumer::Stamp(k, s)),
        1 => lie().prop_map(ToConsumer::Stamps),
        1 => any::<(u64, u64)>().prop_map(|(at, word)| ToConsumer::Slot(at, word)),
        3 => Just(ToConsumer::Pop),
        3 => (0..100usize).prop_map(ToConsumer::PopSlice),
        2 => (0..100usize).prop_map(ToConsumer::PopEach),
        1 => Just(ToConsumer::Publish),
    ]
}

fn lied_to_consumer<T: Message>(parts: &Parts, acts: &[ToConsumer]) {
    let ring = parts.ring();
    let (capacity, start) = (u64::from(ring.capacity()), ring.start());
    let mut consumer = Inbox::new(ring);
    // What a control atom may have announced is in slots, and so may take without another look.
    let mut known = start;
    for act in acts {
        let next = consumer.next();
        match *act {
            ToConsumer::Control(tail, first, credit) => {
                let (tail, first) = (tail.apply(next) as u32, first.apply(next) as u32);
                let control = Control { credit, early: 0, first, tail };
                ring.line(0).atoms[CONTROL].store(control.to_words());
            }
            ToConsumer::Stamp(k, of) => {
                let lines = ring.lines_of(0);
                let atom = &lines[k / CONTROL % lines.len()].atoms[k % CONTROL];
                atom.store([!0, u64::from(stamp(of.apply(next))) << 32]);
            }
            ToConsumer::Stamps(of) => {
                for atom in ring.lines_of(0).iter().flat_map(|line| &line.atoms[..CONTROL]) {
                    atom.store([!0, u64::from(stamp(of.apply(next))) << 32]);
                }
            }
            ToConsumer::Slot(at, word) => {
                ring.slot(at).iter().for_each(|atom| atom.store([word, at]));
            }
            ToConsumer::Pop => {
                let control = Control::from_words(ring.line(0).atoms[CONTROL].load());
                let got = consumer.pop::<T>();
                let taken = consumer.next() - next;
                assert_eq!(taken, u64::from(matches!(got, Ok(Some(_)))));
                if known == next {
                    check_look(got.map(|m| m.is_some()), control, next, ring.capacity());
                }
                known = known.max(consumer.next());
                if taken == 1 && known == consumer.next() {
                    // One of a run: the rest may be taken without another look.
                    let ahead = u64::from(control.tail.wrapping_sub(next as u32));
                    known += ahead.saturating_sub(1).min(capacity);
                }
            }
            ToConsumer::PopSlice(n) | ToConsumer::PopEach(n) => {
                let taken = if matches!(act, ToConsumer::PopEach(_)) {
                    let mut shown = 0;
                    let taken = consumer.pop_each(n, |_: &T| shown += 1).unwrap_or(0);
                    assert_eq!(taken, shown);
                    taken
                } else {
                    consumer.pop_slice(&mut vec![T::zeroed(); n]).unwrap_or(0)
                };
                assert!(taken <= n);
                // The line does not change meanwhile, so: a run known before, then one look.
                assert!(taken as u64 <= 2 * capacity, "{taken} from {capacity} slots");
                assert_eq!(
                    consumer.next(),
                    next + taken as u64,
                    "taken but not reported, or the reverse"
                );
                // Fewer than asked for: it looked and found no more. Else there may be a run left.
                known = consumer.next() + if taken < n { 0 } else { capacity };
            }
            ToConsumer::Publish => consumer.publish(),
        }
        let published = ring.credit().consumed.load(Relaxed);
        assert!((start..=consumer.next()).contains(&published), "credit for what was not taken");
    }
}

#[derive(Clone, Debug)]
enum ToProducer {
    Credit(Lie),
    Push,
    PushSlice(usize),
    PushEach(usize),
    Note(Lie),
}

fn to_producer() -> impl Strategy<Value = ToProducer> {
    prop_oneof![
        3 => lie().prop_map(ToProducer::Credit),
        3 => Just(ToProducer::Push),
        3 => (0..100usize).prop_map(ToProducer::PushSlice),
        2 => (0..100usize).prop_map(ToProducer::PushEach),
        1 => lie().prop_map(ToProducer::Note),
    ]
}

fn lied_to_producer<T: Message>(parts: &Parts, acts: &[ToProducer]) {
    let ring = parts.ring();
    let (capacity, start) = (u64::from(ring.capacity()), ring.start());
    let mut producer = Outbox::new(ring);
    for act in acts {
        let (next, consumed) = (producer.next(), producer.consumed());
        let found = ring.credit().consumed.load(Relaxed);
        let refused = Corrupt { found, low: start, high: next };
        let impossible = !(start..=next).contains(&found);
        let looks = |wanted: usize| ((capacity - (next - consumed)) as usize) < wanted;
        match *act {
            ToProducer::Credit(lie) => {
                ring.credit().consumed.store(lie.apply(next), Relaxed);
            }
            ToProducer::Push => {
                let got = producer.push(&T::zeroed(), 0);
                let must_look = looks(1) || (takes_inline::<T>(&ring) && consumed != next);
                assert_eq!(matches!(got, Err(PushError::Corrupt(_))), must_look && impossible);
                if let Err(PushError::Corrupt(corrupt)) = got {
                    assert_eq!(corrupt, refused);
                }
                assert_eq!(producer.next(), next + u64::from(got.is_ok()));
            }
            ToProducer::PushSlice(n) | ToProducer::PushEach(n) => {
                let got = if matches!(act, ToProducer::PushEach(_)) {
                    producer.push_each(n, 0, |_| T::zeroed())
                } else {
                    producer.push_slice(&vec![T::zeroed(); n], 0)
                };
                let must_look =
                    looks(n) || (n == 1 && takes_inline::<T>(&ring) && consumed != next);
                assert_eq!(got.is_err(), must_look && impossible);
                if let Err(corrupt) = got {
                    assert_eq!(corrupt, refused);
                }
                assert!(got.unwrap_or(0) <= n);
                assert_eq!(producer.next(), next + got.unwrap_or(0) as u64);
            }
            ToProducer::Note(lie) => producer.note_consumed(lie.apply(next)),
        }
        let (now, known) = (producer.next(), producer.consumed());
        assert!(known >= consumed, "credit is never taken back");
        assert!(known <= now, "credit for what was not pushed");
        assert!(now - known <= capacity, "{} unread in {capacity} slots", now - known);
        let tail = Control::from_words(ring.line(0).atoms[CONTROL].load()).tail;
        assert_eq!(tail, now as u32);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 8 } else if cfg!(debug_assertions) { 400 } else { 2000 }))]

    #[test]
    fn a_hostile_producer(
        log2 in 0..=6u32, start in starts(),
        acts in proptest::collection::vec(to_consumer(), 1..200),
    ) {
        lied_to_consumer::<[u32; 4]>(&Parts::new(1 << log2, 1, start), &acts);
        lied_to_consumer::<[u8; 84]>(&Parts::new(1 << log2, 6, start), &acts);
        lied_to_consumer::<[u64; 16]>(&Parts::new(1 << log2, 8, start), &acts);
        lied_to_consumer::<[u64; 16]>(&Parts::with_lines((1, 2), 1 << log2, 8, start), &acts);
        lied_to_consumer::<[u32; 54]>(&Parts::with_lines((1, 3), 1 << log2, 14, start), &acts);
    }

    #[test]
    fn a_hostile_consumer(
        log2 in 0..=6u32, start in starts(),
        acts in proptest::collection::vec(to_producer(), 1..200),
    ) {
        lied_to_producer::<[u32; 4]>(&Parts::new(1 << log2, 1, start), &acts);
        lied_to_producer::<[u8; 84]>(&Parts::new(1 << log2, 6, start), &acts);
        lied_to_producer::<[u64; 16]>(&Parts::new(1 << log2, 8, start), &acts);
        lied_to_producer::<[u64; 16]>(&Parts::with_lines((1, 2), 1 << log2, 8, start), &acts);
        lied_to_producer::<[u32; 54]>(&Parts::with_lines((1, 3), 1 << log2, 14, start), &acts);
    }

    /// A message larger than the ring's slots (a kernel and a host that disagree) is cut, never
    /// written into the next slot or behind the last.
    #[test]
    fn a_slot_too_small(log2 in 0..=3u32, start in starts()) {
        let parts = Parts::new(1 << log2, 2, start);
        let (mut producer, mut consumer) = (Outbox::new(parts.ring()), Inbox::new(parts.ring()));
        let n = parts.ring().capacity() as usize;
        let batch: Vec<[u64; 16]> = (0..n as u64).map(|k| [k; 16]).collect();
        prop_assert_eq!(producer.push_slice(&batch, 0), Ok(n));
        let mut out = vec![[0u64; 16]; n];
        prop_assert_eq!(consumer.pop_slice(&mut out), Ok(n));
        prop_assert_eq!(producer.push_each(n, 0, |k| batch[k]), Ok(n));
        prop_assert_eq!(consumer.pop_each(n, |message: &[u64; 16]| out.push(*message)), Ok(n));
        prop_assert_eq!(producer.push(&batch[n - 1], 0), Ok(()));
        let last = consumer.pop::<[u64; 16]>().expect("an honest producer");
        prop_assert_eq!(last.as_ref(), out.last());
        for (k, message) in out.iter().enumerate() {
            prop_assert_eq!(&message[..4], &[(k % n) as u64; 4], "overwritten by a neighbour");
            prop_assert_eq!(&message[4..], &[0; 12], "from beyond the slot");
        }
    }
}

/// The boundary of what is believed, on both sides of it.
#[test]
fn the_first_tail_that_cannot_be() {
    for start in [0, (1 << 32) - 2, (5 << 32) - 1] {
        for capacity in [1u32, 8] {
            let parts = Parts::new(capacity, 1, start);
            let (ring, mut consumer) = (parts.ring(), Inbox::new(parts.ring()));
            let tell = |ahead: u32| {
                let tail = (start as u32).wrapping_add(ahead);
                let control = Control { credit: 0, early: 0, first: start as u32, tail };
                ring.line(0).atoms[CONTROL].store(control.to_words());
            };
            tell(capacity + 1);
            let low = u64::from(start as u32);
            let (found, high) = (
                u64::from((start as u32).wrapping_add(capacity + 1)),
                u64::from((start as u32).wrapping_add(capacity)),
            );
            assert_eq!(consumer.pop::<u64>(), Err(Corrupt { found, low, high }));
            assert_eq!(consumer.next(), start, "nothing was taken");
            tell(capacity);
            assert!(consumer.pop::<u64>().unwrap().is_some(), "a full ring is no lie");
        }
    }
}

/// An impossible line behind messages that were sound: these are delivered first. Had the error
/// been returned at once, the messages would be consumed and their number lost with it.
#[test]
fn messages_before_the_lie_are_delivered() {
    let parts = Parts::new(4, 1, 0);
    let (mut producer, mut consumer) = (Outbox::new(parts.ring()), Inbox::new(parts.ring()));
    producer.push_slice(&[1u64, 2, 3], 0).unwrap();
    assert_eq!(consumer.pop::<u64>(), Ok(Some(1)));
    let control = Control { credit: 0, early: 0, first: 0, tail: 1000 };
    parts.ring().line(0).atoms[CONTROL].store(control.to_words());
    let mut out = [0u64; 8];
    assert_eq!(consumer.pop_slice(&mut out), Ok(2));
    assert_eq!(out[..2], [2, 3]);
    assert_eq!(consumer.pop_slice(&mut out), Err(Corrupt { found: 1000, low: 3, high: 7 }));
}

/// A line that says "inline" to messages too large for it: nothing may be read as one.
#[test]
fn inline_of_what_does_not_fit() {
    let parts = Parts::new(4, 8, 7);
    let mut consumer = Inbox::new(parts.ring());
    let control = Control { credit: 0, early: 0, first: 8, tail: 8 };
    parts.ring().line(0).atoms[CONTROL].store(control.to_words());
    assert_eq!(consumer.pop::<[u64; 16]>(), Err(Corrupt { found: 7, low: 8, high: 8 }));
    assert_eq!(consumer.next(), 7);
}

/// Credit from the future or from before the start is refused; late credit is not.
#[test]
fn the_first_credit_that_cannot_be() {
    let parts = Parts::new(2, 1, 100);
    let (ring, mut producer) = (parts.ring(), Outbox::new(parts.ring()));
    assert_eq!(producer.push_slice(&[1u64, 2], 0), Ok(2));
    for found in [103, 99, 0, u64::MAX] {
        ring.credit().consumed.store(found, Relaxed);
        let refused = Corrupt { found, low: 100, high: 102 };
        assert_eq!(producer.push(&3u64, 0), Err(PushError::Corrupt(refused)));
        assert_eq!(producer.push_slice(&[3u64, 4], 0), Err(refused));
    }
    ring.credit().consumed.store(100, Relaxed);
    assert_eq!(producer.push(&3u64, 0), Err(PushError::Full));
    producer.note_consumed(102);
    ring.credit().consumed.store(101, Relaxed); // less than an answer has proved: old, not a lie
    assert_eq!(producer.push_slice(&[3u64, 4, 5], 0), Ok(2));
}
