//! Opening the device that was asked for.

use super::cpu::Cpu;
use super::image::Image;
use super::{Device, Driver};
use crate::error::OpenError;
use std::fmt;
use std::sync::Arc;

/// Why a device was opened, and no other.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum Opened {
    /// It was asked for.
    AskedFor,
    /// It is a GPU that can run ring kernels.
    Found,
    /// These are CPU threads, because no GPU can be used.
    NoGpu(OpenError),
    /// The caller had it.
    Given,
}

impl fmt::Display for Opened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Opened::AskedFor => f.write_str("asked for"),
            Opened::Found => f.write_str("a GPU that can run ring kernels"),
            Opened::NoGpu(error) => write!(f, "no GPU can be used: {error}"),
            Opened::Given => f.write_str("given by the caller"),
        }
    }
}

/// Opens a device, and says why that one. A GPU is one that loads `kernels`.
pub fn open(device: Device, kernels: &Image) -> Result<(Arc<dyn Driver>, Opened), OpenError> {
    match device {
        Device::Cpu => Ok((Cpu::probed_once(), Opened::AskedFor)),
        Device::Cuda(index) => Ok((open_cuda(index, kernels)?, Opened::AskedFor)),
        Device::Auto => match open_cuda(0, kernels) {
            Ok(driver) => Ok((driver, Opened::Found)),
            Err(error) => {
                tracing::info!(%error, "no GPU; CPU threads instead");
                Ok((Cpu::probed_once(), Opened::NoGpu(error)))
            }
        },
    }
}

#[cfg(feature = "cuda")]
fn open_cuda(index: usize, kernels: &Image) -> Result<Arc<dyn Driver>, OpenError> {
    let driver = crate::device::cuda::Cuda::open(index)?;
    let _ = driver.load_all(kernels)?; // before anything is resident
    Ok(driver)
}

#[cfg(not(feature = "cuda"))]
fn open_cuda(_: usize, _: &Image) -> Result<Arc<dyn Driver>, OpenError> {
    Err(OpenError::NotBuilt)
}
