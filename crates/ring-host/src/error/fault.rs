//! Why a kernel can answer no more, or a channel is not there.

use super::DriverError;
use ring_shared::layout::Exit;
use ring_shared::ring::Corrupt;
use std::sync::Arc;

/// Why a kernel can answer no more.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DeviceFault {
    /// The device stopped with an error. Every kernel that the process has on it is gone.
    #[error("kernel {kernel}: the device faulted ({}: {source}); every kernel on it is gone ({device})", source.code)]
    Device {
        /// The kernel whose handle noticed.
        kernel: &'static str,
        /// The device: the index of a GPU, and a name.
        device: Arc<str>,
        /// What the driver said.
        source: Box<DriverError>,
    },
    /// A handler panicked. Other kernels go on.
    #[error(
        "kernel {kernel}: the handler panicked on channel {channel} (after {processed} messages, as last reported)"
    )]
    HandlerPanicked {
        /// The kernel.
        kernel: &'static str,
        /// The channel.
        channel: u32,
        /// Messages the channel had handled when it last said so; it may have handled more.
        processed: u64,
    },
    /// A channel left the device without being asked.
    #[error("kernel {kernel}: channel {channel} left the device by itself ({exit:?}: {})", meaning(*exit))]
    Left {
        /// The kernel.
        kernel: &'static str,
        /// The channel.
        channel: u32,
        /// The reason it gave.
        exit: Exit,
    },
    /// The kernel ended without a word: its PTX has other layouts than this host.
    #[error(
        "kernel {kernel} ended at once without an acknowledgement: its PTX was built for another \
         ABI; rebuild it with this version of ring-device"
    )]
    Refused {
        /// The kernel.
        kernel: &'static str,
    },
    /// The device wrote an index that cannot be.
    #[error(
        "kernel {kernel}, channel {channel}: the device wrote index {}, but it must be {}..={}",
        corrupt.found, corrupt.low, corrupt.high
    )]
    Corrupt {
        /// The kernel.
        kernel: &'static str,
        /// The channel.
        channel: u32,
        /// What it wrote.
        corrupt: Corrupt,
    },
    /// Another kernel of its graph, or its grid on another device, is lost.
    #[error("kernel {kernel} can do no more, for what it meets on the devices is lost: {lost}")]
    Graph {
        /// The kernel.
        kernel: &'static str,
        /// What happened to the other.
        lost: Box<DeviceFault>,
    },
    /// Its graph was taken down to be recovered, and could not be launched again.
    #[error(
        "kernel {kernel} is not on the device: its graph was taken down by `Graph::recover`, and could not be launched again; \
         recover it again, or drop it"
    )]
    TakenDown {
        /// The first kernel of the graph.
        kernel: &'static str,
    },
    /// The driver refused again and again what keeps the kernel answering.
    #[error("kernel {kernel} cannot be kept answering: {source}")]
    Driver {
        /// The kernel.
        kernel: &'static str,
        /// What the driver said last.
        source: Box<DriverError>,
    },
}

impl DeviceFault {
    /// Whether a kernel was lost because another one was, which it met on the devices.
    pub(crate) fn is_of_others(&self) -> bool {
        matches!(
            self,
            DeviceFault::Graph { .. } | DeviceFault::Left { exit: Exit::OtherDevice, .. }
        )
    }
}

/// Why there is no such channel.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ChannelError {
    /// The kernel has fewer channels.
    #[error("there is no channel {channel}: the kernel has {channels} (indices from 0)")]
    OutOfRange {
        /// The channel asked for.
        channel: u32,
        /// How many there are.
        channels: u32,
    },
    /// The channel was taken out of the kernel.
    #[error("channel {0} was taken out of this kernel by take_channel; use it there")]
    Taken(u32),
}

fn meaning(exit: Exit) -> &'static str {
    match exit {
        Exit::BadConfig => "what the host wrote before the launch does not fit the kernel",
        Exit::CorruptRing => "an index that the host wrote could not be",
        Exit::LeaseOver => {
            "the host did not renew its lease: it was stopped, or too busy; LaunchConfig::lease sets the time"
        }
        Exit::EmittedTooMany => {
            "its handler emitted more messages to a port for one request than the kernel declares; nothing of what was emitted for the requests handled together with it was sent"
        }
        Exit::MissedBarrier => {
            "its handler returned in one block of the grid, and waited at a barrier of the grid in another one: all must reach \
             the same calls of sync, sum and max"
        }
        Exit::OtherDevice => "the grid of another device is lost, which it meets",
        Exit::NoSuchChannel => {
            "the key of a message names a channel that the link does not lead to; nothing of what was emitted for the requests handled together was sent"
        }
        _ => "it gave no reason that it may leave for",
    }
}
