//! Packets of Perfetto's format, one behind the other, and what all of them share: times, names and numbers.

use super::format::{
    DebugAnnotation, EXPLICIT, NO_MERGE, PACKET_KEY, STATE_CLEARED, TracePacket, TrackDescriptor,
    TrackEvent,
};
use prost::Message as _;
use std::io::{self, Write};

/// What is added to all times, in nanoseconds: the format has none before 0.
pub(super) const OFFSET: i64 = 1_000_000_000;

/// Who writes, as the format counts writers.
const SEQUENCE: u32 = 1;

/// Messages that are kept until the event that they share is written, and flows that begin or end at an event, at most: how many messages an
/// event has is the device's word.
pub(super) const MOST_KEPT: usize = 4096;

/// The place of a track behind all others.
pub(super) const LAST: i32 = i32::MAX;

/// Writes packets.
#[derive(Debug)]
pub(super) struct Packets<W> {
    writer: W,
    /// The packet that is being written, kept for its memory.
    buffer: Vec<u8>,
    /// Tracks so far, which are numbered from 1 on.
    tracks: u64,
    /// Kernels so far: tracks below no other.
    kernels: usize,
}

impl<W: Write> Packets<W> {
    /// Writes the first packet.
    pub fn new(writer: W) -> io::Result<Packets<W>> {
        let mut packets = Packets { writer, buffer: Vec::new(), tracks: 0, kernels: 0 };
        packets.write(TracePacket {
            sequence_flags: Some(STATE_CLEARED),
            first_packet_on_sequence: Some(true),
            ..TracePacket::default()
        })?;
        Ok(packets)
    }

    fn write(&mut self, packet: TracePacket) -> io::Result<()> {
        let packet = TracePacket { trusted_packet_sequence_id: Some(SEQUENCE), ..packet };
        self.buffer.clear();
        self.buffer.push(PACKET_KEY);
        packet.encode_length_delimited(&mut self.buffer).map_err(io::Error::other)?;
        self.writer.write_all(&self.buffer)
    }

    /// Adds a kernel's track, behind those of all kernels before it.
    pub fn kernel(&mut self, name: &str) -> io::Result<u64> {
        self.kernels += 1;
        self.add(name.to_owned(), None, rank(self.kernels - 1))
    }

    /// Adds a track, at place `rank` below its parent.
    pub fn track(&mut self, name: String, parent: u64, rank: i32) -> io::Result<u64> {
        self.add(name, Some(parent), rank)
    }

    fn add(&mut self, name: String, parent_uuid: Option<u64>, rank: i32) -> io::Result<u64> {
        self.tracks += 1;
        let track = TrackDescriptor {
            uuid: Some(self.tracks),
            name: Some(name),
            parent_uuid,
            child_ordering: Some(EXPLICIT),
            sibling_order_rank: Some(rank),
            sibling_merge_behavior: Some(NO_MERGE),
        };
        self.write(TracePacket { track_descriptor: Some(track), ..TracePacket::default() })?;
        Ok(self.tracks)
    }

    pub fn event(&mut self, timestamp: u64, event: TrackEvent) -> io::Result<()> {
        self.write(TracePacket {
            timestamp: Some(timestamp),
            track_event: Some(event),
            ..TracePacket::default()
        })
    }

    /// Flushes the writer and gives it back.
    pub fn finish(mut self) -> io::Result<W> {
        self.writer.flush()?;
        Ok(self.writer)
    }
}

/// What an event of so many messages is called.
pub(super) fn name(what: &str, messages: usize) -> String {
    if messages > 1 { format!("{what} {messages}") } else { what.to_owned() }
}

pub(super) fn note(name: &str, value: i64) -> DebugAnnotation {
    DebugAnnotation { name: Some(name.to_owned()), int_value: Some(value) }
}

/// A time of a trace as the format has it.
pub(super) fn timestamp(time: i64) -> u64 {
    u64::try_from(time.saturating_add(OFFSET)).unwrap_or(0)
}

pub(super) fn rank(place: usize) -> i32 {
    i32::try_from(place).unwrap_or(LAST)
}

/// The error of a number that is of nothing.
pub(super) fn invalid(said: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, said)
}
