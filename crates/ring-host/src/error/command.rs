//! Why a command was not obeyed, or memory not copied.

use super::{ChannelError, DeviceFault, DriverError};
use ring_shared::layout::State;
use std::time::Duration;

/// Why a kernel did not change its state.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ControlError {
    /// A channel did not acknowledge in time. The kernel may still do it.
    #[error("kernel {kernel}: channel {channel} did not acknowledge {asked:?} within {waited:?}")]
    Timeout {
        /// The kernel.
        kernel: &'static str,
        /// The first channel that had not.
        channel: u32,
        /// The state asked for.
        asked: State,
        /// How long was waited.
        waited: Duration,
    },
    /// All channels acknowledged, but the kernel has not left the device yet. Try again.
    #[error("kernel {kernel} obeyed, but did not leave the device within {waited:?}")]
    Staying {
        /// The kernel.
        kernel: &'static str,
        /// How long was waited.
        waited: Duration,
    },
    /// The kernel was terminated before.
    #[error("kernel {kernel} is terminated; launch it again")]
    Terminated {
        /// The kernel.
        kernel: &'static str,
    },
    /// The kernel can answer no more.
    #[error(transparent)]
    Fault(#[from] DeviceFault),
}

/// Why kernels were not kept off their device ([`Runtime::quiesce`](crate::Runtime::quiesce)). They go on as before.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum QuiesceError {
    /// A kernel with ports, or a grid of several devices: what is between two of them cannot be kept off the device.
    #[error(
        "kernel {kernel} has ports, or is a grid of several devices, and cannot be kept off the device and brought back; \
         terminate its graph or its grids first"
    )]
    Linked {
        /// The kernel.
        kernel: &'static str,
    },
    /// A kernel did not stop to take messages before the deadline.
    #[error(transparent)]
    Control(#[from] ControlError),
}

/// Why the payload arena was not read or written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PayloadError {
    /// Not all inside the arena.
    #[error(
        "kernel {kernel}: {bytes} bytes at offset {offset} are not inside its payload arena of \
         {arena} bytes; choose its size when the kernel is launched (LaunchConfig::payload_bytes)"
    )]
    OutOfBounds {
        /// The kernel.
        kernel: &'static str,
        /// Where.
        offset: u64,
        /// How many bytes.
        bytes: usize,
        /// The arena.
        arena: usize,
    },
    /// Words lie at multiples of 4.
    #[error("offset {offset} is not a multiple of 4")]
    Unaligned {
        /// Where.
        offset: u64,
    },
    /// The copy did not end in time. One that writes may still be under way: what follows waits for it.
    #[error("a copy of {bytes} bytes did not end within {waited:?}")]
    Timeout {
        /// How many bytes.
        bytes: usize,
        /// How long was waited.
        waited: Duration,
    },
    /// A driver call failed.
    #[error(transparent)]
    Driver(#[from] DriverError),
    /// The kernel can answer no more.
    #[error(transparent)]
    Fault(#[from] DeviceFault),
}

/// Why a kernel's state was not read or written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StateError {
    /// No such channel.
    #[error(transparent)]
    Channel(#[from] ChannelError),
    /// It changes with every message.
    #[error(
        "kernel {kernel} is active, so its state changes; deactivate or terminate it first, or read between two messages by \
         `KernelHandle::share`"
    )]
    Active {
        /// The kernel.
        kernel: &'static str,
    },
    /// The kernel did not stop to take messages in time, or another thread commanded it for so long.
    #[error(transparent)]
    Control(#[from] ControlError),
    /// The copy was not made.
    #[error(transparent)]
    Copy(#[from] PayloadError),
}
