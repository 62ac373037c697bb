//! Why there is no call of a kernel's handlers to the host.

use super::DeviceFault;
use std::time::Duration;

/// Why a kernel's calls to the host cannot be had.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HostCallsError {
    /// They have an owner.
    #[error("kernel {kernel}: its calls to the host were taken out before; they have one owner")]
    Taken {
        /// The kernel.
        kernel: &'static str,
    },
}

/// Why there is no next call.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NextCallError {
    /// None has come before the deadline.
    #[error("kernel {kernel}: no handler has called the host within {waited:?}")]
    Timeout {
        /// The kernel.
        kernel: &'static str,
        /// How long was waited.
        waited: Duration,
    },
    /// The kernel was terminated.
    #[error("kernel {kernel} is terminated: no handler calls the host any more")]
    Ended {
        /// The kernel.
        kernel: &'static str,
    },
    /// The kernel is lost.
    #[error(transparent)]
    Fault(DeviceFault),
}
