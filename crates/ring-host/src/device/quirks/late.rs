//! Copies that land late and torn, as a copy engine's may: one behind the other, the cells of each in any
//! order. Time passes for them with every call, so the same calls see the same course again.

use crate::device::{Cells, CopyLane, MemoryCopy};
use crate::error::DriverError;
use ring_shared::atomics::Atom;
use std::collections::VecDeque;
use std::ops::Range;

/// Parts that a copy is cut into at most.
const MOST_PARTS: u64 = 3;

/// Calls that a part usually waits for, at most.
const USUAL: u64 = 4;

/// The same for one part of [`RARE`]: more than a wait without time looks.
const LONG: u64 = 400;
const RARE: u64 = 16;

/// Some cells of a copy, by number.
#[derive(Debug)]
struct Part {
    cells: Range<usize>,
    /// Calls that come before it.
    calls: u64,
}

#[derive(Debug)]
struct Copy {
    whole: MemoryCopy,
    /// The last is the next to land.
    parts: Vec<Part>,
}

// SAFETY: addresses; the ranges stay until the copy is over, by the promise to `CopyLane::copy`, and
// whoever lands a part is one at a time (`Late` is behind a lock).
unsafe impl Send for Copy {}

/// The copies of one place that have not landed.
#[derive(Debug)]
pub(super) struct Late {
    random: u64,
    copies: VecDeque<Copy>,
    failed: Option<DriverError>,
}

impl Late {
    pub fn new(seed: u64) -> Late {
        Late { random: seed, copies: VecDeque::new(), failed: None }
    }

    /// Splitmix64.
    fn below(&mut self, most: u64) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let n = (self.random ^ self.random >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let n = (n ^ n >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (n ^ n >> 31) % most
    }

    /// Puts a copy behind those before it.
    pub fn begin(&mut self, copy: MemoryCopy) {
        let mut rest = 0..copy.bytes / size_of_cell(copy.cells);
        let (mut parts, most) = (Vec::new(), 1 + self.below(MOST_PARTS));
        while !rest.is_empty() {
            let length = match parts.len() as u64 + 1 < most {
                true => 1 + self.below(rest.len() as u64) as usize,
                false => rest.len(),
            };
            let most = if self.below(RARE) == 0 { LONG } else { USUAL };
            let part = Part { cells: rest.start..rest.start + length, calls: self.below(most) };
            rest.start = part.cells.end;
            let at = self.below(parts.len() as u64 + 1) as usize;
            parts.insert(at, part);
        }
        self.copies.push_back(Copy { whole: copy, parts });
    }

    /// A call was made: what is due lands, by the device underneath.
    pub fn pass(&mut self, inner: &dyn CopyLane) {
        while let Some(copy) = self.copies.front_mut() {
            while let Some(part) = copy.parts.last_mut() {
                if part.calls > 0 {
                    part.calls -= 1;
                    return;
                }
                if let Err(error) = land(copy.whole, part.cells.clone(), inner) {
                    self.failed.get_or_insert(error);
                }
                copy.parts.pop();
            }
            self.copies.pop_front();
        }
    }

    /// All that is under way lands.
    pub fn land_all(&mut self, inner: &dyn CopyLane) {
        for part in self.copies.iter_mut().flat_map(|copy| &mut copy.parts) {
            part.calls = 0;
        }
        self.pass(inner);
    }

    /// Nothing lands any more: the device has faulted.
    pub fn give_up(&mut self) {
        self.copies.clear();
    }

    pub fn is_under_way(&self) -> bool {
        !self.copies.is_empty()
    }

    /// Why a copy could not be made: the caller learns of it only afterwards.
    pub fn failed(&self) -> Option<&DriverError> {
        self.failed.as_ref()
    }
}

fn size_of_cell(cells: Cells) -> usize {
    match cells {
        Cells::Atoms => size_of::<Atom>(),
        Cells::Words => 4,
    }
}

/// Copies some cells.
fn land(copy: MemoryCopy, part: Range<usize>, inner: &dyn CopyLane) -> Result<(), DriverError> {
    let each = size_of_cell(copy.cells);
    let (at, bytes) = (part.start * each, part.len() * each);
    // SAFETY: whole cells of ranges that stay until this place is over, which it is not before they have
    // landed: the promise to the quirky place's `copy`.
    unsafe {
        let host = copy.host.add(at);
        inner.copy(MemoryCopy { host, device: copy.device + at as u64, bytes, ..copy })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::{CopyKind, RunState, Sealed};
    use std::ptr::NonNull;

    /// A device whose memory is the host's.
    #[derive(Debug)]
    struct Memory;

    impl Sealed for Memory {}

    impl CopyLane for Memory {
        fn copies(&self) -> RunState {
            RunState::Ended
        }
        unsafe fn copy(&self, copy: MemoryCopy) -> Result<(), DriverError> {
            let (to, from) = copy.ends();
            // SAFETY: both lie in arrays of the test, by the same offsets.
            unsafe { to.copy_from_nonoverlapping(from, copy.bytes) };
            Ok(())
        }
    }

    /// What the destination of two copies of 64 words holds after each call.
    fn course(seed: u64) -> Vec<[u32; 64]> {
        let (first, second, mut out) = ([1u32; 64], [2u32; 64], [0u32; 64]);
        let at = out.as_mut_ptr().expose_provenance() as u64;
        let (mut late, mut seen) = (Late::new(seed), Vec::new());
        for from in [&first, &second] {
            late.begin(MemoryCopy {
                kind: CopyKind::HostToDevice,
                host: NonNull::from(from).cast(),
                device: at,
                bytes: 256,
                cells: Cells::Words,
            });
        }
        while late.is_under_way() {
            late.pass(&Memory);
            // SAFETY: the array, through the pointer that writes it too.
            seen.push(unsafe {
                std::ptr::with_exposed_provenance::<[u32; 64]>(at as usize).read()
            });
            assert!(seen.len() < 10_000, "it never lands");
        }
        seen
    }

    #[test]
    fn copies_land_late_torn_and_one_behind_the_other() {
        let courses: Vec<_> = (0..200).map(course).collect();
        let mut torn = 0;
        for (seed, seen) in courses.iter().enumerate() {
            assert_eq!(*seen, course(seed as u64), "the same seed, the same course");
            assert_eq!(seen.last(), Some(&[2; 64]));
            for now in seen {
                let has = |n| now.contains(&n);
                assert!(!(has(0) && has(2)), "the second began before the first had ended");
                torn += u32::from(has(0) && has(1) || has(1) && has(2));
            }
        }
        let calls: Vec<_> = courses.iter().map(Vec::len).collect();
        assert!(torn > 0, "no copy was seen half way");
        assert!(calls.iter().any(|calls| *calls > 66), "none outlasts a wait without time");
    }

    #[test]
    fn all_can_be_made_to_land() {
        let (from, mut to) = ([7u32; 64], [0u32; 64]);
        let mut late = Late::new(3);
        let copy = MemoryCopy {
            kind: CopyKind::DeviceToHost,
            host: NonNull::from(&mut to).cast(),
            device: from.as_ptr().expose_provenance() as u64,
            bytes: 256,
            cells: Cells::Words,
        };
        late.begin(copy);
        late.begin(MemoryCopy { bytes: 0, ..copy });
        late.land_all(&Memory);
        assert!(!late.is_under_way() && late.failed().is_none());
        assert_eq!(to, from);
    }
}
