//! Code on a GPU that writes whatever it likes into its lines.

use super::comes_from_lines;
use crate::faults::{answers, in_child, promptly, ptx};
use ring_host::kernels::{Echo, EchoMessage};
use ring_host::{
    ControlError, KernelHandle, LaunchConfig, Memory, Mode, RecvTimeoutError, Runtime,
    SendTimeoutError,
};
use ring_tests::{LONG, gpu, until, with_ptx};
use std::time::{Duration, Instant};

/// For a second, thread 0 of each block writes numbers of all sizes into words of its channel that belong
/// to the device: bytes 128..1024 of the block's 1280, which lie behind the control block of 256.
pub(super) const SPOILER: &str = "\t.reg .pred %p<4>;\n\t.reg .b32 %r<8>;\n\t.reg .b64 %rd<16>;
\tmov.u32 %r1, %tid.x;\n\tsetp.ne.u32 %p1, %r1, 0;\n\t@%p1 bra END;
\tld.param.u64 %rd1, [control];\n\tcvta.to.global.u64 %rd1, %rd1;
\tmov.u32 %r2, %ctaid.x;\n\tmul.wide.u32 %rd2, %r2, 1280;\n\tadd.s64 %rd1, %rd1, %rd2;
\tadd.s64 %rd1, %rd1, 384;
\tmov.u64 %rd3, %globaltimer;\n\tadd.s64 %rd4, %rd3, 1000000000;\n\tmov.u64 %rd5, %rd3;
NEXT:
\tmul.lo.s64 %rd5, %rd5, 6364136223846793005;\n\tadd.s64 %rd5, %rd5, 1442695040888963407;
\tshr.u64 %rd6, %rd5, 33;\n\trem.u64 %rd7, %rd6, 112;\n\tshl.b64 %rd7, %rd7, 3;
\tadd.s64 %rd8, %rd1, %rd7;
\tmul.lo.s64 %rd9, %rd6, %rd5;\n\txor.b64 %rd9, %rd9, %rd5;
\tshr.u64 %rd10, %rd5, 58;\n\tcvt.u32.u64 %r3, %rd10;\n\tshr.u64 %rd11, %rd9, %r3;
\tst.relaxed.sys.global.u64 [%rd8], %rd11;
\tmov.u64 %rd12, %globaltimer;\n\tsetp.lt.u64 %p2, %rd12, %rd4;\n\t@%p2 bra NEXT;
END:\n\tret;";

/// All that a kernel shows of itself.
fn look(kernel: &KernelHandle<Echo>) {
    let _ = (kernel.status(), kernel.telemetry(), kernel.summary());
}

/// The host uses it meanwhile: nothing hangs, and an error says that the kernel is lost.
fn is_borne(host: &Runtime, memory: Memory) {
    const SHORT: Duration = Duration::from_millis(2);
    let launch =
        LaunchConfig::default().mode(Mode::Persistent).memory(memory).capacity(16).channels(2);
    let launched =
        promptly("launching", || host.launch::<Echo>(with_ptx(launch, ptx("", SPOILER))));
    let mut kernel = launched.unwrap();
    let (begun, request) = (Instant::now(), EchoMessage::from_seed(1));
    let fault = loop {
        assert!(begun.elapsed() < LONG, "it is not lost");
        match promptly("activating", || kernel.activate(SHORT)) {
            Ok(()) | Err(ControlError::Timeout { .. }) => {}
            Err(ControlError::Fault(fault)) => break fault,
            Err(error) => panic!("{error}"),
        }
        match promptly("sending", || kernel.send(request, SHORT)) {
            Ok(()) | Err(SendTimeoutError::Timeout { .. } | SendTimeoutError::NotActive { .. }) => {
            }
            Err(SendTimeoutError::Fault { fault, .. }) => break fault,
            Err(error) => panic!("{error}"),
        }
        match promptly("receiving", || kernel.recv(SHORT)) {
            Ok(_) | Err(RecvTimeoutError::Timeout { .. }) => {}
            Err(RecvTimeoutError::Fault(fault)) => break fault,
            Err(error) => panic!("{error}"),
        }
        promptly("looking", || look(&kernel));
    };
    comes_from_lines(&fault);
    while begun.elapsed() < Duration::from_millis(500) {
        promptly("looking", || look(&kernel));
        let _ = promptly("receiving", || kernel.try_recv());
    }
    promptly("dropping it", || drop(kernel));
    until("it has left", || {
        host.prepare::<Echo>(&with_ptx(LaunchConfig::default(), ptx("", "\tret;"))).ok()
    });
    answers(host);
}

#[test]
fn a_kernel_that_writes_over_its_lines_is_borne() {
    if gpu().is_none() {
        return;
    }
    in_child(here!("a_kernel_that_writes_over_its_lines_is_borne"), &[], || {
        for memory in [Memory::Mapped, Memory::StagedAsync] {
            is_borne(&gpu().unwrap(), memory);
        }
    });
}
