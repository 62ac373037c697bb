//! Opening a device and launching kernels on it.

pub(crate) mod core;
mod environment;
mod findings;
mod layout;
mod probing;
pub(crate) mod recovery;

pub use environment::{MEMORY_VARIABLE, MODE_VARIABLE};

use self::core::RuntimeCore;
use self::environment::{asked, forced_by_environment};
use self::findings::Findings;
use crate::deadline::Deadline;
use crate::device::image::Image;
use crate::device::platform::wsl_signs;
use crate::device::probe::{NoQuickPages, QuickPages};
use crate::device::{self, Device, DeviceInfo, Driver, Health, Opened};
use crate::drive::orphans::reap;
use crate::drive::report::Report;
use crate::drive::selection::Candidate;
use crate::error::{LaunchError, NoPinned, Obstacle, OpenError, QuiesceError, Refusal};
use crate::kernel::embedded::Kernels;
use crate::kernel::handle::KernelHandle;
use crate::kernel::launch::LaunchConfig;
use crate::memory::arena::Arena;
use crate::memory::links::Partners;
use crate::mode::{Memory, Mode};
use ring_device::{Kernel, Scope};
use std::sync::Arc;

/// Pinned memory that is tried for if as much as asked for is refused.
const LESS_PINNED: [usize; 3] = [32 << 20, 8 << 20, 2 << 20];

/// How often it is tried whether a kernel stays, when a device is opened.
const TRIES: u32 = 4;

/// How often that is tried again at a launch.
const TRIES_AT_LAUNCH: u32 = 2;

/// What a runtime opens a device with: memory, which it takes once, and kernels.
#[derive(Clone, Copy, Debug)]
pub struct RuntimeConfig {
    /// Pinned memory for control blocks, rings, small payloads and staging, in bytes. If so much is refused, less is
    /// tried; without any, kernels run in staged-sync memory. A GPU that reads some pages sooner than others gets a 32nd
    /// more, 2 MiB at most, for request lines ([`Report::quick_pages`]).
    pub pinned_bytes: usize,
    /// Device memory for larger payloads and states, and for rings in staged memory, in bytes.
    pub device_bytes: usize,
    /// The kernels that stand for the built-in ones: what the device is probed with, and what a launch
    /// runs that names no others. They must have the entry of the layout probe (`ring_layout_probe`). A GPU
    /// loads them when it is opened; if it has not before, no kernel may be resident then. CPU threads run
    /// handlers compiled for the host; there the text is checked as [`LaunchConfig::kernels`] are.
    pub kernels: Kernels,
}

impl Default for RuntimeConfig {
    /// The built-in kernels; 64 MiB pinned, 64 MiB on the device: eight channels with the largest default
    /// rings, or sixty kernels, since rings whose capacity was not chosen leave room for others.
    fn default() -> RuntimeConfig {
        let (pinned_bytes, device_bytes) = (64 << 20, 64 << 20);
        RuntimeConfig { pinned_bytes, device_bytes, kernels: Kernels::BUILT_IN }
    }
}

/// An open device. Cheap to clone; kernels keep what they need of it.
#[derive(Clone, Debug)]
pub struct Runtime {
    pub(crate) core: Arc<RuntimeCore>,
    findings: Arc<Findings>,
    options: RuntimeConfig,
}

impl Runtime {
    /// Opens a device with the default [`RuntimeConfig`].
    pub fn open(device: Device) -> Result<Runtime, OpenError> {
        Runtime::open_with(device, RuntimeConfig::default())
    }

    /// Opens a device. The first time in a process it is probed, which takes some milliseconds. If the
    /// machine was too busy to find something out ([`Lack::Unknown`](crate::device::probe::Lack)), the next
    /// opening tries again, and so does a launch that leaves the mode or the memory to the runtime.
    ///
    /// The environment variables [`RING_MODE`](MODE_VARIABLE) and [`RING_MEMORY`](MEMORY_VARIABLE)
    /// force what every launch would else choose or ask for.
    pub fn open_with(device: Device, options: RuntimeConfig) -> Result<Runtime, OpenError> {
        let kernels = options.kernels.of_runtime()?;
        let (driver, why) = device::open(device, &kernels)?;
        Runtime::of_driver(driver, why, options, kernels)
    }

    /// Opens a device that was made before: one with [`Quirks`](crate::device::Quirks), say.
    #[cfg(feature = "quirks")]
    pub fn over(
        driver: impl Into<Arc<dyn Driver>>,
        options: RuntimeConfig,
    ) -> Result<Runtime, OpenError> {
        let kernels = options.kernels.of_runtime()?;
        Runtime::of_driver(driver.into(), Opened::Given, options, kernels)
    }

    fn of_driver(
        driver: Arc<dyn Driver>,
        why: Opened,
        options: RuntimeConfig,
        kernels: Image,
    ) -> Result<Runtime, OpenError> {
        reap();
        let loaded = driver.load_all(&kernels)?;
        let forced = forced_by_environment()?;
        let (pinned, found, quick_pages) = alloc_pinned(&driver, options.pinned_bytes, &kernels);
        let bytes = options.device_bytes;
        let device = Arena::device(&driver, bytes);
        let device = device.map_err(|source| OpenError::Arena { bytes, source })?;
        tracing::info!(device = driver.label(), %why, "device opened");
        let probe = driver.probed().find(|| probing::probe(&driver, &kernels, TRIES))?;
        let core = Arc::new(RuntimeCore::new(driver, (pinned, device), why, kernels));
        let report = Report {
            wsl: wsl_signs(),
            loaded,
            pinned: found,
            quick_pages,
            probe,
            forced,
            selection: Err(Vec::new()),
        };
        let findings = Arc::new(Findings::new(core.with_selection(report)));
        Ok(Runtime { core, findings, options })
    }

    /// Goes on with the device that follows this one if it was reset; whether it was.
    pub(crate) fn reopen_if_reset(&mut self) -> Result<bool, OpenError> {
        let Some(driver) = self.core.driver.recovered()? else { return Ok(false) };
        let (why, kernels) = (self.core.why.clone(), self.core.kernels.clone());
        *self = Runtime::of_driver(driver, why, self.options, kernels)?;
        Ok(true)
    }

    /// The device.
    pub fn device(&self) -> &DeviceInfo {
        self.core.driver.info()
    }

    /// Whether it serves, as the driver says now. A kernel that is lost by itself says so where it is waited for; other kernels
    /// of the device go on.
    pub fn health(&self) -> Health {
        self.core.driver.health()
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

    /// Calls `work` while none of the runtime's kernels is on the device: for driver calls of other code in the process that would else
    /// wait until they end, such as `cudaFree`, or the first launch of a kernel
    /// ([Beside other CUDA code](crate#beside-other-cuda-code)).
    ///
    /// Each kernel leaves between two messages and then goes on where it was, also if `work` panics. Nothing is lost: what is sent
    /// meanwhile waits in the rings, and no send is refused. A kernel that another thread launches meanwhile is not kept away. Commands
    /// wait until `work` has returned, so that `work` cannot activate or deactivate a kernel; it may terminate one.
    ///
    /// ```
    /// # use ring_host::{Device, LaunchConfig, Runtime, kernels::{Echo, EchoMessage}};
    /// # use std::time::Duration;
    /// # let second = Duration::from_secs(1);
    /// let runtime = Runtime::open(Device::Cpu)?;
    /// let mut kernel = runtime.launch::<Echo>(LaunchConfig::default())?;
    /// kernel.activate(second)?;
    /// let request = EchoMessage::from_seed(7);
    /// runtime.quiesce(second, || kernel.send(request, second))??;
    /// assert_eq!(kernel.recv(second)?, request.answer());
    /// # kernel.terminate(second)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// When a kernel has ports or is a grid of several devices, or does not stop to take messages before the deadline. Then `work` was not
    /// called, and all go on.
    pub fn quiesce<T>(
        &self,
        deadline: impl Into<Deadline>,
        work: impl FnOnce() -> T,
    ) -> Result<T, QuiesceError> {
        self.core.quiesce(deadline.into(), work)
    }

    /// Checks a launch and loads its code, without launching it. The driver loads nothing while a
    /// kernel is resident, so PTX of your own is to be prepared before; [`RuntimeConfig::kernels`] are
    /// loaded when the device is opened.
    pub fn prepare<K: Kernel>(&self, launch: &LaunchConfig) -> Result<(), LaunchError> {
        self.chosen::<K>(launch)?;
        self.core.ready::<K>(launch).map(drop)
    }

    /// All ways in which the kernel can be run as asked, best first.
    fn chosen<K: Kernel>(&self, launch: &LaunchConfig) -> Result<Vec<Candidate>, LaunchError> {
        launch.check_device::<K>(self.device())?;
        let report = self.report_for(launch);
        let needs = launch.needs::<K>();
        let (serve, refused) = self.core.candidates(report, launch.asked(), needs);
        if serve.is_empty() {
            let asked = asked(report, launch.asked());
            let (kernel, mode, memory) = (K::NAME, asked.mode, asked.memory);
            let error = LaunchError::Unfit { kernel, mode, memory, refused };
            tracing::warn!(kernel, %error, "launch refused");
            return Err(error);
        }
        Ok(serve)
    }

    /// The findings to choose by. If a busy moment kept something from being found out, and the launch
    /// leaves it to us, it is tried again.
    fn report_for(&self, launch: &LaunchConfig) -> &Report {
        let asked = asked(self.report(), launch.asked());
        if asked.mode == Mode::Auto || asked.memory == Memory::Auto {
            let RuntimeCore { driver, kernels, .. } = &*self.core;
            self.findings.look_again(|first| {
                let found =
                    driver.probed().find(|| probing::probe(driver, kernels, TRIES_AT_LAUNCH));
                let report = Report { probe: found.ok()?, ..first.clone() };
                Some(self.core.with_selection(report))
            });
        }
        self.report()
    }

    /// Makes a kernel ready to take commands, and messages once activated: a persistent one is put
    /// on the device, any other is launched when there is something to do.
    pub fn launch<K: Kernel>(&self, launch: LaunchConfig) -> Result<KernelHandle<K>, LaunchError> {
        if <K::Scope as Scope<K>>::PORTS.is_some() {
            return Err(LaunchError::Ports { kernel: K::NAME });
        }
        self.launch_with(&launch, Partners::None)
    }

    /// The same of a kernel that meets others on the device, or grids of its own on other devices.
    pub(crate) fn launch_with<K: Kernel>(
        &self,
        launch: &LaunchConfig,
        partners: Partners<'_>,
    ) -> Result<KernelHandle<K>, LaunchError> {
        let mut refused = Vec::new();
        for mut chosen in self.chosen::<K>(launch)? {
            chosen.selection.refused.extend(refused.iter().cloned());
            let (mode, memory) = (chosen.selection.mode, chosen.selection.memory);
            if !matches!(partners, Partners::None)
                && (mode, memory) != (Mode::Persistent, Memory::Mapped)
            {
                return Err(LaunchError::NotResident { kernel: K::NAME, mode, memory });
            }
            match self.core.start::<K>(launch, chosen, partners) {
                // The driver refused; another way may do without what it refused.
                Err(LaunchError::Driver(error)) => {
                    let kernel = K::NAME;
                    tracing::warn!(kernel, %mode, %memory, %error, "launch failed in this mode and memory");
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
}

/// Pinned memory: as much as asked for, or less if that is refused; and what was found of it and of its pages.
fn alloc_pinned(
    driver: &Arc<dyn Driver>,
    wanted: usize,
    kernels: &Image,
) -> (Option<Arc<Arena>>, Result<usize, NoPinned>, QuickPages) {
    let mut why = NoPinned::NotAsked;
    let less = LESS_PINNED.into_iter().filter(|less| *less < wanted);
    for bytes in std::iter::once(wanted).chain(less).filter(|bytes| *bytes > 0) {
        match Arena::with_quick(driver, bytes, kernels) {
            Ok((arena, quick_pages)) => return (Some(arena), Ok(bytes), quick_pages),
            Err(error) => {
                tracing::warn!(device = driver.label(), bytes, %error, "pinned memory refused");
                why = error.into();
            }
        }
    }
    (None, Err(why), QuickPages::Unused(NoQuickPages::NotMapped))
}
