//! Copies: those beside a kernel's launches, and those that are no kernel's.

use super::api;
use super::call::{Bound, Context, check, is_final};
use super::stream::{Pair, Stream, Streams};
use crate::device::{CopyKind, CopyLane, MemoryCopy, RunState, Sealed};
use crate::error::DriverError;
use std::mem::ManuallyDrop;
use std::sync::Arc;

/// Puts a copy into a stream.
///
/// # Safety
/// As for [`CopyLane::copy`].
pub(super) unsafe fn enqueue(
    copy: MemoryCopy,
    context: Context,
    stream: &Stream,
) -> Result<(), DriverError> {
    let _bound = Bound::new(context)?;
    let MemoryCopy { kind, host, device, bytes, .. } = copy;
    let (host, stream) = (host.as_ptr().cast(), stream.0);
    // SAFETY: the caller's ranges, which stay until the copy is over.
    unsafe {
        match kind {
            CopyKind::HostToDevice => {
                check("cuMemcpyHtoDAsync", api::cuMemcpyHtoDAsync_v2(device, host, bytes, stream))
            }
            CopyKind::DeviceToHost => {
                check("cuMemcpyDtoHAsync", api::cuMemcpyDtoHAsync_v2(host, device, bytes, stream))
            }
        }
    }
}

/// Copies on a stream that is no kernel's.
#[derive(Debug)]
pub(super) struct CudaCopyLane {
    context: Context,
    pair: ManuallyDrop<Pair>,
    streams: Arc<Streams>,
}

impl CudaCopyLane {
    pub fn new(context: Context, streams: &Arc<Streams>) -> Result<CudaCopyLane, DriverError> {
        let pair = ManuallyDrop::new(streams.take()?);
        Ok(CudaCopyLane { context, pair, streams: Arc::clone(streams) })
    }
}

impl Drop for CudaCopyLane {
    fn drop(&mut self) {
        // SAFETY: taken once, and nothing uses it after this.
        let pair = unsafe { ManuallyDrop::take(&mut self.pair) };
        self.streams.give(pair); // a copy lane is dropped when no copy is under way
    }
}

impl Sealed for CudaCopyLane {}

impl CopyLane for CudaCopyLane {
    fn copies(&self) -> RunState {
        match Bound::new(self.context) {
            Ok(_bound) => self.pair.copies.state(),
            Err(error) if is_final(error.code) => RunState::Faulted(error),
            Err(_) => RunState::Running,
        }
    }

    unsafe fn copy(&self, copy: MemoryCopy) -> Result<(), DriverError> {
        // SAFETY: the caller's promise.
        unsafe { enqueue(copy, self.context, &self.pair.copies) }
    }
}
