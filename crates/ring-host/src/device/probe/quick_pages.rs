//! Whether the device reads some pages of pinned memory sooner than others, and what is done about it.

use super::PageClasses;
use crate::device::image::ImageError;
use crate::error::DriverError;
use std::fmt;
use std::time::Duration;

/// Whether the device reads some pages of pinned memory sooner than others. Where it does, request lines, which it
/// polls, lie in such pages.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum QuickPages {
    /// It does, and request lines lie in such pages as long as there is room.
    Used {
        /// What was measured.
        classes: PageClasses,
        /// Bytes of quick pages that there are for request lines.
        bytes: usize,
        /// How long it took to measure the pages and to move them side by side.
        took: Duration,
    },
    /// It does not, as far as can be told.
    Alike {
        /// What was measured: two halves that do not differ enough.
        classes: PageClasses,
        /// How long that took.
        took: Duration,
    },
    /// That was not found out, or nothing could be done about it.
    Unused(NoQuickPages),
}

impl fmt::Display for QuickPages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = |took: &Duration| took.as_secs_f64() * 1e3;
        match self {
            QuickPages::Used { classes, bytes, took } => write!(
                f,
                "{classes}; request lines lie in {bytes} bytes of the first kind, found in {:.1} ms",
                ms(took)
            ),
            QuickPages::Alike { classes, took } => {
                write!(f, "no clear difference: {classes}; found in {:.1} ms", ms(took))
            }
            QuickPages::Unused(why) => write!(f, "all are used alike: {why}"),
        }
    }
}

/// Why it is not known whether the device reads some pages sooner, or why that is not used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoQuickPages {
    /// CPU threads.
    #[error("only a GPU is asked")]
    NoGpu,
    /// The device does not map host memory, or none is pinned.
    #[error("kernels do not use pinned memory in place")]
    NotMapped,
    /// The operating system is not Linux.
    #[error("pages are moved on Linux only")]
    System,
    /// Little pinned memory is asked for.
    #[error("only {bytes} bytes of pinned memory are asked for, less than {least}")]
    Little {
        /// Bytes asked for.
        bytes: usize,
        /// From how many on it is done.
        least: usize,
    },
    /// The runtime's kernels lack the page probe.
    #[error("the runtime's kernels have no entry 'ring_page_probe'")]
    NoEntry,
    /// The runtime's kernels cannot be used.
    #[error(transparent)]
    Image(ImageError),
    /// Kernels are resident: beside them pages cannot be given back.
    #[error("{0} kernels are resident, and no pages can be given back beside them")]
    Resident(usize),
    /// Not every page was measured.
    #[error("the page probe did not measure every page")]
    NotMeasured,
    /// A call failed.
    #[error(transparent)]
    Driver(#[from] DriverError),
}
