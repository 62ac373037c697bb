//! A kernel's shared memory, what the host wrote into it, and what must be true of it after a launch.

use super::field::{Edit, Field, OF_CHANNEL, OF_DEVICE, OF_KERNEL};
use crate::Lie;
use crate::lie::Start;
use crate::parts::Memory;
use core::mem::offset_of;
use libfuzzer_sys::arbitrary::{self, Arbitrary};
use ring_device::Kernel;
use ring_device::kernel::Scope;
use ring_shared::layout::{
    ChannelBlock, Command, ConfigLine, ControlBlock, HostLine, Processing, RingDescriptor, State,
    UNLIMITED,
};
use ring_shared::ring::{CONTROL, Control, MAX_CAPACITY};
use ring_shared::{ABI_VERSION, MAGIC, Message};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// How large everything is.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub struct Shape {
    pub(super) channels: u8,
    pub(super) channel: u8,
    pub(super) log2: u8,
    pub(super) payload: u8,
    pub(super) start: Start,
    pub(super) head: Option<Lie>,
}

impl Shape {
    /// Channel blocks that there are.
    fn channels(self) -> u32 {
        1 + u32::from(self.channels % 3)
    }

    /// The team's channel: one of the kernel's, or the first that is none.
    pub fn team(self) -> u32 {
        u32::from(self.channel) % (self.channels() + 1)
    }

    /// Slots of each ring: fewer of large ones, so that a run is short.
    fn capacity(self, slot_atoms: usize) -> u32 {
        let most = (MOST_BYTES / 16 / slot_atoms).max(1).ilog2();
        1 << u32::from(self.log2 % 7).min(most)
    }
}

/// Most bytes of a ring's slots.
const MOST_BYTES: usize = 16 * 1024;

/// A kernel's memory. Each part is an allocation of its own, of just its size.
#[derive(Debug)]
pub struct Host {
    /// How large everything is.
    pub shape: Shape,
    pub(super) blocks: Memory,
    pub(super) requests: Memory,
    responses: Memory,
    payload: Memory,
    payload_bytes: u64,
    state: Memory,
    state_bytes: u64,
    request_atoms: usize,
    capacity: u32,
    /// What the host wrote last into each word of `blocks`; for others what they were at the launch.
    pub(super) written: Vec<u64>,
    /// The same of `requests`.
    pub(super) sent: Vec<u64>,
}

impl Host {
    /// Memory as the host lays it out before the first launch of an active kernel.
    pub fn new<K: Kernel>(shape: Shape) -> Host {
        let channels = shape.channels() as usize;
        let blocks = size_of::<ControlBlock>() + channels * size_of::<ChannelBlock>();
        let (request_atoms, response_atoms) = (K::Request::SLOT_ATOMS, K::Response::SLOT_ATOMS);
        let slots = shape.capacity(request_atoms.max(response_atoms)) as usize;
        let (state_bytes, payload_bytes) =
            (<K::Scope as Scope<K>>::STATE_BYTES, 4 * usize::from(shape.payload));
        let mut host = Host {
            shape,
            blocks: Memory::new(blocks, 128),
            requests: Memory::new(16 * request_atoms * slots, 16),
            responses: Memory::new(16 * response_atoms * slots, 16),
            payload: Memory::new(payload_bytes, 128),
            payload_bytes: payload_bytes as u64,
            state: Memory::new(state_bytes, 128),
            state_bytes: state_bytes as u64,
            request_atoms,
            capacity: slots as u32,
            written: vec![0; blocks / 8],
            sent: vec![0; 2 * request_atoms * slots],
        };
        host.lay_out(16 * request_atoms as u32, 16 * response_atoms as u32);
        host.keep_promises();
        host
    }

    fn lay_out(&mut self, request_bytes: u32, response_bytes: u32) {
        let (channels, start) = (self.shape.channels(), self.shape.start.index());
        // As far as launches before are said to have come.
        let head = self.shape.head.map_or(start, |lie| lie.told(start));
        // SAFETY: zeroed atomics, and nobody else looks at them now.
        let control = unsafe { self.blocks.at::<ControlBlock>().as_ref() };
        let (host, config) = (&control.host, &control.config);
        host.magic.store(MAGIC, Relaxed);
        host.abi_version.store(ABI_VERSION, Relaxed);
        host.channels.store(channels, Relaxed);
        let active = Command { epoch: 1, state: State::Active as u32 };
        host.command.store(active.to_word(), Relaxed);
        config.payload.store(self.payload.address(), Relaxed);
        config.payload_bytes.store(self.payload_bytes, Relaxed);
        config.processing.store(Processing::Batch as u32, Relaxed);
        config.max_messages.store(u32::MAX, Relaxed);
        for budget in [&config.time, &config.iterations, &config.idle, &config.lease] {
            budget.store(UNLIMITED, Relaxed);
        }
        for channel in 0..channels {
            let block = self.channel(channel);
            let describe = |ring: &RingDescriptor, slots: &Memory, bytes: u32| {
                ring.slots.store(slots.address(), Relaxed);
                ring.start.store(start, Relaxed);
                ring.capacity.store(self.capacity, Relaxed);
                ring.slot_bytes.store(bytes, Relaxed);
            };
            describe(&block.request, &self.requests, request_bytes);
            describe(&block.response, &self.responses, response_bytes);
            block.state.store(self.state.address(), Relaxed);
            block.state_bytes.store(self.state_bytes, Relaxed);
            block.status.last_inline.store(head.wrapping_sub(1), Relaxed);
            block.status.scrubbed.store(head, Relaxed);
            let index = head as u32;
            let control = Control { credit: index, inline: index, tail: index };
            for bell in [&block.request_bell, &block.response_bell] {
                bell.atoms[..CONTROL].iter().for_each(|atom| atom.store([0, head << 32]));
                bell.atoms[CONTROL].store(control.to_words());
            }
            block.request_credit.consumed.store(head, Relaxed);
            block.response_credit.consumed.store(head, Relaxed);
        }
        self.written = Self::plain(self.words()).to_vec();
    }

    /// What a launch is told.
    pub fn control(&self) -> *const ControlBlock {
        self.blocks.at().as_ptr()
    }

    /// The block of a channel that there is.
    pub fn channel(&self, channel: u32) -> &ChannelBlock {
        assert!(channel < self.shape.channels());
        // SAFETY: the blocks lie right behind the control block, all atomics and padding.
        unsafe {
            self.blocks
                .at::<ControlBlock>()
                .add(1)
                .cast::<ChannelBlock>()
                .add(channel as usize)
                .as_ref()
        }
    }

    /// The team's channel, or the first where it has none.
    pub fn own(&self) -> &ChannelBlock {
        self.channel(if self.shape.team() < self.shape.channels() { self.shape.team() } else { 0 })
    }

    pub(super) fn words(&self) -> &[AtomicU64] {
        // SAFETY: so many words, all of them atomics.
        unsafe { std::slice::from_raw_parts(self.blocks.at().as_ptr(), self.written.len()) }
    }

    /// All of it as plain words, while nobody writes.
    pub(super) fn plain(words: &[AtomicU64]) -> &[u64] {
        // SAFETY: the same words; only this thread uses the memory, and not during the borrow.
        unsafe { std::slice::from_raw_parts(words.as_ptr().cast(), words.len()) }
    }

    pub(super) fn request_words(&self) -> &[AtomicU64] {
        // SAFETY: so many words, all of them halves of atoms.
        unsafe { std::slice::from_raw_parts(self.requests.at().as_ptr(), self.sent.len()) }
    }

    /// The slots of responses.
    #[cfg(test)]
    pub fn answers<T: Message>(&self) -> Vec<T> {
        let slot = |k| 16 * T::SLOT_ATOMS * k as usize;
        let slots = (0..self.capacity).map(slot);
        // SAFETY: that many slots of a response each, plain bytes, at multiples of 16.
        slots.map(|at| unsafe { self.responses.at::<u8>().add(at).cast().read() }).collect()
    }

    /// Bytes of the payload arena.
    pub fn payload_bytes(&self) -> u64 {
        self.payload_bytes
    }

    /// Writes a word at so many bytes from the control block on.
    pub fn write(&mut self, offset: usize, word: u64) {
        self.words()[offset / 8].store(word, Relaxed);
        self.written[offset / 8] = word;
    }

    /// Offset of the team's channel's block, or of the first where it has none.
    pub fn own_offset(&self) -> usize {
        std::ptr::from_ref(self.own()).addr() - self.control().addr()
    }

    /// Writes request `index` into its slot: `first` is its first atom.
    pub fn send(&mut self, index: u64, first: [u64; 2]) {
        let slot = index as usize & (self.capacity as usize - 1);
        let (at, last) = (2 * self.request_atoms * slot, 2 * self.request_atoms - 1);
        for (k, word) in [(0, first[0]), (1, first[1]), (last, index)] {
            if k == 0 || k == 1 || last > 1 {
                self.request_words()[at + k].store(word, Relaxed);
                self.sent[at + k] = word;
            }
        }
    }

    /// Makes an edit. While a launch runs the words that only its channel writes stay the channel's.
    pub fn edit(&mut self, edit: &Edit, before: bool) {
        match *edit {
            Edit::Lie(field, part, lie) => {
                let offset = self.offset(field);
                let in_own = offset
                    .checked_sub(self.own_offset())
                    .filter(|at| *at < size_of::<ChannelBlock>());
                if before || in_own.is_none_or(|at| !OF_DEVICE.contains(&(at / 8))) {
                    self.amend(offset, |honest| part.told(lie, honest));
                }
            }
            Edit::Null(which) => {
                let block = self.own_offset();
                let config = offset_of!(ControlBlock, config);
                match which % 4 {
                    0 => self.write(config, 0),
                    1 => self.write(block + offset_of!(ChannelBlock, request), 0),
                    2 => self.write(block + offset_of!(ChannelBlock, response), 0),
                    _ => self.write(block + offset_of!(ChannelBlock, state), 0),
                }
            }
        }
        self.keep_promises();
    }

    fn offset(&self, field: Field) -> usize {
        let channel = |channel: u32, k: u8| {
            let block = std::ptr::from_ref(self.channel(channel)).addr() - self.control().addr();
            block + OF_CHANNEL[usize::from(k) % OF_CHANNEL.len()]
        };
        match field {
            Field::Kernel(k) => OF_KERNEL[usize::from(k) % OF_KERNEL.len()],
            Field::Channel(k) => self.own_offset() + channel(0, k) - size_of::<ControlBlock>(),
            Field::Other(other, k) => channel(u32::from(other) % self.shape.channels(), k),
        }
    }

    /// What `run` is promised: memory is as large as is said. A capacity that a ring cannot have says
    /// nothing of memory, nor does a size where there is no address.
    fn keep_promises(&mut self) {
        const CONFIG: usize = offset_of!(ControlBlock, config);
        let (channels, slots) = (self.shape.channels(), self.capacity);
        let join = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
        let few_channels = |word: u64| join(word as u32, ((word >> 32) as u32).min(channels));
        self.amend(offset_of!(HostLine, abi_version), few_channels);
        let payload = self.word(CONFIG + offset_of!(ConfigLine, payload));
        let there = if payload == 0 { 0 } else { self.payload_bytes };
        self.amend(CONFIG + offset_of!(ConfigLine, payload_bytes), |bytes| bytes.min(there));
        for channel in 0..channels as usize {
            let block = size_of::<ControlBlock>() + channel * size_of::<ChannelBlock>();
            for ring in [offset_of!(ChannelBlock, request), offset_of!(ChannelBlock, response)] {
                self.amend(block + ring + offset_of!(RingDescriptor, capacity), |word| {
                    let said = word as u32;
                    let can_be = said.is_power_of_two() && said <= MAX_CAPACITY;
                    join(if can_be { said.min(slots) } else { said }, (word >> 32) as u32)
                });
            }
            if self.word(block + offset_of!(ChannelBlock, state)) == 0 {
                self.amend(block + offset_of!(ChannelBlock, state_bytes), |_| 0);
            }
        }
    }

    fn word(&self, offset: usize) -> u64 {
        self.words()[offset / 8].load(Relaxed)
    }

    fn amend(&mut self, offset: usize, amended: impl FnOnce(u64) -> u64) {
        let word = self.word(offset);
        let amended = amended(word);
        if amended != word {
            self.write(offset, amended);
        }
    }
}
