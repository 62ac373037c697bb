//! Devices: what the runtime asks of one ([`Driver`]), those that there are, and what they are made of.
//!
//! Nothing here is on the path of a message to a persistent kernel in mapped memory.

pub mod cpu;
#[cfg(feature = "cuda")]
pub mod cuda;
mod driver;
pub mod image;
mod info;
pub(crate) mod layout_probe;
mod occupancy;
mod open;
pub(crate) mod pages;
mod peers;
pub mod platform;
pub mod probe;
#[cfg(feature = "quirks")]
pub mod quirks;
pub(crate) mod retry;

pub(crate) use driver::Sealed;
pub use driver::{
    Cells, CopyKind, CopyLane, CpuEntry, Driver, Function, Grid, LaunchSlot, Launched, Limits,
    Mapped, MemoryCopy, Program, RunState,
};
pub(crate) use info::Ticks;
pub use info::{Device, DeviceInfo, DeviceKind, Health, UnknownDevice, UnknownName};
pub use occupancy::{Crowded, Demand, Occupancy, Reservation, Resources};
pub use open::{Opened, open};
pub use peers::NoPeer;
#[cfg(feature = "quirks")]
pub use quirks::Quirks;
