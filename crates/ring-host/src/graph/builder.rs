//! The declaration of a graph.

use super::kernel::GraphKernel;
use crate::error::{GraphError, LaunchError};
use crate::kernel::launch::LaunchConfig;
use crate::memory::links::{KernelLinks, Partners};
use crate::runtime::Runtime;
use ring_device::ports::PortShape;
use ring_device::{HasPort, Port, Scope, WithPorts, messages_a_chunk};
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// To which channels of the kernel at its end a link carries a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Route {
    /// From channel `i` to channel `i`: both kernels have as many.
    #[default]
    Pairwise,
    /// To the channel with the number of the message's key, modulo the number of channels: messages of one key, from one
    /// channel, keep their order.
    ByKey,
    /// To the channel with the number of the message's key. If there is none, the sending channel faults.
    ByIndex,
    /// To every channel. To a kernel of one channel that is to this channel, from however many.
    ToAll,
}

/// A kernel of a graph.
pub struct Node<K> {
    pub(super) index: usize,
    pub(super) graph: u64,
    of: PhantomData<fn() -> K>,
}

impl<K> Clone for Node<K> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K> Copy for Node<K> {}

impl<K> fmt::Debug for Node<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Node").field(&self.index).finish()
    }
}

/// A port that the host reads.
pub struct PortReader<M> {
    pub(super) link: usize,
    pub(super) graph: u64,
    of: PhantomData<fn() -> M>,
}

impl<M> Clone for PortReader<M> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<M> Copy for PortReader<M> {}

impl<M> fmt::Debug for PortReader<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PortReader").field(&self.link).finish()
    }
}

/// A kernel as it was declared.
pub(super) trait DeclaredKernel: fmt::Debug + Send + Sync {
    fn name(&self) -> &'static str;
    fn ports(&self) -> &'static [PortShape];
    /// Most messages of a chunk, on a GPU in blocks of so many threads that may have so many bytes of block-shared memory; 0 if
    /// there is no room for so many inputs and outputs.
    fn messages_a_chunk(&self, rings: [usize; 2], block: Option<(u32, u32)>) -> u32;
    fn prepare(&self, runtime: &Runtime, launch: &LaunchConfig) -> Result<(), LaunchError>;
    fn launch(
        &self,
        runtime: &Runtime,
        launch: &LaunchConfig,
        links: &KernelLinks,
    ) -> Result<Box<dyn GraphKernel>, LaunchError>;
    fn wants(&self, launch: &LaunchConfig) -> (u32, u32);
    /// Bytes of a channel's state.
    fn state_bytes(&self) -> usize;
}

struct Declared<K>(PhantomData<fn() -> K>);

impl<K: WithPorts> fmt::Debug for Declared<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(K::NAME)
    }
}

impl<K: WithPorts> DeclaredKernel for Declared<K> {
    fn name(&self) -> &'static str {
        K::NAME
    }

    fn ports(&self) -> &'static [PortShape] {
        K::PORTS
    }

    fn messages_a_chunk(&self, rings: [usize; 2], block: Option<(u32, u32)>) -> u32 {
        messages_a_chunk::<K>(rings, block)
    }

    fn prepare(&self, runtime: &Runtime, launch: &LaunchConfig) -> Result<(), LaunchError> {
        runtime.prepare::<K>(launch)
    }

    fn launch(
        &self,
        runtime: &Runtime,
        launch: &LaunchConfig,
        links: &KernelLinks,
    ) -> Result<Box<dyn GraphKernel>, LaunchError> {
        Ok(Box::new(runtime.launch_with::<K>(launch, Partners::Graph(links))?))
    }

    fn wants(&self, launch: &LaunchConfig) -> (u32, u32) {
        (launch.channel_count(), launch.threads_of::<K>())
    }

    fn state_bytes(&self) -> usize {
        <K::Scope as Scope<K>>::STATE_BYTES
    }
}

/// A kernel and how it is launched.
#[derive(Clone, Debug)]
pub(super) struct Member {
    pub kernel: Arc<dyn DeclaredKernel>,
    pub launch: LaunchConfig,
    /// The host feeds it.
    pub is_fed: bool,
    /// The number of its device.
    pub device: usize,
}

impl Member {
    pub fn channels(&self) -> u32 {
        self.kernel.wants(&self.launch).0
    }
}

/// What a port is linked to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target {
    Kernel { index: usize, route: Route },
    Host,
}

/// A link as it was declared.
#[derive(Clone, Copy, Debug)]
pub(super) struct DeclaredLink {
    pub from: usize,
    pub port: usize,
    pub to: Target,
    /// Slots of a ring, if they were chosen.
    pub slots: Option<u32>,
}

impl DeclaredLink {
    /// The kernel that reads it, if the host does not.
    pub fn reader(self, graph: &GraphBuilder) -> Option<&Member> {
        match self.to {
            Target::Kernel { index, .. } => Some(&graph.members[index]),
            Target::Host => None,
        }
    }
}

/// Declares a graph: kernels, and links between them. What does not fit together by type does not compile; all else is checked
/// by [`Runtime::launch_graph`], before anything runs.
///
/// ```
/// use ring_device::ring_kernel;
/// use ring_host::{Device, GraphBuilder, LaunchConfig, Route, Runtime};
/// use std::time::Duration;
///
/// ring_kernel! {
///     /// Passes on the numbers that are even.
///     pub struct Even {
///         ports: { EVEN: [u64; 1] },
///     }
///
///     fn handle(request: &u64, out: &mut Ports) {
///         if request.is_multiple_of(2) {
///             out.emit(Even::EVEN, *request);
///         }
///     }
/// }
///
/// ring_kernel! {
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
/// # fn main() -> Result<(), ring_host::Error> {
/// let second = Duration::from_secs(1);
/// let mut graph = GraphBuilder::new();
/// let even = graph.kernel::<Even>(LaunchConfig::default());
/// let sum = graph.kernel::<Sum>(LaunchConfig::default());
/// graph.feed(even).link(even, Even::EVEN, sum, Route::Pairwise);
/// let sums = graph.read(sum, Sum::SUMS);
///
/// let mut graph = Runtime::open(Device::Cpu)?.launch_graph(&graph)?;
/// graph.activate(second)?;
/// let (mut numbers, mut sums) = (graph.sender(even, 0)?, graph.receiver(sums, 0)?);
/// for number in 1..=4 {
///     numbers.send(number, second)?;
/// }
/// assert_eq!((sums.recv(second)?, sums.recv(second)?), (2, 6));
/// graph.terminate(second)?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct GraphBuilder {
    pub(super) id: u64,
    pub(super) members: Vec<Member>,
    pub(super) links: Vec<DeclaredLink>,
    /// The first error of a declaration.
    pub(super) wrong: Option<GraphError>,
}

impl Default for GraphBuilder {
    fn default() -> Self {
        GraphBuilder::new()
    }
}

impl GraphBuilder {
    /// Slots of the rings between kernels, if nobody chose: so many where all rings between kernels then take half of the free
    /// memory on the device at most, [`RuntimeConfig::device_bytes`](crate::RuntimeConfig::device_bytes). If not, half as many, or a
    /// quarter, but not less than [`LEAST_SLOTS`](Self::LEAST_SLOTS).
    pub const DEFAULT_SLOTS: u32 = 16_384;

    /// Slots of the rings between kernels at least, if nobody chose.
    pub const LEAST_SLOTS: u32 = 1024;

    /// Slots of the rings of a port that the host reads, if nobody chose.
    pub const READ_SLOTS: u32 = 4096;

    /// A graph without kernels.
    pub fn new() -> GraphBuilder {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        GraphBuilder { id, members: Vec::new(), links: Vec::new(), wrong: None }
    }

    /// Adds a kernel. It runs persistent in mapped memory; [`capacity`](LaunchConfig::capacity) is that of the rings by which
    /// the host feeds it, if it does.
    pub fn kernel<K: WithPorts>(&mut self, launch: LaunchConfig) -> Node<K> {
        let kernel = Arc::new(Declared::<K>(PhantomData));
        self.members.push(Member { kernel, launch, is_fed: false, device: 0 });
        Node { index: self.members.len() - 1, graph: self.id, of: PhantomData }
    }

    /// Puts a kernel on the device of that number among those that the graph is [launched](crate::Devices::launch_graph) on; else it is
    /// on the first one, whose number is 0. A link from one device to another has its slots in the memory of the device that reads
    /// them, if each reaches the memory of the other one, and else in pinned memory, so that each message crosses the bus twice:
    /// [`Graph::links`](crate::Graph::links) says where each lies, and why.
    pub fn place<K: WithPorts>(&mut self, kernel: Node<K>, device: usize) -> &mut Self {
        if self.owns(kernel)
            && let Some(member) = self.members.get_mut(kernel.index)
        {
            member.device = device;
        }
        self
    }

    /// Lets the host send messages to the channels of a kernel, beside those that come by links. Requests that the host sends are read
    /// across the bus. Where many channels take small requests, it is faster to feed one kernel before them, of a channel or two, whose
    /// handler emits many of those for each request of the host.
    pub fn feed<K: WithPorts>(&mut self, to: Node<K>) -> &mut Self {
        if self.owns(to)
            && let Some(member) = self.members.get_mut(to.index)
        {
            member.is_fed = true;
        }
        self
    }

    /// Links a port to a kernel that takes its messages, by rings of [`DEFAULT_SLOTS`](Self::DEFAULT_SLOTS) slots, or of fewer where
    /// there is no room.
    pub fn link<K, const P: usize, C>(
        &mut self,
        from: Node<K>,
        port: Port<K, P>,
        to: Node<C>,
        route: Route,
    ) -> &mut Self
    where
        K: HasPort<P>,
        C: WithPorts<Request = <K as HasPort<P>>::Message>,
    {
        self.declare_link(from, port, to, route, None)
    }

    /// The same, by rings of so many slots, a power of two. A channel takes as many requests at a time as surely have room in all its
    /// outputs, whatever their handlers emit: a short link holds up all requests, even if a handler seldom emits to it.
    pub fn link_with<K, const P: usize, C>(
        &mut self,
        from: Node<K>,
        port: Port<K, P>,
        to: Node<C>,
        route: Route,
        slots: u32,
    ) -> &mut Self
    where
        K: HasPort<P>,
        C: WithPorts<Request = <K as HasPort<P>>::Message>,
    {
        self.declare_link(from, port, to, route, Some(slots))
    }

    fn declare_link<K, const P: usize, C>(
        &mut self,
        from: Node<K>,
        _: Port<K, P>,
        to: Node<C>,
        route: Route,
        slots: Option<u32>,
    ) -> &mut Self
    where
        K: HasPort<P>,
        C: WithPorts<Request = <K as HasPort<P>>::Message>,
    {
        if self.owns(from) && self.owns(to) {
            let to = Target::Kernel { index: to.index, route };
            self.links.push(DeclaredLink { from: from.index, port: P, to, slots });
        }
        self
    }

    /// Lets the host read a port, by a ring of [`READ_SLOTS`](Self::READ_SLOTS) slots for each channel.
    pub fn read<K, const P: usize>(
        &mut self,
        from: Node<K>,
        port: Port<K, P>,
    ) -> PortReader<<K as HasPort<P>>::Message>
    where
        K: HasPort<P>,
    {
        self.read_with(from, port, Self::READ_SLOTS)
    }

    /// The same, by rings of so many slots, a power of two.
    pub fn read_with<K, const P: usize>(
        &mut self,
        from: Node<K>,
        _: Port<K, P>,
        slots: u32,
    ) -> PortReader<<K as HasPort<P>>::Message>
    where
        K: HasPort<P>,
    {
        if self.owns(from) {
            let (to, slots) = (Target::Host, Some(slots));
            self.links.push(DeclaredLink { from: from.index, port: P, to, slots });
        }
        PortReader { link: self.links.len().wrapping_sub(1), graph: self.id, of: PhantomData }
    }

    /// What is declared so far, with the same nodes.
    pub(super) fn snapshot(&self) -> GraphBuilder {
        let (members, links, wrong) =
            (self.members.clone(), self.links.clone(), self.wrong.clone());
        GraphBuilder { id: self.id, members, links, wrong }
    }

    /// The names of its kernels.
    pub(super) fn names(&self) -> Vec<&'static str> {
        self.members.iter().map(|member| member.kernel.name()).collect()
    }

    /// Whether a kernel is one of this graph; if not, the launch says so.
    fn owns<K: WithPorts>(&mut self, node: Node<K>) -> bool {
        let owns = node.graph == self.id;
        if !owns {
            self.wrong.get_or_insert(GraphError::Foreign { kernel: K::NAME });
        }
        owns
    }
}
