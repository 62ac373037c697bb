//! A producer whose consumer gives any credit, between any two calls and during them. Nothing is
//! written out of bounds or over what may be unread, and no credit that cannot be is believed.
#![no_main]

use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use ring_fuzz::{Input, Lie, Parts};
use ring_shared::message::takes_inline;
use ring_shared::ring::{CONTROL, Control, may_go_inline, window};
use ring_shared::{Corrupt, Message, Outbox, PushError};
use std::sync::atomic::Ordering::Relaxed;

#[derive(Arbitrary, Clone, Copy, Debug)]
enum Act {
    Credit(Lie),
    Push(Lie),
    PushSlice(u8, Lie),
    PushEach(u8, Option<Lie>),
    Note(Lie),
    HasRoom(Lie),
}

fn produce<T: Message>(parts: &Parts, acts: &[Act]) {
    let ring = parts.ring();
    let (capacity, start) = (u64::from(ring.capacity()), ring.start());
    let window = window(ring.line_count(), ring.capacity());
    let mut producer = Outbox::new(ring);
    // Index after the last message that is in a slot only, and whether the last of all is inline.
    let (mut slots_end, mut is_inline) = (start, true);
    for act in acts {
        let (next, consumed) = (producer.next(), producer.consumed());
        let may_go = |n: usize, consumed: u64| {
            let unread = next - consumed;
            n == 1
                && takes_inline::<T>(&ring)
                && may_go_inline(unread, n, slots_end > consumed, window)
        };
        let found = ring.credit().consumed.load(Relaxed);
        let refused = Corrupt { found, low: start, high: next };
        let impossible = !(start..=next).contains(&found);
        let looks = |wanted: usize| ((capacity - (next - consumed)) as usize) < wanted;
        let looks_to_push =
            |n| looks(n) || (n == 1 && takes_inline::<T>(&ring) && !may_go(1, consumed));
        let mut alone = false;
        // An error exactly if it had to look and what it saw cannot be; then nothing was pushed.
        let check = |got: Result<usize, Corrupt>, must_look: bool, pushed: u64| {
            assert_eq!(got.is_err(), must_look && impossible);
            assert!(got.is_ok() || got == Err(refused));
            assert_eq!(pushed, got.unwrap_or(0) as u64);
        };
        match *act {
            Act::Credit(lie) => ring.credit().consumed.store(lie.apply(next), Relaxed),
            Act::Push(credit) => {
                let got = match producer.push(&T::zeroed(), credit.apply(next)) {
                    Ok(()) => Ok(1),
                    Err(PushError::Full) => Ok(0),
                    Err(PushError::Corrupt(corrupt)) => Err(corrupt),
                };
                alone = true;
                check(got, looks_to_push(1), producer.next() - next);
            }
            Act::PushSlice(n, credit) => {
                let n = usize::from(n);
                let got = producer.push_slice(&vec![T::zeroed(); n], credit.apply(next));
                alone = n == 1;
                assert!(got.unwrap_or(0) <= n);
                check(got, looks_to_push(n), producer.next() - next);
            }
            Act::PushEach(n, meanwhile) => {
                let n = usize::from(n);
                let got = producer.push_each(n, next, |k| {
                    if let Some(lie) = meanwhile {
                        ring.credit().consumed.store(lie.apply(next + k as u64), Relaxed);
                    }
                    T::zeroed()
                });
                alone = n == 1;
                assert!(got.unwrap_or(0) <= n);
                check(got, looks_to_push(n), producer.next() - next);
            }
            Act::Note(lie) => producer.note_consumed(lie.apply(next)),
            Act::HasRoom(credit) => {
                let got = producer.has_room(credit.apply(next));
                assert_eq!(got.is_err(), looks(1) && impossible);
                assert!(got.is_ok() || got == Err(refused));
            }
        }
        let (now, known) = (producer.next(), producer.consumed());
        assert!(known >= consumed, "credit is never taken back");
        assert!(known <= now, "credit for what was not pushed");
        assert!(now - known <= capacity, "{} unread in {capacity} slots", now - known);
        if now != next {
            is_inline = alone && may_go(1, known);
            slots_end = if is_inline { slots_end } else { now };
        }
        let line = if is_inline { now.wrapping_sub(1) } else { 0 };
        let tail = Control::from_words(ring.line(line).atoms[CONTROL].load()).tail;
        assert_eq!(tail, now as u32, "the newest line of a run of slots, or the message's own");
        assert_eq!(ring.told_from(start), (now - start) as u32, "no line tells of more");
    }
}

fuzz_target!(|input: Input<Act>| {
    let parts = input.parts();
    match input.size() {
        0 => produce::<[u32; 4]>(&parts, &input.acts),
        1 => produce::<[u8; 84]>(&parts, &input.acts),
        2 => produce::<[u8; 13]>(&parts, &input.acts),
        3 => produce::<[u64; 16]>(&parts, &input.acts),
        _ => produce::<[u32; 54]>(&parts, &input.acts),
    }
});
