use super::api;
use super::call::{Bound, Context, SUCCESS, check};
use super::deferred_free::DeferredFree;
use super::load;
use crate::device::image::{Architecture, Image, ImageError, Loaded, NoCubin};
use crate::error::DriverError;
use crate::sync::lock;
use cudarc::driver::sys;
use std::collections::HashMap;
use std::ffi::CString;
use std::sync::{Arc, Mutex};

/// A loaded function.
#[derive(Clone, Copy, Debug)]
pub(super) struct RawFunction(pub sys::CUfunction);

// SAFETY: a handle that the driver lets any thread use; modules are never unloaded.
unsafe impl Send for RawFunction {}
// SAFETY: as above.
unsafe impl Sync for RawFunction {}

/// A module's functions by name.
type Functions = HashMap<String, RawFunction>;

/// A loaded image.
#[derive(Debug)]
struct Module {
    image: Image,
    loaded: Loaded,
    functions: Functions,
}

impl Module {
    /// Whether loading that image would do the same.
    fn is_of(&self, image: &Image) -> bool {
        self.has_text_of(image) && self.image.is_built_in() == image.is_built_in()
    }

    /// Whether its entries do what that image's would, also if one is a cubin and the other PTX.
    fn has_text_of(&self, image: &Image) -> bool {
        self.image.ptx() == image.ptx()
    }
}

/// Modules of this process. Never unloaded: unloading may wait for resident kernels.
#[derive(Debug)]
pub(super) struct Modules {
    context: Context,
    /// The device's compute capability.
    capability: (u32, u32),
    /// Most bytes of shared memory that a block may ask for.
    most_shared: u32,
    deferred_free: Arc<DeferredFree>,
    loaded: Mutex<Vec<Module>>,
}

/// The largest part of the L1 cache that may be shared memory, in percent.
const WHOLE: i32 = sys::CUshared_carveout_enum::CU_SHAREDMEM_CARVEOUT_MAX_SHARED as i32;

/// Asks for all shared memory of a multiprocessor wherever the function runs. Else the driver divides
/// L1 cache and shared memory by what the first kernel needs that comes to a multiprocessor, and does
/// not divide it anew while that one stays: blocks that come later find no room, although there is.
/// The L1 cache keeps the rest: 28 KiB of 256 on compute capability 9.0.
///
/// # Safety
/// The function is loaded, and a context bound.
unsafe fn all_shared_memory(function: sys::CUfunction) -> Result<(), DriverError> {
    // SAFETY: the caller's promise.
    unsafe { carve_out(function, WHOLE) }
}

/// Asks for a part of the L1 cache to be shared memory.
///
/// # Safety
/// The function is loaded, and a context bound.
unsafe fn carve_out(function: sys::CUfunction, part: i32) -> Result<(), DriverError> {
    let which = sys::CUfunction_attribute::CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT;
    // SAFETY: the caller's promise.
    check("cuFuncSetAttribute", unsafe { api::cuFuncSetAttribute(function, which, part) })
}

/// Asks for no more shared memory of a multiprocessor than a block of the function needs, wherever it comes to an idle one: the L1
/// cache has the rest. The kernel's room is reserved as if its blocks took all of it. A context must be bound.
pub(super) fn prefer_l1(function: RawFunction) -> Result<(), DriverError> {
    let least = sys::CUshared_carveout_enum::CU_SHAREDMEM_CARVEOUT_MAX_L1 as i32;
    // SAFETY: a loaded function, and the caller has a context bound.
    unsafe { carve_out(function.0, least) }
}

/// Lets the function be launched with all the dynamic shared memory that a block may have: `most` bytes, less what it
/// declares. Without that it is 48 KiB.
///
/// # Safety
/// The function is loaded, and a context bound.
unsafe fn may_have(function: sys::CUfunction, most: u32) -> Result<(), DriverError> {
    let declares = sys::CUfunction_attribute::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES;
    let which = sys::CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
    let mut declared = 0;
    // SAFETY: the caller's promise; the pointer is to a local.
    let found = unsafe { api::cuFuncGetAttribute(&mut declared, declares, function) };
    check("cuFuncGetAttribute", found)?;
    let most = i32::try_from(most).unwrap_or(i32::MAX).saturating_sub(declared).max(0);
    // SAFETY: the caller's promise.
    check("cuFuncSetAttribute", unsafe { api::cuFuncSetAttribute(function, which, most) })
}

impl Modules {
    pub fn new(
        context: Context,
        capability: (u32, u32),
        most_shared: u32,
        deferred_free: Arc<DeferredFree>,
    ) -> Modules {
        Modules { context, capability, most_shared, deferred_free, loaded: Mutex::default() }
    }

    /// Loads an image and every entry of it, unless it was before.
    pub fn load(&self, image: &Image) -> Result<Loaded, ImageError> {
        self.with(image, |module| Ok(module.loaded.clone()))
    }

    /// An entry of an image, which is loaded if need be.
    pub fn function(&self, image: &Image, entry: &'static str) -> Result<RawFunction, ImageError> {
        self.with(image, |module| {
            module.functions.get(entry).copied().ok_or_else(|| image.no_entry(entry))
        })
    }

    /// Looks into a loaded image. Loading blocks while a kernel is resident: what has the same text serves then, and
    /// else the image is refused.
    fn with<T>(
        &self,
        image: &Image,
        look: impl FnOnce(&Module) -> Result<T, ImageError>,
    ) -> Result<T, ImageError> {
        let mut loaded = lock(&self.loaded);
        if let Some(module) = loaded.iter().find(|module| module.is_of(image)) {
            return look(module);
        }
        let module = match self.deferred_free.while_idle(|| self.load_new(image)) {
            Ok(module) => module?,
            Err(resident) => {
                let same = loaded.iter().find(|module| module.has_text_of(image));
                return look(same.ok_or(ImageError::Busy { resident })?);
            }
        };
        let found = look(&module);
        loaded.push(module);
        found
    }

    /// Loads the cubin for this device, or else the PTX: also if anything is wrong with the cubin, which then stays
    /// loaded and unused.
    fn load_new(&self, image: &Image) -> Result<Module, ImageError> {
        let bound = Bound::new(self.context)?;
        let (loaded, functions) = match self.load_cubin(&bound, image) {
            Ok((architecture, functions)) => (Loaded::Cubin(architecture), functions),
            Err(error) => {
                tracing::debug!(%error, "the driver is given PTX");
                let functions = self.functions(load::ptx(&bound, image)?, image)?;
                (Loaded::Ptx(error), functions)
            }
        };
        tracing::debug!(%loaded, entries = functions.len(), "kernels loaded");
        Ok(Module { image: image.clone(), loaded, functions })
    }

    fn load_cubin(
        &self,
        bound: &Bound,
        image: &Image,
    ) -> Result<(Architecture, Functions), NoCubin> {
        let cubin = image.cubin(self.capability)?;
        let architecture = cubin.architecture;
        let functions = load::cubin(bound, cubin)
            .map_err(ImageError::from)
            .and_then(|module| self.functions(module, image));
        let refused = |error| NoCubin::Refused { architecture, error: Box::new(error) };
        functions.map(|functions| (architecture, functions)).map_err(refused)
    }

    /// The functions of a module just loaded, one for each of the image's entries, ready to be launched.
    fn functions(&self, module: load::RawModule, image: &Image) -> Result<Functions, ImageError> {
        let mut functions = HashMap::new();
        for name in image.entries() {
            let Ok(c_name) = CString::new(name) else { continue };
            let mut function = std::ptr::null_mut();
            // SAFETY: a module just loaded, under the context that its witness says is bound, and a terminated
            // name. `cuFuncLoad` does now what a first launch would else do, blocking until resident kernels end.
            unsafe {
                let got = api::cuModuleGetFunction(&mut function, module.0, c_name.as_ptr());
                check("cuModuleGetFunction", got)?;
                check("cuFuncLoad", api::cuFuncLoad(function))?;
                all_shared_memory(function)?;
                may_have(function, self.most_shared)?;
                let (mut at, mut size, mut none) = (0, 0, 0);
                let first = api::cuFuncGetParamInfo(function, 0, &mut at, &mut size);
                let second = api::cuFuncGetParamInfo(function, 1, &mut at, &mut none);
                if first != SUCCESS || size != 8 || second == SUCCESS {
                    return Err(ImageError::Signature { entry: name.to_owned() });
                }
            }
            functions.insert(name.to_owned(), RawFunction(function));
        }
        Ok(functions)
    }
}
