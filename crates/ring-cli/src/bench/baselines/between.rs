//! One block to another and back through device memory, by the device's own clock: half of it is one
//! way, the only one that a single clock can time.

use super::gpu::Entry;
use crate::bench::context::{Context, wrong};
use crate::bench::report::Found;
use ring_bench::baselines::Between;
use std::sync::atomic::Ordering;

/// Round trips there and back, after a hundredth as many that are not counted.
const TRIPS: u64 = 100_000;

/// Microseconds one way.
pub fn one_way(context: &Context<'_>) -> Found<f64> {
    context.check_interrupt()?;
    trips(context, TRIPS / 100)?;
    let nanoseconds = trips(context, TRIPS)?;
    Ok(nanoseconds as f64 / (2 * TRIPS) as f64 / 1000.0)
}

fn trips(context: &Context<'_>, trips: u64) -> Found<u64> {
    let mut gpu = context.gpu()?;
    gpu.bind()?;
    gpu.clear(4096);
    let lines = gpu.memory(256);
    gpu.write_words(lines, &[0; 32])?;
    let (host, address) = gpu.pinned(0, size_of::<Between>());
    // SAFETY: cleared pinned memory, aligned, which nobody else uses now.
    let of = unsafe { &mut *host.cast::<Between>() };
    (of.lines, of.trips, of.limit) =
        (lines, trips, context.settings.kernel_limit().as_nanos() as u64);
    let of = &*of;
    // SAFETY: the struct and its lines are set, and stay.
    unsafe { gpu.launch(Entry::Between, 2, 1, address) }?;
    gpu.finish(context.settings.kernel_limit())?;
    match of.made.0.load(Ordering::Acquire) {
        made if made == trips => Ok(of.took.0.load(Ordering::Relaxed)),
        made => Err(wrong(format!("two blocks answered each other {made} times, not {trips}"))),
    }
}
