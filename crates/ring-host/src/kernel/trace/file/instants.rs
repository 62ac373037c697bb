//! Tracks of what the host does with messages: it sends or receives them.

use super::format::{EventType, TrackEvent};
use super::packets::{LAST, MOST_KEPT, Packets, name, note};
use std::io::{self, Write};

/// A track of instants. Those of the same moment would lie within each other, and not deeper than the trace processor allows: so they are one.
#[derive(Debug)]
pub(super) struct Instants {
    track: u64,
    name: &'static str,
    /// Whether flows end there.
    end_flows: bool,
    pub kept: Option<Moment>,
}

/// Messages of the same moment, of which more may come.
#[derive(Debug)]
pub(super) struct Moment {
    at: u64,
    first: u64,
    messages: usize,
    pub flows: Vec<u64>,
}

impl Instants {
    /// Adds a track of sends below that of a channel, before all others there.
    pub fn sends<W: Write>(packets: &mut Packets<W>, channel: u64) -> io::Result<Instants> {
        let track = packets.track("host sends".to_owned(), channel, 0)?;
        Ok(Instants { track, name: "send", end_flows: false, kept: None })
    }

    /// Adds a track of receives below that of a channel, behind all others there.
    pub fn receives<W: Write>(
        packets: &mut Packets<W>,
        channel: u64,
        track: String,
    ) -> io::Result<Instants> {
        let track = packets.track(track, channel, LAST)?;
        Ok(Instants { track, name: "receive", end_flows: true, kept: None })
    }

    /// Adds `n` messages. Of their flows only the first [`MOST_KEPT`] are written.
    pub fn add<W: Write>(
        &mut self,
        packets: &mut Packets<W>,
        at: u64,
        first: u64,
        n: usize,
        flows: impl IntoIterator<Item = u64>,
    ) -> io::Result<()> {
        let has_room = |kept: &Moment| kept.messages.saturating_add(n) <= MOST_KEPT;
        if self.kept.as_ref().is_some_and(|kept| kept.at != at || !has_room(kept)) {
            self.write(packets)?;
        }
        let new = || Moment { at, first, messages: 0, flows: Vec::new() };
        let kept = self.kept.get_or_insert_with(new);
        kept.messages += n;
        kept.flows.extend(flows.into_iter().take(MOST_KEPT));
        Ok(())
    }

    /// Writes what is kept.
    pub fn write<W: Write>(&mut self, packets: &mut Packets<W>) -> io::Result<()> {
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

    /// Writes what is kept of sends before an event at that moment that they may lead to: where times are equal, Perfetto goes by the order in
    /// the file.
    pub fn write_before<W: Write>(
        &mut self,
        packets: &mut Packets<W>,
        event: u64,
    ) -> io::Result<()> {
        match &self.kept {
            Some(kept) if kept.at >= event => self.write(packets),
            _ => Ok(()),
        }
    }
}
