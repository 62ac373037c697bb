//! What a probe finds out about a device, and what of it the process keeps.

mod lack;
#[cfg_attr(not(all(feature = "cuda", target_os = "linux")), allow(dead_code))]
// only there pages are measured
mod page_classes;
mod probed;
mod quick_pages;

pub use lack::{Cause, Lack};
pub use page_classes::PageClasses;
pub use probed::Probed;
pub use quick_pages::{NoQuickPages, QuickPages};

use std::time::Duration;

/// Answers of a resident kernel to stores of the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Answers {
    /// How many there were.
    pub count: u32,
    /// Median time there and back.
    pub median: Duration,
}

/// What was found out about a device. Each is a measurement, or why there is none.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Probe {
    /// Whether kernels work on pinned memory in place, at least from one launch to the next.
    pub mapped: Result<(), Lack>,
    /// Whether a resident kernel saw what the host wrote meanwhile, and answered.
    pub resident: Result<Answers, Lack>,
    /// Whether a copy of 64 bytes came back beside a resident kernel; its time.
    pub concurrent_copy: Result<Duration, Lack>,
    /// Median time of a message to a kernel at rest: launch and answer.
    pub launch: Result<Duration, Lack>,
    /// The same by replaying a graph.
    pub graph: Result<Duration, Lack>,
    /// How long all this took.
    pub took: Duration,
}

impl Probe {
    /// Whether everything was found out: what the device does, and what it does not.
    pub fn is_certain(&self) -> bool {
        let lacks = [
            self.mapped.as_ref().err(),
            self.resident.as_ref().err(),
            self.concurrent_copy.as_ref().err(),
            self.launch.as_ref().err(),
            self.graph.as_ref().err(),
        ];
        lacks.into_iter().flatten().all(Lack::is_certain)
    }
}
