//! A launched graph: its life cycle, and its ends on the host.

use super::builder::{GraphBuilder, Node, PortReader};
use super::kernel::{GraphKernel, GraphNode};
use super::plan::{GraphPlan, check};
use super::receiver::PortReceiver;
use crate::deadline::Deadline;
use crate::device::DeviceKind;
use crate::error::{ChannelError, ControlError, DeviceFault, GraphError};
use crate::kernel::channel::Sender;
use crate::kernel::handle::{KernelHandle, Status, Summary};
use crate::kernel::launch::LaunchConfig;
use crate::memory::arena::Exhausted;
use crate::memory::links::{LinkMemory, LinkShape};
use crate::mode::{Memory, Mode};
use crate::runtime::Runtime;
use ring_device::WithPorts;
use ring_shared::Message;
use std::sync::Arc;

/// Rings of a port that the host reads, until each is taken.
#[derive(Debug)]
struct Read {
    from: usize,
    shape: LinkShape,
    /// For each channel, where its ring lies.
    rings: Vec<Option<usize>>,
}

/// Kernels on the device that send messages to each other. Dropping it terminates them.
#[derive(Debug)]
pub struct Graph {
    id: u64,
    kernels: Vec<Box<dyn GraphKernel>>,
    is_fed: Vec<bool>,
    /// The kernels, each before those that it feeds.
    order: Vec<usize>,
    reads: Vec<Option<Read>>,
    memory: Arc<LinkMemory>,
}

impl Runtime {
    /// Checks a graph and launches all its kernels, which then wait to be [activated](Graph::activate). If one cannot be
    /// launched, none stays.
    pub fn launch_graph(&self, graph: &GraphBuilder) -> Result<Graph, GraphError> {
        let order = check(graph)?;
        let launch_of = |index: usize| launch_config(graph, index);
        // All code is loaded before anything runs: the driver loads nothing beside a resident kernel.
        for (index, member) in graph.members.iter().enumerate() {
            member.kernel.prepare(self, &launch_of(index))?;
        }
        let plan = GraphPlan::new(graph, order, self.device().kind == DeviceKind::Cuda)?;
        let memory = LinkMemory::new(
            (self.core.pinned.as_ref(), plan.pinned_bytes),
            (&self.core.device, plan.device_bytes),
        );
        let memory = Arc::new(memory.map_err(|none| {
            let Exhausted { which, needed, free, arena } = none;
            GraphError::Arena { which, needed, free, arena }
        })?);
        plan.write(&memory);
        let mut kernels: Vec<Box<dyn GraphKernel>> = Vec::new();
        for (index, member) in graph.members.iter().enumerate() {
            let links = plan.links_of(index, &memory);
            // If it fails, those before it leave as they are dropped.
            kernels.push(member.kernel.launch(self, &launch_of(index), &links)?);
        }
        for (index, kernel) in kernels.iter().enumerate() {
            let others = kernels.iter().enumerate().filter(|(other, _)| *other != index);
            kernel
                .core()
                .set_peers(others.map(|(_, kernel)| Arc::downgrade(kernel.core())).collect());
        }
        let order = plan.order.clone();
        let reads = plan.into_reads().into_iter().zip(&graph.links);
        let reads = reads.map(|(read, link)| {
            read.map(|(rings, shape)| Read {
                from: link.from,
                shape,
                rings: rings.into_iter().map(Some).collect(),
            })
        });
        Ok(Graph {
            id: graph.id,
            kernels,
            is_fed: graph.members.iter().map(|member| member.is_fed).collect(),
            order,
            reads: reads.collect(),
            memory,
        })
    }
}

/// How a kernel of a graph is launched.
fn launch_config(graph: &GraphBuilder, index: usize) -> LaunchConfig {
    let member = &graph.members[index];
    let launch = member.launch.clone().mode(Mode::Persistent).memory(Memory::Mapped).window(1);
    if member.is_fed { launch } else { launch.capacity(1) }
}

impl Graph {
    /// Lets all kernels take messages, those first that others feed.
    pub fn activate(&mut self, deadline: impl Into<Deadline>) -> Result<(), ControlError> {
        let deadline = deadline.into();
        for index in self.order.clone().into_iter().rev() {
            self.kernels[index].activate(deadline)?;
        }
        Ok(())
    }

    /// Drains the graph: each kernel becomes inactive when it has handled all that came to it, the ones first that feed others;
    /// sends to a kernel are refused from its turn on. When it returns, all that was sent is handled, and all that was emitted to the host
    /// is in the rings that it reads. If a port's ring is full and the host does not read it, that is a
    /// [`Timeout`](ControlError::Timeout): the graph goes on draining, nothing is lost, and this may be called again.
    pub fn drain(&mut self, deadline: impl Into<Deadline>) -> Result<(), ControlError> {
        let deadline = deadline.into();
        for index in self.order.clone() {
            self.kernels[index].deactivate(deadline)?;
        }
        Ok(())
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
        let mut summaries = vec![Summary { processed: 0, unhandled: 0 }; self.kernels.len()];
        let mut first_error = None;
        for index in self.order.clone() {
            match self.kernels[index].terminate(deadline) {
                Ok(summary) => summaries[index] = summary,
                Err(error) => _ = first_error.get_or_insert(error),
            }
        }
        first_error.map_or(Ok(summaries), Err)
    }

    /// Whether all kernels can still answer; if not, why not. Each wait of a sender or a receiver asks it now and then.
    pub fn check(&self) -> Result<(), DeviceFault> {
        // A kernel that is lost by itself names the reason.
        self.kernels.iter().try_for_each(|kernel| kernel.core().check_status())?;
        self.kernels.iter().try_for_each(|kernel| kernel.core().check())
    }

    /// What each kernel says of itself, in the order in which they were declared.
    pub fn status(&self) -> impl Iterator<Item = Status> + '_ {
        self.kernels.iter().map(|kernel| kernel.status())
    }

    /// A kernel of the graph: its state, telemetry and payload.
    pub fn kernel<K: WithPorts>(&mut self, node: Node<K>) -> Result<GraphNode<'_, K>, GraphError> {
        self.handle(node).map(GraphNode::new)
    }

    fn handle<K: WithPorts>(&mut self, node: Node<K>) -> Result<&mut KernelHandle<K>, GraphError> {
        let foreign = GraphError::Foreign { kernel: K::NAME };
        if node.graph != self.id {
            return Err(foreign);
        }
        let kernel = self.kernels.get_mut(node.index);
        kernel.and_then(|kernel| kernel.as_any().downcast_mut()).ok_or(foreign)
    }

    /// Takes the sending half of a kernel's channel, by which the host feeds it.
    pub fn sender<K: WithPorts>(
        &mut self,
        to: Node<K>,
        channel: u32,
    ) -> Result<Sender<K>, GraphError> {
        let is_fed = self.is_fed.get(to.index).copied().unwrap_or(false);
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
        let channels = match self.reads.get(port.link) {
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
        let read = match self.reads.get_mut(port.link) {
            Some(Some(read)) if port.graph == self.id => read,
            _ => return Err(GraphError::Foreign { kernel: "of this port" }),
        };
        let channels = read.rings.len() as u32;
        let ring = read.rings.get_mut(channel as usize);
        let ring = ring.ok_or(ChannelError::OutOfRange { channel, channels })?;
        let at = ring.take().ok_or(ChannelError::Taken(channel))?;
        let (core, ring) = (self.kernels[read.from].core(), self.memory.ring(at, read.shape));
        Ok(PortReceiver::new(Arc::clone(core), channel, (Arc::clone(&self.memory), ring)))
    }
}
