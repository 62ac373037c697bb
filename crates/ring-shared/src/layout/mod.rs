//! Every struct that lies in memory both sides see. Fields are `u32` or `u64` atomics, padding is
//! explicit and atomic too (whole lines are copied while others look at them), device addresses are `u64`, and each 128-byte line has one writer.
//!
//! In memory: one [`ControlBlock`], right behind it a [`ChannelBlock`] per channel, then the channels' slots.

mod channel;
mod control;
#[cfg(not(target_arch = "nvptx64"))]
mod said;

pub use channel::{
    BUCKETS, ChannelBlock, CreditLine, Doorbell, RingDescriptor, StatusLine, Times, bucket,
};
pub use control::{
    Command, ConfigLine, ControlBlock, Exit, HostLine, Processing, State, UNLIMITED,
};

/// Bytes of a line: what one bus transaction brings, and the unit of ownership.
pub const LINE: usize = 128;

/// Asserts size, alignment and the offset of every field named, at compile time.
macro_rules! assert_layout {
    ($t:ty: size $size:expr, align $align:expr, $($field:ident @ $at:expr),+ $(,)?) => {
        const _: () = {
            static_assertions::const_assert_eq!(size_of::<$t>(), $size);
            static_assertions::const_assert_eq!(align_of::<$t>(), $align);
            $(static_assertions::const_assert_eq!(core::mem::offset_of!($t, $field), $at);)+
        };
    };
}
pub(crate) use assert_layout;

/// How many numbers [`table`] holds.
pub const TABLE_LEN: usize = 53;

/// Sizes and offsets of every shared struct, in the order of [`TABLE_NAMES`]. The kernel
/// `ring_layout_probe` writes the table as the device's compiler sees it; the host compares.
pub const fn table() -> [u64; TABLE_LEN] {
    use crate::atomics::Atom;
    use core::mem::offset_of;
    [
        crate::ABI_VERSION as u64,
        crate::MAGIC,
        size_of::<Atom>() as u64,
        size_of::<HostLine>() as u64,
        offset_of!(HostLine, magic) as u64,
        offset_of!(HostLine, abi_version) as u64,
        offset_of!(HostLine, channels) as u64,
        offset_of!(HostLine, command) as u64,
        offset_of!(HostLine, renewed) as u64,
        size_of::<ConfigLine>() as u64,
        offset_of!(ConfigLine, payload) as u64,
        offset_of!(ConfigLine, payload_bytes) as u64,
        offset_of!(ConfigLine, time) as u64,
        offset_of!(ConfigLine, iterations) as u64,
        offset_of!(ConfigLine, idle) as u64,
        offset_of!(ConfigLine, processing) as u64,
        offset_of!(ConfigLine, max_messages) as u64,
        offset_of!(ConfigLine, lease) as u64,
        size_of::<ControlBlock>() as u64,
        offset_of!(ControlBlock, config) as u64,
        size_of::<RingDescriptor>() as u64,
        offset_of!(RingDescriptor, slots) as u64,
        offset_of!(RingDescriptor, start) as u64,
        offset_of!(RingDescriptor, capacity) as u64,
        offset_of!(RingDescriptor, slot_bytes) as u64,
        size_of::<StatusLine>() as u64,
        offset_of!(StatusLine, acknowledged) as u64,
        offset_of!(StatusLine, processed) as u64,
        offset_of!(StatusLine, refused) as u64,
        offset_of!(StatusLine, errors) as u64,
        offset_of!(StatusLine, depth) as u64,
        offset_of!(StatusLine, heartbeat) as u64,
        offset_of!(StatusLine, ticks) as u64,
        offset_of!(StatusLine, left) as u64,
        offset_of!(StatusLine, busy) as u64,
        offset_of!(StatusLine, leave) as u64,
        offset_of!(StatusLine, last_inline) as u64,
        offset_of!(StatusLine, scrubbed) as u64,
        offset_of!(StatusLine, exit) as u64,
        size_of::<Times>() as u64,
        offset_of!(Times, queueing) as u64,
        size_of::<Doorbell>() as u64,
        size_of::<CreditLine>() as u64,
        size_of::<ChannelBlock>() as u64,
        offset_of!(ChannelBlock, response) as u64,
        offset_of!(ChannelBlock, state) as u64,
        offset_of!(ChannelBlock, state_bytes) as u64,
        offset_of!(ChannelBlock, status) as u64,
        offset_of!(ChannelBlock, request_credit) as u64,
        offset_of!(ChannelBlock, response_bell) as u64,
        offset_of!(ChannelBlock, times) as u64,
        offset_of!(ChannelBlock, request_bell) as u64,
        offset_of!(ChannelBlock, response_credit) as u64,
    ]
}

/// What each number of [`table`] is.
pub const TABLE_NAMES: [&str; TABLE_LEN] = [
    "ABI version",
    "magic",
    "size of Atom",
    "size of HostLine",
    "HostLine.magic",
    "HostLine.abi_version",
    "HostLine.channels",
    "HostLine.command",
    "HostLine.renewed",
    "size of ConfigLine",
    "ConfigLine.payload",
    "ConfigLine.payload_bytes",
    "ConfigLine.time",
    "ConfigLine.iterations",
    "ConfigLine.idle",
    "ConfigLine.processing",
    "ConfigLine.max_messages",
    "ConfigLine.lease",
    "size of ControlBlock",
    "ControlBlock.config",
    "size of RingDescriptor",
    "RingDescriptor.slots",
    "RingDescriptor.start",
    "RingDescriptor.capacity",
    "RingDescriptor.slot_bytes",
    "size of StatusLine",
    "StatusLine.acknowledged",
    "StatusLine.processed",
    "StatusLine.refused",
    "StatusLine.errors",
    "StatusLine.depth",
    "StatusLine.heartbeat",
    "StatusLine.ticks",
    "StatusLine.left",
    "StatusLine.busy",
    "StatusLine.leave",
    "StatusLine.last_inline",
    "StatusLine.scrubbed",
    "StatusLine.exit",
    "size of Times",
    "Times.queueing",
    "size of Doorbell",
    "size of CreditLine",
    "size of ChannelBlock",
    "ChannelBlock.response",
    "ChannelBlock.state",
    "ChannelBlock.state_bytes",
    "ChannelBlock.status",
    "ChannelBlock.request_credit",
    "ChannelBlock.response_bell",
    "ChannelBlock.times",
    "ChannelBlock.request_bell",
    "ChannelBlock.response_credit",
];
