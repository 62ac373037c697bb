//! Opening a device, with things taken away from it if so asked.

use crate::args::Emulation;
use ring_host::device::{self, Driver};
use ring_host::{Device, DeviceInfo, DeviceKind, Kernels, OpenError, Runtime, RuntimeConfig};
use std::sync::Arc;

/// A device that was found, and what became of opening it.
#[derive(Debug)]
pub struct Host {
    /// What it is.
    pub info: DeviceInfo,
    /// Why this one.
    pub why: String,
    /// To launch kernels with; or why it could not be had although there is the device.
    pub runtime: Result<Runtime, OpenError>,
}

/// Finds the device and opens it, with what stands for the built-in kernels.
pub fn open(
    device: Device,
    emulation: Option<&Emulation>,
    kernels: Kernels,
) -> Result<Host, OpenError> {
    let (driver, why) = device::open(device, &kernels.image()?)?;
    let Some(emulation) = emulation else {
        return Ok(over(driver, why.to_string(), kernels));
    };
    let why = format!("{why}; emulating {emulation}");
    Ok(over(emulation.of(driver).into(), why, kernels))
}

fn over(driver: Arc<dyn Driver>, why: String, kernels: Kernels) -> Host {
    let info = driver.info().clone();
    let config = RuntimeConfig { kernels, ..RuntimeConfig::default() };
    Host { info, why, runtime: Runtime::over(driver, config) }
}

/// What the device is made of, in a word.
pub fn kind(info: &DeviceInfo) -> &'static str {
    match info.kind {
        DeviceKind::Cpu => "cpu",
        DeviceKind::Cuda => "cuda",
        _ => "of another kind",
    }
}

/// What NVIDIA's kernel module says of its version, on Linux.
pub fn kernel_module() -> Option<String> {
    let text = std::fs::read_to_string("/proc/driver/nvidia/version").ok()?;
    let line = text.lines().next()?.split_whitespace().collect::<Vec<_>>().join(" ");
    Some(line.trim_start_matches("NVRM version: ").to_owned())
}
