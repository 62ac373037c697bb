//! Traces in Perfetto's format.

mod format;
#[cfg(test)]
mod tests;

use super::times::{DeviceTimes, MessageTimes};
use format::{
    DebugAnnotation, EXPLICIT, EventType, NO_MERGE, PACKET_KEY, STATE_CLEARED, TracePacket,
    TrackDescriptor, TrackEvent,
};
use prost::Message as _;
use std::io::{self, Write};

/// What is added to all times, in nanoseconds: the format has none before 0.
const OFFSET: i64 = 1_000_000_000;

/// Who writes, as the format counts writers.
const SEQUENCE: u32 = 1;

/// Messages that are kept until the event that they share is written, at most: how many a batch has is the device's word.
const MOST_KEPT: usize = 4096;

/// Tracks for what a channel's device does at a time, at most.
const MOST_LANES: usize = 64;

/// The place of the track for what was received, behind those of the device.
const LAST: i32 = i32::MAX;

/// Writes what a [`Trace`](super::Trace) tells in Perfetto's format, for <https://ui.perfetto.dev> and its trace processor.
///
/// Each channel has the tracks `host sends`, `device 0`, `device 1` and so on, and `host receives`. On the first and the last is an instant for each
/// message, or for those of the same moment, between them a slice for each batch that the device handled together, on the first track of the
/// device where nothing else went on. Names say of how many messages an event is, if of several: `handle 32`; and `message` which is their first.
/// Arrows lead from send to slice to receive, one for each message. A slice says by `error_ns` how far its times may be off, and by `waited_ns`
/// how long its messages waited at most.
///
/// Of more than 4096 messages there are several events at the same time. Of more than 64 slices at a time some begin when another has ended, and
/// say by `moved_ns` how much later that is.
///
/// The trace's [epoch](super::Trace::epoch) is at 1 s, and what was more than a second before it is at 0. A writer that is slow at
/// small pieces, as a file is, is to be buffered.
///
/// The last events of each channel are written by [`finish`](TraceFile::finish): without it they are missing. After an error so may be others.
///
/// ```
/// # use ring_host::{Device, LaunchConfig, Runtime, TraceFile};
/// # use std::time::Duration;
/// # let second = Duration::from_secs(1);
/// ring_device::ring_kernel! {
///     /// Squares a number.
///     pub struct Square { traced: true, }
///
///     fn handle(request: &u64) -> u64 {
///         request.wrapping_mul(*request)
///     }
/// }
/// let launch = LaunchConfig::default().trace(1024);
/// let mut kernel = Runtime::open(Device::Cpu)?.launch::<Square>(launch)?;
/// let mut trace = kernel.trace().expect("it was asked for");
/// let mut file = TraceFile::new(Vec::new())?;
/// let square = file.kernel("Square", 1)?;
/// kernel.activate(second)?;
/// kernel.send(7, second)?;
/// assert_eq!(kernel.recv(second)?, 49);
/// kernel.terminate(second)?;
/// let mut written = Ok(());
/// trace.read(|message| {
///     if written.is_ok() {
///         written = file.message(square, &message);
///     }
/// });
/// written?;
/// let bytes = file.finish()?;
/// assert!(!bytes.is_empty()); // to be saved as square.pftrace
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct TraceFile<W> {
    packets: Packets<W>,
    kernels: Vec<Vec<ChannelTracks>>,
    /// Messages so far: each has a flow of its own.
    flows: u64,
}

/// A kernel that a [`TraceFile`] has tracks of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TracedKernel(usize);

impl<W: Write> TraceFile<W> {
    /// Begins a trace without kernels.
    ///
    /// # Errors
    /// The writer's.
    pub fn new(writer: W) -> io::Result<TraceFile<W>> {
        let mut packets = Packets { writer, buffer: Vec::new(), tracks: 0 };
        packets.write(TracePacket {
            sequence_flags: Some(STATE_CLEARED),
            first_packet_on_sequence: Some(true),
            ..TracePacket::default()
        })?;
        Ok(TraceFile { packets, kernels: Vec::new(), flows: 0 })
    }

    /// Adds the tracks of a kernel of so many channels. Kernels may have the same name.
    ///
    /// # Errors
    /// The writer's.
    pub fn kernel(&mut self, name: &str, channels: u32) -> io::Result<TracedKernel> {
        let packets = &mut self.packets;
        let kernel = packets.track(name.to_owned(), None, rank(self.kernels.len()))?;
        let channels = (0..channels as usize).map(|channel| {
            let track = packets.track(format!("channel {channel}"), Some(kernel), rank(channel))?;
            let sent = packets.track("host sends".to_owned(), Some(track), 0)?;
            let received = packets.track("host receives".to_owned(), Some(track), LAST)?;
            Ok(ChannelTracks {
                track,
                sent: Instants { track: sent, name: "send", end_flows: false, kept: None },
                received: Instants {
                    track: received,
                    name: "receive",
                    end_flows: true,
                    kept: None,
                },
                lanes: Vec::new(),
                batch: None,
            })
        });
        self.kernels.push(channels.collect::<io::Result<_>>()?);
        Ok(TracedKernel(self.kernels.len() - 1))
    }

    /// Adds a message. Those of a channel are to come in order, as [`Trace::read`](super::Trace::read) tells them.
    ///
    /// # Errors
    /// The writer's, or [`InvalidInput`](io::ErrorKind::InvalidInput) if the kernel has no such channel.
    pub fn message(&mut self, kernel: TracedKernel, times: &MessageTimes) -> io::Result<()> {
        let channels = self.kernels.get_mut(kernel.0);
        let channels = channels.map(Vec::as_mut_slice).unwrap_or_default();
        let known = channels.len();
        let Some(channel) = channels.get_mut(times.channel as usize) else {
            let said =
                format!("a message of channel {} of a kernel with {known} channels", times.channel);
            return Err(io::Error::new(io::ErrorKind::InvalidInput, said));
        };
        self.flows += 1;
        channel.message(&mut self.packets, times, self.flows)
    }

    /// Writes what is still kept, flushes the writer and gives it back.
    ///
    /// # Errors
    /// The writer's.
    pub fn finish(mut self) -> io::Result<W> {
        for channel in self.kernels.iter_mut().flatten() {
            channel.write_batch(&mut self.packets)?;
            channel.sent.write(&mut self.packets)?;
            channel.received.write(&mut self.packets)?;
        }
        self.packets.writer.flush()?;
        Ok(self.packets.writer)
    }
}

/// A channel's tracks, and what is not written yet.
#[derive(Debug)]
struct ChannelTracks {
    track: u64,
    sent: Instants,
    received: Instants,
    lanes: Vec<Lane>,
    batch: Option<Batch>,
}

/// A track of instants. Those of the same moment would lie within each other, and not deeper than the trace processor allows: so they are one.
#[derive(Debug)]
struct Instants {
    track: u64,
    name: &'static str,
    /// Whether flows end there.
    end_flows: bool,
    kept: Option<Moment>,
}

/// Messages of the same moment, of which more may come.
#[derive(Debug)]
struct Moment {
    at: u64,
    first: u64,
    messages: usize,
    flows: Vec<u64>,
}

impl Instants {
    fn add<W: Write>(
        &mut self,
        packets: &mut Packets<W>,
        at: u64,
        index: u64,
        flow: Option<u64>,
    ) -> io::Result<()> {
        if self.kept.as_ref().is_some_and(|kept| kept.at != at || kept.messages >= MOST_KEPT) {
            self.write(packets)?;
        }
        let new = || Moment { at, first: index, messages: 0, flows: Vec::new() };
        let kept = self.kept.get_or_insert_with(new);
        kept.messages += 1;
        kept.flows.extend(flow);
        Ok(())
    }

    fn write<W: Write>(&mut self, packets: &mut Packets<W>) -> io::Result<()> {
        let Some(Moment { at, first, messages, flows }) = self.kept.take() else { return Ok(()) };
        let (flow_ids, terminating_flow_ids) =
            if self.end_flows { (Vec::new(), flows) } else { (flows, Vec::new()) };
        let event = TrackEvent {
            r#type: Some(EventType::Instant.into()),
            name: Some(name(self.name, messages)),
            track_uuid: Some(self.track),
            debug_annotations: vec![note("message", first as i64)],
            flow_ids,
            terminating_flow_ids,
        };
        packets.event(at, event)
    }
}

/// A track of the device.
#[derive(Debug)]
struct Lane {
    track: u64,
    /// When its last slice ends.
    ended: u64,
}

/// Messages that were handled together, of which more may come.
#[derive(Debug)]
struct Batch {
    /// What the last of them says: its times are the least off.
    device: DeviceTimes,
    /// Messages so far, written or not.
    told: u32,
    /// Those that are not written.
    kept: Vec<Kept>,
}

/// A message that is written with its batch's slice.
#[derive(Clone, Copy, Debug)]
struct Kept {
    index: u64,
    flow: u64,
    received: u64,
}

impl Batch {
    /// Whether a message is one of them.
    fn has(&self, device: &DeviceTimes) -> bool {
        !self.is_complete()
            && (self.device.first, self.device.together) == (device.first, device.together)
    }

    fn is_complete(&self) -> bool {
        self.told >= self.device.together
    }
}

impl ChannelTracks {
    fn message<W: Write>(
        &mut self,
        packets: &mut Packets<W>,
        times: &MessageTimes,
        flow: u64,
    ) -> io::Result<()> {
        let index = times.index;
        let is_of = |batch: &Batch| times.device.is_none_or(|device| batch.has(&device));
        if !self.batch.as_ref().is_none_or(is_of) {
            self.write_batch(packets)?;
        }
        if let Some(accepted) = times.accepted {
            self.sent.add(packets, timestamp(accepted), index, Some(flow))?;
        }
        let received = timestamp(times.received);
        let Some(device) = times.device else {
            // A flow that nothing begins must not end.
            let flow = times.accepted.map(|_| flow);
            return self.add_received(packets, received, index, flow);
        };
        let batch = self.batch.get_or_insert_with(|| {
            let kept = Vec::new();
            Batch { device, told: 0, kept }
        });
        batch.device = device;
        batch.told = batch.told.saturating_add(1);
        batch.kept.push(Kept { index, flow, received });
        if batch.is_complete() {
            self.write_batch(packets)
        } else if batch.kept.len() >= MOST_KEPT {
            self.write_kept(packets)
        } else {
            Ok(())
        }
    }

    /// Writes the rest of the batch: no more of it comes.
    fn write_batch<W: Write>(&mut self, packets: &mut Packets<W>) -> io::Result<()> {
        self.write_kept(packets)?;
        self.batch = None;
        Ok(())
    }

    /// Writes a slice for what is kept of the batch.
    fn write_kept<W: Write>(&mut self, packets: &mut Packets<W>) -> io::Result<()> {
        let Some(batch) = &mut self.batch else { return Ok(()) };
        let (device, kept) = (batch.device, std::mem::take(&mut batch.kept));
        let Some(first) = kept.first() else { return Ok(()) };
        let wanted = timestamp(device.began);
        let lane = self.lane(packets, wanted)?;
        let began = wanted.max(lane.ended);
        let ended = timestamp(device.ended).max(began);
        lane.ended = ended;
        let mut notes = vec![
            note("message", first.index as i64),
            note("error_ns", device.error),
            note("waited_ns", device.began.saturating_sub(device.unseen)),
        ];
        if began > wanted {
            notes.push(note("moved_ns", (began - wanted) as i64));
        }
        let event = |kind| TrackEvent {
            r#type: Some(EventType::into(kind)),
            track_uuid: Some(lane.track),
            ..TrackEvent::default()
        };
        let begin = TrackEvent {
            name: Some(name("handle", device.together as usize)),
            debug_annotations: notes,
            flow_ids: kept.iter().map(|message| message.flow).collect(),
            ..event(EventType::SliceBegin)
        };
        let end = event(EventType::SliceEnd);
        self.write_sent(packets, began)?;
        packets.event(began, begin)?;
        packets.event(ended, end)?;
        let mut kept = kept.into_iter();
        kept.try_for_each(|Kept { index, flow, received }| {
            self.add_received(packets, received, index, Some(flow))
        })
    }

    fn add_received<W: Write>(
        &mut self,
        packets: &mut Packets<W>,
        at: u64,
        index: u64,
        flow: Option<u64>,
    ) -> io::Result<()> {
        self.write_sent(packets, at)?;
        self.received.add(packets, at, index, flow)
    }

    /// Writes what is kept of sends before an event at that moment that they may lead to: where times are equal, Perfetto goes by the order in
    /// the file.
    fn write_sent<W: Write>(&mut self, packets: &mut Packets<W>, before: u64) -> io::Result<()> {
        match &self.sent.kept {
            Some(kept) if kept.at >= before => self.sent.write(packets),
            _ => Ok(()),
        }
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
                    packets.track(format!("device {lane}"), Some(self.track), rank(lane + 1))?;
                self.lanes.push(Lane { track, ended: 0 });
                lane
            }
        };
        Ok(&mut self.lanes[lane])
    }
}

/// Writes packets.
#[derive(Debug)]
struct Packets<W> {
    writer: W,
    /// The packet that is being written, kept for its memory.
    buffer: Vec<u8>,
    /// Tracks so far, which are numbered from 1 on.
    tracks: u64,
}

impl<W: Write> Packets<W> {
    fn write(&mut self, packet: TracePacket) -> io::Result<()> {
        let packet = TracePacket { trusted_packet_sequence_id: Some(SEQUENCE), ..packet };
        self.buffer.clear();
        self.buffer.push(PACKET_KEY);
        packet.encode_length_delimited(&mut self.buffer).map_err(io::Error::other)?;
        self.writer.write_all(&self.buffer)
    }

    /// Adds a track, at place `rank` below its parent.
    fn track(&mut self, name: String, parent_uuid: Option<u64>, rank: i32) -> io::Result<u64> {
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

    fn event(&mut self, timestamp: u64, event: TrackEvent) -> io::Result<()> {
        self.write(TracePacket {
            timestamp: Some(timestamp),
            track_event: Some(event),
            ..TracePacket::default()
        })
    }
}

/// What an event of so many messages is called.
fn name(what: &str, messages: usize) -> String {
    if messages > 1 { format!("{what} {messages}") } else { what.to_owned() }
}

fn note(name: &str, value: i64) -> DebugAnnotation {
    DebugAnnotation { name: Some(name.to_owned()), int_value: Some(value) }
}

/// A time of a trace as the format has it.
fn timestamp(time: i64) -> u64 {
    u64::try_from(time.saturating_add(OFFSET)).unwrap_or(0)
}

fn rank(place: usize) -> i32 {
    i32::try_from(place).unwrap_or(LAST)
}
