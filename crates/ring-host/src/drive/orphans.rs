//! Kernels that were dropped before they left their device: what they use is kept until then.

use crate::device::{LaunchSlot, Occupancy, Reservation};
use crate::memory::arena::Suballocation;
use crate::memory::region::Region;
use crate::sync::lock;
use ring_shared::layout::TABLE_LEN;
use std::sync::{Arc, Mutex};

/// A kernel that was dropped before it left its device.
struct Orphan {
    device: Occupancy,
    launch_slot: Arc<dyn LaunchSlot>,
    _used: Used,
}

/// Those of this process. What they use is given back once they are seen to have left, whichever runtime
/// looks.
static ORPHANS: Mutex<Vec<Orphan>> = Mutex::new(Vec::new());

/// What a kernel uses until it has left.
#[derive(Debug)]
pub(crate) enum Used {
    Kernel { _region: Box<Region>, _reservation: Option<Reservation> },
    Probe { _table: Suballocation, _found: Box<[u64; TABLE_LEN]>, _reservation: Reservation },
}

/// Keeps what a kernel uses that may still run; the log has the names of kernel and device.
pub(crate) fn set_aside(
    (kernel, device): (&str, &str),
    occupancy: Occupancy,
    launch_slot: Arc<dyn LaunchSlot>,
    used: Used,
) {
    tracing::warn!(
        kernel,
        device,
        "kernel may still run; its memory is set aside until it has left"
    );
    let orphan = Orphan { device: occupancy, launch_slot, _used: used };
    lock(&ORPHANS).push(orphan);
}

/// Gives back what kernels used that have left since.
pub(crate) fn reap() {
    let mut orphans = lock(&ORPHANS);
    let left: Vec<_> = orphans.extract_if(.., |kernel| kernel.launch_slot.is_over()).collect();
    drop(orphans);
    drop(left); // not under the lock: it may close a device
}

/// The same, and how many have not left that device.
pub(crate) fn reap_of(device: &Occupancy) -> usize {
    reap();
    let orphans = lock(&ORPHANS);
    orphans.iter().filter(|kernel| kernel.device == *device).count()
}
