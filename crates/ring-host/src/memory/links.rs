//! The memory of a graph's links, a part for each of its devices: in pinned memory what each channel there is told of its rings, the
//! rings that the host reads, and those from devices that do not reach this one's memory; in device memory the other rings from
//! channel to channel, and the credit lines of those to other devices. All of it stays until the last kernel of the graph has left.

use super::arena::{Arena, Exhausted, Suballocation};
use crate::device::Driver;
use crate::error::{ArenaKind, DriverError};
use ring_shared::layout::{CreditLine, Doorbell, LINE, Link, Links, Placement};
use ring_shared::ring::{CONTROL, Control};
use ring_shared::{Ring, atomics::Atom};
use std::fmt::Debug;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// What a device has of that memory.
#[derive(Debug)]
pub(crate) struct LinkMemory {
    /// None where nothing is to lie there.
    pinned: Option<Suballocation>,
    host: NonNull<u8>,
    bytes: usize,
    device: Option<Suballocation>,
}

// SAFETY: owned memory, of which only atomics are used.
unsafe impl Send for LinkMemory {}
// SAFETY: as above.
unsafe impl Sync for LinkMemory {}

/// What all devices of a graph have.
pub(crate) type GraphMemory = Arc<[LinkMemory]>;

/// Where a ring lies: as offsets in what one device has, and in what its producer's has.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Place {
    /// In pinned memory.
    Pinned(usize),
    /// In device memory.
    Device(usize),
    /// In device memory, but for its credit line: that is in the memory of the producer's device, at the second offset.
    Split(usize, usize),
}

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
            credit: at + LINE as u64, // unused where the credit line is elsewhere
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
    Link::offset(inputs + outputs).next_multiple_of(LINE)
}

impl LinkMemory {
    /// So many bytes of each, the pinned ones zeroed.
    pub fn new(
        (pinned, pinned_bytes): (Option<&Arc<Arena>>, usize),
        (device, device_bytes): (&Arc<Arena>, usize),
    ) -> Result<LinkMemory, Exhausted> {
        let which = ArenaKind::Pinned;
        let none = Exhausted { which, needed: pinned_bytes, free: 0, arena: 0 };
        let pinned = match pinned_bytes {
            0 => None,
            bytes => Some(pinned.ok_or(none)?.alloc(bytes)?),
        };
        let host = match &pinned {
            None => NonNull::dangling(),
            Some(pinned) => pinned.pinned().ok_or(none)?.host,
        };
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
        let at = table + Link::offset(k);
        // SAFETY: as for `links`.
        unsafe { self.at::<Link>(at).as_ref() }
    }

    /// Where the device sees what lies at offset `at` of the pinned memory.
    pub fn device_at(&self, at: usize) -> u64 {
        self.pinned.as_ref().map_or(0, Suballocation::device) + at as u64
    }

    /// The same of another device.
    fn seen_at(&self, at: usize, driver: &dyn Driver) -> Result<u64, DriverError> {
        Ok(driver.sees(self.host)? + at as u64)
    }

    /// Where the device memory begins.
    fn device(&self) -> u64 {
        self.device.as_ref().map_or(0, Suballocation::device)
    }

    /// A ring whose place is in this memory, and whose producer's device has `producer`; as the device of this memory sees it, or
    /// another one whose `driver` is given.
    pub fn placement(
        &self,
        (place, shape): (Place, LinkShape),
        producer: &LinkMemory,
        driver: Option<&dyn Driver>,
    ) -> Result<Placement, DriverError> {
        Ok(match (place, driver) {
            (Place::Pinned(at), None) => shape.placement(self.device_at(at)),
            (Place::Pinned(at), Some(driver)) => shape.placement(self.seen_at(at, driver)?),
            (Place::Device(at), _) => shape.placement(self.device() + at as u64),
            (Place::Split(at, credit), _) => {
                let ring = shape.placement(self.device() + at as u64);
                Placement { credit: producer.device() + credit as u64, ..ring }
            }
        })
    }

    /// Indices behind the last message that was sent to the host by the ring at offset `at`, and behind the last one that it has received.
    pub fn to_host(&self, at: usize, shape: LinkShape) -> [u64; 2] {
        let ring = self.ring(at, shape);
        let received = ring.credit().consumed.load(Relaxed);
        let control = Control::from_words(ring.line(0).atoms[CONTROL].load());
        [received + control.ahead_of(received).map_or(0, u64::from), received]
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

/// Where a channel says how far it is at its end of a ring.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Told {
    /// The device that the channel is on.
    pub device: usize,
    /// Where its table lies there, and which of the links behind that it is.
    pub table: usize,
    pub link: usize,
}

/// Both ends of a ring.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RingEnds {
    pub producer: Told,
    pub consumer: Consumer,
}

/// Who has the other end.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Consumer {
    /// A channel.
    Channel(Told),
    /// The host: the ring lies at that offset of the pinned memory of the producer's device.
    Host(usize),
}

/// The rings of a port of one channel.
#[derive(Clone, Debug)]
pub(crate) struct PortRings {
    #[cfg_attr(not(feature = "metrics"), expect(dead_code, reason = "for metrics"))]
    pub channel: u32,
    /// The port's number, and its name.
    pub port: (usize, &'static str),
    /// Bytes of a message.
    #[cfg_attr(not(feature = "metrics"), expect(dead_code, reason = "for metrics"))]
    pub message_bytes: usize,
    /// The kernel that reads them, if the host does not.
    pub to: Option<&'static str>,
    pub shape: LinkShape,
    pub rings: Vec<RingEnds>,
}

/// What has gone through some rings, as their ends said last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Flowed {
    pub sent: u64,
    pub taken: u64,
    /// Messages that lie in the rings, and in the fullest of them.
    pub waiting: u64,
    pub fullest: u64,
    /// How often a producer waited for room.
    pub stalls: u64,
}

impl PortRings {
    /// What has gone through them.
    pub fn flowed(&self, memory: &[LinkMemory]) -> Flowed {
        let mut all = Flowed::default();
        let link = |Told { device, table, link }: Told| memory[device].link(table, link);
        for RingEnds { producer, consumer } in &self.rings {
            let of_producer = link(*producer);
            let sent_and_taken = match *consumer {
                Consumer::Channel(consumer) => {
                    [of_producer, link(consumer)].map(|link| link.next.load(Relaxed))
                }
                Consumer::Host(at) => memory[producer.device].to_host(at, self.shape),
            };
            all.add(sent_and_taken, of_producer.stalls.load(Relaxed), self.shape.capacity);
        }
        all
    }
}

impl Flowed {
    /// Of one ring more. What devices say is theirs, and each end says it when it comes to that.
    fn add(&mut self, [sent, taken]: [u64; 2], stalls: u64, capacity: u32) {
        let waiting = sent.saturating_sub(taken).min(capacity.into());
        self.sent = self.sent.wrapping_add(sent);
        self.taken = self.taken.wrapping_add(taken);
        self.waiting += waiting;
        self.fullest = self.fullest.max(waiting);
        self.stalls = self.stalls.wrapping_add(stalls);
    }

    /// Of all of these.
    pub fn and(self, other: Flowed) -> Flowed {
        Flowed {
            sent: self.sent.wrapping_add(other.sent),
            taken: self.taken.wrapping_add(other.taken),
            waiting: self.waiting + other.waiting,
            fullest: self.fullest.max(other.fullest),
            stalls: self.stalls.wrapping_add(other.stalls),
        }
    }
}

/// What a kernel is launched to meet.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Partners<'a> {
    /// The host only.
    None,
    /// Other kernels of a graph.
    Graph(&'a KernelLinks),
    /// Its own grids on other devices.
    Grids(&'a GridsMemory),
}

/// What a grid has to meet those of other devices.
#[derive(Clone, Debug)]
pub(crate) struct GridsMemory {
    /// A [`DevicesLine`](ring_shared::layout::DevicesLine).
    pub line: [u64; LINE / 8],
    /// The memory of all devices that it names.
    pub memory: Arc<dyn Debug + Send + Sync>,
}

/// The links of one kernel.
#[derive(Clone, Debug)]
pub(crate) struct KernelLinks {
    pub memory: GraphMemory,
    /// The kernel's device.
    pub device: usize,
    /// For each channel, where its table is.
    pub tables: Arc<[usize]>,
    /// Whether the host feeds it: its first input is the ring of requests.
    pub is_fed: bool,
    /// The rings that it sends to: those of each port, by channels.
    pub ports: Arc<[PortRings]>,
}

impl KernelLinks {
    /// The rings of each port of each channel, with all the memory.
    #[cfg(feature = "metrics")]
    pub fn each_port(&self) -> impl Iterator<Item = (&KernelLinks, &PortRings)> {
        self.ports.iter().map(move |rings| (self, rings))
    }

    /// What the kernel's device has of the memory.
    pub fn own(&self) -> &LinkMemory {
        &self.memory[self.device]
    }
}
