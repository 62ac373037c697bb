//! A kernel's shared memory, laid out: control block, channels, slots; its payload, here or in device memory; and
//! what is copied through. In mapped memory both sides use one copy. Else the host has its own, of the same layout,
//! and `staging` keeps both alike.

use super::plan::{BounceBuffer, Direction, Offsets, Plan};
use crate::device::pages;
use crate::error::ArenaKind;
use crate::memory::arena::{Arena, Exhausted, Suballocation};
use crate::memory::links::KernelLinks;
use crate::mode::Memory;
use ring_shared::Ring;
use ring_shared::atomics::Ordering::Relaxed;
use ring_shared::atomics::{Atom, AtomicU32};
use ring_shared::calls::bytes_of;
use ring_shared::layout::{
    Budgets, ChannelBlock, ChannelSetup, ControlBlock, Doorbell, Far, KernelSetup, Placement,
};
use ring_shared::message::INLINE_ATOMS;
use ring_shared::trace::{self, TraceRing};
use std::fmt::Debug;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::Arc;

/// The host's copy of what is shared.
#[derive(Debug)]
struct HostMemory {
    at: NonNull<u8>,
    bytes: usize,
    /// The pinned memory that it is; else it is pages of its own.
    pinned: Option<Suballocation>,
}

// SAFETY: owned memory; who may touch it is the region's business.
unsafe impl Send for HostMemory {}
// SAFETY: as above.
unsafe impl Sync for HostMemory {}

impl Drop for HostMemory {
    fn drop(&mut self) {
        if self.pinned.is_none() {
            // SAFETY: taken in `Region::new` with that size, given back once.
            unsafe { pages::free(self.at, self.bytes) };
        }
    }
}

/// Lines of requests in quick pages: at an offset from the region, with all regions of the arena before them.
#[derive(Debug)]
struct QuickLines {
    at: usize,
    bytes: usize,
    _memory: Suballocation,
}

impl QuickLines {
    /// So many bytes, if there is room beside the suballocation that the region is.
    fn new(region: &Suballocation, bytes: usize) -> Option<QuickLines> {
        let memory = region.alloc_quick(bytes)?;
        Some(QuickLines { at: memory.behind(region), bytes, _memory: memory })
    }

    /// Offsets of all lines.
    fn range(&self) -> Range<usize> {
        self.at..self.at + self.bytes
    }
}

/// The memory of one kernel. Dropped only when nothing of it is on the device.
#[derive(Debug)]
pub(crate) struct Region {
    pub plan: Plan,
    offsets: Offsets,
    host: HostMemory,
    /// Where the device sees its copy.
    device: u64,
    /// Where the lines of requests lie, if that is in quick pages.
    quick: Option<QuickLines>,
    _mirror: Option<Suballocation>,
    /// The payload, if it is in device memory.
    payload: Option<Suballocation>,
    state: Option<Suballocation>,
    /// The links of a kernel with ports, and what keeps them.
    pub links: Option<KernelLinks>,
    /// What keeps buffers.
    _used: Vec<Arc<dyn Debug + Send + Sync>>,
}

impl Region {
    /// Takes and initialises the memory.
    pub fn new(
        plan: Plan,
        pinned: Option<&Arc<Arena>>,
        device: &Arc<Arena>,
    ) -> Result<Region, Exhausted> {
        let bytes = plan.host_bytes();
        let none = |which| Exhausted { which, needed: bytes, free: 0, arena: 0 };
        let offsets = plan.offsets().ok_or_else(|| none(ArenaKind::Pinned))?;
        let (host, mapped) = if plan.memory == Memory::StagedSync {
            let at = pages::alloc(bytes).map_err(|_| none(ArenaKind::Host))?;
            (HostMemory { at, bytes, pinned: None }, 0)
        } else {
            let pinned = pinned.ok_or_else(|| none(ArenaKind::Pinned))?.alloc(bytes)?;
            let memory = pinned.pinned().ok_or_else(|| none(ArenaKind::Pinned))?;
            (HostMemory { at: memory.host, bytes, pinned: Some(pinned) }, memory.device)
        };
        let quick = match &host.pinned {
            Some(pinned) if plan.memory == Memory::Mapped && plan.lines > 1 => {
                let lines = plan.channels as usize * (offsets.lines_stride / 2);
                QuickLines::new(pinned, lines)
            }
            _ => None,
        };
        let part = |bytes| if bytes == 0 { Ok(None) } else { device.alloc(bytes).map(Some) };
        let mirror = part(if plan.memory == Memory::Mapped { 0 } else { offsets.mirrored })?;
        let payload = part(plan.payload_parts()[1])?;
        let state = part(plan.state_stride() * plan.channels as usize)?;
        let at = mirror.as_ref().map_or(mapped, Suballocation::device);
        let region = Region {
            plan,
            offsets,
            host,
            device: at,
            quick,
            _mirror: mirror,
            payload,
            state,
            links: None,
            _used: Vec::new(),
        };
        region.initialise();
        Ok(region)
    }

    fn initialise(&self) {
        // No slot is read before it is written: what is left in them stays, as it does in the payload.
        let (lines, bounce_buffer) =
            (0..self.offsets.slots[0], self.offsets.bounce_buffers..self.offsets.payload);
        // Stamps in call slots and trace rings are looked at before anybody has written them.
        let calls = self.offsets.calls..self.offsets.staging;
        for part in [lines, bounce_buffer, calls] {
            // SAFETY: the memory is ours alone, this long, and no kernel knows it yet. Zero is valid
            // for everything that is laid out in it.
            unsafe { self.host.at.add(part.start).write_bytes(0, part.len()) };
        }
        self.control().initialise(&KernelSetup {
            channels: self.plan.channels,
            memory_bytes: self.seen_bytes() as u64,
            payload: (self.payload(), self.plan.payload_bytes as u64),
            buffers: self.plan.buffers,
            budgets: self.plan.budgets,
            processing: self.plan.processing,
            max_messages: self.plan.max_messages,
            lease: self.plan.lease,
            trace: self.trace_rings(),
        });
        for channel in 0..self.plan.channels {
            self.channel(channel).initialise(&ChannelSetup {
                requests: self.placement(channel, Direction::Requests),
                responses: self.placement(channel, Direction::Responses),
                state: (self.state(channel), self.plan.state_bytes as u64),
                links: 0,
            });
            let shape = self.plan.calls;
            if shape > 0 {
                let calls = self.device_at(self.calls_at(channel)) | shape;
                self.channel(channel).calls.store(calls, Relaxed);
            }
            for direction in [Direction::Requests, Direction::Responses] {
                self.ring(channel, direction).reset(); // all lines, also those in quick pages
            }
        }
    }

    /// Where a channel's ring lies, as the device sees it.
    fn placement(&self, channel: u32, direction: Direction) -> Placement {
        let block = self.device_at(self.channel_at(channel));
        let slots = self.device_at(self.slots_at(channel, direction));
        let (capacity, bytes) = (self.plan.capacity, self.slot_bytes(direction) as u32);
        let placement = match direction {
            Direction::Requests => Placement::of_requests(block, slots, capacity, bytes),
            Direction::Responses => Placement::of_responses(block, slots, capacity, bytes),
        };
        let placed = match self.lines_at(channel, direction) {
            Some(at) => placement.with_lines(self.device_at(at), self.plan.lines, self.plan.span()),
            None => placement,
        };
        placed.starting_at(self.plan.start)
    }

    /// Tells each channel of its links, before the launch. The region keeps their memory.
    pub fn connect(&mut self, links: KernelLinks) {
        for (channel, table) in (0..self.plan.channels).zip(links.tables.iter().copied()) {
            if links.is_fed {
                let link = links.own().link(table, 0);
                link.ring.describe(&self.placement(channel, Direction::Requests));
                link.far.store(Far::Host.to_u32(), Relaxed);
            }
            self.channel(channel).links.store(links.own().device_at(table), Relaxed);
        }
        self.links = Some(links);
    }

    /// Sets what a launch may spend. Only while none is on the device.
    pub fn set_budgets(&self, budgets: Budgets) {
        self.control().config.set_budgets(budgets);
    }

    /// Offset of a channel's block.
    pub fn channel_at(&self, channel: u32) -> usize {
        assert!(channel < self.plan.channels, "channel {channel} of {}", self.plan.channels);
        size_of::<ControlBlock>() + channel as usize * size_of::<ChannelBlock>()
    }

    /// Offset of the doorbell lines of a channel's ring, if they are not in the channel's block. The lines of requests,
    /// which the device polls, are in quick pages if there are such; their place in the region is unused then.
    fn lines_at(&self, channel: u32, direction: Direction) -> Option<usize> {
        let (channel, stride) = (channel as usize, self.offsets.lines_stride);
        let at = match &self.quick {
            Some(quick) if direction == Direction::Requests => quick.at + channel * (stride / 2),
            _ => self.offsets.lines + channel * stride + stride / 2 * direction as usize,
        };
        (self.plan.lines > 1).then_some(at)
    }

    /// Bytes from the control block to the end of the last line or slot. Lines in quick pages lie behind all regions of
    /// the arena, of which other kernels' are then among these bytes.
    fn seen_bytes(&self) -> usize {
        self.quick.as_ref().map_or(self.offsets.mirrored, |quick| quick.range().end)
    }

    /// Offset of the slots of a channel's ring.
    pub fn slots_at(&self, channel: u32, direction: Direction) -> usize {
        let (slots, stride) = (self.offsets.slots, self.offsets.slots_stride);
        slots[direction as usize] + channel as usize * stride[direction as usize]
    }

    pub fn slot_bytes(&self, direction: Direction) -> usize {
        16 * self.plan.slot_atoms[direction as usize] as usize
    }

    /// Where the device sees what lies at `offset`.
    pub fn device_at(&self, offset: usize) -> u64 {
        self.device + offset as u64
    }

    /// Where the host sees what lies at `offset`.
    pub fn host_at<T>(&self, offset: usize) -> NonNull<T> {
        let (end, quick) = (offset + size_of::<T>(), self.quick.as_ref().map(QuickLines::range));
        let is_quick = quick.is_some_and(|quick| offset >= quick.start && end <= quick.end);
        assert!(end <= self.offsets.end || is_quick);
        // SAFETY: inside the memory, or inside the quick part, which is a part of the same arena.
        unsafe { self.host.at.add(offset) }.cast()
    }

    /// Room for what is copied on behalf of a channel; not in mapped memory.
    pub fn bounce_buffer(&self, channel: u32) -> &BounceBuffer {
        assert!(channel < self.plan.channels && self.plan.memory != Memory::Mapped);
        let at = self.offsets.bounce_buffers + channel as usize * size_of::<BounceBuffer>();
        // SAFETY: laid out there, aligned, zeroed before; atomics only; lives as long as `self`.
        unsafe { self.host_at::<BounceBuffer>(at).as_ref() }
    }

    /// Stamped atoms that an inline response has in the doorbell line.
    pub fn answer_stamps(&self) -> usize {
        self.plan.answer_stamps.min(INLINE_ATOMS)
    }

    /// Address of the control block for the device: the kernel's parameter.
    pub fn parameter(&self) -> u64 {
        self.device_at(0)
    }

    pub fn control(&self) -> &ControlBlock {
        // SAFETY: laid out there, aligned, zeroed before; atomics only; lives as long as `self`.
        unsafe { self.host_at::<ControlBlock>(0).as_ref() }
    }

    /// The host's copy of the block of channel `channel`, which must be below the plan's.
    pub fn channel(&self, channel: u32) -> &ChannelBlock {
        // SAFETY: as for `control`, and the channel is in range.
        unsafe { self.host_at::<ChannelBlock>(self.channel_at(channel)).as_ref() }
    }

    /// Those of all channels.
    pub fn blocks(&self) -> impl Iterator<Item = &ChannelBlock> {
        (0..self.plan.channels).map(|channel| self.channel(channel))
    }

    /// A channel's ring, the host's copy. Whoever uses it keeps the region alive.
    pub fn ring(&self, channel: u32, direction: Direction) -> Ring {
        let block = self.channel(channel);
        let (bell, credit) = match direction {
            Direction::Requests => (&block.request_bell, &block.request_credit),
            Direction::Responses => (&block.response_bell, &block.response_credit),
        };
        let slots = self.host_at::<Atom>(self.slots_at(channel, direction));
        let lines = self.lines_at(channel, direction).map(|at| self.host_at::<Doorbell>(at));
        let parts = (lines.unwrap_or(NonNull::from(bell)), NonNull::from(credit), slots);
        // SAFETY: laid out there for this capacity and slot size, initialised; every `Ring` is
        // kept beside an `Arc` of the region (`Sender`, `Receiver`).
        let ring = unsafe {
            Ring::from_raw(
                parts,
                (self.plan.lines, self.plan.span()),
                (self.plan.capacity, self.plan.slot_atoms[direction as usize]),
                self.plan.start,
            )
        };
        ring.expect("the launch checked the capacity")
    }

    /// Requests of a channel that the device has not consumed, and the index of the first of them, as far
    /// as the host knows.
    pub fn pending(&self, channel: u32) -> (u32, u64) {
        let head = self.channel(channel).consumed();
        let told = self.ring(channel, Direction::Requests).told_from(head);
        (told.min(self.plan.capacity), head)
    }

    /// Whether a launch that begins now finds the next request of a channel, if there is one.
    pub fn can_resume(&self, channel: u32) -> bool {
        let head = self.channel(channel).consumed();
        self.ring(channel, Direction::Requests).can_resume_from(head)
    }

    /// Offset of a channel's slots for calls to the host.
    fn calls_at(&self, channel: u32) -> usize {
        assert!(channel < self.plan.channels, "channel {channel} of {}", self.plan.channels);
        self.offsets.calls + channel as usize * bytes_of(self.plan.calls)
    }

    /// A channel's slots for calls to the host, of the shape that the plan says.
    pub fn calls(&self, channel: u32) -> NonNull<u8> {
        self.host_at(self.calls_at(channel))
    }

    /// Where the device finds the trace rings, as the configuration says it; 0 if there are none.
    fn trace_rings(&self) -> u64 {
        match self.plan.trace {
            0 => 0,
            records => self.device_at(self.offsets.traces) | u64::from(records.ilog2()),
        }
    }

    /// A channel's trace ring, if there is one. Whoever uses it keeps the region alive.
    pub fn trace(&self, channel: u32) -> Option<TraceRing> {
        let records = self.plan.trace;
        (records > 0 && channel < self.plan.channels).then(|| {
            let at = self.offsets.traces + channel as usize * trace::bytes_of(records);
            // SAFETY: laid out there, aligned, zeroed before the launch; the device writes it as this, and the host reads it.
            unsafe { TraceRing::from_raw(self.host_at(at), records) }
        })
    }

    /// Keeps something that the kernel uses for as long as it has this memory.
    pub fn keep(&mut self, used: Arc<dyn Debug + Send + Sync>) {
        self._used.push(used);
    }

    /// Device address of the payload arena.
    pub fn payload(&self) -> u64 {
        match self.plan.payload_parts() {
            [0, _] => self.payload.as_ref().map_or(0, Suballocation::device),
            [_, _] => self.device_at(self.offsets.payload),
        }
    }

    /// The whole words of a payload arena in mapped memory. A handler may read and write them at any time, as words
    /// that are atomic to each other, and so does the host. `None` if it is in device memory.
    pub fn payload_words(&self) -> Option<&[AtomicU32]> {
        self.plan.payload_is_mapped().then(|| {
            let [bytes, _] = self.plan.payload_parts();
            // SAFETY: so many bytes are laid out there, aligned; pinned memory has values from its allocation on.
            // While the region lives, host and handlers use them as atomics only.
            unsafe {
                let at = self.host.at.add(self.offsets.payload).cast::<AtomicU32>();
                std::slice::from_raw_parts(at.as_ptr(), bytes / size_of::<AtomicU32>())
            }
        })
    }

    /// Device address of a channel's state, at a multiple of 128, with room for whole lines; 0 if there is
    /// none.
    pub fn state(&self, channel: u32) -> u64 {
        let at = |suballocation: &Suballocation| {
            suballocation.device() + (channel as usize * self.plan.state_stride()) as u64
        };
        self.state.as_ref().map_or(0, at)
    }

    /// Host memory through which payload and state are copied, and its size: as much as goes at a time.
    pub fn staging(&self) -> (NonNull<u8>, usize) {
        let bytes = self.offsets.end - self.offsets.staging;
        // SAFETY: inside the memory, or its end.
        (unsafe { self.host.at.add(self.offsets.staging) }, bytes)
    }

    /// Bytes of pinned memory.
    pub fn pinned_bytes(&self) -> usize {
        if self.host.pinned.is_some() { self.offsets.end } else { 0 }
    }
}

#[cfg(all(test, feature = "quirks", not(loom)))]
mod tests {
    use super::*;
    use crate::device::image::Image;
    use crate::device::{Driver, Quirks, cpu::Cpu};
    use crate::mode::PayloadMemory;
    use ring_shared::layout::{PlacementError, Processing, RingDescriptor};

    const PINNED: usize = 4 << 20;

    fn plan(memory: Memory, channels: u32, lines: u32) -> Plan {
        Plan {
            memory,
            channels,
            capacity: 16,
            lines,
            span: 2,
            start: 0,
            slot_atoms: [4, 4],
            answer_stamps: 1,
            payload_bytes: 0,
            payload_memory: PayloadMemory::Auto,
            state_bytes: 0,
            calls: 0,
            trace: 0,
            buffers: 0,
            budgets: Budgets::UNLIMITED,
            processing: Processing::Continuous,
            max_messages: 1,
            lease: 1,
        }
    }

    /// Arenas of a device, pinned and its own, whose pinned memory has 64 quick pages if it is said to.
    fn arenas(quirks: Quirks) -> [Arc<Arena>; 2] {
        let driver: Arc<dyn Driver> = quirks.into();
        let (pinned, _) = Arena::with_quick(&driver, PINNED, &Image::built_in()).unwrap();
        [pinned, Arena::device(&driver, 1 << 20).unwrap()]
    }

    fn quick() -> [Arc<Arena>; 2] {
        arenas(Quirks::of(Cpu::open()).quick_pages())
    }

    fn region([pinned, device]: &[Arc<Arena>; 2], plan: Plan) -> Region {
        Region::new(plan, Some(pinned), device).unwrap()
    }

    /// What a channel finds wrong with where its rings lie.
    fn checked(region: &Region, channel: u32) -> Result<(), PlacementError> {
        let placement = |ring: &RingDescriptor| Placement {
            lines: ring.lines.load(Relaxed),
            credit: ring.credit.load(Relaxed),
            slots: ring.slots.load(Relaxed),
            start: ring.start.load(Relaxed),
            capacity: ring.capacity.load(Relaxed),
            slot_bytes: ring.slot_bytes.load(Relaxed),
            line_count: ring.line_count.load(Relaxed),
            span: ring.span.load(Relaxed),
        };
        let memory_bytes = region.control().config.memory_bytes.load(Relaxed);
        let block = region.channel(channel);
        Placement::check(
            &placement(&block.request),
            &placement(&block.response),
            (region.parameter(), memory_bytes),
            (channel, region.plan.channels),
        )
    }

    /// Where the device sees the request lines of each channel.
    fn request_lines(region: &Region) -> Vec<u64> {
        region.blocks().map(|block| block.request.lines.load(Relaxed)).collect()
    }

    #[test]
    fn request_lines_lie_in_quick_pages_and_nothing_else_does() {
        let arenas = quick();
        let end = arenas[0].alloc(1).unwrap().device() + PINNED as u64;
        let region = region(&arenas, plan(Memory::Mapped, 3, 8));
        assert_eq!(request_lines(&region), [end, end + 2048, end + 4096]);
        for (channel, block) in (0..).zip(region.blocks()) {
            assert_eq!(checked(&region, channel), Ok(()));
            assert!(block.response.lines.load(Relaxed) < end);
            assert!(block.request.slots.load(Relaxed) < end);
            // Both sides mean the same lines, and they are the channel's alone.
            let lines = block.request.lines.load(Relaxed);
            let at = region.lines_at(channel, Direction::Requests).unwrap();
            assert_eq!(region.device_at(at), lines);
            let host = region.host_at::<[u8; 2048]>(at);
            assert_eq!(host.addr().get() as u64, lines); // of CPU threads
            // SAFETY: the lines of this channel, which nobody uses, and which are zeroed.
            unsafe {
                assert_eq!(host.read(), [0; 2048], "channel {channel}");
                host.write([0xff; 2048]);
            }
        }
    }

    #[test]
    fn lines_stay_where_they_were_if_there_are_no_quick_pages() {
        for (arenas, memory, lines) in [
            (arenas(Quirks::of(Cpu::open())), Memory::Mapped, 8),
            (quick(), Memory::Mapped, 1),
            (quick(), Memory::StagedAsync, 8),
            (quick(), Memory::StagedSync, 8),
        ] {
            let region = region(&arenas, plan(memory, 2, lines));
            let seen = region.device..region.device + region.offsets.mirrored as u64;
            assert!(request_lines(&region).iter().all(|at| seen.contains(at)), "{memory:?}");
            assert_eq!(region.seen_bytes(), region.offsets.mirrored);
            assert!((0..2).all(|channel| checked(&region, channel).is_ok()));
        }
    }

    #[test]
    fn what_has_no_room_in_quick_pages_lies_elsewhere_and_room_comes_back() {
        let arenas = quick();
        let is_quick = |region: &Region| region.quick.is_some();
        let new = |channels| region(&arenas, plan(Memory::Mapped, channels, 128));
        let first = new(7); // 32 KiB each, of 256
        assert!(is_quick(&first));
        let second = new(2);
        assert!(!is_quick(&second) && is_quick(&new(1)));
        assert!((0..2).all(|channel| checked(&second, channel).is_ok()));
        for channel in 0..7 {
            let at = first.lines_at(channel, Direction::Requests).unwrap();
            // SAFETY: lines of a channel that nobody uses.
            unsafe { first.host_at::<[u64; 4096]>(at).write([7; 4096]) };
        }
        drop(first);
        let third = new(8);
        assert!(is_quick(&third));
        for channel in 0..8 {
            let at = third.lines_at(channel, Direction::Requests).unwrap();
            // SAFETY: lines of a channel that nobody uses.
            assert_eq!(unsafe { third.host_at::<[u64; 4096]>(at).read() }, [0; 4096]);
        }
    }

    #[test]
    #[should_panic(expected = "assertion failed")]
    fn nobody_is_given_what_lies_behind_the_lines() {
        let region = region(&quick(), plan(Memory::Mapped, 1, 8));
        region.host_at::<[u8; 2049]>(region.lines_at(0, Direction::Requests).unwrap());
    }
}
