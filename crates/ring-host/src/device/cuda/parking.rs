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
pub(super) enum Parked {
    Mapped(Mapped),
    Device { address: u64, bytes: usize },
    Graph(Graph),
}

#[derive(Debug)]
pub(super) struct Parking {
    context: Context,
    exclusion: Exclusion,
    lot: Mutex<Lot>,
}

#[derive(Debug, Default)]
struct Lot {
    /// Graphs made since nothing was resident.
    graphs: usize,
    parked: Vec<Parked>,
}

impl Parking {
    pub fn new(context: Context) -> Parking {
        Parking { context, exclusion: Exclusion::default(), lot: Mutex::default() }
    }

    /// Counts a kernel as resident, unless somebody does what would then block.
    pub fn resident(self: &Arc<Parking>) -> Option<KernelHandle> {
        let parking = self.exclusion.enter().then(|| Arc::clone(self))?;
        Some(KernelHandle { parking, counted: AtomicBool::new(true) })
    }

    /// Does what would block while a kernel is resident; or says how many are. Nothing is launched
    /// meanwhile.
    pub fn while_idle<T>(&self, work: impl FnOnce() -> T) -> Result<T, usize> {
        let done = self.exclusion.work(work);
        self.clear(); // what was parked meanwhile
        done
    }

    /// Parks memory; frees all that is parked if no kernel is resident.
    pub fn give(&self, memory: Parked) {
        self.lot().parked.push(memory);
        self.clear();
    }

    pub fn take_pinned(&self, bytes: usize) -> Option<Mapped> {
        let mut lot = self.lot();
        let fits = |p: &Parked| matches!(p, Parked::Mapped(m) if m.bytes == bytes);
        let at = lot.parked.iter().position(fits)?;
        let Parked::Mapped(mapped) = lot.parked.swap_remove(at) else { return None };
        drop(lot);
        // SAFETY: nobody uses parked memory, and it is this long.
        unsafe { mapped.host.write_bytes(0, mapped.bytes) };
        Some(mapped)
    }

    /// A parked graph of that kind, or leave to make one; or how many kernels are resident, beside
    /// which too many were made.
    pub fn graph(&self, of: (sys::CUfunction, bool)) -> Result<Option<Graph>, usize> {
        let mut lot = self.lot();
        let same = |p: &Parked| matches!(p, Parked::Graph(graph) if graph.of == of);
        if let Some(at) = lot.parked.iter().position(same)
            && let Parked::Graph(graph) = lot.parked.swap_remove(at)
        {
            return Ok(Some(graph));
        }
        let resident = self.exclusion.resident();
        if resident > 0 && lot.graphs >= GRAPHS_BESIDE {
            return Err(resident);
        }
        lot.graphs = if resident > 0 { lot.graphs + 1 } else { 1 };
        Ok(None)
    }

    pub fn take_device(&self, bytes: usize) -> Option<u64> {
        let mut lot = self.lot();
        let fits = |p: &Parked| matches!(p, Parked::Device { bytes: b, .. } if *b == bytes);
        let at = lot.parked.iter().position(fits)?;
        match lot.parked.swap_remove(at) {
            Parked::Device { address, .. } => Some(address),
            _ => None,
        }
    }

    /// Frees what is parked, unless a kernel is resident or somebody needs the idle device.
    fn clear(&self) {
        while !self.lot().parked.is_empty() {
            let parked = || std::mem::take(&mut self.lot().parked);
            if self.exclusion.try_work(|| self.free(parked())).is_none() {
                break; // whoever has the device now looks again
            }
        }
    }

    fn free(&self, parked: Vec<Parked>) {
        let bound = Bound::new(self.context);
        for memory in parked {
            // SAFETY: taken in this context, each given back once and used no more.
            unsafe {
                match memory {
                    Parked::Mapped(mapped) => pinned::give(mapped, self.context),
                    _ if bound.is_err() => {} // it went with the context
                    Parked::Device { address, .. } => drop(api::cuMemFree_v2(address)),
                    Parked::Graph(graph) => {
                        let _ = api::cuGraphExecDestroy(graph.exec);
                        let _ = api::cuGraphDestroy(graph.graph);
                    }
                }
            }
        }
    }

    fn lot(&self) -> MutexGuard<'_, Lot> {
        self.lot.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A kernel that counts as resident until it is seen to be over, or was not launched after all.
#[derive(Debug)]
pub(super) struct KernelHandle {
    parking: Arc<Parking>,
    counted: AtomicBool,
}

impl KernelHandle {
    /// The kernel has ended or faulted.
    pub fn over(&self) {
        if self.counted.swap(false, Ordering::Relaxed) {
            self.parking.exclusion.leave();
            self.parking.clear();
        }
    }
}

impl Drop for KernelHandle {
    fn drop(&mut self) {
        self.over();
    }
}
