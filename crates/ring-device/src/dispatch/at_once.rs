//! The first answer of a launch. A host that launches a kernel for one message waits for all that
//! comes before the answer, so if the message is there already and one warp can answer it, that warp
//! does, before the channel is made ready for more.

use super::resume::{self, EPOCH};
use crate::context::Payload;
use crate::kernel::{Kernel, Scope};
use crate::team::{Look, POOL_BYTES, Team, boot};
use core::mem::offset_of;
use core::sync::atomic::Ordering::Relaxed;
use ring_shared::Message;
use ring_shared::layout::{ChannelBlock, Command, State, StatusLine};
use ring_shared::ring::{Control, stamp};

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
/// message is whole, and its answer may go inline. The boot's words are then as if the launch
/// before had answered it. All threads call it; only those of warp 0 do something.
///
/// # Safety
/// As for [`run`](super::run): `block` is the channel's block if the boot shows a kernel of our kind.
#[inline(always)]
pub(super) unsafe fn answer<K: Kernel>(
    team: Team<'_>,
    block: *const ChannelBlock,
    ticks: u64,
) -> First {
    let alone = <K::Scope as Scope<K>>::ALONE && K::Request::FITS_INLINE;
    if !(alone && K::Response::FITS_INLINE) || team.poller() != Some(0) {
        return First::NONE;
    }
    team.warp_sync(); // the boot's words are there
    if team.is_leader() {
        let epoch = team.memory().boot.half(boot::STATUS, EPOCH);
        team.shared().obeyed.store(u64::from(epoch) << 32, Relaxed); // should the handler panic
    }
    let (boot, look) = (&team.memory().boot, team.first_look());
    let (command, head) = (boot.word(boot::COMMAND, 0), boot.word(boot::REQUEST_CREDIT, 0));
    let (requests, responses) = resume::ends::<K>(boot);
    let ours = resume::is_ours(team)
        && !resume::is_lost(team)
        && requests.fits()
        && responses.fits()
        && resume::has_own_lines(requests, responses, block);
    let known = command >> 32 == u64::from(boot.half(boot::STATUS, EPOCH));
    let active = known && Command::from_word(command).state == State::Active as u32;
    let next = team.is_next(look, head, K::Request::INLINE_ATOMS, None);
    if !(ours && active && next) {
        return First::NONE;
    }
    if team.is_leader() {
        team.shared().refused.store(0, Relaxed);
    }
    // SAFETY: this is warp 0, and nobody else uses the pool yet.
    unsafe { take::<K>(team, look, 0) };
    // SAFETY: the channel's block, as the caller promised; nobody else uses the windows yet.
    let credit = unsafe { &(*block).request_credit };
    // SAFETY: as above; the payload is that of the boot's configuration.
    let (began, ended) = unsafe { line_to_line::<K>(team, resume::payload(team), head, 0) };
    let mut first = First::NONE;
    if team.is_leader() {
        let next = head.wrapping_add(1); // not checked yet: it may be any number
        // SYNC: releases our read of the line to `Outbox::refresh`; it went into the answer.
        team.publish_read(&credit.consumed, next);
        boot.set(boot::REQUEST_CREDIT, 0, next);
        boot.set(boot::STATUS, offset_of!(StatusLine, run_start), next);
        let refused = team.shared().refused.load(Relaxed);
        let (took, waited) = (ended.wrapping_sub(began), began.wrapping_sub(ticks));
        first = First { answered: true, took, waited, refused };
    }
    First { answered: team.agreed(first.answered), ..first }
}

/// Where polling warp `poller` handles messages by itself: a half of the pool, which holds the largest
/// request and the largest response.
#[inline(always)]
fn place(team: Team<'_>, poller: u32) -> *mut u8 {
    team.memory().pool.bytes(if poller == 0 { 0 } else { POOL_BYTES / 2 })
}

/// Takes the inline message of a look into polling warp `poller`'s place.
///
/// # Safety
/// The calling warp is that polling warp, and the team waits.
#[inline(always)]
pub(super) unsafe fn take<K: Kernel>(team: Team<'_>, look: Look, poller: u32) {
    // SAFETY: this warp's own half of the pool while the team waits.
    unsafe { team.stage(look, K::Request::INLINE_ATOMS, place(team, poller)) }
}

/// Handles the message that was [taken](take): where its response is, and ticks before and after the
/// handler, for the warp's leader.
///
/// # Safety
/// The calling warp is polling warp `poller`, the only one to answer that request, and the team waits.
#[inline(always)]
pub(super) unsafe fn handle<K: Kernel>(
    team: Team<'_>,
    payload: Payload<'_>,
    poller: u32,
) -> (*const u8, u64, u64) {
    let stage = place(team, poller);
    if K::USES_PAYLOAD {
        team.fence();
    }
    let began = team.ticks();
    // SAFETY: this warp's own half of the pool while the team waits; it synchronises before and
    // after.
    unsafe { <K::Scope as Scope<K>>::warp(team, payload, stage, 1) };
    let ended = team.ticks();
    team.survive();
    team.warp_sync();
    if K::USES_PAYLOAD {
        team.fence();
    }
    (stage.wrapping_add(16 * <K::Scope as Scope<K>>::ANSWER), began, ended)
}

/// Answers request `head`, which was [taken](take), into the line; ticks before and after the handler,
/// for the warp's leader.
///
/// # Safety
/// As for [`handle`].
#[inline(always)]
pub(super) unsafe fn line_to_line<K: Kernel>(
    team: Team<'_>,
    payload: Payload<'_>,
    head: u64,
    poller: u32,
) -> (u64, u64) {
    // SAFETY: the caller's promise.
    let (response, began, ended) = unsafe { handle::<K>(team, payload, poller) };
    let tail = head.wrapping_add(1);
    let control = Control::behind_inline(tail, tail);
    // Read behind the handler, not held in registers while it runs.
    let bell = resume::ends::<K>(&team.memory().boot).1.bell();
    // SAFETY: 84 bytes of this warp's half of the pool.
    unsafe { team.ring(bell, response, stamp(head), control) };
    (began, ended)
}
