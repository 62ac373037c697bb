//! A kernel's shared memory, what the host wrote into it, and what must be true of it after a launch.

use super::buffers::{Buffers, Tables};
use super::field::{Edit, Field, OF_CHANNEL, OF_DEVICE, OF_KERNEL};
use crate::Lie;
use crate::lie::Start;
use crate::parts::Memory;
use core::mem::offset_of;
use libfuzzer_sys::arbitrary::{self, Arbitrary};
use ring_device::Kernel;
use ring_device::kernel::Scope;
use ring_shared::Message;
use ring_shared::layout::{
    Budgets, ChannelBlock, ChannelSetup, Command, ConfigLine, ControlBlock, Doorbell, HostLine,
    KernelSetup, Placement, Processing, State, UNLIMITED,
};
use ring_shared::message::span_of_pair;
use ring_shared::ring::{MAX_LINES, span_in};
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
    pub(super) lines: u8,
}

impl Shape {
    /// Channel blocks that there are.
    fn channels(self) -> u32 {
        1 + u32::from(self.channels % 3)
    }

    /// The block's channel: one of the kernel's, or the first that is none.
    pub fn block(self) -> u32 {
        u32::from(self.channel) % (self.channels() + 1)
    }

    /// Doorbell lines of each ring behind the blocks; none, if each has its line in the channel's block.
    fn lines_elsewhere(self) -> usize {
        match u32::from(self.lines) % (2 + MAX_LINES.ilog2()) {
            0 => 0,
            power => 1 << (power - 1),
        }
    }

    /// Slots of each ring: fewer of large ones, so that a run is short.
    fn capacity(self, slot_atoms: usize) -> u32 {
        let most = (MOST_BYTES / 16 / slot_atoms).max(1).ilog2();
        1 << u32::from(self.log2 % 7).min(most)
    }
}

/// Where the configuration names the table of buffers.
const TABLE: usize = offset_of!(ControlBlock, config) + offset_of!(ConfigLine, buffers);

/// Most bytes of a ring's slots.
const MOST_BYTES: usize = 16 * 1024;

/// A kernel's memory: what both sides see, payload and state, each an allocation of just its size. Response
/// slots are the last of what both sides see, so that nobody owns what lies behind them.
#[derive(Debug)]
pub struct Host {
    /// How large everything is.
    pub shape: Shape,
    pub(super) shared: Memory,
    /// Where the doorbell lines of requests and of responses begin, if they are not in the blocks.
    lines: [usize; 2],
    /// Doorbell lines of a message.
    span: usize,
    /// Where request slots and response slots begin.
    slots: [usize; 2],
    payload: Memory,
    payload_bytes: u64,
    state: Memory,
    state_bytes: u64,
    request_atoms: usize,
    capacity: u32,
    pub(super) buffers: Option<Buffers>,
    blocks: u32,
    /// What the host wrote last into each word of the blocks and of the request lines behind them; for others what they
    /// were at the launch.
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
        let elsewhere = shape.lines_elsewhere();
        let span = span_of_pair::<K::Request, K::Response>() as u32;
        let span = span_in(elsewhere.max(1) as u32, span) as usize;
        let lines = elsewhere * span * size_of::<Doorbell>();
        let requests = blocks + 2 * lines;
        let responses = requests + 16 * request_atoms * slots;
        let end = responses + 16 * response_atoms * slots;
        let mut host = Host {
            shape,
            shared: Memory::new(end, 128),
            lines: [blocks, blocks + lines],
            span,
            slots: [requests, responses],
            payload: Memory::new(payload_bytes, 128),
            payload_bytes: payload_bytes as u64,
            state: Memory::new(state_bytes, 128),
            state_bytes: state_bytes as u64,
            request_atoms,
            capacity: slots as u32,
            buffers: None,
            blocks: 1,
            written: vec![0; (blocks + lines) / 8],
            sent: vec![0; 2 * request_atoms * slots],
        };
        host.lay_out(end as u64, 16 * request_atoms as u32, 16 * response_atoms as u32);
        host.keep_promises();
        host
    }

    /// The same with buffers, which messages name.
    pub fn with_buffers(mut self, tables: Tables) -> Host {
        let buffers = Buffers::new(tables);
        self.write(TABLE, buffers.table());
        self.buffers = Some(buffers);
        self
    }

    /// The same for a launch of one block, or of two.
    pub fn on_blocks(self, blocks: u32) -> Host {
        assert!((1..=2).contains(&blocks));
        Host { blocks, ..self }
    }

    /// Blocks of a launch.
    pub fn blocks(&self) -> u32 {
        self.blocks
    }

    /// Lies about buffers: all that come next before a launch, or one while it runs.
    pub fn tell_lies(&mut self, before: bool) {
        while let Some(is_none) = self.buffers.as_mut().and_then(|buffers| buffers.lie(before)) {
            if is_none {
                self.write(TABLE, 0);
            }
            if !before {
                break;
            }
        }
    }

    fn lay_out(&mut self, memory_bytes: u64, request_bytes: u32, response_bytes: u32) {
        let (channels, start) = (self.shape.channels(), self.shape.start.index());
        // The index that launches before are made to have reached.
        let head = self.shape.head.map_or(start, |lie| lie.apply(start));
        // SAFETY: zeroed atomics, and nobody else looks at them now.
        let control = unsafe { self.shared.at::<ControlBlock>().as_ref() };
        control.initialise(&KernelSetup {
            channels,
            memory_bytes,
            payload: (self.payload.address(), self.payload_bytes),
            buffers: 0,
            budgets: Budgets::UNLIMITED,
            processing: Processing::Batch,
            max_messages: u32::MAX,
            lease: UNLIMITED,
            trace: 0,
        });
        control.host.give(Command { epoch: 1, state: State::Active as u32 });
        let [requests, responses] = self.slots.map(|at| self.shared.address() + at as u64);
        let [request_lines, response_lines] =
            self.lines.map(|at| self.shared.address() + at as u64);
        let elsewhere = self.shape.lines_elsewhere() as u32;
        let placed = |placement: Placement, lines| match elsewhere {
            0 => placement,
            n => placement.with_lines(lines, n, self.span as u32),
        };
        for channel in 0..channels {
            let block = self.channel(channel);
            let (at, capacity) = (std::ptr::from_ref(block).addr() as u64, self.capacity);
            let requests = Placement::of_requests(at, requests, capacity, request_bytes);
            let responses = Placement::of_responses(at, responses, capacity, response_bytes);
            block.initialise(&ChannelSetup {
                requests: placed(requests, request_lines).starting_at(start),
                responses: placed(responses, response_lines).starting_at(start),
                state: (self.state.address(), self.state_bytes),
                links: 0,
            });
            block.status.run_start.store(head, Relaxed);
            block.status.scrubbed.store(head, Relaxed);
            block.request_bell.reset(head);
            block.response_bell.reset(head);
            block.request_credit.reset(head);
            block.response_credit.reset(head);
        }
        for index in 0..2 * u64::from(elsewhere) * self.span as u64 {
            // SAFETY: the lines of both rings, one behind the other: zeroed atomics.
            let line = unsafe { self.shared.at::<u8>().add(self.lines[0]).cast::<Doorbell>() };
            // SAFETY: as above.
            unsafe { line.add(index as usize).as_ref() }.reset(head);
        }
        self.written = Self::plain(self.words()).to_vec();
    }

    /// Offset of the doorbell line of message `index`: 0 for requests, 1 for responses.
    pub fn line_offset(&self, which: usize, index: u64) -> usize {
        let bell =
            [offset_of!(ChannelBlock, request_bell), offset_of!(ChannelBlock, response_bell)];
        match self.shape.lines_elsewhere() {
            0 => self.own_offset() + bell[which],
            n => {
                let line = self.span * (index as usize & (n - 1));
                self.lines[which] + size_of::<Doorbell>() * line
            }
        }
    }

    /// The doorbell line of response `index`.
    pub(super) fn response_line(&self, index: u64) -> &Doorbell {
        // SAFETY: a line of the ring of responses: atomics.
        unsafe { self.shared.at::<u8>().add(self.line_offset(1, index)).cast().as_ref() }
    }

    /// What a launch is given.
    pub fn control(&self) -> *const ControlBlock {
        self.shared.at().as_ptr()
    }

    /// The block of a channel that there is.
    pub fn channel(&self, channel: u32) -> &ChannelBlock {
        assert!(channel < self.shape.channels());
        // SAFETY: the blocks lie right behind the control block, all atomics and padding.
        unsafe {
            self.shared
                .at::<ControlBlock>()
                .add(1)
                .cast::<ChannelBlock>()
                .add(channel as usize)
                .as_ref()
        }
    }

    /// The block's channel, or the first where it has none.
    pub fn own(&self) -> &ChannelBlock {
        self.channel(if self.shape.block() < self.shape.channels() {
            self.shape.block()
        } else {
            0
        })
    }

    pub(super) fn words(&self) -> &[AtomicU64] {
        // SAFETY: so many words, all of them atomics.
        unsafe { std::slice::from_raw_parts(self.shared.at().as_ptr(), self.written.len()) }
    }

    /// All of it as plain words, while nobody writes.
    pub(super) fn plain(words: &[AtomicU64]) -> &[u64] {
        // SAFETY: the same words; only this thread uses the memory, and not during the borrow.
        unsafe { std::slice::from_raw_parts(words.as_ptr().cast(), words.len()) }
    }

    pub(super) fn request_words(&self) -> &[AtomicU64] {
        // SAFETY: so many words, all of them halves of atoms.
        unsafe {
            let at = self.shared.at::<u8>().add(self.slots[0]);
            std::slice::from_raw_parts(at.cast().as_ptr(), self.sent.len())
        }
    }

    /// The slots of responses.
    #[cfg(test)]
    pub fn answers<T: Message>(&self) -> Vec<T> {
        let slot = |k| 16 * T::SLOT_ATOMS * k as usize;
        let slots = (0..self.capacity).map(slot);
        // SAFETY: that many slots of a response each, plain bytes, at multiples of 16.
        slots
            .map(|at| unsafe { self.shared.at::<u8>().add(self.slots[1] + at).cast().read() })
            .collect()
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

    /// Offset of the channel block that this block uses, or of the first where it has none.
    pub fn own_offset(&self) -> usize {
        std::ptr::from_ref(self.own()).addr() - self.control().addr()
    }

    /// Writes request `index` into its slot: `first` is its first atom.
    pub fn send(&mut self, index: u64, first: [u64; 2]) {
        let slot = index as usize & (self.capacity as usize - 1);
        let (at, last) = (2 * self.request_atoms * slot, 2 * self.request_atoms - 1);
        // The index, in a request of more than one atom.
        for (k, word) in [(last, index), (0, first[0]), (1, first[1])] {
            self.request_words()[at + k].store(word, Relaxed);
            self.sent[at + k] = word;
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
                    self.amend(offset, |honest| part.apply(lie, honest));
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
            Field::Line(line, k) => {
                self.line_offset(0, line.into())
                    + 8 * (usize::from(k) % (size_of::<Doorbell>() / 8))
            }
        }
    }

    /// What `run` is promised: payload and state are as large as the configuration says. It names none where
    /// there is no address.
    fn keep_promises(&mut self) {
        const CONFIG: usize = offset_of!(ControlBlock, config);
        let channels = self.shape.channels();
        let join = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
        let few_channels = |word: u64| join(word as u32, ((word >> 32) as u32).min(channels));
        self.amend(offset_of!(HostLine, abi_version), few_channels);
        let payload = self.word(CONFIG + offset_of!(ConfigLine, payload));
        let there = if payload == 0 { 0 } else { self.payload_bytes };
        self.amend(CONFIG + offset_of!(ConfigLine, payload_bytes), |bytes| bytes.min(there));
        for channel in 0..channels as usize {
            let block = size_of::<ControlBlock>() + channel * size_of::<ChannelBlock>();
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
