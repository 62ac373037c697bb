//! Why grids were not launched on several devices.

use super::{BufferError, LaunchError};
use crate::device::NoPeer;
use crate::mode::{Memory, Mode};
use ring_device::MAX_BLOCKS_OF_DEVICES;
use ring_shared::layout::MAX_DEVICES;

/// Why grids were not launched on several devices. Nothing was left behind.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GridsError {
    /// There are too many devices.
    #[error(
        "kernel {kernel} was to have grids on {devices} devices, and the most is {MAX_DEVICES}"
    )]
    TooManyDevices {
        /// The kernel.
        kernel: &'static str,
        /// The devices.
        devices: usize,
    },
    /// A device does not reach the memory of another one, where it would tell that it has come to a meeting.
    #[error(
        "kernel {kernel} cannot have grids that meet on devices {from} and {to}: device {from} does not reach the memory of device {to}: \
         {why}"
    )]
    NoPeer {
        /// The kernel.
        kernel: &'static str,
        /// The device that does not reach the other.
        from: usize,
        /// The other one.
        to: usize,
        /// Why not.
        why: NoPeer,
    },
    /// There are too many blocks in all.
    #[error(
        "kernel {kernel} would have {blocks} blocks on {devices} devices, and the most in all is {MAX_BLOCKS_OF_DEVICES}: choose fewer \
         (LaunchConfig::blocks)"
    )]
    Blocks {
        /// The kernel.
        kernel: &'static str,
        /// The blocks of all devices.
        blocks: u32,
        /// The devices.
        devices: usize,
    },
    /// The kernel was asked to run otherwise than it can.
    #[error(
        "kernel {kernel} was asked to run in mode {mode} and memory {memory}, but grids of several devices are persistent in mapped memory"
    )]
    NotResident {
        /// The kernel.
        kernel: &'static str,
        /// The mode asked for.
        mode: Mode,
        /// The memory asked for.
        memory: Memory,
    },
    /// On one of the devices it cannot be done.
    #[error("device {number} ({name}): {source}")]
    OnDevice {
        /// The number of the device, from 0.
        number: usize,
        /// Its name.
        name: String,
        /// Why.
        source: Box<GridsError>,
    },
    /// It cannot be launched.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// There is no memory to meet in.
    #[error("no memory where the grids could meet: {0}")]
    Memory(#[from] BufferError),
}
