//! The calls of the driver's library that are made here. Their results are plain numbers: a driver may
//! return codes that are newer than these bindings, which must not become values of an enum that has
//! no such variant. Each signature is checked against cudarc's when this is compiled.

#![allow(non_snake_case, clippy::too_many_arguments)]

use super::library;
use cudarc::driver::sys::{self, *};
use std::ffi::{CStr, c_char, c_int, c_uint, c_ulonglong, c_void};
use std::sync::OnceLock;

/// A driver's code: 0 is success.
pub(super) type Code = c_int;

/// The code for a call that the driver's library lacks.
const NOT_FOUND: Code = CUresult::CUDA_ERROR_NOT_FOUND as Code;

/// The driver's function of that name.
///
/// # Safety
/// It has type `F`.
unsafe fn find<F: Copy>(name: &str) -> Option<F> {
    // SAFETY: the caller's promise; the library is never closed.
    unsafe { library::get()?.get::<F>(name.as_bytes()).ok().map(|function| *function) }
}

/// The driver's words for a code, if it is there and knows it.
pub(super) fn words(code: Code) -> Option<String> {
    /// `cuGetErrorString`, with a number in place of the enum.
    type GetErrorString = unsafe extern "C" fn(Code, *mut *const c_char) -> Code;
    let mut words = std::ptr::null();
    // SAFETY: the function has that type, with the enum passed as the `int` that it is in C; it sets
    // the pointer to a static string, or to null.
    unsafe {
        find::<GetErrorString>("cuGetErrorString")?(code, &mut words);
        (!words.is_null()).then(|| CStr::from_ptr(words).to_string_lossy().into_owned())
    }
}

macro_rules! calls {
    ($($name:ident($($argument:ident: $type:ty),* $(,)?);)*) => {$(
        const _: unsafe fn($($type),*) -> CUresult = sys::$name;

        #[doc = concat!("The driver's `", stringify!($name), "`.")]
        ///
        /// # Safety
        /// As the driver's documentation says of it.
        pub(super) unsafe fn $name($($argument: $type),*) -> Code {
            type Call = unsafe extern "C" fn($($type),*) -> Code;
            static CALL: OnceLock<Option<Call>> = OnceLock::new();
            // SAFETY: the driver has a function of that name and signature, as cudarc's bindings say;
            // its result is a C enum, which is an `int`.
            match CALL.get_or_init(|| unsafe { find(stringify!($name)) }) {
                // SAFETY: the caller's promise.
                Some(call) => unsafe { call($($argument),*) },
                None => NOT_FOUND,
            }
        }
    )*};
}

calls! {
    cuInit(flags: c_uint);
    cuDriverGetVersion(version: *mut c_int);
    cuDeviceGet(device: *mut CUdevice, ordinal: c_int);
    cuDeviceGetCount(count: *mut c_int);
    cuDeviceGetName(name: *mut c_char, len: c_int, device: CUdevice);
    cuDeviceGetAttribute(value: *mut c_int, attribute: CUdevice_attribute, device: CUdevice);
    cuDevicePrimaryCtxRetain(context: *mut CUcontext, device: CUdevice);
    cuCtxGetId(context: CUcontext, id: *mut c_ulonglong);
    cuDeviceCanAccessPeer(can: *mut c_int, device: CUdevice, peer: CUdevice);
    cuCtxEnablePeerAccess(peer: CUcontext, flags: c_uint);
    cuCtxPushCurrent_v2(context: CUcontext);
    cuCtxPopCurrent_v2(context: *mut CUcontext);
    cuCtxGetStreamPriorityRange(least: *mut c_int, greatest: *mut c_int);
    cuModuleLoadDataEx(
        module: *mut CUmodule,
        image: *const c_void,
        count: c_uint,
        options: *mut CUjit_option,
        values: *mut *mut c_void,
    );
    cuModuleGetFunction(function: *mut CUfunction, module: CUmodule, name: *const c_char);
    cuFuncLoad(function: CUfunction);
    cuFuncGetParamInfo(function: CUfunction, index: usize, offset: *mut usize, size: *mut usize);
    cuFuncGetAttribute(value: *mut c_int, attribute: CUfunction_attribute, function: CUfunction);
    cuFuncSetAttribute(function: CUfunction, attribute: CUfunction_attribute, value: c_int);
    cuOccupancyMaxActiveBlocksPerMultiprocessor(
        blocks: *mut c_int,
        function: CUfunction,
        threads: c_int,
        shared_bytes: usize,
    );
    cuMemGetInfo_v2(free: *mut usize, total: *mut usize);
    cuMemAlloc_v2(address: *mut CUdeviceptr, bytes: usize);
    cuMemFree_v2(address: CUdeviceptr);
    cuMemHostAlloc(host: *mut *mut c_void, bytes: usize, flags: c_uint);
    cuMemFreeHost(host: *mut c_void);
    cuMemHostRegister_v2(host: *mut c_void, bytes: usize, flags: c_uint);
    cuMemHostUnregister(host: *mut c_void);
    cuMemHostGetDevicePointer_v2(address: *mut CUdeviceptr, host: *mut c_void, flags: c_uint);
    cuMemcpyHtoDAsync_v2(to: CUdeviceptr, from: *const c_void, bytes: usize, stream: CUstream);
    cuMemcpyDtoHAsync_v2(to: *mut c_void, from: CUdeviceptr, bytes: usize, stream: CUstream);
    cuStreamCreateWithPriority(stream: *mut CUstream, flags: c_uint, priority: c_int);
    cuStreamQuery(stream: CUstream);
    cuStreamBeginCapture_v2(stream: CUstream, mode: CUstreamCaptureMode);
    cuStreamEndCapture(stream: CUstream, graph: *mut CUgraph);
    cuGraphGetNodes(graph: CUgraph, nodes: *mut CUgraphNode, count: *mut usize);
    cuGraphInstantiateWithFlags(exec: *mut CUgraphExec, graph: CUgraph, flags: c_ulonglong);
    cuGraphUpload(exec: CUgraphExec, stream: CUstream);
    cuGraphLaunch(exec: CUgraphExec, stream: CUstream);
    cuGraphExecDestroy(exec: CUgraphExec);
    cuGraphDestroy(graph: CUgraph);
    cuGraphExecKernelNodeSetParams_v2(
        exec: CUgraphExec,
        node: CUgraphNode,
        parameters: *const CUDA_KERNEL_NODE_PARAMS,
    );
    cuLaunchKernel(
        function: CUfunction,
        grid_x: c_uint, grid_y: c_uint, grid_z: c_uint,
        block_x: c_uint, block_y: c_uint, block_z: c_uint,
        shared_bytes: c_uint,
        stream: CUstream,
        parameters: *mut *mut c_void,
        extra: *mut *mut c_void,
    );
    cuLaunchCooperativeKernel(
        function: CUfunction,
        grid_x: c_uint, grid_y: c_uint, grid_z: c_uint,
        block_x: c_uint, block_y: c_uint, block_z: c_uint,
        shared_bytes: c_uint,
        stream: CUstream,
        parameters: *mut *mut c_void,
    );
}
