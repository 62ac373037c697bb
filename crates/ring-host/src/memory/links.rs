//! The memory of a graph's links: in pinned memory what each channel is told of its rings, and the rings that the host reads; in
//! device memory the rings from channel to channel. It stays until the last kernel that knows it has left the device.

use super::arena::{Arena, Exhausted, Suballocation};
use crate::error::ArenaKind;
use ring_shared::layout::{CreditLine, Doorbell, LINE, Link, Links, Placement};
use ring_shared::{Ring, atomics::Atom};
use std::ptr::NonNull;
use std::sync::Arc;

/// The parts of that memory.
#[derive(Debug)]
pub(crate) struct LinkMemory {
    pinned: Suballocation,
    host: NonNull<u8>,
    bytes: usize,
    device: Option<Suballocation>,
}

// SAFETY: owned memory, of which only atomics are used.
unsafe impl Send for LinkMemory {}
// SAFETY: as above.
unsafe impl Sync for LinkMemory {}

/// What a ring of a link is like.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LinkShape {
    pub capacity: u32,
    pub slot_bytes: u32,
}

impl LinkShape {
    /// Bytes of a ring: its line, the credit line, its slots, in whole lines. `None` if they cannot be counted.
    pub fn bytes(&self) -> Option<usize> {
        let slots = (self.capacity as usize).checked_mul(self.slot_bytes as usize)?;
        slots.checked_next_multiple_of(LINE)?.checked_add(2 * LINE)
    }

    /// The ring whose bytes begin at `at`.
    fn placement(&self, at: u64) -> Placement {
        Placement {
            lines: at,
            credit: at + LINE as u64,
            slots: at + 2 * LINE as u64,
            start: 0,
            capacity: self.capacity,
            slot_bytes: self.slot_bytes,
            line_count: 1,
            span: 1,
        }
    }
}

/// Bytes of what a channel with so many rings is told, in whole lines.
pub(crate) fn table_bytes(inputs: usize, outputs: usize) -> usize {
    (size_of::<Links>() + (inputs + outputs) * size_of::<Link>()).next_multiple_of(LINE)
}

impl LinkMemory {
    /// So many bytes of each, the pinned ones zeroed.
    pub fn new(
        (pinned, pinned_bytes): (Option<&Arc<Arena>>, usize),
        (device, device_bytes): (&Arc<Arena>, usize),
    ) -> Result<LinkMemory, Exhausted> {
        let which = ArenaKind::Pinned;
        let none = Exhausted { which, needed: pinned_bytes, free: 0, arena: 0 };
        let pinned = pinned.ok_or(none)?.alloc(pinned_bytes)?;
        let host = pinned.pinned().ok_or(none)?.host;
        let device = match device_bytes {
            0 => None,
            bytes => Some(device.alloc(bytes)?),
        };
        // SAFETY: the memory is ours alone, this long; no kernel knows it yet. Zero is valid for all that lies there.
        unsafe { host.write_bytes(0, pinned_bytes) };
        Ok(LinkMemory { pinned, host, bytes: pinned_bytes, device })
    }

    fn at<T>(&self, at: usize) -> NonNull<T> {
        assert!(at.is_multiple_of(align_of::<T>()) && at + size_of::<T>() <= self.bytes);
        // SAFETY: inside the memory.
        unsafe { self.host.add(at) }.cast()
    }

    /// What lies at offset `at` of the pinned memory, where a channel's table was placed.
    pub fn links(&self, at: usize) -> &Links {
        // SAFETY: inside the memory, aligned, zeroed before; atomics only; it lives as long as `self`.
        unsafe { self.at::<Links>(at).as_ref() }
    }

    /// The `k`th link behind that.
    pub fn link(&self, table: usize, k: usize) -> &Link {
        let at = table + size_of::<Links>() + k * size_of::<Link>();
        // SAFETY: as for `links`.
        unsafe { self.at::<Link>(at).as_ref() }
    }

    /// Where the device sees what lies at offset `at` of the pinned memory.
    pub fn device_at(&self, at: usize) -> u64 {
        self.pinned.device() + at as u64
    }

    /// A ring at offset `at` of the pinned memory, as the device sees it.
    pub fn pinned_placement(&self, at: usize, shape: LinkShape) -> Placement {
        shape.placement(self.device_at(at))
    }

    /// A ring at offset `at` of the device memory.
    pub fn device_placement(&self, at: usize, shape: LinkShape) -> Placement {
        shape.placement(self.device.as_ref().map_or(0, Suballocation::device) + at as u64)
    }

    /// A ring at offset `at` of the pinned memory, as the host sees it. Whoever uses it keeps the memory alive.
    pub fn ring(&self, at: usize, shape: LinkShape) -> Ring {
        let lines = self.at::<Doorbell>(at);
        let credit = self.at::<CreditLine>(at + LINE);
        assert!(shape.bytes().is_some_and(|bytes| at + bytes <= self.bytes));
        let parts = (lines, credit, self.at::<Atom>(at + 2 * LINE));
        // SAFETY: placed there, zeroed before, which is as it is before the first message.
        let ring =
            unsafe { Ring::from_raw(parts, (1, 1), (shape.capacity, shape.slot_bytes / 16), 0) };
        ring.expect("the graph was checked")
    }
}

/// The links of one kernel.
#[derive(Clone, Debug)]
pub(crate) struct KernelLinks {
    pub memory: Arc<LinkMemory>,
    /// For each channel, where its table is.
    pub tables: Arc<[usize]>,
    /// Whether the host feeds it: its first input is the ring of requests.
    pub is_fed: bool,
}
