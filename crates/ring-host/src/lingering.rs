//! Kernels that were dropped before they left their device: what they use is kept until then.

use crate::arena::Piece;
use crate::driver::{RunState, Running, Share};
use crate::region::Region;
use std::sync::{Arc, Mutex, PoisonError};

/// Kernels of this process that were dropped before they left their device, and what they use:
/// it is given back once they are seen to have left, whichever runtime looks.
static LINGERING: Mutex<Vec<(Arc<dyn Running>, Used)>> = Mutex::new(Vec::new());

/// What a kernel uses until it has left.
#[derive(Debug)]
pub(crate) enum Used {
    Kernel { _region: Region, _share: Option<Share> },
    Probe { _table: Piece },
}

/// Keeps what a kernel uses that may still run.
pub(crate) fn linger(running: Arc<dyn Running>, used: Used) {
    tracing::warn!("a kernel may still run; its memory is set aside until it has left");
    LINGERING.lock().unwrap_or_else(PoisonError::into_inner).push((running, used));
}

/// Gives back what kernels used that have left since.
pub(crate) fn sweep() {
    let mut lingering = LINGERING.lock().unwrap_or_else(PoisonError::into_inner);
    let left = lingering.extract_if(.., |(running, _)| running.state() != RunState::Running);
    let left: Vec<_> = left.collect();
    drop(lingering);
    drop(left); // not under the lock: it may close a device
}
