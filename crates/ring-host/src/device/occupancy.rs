//! Which kernels may be resident at once. A launch whose blocks do not all become resident is never
//! answered, and the device starts no later launch before it: so a launch is refused here unless it
//! fits however the device has spread the blocks that are there.
//!
//! Room is counted by multiprocessor, since a block must fit one. How a device spreads blocks is not
//! documented, so the placement assumed is the worst one for the blocks that ask.

use crate::error::Resource;
use crate::sync::lock;
use std::sync::{Arc, Mutex};

/// What a thread block takes of its multiprocessor, or what a whole multiprocessor has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Resources {
    /// Registers, as they are allocated.
    pub registers: u32,
    /// Bytes of shared memory, what the driver keeps for itself included.
    pub shared_bytes: u32,
    /// Warps.
    pub warps: u32,
    /// Blocks: 1 for a block.
    pub blocks: u32,
}

/// The resources, in the order of [`Resources::each`].
const EACH: [Resource; 4] =
    [Resource::Registers, Resource::SharedMemory, Resource::Warps, Resource::Blocks];

impl Resources {
    fn each(&self) -> [u32; 4] {
        [self.registers, self.shared_bytes, self.warps, self.blocks]
    }

    /// How often `block` fits what is left when `taken` times `of` is gone; for each resource.
    fn left(&self, (taken, of): (u32, Resources), block: Resources) -> [u32; 4] {
        let (mut left, all) = ([0; 4], self.each().into_iter().zip(of.each()));
        for ((left, need), (all, of)) in left.iter_mut().zip(block.each()).zip(all) {
            let free = u64::from(all).saturating_sub(u64::from(taken) * u64::from(of));
            *left = free.checked_div(need.into()).map_or(u32::MAX, |fit| fit as u32);
        }
        left
    }

    /// How many such blocks an empty multiprocessor of these resources holds.
    pub fn holds(&self, block: Resources) -> u32 {
        least(self.left((0, block), block))
    }

    fn max(self, other: Resources) -> Resources {
        Resources {
            registers: self.registers.max(other.registers),
            shared_bytes: self.shared_bytes.max(other.shared_bytes),
            warps: self.warps.max(other.warps),
            blocks: self.blocks.max(other.blocks),
        }
    }
}

fn least(each: [u32; 4]) -> u32 {
    each.into_iter().min().unwrap_or(0)
}

/// So many blocks of one kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demand {
    /// Name of the kernel, for errors.
    pub kernel: &'static str,
    /// Blocks that must be resident at once.
    pub blocks: u32,
    /// What each of them takes.
    pub block: Resources,
    /// Whether the kernel leaves the device and is launched again, beside others that came meanwhile.
    pub relaunched: bool,
}

/// Why blocks may find no room on a device, whatever the order in which it places them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{blocks} blocks of kernel {kernel} may not become resident beside {beside} blocks of other kernels: in \
     the worst placement there is room for {fit} on the device's {multiprocessors} multiprocessors (a block \
     takes {needed} {resource}, another kernel's block up to {taken}, a multiprocessor has {of}); launch \
     fewer channels or fewer threads a channel, or terminate another kernel first"
)]
pub struct Crowded {
    /// The kernel whose blocks may find no room: the one to be launched, or one that is to be launched
    /// again beside it.
    pub kernel: &'static str,
    /// Its blocks.
    pub blocks: u32,
    /// How many of them have room in the worst placement of the others.
    pub fit: u32,
    /// Blocks of the other kernels.
    pub beside: u32,
    /// Multiprocessors of the device.
    pub multiprocessors: u32,
    /// What a multiprocessor runs short of first.
    pub resource: Resource,
    /// How much of it a block of the kernel takes.
    pub needed: u32,
    /// How much of it the largest of the other kernels' blocks takes.
    pub taken: u32,
    /// How much of it a multiprocessor has.
    pub of: u32,
}

/// The kernels that a device has room reserved for, whoever launched them in this process.
#[derive(Clone, Debug)]
pub struct Occupancy(Arc<Device>);

#[derive(Debug)]
struct Device {
    multiprocessors: u32,
    each: Resources,
    reserved: Mutex<Vec<Reserved>>,
}

#[derive(Debug)]
struct Reserved {
    demand: Demand,
    /// Its blocks were seen on the device, and stay until it ends.
    stays: bool,
    reservation: u64,
}

impl PartialEq for Occupancy {
    /// Whether they are of the same device.
    fn eq(&self, other: &Occupancy) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Occupancy {}

impl Occupancy {
    /// An empty device of so many multiprocessors with these resources each.
    pub fn new(multiprocessors: u32, each: Resources) -> Occupancy {
        Occupancy(Arc::new(Device { multiprocessors, each, reserved: Mutex::default() }))
    }

    /// How many such blocks the device holds when it is empty.
    #[cfg_attr(not(feature = "cuda"), allow(dead_code))]
    pub fn holds(&self, block: Resources) -> u32 {
        self.0.each.holds(block).saturating_mul(self.0.multiprocessors)
    }

    /// Whether no room is reserved.
    #[cfg(any(test, feature = "quirks"))]
    pub fn is_empty(&self) -> bool {
        lock(&self.0.reserved).is_empty()
    }

    /// The block, if a multiprocessor holds at most so many of it; else with more registers.
    #[cfg_attr(not(feature = "cuda"), allow(dead_code))]
    pub fn at_most(&self, most: u32, block: Resources) -> Resources {
        let each = self.0.each;
        match each.holds(block) > most {
            true => Resources { registers: each.registers / (most + 1) + 1, ..block },
            false => block,
        }
    }

    /// The block, taking all shared memory of a multiprocessor.
    #[cfg_attr(not(feature = "cuda"), allow(dead_code))]
    pub fn with_all_shared(&self, block: Resources) -> Resources {
        Resources { shared_bytes: self.0.each.shared_bytes, ..block }
    }

    /// Reserves room for a kernel, if all its blocks become resident whatever the device does, and if
    /// the kernels that are still to be placed, or to be launched again, do so beside it.
    pub fn reserve(&self, demand: Demand) -> Result<Reservation, Crowded> {
        let mut reserved = lock(&self.0.reserved);
        self.0.room(demand, reserved.iter().map(|r| r.demand))?;
        for waiting in reserved.iter().filter(|r| !r.stays) {
            let others = reserved.iter().filter(|r| r.reservation != waiting.reservation);
            let others = others.map(|r| r.demand).chain([demand]);
            self.0.room(waiting.demand, others)?;
        }
        let reservation = reserved.iter().map(|r| r.reservation).max().map_or(0, |last| last + 1);
        reserved.push(Reserved { demand, stays: false, reservation });
        Ok(Reservation { of: self.clone(), reservation })
    }
}

impl Device {
    /// Whether all blocks of `demand` have room beside the blocks of `others`, however these lie.
    fn room(
        &self,
        demand: Demand,
        others: impl Iterator<Item = Demand> + Clone,
    ) -> Result<(), Crowded> {
        let block = demand.block;
        let places = u64::from(self.each.holds(block)) * u64::from(self.multiprocessors);
        let beside = others.clone().map(|other| u64::from(other.blocks)).sum::<u64>();
        let wanted = u64::from(demand.blocks);
        let lost = self.lost_by_each(block, others.clone());
        if wanted + lost <= places {
            return Ok(());
        }
        let largest = others.fold(Resources::default(), |most, other| most.max(other.block));
        let fit = places.saturating_sub(lost.min(self.lost_by_largest(block, largest, beside)));
        if wanted <= fit {
            return Ok(());
        }
        // The resource of which one block of the others leaves least.
        let left = self.each.left((1, largest), block);
        let short = (0..left.len()).min_by_key(|i| left[*i]).unwrap_or(0);
        Err(Crowded {
            kernel: demand.kernel,
            blocks: demand.blocks,
            fit: fit as u32,
            beside: beside.try_into().unwrap_or(u32::MAX),
            multiprocessors: self.multiprocessors,
            resource: EACH[short],
            needed: block.each()[short],
            taken: largest.each()[short],
            of: self.each.each()[short],
        })
    }

    /// A bound of the places for `block` that the others can take: each of their blocks takes as many as
    /// it has the resources of, rounded up. Places that several blocks take in common are not fewer,
    /// since a sum that is rounded up is no more than what is rounded up and then summed.
    fn lost_by_each(&self, block: Resources, others: impl Iterator<Item = Demand>) -> u64 {
        let most = self.each.holds(block);
        others.fold(0, |lost, other| {
            let each = other.block.each().into_iter().zip(block.each());
            let places =
                |(taken, need): (u32, u32)| if need == 0 { 0 } else { taken.div_ceil(need) };
            let one = each.map(places).max().unwrap_or(0).min(most);
            lost + u64::from(one) * u64::from(other.blocks)
        })
    }

    /// Another bound: the most places for `block` that `count` blocks can take if each is as large as
    /// `largest`. A multiprocessor with some number of them has lost a number of places; mixing two
    /// such numbers so that all blocks are placed takes the most.
    fn lost_by_largest(&self, block: Resources, largest: Resources, count: u64) -> u64 {
        let all = self.each.holds(block);
        let lost = |n: u32| u64::from(all - all.min(least(self.each.left((n, largest), block))));
        let (most, of) = (self.each.blocks, u64::from(self.multiprocessors));
        let count = count.min(u64::from(most) * of);
        let mut worst = 0;
        for few in (0..=most).filter(|few| u64::from(*few) * of <= count) {
            for many in (few..=most).filter(|many| u64::from(*many) * of >= count) {
                let (a, b) = (u64::from(few) * of, u64::from(many) * of);
                let mixed = match b - a {
                    0 => lost(few) * of,
                    between => (lost(few) * (b - count) + lost(many) * (count - a)) * of / between,
                };
                worst = worst.max(mixed);
            }
        }
        worst
    }
}

/// Room on the device, given back when dropped.
#[derive(Debug)]
pub struct Reservation {
    of: Occupancy,
    reservation: u64,
}

impl Reservation {
    /// The device.
    pub(crate) fn device(&self) -> &Occupancy {
        &self.of
    }

    /// The kernel's blocks are on the device. If it is not launched again, they stay there, whatever is
    /// launched beside them.
    pub(crate) fn placed(&self) {
        for reserved in
            lock(&self.of.0.reserved).iter_mut().filter(|r| r.reservation == self.reservation)
        {
            reserved.stays = !reserved.demand.relaunched;
        }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        lock(&self.of.0.reserved).retain(|reserved| reserved.reservation != self.reservation);
    }
}

#[cfg(test)]
mod tests;
