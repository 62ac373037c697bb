//! Where words lie in a team's memory, for rules about the PTX: by these offsets they tell what a team's
//! threads say to each other from what they say to the host. The memory has the same layout on a GPU.

use super::{TeamMemory, boot};
use core::mem::offset_of;
use ring_shared::layout::{ChannelBlock, ConfigLine};

#[doc(hidden)]
impl TeamMemory {
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
    /// Where the host leaves the address of the payload arena.
    pub const PAYLOAD: usize = Self::told(boot::CONFIG, offset_of!(ConfigLine, payload));
    /// The pool, the last of it: messages on their way.
    pub const POOL: usize = offset_of!(TeamMemory, pool);
    /// `Shared::head`.
    pub const HEAD: usize = offset_of!(TeamMemory, shared.head);
    /// `Shared::answered`.
    pub const ANSWERED: usize = offset_of!(TeamMemory, shared.answered);
    /// `Shared::tail`.
    pub const TAIL: usize = offset_of!(TeamMemory, shared.tail);
    /// `Shared::staged`.
    pub const STAGED: usize = offset_of!(TeamMemory, shared.staged);
    /// `Shared::go`.
    pub const GO: usize = offset_of!(TeamMemory, shared.go);
    /// `Shared::done`.
    pub const DONE: usize = offset_of!(TeamMemory, shared.done);
    /// `Shared::over`.
    pub const OVER: usize = offset_of!(TeamMemory, shared.over);
    /// `Shared::covered`.
    pub const COVERED: usize = offset_of!(TeamMemory, shared.covered);
    /// `Shared::places`, the first and what lies behind the last.
    pub const PLACES: [usize; 2] =
        [offset_of!(TeamMemory, shared.places), offset_of!(TeamMemory, shared.chunk)];
    /// `Shared::obeyed`.
    pub const OBEYED: usize = offset_of!(TeamMemory, shared.obeyed);
    /// `Shared::credit`.
    pub const CREDIT: usize = offset_of!(TeamMemory, shared.credit);
    /// `Shared::command`.
    pub const COMMAND: usize = offset_of!(TeamMemory, shared.command);
    /// `Shared::event`.
    pub const EVENT: usize = offset_of!(TeamMemory, shared.event);
    /// `Shared::stop`.
    pub const STOP: usize = offset_of!(TeamMemory, shared.stop);
    /// `Shared::verdict`.
    pub const VERDICT: usize = offset_of!(TeamMemory, shared.verdict);
    /// `Shared::broken`.
    pub const BROKEN: usize = offset_of!(TeamMemory, shared.broken);

    /// What a launch begins with, and what lies behind it.
    pub const BOOT: [usize; 2] = [offset_of!(TeamMemory, boot), offset_of!(TeamMemory, pool)];

    const fn told(line: usize, offset: usize) -> usize {
        offset_of!(TeamMemory, boot) + 16 * line + offset
    }
}
