//! Devices with things taken away, to test how programs fare on machines that lack them.

mod allocation_table;
mod copy_lane;
mod late;
mod launch_slot;
mod memory_probe;
mod names;
mod quick_pages;
mod state;

pub use memory_probe::{Lines, MemoryProbe};
pub use names::NAMES;

use super::{CopyLane, Driver, Function, Mapped, NoPeer, Occupancy, Program, Sealed};
use crate::device::image::{Image, ImageError, Loaded};
use crate::device::layout_probe::LAYOUT_PROBE;
use crate::device::probe::{Probed, QuickPages};
use crate::device::{DeviceInfo, DeviceKind, Health};
use crate::error::{DriverError, OpenError};
use crate::setters::setters;
use copy_lane::QuirkyCopyLane;
use launch_slot::QuirkyFunction;
use state::{Faults, Numbers, State};
use std::ops::RangeBounds;
use std::ptr::NonNull;
use std::sync::Arc;
use std::time::Duration;

/// After how long a watchdog of the usual kind ends a kernel.
const USUAL_WATCHDOG: Duration = Duration::from_secs(2);

/// A device with things taken away. Each method takes one more away; what is left works as it did. Clones are
/// one device.
///
/// ```
/// use ring_host::device::{Quirks, cpu::Cpu};
/// use ring_host::{LaunchConfig, RuntimeConfig, Runtime, kernels::{Echo, EchoMessage}};
/// use std::time::Duration;
///
/// fn main() -> Result<(), ring_host::Error> {
///     let second = Duration::from_secs(1);
///     let host = Runtime::over(Quirks::wsl2(Cpu::open()), RuntimeConfig::default())?;
///     assert!(host.report().pinned.is_err()); // so it works without, and says so
///     let mut kernel = host.launch::<Echo>(LaunchConfig::default())?;
///     kernel.activate(second)?;
///     kernel.send(EchoMessage::from_seed(7), second)?;
///     assert_eq!(kernel.recv(second)?, EchoMessage::from_seed(7).answer());
///     Ok(())
/// }
/// ```
#[derive(Clone, Debug)]
pub struct Quirks {
    inner: Arc<dyn Driver>,
    info: DeviceInfo,
    faults: Faults,
    state: Arc<State>,
}

setters! { of Quirks;
    /// Pinned memory is refused.
    no_pinned() => faults.pinned = Some(0);

    /// Pinned memory is refused that makes more than so many bytes at a time.
    pinned_limit(bytes: usize) => faults.pinned = Some(bytes);

    /// Calls wait until no launch of this device is running: to allocate or free memory, to load, to
    /// make ready to launch, to launch, to copy. After 10 s they fail.
    calls_block() => faults.calls_block = true;

    /// Launches are held back until it is asked how they go.
    held_launches() => faults.held_launches = true;

    /// Each launch but by a graph keeps its caller for so long.
    slow_launches(by: Duration) => faults.slow_launches = by;

    /// No cooperative launch.
    no_cooperative() => info.cooperative_launch = false, faults.cooperative = true;

    /// Host and device may not use managed memory at the same time. `ring` uses none.
    no_concurrent_managed() => info.concurrent_managed_access = false;

    /// The device does not map host memory: kernels do not see pinned memory.
    unmapped() => info.maps_host_memory = false;

    /// A watchdog: when somebody asks and a launch is still running so long after the last one was
    /// made at its place, the device has faulted with CUDA's code 702, for good. Underneath the
    /// kernel may run on, and memory is not given back before it has left.
    watchdog(limit: Duration) => info.watchdog = true, faults.watchdog = Some(limit);

    /// Each `n`-th launch or copy fails with CUDA's code 400, as a stale handle does; the next works.
    invalid_handles(n: u64) => faults.invalid_every = Some(n.max(1));

    /// The device faults with CUDA's code 700, for good, when a kernel is found to have handled so
    /// many messages: every kernel on it is lost. Underneath they may run on, and memory is not given
    /// back before they have left.
    fault_after(messages: u64) => faults.fault_after = Some(messages);

    /// Another user of the process resets the device, once, when a kernel is found to have handled so many
    /// messages: CUDA's code 709, until the device is opened anew ([`Runtime::recover`](crate::Runtime::recover)).
    reset_after(messages: u64) => faults.reset_after = Some(messages);

    /// Every copy fails from the `n`-th on, counted from 1.
    failing_copies(n: u64) => faults.copies_from = Some(n);

    /// Every copy beside a running launch fails, from the `n`-th copy on, counted from 1
    /// when the device has been probed.
    failing_copies_beside(n: u64) => faults.beside_from = Some(n);

    /// Copies land after their call, as a GPU's do: in order, and each some calls later, a few cells at a
    /// time and in any order, by a course that follows from `seed`. Time passes for them with every call
    /// that begins a copy or asks how copies or launches go.
    ///
    /// Without it the CPU's copies are over when their call is.
    late_copies(seed: u64) => faults.late = Some(seed);

    /// Leases are not renewed, as if the host had died.
    silent_host() => faults.silent = true;

    /// The host gets no processor in time, the first so many times that the device is probed: whenever it
    /// launches or copies, it goes on when the launch has left, and as long again after that.
    busy_host(probes: u64) => faults.busy_probes = probes;

    /// No launch can be made ready to be replayed as a graph.
    no_graphs() => faults.graphs = true;

    /// Every launch by a graph fails from the `n`-th on, counted from 1.
    failing_graphs(n: u64) => faults.graphs_from = Some(n);

    /// Memory is refused, pinned or the device's, each time that is in `which`, counted from 1. Most
    /// of it is taken when the device is opened.
    refused_allocations(which: impl RangeBounds<u64>) => faults.allocations = Some(numbers(&which));

    /// Launches are refused, and to make ready for them: each time that is in `which`, both counted
    /// together from 1 when the device has been probed.
    refused_launches(which: impl RangeBounds<u64>) => faults.launches = Some(numbers(&which));

    /// Some pages of pinned memory are said to be read sooner than others, so request lines lie in such. A GPU keeps
    /// those that it has.
    quick_pages() => faults.quick_pages = true;

    /// Its kernels do not reach the memory of other devices. Those of others still reach its own.
    no_peers() => faults.peers = true;

    /// Launches are accepted, and nothing runs, from when the device has been probed: whoever has a
    /// [`memory_probe`](Self::memory_probe) can be the device. They last until [`MemoryProbe::end`].
    idle_device() => faults.idle = true;
}

impl Quirks {
    /// The device with nothing taken away.
    ///
    /// ```
    /// # use ring_host::{RuntimeConfig, Runtime, device::{Quirks, cpu::Cpu}};
    /// let quirks = Quirks::of(Cpu::open()).no_graphs().held_launches();
    /// let host = Runtime::over(quirks, RuntimeConfig::default()).unwrap();
    /// assert!(host.report().probe.graph.is_err());
    /// ```
    pub fn of(driver: Arc<dyn Driver>) -> Quirks {
        let info = driver.info().clone();
        let (faults, state) = (Faults::default(), Arc::default());
        Quirks { inner: driver, info, faults, state }
    }

    /// What was reported of WSL2, in sum: no pinned memory; calls that block while a kernel is
    /// resident; launches held back until a query; no concurrent use of managed memory; no
    /// cooperative launch; a watchdog of 2 s.
    ///
    /// ```
    /// # use ring_host::{device::{Driver, Quirks, cpu::Cpu}};
    /// let like_wsl2 = Quirks::wsl2(Cpu::open());
    /// assert!(like_wsl2.alloc_pinned(4096).is_err());
    /// ```
    pub fn wsl2(driver: Arc<dyn Driver>) -> Quirks {
        Quirks::of(driver).and_wsl2()
    }

    fn and_wsl2(self) -> Quirks {
        let quirks = self.no_pinned().calls_block().held_launches();
        quirks.no_concurrent_managed().no_cooperative().watchdog(USUAL_WATCHDOG)
    }

    /// Whether quick pages are ordinary ones of the device underneath.
    fn emulates_quick(&self) -> bool {
        self.faults.quick_pages && self.inner.info().kind == DeviceKind::Cpu
    }

    /// A way into the lines of this device's kernels, for tests that write there what nobody should.
    pub fn memory_probe(&self) -> MemoryProbe {
        MemoryProbe(Arc::clone(&self.state))
    }
}

/// Numbers, from one to another.
fn numbers(which: &impl RangeBounds<u64>) -> Numbers {
    (which.start_bound().cloned(), which.end_bound().cloned())
}

impl From<Quirks> for Arc<dyn Driver> {
    fn from(quirks: Quirks) -> Arc<dyn Driver> {
        Arc::new(quirks)
    }
}

impl Sealed for Quirks {}

impl Driver for Quirks {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn occupancy(&self) -> &Occupancy {
        self.inner.occupancy()
    }

    fn probed(&self) -> &Probed {
        &self.state.probed // what is found is not what the device underneath can do
    }

    fn renews(&self) -> bool {
        !self.faults.silent && self.inner.renews()
    }

    fn alloc_pinned(&self, bytes: usize) -> Result<Mapped, DriverError> {
        self.state.enter_allocation(self.faults, "alloc_pinned")?;
        self.state.alloc_pinned(self.faults, bytes)?;
        let memory = self.inner.alloc_pinned(bytes);
        let memory = memory.inspect_err(|_| self.state.free_pinned(bytes))?;
        self.state.table().note_pinned(memory);
        Ok(memory)
    }

    fn alloc_with_quick(
        &self,
        bytes: usize,
        kernels: &Image,
    ) -> Result<(Mapped, QuickPages), DriverError> {
        self.state.enter_allocation(self.faults, "alloc_pinned")?;
        self.state.alloc_pinned(self.faults, bytes)?;
        let memory = match self.emulates_quick() {
            true => quick_pages::emulated(&*self.inner, bytes),
            false => self.inner.alloc_with_quick(bytes, kernels),
        };
        let memory = memory.inspect_err(|_| self.state.free_pinned(bytes))?;
        self.state.table().note_pinned(memory.0);
        Ok(memory)
    }

    unsafe fn free_pinned(&self, memory: Mapped) {
        let _ = self.state.enter(self.faults, "free_pinned"); // given back all the same
        self.state.free_pinned(memory.bytes);
        self.state.table().forget(memory.device, true);
        let memory = if self.emulates_quick() { quick_pages::plain(memory) } else { memory };
        // SAFETY: the caller's promise; what the inner device gave is what it gets back.
        unsafe { self.inner.free_pinned(memory) }
    }

    fn alloc_device(&self, bytes: usize) -> Result<u64, DriverError> {
        self.state.enter_allocation(self.faults, "alloc_device")?;
        let device = self.inner.alloc_device(bytes)?;
        let host = match self.inner.info().kind {
            DeviceKind::Cpu => std::ptr::with_exposed_provenance_mut(device as usize),
            DeviceKind::Cuda => std::ptr::null_mut(),
        };
        let mapped = NonNull::new(host).map(|host| Mapped {
            host,
            device,
            bytes,
            quick: 0,
            registered: true,
        });
        self.state.table().note_device(device, mapped);
        Ok(device)
    }

    unsafe fn free_device(&self, address: u64, bytes: usize) {
        let _ = self.state.enter(self.faults, "free_device"); // given back all the same
        self.state.table().forget(address, false);
        // SAFETY: the caller's promise; what `alloc_device` gives is the inner device's, unchanged.
        unsafe { self.inner.free_device(address, bytes) }
    }

    fn copy_lane(&self) -> Result<Arc<dyn CopyLane>, DriverError> {
        let inner = self.inner.copy_lane()?;
        let (faults, state) = (self.faults, Arc::clone(&self.state));
        // A course of its own, and those of kernels stay as they are.
        let seed = faults.late.map(|seed| !seed);
        Ok(Arc::new(QuirkyCopyLane::new(inner, (faults, state), seed)))
    }

    fn sees(&self, host: NonNull<u8>) -> Result<u64, DriverError> {
        self.inner.sees(host)
    }

    fn index(&self) -> Option<usize> {
        self.inner.index()
    }

    fn reach(&self, other: &dyn Driver) -> Result<(), NoPeer> {
        if self.faults.peers { Err(NoPeer::TakenAway) } else { self.inner.reach(other) }
    }

    #[cfg(feature = "cuda")]
    fn is_context(&self, context: cudarc::driver::sys::CUcontext) -> bool {
        self.inner.is_context(context)
    }

    fn health(&self) -> Health {
        match self.state.fault() {
            None => self.inner.health(),
            Some(_) if self.state.was_reset() => Health::Reset,
            Some(_) => Health::Lost,
        }
    }

    fn recovered(&self) -> Result<Option<Arc<dyn Driver>>, OpenError> {
        let faults = Faults { reset_after: None, ..self.faults };
        let info = self.info.clone();
        let next = match self.state.fault() {
            Some(_) if self.state.was_reset() => Some(Arc::clone(&self.inner)),
            Some(_) => return Err(OpenError::Lost { device: info.name }),
            None => self.inner.recovered()?,
        };
        Ok(next.map(|inner| Quirks { inner, info, faults, state: Arc::default() }.into()))
    }

    fn load_all(&self, image: &Image) -> Result<Loaded, ImageError> {
        self.inner.load_all(image)
    }

    fn load(&self, program: Program<'_>) -> Result<Arc<dyn Function>, ImageError> {
        self.state.enter(self.faults, "load")?;
        let (inner, state) = (self.inner.load(program)?, Arc::clone(&self.state));
        let is_kernel = program.entry != LAYOUT_PROBE;
        Ok(Arc::new(QuirkyFunction { inner, faults: self.faults, state, is_kernel }))
    }
}
