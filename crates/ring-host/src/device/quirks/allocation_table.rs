//! What memory was taken from a device, and where kernels have their lines in it.

use crate::device::Mapped;
use ring_shared::atomics::Atom;
use ring_shared::layout::{ChannelBlock, ControlBlock, Doorbell, RingDescriptor};
use ring_shared::ring::{MAX_CAPACITY, MAX_LINES, MAX_SPAN};
use ring_shared::{ABI_VERSION, MAGIC};
use std::sync::atomic::Ordering::Relaxed;

/// A block of memory.
#[derive(Clone, Copy, Debug)]
struct Block {
    /// Where the device sees it.
    device: u64,
    /// Where the host sees it, if it does.
    mapped: Option<Mapped>,
    is_pinned: bool,
}

/// A kernel. One with state is entered only on an idle device: elsewhere a test that writes into its status
/// could make the host take it for inactive, and copy its state while its handler uses it.
///
/// Its memory is initialised, is used as atomics only, and stays as it is laid out for as long as the entry is
/// in the allocation table. The entry is taken out before the memory is used for something else: when the
/// kernel's launch slot is found to be over or is dropped, and when the block is about to be given back.
#[derive(Debug)]
pub(super) struct Entry {
    /// Whose it is.
    id: u64,
    /// Control block and channels.
    pub control: Mapped,
    /// For each channel, the ring of requests and that of responses.
    pub rings: Box<[[RingParts; 2]]>,
}

/// What a ring's producer writes.
#[derive(Clone, Copy, Debug)]
pub(super) struct RingParts {
    pub lines: Mapped,
    pub slots: Mapped,
}

/// What memory was taken, and where kernels have their lines in it.
#[derive(Debug, Default)]
pub(super) struct AllocationTable {
    blocks: Vec<Block>,
    entries: Vec<Entry>,
}

impl AllocationTable {
    /// Notes pinned memory that was allocated.
    pub fn note_pinned(&mut self, memory: Mapped) {
        self.blocks.push(Block { device: memory.device, mapped: Some(memory), is_pinned: true });
    }

    /// Notes device memory that was allocated, and where the host sees it, if it does.
    pub fn note_device(&mut self, device: u64, mapped: Option<Mapped>) {
        self.blocks.push(Block { device, mapped, is_pinned: false });
    }

    /// Forgets a block, which is about to be given back, and what lies in it.
    pub fn forget(&mut self, device: u64, is_pinned: bool) {
        let is_it = |block: &Block| (block.device, block.is_pinned) == (device, is_pinned);
        let Some(at) = self.blocks.iter().position(is_it) else { return };
        if let Some(block) = self.blocks.swap_remove(at).mapped {
            self.entries.retain(|entry| part(&block, entry.control.device, 1).is_none());
        }
    }

    /// Blocks that are taken.
    pub fn blocks(&self) -> usize {
        self.blocks.len()
    }

    /// Whether a device address is in pinned memory.
    pub fn is_pinned(&self, device: u64) -> bool {
        let mut pinned = self.blocks.iter().filter(|block| block.is_pinned);
        pinned.any(|block| block.mapped.is_some_and(|block| part(&block, device, 1).is_some()))
    }

    /// Kernels, the oldest first.
    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter()
    }

    /// Enters the kernel with that parameter, if its memory is known and laid out. Its place must see
    /// to it that it is [removed](Self::remove).
    pub fn enter(&mut self, id: u64, (parameter, channels): (u64, u32), idle: bool) {
        let known = self.entries.iter().any(|entry| entry.id == id);
        let find = |block: &Block| find(&block.mapped?, (parameter, channels), idle);
        if !known && let Some((control, rings)) = self.blocks.iter().find_map(find) {
            self.entries.push(Entry { id, control, rings });
        }
    }

    /// Takes a kernel out.
    pub fn remove(&mut self, id: u64) {
        self.entries.retain(|entry| entry.id != id);
    }
}

/// The part of a block at a device address, if all of it is inside.
fn part(block: &Mapped, device: u64, bytes: usize) -> Option<Mapped> {
    let at = usize::try_from(device.checked_sub(block.device)?).ok()?;
    let inside = at.checked_add(bytes).is_some_and(|end| end <= block.all());
    inside.then(|| {
        // SAFETY: inside the block.
        let host = unsafe { block.host.add(at) };
        Mapped { host, device, bytes, quick: 0, ..*block }
    })
}

/// Control block and rings of the kernel with that parameter, if it is in that block, and has no
/// state or is idle.
fn find(
    block: &Mapped,
    (parameter, channels): (u64, u32),
    idle: bool,
) -> Option<(Mapped, Box<[[RingParts; 2]]>)> {
    let bytes = (channels as usize).checked_mul(size_of::<ChannelBlock>())?;
    let control = part(block, parameter, bytes.checked_add(size_of::<ControlBlock>())?)?;
    let at = control.host.cast::<ControlBlock>();
    if !at.is_aligned() {
        return None;
    }
    // SAFETY: inside a block that was zeroed and is the kernel's, which has it as atomics; aligned.
    let head = unsafe { at.as_ref() };
    let ours = head.host.magic.load(Relaxed) == MAGIC
        && head.host.abi_version.load(Relaxed) == ABI_VERSION
        && head.host.channels.load(Relaxed) == channels;
    if !ours {
        return None;
    }
    let channel = |channel: usize| {
        // SAFETY: as above: the channels' blocks are right behind it.
        let channel = unsafe { at.add(1).cast::<ChannelBlock>().add(channel).as_ref() };
        let safe = idle || channel.state_bytes.load(Relaxed) == 0;
        safe.then_some(())?;
        Some([ring(block, &channel.request)?, ring(block, &channel.response)?])
    };
    Some((control, (0..channels as usize).map(channel).collect::<Option<_>>()?))
}

/// The ring that a descriptor names, if its lines and slots are in that block.
fn ring(block: &Mapped, ring: &RingDescriptor) -> Option<RingParts> {
    let (capacity, each) = (ring.capacity.load(Relaxed), ring.slot_bytes.load(Relaxed));
    let (line_count, span) = (ring.line_count.load(Relaxed), ring.span.load(Relaxed));
    let sound = capacity <= MAX_CAPACITY
        && each.is_multiple_of(16)
        && line_count <= MAX_LINES
        && span <= MAX_SPAN;
    let bytes = (capacity as usize).checked_mul(each as usize)?;
    let slots = part(block, ring.slots.load(Relaxed), bytes)?;
    let lines = (line_count as usize).checked_mul(span as usize)?;
    let bytes = lines.checked_mul(size_of::<Doorbell>())?;
    let lines = part(block, ring.lines.load(Relaxed), bytes)?;
    let aligned =
        slots.host.cast::<Atom>().is_aligned() && lines.host.cast::<Doorbell>().is_aligned();
    (sound && aligned).then_some(RingParts { lines, slots })
}
