//! What a channel with ports has noted in its trace ring: which messages it took together, and behind that what each output got for them.

use super::events::RingMessages;
use crate::graph::plan::ChannelEnds;
use crate::kernel::trace::clock::{Handled, Measured};
use ring_shared::trace::{OfEnd, Record, TraceCursor, TraceRing};

/// Messages that were handled together.
#[derive(Debug)]
pub(super) struct Noted {
    pub handled: Handled,
    pub taken: RingMessages,
    pub emitted: Vec<RingMessages>,
}

/// A reader of what a channel notes.
#[derive(Debug)]
pub(super) struct Notes {
    ring: TraceRing,
    cursor: TraceCursor,
    /// Records that were lost when the last one was read.
    lost: u64,
    inputs: usize,
    ends: Vec<End>,
    /// What was noted in part, and how many records of it are to follow.
    open: Option<(Noted, u16)>,
}

/// An end of a ring.
#[derive(Clone, Copy, Debug)]
struct End {
    /// The ring's number.
    number: usize,
    /// The index of the launch's first message, and one that was noted last.
    start: u64,
    last: u64,
}

impl End {
    /// Which messages those are, of which the device says the low half of the first index: that lies less than 2^31 before or behind the
    /// last one.
    fn messages(&mut self, index: u32, n: u32) -> RingMessages {
        let ahead = index.wrapping_sub(self.last as u32) as i32;
        self.last = self.last.wrapping_add(i64::from(ahead) as u64);
        RingMessages { ring: self.number, first: self.last.wrapping_sub(self.start), n }
    }
}

impl Notes {
    /// Of a channel that has such ends. The first message of its first input has the index `start`; those of all others begin at 0.
    pub fn new(ring: TraceRing, ends: &ChannelEnds, start: u64) -> Notes {
        let each = ends.rings.iter().enumerate().map(|(k, &number)| {
            let start = if k == 0 { start } else { 0 };
            End { number, start, last: start }
        });
        let (cursor, ends, inputs) = (TraceCursor::default(), each.collect(), ends.inputs);
        Notes { ring, cursor, lost: 0, inputs, ends, open: None }
    }

    /// Records that were overwritten before they were read.
    pub fn lost(&self) -> u64 {
        self.cursor.lost()
    }

    /// What is there and was not read yet: no more than the ring has.
    pub fn read(&mut self, ticks: Measured, mut each: impl FnMut(Noted)) {
        for _ in 0..self.ring.records() {
            let Some(record) = self.cursor.next(&self.ring) else { return };
            if let Some(noted) = self.add(&record, ticks) {
                each(noted);
            }
        }
    }

    /// What is complete with that record. One whose parts were lost, or are not what they are to be, is left out.
    fn add(&mut self, record: &Record, ticks: Measured) -> Option<Noted> {
        if std::mem::replace(&mut self.lost, self.cursor.lost()) != self.lost {
            self.open = None;
        }
        let OfEnd { index, end, following } = OfEnd::from_word(record.index);
        let is_input = usize::from(end) < self.inputs;
        if record.n == 0 {
            self.open = None;
            return None;
        }
        let messages = self.ends.get_mut(usize::from(end))?.messages(index, record.n);
        let (noted, following) = match self.open.take() {
            Some((mut noted, following)) if !is_input => {
                noted.emitted.push(messages);
                (noted, following - 1)
            }
            _ if is_input => {
                let handled = Handled::of(record, ticks);
                (Noted { handled, taken: messages, emitted: Vec::new() }, following)
            }
            _ => return None,
        };
        if following == 0 {
            return Some(noted);
        }
        self.open = Some((noted, following));
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ring_shared::atomics::Atom;
    use ring_shared::trace::bytes_of;
    use std::ptr::NonNull;

    const RECORDS: u32 = 16;

    /// A channel of two inputs, rings 7 and 8, and two outputs, rings 9 and 10.
    struct Rig {
        _memory: Vec<Atom>,
        ring: TraceRing,
        written: u32,
        notes: Notes,
    }

    impl Rig {
        fn new(start: u64) -> Rig {
            let atoms = bytes_of(RECORDS) / size_of::<Atom>();
            let memory: Vec<Atom> = (0..atoms).map(|_| Atom::new([0; 2])).collect();
            // SAFETY: it is that long, zero, and stays as long as the rig.
            let ring = unsafe { TraceRing::from_raw(NonNull::from(&memory[..]).cast(), RECORDS) };
            let ends = ChannelEnds { inputs: 2, rings: vec![7, 8, 9, 10] };
            Rig { _memory: memory, ring, written: 0, notes: Notes::new(ring, &ends, start) }
        }

        fn note(&mut self, end: u16, index: u32, n: u32, following: u16) {
            let index = OfEnd { index, end, following }.to_word();
            let record = Record { index, n, at: 1000, ago: 100, took: 10, waited: 1 };
            self.ring.write(self.written, record);
            self.written += 1;
        }

        /// What is read, as triples: a batch's first, and behind it what was emitted.
        fn read(&mut self) -> Vec<Vec<(usize, u64, u32)>> {
            let mut read = Vec::new();
            self.notes.read(Measured::TIME, |noted| {
                let all = [noted.taken].into_iter().chain(noted.emitted);
                read.push(all.map(|of| (of.ring, of.first, of.n)).collect());
            });
            read
        }
    }

    #[test]
    fn what_was_emitted_belongs_to_the_record_before() {
        let mut rig = Rig::new(0);
        rig.note(0, 0, 3, 2);
        rig.note(2, 0, 6, 0);
        assert_eq!(rig.read(), Vec::<Vec<_>>::new());
        rig.note(3, 0, 1, 0);
        rig.note(1, 5, 1, 0);
        rig.note(0, 3, 1, 1);
        rig.note(2, 6, 2, 0);
        let expected: [&[_]; 3] =
            [&[(7, 0, 3), (9, 0, 6), (10, 0, 1)], &[(8, 5, 1)], &[(7, 3, 1), (9, 6, 2)]];
        assert_eq!(rig.read(), expected);
    }

    #[test]
    fn indices_count_from_the_launch_and_go_on_behind_what_half_of_them_holds() {
        let start = (1 << 40) + u64::from(u32::MAX) - 1;
        let mut rig = Rig::new(start);
        for k in [0u32, 1, 3, 2, 1 << 30, 1 << 31] {
            rig.note(0, (start as u32).wrapping_add(k), 1, 0);
            rig.note(1, k, 1, 0);
            assert_eq!(rig.read(), [[(7, k.into(), 1)], [(8, k.into(), 1)]]);
        }
        // Round 2^32 by steps.
        rig.note(1, 3 << 30, 1, 0);
        rig.note(1, 1, 1, 0);
        assert_eq!(rig.read(), [[(8, 3 << 30, 1)], [(8, (1 << 32) + 1, 1)]]);
    }

    #[test]
    fn what_is_not_whole_is_left_out_and_what_follows_is_not() {
        let mut rig = Rig::new(0);
        rig.note(2, 0, 1, 0); // of nothing
        rig.note(0, 0, 1, 2);
        rig.note(2, 1, 1, 0);
        rig.note(0, 1, 1, 0); // where another output was to follow
        rig.note(99, 0, 1, 0); // no such end
        rig.note(0, 2, 1, u16::MAX);
        rig.note(4, 0, 1, 0);
        rig.note(1, 0, 1, 0);
        rig.note(0, 2, 0, 0); // of no messages
        rig.note(0, 2, 1, 1);
        rig.note(2, 1, 0, 0);
        assert_eq!(rig.read(), [[(7, 1, 1)], [(8, 0, 1)]]);
        rig.note(0, 3, 1, 1);
        assert_eq!(rig.read(), Vec::<Vec<_>>::new());
        for _ in 0..RECORDS {
            rig.note(2, 1, 1, 0); // over that and all that belongs to it
        }
        rig.note(1, 9, 1, 0);
        assert_eq!(rig.read(), [[(8, 9, 1)]]);
        assert!(rig.notes.lost() > 0);
    }
}
