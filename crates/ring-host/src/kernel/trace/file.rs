//! Traces in Perfetto's format.

mod channel;
mod format;
mod graph;
mod instants;
mod lanes;
mod packets;
#[cfg(test)]
mod tests;

use super::times::MessageTimes;
use crate::graph::trace::events::{GraphEvent, TracedNode, TracedRing};
use channel::ChannelTracks;
use graph::GraphTracks;
use packets::{Packets, invalid};
use std::io::{self, Write};

/// Writes what a [`Trace`](super::Trace) or a [`GraphTrace`](crate::GraphTrace) tells in Perfetto's format, for <https://ui.perfetto.dev> and its
/// trace processor.
///
/// # Kernels
/// Each channel has the tracks `host sends`, `device 0`, `device 1` and so on, and `host receives`. On the first and the last is an instant for each
/// message, or for those of the same moment, between them a slice for each batch that the device handled together, on the first track of the
/// device where nothing else went on. Names say of how many messages an event is, if of several: `handle 32`; and `message` which is their first.
/// Arrows lead from send to slice to receive, one for each message. A slice says by `error_ns` how far its times may be off, and by `waited_ns`
/// how long its messages waited at most.
///
/// Of more than 4096 messages there are several events at the same time. Of more than 64 slices at a time some begin when another has ended, and
/// say by `moved_ns` how much later that is.
///
/// # Graphs
/// Each channel has the tracks `device 0`, `device 1` and so on; each ring from the host adds `host sends` to the channel that reads it, and each
/// ring to the host `host receives`, with the name of its port behind that, to the channel that writes it. Events are as above, and a slice also
/// says by `emitted` how many messages were emitted for its own. Arrows lead from the event that wrote a message to the one that took it, whichever
/// kernels they are of: from send to slice, from slice to slice, from slice to receive. Of an event only the first 4096 messages that it took
/// have arrows, and the first 4096 that it wrote.
///
/// An arrow is missing if what wrote the message was not told, or has a later time than what took it. If both have the same time, that
/// which was told first counts as the earlier.
///
/// # Times
/// The trace's [epoch](super::Trace::epoch) is at 1 s, and what was more than a second before it is at 0. A writer that is slow at
/// small pieces, as a file is, is to be buffered.
///
/// The last events of each track are written by [`finish`](TraceFile::finish): without it they are missing. After an error so may be others.
///
/// # Example
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
    graphs: Vec<GraphTracks>,
    /// Messages of kernels so far: each has a flow of its own. Those of graphs have theirs from their rings.
    flows: u64,
}

/// A kernel that a [`TraceFile`] has tracks of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TracedKernel(usize);

/// A graph that a [`TraceFile`] has tracks of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TracedGraph(usize);

impl<W: Write> TraceFile<W> {
    /// Begins a trace without kernels and graphs.
    ///
    /// # Errors
    /// The writer's.
    pub fn new(writer: W) -> io::Result<TraceFile<W>> {
        let packets = Packets::new(writer)?;
        Ok(TraceFile { packets, kernels: Vec::new(), graphs: Vec::new(), flows: 0 })
    }

    /// Adds the tracks of a kernel of so many channels. Kernels may have the same name.
    ///
    /// # Errors
    /// The writer's.
    pub fn kernel(&mut self, name: &str, channels: u32) -> io::Result<TracedKernel> {
        let packets = &mut self.packets;
        let kernel = packets.kernel(name)?;
        let channels = (0..channels as usize).map(|i| ChannelTracks::new(packets, kernel, i));
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
            return Err(invalid(said));
        };
        self.flows += 1;
        channel.message(&mut self.packets, times, self.flows)
    }

    /// Adds the tracks of a graph's kernels and of its rings that the host writes or reads.
    ///
    /// # Errors
    /// The writer's, or [`InvalidInput`](io::ErrorKind::InvalidInput) if a ring is not between a channel of these kernels and another, or the
    /// host. Tracks that were written before stay, without events.
    pub fn graph(
        &mut self,
        kernels: &[TracedNode],
        rings: &[TracedRing],
    ) -> io::Result<TracedGraph> {
        let number = self.graphs.len();
        self.graphs.push(GraphTracks::new(&mut self.packets, number, kernels, rings)?);
        Ok(TracedGraph(number))
    }

    /// Adds what has happened to messages of a graph. Events may come in any order, but a channel's slices, and what the host does at a ring, are
    /// to come in order of time, as [`GraphTrace::read`](crate::GraphTrace::read) tells them: else they take more tracks and events than they need.
    ///
    /// # Errors
    /// The writer's, or [`InvalidInput`](io::ErrorKind::InvalidInput) if the graph has no such kernel, channel or ring, or the ring has
    /// another end there; then nothing is written.
    pub fn event(&mut self, graph: TracedGraph, event: &GraphEvent) -> io::Result<()> {
        let known = self.graphs.len();
        let Some(tracks) = self.graphs.get_mut(graph.0) else {
            let said = format!("an event of graph {} of a trace with {known} graphs", graph.0);
            return Err(invalid(said));
        };
        tracks.event(&mut self.packets, event)
    }

    /// Writes what is still kept, flushes the writer and gives it back.
    ///
    /// # Errors
    /// The writer's.
    pub fn finish(mut self) -> io::Result<W> {
        let packets = &mut self.packets;
        self.kernels.iter_mut().flatten().try_for_each(|channel| channel.finish(packets))?;
        self.graphs.iter_mut().try_for_each(|graph| graph.finish(packets))?;
        self.packets.finish()
    }
}
