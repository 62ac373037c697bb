//! The kernels of a graph as they are on a device, and the memory of their links.

use super::builder::GraphBuilder;
use super::kernel::GraphKernel;
use super::links::{LinkInfo, LinkTraffic};
use super::plan::{ChannelEnds, GraphPlan, Room, check};
use super::trace::events::TracedRing;
use crate::device::DeviceKind;
use crate::devices::Devices;
use crate::drive::traces::HostTrace;
use crate::error::{ControlError, GraphError};
use crate::kernel::core::KernelCore;
use crate::kernel::handle::Summary;
use crate::kernel::launch::LaunchConfig;
use crate::memory::arena::Exhausted;
use crate::memory::links::{Flowed, GraphMemory, LinkMemory, LinkShape, PortRings};
use crate::mode::{Memory, Mode};
use ring_shared::layout::State;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Rings of a port that the host reads.
#[derive(Debug)]
pub(super) struct Read {
    pub from: usize,
    /// The number of the kernel's device, which has the rings.
    pub device: usize,
    pub shape: LinkShape,
    /// For each channel.
    pub rings: Vec<ReadRing>,
}

/// A ring that the host reads.
#[derive(Debug)]
pub(super) struct ReadRing {
    pub at: usize,
    /// Its number in a trace.
    pub number: usize,
    /// Whether its receiving half was taken.
    pub is_taken: bool,
    /// What that notes of messages, if the kernel is traced.
    pub trace: Option<Arc<HostTrace>>,
}

impl Read {
    /// How many messages each channel has emitted, as the lines say that are in that memory.
    pub fn emitted(&self, memory: &LinkMemory) -> Vec<u64> {
        let sent = |ring: &ReadRing| memory.to_host(ring.at, self.shape)[0];
        self.rings.iter().map(sent).collect()
    }
}

/// How many messages the host has sent to the channels of a kernel.
#[derive(Clone, Debug)]
pub(super) struct FedChannels {
    /// The kernel's number.
    pub index: usize,
    pub kernel: &'static str,
    /// For each channel.
    pub sent: Vec<u64>,
}

/// A launch of a graph.
#[derive(Debug)]
pub(super) struct Launched {
    /// No other launch of any graph has it.
    pub number: u64,
    pub kernels: Vec<Box<dyn GraphKernel>>,
    /// The kernels, each before those that it feeds.
    pub order: Vec<usize>,
    pub reads: Vec<Option<Read>>,
    pub memory: GraphMemory,
    pub links: Vec<LinkInfo>,
    /// Its rings, as a trace tells of them, and for each kernel, for each channel, which it has.
    pub rings: Vec<TracedRing>,
    pub ends: Vec<Vec<ChannelEnds>>,
}

impl Launched {
    /// Checks a graph and launches all its kernels. If one cannot be launched, none stays.
    pub fn new(devices: &Devices, graph: &GraphBuilder) -> Result<Launched, GraphError> {
        let hosts = &devices.hosts;
        let order = check(graph, hosts.len())?;
        let launch_of = |index: usize| launch_config(graph, index);
        // All code is loaded before anything runs: the driver loads nothing beside a resident kernel.
        for (index, member) in graph.members.iter().enumerate() {
            let prepared = member.kernel.prepare(&hosts[member.device], &launch_of(index));
            prepared.map_err(|error| on(devices, member.device, error.into()))?;
        }
        let rooms: Vec<Room> = hosts
            .iter()
            .map(|host| {
                let info = host.device();
                let shared = (info.kind == DeviceKind::Cuda).then_some(info.shared_bytes);
                Room { shared, free: host.core.device.free() }
            })
            .collect();
        let peers = |one, other| devices.are_peers(one, other).map_err(Clone::clone);
        let plan = GraphPlan::fitting(graph, &order, &rooms, &peers)?;
        let memory = memory(devices, &plan)?;
        let drivers: Vec<_> = hosts.iter().map(|host| &*host.core.driver).collect();
        plan.write(&memory, &drivers)?;
        for link in plan.links.iter().filter(|link| link.to.is_some_and(|to| to.1 != link.from.1)) {
            tracing::info!(%link, "link from one device to another");
        }
        let mut kernels: Vec<Box<dyn GraphKernel>> = Vec::new();
        for (index, member) in graph.members.iter().enumerate() {
            let links = plan.links_of(index, graph, &memory);
            // If it fails, those before it leave as they are dropped.
            let launched = member.kernel.launch(&hosts[member.device], &launch_of(index), &links);
            kernels.push(launched.map_err(|error| on(devices, member.device, error.into()))?);
        }
        let cores = kernels.iter().zip(&graph.members);
        let cores = cores.map(|(kernel, member)| (kernel.core(), member.device));
        KernelCore::introduce(&cores.collect::<Vec<_>>());
        let (order, links) = (plan.order.clone(), plan.links.clone());
        let (rings, ends) = plan.traced();
        let reads = plan.into_reads().into_iter().zip(&graph.links);
        let reads = reads.map(|(read, link)| {
            read.map(|(rings, shape)| {
                let records = kernels[link.from].core().device.region().plan.trace;
                let trace = || (records > 0).then(|| Arc::new(HostTrace::new(records)));
                let rings = rings.into_iter().map(|(at, number)| ReadRing {
                    at,
                    number,
                    is_taken: false,
                    trace: trace(),
                });
                let device = graph.members[link.from].device;
                Read { from: link.from, device, shape, rings: rings.collect() }
            })
        });
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let reads = reads.collect();
        let number = NEXT.fetch_add(1, Relaxed);
        Ok(Launched { number, kernels, order, reads, memory, links, rings, ends })
    }

    /// What has gone through each link, in the order in which they are told of.
    pub fn traffic(&self) -> Vec<LinkTraffic> {
        let of_kernel = |kernel: &dyn GraphKernel| {
            let device = &kernel.core().device;
            let ports = device.region().links.as_ref().map_or(&[][..], |links| &links.ports);
            let mut each = ports.to_vec();
            each.sort_by_key(|rings| rings.port.0);
            let each = each.chunk_by(|a, b| a.port.0 == b.port.0).map(|channels| {
                let of_channel = |rings: &PortRings| rings.flowed(&self.memory);
                let flowed = channels.iter().map(of_channel).fold(Flowed::default(), Flowed::and);
                let PortRings { port: (_, port), to, shape, .. } = channels[0];
                let Flowed { sent, taken, waiting, fullest, stalls } = flowed;
                let from = (device.name, port);
                let slots = shape.capacity;
                LinkTraffic { from, to, sent, taken, waiting, fullest, slots, stalls }
            });
            each.collect::<Vec<_>>()
        };
        self.kernels.iter().flat_map(|kernel| of_kernel(&**kernel)).collect()
    }

    /// Whether all kernels take messages.
    pub fn are_active(&self) -> bool {
        self.kernels.iter().all(|kernel| kernel.core().device.state() == State::Active)
    }

    /// How many messages the host has sent to each channel that it feeds, also those that no kernel took.
    pub fn sent(&self, graph: &GraphBuilder) -> Vec<FedChannels> {
        let fed = graph.members.iter().zip(&self.kernels).enumerate();
        let fed = fed.filter(|(_, (member, _))| member.is_fed);
        fed.map(|(index, (_, kernel))| {
            let device = &kernel.core().device;
            let channels = 0..device.region().plan.channels;
            let sent = channels.map(|channel| device.sends(channel).sent.get()).collect();
            FedChannels { index, kernel: device.name, sent }
        })
        .collect()
    }

    /// Commands each kernel, of which it is told the number, also behind one that fails, those first that feed others; what each has handled, in the order in
    /// which they were declared, or the first error.
    pub fn each(
        &mut self,
        mut command: impl FnMut(usize, &mut dyn GraphKernel) -> Result<Summary, ControlError>,
    ) -> Result<Vec<Summary>, ControlError> {
        let mut summaries = vec![Summary { processed: 0, unhandled: 0 }; self.kernels.len()];
        let mut first_error = None;
        for index in &self.order {
            match command(*index, &mut *self.kernels[*index]) {
                Ok(summary) => summaries[*index] = summary,
                Err(error) => _ = first_error.get_or_insert(error),
            }
        }
        first_error.map_or(Ok(summaries), Err)
    }
}

/// What each device has for the links.
fn memory(devices: &Devices, plan: &GraphPlan) -> Result<GraphMemory, GraphError> {
    let each = devices.hosts.iter().zip(&plan.needs).enumerate().map(|(number, (host, needs))| {
        let core = &host.core;
        let memory =
            LinkMemory::new((core.pinned.as_ref(), needs.pinned), (&core.device, needs.device));
        memory.map_err(|none| {
            let Exhausted { which, needed, free, arena } = none;
            on(devices, number, GraphError::Arena { which, needed, free, arena })
        })
    });
    each.collect()
}

/// An error of a device, which names it if there are several.
fn on(devices: &Devices, number: usize, error: GraphError) -> GraphError {
    match devices.len() {
        1 => error,
        _ => {
            let name = devices[number].device().name.clone();
            GraphError::OnDevice { number, name, source: Box::new(error) }
        }
    }
}

/// How a kernel of a graph is launched.
fn launch_config(graph: &GraphBuilder, index: usize) -> LaunchConfig {
    let member = &graph.members[index];
    let launch = member.launch.clone().mode(Mode::Persistent).memory(Memory::Mapped).window(1);
    if member.is_fed { launch } else { launch.capacity(1) }
}
