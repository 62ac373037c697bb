//! Memory taken once when a device is opened, and suballocated to kernels: to free memory
//! while a kernel is resident blocks until that kernel ends (cuMemFree and cuMemFreeHost do).

use crate::device::image::Image;
use crate::device::probe::QuickPages;
use crate::device::{Driver, Mapped};
use crate::error::{ArenaKind, DriverError, DriverReason, LaunchError};
use crate::sync::lock;
use range_alloc::RangeAllocator;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex};

/// Suballocations are multiples of this, so each begins at a line.
const GRANULE: usize = 256;

/// So many bytes, rounded up, if there can be so many.
fn whole_granules(bytes: usize) -> Option<usize> {
    let rounded = bytes.max(1).checked_next_multiple_of(GRANULE);
    rounded.filter(|bytes| *bytes <= isize::MAX as usize)
}

/// A suballocation that could not be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exhausted {
    /// Which memory.
    pub which: ArenaKind,
    /// Bytes asked for.
    pub needed: usize,
    /// Bytes free, perhaps not side by side.
    pub free: usize,
    /// Bytes of the whole arena.
    pub arena: usize,
}

impl Exhausted {
    /// The error for that kernel's launch.
    pub fn of_kernel(self, kernel: &'static str) -> LaunchError {
        let Exhausted { which, needed, free, arena } = self;
        LaunchError::Arena { kernel, which, needed, free, arena }
    }
}

/// An arena: pinned memory, or device memory.
#[derive(Debug)]
pub struct Arena {
    driver: Arc<dyn Driver>,
    /// Where the device sees it.
    device: u64,
    bytes: usize,
    /// Pinned memory; else it is the device's.
    pinned: Option<Mapped>,
    ranges: Mutex<RangeAllocator<usize>>,
    /// Those of the quick pages behind it.
    quick: Mutex<RangeAllocator<usize>>,
}

impl Arena {
    /// An arena of pinned memory.
    pub fn pinned(driver: &Arc<dyn Driver>, bytes: usize) -> Result<Arc<Arena>, DriverError> {
        let mapped = driver.alloc_pinned(bytes)?;
        Ok(Arena::new(driver, mapped.device, bytes, Some(mapped)))
    }

    /// An arena of pinned memory, with quick pages behind it if the device is found to read some sooner; and what was
    /// found.
    pub fn with_quick(
        driver: &Arc<dyn Driver>,
        bytes: usize,
        kernels: &Image,
    ) -> Result<(Arc<Arena>, QuickPages), DriverError> {
        let (mapped, found) = driver.alloc_with_quick(bytes, kernels)?;
        Ok((Arena::new(driver, mapped.device, bytes, Some(mapped)), found))
    }

    /// An arena of device memory.
    pub fn device(driver: &Arc<dyn Driver>, bytes: usize) -> Result<Arc<Arena>, DriverError> {
        let address = if bytes == 0 { 0 } else { driver.alloc_device(bytes)? };
        Ok(Arena::new(driver, address, bytes, None))
    }

    /// An arena of device memory of `least` bytes, or more if a part of `bytes` bytes needs more; and that part.
    pub fn with_room(
        driver: &Arc<dyn Driver>,
        bytes: usize,
        least: usize,
    ) -> Result<(Arc<Arena>, Suballocation), DriverError> {
        let refused = || DriverError {
            call: "allocate",
            code: 0,
            reason: DriverReason::AddressSpace { bytes },
        };
        let whole = whole_granules(bytes).ok_or_else(refused)?;
        let arena = Arena::device(driver, whole.max(least))?;
        let part = arena.alloc(bytes).map_err(|_| refused())?;
        Ok((arena, part))
    }

    fn new(
        driver: &Arc<dyn Driver>,
        device: u64,
        bytes: usize,
        pinned: Option<Mapped>,
    ) -> Arc<Arena> {
        let ranges = Mutex::new(RangeAllocator::new(0..bytes / GRANULE * GRANULE));
        let quick = pinned.map_or(0..0, |mapped| mapped.quick_at()..mapped.all());
        let quick = Mutex::new(RangeAllocator::new(quick));
        Arc::new(Arena { driver: Arc::clone(driver), device, bytes, pinned, ranges, quick })
    }

    /// Whether it stays when the device is reset.
    pub fn stays(&self) -> bool {
        self.pinned.is_some_and(|mapped| mapped.registered)
    }

    /// Bytes in all.
    #[cfg(feature = "metrics")]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Bytes that are free, perhaps not side by side.
    pub fn free(&self) -> usize {
        lock(&self.ranges).total_available()
    }

    /// Allocates a part. It goes back when it is dropped.
    pub fn alloc(self: &Arc<Arena>, bytes: usize) -> Result<Suballocation, Exhausted> {
        let which = if self.pinned.is_some() { ArenaKind::Pinned } else { ArenaKind::Device };
        let refused = |free| Exhausted { which, needed: bytes, free, arena: self.bytes };
        let rounded = whole_granules(bytes).ok_or_else(|| refused(self.bytes))?;
        let range = lock(&self.ranges).allocate_range(rounded);
        let range = range.map_err(|error| refused(error.fragmented_free_length))?;
        Ok(Suballocation { arena: Arc::clone(self), range })
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        // SAFETY: taken from this driver in the constructors; every suballocation holds the arena, so none
        // is left.
        unsafe {
            match self.pinned {
                Some(mapped) => self.driver.free_pinned(mapped),
                None if self.bytes == 0 => {}
                None => self.driver.free_device(self.device, self.bytes),
            }
        }
    }
}

/// A part of an arena, which has it until this is dropped. Leaking it leaks the whole arena.
#[derive(Debug)]
pub struct Suballocation {
    arena: Arc<Arena>,
    range: Range<usize>,
}

impl Suballocation {
    /// Where the device sees it.
    pub fn device(&self) -> u64 {
        self.arena.device + self.range.start as u64
    }

    /// Where the host sees it; `None` for device memory.
    pub fn pinned(&self) -> Option<Mapped> {
        let whole = self.arena.pinned?;
        // SAFETY: the range lies in the arena's memory.
        let host: NonNull<u8> = unsafe { whole.host.add(self.range.start) };
        Some(Mapped { host, device: self.device(), bytes: self.range.len(), quick: 0, ..whole })
    }

    /// Allocates a part of the quick pages of the same arena, if there is room. It goes back when it is dropped.
    pub fn alloc_quick(&self, bytes: usize) -> Option<Suballocation> {
        let range = lock(&self.arena.quick).allocate_range(whole_granules(bytes)?).ok()?;
        Some(Suballocation { arena: Arc::clone(&self.arena), range })
    }

    /// How far behind another part of the same arena it begins.
    pub fn behind(&self, other: &Suballocation) -> usize {
        assert!(Arc::ptr_eq(&self.arena, &other.arena));
        self.range.start - other.range.start
    }
}

impl Drop for Suballocation {
    fn drop(&mut self) {
        let arena = &self.arena;
        let is_quick = self.range.start >= arena.bytes;
        let ranges = if is_quick { &arena.quick } else { &arena.ranges };
        lock(ranges).free_range(self.range.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::cpu::Cpu;

    #[test]
    fn suballocations_come_back_and_never_overlap() {
        let driver: Arc<dyn Driver> = Cpu::open();
        let arena = Arena::pinned(&driver, 1024).unwrap();
        for _ in 0..3 {
            let suballocations: Vec<_> = (0..4).map(|_| arena.alloc(200).unwrap()).collect();
            let mut at: Vec<_> = suballocations.iter().map(Suballocation::device).collect();
            at.sort_unstable();
            assert!(at.windows(2).all(|w| w[1] - w[0] == 256));
            let which = ArenaKind::Pinned;
            let none = Exhausted { which, needed: 1, free: 0, arena: 1024 };
            assert_eq!(arena.alloc(1).unwrap_err(), none);
        }
        for bytes in [1025, usize::MAX] {
            assert_eq!(arena.alloc(bytes).unwrap_err().needed, bytes);
        }
        assert!(arena.alloc(1024).is_ok());
    }

    #[cfg(feature = "quirks")]
    #[test]
    fn quick_pages_are_taken_and_come_back_by_themselves() {
        use crate::device::Quirks;
        let driver: Arc<dyn Driver> = Quirks::of(Cpu::open()).quick_pages().into();
        let (arena, found) = Arena::with_quick(&driver, 1000, &Image::built_in()).unwrap();
        let QuickPages::Used { bytes, .. } = found else { panic!("{found:?}") };
        let part = arena.alloc(700).unwrap();
        assert!(arena.alloc(1).is_err(), "quick pages are no room for others");
        for _ in 0..2 {
            let quick = part.alloc_quick(bytes - 256).unwrap();
            assert_eq!(quick.behind(&part), 4096, "from the next page on");
            assert_eq!(quick.pinned().unwrap().device, part.device() + 4096);
            let rest = part.alloc_quick(1).unwrap();
            assert_eq!(rest.behind(&part), 4096 + bytes - 256);
            assert!(part.alloc_quick(1).is_none() && arena.free() == 0);
        }
        assert!(part.alloc_quick(bytes + 1).is_none() && part.alloc_quick(usize::MAX).is_none());
        drop(part);
        assert!(arena.alloc(768).is_ok());
        let none = Arena::pinned(&driver, 1024).unwrap().alloc(1).unwrap();
        assert!(none.alloc_quick(1).is_none());
    }
}
