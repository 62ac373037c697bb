//! Why a device was not opened.

use super::{DriverError, Requirement};
use crate::device::UnknownName;
use crate::device::image::ImageError;

/// Why a device was not opened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// No NVIDIA driver library on this machine.
    #[error(
        "no NVIDIA driver found (libcuda.so.1 is neither in the library path nor in \
         /usr/lib/wsl/lib); install the driver, or use the device 'cpu'"
    )]
    NoDriver,
    /// Built without the feature `cuda`.
    #[error("ring-host was built without the feature 'cuda'; enable it, or use the device 'cpu'")]
    NotBuilt,
    /// The driver found no device.
    #[error("the NVIDIA driver found no device; use the device 'cpu'")]
    NoDevice,
    /// No device of that index.
    #[error("there is no device {index}: the machine has {count} (indices from 0)")]
    OutOfRange {
        /// The index asked for.
        index: usize,
        /// How many there are.
        count: usize,
    },
    /// The device lacks something that a ring kernel needs.
    #[error("device '{device}' cannot run ring kernels: {lacks}")]
    Unsuitable {
        /// Its name.
        device: String,
        /// What it lacks.
        lacks: Requirement,
    },
    /// A kernel faulted, which ends all that the process has on any device of that driver.
    #[error(
        "device '{device}' has faulted, and the driver serves this process no more; start it again"
    )]
    Lost {
        /// Its name.
        device: String,
    },
    /// The arena could not be had.
    #[error(
        "an arena of {bytes} bytes could not be had: {source}; choose another size (RuntimeConfig)"
    )]
    Arena {
        /// Its size.
        bytes: usize,
        /// What the driver said.
        source: DriverError,
    },
    /// A variable of the environment has no meaning.
    #[error("environment variable {variable}: {source}; or unset it")]
    Environment {
        /// The variable.
        variable: &'static str,
        /// What is wrong with its value.
        source: UnknownName,
    },
    /// The kernels that stand for the built-in ones cannot be used.
    #[error("the runtime's kernels (RuntimeConfig::kernels) cannot be used: {0}")]
    Kernels(#[from] ImageError),
    /// A driver call failed.
    #[error(transparent)]
    Driver(#[from] DriverError),
}
