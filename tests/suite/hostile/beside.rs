//! A thread that writes over the lines of a kernel while it runs: those of the device, against which the host
//! is tested, or those of the host, against which the device is.

use super::{Random, WINDOWS, comes_from_lines, on_each_probed_device};
use crate::faults::promptly;
use ring_host::device::quirks::{Lines, MemoryProbe};
use ring_host::kernels::{Echo, EchoMessage, VectorAdd};
use ring_host::{
    ControlError, DeviceFault, DeviceKind, Exit, Kernel, KernelHandle, LaunchConfig, Memory, Mode,
    PayloadError, Runtime,
};
use ring_tests::{CallError, LONG, StopOnDrop, WAYS, until};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::{Duration, Instant};

/// How long the lines of a kernel are written over.
const STORM: Duration = Duration::from_millis(25);

/// How often at least, however busy the machine is.
const BLOWS: u64 = 300;

/// What a call waits at most while lines are written over.
const SHORT: Duration = Duration::from_millis(2);

/// Rounds in each way.
const ROUNDS: usize = if cfg!(debug_assertions) { 9 } else { 36 };

/// A kernel beside those whose lines are written over; it must answer as if nothing happened.
struct Witness {
    kernel: KernelHandle<VectorAdd>,
    kept: Vec<u32>,
}

impl Witness {
    /// The first kernel of its device.
    fn launch(host: &Runtime) -> Witness {
        let launch = LaunchConfig::default().capacity(4).payload_bytes(4096);
        let mut kernel = host.launch::<VectorAdd>(launch).unwrap();
        kernel.activate(LONG).unwrap();
        let kept: Vec<u32> = (0..512).map(|n| n * 0x9e37 + 1).collect();
        kernel.write_payload(2048, &kept, LONG).unwrap();
        Witness { kernel, kept }
    }

    fn is_sound(&mut self) {
        let (a, b, mut c) = ([1.5; 60], [2.25; 60], [0.0; 60]);
        self.kernel.add(&a, &b, &mut c, LONG).unwrap();
        assert_eq!(c, [3.75; 60]);
        let mut kept = vec![0; self.kept.len()];
        self.kernel.read_payload(2048, &mut kept, LONG).unwrap();
        assert!(kept == self.kept, "the payload of a kernel beside it");
        let summary = self.kernel.summary();
        assert_eq!(summary.unhandled, 0);
    }
}

/// Writes over lines of the newest kernel but the first beside `work`, which is shown how often that was done.
fn storm(
    memory_probe: &MemoryProbe,
    spoil: impl Fn(&Random, &Lines<'_>) + Sync,
    work: impl FnOnce(&AtomicU64),
) {
    let (over, blows) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|threads| {
        threads.spawn(|| {
            let random = Random::new();
            while !over.load(Relaxed) {
                memory_probe.look(|kernels| {
                    // The device may still be leaving the one before it.
                    let Some(channels) = kernels.get(1..).and_then(<[_]>::last) else { return };
                    for _ in 0..1 + random.below(3) {
                        spoil(&random, &channels[random.below(channels.len())]);
                        blows.fetch_add(1, Relaxed);
                    }
                });
                (0..random.below(2000)).for_each(|_| std::hint::spin_loop());
            }
        });
        let _over = StopOnDrop(&over);
        work(&blows);
    });
}

/// All memory is given back when kernels have left that were dropped.
fn is_given_back(host: &Runtime) {
    let all = LaunchConfig::default().capacity(1024).memory(Memory::Mapped);
    until("the memory of what was dropped", || match host.launch::<Echo>(all.clone()) {
        Ok(mut kernel) => kernel.terminate(LONG).ok(),
        Err(_) => None,
    });
}

/// Asserts that a fault is one that lines can cause; none of these handlers panics, so no channel may.
fn bears_it(fault: &DeviceFault) {
    comes_from_lines(fault);
    assert!(!matches!(fault, DeviceFault::HandlerPanicked { .. }), "{fault}");
}

/// A user who makes random calls until lines are written over no more, or a little beyond the first fault, and
/// accepts the errors that it may return.
fn use_it(kernel: &mut KernelHandle<Echo>, random: &Random, blows: &AtomicU64) {
    let (begun, mut fault) = (Instant::now(), None);
    let requests = [0, 1, 2, 3, 4, 5, 6, 7].map(EchoMessage::from_seed);
    let mut answers = [EchoMessage::from_seed(0); 8];
    let goes_on = |fault: &Option<Instant>| match fault {
        Some(since) => since.elapsed() < SHORT,
        None => begun.elapsed() < STORM || blows.load(Relaxed) < BLOWS,
    };
    while goes_on(&fault) {
        assert!(begun.elapsed() < LONG, "the machine does nothing else");
        let channel = random.below(kernel.channels() as usize) as u32;
        let found = promptly("a call", || match random.below(9) {
            0 => of_send((0..8).try_for_each(|_| {
                let sent = kernel.channel(channel).unwrap().try_send_batch(&requests);
                sent.map(|_| std::hint::spin_loop())
            })),
            1 => of_send(requests.iter().try_for_each(|request| {
                kernel.channel(channel).unwrap().send(*request, SHORT / 4)
            })),
            2 => of_send(
                kernel.channel(channel).unwrap().try_send_each(5, |k| requests[k]).map(drop),
            ),
            3 => of_recv(kernel.channel(channel).unwrap().recv(SHORT).map(drop)),
            4 => of_recv(kernel.channel(channel).unwrap().try_recv_batch(&mut answers).map(drop)),
            5 => of_control(kernel.activate(SHORT)),
            6 => {
                let _ = (kernel.status(), kernel.summary(), kernel.telemetry());
                None
            }
            7 => of_control(kernel.rest(SHORT)),
            _ => match kernel.write_payload(0, &[0u32; 0], SHORT) {
                Ok(()) | Err(PayloadError::Timeout { .. }) => None,
                Err(PayloadError::Fault(fault)) => Some(fault),
                Err(error) => panic!("{error}"),
            },
        });
        if let Some(found) = found {
            bears_it(&found);
            fault.get_or_insert_with(Instant::now);
        }
    }
}

fn of_send<T>(sent: Result<(), impl Into<CallError<T>>>) -> Option<DeviceFault> {
    match sent.map_err(|error| error.into().without_message()) {
        Ok(()) | Err(CallError::Full(())) => None,
        Err(CallError::Fault(fault)) => Some(fault),
        Err(error) => panic!("{error}"),
    }
}

fn of_recv(received: Result<(), impl Into<CallError>>) -> Option<DeviceFault> {
    match received.map_err(Into::into) {
        Ok(()) | Err(CallError::Late { .. }) => None,
        Err(CallError::Fault(fault)) => Some(fault),
        Err(error) => panic!("{error}"),
    }
}

fn of_control(done: Result<(), ControlError>) -> Option<DeviceFault> {
    match done {
        Ok(()) | Err(ControlError::Timeout { .. } | ControlError::Staying { .. }) => None,
        Err(ControlError::Fault(fault)) => Some(fault),
        Err(error) => panic!("{error}"),
    }
}

/// Rounds with each number of lines that a kernel can have there.
fn rounds(way: (Mode, Memory)) -> impl Iterator<Item = (u32, usize)> {
    let has_window = way == (Mode::Persistent, Memory::Mapped);
    let windows = if has_window { &WINDOWS[..] } else { &[1] };
    windows.iter().flat_map(|window| (0..ROUNDS).map(move |round| (*window, round)))
}

/// Two channels of few slots, or of as many as there are lines.
fn launch((mode, memory): (Mode, Memory), window: u32) -> LaunchConfig {
    let launch = LaunchConfig::default().mode(mode).memory(memory).channels(2);
    launch.capacity(window.max(16)).window(window)
}

/// A kernel of two channels that has answered a message on each.
fn at_work(host: &Runtime, launch: LaunchConfig) -> KernelHandle<Echo> {
    let mut kernel = host.launch::<Echo>(launch).unwrap();
    kernel.activate(LONG).unwrap();
    for channel in 0..2 {
        let (channel, request) =
            (kernel.channel(channel).unwrap(), EchoMessage::from_seed(channel.into()));
        channel.send(request, LONG).unwrap();
        assert_eq!(channel.recv(LONG).unwrap(), request.answer());
    }
    kernel
}

/// Writes over channel 0's call to leave may keep another channel from ever seeing it: that channel stays, and
/// with it what it uses.
#[test]
fn whatever_is_written_over_the_lines_of_a_device_the_host_stays_sound() {
    on_each_probed_device(|memory_probe, host| {
        let mut witness = Witness::launch(host);
        let random = Random::new();
        for (mode, memory) in WAYS {
            if memory != Memory::Mapped && host.device().kind == DeviceKind::Cuda {
                continue; // its copy is where the host cannot write
            }
            for (window, round) in rounds((mode, memory)) {
                let launch = launch((mode, memory), window);
                let mut kernel = at_work(host, launch);
                assert_eq!(kernel.window(), window);
                let spoil = |random: &Random, lines: &Lines<'_>| random.spoil_device(lines, round);
                storm(memory_probe, spoil, |blows| use_it(&mut kernel, &random, blows));
                if round % 2 == 0 {
                    let done = promptly("terminating", || kernel.terminate(SHORT));
                    of_control(done.map(drop)).iter().for_each(bears_it);
                }
                promptly("dropping it", || drop(kernel));
                witness.is_sound();
            }
        }
        drop(witness);
        is_given_back(host);
    });
}

/// What a host writes that it should not; how the channel ended, if it did by an error.
fn bears<K: Kernel>(
    memory_probe: &MemoryProbe,
    host: &Runtime,
    launch: &LaunchConfig,
    round: usize,
) -> Option<DeviceFault> {
    let mut kernel = host.launch::<K>(launch.clone()).unwrap();
    kernel.activate(LONG).unwrap();
    let spoil = |random: &Random, lines: &Lines<'_>| random.spoil_host(lines, round);
    storm(memory_probe, spoil, |blows| {
        until("some blows", || (blows.load(Relaxed) >= BLOWS).then_some(()));
    });
    let done = promptly("terminating", || kernel.terminate(LONG));
    let fault = of_control(done.map(drop));
    fault.iter().for_each(bears_it);
    promptly("dropping it", || drop(kernel));
    fault
}

/// The channel ends by its own checks, or acknowledges the last command.
#[test]
fn whatever_is_written_over_the_lines_of_a_host_the_device_stays_sound() {
    on_each_probed_device(|memory_probe, host| {
        let mut witness = Witness::launch(host);
        let is_corrupt = |end: &Option<DeviceFault>| {
            matches!(end, Some(DeviceFault::Left { exit: Exit::CorruptRing, .. }))
        };
        let mut corrupt = [false; WINDOWS.len()];
        for (mode, memory) in WAYS {
            if memory != Memory::Mapped {
                continue; // there it reads what the runtime copied
            }
            for (window, round) in rounds((mode, memory)) {
                let of_window = WINDOWS.iter().position(|lines| *lines == window).unwrap();
                let launch = launch((mode, memory), window);
                let big = launch.clone().payload_bytes(4096);
                let ends = [
                    bears::<Echo>(memory_probe, host, &launch, round),
                    bears::<VectorAdd>(memory_probe, host, &big, round),
                ];
                corrupt[of_window] |= ends.iter().any(is_corrupt);
                witness.is_sound();
            }
        }
        // A device that gets no time while lines are written over finds nothing: then there are more rounds.
        for (window, _) in WINDOWS.iter().zip(corrupt).filter(|(_, corrupt)| !corrupt) {
            let launch = launch((Mode::Persistent, Memory::Mapped), *window);
            let mut round = 0..;
            until("a channel that finds what the host has done to it", || {
                let end = bears::<Echo>(memory_probe, host, &launch, round.next()?);
                is_corrupt(&end).then_some(())
            });
        }
        drop(witness);
        is_given_back(host);
    });
}
