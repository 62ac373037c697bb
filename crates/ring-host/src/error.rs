//! Errors, one enum an operation. Each names what, which value, which limit, and what to do.

mod driver;
mod limit;
mod message;
mod obstacle;

use obstacle::Listed;

pub use driver::{DriverError, DriverReason, Needed};
pub use limit::{ArenaKind, Budget, ChannelLimit, Requirement, Resource, ThreadLimit};
pub use message::{RecvTimeoutError, SendTimeoutError, TryRecvError, TrySendError, WaitedFor};
pub use obstacle::{NoPinned, Obstacle, Refusal};

use crate::device::Crowded;
use crate::device::UnknownName;
use crate::device::image::ImageError;
use crate::drive::mode::{Memory, Mode};
use ring_device::kernels::VectorError;
use ring_shared::layout::{Exit, State};
use ring_shared::ring::{Corrupt, MAX_CAPACITY, MAX_START};
use std::time::Duration;

/// Why a kernel can answer no more.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DeviceFault {
    /// The device stopped with an error. On a GPU every kernel of the process is gone with it.
    #[error("kernel {kernel}: the device faulted ({}: {source}); every kernel on it is gone", source.code)]
    Device {
        /// The kernel whose handle noticed.
        kernel: &'static str,
        /// What the driver said.
        source: DriverError,
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
    /// The driver refused again and again what keeps the kernel answering.
    #[error("kernel {kernel} cannot be kept answering: {source}")]
    Driver {
        /// The kernel.
        kernel: &'static str,
        /// What the driver said last.
        source: DriverError,
    },
}

/// Why a device was not opened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// No NVIDIA driver library on this machine.
    #[error(
        "no NVIDIA driver found (libcuda.so.1 is neither in the library path nor in \
         /usr/lib/wsl/lib); install the driver, or use the device 'cpu'"
    )]
    NoDriver,
    /// Built without the feature `cuda`.
    #[error("ring-host was built without the feature 'cuda'; enable it, or use the device 'cpu'")]
    NotBuilt,
    /// The driver found no device.
    #[error("the NVIDIA driver found no device; use the device 'cpu'")]
    NoDevice,
    /// No device of that index.
    #[error("there is no device {index}: the machine has {count} (indices from 0)")]
    OutOfRange {
        /// The index asked for.
        index: usize,
        /// How many there are.
        count: usize,
    },
    /// The device lacks something that a ring kernel needs.
    #[error("device '{device}' cannot run ring kernels: {lacks}")]
    Unsuitable {
        /// Its name.
        device: String,
        /// What it lacks.
        lacks: Requirement,
    },
    /// A kernel faulted, which ends all that the process has on any device of that driver.
    #[error(
        "device '{device}' has faulted, and the driver serves this process no more; start it again"
    )]
    Lost {
        /// Its name.
        device: String,
    },
    /// The arena could not be had.
    #[error(
        "an arena of {bytes} bytes could not be had: {source}; choose another size (RuntimeConfig)"
    )]
    Arena {
        /// Its size.
        bytes: usize,
        /// What the driver said.
        source: DriverError,
    },
    /// A variable of the environment has no meaning.
    #[error("environment variable {variable}: {source}; or unset it")]
    Environment {
        /// The variable.
        variable: &'static str,
        /// What is wrong with its value.
        source: UnknownName,
    },
    /// The built-in kernels could not be loaded.
    #[error("the built-in kernels could not be loaded: {0}")]
    Image(#[from] ImageError),
    /// A driver call failed.
    #[error(transparent)]
    Driver(#[from] DriverError),
}

/// Why a device does not serve again.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RecoverError {
    /// It cannot be opened: after a trap, only by another process.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// It was tried by a small kernel, and did not answer.
    #[error("the device was tried, and does not answer: {0}")]
    Silent(LaunchError),
}

/// Why a kernel was not launched. Nothing was left behind.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LaunchError {
    /// The capacity is 0, not a power of two, or too large.
    #[error("capacity {0} is not a power of two in 1..={MAX_CAPACITY}")]
    Capacity(u32),
    /// The first index leaves too little room to count on.
    #[error("start index {0} is above {MAX_START}")]
    StartIndex(u64),
    /// The rings do not fit what is left of the arena.
    #[error(
        "kernel {kernel} needs {needed} bytes of {which} memory side by side, but of the arena's \
         {arena} bytes {free} are free; choose a smaller capacity, or a larger arena (RuntimeConfig)"
    )]
    Arena {
        /// The kernel.
        kernel: &'static str,
        /// Which memory.
        which: ArenaKind,
        /// Bytes needed.
        needed: usize,
        /// Bytes free, perhaps not side by side.
        free: usize,
        /// The whole arena, in bytes.
        arena: usize,
    },
    /// More channels than the device or the grid allows, or none.
    #[error("{channels} channels, but there must be 1..={limit} ({why})")]
    Channels {
        /// Channels asked for.
        channels: u32,
        /// The most there can be now.
        limit: u32,
        /// What sets the limit.
        why: ChannelLimit,
    },
    /// The channels may never all become resident beside the kernels that are launched, or would keep one
    /// of those from it.
    #[error(transparent)]
    Crowded(#[from] Crowded),
    /// The block is no whole number of warps, or too large for device or kernel.
    #[error("{threads} threads a block, but it must be a multiple of 32 in 32..={limit} ({why})")]
    Threads {
        /// Threads asked for.
        threads: u32,
        /// The most there can be.
        limit: u32,
        /// What sets the limit.
        why: ThreadLimit,
    },
    /// A message does not fit the slot.
    #[error("messages of {bytes} bytes do not fit slots of {slot} bytes; choose larger slots")]
    Slot {
        /// Bytes of the message.
        bytes: usize,
        /// Bytes of the slot asked for.
        slot: usize,
    },
    /// A budget is zero: the kernel would leave before it answered anything.
    #[error("the {0} budget is zero; choose more, or none (u64::MAX iterations)")]
    Budget(Budget),
    /// An iteration may take no message.
    #[error("max_messages is 0, but an iteration must take at least 1 message")]
    MaxMessages,
    /// The lease is too short to be renewed in time.
    #[error(
        "a lease of {lease:?} is too short: it must be {least:?} at least; Duration::MAX is for ever"
    )]
    Lease {
        /// The lease asked for.
        lease: Duration,
        /// The shortest.
        least: Duration,
    },
    /// The thread that renews leases cannot be started.
    #[error("no thread to renew leases: {0}; ask for none (a lease of Duration::MAX)")]
    Keeper(#[source] DriverError),
    /// The mode or the memory cannot be had.
    #[error(
        "kernel {kernel} cannot run as asked (mode {mode}, memory {memory}): {}; ask for others, or for auto",
        Listed(refused)
    )]
    Unfit {
        /// The kernel.
        kernel: &'static str,
        /// The mode asked for.
        mode: Mode,
        /// The memory asked for.
        memory: Memory,
        /// Why not, for each that was considered.
        refused: Vec<Refusal>,
    },
    /// Cooperative launch was demanded, but the device has none.
    #[error("device '{0}' has no cooperative launch; use Cooperative::Auto or Never")]
    NotCooperative(String),
    /// The PTX cannot be used.
    #[error("kernel {kernel}: {source}")]
    Image {
        /// The kernel.
        kernel: &'static str,
        /// What is wrong with it.
        source: ImageError,
    },
    /// What the kernel keeps from message to message could not be cleared.
    #[error("kernel {kernel}: its state was not cleared: {source}")]
    State {
        /// The kernel.
        kernel: &'static str,
        /// Why not.
        source: PayloadError,
    },
    /// The device faulted before.
    #[error(transparent)]
    Fault(#[from] DeviceFault),
    /// A driver call failed.
    #[error(transparent)]
    Driver(#[from] DriverError),
}

/// Why a kernel did not change its state.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ControlError {
    /// A channel did not acknowledge in time. The kernel may still do it.
    #[error("kernel {kernel}: channel {channel} did not acknowledge {asked:?} within {waited:?}")]
    Timeout {
        /// The kernel.
        kernel: &'static str,
        /// The first channel that had not.
        channel: u32,
        /// The state asked for.
        asked: State,
        /// How long was waited.
        waited: Duration,
    },
    /// All channels acknowledged, but the kernel has not left the device yet. Try again.
    #[error("kernel {kernel} obeyed, but did not leave the device within {waited:?}")]
    Staying {
        /// The kernel.
        kernel: &'static str,
        /// How long was waited.
        waited: Duration,
    },
    /// The kernel was terminated before.
    #[error("kernel {kernel} is terminated; launch it again")]
    Terminated {
        /// The kernel.
        kernel: &'static str,
    },
    /// The kernel can answer no more.
    #[error(transparent)]
    Fault(#[from] DeviceFault),
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

/// Why the payload arena was not read or written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PayloadError {
    /// Not all inside the arena.
    #[error(
        "kernel {kernel}: {bytes} bytes at offset {offset} are not inside its payload arena of \
         {arena} bytes; choose its size when the kernel is launched (LaunchConfig::payload_bytes)"
    )]
    OutOfBounds {
        /// The kernel.
        kernel: &'static str,
        /// Where.
        offset: u64,
        /// How many bytes.
        bytes: usize,
        /// The arena.
        arena: usize,
    },
    /// Words lie at multiples of 4.
    #[error("offset {offset} is not a multiple of 4")]
    Unaligned {
        /// Where.
        offset: u64,
    },
    /// The copy did not end in time. One that writes may still be under way: what follows waits for it.
    #[error("a copy of {bytes} bytes did not end within {waited:?}")]
    Timeout {
        /// How many bytes.
        bytes: usize,
        /// How long was waited.
        waited: Duration,
    },
    /// A driver call failed.
    #[error(transparent)]
    Driver(#[from] DriverError),
    /// The kernel can answer no more.
    #[error(transparent)]
    Fault(#[from] DeviceFault),
}

/// Why a kernel's state was not read or written.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum StateError {
    /// No such channel.
    #[error(transparent)]
    Channel(#[from] ChannelError),
    /// It changes with every message.
    #[error("kernel {kernel} is active, so its state changes; deactivate or terminate it first")]
    Active {
        /// The kernel.
        kernel: &'static str,
    },
    /// The copy was not made.
    #[error(transparent)]
    Copy(#[from] PayloadError),
}

/// Why two vectors were not added.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum AddError {
    /// The vectors do not fit each other, or not the kernel.
    #[error(transparent)]
    Vectors(#[from] VectorError),
    /// The vector for the sum has another length.
    #[error("the sum has room for {c} elements, but the vectors have {len}")]
    Sum {
        /// Elements of C.
        c: usize,
        /// Elements of A and B.
        len: usize,
    },
    /// The device refused, with that status.
    #[error("the device refused the request with status {0}")]
    Refused(u32),
    /// The request was not sent.
    #[error("the request was not sent: {0}")]
    Send(SendTimeoutError<()>),
    /// No answer came.
    #[error(transparent)]
    Recv(#[from] RecvTimeoutError),
    /// The payload arena was not read or written.
    #[error(transparent)]
    Payload(#[from] PayloadError),
    /// Channel 0 was taken.
    #[error(transparent)]
    Channel(#[from] ChannelError),
}

/// Any of them, for `?` in programs.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Opening a device.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// Recovering from a fault.
    #[error(transparent)]
    Recover(#[from] RecoverError),
    /// Launching a kernel.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// Changing a kernel's state.
    #[error(transparent)]
    Control(#[from] ControlError),
    /// Sending at once; the message is not kept.
    #[error(transparent)]
    TrySend(TrySendError<()>),
    /// Sending; the message is not kept.
    #[error(transparent)]
    Send(SendTimeoutError<()>),
    /// Receiving at once.
    #[error(transparent)]
    TryRecv(#[from] TryRecvError),
    /// Receiving.
    #[error(transparent)]
    Recv(#[from] RecvTimeoutError),
    /// Naming a channel.
    #[error(transparent)]
    Channel(#[from] ChannelError),
    /// Using the payload arena.
    #[error(transparent)]
    Payload(#[from] PayloadError),
    /// Reading or writing a kernel's state.
    #[error(transparent)]
    State(#[from] StateError),
    /// Adding vectors.
    #[error(transparent)]
    Add(#[from] AddError),
    /// Naming a device.
    #[error(transparent)]
    Device(#[from] crate::device::UnknownDevice),
    /// Naming a mode, a memory or a quirk.
    #[error(transparent)]
    Name(#[from] UnknownName),
}

fn meaning(exit: Exit) -> &'static str {
    match exit {
        Exit::BadConfig => "what the host wrote before the launch does not fit the kernel",
        Exit::CorruptRing => "an index that the host wrote could not be",
        Exit::LeaseOver => {
            "the host did not renew its lease: it was stopped, or too busy; LaunchConfig::lease sets the time"
        }
        _ => "it gave no reason that it may leave for",
    }
}

fn advice(state: State) -> &'static str {
    match state {
        State::Terminated | State::Faulted => "launch it again",
        _ => "call activate first",
    }
}

impl<T> From<TrySendError<T>> for Error {
    fn from(error: TrySendError<T>) -> Error {
        Error::TrySend(error.without_message())
    }
}

impl<T> From<SendTimeoutError<T>> for Error {
    fn from(error: SendTimeoutError<T>) -> Error {
        Error::Send(error.without_message())
    }
}

impl<T> From<SendTimeoutError<T>> for AddError {
    fn from(error: SendTimeoutError<T>) -> AddError {
        AddError::Send(error.without_message())
    }
}
