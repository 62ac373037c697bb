//! How much memory the process has, and how much of the device's is taken.

use cudarc::driver::sys;
use ring_host::{DeviceKind, Runtime};
use std::fmt;

/// Bytes.
#[derive(Clone, Copy, Debug)]
pub struct Memory {
    process: u64,
    device: u64,
}

impl Memory {
    pub fn now(host: &Runtime) -> Memory {
        let pages = std::fs::read_to_string("/proc/self/statm").ok();
        let pages = pages.and_then(|text| text.split(' ').nth(1)?.parse::<u64>().ok());
        let on_gpu = host.device().kind == DeviceKind::Cuda;
        Memory { process: pages.unwrap_or(0) * 4096, device: if on_gpu { taken() } else { 0 } }
    }

    /// By how much one of them has grown.
    pub fn grown_since(self, before: Memory) -> u64 {
        let process = self.process.saturating_sub(before.process);
        process.max(self.device.saturating_sub(before.device))
    }
}

/// Bytes of the first GPU that are taken, by whomever; 0 if it cannot be asked.
fn taken() -> u64 {
    let (mut context, mut free, mut total) = (std::ptr::null_mut(), 0, 0);
    // SAFETY: plain calls, the pointers are to locals; the context is retained and released, and pushed and
    // popped, as often.
    unsafe {
        if sys::cuDevicePrimaryCtxRetain(&mut context, 0) != sys::CUresult::CUDA_SUCCESS {
            return 0;
        }
        let _ = sys::cuCtxPushCurrent_v2(context);
        let _ = sys::cuMemGetInfo_v2(&mut free, &mut total);
        let _ = sys::cuCtxPopCurrent_v2(&mut context);
        let _ = sys::cuDevicePrimaryCtxRelease_v2(0);
    }
    (total - free) as u64
}

impl fmt::Display for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mib = |bytes: u64| bytes as f64 / (1 << 20) as f64;
        write!(f, "{:.1} MiB resident", mib(self.process))?;
        if self.device > 0 {
            write!(f, ", {:.0} MiB of the GPU taken", mib(self.device))?;
        }
        Ok(())
    }
}
