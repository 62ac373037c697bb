//! Why a kernel cannot be run in some way.

use super::{DriverError, NoPinned};
use crate::device::probe::Lack;
use crate::mode::{Memory, Mode};

/// Why a kernel cannot be run in some mode and memory.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Obstacle {
    /// There is no pinned memory.
    #[error("there is no pinned memory: {0}")]
    NoPinned(NoPinned),
    /// Kernels do not use pinned memory in place.
    #[error("mapped memory does not work: {0}")]
    NotMapped(Lack),
    /// Copies wait for a kernel that stays.
    #[error("copies do not come back beside a resident kernel: {0}")]
    CopiesWait(Lack),
    /// Staged-sync memory needs launches to follow each other, and the mode has one.
    #[error("staged-sync memory is copied between launches, and a persistent kernel has only one")]
    OneLaunch,
    /// The device ends kernels that run for long.
    #[error("the device's watchdog ends kernels that run for long")]
    Watchdog,
    /// A kernel that stays does not answer.
    #[error("a resident kernel did not answer: {0}")]
    NotResident(Lack),
    /// While a kernel stays, no other can be launched.
    #[error("calls block beside a resident kernel, so another could not be launched: {0}")]
    LaunchesWait(Lack),
    /// While the kernel stays, its payload or state cannot be copied.
    #[error("this kernel's payload is copied beside it, but calls block: {0}")]
    PayloadWaits(Lack),
    /// The payload was asked for in mapped memory, and the kernel's memory is not.
    #[error(
        "its payload was asked for in mapped memory (LaunchConfig::payload_memory), which needs the rings there too; \
         ask for PayloadMemory::Auto"
    )]
    PayloadNotMapped,
    /// What the device notes of messages is read where it wrote it.
    #[error(
        "its messages are traced (LaunchConfig::trace), which needs the rings in mapped memory"
    )]
    TraceNotMapped,
    /// Handlers that wait for the host's answer need a kernel that stays, and memory that both see.
    #[error("its handlers call the host, which only a persistent kernel in mapped memory can")]
    CallsHost,
    /// There are no graphs.
    #[error("no graph could be launched: {0}")]
    NoGraph(Lack),
    /// The driver refused when it was tried.
    #[error(transparent)]
    Driver(#[from] DriverError),
}

/// A mode and a memory that were not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[error("{mode} in {memory} memory: {why}")]
pub struct Refusal {
    /// The mode.
    pub mode: Mode,
    /// The memory.
    pub memory: Memory,
    /// Why not.
    pub why: Obstacle,
}

/// Refusals in one line.
pub(super) fn listed(refusals: &[Refusal]) -> String {
    refusals.iter().map(Refusal::to_string).collect::<Vec<_>>().join("; ")
}
