//! Driver calls that failed.

use std::fmt;
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
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DriverReason {
    /// The words of the driver, or of the operating system.
    Words(Box<str>),
    /// The words of an emulated device (`Quirks`), from which that was taken away.
    Emulated(Box<str>),
    /// There is not so much memory.
    OutOfMemory {
        /// Bytes asked for.
        bytes: usize,
        /// Bytes that are free, if that is known.
        free: Option<u64>,
    },
    /// Memory of no bytes was asked for.
    NoBytes,
    /// So many bytes are more than the address space.
    AddressSpace {
        /// Bytes asked for.
        bytes: usize,
    },
    /// The driver gave memory without an address.
    NoAddress,
    /// The driver made no stream.
    NoStream,
    /// What is needed for another launch cannot be made while kernels are resident.
    Resident {
        /// Kernels that are.
        kernels: usize,
        /// What cannot be made.
        needed: Needed,
    },
    /// The driver did not end loading code.
    Loading {
        /// How long was waited.
        waited: Duration,
    },
    /// The device did not answer.
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

impl DriverError {
    /// The error of a call of the operating system.
    pub(crate) fn of_system(call: &'static str, error: &std::io::Error) -> DriverError {
        let reason = DriverReason::Words(error.to_string().into());
        DriverError { call, code: error.raw_os_error().unwrap_or(0), reason }
    }
}

impl fmt::Display for DriverReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DriverReason::Words(words) => f.write_str(words),
            DriverReason::Emulated(words) => write!(f, "{words} (a quirk)"),
            DriverReason::OutOfMemory { bytes, free: Some(free) } => {
                write!(f, "out of memory: {bytes} bytes, but {free} are free")
            }
            DriverReason::OutOfMemory { bytes, free: None } => {
                write!(f, "out of memory ({bytes} bytes)")
            }
            DriverReason::NoBytes => f.write_str("no bytes were asked for"),
            DriverReason::AddressSpace { bytes } => {
                write!(f, "{bytes} bytes are more than the address space")
            }
            DriverReason::NoAddress => f.write_str("the memory has no address"),
            DriverReason::NoStream => f.write_str("no stream could be made"),
            DriverReason::Resident { kernels, needed: Needed::Graph } => write!(
                f,
                "{kernels} kernels are resident, and no more graphs can be made beside them; terminate \
                 one, or choose the mode event-driven"
            ),
            DriverReason::Resident { kernels, needed: Needed::Stream } => write!(
                f,
                "{kernels} kernels are resident, and no more streams can be made beside them; \
                 terminate one"
            ),
            DriverReason::Loading { waited } => {
                write!(f, "the driver was loading code for {waited:?}; try again")
            }
            DriverReason::Silent { waited } => write!(f, "no answer within {waited:?}"),
        }
    }
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
