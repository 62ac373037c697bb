//! Measuring how long the device takes to read pages of pinned memory.

use super::api;
use super::call::check;
use super::function::{Kernel, max_threads};
use super::mapping::Mapping;
use super::module::RawFunction;
use super::pinned;
use super::stream::Stream;
use crate::deadline::{Patience, wait};
use crate::device::pages::{self, PAGE};
use crate::device::probe::NoQuickPages;
use crate::device::{Grid, RunState};
use crate::error::{DriverError, DriverReason};
use ring_shared::layout::PageProbe;
use std::ptr::NonNull;
use std::time::{Duration, Instant};

/// The probe's entry.
pub(super) const PAGE_PROBE: &str = "ring_page_probe";

/// How long the probe may take. It ends by itself, after less than a millisecond.
const PATIENCE: Duration = Duration::from_secs(1);

/// Pages that the probe needs behind those that it measures: what it is told and what it tells.
pub(super) fn probe_pages(count: usize) -> usize {
    pages::whole(size_of::<PageProbe>() + count * size_of::<u32>()) / PAGE
}

/// How many cycles a read takes of each of `count` pages from `first` on, with the [probe's](probe_pages) behind them, in
/// an idle stream. A context must be bound, and no kernel may be resident. If the probe does not end in time, it still is
/// in the stream, and the pages are never given back.
pub(super) fn measure(
    mapping: Mapping,
    first: usize,
    count: usize,
    (probe, stream): (RawFunction, &Stream),
) -> Result<(Mapping, Vec<u32>), NoQuickPages> {
    let begun = Instant::now();
    let pages = mapping.page(first);
    pinned::register(pages, (mapping.pages() - first) * PAGE, true)?;
    let registered = begun.elapsed();
    let ran = run(pages, mapping.page(first + count), count, probe, stream);
    let probed = begun.elapsed();
    if stream.state() != RunState::Ended {
        tracing::warn!("the page probe has not ended; its pages stay as they are");
        mapping.keep();
        ran?;
        return Err(NoQuickPages::NotMeasured);
    }
    // SAFETY: registered above, and nothing uses it any more.
    let done = unsafe { api::cuMemHostUnregister(pages.as_ptr().cast()) };
    if let Err(error) = check("cuMemHostUnregister", done) {
        mapping.keep();
        return Err(error.into());
    }
    ran?;
    let unregistered = begun.elapsed();
    tracing::debug!(pages = count, ?registered, ?probed, ?unregistered, "pages measured");
    let descriptor = mapping.page(first + count).cast::<PageProbe>();
    // SAFETY: so many numbers lie behind the descriptor, zeroed at first; the kernel that wrote them has ended.
    let cycles = unsafe {
        let cycles = descriptor.add(1).cast::<u32>();
        std::slice::from_raw_parts(cycles.as_ptr(), count).to_vec()
    };
    Ok((mapping, cycles))
}

/// Runs the probe on `count` pages, with a descriptor and its results behind them, all registered, and waits until it has
/// ended.
fn run(
    pages: NonNull<u8>,
    descriptor: NonNull<u8>,
    count: usize,
    probe: RawFunction,
    stream: &Stream,
) -> Result<(), DriverError> {
    let device = pinned::device_address(pages)?;
    let parameter = device + (count * PAGE) as u64;
    let cycles = parameter + size_of::<PageProbe>() as u64;
    let told = PageProbe { pages: device, cycles, count: count as u32, pad: 0 };
    // SAFETY: a page of the caller's, which nobody else uses yet.
    unsafe { descriptor.cast::<PageProbe>().write(told) };
    let threads = max_threads(probe)? / 32 * 32;
    let grid = Grid { blocks: 1, threads, cooperative: false };
    let kernel = Kernel { raw: probe, grid, shared: 0, parameter };
    // SAFETY: what the kernel needs; the caller keeps it until the stream has ended.
    unsafe { kernel.enqueue(stream) }?;
    let over = || Ok(stream.state().ended()?.then_some(()));
    let ended = wait(PATIENCE.into(), Patience::Spin, over, || Ok(()))?;
    let reason = DriverReason::Silent { waited: PATIENCE };
    ended.ok_or(DriverError { call: PAGE_PROBE, code: 0, reason })
}
