//! The facts that the doctor reports.

use super::sharing::Sharing;
use ring_host::error::NoPinned;
use ring_host::image::Loaded;
use ring_host::platform::{LibraryFolder, WslSign};
use ring_host::probe::{Answers, Lack, QuickPages};
use ring_host::{Device, DeviceInfo, Memory, Mode, OpenError, Refusal, Selection};
use serde::Serialize;
use std::fmt::Display;
use std::time::Duration;

/// All that was found out.
#[derive(Debug)]
pub struct Facts {
    /// The device asked for.
    pub asked: Device,
    /// What is taken away from it.
    pub emulated: Option<String>,
    /// Signs that this is WSL2.
    pub wsl: Vec<WslSign>,
    /// The driver's library.
    pub library: Library,
    /// GPUs that the driver counts; or why there are none.
    pub gpus: Result<usize, String>,
    /// What kept a device that was wanted from being opened.
    pub troubles: Vec<OpenError>,
    /// The device that was found.
    pub device: Option<Found>,
    /// What the opened device was seen to do.
    pub seen: Option<Seen>,
    /// Whether others use the GPU; only where kernels stay on one.
    pub sharing: Option<Sharing>,
    /// Of each two GPUs of several whether one reaches the memory of the other; or why that is not known.
    pub peers: Result<Vec<Pair>, String>,
    /// What the environment forces: variable and value.
    pub forced: Vec<(&'static str, String)>,
}

impl Facts {
    /// Whether a device was opened, so that kernels can be launched.
    pub fn opened(&self) -> bool {
        self.seen.is_some()
    }
}

/// Two GPUs, by their indices.
#[derive(Clone, Debug)]
pub struct Pair {
    /// The one whose kernels want to reach the memory.
    pub from: usize,
    /// The one that has the memory.
    pub to: usize,
    /// Why they do not reach it, if so.
    pub lacks: Option<String>,
}

/// The driver's library.
#[derive(Clone, Debug)]
pub struct Library {
    /// The environment's folders.
    pub path: Option<String>,
    /// The folders that were looked at.
    pub places: Vec<LibraryFolder>,
    /// Whether it could be loaded; unknown if that was not tried.
    pub loaded: Option<bool>,
    /// The kernel's part of the driver, if it says its version.
    pub kernel_module: Option<String>,
}

/// A device.
#[derive(Clone, Debug, Serialize)]
pub struct Found {
    /// "cpu" or "cuda".
    pub kind: &'static str,
    /// Its name.
    pub name: String,
    /// Why this one.
    pub why: String,
    /// CUDA version that its driver supports, if it has one.
    #[serde(rename = "cuda_version")]
    pub cuda: Option<String>,
    /// Compute capability, if it has one.
    pub compute_capability: Option<String>,
    /// Multiprocessors, or processors.
    pub multiprocessors: u32,
    /// Whether all channels can be launched at once or not at all.
    pub cooperative_launch: bool,
    /// Whether kernels can use host memory in place.
    pub maps_host_memory: bool,
    /// Whether both sides may use managed memory at the same time.
    pub concurrent_managed_access: bool,
    /// Engines that copy beside kernels.
    pub copy_engines: u32,
    /// Whether a watchdog ends long kernels.
    pub watchdog: bool,
}

impl Found {
    /// The device, and why it was taken.
    pub fn new(info: &DeviceInfo, why: String) -> Found {
        let (cuda, capability) = (info.driver_version, info.compute_capability);
        let version = |known: bool, major: &dyn Display, minor: &dyn Display| {
            known.then(|| format!("{major}.{minor}"))
        };
        Found {
            kind: crate::host::kind(info),
            name: info.name.clone(),
            why,
            cuda: version(cuda > 0, &(cuda / 1000), &(cuda % 1000 / 10)),
            compute_capability: version(capability > (0, 0), &capability.0, &capability.1),
            multiprocessors: info.multiprocessors,
            cooperative_launch: info.cooperative_launch,
            maps_host_memory: info.maps_host_memory,
            concurrent_managed_access: info.concurrent_managed_access,
            copy_engines: info.copy_engines,
            watchdog: info.watchdog,
        }
    }
}

/// What an opened device was seen to do. Each is a measurement, or why there is none.
#[derive(Clone, Debug)]
pub struct Seen {
    /// As what its kernels were loaded.
    pub loaded: Loaded,
    /// Bytes of pinned memory that were had.
    pub pinned: Result<usize, NoPinned>,
    /// Whether some of its pages are read sooner than others.
    pub quick_pages: QuickPages,
    /// Whether kernels work on pinned memory in place.
    pub mapped: Result<(), Lack>,
    /// Answers of a kernel that stays.
    pub resident: Result<Answers, Lack>,
    /// Time of a copy beside a kernel that stays.
    pub beside: Result<Duration, Lack>,
    /// Time of a message to a kernel at rest, by launch.
    pub launch: Result<Duration, Lack>,
    /// The same by a graph.
    pub graph: Result<Duration, Lack>,
    /// How long finding that out took.
    pub took: Duration,
    /// What `Auto` chooses, and why; or why nothing serves.
    pub choice: Result<Selection, Vec<Refusal>>,
    /// All ways to run a kernel that were considered, best first.
    pub ways: Vec<Way>,
}

impl Seen {
    /// What could not be found out, if something could not: the machine was too busy.
    pub fn unknown(&self) -> Option<&Lack> {
        let lacks = [
            self.mapped.as_ref().err(),
            self.resident.as_ref().err(),
            self.beside.as_ref().err(),
            self.launch.as_ref().err(),
            self.graph.as_ref().err(),
        ];
        lacks.into_iter().flatten().find(|lack| !lack.is_certain())
    }
}

/// A way to run a kernel.
#[derive(Clone, Debug)]
pub struct Way {
    /// The mode.
    pub mode: Mode,
    /// The memory.
    pub memory: Memory,
    /// Why it does not serve, if so.
    pub refused: Option<String>,
}
