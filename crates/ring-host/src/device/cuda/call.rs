use super::api::{self, Code};
use crate::device::{NoPeer, RunState};
use crate::error::{DriverError, DriverReason};
use cudarc::driver::sys::{self, CUresult as E};
use std::sync::atomic::{AtomicBool, Ordering};

/// The code of a call that did what it should.
pub(super) const SUCCESS: Code = E::CUDA_SUCCESS as Code;

/// What a query says of work that is not over.
const NOT_READY: Code = E::CUDA_ERROR_NOT_READY as Code;

/// What every call says in a context that was reset.
const DESTROYED: Code = E::CUDA_ERROR_CONTEXT_IS_DESTROYED as Code;

/// The outcome of a driver call, with the driver's words if it failed.
pub(super) fn check(call: &'static str, code: Code) -> Result<(), DriverError> {
    if code == SUCCESS { Ok(()) } else { Err(failure(call, code)) }
}

fn failure(call: &'static str, code: Code) -> DriverError {
    let unknown = || format!("error {code}, for which the driver has no words");
    let words = api::words(code).unwrap_or_else(unknown);
    DriverError { call, code, reason: DriverReason::Words(words.into()) }
}

/// Whether a driver error means that the context is lost and nothing runs in it any more. Those are
/// the errors of the device and of its kernels: ECC, a wild address, a watchdog, an MPS server that
/// is gone, and so on. The errors that say something of the call only are listed here, so that one
/// which these bindings do not know yet counts as the end: a kernel that is gone must not be reported as
/// running.
pub(super) fn is_final(code: Code) -> bool {
    !matches!(
        code,
        // Arguments, initialisation, profiler, licences, no such device.
        SUCCESS | 1..=3 | 5..=8 | 34 | 46 | 100..=102
        // Images, contexts, mappings, limits, the JIT compiler; 214, 220 and 226 are the device's.
        | 200..=202 | 205..=213 | 215..=219 | 221..=225
        // Files, the operating system, handles, names, work that is not over.
        | 300..=304 | 400..=402 | 500 | NOT_READY
        // Resources of a launch, peers, registered memory.
        | 701 | 703..=705 | 708 | 711..=713 | 720
        // Permissions, versions, MPS; 810 is a client that MPS has terminated.
        | 800..=809 | 811 | 812
        // Stream capture, graphs, clusters; 911 is an error of another device.
        | 900..=910 | 912..=916
    )
}

/// What the answer of `call`, a query of work on the device, says of that work.
pub(super) fn run_state(call: &'static str, code: Code) -> RunState {
    match code {
        SUCCESS => RunState::Ended,
        // Not over, or the query itself failed, which says nothing of the kernel. No words are made of
        // it: this is asked while messages are waited for.
        _ if !is_final(code) => RunState::Running,
        _ => RunState::Faulted(failure(call, code)),
    }
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
    device: sys::CUdevice,
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
        let result = unsafe { api::cuDevicePrimaryCtxRetain(&mut raw, device) };
        check("cuDevicePrimaryCtxRetain", result)?;
        let mut number = 0;
        // SAFETY: a context that was just retained; the pointer is to a local.
        check("cuCtxGetId", unsafe { api::cuCtxGetId(raw, &mut number) })?;
        let reset = Box::leak(Box::new(AtomicBool::new(false))); // one for each opening of a device
        Ok(Context { device, raw, number, reset })
    }

    /// Fails if it was reset.
    fn is_ours(self) -> Result<(), DriverError> {
        let mut number = 0;
        if !self.is_reset() {
            // SAFETY: the handle of a primary context, which the driver keeps; the pointer is to a
            // local.
            let found = unsafe { api::cuCtxGetId(self.raw, &mut number) };
            if found != DESTROYED && (found != SUCCESS || number == self.number) {
                return check("cuCtxGetId", found);
            }
            let device = format_args!("cuda:{}", self.device);
            tracing::warn!(%device, "device was reset by another user of the process");
            self.reset.store(true, Ordering::Relaxed);
        }
        check("cuCtxPushCurrent", DESTROYED)
    }

    /// Lets kernels of this context reach the memory of another device's. It waits for no kernel, on driver 580.
    pub fn reach(self, peer: Context) -> Result<(), NoPeer> {
        const ENABLED_BEFORE: Code = E::CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED as Code;
        let mut can = 0;
        // SAFETY: the pointer is to a local.
        let found = unsafe { api::cuDeviceCanAccessPeer(&mut can, self.device, peer.device) };
        check("cuDeviceCanAccessPeer", found).map_err(NoPeer::Refused)?;
        if can == 0 {
            return Err(NoPeer::Apart);
        }
        peer.is_ours().map_err(NoPeer::Refused)?;
        let _bound = Bound::new(self).map_err(NoPeer::Refused)?;
        // SAFETY: the handle of a primary context, which the driver keeps, and which was not reset.
        match unsafe { api::cuCtxEnablePeerAccess(peer.raw, 0) } {
            ENABLED_BEFORE => Ok(()),
            done => check("cuCtxEnablePeerAccess", done).map_err(NoPeer::Refused),
        }
    }

    /// Whether `raw` is a handle of this context, which serves.
    pub fn is(self, raw: sys::CUcontext) -> bool {
        self.raw == raw && self.is_ours().is_ok()
    }

    /// Bytes of device memory that are free.
    pub fn free(self) -> Result<u64, DriverError> {
        let _bound = Bound::new(self)?;
        let (mut free, mut total) = (0, 0);
        // SAFETY: the pointers are to locals.
        check("cuMemGetInfo", unsafe { api::cuMemGetInfo_v2(&mut free, &mut total) })?;
        Ok(free as u64)
    }

    /// Whether it has ended, and how: then every call in it says so.
    pub fn end(self) -> Option<End> {
        let code = self.free().err()?.code;
        match code {
            DESTROYED => Some(End::Reset),
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
        check("cuCtxPushCurrent", unsafe { api::cuCtxPushCurrent_v2(context.raw) })?;
        Ok(Bound(()))
    }
}

impl Drop for Bound {
    fn drop(&mut self) {
        let mut popped = std::ptr::null_mut();
        // SAFETY: pops what `new` pushed on this thread: `Bound` lives in one function's scope.
        unsafe {
            let _ = api::cuCtxPopCurrent_v2(&mut popped);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ends_a_context_is_a_fault() {
        // Contained error, tensor memory leak, terminated by MPS, external device; known ones; a code
        // that no driver has yet, and what is no code at all.
        for code in [226, 721, 810, 911, 4, 214, 220, 700, 702, 709, 719, 999, 917, 4711, -1] {
            assert!(is_final(code), "{code}");
            let RunState::Faulted(error) = run_state("cuStreamQuery", code) else {
                panic!("{code} is reported as still running");
            };
            assert_eq!((error.call, error.code), ("cuStreamQuery", code));
            assert!(!error.reason.to_string().is_empty());
        }
    }

    #[test]
    fn what_says_something_of_a_call_is_none() {
        for code in [1, 2, 201, 304, 400, 500, 701, 720, 801, 812, 900, 916] {
            assert!(!is_final(code), "{code}");
            assert_eq!(run_state("cuStreamQuery", code), RunState::Running, "{code}");
        }
        assert_eq!(run_state("cuStreamQuery", NOT_READY), RunState::Running);
        assert_eq!(run_state("cuStreamQuery", SUCCESS), RunState::Ended);
    }
}
