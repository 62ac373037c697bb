//! A host that does not get its processor while a device is probed: the report says so, the next probe decides
//! anew, and what is asked for by name is tried.

use crate::faults::in_child;
use ring_host::device::cpu::Cpu;
use ring_host::device::quirks::Quirks;
use ring_host::kernels::VectorAdd;
use ring_host::probe::{Cause, Lack, Probe};
use ring_host::{AskedBy, Evidence, Obstacle};
use ring_host::{LaunchConfig, LaunchError, Memory, Mode, PayloadMemory, Runtime, RuntimeConfig};
use ring_tests::{LONG, WAYS, active, exchange, opened, until};

fn open(device: &Quirks) -> Runtime {
    Runtime::over(device.clone(), RuntimeConfig::default()).unwrap()
}

/// A device at whose first opening the host is busy.
fn busy_at_first() -> Quirks {
    Quirks::of(Cpu::open()).busy_host(1)
}

/// Asserts that the probe is unsure whether kernels stay and calls come back, and certain of all else.
fn is_unknown(probe: &Probe) {
    assert!(!probe.is_certain());
    assert!(probe.mapped.is_ok() && probe.launch.is_ok() && probe.graph.is_ok(), "{probe:?}");
    for lack in [probe.resident.as_ref().map(drop), probe.concurrent_copy.as_ref().map(drop)] {
        let Err(Lack::Unknown(why)) = lack else { panic!("{probe:?}") };
        assert!(matches!(why, Cause::LeftEarly { .. }), "{why}");
    }
}

#[test]
fn what_a_busy_host_does_not_see_is_not_held_against_the_device() {
    let device = busy_at_first();
    let host = open(&device);
    is_unknown(&host.report().probe);
    let choice = host.report().selection.as_ref().unwrap();
    assert!(matches!(choice.mode, Mode::EventDriven | Mode::Graph), "{choice}");
    let first = &choice.refused[0];
    assert_eq!((first.mode, first.memory), WAYS[0], "{choice}");
    assert!(matches!(first.why, Obstacle::NotResident(Lack::Unknown(_))), "{choice}");

    // The next opening finds out, and that is kept.
    let again = opened(&device, RuntimeConfig::default());
    let probe = &again.report().probe;
    assert!(probe.resident.is_ok() && probe.concurrent_copy.is_ok(), "{probe:?}");
    let choice = again.report().selection.as_ref().unwrap();
    assert_eq!((choice.mode, choice.memory), WAYS[0], "{choice}");
    assert_eq!(open(&device).report().probe.took, probe.took, "the same probe");
}

#[test]
fn what_is_asked_for_is_tried_after_a_busy_moment() {
    let host = open(&busy_at_first());
    for (mode, memory) in WAYS {
        let mut kernel = active(&host, LaunchConfig::default().mode(mode).memory(memory));
        exchange(&mut kernel, 3);
        assert_eq!(kernel.runs_as(), (mode, memory), "{}", kernel.selection());
        if mode == Mode::Persistent || memory == Memory::StagedAsync {
            let why = &kernel.selection().why;
            assert_eq!(why.asked, AskedBy::Launch);
            assert!(matches!(why.found, Evidence::Doubt(_)), "{why}");
        }
    }
    // With a payload that is copied beside it, too.
    let launch = LaunchConfig::default().mode(Mode::Persistent).payload_bytes(64 << 10);
    let launch = launch.payload_memory(PayloadMemory::Device);
    let mut kernel = host.launch::<VectorAdd>(launch).unwrap();
    kernel.activate(LONG).unwrap();
    let (a, mut sum) = (vec![1.5; 5000], vec![0.0; 5000]);
    kernel.add(&a, &a, &mut sum, LONG).unwrap();
    assert!(sum.iter().all(|sum| *sum == 3.0));
    assert_eq!(kernel.runs_as(), WAYS[0]);
    is_unknown(&host.report().probe); // nothing was left to the runtime, so nothing was probed
}

#[test]
fn what_is_left_to_the_runtime_is_probed_again_by_a_launch() {
    let host = open(&busy_at_first());
    is_unknown(&host.report().probe);
    let kernel = until("a persistent kernel", || {
        let mut kernel = active(&host, LaunchConfig::default());
        exchange(&mut kernel, 4);
        (kernel.runs_as() == WAYS[0]).then_some(kernel)
    });
    let why = &kernel.selection().why;
    assert_eq!(why.asked, AskedBy::Nobody);
    assert!(matches!(why.found, Evidence::Resident(_)), "{why}");
    let report = host.report();
    assert!(
        report.probe.is_certain() && report.selection.as_ref().unwrap().mode == Mode::Persistent
    );
}

#[test]
fn what_the_environment_asks_for_is_tried_after_a_busy_moment() {
    let here = here!("what_the_environment_asks_for_is_tried_after_a_busy_moment");
    in_child(here, &[("RING_MODE", "persistent")], || {
        let host = open(&busy_at_first());
        let why = &host.report().selection.as_ref().unwrap().why;
        assert_eq!(why.asked, AskedBy::Environment { mode: true, memory: false });
        assert!(matches!(why.found, Evidence::Doubt(_)), "{why}");
        let mut kernel = active(&host, LaunchConfig::default());
        exchange(&mut kernel, 5);
        assert_eq!(kernel.runs_as(), WAYS[0], "{}", kernel.selection());
    });
}

/// What is known not to work is refused, also when it is asked for by name.
#[test]
fn what_the_device_does_not_do_is_kept_and_refused() {
    let device = Quirks::of(Cpu::open()).calls_block();
    let host = opened(&device, RuntimeConfig::default());
    let probe = &host.report().probe;
    let Err(Lack::No(why)) = &probe.concurrent_copy else { panic!("{probe:?}") };
    assert!(matches!(why, Cause::CallWaited { .. }), "{why}");
    assert_eq!(open(&device).report().probe.took, probe.took, "the same probe");
    let launch = LaunchConfig::default().memory(Memory::StagedAsync);
    let error = host.launch::<VectorAdd>(launch).map(drop).unwrap_err();
    assert!(matches!(error, LaunchError::Unfit { .. }), "{error}");
}
