//! A launched graph: its life cycle, and its ends on the host.

use super::builder::{GraphBuilder, Node, PortReader};
use super::kernel::GraphNode;
use super::launched::{FedChannels, Launched};
use super::links::{LinkInfo, LinkTraffic};
use super::receiver::PortReceiver;
use super::trace::GraphTrace;
use crate::deadline::Deadline;
use crate::devices::Devices;
use crate::error::{ChannelError, ControlError, DeviceFault, GraphError};
use crate::kernel::channel::Sender;
use crate::kernel::handle::{KernelHandle, Status, Summary};
use crate::runtime::Runtime;
use crate::runtime::core::RuntimeCore;
use ring_device::WithPorts;
use ring_shared::Message;
use std::mem::replace;
use std::sync::{Arc, Weak};

/// Kernels on the device that send messages to each other. Dropping it terminates them.
#[derive(Debug)]
pub struct Graph {
    pub(super) declared: GraphBuilder,
    /// What it was launched on, by devices.
    pub(super) hosts: Vec<Weak<RuntimeCore>>,
    pub(super) place: Place,
}

/// What a launch had done that has left.
#[derive(Clone, Debug)]
pub(super) struct Lost {
    /// The launch's number.
    pub launch: u64,
    /// For each kernel, what it had handled.
    pub counts: Vec<Summary>,
    /// What the host had sent.
    pub sent: Vec<FedChannels>,
}

/// Where the kernels of a graph are.
#[derive(Debug)]
pub(super) enum Place {
    OnDevice(Launched),
    /// They have left to be launched again, which failed.
    TakenDown(Lost),
}

impl Runtime {
    /// Checks a graph and launches all its kernels, which then wait to be [activated](Graph::activate). If one cannot be
    /// launched, none stays.
    ///
    /// The code of its kernels is loaded before the first of them is launched. The driver loads none while another kernel is resident
    /// ([`ImageError::Busy`](crate::image::ImageError::Busy)): a program that launches several things [prepares](Self::prepare) all
    /// code first.
    pub fn launch_graph(&self, graph: &GraphBuilder) -> Result<Graph, GraphError> {
        Graph::launch(&self.clone().into(), graph)
    }
}

impl Devices {
    /// Checks a graph and launches all its kernels, each on the device that it was [placed](GraphBuilder::place) on, which then wait
    /// to be [activated](Graph::activate). If one cannot be launched, none stays.
    ///
    /// The code of its kernels is loaded before the first of them is launched, as [`Runtime::launch_graph`] does.
    pub fn launch_graph(&self, graph: &GraphBuilder) -> Result<Graph, GraphError> {
        Graph::launch(self, graph)
    }
}

impl Graph {
    fn launch(devices: &Devices, graph: &GraphBuilder) -> Result<Graph, GraphError> {
        let declared = graph.snapshot();
        let place = Place::OnDevice(Launched::new(devices, &declared)?);
        Ok(Graph { declared, hosts: Graph::cores(devices), place })
    }

    /// What a launch on these devices remembers of them.
    pub(super) fn cores(devices: &Devices) -> Vec<Weak<RuntimeCore>> {
        devices.iter().map(|host| Arc::downgrade(&host.core)).collect()
    }

    /// Its links, those of each kernel in the order of its ports: where each lies, and why there; nothing after a
    /// [`recover`](Self::recover) that could not launch it.
    pub fn links(&self) -> &[LinkInfo] {
        match &self.place {
            Place::OnDevice(launched) => &launched.links,
            Place::TakenDown(_) => &[],
        }
    }

    /// What has gone through each of its [links](Self::links), in the same order, without a driver call; nothing after a
    /// [`recover`](Self::recover) that could not launch it.
    pub fn traffic(&self) -> Vec<LinkTraffic> {
        match &self.place {
            Place::OnDevice(launched) => launched.traffic(),
            Place::TakenDown(_) => Vec::new(),
        }
    }

    /// What its kernels and the host's ends note of messages, from the first that is still there on: of those kernels whose launch asks for it
    /// ([`LaunchConfig::trace`](crate::LaunchConfig::trace)). `None` if that is none, and after a [`recover`](Self::recover) that could not
    /// launch them. Each such reader reads all of this launch; behind a `recover` another one is to be taken.
    pub fn trace(&self) -> Option<GraphTrace> {
        match &self.place {
            Place::OnDevice(launched) => GraphTrace::new(launched, &self.declared),
            Place::TakenDown(_) => None,
        }
    }

    /// Lets all kernels take messages, those first that others feed.
    pub fn activate(&mut self, deadline: impl Into<Deadline>) -> Result<(), ControlError> {
        let deadline = deadline.into();
        let Launched { kernels, order, .. } = self.launched()?;
        order.iter().rev().try_for_each(|index| kernels[*index].activate(deadline))
    }

    /// Drains the graph: each kernel becomes inactive when it has handled all that came to it, the ones first that feed others;
    /// sends to a kernel are refused from its turn on. When it returns, all that was sent is handled, and all that was emitted to the host
    /// is in the rings that it reads. If a port's ring is full and the host does not read it, that is a
    /// [`Timeout`](ControlError::Timeout): the graph goes on draining, nothing is lost, and this may be called again.
    pub fn drain(&mut self, deadline: impl Into<Deadline>) -> Result<(), ControlError> {
        let deadline = deadline.into();
        let Launched { kernels, order, .. } = self.launched()?;
        order.iter().try_for_each(|index| kernels[*index].deactivate(deadline))
    }

    /// Makes all kernels leave the device, each behind the step that it is at, and waits until they have. Messages between
    /// kernels are gone then: [`drain`](Self::drain) before where none may be. What the kernels handled, in the order in which
    /// they were declared; of those that the host feeds also what was sent and not handled. [`GraphNode::summary`] tells the same of
    /// one kernel.
    pub fn terminate(
        &mut self,
        deadline: impl Into<Deadline>,
    ) -> Result<Vec<Summary>, ControlError> {
        let deadline = deadline.into();
        self.launched()?.each(|_, kernel| kernel.terminate(deadline))
    }

    /// Whether all kernels can still answer; if not, why not. Each wait of a sender or a receiver asks it now and then.
    pub fn check(&self) -> Result<(), DeviceFault> {
        let Place::OnDevice(Launched { kernels, .. }) = &self.place else {
            return Err(self.taken_down());
        };
        // A kernel that is lost by itself names the reason.
        kernels.iter().try_for_each(|kernel| kernel.core().check_status())?;
        kernels.iter().try_for_each(|kernel| kernel.core().check())
    }

    /// What each kernel says of itself, in the order in which they were declared; nothing after a
    /// [`recover`](Self::recover) that could not launch them.
    pub fn status(&self) -> impl Iterator<Item = Status> + '_ {
        let kernels = match &self.place {
            Place::OnDevice(launched) => &launched.kernels[..],
            Place::TakenDown(_) => &[],
        };
        kernels.iter().map(|kernel| kernel.status())
    }

    /// The kernels, if they are on the device.
    pub(super) fn launched(&mut self) -> Result<&mut Launched, DeviceFault> {
        let taken_down = self.taken_down();
        match &mut self.place {
            Place::OnDevice(launched) => Ok(launched),
            Place::TakenDown(_) => Err(taken_down),
        }
    }

    /// Why they are not.
    pub(super) fn taken_down(&self) -> DeviceFault {
        let first = self.declared.members.first();
        DeviceFault::TakenDown { kernel: first.map_or("", |member| member.kernel.name()) }
    }

    /// A kernel of the graph: its state, telemetry and payload.
    pub fn kernel<K: WithPorts>(&mut self, node: Node<K>) -> Result<GraphNode<'_, K>, GraphError> {
        self.handle(node).map(GraphNode::new)
    }

    fn handle<K: WithPorts>(&mut self, node: Node<K>) -> Result<&mut KernelHandle<K>, GraphError> {
        let foreign = GraphError::Foreign { kernel: K::NAME };
        if node.graph != self.declared.id {
            return Err(foreign);
        }
        let kernel = self.launched()?.kernels.get_mut(node.index);
        kernel.and_then(|kernel| kernel.as_any().downcast_mut()).ok_or(foreign)
    }

    /// Takes the sending half of a kernel's channel, by which the host feeds it.
    pub fn sender<K: WithPorts>(
        &mut self,
        to: Node<K>,
        channel: u32,
    ) -> Result<Sender<K>, GraphError> {
        let is_fed = self.declared.members.get(to.index).is_some_and(|member| member.is_fed);
        let kernel = self.handle(to)?;
        if !is_fed {
            return Err(GraphError::NotFed { kernel: K::NAME });
        }
        Ok(kernel.take_channel(channel)?.into_split().0)
    }

    /// Takes those of all its channels.
    pub fn senders<K: WithPorts>(&mut self, to: Node<K>) -> Result<Vec<Sender<K>>, GraphError> {
        let channels = self.handle(to)?.channels();
        (0..channels).map(|channel| self.sender(to, channel)).collect()
    }

    /// Takes the receiving halves of a port of all channels.
    pub fn receivers<M: Message>(
        &mut self,
        port: PortReader<M>,
    ) -> Result<Vec<PortReceiver<M>>, GraphError> {
        let channels = match self.launched()?.reads.get(port.link) {
            Some(Some(read)) => read.rings.len() as u32,
            _ => 1, // refused by the next call
        };
        (0..channels).map(|channel| self.receiver(port, channel)).collect()
    }

    /// Takes the receiving half of a port of a kernel's channel.
    pub fn receiver<M: Message>(
        &mut self,
        port: PortReader<M>,
        channel: u32,
    ) -> Result<PortReceiver<M>, GraphError> {
        let is_own = port.graph == self.declared.id;
        let Launched { kernels, reads, memory, .. } = self.launched()?;
        let read = match reads.get_mut(port.link) {
            Some(Some(read)) if is_own => read,
            _ => return Err(GraphError::Foreign { kernel: "of this port" }),
        };
        let channels = read.rings.len() as u32;
        let ring = read.rings.get_mut(channel as usize);
        let of = ring.ok_or(ChannelError::OutOfRange { channel, channels })?;
        if replace(&mut of.is_taken, true) {
            return Err(ChannelError::Taken(channel).into());
        }
        let core = Arc::clone(kernels[read.from].core());
        let ring = memory[read.device].ring(of.at, read.shape);
        Ok(PortReceiver::new(core, channel, (Arc::clone(memory), ring), of.trace.clone()))
    }
}
