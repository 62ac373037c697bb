use crate::error::DriverError;
use cudarc::driver::sys;
use std::ffi::CStr;
use std::sync::atomic::{AtomicBool, Ordering};

/// What every call says in a context that was reset.
const DESTROYED: sys::CUresult = sys::CUresult::CUDA_ERROR_CONTEXT_IS_DESTROYED;

/// The outcome of a driver call, with the driver's words if it failed.
pub(super) fn check(call: &'static str, result: sys::CUresult) -> Result<(), DriverError> {
    if result == sys::CUresult::CUDA_SUCCESS {
        return Ok(());
    }
    let mut words = std::ptr::null();
    // SAFETY: the driver sets the pointer to a static string, or to null.
    let reason = unsafe {
        let _ = sys::cuGetErrorString(result, &mut words);
        match words.is_null() {
            true => "unknown error".to_owned(),
            false => CStr::from_ptr(words).to_string_lossy().into_owned(),
        }
    };
    Err(DriverError { call, code: result as i32, reason })
}

/// Whether a driver error means that the context is lost and nothing runs in it any more: driver
/// shut down, ECC, faults of a kernel, context destroyed.
pub(super) fn is_final(code: i32) -> bool {
    use sys::CUresult as E;
    let last = [
        E::CUDA_ERROR_DEINITIALIZED,
        E::CUDA_ERROR_ECC_UNCORRECTABLE,
        E::CUDA_ERROR_NVLINK_UNCORRECTABLE,
        E::CUDA_ERROR_ILLEGAL_ADDRESS,
        E::CUDA_ERROR_LAUNCH_TIMEOUT,
        DESTROYED,
        E::CUDA_ERROR_ASSERT,
        E::CUDA_ERROR_HARDWARE_STACK_ERROR,
        E::CUDA_ERROR_ILLEGAL_INSTRUCTION,
        E::CUDA_ERROR_MISALIGNED_ADDRESS,
        E::CUDA_ERROR_INVALID_ADDRESS_SPACE,
        E::CUDA_ERROR_INVALID_PC,
        E::CUDA_ERROR_LAUNCH_FAILED,
        E::CUDA_ERROR_UNKNOWN,
    ];
    last.iter().any(|error| *error as i32 == code)
}

/// How a context has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// Another user of the process has reset the device.
    Reset,
    /// A kernel faulted, or the driver is gone.
    Faulted,
}

/// A device's primary context, retained for the life of the process. When the device is reset, what was made
/// in it is gone, and the same handle may soon stand for another context, in which streams and addresses of
/// ours would be somebody else's; its number tells. A reset that comes between `Bound::new` and the call
/// after it cannot be seen in time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Context {
    raw: sys::CUcontext,
    /// The driver's number of it; no two in a process have the same.
    number: u64,
    /// It is known to have been reset: the handle is not used any more.
    reset: &'static AtomicBool,
}

// SAFETY: a handle that the driver lets any thread use.
unsafe impl Send for Context {}
// SAFETY: as above.
unsafe impl Sync for Context {}

impl Context {
    pub fn of(device: sys::CUdevice) -> Result<Context, DriverError> {
        let mut raw = std::ptr::null_mut();
        // SAFETY: the pointer is to a local.
        let result = unsafe { sys::cuDevicePrimaryCtxRetain(&mut raw, device) };
        check("cuDevicePrimaryCtxRetain", result)?;
        let mut number = 0;
        // SAFETY: a context that was just retained; the pointer is to a local.
        check("cuCtxGetId", unsafe { sys::cuCtxGetId(raw, &mut number) })?;
        let reset = Box::leak(Box::new(AtomicBool::new(false))); // one for each opening of a device
        Ok(Context { raw, number, reset })
    }

    /// Fails if it was reset.
    fn is_ours(self) -> Result<(), DriverError> {
        let mut number = 0;
        if !self.is_reset() {
            // SAFETY: the handle of a primary context, which the driver keeps; the pointer is to a
            // local.
            let found = unsafe { sys::cuCtxGetId(self.raw, &mut number) };
            if found != DESTROYED && (found != sys::CUresult::CUDA_SUCCESS || number == self.number)
            {
                return check("cuCtxGetId", found);
            }
            tracing::warn!("the device was reset by another user of the process");
            self.reset.store(true, Ordering::Relaxed);
        }
        check("cuCtxPushCurrent", DESTROYED)
    }

    /// Bytes of device memory that are free.
    pub fn free(self) -> Result<u64, DriverError> {
        let _bound = Bound::new(self)?;
        let (mut free, mut total) = (0, 0);
        // SAFETY: the pointers are to locals.
        check("cuMemGetInfo", unsafe { sys::cuMemGetInfo_v2(&mut free, &mut total) })?;
        Ok(free as u64)
    }

    /// Whether it has ended, and how: then every call in it says so.
    pub fn end(self) -> Option<End> {
        let code = self.free().err()?.code;
        match code {
            code if code == DESTROYED as i32 => Some(End::Reset),
            code => is_final(code).then_some(End::Faulted),
        }
    }

    /// Whether it is known to have been reset.
    pub fn is_reset(self) -> bool {
        self.reset.load(Ordering::Relaxed)
    }
}

/// The context, current on this thread while this lives; what was current before comes back.
#[derive(Debug)]
pub(super) struct Bound(());

impl Bound {
    pub fn new(context: Context) -> Result<Bound, DriverError> {
        context.is_ours()?;
        // SAFETY: the context is never released by us, and was not reset.
        check("cuCtxPushCurrent", unsafe { sys::cuCtxPushCurrent_v2(context.raw) })?;
        Ok(Bound(()))
    }
}

impl Drop for Bound {
    fn drop(&mut self) {
        let mut popped = std::ptr::null_mut();
        // SAFETY: pops what `new` pushed on this thread: `Bound` lives in one function's scope.
        unsafe {
            let _ = sys::cuCtxPopCurrent_v2(&mut popped);
        }
    }
}
