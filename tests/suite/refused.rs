//! Calls of the driver that are refused: each in its turn, alone or with all that follow. Each time an error
//! names it, or it is done without; nothing is left behind, and afterwards all works.

use crate::faults::{names, promptly};
use ring_host::device::{Driver, Quirks, cpu::Cpu};
use ring_host::error::DriverReason;
use ring_host::kernels::{Echo, EchoMessage};
use ring_host::{
    ControlError, Device, DeviceFault, KernelHandle, Kernels, LaunchConfig, LaunchError, Memory,
    Mode, OpenError, RecvTimeoutError, Runtime, RuntimeConfig, SendTimeoutError,
};
use ring_tests::{LONG, WAYS, over, until};
use std::ops::Bound;

/// Memory for one kernel of [`launch`] and not for two.
const ONE: RuntimeConfig =
    RuntimeConfig { pinned_bytes: 8 << 10, device_bytes: 8 << 10, kernels: Kernels::BUILT_IN };

fn launch(mode: Mode, memory: Memory) -> LaunchConfig {
    LaunchConfig::default().mode(mode).memory(memory).capacity(16)
}

fn lost(fault: &DeviceFault) -> String {
    fault.to_string()
}

/// Messages there and back; or why there are none.
fn exchange(kernel: &mut KernelHandle<Echo>) -> Result<(), String> {
    match kernel.activate(LONG) {
        Ok(()) => {}
        Err(ControlError::Fault(fault)) => return Err(lost(&fault)),
        Err(error) => panic!("{error}"),
    }
    for i in 0..60 {
        match kernel.send(EchoMessage::from_seed(i), LONG) {
            Ok(()) => {}
            Err(SendTimeoutError::Fault { fault, .. }) => return Err(lost(&fault)),
            Err(error) => panic!("{error}"),
        }
        match kernel.recv(LONG) {
            Ok(answer) => assert_eq!(answer, EchoMessage::from_seed(i).answer()),
            Err(RecvTimeoutError::Fault(fault)) => return Err(lost(&fault)),
            Err(error) => panic!("{error}"),
        }
        if i % 8 == 0 {
            match kernel.rest(std::time::Duration::from_millis(20)) {
                Ok(()) | Err(ControlError::Staying { .. }) => {} // a persistent one stays
                Err(ControlError::Fault(fault)) => return Err(lost(&fault)),
                Err(error) => panic!("{error}"),
            }
        }
    }
    kernel.terminate(LONG).map(drop).map_err(|error| error.to_string())
}

/// Asserts that nothing is on the device, once orphans have left.
fn is_empty(device: &impl Driver) {
    until("what was on the device", || {
        drop(Runtime::open(Device::Cpu)); // sees what was set aside
        device.occupancy().is_empty().then_some(())
    });
}

/// The `n`th alone, and all from the `n`th on.
fn numbers(n: u64) -> [(Bound<u64>, Bound<u64>); 2] {
    [Bound::Included(n), Bound::Unbounded].map(|end| (Bound::Included(n), end))
}

#[test]
fn memory_that_is_refused_is_named_or_done_without() {
    let mut opened = 0;
    for n in 1..8 {
        for which in numbers(n) {
            let said = DriverReason::Emulated(format!("allocation {n} is refused").into());
            let said = format!("{said:?}");
            let device = Quirks::of(Cpu::open()).refused_allocations(which);
            let memory_probe = device.memory_probe();
            let found = Runtime::over(device.clone(), RuntimeConfig::default());
            match &found {
                Ok(host) => {
                    let report = host.report();
                    let text = format!("{:?} {:?}", report.pinned, report.probe);
                    let less = report.pinned != Ok(RuntimeConfig::default().pinned_bytes);
                    let whole = !less && !text.contains("refused") && n > 4;
                    opened += u32::from(whole);
                    assert!(whole || less || text.contains(&said), "{n}: {text}");
                    for (mode, memory) in WAYS {
                        match host.launch::<Echo>(launch(mode, memory)) {
                            Ok(mut kernel) => exchange(&mut kernel).unwrap(),
                            Err(LaunchError::Unfit { refused, .. }) => {
                                assert!(format!("{refused:?}").contains(&said), "{refused:?}");
                            }
                            Err(error) => panic!("{error}"),
                        }
                    }
                    let mut kernel = host.launch::<Echo>(LaunchConfig::default()).unwrap();
                    exchange(&mut kernel).unwrap();
                }
                Err(OpenError::Arena { source, .. } | OpenError::Driver(source)) => {
                    assert_eq!((source.call, source.code), ("alloc_device", 2));
                    assert!(matches!(source.reason, DriverReason::Emulated(_)), "{source}");
                }
                Err(error) => panic!("{error}"),
            }
            drop(found);
            is_empty(&device);
            assert_eq!(memory_probe.blocks(), 0, "memory was kept after refusal {n}");
            if which.1 != Bound::Unbounded {
                let open = || Runtime::over(device.clone(), RuntimeConfig::default()).ok();
                let again = until("an opening without refusal", open);
                if again.report().pinned.is_ok() && again.report().probe.mapped.is_ok() {
                    let mut kernel = again.launch::<Echo>(LaunchConfig::default()).unwrap();
                    exchange(&mut kernel).unwrap();
                }
            }
        }
    }
    assert!(opened >= 4, "no opening came to its end without a refusal");
}

#[test]
fn a_launch_that_is_refused_is_named_or_made_again() {
    for (mode, memory) in WAYS {
        for n in 1..5 {
            for which in numbers(n) {
                let refused = || Quirks::of(Cpu::open()).refused_launches(which);
                let (device, host) = over(refused, ONE);
                let alone = which.1 != Bound::Unbounded;
                let ended = match host.launch::<Echo>(launch(mode, memory)) {
                    Ok(mut kernel) => promptly("messages", || exchange(&mut kernel)),
                    Err(LaunchError::Driver(error)) => Err(error.to_string()),
                    Err(LaunchError::Fault(fault)) => Err(lost(&fault)),
                    Err(error) => panic!("{error}"),
                };
                match &ended {
                    Err(why) => names(why, &["is refused (a quirk)"]),
                    // A persistent kernel needs a launch slot and one launch.
                    Ok(()) => assert!(alone || n > 2, "{mode} in {memory}: {n} on"),
                }
                assert!(!alone || n == 1 || ended.is_ok(), "one refusal is gone around: {ended:?}");
                is_empty(&device);
                if alone {
                    // The refusal is over, and the memory for one kernel was given back.
                    until("a launch that is not refused", || {
                        let again = host.launch::<Echo>(launch(mode, memory));
                        again.map(|mut kernel| exchange(&mut kernel).unwrap()).ok()
                    });
                }
            }
        }
    }
}

/// With nothing forced, a refused launch slot leaves other modes.
#[test]
fn what_one_way_is_refused_another_serves() {
    let (_, host) = over(|| Quirks::of(Cpu::open()).refused_launches(1..=1), ONE);
    let mut kernel = host.launch::<Echo>(LaunchConfig::default().capacity(16)).unwrap();
    let choice = kernel.selection().to_string();
    names(&choice, &["not persistent in mapped memory", "launch 1 is refused (a quirk)"]);
    exchange(&mut kernel).unwrap();
    drop(kernel);
    let (device, host) = over(|| Quirks::of(Cpu::open()).refused_launches(1..), ONE);
    let error = host.launch::<Echo>(LaunchConfig::default().capacity(16)).map(drop).unwrap_err();
    names(&error, &["is refused (a quirk)"]);
    is_empty(&device);
}
