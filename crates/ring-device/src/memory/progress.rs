//! The progress of a stream, which its warps share.

use crate::block::MOST_WARPS;
use crate::block::cell::Cell;
use crate::memory::signals::Decision;

/// The state of a stream. Indices are of requests.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Progress {
    /// Set by the committer: requests below this index may be handled.
    pub dispatch_limit: Cell<u64>,
    /// Set by the committer: requests below this index are answered.
    pub committed: Cell<u64>,
    /// Set by the committer: what ends the stream.
    pub end: Cell<Decision>,
    /// Set by the poller: what was committed when its last look began that showed nothing behind it.
    pub polled_through: Cell<u64>,
    /// Set by the poller: looks so far.
    pub looks: Cell<u64>,
    /// Set by the poller: the launch that channel 0 has called to leave.
    pub called: Cell<u64>,
    /// Set by the poller: the host wrote an index that is impossible.
    pub corrupt: Cell<bool>,
    /// Set by each worker: the request that it handles next.
    pub cursors: [Cell<u64>; MOST_WARPS],
    /// Requests that a warp takes at a time, a power of two. Set when the launch begins.
    pub chunk: Cell<u64>,
}
