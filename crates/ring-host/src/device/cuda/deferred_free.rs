//! Memory and graphs that are given back are freed when no kernel is resident, since freeing them blocks
//! until then. Meanwhile they are used again.

use super::api;
use super::call::{Bound, Context};
use super::exclusion::Exclusion;
use super::pinned;
use crate::device::Mapped;
use crate::sync::lock;
use cudarc::driver::sys;
use std::sync::{Arc, Mutex};

/// Graphs that may be made while a kernel is resident: after some twenty to forty, making another
/// blocks until none is (tried on driver 580). Those that were given back are used again.
const GRAPHS_BESIDE: usize = 16;

/// A launch that can be replayed.
#[derive(Debug)]
pub(super) struct Graph {
    /// The function, and whether all its blocks are launched at once: what cannot be changed.
    pub of: (sys::CUfunction, bool),
    pub graph: sys::CUgraph,
    /// Its one node.
    pub node: sys::CUgraphNode,
    pub exec: sys::CUgraphExec,
}

// SAFETY: a handle that the driver lets any thread use.
unsafe impl Send for Graph {}
// SAFETY: as above.
unsafe impl Sync for Graph {}

/// What was given back.
#[derive(Debug)]
pub(super) enum Deferred {
    Mapped(Mapped),
    Device { address: u64, bytes: usize },
    Graph(Graph),
}

#[derive(Debug)]
pub(super) struct DeferredFree {
    context: Context,
    exclusion: Exclusion,
    queue: Mutex<Queue>,
}

#[derive(Debug, Default)]
struct Queue {
    /// Graphs made since nothing was resident.
    graphs: usize,
    deferred: Vec<Deferred>,
}

impl DeferredFree {
    pub fn new(context: Context) -> DeferredFree {
        DeferredFree { context, exclusion: Exclusion::default(), queue: Mutex::default() }
    }

    /// Counts a kernel as resident, unless somebody does what would then block.
    pub fn resident(self: &Arc<DeferredFree>) -> Option<ResidentKernel> {
        self.exclusion.enter().then(|| ResidentKernel(Arc::clone(self)))
    }

    /// Does what would block while a kernel is resident; or says how many are. Nothing is launched
    /// meanwhile.
    pub fn while_idle<T>(&self, work: impl FnOnce() -> T) -> Result<T, usize> {
        let done = self.exclusion.work(work);
        self.clear(); // what was given back meanwhile
        done
    }

    /// Frees memory or a graph as soon as no kernel is resident.
    pub fn defer(&self, freed: Deferred) {
        lock(&self.queue).deferred.push(freed);
        self.clear();
    }

    /// Takes out of the queue what `fits`, to be used again.
    fn reuse(&self, fits: impl Fn(&Deferred) -> bool) -> Option<Deferred> {
        let deferred = &mut lock(&self.queue).deferred;
        let at = deferred.iter().position(fits)?;
        Some(deferred.swap_remove(at))
    }

    /// Pinned memory of that size, zeroed, with quick pages behind it or without, if some was given back.
    pub fn reuse_pinned(&self, bytes: usize, quick: bool) -> Option<Mapped> {
        let fits = |m: &Mapped| m.bytes == bytes && (m.quick > 0) == quick;
        let fits = |d: &Deferred| matches!(d, Deferred::Mapped(m) if fits(m));
        let Some(Deferred::Mapped(mapped)) = self.reuse(fits) else { return None };
        // SAFETY: nobody uses what was given back, and it is this long.
        unsafe { mapped.host.write_bytes(0, mapped.all()) };
        Some(mapped)
    }

    /// Device memory of that size, if some was given back.
    pub fn reuse_device(&self, bytes: usize) -> Option<u64> {
        let fits = |d: &Deferred| matches!(d, Deferred::Device { bytes: b, .. } if *b == bytes);
        let Some(Deferred::Device { address, .. }) = self.reuse(fits) else { return None };
        Some(address)
    }

    /// A graph of that kind that was given back, or leave to make one; or how many kernels are resident,
    /// beside which too many were made.
    pub fn reuse_graph(&self, of: (sys::CUfunction, bool)) -> Result<Option<Graph>, usize> {
        if let Some(Deferred::Graph(graph)) =
            self.reuse(|d| matches!(d, Deferred::Graph(graph) if graph.of == of))
        {
            return Ok(Some(graph));
        }
        let (resident, mut queue) = (self.exclusion.resident(), lock(&self.queue));
        if resident > 0 && queue.graphs >= GRAPHS_BESIDE {
            return Err(resident);
        }
        queue.graphs = if resident > 0 { queue.graphs + 1 } else { 1 };
        Ok(None)
    }

    /// Frees what was deferred, unless a kernel is resident or somebody needs the idle device.
    fn clear(&self) {
        while !lock(&self.queue).deferred.is_empty() {
            let deferred = || std::mem::take(&mut lock(&self.queue).deferred);
            if self.exclusion.try_work(|| self.free(deferred())).is_none() {
                break; // whoever has the device now looks again
            }
        }
    }

    fn free(&self, deferred: Vec<Deferred>) {
        let bound = Bound::new(self.context);
        for memory in deferred {
            // SAFETY: taken in this context, each given back once and used no more.
            unsafe {
                match memory {
                    Deferred::Mapped(mapped) => pinned::free(mapped, self.context),
                    _ if bound.is_err() => {} // it went with the context
                    Deferred::Device { address, .. } => drop(api::cuMemFree_v2(address)),
                    Deferred::Graph(graph) => {
                        let _ = api::cuGraphExecDestroy(graph.exec);
                        let _ = api::cuGraphDestroy(graph.graph);
                    }
                }
            }
        }
    }
}

/// A kernel that counts as resident until this is dropped: it is seen to be over, or was not launched after
/// all.
#[derive(Debug)]
pub(super) struct ResidentKernel(Arc<DeferredFree>);

impl Drop for ResidentKernel {
    fn drop(&mut self) {
        self.0.exclusion.leave();
        self.0.clear();
    }
}
