//! Bad input: every refusal is an error that names the value and the limit, and leaves nothing
//! behind.

use crate::faults::{in_child, is_child, names, promptly, ptx};
use ring_device::ring_kernel;
use ring_host::error::{ArenaKind, ChannelLimit, NoPinned, ThreadLimit, WindowLimit};
use ring_host::image::{ImageError, NotPtx};
use ring_host::kernels::vector_add::AddError;
use ring_host::kernels::{Echo, EchoMessage, VectorAdd, VectorAddRequest, VectorError, status};
use ring_host::{
    Budgets, ChannelError, ControlError, Device, DeviceKind, Kernel, KernelHandle, LaunchConfig,
    LaunchError, Mode, OpenError, Opened, PayloadError, PayloadMemory, RecvTimeoutError, Runtime,
    RuntimeConfig, SendTimeoutError, State, TryRecvError, TrySendError,
};
use ring_tests::kernels::config;
use ring_tests::{LONG, WAYS, cpu, cpu_with, gpu, on_each_device, until, with_ptx};
use std::time::{Duration, Instant};

fn refused<K: Kernel>(runtime: &Runtime, launch: LaunchConfig) -> LaunchError {
    match runtime.launch::<K>(launch) {
        Ok(_) => panic!("it was launched"),
        Err(error) => error,
    }
}

/// Runs a test on every device there is, with arenas of those bytes.
fn on_each_with(pinned_bytes: usize, device_bytes: usize, test: impl Fn(&Runtime)) {
    test(&cpu_with(pinned_bytes, device_bytes));
    if gpu().is_some() {
        let options = RuntimeConfig { pinned_bytes, device_bytes, ..config() };
        test(&Runtime::open_with(Device::Cuda(0), options).unwrap());
    }
}

fn active(runtime: &Runtime) -> KernelHandle<Echo> {
    let mut kernel = runtime.launch::<Echo>(LaunchConfig::default().capacity(16)).unwrap();
    kernel.activate(LONG).unwrap();
    kernel
}

#[test]
fn capacities() {
    on_each_device(|runtime| {
        for capacity in [0, 3, 4095, 1 << 21, u32::MAX] {
            let error = refused::<Echo>(runtime, LaunchConfig::default().capacity(capacity));
            assert!(matches!(error, LaunchError::Capacity(c) if c == capacity), "{error}");
            names(&error, &[&format!("capacity {capacity} "), "power of two", "1..=1048576"]);
        }
        for capacity in [1, 2] {
            let mut kernel =
                runtime.launch::<Echo>(LaunchConfig::default().capacity(capacity)).unwrap();
            kernel.activate(LONG).unwrap();
            for i in 0..20 {
                let request = EchoMessage::from_seed(i);
                kernel.send(request, LONG).unwrap();
                assert_eq!(kernel.recv(LONG).unwrap(), request.answer(), "capacity {capacity}");
            }
        }
    });
}

#[test]
fn windows() {
    let refuses = |runtime: &Runtime, launch: LaunchConfig, expected: (u32, u32, WindowLimit)| {
        let error = refused::<Echo>(runtime, launch);
        let LaunchError::Window { lines, limit, why } = error else { panic!("{error}") };
        assert_eq!((lines, limit, why), expected);
        let (asked, least) = (format!("{lines} doorbell lines"), format!("1..={limit}"));
        names(&error, &[&asked, "power of two", &least, &why.to_string()]);
    };
    on_each_device(|runtime| {
        for lines in [0, 3, 127, 129, 256, u32::MAX] {
            let launch = LaunchConfig::default().window(lines);
            refuses(runtime, launch.clone(), (lines, 128, WindowLimit::Ring));
            refuses(runtime, launch.clone().capacity(128), (lines, 128, WindowLimit::Ring));
            // Also where it would have one line whatever was asked for.
            refuses(runtime, launch.mode(Mode::EventDriven), (lines, 128, WindowLimit::Ring));
        }
        for (lines, capacity) in [(2, 1), (16, 8), (64, 32), (0, 32), (3, 4), (128, 16), (128, 64)]
        {
            let launch = LaunchConfig::default().capacity(capacity).window(lines);
            refuses(runtime, launch, (lines, capacity, WindowLimit::Capacity));
        }
    });
}

#[test]
fn start_indices() {
    on_each_device(|runtime| {
        let most = ring_shared::ring::MAX_START;
        for start in [most + 1, u64::MAX] {
            let error = refused::<Echo>(runtime, LaunchConfig::default().start_index(start));
            assert!(matches!(error, LaunchError::StartIndex(s) if s == start), "{error}");
            names(&error, &[&format!("start index {start} "), &most.to_string()]);
        }
        runtime.launch::<Echo>(LaunchConfig::default().start_index(most)).unwrap();
    });
}

#[test]
fn too_large_for_the_arena() {
    on_each_device(|runtime| {
        let error = refused::<Echo>(runtime, LaunchConfig::default().capacity(1 << 20));
        let LaunchError::Arena { kernel: "echo", which: ArenaKind::Pinned, needed, free, arena } =
            error
        else {
            panic!("{error}")
        };
        let slots = 2 * 64 * (1 << 20);
        assert!((slots..slots + 4096).contains(&needed), "{needed}");
        assert!(
            free <= arena && arena == RuntimeConfig::default().pinned_bytes,
            "{free} of {arena}"
        );
        let parts = ["kernel echo", "pinned"].map(str::to_owned);
        let numbers = [needed, free, arena].map(|n| n.to_string());
        let all: Vec<&str> = parts.iter().chain(&numbers).map(String::as_str).collect();
        names(&error, &all);

        for bytes in [(64 << 20) + 1, usize::MAX] {
            let error = refused::<VectorAdd>(runtime, LaunchConfig::default().payload_bytes(bytes));
            assert!(
                matches!(error, LaunchError::Arena { which: ArenaKind::Device, needed, .. } if needed == bytes),
                "{error}"
            );
            names(&error, &["kernel vector_add", "device memory", &bytes.to_string()]);
        }
    });
    on_each_with(4096, 4096, |runtime| {
        let error = refused::<Echo>(runtime, LaunchConfig::default());
        let same = matches!(error, LaunchError::Arena { free: 4096, arena: 4096, .. });
        assert!(same, "{error}");
        names(&error, &["4096"]);
    });
    on_each_with(100, 100, |runtime| {
        let error = refused::<Echo>(runtime, LaunchConfig::default().capacity(1));
        assert!(matches!(error, LaunchError::Arena { .. }), "{error}");
    });
}

#[test]
fn arenas_that_cannot_be_had() {
    let mut devices = vec![Device::Cpu];
    devices.extend(gpu().map(|_| Device::Cuda(0)));
    for device in devices {
        let options = RuntimeConfig { device_bytes: usize::MAX, ..config() };
        let error = Runtime::open_with(device, options).unwrap_err();
        assert!(matches!(error, OpenError::Arena { bytes: usize::MAX, .. }), "{error}");
        names(&error, &[&format!("arena of {} bytes", usize::MAX)]);
        // Less pinned memory does, and even none: then what is chosen needs none.
        let pinned = |pinned_bytes| {
            let options = RuntimeConfig { pinned_bytes, ..config() };
            Runtime::open_with(device, options).unwrap()
        };
        assert_eq!(pinned(usize::MAX).report().pinned, Ok(32 << 20));
        let none = pinned(0);
        assert_eq!(none.report().pinned, Err(NoPinned::NotAsked));
        let kernel = none.launch::<Echo>(LaunchConfig::default()).unwrap();
        assert_eq!(kernel.runs_as().1, ring_host::Memory::StagedSync);
        assert_eq!(kernel.pinned_bytes(), 0);
        let error =
            refused::<Echo>(&none, LaunchConfig::default().memory(ring_host::Memory::Mapped));
        names(&error, &["memory mapped", "there is no pinned memory", "none was asked for"]);
    }
}

#[test]
fn messages_larger_than_a_slot() {
    on_each_device(|runtime| {
        for slot in [0, 1, 63] {
            let error = refused::<Echo>(runtime, LaunchConfig::default().slot_bytes(slot));
            assert!(matches!(error, LaunchError::Slot { bytes: 64, slot: s } if s == slot));
            names(&error, &["64 bytes", &format!("slots of {slot} bytes")]);
        }
        // The larger of request (216 bytes) and response counts.
        let error = refused::<VectorAdd>(runtime, LaunchConfig::default().slot_bytes(215));
        assert!(matches!(error, LaunchError::Slot { bytes: 216, slot: 215 }), "{error}");
        runtime.launch::<Echo>(LaunchConfig::default().slot_bytes(64)).unwrap();
    });
}

#[test]
fn channels() {
    on_each_device(|runtime| {
        let grid = runtime.device().max_channels;
        for channels in [0, grid.saturating_add(1), u32::MAX] {
            let error = refused::<Echo>(runtime, LaunchConfig::default().channels(channels));
            assert!(
                matches!(error, LaunchError::Channels { channels: l, limit, .. }
                    if l == channels && limit == grid),
                "{error}"
            );
            names(&error, &[&format!("{channels} channels"), &format!("1..={grid}"), "grid"]);
        }
        // More than can be resident at once; on the CPU that is the grid.
        let many = grid.min(1 << 20) + u32::from(grid < 1 << 20);
        let small = LaunchConfig::default().capacity(1);
        let error = refused::<Echo>(runtime, small.clone().channels(many));
        let LaunchError::Channels { limit, why, .. } = error else { panic!("{error}") };
        assert!((1..many).contains(&limit), "{error}");
        if runtime.device().kind == DeviceKind::Cuda {
            assert_eq!(why, ChannelLimit::Residency);
        }
        // And more than can be resident beside what is.
        let two = runtime.launch::<Echo>(small.clone().channels(2)).unwrap();
        let error = refused::<Echo>(runtime, small.clone().channels(limit));
        let LaunchError::Crowded(crowded) = &error else { panic!("{error}") };
        assert_eq!((crowded.kernel, crowded.blocks), (Echo::NAME, limit), "{error}");
        assert!(crowded.fit <= limit - 2 && crowded.beside >= 2, "{error}");
        let numbers = [crowded.fit, crowded.beside, crowded.needed, crowded.of];
        let numbers = numbers.map(|number| number.to_string());
        names(&error, &numbers.each_ref().map(String::as_str));
        let resource = crowded.resource.to_string();
        names(&error, &[&format!("{limit} blocks"), "beside", &resource, "fewer channels"]);
        drop(two);
    });
}

#[test]
fn threads() {
    on_each_device(|runtime| {
        let most = runtime.device().max_threads;
        for threads in [0, 1, 31, 33, most + 1, most + 32, u32::MAX] {
            let error = refused::<Echo>(runtime, LaunchConfig::default().threads(threads));
            assert!(
                matches!(error, LaunchError::Threads { threads: t, limit, .. }
                    if t == threads && limit == most),
                "{error}"
            );
            let limit = format!("32..={most}");
            names(&error, &[&format!("{threads} threads"), "multiple of 32", &limit, "device"]);
        }
        for threads in [32, 96] {
            runtime.launch::<Echo>(LaunchConfig::default().threads(threads)).unwrap();
        }
    });
}

/// In a process of its own: nothing is loaded while another test's kernel is resident.
#[test]
fn threads_beyond_the_kernels_limit() {
    if gpu().is_some() {
        in_child(concat!(module_path!(), "::threads_beyond_the_kernels_limit"), &[], narrow_kernel);
    }
}

fn narrow_kernel() {
    let gpu = gpu().unwrap();
    let narrow = with_ptx(LaunchConfig::default(), ptx(".maxntid 64, 1, 1", "\tret;"));
    let error = refused::<Echo>(&gpu, narrow.clone().threads(96));
    assert!(
        matches!(
            error,
            LaunchError::Threads { threads: 96, limit: 64, why: ThreadLimit::Kernel, .. }
        ),
        "{error}"
    );
    names(&error, &["96 threads", "32..=64", "the kernel's limit"]);
    drop(gpu.launch::<Echo>(narrow.threads(64)).unwrap());
}

#[test]
fn ptx_that_cannot_be_used() {
    fn source(error: LaunchError) -> ImageError {
        names(&error, &["kernel echo: "]);
        match error {
            LaunchError::Image { kernel: "echo", source } => source,
            error => panic!("{error}"),
        }
    }
    let good = || String::from_utf8(ptx("", "\tret;")).unwrap();
    let abi = ring_shared::ABI_VERSION;
    on_each_device(|runtime| {
        let try_bytes = |bytes: Vec<u8>| {
            source(refused::<Echo>(runtime, with_ptx(LaunchConfig::default(), bytes)))
        };
        let try_text = |text: String| try_bytes(text.into_bytes());
        for empty in ["", " \n\t"] {
            let error = try_text(empty.to_owned());
            assert_eq!(error, ImageError::Empty);
            names(&error, &["empty"]);
        }
        let binary = b"\x7fELF\x02\x01\x01\0\xff\xfe".to_vec();
        for garbage in [binary, b"an image, honestly".to_vec(), good().into_bytes()[..40].to_vec()]
        {
            let error = try_bytes(garbage);
            assert!(matches!(error, ImageError::NotPtx(_) | ImageError::NoAbi), "{error}");
        }
        let error = try_text(good() + "\0");
        assert_eq!(error, ImageError::NotPtx(NotPtx::Nul));
        names(&error, &["not PTX", "NUL"]);

        let error = try_text(good().replace(&format!("= {abi};"), "= 999;"));
        assert_eq!(error, ImageError::Abi { found: 999 });
        names(&error, &["version 999", &format!("this host has {abi}")]);
        let error = try_text(good().replace("RING_ABI_VERSION", "ANOTHER"));
        assert_eq!(error, ImageError::NoAbi);
        names(&error, &["RING_ABI_VERSION"]);

        let error = try_text(good().replace("ring_echo", "ring_other"));
        let has = vec!["ring_other".to_owned()];
        assert_eq!(error, ImageError::NoEntry { entry: "ring_echo", has });
        names(&error, &["'ring_echo'", "ring_other"]);
        let error =
            refused::<VectorAdd>(runtime, with_ptx(LaunchConfig::default(), ptx("", "\tret;")));
        names(&error, &["kernel vector_add", "'ring_vector_add'", "ring_echo"]);
    });
}

#[test]
fn ptx_that_only_the_driver_can_refuse() {
    // The CPU device looks at the text only, and runs the handler compiled for it.
    let mut kernel = cpu().launch::<Echo>(nonsense()).unwrap();
    kernel.activate(LONG).unwrap();
    if gpu().is_some() {
        let name = concat!(module_path!(), "::ptx_that_only_the_driver_can_refuse");
        in_child(name, &[], refused_by_the_driver);
    }
}

fn nonsense() -> LaunchConfig {
    with_ptx(LaunchConfig::default(), ptx("", "\tnot_an_instruction 7;\n\tret;"))
}

fn refused_by_the_driver() {
    let gpu = gpu().unwrap();
    let error = refused::<Echo>(&gpu, nonsense());
    let LaunchError::Image { source: ImageError::Refused { code, log }, .. } = &error else {
        panic!("{error}")
    };
    assert!(*code != 0 && log.contains("not_an_instruction"), "{error}");
    names(&error, &["kernel echo", "the driver refused the PTX", &code.to_string()]);
    let future =
        String::from_utf8(ptx("", "\tret;")).unwrap().replace(".version 8.4", ".version 99.9");
    let error = refused::<Echo>(&gpu, with_ptx(LaunchConfig::default(), future.into_bytes()));
    let LaunchError::Image { source: ImageError::Refused { code, .. }, .. } = &error else {
        panic!("{error}")
    };
    assert_ne!(*code, 0, "{error}");
    let mut kernel = active(&gpu);
    kernel.send(EchoMessage::from_seed(3), LONG).unwrap();
    assert_eq!(kernel.recv(LONG).unwrap(), EchoMessage::from_seed(3).answer(), "nothing is lost");
}

/// The driver would block until no kernel is resident, so it is not asked.
#[test]
fn ptx_that_is_not_loaded_while_a_kernel_is_resident() {
    let unknown = || with_ptx(LaunchConfig::default(), ptx("", "\tret;"));
    let name = concat!(module_path!(), "::ptx_that_is_not_loaded_while_a_kernel_is_resident");
    on_each_device(|runtime| {
        let error = runtime.prepare::<Echo>(&LaunchConfig::default().capacity(3)).unwrap_err();
        assert!(
            matches!(error, LaunchError::Capacity(3)),
            "prepare checks as launch does: {error}"
        );
        runtime.prepare::<Echo>(&LaunchConfig::default()).unwrap(); // built in, whatever is resident
    });
    cpu().prepare::<Echo>(&unknown()).unwrap();
    if gpu().is_none() {
        return;
    }
    in_child(name, &[], || {
        let gpu = gpu().unwrap();
        let mut kernel = active(&gpu);
        for _ in 0..2 {
            let error = promptly("launching", || refused::<Echo>(&gpu, unknown()));
            let busy = ImageError::Busy { resident: 1 };
            assert!(
                matches!(&error, LaunchError::Image { source, .. } if *source == busy),
                "{error}"
            );
            names(&error, &["kernel echo", "1 are", "prepare"]);
        }
        kernel.send(EchoMessage::from_seed(3), LONG).unwrap();
        assert_eq!(kernel.recv(LONG).unwrap(), EchoMessage::from_seed(3).answer());
        kernel.terminate(LONG).unwrap();
        gpu.prepare::<Echo>(&unknown()).unwrap();
        let kernel = active(&gpu);
        drop(gpu.launch::<Echo>(unknown()).unwrap()); // loaded before
        drop(kernel);
    });
}

ring_kernel! {
    /// A kernel that the built-in PTX does not have.
    struct Nobody {
        name: "nobody",
        entry: "ring_nobody",
    }

    fn handle(request: &u32) -> u32 {
        !request
    }
}

#[test]
fn a_kernel_without_an_entry_in_the_built_in_ptx() {
    let mut kernel = cpu().launch::<Nobody>(LaunchConfig::default()).unwrap();
    kernel.activate(LONG).unwrap();
    kernel.send(1, LONG).unwrap();
    assert_eq!(kernel.recv(LONG), Ok(!1));

    let Some(gpu) = gpu() else { return };
    let error = refused::<Nobody>(&gpu, LaunchConfig::default());
    assert!(
        matches!(
            &error,
            LaunchError::Image { kernel: "nobody", source: ImageError::NoEntry { .. } }
        ),
        "{error}"
    );
    names(&error, &["kernel nobody", "'ring_nobody'", "ring_echo"]);
}

#[test]
fn devices_that_are_not_there() {
    for name in ["tpu", "cuda:x", ""] {
        let error = name.parse::<Device>().unwrap_err();
        names(&error, &[&format!("'{name}'"), "auto, cpu, cuda or cuda:N"]);
    }
    if gpu().is_some() {
        for asked in [64, usize::MAX] {
            let error = Runtime::open(Device::Cuda(asked)).unwrap_err();
            let OpenError::OutOfRange { index, count } = error else { panic!("{error}") };
            assert!(index == asked && (1..64).contains(&count), "{error}");
            names(&error, &[&format!("device {asked}"), &format!("has {count}")]);
        }
        return;
    }
    for index in [0, 7, usize::MAX] {
        let error = Runtime::open(Device::Cuda(index)).unwrap_err();
        assert!(matches!(error, OpenError::NoDriver | OpenError::NoDevice), "{error}");
        names(&error, &["NVIDIA driver", "'cpu'"]);
    }
    let runtime = Runtime::open(Device::Auto).unwrap();
    assert_eq!(runtime.device().kind, DeviceKind::Cpu);
    let Opened::NoGpu(error) = runtime.why() else { panic!("{}", runtime.why()) };
    assert!(matches!(error, OpenError::NoDriver | OpenError::NoDevice), "{error}");
    names(&runtime.why(), &["no GPU", "NVIDIA driver"]);
}

/// On a machine with a GPU, a process that may not see it.
#[test]
fn a_driver_without_devices() {
    if !is_child() && gpu().is_none() {
        return;
    }
    let name = concat!(module_path!(), "::a_driver_without_devices");
    in_child(name, &[("CUDA_VISIBLE_DEVICES", "")], || {
        let error = Runtime::open(Device::Cuda(0)).unwrap_err();
        assert!(matches!(error, OpenError::NoDevice), "{error}");
        names(&error, &["no device", "'cpu'"]);
        let runtime = Runtime::open(Device::Auto).unwrap();
        assert_eq!(runtime.device().kind, DeviceKind::Cpu);
        assert_eq!(*runtime.why(), Opened::NoGpu(OpenError::NoDevice));
        names(&runtime.why(), &["no device"]);
    });
}

#[test]
fn messages_and_commands_at_the_wrong_time() {
    on_each_device(|runtime| {
        let request = EchoMessage::from_seed(9);
        let refuses = |kernel: &mut KernelHandle<Echo>, state: State| {
            let (message, kernel_name) = (request, "echo");
            let (at_once, in_time) = match state {
                State::Terminated => (
                    TrySendError::Closed { message, kernel: kernel_name },
                    SendTimeoutError::Closed { message, kernel: kernel_name },
                ),
                state => (
                    TrySendError::NotActive { message, kernel: kernel_name, state },
                    SendTimeoutError::NotActive { message, kernel: kernel_name, state },
                ),
            };
            let parts: &[&str] = match state {
                State::Terminated => &["kernel echo is terminated", "launch it again"],
                state => &["kernel echo", &format!("{state:?}"), "call activate"],
            };
            names(&at_once, parts);
            names(&in_time, parts);
            let sent = promptly("send", || kernel.send(request, LONG));
            assert_eq!(sent, Err(in_time));
            assert_eq!(kernel.try_send(request), Err(at_once.clone()));
            assert_eq!(kernel.try_send_batch(&[request; 2]), Err(at_once.without_message()));
        };
        let mut kernel = runtime.launch::<Echo>(LaunchConfig::default().capacity(16)).unwrap();
        refuses(&mut kernel, State::Launched);
        kernel.activate(LONG).unwrap();
        kernel.send(request, LONG).unwrap();
        assert_eq!(kernel.recv(LONG).unwrap(), request.answer());
        kernel.deactivate(LONG).unwrap();
        refuses(&mut kernel, State::Inactive);
        kernel.activate(LONG).unwrap();
        for _ in 0..3 {
            kernel.send(request, LONG).unwrap();
        }
        let last = kernel.recv(LONG).unwrap();
        assert_eq!(last, request.answer());
        let summary = kernel.terminate(LONG).unwrap();
        refuses(&mut kernel, State::Terminated);

        let ended = ControlError::Terminated { kernel: "echo" };
        names(&ended, &["kernel echo is terminated"]);
        assert_eq!(kernel.activate(LONG).unwrap_err(), ended);
        assert_eq!(kernel.deactivate(LONG).unwrap_err(), ended);
        assert_eq!(kernel.terminate(LONG).unwrap_err(), ended);
        assert_eq!(kernel.status().state, State::Terminated);

        for _ in 2..summary.processed {
            assert_eq!(kernel.recv(LONG).unwrap(), request.answer(), "answered before the end");
        }
        let drained = RecvTimeoutError::Closed { kernel: "echo" };
        names(&drained, &["kernel echo is terminated"]);
        promptly("receiving when all is drained", || {
            assert_eq!(kernel.recv(LONG).unwrap_err(), drained);
            let drained = TryRecvError::Closed { kernel: "echo" };
            names(&drained, &["kernel echo is terminated"]);
            assert_eq!(kernel.try_recv().unwrap_err(), drained);
            assert_eq!(kernel.try_recv_batch(&mut [request; 4]).unwrap_err(), drained);
        });
    });
}

#[test]
fn nothing_comes() {
    on_each_device(|runtime| {
        let times_out = |kernel: &mut KernelHandle<Echo>, limit: Duration| {
            let begun = Instant::now();
            let error = kernel.recv(limit).unwrap_err();
            let took = begun.elapsed();
            let RecvTimeoutError::Timeout { kernel: "echo", channel: 0, waited, .. } = error else {
                panic!("{error}")
            };
            assert!(waited >= limit && took >= limit, "{waited:?}, {took:?} of {limit:?}");
            assert!(took < limit + Duration::from_secs(2), "{took:?} of {limit:?}");
            names(&error, &["kernel echo", "channel 0", &format!("{waited:?}")]);
        };
        let mut kernel = runtime.launch::<Echo>(LaunchConfig::default().capacity(16)).unwrap();
        times_out(&mut kernel, Duration::from_millis(20));
        kernel.activate(LONG).unwrap();
        for limit in [0, 1, 150] {
            times_out(&mut kernel, Duration::from_millis(limit));
        }
        let passed = promptly("a deadline that has passed", || kernel.recv(Instant::now()));
        assert!(matches!(passed, Err(RecvTimeoutError::Timeout { .. })));
        assert_eq!(kernel.try_recv(), Err(TryRecvError::Empty));
        kernel.deactivate(LONG).unwrap();
        times_out(&mut kernel, Duration::from_millis(20));
    });
}

/// A receive from a kernel that is not active returns what was answered before, and then an error that says
/// so.
#[test]
fn nothing_comes_from_a_kernel_that_is_not_active() {
    const SHORT: Duration = Duration::from_millis(20);
    on_each_device(|runtime| {
        let says_so = |kernel: &mut KernelHandle<Echo>, state: &str| {
            let error = kernel.recv(SHORT).unwrap_err();
            names(&error, &["kernel echo", "channel 0", "not active", state, "call activate"]);
        };
        let mut kernel = runtime.launch::<Echo>(LaunchConfig::default().capacity(16)).unwrap();
        says_so(&mut kernel, "Launched");
        kernel.activate(LONG).unwrap();
        let error = kernel.recv(SHORT).unwrap_err();
        assert!(!error.to_string().contains("activ"), "it is active: {error}");
        let request = EchoMessage::from_seed(3);
        for _ in 0..2 {
            kernel.send(request, LONG).unwrap();
        }
        until("two answers", || {
            let _ = kernel.is_resting(); // drives a kernel that is launched when there is work
            (kernel.summary().unhandled == 0).then_some(())
        });
        kernel.deactivate(LONG).unwrap();
        for _ in 0..2 {
            assert_eq!(kernel.recv(LONG), Ok(request.answer()), "answered before");
        }
        says_so(&mut kernel, "Inactive");

        // A half on another thread waits for who activates the kernel, and only then says no.
        let (mut sender, mut receiver) = kernel.take_channel(0).unwrap().into_split();
        std::thread::scope(|threads| {
            let answer = threads.spawn(move || receiver.recv(LONG));
            kernel.activate(LONG).unwrap();
            sender.send(request, LONG).unwrap();
            assert_eq!(answer.join().unwrap(), Ok(request.answer()));
        });
    });
}

#[test]
fn vectors_that_cannot_be_added() {
    on_each_device(|runtime| {
        let limit = 64 * 1024 / 12;
        let ones = vec![1.0f32; limit + 2];
        let mut sum = vec![0.0f32; limit + 2];
        let mut kernel = runtime.launch::<VectorAdd>(LaunchConfig::default().capacity(8)).unwrap();
        let error = kernel.add(&ones[..10], &ones[..10], &mut sum[..10], LONG).unwrap_err();
        let (message, kernel_name, state) = ((), "vector_add", State::Launched);
        let inactive = SendTimeoutError::NotActive { message, kernel: kernel_name, state };
        assert_eq!(error, AddError::Send(inactive));
        kernel.activate(LONG).unwrap();
        let mut refuses = |a: usize, b: usize, c: usize, expected: AddError, parts: &[&str]| {
            let error = kernel.add(&ones[..a], &ones[..b], &mut sum[..c], LONG).unwrap_err();
            names(&error, parts);
            assert_eq!(error, expected);
        };
        let vectors = AddError::Vectors;
        refuses(0, 0, 0, vectors(VectorError::Empty), &["at least 1"]);
        for (a, b) in [(3, 4), (0, 5), (26, 25), (limit, limit + 1)] {
            let parts = [format!("A has {a}"), format!("B has {b}")];
            let unequal = vectors(VectorError::Unequal { a, b });
            refuses(a, b, a.max(b), unequal, &parts.each_ref().map(String::as_str));
        }
        for (len, c) in [(3, 2), (3, 4), (3, 0), (100, 99)] {
            let parts = [format!("room for {c} elements"), format!("have {len}")];
            let sum = AddError::Sum { c, len };
            refuses(len, len, c, sum, &parts.each_ref().map(String::as_str));
        }
        let len = limit + 1;
        let parts = [format!("{len} elements"), format!("at most {limit}")];
        let too_long = vectors(VectorError::TooLong { len, limit });
        refuses(len, len, len, too_long, &parts.each_ref().map(String::as_str));

        kernel.add(&ones[..limit], &ones[..limit], &mut sum[..limit], LONG).unwrap();
        assert!(sum[..limit].iter().all(|s| *s == 2.0) && sum[limit] == 0.0);
        let _taken = kernel.take_channel(0).unwrap();
        let error = kernel.add(&ones[..3], &ones[..3], &mut sum[..3], LONG).unwrap_err();
        assert_eq!(error, AddError::Channel(ChannelError::Taken(0)));

        // Without a payload arena, what fits the message is the limit.
        let launch = LaunchConfig::default().capacity(8).payload_bytes(0);
        let mut kernel = runtime.launch::<VectorAdd>(launch).unwrap();
        kernel.activate(LONG).unwrap();
        let error = kernel.add(&ones[..26], &ones[..26], &mut sum[..26], LONG).unwrap_err();
        assert_eq!(error, AddError::Vectors(VectorError::TooLong { len: 26, limit: 25 }));
        kernel.add(&ones[..25], &ones[..25], &mut sum[..25], LONG).unwrap();
    });
}

/// Requests that no `VectorAddRequest::check` has seen: the handler itself stays in bounds.
#[test]
fn requests_that_the_handler_refuses() {
    fn inline(len: u32) -> VectorAddRequest {
        VectorAddRequest { in_payload: 0, ..VectorAddRequest::in_payload(len, 0) }
    }
    on_each_device(|runtime| {
        let launch = LaunchConfig::default().capacity(8).payload_bytes(4096);
        let mut kernel = runtime.launch::<VectorAdd>(launch).unwrap();
        kernel.activate(LONG).unwrap();
        let cases = [
            (inline(0), status::BAD_LENGTH),
            (inline(26), status::BAD_LENGTH),
            (inline(u32::MAX), status::BAD_LENGTH),
            (VectorAddRequest::in_payload(0, 0), status::BAD_LENGTH),
            (VectorAddRequest::in_payload(342, 0), status::BAD_PAYLOAD), // 4104 bytes
            (VectorAddRequest::in_payload(1, 4088), status::BAD_PAYLOAD),
            (VectorAddRequest::in_payload(1, 2), status::BAD_PAYLOAD),
            (VectorAddRequest::in_payload(1, u64::MAX - 3), status::BAD_PAYLOAD),
            (VectorAddRequest::in_payload(u32::MAX, u64::MAX), status::BAD_PAYLOAD),
            (VectorAddRequest::in_payload(u32::MAX, 0), status::BAD_PAYLOAD),
            (VectorAddRequest::in_payload(341, 0), status::PAYLOAD),
            (VectorAddRequest::in_payload(1, 4084), status::PAYLOAD),
            (inline(25), status::INLINE),
        ];
        for (request, expected) in cases {
            kernel.send(request, LONG).unwrap();
            let answer = kernel.recv(LONG).unwrap();
            assert_eq!(answer.status, expected, "{} at {}", request.len, request.offset);
        }
    });
}

#[test]
fn payload_out_of_bounds() {
    on_each_device(|runtime| {
        let launch = LaunchConfig::default().capacity(8).payload_bytes(4096);
        let mut kernel = runtime.launch::<VectorAdd>(launch).unwrap();
        assert_eq!(kernel.payload_bytes(), 4096);
        let mut words = vec![7u32; 1025];
        for (offset, count) in [
            (4096, 1),
            (4093, 1),
            (0, 1025),
            (4, 1024),
            (u64::MAX, 1),
            (u64::MAX - 3, 1),
            (4097, 0),
        ] {
            let bytes = 4 * count;
            let (name, arena) = ("vector_add", 4096);
            let expected = PayloadError::OutOfBounds { kernel: name, offset, bytes, arena };
            let parts = [format!("{bytes} bytes at offset {offset}"), "of 4096".to_owned()];
            names(&expected, &parts.each_ref().map(String::as_str));
            let written = kernel.write_payload(offset, &words[..count], LONG);
            assert_eq!(written.unwrap_err(), expected);
            let read = kernel.read_payload(offset, &mut words[..count], LONG);
            assert_eq!(read.unwrap_err(), expected);
        }
        assert!(words.iter().all(|w| *w == 7), "a refused read wrote");
        for (offset, count) in [(0, 1024), (4092, 1), (4096, 0), (4, 1023)] {
            kernel.write_payload(offset, &words[..count], LONG).unwrap();
            kernel.read_payload(offset, &mut words[..count], LONG).unwrap();
        }
        let unaligned = kernel.write_payload(1, &words[..1], LONG).unwrap_err();
        assert_eq!(unaligned, PayloadError::Unaligned { offset: 1 });
        names(&unaligned, &["offset 1", "multiple of 4"]);
        let mut without = runtime.launch::<Echo>(LaunchConfig::default().capacity(8)).unwrap();
        without.write_payload(0, &[0u32; 0], LONG).unwrap();
        without.read_payload(0, &mut [0u32; 0], LONG).unwrap();
        let error = without.write_payload(0, &[1.0f32], LONG).unwrap_err();
        let kernel = "echo";
        assert_eq!(error, PayloadError::OutOfBounds { kernel, offset: 0, bytes: 4, arena: 0 });
        names(&error, &["kernel echo", "payload arena of 0 bytes", "LaunchConfig::payload_bytes"]);
    });
}

#[test]
fn channels_that_are_not_there() {
    on_each_device(|runtime| {
        let launch = LaunchConfig::default().capacity(8).channels(3);
        let mut kernel = runtime.launch::<Echo>(launch).unwrap();
        for channel in [3, u32::MAX] {
            let error = kernel.channel(channel).unwrap_err();
            assert_eq!(error, ChannelError::OutOfRange { channel, channels: 3 });
            assert_eq!(kernel.take_channel(channel).unwrap_err(), error);
            names(&error, &[&format!("no channel {channel}"), "has 3"]);
        }
        let _taken = kernel.take_channel(1).unwrap();
        let error = kernel.channel(1).unwrap_err();
        assert_eq!(error, ChannelError::Taken(1));
        assert_eq!(kernel.take_channel(1).unwrap_err(), error);
        names(&error, &["channel 1", "take_channel"]);
        kernel.channel(2).unwrap();
    });
}

/// The kernel's own calls are those of channel 0.
#[test]
fn calls_on_a_kernel_whose_first_channel_was_taken() {
    on_each_device(|runtime| {
        let mut kernel = active(runtime);
        let mut taken = kernel.take_channel(0).unwrap();
        let request = EchoMessage::from_seed(4);
        let says = |error: &dyn std::fmt::Display| {
            names(&error, &["channel 0 was taken out of this kernel by take_channel"]);
        };
        let refused = kernel.try_send(request).unwrap_err();
        says(&refused);
        assert_eq!(refused.into_inner(), request, "the request is given back");
        let refused = kernel.send(request, LONG).unwrap_err();
        says(&refused);
        assert_eq!(refused.into_inner(), request, "the request is given back");
        says(&kernel.try_send_batch(&[request; 2]).unwrap_err());
        says(&kernel.try_send_each(2, |_| unreachable!("nothing is sent")).unwrap_err());
        says(&kernel.try_recv().unwrap_err());
        says(&kernel.recv(LONG).unwrap_err());
        says(&kernel.try_recv_batch(&mut [request; 2]).unwrap_err());
        says(&kernel.try_recv_each(2, |_| unreachable!("nothing is shown")).unwrap_err());
        says(&ring_host::Error::from(kernel.send(request, LONG).unwrap_err()));
        taken.send(request, LONG).unwrap();
        assert_eq!(taken.recv(LONG), Ok(request.answer()), "the channel itself works");
        kernel.terminate(LONG).unwrap();

        let mut adding = runtime.launch::<VectorAdd>(LaunchConfig::default().capacity(8)).unwrap();
        let _taken = adding.take_channel(0).unwrap();
        says(&adding.add(&[1.0], &[2.0], &mut [0.0], LONG).unwrap_err());
    });
}

/// Refusals at every stage of a launch, between two times that the arenas are filled to the brim.
#[test]
fn refused_launches_leave_nothing_behind() {
    const PAYLOAD: usize = 8192;
    let small = || LaunchConfig::default().capacity(16).payload_bytes(PAYLOAD);
    let each = {
        let probe = cpu().launch::<Echo>(small()).unwrap();
        probe.pinned_bytes().next_multiple_of(256)
    };
    on_each_with(4 * each, 4 * PAYLOAD, |runtime| {
        let fill = || {
            let mut kernels = Vec::new();
            let error = loop {
                match runtime.launch::<Echo>(small()) {
                    Ok(kernel) => kernels.push(kernel),
                    Err(error) => break error,
                }
            };
            assert!(matches!(error, LaunchError::Arena { free: 0, .. }), "{error}");
            assert_eq!(kernels.len(), 4, "kernels in an arena for four");
            // Not merely dropped: on a busy machine that may set memory aside for a while.
            for kernel in &mut kernels {
                kernel.terminate(LONG).unwrap();
            }
        };
        fill();
        for _ in 0..10 {
            for bad in [
                small().capacity(3),
                small().window(32),
                small().slot_bytes(8),
                small().threads(33),
                small().channels(0),
                small().channels(u32::MAX),
                with_ptx(small(), &b"rubbish"[..]),
                small().capacity(1 << 20), // no room for the rings
                small().payload_memory(PayloadMemory::Device).payload_bytes(PAYLOAD * 4 + 1), // room for the rings, not for it
            ] {
                refused::<Echo>(runtime, bad);
            }
            if runtime.device().kind == DeviceKind::Cuda {
                refused::<Nobody>(runtime, small());
            }
        }
        fill();
        if runtime.device().kind == DeviceKind::Cpu {
            // Nor is a share of the device kept: the whole of it can be had, if not the memory.
            let error = refused::<Echo>(runtime, small().channels(runtime.device().max_channels));
            assert!(matches!(error, LaunchError::Arena { .. }), "{error}");
        }
    });
}

/// The largest and the smallest of everything that can be asked for: refused or done, never a panic.
#[test]
fn nothing_that_can_be_asked_for_panics() {
    let runtime = cpu();
    let base = || LaunchConfig::default().capacity(16);
    let unlimited = Budgets { time: Duration::MAX, iterations: u64::MAX, idle: Duration::MAX };
    let launches = [
        base().payload_bytes(usize::MAX),
        base().payload_bytes(usize::MAX / 2),
        base().payload_bytes(usize::MAX).payload_memory(PayloadMemory::Mapped),
        base().payload_bytes(1 << 40).payload_memory(PayloadMemory::Mapped),
        base().slot_bytes(usize::MAX),
        base().channels(u32::MAX),
        base().channels(u32::MAX).capacity(1 << 31),
        base().threads(u32::MAX),
        base().threads(0),
        base().capacity(0),
        base().capacity(u32::MAX),
        base().capacity(1 << 31).payload_bytes(usize::MAX),
        base().window(0),
        base().window(u32::MAX),
        base().window(1 << 31).capacity(1 << 31),
        base().start_index(u64::MAX),
        base().max_messages(0),
        base().lease(Duration::ZERO),
        base().lease(Duration::MAX).budgets(unlimited).mode(Mode::EventDriven),
        base().budgets(Budgets { time: Duration::ZERO, ..unlimited }),
    ];
    for (mode, memory) in WAYS {
        for launch in &launches {
            let launch = launch.clone().memory(memory);
            let _ = runtime.prepare::<Echo>(&launch);
            let _ = runtime.launch::<VectorAdd>(launch.mode(mode)).map(drop);
        }
    }

    let mut kernel = runtime.launch::<VectorAdd>(base().payload_bytes(64)).unwrap();
    let request = VectorAddRequest::in_payload(u32::MAX, u64::MAX);
    for active in [false, true] {
        if active {
            kernel.activate(Duration::MAX).unwrap();
        }
        for most in [0, usize::MAX] {
            assert_eq!(kernel.try_send_each(most, |_| request).is_ok(), active);
            assert!(kernel.try_recv_each(most, |_| ()).is_ok());
        }
        assert_eq!(kernel.try_send_batch(&[]).is_ok(), active);
        assert!(kernel.try_recv_batch(&mut []).is_ok());
        for channel in [1, u32::MAX] {
            let error = ChannelError::OutOfRange { channel, channels: 1 };
            assert_eq!(kernel.channel(channel).map(drop), Err(error.clone()));
            assert_eq!(kernel.take_channel(channel).map(drop), Err(error.clone()));
            assert_eq!(kernel.channel_telemetry(channel), Err(error));
        }
        for offset in [1, 61, 64, 68, u64::MAX - 3, u64::MAX] {
            assert!(kernel.write_payload(offset, &[1u32; 2], LONG).is_err(), "{offset}");
            assert!(kernel.read_payload(offset, &mut [1u32; 2], LONG).is_err(), "{offset}");
        }
        for part in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -1.0, 0.0, 1.0, 2.0] {
            let _ = kernel.telemetry().handler.quantile(part);
        }
        let _ = kernel.telemetry().queueing.upper_end(usize::MAX);
    }
    kernel.terminate(Instant::now() + LONG).unwrap();
}
