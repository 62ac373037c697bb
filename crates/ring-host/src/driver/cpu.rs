//! The CPU device: a thread a lane, running the handlers compiled for the host.

use super::{
    CpuEntry, Driver, Function, Grid, Limits, Mapped, Program, Residency, RunState, Running,
};
use crate::deadline::Deadline;
use crate::device::{DeviceInfo, DeviceKind};
use crate::error::{DriverError, PayloadError};
use crate::image::ImageError;
use ring_device::{Hooks, TeamMemory};
use std::alloc::Layout;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// Most lanes that may be launched at once: each is a thread that polls.
const MAX_LANES: u32 = 256;

/// CPU threads.
#[derive(Debug)]
pub struct Cpu {
    info: DeviceInfo,
    residency: Residency,
}

impl Cpu {
    /// The CPU as a device.
    pub fn open() -> Cpu {
        let cores = std::thread::available_parallelism().map_or(1, |n| n.get() as u32);
        Cpu {
            residency: Residency::default(),
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
                watchdog: false,
            },
        }
    }
}

fn layout(bytes: usize) -> Result<Layout, DriverError> {
    let refused =
        |reason: &str| DriverError { call: "allocate", code: 0, reason: reason.to_owned() };
    match Layout::from_size_align(bytes, 4096) {
        Ok(layout) if bytes > 0 => Ok(layout),
        Ok(_) => Err(refused("no bytes were asked for")),
        Err(_) => Err(refused("more than the address space")),
    }
}

impl Driver for Cpu {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn residency(&self) -> &Residency {
        &self.residency
    }

    fn take_mapped(&self, bytes: usize) -> Result<Mapped, DriverError> {
        // SAFETY: `layout` refuses a size of zero.
        let host = NonNull::new(unsafe { std::alloc::alloc_zeroed(layout(bytes)?) });
        let host = host.ok_or_else(|| DriverError {
            call: "allocate",
            code: 0,
            reason: format!("out of memory ({bytes} bytes)"),
        })?;
        Ok(Mapped { host, device: host.as_ptr().expose_provenance() as u64, bytes })
    }

    unsafe fn give_mapped(&self, memory: Mapped) {
        if let Ok(layout) = layout(memory.bytes) {
            // SAFETY: the caller's, from `take_mapped`, with that size.
            unsafe { std::alloc::dealloc(memory.host.as_ptr(), layout) };
        }
    }

    fn take_device(&self, bytes: usize) -> Result<u64, DriverError> {
        Ok(self.take_mapped(bytes)?.device)
    }

    unsafe fn give_device(&self, address: u64, bytes: usize) {
        let host = std::ptr::with_exposed_provenance_mut(address as usize);
        if let Some(host) = NonNull::new(host) {
            // SAFETY: the caller's, from `take_device`, which is `take_mapped`.
            unsafe { self.give_mapped(Mapped { host, device: address, bytes }) };
        }
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

/// Threads that have not ended yet.
#[derive(Debug)]
struct CpuRunning(Arc<AtomicU32>);

impl Running for CpuRunning {
    fn state(&self) -> RunState {
        // SYNC: acquires each thread's last decrement: what it wrote is here, and it touches
        // nothing any more.
        match self.0.load(Ordering::Acquire) {
            0 => RunState::Ended,
            _ => RunState::Running,
        }
    }

    fn settle(&self, _: Deadline) -> Result<(), PayloadError> {
        Ok(()) // copies end before their call does
    }

    unsafe fn copy_in(
        &self,
        to: u64,
        from: Mapped,
        bytes: usize,
        _: Deadline,
    ) -> Result<(), PayloadError> {
        let from = from.host.cast::<u32>();
        for i in 0..bytes / 4 {
            // SAFETY: the caller's ranges, whole words.
            unsafe { word(to, i).store(from.add(i).read(), Ordering::Relaxed) };
        }
        Ok(())
    }

    unsafe fn copy_out(
        &self,
        to: Mapped,
        from: u64,
        bytes: usize,
        _: Deadline,
    ) -> Result<(), PayloadError> {
        let to = to.host.cast::<u32>();
        for i in 0..bytes / 4 {
            // SAFETY: the caller's ranges, whole words.
            unsafe { to.add(i).write(word(from, i).load(Ordering::Relaxed)) };
        }
        Ok(())
    }
}

/// Word `i` of device memory, which handlers may access at the same time, as atomics.
///
/// # Safety
/// It lies in memory from `take_device` that is given back later.
unsafe fn word<'a>(address: u64, i: usize) -> &'a AtomicU32 {
    let words = std::ptr::with_exposed_provenance::<AtomicU32>(address as usize);
    // SAFETY: the caller's.
    unsafe { &*words.add(i) }
}

impl Function for CpuFunction {
    fn limits(&self, _: u32) -> Result<Limits, DriverError> {
        Ok(Limits { threads: 1024, lanes: MAX_LANES })
    }

    unsafe fn launch(&self, grid: Grid, parameter: u64) -> Result<Arc<dyn Running>, DriverError> {
        let alive = Arc::new(AtomicU32::new(grid.lanes));
        let gate = Arc::new(Gate::default());
        for lane in 0..grid.lanes {
            let (entry, counter, gate_here) = (self.entry, Arc::clone(&alive), Arc::clone(&gate));
            let thread = std::thread::Builder::new()
                .name(format!("{}/{lane}", self.name.replace('\0', "?")));
            let spawned = thread.spawn(move || {
                if gate_here.wait() {
                    let mut memory = Box::new(const { TeamMemory::new() });
                    // SAFETY: the caller's parameter; the memory is this lane's own.
                    unsafe { entry(parameter, lane, &mut memory, Hooks { now, rest }) };
                }
                // SYNC: released to `CpuRunning::state`.
                counter.fetch_sub(1, Ordering::Release);
            });
            if let Err(error) = spawned {
                gate.open(false); // no lane has looked at the parameter, and none will
                return Err(DriverError { call: "spawn", code: 0, reason: error.to_string() });
            }
        }
        gate.open(true);
        Ok(Arc::new(CpuRunning(alive)))
    }
}

/// Holds the lanes of a grid until all of them exist.
#[derive(Debug, Default)]
struct Gate(Mutex<Option<bool>>, Condvar);

impl Gate {
    fn open(&self, go: bool) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(go);
        self.1.notify_all();
    }

    fn wait(&self) -> bool {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            match *state {
                Some(go) => return go,
                None => state = self.1.wait(state).unwrap_or_else(PoisonError::into_inner),
            }
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
