//! Opening the device that was asked for.

use super::cpu::Cpu;
use super::{Device, Driver};
use crate::error::OpenError;
use std::sync::Arc;

/// Opens a device, and says why that one.
pub fn open(device: Device) -> Result<(Arc<dyn Driver>, String), OpenError> {
    match device {
        Device::Cpu => Ok((Arc::new(Cpu::probed_once()), "asked for".to_owned())),
        Device::Cuda(index) => Ok((open_cuda(index)?, "asked for".to_owned())),
        Device::Auto => match open_cuda(0) {
            Ok(driver) => Ok((driver, "a GPU that can run ring kernels".to_owned())),
            Err(error) => {
                tracing::info!(%error, "no GPU; CPU threads instead");
                Ok((Arc::new(Cpu::probed_once()), format!("no GPU can be used: {error}")))
            }
        },
    }
}

#[cfg(feature = "cuda")]
fn open_cuda(index: usize) -> Result<Arc<dyn Driver>, OpenError> {
    Ok(crate::device::cuda::Cuda::open(index)?)
}

#[cfg(not(feature = "cuda"))]
fn open_cuda(_: usize) -> Result<Arc<dyn Driver>, OpenError> {
    Err(OpenError::NotBuilt)
}
