//! Trace rings: what a channel's device, sender and receiver note of messages, for whoever wants to know afterwards.
//!
//! A trace ring never makes its writer wait: a record overwrites the oldest one, whether that was read or not. Each half of each atom of a
//! record has the record's stamp, since a record may be overwritten while it is read, and a CPU reads an atom by halves. So a reader sees
//! whether a record is whole, and which one it is: one that was not written yet, or one that was overwritten, has another stamp. The
//! reader counts what it has missed.
//!
//! One writer for each ring. Several threads of a device's block may write records of different positions at the same time: they take
//! positions from a counter of their own, in the block's memory.

use crate::atomics::Atom;
use crate::ring::stamp;
use core::ptr::NonNull;

/// Most records of a trace ring.
pub const MAX_RECORDS: u32 = 1 << 20;

/// Atoms of a record.
const ATOMS: usize = 4;

/// Bytes of a record.
const BYTES: usize = ATOMS * size_of::<Atom>();

/// Bytes of a trace ring of so many records, a power of two: a multiple of 128, so that each line has one writer; 0 for none.
pub const fn bytes_of(records: u32) -> usize {
    (records as usize * BYTES).next_multiple_of(crate::layout::LINE)
}

/// Rounds of a ring by which a stamp may be older than the one that is looked for, and still be one that was not overwritten yet: all other
/// stamps are later ones. Where the writer has one thread it is one round.
#[cfg(not(target_arch = "nvptx64"))]
const OLDER_ROUNDS: u32 = 64;

/// How often a reader goes on to a later record before it gives up for now: stamps are the other side's word.
#[cfg(not(target_arch = "nvptx64"))]
const MOST_SKIPS: u32 = 64;

/// What is noted of messages side by side that were sent, handled or received together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// Index of the first of them.
    pub index: u64,
    /// How many there are.
    pub n: u32,
    /// When the record was written, by the writer's clock in nanoseconds.
    pub at: u64,
    /// Ticks since they were handled: from the end of the handler to `at`. 0 of what a host notes, as are the next two.
    pub ago: u32,
    /// Ticks that the handler took.
    pub took: u32,
    /// Ticks that they waited at most: from the last look that did not show them to the beginning of the handler.
    pub waited: u32,
}

/// What [`Record::index`] is in what a channel with ports notes of messages. It writes a record of those that it has handled together, and
/// behind that one for each output that got any for them, of which only the index and `n` mean anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OfEnd {
    /// The low half of the index of the first message there.
    pub index: u32,
    /// Which end of a ring: the inputs come first, then the outputs, as in the table of the channel's links.
    pub end: u16,
    /// Records of outputs that follow.
    pub following: u16,
}

impl OfEnd {
    /// It as a word.
    #[inline(always)]
    pub const fn to_word(self) -> u64 {
        self.index as u64 | (self.end as u64) << 32 | (self.following as u64) << 48
    }

    /// Such a word.
    pub const fn from_word(word: u64) -> OfEnd {
        OfEnd { index: word as u32, end: (word >> 32) as u16, following: (word >> 48) as u16 }
    }
}

/// What a reader finds at a position.
#[cfg(not(target_arch = "nvptx64"))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// Nothing: it was not written yet.
    Nothing,
    /// The record.
    Record(Record),
    /// A later record, so many behind: the one at the position was overwritten.
    Overwritten(u32),
}

/// A trace ring.
#[derive(Clone, Copy, Debug)]
pub struct TraceRing {
    at: NonNull<Atom>,
    records: u32,
}

// SAFETY: memory that is accessed as atomics only.
unsafe impl Send for TraceRing {}
// SAFETY: as above.
unsafe impl Sync for TraceRing {}

impl TraceRing {
    /// The trace ring of so many records at `at`.
    ///
    /// # Safety
    /// [`bytes_of`]`(records)` bytes, aligned to 16, which are zero at first, are there for as long as this or a copy is used, and are
    /// accessed as this trace ring only. `records` is a power of two.
    #[inline(always)]
    pub unsafe fn from_raw(at: NonNull<u8>, records: u32) -> TraceRing {
        TraceRing { at: at.cast(), records }
    }

    /// How many records it has.
    pub fn records(&self) -> u32 {
        self.records
    }

    #[inline(always)]
    fn atom(&self, position: u32, k: usize) -> &Atom {
        let record = (position & self.records.wrapping_sub(1)) as usize;
        // SAFETY: inside the ring, by the promise of `from_raw`.
        unsafe { self.at.add(record * ATOMS + k).as_ref() }
    }

    /// The writer, or one thread of it, of which no other one writes this position: writes the record there.
    #[inline(always)]
    pub fn write(&self, position: u32, record: Record) {
        let (low, high) = (|word: u64| word as u32, |word: u64| (word >> 32) as u32);
        let Record { index, n, at, ago, took, waited } = record;
        let half = |word: u32| u64::from(word) | u64::from(stamp(position.into())) << 32;
        let write = |k, [first, second]: [u32; 2]| {
            // SYNC: to `read`; each half proves its own word.
            self.atom(position, k).store_whole([half(first), half(second)]);
        };
        write(0, [low(index), high(index)]);
        write(1, [low(at), high(at)]);
        write(2, [n, ago]);
        write(3, [took, waited]);
    }

    /// The reader: what is at a position.
    #[cfg(not(target_arch = "nvptx64"))]
    #[inline]
    pub fn read(&self, position: u32) -> Found {
        // SYNC: from `write`; each half proves its own word.
        let atoms: [_; ATOMS] = core::array::from_fn(|k| self.atom(position, k).load());
        let behind = |half: u64| ((half >> 32) as u32).wrapping_sub(stamp(position.into()));
        let mut halves = atoms.iter().flatten().map(|half| behind(*half));
        let later = 1..(OLDER_ROUNDS * self.records).wrapping_neg();
        if let Some(behind) = halves.clone().find(|behind| later.contains(behind)) {
            return Found::Overwritten(behind);
        }
        if halves.any(|behind| behind != 0) {
            return Found::Nothing;
        }
        let [index, at, [n, ago], [took, waited]] = atoms.map(|atom| atom.map(|half| half as u32));
        let word = |[low, high]: [u32; 2]| u64::from(low) | u64::from(high) << 32;
        Found::Record(Record { index: word(index), n, at: word(at), ago, took, waited })
    }
}

/// Where a reader is in a trace ring.
#[cfg(not(target_arch = "nvptx64"))]
#[derive(Clone, Copy, Debug, Default)]
pub struct TraceCursor {
    next: u32,
    lost: u64,
}

#[cfg(not(target_arch = "nvptx64"))]
impl TraceCursor {
    /// The next record, if it is there. If it was overwritten, the oldest that is likely to stay for a moment: an eighth of the ring
    /// is left to the writer. None also if what is found was overwritten again and again.
    #[inline]
    pub fn next(&mut self, ring: &TraceRing) -> Option<Record> {
        for _ in 0..MOST_SKIPS {
            match ring.read(self.next) {
                Found::Nothing => return None,
                Found::Record(record) => {
                    self.next = self.next.wrapping_add(1);
                    return Some(record);
                }
                Found::Overwritten(behind) => {
                    // The newest that is known is `behind` ahead, and one ring of records lies before the one that follows it.
                    let kept = ring.records.saturating_sub(ring.records / 8 + 1);
                    let skipped = behind.saturating_sub(kept).max(1);
                    self.next = self.next.wrapping_add(skipped);
                    self.lost = self.lost.saturating_add(skipped.into());
                }
            }
        }
        None
    }

    /// Records that were overwritten before they were read; if a reader comes back after 2^32 records or more, 2^32 fewer for each
    /// so many.
    pub fn lost(&self) -> u64 {
        self.lost
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::vec::Vec;

    struct Memory(Vec<Atom>);

    impl Memory {
        fn new(records: u32) -> Memory {
            Memory((0..bytes_of(records) / 16).map(|_| Atom::new([0, 0])).collect())
        }

        fn ring(&self, records: u32) -> TraceRing {
            // SAFETY: it is that long, and stays as long as the test.
            unsafe { TraceRing::from_raw(NonNull::from(&self.0[..]).cast(), records) }
        }
    }

    fn record(k: u64) -> Record {
        let small = k as u32;
        Record {
            index: k << 33 | k,
            n: small + 1,
            at: u64::MAX - k,
            ago: small + 2,
            took: small + 3,
            waited: !small,
        }
    }

    #[test]
    fn ends_are_words() {
        for (index, end, following) in [(0, 0, 0), (u32::MAX, 1, 2), (7, u16::MAX, u16::MAX)] {
            let of = OfEnd { index, end, following };
            assert_eq!(OfEnd::from_word(of.to_word()), of);
        }
    }

    #[test]
    fn records_come_back_whole_and_in_order() {
        let memory = Memory::new(8);
        let (ring, mut cursor) = (memory.ring(8), TraceCursor::default());
        assert_eq!(cursor.next(&ring), None);
        for k in 0..100 {
            ring.write(k, record(k.into()));
            if k % 7 == 6 {
                for back in k - 6..=k {
                    assert_eq!(cursor.next(&ring), Some(record(back.into())), "{back}");
                }
                assert_eq!(cursor.next(&ring), None);
            }
        }
        assert_eq!(cursor.lost(), 0);
    }

    #[test]
    fn what_is_overwritten_is_counted_and_what_is_read_is_what_was_written() {
        for (records, written) in [(1, 5), (8, 9), (8, 8), (16, 1000)] {
            let memory = Memory::new(records);
            let (ring, mut cursor) = (memory.ring(records), TraceCursor::default());
            (0..written).for_each(|k| ring.write(k, record(k.into())));
            let read: Vec<Record> = core::iter::from_fn(|| cursor.next(&ring)).collect();
            let first = written - read.len() as u32;
            let expected: Vec<Record> = (first..written).map(|k| record(k.into())).collect();
            assert_eq!(read, expected, "{records} of {written}");
            assert_eq!(cursor.lost(), u64::from(first), "{records} of {written}");
            assert!(read.len() as u32 >= (records - records / 8).min(written), "{records}");
        }
    }

    #[test]
    fn a_record_half_written_is_not_there_and_one_half_overwritten_is_lost() {
        let memory = Memory::new(2);
        let ring = memory.ring(2);
        ring.write(0, record(0));
        for k in 0..ATOMS {
            let before = ring.atom(0, k).load();
            for half in 0..2 {
                let with = |word: u64| {
                    let mut words = before;
                    words[half] = word;
                    ring.atom(0, k).store(words);
                };
                with(0);
                assert_eq!(ring.read(0), Found::Nothing, "{k} {half}");
                with(u64::from(stamp(2)) << 32 | 1);
                assert_eq!(ring.read(0), Found::Overwritten(2), "{k} {half}");
            }
            ring.atom(0, k).store(before);
        }
        assert_eq!(ring.read(0), Found::Record(record(0)));
    }

    #[test]
    fn positions_come_round() {
        let memory = Memory::new(4);
        let ring = memory.ring(4);
        let mut cursor = TraceCursor { next: u32::MAX - 1, lost: 0 };
        for k in 0..6u32 {
            ring.write((u32::MAX - 1).wrapping_add(k), record(k.into()));
            assert_eq!(cursor.next(&ring), Some(record(k.into())), "{k}");
        }
        assert_eq!((cursor.lost(), cursor.next), (0, 4));
    }

    #[test]
    fn a_reader_that_comes_late_finds_what_is_there_however_much_was_written() {
        let most = if cfg!(miri) { 32 } else { 1024 };
        for records in [1, 16, most] {
            let memory = Memory::new(records);
            let ring = memory.ring(records);
            for end in [1 << 31, (1 << 31) + 77, 3 << 30, u32::MAX - OLDER_ROUNDS * records] {
                (end - records..end).for_each(|k| ring.write(k, record(k.into())));
                let mut cursor = TraceCursor::default();
                let read: Vec<Record> = core::iter::from_fn(|| cursor.next(&ring)).collect();
                let first = end - read.len() as u32;
                let expected: Vec<Record> = (first..end).map(|k| record(k.into())).collect();
                assert_eq!(read, expected, "{records} records, the last {end}");
                assert!(read.len() as u32 >= records - records / 8, "{records} {end}");
                assert_eq!(cursor.lost(), u64::from(first), "{records} {end}");
            }
        }
    }

    #[test]
    fn stamps_that_lead_round_and_round_keep_no_reader() {
        let memory = Memory::new(4);
        let ring = memory.ring(4);
        for slot in 0..4 {
            let stamp = u64::from((slot + 1) << 30) << 32;
            (0..ATOMS).for_each(|k| ring.atom(slot, k).store([stamp; 2]));
        }
        let mut cursor = TraceCursor::default();
        let found = (0..10).filter(|_| cursor.next(&ring).is_some()).count();
        assert!(found <= 4, "{found}");
    }

    #[test]
    fn what_is_read_while_it_is_overwritten_is_whole_or_lost() {
        let n: u32 = if cfg!(miri) { 200 } else { 200_000 };
        let memory = Memory::new(4);
        let (ring, mut cursor) = (memory.ring(4), TraceCursor::default());
        std::thread::scope(|scope| {
            scope.spawn(move || (0..n).for_each(|k| ring.write(k, record(k.into()))));
            let mut read = 0;
            while read + cursor.lost() < n.into() {
                let Some(found) = cursor.next(&ring) else {
                    std::thread::yield_now();
                    continue;
                };
                assert_eq!(found, record(read + cursor.lost()));
                read += 1;
            }
        });
        assert_eq!(cursor.next(&ring), None);
    }
}
