//! Where words lie in a block's memory. The rules for the PTX tell by these offsets which accesses are among a
//! block's threads, and which the host sees. The memory has the same layout on a GPU.

use super::{BlockMemory, boot};
use core::mem::offset_of;
use ring_shared::layout::{ChannelBlock, ConfigLine, MAX_DEVICES};

#[doc(hidden)]
impl BlockMemory {
    /// Where the host leaves the address of the requests' doorbell line.
    pub const REQUEST_LINES: usize =
        Self::told(boot::RINGS, offset_of!(ChannelBlock, request.lines));
    /// Where the host leaves the address of the requests' credit line.
    pub const REQUEST_CREDIT: usize =
        Self::told(boot::RINGS, offset_of!(ChannelBlock, request.credit));
    /// Where the host leaves the address of the responses' doorbell line.
    pub const RESPONSE_LINES: usize =
        Self::told(boot::RINGS, offset_of!(ChannelBlock, response.lines));
    /// Where the host leaves the address of the responses' credit line.
    pub const RESPONSE_CREDIT: usize =
        Self::told(boot::RINGS, offset_of!(ChannelBlock, response.credit));
    /// Where the host leaves the address of the request slots.
    pub const REQUEST_SLOTS: usize =
        Self::told(boot::RINGS, offset_of!(ChannelBlock, request.slots));
    /// Where the host leaves the address of the response slots.
    pub const RESPONSE_SLOTS: usize =
        Self::told(boot::RINGS, offset_of!(ChannelBlock, response.slots));
    /// Where the host leaves the address of the state.
    pub const STATE: usize = Self::told(boot::RINGS, offset_of!(ChannelBlock, state));
    /// `grid.at`, where the blocks of a grid keep the address of the memory where they meet, which is the state's.
    pub const GRID: usize = offset_of!(BlockMemory, grid.at);
    /// `grid.devices.places`, where the blocks of a grid keep the addresses of the memory where they meet those of other devices, and what
    /// lies behind it.
    pub const DEVICES: [usize; 2] = [
        offset_of!(BlockMemory, grid.devices.places),
        offset_of!(BlockMemory, grid.devices.places) + 8 * MAX_DEVICES,
    ];
    /// Where the host leaves the address of the payload arena.
    pub const PAYLOAD: usize = Self::told(boot::CONFIG, offset_of!(ConfigLine, payload));
    /// `life.buffers`, where handlers leave what the host says: the address of the table of buffers.
    pub const BUFFERS: usize = offset_of!(BlockMemory, life.buffers);
    /// `calls.slots`, where the channel keeps what the host says: the address of its call slots.
    pub const CALLS: usize = offset_of!(BlockMemory, calls.slots);
    /// `trace.at`.
    pub const TRACE: usize = offset_of!(BlockMemory, trace.at);
    /// The scratch memory, the last of it: messages on their way.
    pub const SCRATCH: usize = offset_of!(BlockMemory, scratch);
    /// `inbox.next`.
    pub const INBOX_NEXT: usize = offset_of!(BlockMemory, inbox.next);
    /// `inbox.claims`.
    pub const CLAIMS: usize = offset_of!(BlockMemory, inbox.claims);
    /// `outbox.slots_end`.
    pub const SLOTS_END: usize = offset_of!(BlockMemory, outbox.slots_end);
    /// `outbox.committed`.
    pub const COMMITTED: usize = offset_of!(BlockMemory, outbox.committed);
    /// `budget.idle_since`.
    pub const IDLE_SINCE: usize = offset_of!(BlockMemory, budget.idle_since);
    /// `inbox.tail`.
    pub const INBOX_TAIL: usize = offset_of!(BlockMemory, inbox.tail);
    /// `inbox.staged`.
    pub const STAGED: usize = offset_of!(BlockMemory, inbox.staged);
    /// `progress.dispatch_limit`.
    pub const DISPATCH_LIMIT: usize = offset_of!(BlockMemory, progress.dispatch_limit);
    /// `telemetry.split`.
    pub const SPLIT: usize = offset_of!(BlockMemory, telemetry.split);
    /// `progress.committed`.
    pub const STREAM_COMMITTED: usize = offset_of!(BlockMemory, progress.committed);
    /// `progress.end`.
    pub const STREAM_END: usize = offset_of!(BlockMemory, progress.end);
    /// `progress.taken`.
    pub const TAKEN: usize = offset_of!(BlockMemory, progress.taken);
    /// `life.acknowledged`.
    pub const ACKNOWLEDGED: usize = offset_of!(BlockMemory, life.acknowledged);
    /// `outbox.consumed`.
    pub const CONSUMED: usize = offset_of!(BlockMemory, outbox.consumed);
    /// `signals.command`.
    pub const COMMAND: usize = offset_of!(BlockMemory, signals.command);
    /// `signals.wake`.
    pub const WAKE: usize = offset_of!(BlockMemory, signals.wake);
    /// `signals.uses_payload`.
    pub const USES_PAYLOAD: usize = offset_of!(BlockMemory, signals.uses_payload);
    /// `signals.stop`.
    pub const STOP: usize = offset_of!(BlockMemory, signals.stop);
    /// `signals.decision`.
    pub const DECISION: usize = offset_of!(BlockMemory, signals.decision);
    /// `life.panicked`.
    pub const PANICKED: usize = offset_of!(BlockMemory, life.panicked);
    /// `progress.cursors`, the first and what lies behind the last.
    pub const CURSORS: [usize; 2] =
        [offset_of!(BlockMemory, progress.cursors), offset_of!(BlockMemory, progress.chunk)];
    /// What a launch begins with, and what lies behind it.
    pub const BOOT: [usize; 2] = [offset_of!(BlockMemory, boot), offset_of!(BlockMemory, scratch)];

    const fn told(line: usize, offset: usize) -> usize {
        offset_of!(BlockMemory, boot) + 16 * line + offset
    }
}
