//! A kernel's shared memory, laid out: control block, lanes, slots, staging; and its payload.

use crate::arena::{Arena, Exhausted, Piece};
use crate::driver::Mapped;
use crate::error::LaunchError;
use ring_shared::atomics::{Atom, Ordering};
use ring_shared::layout::{ControlBlock, LaneBlock, RingDescriptor};
use ring_shared::{ABI_VERSION, MAGIC, Ring};
use std::ptr::NonNull;
use std::sync::Arc;

/// Largest part of the payload that one copy moves: what pinned staging is taken for.
const STAGING: usize = 64 * 1024;

/// What a kernel needs memory for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub lanes: u32,
    pub capacity: u32,
    pub start: u64,
    /// Atoms a slot, requests and responses.
    pub slot_atoms: [u32; 2],
    pub payload_bytes: usize,
}

/// Offsets into the pinned piece.
#[derive(Clone, Copy, Debug)]
struct Offsets {
    lanes: usize,
    slots: [usize; 2],
    staging: usize,
    end: usize,
}

impl Plan {
    fn slots_bytes(&self, which: usize) -> Option<usize> {
        (self.capacity as usize).checked_mul(16 * self.slot_atoms[which] as usize)
    }

    fn offsets(&self) -> Option<Offsets> {
        let n = self.lanes as usize;
        let lanes = size_of::<ControlBlock>();
        let requests = lanes.checked_add(n.checked_mul(size_of::<LaneBlock>())?)?;
        let all = |which| n.checked_mul(self.slots_bytes(which)?);
        let responses = requests.checked_add(all(0)?)?;
        let staging = responses.checked_add(all(1)?)?.checked_next_multiple_of(128)?;
        let end = staging.checked_add(self.payload_bytes.min(STAGING).next_multiple_of(4))?;
        Some(Offsets { lanes, slots: [requests, responses], staging, end })
    }

    /// Bytes of pinned memory; `usize::MAX` if they cannot be counted.
    pub fn pinned_bytes(&self) -> usize {
        self.offsets().map_or(usize::MAX, |o| o.end)
    }
}

/// Which of the arenas was exhausted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NoRoom {
    pub which: &'static str,
    pub exhausted: Exhausted,
}

impl NoRoom {
    /// The error for that kernel's launch.
    pub fn of_kernel(self, kernel: &'static str) -> LaunchError {
        let Exhausted { needed, free, arena } = self.exhausted;
        LaunchError::Arena { kernel, which: self.which, needed, free, arena }
    }
}

/// The memory of one launched kernel. Dropped only when the kernel has left the device.
#[derive(Debug)]
pub(crate) struct Region {
    plan: Plan,
    offsets: Offsets,
    memory: Mapped,
    pinned: Piece,
    payload: Option<Piece>,
}

impl Region {
    /// Takes and initialises the memory.
    pub fn new(plan: Plan, pinned: &Arc<Arena>, device: &Arc<Arena>) -> Result<Region, NoRoom> {
        let lend = |which, arena: &Arc<Arena>, bytes| {
            arena.lend(bytes).map_err(|exhausted| NoRoom { which, exhausted })
        };
        let piece = lend("pinned", pinned, plan.pinned_bytes())?;
        let payload = match plan.payload_bytes {
            0 => None,
            bytes => Some(lend("device", device, bytes)?),
        };
        let (Some(memory), Some(offsets)) = (piece.mapped(), plan.offsets()) else {
            unreachable!("a piece of the pinned arena is mapped, and its size was counted");
        };
        let region = Region { plan, offsets, memory, pinned: piece, payload };
        region.initialise();
        Ok(region)
    }

    fn initialise(&self) {
        // SAFETY: the piece is ours alone, this long, and no kernel knows it yet. Zero is valid
        // for everything that is laid out in it.
        unsafe { self.memory.host.write_bytes(0, self.offsets.end) };
        let (control, relaxed) = (self.control(), Ordering::Relaxed);
        control.host.magic.store(MAGIC, relaxed);
        control.host.abi_version.store(ABI_VERSION, relaxed);
        control.host.lanes.store(self.plan.lanes, relaxed);
        control.config.lane_blocks.store(self.device_at(self.offsets.lanes), relaxed);
        if let Some(payload) = &self.payload {
            control.config.payload.store(payload.device(), relaxed);
            control.config.payload_bytes.store(self.plan.payload_bytes as u64, relaxed);
        }
        for lane in 0..self.plan.lanes {
            let block = self.lane(lane);
            for (which, d) in [(0, &block.request), (1, &block.response)] {
                self.describe(d, lane, which);
                self.ring(lane, which).reset();
            }
        }
    }

    fn describe(&self, d: &RingDescriptor, lane: u32, which: usize) {
        let relaxed = Ordering::Relaxed;
        let [bell, credit, slots] = self.parts(lane, which).map(|at| self.device_at(at));
        d.bell.store(bell, relaxed);
        d.credit.store(credit, relaxed);
        d.slots.store(slots, relaxed);
        d.start.store(self.plan.start, relaxed);
        d.capacity.store(self.plan.capacity, relaxed);
        d.slot_bytes.store(16 * self.plan.slot_atoms[which], relaxed);
    }

    /// Offsets of doorbell, credit line and slots of a lane's ring (0: requests, 1: responses).
    fn parts(&self, lane: u32, which: usize) -> [usize; 3] {
        let block = self.offsets.lanes + lane as usize * size_of::<LaneBlock>();
        let (bell, credit) = match which {
            0 => (
                std::mem::offset_of!(LaneBlock, request_bell),
                std::mem::offset_of!(LaneBlock, request_credit),
            ),
            _ => (
                std::mem::offset_of!(LaneBlock, response_bell),
                std::mem::offset_of!(LaneBlock, response_credit),
            ),
        };
        let bytes = self.plan.capacity as usize * 16 * self.plan.slot_atoms[which] as usize;
        [block + bell, block + credit, self.offsets.slots[which] + lane as usize * bytes]
    }

    fn device_at(&self, offset: usize) -> u64 {
        self.pinned.device() + offset as u64
    }

    fn host_at<T>(&self, offset: usize) -> NonNull<T> {
        debug_assert!(offset + size_of::<T>() <= self.memory.bytes);
        // SAFETY: offsets come from `Plan::offsets`, inside the piece.
        unsafe { self.memory.host.add(offset) }.cast()
    }

    /// Address of the control block for the device: the kernel's parameter.
    pub fn parameter(&self) -> u64 {
        self.device_at(0)
    }

    pub fn control(&self) -> &ControlBlock {
        // SAFETY: laid out there, aligned, zeroed before; atomics only; lives as long as `self`.
        unsafe { self.host_at::<ControlBlock>(0).as_ref() }
    }

    /// The block of lane `lane`, which must be below the plan's.
    pub fn lane(&self, lane: u32) -> &LaneBlock {
        assert!(lane < self.plan.lanes, "lane {lane} of {}", self.plan.lanes);
        let at = self.offsets.lanes + lane as usize * size_of::<LaneBlock>();
        // SAFETY: as for `control`, and the lane is in range.
        unsafe { self.host_at::<LaneBlock>(at).as_ref() }
    }

    /// A lane's ring: 0 for requests, 1 for responses. Whoever uses it keeps the region alive.
    pub fn ring(&self, lane: u32, which: usize) -> Ring {
        assert!(lane < self.plan.lanes, "lane {lane} of {}", self.plan.lanes);
        let [bell, credit, slots] = self.parts(lane, which);
        let parts = (self.host_at(bell), self.host_at(credit), self.host_at::<Atom>(slots));
        // SAFETY: laid out there for this capacity and slot size, initialised; every `Ring` is
        // kept beside an `Arc` of the region (`Sender`, `Receiver`).
        let ring = unsafe {
            Ring::from_raw(parts, self.plan.capacity, self.plan.slot_atoms[which], self.plan.start)
        };
        ring.expect("the launch checked the capacity")
    }

    pub fn lanes(&self) -> u32 {
        self.plan.lanes
    }

    /// Bytes of the payload arena.
    pub fn payload_bytes(&self) -> usize {
        self.plan.payload_bytes
    }

    /// Device address of the payload arena.
    pub fn payload(&self) -> u64 {
        self.payload.as_ref().map_or(0, Piece::device)
    }

    /// Pinned memory through which the payload is copied, as much at a time as it is long.
    pub fn staging(&self) -> Mapped {
        let bytes = self.offsets.end - self.offsets.staging;
        let (host, device) =
            (self.host_at(self.offsets.staging), self.device_at(self.offsets.staging));
        Mapped { host, device, bytes }
    }

    /// Bytes of pinned memory.
    pub fn pinned_bytes(&self) -> usize {
        self.offsets.end
    }
}
