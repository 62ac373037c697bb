use super::assert_layout;
use crate::atomics::{Atom, AtomicU32, AtomicU64};

/// Where a ring's slots lie, as a device address, and how they are cut. Written by the host before
/// the launch; a channel checks it before it trusts it. The ring's two lines are in the channel's block.
#[repr(C)]
#[derive(Debug)]
pub struct RingDescriptor {
    /// Device address of the first slot.
    pub slots: AtomicU64,
    /// Index of the first message.
    pub start: AtomicU64,
    /// Slots, a power of two.
    pub capacity: AtomicU32,
    /// Bytes from one slot to the next, a multiple of 16.
    pub slot_bytes: AtomicU32,
}

/// What a channel says of itself, its counters since the first launch, and what it keeps from one
/// launch to the next. Written by the device only.
#[repr(C, align(128))]
#[derive(Debug)]
pub struct StatusLine {
    /// The last [`Command`](super::Command) obeyed: its epoch, and the state the channel is in.
    pub acknowledged: AtomicU64,
    /// Messages handled. Exact at each acknowledgement, else as of the heartbeat.
    pub processed: AtomicU64,
    /// Messages that a handler refused, and commands not understood.
    pub refused: AtomicU64,
    /// Indices that could not be.
    pub errors: AtomicU64,
    /// Requests in the ring, as of the heartbeat.
    pub depth: AtomicU64,
    /// The device's clock in nanoseconds, renewed at most every 100 us while the channel runs.
    pub heartbeat: AtomicU64,
    /// The channel's processor clock at the heartbeat, in the unit of [`Times`].
    pub ticks: AtomicU64,
    /// Launches that the channel has left, for whatever reason.
    pub left: AtomicU64,
    /// When the channel last had a message, by the device's clock in nanoseconds, or `u64::MAX` while
    /// it handles one. For channel 0, and only when the idle budget is limited.
    pub busy: AtomicU64,
    /// Channel 0 only: number of the launch that is to leave, from 1. For the other channels.
    pub leave: AtomicU64,
    /// Kept for the next launch: index of the last answer that travelled inline.
    pub last_inline: AtomicU64,
    /// Kept for the next launch: index at which the answers' stamps were last overwritten.
    pub scrubbed: AtomicU64,
    /// Number of an [`Exit`](super::Exit).
    pub exit: AtomicU64,
    pad: [AtomicU64; 3],
}

/// Buckets of a histogram.
pub const BUCKETS: usize = 32;

/// How long messages took, in ticks of the channel's processor: bucket `k` counts messages of
/// `2^k..2^(k + 1)` ticks, the first also those of none, the last all that took longer. A batch is
/// handled side by side: each of its messages counts with the time of the batch.
#[repr(C, align(128))]
#[derive(Debug)]
pub struct Times {
    /// From the beginning of the handler to its end.
    pub handler: [AtomicU64; BUCKETS],
    /// From the last look at the doorbell that did not show the message to the beginning of the
    /// handler: at least as long as the message waited.
    pub queueing: [AtomicU64; BUCKETS],
}

/// The bucket of [`Times`] for so many ticks.
#[inline]
pub fn bucket(ticks: u64) -> usize {
    (ticks.max(1).ilog2() as usize).min(BUCKETS - 1)
}

/// The producer's line of a ring: seven atoms of an inline message and the control atom.
/// [`ring`](crate::ring) says what is in them.
#[repr(C, align(128))]
#[derive(Debug)]
pub struct Doorbell {
    /// Twelve bytes of payload and a stamp each; the control atom is the last.
    pub atoms: [Atom; 8],
}

/// The consumer's line of a ring.
#[repr(C, align(128))]
#[derive(Debug)]
pub struct CreditLine {
    /// Messages consumed: every slot below this index is free again.
    pub consumed: AtomicU64,
    pad: [AtomicU64; 15],
}

/// One channel: what the host wrote before the launch, then the lines that the device writes, then
/// those that the host writes. Each group is moved by one copy where memory is not shared.
#[repr(C, align(128))]
#[derive(Debug)]
pub struct ChannelBlock {
    /// The ring of requests (written before the launch).
    pub request: RingDescriptor,
    /// The ring of responses (written before the launch).
    pub response: RingDescriptor,
    /// Device address of what a handler keeps from message to message, in device memory (written
    /// before the launch).
    pub state: AtomicU64,
    /// Bytes there; 0 when there is none.
    pub state_bytes: AtomicU64,
    pad: [AtomicU64; 8],
    /// Written by the device.
    pub status: StatusLine,
    /// Written by the device.
    pub request_credit: CreditLine,
    /// Written by the device.
    pub response_bell: Doorbell,
    /// Written by the device.
    pub times: Times,
    /// Written by the host.
    pub request_bell: Doorbell,
    /// Written by the host.
    pub response_credit: CreditLine,
}

#[cfg(any(feature = "std", test, loom))]
impl CreditLine {
    pub(crate) fn new(consumed: AtomicU64) -> CreditLine {
        CreditLine { consumed, pad: core::array::from_fn(|_| AtomicU64::new(0)) }
    }
}

assert_layout!(RingDescriptor: size 24, align 8, slots @ 0, start @ 8, capacity @ 16, slot_bytes @ 20);
assert_layout!(StatusLine: size 128, align 128, acknowledged @ 0, processed @ 8, refused @ 16,
    errors @ 24, depth @ 32, heartbeat @ 40, ticks @ 48, left @ 56, busy @ 64, leave @ 72,
    last_inline @ 80, scrubbed @ 88, exit @ 96);
assert_layout!(Doorbell: size 128, align 128, atoms @ 0);
assert_layout!(CreditLine: size 128, align 128, consumed @ 0);
assert_layout!(Times: size 512, align 128, handler @ 0, queueing @ 256);
assert_layout!(ChannelBlock: size 1280, align 128, request @ 0, response @ 24, state @ 48,
    state_bytes @ 56, status @ 128,
    request_credit @ 256, response_bell @ 384, times @ 512, request_bell @ 1024,
    response_credit @ 1152);
