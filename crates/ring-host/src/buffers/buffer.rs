//! A buffer as a program has it.

use super::table::{Buffers, Taken};
use crate::deadline::Deadline;
use crate::error::BufferError;
use crate::runtime::Runtime;
use ring_shared::{BufferRef, Element};
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

/// How long it may take to make a buffer.
const MADE: Duration = Duration::from_secs(10);

/// Typed device memory that kernels of a runtime and the host share. It outlives kernels, and messages name it, or a part of
/// it, by a [`BufferRef`], of which a handler makes a view. A kernel may view buffers if it is declared with
/// `uses_payload: true`.
///
/// ```
/// use ring_host::{Device, Runtime};
/// use std::time::Duration;
///
/// let second = Duration::from_secs(1);
/// let host = Runtime::open(Device::Cpu)?;
/// let buffer = host.buffer::<f32>(1000)?;
/// buffer.upload(10, &[1.5, 2.5], second)?;
/// let mut back = [0.0; 3];
/// buffer.download(9, &mut back, second)?;
/// assert_eq!(back, [0.0, 1.5, 2.5]);
/// let part = buffer.reference().slice(10..12).unwrap(); // 16 bytes, for a message
/// assert_eq!(part.len(), 2);
/// # Ok::<(), ring_host::Error>(())
/// ```
///
/// # Giving it back
/// Dropping it calls no driver, and frees nothing at once. Every request that was sent before the drop can still be handled: the
/// runtime remembers, for each channel of each of its kernels that may view buffers, the last request that was sent. When the
/// host has received the answers to all of these, or the kernel has left the device, the reference is made invalid: from
/// then on every view of it is refused. The memory is used for something else when the answers to what was sent before that
/// moment are received too, since their handlers may have made a view in time. So a reference to a buffer that was given back is
/// refused from the moment its memory can be used for something else.
///
/// A kernel with ports answers nothing by itself, so it holds all buffers that were given back while it was there until it
/// has ended. Whoever sends without receiving the answers holds them too. Of a kernel whose first block answers
/// (`Kernel::FIRST_BLOCK_ANSWERS`) other blocks may still be at what was answered last: it holds buffers until one more message is
/// answered, at each of the two moments, or until it is inactive, or between launches.
///
/// All of this is done by later calls: [`Runtime::buffer`], [`upload`](Buffer::upload), [`download`](Buffer::download) and
/// [`Runtime::reclaim_buffers`].
#[derive(Debug)]
pub struct Buffer<T: Element> {
    buffers: Arc<Buffers>,
    /// The buffers of the runtime whose device has the memory: others, if it is lent from one device to another.
    owner: Arc<Buffers>,
    /// Taken when it is dropped.
    taken: Option<Taken>,
    /// Device address.
    device: u64,
    reference: BufferRef<T>,
    of: PhantomData<T>,
}

impl<T: Element> Buffer<T> {
    fn new((buffers, owner): (Arc<Buffers>, Arc<Buffers>), taken: Taken, length: u32) -> Buffer<T> {
        let reference = BufferRef::from_parts(taken.entry, taken.generation, 0, length);
        let device = taken.memory.device();
        Buffer { buffers, owner, taken: Some(taken), device, reference, of: PhantomData }
    }

    /// The reference to all of it, for messages.
    pub fn reference(&self) -> BufferRef<T> {
        self.reference
    }

    /// How many elements it has.
    #[allow(clippy::len_without_is_empty, reason = "it has at least one")]
    pub fn len(&self) -> usize {
        self.reference.len()
    }

    /// Copies `values` to the buffer, from element `offset` on; kernels run on. Send the message that names them
    /// afterwards. A handler that reads meanwhile finds for each 4 bytes the old ones or the new ones.
    ///
    /// After a timeout the elements may be the old ones, the new ones, or some of each, and a copy may still be under way.
    /// All copies of the runtime's buffers follow each other, so the next ones wait for it, until their deadline; messages
    /// do not.
    ///
    /// Where copies cannot be made beside a launch, the runtime's kernels are kept from being launched meanwhile, as by
    /// [`write_payload`](crate::KernelHandle::write_payload).
    pub fn upload(
        &self,
        offset: usize,
        values: &[T],
        deadline: impl Into<Deadline>,
    ) -> Result<(), BufferError> {
        let to = self.at(offset, values.len())?;
        // SAFETY: so many elements are in the buffer, which is dropped later.
        unsafe { self.buffers.upload(to, bytemuck::cast_slice(values), deadline.into()) }
    }

    /// Copies elements of the buffer, from element `offset` on, to `values`. What a handler wrote is there once its answer
    /// was received; what other blocks wrote behind an answer of the first block, once the next one was. As for [`upload`](Self::upload).
    pub fn download(
        &self,
        offset: usize,
        values: &mut [T],
        deadline: impl Into<Deadline>,
    ) -> Result<(), BufferError> {
        let from = self.at(offset, values.len())?;
        // SAFETY: so many elements are in the buffer, which is dropped later.
        unsafe { self.buffers.download(from, bytemuck::cast_slice_mut(values), deadline.into()) }
    }

    /// Whether its memory is of the device of these buffers.
    pub(crate) fn is_of(&self, buffers: &Arc<Buffers>) -> bool {
        Arc::ptr_eq(&self.owner, buffers)
    }

    /// Where its device sees it, and each device that reaches the memory of that.
    pub(crate) fn device(&self) -> u64 {
        self.device
    }

    /// The same memory as a buffer of another runtime. It stays until both are given back and reclaimed.
    pub(crate) fn lent(&self, to: &Runtime) -> Result<Buffer<T>, BufferError> {
        let taken = self.taken.as_ref().expect("it is taken when it is dropped");
        let deadline = MADE.into();
        let buffers = to.core.buffers(deadline)?;
        let bytes = size_of::<T>() * self.len();
        let taken = buffers.lend(Arc::clone(&taken.memory), bytes, deadline)?;
        Ok(Buffer::new((buffers, Arc::clone(&self.owner)), taken, self.len() as u32))
    }

    /// Device address of `count` elements from `offset` on, if they are in the buffer.
    fn at(&self, offset: usize, count: usize) -> Result<u64, BufferError> {
        let length = self.len();
        match offset.checked_add(count) {
            Some(end) if end <= length => Ok(self.device + (offset * size_of::<T>()) as u64),
            _ => Err(BufferError::OutOfBounds { offset, count, length }),
        }
    }
}

impl<T: Element> Drop for Buffer<T> {
    fn drop(&mut self) {
        if let Some(taken) = self.taken.take() {
            self.buffers.give_back(taken);
        }
    }
}

/// A buffer whose elements change no more, which handlers see as a slice of plain Rust: weights, tables. Messages name it by a [`BufferRef`]
/// as they name a [`Buffer`], and a handler takes `ctx.frozen(&reference)` in place of a view.
///
/// To replace the elements make another one, and name that in the messages from then on: each message names one or the other whole. When
/// the memory of one that was dropped is used again is said at [`Buffer`](Buffer#giving-it-back).
///
/// ```
/// use ring_host::{Device, Runtime};
/// use std::time::Duration;
///
/// let second = Duration::from_secs(1);
/// let host = Runtime::open(Device::Cpu)?;
/// let weights = host.frozen_buffer(&[0.5_f32, 1.5, 2.5], second)?;
/// assert_eq!(weights.reference().len(), 3); // 16 bytes, for a message
/// # Ok::<(), ring_host::Error>(())
/// ```
#[derive(Debug)]
pub struct FrozenBuffer<T: Element>(Buffer<T>);

impl<T: Element> FrozenBuffer<T> {
    /// The reference to all of it, for messages.
    pub fn reference(&self) -> BufferRef<T> {
        self.0.reference()
    }

    /// How many elements it has.
    #[allow(clippy::len_without_is_empty, reason = "it has at least one")]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Copies elements of it to `values`: as [`Buffer::download`].
    pub fn download(
        &self,
        offset: usize,
        values: &mut [T],
        deadline: impl Into<Deadline>,
    ) -> Result<(), BufferError> {
        self.0.download(offset, values, deadline)
    }
}

/// The length of a buffer of so many elements of `T`, and its bytes.
fn size<T: Element>(length: usize) -> Result<(u32, usize), BufferError> {
    let short = u32::try_from(length).map_err(|_| BufferError::TooLong { length })?;
    let bytes = length.checked_mul(size_of::<T>()).ok_or(BufferError::TooLong { length })?;
    if length == 0 { Err(BufferError::Empty) } else { Ok((short, bytes)) }
}

impl Runtime {
    /// Makes a buffer of `length` zeros in device memory; kernels run on. It takes some 10 us, and some 20 us for each MiB. The
    /// memory comes from [`RuntimeConfig::device_bytes`](crate::RuntimeConfig::device_bytes), and when that has no room, from the
    /// device, 64 MiB at a time at least, which the runtime keeps.
    ///
    /// A kernel that was launched before the runtime could make its table of buffers, since memory or a copy was refused,
    /// views none.
    pub fn buffer<T: Element>(&self, length: usize) -> Result<Buffer<T>, BufferError> {
        let (short, bytes) = size::<T>(length)?;
        let deadline = MADE.into();
        let buffers = self.core.buffers(deadline)?;
        let taken = buffers.make(bytes, deadline)?;
        Ok(Buffer::new((Arc::clone(&buffers), buffers), taken, short))
    }

    /// Makes a buffer of `values` in device memory that nobody changes any more; kernels run on. It takes as long as a
    /// [`buffer`](Self::buffer) and an [`upload`](Buffer::upload). After a timeout there is none.
    pub fn frozen_buffer<T: Element>(
        &self,
        values: &[T],
        deadline: impl Into<Deadline>,
    ) -> Result<FrozenBuffer<T>, BufferError> {
        let (short, _) = size::<T>(values.len())?;
        let deadline = deadline.into();
        let buffers = self.core.buffers(deadline)?;
        let taken = buffers.make_frozen(bytemuck::cast_slice(values), deadline)?;
        Ok(FrozenBuffer(Buffer::new((Arc::clone(&buffers), buffers), taken, short)))
    }

    /// Makes memory of cudarc's a buffer, as it is: kernels of this runtime view it. The runtime has the slice until the
    /// buffer was [given back](Buffer#giving-it-back) and reclaimed. What a stream does to the memory is to be over
    /// before a message names it: kernels of this runtime wait for no stream.
    #[cfg(feature = "cuda")]
    pub fn lend<T: Element>(
        &self,
        slice: Arc<cudarc::driver::CudaSlice<T>>,
    ) -> Result<Buffer<T>, BufferError> {
        use super::table::BufferMemory;
        use cudarc::driver::DevicePtr;
        let (short, bytes) = size::<T>(slice.len())?;
        if !self.core.driver.is_context(slice.context().cu_ctx()) {
            return Err(BufferError::Foreign);
        }
        let deadline = MADE.into();
        let buffers = self.core.buffers(deadline)?;
        let device = slice.device_ptr(slice.stream()).0;
        let memory = Arc::new(BufferMemory::Lent { device, _slice: Box::new(slice) });
        let taken = buffers.lend(memory, bytes, deadline)?;
        Ok(Buffer::new((Arc::clone(&buffers), buffers), taken, short))
    }

    /// Makes the memory of buffers that were [given back](Buffer#giving-it-back) free for others, as far as no kernel can use it
    /// any more; how many such buffers are left.
    pub fn reclaim_buffers(&self, deadline: impl Into<Deadline>) -> Result<usize, BufferError> {
        match self.core.buffers_if_any() {
            Some(buffers) => buffers.reclaim(deadline.into()),
            None => Ok(0),
        }
    }
}
