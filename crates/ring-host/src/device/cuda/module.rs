use super::api;
use super::call::{Bound, Context, SUCCESS, check};
use super::deferred_free::DeferredFree;
use crate::device::image::{Image, ImageError, NotPtx};
use crate::error::DriverError;
use crate::sync::lock;
use cudarc::driver::sys;
use std::collections::HashMap;
use std::ffi::{CString, c_void};
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

/// Modules of this process, each with its text. Never unloaded: unloading may wait for resident kernels.
#[derive(Debug)]
pub(super) struct Modules {
    context: Context,
    /// Most bytes of shared memory that a block may ask for.
    most_shared: u32,
    deferred_free: Arc<DeferredFree>,
    loaded: Mutex<Vec<(String, Functions)>>,
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
    let which = sys::CUfunction_attribute::CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT;
    // SAFETY: the caller's promise.
    check("cuFuncSetAttribute", unsafe { api::cuFuncSetAttribute(function, which, WHOLE) })
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
    pub fn new(context: Context, most_shared: u32, deferred_free: Arc<DeferredFree>) -> Modules {
        Modules { context, most_shared, deferred_free, loaded: Mutex::default() }
    }

    /// Loads an image and every entry of it, unless it was before.
    pub fn load(&self, image: &Image) -> Result<(), ImageError> {
        self.with(image, |_| Ok(()))
    }

    /// An entry of an image, which is loaded if need be.
    pub fn function(&self, image: &Image, entry: &'static str) -> Result<RawFunction, ImageError> {
        self.with(image, |functions| {
            functions.get(entry).copied().ok_or_else(|| image.no_entry(entry))
        })
    }

    /// Looks into a loaded image. Loading blocks while a kernel is resident, so then it is refused.
    fn with<T>(
        &self,
        image: &Image,
        look: impl FnOnce(&Functions) -> Result<T, ImageError>,
    ) -> Result<T, ImageError> {
        let mut loaded = lock(&self.loaded);
        if let Some((_, functions)) = loaded.iter().find(|(ptx, _)| ptx == image.ptx()) {
            return look(functions);
        }
        let functions = self.deferred_free.while_idle(|| self.load_new(image));
        let functions = functions.map_err(|resident| ImageError::Busy { resident })??;
        let found = look(&functions);
        loaded.push((image.ptx().to_owned(), functions));
        found
    }

    fn load_new(&self, image: &Image) -> Result<Functions, ImageError> {
        let _bound = Bound::new(self.context)?;
        let text = CString::new(image.ptx()).map_err(|_| ImageError::NotPtx(NotPtx::Nul))?;
        let mut log = vec![0u8; 8192];
        let mut module = std::ptr::null_mut();
        let mut options = [
            sys::CUjit_option_enum::CU_JIT_ERROR_LOG_BUFFER,
            sys::CUjit_option_enum::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
        ];
        let mut values: [*mut c_void; 2] =
            [log.as_mut_ptr().cast(), std::ptr::without_provenance_mut(log.len() - 1)];
        // SAFETY: the text is terminated; two options with their values, the log as long as said.
        let result = unsafe {
            let (options, values) = (options.as_mut_ptr(), values.as_mut_ptr());
            api::cuModuleLoadDataEx(&mut module, text.as_ptr().cast(), 2, options, values)
        };
        if let Err(error) = check("cuModuleLoadDataEx", result) {
            let said = String::from_utf8_lossy(&log);
            let said = said.trim_end_matches('\0').trim();
            let log = format!("{error}{}{said}", if said.is_empty() { "" } else { ": " });
            return Err(ImageError::Refused { code: error.code, log });
        }
        let mut functions = HashMap::new();
        for name in image.entries() {
            let Ok(c_name) = CString::new(name) else { continue };
            let mut function = std::ptr::null_mut();
            // SAFETY: a module just loaded and a terminated name. `cuFuncLoad` does now what a
            // first launch would else do, blocking until resident kernels end.
            unsafe {
                let got = api::cuModuleGetFunction(&mut function, module, c_name.as_ptr());
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
