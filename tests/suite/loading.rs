//! While a driver loads code nothing can be launched. Calls end at their deadline all the same, and
//! nothing is lost.

use crate::faults::gpu_alone;
use ring_host::device::cpu::Cpu;
use ring_host::device::quirks::Quirks;
use ring_host::image::ImageError;
use ring_host::kernels::{Echo, EchoMessage};
use ring_host::{
    LaunchConfig, LaunchError, Memory, Mode, RecvTimeoutError, Runtime, RuntimeConfig,
};
use ring_tests::{LONG, WAYS, active, exchange, with_ptx};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

#[test]
fn a_receive_that_must_launch_ends_at_its_deadline() {
    let quirks = Quirks::of(Cpu::open());
    let memory_probe = quirks.memory_probe();
    let host = Runtime::over(quirks, RuntimeConfig::default()).unwrap();
    for (mode, memory) in WAYS {
        if mode == Mode::Persistent {
            continue; // it is resident, or would be launched when it is made
        }
        let mut kernel = active(&host, LaunchConfig::default().mode(mode).memory(memory));
        exchange(&mut kernel, 1);
        kernel.rest(LONG).unwrap();
        memory_probe.set_loading(true);
        let launches = kernel.launches();
        let request = EchoMessage::from_seed(2);
        kernel.send(request, LONG).unwrap();
        let found = kernel.recv(Duration::from_millis(20));
        assert!(
            matches!(found, Err(RecvTimeoutError::Timeout { .. })),
            "{mode} {memory}: {found:?}"
        );
        assert_eq!(kernel.launches(), launches, "{mode} {memory}");
        memory_probe.set_loading(false);
        assert_eq!(kernel.recv(LONG).unwrap(), request.answer(), "{mode} {memory}");
        assert_eq!(kernel.terminate(LONG).unwrap().processed, 2);
    }
}

#[test]
fn a_launch_waits_for_the_driver() {
    let quirks = Quirks::of(Cpu::open());
    let memory_probe = quirks.memory_probe();
    let host = Runtime::over(quirks, RuntimeConfig::default()).unwrap();
    for memory in [Memory::Mapped, Memory::StagedAsync] {
        memory_probe.set_loading(true);
        let launch = LaunchConfig::default().mode(Mode::Persistent).memory(memory);
        let mut kernel = std::thread::scope(|scope| {
            let launched = scope.spawn(|| host.launch::<Echo>(launch).unwrap());
            std::thread::sleep(Duration::from_millis(30));
            memory_probe.set_loading(false);
            launched.join().unwrap()
        });
        kernel.activate(LONG).unwrap();
        exchange(&mut kernel, 3);
    }
}

/// One thread loads PTX again and again; another has its messages answered by launches meanwhile.
#[test]
fn messages_and_loads_beside_each_other() {
    gpu_alone(concat!(module_path!(), "::messages_and_loads_beside_each_other"), |host| {
        let ptx = include_str!("../../crates/ring-host/ptx/kernels.ptx");
        let done = AtomicBool::new(false);
        let mut kernel = active(&host, LaunchConfig::default().mode(Mode::EventDriven));
        let (mut answered, mut late, mut longest) = (0u64, 0u64, Duration::ZERO);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for n in 0..8 {
                    let launch =
                        with_ptx(LaunchConfig::default(), format!("{ptx}\n// {n}\n").into_bytes());
                    // A kernel may be resident just now; then it is tried again.
                    let begun = Instant::now();
                    while let Err(error) = host.prepare::<Echo>(&launch) {
                        let LaunchError::Image { source: ImageError::Busy { .. }, .. } = error
                        else {
                            panic!("{error}")
                        };
                        assert!(begun.elapsed() < LONG, "{error}");
                        std::thread::yield_now();
                    }
                    eprintln!("loaded in {:?}", begun.elapsed());
                }
                done.store(true, Relaxed);
            });
            let patience = Duration::from_millis(2);
            while !done.load(Relaxed) {
                let request = EchoMessage::from_seed(answered);
                kernel.send(request, LONG).unwrap();
                loop {
                    let begun = Instant::now();
                    let found = kernel.recv(patience);
                    longest = longest.max(begun.elapsed());
                    match found {
                        Ok(answer) => break assert_eq!(answer, request.answer()),
                        Err(RecvTimeoutError::Timeout { .. }) => late += 1,
                        Err(error) => panic!("{error}"),
                    }
                }
                answered += 1;
                // A wait for nothing sees that the launch has left. Then it is the loader's turn.
                let nothing = kernel.recv(patience);
                assert!(matches!(nothing, Err(RecvTimeoutError::Timeout { .. })), "{nothing:?}");
            }
        });
        println!(
            "{answered} answered, {late} receives of 2 ms timed out, the longest took {longest:?}"
        );
        assert_eq!(kernel.terminate(LONG).unwrap().processed, answered);
    });
}
