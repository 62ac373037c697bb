//! Every struct that lies in memory both sides see. Fields are `u32` or `u64` atomics, padding is
//! explicit and atomic too (whole lines are copied while others look at them), device addresses are
//! `u64`, and each 128-byte line is written by one side, the host or the device.
//!
//! In memory: one [`ControlBlock`], right behind it a [`ChannelBlock`] per channel, then the slots of
//! their rings.

#[macro_use]
mod table;
mod buffers;
mod channel;
#[cfg(not(target_arch = "nvptx64"))]
mod command;
mod control;
mod devices;
#[cfg(not(target_arch = "nvptx64"))]
mod initial;
mod links;
mod page_probe;
mod placement;

pub use buffers::{BufferEntry, FROZEN, MAX_BUFFERS};
pub use channel::{
    BUCKETS, ChannelBlock, CreditLine, Doorbell, RingDescriptor, StatusLine, Times, bucket,
};
pub use control::{
    Command, ConfigLine, ControlBlock, Exit, HostLine, Processing, State, TRACED, UNLIMITED,
};
#[cfg(not(target_arch = "nvptx64"))]
pub use devices::DevicesSetup;
pub use devices::{DevicesLine, MAX_DEVICES};
#[cfg(not(target_arch = "nvptx64"))]
pub use initial::{Budgets, ChannelSetup, KernelSetup};
pub use links::{Far, Link, Links, MAX_PORTS, PortLinks, Routing};
pub use page_probe::{PAGE, PageProbe};
pub use placement::{Part, Placement, PlacementError};
pub use table::{ROWS, Row, TABLE_LEN, table};

/// Bytes of a line: what one bus transaction brings, and the unit of ownership.
pub const LINE: usize = 128;
