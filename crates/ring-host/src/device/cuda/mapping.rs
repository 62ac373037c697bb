//! Pages of the process's own, some of which are moved side by side. Where a page lies in the machine's memory stays as
//! it is when its address changes.

use crate::device::pages::PAGE;
use crate::error::DriverError;
use std::ptr::NonNull;

/// How a page is moved: over the one that is there.
const MOVE: i32 = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;

/// Anonymous pages, unmapped when this is dropped.
#[derive(Debug)]
pub(super) struct Mapping {
    at: NonNull<u8>,
    pages: usize,
}

impl Mapping {
    /// So many pages, zeroed.
    pub fn new(pages: usize) -> Result<Mapping, DriverError> {
        let (access, kind) =
            (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        let bytes = pages.saturating_mul(PAGE);
        // SAFETY: a mapping at a place of the system's choice.
        let at = unsafe { libc::mmap(std::ptr::null_mut(), bytes, access, kind, -1, 0) };
        match NonNull::new(at.cast::<u8>()) {
            Some(first) if at != libc::MAP_FAILED => Ok(Mapping { at: first, pages }),
            _ => Err(DriverError::last("mmap")),
        }
    }

    /// Asks for pages from `first` on that are no parts of larger ones.
    pub fn prefer_small_pages(&self, first: usize) {
        let (at, bytes) = (self.page(first), (self.pages - first) * PAGE);
        // SAFETY: pages of ours; it changes nothing of what is in them.
        let _ = unsafe { libc::madvise(at.as_ptr().cast(), bytes, libc::MADV_NOHUGEPAGE) };
    }

    /// A page, from the first, 0, on.
    pub fn page(&self, page: usize) -> NonNull<u8> {
        assert!(page < self.pages, "page {page} of {}", self.pages);
        // SAFETY: inside the mapping.
        unsafe { self.at.add(page * PAGE) }
    }

    /// How many there are.
    pub fn pages(&self) -> usize {
        self.pages
    }

    /// Keeps the pages mapped. They go back by [`unmap`].
    pub fn keep(mut self) {
        self.pages = 0;
    }

    /// Moves pages that lie from `end` on before it: each pair names one, and the one whose place it takes. Then unmaps all
    /// that lies from `end` on.
    ///
    /// # Panics
    /// A page that is not where it is said to be, or is named twice.
    pub fn pack(mut self, end: usize, moves: &[(usize, usize)]) -> Result<Mapping, DriverError> {
        let mut named = vec![false; self.pages];
        for (from, onto) in moves {
            assert!(*onto < end && end <= *from, "page {from} onto {onto} of {end}");
            for page in [*from, *onto] {
                assert!(!std::mem::replace(&mut named[page], true), "page {page} is named twice");
            }
        }
        let (mut ours, mut done) = (vec![true; self.pages], Ok(()));
        // The system leaves an empty page where one was, if it can: else other threads may map something there.
        let mut leave = libc::MREMAP_DONTUNMAP;
        for (from, onto) in moves {
            let [page, place] = [*from, *onto].map(|page| self.page(page));
            // SAFETY: pages of ours to which nothing refers.
            done = unsafe { remap(page, place, MOVE | leave) };
            if done.is_err() && leave != 0 {
                leave = 0;
                // SAFETY: as above: a flag that the system does not know it refuses before it does anything.
                done = unsafe { remap(page, place, MOVE) };
            }
            if done.is_err() {
                ours[*onto] = false; // it is not known whether it is still mapped
                break;
            }
            ours[*from] = leave != 0;
        }
        let end = if done.is_ok() { end } else { 0 };
        let behind: Vec<usize> = (end..self.pages).filter(|page| ours[*page]).collect();
        for run in behind.chunk_by(|page, next| page + 1 == *next) {
            // SAFETY: ours, and nothing refers to them; the mapping ends before them from here on.
            unsafe { unmap(self.page(run[0]), run.len() * PAGE) };
        }
        self.pages = end;
        done.map(|()| self)
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        if self.pages > 0 {
            // SAFETY: mapped in `new`, all of it still ours, and nothing refers to it.
            unsafe { unmap(self.at, self.pages * PAGE) };
        }
    }
}

/// Moves a page.
///
/// # Safety
/// Both are pages of the process's own, and nothing refers to them.
unsafe fn remap(page: NonNull<u8>, onto: NonNull<u8>, how: i32) -> Result<(), DriverError> {
    let (from, onto) = (page.as_ptr().cast(), onto.as_ptr());
    // SAFETY: the caller's promise.
    let at = unsafe { libc::mremap(from, PAGE, PAGE, how, onto) };
    if at == libc::MAP_FAILED { Err(DriverError::last("mremap")) } else { Ok(()) }
}

/// Unmaps pages.
///
/// # Safety
/// They were mapped by a [`Mapping`], and nothing refers to them any more.
pub(super) unsafe fn unmap(at: NonNull<u8>, bytes: usize) {
    // SAFETY: the caller's promise.
    let _ = unsafe { libc::munmap(at.as_ptr().cast(), bytes) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Seek, SeekFrom};

    /// The first word of a page.
    fn word(mapping: &Mapping, page: usize) -> NonNull<usize> {
        mapping.page(page).cast()
    }

    /// Pages of which each begins with its number.
    fn numbered(mapping: Mapping) -> Mapping {
        for page in 0..mapping.pages() {
            // SAFETY: inside the page, which is ours.
            unsafe { word(&mapping, page).write(page) };
        }
        mapping
    }

    /// What pages begin with.
    fn numbers(mapping: &Mapping) -> Vec<usize> {
        // SAFETY: inside the page, which is ours.
        (0..mapping.pages()).map(|page| unsafe { word(mapping, page).read() }).collect()
    }

    /// Where pages lie in the machine's memory; zeros for who may not know, or less.
    fn places(mapping: &Mapping) -> Vec<u64> {
        let Ok(mut file) = std::fs::File::open("/proc/self/pagemap") else { return Vec::new() };
        let mut place = |page| -> std::io::Result<u64> {
            let (at, mut entry) = (mapping.page(page).addr().get() / PAGE * 8, [0; 8]);
            file.seek(SeekFrom::Start(at as u64))?;
            file.read_exact(&mut entry)?;
            Ok(u64::from_le_bytes(entry) & ((1 << 55) - 1))
        };
        (0..mapping.pages()).map_while(|page| place(page).ok()).collect()
    }

    /// Whether something is mapped there.
    fn is_mapped(at: usize) -> bool {
        let (at, mut seen) = (std::ptr::without_provenance_mut(at), 0);
        // SAFETY: it asks for an address, and has room for one page's answer.
        unsafe { libc::mincore(at, PAGE, &mut seen) == 0 }
    }

    /// Which page lies where in the end.
    fn packed(end: usize, moves: &[(usize, usize)]) -> Vec<usize> {
        let mut pages: Vec<usize> = (0..end).collect();
        moves.iter().for_each(|(from, onto)| pages[*onto] = *from);
        pages
    }

    #[test]
    fn pages_keep_what_is_in_them_and_where_they_lie() {
        let in_order: Vec<_> = (0..20).map(|k| (50 + 2 * k, 2 * k)).collect();
        let shuffled: Vec<_> = (0..47).map(|k| (50 + k * 37 % 47, k * 10 % 47)).collect();
        let side_by_side: Vec<_> = (0..10).map(|k| (60 + k, 5 + k)).collect();
        for moves in [in_order, shuffled, side_by_side, vec![(96, 0)], Vec::new()] {
            let mapping = numbered(Mapping::new(97).unwrap());
            let before = places(&mapping);
            let mapping = mapping.pack(50, &moves).unwrap();
            let expected = packed(50, &moves);
            assert_eq!(numbers(&mapping), expected);
            let after = places(&mapping);
            assert!(after.iter().zip(expected).all(|(place, page)| *place == before[page]));
        }
    }

    #[test]
    fn parts_of_large_pages_move_too() {
        const LARGE: usize = 512;
        let mapping = Mapping::new(4 * LARGE).unwrap();
        let (at, bytes) = (mapping.page(0).as_ptr().cast(), mapping.pages() * PAGE);
        // SAFETY: pages of ours; it changes nothing of what is in them.
        unsafe { libc::madvise(at, bytes, libc::MADV_HUGEPAGE) };
        let mapping = numbered(mapping);
        mapping.prefer_small_pages(LARGE);
        let moves: Vec<_> = (0..LARGE).map(|k| (2 * LARGE + 2 * k, 2 * k + 1)).collect();
        let before = places(&mapping);
        let mapping = mapping.pack(2 * LARGE, &moves).unwrap();
        let expected = packed(2 * LARGE, &moves);
        assert_eq!(numbers(&mapping), expected);
        let after = places(&mapping);
        assert!(after.iter().zip(expected).all(|(place, page)| *place == before[page]));
    }

    /// Other threads of the process map pages too, perhaps where ours were: then it is tried again.
    #[test]
    fn everything_is_unmapped() {
        let is_clean = || {
            let mapping = numbered(Mapping::new(40).unwrap());
            let mapped = |at: usize| (0..40).filter(move |page| is_mapped(at + page * PAGE));
            let at = mapping.page(0).addr().get();
            let mapping = mapping.pack(10, &[(20, 3), (39, 4), (12, 9), (13, 8)]).unwrap();
            let some = mapped(at).eq(0..10);
            drop(mapping);
            some && mapped(at).count() == 0
        };
        assert!((0..20).any(|_| is_clean()));
    }

    #[test]
    fn pages_that_are_not_there_are_not_moved() {
        for moves in [&[(5, 1), (5, 2)][..], &[(5, 1), (6, 1)], &[(8, 0)], &[(3, 0)], &[(5, 4)]] {
            let pack = || Mapping::new(8).unwrap().pack(4, moves);
            assert!(std::panic::catch_unwind(pack).is_err(), "{moves:?}");
        }
    }
}
