//! Tracks of what a channel's device does: it handles messages, and sometimes others at the same time.

use super::format::{EventType, TrackEvent};
use super::packets::{Packets, name, note, rank, timestamp};
use std::io::{self, Write};

/// Tracks for what a channel's device does at a time, at most.
pub(super) const MOST_LANES: usize = 64;

/// A channel's track, and below it those of its device.
#[derive(Debug)]
pub(super) struct Lanes {
    /// The channel's track.
    pub channel: u64,
    lanes: Vec<Lane>,
}

/// A track of the device.
#[derive(Debug)]
struct Lane {
    track: u64,
    /// When its last slice ends.
    ended: u64,
}

/// Messages that were handled together.
#[derive(Debug)]
pub(super) struct Slice {
    /// The first of them.
    pub first: u64,
    /// How many there are.
    pub n: u32,
    pub unseen: i64,
    pub began: i64,
    pub ended: i64,
    pub error: i64,
    /// Messages that were emitted for them, if they can be told.
    pub emitted: Option<u64>,
    /// Flows that begin or go on.
    pub flows: Vec<u64>,
    /// Flows that end.
    pub ends: Vec<u64>,
}

impl Lanes {
    /// Adds the track of a channel below that of its kernel.
    pub fn new<W: Write>(
        packets: &mut Packets<W>,
        kernel: u64,
        channel: usize,
    ) -> io::Result<Lanes> {
        let channel = packets.track(format!("channel {channel}"), kernel, rank(channel))?;
        Ok(Lanes { channel, lanes: Vec::new() })
    }

    /// Writes a slice on the first track where it overlaps none; if there is none, on the one that is free first, and as of then.
    pub fn write<W: Write>(&mut self, packets: &mut Packets<W>, slice: Slice) -> io::Result<()> {
        let wanted = timestamp(slice.began);
        let lane = self.lane(packets, wanted)?;
        let began = wanted.max(lane.ended);
        let ended = timestamp(slice.ended).max(began);
        lane.ended = ended;
        let mut notes = vec![
            note("message", slice.first as i64),
            note("error_ns", slice.error),
            note("waited_ns", slice.began.saturating_sub(slice.unseen)),
        ];
        notes.extend(slice.emitted.map(|emitted| note("emitted", emitted as i64)));
        if began > wanted {
            notes.push(note("moved_ns", (began - wanted) as i64));
        }
        let event = |kind| TrackEvent {
            r#type: Some(EventType::into(kind)),
            track_uuid: Some(lane.track),
            ..TrackEvent::default()
        };
        let begin = TrackEvent {
            name: Some(name("handle", slice.n as usize)),
            debug_annotations: notes,
            flow_ids: slice.flows,
            terminating_flow_ids: slice.ends,
            ..event(EventType::SliceBegin)
        };
        let end = event(EventType::SliceEnd);
        packets.event(began, begin)?;
        packets.event(ended, end)
    }

    /// The track for a slice that begins then: slices of one track must not overlap. If there are too many, it is the one that is free first.
    fn lane<W: Write>(&mut self, packets: &mut Packets<W>, began: u64) -> io::Result<&mut Lane> {
        let lanes = self.lanes.iter().enumerate();
        let is_free = |lane: &Lane| lane.ended <= began;
        let free = lanes.clone().find(|(_, lane)| is_free(lane));
        let free = free.or_else(|| {
            lanes.min_by_key(|(_, lane)| lane.ended).filter(|_| self.lanes.len() >= MOST_LANES)
        });
        let lane = match free {
            Some((lane, _)) => lane,
            None => {
                let lane = self.lanes.len();
                let track =
                    packets.track(format!("device {lane}"), self.channel, rank(lane + 1))?;
                self.lanes.push(Lane { track, ended: 0 });
                lane
            }
        };
        Ok(&mut self.lanes[lane])
    }
}
