//! A GPU through raw driver calls: its functions, a stream, and memory.

use crate::bench::context::wrong;
use crate::bench::measured::SHIPPED;
use crate::bench::report::Found;
use crate::kernels::KernelSource;
use cudarc::driver::sys::{self, CUresult};
use ring_host::Kernels;
use std::ffi::{CStr, CString, c_int};
use std::ptr::null_mut;
use std::time::{Duration, Instant};

/// Plain kernels of `ring-bench`.
#[derive(Clone, Copy, Debug)]
pub enum Entry {
    /// See `ring_bench::baselines::Flags`.
    Flag,
    /// Likewise.
    Once,
    /// Likewise.
    Count,
    /// Adds one to eight words in device memory.
    Add,
    /// See `ring_bench::baselines::Between`.
    Between,
    /// Likewise, by rings of gpu scope.
    LinkGpu,
    /// Likewise, by rings of system scope.
    LinkSystem,
    /// See `ring_bench::baselines::HeadTail`.
    HeadTail,
}

const ENTRIES: [(Entry, &CStr); 8] = [
    (Entry::Flag, c"bench_flag"),
    (Entry::Once, c"bench_once"),
    (Entry::Count, c"bench_count"),
    (Entry::Add, c"bench_add"),
    (Entry::Between, c"bench_between"),
    (Entry::LinkGpu, c"bench_link_gpu"),
    (Entry::LinkSystem, c"bench_link_system"),
    (Entry::HeadTail, c"bench_head_tail"),
];

/// Pinned memory that both sides see, for whatever is measured at the moment.
pub(super) const HOST_BYTES: usize = 64 << 20;

/// Device memory likewise.
const DEVICE_BYTES: usize = 64 << 20;

/// A GPU. What it takes is given back by the end of the process: freeing would block if a kernel
/// were resident that should not be.
#[derive(Debug)]
pub struct Gpu {
    context: sys::CUcontext,
    stream: sys::CUstream,
    functions: [sys::CUfunction; ENTRIES.len()],
    /// One of each kernel of `launch`, once it is made; else null.
    pub(super) graphs: [sys::CUgraphExec; 2],
    host: *mut u8,
    mapped: u64,
    device: u64,
}

// SAFETY: handles that the driver lets any thread use that has bound the context, and memory that is
// never freed.
unsafe impl Send for Gpu {}
// SAFETY: as above; the driver takes calls of several threads, and what writes the memory borrows it
// for itself alone.
unsafe impl Sync for Gpu {}

/// The driver's result of a call.
pub fn check(call: &str, result: CUresult) -> Found<()> {
    if result == CUresult::CUDA_SUCCESS {
        return Ok(());
    }
    let mut words = std::ptr::null();
    // SAFETY: the driver sets the pointer to a static string, or to null.
    let reason = unsafe {
        let _ = sys::cuGetErrorString(result, &mut words);
        match words.is_null() {
            true => "unknown error".into(),
            false => CStr::from_ptr(words).to_string_lossy(),
        }
    };
    Err(wrong(format!("{call} failed ({}): {reason}", result as i32)))
}

/// The module of those kernels, which is loaded unless it was before.
///
/// # Safety
/// A context is bound.
unsafe fn module(
    modules: &mut Vec<(Kernels, sys::CUmodule)>,
    kernels: Kernels,
) -> Found<sys::CUmodule> {
    if let Some((_, module)) = modules.iter().find(|(loaded, _)| *loaded == kernels) {
        return Ok(*module);
    }
    let (text, mut module) = (CString::new(kernels.ptx()).map_err(wrong)?, null_mut());
    // SAFETY: the caller's promise; the pointer is to a local, and the text is terminated.
    check("cuModuleLoadData", unsafe { sys::cuModuleLoadData(&mut module, text.as_ptr().cast()) })?;
    modules.push((kernels, module));
    Ok(module)
}

/// Names of the entries.
pub fn entries() -> impl Iterator<Item = &'static str> {
    ENTRIES.into_iter().filter_map(|(_, name)| name.to_str().ok())
}

impl Gpu {
    /// Opens the GPU of that index, in the primary context as the runtime does. No kernel may be
    /// resident yet: modules are loaded.
    pub fn open(index: usize, kernels: &KernelSource) -> Found<Gpu> {
        let index = c_int::try_from(index).map_err(wrong)?;
        let (mut device, mut context, mut stream) = (0, null_mut(), null_mut());
        let (mut host, mut mapped, mut memory) = (null_mut(), 0, 0);
        let mut functions = [null_mut(); ENTRIES.len()];
        let mut modules = Vec::new();
        // SAFETY: the pointers are to locals, names are terminated, a context is bound before modules are
        // loaded; nothing is ever freed.
        unsafe {
            check("cuInit", sys::cuInit(0))?;
            check("cuDeviceGet", sys::cuDeviceGet(&mut device, index))?;
            let retained = sys::cuDevicePrimaryCtxRetain(&mut context, device);
            check("cuDevicePrimaryCtxRetain", retained)?;
            check("cuCtxSetCurrent", sys::cuCtxSetCurrent(context))?;
            let non_blocking = sys::CUstream_flags_enum::CU_STREAM_NON_BLOCKING as u32;
            check("cuStreamCreate", sys::cuStreamCreate(&mut stream, non_blocking))?;
            for (function, (_, name)) in functions.iter_mut().zip(ENTRIES) {
                let of = kernels.with_entry(&name.to_string_lossy(), SHIPPED);
                let module = module(&mut modules, of)?;
                let got = sys::cuModuleGetFunction(function, module, name.as_ptr());
                check("cuModuleGetFunction", got)?;
                check("cuFuncLoad", sys::cuFuncLoad(*function))?;
            }
            let flags = sys::CU_MEMHOSTALLOC_DEVICEMAP;
            check("cuMemHostAlloc", sys::cuMemHostAlloc(&mut host, HOST_BYTES, flags))?;
            let pointer = sys::cuMemHostGetDevicePointer_v2(&mut mapped, host, 0);
            check("cuMemHostGetDevicePointer", pointer)?;
            check("cuMemAlloc", sys::cuMemAlloc_v2(&mut memory, DEVICE_BYTES))?;
        }
        let (graphs, host, device) = ([null_mut(); 2], host.cast(), memory);
        let mut gpu = Gpu { context, stream, functions, graphs, host, mapped, device };
        gpu.clear(HOST_BYTES);
        Ok(gpu)
    }

    /// Makes the calling thread use this GPU.
    pub fn bind(&self) -> Found<()> {
        // SAFETY: the context is never released.
        check("cuCtxSetCurrent", unsafe { sys::cuCtxSetCurrent(self.context) })
    }

    /// The stream of everything here.
    pub fn stream(&self) -> sys::CUstream {
        self.stream
    }

    /// Sets the first bytes of the pinned memory to zero. Nothing may be running.
    pub fn clear(&mut self, bytes: usize) {
        // SAFETY: inside the memory; no kernel runs, and no reference to it lives.
        unsafe { self.host.write_bytes(0, bytes.min(HOST_BYTES)) };
    }

    /// Where `bytes` of pinned memory are from `at` on: for the host, and for the device.
    ///
    /// # Panics
    /// If they are not all there.
    pub fn pinned(&self, at: usize, bytes: usize) -> (*mut u8, u64) {
        assert!(at.checked_add(bytes).is_some_and(|end| end <= HOST_BYTES), "{at} + {bytes}");
        (self.host.wrapping_add(at), self.mapped + at as u64)
    }

    /// A struct at `at` in the pinned memory, which was cleared: for the host, and its address for
    /// the device.
    ///
    /// # Safety
    /// All bytes zero is a value of it; what the device writes of it is atomic.
    pub unsafe fn shared<T>(&self, at: usize) -> (&T, u64) {
        assert!(at.is_multiple_of(align_of::<T>()), "{at}");
        let (host, device) = self.pinned(at, size_of::<T>());
        // SAFETY: initialised by `clear`, aligned as the memory begins at a page, and alive as long
        // as the process; the rest is the caller's promise.
        (unsafe { &*host.cast() }, device)
    }

    /// Address of device memory.
    ///
    /// # Panics
    /// If there are not so many bytes.
    pub fn memory(&self, bytes: usize) -> u64 {
        assert!(bytes <= DEVICE_BYTES, "{bytes}");
        self.device
    }

    /// Writes words to the device memory, and waits.
    pub fn write_words(&self, at: u64, words: &[u64]) -> Found<()> {
        let bytes = size_of_val(words);
        // SAFETY: device memory of ours; the words live until the copy is over.
        let copied =
            unsafe { sys::cuMemcpyHtoDAsync_v2(at, words.as_ptr().cast(), bytes, self.stream) };
        check("cuMemcpyHtoDAsync", copied)?;
        // SAFETY: a stream of ours; only the copy is in it.
        check("cuStreamSynchronize", unsafe { sys::cuStreamSynchronize(self.stream) })
    }

    /// Puts a kernel into the stream.
    ///
    /// # Safety
    /// `parameter` is what the entry's documentation asks for, until the kernel has ended.
    #[inline]
    pub unsafe fn launch(
        &self,
        entry: Entry,
        blocks: u32,
        threads: u32,
        parameter: u64,
    ) -> Found<()> {
        let mut parameter = parameter;
        let mut parameters = [(&raw mut parameter).cast()];
        let (f, p) = (self.functions[entry as usize], parameters.as_mut_ptr());
        // SAFETY: a loaded function with one 8-byte parameter; the rest is the caller's promise.
        let launched = unsafe {
            sys::cuLaunchKernel(f, blocks, 1, 1, threads, 1, 1, 0, self.stream, p, null_mut())
        };
        check("cuLaunchKernel", launched)
    }

    /// Makes some systems begin what was launched.
    pub fn nudge(&self) {
        // SAFETY: a stream of ours. Whatever it says is found out by what comes next.
        let _ = unsafe { sys::cuStreamQuery(self.stream) };
    }

    /// Waits until the stream is empty, but not for ever.
    pub fn finish(&self, limit: Duration) -> Found<()> {
        let begun = Instant::now();
        loop {
            // SAFETY: a stream of ours.
            match unsafe { sys::cuStreamQuery(self.stream) } {
                CUresult::CUDA_ERROR_NOT_READY if begun.elapsed() < limit => {
                    std::thread::yield_now();
                }
                CUresult::CUDA_ERROR_NOT_READY => {
                    return Err(wrong(format!("a bare kernel did not leave within {limit:?}")));
                }
                result => return check("cuStreamQuery", result),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_stand_in_their_order_and_are_in_the_module() {
        for (k, (entry, name)) in ENTRIES.into_iter().enumerate() {
            assert_eq!(entry as usize, k);
            let entry = format!(".visible .entry {}(", name.to_str().unwrap());
            assert!(SHIPPED.ptx().contains(&entry), "{entry}");
        }
    }
}
