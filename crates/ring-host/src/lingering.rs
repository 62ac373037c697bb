//! Kernels that were dropped before they left their device: what they use is kept until then.

use crate::arena::Piece;
use crate::driver::{Share, Station};
use crate::region::Region;
use ring_shared::layout::TABLE_LEN;
use std::sync::{Arc, Mutex, PoisonError};

/// Kernels of this process that were dropped before they left their device, and what they use:
/// it is given back once they are seen to have left, whichever runtime looks.
static LINGERING: Mutex<Vec<(Arc<dyn Station>, Used)>> = Mutex::new(Vec::new());

/// What a kernel uses until it has left.
#[derive(Debug)]
pub(crate) enum Used {
    Kernel { _region: Box<Region>, _share: Option<Share> },
    Probe { _table: Piece, _found: Box<[u64; TABLE_LEN]>, _share: Share },
}

/// Keeps what a kernel uses that may still run.
pub(crate) fn linger(station: Arc<dyn Station>, used: Used) {
    tracing::warn!("a kernel may still run; its memory is set aside until it has left");
    LINGERING.lock().unwrap_or_else(PoisonError::into_inner).push((station, used));
}

/// Gives back what kernels used that have left since; how many have not.
pub(crate) fn sweep() -> usize {
    let mut lingering = LINGERING.lock().unwrap_or_else(PoisonError::into_inner);
    let left = lingering.extract_if(.., |(station, _)| station.is_over());
    let left: Vec<_> = left.collect();
    let still = lingering.len();
    drop(lingering);
    drop(left); // not under the lock: it may close a device
    still
}
