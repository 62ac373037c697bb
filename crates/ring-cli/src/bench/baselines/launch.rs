//! A launch, or the launch of a graph, for each answer.

use super::Gpu;
use super::flag::wait;
use super::gpu::{Entry, check};
use crate::bench::context::Context;
use crate::bench::report::Found;
use crate::bench::settings::TIMEOUT;
use crate::bench::stats::Times;
use cudarc::driver::sys;
use ring_bench::baselines::Flags;
use std::ptr::null_mut;
use std::sync::atomic::Ordering;
use std::time::Instant;

/// What is launched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kernel {
    /// Reads the request across the bus, and answers it with one more.
    Reads,
    /// Answers with a number of its own, in device memory.
    Counts,
}

/// How it is launched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// `cuLaunchKernel`.
    Launch,
    /// `cuGraphLaunch` of a graph of one launch.
    Graph,
}

/// The struct of [`Kernel::Counts`] is where the device memory begins.
const COUNT_BYTES: usize = 4096;

/// A kernel with its parameter, and graphs of both. Made once: each module and graph takes memory.
#[derive(Debug)]
pub struct Launches {
    graphs: [sys::CUgraphExec; 2],
}

// SAFETY: handles that the driver lets any thread use.
unsafe impl Send for Launches {}
// SAFETY: as above; no two launches of one are given to the driver at once.
unsafe impl Sync for Launches {}

fn enqueue(gpu: &Gpu, kernel: Kernel) -> Found<()> {
    let (_, flags) = gpu.pinned(0, size_of::<Flags>());
    let count = gpu.memory(COUNT_BYTES);
    let (entry, parameter) = match kernel {
        Kernel::Reads => (Entry::Once, flags),
        Kernel::Counts => (Entry::Count, count),
    };
    // SAFETY: both structs are set before the launch, and stay.
    unsafe { gpu.launch(entry, 1, 1, parameter) }
}

impl Launches {
    /// Captures both kernels.
    pub fn new(gpu: &Gpu) -> Found<Launches> {
        gpu.bind()?;
        let mut graphs = [null_mut(); 2];
        for (exec, kernel) in graphs.iter_mut().zip([Kernel::Reads, Kernel::Counts]) {
            let mut graph = null_mut();
            let relaxed = sys::CUstreamCaptureMode_enum::CU_STREAM_CAPTURE_MODE_RELAXED;
            // SAFETY: a stream that nothing else uses; the pointers are to locals.
            unsafe {
                let begun = sys::cuStreamBeginCapture_v2(gpu.stream(), relaxed);
                check("cuStreamBeginCapture", begun)?;
                let captured = enqueue(gpu, kernel);
                let ended = sys::cuStreamEndCapture(gpu.stream(), &mut graph);
                captured.and(check("cuStreamEndCapture", ended))?;
                let made = sys::cuGraphInstantiateWithFlags(exec, graph, 0);
                check("cuGraphInstantiate", made)?;
                check("cuGraphUpload", sys::cuGraphUpload(*exec, gpu.stream()))?;
            }
        }
        Ok(Launches { graphs })
    }

    /// A round of answers, each by a launch of its own.
    pub fn round(
        &self,
        context: &Context<'_>,
        gpu: &mut Gpu,
        (kernel, by): (Kernel, By),
        times: &mut Times,
    ) -> Found<()> {
        gpu.bind()?;
        gpu.clear(4096);
        let gpu = &*gpu;
        // SAFETY: zeros are flags; the device writes atomics.
        let (flags, address) = unsafe { gpu.shared::<Flags>(0) };
        gpu.write_words(gpu.memory(COUNT_BYTES), &[0, address])?;
        let one = |i: u64| {
            if i == 0 {
                gpu.bind()?; // this thread
            }
            let begun = Instant::now();
            // The second kernel answers its first launch with 1 as well.
            flags.request.0.store(i, Ordering::Release);
            match by {
                By::Launch => enqueue(gpu, kernel)?,
                By::Graph => {
                    // SAFETY: an instantiated graph of the same launch.
                    let launched =
                        unsafe { sys::cuGraphLaunch(self.graphs[kernel as usize], gpu.stream()) };
                    check("cuGraphLaunch", launched)?;
                }
            }
            wait(&flags.response.0, i + 1, begun)?;
            let time = begun.elapsed();
            gpu.finish(TIMEOUT)?; // not timed: the next launch waits for nothing
            Ok(time)
        };
        context.timed(times, one)
    }
}
