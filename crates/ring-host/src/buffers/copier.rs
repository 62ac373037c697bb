//! Copies between the host's memory and buffers, through staging: one behind the other, by a lane that is no kernel's.

use crate::deadline::{Deadline, Patience, wait};
use crate::device::retry::retry;
use crate::device::{Cells, CopyKind, CopyLane, MemoryCopy, RunState, pages};
use crate::error::{BufferError, DriverError};
use crate::memory::arena::{Arena, Suballocation};
use ring_shared::layout::BufferEntry;
use std::ptr::NonNull;
use std::sync::Arc;

/// Bytes of staging, as many as an eighth of what is free of pinned memory holds. Without so much it is pages of its own.
const STAGING: [usize; 3] = [1 << 20, 256 << 10, 64 << 10];

/// Copies of zeros that are begun before it is waited for them.
const ZEROS_AT_ONCE: usize = 64;

/// Host memory that copies go through.
#[derive(Debug)]
struct Staging {
    at: NonNull<u8>,
    bytes: usize,
    /// The pinned memory that it is; else it is pages of its own.
    pinned: Option<Suballocation>,
}

// SAFETY: owned memory; who may touch it is the copier's business.
unsafe impl Send for Staging {}
// SAFETY: as above.
unsafe impl Sync for Staging {}

impl Staging {
    fn new(pinned: Option<&Arc<Arena>>) -> Result<Staging, DriverError> {
        let fits = |arena: &Arc<Arena>, bytes| bytes <= arena.free() / 8;
        for bytes in STAGING {
            let part =
                pinned.filter(|arena| fits(arena, bytes)).and_then(|arena| arena.alloc(bytes).ok());
            if let Some((part, memory)) =
                part.and_then(|part| part.pinned().map(|memory| (part, memory)))
            {
                return Ok(Staging { at: memory.host, bytes, pinned: Some(part) });
            }
        }
        let bytes = STAGING[0];
        Ok(Staging { at: pages::alloc(bytes)?, bytes, pinned: None })
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        if self.pinned.is_none() {
            // SAFETY: taken in `new` with that size, given back once.
            unsafe { pages::free(self.at, self.bytes) };
        }
    }
}

/// Copies one behind the other. Who drops it has seen that none is under way.
#[derive(Debug)]
pub(super) struct Copier {
    lane: Arc<dyn CopyLane>,
    pinned: Option<Arc<Arena>>,
    /// Made for the first copy.
    staging: Option<Staging>,
    patience: Patience,
}

impl Copier {
    pub fn new(lane: Arc<dyn CopyLane>, pinned: Option<Arc<Arena>>, patience: Patience) -> Copier {
        Copier { lane, pinned, staging: None, patience }
    }

    /// Whether a copy may still touch memory.
    pub fn is_running(&self) -> bool {
        self.lane.copies() == RunState::Running
    }

    /// Waits until no copy is under way, also one whose own wait ended early.
    pub fn idle(&self, bytes: usize, deadline: Deadline) -> Result<(), BufferError> {
        let look = || Ok::<_, BufferError>(self.lane.copies().ended()?.then_some(()));
        let done = wait(deadline, self.patience, look, || Ok(()))?;
        done.ok_or_else(|| BufferError::Timeout { bytes, waited: deadline.waited() })
    }

    /// Gives staging back: the next copy takes it anew.
    pub fn give_up_staging(&mut self) {
        if !self.is_running() {
            self.staging = None;
        }
    }

    /// The staging, which no copy uses, when it is there.
    fn staging(&mut self, deadline: Deadline) -> Result<(NonNull<u8>, usize), BufferError> {
        self.idle(0, deadline)?;
        let staging = match self.staging.take() {
            Some(staging) => staging,
            None => Staging::new(self.pinned.as_ref())?,
        };
        let staging = self.staging.insert(staging);
        Ok((staging.at, staging.bytes))
    }

    /// Begins a copy of whole cells from or to the beginning of the staging.
    ///
    /// # Safety
    /// There are so many bytes in the staging and at `device`, which stay until no copy is under way; others write the
    /// latter by such cells only.
    unsafe fn begin(
        &self,
        (kind, cells): (CopyKind, Cells),
        host: NonNull<u8>,
        device: u64,
        bytes: usize,
    ) -> Result<(), DriverError> {
        let copy = MemoryCopy { kind, host, device, bytes, cells };
        // SAFETY: the caller's promise.
        retry(|| unsafe { self.lane.copy(copy) })
    }

    /// Copies whole words to `to`. When it returns they are there, unless the deadline has passed.
    ///
    /// # Safety
    /// There is device memory for so many at `to`, which stays until no copy is under way; others write it by words only.
    pub unsafe fn copy_in(
        &mut self,
        mut to: u64,
        bytes: &[u8],
        deadline: Deadline,
    ) -> Result<(), BufferError> {
        let (staging, room) = self.staging(deadline)?;
        for part in bytes.chunks(room) {
            // SAFETY: the part fits the staging, which no copy uses: `staging` and `idle` have waited for those before, and
            // `&mut self` lets nobody else begin one.
            unsafe { staging.as_ptr().copy_from_nonoverlapping(part.as_ptr(), part.len()) };
            // SAFETY: the caller's promise, and the part fits the staging.
            unsafe { self.begin((CopyKind::HostToDevice, Cells::Words), staging, to, part.len()) }?;
            self.idle(part.len(), deadline)?;
            to += part.len() as u64;
        }
        Ok(())
    }

    /// Copies whole words from `from`.
    ///
    /// # Safety
    /// As for [`copy_in`](Self::copy_in).
    pub unsafe fn copy_out(
        &mut self,
        mut from: u64,
        bytes: &mut [u8],
        deadline: Deadline,
    ) -> Result<(), BufferError> {
        let (staging, room) = self.staging(deadline)?;
        for part in bytes.chunks_mut(room) {
            // SAFETY: the caller's promise, and the part fits the staging, which no copy uses.
            unsafe {
                self.begin((CopyKind::DeviceToHost, Cells::Words), staging, from, part.len())
            }?;
            self.idle(part.len(), deadline)?;
            // SAFETY: the copy has ended, and filled as much of the staging.
            unsafe { staging.as_ptr().copy_to_nonoverlapping(part.as_mut_ptr(), part.len()) };
            from += part.len() as u64;
        }
        Ok(())
    }

    /// Zeroes `bytes` bytes of whole words at `at`.
    ///
    /// # Safety
    /// As for [`copy_in`](Self::copy_in).
    pub unsafe fn zero(
        &mut self,
        mut at: u64,
        bytes: usize,
        deadline: Deadline,
    ) -> Result<(), BufferError> {
        let (staging, room) = self.staging(deadline)?;
        // SAFETY: all of the staging, which no copy uses.
        unsafe { staging.as_ptr().write_bytes(0, room) };
        let (mut left, mut begun) = (bytes, 0);
        while left > 0 {
            let part = left.min(room);
            // SAFETY: the caller's promise, and the part fits the staging, which stays as it is.
            unsafe { self.begin((CopyKind::HostToDevice, Cells::Words), staging, at, part) }?;
            (at, left, begun) = (at + part as u64, left - part, begun + 1);
            if begun % ZEROS_AT_ONCE == 0 {
                self.idle(bytes, deadline)?;
            }
        }
        self.idle(bytes, deadline)
    }

    /// Writes an entry of a table: where a buffer lies, its bytes, and its generation with what marks it; 0 is none's.
    ///
    /// # Safety
    /// `to` is an entry in device memory, which stays until no copy is under way, and is written by this copier only.
    pub unsafe fn write_entry(
        &mut self,
        to: u64,
        place: (u64, u64),
        generation: u64,
        deadline: Deadline,
    ) -> Result<(), BufferError> {
        const BYTES: usize = size_of::<BufferEntry>();
        let (staging, _) = self.staging(deadline)?;
        // SAFETY: room for an entry, aligned to whole lines at least, of integers that were written at its allocation; no
        // copy uses it.
        unsafe { staging.cast::<BufferEntry>().as_ref() }.set(place, generation);
        // SAFETY: the caller's promise.
        unsafe { self.begin((CopyKind::HostToDevice, Cells::Atoms), staging, to, BYTES) }?;
        self.idle(BYTES, deadline)
    }
}
