//! A consumer whose producer writes whatever it likes: into any line, into slots, between any two
//! calls and during them. Nothing is read out of bounds, no message is invented, lost or taken twice.
#![no_main]

use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use ring_fuzz::parts::check_look;
use ring_fuzz::{Input, Lie, Parts};
use ring_shared::ring::{CONTROL, Control, stamp};
use ring_shared::{Inbox, Message, Ring};
use std::sync::atomic::Ordering::Relaxed;

#[derive(Arbitrary, Clone, Copy, Debug)]
struct Line {
    /// In the line of a message so many ahead.
    ahead: u8,
    tail: Lie,
    first: Lie,
    credit: u32,
}

#[derive(Arbitrary, Clone, Copy, Debug)]
enum Act {
    Control(Line),
    Atom(u8, u8, [u64; 2]),
    Stamp(u8, Lie),
    Stamps(u8, Lie),
    Slot(u8, [u64; 2]),
    Pop,
    PopSlice(u8),
    PopEach(u8, Option<Line>),
    Publish,
}

impl Line {
    fn write(self, ring: &Ring, next: u64) {
        let (tail, first) = (self.tail.apply(next) as u32, self.first.apply(next) as u32);
        let control = Control { credit: self.credit, early: 0, first, tail };
        let line = ring.line(next.wrapping_add(self.ahead.into()));
        line.atoms[CONTROL].store(control.to_words());
    }
}

fn consume<T: Message>(parts: &Parts, acts: &[Act]) {
    let ring = parts.ring();
    let (capacity, start) = (u64::from(ring.capacity()), ring.start());
    // A run known before, and what each line shows: it shows it once, if it does not change.
    let most_at_once = capacity * (1 + u64::from(ring.line_count()));
    let mut consumer = Inbox::new(ring);
    // What a control atom may have announced is in slots, and so may take without another look.
    let mut known = start;
    for act in acts {
        let next = consumer.next();
        match *act {
            Act::Control(line) => line.write(&ring, next),
            Act::Atom(line, k, words) => {
                let lines = ring.lines_of(line.into());
                lines[usize::from(k) / 8 % lines.len()].atoms[usize::from(k) % 8].store(words);
            }
            Act::Stamp(k, of) => {
                let words = [!0, u64::from(stamp(of.apply(next))) << 32];
                let lines = ring.lines_of(next);
                let line = &lines[usize::from(k) / CONTROL % lines.len()];
                line.atoms[usize::from(k) % CONTROL].store(words);
            }
            Act::Stamps(ahead, of) => {
                let lines = ring.lines_of(next.wrapping_add(ahead.into()));
                for atom in lines.iter().flat_map(|line| &line.atoms[..CONTROL]) {
                    atom.store([!0, u64::from(stamp(of.apply(next))) << 32]);
                }
            }
            Act::Slot(at, words) => ring.slot(at.into()).iter().for_each(|atom| atom.store(words)),
            Act::Pop => {
                let control = Control::from_words(ring.line(next).atoms[CONTROL].load());
                let got = consumer.pop::<T>();
                let taken = consumer.next() - next;
                assert_eq!(taken, u64::from(matches!(got, Ok(Some(_)))));
                if known == next {
                    check_look(
                        got.map(|message| message.is_some()),
                        control,
                        next,
                        ring.capacity(),
                    );
                }
                known = known.max(consumer.next());
                if taken == 1 && known == consumer.next() {
                    // One of a run: the rest may be taken without another look.
                    let ahead = u64::from(control.tail.wrapping_sub(next as u32));
                    known += ahead.saturating_sub(1).min(capacity);
                }
            }
            Act::PopSlice(most) => {
                let most = usize::from(most);
                let got = consumer.pop_slice(&mut vec![T::zeroed(); most]);
                let taken = got.unwrap_or(0);
                check_taken(taken, most, consumer.next() - next);
                assert!(taken as u64 <= most_at_once, "{taken} from {capacity} slots");
                known = consumer.next() + if taken < most { 0 } else { capacity };
            }
            Act::PopEach(most, meanwhile) => {
                let (most, mut shown) = (usize::from(most), 0);
                let got = consumer.pop_each(most, |_: &T| {
                    shown += 1;
                    if let Some(line) = meanwhile {
                        line.write(&ring, next + shown as u64);
                    }
                });
                let taken = got.unwrap_or(0);
                assert_eq!(taken, shown);
                check_taken(taken, most, consumer.next() - next);
                assert!(taken as u64 <= most_at_once || meanwhile.is_some());
                known = consumer.next() + if taken < most { 0 } else { capacity };
            }
            Act::Publish => consumer.publish(),
        }
        let published = ring.credit().consumed.load(Relaxed);
        assert!((start..=consumer.next()).contains(&published), "credit for what was not taken");
    }
}

fn check_taken(taken: usize, most: usize, moved: u64) {
    assert!(taken <= most, "{taken} of {most}");
    assert_eq!(moved, taken as u64, "taken but not reported, or the reverse");
}

fuzz_target!(|input: Input<Act>| {
    let parts = input.parts();
    match input.size() {
        0 => consume::<[u32; 4]>(&parts, &input.acts),
        1 => consume::<[u8; 84]>(&parts, &input.acts),
        2 => consume::<[u8; 13]>(&parts, &input.acts),
        3 => consume::<[u64; 16]>(&parts, &input.acts),
        _ => consume::<[u32; 54]>(&parts, &input.acts),
    }
});
