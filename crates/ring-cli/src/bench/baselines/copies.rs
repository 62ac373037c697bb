//! Plain copies: how many bytes a second the bus carries, and a message there and back by copies
//! around a launch.

use super::gpu::{Entry, Gpu, check};
use crate::bench::context::{Context, wrong};
use crate::bench::report::{Copies, Found};
use crate::bench::settings::TIMEOUT;
use crate::bench::stats::{Rates, Times};
use cudarc::driver::sys;
use std::time::{Duration, Instant};

/// Bytes of a copy whose speed is measured.
const BYTES: usize = 64 << 20;

/// Copies that follow each other.
const COPIES: usize = 8;

/// Directions of copies.
const NAMES: [&str; 2] = ["to the device", "from the device"];

/// A round of messages of 64 bytes: copied in, increased by a kernel, copied out, waited for.
pub fn round(context: &Context<'_>, times: &mut Times) -> Found<()> {
    let mut gpu = context.gpu()?;
    gpu.bind()?;
    gpu.clear(4096);
    let gpu = &*gpu;
    let (request, _) = gpu.pinned(0, 64);
    let (response, _) = gpu.pinned(128, 64);
    let (request, response) = (Words(request.cast()), Words(response.cast()));
    let memory = gpu.memory(64);
    let one = |i: u64| -> Found<Duration> {
        let (request, response) = (request, response);
        if i == 0 {
            gpu.bind()?; // this thread
        }
        let begun = Instant::now();
        // SAFETY: ours, 64 bytes each; nothing is in the stream.
        unsafe {
            request.0.write([i; 8]);
            let copied = sys::cuMemcpyHtoDAsync_v2(memory, request.0.cast(), 64, gpu.stream());
            check("cuMemcpyHtoDAsync", copied)?;
            gpu.launch(Entry::Add, 1, 32, memory)?;
            let copied = sys::cuMemcpyDtoHAsync_v2(response.0.cast(), memory, 64, gpu.stream());
            check("cuMemcpyDtoHAsync", copied)?;
            check("cuStreamSynchronize", sys::cuStreamSynchronize(gpu.stream()))?;
        }
        let time = begun.elapsed();
        // SAFETY: ours, 64 bytes; the stream is empty.
        let answer = unsafe { response.0.read_volatile() };
        match answer == [i + 1; 8] {
            true => Ok(time),
            false => Err(wrong(format!("the answer to message {i} is wrong: {answer:x?}"))),
        }
    };
    context.timed(times, one)
}

/// Eight words of pinned memory.
#[derive(Clone, Copy)]
struct Words(*mut [u64; 8]);

// SAFETY: the memory outlives every thread, and one thread at a time uses it.
unsafe impl Send for Words {}
// SAFETY: as above.
unsafe impl Sync for Words {}

/// A row of nothing measured yet for each direction: to the device, and back.
pub fn rows() -> [Copies; 2] {
    NAMES.map(|name| Copies { name, bytes: BYTES, rate: Ok(Rates::default()) })
}

/// Bytes a second to the device, or back; from the host's first processor.
pub fn speed(context: &Context<'_>, back: bool) -> Found<f64> {
    let gpu = context.gpu()?;
    let gpu = &*gpu;
    context.cores.on(0, || copied(gpu, back))
}

fn copied(gpu: &Gpu, back: bool) -> Found<f64> {
    gpu.bind()?;
    let ((host, _), memory) = (gpu.pinned(0, BYTES), gpu.memory(BYTES));
    let copy = || -> Found<()> {
        // SAFETY: both are ours, of that size; nothing else uses them.
        let copied = unsafe {
            match back {
                true => sys::cuMemcpyDtoHAsync_v2(host.cast(), memory, BYTES, gpu.stream()),
                false => sys::cuMemcpyHtoDAsync_v2(memory, host.cast(), BYTES, gpu.stream()),
            }
        };
        check("cuMemcpyAsync", copied)
    };
    copy()?;
    gpu.finish(TIMEOUT)?;
    let begun = Instant::now();
    for _ in 0..COPIES {
        copy()?;
    }
    // SAFETY: a stream of ours, with copies that end by themselves.
    check("cuStreamSynchronize", unsafe { sys::cuStreamSynchronize(gpu.stream()) })?;
    Ok((COPIES * BYTES) as f64 / begun.elapsed().as_secs_f64())
}
