//! Pinned memory that ends with pages which the device reads sooner than others. Such pages do not lie side by side, so
//! some are measured, and the quick ones among them are moved behind the memory's own.
//!
//! Only while no kernel is resident and none is launched, on any GPU of the process: the measured pages are given back by
//! the driver (`cuMemHostUnregister`) before they are moved, and that blocks beside a kernel. All GPUs see them.

use super::call::Bound;
use super::deferred_free::DeferredFree;
use super::mapping::Mapping;
use super::module::RawFunction;
use super::page_probe::{PAGE_PROBE, measure, probe_pages};
use super::stream::Stream;
use super::{Cuda, OPEN, pinned, too_much};
use crate::device::image::{Image, ImageError};
use crate::device::pages::{self, PAGE};
use crate::device::platform::available_memory;
use crate::device::probe::{NoQuickPages, PageClasses, QuickPages};
use crate::device::{Mapped, RunState};
use crate::sync::lock;
use std::sync::Arc;
use std::time::Instant;

/// Quick pages at most: the request lines of 128 channels, in a window of 128 messages of a line each.
const MOST: usize = 512;

/// One byte of so many of pinned memory is to be quick.
const PART: usize = 32;

/// Pinned memory at least, in bytes: with quick pages for four channels.
const LEAST: usize = 2 << 20;

/// Quick pages that are wanted behind so much pinned memory.
fn wanted(bytes: usize) -> usize {
    (bytes / PART / PAGE).min(MOST)
}

impl Cuda {
    /// Pinned memory with quick pages behind it, if the device reads some sooner; and what was found.
    pub(super) fn with_quick(
        &self,
        bytes: usize,
        kernels: &Image,
    ) -> Result<(Option<Mapped>, QuickPages), NoQuickPages> {
        if !self.info.maps_host_memory {
            return Err(NoQuickPages::NotMapped);
        }
        if bytes < LEAST {
            return Err(NoQuickPages::Little { bytes, least: LEAST });
        }
        let before = lock(&self.quick).clone();
        if let Some(found) = before
            && let Some(mapped) = self.deferred_free.reuse_pinned(bytes, true)
        {
            return Ok((Some(mapped), found));
        }
        // Twice as many pages are measured.
        let all = bytes.saturating_add(3 * wanted(bytes) * PAGE);
        if all as u64 > available_memory() {
            return Err(too_much("cuMemHostRegister", all, available_memory()).into());
        }
        let probe = self.modules.function(kernels, PAGE_PROBE);
        let probe = probe.map_err(|error| match error {
            ImageError::NoEntry { .. } => NoQuickPages::NoEntry,
            error => NoQuickPages::Image(error),
        })?;
        let pair = self.streams.take()?;
        let found = while_idle(&self.all(), || {
            let _bound = Bound::new(self.context)?;
            alloc(bytes, probe, &pair.kernel)
        });
        // A stream in which a probe may still run is never used again.
        let over = |_bound| pair.kernel.state() != RunState::Running;
        if Bound::new(self.context).is_ok_and(over) {
            self.streams.give(pair);
        }
        let (mapped, found) = found.map_err(NoQuickPages::Resident)??;
        if mapped.is_some() {
            *lock(&self.quick) = Some(found.clone());
        }
        Ok((mapped, found))
    }

    /// All GPUs of the process, this one too if it was reset and has a successor: in the order of their indices, so that
    /// no two threads wait for each other.
    fn all(&self) -> Vec<Arc<DeferredFree>> {
        let of = |cuda: &Cuda| (cuda.index, Arc::clone(&cuda.deferred_free));
        let mut all: Vec<_> = lock(&OPEN).iter().map(|(_, cuda)| of(cuda)).collect();
        if !all.iter().any(|(_, one)| Arc::ptr_eq(one, &self.deferred_free)) {
            all.push(of(self));
        }
        all.sort_by_key(|(index, _)| *index);
        all.into_iter().map(|(_, deferred_free)| deferred_free).collect()
    }
}

/// Does what would block beside a kernel of any of these GPUs; or says how many kernels one has.
fn while_idle<T>(all: &[Arc<DeferredFree>], work: impl FnOnce() -> T) -> Result<T, usize> {
    match all.split_first() {
        Some((first, rest)) => first.while_idle(|| while_idle(rest, work))?,
        None => Ok(work()),
    }
}

/// The same while no kernel is resident. The context must be bound.
fn alloc(
    bytes: usize,
    probe: RawFunction,
    stream: &Stream,
) -> Result<(Option<Mapped>, QuickPages), NoQuickPages> {
    let begun = Instant::now();
    // The memory's own pages, those that are measured, and the probe's.
    let (own, wanted) = (pages::whole(bytes) / PAGE, wanted(bytes));
    let count = 2 * wanted;
    let mapping = Mapping::new(own + count + probe_pages(count))?;
    mapping.prefer_small_pages(own);
    let (mapping, cycles) = measure(mapping, own, count, (probe, stream))?;
    let measured = begun.elapsed();
    let classes = PageClasses::of(&cycles).ok_or(NoQuickPages::NotMeasured)?;
    if !classes.are_clear() {
        return Ok((None, QuickPages::Alike { classes, took: begun.elapsed() }));
    }
    let is_quick: Vec<bool> = cycles.iter().map(|cycles| classes.is_quick(*cycles)).collect();
    let (quick, moves) = side_by_side(&is_quick, wanted);
    let moves: Vec<_> = moves.into_iter().map(|(from, onto)| (own + from, own + onto)).collect();
    let mapping = mapping.pack(own + quick, &moves)?;
    let (bytes_quick, took) = (quick * PAGE, begun.elapsed());
    tracing::debug!(pages = count, moved = moves.len(), ?measured, ?took, "quick pages packed");
    let mapped = pinned::of_mapping(mapping, bytes, bytes_quick)?;
    Ok((Some(mapped), QuickPages::Used { classes, bytes: bytes_quick, took }))
}

/// How many quick pages are to lie in front of all others, at most so many, and what is to be moved for that: from where,
/// and where to.
fn side_by_side(is_quick: &[bool], most: usize) -> (usize, Vec<(usize, usize)>) {
    let count = is_quick.iter().filter(|quick| **quick).count().min(most);
    let slow = (0..count).filter(|page| !is_quick[*page]);
    let quick = (count..is_quick.len()).filter(|page| is_quick[*page]);
    (count, quick.zip(slow).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quick_pages_come_to_lie_in_front() {
        for (pages, most, expected) in [
            ("qsqsqsqs", 4, 4),
            ("sqsqsqsq", 4, 4),
            ("qqqqqqss", 4, 4),
            ("ssssqqqq", 4, 4),
            ("sssssssq", 4, 1),
            ("qqssssqs", 4, 3),
            ("ssss", 2, 0),
        ] {
            let is_quick: Vec<bool> = pages.bytes().map(|kind| kind == b'q').collect();
            let (count, moves) = side_by_side(&is_quick, most);
            assert_eq!(count, expected, "{pages}");
            let mut after = is_quick.clone();
            for (from, onto) in &moves {
                assert!(is_quick[*from] && !is_quick[*onto], "{pages}: {moves:?}");
                after[*onto] = true;
            }
            assert!(after[..count].iter().all(|quick| *quick), "{pages}: {moves:?}");
        }
    }

    #[test]
    fn a_32nd_of_the_memory_is_wanted() {
        assert_eq!([64 << 20, 1 << 30, 32 << 20, LEAST].map(wanted), [512, 512, 256, 16]);
    }
}
