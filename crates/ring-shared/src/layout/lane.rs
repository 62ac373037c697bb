use super::assert_layout;
use crate::atomics::{Atom, AtomicU32, AtomicU64};

/// Where a ring lies and how it is cut, as device addresses. Written by the host before the
/// launch; a lane checks it before it trusts it.
#[repr(C)]
#[derive(Debug)]
pub struct RingDescriptor {
    /// Device address of the [`Doorbell`].
    pub bell: AtomicU64,
    /// Device address of the [`CreditLine`].
    pub credit: AtomicU64,
    /// Device address of the first slot.
    pub slots: AtomicU64,
    /// Index of the first message.
    pub start: AtomicU64,
    /// Slots, a power of two.
    pub capacity: AtomicU32,
    /// Bytes from one slot to the next, a multiple of 16.
    pub slot_bytes: AtomicU32,
}

/// What a lane says of itself. Written by the device only.
#[repr(C, align(128))]
#[derive(Debug)]
pub struct StatusLine {
    /// The last [`Command`](super::Command) obeyed: its epoch, and the state the lane is in.
    pub acknowledged: AtomicU64,
    /// Messages handled since the launch. Exact at each acknowledgement, else as of the heartbeat.
    pub processed: AtomicU64,
    /// Messages or commands refused since the launch.
    pub errors: AtomicU64,
    /// The device's clock in nanoseconds, renewed at most every 100 us while the lane runs.
    pub heartbeat: AtomicU64,
    /// Number of an [`Exit`](super::Exit).
    pub exit: AtomicU32,
    pad: [u32; 23],
}

/// The producer's line of a ring: seven atoms of an express message and the control atom.
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
    pad: [u64; 15],
}

/// One lane: its two rings' lines, its status, and where its slots are.
#[repr(C, align(128))]
#[derive(Debug)]
pub struct LaneBlock {
    /// The ring of requests (written before the launch).
    pub request: RingDescriptor,
    /// The ring of responses (written before the launch).
    pub response: RingDescriptor,
    pad: [u64; 6],
    /// Written by the device.
    pub status: StatusLine,
    /// Written by the host.
    pub request_bell: Doorbell,
    /// Written by the device.
    pub request_credit: CreditLine,
    /// Written by the device.
    pub response_bell: Doorbell,
    /// Written by the host.
    pub response_credit: CreditLine,
}

#[cfg(any(feature = "std", test, loom))]
impl CreditLine {
    pub(crate) fn new(consumed: AtomicU64) -> CreditLine {
        CreditLine { consumed, pad: [0; 15] }
    }
}

assert_layout!(RingDescriptor: size 40, align 8,
    bell @ 0, credit @ 8, slots @ 16, start @ 24, capacity @ 32, slot_bytes @ 36);
assert_layout!(StatusLine: size 128, align 128,
    acknowledged @ 0, processed @ 8, errors @ 16, heartbeat @ 24, exit @ 32);
assert_layout!(Doorbell: size 128, align 128, atoms @ 0);
assert_layout!(CreditLine: size 128, align 128, consumed @ 0);
assert_layout!(LaneBlock: size 768, align 128, request @ 0, response @ 40, status @ 128,
    request_bell @ 256, request_credit @ 384, response_bell @ 512, response_credit @ 640);
