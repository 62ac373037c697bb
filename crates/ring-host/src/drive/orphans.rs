//! Kernels that were dropped before they left their device: what they use is kept until then.

use crate::device::{Residency, Share, Station};
use crate::memory::arena::Piece;
use crate::memory::region::Region;
use ring_shared::layout::TABLE_LEN;
use std::sync::{Arc, Mutex, PoisonError};

/// A kernel that was dropped before it left its device.
struct Lingering {
    device: Residency,
    station: Arc<dyn Station>,
    _used: Used,
}

/// Those of this process. What they use is given back once they are seen to have left, whichever runtime
/// looks.
static LINGERING: Mutex<Vec<Lingering>> = Mutex::new(Vec::new());

/// What a kernel uses until it has left.
#[derive(Debug)]
pub(crate) enum Used {
    Kernel { _region: Box<Region>, _share: Option<Share> },
    Probe { _table: Piece, _found: Box<[u64; TABLE_LEN]>, _share: Share },
}

/// Keeps what a kernel uses that may still run on that device.
pub(crate) fn linger(device: Residency, station: Arc<dyn Station>, used: Used) {
    tracing::warn!("a kernel may still run; its memory is set aside until it has left");
    let lingering = Lingering { device, station, _used: used };
    LINGERING.lock().unwrap_or_else(PoisonError::into_inner).push(lingering);
}

/// Gives back what kernels used that have left since.
pub(crate) fn sweep() {
    let mut lingering = LINGERING.lock().unwrap_or_else(PoisonError::into_inner);
    let left: Vec<_> = lingering.extract_if(.., |kernel| kernel.station.is_over()).collect();
    drop(lingering);
    drop(left); // not under the lock: it may close a device
}

/// The same, and how many have not left that device.
pub(crate) fn sweep_of(device: &Residency) -> usize {
    sweep();
    let lingering = LINGERING.lock().unwrap_or_else(PoisonError::into_inner);
    lingering.iter().filter(|kernel| kernel.device == *device).count()
}
