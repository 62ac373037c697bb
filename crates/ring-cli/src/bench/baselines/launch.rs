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

/// A graph of one launch of that kernel.
fn graph_of(gpu: &Gpu, kernel: Kernel) -> Found<sys::CUgraphExec> {
    let (mut graph, mut exec) = (null_mut(), null_mut());
    let relaxed = sys::CUstreamCaptureMode_enum::CU_STREAM_CAPTURE_MODE_RELAXED;
    // SAFETY: a stream that nothing else uses; the pointers are to locals.
    unsafe {
        let begun = sys::cuStreamBeginCapture_v2(gpu.stream(), relaxed);
        check("cuStreamBeginCapture", begun)?;
        let captured = enqueue(gpu, kernel);
        let ended = sys::cuStreamEndCapture(gpu.stream(), &mut graph);
        captured.and(check("cuStreamEndCapture", ended))?;
        let made = sys::cuGraphInstantiateWithFlags(&mut exec, graph, 0);
        check("cuGraphInstantiate", made)?;
        check("cuGraphUpload", sys::cuGraphUpload(exec, gpu.stream()))?;
    }
    Ok(exec)
}

/// A round of answers, each by a launch of its own.
pub fn round(context: &Context<'_>, kernel: Kernel, by: By, times: &mut Times) -> Found<()> {
    let mut gpu = context.gpu()?;
    gpu.bind()?;
    // Made once: each graph takes memory.
    if by == By::Graph && gpu.graphs[kernel as usize].is_null() {
        gpu.graphs[kernel as usize] = graph_of(&gpu, kernel)?;
    }
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
                    unsafe { sys::cuGraphLaunch(gpu.graphs[kernel as usize], gpu.stream()) };
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
