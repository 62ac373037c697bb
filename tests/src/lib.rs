//! What the integration tests have in common: the devices to run on, and kernels of their own.

mod call_error;
pub mod hostile;
pub mod kernels;
pub mod latch;
mod stop;

pub use call_error::CallError;
pub use stop::StopOnDrop;

use ring_device::ring_kernel;
use ring_host::device::Quirks;
use ring_host::kernels::{Echo, EchoMessage};
use ring_host::{
    Device, Devices, Kernel, KernelHandle, LaunchConfig, Memory, Mode, OpenError, Runtime,
    RuntimeConfig,
};
use std::borrow::Cow;
use std::fmt::Display;
use std::process::Command;
use std::sync::{Once, OnceLock};
use std::time::{Duration, Instant};

/// The README's programs, compiled and run as documentation tests.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
pub struct Readme;

/// The program that runs these tests, as a command: by the emulator that `RING_TEST_RUNNER` names, where it is a program
/// for another processor.
///
/// # Panics
/// If the system does not tell which program that is.
#[must_use]
pub fn this_program() -> Command {
    let program = std::env::current_exe().expect("the system tells the path of this program");
    match std::env::var_os("RING_TEST_RUNNER") {
        Some(emulator) => {
            let mut command = Command::new(emulator);
            command.arg(program);
            command
        }
        None => Command::new(program),
    }
}

/// A deadline that a working runtime never reaches: it bounds a test, it measures nothing.
pub const LONG: Duration = Duration::from_secs(60);

/// A deadline for what a busy machine may have to try again and again.
const MOST: Duration = Duration::from_secs(180);

/// Fails a test that hangs: one in which nothing is counted for [`LONG`]. How long it takes in all depends on
/// the machine.
#[derive(Debug)]
pub struct Progress {
    count: u64,
    since: Instant,
}

impl Progress {
    /// Nothing was counted yet.
    #[allow(clippy::new_without_default, reason = "it begins to wait")]
    pub fn new() -> Progress {
        Progress { count: 0, since: Instant::now() }
    }

    /// It has come to `count`.
    ///
    /// # Panics
    /// If it had come there long ago.
    #[track_caller]
    pub fn is_at(&mut self, count: u64, what: impl Display) {
        if self.count != count {
            *self = Progress { count, since: Instant::now() };
        }
        assert!(self.since.elapsed() < LONG, "{what}: not for {LONG:?}");
    }
}

/// Calls until there is something.
///
/// # Panics
/// If there is nothing for [`LONG`].
pub fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begun.elapsed() < LONG, "{what}: not within {LONG:?}");
        std::thread::sleep(Duration::from_micros(200));
    }
}

/// All modes and memories that make sense together.
pub const WAYS: [(Mode, Memory); 8] = [
    (Mode::Persistent, Memory::Mapped),
    (Mode::EventDriven, Memory::Mapped),
    (Mode::Graph, Memory::Mapped),
    (Mode::Persistent, Memory::StagedAsync),
    (Mode::EventDriven, Memory::StagedAsync),
    (Mode::Graph, Memory::StagedAsync),
    (Mode::EventDriven, Memory::StagedSync),
    (Mode::Graph, Memory::StagedSync),
];

/// Opens the GPU with the kernels of [`kernels::config`], or says out loud that there is none to test on.
///
/// # Panics
/// If there is a GPU that cannot be opened, or if `RING_TEST_GPU=required` and there is none.
pub fn gpu() -> Option<Runtime> {
    if cfg!(miri) {
        return None; // it loads no library
    }
    match Runtime::open_with(Device::Cuda(0), kernels::config()) {
        Ok(runtime) => Some(runtime),
        Err(error @ (OpenError::NoDriver | OpenError::NoDevice)) => {
            static SAID: Once = Once::new();
            SAID.call_once(|| eprintln!("SKIPPED ON A GPU, run on the CPU device only: {error}"));
            let required = std::env::var_os("RING_TEST_GPU").is_some_and(|v| v == "required");
            assert!(!required, "RING_TEST_GPU=required, but {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// The first two GPUs, if there are so many.
///
/// # Panics
/// If one cannot be opened.
pub fn two_gpus() -> Option<Devices> {
    let first = gpu()?;
    match Runtime::open_with(Device::Cuda(1), kernels::config()) {
        Ok(second) => Some(Devices::of([first, second]).expect("two of them")),
        Err(error @ OpenError::OutOfRange { .. }) => {
            static SAID: Once = Once::new();
            SAID.call_once(|| eprintln!("SKIPPED ON TWO GPUS: {error}"));
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// The CPU device, with arenas large enough for any test.
///
/// # Panics
/// If it cannot be opened.
pub fn cpu() -> Runtime {
    certainly(|| Runtime::open(Device::Cpu))
}

/// The CPU device with arenas of that many bytes.
///
/// # Panics
/// If it cannot be opened.
pub fn cpu_with(pinned_bytes: usize, device_bytes: usize) -> Runtime {
    let options = RuntimeConfig { pinned_bytes, device_bytes, ..RuntimeConfig::default() };
    certainly(|| Runtime::open_with(Device::Cpu, options))
}

/// Opens a device of the caller's; its quirks do not count what a probe does.
///
/// # Panics
/// If it cannot be opened.
pub fn opened(device: &Quirks, options: RuntimeConfig) -> Runtime {
    certainly(|| Runtime::over(device.clone(), options))
}

/// Opens a device; again as long as the report says that the machine was too busy for the probe to find
/// out what works. Under Miri it always is: what the tests ask for is tried there all the same.
///
/// # Panics
/// If it cannot be opened, or if the machine is too busy each time.
pub fn certainly(open: impl Fn() -> Result<Runtime, OpenError>) -> Runtime {
    let begun = Instant::now();
    loop {
        let host = open().unwrap_or_else(|error| panic!("{error}"));
        let probe = &host.report().probe;
        if probe.is_certain() || cfg!(miri) {
            return host;
        }
        assert!(begun.elapsed() < MOST, "{probe:?}");
    }
}

/// Opens a device with quirks that keep nothing from its probe.
///
/// # Panics
/// If it cannot be opened, or does not work.
pub fn over(quirks: impl FnOnce() -> Quirks, options: RuntimeConfig) -> (Quirks, Runtime) {
    let device = quirks();
    let host = opened(&device, options);
    let probe = &host.report().probe;
    let found = [probe.resident.is_ok(), probe.concurrent_copy.is_ok(), probe.graph.is_ok()];
    assert!(probe.mapped.is_ok() && found == [true; 3], "{probe:?}");
    (device, host)
}

/// Launches the echo kernel, and activates it.
///
/// # Panics
/// If it cannot be.
pub fn active(host: &Runtime, launch: LaunchConfig) -> KernelHandle<Echo> {
    let mut kernel = host.launch::<Echo>(launch).unwrap_or_else(|error| panic!("{error}"));
    kernel.activate(LONG).unwrap_or_else(|error| panic!("{error}"));
    kernel
}

/// Sends a message, and receives its answer.
///
/// # Panics
/// If it is another's, or there is none.
pub fn exchange(kernel: &mut KernelHandle<Echo>, seed: u64) {
    let request = EchoMessage::from_seed(seed);
    kernel.send(request, LONG).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(kernel.recv(LONG), Ok(request.answer()));
}

/// A number that looks as if it had nothing to do with `n` (the last step of splitmix64).
pub fn mixed(n: u64) -> u64 {
    let n = (n ^ n >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let n = (n ^ n >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    n ^ n >> 31
}

/// Runs a test on every device there is.
pub fn on_each_device(test: impl Fn(&Runtime)) {
    test(&cpu());
    if let Some(gpu) = gpu() {
        test(&gpu);
    }
}

/// The same of tests whose kernels are of the module that the launch has for `K`, one module for all tests of a process. Before the first one
/// runs a kernel on a GPU, the code of all is loaded there: the driver loads none beside a resident kernel, such as that of another
/// test, or of the probe of a runtime that another test opens.
///
/// # Panics
/// If it cannot be loaded.
pub fn on_each_device_with<K: Kernel>(launch: &LaunchConfig, test: impl Fn(&Runtime)) {
    static LOADED: OnceLock<Option<Runtime>> = OnceLock::new();
    LOADED.get_or_init(|| {
        let gpu = gpu()?;
        gpu.prepare::<K>(launch).unwrap_or_else(|error| panic!("{error}"));
        Some(gpu)
    });
    on_each_device(test);
}

/// The launch with PTX of a test's own.
pub fn with_ptx(launch: LaunchConfig, ptx: impl Into<Cow<'static, [u8]>>) -> LaunchConfig {
    // SAFETY: the tests' PTX is refused, or touches no memory, or is the built-in one.
    unsafe { launch.ptx(ptx) }
}

ring_kernel! {
    /// Panics on request 13, else answers with the square. For the CPU device only.
    pub struct Unlucky {
        name: "unlucky",
        entry: "ring_echo",
    }

    fn handle(request: &u64) -> u64 {
        assert_ne!(*request, 13, "a request that the handler cannot bear");
        request * request
    }
}

ring_kernel! {
    /// Takes half a millisecond a message. For the CPU device only.
    pub struct Slow {
        name: "slow",
        entry: "ring_echo",
    }

    fn handle(request: &u64) -> u64 {
        std::thread::sleep(Duration::from_micros(500));
        *request
    }
}

ring_kernel! {
    /// Writes its response, and tries to write around it. For the CPU device only.
    pub struct Stray {
        name: "stray",
        entry: "ring_vector_add",
    }

    fn handle(_: &BlockContext, request: &u32, response: &Output<[u32; 4]>) {
        for i in [0, 1, 2, 3, 4, usize::MAX, usize::MAX / 4, usize::MAX / 4 + 1] {
            let inside = i < 4;
            assert_eq!(response.set(0, i, if inside { *request } else { 0xdead }), inside);
            assert!(!response.set(2, i, 0xdeadu32), "between two words");
            assert!(!response.set(16, i, 0xdeadu32), "behind the last");
            let at = usize::MAX - 3;
            assert!(!response.set(at, i, 0xdeadu32), "{i} words behind {at} is no offset");
        }
        assert!((0..4).all(|i| response.set(0, i, *request)));
    }
}
