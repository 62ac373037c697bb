//! What the ring is measured against: the structs through which the host drives plain kernels.
//!
//! Each kernel takes one parameter, the device address of its struct. Host and device see the same
//! memory, and each 128-byte line has one writer.

use ring_shared::atomics::AtomicU64;

/// What the host writes into a request word to make a kernel leave.
pub const STOP: u64 = u64::MAX;

/// A word alone on its line.
#[repr(C, align(128))]
#[derive(Debug)]
pub struct Line(pub AtomicU64);

/// A flag there and a flag back: `bench_flag` copies each new request into the response.
///
/// Also the struct of `bench_once`, which answers the request of the moment with one more, and of
/// `bench_count`, which answers with a [`Count`].
#[repr(C)]
#[derive(Debug)]
pub struct Flags {
    /// Written by the host.
    pub request: Line,
    /// Written by the device.
    pub response: Line,
    /// Written by the host before the launch: nanoseconds after which the kernel leaves.
    pub limit: Line,
}

/// What `bench_count` counts, in device memory.
#[repr(C)]
#[derive(Debug)]
pub struct Count {
    /// Its launches so far.
    pub launches: u64,
    /// Device address of the [`Flags`] in which it answers.
    pub flags: u64,
}

/// A ring pair with a head and a tail each, as usual. Slots are 64 bytes.
#[repr(C)]
#[derive(Debug)]
pub struct Pair {
    /// Requests taken. Written by the device.
    pub request_head: Line,
    /// Requests there are. Written by the host.
    pub request_tail: Line,
    /// Responses taken. Written by the host.
    pub response_head: Line,
    /// Responses there are. Written by the device.
    pub response_tail: Line,
}

/// What `bench_head_tail` works on. Block `k` serves pair `k`. Written by the host.
#[repr(C, align(128))]
#[derive(Debug)]
pub struct HeadTail {
    /// Not 0: leave.
    pub stop: Line,
    /// Device address of the [`Pair`]s.
    pub pairs: u64,
    /// Device address of the request slots, all of pair 0 first.
    pub requests: u64,
    /// Device address of the response slots.
    pub responses: u64,
    /// Slots of a ring, a power of two.
    pub capacity: u64,
    /// Most messages that are taken at once.
    pub most: u64,
    /// Nanoseconds after which the kernel leaves.
    pub limit: u64,
}

/// Two blocks that answer each other through device memory: by a line each with `bench_between`, by rings
/// with messages of eight bytes with `bench_link_gpu` and `bench_link_system`, whose ends have those scopes.
#[repr(C, align(128))]
#[derive(Debug)]
pub struct Between {
    /// Device address of two lines, each written by one block; or of two rings, [`LINK_BYTES`] each, ring `k`
    /// written by block `k`. They are zero.
    pub lines: u64,
    /// Trips there and back.
    pub trips: u64,
    /// Nanoseconds after which the kernel leaves.
    pub limit: u64,
    /// Trips that were made. Written by the device at the end.
    pub made: Line,
    /// How long they took, in nanoseconds of the device's clock.
    pub took: Line,
}

/// Bytes of a ring between two blocks: the doorbell line, the credit line, the slots.
pub const LINK_BYTES: usize = 1024;

/// Slots of such a ring.
pub const LINK_CAPACITY: u32 = 8;
