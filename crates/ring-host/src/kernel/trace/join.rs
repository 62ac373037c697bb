//! The records of a channel's sender, device and receiver put together, message by message.

use super::clock::{DeviceClock, Handled, HostTimes, Measured};
use super::times::DeviceTimes;
use ring_shared::ring::MAX_CAPACITY;
use ring_shared::trace::{Record, TraceCursor, TraceRing};
use std::collections::{BTreeMap, VecDeque};
use std::iter::from_fn;

/// Received messages whose other records are waited for, at most, in records of the ring: then the oldest is told without them.
const MOST_WAITING: usize = 4;

/// The records of one channel.
#[derive(Debug)]
pub(super) struct Joined {
    rings: [TraceRing; 3],
    cursors: [TraceCursor; 3],
    sent: VecDeque<Record>,
    /// By the index of the first message.
    handled: BTreeMap<u64, Record>,
    received: VecDeque<Received>,
}

/// A record of the receiver.
#[derive(Clone, Copy, Debug)]
struct Received {
    record: Record,
    /// Records of sender and device that were lost before it was read.
    lost: [u64; 2],
}

/// Whether messages of a record are among those that another one tells of.
fn has(record: &Record, index: u64) -> bool {
    index.wrapping_sub(record.index) < u64::from(record.n)
}

impl Joined {
    /// Of the rings of sender, device and receiver.
    pub fn new(rings: [TraceRing; 3]) -> Joined {
        let (sent, received) = (VecDeque::new(), VecDeque::new());
        Joined { rings, cursors: Default::default(), sent, handled: BTreeMap::new(), received }
    }

    /// Records that were overwritten before they were read: of sender, device and receiver.
    pub fn lost(&self) -> [u64; 3] {
        self.cursors.each_ref().map(TraceCursor::lost)
    }

    /// Tells of each message that is known to be received: its index, when it was accepted, what the device did, when it was received. If it
    /// is `over`, nothing more is waited for.
    pub fn read(
        &mut self,
        ticks: Measured,
        clock: &mut DeviceClock,
        over: bool,
        mut tell: impl FnMut(u64, Option<i64>, Option<DeviceTimes>, i64),
    ) {
        // Receivers first: what they note comes last, so the other records are there by now, or were lost, or are being written.
        let before = [self.cursors[0].lost(), self.cursors[1].lost()];
        self.received.extend(
            rest(&mut self.cursors[2], &self.rings[2])
                .map(|record| Received { record, lost: before }),
        );
        self.sent.extend(rest(&mut self.cursors[0], &self.rings[0]));
        let handled = rest(&mut self.cursors[1], &self.rings[1]);
        self.handled.extend(handled.map(|record| (record.index, record)));
        while self.handled.len() > MAX_CAPACITY as usize {
            self.handled.pop_last(); // which can be no message's, whatever the device says
        }
        let lost = [self.cursors[0].lost(), self.cursors[1].lost()];
        let most = self.rings[2].records() as usize * MOST_WAITING;
        loop {
            let waiting = self.received.len();
            let Some(Received { record, lost: then }) = self.received.front_mut() else { return };
            if record.n == 0 {
                self.received.pop_front();
                continue;
            }
            let may_wait = !over && waiting <= most;
            let waits = [0, 1].map(|k| may_wait && lost[k] == then[k]);
            let (index, at) = (record.index, record.at as i64);
            while self.sent.front().is_some_and(|sent| behind(sent, index)) {
                self.sent.pop_front();
            }
            while let Some(first) =
                self.handled.first_entry().filter(|one| behind(one.get(), index))
            {
                first.remove();
            }
            let sent = self.sent.front().filter(|sent| has(sent, index));
            let handled = self.handled.first_key_value().map(|(_, handled)| handled);
            let handled = handled.filter(|handled| has(handled, index));
            if (sent.is_none() && waits[0]) || (handled.is_none() && waits[1]) {
                return;
            }
            let accepted = sent.map(|sent| sent.at as i64);
            let device = handled.and_then(|handled| times(handled, ticks, clock, accepted, at));
            (record.index, record.n) = (index.wrapping_add(1), record.n - 1);
            tell(index, accepted, device, at);
        }
    }
}

/// The records that are there and were not read yet: no more than the ring has, so that no writer keeps its reader.
fn rest(cursor: &mut TraceCursor, ring: &TraceRing) -> impl Iterator<Item = Record> {
    from_fn(|| cursor.next(ring)).take(ring.records() as usize)
}

/// Whether all of a record's messages come before message `index`.
fn behind(record: &Record, index: u64) -> bool {
    record.index.wrapping_add(record.n.into()) <= index
}

/// When the device did what it did, after the clock has learnt from it.
fn times(
    record: &Record,
    ticks: Measured,
    clock: &mut DeviceClock,
    accepted: Option<i64>,
    received: i64,
) -> Option<DeviceTimes> {
    let handled = Handled::of(record, ticks);
    clock.learn(accepted, handled, received);
    let HostTimes { unseen, began, ended, error } = clock.times(&handled)?;
    Some(DeviceTimes { unseen, began, ended, error, together: record.n, first: record.index })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Ticks;
    use ring_shared::atomics::Atom;
    use ring_shared::trace::bytes_of;
    use std::ptr::NonNull;

    const RECORDS: u32 = 1024;

    /// The memory of the three rings, how many records each has, and what is put together of them.
    struct Rig {
        memory: [Vec<Atom>; 3],
        written: [u32; 3],
        joined: Joined,
    }

    impl Rig {
        fn new() -> Rig {
            let atoms = bytes_of(RECORDS) / size_of::<Atom>();
            let memory = [(); 3].map(|()| (0..atoms).map(|_| Atom::new([0; 2])).collect());
            let joined =
                Joined::new(memory.each_ref().map(|memory: &Vec<Atom>| Self::ring(memory)));
            Rig { memory, written: [0; 3], joined }
        }

        fn ring(memory: &[Atom]) -> TraceRing {
            // SAFETY: it is that long, zero, and stays as long as the rig.
            unsafe { TraceRing::from_raw(NonNull::from(memory).cast(), RECORDS) }
        }

        /// Sender, device or receiver notes that a message went at a time.
        fn note(&mut self, who: usize, index: u64, at: u64) {
            let record = Record { index, n: 1, at, ..Record::default() };
            Self::ring(&self.memory[who]).write(self.written[who], record);
            self.written[who] = self.written[who].wrapping_add(1);
        }

        /// What is told: indices, when they were accepted, and whether the device's record was there.
        fn read(&mut self, over: bool) -> Vec<(u64, Option<i64>, bool)> {
            let (mut told, mut clock) = (Vec::new(), DeviceClock::of(Ticks::Time));
            self.joined.read(Measured::TIME, &mut clock, over, |index, accepted, device, _| {
                told.push((index, accepted, device.is_some()));
            });
            told
        }
    }

    #[test]
    fn a_message_waits_for_its_records_and_those_behind_it_for_it() {
        let mut rig = Rig::new();
        for index in 0..3 {
            rig.note(0, index, 100 * index);
            rig.note(2, index, 100 * index + 90);
        }
        rig.note(1, 2, 250);
        rig.note(1, 0, 50);
        assert_eq!(rig.read(false), [(0, Some(0), true)]);
        assert_eq!(rig.read(false), []);
        rig.note(1, 1, 150);
        assert_eq!(rig.read(false), [(1, Some(100), true), (2, Some(200), true)]);
        rig.note(2, 3, 390);
        assert_eq!(rig.read(false), []);
        assert_eq!(rig.read(true), [(3, None, false)]);
    }

    /// A device's thread may be kept from noting what it has handled.
    #[test]
    fn where_ticks_are_time_it_does_not_matter_when_the_device_has_noted_a_message() {
        let (mut rig, mut clock, mut told) = (Rig::new(), DeviceClock::of(Ticks::Time), Vec::new());
        for (index, sent) in [(0, 1_000), (1, 20_000_000)] {
            let ago = 19_000_000 * index as u32;
            rig.note(0, index, sent);
            let at = sent + 5_000 + u64::from(ago);
            let device = Record { index, n: 1, at, ago, took: 300, waited: 0 };
            Rig::ring(&rig.memory[1]).write(index as u32, device);
            rig.note(2, index, sent + 6_000);
            rig.joined.read(Measured::TIME, &mut clock, false, |_, accepted, device, received| {
                told.push((accepted.unwrap(), device.unwrap(), received));
            });
        }
        assert_eq!(told.len(), 2);
        for (accepted, device, received) in told {
            let times = [accepted, device.began, device.ended, received];
            assert!(times.is_sorted() && device.error < 3_500, "{times:?} {device:?}");
        }
    }

    #[test]
    fn what_a_device_notes_of_messages_that_are_not_there_has_a_limit() {
        let mut rig = Rig::new();
        let mut index = u64::MAX / 2;
        for _ in 0..MAX_CAPACITY / RECORDS + 2 {
            for _ in 0..RECORDS {
                rig.note(1, index, 0);
                index -= 1;
            }
            assert_eq!(rig.read(false), []);
        }
        assert_eq!(rig.joined.handled.len(), MAX_CAPACITY as usize);
        // One that is there is still told.
        rig.note(0, 7, 10);
        rig.note(1, 7, 20);
        rig.note(2, 7, 30);
        assert_eq!(rig.read(false), [(7, Some(10), true)]);
    }
}
