//! Words of a kernel's shared memory that the script can edit: all but addresses, counters of time (of
//! which there are two) and padding.

use crate::Lie;
use core::mem::offset_of;
use core::ops::Range;
use libfuzzer_sys::arbitrary::{self, Arbitrary};
use ring_shared::layout::{
    ChannelBlock, ConfigLine, ControlBlock, HostLine, RingDescriptor, StatusLine, Times,
};

/// Which half of a word.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub enum Part {
    /// Both.
    Word,
    /// The low one.
    Low,
    /// The high one.
    High,
}

/// A word: of the control block, or of a channel's.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub enum Field {
    /// One of [`OF_KERNEL`].
    Kernel(u8),
    /// The block's own channel: one of [`OF_CHANNEL`].
    Channel(u8),
    /// Another channel: which, and one of [`OF_CHANNEL`].
    Other(u8, u8),
    /// A doorbell line of the requests of the block's own channel: which, and a word of it.
    Line(u8, u8),
}

/// A lie in place of a word, or of half of it.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub enum Edit {
    /// A lie in a word.
    Lie(Field, Part, Lie),
    /// No payload, no state, no slots.
    Null(u8),
}

const CONFIG: usize = offset_of!(ControlBlock, config);
const REQUEST: usize = offset_of!(ChannelBlock, request);
const RESPONSE: usize = offset_of!(ChannelBlock, response);
const STATUS: usize = offset_of!(ChannelBlock, status);
const REQUEST_BELL: usize = offset_of!(ChannelBlock, request_bell);
const RESPONSE_BELL: usize = offset_of!(ChannelBlock, response_bell);
const TIMES: usize = offset_of!(ChannelBlock, times);

/// Offsets in the control block.
pub const OF_KERNEL: [usize; 8] = [
    offset_of!(HostLine, magic),
    offset_of!(HostLine, abi_version),
    offset_of!(HostLine, command),
    CONFIG + offset_of!(ConfigLine, payload_bytes),
    CONFIG + offset_of!(ConfigLine, time),
    CONFIG + offset_of!(ConfigLine, iterations),
    CONFIG + offset_of!(ConfigLine, idle),
    CONFIG + offset_of!(ConfigLine, processing),
];

/// Offsets in a channel's block.
pub const OF_CHANNEL: [usize; 40] = [
    REQUEST + offset_of!(RingDescriptor, start),
    REQUEST + offset_of!(RingDescriptor, capacity),
    RESPONSE + offset_of!(RingDescriptor, start),
    RESPONSE + offset_of!(RingDescriptor, capacity),
    offset_of!(ChannelBlock, state_bytes),
    STATUS + offset_of!(StatusLine, acknowledged),
    STATUS + offset_of!(StatusLine, processed),
    STATUS + offset_of!(StatusLine, refused),
    STATUS + offset_of!(StatusLine, errors),
    STATUS + offset_of!(StatusLine, depth),
    STATUS + offset_of!(StatusLine, heartbeat),
    STATUS + offset_of!(StatusLine, launches_left),
    STATUS + offset_of!(StatusLine, busy),
    STATUS + offset_of!(StatusLine, call),
    STATUS + offset_of!(StatusLine, run_start),
    STATUS + offset_of!(StatusLine, scrubbed),
    STATUS + offset_of!(StatusLine, exit),
    offset_of!(ChannelBlock, request_credit),
    offset_of!(ChannelBlock, response_credit),
    TIMES + offset_of!(Times, handler),
    TIMES + offset_of!(Times, queueing) + 8,
    RESPONSE_BELL,
    RESPONSE_BELL + 112,
    RESPONSE_BELL + 120,
    REQUEST_BELL,
    REQUEST_BELL + 8,
    REQUEST_BELL + 16,
    REQUEST_BELL + 24,
    REQUEST_BELL + 32,
    REQUEST_BELL + 40,
    REQUEST_BELL + 48,
    REQUEST_BELL + 56,
    REQUEST_BELL + 64,
    REQUEST_BELL + 72,
    REQUEST_BELL + 80,
    REQUEST_BELL + 88,
    REQUEST_BELL + 96,
    REQUEST_BELL + 104,
    REQUEST_BELL + 112,
    REQUEST_BELL + 120,
];

/// Words of a channel's block that only the channel writes while a launch runs; some of them the launch reads
/// when it begins.
pub const OF_DEVICE: Range<usize> = STATUS / 8..REQUEST_BELL / 8;

impl Part {
    /// The word with that part made a lie.
    pub fn apply(self, lie: Lie, honest: u64) -> u64 {
        let (low, high) = (honest as u32, (honest >> 32) as u32);
        let joined = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
        match self {
            Part::Word => lie.apply(honest),
            Part::Low => joined(lie.apply32(low), high),
            Part::High => joined(low, lie.apply32(high)),
        }
    }
}
