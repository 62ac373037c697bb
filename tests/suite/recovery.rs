//! `Runtime::recover`: after each fault either kernels can be launched again, or an error says that the
//! process has to be started again.

use crate::faults::{answers, gpu_alone, is_left_behind, names};
use ring_device::ring_kernel;
use ring_host::device::cpu::Cpu;
use ring_host::device::quirks::Quirks;
use ring_host::device::{Demand, Driver, Resources};
use ring_host::kernels::{Echo, EchoMessage};
use ring_host::{
    Device, DeviceFault, KernelHandle, LaunchConfig, LaunchError, Memory, Mode, OpenError,
    RecoverError, RecvTimeoutError, Runtime, RuntimeConfig, SendTimeoutError,
};
use ring_tests::kernels::config;
use ring_tests::latch::Latch;
use ring_tests::{LONG, Unlucky, WAYS, active, cpu, on_each_device, until};
use std::time::Duration;

fn small() -> LaunchConfig {
    LaunchConfig::default().capacity(64)
}

/// A device that is full of kernels works, and is not tried: what the trial would need is not there.
#[test]
fn a_device_that_is_full_is_not_tried() {
    let device = Quirks::of(Cpu::open());
    let options = RuntimeConfig { device_bytes: 0, ..RuntimeConfig::default() }; // nor is the caller's arena needed
    let mut host = Runtime::over(device.clone(), options).unwrap();
    assert!(host.recover(LONG).unwrap().tried);
    let block = Resources { blocks: 1, ..Resources::default() };
    let blocks = device.occupancy().holds(block);
    let all = Demand { kernel: "all", blocks, block, relaunched: false };
    let full = device.occupancy().reserve(all).unwrap();
    assert!(!host.recover(LONG).unwrap().tried);
    drop(full);
    assert!(host.recover(LONG).unwrap().tried);
}

/// Sends and receives until the kernel is lost; the fault.
fn lost(kernel: &mut KernelHandle<Echo>) -> DeviceFault {
    for seed in 0.. {
        let request = EchoMessage::from_seed(seed);
        match kernel.send(request, LONG) {
            Ok(()) => {}
            Err(SendTimeoutError::Fault { fault, .. }) => return fault,
            Err(error) => panic!("{error}"),
        }
        match kernel.recv(LONG) {
            Ok(answer) => assert_eq!(answer, request.answer(), "message {seed}"),
            Err(RecvTimeoutError::Fault(fault)) => return fault,
            Err(error) => panic!("{error}"),
        }
    }
    unreachable!()
}

#[test]
fn where_nothing_is_wrong_nothing_is_done() {
    on_each_device(|host| {
        let mut host = host.clone();
        let mut kernel = active(&host, small());
        assert!(!host.recover(LONG).unwrap().reopened);
        let request = EchoMessage::from_seed(4);
        kernel.send(request, LONG).unwrap();
        assert_eq!(kernel.recv(LONG), Ok(request.answer()), "kernels go on");
        answers(&host);
    });
}

#[test]
fn after_a_panic() {
    let mut host = cpu();
    let mut kernel = host.launch::<Unlucky>(LaunchConfig::default()).unwrap();
    kernel.activate(LONG).unwrap();
    kernel.send(13, LONG).unwrap();
    assert!(matches!(kernel.recv(LONG), Err(RecvTimeoutError::Fault(_))));
    drop(kernel);
    assert!(!host.recover(LONG).unwrap().reopened);
    let mut kernel = host.launch::<Unlucky>(LaunchConfig::default()).unwrap();
    kernel.activate(LONG).unwrap();
    kernel.send(12, LONG).unwrap();
    assert_eq!(kernel.recv(LONG), Ok(144));
}

#[test]
fn after_the_device_was_reset() {
    for (mode, memory) in WAYS {
        let device = Quirks::of(Cpu::open()).reset_after(100);
        let mut host = Runtime::over(device.clone(), RuntimeConfig::default()).unwrap();
        let mut other = host.clone();
        let launch = small().mode(mode).memory(memory);
        let mut kernel = active(&host, launch.clone());
        let fault = lost(&mut kernel);
        names(&fault, &["709", "reset"]);
        let error = host.launch::<Echo>(launch.clone()).map(drop).unwrap_err();
        assert!(matches!(error, LaunchError::Driver(_) | LaunchError::Image { .. }), "{error}");
        for host in [&mut host, &mut other] {
            assert!(host.recover(LONG).unwrap().reopened, "{mode}, {memory}");
            assert!(!host.recover(LONG).unwrap().reopened, "once");
            let mut anew = active(host, launch.clone());
            for seed in 0..200 {
                let request = EchoMessage::from_seed(seed);
                anew.send(request, LONG).unwrap();
                assert_eq!(anew.recv(LONG), Ok(request.answer()));
            }
            assert_eq!(
                kernel.try_send(EchoMessage::from_seed(0)).err().map(|e| e.to_string()),
                Some(fault.to_string()),
                "what was lost stays lost"
            );
            anew.terminate(LONG).unwrap();
        }
        drop(kernel);
        is_left_behind(&device);
    }
}

#[test]
fn after_what_no_call_helps() {
    let quirks: [fn(Quirks) -> Quirks; 2] =
        [|of| of.fault_after(100), |of| of.watchdog(Duration::from_secs(3))];
    for quirk in quirks {
        let mut host =
            Runtime::over(quirk(Quirks::of(Cpu::open())), RuntimeConfig::default()).unwrap();
        let endless =
            ring_host::Budgets { time: Duration::MAX, iterations: u64::MAX, idle: Duration::MAX };
        let launch = small().mode(Mode::EventDriven).memory(Memory::Mapped);
        let mut kernel = active(&host, launch.budgets(endless));
        lost(&mut kernel);
        drop(kernel);
        let error = host.recover(LONG).unwrap_err();
        assert!(matches!(error, RecoverError::Open(OpenError::Lost { .. })), "{error}");
        names(&error, &["has faulted", "start it again"]);
    }
}

/// In the handler of `Held`.
static AT_WORK: Latch = Latch::new();

ring_kernel! {
    /// Does not answer before it is released. For the CPU device only.
    struct Held {
        name: "held",
        entry: "ring_echo",
    }

    fn handle(request: &u64) -> u64 {
        AT_WORK.wait();
        *request
    }
}

#[test]
fn what_still_runs_is_counted_and_waited_for() {
    let (mut host, mut beside) = (cpu(), cpu());
    let mut kernel = host.launch::<Held>(small()).unwrap();
    kernel.activate(LONG).unwrap();
    kernel.send(1, LONG).unwrap();
    until("it is at work", || AT_WORK.is_reached().then_some(()));
    drop(kernel);
    assert_eq!(host.recover(Duration::from_millis(10)).unwrap().set_aside, 1);
    assert_eq!(beside.recover(LONG).unwrap().set_aside, 0, "of another device");
    assert_eq!(host.clone().recover(Duration::ZERO).unwrap().set_aside, 1);
    AT_WORK.release();
    assert_eq!(host.recover(LONG).unwrap().set_aside, 0, "waited for");
}

/// All that was made before is gone, and calls say so. Memory that the host reads stays. (The driver lets a
/// reset wait until no kernel is resident.)
#[test]
fn after_another_user_of_the_process_has_reset_the_gpu() {
    let here = here!("after_another_user_of_the_process_has_reset_the_gpu");
    gpu_alone(here, |host| resets(host, false));
}

/// Who resets a device usually uses it again at once: then the old handle stands for a new context, in which
/// what we made is nobody's, or somebody else's.
#[test]
fn after_another_user_of_the_process_has_reset_the_gpu_and_uses_it() {
    let here = here!("after_another_user_of_the_process_has_reset_the_gpu_and_uses_it");
    gpu_alone(here, |host| resets(host, true));
}

fn resets(mut host: Runtime, uses_it: bool) {
    use cudarc::driver::sys;
    let mut kernel = active(&host, small());
    let mut resting = active(&host, small().mode(Mode::EventDriven));
    let mut terminated = active(&host, small());
    let request = EchoMessage::from_seed(1);
    for kernel in [&mut kernel, &mut resting, &mut terminated] {
        kernel.send(request, LONG).unwrap();
        assert_eq!(kernel.recv(LONG), Ok(request.answer()));
    }
    terminated.terminate(LONG).unwrap();
    resting.rest(LONG).unwrap();
    kernel.terminate(LONG).unwrap(); // the driver would let the reset wait for it
    // SAFETY: plain calls on the first device; the pointer is to a local.
    let reset = unsafe {
        let done = sys::cuDevicePrimaryCtxReset_v2(0);
        let mut context = std::ptr::null_mut();
        match uses_it && done == sys::CUresult::CUDA_SUCCESS {
            true => sys::cuDevicePrimaryCtxRetain(&mut context, 0),
            false => done,
        }
    };
    assert_eq!(reset, sys::CUresult::CUDA_SUCCESS);

    let fault = lost(&mut resting);
    let DeviceFault::Device { source, .. } = &fault else { panic!("{fault}") };
    assert_eq!(source.code, 709, "{fault}");
    assert_eq!(kernel.status().processed, 1, "its lines can still be read");
    let error = host.launch::<Echo>(LaunchConfig::default()).map(drop).unwrap_err();
    names(&error, &["fail"]);
    let mut beside = host.clone();
    drop(terminated);
    assert!(host.recover(LONG).unwrap().reopened);
    answers(&host);
    answers(&Runtime::open_with(Device::Cuda(0), config()).unwrap());
    assert!(beside.recover(LONG).unwrap().reopened);
    drop((kernel, resting)); // after the device was opened anew
    answers(&beside);
    assert!(!host.recover(LONG).unwrap().reopened);
}
