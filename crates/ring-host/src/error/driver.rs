//! Driver calls that failed.

use super::limit::words;
use std::time::Duration;

/// A driver call that failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{call} failed: {reason}")]
pub struct DriverError {
    /// The call.
    pub call: &'static str,
    /// The driver's code; 0 if it has none.
    pub code: i32,
    /// Why it failed.
    pub reason: DriverReason,
}

/// Why a driver call failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DriverReason {
    /// The words of the driver, or of the operating system.
    #[error("{0}")]
    Words(Box<str>),
    /// The words of an emulated device (`Quirks`), from which that was taken away.
    #[error("{0} (a quirk)")]
    Emulated(Box<str>),
    /// There is not so much memory.
    #[error("out of memory: {bytes} bytes{}", but_free(*free))]
    OutOfMemory {
        /// Bytes asked for.
        bytes: usize,
        /// Bytes that are free, if that is known.
        free: Option<u64>,
    },
    /// Memory of no bytes was asked for.
    #[error("no bytes were asked for")]
    NoBytes,
    /// So many bytes are more than the address space.
    #[error("{bytes} bytes are more than the address space")]
    AddressSpace {
        /// Bytes asked for.
        bytes: usize,
    },
    /// The driver gave memory without an address.
    #[error("the memory has no address")]
    NoAddress,
    /// The driver made no stream.
    #[error("no stream could be made")]
    NoStream,
    /// What is needed for another launch cannot be made while kernels are resident.
    #[error(
        "{kernels} kernels are resident, and no more {needed} can be made beside them; terminate one{}",
        if *needed == Needed::Graph { ", or choose the mode event-driven" } else { "" }
    )]
    Resident {
        /// Kernels that are.
        kernels: usize,
        /// What cannot be made.
        needed: Needed,
    },
    /// The driver did not end loading code.
    #[error("the driver was loading code for {waited:?}; try again")]
    Loading {
        /// How long was waited.
        waited: Duration,
    },
    /// The device did not answer.
    #[error("no answer within {waited:?}")]
    Silent {
        /// How long was waited.
        waited: Duration,
    },
}

/// What cannot be made while kernels are resident.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Needed {
    /// A graph.
    Graph,
    /// A stream.
    Stream,
}

fn but_free(free: Option<u64>) -> String {
    free.map_or(String::new(), |free| format!(", but {free} are free"))
}

impl DriverError {
    /// The error of the last call of the operating system.
    #[cfg(all(feature = "cuda", target_os = "linux"))]
    pub(crate) fn last(call: &'static str) -> DriverError {
        DriverError::of_system(call, &std::io::Error::last_os_error())
    }

    /// The error of a call of the operating system.
    pub(crate) fn of_system(call: &'static str, error: &std::io::Error) -> DriverError {
        let reason = DriverReason::Words(error.to_string().into());
        DriverError { call, code: error.raw_os_error().unwrap_or(0), reason }
    }
}

words! {
    Needed: Graph "graphs", Stream "streams";
}

/// Why there is no pinned memory.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoPinned {
    /// Nobody asked for any.
    #[error("none was asked for (RuntimeConfig::pinned_bytes)")]
    NotAsked,
    /// The driver refused it.
    #[error(transparent)]
    Refused(#[from] DriverError),
}
