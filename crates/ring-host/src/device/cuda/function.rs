use super::api;
use super::call::{Bound, Context, check, is_final};
use super::copies;
use super::deferred_free::{Deferred, DeferredFree, Graph, ResidentKernel};
use super::module::RawFunction;
use super::stream::{Pair, Stream, Streams};
use crate::device::{
    CopyLane, Function, Grid, LaunchSlot, Launched, Limits, MemoryCopy, Occupancy, Resources,
    RunState, Sealed,
};
use crate::error::{DriverError, DriverReason, Needed};
use crate::sync::lock;
use cudarc::driver::sys::{self, CUfunction_attribute as A};
use std::mem::ManuallyDrop;
use std::sync::{Arc, Mutex};

#[derive(Debug)]
pub(super) struct CudaFunction {
    pub context: Context,
    pub raw: RawFunction,
    /// Bytes of dynamic block-shared memory that a block of so many threads wants.
    pub shared_bytes: fn(u32) -> u32,
    /// Whether no block that needs shared memory is to have room beside one of the function's, for the L1 cache has what it leaves.
    pub prefers_l1: bool,
    /// Most bytes of shared memory that a block may ask for.
    pub most_shared: u32,
    pub occupancy: Occupancy,
    /// Bytes of shared memory that the driver keeps of each block's.
    pub reserved_shared: u32,
    pub deferred_free: Arc<DeferredFree>,
    pub streams: Arc<Streams>,
}

/// Threads of a warp.
const WARP: u32 = 32;

/// Parts of a multiprocessor that have registers and warps of their own. A block's warps are spread
/// over them; its last ones may all be in the same.
const PARTS: u32 = 4;

/// Registers are allocated to a warp in units of so many.
const REGISTERS: u32 = 256;

/// Bytes of shared memory are allocated to a block in units of so many; of 128 on newer devices.
const SHARED_BYTES: u32 = 256;

/// What a block of so many threads takes of a multiprocessor, as the CUDA occupancy calculator counts it,
/// but for warps that would leave a part of it uneven: those count in each part.
fn block(threads: u32, registers: u32, shared_bytes: u32) -> Resources {
    let warps = threads.div_ceil(WARP).next_multiple_of(PARTS);
    Resources {
        registers: (registers * WARP).next_multiple_of(REGISTERS) * warps,
        shared_bytes: shared_bytes.next_multiple_of(SHARED_BYTES),
        warps,
        blocks: 1,
    }
}

fn attribute(function: RawFunction, which: A) -> Result<u32, DriverError> {
    let mut value = 0;
    // SAFETY: a loaded function; the pointer is to a local.
    let found = unsafe { api::cuFuncGetAttribute(&mut value, which, function.0) };
    check("cuFuncGetAttribute", found).map(|()| u32::try_from(value).unwrap_or(0))
}

/// Most threads of a block of that function. A context must be bound.
pub(super) fn max_threads(function: RawFunction) -> Result<u32, DriverError> {
    attribute(function, A::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK)
}

impl Sealed for CudaFunction {}

impl CudaFunction {
    fn attribute(&self, which: A) -> Result<u32, DriverError> {
        attribute(self.raw, which)
    }

    /// Bytes of shared memory that a block declares, and those that it is launched with besides, if it has so many
    /// threads: none where it declares what it needs, as by other compilers.
    fn shared(&self, threads: u32) -> Result<(u32, u32), DriverError> {
        let declared = self.attribute(A::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)?;
        let wanted = (self.shared_bytes)(threads).min(self.most_shared);
        Ok((declared, if declared > 0 { 0 } else { wanted }))
    }

    /// How many blocks of so many threads, with so many bytes of dynamic shared memory, an empty multiprocessor holds, as
    /// the driver says.
    fn on_one_multiprocessor(&self, threads: u32, shared: u32) -> Result<u32, DriverError> {
        let (mut blocks, threads) = (0, i32::try_from(threads).unwrap_or(i32::MAX));
        let (f, shared) = (self.raw.0, shared as usize);
        // SAFETY: a loaded function; the pointer is to a local.
        let found = unsafe {
            api::cuOccupancyMaxActiveBlocksPerMultiprocessor(&mut blocks, f, threads, shared)
        };
        check("cuOccupancyMaxActiveBlocksPerMultiprocessor", found)?;
        Ok(u32::try_from(blocks).unwrap_or(0))
    }
}

impl Function for CudaFunction {
    fn limits(&self, threads: u32) -> Result<Limits, DriverError> {
        let _bound = Bound::new(self.context)?;
        let most = max_threads(self.raw)?;
        let threads = threads.min(most); // more are refused
        let (declared, dynamic) = self.shared(threads)?;
        let block = block(
            threads,
            self.attribute(A::CU_FUNC_ATTRIBUTE_NUM_REGS)?,
            declared + dynamic + self.reserved_shared,
        );
        // A device may allocate in larger units than those assumed; the driver knows.
        let block = self.occupancy.at_most(self.on_one_multiprocessor(threads, dynamic)?, block);
        let block = if self.prefers_l1 { self.occupancy.with_all_shared(block) } else { block };
        Ok(Limits { threads: most, blocks: self.occupancy.holds(block), block })
    }

    fn launch_slot(
        &self,
        grid: Grid,
        parameter: u64,
        replay: bool,
    ) -> Result<Arc<dyn LaunchSlot>, DriverError> {
        let _bound = Bound::new(self.context)?;
        let (_, shared) = self.shared(grid.threads)?;
        let mut launch_slot = CudaLaunchSlot {
            context: self.context,
            kernel: Kernel { raw: self.raw, grid, shared, parameter },
            graph: None,
            pair: ManuallyDrop::new(self.streams.take()?),
            streams: Arc::clone(&self.streams),
            deferred_free: Arc::clone(&self.deferred_free),
            resident: Mutex::new(None),
        };
        if replay {
            let of = (self.raw.0, grid.cooperative);
            let deferred = self.deferred_free.reuse_graph(of).map_err(|resident| DriverError {
                call: "launch",
                code: 0,
                reason: DriverReason::Resident { kernels: resident, needed: Needed::Graph },
            })?;
            launch_slot.graph = Some(match deferred {
                Some(graph) => launch_slot.change(graph)?,
                None => launch_slot.capture(of)?,
            });
        }
        Ok(Arc::new(launch_slot))
    }
}

/// A kernel with its one parameter.
#[derive(Debug)]
pub(super) struct Kernel {
    pub raw: RawFunction,
    pub grid: Grid,
    /// Bytes of dynamic shared memory.
    pub shared: u32,
    pub parameter: u64,
}

impl Kernel {
    /// Puts it into a stream, to be launched or captured. A context must be bound.
    ///
    /// # Safety
    /// If it is launched: as for [`LaunchSlot::launch`].
    pub unsafe fn enqueue(&self, stream: &Stream) -> Result<(), DriverError> {
        let mut parameter = self.parameter;
        let mut parameters = [(&raw mut parameter).cast()];
        let (blocks, threads) = (self.grid.blocks, self.grid.threads);
        let (f, m, p, s) = (self.raw.0, self.shared, parameters.as_mut_ptr(), stream.0);
        // SAFETY: a loaded function with one 8-byte parameter, which the driver copies; what it
        // leads to is the caller's promise.
        let done = unsafe {
            match self.grid.cooperative {
                true => api::cuLaunchCooperativeKernel(f, blocks, 1, 1, threads, 1, 1, m, s, p),
                false => {
                    let none = std::ptr::null_mut();
                    api::cuLaunchKernel(f, blocks, 1, 1, threads, 1, 1, m, s, p, none)
                }
            }
        };
        check("cuLaunchKernel", done)
    }
}

/// A kernel's launches on their stream, and the stream of the copies beside them.
#[derive(Debug)]
struct CudaLaunchSlot {
    context: Context,
    kernel: Kernel,
    graph: Option<Graph>,
    pair: ManuallyDrop<Pair>,
    streams: Arc<Streams>,
    deferred_free: Arc<DeferredFree>,
    /// Held while launches are on the device, so that nothing is freed then.
    resident: Mutex<Option<ResidentKernel>>,
}

impl Drop for CudaLaunchSlot {
    fn drop(&mut self) {
        if let Some(graph) = self.graph.take() {
            self.deferred_free.defer(Deferred::Graph(graph));
        }
        // SAFETY: taken once, and nothing uses it after this.
        let pair = unsafe { ManuallyDrop::take(&mut self.pair) };
        self.streams.give(pair); // a launch slot is dropped when it is over
    }
}

impl CudaLaunchSlot {
    /// A graph of one launch, made by capturing it. A context must be bound.
    fn capture(&self, of: (sys::CUfunction, bool)) -> Result<Graph, DriverError> {
        let stream = &self.pair.kernel;
        let relaxed = sys::CUstreamCaptureMode_enum::CU_STREAM_CAPTURE_MODE_RELAXED;
        let (mut graph, mut exec, mut node) =
            (std::ptr::null_mut(), std::ptr::null_mut(), std::ptr::null_mut());
        let mut nodes = 1;
        // SAFETY: a stream of ours that nothing else uses yet; the pointers are to locals. A
        // captured launch does not run.
        unsafe {
            check("cuStreamBeginCapture", api::cuStreamBeginCapture_v2(stream.0, relaxed))?;
            let captured = self.kernel.enqueue(stream);
            let ended = check("cuStreamEndCapture", api::cuStreamEndCapture(stream.0, &mut graph));
            captured.and(ended)?;
            check("cuGraphGetNodes", api::cuGraphGetNodes(graph, &mut node, &mut nodes))?;
            let made = api::cuGraphInstantiateWithFlags(&mut exec, graph, 0);
            check("cuGraphInstantiate", made)?;
            check("cuGraphUpload", api::cuGraphUpload(exec, stream.0))?;
        }
        Ok(Graph { of, graph, node, exec })
    }

    /// A graph that launched the same function before, made to launch it with our grid and parameter.
    /// A context must be bound.
    fn change(&self, graph: Graph) -> Result<Graph, DriverError> {
        let mut parameter = self.kernel.parameter;
        let mut parameters = [(&raw mut parameter).cast()];
        let launch = sys::CUDA_KERNEL_NODE_PARAMS {
            func: self.kernel.raw.0,
            gridDimX: self.kernel.grid.blocks,
            gridDimY: 1,
            gridDimZ: 1,
            blockDimX: self.kernel.grid.threads,
            blockDimY: 1,
            blockDimZ: 1,
            sharedMemBytes: self.kernel.shared,
            kernelParams: parameters.as_mut_ptr(),
            extra: std::ptr::null_mut(),
            kern: std::ptr::null_mut(),
            ctx: std::ptr::null_mut(),
        };
        // SAFETY: a graph that was given back, its own node, and one 8-byte parameter, which the
        // driver copies.
        let changed =
            unsafe { api::cuGraphExecKernelNodeSetParams_v2(graph.exec, graph.node, &launch) };
        check("cuGraphExecKernelNodeSetParams", changed).map(|()| graph)
    }

    /// What `query` says with the context bound.
    fn ask(&self, query: impl FnOnce() -> RunState) -> RunState {
        match Bound::new(self.context) {
            Ok(_bound) => query(),
            Err(error) if is_final(error.code) => {
                *lock(&self.resident) = None;
                RunState::Faulted(error)
            }
            Err(_) => RunState::Running,
        }
    }
}

impl Sealed for CudaLaunchSlot {}

impl LaunchSlot for CudaLaunchSlot {
    unsafe fn launch(&self, replay: bool) -> Result<Launched, DriverError> {
        let _bound = Bound::new(self.context)?;
        let mut resident = lock(&self.resident);
        let new = match &*resident {
            Some(_) => None,
            None => match self.deferred_free.resident() {
                None => return Ok(Launched::NotYet),
                counted => counted,
            },
        };
        // SAFETY: the caller's promise; a graph holds that same launch.
        unsafe {
            match &self.graph {
                Some(graph) if replay => {
                    check("cuGraphLaunch", api::cuGraphLaunch(graph.exec, self.pair.kernel.0))?;
                }
                _ => self.kernel.enqueue(&self.pair.kernel)?,
            }
        }
        if new.is_some() {
            *resident = new;
        }
        Ok(Launched::Yes)
    }

    fn state(&self) -> RunState {
        self.ask(|| {
            let mut resident = lock(&self.resident);
            let state = self.pair.kernel.state();
            if state != RunState::Running {
                *resident = None;
            }
            state
        })
    }

    fn is_over(&self) -> bool {
        self.state() != RunState::Running && self.copies() != RunState::Running
    }
}

impl CopyLane for CudaLaunchSlot {
    fn copies(&self) -> RunState {
        self.ask(|| self.pair.copies.state())
    }

    unsafe fn copy(&self, copy: MemoryCopy) -> Result<(), DriverError> {
        // SAFETY: the caller's promise.
        unsafe { copies::enqueue(copy, self.context, &self.pair.copies) }
    }
}
