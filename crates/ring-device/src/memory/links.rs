//! The ends of rings that the block of a kernel with ports has, in its scratch memory.

use crate::emissions::PortShape;
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
    /// The lane that has an output.
    #[inline(always)]
    pub const fn of_output(output: u32) -> u32 {
        16 + output
    }

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
    pub most: Most,
    /// The low half of the index behind the last message that is to be sent. Of the first warp, too.
    pub ends: u32,
    /// Likewise.
    pub stalls: Stalls,
    pad: [u64; 2],
}

// Lanes of a warp access the same field of ends side by side. Block-shared memory has 32 banks of 4 bytes: four lanes share one where
// ends are an odd number of 16 bytes apart, and more where they are not. With 192 bytes, by which 16 share one, messages went by key to 64
// channels at seven eighths of the rate on an H200.
const _: () = assert!(size_of::<Output>() % 32 == 16 && size_of::<Input>() % 32 == 16);

/// How often a channel waited for room in an output.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stalls {
    pub count: u64,
    /// Index of the ring's next message when it did last.
    at: u64,
}

impl Stalls {
    const NONE: Stalls = Stalls { count: 0, at: u64::MAX };

    /// Finds that there is no room for message `next`: counts that, if it was not found before.
    #[inline(always)]
    pub fn note(&mut self, next: u64) {
        if self.at != next {
            *self = Stalls { count: self.count + 1, at: next };
        }
    }
}

/// A number of messages, 1 to 255, by which others are divided without a division, which takes a GPU long.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Most {
    most: u32,
    /// 2^31 divided by it, rounded up.
    share: u32,
}

impl Most {
    /// Of such a number; of another, 1 or 255.
    pub fn new(most: u32) -> Most {
        let most = most.clamp(1, 255);
        Most { most, share: (1u32 << 31).div_ceil(most) }
    }

    #[inline(always)]
    pub fn get(self) -> u32 {
        self.most
    }

    /// How often it is in `n`, or in 2^23 - 1 if that is less.
    ///
    /// The share is too large by less than one, and so the quotient by less than `n / 2^31`, which is less than `1 / 255`: not enough
    /// to reach the next whole number.
    #[inline(always)]
    pub fn of(self, n: u32) -> u32 {
        let n = n.min((1 << 23) - 1);
        ((u64::from(n) * u64::from(self.share)) >> 31) as u32
    }
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
    if far.is_on_device() {
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
    let most = Most::new(port.most);
    let (sink, stalls) = (Outbox::new(ring), Stalls::NONE);
    // SAFETY: the caller's room.
    unsafe { at.write(Output { sink, ring, far, most, ends: 0, stalls, pad: [0; 2] }) };
    Some(far)
}

#[cfg(test)]
mod tests {
    use super::{Most, Stalls};

    #[test]
    fn a_wait_for_room_counts_once() {
        let mut stalls = Stalls::NONE;
        let counts = [0, 0, 7, 7, 8].map(|next| {
            stalls.note(next);
            stalls.count
        });
        assert_eq!(counts, [1, 1, 2, 2, 3]);
    }

    #[test]
    fn a_share_is_what_a_division_says() {
        for most in 1..=255 {
            let by = Most::new(most);
            let all = (1 << 23) / most;
            let multiples = (0..all).step_by(all as usize / 16 - 1).chain([all - 1]);
            for n in multiples.flat_map(|k| [k * most, k * most + most - 1]) {
                assert_eq!((by.get(), by.of(n)), (most, n / most), "{n}");
            }
            assert_eq!(by.of(u32::MAX), ((1 << 23) - 1) / most);
        }
    }
}
