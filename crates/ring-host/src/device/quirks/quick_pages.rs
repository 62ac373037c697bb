//! Quick pages where there are none: ordinary ones behind pinned memory.

use crate::device::probe::{PageClasses, QuickPages};
use crate::device::{Driver, Mapped, pages};
use crate::error::DriverError;
use std::time::Duration;

/// Pages behind the memory that are said to be quick.
const PAGES: usize = 64;

/// Pinned memory of `inner` with pages behind it that are said to be quick.
pub(super) fn emulated(
    inner: &dyn Driver,
    bytes: usize,
) -> Result<(Mapped, QuickPages), DriverError> {
    let quick = PAGES * pages::PAGE;
    let memory = inner.alloc_pinned(pages::whole(bytes).saturating_add(quick))?;
    let classes = PageClasses::emulated(PAGES);
    let found = QuickPages::Used { classes, bytes: quick, took: Duration::ZERO };
    Ok((Mapped { bytes, quick, ..memory }, found))
}

/// The memory as `inner` gave it.
pub(super) fn plain(memory: Mapped) -> Mapped {
    Mapped { bytes: memory.all(), quick: 0, ..memory }
}
