//! The CPU device: a thread a lane, running the handlers compiled for the host.

use super::{
    Cells, CpuEntry, Driver, Function, Grid, Limits, Mapped, Program, Residency, RunState, Sealed,
    Station, pages,
};
use crate::device::{DeviceInfo, DeviceKind};
use crate::error::{DriverError, OpenError};
use crate::image::ImageError;
use crate::probe::Probe;
use ring_device::{Hooks, TeamMemory};
use ring_shared::atomics::Atom;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// Most lanes that may be launched at once: each is a thread that polls.
const MAX_LANES: u32 = 256;

/// CPU threads.
#[derive(Debug)]
pub struct Cpu {
    info: DeviceInfo,
    residency: Residency,
    probed: Arc<OnceLock<Probe>>,
}

impl Sealed for Cpu {}

impl Cpu {
    /// The CPU as a device whose probe serves the whole process.
    pub fn probed_once() -> Cpu {
        static PROBED: OnceLock<Arc<OnceLock<Probe>>> = OnceLock::new();
        Cpu { probed: Arc::clone(PROBED.get_or_init(Arc::default)), ..Cpu::open() }
    }

    /// The CPU as a device of its own.
    pub fn open() -> Cpu {
        let cores = std::thread::available_parallelism().map_or(1, |n| n.get() as u32);
        Cpu {
            residency: Residency::default(),
            probed: Arc::default(),
            info: DeviceInfo {
                name: format!("CPU threads ({cores} processors)"),
                kind: DeviceKind::Cpu,
                driver_version: 0,
                compute_capability: (0, 0),
                multiprocessors: cores,
                max_threads: 1024,
                max_lanes: MAX_LANES,
                cooperative_launch: true,
                maps_host_memory: true,
                concurrent_managed_access: true,
                clock_khz: 1_000_000, // ticks are nanoseconds
                copy_engines: 0,
                watchdog: false,
            },
        }
    }
}

impl Driver for Cpu {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn residency(&self) -> &Residency {
        &self.residency
    }

    fn probed(&self) -> &OnceLock<Probe> {
        &self.probed
    }

    fn take_pinned(&self, bytes: usize) -> Result<Mapped, DriverError> {
        let host = pages::take(bytes)?;
        let device = host.as_ptr().expose_provenance() as u64;
        Ok(Mapped { host, device, bytes, registered: true })
    }

    unsafe fn give_pinned(&self, memory: Mapped) {
        // SAFETY: the caller's, from `take_pinned`, with that size.
        unsafe { pages::give(memory.host, memory.bytes) };
    }

    fn take_device(&self, bytes: usize) -> Result<u64, DriverError> {
        Ok(self.take_pinned(bytes)?.device)
    }

    unsafe fn give_device(&self, address: u64, bytes: usize) {
        let host = std::ptr::with_exposed_provenance_mut(address as usize);
        if let Some(host) = NonNull::new(host) {
            // SAFETY: the caller's, from `take_device`, which is `take_pinned`.
            unsafe { pages::give(host, bytes) };
        }
    }

    fn recovered(&self) -> Result<Option<Arc<dyn Driver>>, OpenError> {
        Ok(None)
    }

    fn load(&self, program: Program<'_>) -> Result<Arc<dyn Function>, ImageError> {
        Ok(Arc::new(CpuFunction { entry: program.cpu, name: program.entry }))
    }
}

#[derive(Debug)]
struct CpuFunction {
    entry: CpuEntry,
    name: &'static str,
}

impl Sealed for CpuFunction {}

impl Function for CpuFunction {
    fn limits(&self, _: u32) -> Result<Limits, DriverError> {
        Ok(Limits { threads: 1024, lanes: MAX_LANES })
    }

    fn station(
        &self,
        grid: Grid,
        parameter: u64,
        _: bool,
    ) -> Result<Arc<dyn Station>, DriverError> {
        let turns = Arc::new(Turns { lanes: grid.lanes, ..Turns::default() });
        let station = CpuStation(Arc::clone(&turns)); // stops the threads if it is dropped
        for lane in 0..grid.lanes {
            let (entry, turns) = (self.entry, Arc::clone(&turns));
            let thread = std::thread::Builder::new()
                .name(format!("{}/{lane}", self.name.replace('\0', "?")));
            let spawned = thread.spawn(move || {
                let mut memory = Box::new(const { TeamMemory::new() });
                let mut turn = 0;
                while turns.wait_for(turn) {
                    // SAFETY: the parameter is what the entry needs: the promise to `launch`, which
                    // was called, or there would be no turn; the memory is this lane's own.
                    unsafe { entry(parameter, lane, &mut memory, Hooks { now, rest }) };
                    turns.done();
                    turn += 1;
                }
            });
            spawned.map_err(|error| DriverError {
                call: "spawn",
                code: 0,
                reason: error.to_string(),
            })?;
        }
        Ok(Arc::new(station))
    }
}

/// Launches of a grid whose lanes are threads: each lane takes its turn in launch `n` when all lanes
/// have ended launch `n - 1`.
#[derive(Debug, Default)]
struct Turns {
    lanes: u32,
    state: Mutex<Turn>,
    changed: Condvar,
    /// Launches asked for.
    asked: AtomicU64,
    /// Launches that have ended.
    ended: AtomicU64,
}

#[derive(Debug, Default)]
struct Turn {
    /// Lanes that have ended the launch after `Turns::ended`.
    lanes_done: u32,
    /// No more launches will come.
    stop: bool,
}

impl Turns {
    fn lock(&self) -> MutexGuard<'_, Turn> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn launch(&self) {
        let _state = self.lock();
        self.asked.fetch_add(1, Ordering::Relaxed);
        self.changed.notify_all();
    }

    fn stop(&self) {
        self.lock().stop = true;
        self.changed.notify_all();
    }

    /// Waits until launch `turn` is to run; false if it never will.
    fn wait_for(&self, turn: u64) -> bool {
        let mut state = self.lock();
        loop {
            let (asked, ended) =
                (self.asked.load(Ordering::Relaxed), self.ended.load(Ordering::Relaxed));
            if asked > turn && ended == turn {
                return true;
            }
            if state.stop && asked <= turn {
                return false;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn done(&self) {
        let mut state = self.lock();
        state.lanes_done += 1;
        if state.lanes_done == self.lanes {
            state.lanes_done = 0;
            // SYNC: released to `CpuStation::state`; the other lanes' work is here by the lock.
            self.ended.fetch_add(1, Ordering::Release);
            self.changed.notify_all();
        }
    }
}

/// The launches of a kernel whose lanes are threads. Copies end before their call does.
#[derive(Debug)]
struct CpuStation(Arc<Turns>);

impl Drop for CpuStation {
    fn drop(&mut self) {
        self.0.stop();
    }
}

impl Sealed for CpuStation {}

impl Station for CpuStation {
    unsafe fn launch(&self, _: bool) -> Result<(), DriverError> {
        self.0.launch();
        Ok(())
    }

    fn state(&self) -> RunState {
        // SYNC: acquires `Turns::done`: what the lanes wrote is here, and they touch nothing more.
        let ended = self.0.ended.load(Ordering::Acquire);
        match self.0.asked.load(Ordering::Relaxed) {
            asked if asked == ended => RunState::Ended,
            _ => RunState::Running,
        }
    }

    fn copies(&self) -> RunState {
        RunState::Ended
    }

    fn is_over(&self) -> bool {
        self.state() == RunState::Ended
    }

    unsafe fn copy_in(
        &self,
        to: u64,
        from: NonNull<u8>,
        bytes: usize,
        cells: Cells,
    ) -> Result<(), DriverError> {
        // SAFETY: the caller's ranges.
        unsafe { copy(device(to), from.as_ptr(), bytes, cells) };
        Ok(())
    }

    unsafe fn copy_out(
        &self,
        to: NonNull<u8>,
        from: u64,
        bytes: usize,
        cells: Cells,
    ) -> Result<(), DriverError> {
        // SAFETY: the caller's ranges.
        unsafe { copy(to.as_ptr(), device(from), bytes, cells) };
        Ok(())
    }
}

/// Device memory, as the host of this device sees it.
fn device(address: u64) -> *mut u8 {
    std::ptr::with_exposed_provenance_mut(address as usize)
}

/// Copies cell by cell, each as one, since lanes may use them at the same time.
///
/// # Safety
/// As for [`Station::copy_in`].
unsafe fn copy(to: *mut u8, from: *const u8, bytes: usize, cells: Cells) {
    if cells == Cells::Words {
        let (to, from) = (to.cast::<AtomicU32>(), from.cast::<AtomicU32>());
        for i in 0..bytes / 4 {
            // SAFETY: inside the caller's ranges, aligned, accessed as such cells.
            let (to, from) = unsafe { (&*to.add(i), &*from.add(i)) };
            to.store(from.load(Ordering::Relaxed), Ordering::Relaxed);
        }
    } else {
        let (to, from) = (to.cast::<Atom>(), from.cast::<Atom>());
        for i in 0..bytes / size_of::<Atom>() {
            // SAFETY: inside the caller's ranges, aligned, accessed as such cells.
            let (to, from) = unsafe { (&*to.add(i), &*from.add(i)) };
            to.publish(from.observe());
        }
    }
}

fn now() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_nanos() as u64 + 1
}

/// A lane that finds nothing spins, then yields its core, then sleeps a little at a time.
fn rest(looks: u32) {
    match looks {
        0..200 => std::hint::spin_loop(),
        200..4000 => std::thread::yield_now(),
        _ => std::thread::sleep(Duration::from_micros(50)),
    }
}
