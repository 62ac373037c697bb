//! Opening a device and launching kernels on it.

mod findings;
pub mod probe;
pub(crate) mod recovery;

use crate::deadline::{Deadline, Patience, wait};
use crate::device::image::Image;
use crate::device::platform::wsl_signs;
use crate::device::{
    self, Cells, Demand, Driver, Function, Grid, Launched, Limits, Program, RunState,
};
use crate::device::{Device, DeviceInfo, DeviceKind};
use crate::device::{Opened, UnknownName};
use crate::drive::lease::Lease;
use crate::drive::mode::{Memory, Mode, nanoseconds};
use crate::drive::orphans::{Used, linger, sweep};
use crate::drive::report::{AskedBy, Forced, Report};
use crate::drive::scheduler::{Drive, Pump, patiently};
use crate::drive::selection::{Asked, Chosen, Facts, choices};
use crate::error::{
    ArenaKind, DriverError, DriverReason, LaunchError, NoPinned, Obstacle, OpenError, Refusal,
};
use crate::kernel::core::Shared;
use crate::kernel::handle::KernelHandle;
use crate::kernel::launch::LaunchConfig;
use crate::memory::arena::Arena;
use crate::memory::region::{NoRoom, Plan, Region};
use crate::runtime::findings::Findings;
use ring_device::{Hooks, Kernel, Scope, Team, TeamMemory, run};
use ring_shared::layout::{
    ChannelBlock, Command, ControlBlock, Exit, State, TABLE_LEN, UNLIMITED, table,
};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Pinned memory that is tried for if as much as asked for is refused.
const LESS_PINNED: [usize; 3] = [32 << 20, 8 << 20, 2 << 20];

/// Slots of a ring at least, where nobody chose and memory is short.
const LEAST_CAPACITY: u32 = 64;

/// How long a persistent kernel in staged memory is waited for to be carried and launched.
const STAGED_LAUNCH: Duration = Duration::from_secs(1);

/// How long a launch waits for what the driver does instead, such as loading code.
const LAUNCHED: Duration = Duration::from_secs(60);

/// The entry of the kernel that writes the layouts; no other has a parameter that is no control block.
pub(crate) const LAYOUT_PROBE: &str = "ring_layout_probe";

/// How often it is tried whether a kernel stays, when a device is opened.
const TRIES: u32 = 4;

/// How often that is tried again at a launch.
const TRIES_AT_LAUNCH: u32 = 2;

/// How long it may take to clear a new kernel's state.
const STATE_CLEARED: Duration = Duration::from_secs(5);

/// Forces the mode of every kernel: `persistent`, `event-driven` or `graph`.
pub const MODE_VARIABLE: &str = "RING_MODE";

/// Forces the memory of every kernel: `mapped`, `staged-async` or `staged-sync`.
pub const MEMORY_VARIABLE: &str = "RING_MEMORY";

/// Memory that a runtime takes when it opens a device, once.
#[derive(Clone, Copy, Debug)]
pub struct RuntimeConfig {
    /// Pinned memory for control blocks, rings and staging, in bytes. If so much is refused, less is
    /// tried; without any, kernels run in staged-sync memory.
    pub pinned_bytes: usize,
    /// Device memory for payloads, and for rings in staged memory, in bytes.
    pub device_bytes: usize,
}

impl Default for RuntimeConfig {
    /// 64 MiB pinned, 64 MiB on the device: eight channels with the largest default rings, or sixty kernels,
    /// since rings whose capacity was not chosen leave room for others.
    fn default() -> RuntimeConfig {
        RuntimeConfig { pinned_bytes: 64 << 20, device_bytes: 64 << 20 }
    }
}

/// An open device. Cheap to clone; kernels keep what they need of it.
#[derive(Clone, Debug)]
pub struct Runtime {
    pub(crate) core: Arc<Core>,
    findings: Arc<Findings>,
    options: RuntimeConfig,
}

/// A loaded function, what it may be launched with, and what memory a launch needs.
type Ready = (Arc<dyn Function>, Limits, Plan);

/// What clones of a runtime share.
#[derive(Debug)]
pub(crate) struct Core {
    pub driver: Arc<dyn Driver>,
    pinned: Option<Arc<Arena>>,
    device: Arc<Arena>,
    why: Opened,
}

impl Runtime {
    /// Opens a device with the default [`RuntimeConfig`].
    pub fn open(device: Device) -> Result<Runtime, OpenError> {
        Runtime::open_with(device, RuntimeConfig::default())
    }

    /// Opens a device. The first time in a process it is probed, which takes some milliseconds. If the
    /// machine was too busy to find something out ([`Lack::Unknown`](crate::runtime::probe::Lack)), the next
    /// opening tries again, and so does a launch that leaves the mode or the memory to the runtime.
    ///
    /// The environment variables [`RING_MODE`](MODE_VARIABLE) and [`RING_MEMORY`](MEMORY_VARIABLE)
    /// force what every launch would else choose or ask for.
    pub fn open_with(device: Device, options: RuntimeConfig) -> Result<Runtime, OpenError> {
        let (driver, why) = device::open(device)?;
        Runtime::of_driver(driver, why, options)
    }

    /// Opens a device that was made before: one with [`Quirks`](crate::device::Quirks), say.
    #[cfg(feature = "quirks")]
    pub fn over(
        driver: impl Driver + 'static,
        options: RuntimeConfig,
    ) -> Result<Runtime, OpenError> {
        Runtime::of_driver(Arc::new(driver), Opened::Given, options)
    }

    fn of_driver(
        driver: Arc<dyn Driver>,
        why: Opened,
        options: RuntimeConfig,
    ) -> Result<Runtime, OpenError> {
        sweep();
        let forced = forced_by_environment()?;
        let (pinned, found) = take_pinned(&driver, options.pinned_bytes);
        let bytes = options.device_bytes;
        let device = Arena::device(&driver, bytes);
        let device = device.map_err(|source| OpenError::Arena { bytes, source })?;
        tracing::info!(device = driver.info().name, %why, "device opened");
        let probe = driver.probed().find(&driver, TRIES)?;
        let core = Arc::new(Core::new(driver, pinned, device, why));
        let report =
            Report { wsl: wsl_signs(), pinned: found, probe, forced, choice: Err(Vec::new()) };
        let findings = Arc::new(Findings::new(core.with_choice(report)));
        Ok(Runtime { core, findings, options })
    }

    /// Goes on with the device that follows this one if it was reset; whether it was.
    pub(crate) fn reopen_if_reset(&mut self) -> Result<bool, OpenError> {
        let Some(driver) = self.core.driver.recovered()? else { return Ok(false) };
        *self = Runtime::of_driver(driver, self.core.why.clone(), self.options)?;
        Ok(true)
    }

    /// The device.
    pub fn device(&self) -> &DeviceInfo {
        self.core.driver.info()
    }

    /// Why this device was chosen.
    pub fn why(&self) -> &Opened {
        &self.core.why
    }

    /// What was found out about the device, by its opening or by a launch since, and what `Auto` chooses
    /// from it.
    pub fn report(&self) -> &Report {
        self.findings.report()
    }

    /// Checks a launch and loads its code, without launching it. The driver loads nothing while a
    /// kernel is resident, so PTX of your own is to be prepared before; the built-in kernels are
    /// loaded when the device is opened.
    pub fn prepare<K: Kernel>(&self, launch: &LaunchConfig) -> Result<(), LaunchError> {
        self.chosen::<K>(launch)?;
        self.core.ready::<K>(launch).map(drop)
    }

    /// All ways in which the kernel can be run as asked, best first.
    fn chosen<K: Kernel>(&self, launch: &LaunchConfig) -> Result<Vec<Chosen>, LaunchError> {
        launch.check_device::<K>(self.device())?;
        let report = self.report_for(launch);
        let (serve, refused) = self.core.choices(report, launch.asked(), copies::<K>());
        if serve.is_empty() {
            let asked = asked(report, launch.asked());
            let (kernel, mode, memory) = (K::NAME, asked.mode, asked.memory);
            let error = LaunchError::Unfit { kernel, mode, memory, refused };
            tracing::warn!(%error, "launch refused");
            return Err(error);
        }
        Ok(serve)
    }

    /// The findings to choose by. If a busy moment kept something from being found out, and the launch
    /// leaves it to us, it is tried again.
    fn report_for(&self, launch: &LaunchConfig) -> &Report {
        let asked = asked(self.report(), launch.asked());
        if asked.mode == Mode::Auto || asked.memory == Memory::Auto {
            let driver = &self.core.driver;
            self.findings.look_again(
                || driver.probed().find(driver, TRIES_AT_LAUNCH).ok(),
                |report| self.core.with_choice(report),
            );
        }
        self.report()
    }

    /// Makes a kernel ready to take commands, and messages once activated: a persistent one is put
    /// on the device, any other is launched when there is something to do.
    pub fn launch<K: Kernel>(&self, launch: LaunchConfig) -> Result<KernelHandle<K>, LaunchError> {
        let mut refused = Vec::new();
        for mut chosen in self.chosen::<K>(&launch)? {
            chosen.choice.refused.extend(refused.iter().cloned());
            let (mode, memory) = (chosen.choice.mode, chosen.choice.memory);
            match self.core.start::<K>(&launch, chosen) {
                // The driver refused; another way may do without what it refused.
                Err(LaunchError::Driver(error)) => {
                    tracing::warn!(kernel = K::NAME, %mode, %memory, %error, "not launched so");
                    refused.push(Refusal { mode, memory, why: error.into() });
                }
                done => return done,
            }
        }
        Err(match refused.pop() {
            Some(Refusal { why: Obstacle::Driver(error), .. }) => error.into(),
            last => {
                let (mode, memory) = launch.asked();
                refused.extend(last);
                LaunchError::Unfit { kernel: K::NAME, mode, memory, refused }
            }
        })
    }

    /// The table of [`ring_shared::layout::table`] as the device's compiler sees it.
    pub fn layout_on_device(&self) -> Result<[u64; TABLE_LEN], LaunchError> {
        let kernel = "layout_probe";
        let deadline = Deadline::from(Duration::from_secs(5));
        let none = |exhausted| NoRoom { which: ArenaKind::Device, exhausted }.of_kernel(kernel);
        let arena = Arena::device(&self.core.driver, TABLE_LEN * 8 * 2)?; // the caller's may be full
        let piece = arena.lend(TABLE_LEN * 8).map_err(none)?;
        let image = Image::built_in();
        let program = Program { entry: LAYOUT_PROBE, image: &image, cpu: cpu_layout_probe };
        let function = self.core.driver.load(program);
        let function = function.map_err(|source| LaunchError::Image { kernel, source })?;
        let grid = Grid { channels: 1, threads: 1, cooperative: false };
        let block = function.limits(grid.threads)?.block;
        let demand = Demand { kernel, blocks: 1, block, relaunched: false };
        let share = self.core.driver.residency().reserve(demand)?;
        let station = function.station(grid, piece.device(), false)?;
        let mut found = Box::new([0u64; TABLE_LEN]);
        let over = |state| match state {
            RunState::Running => Ok(None),
            RunState::Ended => Ok(Some(())),
            RunState::Faulted(error) => Err(error),
        };
        let ended = || -> Result<Option<()>, DriverError> {
            // SAFETY: the piece has room for the table, and is set aside below unless all is over.
            if !launched(deadline, || unsafe { station.launch(false) })? {
                return Ok(None);
            }
            let ran = wait(deadline, Patience::Yield, || over(station.state()), || Ok(()))?;
            if ran.is_none() {
                return Ok(None);
            }
            let to = NonNull::from(&mut *found).cast();
            // SAFETY: both have room for the table; the kernel has ended; `found` is set aside below
            // unless the copy is over.
            unsafe { station.copy_out(to, piece.device(), TABLE_LEN * 8, Cells::Words) }?;
            wait(deadline, Patience::Yield, || over(station.copies()), || Ok(()))
        }();
        if !station.is_over() {
            let device = share.device().clone();
            linger(device, station, Used::Probe { _table: piece, _found: found, _share: share });
            let silent = DriverError {
                call: "layout_probe",
                code: 0,
                reason: DriverReason::Silent { waited: deadline.waited() },
            };
            return Err(ended.err().unwrap_or(silent).into());
        }
        ended?;
        Ok(*found)
    }
}

/// Pinned memory: as much as asked for, or less if that is refused; and what was found.
fn take_pinned(
    driver: &Arc<dyn Driver>,
    wanted: usize,
) -> (Option<Arc<Arena>>, Result<usize, NoPinned>) {
    let mut why = NoPinned::NotAsked;
    let less = LESS_PINNED.into_iter().filter(|less| *less < wanted);
    for bytes in std::iter::once(wanted).chain(less).filter(|bytes| *bytes > 0) {
        match Arena::pinned(driver, bytes) {
            Ok(arena) => return (Some(arena), Ok(bytes)),
            Err(error) => {
                tracing::warn!(bytes, %error, "pinned memory refused");
                why = error.into();
            }
        }
    }
    (None, Err(why))
}

/// Launches until the driver has done what keeps it from that; whether it was launched in time.
fn launched(
    deadline: Deadline,
    mut launch: impl FnMut() -> Result<Launched, DriverError>,
) -> Result<bool, DriverError> {
    let once = || match patiently(&mut launch)? {
        Launched::Yes => Ok(Some(())),
        Launched::NotYet => Ok(None),
    };
    wait(deadline, Patience::Yield, once, || Ok(())).map(|launched| launched.is_some())
}

/// The error for a launch that the driver's other work has kept away for too long.
fn not_launched() -> DriverError {
    let reason = DriverReason::Loading { waited: LAUNCHED };
    DriverError { call: "launch", code: 0, reason }
}

/// Whether a kernel needs copies beside it: of its payload, or of its state.
fn copies<K: Kernel>() -> bool {
    K::USES_PAYLOAD || <K::Scope as Scope<K>>::STATE_BYTES > 0
}

/// What the environment forces.
fn forced_by_environment() -> Result<Forced, OpenError> {
    Ok(Forced { mode: forced_by(MODE_VARIABLE)?, memory: forced_by(MEMORY_VARIABLE)? })
}

/// What a variable of the environment forces, if it is set.
fn forced_by<T>(variable: &'static str) -> Result<Option<T>, OpenError>
where
    T: FromStr<Err = UnknownName>,
{
    let value = std::env::var_os(variable).filter(|value| !value.is_empty());
    let Some(value) = value.map(|value| value.to_string_lossy().into_owned()) else {
        return Ok(None);
    };
    let forced = value.parse().map_err(|source| OpenError::Environment { variable, source })?;
    tracing::info!(variable, value, "forced by the environment");
    Ok(Some(forced))
}

/// What is asked for, the environment before the caller.
fn asked(report: &Report, (mode, memory): (Mode, Memory)) -> Asked {
    let Forced { mode: by_mode, memory: by_memory } = report.forced;
    let by = match report.forced.is_empty() {
        true => AskedBy::Launch,
        false => AskedBy::Environment { mode: by_mode.is_some(), memory: by_memory.is_some() },
    };
    Asked { mode: by_mode.unwrap_or(mode), memory: by_memory.unwrap_or(memory), by }
}

impl Core {
    pub fn new(
        driver: Arc<dyn Driver>,
        pinned: Option<Arc<Arena>>,
        device: Arc<Arena>,
        why: Opened,
    ) -> Core {
        Core { driver, pinned, device, why }
    }

    /// The report with what `Auto` chooses from it.
    fn with_choice(&self, mut report: Report) -> Report {
        let (serve, refused) = self.choices(&report, (Mode::Auto, Memory::Auto), true);
        let first = serve.into_iter().next().map(|chosen| chosen.choice);
        report.choice = first.ok_or(refused);
        report
    }

    /// All that could serve a kernel, best first, and why the rest does not.
    fn choices(
        &self,
        report: &Report,
        wanted: (Mode, Memory),
        uses_payload: bool,
    ) -> (Vec<Chosen>, Vec<Refusal>) {
        let facts = Facts {
            probe: &report.probe,
            pinned: &report.pinned,
            watchdog: self.driver.info().watchdog,
            uses_payload,
        };
        choices(asked(report, wanted), facts)
    }

    /// The loaded function, what it may be launched with, and what memory it needs.
    fn ready<K: Kernel>(&self, launch: &LaunchConfig) -> Result<Ready, LaunchError> {
        sweep();
        let plan = launch.check_device::<K>(self.driver.info())?;
        let image = launch.image::<K>()?;
        let program = Program { entry: K::ENTRY, image: &image, cpu: cpu_entry::<K> };
        let function = self.driver.load(program).map_err(LaunchConfig::refused::<K>)?;
        let limits = function.limits(launch.wants::<K>().1)?;
        launch.check_kernel::<K>(limits)?;
        Ok((function, limits, plan))
    }

    /// Bytes that a kernel may take in that memory without having been told how many.
    fn fair_share(&self, memory: Memory) -> usize {
        let pinned = self.pinned.as_ref().map_or(usize::MAX, |arena| arena.free());
        let free = match memory {
            Memory::Mapped => pinned,
            Memory::StagedSync => self.device.free(),
            _ => pinned.min(self.device.free()),
        };
        free / 3 * 2
    }

    /// The memory of a kernel: with the plan's capacity if it was `chosen`; else with less where memory is
    /// short, so that the next kernel has room too.
    fn region(&self, mut plan: Plan, chosen: bool) -> Result<Region, NoRoom> {
        while !chosen && plan.capacity > LEAST_CAPACITY {
            if plan.host_bytes() <= self.fair_share(plan.memory)
                && let Ok(region) = Region::new(plan, self.pinned.as_ref(), &self.device)
            {
                return Ok(region);
            }
            plan.capacity /= 2;
        }
        Region::new(plan, self.pinned.as_ref(), &self.device)
    }

    /// Starts a kernel in exactly the chosen way.
    pub fn start<K: Kernel>(
        self: &Arc<Core>,
        launch: &LaunchConfig,
        chosen: Chosen,
    ) -> Result<KernelHandle<K>, LaunchError> {
        let (mode, memory) = (chosen.choice.mode, chosen.choice.memory);
        let (function, limits, plan) = self.ready::<K>(launch)?;
        let (channels, threads) = launch.wants::<K>();
        let simple = (mode, memory) == (Mode::Persistent, Memory::Mapped);
        let demand =
            Demand { kernel: K::NAME, blocks: channels, block: limits.block, relaunched: !simple };
        let share = self.driver.residency().reserve(demand)?;
        let budgets = launch.wire_budgets(mode, memory);
        // What the driver allocated is gone after a reset: nobody may write a lease there.
        let stays = self.pinned.as_ref().is_some_and(|arena| arena.stays());
        let lease = launch.lease_in(memory).filter(|_| stays);
        let plan = Plan { memory, budgets, lease: lease.map_or(UNLIMITED, nanoseconds), ..plan };
        let region = self.region(plan, launch.has_capacity());
        let region = region.map_err(|none| none.of_kernel(K::NAME))?;
        let grid =
            Grid { channels, threads, cooperative: launch.is_cooperative(self.driver.info()) };
        let station = function.station(grid, region.parameter(), mode == Mode::Graph)?;
        let pump = match simple {
            true => None,
            false => {
                let fallback = launch.wire_budgets(Mode::EventDriven, Memory::Mapped);
                let Chosen { mode_is_free, memory_is_free, calls_block, .. } = chosen;
                let drive = Drive {
                    mode,
                    memory,
                    mode_is_free,
                    memory_is_free,
                    calls_block,
                    budgets,
                    fallback,
                };
                Some(Pump::new(drive, &region, &*station)?)
            }
        };
        let clock = (self.driver.info().clock_khz, self.patience());
        let lease = lease.filter(|_| self.driver.renews()).map(|lease| {
            // SAFETY: a word of the region, which `Shared` gives back after it has dropped the lease.
            unsafe { Lease::keep(&region.control().host.renewed, lease) }
        });
        let lease = lease.transpose().map_err(LaunchError::Keeper)?;
        let shared = Shared::new(K::NAME, clock, (region, lease), (station, pump), share);
        if simple {
            // SAFETY: the region is laid out for `K` and stays until the station is over
            // (`Shared::drop`).
            let launch = || unsafe { shared.station().launch(false) };
            if !launched(LAUNCHED.into(), launch)? {
                return Err(not_launched().into());
            }
            let _ = shared.station().state(); // some drivers begin nothing before they are asked
        } else if mode == Mode::Persistent {
            let look = || Ok::<_, LaunchError>(shared.is_launched()?.then_some(()));
            wait(STAGED_LAUNCH.into(), Patience::Yield, look, || Ok(()))?;
        }
        let (kernel, cooperative) = (K::NAME, grid.cooperative);
        match chosen.of_probe {
            true => tracing::debug!(kernel, %mode, %memory, "launched"),
            false => {
                tracing::info!(kernel, channels, threads, cooperative, %mode, %memory, "launched");
            }
        }
        let mut kernel = KernelHandle::new(shared, chosen.choice, chosen.of_probe);
        kernel.clear_state(STATE_CLEARED)?;
        Ok(kernel)
    }

    /// How threads wait for this device's messages.
    fn patience(&self) -> Patience {
        match self.driver.info().kind {
            DeviceKind::Cpu => Patience::Yield,
            DeviceKind::Cuda => Patience::Spin,
        }
    }
}

/// Kernel `K` on one CPU thread.
///
/// # Safety
/// `parameter` is the address of a control block as `ring_device::run` needs it.
unsafe fn cpu_entry<K: Kernel>(
    parameter: u64,
    channel: u32,
    memory: &mut TeamMemory,
    hooks: Hooks,
) {
    let control = std::ptr::with_exposed_provenance::<ControlBlock>(parameter as usize);
    let team = Team::new(channel, memory, hooks);
    // SAFETY: the caller's promise; the team is this thread's.
    let done = catch_unwind(AssertUnwindSafe(|| unsafe { run::<K>(&team, control) }));
    if let Err(panic) = done {
        std::mem::forget(panic); // its drop could panic too, and then nobody would report it
        // SAFETY: this channel's block, behind the control block; the channel was in range, or `run` had
        // returned.
        let status =
            unsafe { &(*control.add(1).cast::<ChannelBlock>().add(channel as usize)).status };
        let epoch = Command::from_word(status.acknowledged.load(Ordering::Relaxed)).epoch;
        let left = status.left.load(Ordering::Relaxed).wrapping_add(1);
        // The other channels must not wait for this one.
        status.busy.store(0, Ordering::Relaxed);
        if channel == 0 {
            status.leave.store(left, Ordering::Relaxed);
        }
        status.exit.store(Exit::HandlerPanicked as u64, Ordering::Relaxed);
        let word = Command { epoch, state: State::Faulted as u32 }.to_word();
        // SYNC: released to the host's acquire of `acknowledged`.
        status.acknowledged.store(word, Ordering::Release);
        // SYNC: released to the host's acquire of `left`.
        status.left.store(left, Ordering::Release);
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
