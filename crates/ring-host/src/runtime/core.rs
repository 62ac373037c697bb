//! Starting a kernel in exactly the way that was chosen.

use super::environment::asked;
use crate::buffers::kernels::{Kernels, Live, Messages};
use crate::buffers::table::Buffers;
use crate::deadline::{Deadline, Patience, wait};
use crate::device::cpu::program;
use crate::device::image::Image;
use crate::device::{Demand, DeviceKind, Driver, Function, Grid, Limits, Opened};
use crate::drive::Drive;
use crate::drive::device_kernel::DeviceKernel;
use crate::drive::lease::Lease;
use crate::drive::orphans::reap;
use crate::drive::report::Report;
use crate::drive::selection::{Candidate, Facts, Needs, candidates};
use crate::error::{BufferError, LaunchError, QuiesceError, Refusal};
use crate::kernel::away::Away;
use crate::kernel::core::KernelCore;
use crate::kernel::handle::KernelHandle;
use crate::kernel::launch::LaunchConfig;
use crate::kernel::state::clear_state;
use crate::memory::arena::{Arena, Exhausted};
use crate::memory::links::Partners;
use crate::memory::plan::Plan;
use crate::memory::region::Region;
use crate::mode::{Memory, Mode, PayloadMemory, nanoseconds};
use crate::sync::lock;
use ring_device::{Kernel, Scope};
use ring_shared::layout::UNLIMITED;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Slots of a ring at least, where nobody chose and memory is short.
const LEAST_CAPACITY: u32 = 64;

/// How long a persistent kernel in staged memory is waited for to be copied to the device and launched.
const STAGED_LAUNCH: Duration = Duration::from_secs(1);

/// How long it may take to make the table of buffers.
const TABLE_MADE: Duration = Duration::from_secs(5);

/// How long it may take to clear a new kernel's state.
const STATE_CLEARED: Duration = Duration::from_secs(5);

/// A loaded function, what it may be launched with, and what memory a launch needs.
type Ready = (Arc<dyn Function>, Limits, Plan);

/// What clones of a runtime share.
#[derive(Debug)]
pub(crate) struct RuntimeCore {
    pub driver: Arc<dyn Driver>,
    pub pinned: Option<Arc<Arena>>,
    pub device: Arc<Arena>,
    pub why: Opened,
    /// What a launch without code of its own runs.
    pub kernels: Image,
    /// The kernels that were launched.
    launched: Arc<Kernels>,
    /// The buffers, from the first on, or from the first kernel that may view some.
    buffers: Mutex<Option<Arc<Buffers>>>,
}

impl RuntimeCore {
    pub fn new(
        driver: Arc<dyn Driver>,
        (pinned, device): (Option<Arc<Arena>>, Arc<Arena>),
        why: Opened,
        kernels: Image,
    ) -> RuntimeCore {
        let (launched, buffers) = (Arc::default(), Mutex::default());
        RuntimeCore { driver, pinned, device, why, kernels, launched, buffers }
    }

    /// The kernels that were launched.
    #[cfg(feature = "metrics")]
    pub fn launched(&self) -> &Arc<Kernels> {
        &self.launched
    }

    /// The buffers, made if there are none yet.
    pub fn buffers(&self, deadline: Deadline) -> Result<Arc<Buffers>, BufferError> {
        let mut buffers = lock(&self.buffers);
        if let Some(buffers) = &*buffers {
            return Ok(Arc::clone(buffers));
        }
        let arenas = (self.pinned.as_ref(), &self.device);
        let made = Buffers::new(&self.driver, arenas, &self.launched, self.patience(), deadline)?;
        Ok(Arc::clone(buffers.insert(made)))
    }

    /// The buffers, if there are any.
    pub fn buffers_if_any(&self) -> Option<Arc<Buffers>> {
        lock(&self.buffers).clone()
    }

    /// The buffers for a kernel that may view some. Without their table it runs all the same, and views none.
    fn buffers_of_kernel(&self, kernel: &'static str) -> Option<Arc<Buffers>> {
        let buffers = self.buffers(TABLE_MADE.into());
        let lacks =
            |error: &BufferError| tracing::warn!(kernel, %error, "kernel can view no buffers");
        buffers.inspect_err(lacks).ok()
    }

    /// The report with what `Auto` chooses from it.
    pub fn with_selection(&self, mut report: Report) -> Report {
        let needs = Needs { copies: true, mapped_payload: false, calls: false, trace: false };
        let (serve, refused) = self.candidates(&report, (Mode::Auto, Memory::Auto), needs);
        let first = serve.into_iter().next().map(|chosen| chosen.selection);
        report.selection = first.ok_or(refused);
        report
    }

    /// All that could serve a kernel, best first, and why the rest does not.
    pub fn candidates(
        &self,
        report: &Report,
        wanted: (Mode, Memory),
        needs: Needs,
    ) -> (Vec<Candidate>, Vec<Refusal>) {
        let facts = Facts {
            probe: &report.probe,
            pinned: &report.pinned,
            watchdog: self.driver.info().watchdog,
            needs,
        };
        candidates(asked(report, wanted), facts)
    }

    /// The loaded function, what it may be launched with, and what memory it needs.
    pub fn ready<K: Kernel>(&self, launch: &LaunchConfig) -> Result<Ready, LaunchError> {
        reap();
        let plan = launch.check_device::<K>(self.driver.info())?;
        let image = launch.image::<K>(&self.kernels)?;
        let function = self.driver.load(program::<K>(&image));
        let function = function.map_err(|source| LaunchError::Image { kernel: K::NAME, source })?;
        let limits = function.limits(launch.threads_of::<K>())?;
        launch.check_kernel::<K>(limits, self.driver.info())?;
        Ok((function, limits, plan))
    }

    /// Bytes that a kernel may take in that memory whose size nobody chose.
    fn fair_share(&self, memory: Memory) -> usize {
        let pinned = self.pinned.as_ref().map_or(usize::MAX, |arena| arena.free());
        let free = match memory {
            Memory::Mapped => pinned,
            Memory::StagedSync => self.device.free(),
            _ => pinned.min(self.device.free()),
        };
        free / 3 * 2
    }

    /// The memory of a kernel: as planned where that was chosen; else with less where memory is short: with fewer
    /// slots, so that the next kernel has room too, and with fewer lines if nothing else fits. Each step is
    /// tried with the payload in device memory too, if nobody chose where it lies.
    fn region(&self, mut plan: Plan, launch: &LaunchConfig) -> Result<Region, Exhausted> {
        let exactly = |plan| Region::new(plan, self.pinned.as_ref(), &self.device);
        let anywhere = launch.asked_payload() == PayloadMemory::Auto;
        let new = |plan: Plan| {
            let region = exactly(plan);
            if region.is_ok() || !(anywhere && plan.payload_is_mapped()) {
                return region;
            }
            // What was missing at first is told if that fails too.
            exactly(Plan { payload_memory: PayloadMemory::Device, ..plan }).or(region)
        };
        while !launch.has_capacity() && plan.capacity > LEAST_CAPACITY {
            if plan.host_bytes() <= self.fair_share(plan.memory)
                && let Ok(region) = new(plan)
            {
                return Ok(region);
            }
            plan.capacity /= 2;
        }
        while !launch.has_window() && plan.lines > 1 {
            if let Ok(region) = new(plan) {
                return Ok(region);
            }
            plan.lines /= 2;
        }
        new(plan)
    }

    /// Starts a kernel in exactly the chosen way.
    pub fn start<K: Kernel>(
        &self,
        launch: &LaunchConfig,
        chosen: Candidate,
        partners: Partners<'_>,
    ) -> Result<KernelHandle<K>, LaunchError> {
        let config = launch.drive_config(&chosen);
        let (mode, memory) = (config.mode, config.memory);
        let (function, limits, plan) = self.ready::<K>(launch)?;
        let (info, occupancy) = (self.driver.info(), self.driver.occupancy());
        let (channels, threads) = (launch.channel_count(), launch.threads_of::<K>());
        let blocks = launch.blocks_of::<K>(info);
        let reservation = occupancy.reserve(Demand {
            kernel: K::NAME,
            blocks,
            block: limits.block,
            relaunched: !config.is_resident(),
        })?;
        // What the driver allocated is gone after a reset: nobody may write a lease there.
        let stays = self.pinned.as_ref().is_some_and(|arena| arena.stays());
        let lease = launch.lease_in(memory).filter(|_| stays);
        let buffers = if K::USES_PAYLOAD { self.buffers_of_kernel(K::NAME) } else { None };
        let plan = Plan {
            memory,
            buffers: buffers.as_ref().map_or(0, |buffers| buffers.device()),
            lines: if config.is_resident() { plan.lines } else { 1 },
            budgets: config.budgets,
            lease: lease.map_or(UNLIMITED, nanoseconds),
            ..plan
        };
        let region = self.region(plan, launch);
        let mut region = region.map_err(|none| none.of_kernel(K::NAME))?;
        let mut head: &[u64] = &[];
        match partners {
            Partners::None => {}
            Partners::Graph(links) => region.connect(links.clone()),
            Partners::Grids(grids) => {
                head = &grids.line;
                region.keep(Arc::clone(&grids.memory));
            }
        }
        let presence = buffers.map(|buffers| buffers.presence());
        if let Some(presence) = &presence {
            region.keep(Arc::clone(presence));
        }
        let (cooperative, window) = (launch.is_cooperative::<K>(info), region.plan.lines);
        let grid = Grid { blocks, threads, cooperative };
        let launch_slot = function.launch_slot(grid, region.parameter(), mode == Mode::Graph)?;
        let drive = Drive::new(config, &region, &*launch_slot)?;
        let lease = lease.filter(|_| self.driver.renews()).map(|lease| {
            // SAFETY: a word of the region, which `DeviceKernel` gives back after it has dropped the lease.
            unsafe { Lease::keep(&region.control().host.renewed, lease) }
        });
        let lease = lease.transpose().map_err(LaunchError::LeaseThread)?;
        let clock = (info.ticks(), self.patience());
        let launched = (grid, launch_slot, reservation);
        let named = (K::NAME, self.driver.label().into());
        let device = DeviceKernel::new(named, clock, (region, lease), launched);
        let core = Arc::new(KernelCore::new(device, drive));
        let messages = Messages {
            answers: <K::Scope as Scope<K>>::PORTS.is_none(),
            first_block_answers: K::FIRST_BLOCK_ANSWERS,
            bytes: [size_of::<K::Request>(), size_of::<K::Response>()],
        };
        self.launched.add(&core, presence.as_ref(), messages);
        // Before the launch: the blocks of a grid meet there.
        clear_state(&core.device, head, STATE_CLEARED.into())?;
        launch_first(&core, mode)?;
        let (kernel, device) = (K::NAME, &*core.device.device);
        match chosen.of_probe {
            true => tracing::debug!(kernel, device, %mode, %memory, "launched"),
            false => {
                tracing::info!(kernel, device, %mode, %memory, channels, blocks, threads, window, cooperative, "launched");
            }
        }
        Ok(KernelHandle::new(core, chosen.selection, chosen.of_probe))
    }

    /// Calls `work` while no kernel is on the device.
    pub fn quiesce<T>(
        &self,
        deadline: Deadline,
        work: impl FnOnce() -> T,
    ) -> Result<T, QuiesceError> {
        reap();
        let live = self.launched.live();
        let linked = live.iter().find(|Live { core, messages, .. }| {
            !core.device.has_ended() && (core.has_peers() || !messages.answers)
        });
        if let Some(Live { core, .. }) = linked {
            return Err(QuiesceError::Linked { kernel: core.device.name });
        }
        let aside = live.iter().filter_map(|live| live.core.step_aside(deadline).transpose());
        let mut away = aside.collect::<Result<Vec<_>, _>>()?;
        away.iter().try_for_each(|kernel| kernel.stopped(deadline))?;
        away.iter().try_for_each(|kernel| kernel.can_resume(deadline))?;
        away.iter_mut().for_each(Away::leave);
        away.iter().try_for_each(Away::left)?;
        Ok(work())
    }

    /// How threads wait for this device's messages.
    fn patience(&self) -> Patience {
        match self.driver.info().kind {
            DeviceKind::Cpu => Patience::Yield,
            DeviceKind::Cuda => Patience::Spin,
        }
    }
}

/// Puts a persistent kernel on the device; any other is launched when there is something to do.
fn launch_first(core: &KernelCore, mode: Mode) -> Result<(), LaunchError> {
    let (kernel, drive) = (&core.device, &core.drive);
    if matches!(drive, Drive::Resident) {
        kernel.launch_resident()?;
    } else if mode == Mode::Persistent {
        let look = || Ok::<_, LaunchError>(drive.is_launched(kernel)?.then_some(()));
        wait(STAGED_LAUNCH.into(), Patience::Yield, look, || Ok(()))?;
    }
    Ok(())
}
