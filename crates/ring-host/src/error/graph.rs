//! Why a graph was not launched, or has no such end.

use super::{
    ArenaKind, ChannelError, ControlError, DeviceFault, DriverError, LaunchError, OpenError,
    RestoreError,
};
use crate::device::Device;
use crate::mode::{Memory, Mode};
use ring_shared::ring::MAX_CAPACITY;

/// Why a graph was not launched, or has no such end. Nothing was left behind.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GraphError {
    /// A kernel was named that is one of another graph.
    #[error("kernel {kernel} is one of another graph: name what this builder's `kernel` returned")]
    Foreign {
        /// The kernel.
        kernel: &'static str,
    },
    /// There is no kernel.
    #[error("the graph has no kernel")]
    Empty,
    /// Kernels feed each other in a circle: with all rings full none could go on.
    #[error("kernels feed each other in a circle: {}; close it over the host", kernels.join(" -> "))]
    Cycle {
        /// The kernels of the circle; the last feeds the first.
        kernels: Vec<&'static str>,
    },
    /// Nobody reads a port.
    #[error(
        "nobody reads port {port} of kernel {kernel}: link it to a kernel, or let the host read it"
    )]
    Unread {
        /// The kernel.
        kernel: &'static str,
        /// The port.
        port: &'static str,
    },
    /// Two read a port.
    #[error("port {port} of kernel {kernel} is linked or read twice: a port has one reader")]
    ReadTwice {
        /// The kernel.
        kernel: &'static str,
        /// The port.
        port: &'static str,
    },
    /// Nobody feeds a kernel.
    #[error("nobody feeds kernel {kernel}: link a port to it, or let the host feed it")]
    Unfed {
        /// The kernel.
        kernel: &'static str,
    },
    /// The host does not feed that kernel.
    #[error("the host does not feed kernel {kernel}: declare it by `GraphBuilder::feed`")]
    NotFed {
        /// The kernel.
        kernel: &'static str,
    },
    /// A link goes by key, but the port has none.
    #[error(
        "port {port} of kernel {kernel} has no key to choose a channel by: declare it, `{port}: [..] by |message| ..`"
    )]
    NoKey {
        /// The kernel.
        kernel: &'static str,
        /// The port.
        port: &'static str,
    },
    /// A link goes from channel to channel, but there are not as many of both.
    #[error(
        "port {port} of kernel {kernel} is linked channel to channel, but {kernel} has {channels} channels and {to} has {to_channels}"
    )]
    Pairwise {
        /// The kernel.
        kernel: &'static str,
        /// Its port.
        port: &'static str,
        /// Its channels.
        channels: u32,
        /// The kernel that it feeds.
        to: &'static str,
        /// The channels of that.
        to_channels: u32,
    },
    /// The slots of a link are no power of two, or too many.
    #[error("a link of {0} slots, but it must be a power of two in 1..={MAX_CAPACITY}")]
    Capacity(u32),
    /// A link is shorter than what one request may emit to it: no step could ever be taken.
    #[error(
        "port {port} of kernel {kernel} may emit {most} messages for one request, but its link has {capacity} slots: choose at least so many"
    )]
    Short {
        /// The kernel.
        kernel: &'static str,
        /// The port.
        port: &'static str,
        /// Most messages of a request.
        most: u32,
        /// Slots.
        capacity: u32,
    },
    /// A channel has more rings than its block's memory has room for.
    #[error(
        "a channel of kernel {kernel} has {inputs} rings to read and {outputs} to write, and no room beside them for one message: \
         choose fewer channels of the kernels that it is linked with"
    )]
    TooManyLinks {
        /// The kernel.
        kernel: &'static str,
        /// Rings that a channel takes messages from.
        inputs: usize,
        /// Rings that it sends messages to.
        outputs: usize,
    },
    /// The links do not fit what is left of the arena.
    #[error(
        "the links need {needed} bytes of {which} memory side by side, but of the arena's {arena} bytes {free} are free; \
         choose links of fewer slots, fewer channels, or a larger arena (RuntimeConfig)"
    )]
    Arena {
        /// Which memory.
        which: ArenaKind,
        /// Bytes needed.
        needed: usize,
        /// Bytes free, perhaps not side by side.
        free: usize,
        /// The whole arena, in bytes.
        arena: usize,
    },
    /// A kernel of a graph was asked to run otherwise than it can.
    #[error(
        "kernel {kernel} was asked to run in mode {mode} and memory {memory}, but kernels of a graph are persistent in mapped memory"
    )]
    NotResident {
        /// The kernel.
        kernel: &'static str,
        /// The mode asked for.
        mode: Mode,
        /// The memory asked for.
        memory: Memory,
    },
    /// A kernel is placed on a device that there is not.
    #[error(
        "kernel {kernel} is placed on device {device}, but the graph is launched on {devices} (numbers from 0)"
    )]
    NoDevice {
        /// The kernel.
        kernel: &'static str,
        /// The number of its device.
        device: usize,
        /// How many there are.
        devices: usize,
    },
    /// A device does not see the pinned memory of another one, by which a link would go.
    #[error(
        "device {device} does not see the pinned memory of device {of}, by which a link would go: {source}"
    )]
    Unseen {
        /// The device.
        device: usize,
        /// The other one.
        of: usize,
        /// What the driver said.
        source: DriverError,
    },
    /// On one of several devices something went wrong.
    #[error("on device {number} ({name}): {source}")]
    OnDevice {
        /// The number of the device.
        number: usize,
        /// Its name.
        name: String,
        /// What went wrong.
        source: Box<GraphError>,
    },
    /// A kernel was not launched.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// There is no such channel.
    #[error(transparent)]
    Channel(#[from] ChannelError),
    /// Its kernels are not on the device.
    #[error(transparent)]
    Fault(#[from] DeviceFault),
}

/// Why a graph was not recovered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RecoverGraphError {
    /// The device was reset or has trapped, and the runtime still has it as it was. The graph is as it was.
    #[error("{0}; call `Runtime::recover`, and then recover the graph with that runtime")]
    Device(DeviceFault),
    /// Not all kernels have left the device within the deadline. Those that have do not come back; try again, or drop the graph.
    #[error(
        "not all kernels of the graph have left: {0}; recover it again with a longer deadline, or drop it"
    )]
    Staying(ControlError),
    /// All kernels have left, and could not be launched again. The graph has none until it is recovered.
    #[error("all kernels of the graph have left, but it was not launched again: {0}")]
    Launch(GraphError),
    /// The states of the snapshot were not given to it. If the snapshot is of another graph, this one is as it was; else it has no kernels until
    /// it is recovered.
    #[error("the graph did not get the states of the snapshot: {0}")]
    Restore(RestoreError),
}

/// Why several devices were not opened together.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DevicesError {
    /// None was named.
    #[error("no device was named: name one at least")]
    None,
    /// One was not opened.
    #[error("device {number}, which is {device}: {source}")]
    Open {
        /// Its number, from 0.
        number: usize,
        /// What was named.
        device: Device,
        /// Why.
        source: OpenError,
    },
    /// Two are the same GPU, perhaps by another name.
    #[error("devices {first} and {second} are the same GPU ({name}): name each once")]
    Twice {
        /// The number of the first.
        first: usize,
        /// The number of the other one.
        second: usize,
        /// The name of the GPU.
        name: String,
    },
}
