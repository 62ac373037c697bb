//! The payload arena from the host's side: explicit copies through pinned staging, off the path of
//! messages.

use crate::deadline::Deadline;
use crate::error::PayloadError;
use crate::resident::Resident;
use ring_device::{Kernel, Word};

impl<K: Kernel> Resident<K> {
    /// Bytes of the payload arena.
    pub fn payload_bytes(&self) -> usize {
        self.shared().region().payload_bytes()
    }

    /// Copies words into the payload arena, at `offset` bytes. A driver call for each 64 KiB; the
    /// kernel runs on. Send the message that names them afterwards.
    pub fn write_payload<T: Word>(
        &mut self,
        offset: u64,
        words: &[T],
        deadline: impl Into<Deadline>,
    ) -> Result<(), PayloadError> {
        let (deadline, bytes) = (deadline.into(), bytemuck::cast_slice::<T, u8>(words));
        self.check_payload(offset, bytes.len(), deadline)?;
        if bytes.is_empty() {
            return Ok(()); // there may be no staging
        }
        let (staging, mut to) =
            (self.shared().region().staging(), self.shared().region().payload() + offset);
        for part in bytes.chunks(staging.bytes.max(1)) {
            // SAFETY: the part fits the staging, which belongs to this kernel; `&mut self` lets
            // nobody else use it, and earlier copies are over.
            unsafe { staging.host.as_ptr().copy_from_nonoverlapping(part.as_ptr(), part.len()) };
            // SAFETY: staging and the part of the arena, both in the region, which stays until the
            // kernel's run state, copies included, is over; checked to be inside.
            unsafe { self.shared().running().copy_in(to, staging, part.len(), deadline) }?;
            to += part.len() as u64;
        }
        Ok(())
    }

    /// Copies words out of the payload arena, from `offset` bytes on. What a handler wrote is there
    /// once its answer was received.
    pub fn read_payload<T: Word>(
        &mut self,
        offset: u64,
        words: &mut [T],
        deadline: impl Into<Deadline>,
    ) -> Result<(), PayloadError> {
        let (deadline, bytes) = (deadline.into(), bytemuck::cast_slice_mut::<T, u8>(words));
        self.check_payload(offset, bytes.len(), deadline)?;
        if bytes.is_empty() {
            return Ok(()); // there may be no staging
        }
        let (staging, mut from) =
            (self.shared().region().staging(), self.shared().region().payload() + offset);
        for part in bytes.chunks_mut(staging.bytes.max(1)) {
            // SAFETY: as in `write_payload`.
            unsafe { self.shared().running().copy_out(staging, from, part.len(), deadline) }?;
            // SAFETY: the copy has ended, and filled as much of the staging.
            unsafe { staging.host.as_ptr().copy_to_nonoverlapping(part.as_mut_ptr(), part.len()) };
            from += part.len() as u64;
        }
        Ok(())
    }

    /// Checks the range, and that no earlier copy still uses the staging.
    fn check_payload(&self, offset: u64, bytes: usize, end: Deadline) -> Result<(), PayloadError> {
        self.shared().check()?;
        let arena = self.payload_bytes();
        if offset.checked_add(bytes as u64).is_none_or(|end| end > arena as u64) {
            return Err(PayloadError::OutOfBounds { offset, bytes, arena });
        }
        if !offset.is_multiple_of(4) {
            return Err(PayloadError::Unaligned { offset });
        }
        self.shared().running().settle(end)
    }
}
