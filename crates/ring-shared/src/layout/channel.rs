use crate::atomics::{Atom, AtomicU32, AtomicU64};

shared_struct! {
    /// Where a ring lies, by device addresses, and how its slots are cut: a
    /// [`Placement`](super::Placement). Written by the host before the launch; a channel checks it before
    /// it uses it.
    pub struct RingDescriptor: size 48, align 8 {
        /// Address of the first doorbell line, at a multiple of 128.
        pub lines @ 0: AtomicU64,
        /// Address of the credit line, at a multiple of 128.
        pub credit @ 8: AtomicU64,
        /// Address of the first slot, at a multiple of 16.
        pub slots @ 16: AtomicU64,
        /// Index of the first message.
        pub start @ 24: AtomicU64,
        /// Slots, a power of two.
        pub capacity @ 32: AtomicU32,
        /// Bytes from one slot to the next, a multiple of 16.
        pub slot_bytes @ 36: AtomicU32,
        /// Messages that the doorbell lines, which lie side by side, have room for: a power of two.
        pub line_count @ 40: AtomicU32,
        /// Doorbell lines of each of them.
        pub span @ 44: AtomicU32,
    }
}

shared_struct! {
    /// What a channel says of itself, its counters since the first launch, and what it keeps from one
    /// launch to the next. Written by the device only.
    pub struct StatusLine: size 128, align 128 {
        /// The last [`Command`](super::Command) obeyed: its epoch, and the state the channel is in.
        pub acknowledged @ 0: AtomicU64,
        /// Messages handled. Exact at each acknowledgement, else as of the heartbeat.
        pub processed @ 8: AtomicU64,
        /// Messages that a handler refused, and commands not understood.
        pub refused @ 16: AtomicU64,
        /// Indices that could not be.
        pub errors @ 24: AtomicU64,
        /// Requests in the ring, as of the heartbeat.
        pub depth @ 32: AtomicU64,
        /// The device's clock in nanoseconds, renewed at most every 100 us while the channel runs.
        pub heartbeat @ 40: AtomicU64,
        /// The channel's processor clock at the heartbeat, in the unit of [`Times`]: with two heartbeats, how
        /// long a tick is. For debuggers: `ring-host` takes the clock rate from the driver.
        pub ticks @ 48: AtomicU64,
        /// Launches that the channel has left, for whatever reason.
        pub launches_left @ 56: AtomicU64,
        /// When the channel last had a message, by the device's clock in nanoseconds, or `u64::MAX` while
        /// it handles one. Read by channel 0, and written only when the idle budget is limited.
        pub busy @ 64: AtomicU64,
        /// Of channel 0: number, from 1, of the launch that it calls the other channels to leave, which read it.
        pub call @ 72: AtomicU64,
        /// Kept for the next launch: index after the last answer that was inline; those from it on are in
        /// slots.
        pub run_start @ 80: AtomicU64,
        /// Kept for the next launch: index at which the answers' stamps were last overwritten.
        pub scrubbed @ 88: AtomicU64,
        /// Number of an [`Exit`](super::Exit).
        pub exit @ 96: AtomicU64,
        /// Kept for the next launch: when the state last had a tick, by the device's clock in nanoseconds, or when ticks are counted
        /// from; 0 before that is known.
        pub ticked @ 104: AtomicU64,
        /// Kept for the next launch: calls to the host so far.
        pub called @ 112: AtomicU64,
        /// Kept for the next launch: records that were written to the channel's trace ring so far.
        pub traced @ 120: AtomicU64,
    }
}

/// Buckets of a histogram.
pub const BUCKETS: usize = 32;

shared_struct! {
    /// How long messages took, in ticks of the channel's processor: bucket `k` counts messages of
    /// `2^k..2^(k + 1)` ticks, the first also those of none, the last all that took longer. A batch is
    /// handled side by side: each of its messages counts with the time of the batch.
    pub struct Times: size 512, align 128 {
        /// From the beginning of the handler to its end.
        pub handler @ 0: [AtomicU64; BUCKETS],
        /// From the last look at the doorbell that did not show the message to the beginning of the
        /// handler: at least as long as the message waited.
        pub queueing @ 256: [AtomicU64; BUCKETS],
    }
}

/// The bucket of [`Times`] for so many ticks.
#[inline]
pub fn bucket(ticks: u64) -> usize {
    // By 32 bits: there are no more buckets, and Rust-CUDA gets `u64::ilog2` wrong.
    let ticks = u32::try_from(ticks).unwrap_or(u32::MAX);
    ticks.max(1).ilog2() as usize
}

shared_struct! {
    /// The producer's line of a ring: seven atoms of an inline message and the control atom.
    /// [`ring`](crate::ring) says what is in them.
    pub struct Doorbell: size 128, align 128 {
        /// Twelve bytes of payload and a stamp each; the control atom is the last.
        pub atoms @ 0: [Atom; 8],
    }
}

shared_struct! {
    /// The consumer's line of a ring.
    pub struct CreditLine: size 128, align 128 {
        /// Messages consumed: every slot below this index is free again.
        pub consumed @ 0: AtomicU64,
        pad @ 8: [AtomicU64; 15],
    }
}

shared_struct! {
    /// One channel: what the host wrote before the launch, then the lines that the device writes, then
    /// those that the host writes. Each group is moved by one copy where memory is not shared. The lines
    /// of its rings are here unless their descriptors name others.
    pub struct ChannelBlock: size 1280, align 128 {
        /// The ring of requests (written before the launch).
        pub request @ 0: RingDescriptor,
        /// The ring of responses (written before the launch).
        pub response @ 48: RingDescriptor,
        /// Device address of what a handler keeps from message to message, in device memory (written
        /// before the launch).
        pub state @ 96: AtomicU64,
        /// Bytes there; 0 when there is none.
        pub state_bytes @ 104: AtomicU64,
        /// Device address of the channel's [`Links`](super::Links), in memory that the host sees (written before the
        /// launch); 0 if its kernel has no ports.
        pub links @ 112: AtomicU64,
        /// Device address of the channel's [`CallSlots`](crate::calls::CallSlots), with their shape in its low bits (written before the
        /// launch); 0 if its kernel does not call the host.
        pub calls @ 120: AtomicU64,
        /// Written by the device.
        pub status @ 128: StatusLine,
        /// Written by the device.
        pub request_credit @ 256: CreditLine,
        /// Written by the device.
        pub response_bell @ 384: Doorbell,
        /// Written by the device.
        pub times @ 512: Times,
        /// Written by the host.
        pub request_bell @ 1024: Doorbell,
        /// Written by the host.
        pub response_credit @ 1152: CreditLine,
    }
}

#[cfg(any(feature = "std", test, loom))]
impl CreditLine {
    pub(crate) fn new(consumed: AtomicU64) -> CreditLine {
        CreditLine { consumed, pad: core::array::from_fn(|_| AtomicU64::new(0)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_begins_at_its_power_of_two() {
        for k in 1..BUCKETS {
            assert_eq!((bucket((1 << k) - 1), bucket(1 << k)), (k - 1, k));
        }
        assert_eq!(bucket(0), 0);
        for most in [u64::from(u32::MAX), 1 << 32, u64::MAX] {
            assert_eq!(bucket(most), BUCKETS - 1);
        }
    }
}
