use super::assert_layout;
use crate::atomics::{AtomicU32, AtomicU64};

/// What the host wants of a kernel, and what a lane says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
#[non_exhaustive]
pub enum State {
    /// The kernel runs, takes no message, and waits to be activated for the first time.
    Launched = 0,
    /// Messages are taken and answered.
    Active = 1,
    /// Resident, but no message is taken; those in the ring stay there.
    Inactive = 2,
    /// The lane has left the GPU, or is asked to.
    Terminated = 3,
    /// The lane left because of an error; [`Exit`] says which.
    Faulted = 4,
}

impl State {
    /// The state of that number, or `None`: the number was written by the other side.
    pub fn from_u32(n: u32) -> Option<State> {
        [State::Launched, State::Active, State::Inactive, State::Terminated, State::Faulted]
            .into_iter()
            .find(|s| *s as u32 == n)
    }
}

/// Why a lane left the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
#[non_exhaustive]
pub enum Exit {
    /// It has not left.
    Running = 0,
    /// The host asked.
    Asked = 1,
    /// The lane's configuration does not fit the kernel (capacity, slot size, addresses).
    BadConfig = 2,
    /// A tail or credit written by the host was impossible.
    CorruptRing = 3,
    /// The handler panicked (CPU device only; on a GPU this is a device fault).
    HandlerPanicked = 4,
}

impl Exit {
    /// The exit of that number, or `None`: the number was written by the other side.
    pub fn from_u32(n: u32) -> Option<Exit> {
        [Exit::Running, Exit::Asked, Exit::BadConfig, Exit::CorruptRing, Exit::HandlerPanicked]
            .into_iter()
            .find(|e| *e as u32 == n)
    }
}

/// An epoch and a state in one `u64`, so that both change in one store. The host writes
/// `(epoch + 1, desired)`; a lane acknowledges with `(same epoch, observed)`.
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

/// Written by the host at any time; read by every lane.
#[repr(C, align(128))]
#[derive(Debug)]
pub struct HostLine {
    /// [`MAGIC`](crate::MAGIC).
    pub magic: AtomicU64,
    /// [`ABI_VERSION`](crate::ABI_VERSION) of the host.
    pub abi_version: AtomicU32,
    /// Number of lanes.
    pub lanes: AtomicU32,
    /// A [`Command`].
    pub command: AtomicU64,
    pad: [u64; 13],
}

/// Written by the host before the launch, never after.
#[repr(C, align(128))]
#[derive(Debug)]
pub struct ConfigLine {
    /// Device address of the first [`LaneBlock`](super::LaneBlock).
    pub lane_blocks: AtomicU64,
    /// Device address of the payload arena, in device memory.
    pub payload: AtomicU64,
    /// Bytes of the payload arena; 0 when there is none.
    pub payload_bytes: AtomicU64,
    pad: [u64; 13],
}

/// The head of a kernel's shared memory; its address is the kernel's one parameter.
#[repr(C, align(128))]
#[derive(Debug)]
pub struct ControlBlock {
    /// Commands.
    pub host: HostLine,
    /// Where everything lies.
    pub config: ConfigLine,
}

assert_layout!(HostLine: size 128, align 128, magic @ 0, abi_version @ 8, lanes @ 12, command @ 16);
assert_layout!(ConfigLine: size 128, align 128, lane_blocks @ 0, payload @ 8, payload_bytes @ 16);
assert_layout!(ControlBlock: size 256, align 128, host @ 0, config @ 128);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_numbers_survive() {
        let c = Command { epoch: u32::MAX, state: State::Inactive as u32 };
        assert_eq!(Command::from_word(c.to_word()), c);
        for n in 0..5 {
            assert_eq!(State::from_u32(n).unwrap() as u32, n);
            assert_eq!(Exit::from_u32(n).unwrap() as u32, n);
        }
        assert_eq!(State::from_u32(5), None);
        assert_eq!(Exit::from_u32(77), None);
    }
}
