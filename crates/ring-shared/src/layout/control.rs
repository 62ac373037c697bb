use crate::atomics::{AtomicU32, AtomicU64};
use bytemuck::{CheckedBitPattern, checked};

/// What the host wants of a kernel, and what a channel says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, CheckedBitPattern)]
#[repr(u32)]
#[non_exhaustive]
pub enum State {
    /// The kernel runs, takes no message, and waits to be activated for the first time.
    Launched = 0,
    /// Messages are taken and answered.
    Active = 1,
    /// Resident, but no message is taken; those in the ring stay there.
    Inactive = 2,
    /// The channel has left the GPU, or is asked to.
    Terminated = 3,
    /// The channel left because of an error; [`Exit`] says which.
    Faulted = 4,
    /// The channel left because a budget was spent, and goes on with the next launch.
    Yielded = 5,
}

impl State {
    /// The state of that number, or `None`: the number was written by the other side.
    pub fn from_u32(n: u32) -> Option<State> {
        checked::try_cast(n).ok()
    }
}

/// Why a channel left the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, CheckedBitPattern)]
#[repr(u32)]
#[non_exhaustive]
pub enum Exit {
    /// It has not left.
    Running = 0,
    /// The host asked.
    Asked = 1,
    /// The channel's configuration does not fit the kernel (capacity, slot size, addresses).
    BadConfig = 2,
    /// A tail or credit written by the host was impossible.
    CorruptRing = 3,
    /// The handler panicked.
    HandlerPanicked = 4,
    /// The launch had run for its time budget.
    TimeSpent = 5,
    /// The launch had made as many looks and batches as it may.
    IterationsSpent = 6,
    /// Nothing had come on any channel for the idle budget.
    Idle = 7,
    /// The host had not renewed its lease in time: it has died, or was stopped.
    LeaseOver = 8,
    /// A handler emitted more messages to a port in one step than the kernel has declared.
    EmittedTooMany = 9,
    /// A message's key named a channel that its link does not lead to.
    NoSuchChannel = 10,
    /// The handler of a kernel of scope `Grid` returned in one block, and waited at a barrier of the grid in another one.
    MissedBarrier = 11,
    /// Another device's grid of the same kernel is lost.
    OtherDevice = 12,
}

impl Exit {
    /// The exit of that number, or `None`: the number was written by the other side.
    pub fn from_u32(n: u32) -> Option<Exit> {
        checked::try_cast(n).ok()
    }

    /// Whether the channel left because a budget was spent: it goes on with the next launch.
    pub fn is_yield(self) -> bool {
        matches!(self, Exit::TimeSpent | Exit::IterationsSpent | Exit::Idle)
    }
}

/// How many messages a channel takes before it looks at its budgets and the host's command again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, CheckedBitPattern)]
#[repr(u32)]
#[non_exhaustive]
pub enum Processing {
    /// One.
    Continuous = 0,
    /// All that are there, up to the limit of an iteration: most messages a second.
    #[default]
    Batch = 1,
    /// One at first; twice as many after each iteration that left messages behind, half as many
    /// after one that did not.
    Adaptive = 2,
}

impl Processing {
    /// The mode of that number, or `None`: the number was written by the other side.
    pub fn from_u32(n: u32) -> Option<Processing> {
        checked::try_cast(n).ok()
    }
}

/// An epoch and a state in one `u64`, so that both change in one store. The host writes
/// `(epoch + 1, desired)`; a channel acknowledges with `(same epoch, observed)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Command {
    /// Grows by one with every command.
    pub epoch: u32,
    /// The number of a [`State`].
    pub state: u32,
}

impl Command {
    /// The word that lies in memory: epoch in the high half.
    #[inline]
    pub fn to_word(self) -> u64 {
        u64::from(self.epoch) << 32 | u64::from(self.state)
    }

    /// The command in a word read from memory.
    #[inline]
    pub fn from_word(word: u64) -> Command {
        Command { epoch: (word >> 32) as u32, state: word as u32 }
    }
}

shared_struct! {
    /// Written by the host at any time; read by every channel.
    pub struct HostLine: size 128, align 128 {
        /// [`MAGIC`](crate::MAGIC).
        pub magic @ 0: AtomicU64,
        /// [`ABI_VERSION`](crate::ABI_VERSION) of the host.
        pub abi_version @ 8: AtomicU32,
        /// Number of channels.
        pub channels @ 12: AtomicU32,
        /// A [`Command`].
        pub command @ 16: AtomicU64,
        /// Changed by the host again and again: it is alive. See [`ConfigLine::lease`].
        pub renewed @ 24: AtomicU64,
        /// Not 0 once a device is lost that has another grid of the kernel: what would wait for it is to end.
        pub lacks_device @ 32: AtomicU64,
        pad @ 40: [AtomicU64; 11],
    }
}

/// A budget that is never spent.
pub const UNLIMITED: u64 = u64::MAX;

shared_struct! {
    /// Written by the host while no launch is on the device.
    pub struct ConfigLine: size 128, align 128 {
        /// Device address of the payload arena, in device memory.
        pub payload @ 0: AtomicU64,
        /// Bytes of the payload arena; 0 when there is none.
        pub payload_bytes @ 8: AtomicU64,
        /// Nanoseconds that a launch may run, or [`UNLIMITED`].
        pub time @ 16: AtomicU64,
        /// Looks and batches that a launch may make, or [`UNLIMITED`].
        pub iterations @ 24: AtomicU64,
        /// Nanoseconds without a message on any channel after which a launch leaves, or [`UNLIMITED`].
        pub idle @ 32: AtomicU64,
        /// Number of a [`Processing`], and [`TRACED`] beside it if the channels have trace rings.
        pub processing @ 40: AtomicU32,
        /// Most messages of an iteration, at least 1.
        pub max_messages @ 44: AtomicU32,
        /// Nanoseconds after which a channel leaves that has not seen [`HostLine::renewed`] change, or
        /// [`UNLIMITED`].
        pub lease @ 48: AtomicU64,
        /// Bytes of the memory that both sides see, from the control block on: blocks, lines and slots. Where lines lie
        /// apart, what is between is among them.
        pub memory_bytes @ 56: AtomicU64,
        /// Device address of the runtime's table of buffers, [`MAX_BUFFERS`](super::MAX_BUFFERS) times
        /// [`BufferEntry`](super::BufferEntry); 0 for none.
        pub buffers @ 64: AtomicU64,
        /// Device address of the channels' trace rings, one behind the other, at a multiple of 128, with the binary logarithm of the records
        /// of each in its low bits; 0 for none. Of what is [`TRACED`] only.
        pub trace @ 72: AtomicU64,
        pad @ 80: [AtomicU64; 6],
    }
}

/// Beside the number of a [`Processing`]: the device notes what it does in the channels' [trace rings](crate::trace).
pub const TRACED: u32 = 1 << 16;

shared_struct! {
    /// The head of a kernel's shared memory; its address is the kernel's one parameter. The channels'
    /// [`ChannelBlock`](super::ChannelBlock)s lie right behind it.
    pub struct ControlBlock: size 256, align 128 {
        /// Commands.
        pub host @ 0: HostLine,
        /// Where everything lies.
        pub config @ 128: ConfigLine,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_numbers_survive() {
        let c = Command { epoch: u32::MAX, state: State::Inactive as u32 };
        assert_eq!(Command::from_word(c.to_word()), c);
        (0..6).for_each(|n| assert_eq!(State::from_u32(n).unwrap() as u32, n));
        (0..13).for_each(|n| assert_eq!(Exit::from_u32(n).unwrap() as u32, n));
        (0..3).for_each(|n| assert_eq!(Processing::from_u32(n).unwrap() as u32, n));
        assert_eq!(State::from_u32(6), None);
        assert_eq!(Processing::from_u32(3), None);
        assert_eq!(Exit::from_u32(77), None);
    }
}
