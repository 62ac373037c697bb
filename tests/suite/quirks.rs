//! Devices with things taken away: what the probe finds, what is selected, and that messages are answered all
//! the same, or an error says why not.

use crate::faults::{is_left_behind, names, promptly};
use ring_host::device::quirks::{Lines, NAMES};
use ring_host::device::{self, Driver, Quirks, cpu::Cpu};
use ring_host::error::{DriverReason, NoPinned};
use ring_host::kernels::{Echo, EchoMessage, VectorAdd};
use ring_host::probe::{Cause, Lack, QuickPages};
use ring_host::{
    AskedBy, Budgets, ControlError, Cooperative, Device, DeviceFault, Evidence, KernelHandle,
    LaunchConfig, LaunchError, Memory, Mode, Obstacle, Opened, RecvTimeoutError, Runtime,
    RuntimeConfig, State, TryRecvError, TrySendError,
};
use ring_shared::layout::Doorbell;
use ring_tests::{LONG, Progress, WAYS, active, gpu, kernels, opened, until};
use std::time::{Duration, Instant};

/// Messages of a soak.
const MANY: u64 = 2000;

/// A time that no launch of a test reaches.
const NEVER: Duration = Duration::from_secs(3600);

fn over(quirks: Quirks) -> Runtime {
    opened(&quirks, RuntimeConfig::default())
}

/// Opens a device on which launches by a graph are the cheaper ones: by so much that the probe's times show
/// it, unless something else took the processor from them.
fn over_slow_launches(quirks: impl Fn(Quirks) -> Quirks) -> Runtime {
    let slow = || cpu().slow_launches(Duration::from_millis(20)).watchdog(NEVER);
    until("graphs that are measured to be cheaper", || {
        let host = over(quirks(slow()));
        let probe = &host.report().probe;
        let cheaper = *probe.graph.as_ref().unwrap() < *probe.launch.as_ref().unwrap() * 9 / 10;
        cheaper.then_some(host)
    })
}

fn named(name: &str) -> Runtime {
    over(Quirks::named(Cpu::open(), name).unwrap())
}

fn cpu() -> Quirks {
    Quirks::of(Cpu::open())
}

/// Sends `count` messages and receives the answers, in order; if the kernel is lost meanwhile, how
/// many were accepted and how many answered by then, and why.
fn exchange(kernel: &mut KernelHandle<Echo>, count: u64) -> Result<(), (u64, u64, DeviceFault)> {
    let (mut sent, mut received, mut progress) = (0, 0, Progress::new());
    while received < count {
        if sent < count && sent - received < 48 {
            match kernel.try_send(EchoMessage::from_seed(sent)) {
                Ok(()) => {
                    sent += 1;
                    continue;
                }
                Err(TrySendError::Full(_) | TrySendError::Fault { .. }) => {} // receive what there is
                Err(error) => panic!("{error}"),
            }
        }
        match kernel.try_recv() {
            Err(TryRecvError::Empty) => std::thread::yield_now(),
            Ok(answer) => {
                let expected = EchoMessage::from_seed(received).answer();
                assert_eq!(answer, expected, "message {received}");
                received += 1;
            }
            Err(TryRecvError::Fault(fault)) => return Err((sent, received, fault)),
            Err(error) => panic!("{error}"),
        }
        progress.is_at(received, format_args!("more than {received} of {sent} messages"));
    }
    match kernel.try_recv() {
        Ok(more) => panic!("an answer that nobody asked for: {more:?}"),
        Err(TryRecvError::Empty) => {}
        Err(TryRecvError::Fault(fault)) => return Err((sent, received, fault)),
        Err(error) => panic!("{error}"),
    }
    Ok(())
}

/// Exchanges messages until the kernel is lost: as [`exchange`].
fn until_lost(kernel: &mut KernelHandle<Echo>) -> (u64, u64, DeviceFault) {
    for _ in 0..1000 {
        if let Err(lost) = exchange(kernel, 300) {
            return lost;
        }
    }
    panic!("{:?}: it is not lost", kernel.runs_as())
}

fn soak(kernel: &mut KernelHandle<Echo>) {
    if let Err((sent, received, fault)) = exchange(kernel, MANY) {
        panic!("after {received} answers to {sent} messages: {fault}");
    }
}

/// Launches a kernel and exchanges messages with it until it is lost, which may be before it is
/// active. What was accepted and not answered is known then.
fn launch_until_lost(host: &Runtime, launch: LaunchConfig) -> (KernelHandle<Echo>, DeviceFault) {
    let mut kernel = host.launch::<Echo>(launch).unwrap();
    let (sent, received, fault) = match kernel.activate(LONG) {
        Ok(()) => until_lost(&mut kernel),
        Err(ControlError::Fault(fault)) => (0, 0, fault),
        Err(error) => panic!("{error}"),
    };
    assert_eq!(kernel.channel(0).unwrap().unanswered(), sent - received);
    assert_eq!(kernel.status().state, State::Faulted);
    (kernel, fault)
}

/// What `Auto` chose for a kernel with payload, and why not what comes before.
fn choice(host: &Runtime) -> (Mode, Memory, Vec<Obstacle>) {
    let selection = host.report().selection.as_ref().unwrap();
    let obstacles = selection.refused.iter().map(|refusal| refusal.why.clone()).collect();
    (selection.mode, selection.memory, obstacles)
}

fn is_launched_anew(mode: Mode) -> bool {
    matches!(mode, Mode::EventDriven | Mode::Graph)
}

#[test]
fn nothing_is_said_to_lack_where_nothing_does() {
    for name in ["held-launches", "no-cooperative", "no-managed", "failing-graphs", "late-copies"] {
        let host = named(name);
        let (mode, memory, why) = choice(&host);
        assert_eq!((mode, memory), (Mode::Persistent, Memory::Mapped), "{name}: {why:?}");
        let why = &host.report().selection.as_ref().unwrap().why;
        assert_eq!(why.asked, AskedBy::Nobody);
        assert!(matches!(why.found, Evidence::Resident(_)), "{name}: {why}");
        assert_eq!(host.report().pinned, Ok(RuntimeConfig::default().pinned_bytes));
        assert_eq!(*host.why(), Opened::Given);
    }
    assert!(!named("no-cooperative").device().cooperative_launch);
    assert!(!named("no-managed").device().concurrent_managed_access);
    assert!(named("watchdog").device().watchdog && !named("no-graphs").device().watchdog);
}

#[test]
fn what_lacks_is_reported_and_done_without() {
    for name in ["no-pinned", "wsl2"] {
        let host = named(name);
        let (mode, memory, why) = choice(&host);
        assert!(is_launched_anew(mode) && memory == Memory::StagedSync, "{name}: {why:?}");
        let none = host.report().pinned.as_ref().unwrap_err();
        let NoPinned::Refused(error) = none else { panic!("{none}") };
        assert!(matches!(error.reason, DriverReason::Emulated(_)), "{error}");
        names(none, &["no pinned memory of", "quirk"]);
        assert_eq!(why[0], Obstacle::NoPinned(none.clone()), "{name}");
        let unmapped = host.report().probe.mapped.as_ref().unwrap_err();
        assert!(matches!(unmapped, Lack::No(Cause::NoPinned(_))), "{unmapped}");
    }
    let host = named("pinned-limit");
    assert_eq!(host.report().pinned, Ok(2 << 20), "a sixteenth of what was asked for");
    assert_eq!(choice(&host).1, Memory::Mapped);

    let host = named("calls-block");
    let (mode, memory, why) = choice(&host);
    assert!(is_launched_anew(mode) && memory == Memory::Mapped, "{why:?}");
    let [Obstacle::LaunchesWait(Lack::No(Cause::CallWaited { .. })), ..] = &why[..] else {
        panic!("{why:?}")
    };
    assert!(host.report().probe.resident.is_ok());

    let host = named("watchdog");
    let (mode, memory, why) = choice(&host);
    assert!(is_launched_anew(mode) && memory == Memory::Mapped, "{why:?}");
    assert_eq!(why[0], Obstacle::Watchdog);

    let host = named("unmapped");
    let (mode, memory, why) = choice(&host);
    assert_eq!((mode, memory), (Mode::Persistent, Memory::StagedAsync), "{why:?}");
    assert_eq!(why[0], Obstacle::NotMapped(Lack::No(Cause::NotMapped)));

    let host = named("no-graphs");
    names(host.report().probe.graph.as_ref().unwrap_err(), &["there are no graphs (a quirk)"]);
    assert_eq!(choice(&host).0, Mode::Persistent);

    let host = over_slow_launches(|quirks| quirks);
    let (mode, memory, why) = choice(&host);
    assert_eq!((mode, memory), (Mode::Graph, Memory::Mapped), "{why:?}");
    let why = &host.report().selection.as_ref().unwrap().why;
    assert!(matches!(why.found, Evidence::Graph { .. }), "{why}");
}

#[test]
fn messages_go_round_whatever_lacks() {
    for (name, _) in NAMES {
        if matches!(name, "device-fault" | "device-reset" | "failing-copies" | "failing-graphs") {
            continue; // lost, or changed: below
        }
        let host = named(name);
        let mut kernel = active(&host, LaunchConfig::default());
        soak(&mut kernel);
        let (changes, summary) = (kernel.fallbacks().count(), kernel.terminate(LONG).unwrap());
        assert_eq!((summary.processed, summary.unhandled), (MANY, 0), "{name}");
        assert!(changes == 0 || name == "invalid-handles" || name == "failing-copies-beside");
    }
}

/// Where there are quick pages, lines that the device polls lie there, and no others; where there is no more room, they
/// lie where they do without. A GPU may have some.
#[test]
fn request_lines_lie_in_quick_pages() {
    let mut devices = vec![cpu().quick_pages(), cpu()];
    if gpu().is_some() {
        let image = kernels::config().kernels.image().unwrap();
        devices.push(Quirks::of(device::open(Device::Cuda(0), &image).unwrap().0));
    }
    for (which, device) in devices.into_iter().enumerate() {
        let memory_probe = device.memory_probe();
        let options = RuntimeConfig { kernels: kernels::config().kernels, ..Default::default() };
        let host = opened(&device, options);
        let found = &host.report().quick_pages;
        let (mut room, there) = match found {
            QuickPages::Used { bytes, classes, .. } => {
                assert!(classes.are_clear() && bytes.is_multiple_of(4096), "{found}");
                (*bytes, true)
            }
            _ => (0, false),
        };
        println!("{}: {found}", host.device().name);
        assert!(which > 1 || there == (which == 0), "{found}");
        let each = 16 << 10; // 128 lines
        let launch = LaunchConfig::default().channels(3).capacity(256).window(128);
        let launch = launch.mode(Mode::Persistent).memory(Memory::Mapped);
        let mut kernels: Vec<KernelHandle<Echo>> = Vec::new();
        // A GPU's quick pages are not filled: other tests use the device too.
        while kernels.is_empty() || which == 0 {
            kernels.push(active(&host, launch.clone()));
            let is_quick = memory_probe.look(|kernels| {
                let mine = kernels.last().unwrap();
                let at = |line: &Doorbell| std::ptr::from_ref(line).addr();
                // Not as far from the responses' as where both lie side by side.
                let is_far = |lines: &Lines<'_>| {
                    at(&lines.request_lines[0]).abs_diff(at(&lines.response_lines[0])) != each
                };
                let far = mine.iter().filter(|lines| is_far(lines)).count();
                assert!(far == 0 || far == 3, "{far} of 3 channels");
                far == 3
            });
            assert_eq!(is_quick, room >= 3 * each, "{} kernels, {room} bytes", kernels.len());
            if !is_quick {
                break;
            }
            room -= 3 * each;
        }
        for kernel in &mut kernels {
            soak(kernel);
            assert_eq!(kernel.terminate(LONG).unwrap().processed, MANY);
        }
    }
}

/// Each way that the choice accepts works; each that it refuses is refused before anything is
/// launched, with mode, memory and reason.
#[test]
fn what_is_forced_works_or_is_refused() {
    let bad = |name: &str| {
        matches!(name, "invalid-handles" | "device-fault" | "device-reset")
            || name.contains("failing")
    };
    for (name, _) in NAMES.into_iter().filter(|(name, _)| !bad(name)) {
        let device = Quirks::named(Cpu::open(), name).unwrap();
        let host = opened(&device, RuntimeConfig::default());
        let mut works = 0;
        for (mode, memory) in WAYS {
            match host.launch::<Echo>(LaunchConfig::default().mode(mode).memory(memory)) {
                Ok(mut kernel) => {
                    kernel.activate(LONG).unwrap();
                    soak(&mut kernel);
                    assert_eq!(kernel.runs_as(), (mode, memory), "{name}");
                    assert_eq!(kernel.terminate(LONG).unwrap().processed, MANY);
                    works += 1;
                }
                Err(error) => {
                    let LaunchError::Unfit { kernel: "echo", mode: m, memory: n, refused } = &error
                    else {
                        panic!("{name}: {error}")
                    };
                    assert_eq!((*m, *n), (mode, memory));
                    let [refusal] = &refused[..] else { panic!("{name}: {error}") };
                    assert_eq!((refusal.mode, refusal.memory), (mode, memory));
                    let (mode, memory) = (mode.to_string(), memory.to_string());
                    names(&error, &["kernel echo", &mode, &memory, &refusal.why.to_string()]);
                    let empty = device.occupancy().is_empty();
                    assert!(empty, "{name}: something is on the device");
                }
            }
        }
        let expected = match name {
            "wsl2" | "no-pinned" => 2, // staged-sync
            "unmapped" => 5,           // all but mapped
            "calls-block" => 5,        // all but staged-async
            "watchdog" => 6,           // all but persistent
            "no-graphs" => 5,          // all but graph
            _ => 8,
        };
        assert_eq!(works, expected, "{name}");
    }
}

#[test]
fn what_is_refused_is_refused_with_its_reason() {
    let cases = [
        ("wsl2", Mode::Persistent, Memory::Auto, "there is no pinned memory"),
        ("wsl2", Mode::Auto, Memory::Mapped, "no pinned memory of 2097152 bytes"),
        (
            "calls-block",
            Mode::Auto,
            Memory::StagedAsync,
            "copies do not come back beside a resident kernel",
        ),
        ("watchdog", Mode::Persistent, Memory::Mapped, "watchdog"),
        ("no-graphs", Mode::Graph, Memory::Auto, "no graph could be launched: launch slot failed"),
        ("unmapped", Mode::EventDriven, Memory::Mapped, "does not map host memory"),
        ("held-launches", Mode::Persistent, Memory::StagedSync, "has only one"),
    ];
    for (name, mode, memory, reason) in cases {
        let launch = LaunchConfig::default().mode(mode).memory(memory);
        let error = named(name).launch::<Echo>(launch).map(drop).unwrap_err();
        assert!(matches!(error, LaunchError::Unfit { .. }), "{name}: {error}");
        names(&error, &[&mode.to_string(), &memory.to_string(), reason]);
    }
    let host = named("no-cooperative");
    let launch = LaunchConfig::default().channels(2);
    let error = host.launch::<Echo>(launch.clone().cooperative(Cooperative::Always)).unwrap_err();
    assert!(matches!(error, LaunchError::NotCooperative(_)), "{error}");
    active(&host, launch).terminate(LONG).unwrap(); // side by side without it
}

#[test]
fn an_event_driven_kernel_goes_on_without_graphs() {
    let host = over_slow_launches(|quirks| quirks.failing_graphs(40));
    let mut kernel = active(&host, LaunchConfig::default());
    assert_eq!(kernel.runs_as(), (Mode::Graph, Memory::Mapped), "{}", kernel.selection());
    soak(&mut kernel);
    for i in 0..60 {
        kernel.rest(LONG).unwrap(); // so that each message is a launch
        kernel.send(EchoMessage::from_seed(i), LONG).unwrap();
        assert_eq!(kernel.recv(LONG).unwrap(), EchoMessage::from_seed(i).answer());
    }
    let changes: Vec<_> = kernel.fallbacks().collect();
    assert_eq!(changes.len(), 1, "{changes:?}");
    assert_eq!(changes[0].from, (Mode::Graph, Memory::Mapped));
    assert_eq!(changes[0].to, (Mode::EventDriven, Memory::Mapped));
    names(&changes[0], &["graphs fail by now (a quirk)"]);
    assert_eq!(kernel.runs_as(), changes[0].to);
    let summary = kernel.terminate(LONG).unwrap();
    assert_eq!((summary.processed, summary.unhandled), (MANY + 60, 0));
}

/// Copies beside a launch fail at some time: everything that was accepted is answered, by copies
/// between launches.
#[test]
fn a_staged_kernel_goes_on_without_copies_beside_it() {
    let launch = |mode| LaunchConfig::default().mode(mode);
    let device = || over(cpu().unmapped().failing_copies_beside(2000));
    for asked in [Mode::Auto, Mode::EventDriven, Mode::Graph] {
        let runs = if asked == Mode::Auto { Mode::Persistent } else { asked };
        let mut kernel = active(&device(), launch(asked));
        let choice = (kernel.selection().mode, kernel.selection().memory);
        assert_eq!(choice, (runs, Memory::StagedAsync), "{}", kernel.selection());
        let mut sent = 0;
        let changes = until("a change", || {
            soak(&mut kernel);
            sent += MANY;
            let changes: Vec<_> = kernel.fallbacks().collect();
            (!changes.is_empty()).then_some(changes)
        });
        let after = if runs == Mode::Graph { Mode::Graph } else { Mode::EventDriven };
        assert_eq!(changes.len(), 1, "{changes:?}");
        assert_eq!(changes[0].from, (runs, Memory::StagedAsync));
        assert_eq!(changes[0].to, (after, Memory::StagedSync));
        names(&changes[0], &["copies beside a launch fail by now (a quirk)"]);
        assert_eq!(kernel.runs_as(), changes[0].to);
        soak(&mut kernel);
        let summary = kernel.terminate(LONG).unwrap();
        assert_eq!((summary.processed, summary.unhandled), (sent + MANY, 0));
    }
    let (_, fault) = launch_until_lost(&device(), launch(Mode::Persistent));
    assert!(matches!(fault, DeviceFault::Driver { kernel: "echo", .. }), "{fault}");
    names(&fault, &["cannot be kept answering", "copies beside a launch fail by now"]);
}

/// A launch without budgets leaves all the same where copies can reach it only between launches.
#[test]
fn endless_budgets_do_not_outlive_the_copies() {
    let endless = Budgets { time: Duration::MAX, iterations: u64::MAX, idle: Duration::MAX };
    let host = over(cpu().unmapped().failing_copies_beside(2000));
    let mut kernel =
        active(&host, LaunchConfig::default().mode(Mode::EventDriven).budgets(endless));
    until("a change", || {
        soak(&mut kernel);
        kernel.fallbacks().next()
    });
    soak(&mut kernel);
    kernel.deactivate(LONG).unwrap();
    kernel.terminate(LONG).unwrap();
}

/// One failure among many copies does not undo the others.
#[test]
fn many_channels_are_carried_although_copies_fail_now_and_then() {
    let host = over(cpu().invalid_handles(10));
    for memory in [Memory::StagedAsync, Memory::StagedSync] {
        let launch = LaunchConfig::default().mode(Mode::EventDriven).memory(memory);
        let mut kernel = active(&host, launch.channels(16).capacity(64));
        for channel in 0..16 {
            let channel = kernel.channel(channel).unwrap();
            channel.send(EchoMessage::from_seed(3), LONG).unwrap();
            assert_eq!(channel.recv(LONG).unwrap(), EchoMessage::from_seed(3).answer());
        }
        // Through slots too, round the ring's end, on all channels at once.
        let batch: Vec<_> = (0..40).map(EchoMessage::from_seed).collect();
        for _ in 0..4 {
            for channel in 0..16 {
                assert_eq!(kernel.channel(channel).unwrap().try_send_batch(&batch), Ok(40));
            }
            for channel in 0..16 {
                for request in &batch {
                    let answer = kernel.channel(channel).unwrap().recv(LONG).unwrap();
                    assert_eq!(answer, request.answer());
                }
            }
        }
        assert_eq!(kernel.terminate(LONG).unwrap().processed, 16 * 161);
    }
}

/// Nothing can be done without any copies; what was accepted and not answered is known.
#[test]
fn a_staged_kernel_without_copies_is_given_up() {
    for (mode, memory) in WAYS.into_iter().filter(|(_, memory)| *memory != Memory::Mapped) {
        let host = over(cpu().failing_copies(2000));
        let launch = LaunchConfig::default().mode(mode).memory(memory);
        let (kernel, fault) = launch_until_lost(&host, launch);
        assert!(matches!(fault, DeviceFault::Driver { kernel: "echo", .. }), "{fault}");
        names(&fault, &["copies fail by now (a quirk)"]);
        promptly("dropping it", || drop((kernel, host)));
    }
}

/// Now and then a call fails, and works when it is tried again.
#[test]
fn stale_handles_are_tried_again() {
    let host = over(cpu().invalid_handles(10));
    for (mode, memory) in WAYS {
        let launch = LaunchConfig::default().mode(mode).memory(memory);
        let mut kernel = until("a launch", || match host.launch::<Echo>(launch.clone()) {
            Ok(kernel) => Some(kernel),
            Err(LaunchError::Driver(error)) if error.code == 400 => None,
            Err(error) => panic!("{error}"),
        });
        kernel.activate(LONG).unwrap();
        soak(&mut kernel);
        assert_eq!(kernel.runs_as(), (mode, memory));
        assert_eq!(kernel.terminate(LONG).unwrap().processed, MANY);
    }
}

/// Asserts that the device is lost with every kernel on it, and that nothing hangs.
fn is_lost(
    device: &impl Driver,
    host: Runtime,
    (mut lost, mut beside): (KernelHandle<Echo>, KernelHandle<Echo>),
    (code, reason): (i32, &str),
    fault: &DeviceFault,
) {
    names(fault, &["kernel echo", &code.to_string(), reason, "every kernel on it is gone"]);
    assert!(matches!(fault, DeviceFault::Device { source, .. } if source.code == code), "{fault}");
    promptly("using what is lost", || {
        let seed = EchoMessage::from_seed(1);
        let refused = TrySendError::Fault { message: seed, fault: fault.clone() };
        assert_eq!(lost.try_send(seed), Err(refused));
        let end = until("the end", || lost.recv(LONG).err()); // underneath it may answer some more
        assert_eq!(end, RecvTimeoutError::Fault(fault.clone()));
        let other = beside.recv(LONG).unwrap_err();
        names(&other, &[&code.to_string(), reason]);
        let error = host.launch::<Echo>(LaunchConfig::default()).map(drop).unwrap_err();
        names(&error, &[reason]);
    });
    promptly("dropping everything", || drop((lost, beside, host)));
    is_left_behind(device);
    promptly("opening it again", || {
        let error = Runtime::over(cpu(), RuntimeConfig::default()).map(drop);
        assert!(error.is_ok(), "another device is sound");
    });
}

#[test]
fn a_kernel_that_a_watchdog_ends_is_a_fault_of_the_device() {
    let device = cpu().watchdog(Duration::from_secs(3));
    let host = opened(&device, RuntimeConfig::default());
    for memory in [Memory::Mapped, Memory::StagedAsync, Memory::StagedSync] {
        soak(&mut active(&host, LaunchConfig::default().memory(memory))); // no launch is that long
    }
    let beside = active(&host, LaunchConfig::default());
    let long = Duration::from_secs(60);
    let budgets = Budgets { time: long, idle: long, iterations: u64::MAX };
    let mut kernel = active(&host, LaunchConfig::default().budgets(budgets));
    let (sent, answer) = (EchoMessage::from_seed(3), EchoMessage::from_seed(3).answer());
    kernel.send(sent, LONG).unwrap();
    assert_eq!(kernel.recv(LONG).unwrap(), answer);
    let RecvTimeoutError::Fault(fault) = kernel.recv(LONG).unwrap_err() else { panic!("no fault") };
    is_lost(&device, host, (kernel, beside), (702, "timed out"), &fault);
}

#[test]
fn a_fault_of_the_device_takes_every_kernel_in_every_way() {
    for (mode, memory) in WAYS {
        let device = cpu().fault_after(1000);
        let host = opened(&device, RuntimeConfig::default());
        let launch = LaunchConfig::default().mode(mode).memory(memory);
        let beside = active(&host, launch.clone());
        let mut kernel = active(&host, launch);
        let (sent, received, fault) = until_lost(&mut kernel);
        assert_eq!(kernel.channel(0).unwrap().unanswered(), sent - received, "{mode}, {memory}");
        assert!(kernel.status().processed >= 1000);
        is_lost(&device, host, (kernel, beside), (700, "illegal memory access"), &fault);
    }
}

/// Every call that a program can make, one after the other, on a device whose calls block.
#[test]
fn a_program_comes_to_its_end_where_calls_block() {
    for quirks in ["calls-block", "wsl2", "calls-block,held-launches", "calls-block,no-graphs"] {
        let device = Quirks::named(Cpu::open(), quirks).unwrap();
        let begun = Instant::now();
        let open = || Runtime::over(device.clone(), RuntimeConfig::default()).unwrap();
        let host = promptly("opening it", open);
        let mut kernel = host.launch::<VectorAdd>(LaunchConfig::default()).unwrap();
        promptly("activating it", || kernel.activate(LONG)).unwrap();
        for n in [10, 25, 100, 5000] {
            let a: Vec<f32> = (0..n).map(|i| i as f32).collect();
            let b: Vec<f32> = (0..n).map(|i| 0.25 * i as f32).collect();
            let mut c = vec![0.0; n];
            promptly("adding", || kernel.add(&a, &b, &mut c, LONG)).unwrap();
            assert!((0..n).all(|i| c[i] == a[i] + b[i]), "{quirks}, {n}");
            let mut back = vec![0u32; n];
            promptly("reading", || kernel.read_payload(0, &mut back, LONG)).unwrap();
        }
        let budgets = Budgets::default();
        let other = LaunchConfig::default().mode(Mode::EventDriven).budgets(budgets);
        let mut beside = promptly("launching another", || active(&host, other));
        promptly("messages", || soak(&mut beside));
        let again = promptly("opening it again", open);
        promptly("dropping it", || drop((again, beside)));
        let summary = promptly("terminating", || kernel.terminate(LONG)).unwrap();
        assert_eq!(summary.unhandled, 0);
        promptly("dropping all", || drop((kernel, host)));
        is_left_behind(&device);
        assert!(begun.elapsed() < LONG, "{quirks} took {:?}", begun.elapsed());
    }
}

/// Calls do block on that device: without this the test before would prove nothing.
#[test]
fn a_call_that_blocks_goes_on_when_the_launch_has_left() {
    let device = cpu().calls_block();
    let host = opened(&device, RuntimeConfig::default());
    let stay = Duration::from_millis(400);
    let budgets = Budgets { time: stay, idle: stay, iterations: u64::MAX };
    let launch = LaunchConfig::default().mode(Mode::EventDriven).budgets(budgets);
    let mut kernel = active(&host, launch);
    kernel.rest(LONG).unwrap();
    kernel.send(EchoMessage::from_seed(0), LONG).unwrap();
    let launches = kernel.launches();
    let memory =
        promptly("a call that waits for the launch", || device.alloc_device(4096)).unwrap();
    assert_eq!(kernel.telemetry().launches, launches, "it has left when the call comes back");
    assert_eq!(kernel.recv(LONG).unwrap(), EchoMessage::from_seed(0).answer());
    kernel.rest(LONG).unwrap();
    // SAFETY: from this device, with that size, and nobody uses it.
    unsafe { device.free_device(memory, 4096) };
}
