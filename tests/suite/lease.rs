//! Leases: a kernel leaves the device when its host does not renew them, and a host that died or was
//! stopped leaves a device that works.

use crate::faults::{CHILD, answers, in_child, is_child, names};
use ring_host::device::cpu::Cpu;
use ring_host::device::quirks::Quirks;
use ring_host::kernels::{Echo, EchoMessage};
use ring_host::{
    Device, DeviceFault, Exit, LaunchConfig, LaunchError, Memory, Mode, RecvTimeoutError, Runtime,
    RuntimeConfig, State, TrySendError,
};
use ring_tests::kernels::config;
use ring_tests::{LONG, WAYS, active, cpu, exchange, gpu, on_each_device, this_program, until};
use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::time::Duration;

/// The shortest lease that is allowed.
const SHORT: Duration = Duration::from_millis(100);

fn small() -> LaunchConfig {
    LaunchConfig::default().capacity(64)
}

#[test]
fn a_kernel_whose_host_is_silent_leaves() {
    let host =
        Runtime::over(Quirks::of(Cpu::open()).silent_host(), RuntimeConfig::default()).unwrap();
    let request = EchoMessage::from_seed(5);
    for channels in [1, 3] {
        let launch = small().mode(Mode::Persistent).memory(Memory::Mapped).channels(channels);
        // It must answer before its lease is over: a host that is too late for that tries again.
        let mut kernel = until("a kernel that answers in time", || {
            let mut kernel = host.launch::<Echo>(launch.clone().lease(4 * SHORT)).unwrap();
            let sent = kernel.activate(LONG).is_ok() && kernel.send(request, LONG).is_ok();
            until("its lease is over", || (kernel.status().exit == Exit::LeaseOver).then_some(()));
            (sent && kernel.status().processed == 1).then_some(kernel)
        });
        assert_eq!(kernel.recv(LONG), Ok(request.answer()), "what it answered before");
        let error = kernel.recv(LONG).unwrap_err();
        let RecvTimeoutError::Fault(fault) = &error else { panic!("{error}") };
        assert!(matches!(fault, DeviceFault::Left { exit: Exit::LeaseOver, .. }), "{fault}");
        names(fault, &["kernel echo", "channel", "LeaseOver", "renew", "LaunchConfig::lease"]);
        assert_eq!(kernel.status().state, State::Faulted);
        let refused = kernel.try_send(request).unwrap_err();
        assert_eq!(refused, TrySendError::Fault { message: request, fault: fault.clone() });
    }
    answers(&host);
}

/// Event-driven launches end by their budgets long before; and staged memory bounds them by itself.
#[test]
fn a_lease_does_not_end_what_leaves_by_itself() {
    let host =
        Runtime::over(Quirks::of(Cpu::open()).silent_host(), RuntimeConfig::default()).unwrap();
    for (mode, memory) in WAYS.into_iter().skip(1) {
        let mut kernel = active(&host, small().mode(mode).memory(memory).lease(SHORT));
        exchange(&mut kernel, 1);
        std::thread::sleep(2 * SHORT);
        exchange(&mut kernel, 2);
        kernel.terminate(LONG).unwrap();
    }
}

#[test]
fn a_kernel_whose_host_lives_stays() {
    on_each_device(|host| {
        let lease = Duration::from_secs(1);
        let mut leased = active(host, small().lease(lease));
        let mut endless = active(host, small().lease(Duration::MAX));
        std::thread::sleep(lease * 3 / 2); // nobody calls anything
        for kernel in [&mut leased, &mut endless] {
            exchange(kernel, 7);
            assert_eq!(kernel.terminate(LONG).unwrap().processed, 1);
        }
    });
}

#[test]
fn a_lease_too_short_to_be_renewed_is_refused() {
    for lease in [Duration::ZERO, SHORT - Duration::from_nanos(1)] {
        let error =
            cpu().launch::<Echo>(LaunchConfig::default().lease(lease)).map(drop).unwrap_err();
        assert!(matches!(error, LaunchError::Lease { .. }), "{error}");
        names(&error, &["lease", "100ms", "Duration::MAX"]);
    }
}

/// This program again as a process of its own, running the calling test; it says "resident" when its
/// kernels are.
fn spawn(test: &str, device: &str) -> (Child, BufReader<std::process::ChildStdout>) {
    let name = test.split_once("::").expect("crate::module::test").1;
    let mut child = this_program()
        .args([name, "--exact", "--nocapture", "--test-threads=1"])
        .env(CHILD, name)
        .env("RING_TEST_HOST", device)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    says(&mut out, "resident");
    (child, out)
}

/// Reads until a line holds that word; what is read ends with the process.
fn says(out: &mut impl BufRead, word: &str) {
    let mut line = String::new();
    while !line.contains(word) {
        line.clear();
        assert_ne!(out.read_line(&mut line).unwrap(), 0, "the process ended without '{word}'");
    }
}

/// The device that the parent process chose.
fn chosen() -> Runtime {
    let device = std::env::var("RING_TEST_HOST").unwrap().parse::<Device>().unwrap();
    Runtime::open_with(device, config()).unwrap()
}

/// The devices there are.
fn devices() -> impl Iterator<Item = &'static str> {
    ["cpu", "cuda:0"].into_iter().filter(|name| *name == "cpu" || gpu().is_some())
}

#[test]
fn after_a_killed_process_the_next_one_works() {
    let here = here!("after_a_killed_process_the_next_one_works");
    if std::env::var_os("RING_TEST_HOST").is_some() {
        let host = chosen();
        let mut kernels: Vec<_> =
            (1..4).map(|channels| active(&host, small().channels(channels))).collect();
        kernels.iter_mut().for_each(|kernel| exchange(kernel, 1));
        println!("resident");
        std::thread::sleep(LONG);
        unreachable!("it is killed");
    }
    if !is_child() {
        for device in devices() {
            let (mut child, _out) = spawn(here, device);
            child.kill().unwrap(); // by SIGKILL: nothing of it runs any more
            child.wait().unwrap();
        }
    }
    in_child(here, &[], || on_each_device(answers));
}

/// A program may leave by `exit`, which drops nothing.
#[test]
fn a_process_that_forgets_its_kernels_ends() {
    let here = here!("a_process_that_forgets_its_kernels_ends");
    if is_child() {
        let host = chosen();
        let mut kernel = active(&host, small().channels(2));
        exchange(&mut kernel, 1);
        println!("resident");
        std::mem::forget(kernel);
        std::process::exit(7);
    }
    for device in devices() {
        let (mut child, _out) = spawn(here, device);
        let ended = until("its end", || child.try_wait().unwrap());
        assert_eq!(ended.code(), Some(7), "on {device}");
    }
}

/// Sends a signal by name.
#[cfg(unix)]
fn signal(child: &Child, name: &str) {
    let sent = std::process::Command::new("sh")
        .args(["-c", &format!("kill -{name} {}", child.id())])
        .status();
    assert!(sent.unwrap().success());
}

/// A GPU goes on while its host is stopped, so its kernel is lost with an error, and is launched again; CPU
/// channels are stopped with their host, and go on with it.
#[cfg(unix)]
#[test]
fn a_stopped_host_finds_its_kernel_gone_or_goes_on() {
    use ring_tests::CallError;
    use std::time::Instant;

    let here = here!("a_stopped_host_finds_its_kernel_gone_or_goes_on");
    let lease = Duration::from_millis(500);
    if is_child() {
        let host = chosen();
        let mut kernel = active(&host, small().lease(lease));
        exchange(&mut kernel, 1);
        std::thread::sleep(2 * lease);
        exchange(&mut kernel, 2);
        println!("resident");
        if host.device().kind == ring_host::DeviceKind::Cpu {
            let begun = Instant::now();
            while begun.elapsed() < 6 * lease {
                exchange(&mut kernel, 3);
            }
        } else {
            let error = loop {
                // It answers until the process is stopped.
                let sent = kernel.send(EchoMessage::from_seed(3), LONG);
                if let Err(error) = sent.map_err(CallError::from) {
                    break error;
                }
                match kernel.recv(LONG) {
                    Ok(_) => std::thread::sleep(Duration::from_millis(1)),
                    Err(RecvTimeoutError::Fault(fault)) => break CallError::Fault(fault),
                    Err(error) => panic!("{error}"),
                }
            };
            let CallError::Fault(fault) = error else { panic!("{error}") };
            assert!(matches!(fault, DeviceFault::Left { exit: Exit::LeaseOver, .. }), "{fault}");
            answers(&host);
        }
        println!("went on");
        return;
    }
    for device in devices() {
        let (mut child, mut out) = spawn(here, device);
        signal(&child, "STOP");
        std::thread::sleep(3 * lease);
        signal(&child, "CONT");
        says(&mut out, "went on");
        assert!(child.wait().unwrap().success());
    }
}
