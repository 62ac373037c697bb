//! The payload arena from the host's side: words in mapped memory, or explicit copies through pinned
//! staging; off the path of messages.

use crate::deadline::{Deadline, wait};
use crate::device::CopyKind;
use crate::drive::scheduler::Hold;
use crate::error::{ControlError, PayloadError};
use crate::kernel::core::{Copying, KernelCore};
use crate::kernel::handle::KernelHandle;
use crate::mode::PayloadMemory;
use ring_device::{Kernel, Word};
use ring_shared::atomics::{AtomicU32, Ordering};
use ring_shared::layout::State;

impl<K: Kernel> KernelHandle<K> {
    /// Bytes of the payload arena.
    pub fn payload_bytes(&self) -> usize {
        self.core().device.region().plan.payload_bytes
    }

    /// Where the payload arena lies: `Mapped` or `Device`, never `Auto`
    /// ([`LaunchConfig::payload_memory`](crate::LaunchConfig::payload_memory)).
    pub fn payload_memory(&self) -> PayloadMemory {
        match self.core().device.region().plan.payload_is_mapped() {
            true => PayloadMemory::Mapped,
            false => PayloadMemory::Device,
        }
    }

    /// Writes words into the payload arena, at `offset` bytes; the kernel runs on. Send the message that names
    /// them afterwards.
    ///
    /// An arena [in mapped memory](Self::payload_memory) is written in place, without a driver call or a wait:
    /// the deadline does not matter. A handler that reads meanwhile finds for each word the old one or the new one.
    ///
    /// Into one in device memory the words are copied, by a driver call for each 64 KiB.
    /// After a timeout they may be the old ones, the new ones, or some of each, and the copy may still be
    /// under way. Then what follows waits for it, so that it lands on no result: `activate`, and the next
    /// reads and writes of payload and state, wait until their deadline; no message is taken before it has
    /// landed ([`TrySendError::Writing`](crate::TrySendError::Writing), for which `send` waits).
    pub fn write_payload<T: Word>(
        &mut self,
        offset: u64,
        words: &[T],
        deadline: impl Into<Deadline>,
    ) -> Result<(), PayloadError> {
        self.core().write_payload(offset, words, deadline)
    }

    /// Reads words of the payload arena, from `offset` bytes on. What a handler wrote is there
    /// once its answer was received. As for [`write_payload`](Self::write_payload), that is a copy only where the
    /// arena is in device memory.
    pub fn read_payload<T: Word>(
        &mut self,
        offset: u64,
        words: &mut [T],
        deadline: impl Into<Deadline>,
    ) -> Result<(), PayloadError> {
        self.core().read_payload(offset, words, deadline)
    }
}

impl KernelCore {
    /// See [`KernelHandle::write_payload`].
    pub fn write_payload<T: Word>(
        &self,
        offset: u64,
        words: &[T],
        deadline: impl Into<Deadline>,
    ) -> Result<(), PayloadError> {
        let bytes = size_of_val(words);
        if let Some(cells) = self.mapped_words(offset, bytes)? {
            for (cell, word) in cells.iter().zip(bytemuck::cast_slice(words)) {
                // SYNC: the message that is sent next releases it, by the `store_whole` of its stamps and control
                // atom, to the channel, which acquires by the loads of its looks at them: `look` of a kernel that
                // uses its payload, `look_again`, and `poll` of a stream.
                cell.store(*word, Ordering::Relaxed);
            }
            return Ok(());
        }
        let deadline = deadline.into();
        let copying = self.copying(deadline)?;
        let to = self.device.region().payload() + offset;
        self.copy_in(&copying, to, bytemuck::cast_slice::<T, u8>(words), deadline)
    }

    /// See [`KernelHandle::read_payload`].
    pub fn read_payload<T: Word>(
        &self,
        offset: u64,
        words: &mut [T],
        deadline: impl Into<Deadline>,
    ) -> Result<(), PayloadError> {
        let bytes = size_of_val(words);
        if let Some(cells) = self.mapped_words(offset, bytes)? {
            for (cell, word) in cells.iter().zip(bytemuck::cast_slice_mut(words)) {
                // SYNC: a channel fences between what its handler stores and the answer (`handle_taken`,
                // `answer_window`, `commit` of a stream). Who takes the answer acquires it, by `load_whole` of its
                // stamps or `observe` of the control atom (`ring_shared::Inbox`), and is this thread or
                // has told it since: there is nothing left for a fence here.
                *word = cell.load(Ordering::Relaxed);
            }
            return Ok(());
        }
        let deadline = deadline.into();
        let copying = self.copying(deadline)?;
        let from = self.device.region().payload() + offset;
        self.copy_out(&copying, from, bytemuck::cast_slice_mut::<T, u8>(words), deadline)
    }

    /// Copies bytes to `to` in the kernel's device memory, where there is room for whole words of them.
    /// There is staging, which is the caller's.
    pub fn copy_in(
        &self,
        _copying: &Copying<'_>,
        mut to: u64,
        bytes: &[u8],
        deadline: Deadline,
    ) -> Result<(), PayloadError> {
        if bytes.is_empty() {
            return Ok(()); // there may be no staging
        }
        let _between = self.between_launches(deadline)?;
        let (staging, room) = self.device.region().staging();
        for part in bytes.chunks(room) {
            let whole = part.len().next_multiple_of(4);
            // SAFETY: the part fits the staging, which belongs to this kernel and is whole words; who has
            // `Copying` alone uses it, and earlier copies are over.
            unsafe {
                staging.as_ptr().copy_from_nonoverlapping(part.as_ptr(), part.len());
                staging.as_ptr().add(part.len()).write_bytes(0, whole - part.len());
            }
            self.device.copy(CopyKind::HostToDevice, to, whole)?;
            let copied = self.device.copied(part.len(), deadline);
            copied.inspect_err(|_| self.device.writes_on())?;
            to += part.len() as u64;
        }
        Ok(())
    }

    /// Copies bytes from `from` in the kernel's device memory; as [`copy_in`](Self::copy_in).
    pub fn copy_out(
        &self,
        _copying: &Copying<'_>,
        mut from: u64,
        bytes: &mut [u8],
        deadline: Deadline,
    ) -> Result<(), PayloadError> {
        if bytes.is_empty() {
            return Ok(()); // there may be no staging
        }
        let _between = self.between_launches(deadline)?;
        let (staging, room) = self.device.region().staging();
        for part in bytes.chunks_mut(room) {
            let whole = part.len().next_multiple_of(4);
            self.device.copy(CopyKind::DeviceToHost, from, whole)?;
            self.device.copied(part.len(), deadline)?;
            // SAFETY: the copy has ended, and filled as much of the staging.
            unsafe { staging.as_ptr().copy_to_nonoverlapping(part.as_mut_ptr(), part.len()) };
            from += part.len() as u64;
        }
        Ok(())
    }

    /// Checks the range; its words if the arena is in mapped memory. Else the driver is asked whether the kernel
    /// can still answer.
    fn mapped_words(
        &self,
        offset: u64,
        bytes: usize,
    ) -> Result<Option<&[AtomicU32]>, PayloadError> {
        let words = self.device.region().payload_words();
        match words {
            Some(_) => self.check_status()?,
            None => self.check()?,
        }
        let arena = self.device.region().plan.payload_bytes;
        if offset.checked_add(bytes as u64).is_none_or(|end| end > arena as u64) {
            return Err(PayloadError::OutOfBounds {
                kernel: self.device.name,
                offset,
                bytes,
                arena,
            });
        }
        if !offset.is_multiple_of(4) {
            return Err(PayloadError::Unaligned { offset });
        }
        // Inside the arena, so they fit a `usize`.
        Ok(words.map(|words| &words[offset as usize / 4..][..bytes / 4]))
    }

    /// Waits for a write whose own wait ended early: no handler must meet it.
    pub fn writes_are_over(&self, deadline: Deadline) -> Result<(), ControlError> {
        if self.device.region().staging().1 == 0 {
            return Ok(()); // there is neither payload nor state to write
        }
        self.device.copied(0, deadline).map_err(|error| match error {
            PayloadError::Driver(error) => self.device.device_fault(error).into(),
            PayloadError::Fault(fault) => fault.into(),
            _ => ControlError::Timeout {
                kernel: self.device.name,
                channel: 0,
                asked: State::Active,
                waited: deadline.waited(),
            },
        })
    }

    /// Waits until the kernel rests, if copies cannot be made beside it; it then does until the
    /// result is dropped.
    fn between_launches(&self, end: Deadline) -> Result<Option<Hold<'_>>, PayloadError> {
        let Some(hold) = self.drive.hold() else { return Ok(None) };
        let check = || self.check().map_err(PayloadError::from);
        let look = || Ok(self.drive.rests(&self.device)?.then_some(()));
        match wait(end, self.device.patience, look, check)? {
            Some(()) => Ok(Some(hold)),
            None => Err(PayloadError::Timeout { bytes: 0, waited: end.waited() }),
        }
    }
}
