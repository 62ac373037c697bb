//! Streams, made early: past some thirty, making another blocks while a kernel is resident (tried
//! on driver 580). So a device opens with a pair for each kernel that may be resident at once.

use super::api;
use super::call::{Bound, Context, check, run_state};
use super::deferred_free::DeferredFree;
use crate::device::RunState;
use crate::error::{DriverError, DriverReason, Needed};
use crate::sync::lock;
use cudarc::driver::sys;
use std::sync::{Arc, Mutex};

/// Pairs made when a device is opened.
const PAIRS: usize = 128;

/// A non-blocking stream: one that the legacy default stream does not wait for.
#[derive(Debug)]
pub(super) struct Stream(pub sys::CUstream);

// SAFETY: a handle that the driver lets any thread use.
unsafe impl Send for Stream {}
// SAFETY: as above.
unsafe impl Sync for Stream {}

impl Stream {
    fn new(priority: i32) -> Result<Stream, DriverError> {
        let mut stream = std::ptr::null_mut();
        let flags = sys::CUstream_flags_enum::CU_STREAM_NON_BLOCKING as u32;
        // SAFETY: the pointer is to a local; a context is bound.
        let created = unsafe { api::cuStreamCreateWithPriority(&mut stream, flags, priority) };
        check("cuStreamCreateWithPriority", created)?;
        Ok(Stream(stream))
    }

    /// Whether what was put into the stream is done. A context must be bound.
    pub fn state(&self) -> RunState {
        // SAFETY: streams are never destroyed.
        run_state("cuStreamQuery", unsafe { api::cuStreamQuery(self.0) })
    }
}

/// A kernel's stream, and that of its payload copies.
///
/// Streams share a few hardware queues with others of their priority, where a copy may wait for a
/// kernel before it and hold up the launches behind it. So copies have a priority of their own.
#[derive(Debug)]
pub(super) struct Pair {
    pub kernel: Stream,
    pub copies: Stream,
}

/// Streams that no kernel uses.
#[derive(Debug)]
pub(super) struct Streams {
    deferred_free: Arc<DeferredFree>,
    context: Context,
    free: Mutex<Vec<Pair>>,
}

impl Streams {
    pub fn new(context: Context, deferred_free: Arc<DeferredFree>) -> Result<Streams, DriverError> {
        let free = Mutex::new(make(context)?);
        Ok(Streams { deferred_free, context, free })
    }

    /// A pair that was not used, or whose work is done.
    pub fn take(&self) -> Result<Pair, DriverError> {
        let mut free = lock(&self.free);
        if free.is_empty() {
            let more = self.deferred_free.while_idle(|| make(self.context));
            *free = more.map_err(|resident| DriverError {
                call: "launch",
                code: 0,
                reason: DriverReason::Resident { kernels: resident, needed: Needed::Stream },
            })??;
        }
        free.pop().ok_or(DriverError { call: "launch", code: 0, reason: DriverReason::NoStream })
    }

    /// Gives back a pair whose work is done.
    pub fn give(&self, pair: Pair) {
        lock(&self.free).push(pair);
    }
}

fn make(context: Context) -> Result<Vec<Pair>, DriverError> {
    let _bound = Bound::new(context)?;
    let (mut least, mut greatest) = (0, 0);
    // SAFETY: the pointers are to locals; a context is bound.
    let range = unsafe { api::cuCtxGetStreamPriorityRange(&mut least, &mut greatest) };
    check("cuCtxGetStreamPriorityRange", range)?;
    let pair = |_| Ok(Pair { kernel: Stream::new(least)?, copies: Stream::new(greatest)? });
    (0..PAIRS).map(pair).collect()
}
