//! What was taken from a device, and what has happened on it since.

use super::allocation_table::AllocationTable;
use crate::device::probe::Probed;
use crate::error::{DriverError, DriverReason};
use crate::sync::lock;
use std::ops::{Bound, RangeBounds};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, Weak};
use std::time::{Duration, Instant};

/// How long a call blocks at most.
const MOST_BLOCKED: Duration = Duration::from_secs(10);

/// How long a blocked call sleeps between looks.
const LOOK_EVERY: Duration = Duration::from_micros(20);

/// CUDA's codes.
mod code {
    pub const OUT_OF_MEMORY: i32 = 2;
    pub const OPERATING_SYSTEM: i32 = 304;
    pub const INVALID_HANDLE: i32 = 400;
    pub const ILLEGAL_ADDRESS: i32 = 700;
    pub const LAUNCH_TIMEOUT: i32 = 702;
    pub const CONTEXT_IS_DESTROYED: i32 = 709;
    pub const NOT_SUPPORTED: i32 = 801;
}

/// Numbers, from one to another.
pub(super) type Numbers = (Bound<u64>, Bound<u64>);

/// What is taken away. Counts begin at 1.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Faults {
    /// Pinned memory beyond so many bytes.
    pub pinned: Option<usize>,
    pub calls_block: bool,
    pub held_launches: bool,
    pub slow_launches: Duration,
    pub cooperative: bool,
    pub watchdog: Option<Duration>,
    pub invalid_every: Option<u64>,
    pub fault_after: Option<u64>,
    pub copies_from: Option<u64>,
    pub beside_from: Option<u64>,
    /// The seed by which copies land late.
    pub late: Option<u64>,
    pub graphs: bool,
    pub graphs_from: Option<u64>,
    pub silent: bool,
    pub reset_after: Option<u64>,
    pub allocations: Option<Numbers>,
    pub launches: Option<Numbers>,
    pub idle: bool,
    pub quick_pages: bool,
    pub peers: bool,
    /// In that many probes the host is busy.
    pub busy_probes: u64,
}

/// The launches of one launch slot, as the whole device sees them.
pub(super) trait Watched: Send + Sync + std::fmt::Debug {
    /// Whether a launch is on the device. What is held back is not.
    fn is_running(&self) -> bool;

    /// Launches of an idle device end.
    fn end_launches(&self);
}

/// What has happened on the device.
#[derive(Debug, Default)]
pub(super) struct State {
    /// What was found out about the device; what fails after some operations is counted after that.
    pub probed: Probed,
    /// Bytes of pinned memory that are taken.
    pinned: AtomicUsize,
    /// Launches and copies asked for.
    operations: AtomicU64,
    copies: AtomicU64,
    replays: AtomicU64,
    /// Blocks of memory asked for.
    allocations: AtomicU64,
    /// Places and launches asked for.
    launches: AtomicU64,
    /// Places that were made.
    places: AtomicU64,
    /// Launches cannot be made for now.
    loading: AtomicBool,
    table: Mutex<AllocationTable>,
    /// The device has stopped, for good.
    fault: OnceLock<DriverError>,
    launch_slots: Mutex<Vec<Weak<dyn Watched>>>,
}

/// The error of a call that a quirk lets fail.
fn refused(call: &'static str, code: i32, reason: &str) -> DriverError {
    tracing::debug!(call, code, reason, "a quirk makes a call fail");
    DriverError { call, code, reason: DriverReason::Emulated(reason.into()) }
}

impl State {
    /// Begins a call that a blocking device blocks: it waits until no launch is running. Fails if
    /// the device has faulted.
    pub fn enter(&self, faults: Faults, call: &'static str) -> Result<(), DriverError> {
        self.still_there()?;
        if !faults.calls_block || !self.is_busy() {
            return Ok(());
        }
        let begun = Instant::now();
        tracing::debug!(call, "blocks until no launch is running");
        while self.is_busy() {
            if begun.elapsed() > MOST_BLOCKED {
                let reason = format!("it blocked for {MOST_BLOCKED:?}: a kernel is resident");
                return Err(refused(call, 0, &reason));
            }
            std::thread::sleep(LOOK_EVERY);
            self.still_there()?;
        }
        Ok(())
    }

    /// Whether launches cannot be made, as while a driver loads code.
    pub fn is_loading(&self) -> bool {
        self.loading.load(Ordering::Relaxed)
    }

    pub fn set_loading(&self, loading: bool) {
        self.loading.store(loading, Ordering::Relaxed);
    }

    /// Begins to take memory.
    pub fn enter_allocation(&self, faults: Faults, call: &'static str) -> Result<(), DriverError> {
        let nth = self.allocations.fetch_add(1, Ordering::Relaxed) + 1;
        if faults.allocations.is_some_and(|refused| refused.contains(&nth)) {
            let reason = format!("allocation {nth} is refused");
            return Err(refused(call, code::OUT_OF_MEMORY, &reason));
        }
        self.enter(faults, call)
    }

    /// Begins to make a place for launches, or a launch.
    pub fn count_launch(&self, faults: Faults, call: &'static str) -> Result<(), DriverError> {
        let nth = self.count(&self.launches);
        match nth > 0 && faults.launches.is_some_and(|refused| refused.contains(&nth)) {
            true => Err(refused(call, code::OPERATING_SYSTEM, &format!("launch {nth} is refused"))),
            false => Ok(()),
        }
    }

    /// Begins a launch.
    pub fn enter_launch(&self, faults: Faults, replay: bool) -> Result<(), DriverError> {
        self.count_operation(faults, "launch")?;
        self.count_launch(faults, "launch")?;
        if replay {
            let nth = self.count(&self.replays);
            if faults.graphs_from.is_some_and(|n| nth >= n) {
                return Err(refused("launch", code::OPERATING_SYSTEM, "graphs fail by now"));
            }
        }
        self.enter(faults, "launch")?;
        let (begun, time) = (Instant::now(), faults.slow_launches);
        while !replay && begun.elapsed() < time {
            std::hint::spin_loop();
        }
        Ok(())
    }

    /// Begins a copy.
    pub fn enter_copy(&self, faults: Faults) -> Result<(), DriverError> {
        self.count_operation(faults, "copy")?;
        let nth = self.count(&self.copies);
        if faults.copies_from.is_some_and(|n| nth >= n) {
            return Err(refused("copy", code::OPERATING_SYSTEM, "copies fail by now"));
        }
        if faults.beside_from.is_some_and(|n| nth >= n) && self.is_busy() {
            let reason = "copies beside a launch fail by now";
            return Err(refused("copy", code::OPERATING_SYSTEM, reason));
        }
        self.enter(faults, "copy")
    }

    /// The number of an operation, from 1; 0 while the device is probed.
    fn count(&self, operations: &AtomicU64) -> u64 {
        match self.is_probed() {
            true => operations.fetch_add(1, Ordering::Relaxed) + 1,
            false => 0,
        }
    }

    /// Whether it was tried what the device does, and is not just being tried again.
    pub fn is_probed(&self) -> bool {
        self.probed.begun() > 0 && !self.probed.is_under_way()
    }

    /// Keeps a host that is busy from going on before a launch has left, and for as long again.
    pub fn hold_up(&self, faults: Faults, is_running: impl Fn() -> bool) {
        if !self.probed.is_under_way() || self.probed.begun() > faults.busy_probes {
            return;
        }
        let begun = Instant::now();
        while is_running() && begun.elapsed() < MOST_BLOCKED {
            std::thread::sleep(LOOK_EVERY);
        }
        std::thread::sleep(begun.elapsed());
    }

    fn count_operation(&self, faults: Faults, call: &'static str) -> Result<(), DriverError> {
        self.still_there()?;
        let nth = self.operations.fetch_add(1, Ordering::Relaxed) + 1;
        match faults.invalid_every.is_some_and(|n| nth.is_multiple_of(n)) {
            true => Err(refused(call, code::INVALID_HANDLE, "invalid resource handle")),
            false => Ok(()),
        }
    }

    /// What a grid or a place asks for that was taken away.
    pub fn unsupported(&self, what: &'static str) -> DriverError {
        refused("launch slot", code::NOT_SUPPORTED, what)
    }

    /// Counts pinned memory, unless it is too much.
    pub fn alloc_pinned(&self, faults: Faults, bytes: usize) -> Result<(), DriverError> {
        let most = faults.pinned.unwrap_or(usize::MAX);
        let add = |used: usize| used.checked_add(bytes).filter(|used| *used <= most);
        let counted = self.pinned.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
        counted.map(drop).map_err(|used| {
            let reason = format!(
                "no pinned memory of {bytes} bytes: the most is {most}, and {used} are taken"
            );
            refused("alloc_pinned", code::OUT_OF_MEMORY, &reason)
        })
    }

    /// Pinned memory goes back.
    pub fn free_pinned(&self, bytes: usize) {
        self.pinned.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// The allocation table. Whoever has it may use no device: some other call may wait for it.
    pub fn table(&self) -> MutexGuard<'_, AllocationTable> {
        lock(&self.table)
    }

    /// A number for a place.
    pub fn number(&self) -> u64 {
        self.places.fetch_add(1, Ordering::Relaxed)
    }

    /// On an idle device, all launches end.
    pub fn end_launches(&self) {
        let launch_slots: Vec<_> =
            lock(&self.launch_slots).iter().filter_map(Weak::upgrade).collect();
        launch_slots.iter().for_each(|launch_slot| launch_slot.end_launches());
    }

    /// Remembers a place for launches.
    pub fn add(&self, launch_slot: Weak<dyn Watched>) {
        let mut launch_slots = lock(&self.launch_slots);
        launch_slots.retain(|launch_slot| launch_slot.strong_count() > 0);
        launch_slots.push(launch_slot);
    }

    /// Whether a launch is running.
    fn is_busy(&self) -> bool {
        let launch_slots = lock(&self.launch_slots);
        launch_slots.iter().filter_map(Weak::upgrade).any(|launch_slot| launch_slot.is_running())
    }

    /// The device's fault, if it has faulted.
    pub fn fault(&self) -> Option<&DriverError> {
        self.fault.get()
    }

    fn still_there(&self) -> Result<(), DriverError> {
        self.fault().map_or(Ok(()), |fault| Err(fault.clone()))
    }

    /// A launch ran too long.
    pub fn time_out(&self, limit: Duration) {
        let reason = || format!("the launch timed out and was terminated, after {limit:?}");
        self.fault.get_or_init(|| refused("state", code::LAUNCH_TIMEOUT, &reason()));
    }

    /// A kernel has handled so many messages: the device may break of it.
    pub fn note_processed(&self, faults: Faults, processed: u64) {
        if faults.fault_after.is_some_and(|messages| processed >= messages) {
            let reason = "an illegal memory access was encountered";
            self.fault.get_or_init(|| refused("state", code::ILLEGAL_ADDRESS, reason));
        }
        if faults.reset_after.is_some_and(|messages| processed >= messages) {
            let reason = "the context was destroyed: somebody has reset the device";
            self.fault.get_or_init(|| refused("state", code::CONTEXT_IS_DESTROYED, reason));
        }
    }

    /// Whether the fault is that the device was reset.
    pub fn was_reset(&self) -> bool {
        self.fault().is_some_and(|fault| fault.code == code::CONTEXT_IS_DESTROYED)
    }
}
