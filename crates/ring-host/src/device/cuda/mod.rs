//! NVIDIA GPUs, through the driver API only: one primary context a device, non-blocking streams
//! only, and none of the calls that block while a kernel is resident.
//!
//! Those are: freeing memory, loading a module, the first launch of a function that was not
//! loaded, and making more streams. So modules are loaded with all their functions, once a process
//! and only while nothing is resident; what is given back is freed then; and streams are made when the
//! device is opened.

mod api;
mod call;
mod copies;
mod deferred_free;
mod exclusion;
mod function;
mod library;
mod load;
#[cfg(target_os = "linux")]
mod mapping;
mod module;
#[cfg(target_os = "linux")]
mod page_probe;
mod pinned;
#[cfg(target_os = "linux")]
mod quick;
mod stream;

use self::call::{Bound, End, check};
use super::{CopyLane, Driver, Function, Mapped, NoPeer, Occupancy, Program, Resources, Sealed};
use crate::device::image::{Image, ImageError, Loaded};
#[cfg(not(target_os = "linux"))]
use crate::device::probe::NoQuickPages;
use crate::device::probe::{Probed, QuickPages};
use crate::device::{DeviceInfo, DeviceKind, Health};
use crate::error::{DriverError, DriverReason, OpenError, Requirement};
use crate::sync::lock;
use cudarc::driver::sys::{self, CUdevice_attribute as A};
use std::ffi::{CStr, c_int};
use std::ptr::NonNull;
use std::sync::{Arc, Mutex};

/// Oldest driver that knows the 16-byte access (PTX 8.4), as CUDA version.
const MIN_DRIVER: i32 = 12040;

/// What `cuInit` says where there is no GPU.
const NO_DEVICE: api::Code = sys::CUresult::CUDA_ERROR_NO_DEVICE as api::Code;

/// A GPU. There is one of these for each in a process, and it is never closed: its context, its
/// modules and the memory given back serve every [`Runtime`](crate::Runtime). Another follows it when the
/// device is reset.
#[derive(Debug)]
pub struct Cuda {
    index: usize,
    context: call::Context,
    info: DeviceInfo,
    occupancy: Occupancy,
    /// Bytes of shared memory that the driver keeps of each block's.
    reserved_shared: u32,
    probed: Probed,
    modules: module::Modules,
    deferred_free: Arc<deferred_free::DeferredFree>,
    streams: Arc<stream::Streams>,
    /// What was found out when pinned memory last got quick pages.
    #[cfg_attr(not(target_os = "linux"), allow(dead_code))]
    quick: Mutex<Option<QuickPages>>,
}

/// The GPUs that are open in this process, each with its index.
static OPEN: Mutex<Vec<(usize, Arc<Cuda>)>> = Mutex::new(Vec::new());

impl Cuda {
    /// Opens the GPU of that index.
    pub fn open(index: usize) -> Result<Arc<Cuda>, OpenError> {
        let mut open = lock(&OPEN);
        if let Some(at) = open.iter().position(|(i, _)| *i == index) {
            let cuda = Arc::clone(&open[at].1);
            match cuda.context.end() {
                None => return Ok(cuda),
                Some(End::Reset) => {
                    let device = (&*cuda as &dyn Driver).label();
                    tracing::warn!(device, "device is opened anew after a reset");
                    open.swap_remove(at);
                }
                // Neither a reset nor another context helps: on driver 580 both get the same error.
                Some(End::Faulted) => {
                    return Err(OpenError::Lost { device: cuda.info.name.clone() });
                }
            }
        }
        let cuda = Arc::new(Cuda::open_first(index)?);
        open.push((index, Arc::clone(&cuda)));
        Ok(cuda)
    }

    fn open_first(index: usize) -> Result<Cuda, OpenError> {
        if library::get().is_none() {
            return Err(OpenError::NoDriver);
        }
        // SAFETY: plain calls; the pointers are to locals.
        let (device, version) = unsafe {
            match api::cuInit(0) {
                NO_DEVICE => return Err(OpenError::NoDevice),
                result => check("cuInit", result)?,
            }
            let (mut version, mut count, mut device) = (0, 0, 0);
            check("cuDriverGetVersion", api::cuDriverGetVersion(&mut version))?;
            check("cuDeviceGetCount", api::cuDeviceGetCount(&mut count))?;
            let count = usize::try_from(count).unwrap_or(0);
            match c_int::try_from(index) {
                _ if count == 0 => return Err(OpenError::NoDevice),
                Ok(i) if index < count => check("cuDeviceGet", api::cuDeviceGet(&mut device, i))?,
                _ => return Err(OpenError::OutOfRange { index, count }),
            }
            (device, version)
        };
        let info = describe(device, version)?;
        let lacks = match () {
            () if version < MIN_DRIVER => Some(Requirement::Driver),
            () if info.compute_capability < (7, 0) => Some(Requirement::ComputeCapability),
            () => None,
        };
        if let Some(lacks) = lacks {
            return Err(OpenError::Unsuitable { device: info.name, lacks });
        }
        let context = call::Context::of(device)?;
        let deferred_free = Arc::new(deferred_free::DeferredFree::new(context));
        let (capability, most_shared) = (info.compute_capability, info.shared_bytes);
        let free = Arc::clone(&deferred_free);
        let modules = module::Modules::new(context, capability, most_shared, free);
        let streams = Arc::new(stream::Streams::new(context, Arc::clone(&deferred_free))?);
        let occupancy = Occupancy::new(info.multiprocessors, multiprocessor(device)?);
        let reserved_shared =
            attribute(device, A::CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK)?;
        let probed = Probed::default();
        Ok(Cuda {
            index,
            context,
            info,
            occupancy,
            reserved_shared,
            probed,
            modules,
            deferred_free,
            streams,
            quick: Mutex::default(),
        })
    }

    #[cfg(not(target_os = "linux"))]
    fn with_quick(
        &self,
        _: usize,
        _: &Image,
    ) -> Result<(Option<Mapped>, QuickPages), NoQuickPages> {
        Err(NoQuickPages::System)
    }
}

/// The error for memory that is not there. The driver is not asked: before it refuses, it waits until
/// no kernel is resident, to see what that frees.
fn too_much(call: &'static str, bytes: usize, free: u64) -> DriverError {
    let code = sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY as i32;
    DriverError { call, code, reason: DriverReason::OutOfMemory { bytes, free: Some(free) } }
}

fn attribute(device: sys::CUdevice, which: A) -> Result<u32, DriverError> {
    let mut value = 0;
    // SAFETY: the pointer is to a local.
    let result = unsafe { api::cuDeviceGetAttribute(&mut value, which, device) };
    check("cuDeviceGetAttribute", result).map(|()| u32::try_from(value).unwrap_or(0))
}

/// What a multiprocessor of the device has.
fn multiprocessor(device: sys::CUdevice) -> Result<Resources, DriverError> {
    let attribute = |which| attribute(device, which);
    let threads = attribute(A::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR)?;
    let shared = A::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR;
    Ok(Resources {
        registers: attribute(A::CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR)?,
        shared_bytes: attribute(shared)?,
        warps: threads / attribute(A::CU_DEVICE_ATTRIBUTE_WARP_SIZE)?.max(1),
        blocks: attribute(A::CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR)?,
    })
}

fn describe(device: sys::CUdevice, driver_version: i32) -> Result<DeviceInfo, DriverError> {
    let attribute = |which| attribute(device, which);
    let mut name = [0; 256];
    // SAFETY: the buffer has as many bytes.
    check("cuDeviceGetName", unsafe { api::cuDeviceGetName(name.as_mut_ptr(), 256, device) })?;
    // SAFETY: the driver terminates it within the buffer.
    let name = unsafe { CStr::from_ptr(name.as_ptr()) }.to_string_lossy().into_owned();
    Ok(DeviceInfo {
        name,
        kind: DeviceKind::Cuda,
        driver_version,
        compute_capability: (
            attribute(A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
            attribute(A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
        ),
        multiprocessors: attribute(A::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
        max_threads: attribute(A::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?,
        max_channels: attribute(A::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X)?,
        cooperative_launch: attribute(A::CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH)? != 0,
        maps_host_memory: attribute(A::CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY)? != 0,
        concurrent_managed_access: attribute(A::CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS)?
            != 0,
        clock_khz: attribute(A::CU_DEVICE_ATTRIBUTE_CLOCK_RATE)?,
        shared_bytes: attribute(A::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?,
        copy_engines: attribute(A::CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT)?,
        watchdog: attribute(A::CU_DEVICE_ATTRIBUTE_KERNEL_EXEC_TIMEOUT)? != 0,
    })
}

impl Sealed for Cuda {}

impl Driver for Cuda {
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
        if let Some(mapped) = self.deferred_free.reuse_pinned(bytes, false) {
            return Ok(mapped);
        }
        let _bound = Bound::new(self.context)?;
        if bytes as u64 > crate::device::platform::available_memory() {
            return Err(too_much(
                "cuMemHostAlloc",
                bytes,
                crate::device::platform::available_memory(),
            ));
        }
        pinned::alloc(bytes, self.info.maps_host_memory)
    }

    fn alloc_with_quick(
        &self,
        bytes: usize,
        kernels: &Image,
    ) -> Result<(Mapped, QuickPages), DriverError> {
        let (mapped, found) =
            self.with_quick(bytes, kernels).unwrap_or_else(|why| (None, QuickPages::Unused(why)));
        let device = (self as &dyn Driver).label();
        tracing::info!(device, %found, "quick pages");
        Ok((mapped.map_or_else(|| self.alloc_pinned(bytes), Ok)?, found))
    }

    unsafe fn free_pinned(&self, memory: Mapped) {
        self.deferred_free.defer(deferred_free::Deferred::Mapped(memory));
    }

    fn alloc_device(&self, bytes: usize) -> Result<u64, DriverError> {
        if let Some(address) = self.deferred_free.reuse_device(bytes) {
            return Ok(address);
        }
        let _bound = Bound::new(self.context)?;
        let (mut address, free) = (0, self.context.free()?);
        if bytes as u64 > free {
            return Err(too_much("cuMemAlloc", bytes, free));
        }
        // SAFETY: the pointer is to a local.
        check("cuMemAlloc", unsafe { api::cuMemAlloc_v2(&mut address, bytes) })?;
        Ok(address)
    }

    unsafe fn free_device(&self, address: u64, bytes: usize) {
        self.deferred_free.defer(deferred_free::Deferred::Device { address, bytes });
    }

    fn copy_lane(&self) -> Result<Arc<dyn CopyLane>, DriverError> {
        Ok(Arc::new(copies::CudaCopyLane::new(self.context, &self.streams)?))
    }

    fn is_context(&self, context: sys::CUcontext) -> bool {
        self.context.is(context)
    }

    fn sees(&self, host: NonNull<u8>) -> Result<u64, DriverError> {
        let _bound = Bound::new(self.context)?;
        pinned::device_address(host)
    }

    fn index(&self) -> Option<usize> {
        Some(self.index)
    }

    fn reach(&self, other: &dyn Driver) -> Result<(), NoPeer> {
        let index = other.index().ok_or(NoPeer::Kinds)?;
        let other = lock(&OPEN).iter().find(|(i, _)| *i == index).map(|(_, cuda)| cuda.context);
        self.context.reach(other.ok_or(NoPeer::Apart)?)
    }

    fn health(&self) -> Health {
        match self.context.end() {
            None => Health::Serving,
            Some(End::Reset) => Health::Reset,
            Some(End::Faulted) => Health::Lost,
        }
    }

    fn recovered(&self) -> Result<Option<Arc<dyn Driver>>, OpenError> {
        if self.context.end().is_none() {
            return Ok(None);
        }
        let next: Arc<dyn Driver> = Cuda::open(self.index)?; // somebody may have opened it before us
        Ok(Some(next))
    }

    fn load_all(&self, image: &Image) -> Result<Loaded, ImageError> {
        self.modules.load(image)
    }

    fn load(&self, program: Program<'_>) -> Result<Arc<dyn Function>, ImageError> {
        let raw = self.modules.function(program.image, program.entry)?;
        if program.prefers_l1 {
            let _bound = Bound::new(self.context)?;
            module::prefer_l1(raw)?;
        }
        let deferred_free = Arc::clone(&self.deferred_free);
        Ok(Arc::new(function::CudaFunction {
            context: self.context,
            raw,
            shared_bytes: program.shared_bytes,
            prefers_l1: program.prefers_l1,
            most_shared: self.info.shared_bytes,
            occupancy: self.occupancy.clone(),
            reserved_shared: self.reserved_shared,
            streams: Arc::clone(&self.streams),
            deferred_free,
        }))
    }
}
