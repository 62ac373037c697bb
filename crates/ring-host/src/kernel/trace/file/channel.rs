//! The tracks of a channel that the host sends to and receives from, and its messages, which come in order.

use super::instants::Instants;
use super::lanes::{Lanes, Slice};
use super::packets::{MOST_KEPT, Packets, timestamp};
use crate::kernel::trace::times::{DeviceTimes, MessageTimes};
use std::io::{self, Write};

/// A channel's tracks, and what is not written yet.
#[derive(Debug)]
pub(super) struct ChannelTracks {
    pub sent: Instants,
    received: Instants,
    lanes: Lanes,
    pub batch: Option<Batch>,
}

/// Messages that were handled together, of which more may come.
#[derive(Debug)]
pub(super) struct Batch {
    /// What the last of them says: its times are the least off.
    device: DeviceTimes,
    /// Messages so far, written or not.
    told: u32,
    /// Those that are not written.
    pub kept: Vec<Kept>,
}

/// A message that is written with its batch's slice.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kept {
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
    /// Adds the tracks of a channel below that of its kernel.
    pub fn new<W: Write>(
        packets: &mut Packets<W>,
        kernel: u64,
        channel: usize,
    ) -> io::Result<ChannelTracks> {
        let lanes = Lanes::new(packets, kernel, channel)?;
        let sent = Instants::sends(packets, lanes.channel)?;
        let received = Instants::receives(packets, lanes.channel, "host receives".to_owned())?;
        Ok(ChannelTracks { sent, received, lanes, batch: None })
    }

    pub fn message<W: Write>(
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
            self.sent.add(packets, timestamp(accepted), index, 1, [flow])?;
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

    /// Writes all that is kept.
    pub fn finish<W: Write>(&mut self, packets: &mut Packets<W>) -> io::Result<()> {
        self.write_batch(packets)?;
        self.sent.write(packets)?;
        self.received.write(packets)
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
        self.sent.write_before(packets, timestamp(device.began))?;
        let slice = Slice {
            first: first.index,
            n: device.together,
            unseen: device.unseen,
            began: device.began,
            ended: device.ended,
            error: device.error,
            emitted: None,
            flows: kept.iter().map(|message| message.flow).collect(),
            ends: Vec::new(),
        };
        self.lanes.write(packets, slice)?;
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
        self.sent.write_before(packets, at)?;
        self.received.add(packets, at, index, 1, flow)
    }
}
