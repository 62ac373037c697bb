//! Which device, and what it can do.

use std::fmt;
use std::str::FromStr;

/// The device to open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Device {
    /// The first NVIDIA GPU that can be used, else CPU threads.
    #[default]
    Auto,
    /// CPU threads, one a channel.
    Cpu,
    /// The NVIDIA GPU of that index, from 0.
    Cuda(usize),
}

/// A name that is no device's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown device '{0}'; use auto, cpu, cuda or cuda:N (N from 0)")]
pub struct UnknownDevice(pub String);

/// A name that is not among those known.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown {what} '{name}'; use {}", listed(known))]
pub struct UnknownName {
    /// What it should name.
    pub what: &'static str,
    /// The name.
    pub name: String,
    /// Those known.
    pub known: &'static [&'static str],
}

fn listed(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}

impl FromStr for Device {
    type Err = UnknownDevice;

    fn from_str(name: &str) -> Result<Device, UnknownDevice> {
        match name {
            "auto" => Ok(Device::Auto),
            "cpu" => Ok(Device::Cpu),
            "cuda" => Ok(Device::Cuda(0)),
            _ => name
                .strip_prefix("cuda:")
                .and_then(|n| n.parse().ok())
                .map(Device::Cuda)
                .ok_or_else(|| UnknownDevice(name.to_owned())),
        }
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Device::Auto => f.write_str("auto"),
            Device::Cpu => f.write_str("cpu"),
            Device::Cuda(n) => write!(f, "cuda:{n}"),
        }
    }
}

/// What a device is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum DeviceKind {
    /// CPU threads.
    Cpu,
    /// An NVIDIA GPU.
    Cuda,
}

/// Whether a device serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum Health {
    /// Kernels run on it, and can be launched.
    Serving,
    /// Another user of the process has reset it, and what ran there is gone: [`Runtime::recover`](crate::Runtime::recover) opens it anew.
    Reset,
    /// It has faulted, and what ran there is gone. The driver serves this process on it no more; it is to be started again.
    Lost,
}

impl fmt::Display for Health {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Health::Serving => "serving",
            Health::Reset => "reset",
            Health::Lost => "lost",
        })
    }
}

/// A device and its limits, as read when it was opened.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct DeviceInfo {
    /// Its name, as the driver gives it.
    pub name: String,
    /// What it is made of.
    pub kind: DeviceKind,
    /// CUDA version the driver supports, as `1000 * major + 10 * minor`; 0 on the CPU.
    pub driver_version: i32,
    /// Compute capability, major and minor; zeros on the CPU.
    pub compute_capability: (u32, u32),
    /// Streaming multiprocessors, or processors the threads may run on.
    pub multiprocessors: u32,
    /// Most threads a block.
    pub max_threads: u32,
    /// Most bytes of block-shared memory that a block may ask for; 0 on the CPU.
    pub shared_bytes: u32,
    /// Most channels a grid.
    pub max_channels: u32,
    /// Whether a grid can be launched all at once or not at all.
    pub cooperative_launch: bool,
    /// Whether the device can read host memory in place.
    pub maps_host_memory: bool,
    /// Whether host and device may use managed memory at the same time. `ring` uses none.
    pub concurrent_managed_access: bool,
    /// The processors' nominal clock, in kHz; telemetry counts in it. 1,000,000 on the CPU.
    pub clock_khz: u32,
    /// Engines that copy beside running kernels; 0 on the CPU.
    pub copy_engines: u32,
    /// Whether a watchdog ends kernels that run for long.
    pub watchdog: bool,
}

impl DeviceInfo {
    /// What its kernels count as ticks.
    pub(crate) fn ticks(&self) -> Ticks {
        match self.kind {
            DeviceKind::Cpu => Ticks::Time,
            DeviceKind::Cuda => Ticks::Clock { khz: self.clock_khz },
        }
    }
}

/// What a device's kernels count as ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ticks {
    /// The nanoseconds of its time.
    Time,
    /// Those of its processors' clock, which goes faster and slower; nominally so many kHz.
    Clock { khz: u32 },
}

impl Ticks {
    /// Nanoseconds of a tick, nominally.
    pub fn nanoseconds(self) -> f64 {
        match self {
            Ticks::Time => 1.0,
            Ticks::Clock { khz } => 1e6 / f64::from(khz.max(1)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        for name in ["auto", "cpu", "cuda:0", "cuda:17"] {
            assert_eq!(name.parse::<Device>().unwrap().to_string(), name);
        }
        assert_eq!("cuda".parse(), Ok(Device::Cuda(0)));
        for name in ["", "gpu", "cuda:", "cuda:-1", "cuda:x", "CPU"] {
            let error = name.parse::<Device>().unwrap_err();
            assert!(error.to_string().contains(&format!("'{name}'")), "{error}");
        }
    }
}
