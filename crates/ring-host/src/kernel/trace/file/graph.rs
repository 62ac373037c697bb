//! The tracks of a graph of kernels, and its events, which come in any order.

#[cfg(test)]
mod tests;

use super::instants::Instants;
use super::lanes::{Lanes, Slice};
use super::packets::{MOST_KEPT, Packets, invalid, timestamp};
use crate::graph::trace::events::{
    GraphEvent, HandledMessages, RingMessages, TracedNode, TracedRing,
};
use std::fmt;
use std::io::{self, Write};

/// The bit that all flows of graphs have. Flows of kernels outside of graphs are counted from 1 on, and do not come that far.
const OF_GRAPHS: u64 = 1 << 63;

/// A graph's tracks, and what is not written yet.
#[derive(Debug)]
pub(super) struct GraphTracks {
    /// For each kernel, for each channel.
    kernels: Vec<Vec<Lanes>>,
    rings: Vec<RingTracks>,
}

/// A ring's ends.
#[derive(Debug)]
struct RingTracks {
    /// What writes it.
    from: End,
    /// What reads it.
    to: End,
    /// What the flows of its messages are made of, beside their numbers.
    seed: u64,
}

/// An end of a ring.
#[derive(Debug)]
enum End {
    /// The host, with the track of what it does there.
    Host(Instants),
    /// A kernel's channel.
    Channel(usize, u32),
}

impl GraphTracks {
    /// Adds the tracks of a trace's graph number `graph`.
    pub fn new<W: Write>(
        packets: &mut Packets<W>,
        graph: usize,
        kernels: &[TracedNode],
        rings: &[TracedRing],
    ) -> io::Result<GraphTracks> {
        let kernels = kernels.iter().map(|node| {
            let kernel = packets.kernel(node.name)?;
            (0..node.channels as usize).map(|i| Lanes::new(packets, kernel, i)).collect()
        });
        let mut kernels = kernels.collect::<io::Result<Vec<Vec<Lanes>>>>()?;
        let mut track = |kernel, channel| -> io::Result<u64> {
            Ok(lanes(&mut kernels, kernel, channel)?.channel)
        };
        let known = rings.len();
        let rings = rings.iter().enumerate().map(|(i, ring)| {
            let (from, to) = match (ring.from, ring.to) {
                (None, Some((kernel, channel))) => {
                    let sends = Instants::sends(packets, track(kernel, channel)?)?;
                    (End::Host(sends), End::Channel(kernel, channel))
                }
                (Some((kernel, channel, port)), None) => {
                    let (track, name) = (track(kernel, channel)?, format!("host receives {port}"));
                    let receives = Instants::receives(packets, track, name)?;
                    (End::Channel(kernel, channel), End::Host(receives))
                }
                (Some((kernel, channel, _)), Some((reader, its_channel))) => {
                    track(kernel, channel)?;
                    track(reader, its_channel)?;
                    (End::Channel(kernel, channel), End::Channel(reader, its_channel))
                }
                (None, None) => {
                    let said = format!("ring {i} of {known} leads from the host to the host");
                    return Err(invalid(said));
                }
            };
            Ok(RingTracks { from, to, seed: mix(mix(graph as u64).wrapping_add(i as u64)) })
        });
        let rings = rings.collect::<io::Result<_>>()?;
        Ok(GraphTracks { kernels, rings })
    }

    pub fn event<W: Write>(
        &mut self,
        packets: &mut Packets<W>,
        event: &GraphEvent,
    ) -> io::Result<()> {
        let known = self.rings.len();
        match event {
            GraphEvent::Handled(handled) => self.handled(packets, handled),
            GraphEvent::Sent { messages, at } => {
                let ring = ring(&mut self.rings, messages)?;
                let flows = ring.flows(messages);
                let End::Host(sent) = &mut ring.from else {
                    return Err(wrong_end(messages, known, "written", &ring.from, "the host"));
                };
                sent.add(packets, timestamp(*at), messages.first, messages.n as usize, flows)
            }
            GraphEvent::Received { messages, at } => {
                let ring = ring(&mut self.rings, messages)?;
                let flows = ring.flows(messages);
                let End::Host(received) = &mut ring.to else {
                    return Err(wrong_end(messages, known, "read", &ring.to, "the host"));
                };
                received.add(packets, timestamp(*at), messages.first, messages.n as usize, flows)
            }
        }
    }

    fn handled<W: Write>(
        &mut self,
        packets: &mut Packets<W>,
        handled: &HandledMessages,
    ) -> io::Result<()> {
        let &HandledMessages { kernel, channel, ref taken, began, .. } = handled;
        let lanes = lanes(&mut self.kernels, kernel, channel)?;
        let here = End::Channel(kernel, channel);
        let known = self.rings.len();
        let mut flows = Vec::new();
        for emitted in &handled.emitted {
            let ring = ring(&mut self.rings, emitted)?;
            if !ring.from.is(kernel, channel) {
                return Err(wrong_end(emitted, known, "written", &ring.from, &here));
            }
            flows.extend(ring.flows(emitted).take(MOST_KEPT - flows.len()));
        }
        let ring = ring(&mut self.rings, taken)?;
        if !ring.to.is(kernel, channel) {
            return Err(wrong_end(taken, known, "read", &ring.to, &here));
        }
        if let End::Host(sent) = &mut ring.from {
            sent.write_before(packets, timestamp(began))?;
        }
        let slice = Slice {
            first: taken.first,
            n: taken.n,
            unseen: handled.unseen,
            began,
            ended: handled.ended,
            error: handled.error,
            emitted: Some(handled.emitted.iter().map(|emitted| u64::from(emitted.n)).sum()),
            flows,
            ends: ring.flows(taken).take(MOST_KEPT).collect(),
        };
        lanes.write(packets, slice)
    }

    /// Writes all that is kept.
    pub fn finish<W: Write>(&mut self, packets: &mut Packets<W>) -> io::Result<()> {
        let ends = self.rings.iter_mut().flat_map(|ring| [&mut ring.from, &mut ring.to]);
        for end in ends {
            if let End::Host(instants) = end {
                instants.write(packets)?;
            }
        }
        Ok(())
    }
}

impl RingTracks {
    /// The flow of each of its messages. Whatever tells of a message makes the same flow of it, so that none has to be remembered until the
    /// message's other end is told. They look like random numbers: of a million messages two have the same once in ten million traces, and
    /// then an arrow is wrong.
    fn flows(
        &self,
        &RingMessages { first, n, .. }: &RingMessages,
    ) -> impl Iterator<Item = u64> + use<> {
        let seed = self.seed;
        (0..u64::from(n)).map(move |i| mix(seed.wrapping_add(first.wrapping_add(i))) | OF_GRAPHS)
    }
}

impl End {
    fn is(&self, kernel: usize, channel: u32) -> bool {
        matches!(self, &End::Channel(of, number) if (of, number) == (kernel, channel))
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            End::Host(_) => f.write_str("the host"),
            End::Channel(kernel, channel) => write!(f, "channel {channel} of kernel {kernel}"),
        }
    }
}

/// The tracks of a kernel's channel.
fn lanes(kernels: &mut [Vec<Lanes>], kernel: usize, channel: u32) -> io::Result<&mut Lanes> {
    let known = kernels.len();
    let channels = kernels
        .get_mut(kernel)
        .ok_or_else(|| invalid(format!("kernel {kernel} of a graph with {known} kernels")))?;
    let known = channels.len();
    channels.get_mut(channel as usize).ok_or_else(|| {
        invalid(format!("channel {channel} of kernel {kernel}, which has {known} channels"))
    })
}

/// The ring of messages.
fn ring<'a>(
    rings: &'a mut [RingTracks],
    messages: &RingMessages,
) -> io::Result<&'a mut RingTracks> {
    let (number, known) = (messages.ring, rings.len());
    let none = || invalid(format!("messages of ring {number} of a graph with {known} rings"));
    rings.get_mut(number).ok_or_else(none)
}

/// The error if an end of a ring is told of where another end is.
fn wrong_end(
    messages: &RingMessages,
    known: usize,
    done: &str,
    end: &End,
    told: impl fmt::Display,
) -> io::Error {
    let number = messages.ring;
    invalid(format!("ring {number} of {known} is {done} by {end}, not by {told}"))
}

/// A number that looks random and is another for each `x`: the next of the generator SplitMix64 in state `x`.
fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ x >> 31
}
