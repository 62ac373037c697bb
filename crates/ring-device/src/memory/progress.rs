//! The progress of a stream, which its warps share.

use crate::block::MOST_WARPS;
use crate::block::cell::Cell;
use crate::memory::signals::Decision;

/// The state of a stream. Indices are of requests.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Progress {
    /// Set by the poller: requests below this index may be handled.
    pub dispatch_limit: Cell<u64>,
    /// Requests below this index are taken by workers. Swapped by each of them.
    pub taken: Cell<u64>,
    /// Set by the committer: requests below this index are answered.
    pub committed: Cell<u64>,
    /// Set by the poller: what ends the stream.
    pub end: Cell<Decision>,
    /// Set by the poller: what was answered at its last step.
    pub noted: Cell<u64>,
    /// Set by the poller's warp, of its last look at all that the host writes: the launch that channel 0 has called to leave,
    /// and the responses consumed by the host's credit line.
    pub seen_call: Cell<u64>,
    pub seen_credit: Cell<u64>,
    /// Set by the poller: its looks since it last looked at all that the host writes; 0 if it is to do so next.
    pub polls: Cell<u64>,
    /// Set by the poller: there are requests, but no room for their responses.
    pub is_starved: Cell<bool>,
    /// Set by each warp that is a worker: a request that it may have taken, before which it has none; `u64::MAX` if it has
    /// none at all.
    pub cursors: [Cell<u64>; MOST_WARPS],
    /// Most requests that a warp takes at a time, a power of two. Set when the launch begins.
    pub chunk: Cell<u64>,
}
