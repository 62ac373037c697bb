//! The ends of rings that the block of a kernel with ports has, in its scratch memory.

use crate::emissions::PortShape;
use core::num::NonZeroU32;
use core::ptr::{NonNull, with_exposed_provenance_mut};
use core::sync::atomic::Ordering::Relaxed;
use ring_shared::layout::{Far, Link};
use ring_shared::{Inbox, Outbox, Ring};

/// What a lane of the first warp looks at where there are few rings: lanes 0 to 7 at the atoms of the first input's line, lanes
/// 8 to 15 at those of the second's, and each of the others at the credit line of an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lane {
    /// An atom of an input's line.
    Input { input: u32, atom: u32 },
    /// An output's credit.
    Output(u32),
}

/// Most inputs and outputs that one look shows.
pub(crate) const NARROW: (u32, u32) = (2, 16);

impl Lane {
    #[inline(always)]
    pub const fn of(lane: u32) -> Lane {
        if lane < 16 {
            Lane::Input { input: lane / 8, atom: lane % 8 }
        } else {
            Lane::Output(lane - 16)
        }
    }

    /// The lane that has the control atom of an input.
    #[inline(always)]
    pub const fn of_control(input: u32) -> u32 {
        8 * input + 7
    }
}

/// An output. Only the first warp touches its end; the workers of a stream need its ring.
#[repr(C, align(16))]
#[derive(Debug)]
pub(crate) struct Output {
    /// By system scope, whoever has the other end: single accesses take as long as those of GPU scope. Slots do not: on an H200 a
    /// warp's accesses of system scope take 2 to 7 times as long.
    pub sink: Outbox,
    pub ring: Ring,
    pub far: Far,
    /// Most messages that one request emits to it.
    pub most: NonZeroU32,
}

/// An input, likewise.
#[repr(C, align(16))]
#[derive(Debug)]
pub(crate) struct Input {
    pub source: Inbox,
    /// Messages, from the next one on, that steps under way have taken. Of the first warp, too.
    pub ahead: u32,
    pub ring: Ring,
    pub far: Far,
}

/// Where the ring of a link is; `None` if there can be no such ring.
///
/// # Safety
/// What the link names is there and stays, as large as it says.
unsafe fn ring_of(link: &Link, atoms: usize) -> Option<Ring> {
    let ring = &link.ring;
    let at = |address: u64| NonNull::new(with_exposed_provenance_mut::<u8>(address as usize));
    let parts = (
        at(ring.lines.load(Relaxed))?.cast(),
        at(ring.credit.load(Relaxed))?.cast(),
        at(ring.slots.load(Relaxed))?.cast(),
    );
    let lines = (ring.line_count.load(Relaxed), ring.span.load(Relaxed));
    let fits = ring.slot_bytes.load(Relaxed) as usize == 16 * atoms;
    let slots = (ring.capacity.load(Relaxed), atoms as u32);
    // SAFETY: the caller's promise.
    let ring = unsafe { Ring::from_raw(parts, lines, slots, ring.start.load(Relaxed)) };
    ring.filter(|ring| fits && ring.line_count() == 1)
}

/// One thread: makes an input's end at `at`, and says who has the other; `None` if its ring cannot be. The ring of another
/// channel is made ready: its producer begins when the host has seen that this channel takes messages.
///
/// # Safety
/// `at` has aligned room for it, of the calling thread. What the link names is there and stays, as large as it says.
pub(crate) unsafe fn begin_input(at: *mut Input, link: &Link, atoms: usize) -> Option<Far> {
    // SAFETY: the caller's promise.
    let ring = unsafe { ring_of(link, atoms) }?;
    let far = Far::from_u32(link.far.load(Relaxed));
    if far == Far::Channel {
        ring.reset();
    }
    // SAFETY: the caller's room.
    unsafe { at.write(Input { source: Inbox::new(ring), ahead: 0, ring, far }) };
    Some(far)
}

/// One thread: makes the end of an output of `port` at `at`, likewise.
///
/// # Safety
/// As for [`begin_input`].
pub(crate) unsafe fn begin_output(at: *mut Output, link: &Link, port: &PortShape) -> Option<Far> {
    // SAFETY: the caller's promise.
    let ring = unsafe { ring_of(link, port.atoms) }?;
    let far = Far::from_u32(link.far.load(Relaxed));
    let most = NonZeroU32::new(port.most).unwrap_or(NonZeroU32::MIN); // it is one at least
    // SAFETY: the caller's room.
    unsafe { at.write(Output { sink: Outbox::new(ring), ring, far, most }) };
    Some(far)
}
