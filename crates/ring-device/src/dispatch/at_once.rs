//! The first answer of a launch. A host that launches a kernel for one message waits for all that
//! comes before the answer, so if the message is there already and one warp can answer it, that warp
//! does, before the lane is made ready for more.

use super::resume::{self, EPOCH};
use crate::context::Payload;
use crate::kernel::{Kernel, Scope};
use crate::team::{Look, Team, boot};
use core::mem::offset_of;
use core::sync::atomic::Ordering::Relaxed;
use ring_shared::Message;
use ring_shared::layout::{Command, Doorbell, LaneBlock, RingDescriptor, State, StatusLine};
use ring_shared::ring::{Control, Seen, decide, stamp};

/// Bytes of a window that a polling warp has for itself: an express message has at most 84.
const WARP_BYTES: usize = 128;

/// A message that was answered at once.
#[derive(Clone, Copy)]
pub(super) struct First {
    /// Whether there was one.
    pub answered: bool,
    /// Ticks of its handler.
    pub took: u64,
    /// Ticks from the beginning of the launch to that of the handler.
    pub waited: u64,
    /// Whether, or how often, the handler refused it.
    pub refused: u64,
}

impl First {
    const NONE: First = First { answered: false, took: 0, waited: 0, refused: 0 };
}

/// Answers the message that the boot's look shows, if it is the next one, the kernel is active, the
/// message is whole, and its answer may go express. The boot's words are then as if the launch
/// before had answered it. All threads call it; only those of warp 0 do something.
///
/// # Safety
/// As for [`run`](super::run): `block` is the lane's block if the boot shows a kernel of our kind.
#[inline(always)]
pub(super) unsafe fn answer<K: Kernel>(
    team: &Team<'_>,
    block: *const LaneBlock,
    ticks: u64,
) -> First {
    let alone = <K::Scope as Scope<K>>::ALONE && K::Request::FITS_EXPRESS;
    if !(alone && K::Response::FITS_EXPRESS) || team.poller() != Some(0) {
        return First::NONE;
    }
    team.warp_sync(); // the boot's words are there
    let (boot, look) = (&team.memory().boot, team.seen(team.first_look()));
    let (command, head) = (boot.word(boot::COMMAND, 0), boot.word(boot::REQUEST_CREDIT, 0));
    let ring = |of, at| boot.half(boot::RINGS, of + at);
    let fits = |of, atoms| ring(of, offset_of!(RingDescriptor, slot_bytes)) as usize == 16 * atoms;
    let (request, response) = (offset_of!(LaneBlock, request), offset_of!(LaneBlock, response));
    let capacity = ring(request, offset_of!(RingDescriptor, capacity));
    let ours = resume::is_ours(team)
        && !resume::is_lost(team)
        && fits(request, K::Request::SLOT_ATOMS)
        && fits(response, K::Response::SLOT_ATOMS);
    let known = command >> 32 == u64::from(boot.half(boot::STATUS, EPOCH));
    let active = known && Command::from_word(command).state == State::Active as u32;
    let next = decide(look.control, head, capacity) == Seen::Express;
    let free = look.control.credit == head as u32;
    let ready = ours && active && next && free;
    if !ready || !team.stamped(&look, K::Request::EXPRESS_ATOMS, stamp(head)) {
        return First::NONE;
    }
    if team.is_leader() {
        team.shared().refused.store(0, Relaxed);
    }
    // SAFETY: the lane's block, as the caller promised; nobody else uses the windows yet.
    let (bell, credit) = unsafe { (&(*block).response_bell, &(*block).request_credit) };
    // SAFETY: as above; the payload is that of the boot's configuration.
    let (began, ended) =
        unsafe { line_to_line::<K>(team, resume::payload(team), &look, head, 0, bell) };
    let mut first = First::NONE;
    if team.is_leader() {
        // SYNC: releases our read of the line to `Producer::refresh`; it went into the answer.
        team.publish_read(&credit.consumed, head + 1);
        boot.set(boot::REQUEST_CREDIT, 0, head + 1);
        boot.set(boot::STATUS, offset_of!(StatusLine, last_express), head);
        let refused = team.shared().refused.load(Relaxed);
        let (took, waited) = (ended.wrapping_sub(began), began.wrapping_sub(ticks));
        first = First { answered: true, took, waited, refused };
    }
    First { answered: team.agreed(first.answered), ..first }
}

/// Answers express request `head` in `look` by the calling warp, from the line into the line; ticks
/// before and after the handler, for the warp's leader.
///
/// # Safety
/// The calling warp is polling warp `poller`, and the only one to answer that request.
#[inline(always)]
pub(super) unsafe fn line_to_line<K: Kernel>(
    team: &Team<'_>,
    payload: Payload<'_>,
    look: &Look,
    head: u64,
    poller: u32,
    bell: &Doorbell,
) -> (u64, u64) {
    // Behind what `stage` uses, so that no two warps share a byte.
    let (memory, at) = (team.memory(), (1 + poller as usize) * WARP_BYTES);
    let input = memory.input.bytes().wrapping_add(at);
    let output = memory.output.bytes().wrapping_add(at);
    if K::USES_PAYLOAD {
        team.fence();
    }
    let (mut began, mut ended) = (0, 0);
    // SAFETY: this warp's own part of the windows, 128 bytes each, 16-byte aligned: room for
    // an express request and response. One thread handles; the warp waits before and after.
    unsafe {
        team.stage(look, K::Request::EXPRESS_ATOMS, input);
        if team.is_leader() {
            began = team.ticks();
            <K::Scope as Scope<K>>::alone(team, payload, input, output);
            ended = team.ticks();
        }
    }
    team.warp_sync();
    if K::USES_PAYLOAD {
        team.fence();
    }
    let index = head as u32;
    let tail = index.wrapping_add(1);
    let control = Control { credit: tail, express: index, tail };
    // SAFETY: 84 of this warp's 128 bytes.
    unsafe { team.ring(bell, output, stamp(head), control) };
    (began, ended)
}
