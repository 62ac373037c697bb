//! The kernels of a graph as they are on a device, and the memory of their links.

use super::builder::GraphBuilder;
use super::kernel::GraphKernel;
use super::plan::{GraphPlan, check};
use crate::device::DeviceKind;
use crate::error::{ControlError, GraphError};
use crate::kernel::handle::Summary;
use crate::kernel::launch::LaunchConfig;
use crate::memory::arena::Exhausted;
use crate::memory::links::{LinkMemory, LinkShape};
use crate::mode::{Memory, Mode};
use crate::runtime::Runtime;
use std::sync::Arc;

/// Rings of a port that the host reads, until each is taken.
#[derive(Debug)]
pub(super) struct Read {
    pub from: usize,
    pub shape: LinkShape,
    /// For each channel, where its ring lies.
    pub rings: Vec<Option<usize>>,
}

/// A launch of a graph.
#[derive(Debug)]
pub(super) struct Launched {
    pub kernels: Vec<Box<dyn GraphKernel>>,
    /// The kernels, each before those that it feeds.
    pub order: Vec<usize>,
    pub reads: Vec<Option<Read>>,
    pub memory: Arc<LinkMemory>,
}

impl Launched {
    /// Checks a graph and launches all its kernels. If one cannot be launched, none stays.
    pub fn new(host: &Runtime, graph: &GraphBuilder) -> Result<Launched, GraphError> {
        let order = check(graph)?;
        let launch_of = |index: usize| launch_config(graph, index);
        // All code is loaded before anything runs: the driver loads nothing beside a resident kernel.
        for (index, member) in graph.members.iter().enumerate() {
            member.kernel.prepare(host, &launch_of(index))?;
        }
        let (device, free) = (host.device(), host.core.device.free());
        let shared = (device.kind == DeviceKind::Cuda).then_some(device.shared_bytes);
        let plan = GraphPlan::fitting(graph, &order, shared, free)?;
        let memory = LinkMemory::new(
            (host.core.pinned.as_ref(), plan.pinned_bytes),
            (&host.core.device, plan.device_bytes),
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
            kernels.push(member.kernel.launch(host, &launch_of(index), &links)?);
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
        Ok(Launched { kernels, order, reads: reads.collect(), memory })
    }

    /// Commands each kernel, also behind one that fails, those first that feed others; what each has handled, in the order in
    /// which they were declared, or the first error.
    pub fn each(
        &mut self,
        mut command: impl FnMut(&mut dyn GraphKernel) -> Result<Summary, ControlError>,
    ) -> Result<Vec<Summary>, ControlError> {
        let mut summaries = vec![Summary { processed: 0, unhandled: 0 }; self.kernels.len()];
        let mut first_error = None;
        for index in &self.order {
            match command(&mut *self.kernels[*index]) {
                Ok(summary) => summaries[*index] = summary,
                Err(error) => _ = first_error.get_or_insert(error),
            }
        }
        first_error.map_or(Ok(summaries), Err)
    }
}

/// How a kernel of a graph is launched.
fn launch_config(graph: &GraphBuilder, index: usize) -> LaunchConfig {
    let member = &graph.members[index];
    let launch = member.launch.clone().mode(Mode::Persistent).memory(Memory::Mapped).window(1);
    if member.is_fed { launch } else { launch.capacity(1) }
}
