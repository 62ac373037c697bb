//! What the kernels of a graph keep, of all channels at one moment at which no message lay between them, on the host and in a file.

mod file;

use self::file::Counts;
use super::builder::{GraphBuilder, Node, PortReader};
use super::handle::{Graph, Place};
use super::launched::{FedChannels, Launched};
use crate::deadline::Deadline;
use crate::error::{ControlError, RestoreError, SnapshotFileError, StateError};
use crate::kernel::snapshot::file::States;
use crate::kernel::state::StateOf;
use ring_device::{HasState, WithPorts};
use std::ops::Range;
use std::path::Path;
use std::time::Duration;

/// How long the kernels of a graph may need to go on behind a snapshot: far longer than they do.
const GOES_ON: Duration = Duration::from_secs(1);

/// The states of all kernels of a graph as they were at one moment at which it was drained: all that the host had sent was handled,
/// and no message lay on a link. By [`Graph::snapshot`]; [`Graph::restore`] gives them to another launch of the graph.
///
/// What is in it of each channel: the state; how many messages the host had [sent](Self::sent) to it, so the index of the first message that
/// the states do not know of; and how many it had [emitted](Self::emitted) to a port that the host reads.
///
/// ```
/// # use ring_host::{Device, GraphBuilder, GraphSnapshot, LaunchConfig, Runtime};
/// # use std::time::Duration;
/// ring_device::ring_kernel! {
///     /// Sums what it gets.
///     pub struct Sum {
///         ports: { SUMS: [u64; 1] },
///     }
///
///     fn handle(sum: &mut u64, request: &u64, out: &mut Ports) {
///         *sum = sum.wrapping_add(*request);
///         out.emit(Sum::SUMS, *sum);
///     }
/// }
///
/// # let second = Duration::from_secs(1);
/// # let folder = std::env::temp_dir().join(format!("ring-graph-snapshot-{}", std::process::id()));
/// # std::fs::create_dir_all(&folder)?;
/// # let path = folder.join("sum.snapshot");
/// let mut declared = GraphBuilder::new();
/// let sum = declared.kernel::<Sum>(LaunchConfig::default());
/// let sums = declared.feed(sum).read(sum, Sum::SUMS);
///
/// let host = Runtime::open(Device::Cpu)?;
/// let mut graph = host.launch_graph(&declared)?;
/// graph.activate(second)?;
/// graph.sender(sum, 0)?.send(3, second)?;
/// graph.snapshot(second)?.save(&path, 1)?; // it is active again
/// # graph.terminate(second)?;
///
/// // Later, perhaps by another process.
/// let mut graph = host.launch_graph(&declared)?;
/// let snapshot = GraphSnapshot::load(&path, 1, &declared)?;
/// assert_eq!((snapshot.sent(sum, 0), snapshot.emitted(sums, 0)), (Some(1), Some(1)));
/// graph.restore(&snapshot, second)?;
/// graph.activate(second)?;
/// let (mut numbers, mut sums) = (graph.sender(sum, 0)?, graph.receiver(sums, 0)?);
/// numbers.send(4, second)?;
/// assert_eq!(sums.recv(second)?, 7);
/// # graph.terminate(second)?;
/// # std::fs::remove_dir_all(&folder)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct GraphSnapshot {
    /// The number of the graph's declaration.
    graph: u64,
    /// The number of the launch that it is of, unless it is from a file.
    launch: Option<u64>,
    /// The names of the kernels.
    kernels: Vec<&'static str>,
    /// For each kernel.
    states: Vec<States>,
    counts: Counts,
}

/// What became of the messages that the host had sent to a channel of a graph that was lost. They are counted from the launch that
/// was lost.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct FeedLoss {
    /// The kernel.
    pub kernel: &'static str,
    /// Its channel.
    pub channel: u32,
    /// Messages that were sent.
    pub sent: u64,
    /// Messages that the states know of with which the graph was launched again.
    pub in_state: u64,
}

impl FeedLoss {
    /// Indices of the messages that the states do not know of. What they led to may have been emitted to the host.
    pub fn not_in_state(&self) -> Range<u64> {
        self.in_state..self.sent
    }
}

impl GraphSnapshot {
    /// How many messages the host had sent to that channel of a kernel that it feeds, since the launch of which this is: all of
    /// them were handled, and all that they led to. None if the host does not feed it, or there is no such channel.
    pub fn sent<K>(&self, to: Node<K>, channel: u32) -> Option<u64> {
        let counts = self.counts.sent.get(to.index).filter(|_| to.graph == self.graph)?;
        counts.get(channel as usize).copied()
    }

    /// How many messages that channel had emitted to a port that the host reads, since the launch of which this is. Those behind the
    /// ones that the host had received lay in the port's ring, and are not in the snapshot. None if there is no such channel.
    pub fn emitted<M>(&self, port: PortReader<M>, channel: u32) -> Option<u64> {
        let counts = self.counts.emitted.get(port.link).filter(|_| port.graph == self.graph)?;
        counts.get(channel as usize).copied()
    }

    /// How many messages that channel had handled, from links and from the host, since the launch of which this is. None if
    /// there is no such channel.
    pub fn handled<K>(&self, of: Node<K>, channel: u32) -> Option<u64> {
        self.of(of)?.handled.get(channel as usize).copied()
    }

    /// The state of a channel. None if there is no such channel.
    pub fn state<K: WithPorts>(&self, of: Node<K>, channel: u32) -> Option<StateOf<K>>
    where
        K::Scope: HasState<K>,
    {
        self.of(of)?.of_channel(channel).map(bytemuck::pod_read_unaligned)
    }

    fn of<K>(&self, node: Node<K>) -> Option<&States> {
        self.states.get(node.index).filter(|_| node.graph == self.graph)
    }

    /// Puts the snapshot into a file, as [`Snapshot::save`](crate::Snapshot::save) does. `version` says what the states mean, and is the
    /// caller's: it is to change with the type of any of them.
    ///
    /// # Errors
    /// When the file cannot be written, as on a full disk. What was at the path stays.
    pub fn save(&self, path: impl AsRef<Path>, version: u32) -> Result<(), SnapshotFileError> {
        file::save(path.as_ref(), version, &self.kernels, (&self.counts, &self.states))
    }

    /// A snapshot from a file, of the graph that is declared so. No more of the file is read than a snapshot of this graph may have.
    ///
    /// # Errors
    /// When it cannot be read, is none, is damaged, or is of another graph: of other kernels, another number of channels or of ports
    /// that the host reads, another version, another size of a state, or another ABI.
    pub fn load(
        path: impl AsRef<Path>,
        version: u32,
        graph: &GraphBuilder,
    ) -> Result<GraphSnapshot, SnapshotFileError> {
        let (counts, states) = file::load(path.as_ref(), version, graph)?;
        Ok(GraphSnapshot { graph: graph.id, launch: None, kernels: graph.names(), states, counts })
    }

    /// What became of what was sent, as so many messages to each channel of each kernel by a launch of a number.
    pub(super) fn losses(&self, launch: u64, sent: &[FedChannels]) -> Vec<FeedLoss> {
        let is_of_launch = self.launch == Some(launch);
        let mut losses = Vec::new();
        for fed in sent {
            for (channel, &sent) in (0..).zip(&fed.sent) {
                let known = self.counts.sent.get(fed.index);
                let known = known.and_then(|known| known.get(channel as usize));
                let in_state = known.filter(|_| is_of_launch).map_or(0, |known| sent.min(*known));
                losses.push(FeedLoss { kernel: fed.kernel, channel, sent, in_state });
            }
        }
        losses
    }

    /// Whether it has states for each channel of each kernel of a graph.
    pub(super) fn fits(&self, graph: &GraphBuilder) -> Result<(), RestoreError> {
        if self.graph != graph.id || self.states.len() != graph.members.len() {
            return Err(RestoreError::OtherGraph);
        }
        for (states, member) in self.states.iter().zip(&graph.members) {
            let (found, own) = (states.handled.len() as u32, member.channels());
            if found != own {
                let kernel = member.kernel.name();
                return Err(RestoreError::Channels { kernel, found, own });
            }
        }
        Ok(())
    }
}

impl Launched {
    /// What the kernels keep, and have taken and emitted: of a graph that is drained.
    fn snapshot(
        &self,
        graph: &GraphBuilder,
        deadline: Deadline,
    ) -> Result<GraphSnapshot, StateError> {
        let states = self.kernels.iter().map(|kernel| {
            let core = kernel.core();
            core.states(core.device.region().plan.state_bytes, deadline)
        });
        let states = states.collect::<Result<_, _>>()?;
        let taken = |index: usize| -> Vec<u64> {
            let device = &self.kernels[index].core().device;
            let plan = &device.region().plan;
            let fed = if graph.members[index].is_fed { plan.channels } else { 0 };
            (0..fed).map(|channel| device.taken(channel).wrapping_sub(plan.start)).collect()
        };
        let sent = (0..self.kernels.len()).map(taken).collect();
        let emitted = self.reads.iter().map(|read| match read {
            Some(read) => read.emitted(&self.memory[read.device]),
            None => Vec::new(),
        });
        let counts = Counts { sent, emitted: emitted.collect() };
        let (id, launch, kernels) = (graph.id, Some(self.number), graph.names());
        Ok(GraphSnapshot { graph: id, launch, kernels, states, counts })
    }

    /// Gives the channels the states of a snapshot that fits.
    pub fn restore(&self, snapshot: &GraphSnapshot, deadline: Deadline) -> Result<(), StateError> {
        let mut each = self.kernels.iter().zip(&snapshot.states);
        each.try_for_each(|(kernel, states)| kernel.core().set_states(states, deadline))
    }
}

impl Graph {
    /// The states of all kernels at one moment at which nothing lies between them: drains the graph, reads the states, and lets the
    /// kernels go on if they were active. Allocates what it gives.
    ///
    /// As of any [drain](Self::drain), what is sent meanwhile is refused with `NotActive`, which gives the message back; and where
    /// a port's ring is full, the host is to read it meanwhile, on another thread.
    ///
    /// # Errors
    /// When the graph is lost, or the deadline passes: an active graph then goes on, too.
    pub fn snapshot(&mut self, deadline: impl Into<Deadline>) -> Result<GraphSnapshot, StateError> {
        let deadline = deadline.into();
        let was_active = self.launched().map_err(ControlError::from)?.are_active();
        let taken = match self.drain(deadline) {
            Ok(()) => self.taken(deadline),
            Err(error) => Err(error.into()),
        };
        if was_active {
            let goes_on = self.activate(GOES_ON);
            return taken.and_then(|taken| Ok(goes_on.map(|()| taken)?));
        }
        taken
    }

    /// The snapshot of a graph that is drained.
    fn taken(&self, deadline: Deadline) -> Result<GraphSnapshot, StateError> {
        match &self.place {
            Place::OnDevice(launched) => launched.snapshot(&self.declared, deadline),
            Place::TakenDown(_) => Err(ControlError::from(self.taken_down()).into()),
        }
    }

    /// Gives all kernels the states of a snapshot. The graph must not be active, as before it is first activated. Counters and indices begin
    /// anew with each launch all the same.
    ///
    /// # Errors
    /// When the graph is active or lost, the snapshot is of another graph or number of channels, or the deadline passes:
    /// then some channels may have their new state and others not.
    pub fn restore(
        &mut self,
        snapshot: &GraphSnapshot,
        deadline: impl Into<Deadline>,
    ) -> Result<(), RestoreError> {
        snapshot.fits(&self.declared)?;
        let launched = self.launched().map_err(|fault| StateError::from(ControlError::from(fault)));
        Ok(launched?.restore(snapshot, deadline.into())?)
    }
}
