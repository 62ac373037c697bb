//! As what a device loaded an image, and why so.

use super::error::ImageError;
use std::fmt;

/// As what a device loaded kernels.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum Loaded {
    /// As nothing: CPU threads run the handlers that were compiled with the program.
    Host,
    /// As a cubin, which the driver takes as it is. It was assembled of the same PTX.
    Cubin(Architecture),
    /// As PTX, which the driver compiled, or had in its cache.
    Ptx(NoCubin),
}

impl fmt::Display for Loaded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Loaded::Host => f.write_str("compiled for the host"),
            Loaded::Cubin(architecture) => write!(f, "the cubin for {architecture}"),
            Loaded::Ptx(why) => write!(f, "PTX, compiled by the driver: {why}"),
        }
    }
}

/// An architecture that code is assembled for. It is named as NVIDIA's tools do: `sm_90`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Architecture {
    /// The major number of its compute capability.
    pub major: u32,
    /// The minor number.
    pub minor: u32,
}

impl fmt::Display for Architecture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sm_{}{}", self.major, self.minor)
    }
}

/// Why PTX was loaded and no cubin.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoCubin {
    /// The kernels are not the built-in ones.
    #[error("only the built-in kernels have cubins")]
    NotBuiltIn,
    /// None that is shipped runs on the device.
    #[error("no cubin is shipped for {0}")]
    NotShipped(Architecture),
    /// The driver did not take it.
    #[error("the cubin for {architecture} was refused: {error}")]
    Refused {
        /// The cubin's architecture.
        architecture: Architecture,
        /// What was wrong.
        error: Box<ImageError>,
    },
}
