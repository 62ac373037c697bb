//! Kernels of mixed shapes on one device: each launch becomes resident, or is refused at once with the
//! numbers. What is accepted and never resident would stop every later launch of the process.

use ring_host::kernels::{Echo, EchoMessage, VectorAdd};
use ring_host::{DeviceKind, Kernel, KernelHandle, LaunchConfig, LaunchError, Mode, Runtime};
use ring_tests::kernels::files;
use ring_tests::{cpu, gpu};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Longer than any wait here lasts if all goes well, on a busy machine too.
const LONG: Duration = Duration::from_secs(60);

/// One test at a time has the device for itself.
fn alone() -> MutexGuard<'static, ()> {
    static DEVICE: Mutex<()> = Mutex::new(());
    DEVICE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn small() -> LaunchConfig {
    LaunchConfig::default().capacity(16).payload_bytes(64)
}

/// A kernel of either kind that was activated.
#[derive(Debug)]
enum Placed {
    Echo(KernelHandle<Echo>),
    VectorAdd(#[allow(dead_code)] KernelHandle<VectorAdd>),
}

impl Placed {
    /// Every channel answers.
    fn answers(&mut self) {
        let Placed::Echo(kernel) = self else { return };
        for channel in 0..kernel.channels() {
            let request = EchoMessage::from_seed(channel.into());
            let channel = kernel.channel(channel).unwrap();
            channel.send(request, LONG).unwrap();
            assert_eq!(channel.recv(LONG).unwrap(), request.answer());
        }
    }
}

/// Launches and activates, or says why it is refused.
fn placed<K: Kernel>(
    runtime: &Runtime,
    launch: LaunchConfig,
) -> Result<KernelHandle<K>, LaunchError> {
    let shape = format!("{} {launch:?}", K::NAME);
    let mut kernel = runtime.launch::<K>(launch)?;
    kernel.activate(LONG).unwrap_or_else(|error| panic!("accepted, but {error}: {shape}"));
    Ok(kernel)
}

/// The refusal names what does not fit.
fn names_the_numbers(error: &LaunchError) {
    let text = error.to_string();
    match error {
        LaunchError::Crowded(c) => {
            for number in [c.blocks, c.fit, c.beside, c.multiprocessors, c.needed, c.of] {
                assert!(text.contains(&number.to_string()), "{number} is not in {text:?}");
            }
            assert!(text.contains(c.kernel) && text.contains(&c.resource.to_string()), "{text}");
        }
        LaunchError::Channels { limit, .. } | LaunchError::Threads { limit, .. } => {
            assert!(text.contains(&limit.to_string()), "{text}");
        }
        error => panic!("{error}"),
    }
}

/// A block that takes a whole multiprocessor beside a kernel that has a block on each; and the kernels
/// that come after it.
#[test]
fn what_cannot_become_resident_is_refused_and_stops_nothing() {
    let _alone = alone();
    let Some(runtime) = gpu() else { return };
    let multiprocessors = runtime.device().multiprocessors;
    for threads in [32, 512] {
        let everywhere = small().channels(multiprocessors).threads(threads);
        let mut everywhere = Placed::Echo(placed(&runtime, everywhere).unwrap());
        match placed::<Echo>(&runtime, small().threads(1024)) {
            // `echo` of other PTX may have 56 registers a thread or fewer, where the shipped one has 64: beside
            // 1024 threads there is then room for a warp.
            Ok(large) if threads == 32 && files().find(Echo::ENTRY).is_some() => {
                Placed::Echo(large).answers();
            }
            Ok(_) => panic!("{threads} and 1024 threads in a multiprocessor"),
            Err(error) => {
                let LaunchError::Crowded(crowded) = &error else { panic!("{error}") };
                assert_eq!((crowded.blocks, crowded.fit, crowded.beside), (1, 0, multiprocessors));
                names_the_numbers(&error);
            }
        }
        for _ in 0..12 {
            Placed::Echo(placed(&runtime, small().threads(32)).unwrap()).answers();
        }
        Placed::Echo(placed(&runtime, small().threads(256)).unwrap()).answers();
        everywhere.answers();
    }
    // The same by default, as a program would meet it.
    let echo = placed::<Echo>(&runtime, small().channels(multiprocessors)).unwrap();
    match placed::<VectorAdd>(&runtime, small()) {
        Ok(_) => {} // it has room beside `Echo` if it takes as few registers
        Err(error) => names_the_numbers(&error),
    }
    Placed::Echo(placed(&runtime, small().threads(32)).unwrap()).answers();
    drop(echo);
    placed::<VectorAdd>(&runtime, small()).unwrap();
}

/// Random kernels, shapes and modes, launched and dropped in a random order. The seed is printed.
#[test]
fn mixed_shapes_become_resident_or_are_refused() {
    let seed = match std::env::var("RING_SEED") {
        Ok(seed) => seed.parse().expect("RING_SEED is a number"),
        Err(_) => std::time::UNIX_EPOCH.elapsed().unwrap().as_nanos() as u64,
    };
    println!("RING_SEED={seed}");
    let _alone = alone();
    mixed_shapes(&cpu(), seed, 60);
    if let Some(gpu) = gpu() {
        mixed_shapes(&gpu, seed, 400);
    }
}

fn mixed_shapes(runtime: &Runtime, seed: u64, steps: u32) {
    let mut state = seed | 1;
    let mut roll = |below: u32| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        ((state >> 32) as u32) % below
    };
    let on_gpu = runtime.device().kind == DeviceKind::Cuda;
    let multiprocessors = runtime.device().multiprocessors;
    let mut live: Vec<Placed> = Vec::new();
    let (mut accepted, mut refused) = (0, 0);
    for _ in 0..steps {
        // Many are kept, so that the device is mostly full.
        while live.len() > 12 || (roll(4) == 0 && !live.is_empty()) {
            live.swap_remove(roll(live.len() as u32) as usize).answers();
        }
        let channels = match (on_gpu, roll(4)) {
            (false, _) => 1 + roll(100),
            (true, 0) => 1,
            (true, 1) => 1 + roll(8),
            (true, 2) => 1 + roll(multiprocessors),
            (true, _) => multiprocessors + roll(multiprocessors),
        };
        let threads = 32 << roll(6);
        let mode = if roll(3) == 0 { Mode::EventDriven } else { Mode::Persistent };
        let launch = small().channels(channels).threads(threads).mode(mode);
        let done = match roll(2) {
            0 => placed(runtime, launch).map(Placed::Echo),
            _ => placed(runtime, launch).map(Placed::VectorAdd),
        };
        match done {
            Ok(kernel) => {
                live.push(kernel);
                accepted += 1;
            }
            Err(error) => {
                names_the_numbers(&error);
                refused += 1;
                // Nothing waits for what was refused.
                if let Some(some) = live.last_mut() {
                    some.answers();
                }
            }
        }
    }
    println!("{}: {accepted} accepted, {refused} refused", runtime.device().name);
    assert!(accepted > 0 && refused > 0, "{accepted} accepted, {refused} refused");
}
