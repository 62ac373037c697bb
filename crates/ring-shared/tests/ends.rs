//! Both ends of a ring at the borders of what they do: nothing to send, an error with or without
//! messages before it, credit that is published late, and messages larger than the slots.

mod parts;

use parts::Parts;
use ring_shared::atomics::Gpu;
use ring_shared::heap::RingMemory;
use ring_shared::layout::{ChannelBlock, ControlBlock, ROWS, TABLE_LEN, table};
use ring_shared::ring::{CONTROL, Control, SCRUB, Seen, decide, scrub, stamp_of};
use ring_shared::{Corrupt, Inbox, Outbox};
use std::sync::atomic::Ordering::Relaxed;

/// More than the slots of [`small`] hold.
type Large = [u64; 16];

fn large(k: u64) -> Large {
    [k; 16]
}

/// A ring whose slots hold a quarter of a [`Large`].
fn small() -> Parts {
    Parts::new(4, 2, 7)
}

fn ends(parts: &Parts) -> (Outbox, Inbox) {
    (Outbox::new(parts.ring()), Inbox::new(parts.ring()))
}

/// Announces a tail that cannot be.
fn lie(parts: &Parts) {
    let control = Control { credit: 0, early: 0, first: 1000, tail: 1000 };
    parts.ring().line(0).atoms[CONTROL].store(control.to_words());
}

/// An error is returned when nothing was taken, and only then: no message is lost with it.
#[test]
fn each_returns_an_error_when_nothing_was_shown() {
    let parts = Parts::new(4, 1, 0);
    let (mut producer, mut consumer) = ends(&parts);
    producer.push_slice(&[1u64, 2], 0).unwrap();
    let mut shown = Vec::new();
    let mut once = true;
    let taken = consumer.pop_each(4, |message: &u64| {
        shown.push(*message);
        if std::mem::take(&mut once) {
            lie(&parts);
        }
    });
    assert_eq!((taken, shown), (Ok(2), vec![1, 2]));
    let corrupt = Corrupt { found: 1000, low: 2, high: 6 };
    assert_eq!(consumer.pop_each(4, |_: &u64| panic!("a message")), Err(corrupt));
    assert_eq!(consumer.pop_each(0, |_: &u64| panic!("a message")), Ok(0));

    let parts = small();
    let (mut producer, mut consumer) = ends(&parts);
    assert_eq!(producer.push_each(2, 7, |k| large(k as u64)), Ok(2));
    let mut shown = 0;
    let taken = consumer.pop_each(4, |message: &Large| {
        assert_eq!(message[..4], [shown; 4]);
        shown += 1;
        lie(&parts);
    });
    assert_eq!((taken, shown), (Ok(2), 2));
    let corrupt = Corrupt { found: 1000, low: 9, high: 13 };
    assert_eq!(consumer.pop_each(4, |_: &Large| panic!("a message")), Err(corrupt));
}

/// A producer that is interrupted between the line of a batch's first message and line 0.
#[test]
fn who_goes_on_inside_a_batch_waits_for_line_0() {
    let memory = RingMemory::with_lines::<u64>(4, 16, 0);
    // SAFETY: the memory is dropped at the end of this function, after all its users.
    let ring = unsafe { memory.ring_for_now() };
    let mut producer = Outbox::new(ring);
    assert!((0..4).all(|index| ring.can_resume_from(index)), "there is nothing to find");
    assert_eq!(producer.push_slice(&[0u64, 1, 2, 3, 4], 0), Ok(5));
    assert!((0..=5).all(|index| ring.can_resume_from(index)));
    let told = Control::behind_slots(0, 0, 10, 0);
    ring.line(5).atoms[CONTROL].store(told.to_words());
    assert!((0..=5).all(|index| ring.can_resume_from(index)));
    assert!([6, 7, 8].into_iter().all(|index| !ring.can_resume_from(index)));
    assert!(ring.can_resume_from(9), "its line is that of message 5");
    ring.line(0).atoms[CONTROL].store(told.to_words());
    assert!((0..=10).all(|index| ring.can_resume_from(index)));
}

/// What is made in the ring is cut to the slots, and comes out cut.
#[test]
fn messages_made_in_slots_too_small_are_cut() {
    let parts = small();
    let (mut producer, mut consumer) = ends(&parts);
    for round in 0..3u64 {
        assert_eq!(producer.push_each(4, 7 + 4 * round, |k| large(10 * round + k as u64)), Ok(4));
        let mut shown = Vec::new();
        assert_eq!(consumer.pop_each(9, |message: &Large| shown.push(message[0])), Ok(4));
        assert_eq!(shown, [0, 1, 2, 3].map(|k| 10 * round + k));
    }
}

/// A ring has room by what is known while it has, and its credit line is looked at when it seems full.
#[test]
fn room_is_what_is_free() {
    let parts = Parts::new(2, 1, 3);
    let (mut producer, mut consumer) = ends(&parts);
    assert_eq!(producer.has_room(3), Ok(true));
    assert_eq!(producer.push_slice(&[1u64, 2], 3), Ok(2));
    assert_eq!(producer.has_room(3), Ok(false));
    assert_eq!(consumer.pop::<u64>(), Ok(Some(1)));
    consumer.publish();
    assert_eq!(producer.has_room(3), Ok(true));
    assert_eq!(producer.push(&3u64, 3), Ok(()));
    // The credit goes out, for who waits for it before there can be room.
    assert_eq!(producer.has_room(5), Ok(false));
    assert_eq!(consumer.pop_slice(&mut [0u64; 4]), Ok(2));
    assert_eq!(consumer.pop::<u64>(), Ok(None));
    assert_eq!(consumer.credit(), 5);
    parts.ring().credit().consumed.store(100, Relaxed);
    let parts = Parts::new(2, 1, 3);
    let (mut producer, _) = ends(&parts);
    assert_eq!(producer.push_slice(&[1u64, 2], 3), Ok(2));
    parts.ring().credit().consumed.store(100, Relaxed);
    assert_eq!(producer.has_room(3), Err(Corrupt { found: 100, low: 3, high: 5 }));
}

/// A batch that is too long for the window whatever is consumed is told so without a look at the credit line.
#[test]
fn what_never_fits_the_window_asks_for_no_credit() {
    let looked = Err(Corrupt { found: 100, low: 0, high: 1 });
    for (lines, n, expected) in [
        (1, 1, looked),
        (1, 2, Ok(false)),
        (4, 4, looked),
        (4, 5, Ok(false)),
        (16, 8, Ok(true)), // nothing need be known to be consumed
        (16, 9, Ok(false)),
    ] {
        let parts = Parts::with_lines((lines, 1), 64, 1, 0);
        let mut producer = Outbox::new(parts.ring());
        producer.push(&0u64, 0).unwrap();
        parts.ring().credit().consumed.store(100, Relaxed);
        let batch: Vec<u64> = (0..n).collect();
        assert_eq!(producer.push_slice_inline(&batch, 0), expected, "{n} of {lines} lines");
    }
}

/// Who has nothing to send, or no room, and no news of credit, leaves the line alone: the other side
/// reads it all the time.
#[test]
fn nothing_new_is_not_published() {
    let parts = Parts::new(2, 1, 0);
    let (mut producer, _) = ends(&parts);
    producer.push_slice(&[1u64, 2], 0).unwrap();
    let control = &parts.ring();
    let control = &control.line(0).atoms[CONTROL];
    let mark = [!0, !0];
    control.store(mark);
    assert_eq!(producer.push_slice::<u64>(&[], 0), Ok(0));
    assert_eq!(producer.push_slice(&[3u64, 4], 0), Ok(0));
    assert_eq!(producer.push_each(0, 0, |_| 3u64), Ok(0));
    assert_eq!(producer.push_each(2, 0, |_| 3u64), Ok(0));
    assert_eq!(producer.has_room(0), Ok(false));
    assert!(producer.push(&3u64, 0).is_err());
    assert_eq!(control.load(), mark);
    assert!(producer.push(&3u64, 1).is_err());
    assert_eq!(
        Control::from_words(control.load()),
        Control { credit: 1, early: !0, first: 0, tail: 2 },
        "how early an inline message may be taken stays as it was"
    );
}

/// Credit goes back for every quarter of a ring, and when there is nothing left, not for each message.
#[test]
fn credit_is_published_by_the_quarter() {
    for (capacity, quarter) in [(16u32, 4u64), (8, 2), (2, 1)] {
        let start = 1 << 20;
        let parts = Parts::new(capacity, 1, start);
        let (mut producer, mut consumer) = ends(&parts);
        let all: Vec<u64> = (0..u64::from(capacity)).collect();
        producer.push_slice(&all, start).unwrap();
        for taken in 1..=u64::from(capacity) {
            assert_eq!(consumer.pop::<u64>(), Ok(Some(taken - 1)));
            let published = parts.ring().credit().consumed.load(Relaxed) - start;
            assert_eq!(published, taken / quarter * quarter, "{taken} of {capacity}");
        }
        producer.push_slice(&all[..1], start).unwrap();
        assert_eq!(consumer.pop::<u64>(), Ok(Some(0)));
        assert_eq!(consumer.pop::<u64>(), Ok(None));
        let published = parts.ring().credit().consumed.load(Relaxed) - start;
        assert_eq!(published, u64::from(capacity) + 1);
    }
}

/// A consumer that tells what it has taken as soon as no more is known to be there does not tell it before.
#[test]
fn credit_is_published_behind_the_last_message_on_request() {
    let start = 1 << 20;
    let parts = Parts::new(16, 1, start);
    let (mut producer, mut consumer) = ends(&parts);
    let published = || parts.ring().credit().consumed.load(Relaxed) - start;
    producer.push(&7u64, start).unwrap();
    assert_eq!(consumer.pop::<u64>(), Ok(Some(7)));
    assert_eq!(published(), 0, "not by itself");
    consumer.publish_if_empty();
    assert_eq!(published(), 1);
    producer.push_slice(&[8u64, 9], start).unwrap();
    for (message, told) in [(8, 1), (9, 3)] {
        assert_eq!(consumer.pop::<u64>(), Ok(Some(message)));
        consumer.publish_if_empty();
        assert_eq!(published(), told);
    }
}

/// The line between a tail that lags behind and one that runs ahead is half of all 32-bit numbers.
#[test]
fn a_tail_is_old_from_half_of_the_numbers_on() {
    for here in [0u64, 5, (1 << 32) - 2, (7 << 32) + 3] {
        let tail = |ahead: u32| {
            let tail = (here as u32).wrapping_add(ahead);
            Control { credit: 0, early: 0, first: here as u32, tail }
        };
        let seen = |ahead| decide(tail(ahead), here, 8);
        assert_eq!(seen(0), Seen::Nothing);
        assert_eq!(seen(8), Seen::Slots(8));
        assert!(matches!(seen(9), Seen::Corrupt(_)));
        assert!(matches!(seen(u32::MAX / 2), Seen::Corrupt(_)));
        assert_eq!(seen(u32::MAX / 2 + 1), Seen::Nothing);
        assert_eq!(seen(u32::MAX), Seen::Nothing);
    }
}

/// A run of slots is announced from its start on, or from what is known to be consumed of it.
#[test]
fn a_run_is_announced_from_what_may_be_unread() {
    assert_eq!(Control::behind_slots(5, 4, 9, 0).first, 5, "message 4 is inline");
    assert_eq!(Control::behind_slots(5, 5, 9, 0).first, 5);
    assert_eq!(Control::behind_slots(5, 7, 9, 0).first, 7);
}

/// Stamps are overwritten when they are old, and not while the inline message may be unread.
#[test]
fn stamps_are_overwritten_when_they_are_old() {
    let old = 10 + SCRUB;
    assert_eq!(scrub(old, 10, 11, old, 1), None);
    assert_eq!(scrub(old + 1, 10, 11, old, 1).map(stamp_of), Some(old as u32));
    assert_eq!(scrub(old + 1, 10, 11, 10, 1), None, "message 10 is unread");
    assert_eq!(scrub(old + 1, 10, 11, 11, 1).map(stamp_of), Some(11));
}

/// The table that host and device compare is that of the structs.
#[test]
fn the_table_is_of_the_structs() {
    let table = table();
    let of =
        |name: &str| table[ROWS.iter().position(|row| row.to_string() == name).expect("a name")];
    assert_eq!((table.len(), of("ABI version")), (TABLE_LEN, ring_shared::ABI_VERSION.into()));
    assert_eq!(of("magic"), ring_shared::MAGIC);
    assert_eq!(of("ControlBlock"), size_of::<ControlBlock>() as u64);
    assert_eq!(of("ChannelBlock"), size_of::<ChannelBlock>() as u64);
    assert_eq!(
        of("ChannelBlock.response_credit"),
        std::mem::offset_of!(ChannelBlock, response_credit) as u64
    );
}

/// Ends of gpu scope carry messages as those of system scope do: inline and in slots, until the ring is full,
/// and take them into a place as they give them back.
#[test]
fn ends_of_gpu_scope_carry_messages() {
    let parts = Parts::new(4, 1, 7);
    let mut outbox = Outbox::with_scope(parts.ring(), Gpu);
    let mut inbox = Inbox::with_scope(parts.ring(), Gpu);
    let mut got = 0u64;
    for message in 0..20u64 {
        assert_eq!(inbox.pop_into(&mut got), Ok(false), "nothing is there");
        outbox.push(&message, 0).unwrap();
        assert_eq!((inbox.pop_into(&mut got), got), (Ok(true), message));
        outbox.note_consumed(outbox.next());
    }
    assert_eq!(outbox.push_slice(&[30u64, 31, 32, 33, 34], 0), Ok(4), "four slots");
    for message in 30..34u64 {
        assert_eq!((inbox.pop_into(&mut got), got), (Ok(true), message));
    }
    assert_eq!(inbox.pop::<u64>(), Ok(None));
}
