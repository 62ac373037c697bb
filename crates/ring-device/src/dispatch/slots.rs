//! A channel's rings as the launch found them: the descriptors, once [checked](super::resume), are read
//! in the team's memory each time, for registers are dearer.

use super::Channel;
use crate::kernel::Kernel;
use crate::team::boot;
use core::mem::offset_of;
use ring_shared::Message;
use ring_shared::atomics::Atom;
use ring_shared::layout::{ChannelBlock, RingDescriptor};

/// The slots of one ring.
#[derive(Clone, Copy)]
pub(super) struct Slots<'a> {
    boot: &'a boot::Words,
    /// Offset of the descriptor in the channel's block.
    at: usize,
    /// Atoms of a slot.
    atoms: usize,
}

impl<'a> Slots<'a> {
    /// Number of slots, a power of two.
    #[inline(always)]
    pub fn capacity(&self) -> u32 {
        self.boot.half(boot::RINGS, self.at + offset_of!(RingDescriptor, capacity))
    }

    /// Atoms from the slot of message `index` to the ring's end.
    #[inline(always)]
    pub fn from(&self, index: u64) -> &'a [Atom] {
        let capacity = self.capacity() as usize;
        let skipped = (index as usize & (capacity - 1)) * self.atoms;
        let base = self.boot.word(boot::RINGS, self.at + offset_of!(RingDescriptor, slots));
        let base = (base as usize as *const Atom).wrapping_add(skipped);
        // SAFETY: `run`'s caller promised `capacity` slots of that many atoms there, and `skipped`
        // is less, since the mask keeps the slot below `capacity`.
        unsafe { core::slice::from_raw_parts(base, capacity * self.atoms - skipped) }
    }

    /// Atom `t` of the run of slots that begins with message `index`; `t` counts on over slots, comes
    /// round at the ring's end, and must be less than all atoms of the ring.
    #[inline(always)]
    pub fn atom(&self, index: u64, t: u32) -> Option<&'a Atom> {
        let front = self.from(index);
        front.get(t as usize).or_else(|| self.from(0).get(t as usize - front.len()))
    }
}

impl<K: Kernel> Channel<'_, K> {
    /// The slots of requests.
    #[inline(always)]
    pub(super) fn requests(&self) -> Slots<'_> {
        let (boot, at) = (&self.team.memory().boot, offset_of!(ChannelBlock, request));
        Slots { boot, at, atoms: K::Request::SLOT_ATOMS }
    }

    /// The slots of responses.
    #[inline(always)]
    pub(super) fn responses(&self) -> Slots<'_> {
        let (boot, at) = (&self.team.memory().boot, offset_of!(ChannelBlock, response));
        Slots { boot, at, atoms: K::Response::SLOT_ATOMS }
    }
}
