//! Memory and graphs that are given back wait here while any kernel is resident, since freeing them
//! then blocks until that kernel ends. Memory is lent again meanwhile.

use super::api;
use super::call::{Bound, Context};
use super::exclusion::Exclusion;
use super::pinned;
use crate::device::Mapped;
use cudarc::driver::sys;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

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
        let deferred_free = self.exclusion.enter().then(|| Arc::clone(self))?;
        Some(ResidentKernel { deferred_free, counted: AtomicBool::new(true) })
    }

    /// Does what would block while a kernel is resident; or says how many are. Nothing is launched
    /// meanwhile.
    pub fn while_idle<T>(&self, work: impl FnOnce() -> T) -> Result<T, usize> {
        let done = self.exclusion.work(work);
        self.clear(); // what was parked meanwhile
        done
    }

    /// Parks memory; frees all that is parked if no kernel is resident.
    pub fn give(&self, memory: Deferred) {
        self.queue().deferred.push(memory);
        self.clear();
    }

    pub fn take_pinned(&self, bytes: usize) -> Option<Mapped> {
        let mut queue = self.queue();
        let fits = |p: &Deferred| matches!(p, Deferred::Mapped(m) if m.bytes == bytes);
        let at = queue.deferred.iter().position(fits)?;
        let Deferred::Mapped(mapped) = queue.deferred.swap_remove(at) else { return None };
        drop(queue);
        // SAFETY: nobody uses parked memory, and it is this long.
        unsafe { mapped.host.write_bytes(0, mapped.bytes) };
        Some(mapped)
    }

    /// A parked graph of that kind, or leave to make one; or how many kernels are resident, beside
    /// which too many were made.
    pub fn graph(&self, of: (sys::CUfunction, bool)) -> Result<Option<Graph>, usize> {
        let mut queue = self.queue();
        let same = |p: &Deferred| matches!(p, Deferred::Graph(graph) if graph.of == of);
        if let Some(at) = queue.deferred.iter().position(same)
            && let Deferred::Graph(graph) = queue.deferred.swap_remove(at)
        {
            return Ok(Some(graph));
        }
        let resident = self.exclusion.resident();
        if resident > 0 && queue.graphs >= GRAPHS_BESIDE {
            return Err(resident);
        }
        queue.graphs = if resident > 0 { queue.graphs + 1 } else { 1 };
        Ok(None)
    }

    pub fn take_device(&self, bytes: usize) -> Option<u64> {
        let mut queue = self.queue();
        let fits = |p: &Deferred| matches!(p, Deferred::Device { bytes: b, .. } if *b == bytes);
        let at = queue.deferred.iter().position(fits)?;
        match queue.deferred.swap_remove(at) {
            Deferred::Device { address, .. } => Some(address),
            _ => None,
        }
    }

    /// Frees what is parked, unless a kernel is resident or somebody needs the idle device.
    fn clear(&self) {
        while !self.queue().deferred.is_empty() {
            let deferred = || std::mem::take(&mut self.queue().deferred);
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
                    Deferred::Mapped(mapped) => pinned::give(mapped, self.context),
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

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A kernel that counts as resident until it is seen to be over, or was not launched after all.
#[derive(Debug)]
pub(super) struct ResidentKernel {
    deferred_free: Arc<DeferredFree>,
    counted: AtomicBool,
}

impl ResidentKernel {
    /// The kernel has ended or faulted.
    pub fn over(&self) {
        if self.counted.swap(false, Ordering::Relaxed) {
            self.deferred_free.exclusion.leave();
            self.deferred_free.clear();
        }
    }
}

impl Drop for ResidentKernel {
    fn drop(&mut self) {
        self.over();
    }
}
