//! What the modes are measured against, in the same run: a bare kernel launched for each answer, by
//! launch and by graph, and one small copy. Raw driver calls, on streams of their own.

use cudarc::driver::sys::{self, CUresult};
use std::ffi::CString;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// `count` answers with a number of its own, in device memory; `answer` reads the request across
/// the bus first. Parameters: host memory (request at 0, answer at 128), device memory.
const PTX: &str = "
.version 8.4
.target sm_70
.address_size 64
.visible .entry count(.param .u64 host, .param .u64 own) {
    .reg .b64 %h, %o, %v;
    ld.param.u64 %h, [host];
    ld.param.u64 %o, [own];
    ld.global.u64 %v, [%o];
    add.u64 %v, %v, 1;
    st.global.u64 [%o], %v;
    st.relaxed.sys.global.u64 [%h+128], %v;
    ret;
}
.visible .entry answer(.param .u64 host, .param .u64 own) {
    .reg .b64 %h, %v;
    ld.param.u64 %h, [host];
    ld.relaxed.sys.global.u64 %v, [%h];
    st.relaxed.sys.global.u64 [%h+128], %v;
    ret;
}";

/// How long an answer is waited for.
const LIMIT: Duration = Duration::from_secs(2);

fn ok(call: &str, result: CUresult) {
    assert_eq!(result, CUresult::CUDA_SUCCESS, "{call}");
}

/// A device to measure on, through the primary context.
pub struct Baseline {
    stream: sys::CUstream,
    graphs: [sys::CUgraphExec; 2],
    functions: [sys::CUfunction; 2],
    host: *mut u8,
    mapped: u64,
    own: u64,
    asked: u64,
}

impl Baseline {
    /// On the first GPU. No kernel may be resident yet: a module is loaded.
    pub fn open() -> Baseline {
        let (mut device, mut context, mut stream, mut module) =
            (0, null_mut(), null_mut(), null_mut());
        let (mut host, mut mapped, mut own) = (null_mut(), 0, 0);
        let (mut functions, mut graphs) = ([null_mut(); 2], [null_mut(); 2]);
        let text = CString::new(PTX).expect("no NUL");
        // SAFETY: the pointers are to locals; the PTX is terminated; nothing is freed.
        unsafe {
            ok("cuInit", sys::cuInit(0));
            ok("cuDeviceGet", sys::cuDeviceGet(&mut device, 0));
            ok("retain", sys::cuDevicePrimaryCtxRetain(&mut context, device));
            ok("cuCtxSetCurrent", sys::cuCtxSetCurrent(context));
            ok("cuStreamCreate", sys::cuStreamCreate(&mut stream, 1)); // non-blocking
            ok("cuModuleLoadData", sys::cuModuleLoadData(&mut module, text.as_ptr().cast()));
            for (function, name) in functions.iter_mut().zip([c"count", c"answer"]) {
                let got = sys::cuModuleGetFunction(function, module, name.as_ptr());
                ok("cuModuleGetFunction", got);
                ok("cuFuncLoad", sys::cuFuncLoad(*function));
            }
            ok("cuMemHostAlloc", sys::cuMemHostAlloc(&mut host, 4096, 2)); // device-mapped
            ok("pointer", sys::cuMemHostGetDevicePointer_v2(&mut mapped, host, 0));
            ok("cuMemAlloc", sys::cuMemAlloc_v2(&mut own, 4096));
            ok("cuMemsetD8", sys::cuMemsetD8_v2(own, 0, 4096));
            host.cast::<u8>().write_bytes(0, 4096);
        }
        let mut baseline =
            Baseline { stream, graphs, functions, host: host.cast(), mapped, own, asked: 0 };
        for (which, exec) in graphs.iter_mut().enumerate() {
            let mut graph = null_mut();
            // SAFETY: a stream that nothing else uses; the pointers are to locals.
            unsafe {
                let relaxed = sys::CUstreamCaptureMode_enum::CU_STREAM_CAPTURE_MODE_RELAXED;
                ok("begin", sys::cuStreamBeginCapture_v2(stream, relaxed));
                baseline.enqueue(which);
                ok("end", sys::cuStreamEndCapture(stream, &mut graph));
                ok("instantiate", sys::cuGraphInstantiateWithFlags(exec, graph, 0));
                ok("upload", sys::cuGraphUpload(*exec, stream));
            }
        }
        baseline.graphs = graphs;
        baseline
    }

    fn word(&self, at: usize) -> &AtomicU64 {
        // SAFETY: inside the 4096 bytes, aligned; only accessed as atomics.
        unsafe { &*self.host.add(at).cast() }
    }

    fn enqueue(&self, which: usize) {
        let (mut host, mut own) = (self.mapped, self.own);
        let mut parameters = [(&raw mut host).cast(), (&raw mut own).cast()];
        let (f, p) = (self.functions[which], parameters.as_mut_ptr());
        // SAFETY: a loaded function with those two parameters, whose memory stays.
        let launched =
            unsafe { sys::cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 0, self.stream, p, null_mut()) };
        ok("cuLaunchKernel", launched);
    }

    /// Launches kernel `which` (0: `count`, 1: `answer`), and polls its answer.
    pub fn launch_and_poll(&mut self, which: usize, by_graph: bool) -> Duration {
        let (before, begun) = (self.word(128).load(Ordering::Acquire), Instant::now());
        self.asked += 1;
        self.word(0).store(self.asked + (1 << 40), Ordering::Release);
        if by_graph {
            // SAFETY: an instantiated graph of the launch above.
            let launched = unsafe { sys::cuGraphLaunch(self.graphs[which], self.stream) };
            ok("cuGraphLaunch", launched);
        } else {
            self.enqueue(which);
        }
        while self.word(128).load(Ordering::Acquire) == before {
            assert!(begun.elapsed() < LIMIT, "no answer");
        }
        let time = begun.elapsed();
        // SAFETY: a stream of ours; the kernel ends by itself.
        ok("cuStreamSynchronize", unsafe { sys::cuStreamSynchronize(self.stream) });
        time
    }

    /// Copies 64 bytes to the device, and waits for it.
    pub fn copy_and_wait(&mut self) -> Duration {
        let begun = Instant::now();
        // SAFETY: both ranges are ours, and stay.
        unsafe {
            let copied =
                sys::cuMemcpyHtoDAsync_v2(self.own + 1024, self.host.cast(), 64, self.stream);
            ok("cuMemcpyHtoDAsync", copied);
            ok("cuStreamSynchronize", sys::cuStreamSynchronize(self.stream));
        }
        begun.elapsed()
    }

    /// How long the driver takes to refuse memory that is not there: device memory, then pinned.
    pub fn refuse_memory(&mut self, bytes: usize) -> [Duration; 2] {
        let (mut address, mut host) = (0, null_mut());
        let begun = Instant::now();
        // SAFETY: the pointers are to locals; nothing is had.
        let device = unsafe { sys::cuMemAlloc_v2(&mut address, bytes) };
        let (first, begun) = (begun.elapsed(), Instant::now());
        // SAFETY: as above.
        let pinned = unsafe { sys::cuMemHostAlloc(&mut host, bytes, 2) };
        let success = CUresult::CUDA_SUCCESS;
        assert!(device != success && pinned != success, "{bytes} bytes were had");
        [first, begun.elapsed()]
    }
}
