//! One block to another and back through device memory, by the device's own clock: half of it is one
//! way, the only one that a single clock can time.

use super::gpu::Entry;
use crate::bench::context::{Context, wrong};
use crate::bench::report::{Found, OnDevice};
use ring_bench::baselines::{Between, LINK_BYTES};
use std::sync::atomic::Ordering;

/// Trips there and back, after a hundredth as many that are not counted.
const TRIPS: u64 = 100_000;

/// By which kernel, and its row's name.
const WAYS: [(Entry, &str); 3] = [
    (Entry::Between, "one block to another, one way"),
    (Entry::LinkGpu, "one block to another by a ring of gpu scope, one way"),
    (Entry::LinkSystem, "one block to another by a ring of system scope, one way"),
];

/// Microseconds one way, by each of the ways.
pub fn one_way(context: &Context<'_>) -> [OnDevice; WAYS.len()] {
    WAYS.map(|(entry, name)| {
        let us = trips(context, entry, TRIPS / 100)
            .and_then(|_| trips(context, entry, TRIPS))
            .map(|nanoseconds| nanoseconds as f64 / (2 * TRIPS) as f64 / 1000.0);
        OnDevice { name, us }
    })
}

fn trips(context: &Context<'_>, entry: Entry, trips: u64) -> Found<u64> {
    context.check_interrupt()?;
    let mut gpu = context.gpu()?;
    gpu.bind()?;
    gpu.clear(4096);
    let lines = gpu.memory(2 * LINK_BYTES);
    gpu.write_words(lines, &[0; 2 * LINK_BYTES / 8])?;
    let (host, address) = gpu.pinned(0, size_of::<Between>());
    // SAFETY: cleared pinned memory, aligned, which nobody else uses now.
    let of = unsafe { &mut *host.cast::<Between>() };
    (of.lines, of.trips, of.limit) =
        (lines, trips, context.settings.kernel_limit().as_nanos() as u64);
    let of = &*of;
    // SAFETY: the struct and its lines are set, and stay.
    unsafe { gpu.launch(entry, 2, 1, address) }?;
    gpu.finish(context.settings.kernel_limit())?;
    match of.made.0.load(Ordering::Acquire) {
        made if made == trips => Ok(of.took.0.load(Ordering::Relaxed)),
        made => Err(wrong(format!("two blocks answered each other {made} times, not {trips}"))),
    }
}
