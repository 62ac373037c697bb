//! Kernels that are lost: a handler panics, the device faults, the code never answers. Every later
//! use of the handle is an error, nothing hangs, and what is not lost goes on.

use ring_example_kernels::{Fragile, FragileBlock, FragileInOrder, FragileWarp};
use ring_host::device::Driver;
use ring_host::error::ArenaKind;
use ring_host::image::ImageError;
use ring_host::kernels::{Echo, EchoMessage};
use ring_host::{
    ControlError, Device, DeviceFault, Kernel, KernelHandle, LaunchConfig, LaunchError, OpenError,
    PayloadError, RecoverError, RecvTimeoutError, Runtime, RuntimeConfig, SendTimeoutError, State,
    TryRecvError, TrySendError,
};
use ring_tests::kernels::{bears_panics, config, of_examples, traps};
use ring_tests::{
    LONG, Unlucky, WAYS, active, cpu, cpu_with, exchange, gpu, this_program, until, with_ptx,
};
use std::io::Read;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// How long a call may take that must not wait for anything.
pub(crate) const PROMPT: Duration = Duration::from_secs(5);

/// Runs a call that must not block.
pub(crate) fn promptly<T>(what: &str, call: impl FnOnce() -> T) -> T {
    let begun = Instant::now();
    let done = call();
    let took = begun.elapsed();
    assert!(took < PROMPT, "{what} took {took:?}");
    done
}

/// Asserts that a message names all of these.
pub(crate) fn names(error: &impl std::fmt::Display, parts: &[&str]) {
    let said = error.to_string();
    for part in parts {
        assert!(said.contains(part), "'{said}' does not name '{part}'");
    }
}

/// PTX with our ABI version and an entry `ring_echo` of that body: it passes every check of text.
pub(crate) fn ptx(directives: &str, body: &str) -> Vec<u8> {
    let abi = ring_shared::ABI_VERSION;
    format!(
        ".version 8.4\n.target sm_70\n.address_size 64\n\
         .visible .global .align 4 .u32 RING_ABI_VERSION = {abi};\n\
         .visible .entry ring_echo(\n\t.param .u64 control\n) {directives}\n{{\n{body}\n}}\n"
    )
    .into_bytes()
}

/// Set in a child's environment, to the test that it is to run.
pub(crate) const CHILD: &str = "RING_TEST_CHILD";

/// Whether this process was started by [`in_child`].
pub(crate) fn is_child() -> bool {
    std::env::var_os(CHILD).is_some()
}

/// Runs a test on the CPU device, and in a process of its own on a GPU, where there is one: there PTX of its
/// own is loaded, which the driver does only while nothing is resident.
pub(crate) fn on_each_device_alone(test: &str, body: impl Fn(&Runtime)) {
    if !is_child() {
        body(&cpu());
    }
    gpu_alone(test, |gpu| body(&gpu));
}

/// Runs a test on a GPU, where there is one, in a process of its own.
pub(crate) fn gpu_alone(test: &str, body: impl Fn(Runtime)) {
    if gpu().is_some() {
        in_child(test, &[], || body(gpu().unwrap()));
    }
}

/// All that the device had is given back once its kernels have left: they may run on underneath a
/// fault that is made up.
pub(crate) fn is_left_behind(device: &impl Driver) {
    until("what was on the device", || {
        drop(Runtime::open(Device::Cpu)); // sees what was set aside
        device.occupancy().is_empty().then_some(())
    });
}

/// Runs `body` in a process of its own: this program again, asked to run `test` only, which must be
/// the calling test (`concat!(module_path!(), "::its_name")`). For what one process can do once.
pub(crate) fn in_child(test: &str, environment: &[(&str, &str)], body: impl FnOnce()) {
    const LIMIT: Duration = Duration::from_secs(180);
    let name = test.split_once("::").expect("crate::module::test").1;
    let done = format!("<{name} came to its end>");
    if std::env::var(CHILD).is_ok_and(|child| child == name) {
        body();
        println!("{done}");
        return;
    }
    let mut child = this_program()
        .args([name, "--exact", "--nocapture", "--test-threads=1"])
        .env(CHILD, name)
        .envs(environment.iter().copied())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    fn all(mut pipe: impl Read + Send + 'static) -> std::thread::JoinHandle<String> {
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            let _ = pipe.read_to_end(&mut bytes);
            String::from_utf8_lossy(&bytes).into_owned()
        })
    }
    let (out, err) = (all(child.stdout.take().unwrap()), all(child.stderr.take().unwrap()));
    let begun = Instant::now();
    let status = loop {
        match child.try_wait().unwrap() {
            None if begun.elapsed() < LIMIT => std::thread::sleep(Duration::from_millis(5)),
            None => {
                child.kill().unwrap();
                child.wait().unwrap();
                break None;
            }
            ended => break ended,
        }
    };
    let (out, err) = (out.join().unwrap(), err.join().unwrap());
    let well = status.is_some_and(|s| s.success()) && out.contains(&done);
    assert!(well, "{name} in its own process: {status:?} (None: not within {LIMIT:?})\n{out}{err}");
    print!("{err}");
}

fn unlucky(runtime: &Runtime, launch: LaunchConfig) -> KernelHandle<Unlucky> {
    let mut kernel = runtime.launch::<Unlucky>(launch).unwrap();
    kernel.activate(LONG).unwrap();
    kernel
}

/// That `kernel`, which has been found lost, answers everything with that fault, at once.
fn is_lost<K: Kernel>(kernel: &mut KernelHandle<K>, request: &K::Request, fault: &DeviceFault) {
    promptly("using a lost kernel", || {
        let given_back = |back: K::Request| {
            assert_eq!(bytemuck::bytes_of(&back), bytemuck::bytes_of(request), "given back");
        };
        let refused = TrySendError::Fault { message: (), fault: fault.clone() };
        let sent = kernel.try_send(*request).map_err(|error| error.map(given_back));
        assert_eq!(sent, Err(refused.clone()));
        assert_eq!(kernel.try_send_batch(&[*request]), Err(refused));
        let refused = SendTimeoutError::Fault { message: (), fault: fault.clone() };
        let sent = kernel.send(*request, LONG).map_err(|error| error.map(given_back));
        assert_eq!(sent, Err(refused));
        assert_eq!(kernel.recv(LONG).err(), Some(RecvTimeoutError::Fault(fault.clone())));
        let nothing = TryRecvError::Fault(fault.clone());
        assert_eq!(kernel.try_recv().err(), Some(nothing.clone()));
        let mut answers = [bytemuck::Zeroable::zeroed()];
        assert_eq!(kernel.try_recv_batch(&mut answers), Err(nothing));
        let refused = ControlError::Fault(fault.clone());
        assert_eq!(kernel.activate(LONG), Err(refused.clone()));
        assert_eq!(kernel.deactivate(LONG), Err(refused.clone()));
        assert_eq!(kernel.terminate(LONG), Err(refused));
        let refused = PayloadError::Fault(fault.clone());
        assert_eq!(kernel.write_payload(0, &[0u32; 0], LONG), Err(refused.clone()));
        assert_eq!(kernel.read_payload(0, &mut [0u32; 0], LONG), Err(refused));
        assert_eq!(kernel.status().state, State::Faulted);
    });
}

pub(crate) fn answers(runtime: &Runtime) {
    let mut kernel = active(runtime, LaunchConfig::default().capacity(16));
    exchange(&mut kernel, 1);
    kernel.terminate(LONG).unwrap();
}

/// The fault that a receiver finds.
fn fault_of<K: Kernel>(kernel: &mut KernelHandle<K>) -> DeviceFault {
    match kernel.recv(LONG) {
        Err(RecvTimeoutError::Fault(fault)) => fault,
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("an answer of a lost kernel"),
    }
}

#[test]
fn a_panic_is_named_and_every_later_use_is_an_error() {
    let runtime = cpu();
    let mut beside = unlucky(&runtime, LaunchConfig::default());
    let mut kernel = unlucky(&runtime, LaunchConfig::default());
    kernel.send(13, LONG).unwrap();
    let fault = fault_of(&mut kernel);
    assert_eq!(fault, DeviceFault::HandlerPanicked { kernel: "unlucky", channel: 0, processed: 0 });
    names(&fault, &["kernel unlucky", "panicked", "channel 0", "after 0 messages"]);
    is_lost(&mut kernel, &2, &fault);
    beside.send(3, LONG).unwrap();
    assert_eq!(beside.recv(LONG), Ok(9), "a kernel that was there before goes on");
    promptly("dropping it", || drop(kernel));
    answers(&runtime);
    let mut again = unlucky(&runtime, LaunchConfig::default());
    again.send(4, LONG).unwrap();
    assert_eq!(again.recv(LONG), Ok(16));
}

#[test]
fn answers_from_before_a_panic_are_received_first() {
    let mut kernel = unlucky(&cpu(), LaunchConfig::default());
    for request in 1..=5 {
        kernel.send(request, LONG).unwrap();
    }
    until("the five answers", || (kernel.status().processed == 5).then_some(()));
    kernel.send(13, LONG).unwrap();
    let fault = until("the fault", || match kernel.write_payload(0, &[0u32; 0], LONG) {
        Err(PayloadError::Fault(fault)) => Some(fault),
        other => other.err().map(|error| panic!("{error}")),
    });
    for request in 1..=3 {
        assert_eq!(kernel.recv(LONG), Ok(request * request));
    }
    let mut answers = [0; 8];
    assert_eq!(kernel.try_recv_batch(&mut answers), Ok(2));
    assert_eq!(answers[..2], [16, 25]);
    assert!(matches!(fault, DeviceFault::HandlerPanicked { processed: 5, .. }), "{fault}");
    is_lost(&mut kernel, &2, &fault);
}

#[test]
fn whoever_uses_a_kernel_learns_that_it_panicked() {
    type Use = fn(&mut KernelHandle<Unlucky>) -> Option<DeviceFault>;
    let uses: [(&str, Use); 7] = [
        ("try_recv", |k| match k.try_recv() {
            Err(TryRecvError::Fault(fault)) => Some(fault),
            Err(TryRecvError::Empty) => None,
            other => other.is_err().then(|| panic!("{other:?}")),
        }),
        ("try_recv_batch", |k| match k.try_recv_batch(&mut [0; 4]) {
            Err(TryRecvError::Fault(fault)) => Some(fault),
            other => other.is_err().then(|| panic!("{other:?}")),
        }),
        ("try_send", |k| match k.try_send(2) {
            Err(TrySendError::Fault { fault, .. }) => Some(fault),
            Ok(()) | Err(TrySendError::Full(2)) => None,
            other => panic!("{other:?}"),
        }),
        ("try_send_batch", |k| match k.try_send_batch(&[2; 3]) {
            Err(TrySendError::Fault { fault, .. }) => Some(fault),
            other => other.is_err().then(|| panic!("{other:?}")),
        }),
        ("send", |k| match k.send(2, LONG) {
            Err(SendTimeoutError::Fault { fault, .. }) => Some(fault),
            Ok(()) => None,
            other => panic!("{other:?}"),
        }),
        ("activate", |k| match k.activate(LONG) {
            Err(ControlError::Fault(fault)) => Some(fault),
            Ok(()) => None, // acknowledged before the message was taken
            other => panic!("{other:?}"),
        }),
        ("write_payload", |k| match k.write_payload(0, &[0u32; 0], LONG) {
            Err(PayloadError::Fault(fault)) => Some(fault),
            other => other.is_err().then(|| panic!("{other:?}")),
        }),
    ];
    let runtime = cpu();
    for (name, used) in uses {
        let mut kernel = unlucky(&runtime, LaunchConfig::default().capacity(4));
        kernel.send(13, LONG).unwrap();
        let fault = until(name, || used(&mut kernel));
        assert!(
            matches!(fault, DeviceFault::HandlerPanicked { channel: 0, .. }),
            "{name}: {fault}"
        );
        is_lost(&mut kernel, &2, &fault);
    }
}

#[test]
fn both_halves_learn_of_a_panic() {
    let mut kernel = unlucky(&cpu(), LaunchConfig::default().capacity(8));
    let (sender, receiver) = kernel.channel(0).unwrap().split();
    std::thread::scope(|threads| {
        let sending = threads.spawn(|| {
            for request in 0.. {
                if let Err(error) = sender.send(request, LONG) {
                    return error.without_message();
                }
            }
            unreachable!()
        });
        for (request, expected) in (0..13u64).map(|n| (n, n * n)) {
            match receiver.recv(LONG) {
                Ok(answer) => assert_eq!(answer, expected, "request {request}"),
                Err(error) => {
                    assert!(matches!(error, RecvTimeoutError::Fault(_)), "{error}");
                    break; // the rest of its batch went down with request 13
                }
            }
        }
        let end = receiver.recv(LONG).unwrap_err();
        let RecvTimeoutError::Fault(fault) = end else { panic!("{end}") };
        assert!(matches!(fault, DeviceFault::HandlerPanicked { channel: 0, .. }), "{fault}");
        assert_eq!(sending.join().unwrap(), SendTimeoutError::Fault { message: (), fault });
    });
}

/// A panic on one channel ends the kernel: the other channels' answers are still there, and their threads
/// leave when it is dropped, so that the memory comes back.
#[test]
fn a_panic_on_one_channel_among_several() {
    let launch = LaunchConfig::default().capacity(16).channels(3);
    let bytes = {
        let probe = cpu().launch::<Unlucky>(launch.clone()).unwrap();
        probe.pinned_bytes().next_multiple_of(256)
    };
    let runtime = cpu_with(bytes, 4096);
    let mut kernel = unlucky(&runtime, launch.clone());
    for channel in [0, 2] {
        kernel.channel(channel).unwrap().send(5 + u64::from(channel), LONG).unwrap();
    }
    until("two answers", || (kernel.status().processed == 2).then_some(()));
    kernel.channel(1).unwrap().send(13, LONG).unwrap();
    let found = kernel.channel(1).unwrap().recv(LONG).unwrap_err();
    let fault = DeviceFault::HandlerPanicked { kernel: "unlucky", channel: 1, processed: 0 };
    assert_eq!(found, RecvTimeoutError::Fault(fault.clone()));
    for (channel, answer) in [(0, 25), (2, 49)] {
        let channel = kernel.channel(channel).unwrap();
        assert_eq!(channel.recv(LONG), Ok(answer));
        assert_eq!(channel.recv(LONG), Err(RecvTimeoutError::Fault(fault.clone())));
        assert_eq!(
            channel.send(1, LONG),
            Err(SendTimeoutError::Fault { message: 1, fault: fault.clone() })
        );
    }
    is_lost(&mut kernel, &2, &fault);
    promptly("dropping it", || drop(kernel));
    let again =
        until("the memory of the lost kernel", || runtime.launch::<Unlucky>(launch.clone()).ok());
    drop(again);
}

#[test]
fn a_kernel_that_ends_at_once_was_refused() {
    if gpu().is_none() {
        return;
    }
    in_child(concat!(module_path!(), "::a_kernel_that_ends_at_once_was_refused"), &[], || {
        let runtime = gpu().unwrap();
        let launch = with_ptx(LaunchConfig::default(), ptx("", "\tret;"));
        let mut kernel = runtime.launch::<Echo>(launch).unwrap();
        let fault = DeviceFault::Refused { kernel: "echo" };
        assert_eq!(kernel.activate(LONG), Err(ControlError::Fault(fault.clone())));
        names(&fault, &["kernel echo", "ABI"]);
        is_lost(&mut kernel, &EchoMessage::from_seed(0), &fault);
        promptly("dropping it", || drop(kernel));
        answers(&runtime);
    });
}

#[test]
fn a_trap_on_a_gpu_is_reported_by_every_handle() {
    if gpu().is_none() {
        return;
    }
    in_child(concat!(module_path!(), "::a_trap_on_a_gpu_is_reported_by_every_handle"), &[], || {
        let runtime = gpu().unwrap();
        let launch = with_ptx(LaunchConfig::default(), ptx("", "\ttrap;\n\tret;"));
        runtime.prepare::<Echo>(&launch).unwrap(); // nothing is loaded beside a resident kernel
        let request = EchoMessage::from_seed(1);
        let mut beside = runtime.launch::<Echo>(LaunchConfig::default()).unwrap();
        beside.activate(LONG).unwrap();
        beside.send(request, LONG).unwrap();
        assert_eq!(beside.recv(LONG).unwrap(), request.answer());
        let idle = runtime.launch::<Echo>(LaunchConfig::default()).unwrap();

        let mut kernel = runtime.launch::<Echo>(launch).unwrap();
        let error = promptly("activating it", || kernel.activate(LONG)).unwrap_err();
        let ControlError::Fault(fault @ DeviceFault::Device { .. }) = error else {
            panic!("{error}")
        };
        let DeviceFault::Device { kernel: "echo", source, .. } = &fault else { panic!("{fault}") };
        let code = source.code;
        names(&fault, &["kernel echo", "the device faulted", &code.to_string(), "is gone"]);
        assert_ne!(code, 0);
        is_lost(&mut kernel, &request, &fault);

        let error = promptly("receiving from the other", || beside.recv(LONG)).unwrap_err();
        let RecvTimeoutError::Fault(fault @ DeviceFault::Device { .. }) = error else {
            panic!("{error}")
        };
        is_lost(&mut beside, &request, &fault);
        let launched = promptly("launching", || runtime.launch::<Echo>(LaunchConfig::default()));
        let error = launched.map(drop).unwrap_err();
        assert!(
            matches!(error, LaunchError::Driver(_) | LaunchError::Fault(_)),
            "a device that faulted: {error}"
        );
        names(&error, &["fail"]);
        let again = promptly("opening it again", || Runtime::open(Device::Cuda(0)));
        let error = again.map(drop).unwrap_err();
        assert!(matches!(error, OpenError::Lost { .. }), "{error}");
        names(&error, &["has faulted", "start it again"]);
        let error = promptly("recovering", || runtime.clone().recover(PROMPT)).unwrap_err();
        assert!(matches!(error, RecoverError::Open(OpenError::Lost { .. })), "{error}");
        promptly("dropping everything", || drop((kernel, beside, idle, runtime)));
        answers(&cpu());
    });
}

#[test]
fn after_a_panic_kernels_go_on_and_a_fresh_one_works() {
    let here = here!("after_a_panic_kernels_go_on_and_a_fresh_one_works");
    let test = |host: &Runtime| {
        let launch = LaunchConfig::default().kernels(of_examples::<Fragile>());
        host.prepare::<Fragile>(&launch).unwrap(); // nothing is loaded beside a resident kernel
        let mut beside = host.launch::<Echo>(LaunchConfig::default().capacity(16)).unwrap();
        beside.activate(LONG).unwrap();
        for (round, (mode, memory)) in (0..).zip(WAYS) {
            let launch = LaunchConfig::default().mode(mode).memory(memory);
            panics::<Fragile>(host, &launch);
            panics::<FragileWarp>(host, &launch);
            panics::<FragileBlock>(host, &launch);
            panics::<FragileInOrder>(host, &launch);
            let request = EchoMessage::from_seed(round);
            beside.send(request, LONG).unwrap();
            assert_eq!(beside.recv(LONG).unwrap(), request.answer(), "{mode} in {memory}");
        }
        beside.terminate(LONG).unwrap();
    };
    match gpu().is_none() || bears_panics::<Fragile>(here) {
        true => on_each_device_alone(here, test),
        false => test(&cpu()),
    }
}

/// In PTX whose panics trap, one ends all that the process has on the GPU, and is reported so.
#[test]
fn a_panic_that_traps_is_a_fault_of_the_device() {
    if gpu().is_none() || !traps::<Fragile>() {
        return;
    }
    gpu_alone(here!("a_panic_that_traps_is_a_fault_of_the_device"), |host| {
        let launch = LaunchConfig::default().kernels(of_examples::<Fragile>());
        let mut kernel = host.launch::<Fragile>(launch).unwrap();
        kernel.activate(LONG).unwrap();
        kernel.send(12, LONG).unwrap();
        assert_eq!(kernel.recv(LONG), Ok(144));
        kernel.send(13, LONG).unwrap();
        let fault = fault_of(&mut kernel);
        assert!(matches!(fault, DeviceFault::Device { kernel: "fragile", .. }), "{fault}");
        is_lost(&mut kernel, &2, &fault);
    });
}

/// Lets a kernel panic: by a message that comes alone, and amid many; and launches it anew.
fn panics<K: Kernel<Request = u64, Response = u64>>(host: &Runtime, launch: &LaunchConfig) {
    let launch = || launch.clone().capacity(256).channels(2).kernels(of_examples::<K>());
    let answer = |request: u64| request * request;
    for many in [false, true] {
        let mut kernel = host.launch::<K>(launch()).unwrap();
        kernel.activate(LONG).unwrap();
        kernel.send(12, LONG).unwrap();
        assert_eq!(kernel.recv(LONG), Ok(answer(12)), "{}", K::NAME);
        if many {
            let requests: Vec<u64> = (0..200).map(|n| if n == 150 { 13 } else { n % 13 }).collect();
            assert_eq!(kernel.try_send_batch(&requests), Ok(200));
        } else {
            kernel.send(13, LONG).unwrap();
        }
        let mut answered = 0;
        let fault = loop {
            match kernel.recv(LONG) {
                // What was answered before is received; the answer to 13 never.
                Ok(found) if answered < 150 => assert_eq!(found, answer(answered % 13)),
                Ok(found) => panic!("{}: answer {found} after the panic", K::NAME),
                Err(RecvTimeoutError::Fault(fault)) => break fault,
                Err(error) => panic!("{error}"),
            }
            answered += 1;
        };
        assert!(many || answered == 0, "{answered}");
        let DeviceFault::HandlerPanicked { kernel: name, channel: 0, .. } = fault else {
            panic!("{fault}")
        };
        assert_eq!(name, K::NAME);
        is_lost(&mut kernel, &2, &fault);
        promptly("dropping it", || drop(kernel));
    }
    let mut kernel = host.launch::<K>(launch()).unwrap();
    kernel.activate(LONG).unwrap();
    kernel.send(11, LONG).unwrap();
    assert_eq!(kernel.recv(LONG), Ok(answer(11)), "{} anew", K::NAME);
    kernel.terminate(LONG).unwrap();
}

#[test]
fn a_kernel_that_never_acknowledges_times_out_and_is_set_aside() {
    if gpu().is_none() {
        return;
    }
    let name =
        concat!(module_path!(), "::a_kernel_that_never_acknowledges_times_out_and_is_set_aside");
    in_child(name, &[], || {
        const SPIN: &str = "\t.reg .pred %p<2>;\n\t.reg .b64 %rd<4>;
\tmov.u64 %rd1, %globaltimer;\n\tadd.s64 %rd2, %rd1, 4000000000;
LOOK:\n\tmov.u64 %rd3, %globaltimer;\n\tsetp.lt.u64 %p1, %rd3, %rd2;\n\t@%p1 bra LOOK;\n\tret;";
        let launch = LaunchConfig::default().capacity(16);
        let bytes = {
            let probe = cpu().launch::<Echo>(launch.clone()).unwrap();
            probe.pinned_bytes().next_multiple_of(256)
        };
        let (pinned_bytes, device_bytes) = (2 * bytes, 4096);
        let options = RuntimeConfig { pinned_bytes, device_bytes, ..config() };
        let mut runtime = Runtime::open_with(ring_host::Device::Cuda(0), options).unwrap();
        let begun = Instant::now();
        let mut deaf = runtime.launch::<Echo>(with_ptx(launch.clone(), ptx("", SPIN))).unwrap();
        let limit = Duration::from_millis(200);
        let asked = Instant::now();
        let error = deaf.activate(limit).unwrap_err();
        let took = asked.elapsed();
        assert!(took >= limit && took < limit + Duration::from_secs(1), "{took:?}");
        assert!(
            matches!(&error, ControlError::Timeout { kernel: "echo", channel: 0, asked: State::Active, waited }
                if *waited >= limit),
            "{error}"
        );
        names(&error, &["kernel echo", "channel 0", "Active"]);
        assert_eq!(deaf.status().state, State::Launched);
        assert!(matches!(
            deaf.send(EchoMessage::from_seed(0), limit),
            Err(SendTimeoutError::NotActive { state: State::Launched, .. })
        ));
        let asked = Instant::now();
        drop(deaf);
        let took = asked.elapsed();
        assert!(took < Duration::from_millis(500), "dropping it took {took:?}");
        answers(&runtime); // in the other half of the arena
        let found = promptly("recovering", || runtime.recover(limit)).unwrap();
        assert_eq!((found.reopened, found.set_aside), (false, 1));
        let beside = runtime.launch::<Echo>(launch.clone()).unwrap();
        let error = runtime.launch::<Echo>(launch.clone()).map(drop).unwrap_err();
        assert!(
            matches!(error, LaunchError::Arena { which: ArenaKind::Pinned, free: 0, .. }),
            "memory of a kernel that still runs: {error}"
        );
        promptly("dropping another", || drop(beside));
        let other = with_ptx(launch.clone(), ptx("", "\tret;"));
        let error = promptly("preparing PTX", || runtime.prepare::<Echo>(&other)).unwrap_err();
        let busy = ImageError::Busy { resident: 1 };
        assert!(matches!(&error, LaunchError::Image { source, .. } if *source == busy), "{error}");
        assert!(begun.elapsed() < Duration::from_secs(4), "too slow to see what is set aside");
        until("it has left", || runtime.prepare::<Echo>(&other).ok());
        assert!(begun.elapsed() >= Duration::from_secs(4), "loaded while a kernel was resident");
        assert_eq!(runtime.recover(LONG).unwrap().set_aside, 0);
        let both = [launch.clone(), launch].map(|launch| runtime.launch::<Echo>(launch).unwrap());
        drop(both);
        answers(&runtime);
    });
}
