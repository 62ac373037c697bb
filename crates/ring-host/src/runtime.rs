//! Opening a device and launching kernels on it.

use crate::arena::Arena;
use crate::deadline::{Patience, wait};
use crate::device::{Device, DeviceInfo, DeviceKind};
use crate::driver::{Driver, Function, Grid, Program, RunState, cpu::Cpu};
use crate::error::{LaunchError, OpenError};
use crate::image::Image;
use crate::launch::Launch;
use crate::lingering::{Used, linger, sweep};
use crate::region::{NoRoom, Plan, Region};
use crate::resident::Resident;
use crate::shared::Shared;
use ring_device::{Hooks, Kernel, Team, TeamMemory, run};
use ring_shared::layout::{Command, ControlBlock, Exit, LaneBlock, State, TABLE_LEN, table};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Memory that a runtime takes when it opens a device, once.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Pinned memory for control blocks, rings and staging, in bytes.
    pub pinned_bytes: usize,
    /// Device memory for payloads, in bytes.
    pub device_bytes: usize,
}

impl Default for Options {
    /// 32 MiB pinned, 32 MiB on the device: sixty kernels with default rings.
    fn default() -> Options {
        Options { pinned_bytes: 32 << 20, device_bytes: 32 << 20 }
    }
}

/// An open device. Cheap to clone; kernels keep what they need of it.
#[derive(Clone, Debug)]
pub struct Runtime {
    core: Arc<Core>,
}

/// A loaded function, how many of its lanes fill the device, and what memory a launch needs.
type Ready = (Arc<dyn Function>, u32, Plan);

/// What clones of a runtime share.
#[derive(Debug)]
struct Core {
    driver: Arc<dyn Driver>,
    pinned: Arc<Arena>,
    device: Arc<Arena>,
    why: String,
}

impl Runtime {
    /// Opens a device with the default [`Options`].
    pub fn open(device: Device) -> Result<Runtime, OpenError> {
        Runtime::open_with(device, Options::default())
    }

    /// Opens a device.
    pub fn open_with(device: Device, options: Options) -> Result<Runtime, OpenError> {
        sweep();
        let (driver, why) = choose(device)?;
        let arena = |bytes| move |source| OpenError::Arena { bytes, source };
        let pinned =
            Arena::mapped(&driver, options.pinned_bytes).map_err(arena(options.pinned_bytes))?;
        let memory =
            Arena::device(&driver, options.device_bytes).map_err(arena(options.device_bytes))?;
        tracing::info!(device = driver.info().name, why, "device opened");
        Ok(Runtime { core: Arc::new(Core { driver, pinned, device: memory, why }) })
    }

    /// The device.
    pub fn device(&self) -> &DeviceInfo {
        self.core.driver.info()
    }

    /// Why this device was chosen.
    pub fn why(&self) -> &str {
        &self.core.why
    }

    /// Checks a launch and loads its code, without launching it. The driver loads nothing while a
    /// kernel is resident, so PTX of your own is to be prepared before; the built-in kernels are
    /// loaded when the device is opened.
    pub fn prepare<K: Kernel>(&self, launch: &Launch) -> Result<(), LaunchError> {
        self.ready::<K>(launch).map(drop)
    }

    /// The loaded function, how many of its lanes fill the device, and what memory it needs.
    fn ready<K: Kernel>(&self, launch: &Launch) -> Result<Ready, LaunchError> {
        sweep();
        let plan = launch.check_device::<K>(self.device())?;
        let image = launch.image::<K>()?;
        let program = Program { entry: K::ENTRY, image: &image, cpu: cpu_entry::<K> };
        let function = self.core.driver.load(program).map_err(Launch::refused::<K>)?;
        let limits = function.limits(launch.wants().1)?;
        launch.check_kernel(limits)?;
        Ok((function, limits.lanes, plan))
    }

    /// Puts a kernel on the device. It polls for commands, and takes messages once activated.
    pub fn launch<K: Kernel>(&self, launch: Launch) -> Result<Resident<K>, LaunchError> {
        let (core, kernel) = (&self.core, K::NAME);
        let (function, most, plan) = self.ready::<K>(&launch)?;
        let (lanes, threads) = launch.wants();
        let share = core.driver.residency().reserve(lanes, most).map_err(|limit| {
            let why = "what can be resident beside the kernels that are";
            LaunchError::Lanes { lanes, limit, why }
        })?;
        let region = Region::new(plan, &core.pinned, &core.device);
        let region = region.map_err(|none| none.of_kernel(kernel))?;
        let grid = Grid { lanes, threads, cooperative: launch.is_cooperative(self.device()) };
        // SAFETY: the region is laid out for `K` and stays until the kernel has left the device
        // (`Shared::drop`).
        let running = unsafe { function.launch(grid, region.parameter()) }?;
        tracing::info!(kernel, lanes, threads, cooperative = grid.cooperative, "launched");
        Ok(Resident::new(Shared::new(kernel, core.patience(), region, running, share)))
    }

    /// The table of [`ring_shared::layout::table`] as the device's compiler sees it.
    pub fn layout_on_device(&self) -> Result<[u64; TABLE_LEN], LaunchError> {
        let kernel = "layout_probe";
        let bytes = TABLE_LEN * 8;
        let none = |exhausted| NoRoom { which: "pinned", exhausted }.of_kernel(kernel);
        let piece = self.core.pinned.lend(bytes).map_err(none)?;
        let memory = piece.mapped().expect("a piece of the pinned arena");
        let image = Image::built_in();
        let program = Program { entry: "ring_layout_probe", image: &image, cpu: cpu_layout_probe };
        let function = self.core.driver.load(program);
        let function = function.map_err(|source| LaunchError::Image { kernel, source })?;
        let grid = Grid { lanes: 1, threads: 1, cooperative: false };
        // SAFETY: the piece has room for the table, and is set aside below unless the kernel ended.
        let running = unsafe { function.launch(grid, memory.device) }?;
        let ended = wait(
            Duration::from_secs(5).into(),
            Patience::Yield,
            || match running.state() {
                RunState::Running => Ok(None),
                RunState::Ended => Ok(Some(())),
                RunState::Faulted(error) => Err(error),
            },
            || Ok(()),
        );
        let Ok(Some(())) = ended else {
            linger(running, Used::Probe { _table: piece });
            let silent = crate::error::DriverError {
                call: "layout_probe",
                code: 0,
                reason: "no answer within 5 s".to_owned(),
            };
            return Err(ended.err().unwrap_or(silent).into());
        };
        // SAFETY: the kernel has ended, and wrote as many numbers; any bytes are numbers.
        Ok(unsafe { memory.host.cast::<[u64; TABLE_LEN]>().read() })
    }
}

impl Core {
    /// How threads wait for this device's messages.
    fn patience(&self) -> Patience {
        match self.driver.info().kind {
            DeviceKind::Cpu => Patience::Yield,
            DeviceKind::Cuda => Patience::Spin,
        }
    }
}

/// The driver for `device`, and why it.
fn choose(device: Device) -> Result<(Arc<dyn Driver>, String), OpenError> {
    match device {
        Device::Cpu => Ok((Arc::new(Cpu::open()), "asked for".to_owned())),
        Device::Cuda(index) => Ok((cuda(index)?, "asked for".to_owned())),
        Device::Auto => match cuda(0) {
            Ok(driver) => Ok((driver, "a GPU that can run ring kernels".to_owned())),
            Err(error) => {
                tracing::info!(%error, "no GPU; CPU threads instead");
                Ok((Arc::new(Cpu::open()), format!("no GPU can be used: {error}")))
            }
        },
    }
}

#[cfg(feature = "cuda")]
fn cuda(index: usize) -> Result<Arc<dyn Driver>, OpenError> {
    Ok(crate::driver::cuda::Cuda::open(index)?)
}

#[cfg(not(feature = "cuda"))]
fn cuda(_: usize) -> Result<Arc<dyn Driver>, OpenError> {
    Err(OpenError::NotBuilt)
}

/// Kernel `K` on one CPU thread.
///
/// # Safety
/// `parameter` is the address of a control block as `ring_device::run` needs it.
unsafe fn cpu_entry<K: Kernel>(parameter: u64, lane: u32, memory: &mut TeamMemory, hooks: Hooks) {
    let control = std::ptr::with_exposed_provenance::<ControlBlock>(parameter as usize);
    let team = Team::new(lane, memory, hooks);
    // SAFETY: the caller's promise; the team is this thread's.
    let done = catch_unwind(AssertUnwindSafe(|| unsafe { run::<K>(&team, control) }));
    if let Err(panic) = done {
        std::mem::forget(panic); // its drop could panic too, and then nobody would report it
        // SAFETY: valid by the caller's promise.
        let config = unsafe { &(*control).config };
        let blocks = config.lane_blocks.load(Ordering::Relaxed) as usize;
        let blocks = std::ptr::with_exposed_provenance::<LaneBlock>(blocks);
        // SAFETY: this lane's block; the lane was in range, or `run` had returned.
        let status = unsafe { &(*blocks.add(lane as usize)).status };
        let epoch = Command::from_word(status.acknowledged.load(Ordering::Relaxed)).epoch;
        status.exit.store(Exit::HandlerPanicked as u32, Ordering::Relaxed);
        let word = Command { epoch, state: State::Faulted as u32 }.to_word();
        // SYNC: released to the host's acquire of `acknowledged`.
        status.acknowledged.store(word, Ordering::Release);
    }
}

/// The layout probe on the CPU.
///
/// # Safety
/// `parameter` is the address of room for the table.
unsafe fn cpu_layout_probe(parameter: u64, _: u32, _: &mut TeamMemory, _: Hooks) {
    let out = std::ptr::with_exposed_provenance_mut::<[u64; TABLE_LEN]>(parameter as usize);
    // SAFETY: the caller's room.
    unsafe { out.write(table()) };
}
