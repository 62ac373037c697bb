//! The records of a channel's sender, device and receiver put together, message by message.

use super::clock::{DeviceClock, Handled};
use super::times::DeviceTimes;
use ring_shared::trace::{Record, TraceCursor, TraceRing};
use std::collections::{BTreeMap, VecDeque};

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

    /// Tells of each message that is known to be received: its index, when it was accepted, what the device did, when it was received. `rate`
    /// is nanoseconds a tick. If it is `over`, nothing more is waited for.
    pub fn read(
        &mut self,
        rate: f64,
        clock: &mut DeviceClock,
        over: bool,
        mut tell: impl FnMut(u64, Option<i64>, Option<DeviceTimes>, i64),
    ) {
        // Receivers first: what they note comes last, so the other records are there by now, or were lost, or are being written.
        let before = [self.cursors[0].lost(), self.cursors[1].lost()];
        while let Some(record) = self.cursors[2].next(&self.rings[2]) {
            self.received.push_back(Received { record, lost: before });
        }
        while let Some(record) = self.cursors[0].next(&self.rings[0]) {
            self.sent.push_back(record);
        }
        while let Some(record) = self.cursors[1].next(&self.rings[1]) {
            self.handled.insert(record.index, record);
        }
        let lost = [self.cursors[0].lost(), self.cursors[1].lost()];
        let most = self.rings[2].records() as usize * MOST_WAITING;
        while let Some(Received { record, lost: then }) = self.received.front().copied() {
            let may_wait = !over && self.received.len() <= most;
            let waits = [may_wait && lost[0] == then[0], may_wait && lost[1] == then[1]];
            let received = self.received.front_mut().map(|one| &mut one.record);
            let Some(received) = received.filter(|one| one.n > 0) else {
                self.received.pop_front();
                continue;
            };
            let index = record.index;
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
            let at = record.at as i64;
            let device = handled.and_then(|handled| times(handled, rate, clock, accepted, at));
            (received.index, received.n) = (index.wrapping_add(1), received.n - 1);
            tell(index, accepted, device, at);
        }
    }
}

/// Whether all of a record's messages come before message `index`.
fn behind(record: &Record, index: u64) -> bool {
    record.index.wrapping_add(record.n.into()) <= index
}

/// When the device did what it did, after the clock has learnt from it.
fn times(
    record: &Record,
    rate: f64,
    clock: &mut DeviceClock,
    accepted: Option<i64>,
    received: i64,
) -> Option<DeviceTimes> {
    let ago = |ticks: f64| (ticks * rate) as i64;
    // What is measured in ticks is off by as much as their rate changes meanwhile.
    let off = |ticks: i64| ticks / 64;
    let [to_end, to_begin] =
        [f64::from(record.ago), f64::from(record.ago) + f64::from(record.took)].map(ago);
    let to_look = to_begin + ago(record.waited.into());
    let at = |ago: i64| (record.at as i64).wrapping_sub(ago);
    let handled =
        Handled { began: (at(to_begin), off(to_begin)), ended: (at(to_end), off(to_end)) };
    clock.learn(accepted, handled, received);
    let map = |ago: i64| clock.map(at(ago)).map(|(time, error)| (time, error + off(ago)));
    let ((unseen, _), (began, error), (ended, least)) =
        (map(to_look)?, map(to_begin)?, map(to_end)?);
    Some(DeviceTimes {
        unseen,
        began,
        ended,
        error: error.max(least),
        together: record.n,
        first: record.index,
    })
}
