//! The CPU device: a thread a channel, running the handlers compiled for the host.

mod entry;

pub(crate) use entry::program;

use super::{
    Cells, CopyLane, CpuEntry, Driver, Function, Grid, LaunchSlot, Launched, Limits, Mapped,
    MemoryCopy, NoPeer, Occupancy, Program, Resources, RunState, Sealed, pages,
};
use crate::deadline::yields_to_another;
use crate::device::image::ImageError;
use crate::device::probe::Probed;
use crate::device::{DeviceInfo, DeviceKind};
use crate::error::{DriverError, OpenError};
use crate::sync::{lock, unpoisoned};
use ring_device::{BlockMemory, Hooks};
use ring_shared::atomics::Atom;
use std::cell::Cell;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock};
use std::time::{Duration, Instant};

/// Most channels that may be launched at once: each is a thread that polls.
const MAX_CHANNELS: u32 = 256;

/// What a channel takes of them.
const CHANNEL: Resources = Resources { registers: 0, shared_bytes: 0, warps: 0, blocks: 1 };

/// CPU threads.
#[derive(Debug)]
pub struct Cpu {
    info: DeviceInfo,
    occupancy: Occupancy,
    probed: Arc<Probed>,
}

impl Sealed for Cpu {}

impl Cpu {
    /// The CPU as a device whose probe serves the whole process.
    pub fn probed_once() -> Arc<Cpu> {
        static PROBED: OnceLock<Arc<Probed>> = OnceLock::new();
        Cpu::probed(PROBED.get_or_init(Arc::default))
    }

    /// The CPU as a device of its own.
    #[cfg(any(test, feature = "quirks"))]
    pub fn open() -> Arc<Cpu> {
        Cpu::probed(&Arc::default())
    }

    fn probed(probed: &Arc<Probed>) -> Arc<Cpu> {
        let cores = std::thread::available_parallelism().map_or(1, |n| n.get() as u32);
        Arc::new(Cpu {
            occupancy: Occupancy::new(1, Resources { blocks: MAX_CHANNELS, ..CHANNEL }),
            probed: Arc::clone(probed),
            info: DeviceInfo {
                name: format!("CPU threads ({cores} processors)"),
                kind: DeviceKind::Cpu,
                driver_version: 0,
                compute_capability: (0, 0),
                multiprocessors: cores,
                max_threads: 1024,
                max_channels: MAX_CHANNELS,
                cooperative_launch: true,
                maps_host_memory: true,
                concurrent_managed_access: true,
                clock_khz: 1_000_000, // ticks are nanoseconds
                shared_bytes: 0,
                copy_engines: 0,
                watchdog: false,
            },
        })
    }
}

impl Driver for Cpu {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn occupancy(&self) -> &Occupancy {
        &self.occupancy
    }

    fn probed(&self) -> &Probed {
        &self.probed
    }

    fn alloc_pinned(&self, bytes: usize) -> Result<Mapped, DriverError> {
        let host = pages::alloc(bytes)?;
        let device = host.as_ptr().expose_provenance() as u64;
        Ok(Mapped { host, device, bytes, quick: 0, registered: true })
    }

    unsafe fn free_pinned(&self, memory: Mapped) {
        // SAFETY: the caller's, from `alloc_pinned`, with that size.
        unsafe { pages::free(memory.host, memory.bytes) };
    }

    fn alloc_device(&self, bytes: usize) -> Result<u64, DriverError> {
        Ok(self.alloc_pinned(bytes)?.device)
    }

    unsafe fn free_device(&self, address: u64, bytes: usize) {
        let host = std::ptr::with_exposed_provenance_mut(address as usize);
        if let Some(host) = NonNull::new(host) {
            // SAFETY: the caller's, from `alloc_device`, which is `alloc_pinned`.
            unsafe { pages::free(host, bytes) };
        }
    }

    fn copy_lane(&self) -> Result<Arc<dyn CopyLane>, DriverError> {
        Ok(Arc::new(CpuCopyLane))
    }

    fn sees(&self, host: NonNull<u8>) -> Result<u64, DriverError> {
        Ok(host.as_ptr().expose_provenance() as u64)
    }

    fn reach(&self, other: &dyn Driver) -> Result<(), NoPeer> {
        if other.info().kind == DeviceKind::Cpu { Ok(()) } else { Err(NoPeer::Kinds) }
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
        Ok(Limits { threads: 1024, blocks: MAX_CHANNELS, block: CHANNEL })
    }

    fn launch_slot(
        &self,
        grid: Grid,
        parameter: u64,
        _: bool,
    ) -> Result<Arc<dyn LaunchSlot>, DriverError> {
        let turns = Arc::new(Turns { blocks: grid.blocks, ..Turns::default() });
        let launch_slot = CpuLaunchSlot(Arc::clone(&turns)); // stops the threads if it is dropped
        for block in 0..grid.blocks {
            let (entry, turns) = (self.entry, Arc::clone(&turns));
            let thread = std::thread::Builder::new()
                .name(format!("{}/{block}", self.name.replace('\0', "?")));
            let spawned = thread.spawn(move || {
                let mut memory = Box::new(const { BlockMemory::new() });
                let mut turn = 0;
                while turns.wait_for(turn) {
                    // SAFETY: the parameter is what the entry needs: the promise to `launch`, which
                    // was called, or there would be no turn; the memory is this block's own.
                    unsafe { entry(parameter, (block, grid.blocks), &mut memory, HOOKS) };
                    turns.done();
                    turn += 1;
                }
            });
            spawned.map_err(|error| DriverError::of_system("spawn", &error))?;
        }
        Ok(Arc::new(launch_slot))
    }
}

/// Launches of a grid whose blocks are threads: each block takes its turn in launch `n` when all blocks
/// have ended launch `n - 1`.
#[derive(Debug, Default)]
struct Turns {
    blocks: u32,
    state: Mutex<Turn>,
    changed: Condvar,
    /// Launches asked for.
    asked: AtomicU64,
    /// Launches that have ended.
    ended: AtomicU64,
}

#[derive(Debug, Default)]
struct Turn {
    /// Blocks that have ended the launch after `Turns::ended`.
    blocks_done: u32,
    /// No more launches will come.
    stop: bool,
}

impl Turns {
    fn launch(&self) {
        let _state = lock(&self.state);
        self.asked.fetch_add(1, Ordering::Relaxed);
        self.changed.notify_all();
    }

    fn stop(&self) {
        lock(&self.state).stop = true;
        self.changed.notify_all();
    }

    /// Waits until launch `turn` is to run; false if it never will.
    fn wait_for(&self, turn: u64) -> bool {
        let mut state = lock(&self.state);
        loop {
            let (asked, ended) =
                (self.asked.load(Ordering::Relaxed), self.ended.load(Ordering::Relaxed));
            if asked > turn && ended == turn {
                return true;
            }
            if state.stop && asked <= turn {
                return false;
            }
            state = unpoisoned(self.changed.wait(state));
        }
    }

    fn done(&self) {
        let mut state = lock(&self.state);
        state.blocks_done += 1;
        if state.blocks_done == self.blocks {
            state.blocks_done = 0;
            // SYNC: released to `CpuLaunchSlot::state`; the other blocks' work is here by the lock.
            self.ended.fetch_add(1, Ordering::Release);
            self.changed.notify_all();
        }
    }
}

/// The launches of a kernel whose channels are threads. Copies end before their call does.
#[derive(Debug)]
struct CpuLaunchSlot(Arc<Turns>);

impl Drop for CpuLaunchSlot {
    fn drop(&mut self) {
        self.0.stop();
    }
}

impl Sealed for CpuLaunchSlot {}

impl LaunchSlot for CpuLaunchSlot {
    unsafe fn launch(&self, _: bool) -> Result<Launched, DriverError> {
        self.0.launch();
        Ok(Launched::Yes)
    }

    fn state(&self) -> RunState {
        // SYNC: acquires `Turns::done`: what the channels wrote is here, and they touch nothing more.
        let ended = self.0.ended.load(Ordering::Acquire);
        match self.0.asked.load(Ordering::Relaxed) {
            asked if asked == ended => RunState::Ended,
            _ => RunState::Running,
        }
    }

    fn is_over(&self) -> bool {
        self.state() == RunState::Ended
    }
}

impl CopyLane for CpuLaunchSlot {
    fn copies(&self) -> RunState {
        RunState::Ended
    }

    unsafe fn copy(&self, copy: MemoryCopy) -> Result<(), DriverError> {
        // SAFETY: the caller's promise.
        unsafe { copy_cells(copy) };
        Ok(())
    }
}

/// Copies that end before their call does.
#[derive(Debug)]
struct CpuCopyLane;

impl Sealed for CpuCopyLane {}

impl CopyLane for CpuCopyLane {
    fn copies(&self) -> RunState {
        RunState::Ended
    }

    unsafe fn copy(&self, copy: MemoryCopy) -> Result<(), DriverError> {
        // SAFETY: the caller's promise.
        unsafe { copy_cells(copy) };
        Ok(())
    }
}

/// Copies cell by cell, each as one, since channels may use them at the same time.
///
/// # Safety
/// As for [`CopyLane::copy`].
unsafe fn copy_cells(copy: MemoryCopy) {
    let (to, from) = copy.ends();
    match copy.cells {
        Cells::Words => {
            let (to, from) = (to.cast::<AtomicU32>(), from.cast::<AtomicU32>());
            for i in 0..copy.bytes / size_of::<AtomicU32>() {
                // SAFETY: inside the caller's ranges, aligned, accessed as such cells.
                let (to, from) = unsafe { (&*to.add(i), &*from.add(i)) };
                to.store(from.load(Ordering::Relaxed), Ordering::Relaxed);
            }
        }
        Cells::Atoms => {
            let (to, from) = (to.cast::<Atom>(), from.cast::<Atom>());
            for i in 0..copy.bytes / size_of::<Atom>() {
                // SAFETY: as above.
                let (to, from) = unsafe { (&*to.add(i), &*from.add(i)) };
                to.publish(from.observe());
            }
        }
    }
}

const HOOKS: Hooks = Hooks { now, rest, unwind };

/// What unwinds a thread whose grid has not met.
#[derive(Debug)]
struct NotMet;

fn unwind() -> ! {
    std::panic::resume_unwind(Box::new(NotMet))
}

fn now() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_nanos() as u64 + 1
}

/// What a channel does between two looks that find nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pause {
    Spin,
    Yield,
    Sleep(Duration),
}

/// Idle looks in a row after which a channel yields its core, and after which it sleeps.
const YIELD_AFTER: u32 = 200;
const SLEEP_AFTER: u32 = 4000;

/// The first sleeps. They are doubled again and again, so that a channel that has been idle for long costs
/// next to nothing, up to what a command or a message may wait for.
const SHORTEST_SLEEP: Duration = Duration::from_micros(50);
const LONGEST_SLEEP: Duration = Duration::from_millis(2);

/// Sleeps of one length. A channel so never sleeps longer than about a sixtieth of the time that it has been
/// idle, which is what the next message may have to wait.
const SLEEPS_OF_A_LENGTH: u32 = 64;

/// What comes after the `looks`th idle look in a row. A message or a command begins a new row.
fn pause(looks: u32) -> Pause {
    match looks {
        0..YIELD_AFTER => Pause::Spin,
        YIELD_AFTER..SLEEP_AFTER => Pause::Yield,
        _ => {
            let doublings = (looks - SLEEP_AFTER) / SLEEPS_OF_A_LENGTH;
            let factor = 1u32.checked_shl(doublings).unwrap_or(u32::MAX);
            Pause::Sleep(SHORTEST_SLEEP.saturating_mul(factor).min(LONGEST_SLEEP))
        }
    }
}

thread_local! {
    /// Another thread ran while this one yielded last: it wants the same core, and gets it at once.
    static IS_CROWDED: Cell<bool> = const { Cell::new(false) };
}

/// Lets others run between two looks of a channel.
fn rest(looks: u32) {
    match pause(looks) {
        Pause::Spin if !IS_CROWDED.get() => std::hint::spin_loop(),
        Pause::Spin | Pause::Yield => IS_CROWDED.set(yields_to_another(Instant::now())),
        Pause::Sleep(time) => std::thread::sleep(time),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How long a channel sleeps in all, if sleeping took no longer than it was told to, until after so many
    /// idle looks.
    fn slept(looks: u32) -> Duration {
        (0..looks)
            .filter_map(|n| match pause(n) {
                Pause::Sleep(time) => Some(time),
                _ => None,
            })
            .sum()
    }

    #[test]
    fn an_idle_channel_looks_less_and_less_often() {
        let (mut looks, mut idle) = (0, Duration::ZERO);
        let mut look = |until| {
            let before = looks;
            while idle < until {
                if let Pause::Sleep(time) = pause(looks) {
                    idle += time;
                }
                looks += 1;
            }
            looks - before
        };
        look(Duration::from_millis(250));
        // A second of idle time is 500 looks, on each of which a core is woken.
        assert_eq!(look(Duration::from_millis(1250)), 500);
        assert_eq!(pause(u32::MAX), Pause::Sleep(LONGEST_SLEEP), "for ever");
    }

    #[test]
    fn a_busy_channel_does_not_sleep() {
        assert_eq!((pause(0), pause(YIELD_AFTER - 1)), (Pause::Spin, Pause::Spin));
        assert_eq!((pause(YIELD_AFTER), pause(SLEEP_AFTER - 1)), (Pause::Yield, Pause::Yield));
        assert_eq!(pause(SLEEP_AFTER), Pause::Sleep(SHORTEST_SLEEP));
    }

    #[test]
    fn no_sleep_is_long_for_the_time_before_it() {
        for looks in SLEEP_AFTER..SLEEP_AFTER + 1000 {
            let Pause::Sleep(next) = pause(looks) else { panic!("{looks}: {:?}", pause(looks)) };
            assert!(next >= SHORTEST_SLEEP && next <= LONGEST_SLEEP, "{looks}: {next:?}");
            assert!(next <= SHORTEST_SLEEP + slept(looks) / 60, "{looks}: {next:?}");
        }
    }
}
