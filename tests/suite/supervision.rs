//! Snapshots of a kernel's state, on the host and in files, and kernels that are launched again after a fault: what the state knows of
//! and what it does not is told to the message.

use crate::faults::on_each_device_alone;
use ring_device::ring_kernel;
use ring_example_kernels::Ticker;
use ring_host::device::cpu::Cpu;
use ring_host::device::quirks::Quirks;
use ring_host::kernels::{Echo, EchoMessage};
use ring_host::{
    DeviceFault, LaunchConfig, Mode, RecvTimeoutError, Restart, RestartError, RestartPolicy,
    RestoreError, Runtime, RuntimeConfig, SendTimeoutError, Snapshot, SnapshotFileError,
    StateError, Supervisor,
};
use ring_tests::kernels::{bears_panics, of_examples};
use ring_tests::{LONG, WAYS, cpu, until};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

ring_kernel! {
    /// Adds up numbers, but for 13. For the CPU device only.
    pub struct Adder {
        name: "adder",
        entry: "ring_echo",
    }

    fn handle(sum: &mut [u64; 2], request: &u64) -> u64 {
        assert_ne!(*request, 13, "a request that the handler cannot bear");
        let [count, total] = sum;
        *count += 1;
        *total += *request;
        *total
    }
}

ring_kernel! {
    /// The same with another state.
    pub struct Small {
        name: "adder",
        entry: "ring_echo",
    }

    fn handle(sum: &mut u64, request: &u64) -> u64 {
        *sum += *request;
        *sum
    }
}

/// Longer than any test runs.
const HOUR: Duration = Duration::from_secs(3600);

/// A policy that never gives up.
fn always() -> RestartPolicy {
    RestartPolicy::default().at_most(u32::MAX, HOUR)
}

fn adder(host: &Runtime, policy: RestartPolicy) -> Supervisor<Adder> {
    Supervisor::launch(host, LaunchConfig::default().capacity(64), policy, LONG).unwrap()
}

/// Sends numbers and receives their answers, until the kernel is lost if one of them is 13; the last answer.
fn add(adder: &mut Supervisor<Adder>, numbers: impl IntoIterator<Item = u64>) -> Option<u64> {
    let kernel = adder.kernel().unwrap();
    numbers
        .into_iter()
        .map_while(|number| {
            kernel.send(number, LONG).unwrap();
            match kernel.recv(LONG) {
                Ok(sum) => Some(sum),
                Err(RecvTimeoutError::Fault(_)) => None,
                Err(error) => panic!("{error}"),
            }
        })
        .last()
}

/// A folder of the test's own, which is removed with what is in it.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let name = format!("ring-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn files(&self) -> usize {
        fs::read_dir(&self.0).unwrap().count()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Messages run meanwhile, on two channels: each channel's state has as many as the snapshot says.
#[test]
fn a_snapshot_is_of_one_moment_between_messages() {
    on_each_device_alone(here!("a_snapshot_is_of_one_moment_between_messages"), |host| {
        for (mode, memory) in WAYS {
            let launch = LaunchConfig::default().mode(mode).memory(memory).channels(2);
            let launch = launch.capacity(64).kernels(of_examples::<Ticker>());
            let mut kernel = host.launch::<Ticker>(launch.clone()).unwrap();
            kernel.activate(LONG).unwrap();
            let shared = kernel.share();
            let ends = AtomicBool::new(false);
            let last = std::thread::scope(|scope| {
                for channel in 0..2 {
                    let mut channel = kernel.take_channel(channel).unwrap();
                    let ends = &ends;
                    scope.spawn(move || {
                        let mut sent = 0;
                        while !ends.load(Relaxed) || sent < 100 {
                            channel.send(0, LONG).unwrap();
                            sent += 1;
                            assert_eq!(channel.recv(LONG).unwrap().messages, sent);
                        }
                    });
                }
                let mut handled = [0; 2];
                let mut last = None;
                for _ in 0..20 {
                    let snapshot = shared.snapshot(LONG).unwrap();
                    assert_eq!(snapshot.channels(), 2);
                    for (channel, handled) in (0..).zip(&mut handled) {
                        let found = snapshot.handled(channel).unwrap();
                        let state = snapshot.state(channel).unwrap();
                        assert_eq!(state.messages, found, "{channel}, {mode} in {memory}");
                        assert!(found >= *handled, "{found} after {handled}");
                        *handled = found;
                    }
                    last = Some(snapshot);
                }
                ends.store(true, Relaxed);
                last.unwrap()
            });
            assert!(last.state(2).is_none() && last.handled(2).is_none());
            kernel.terminate(LONG).unwrap();
            assert_eq!(
                shared.snapshot(LONG).unwrap().handled(0),
                Some(shared.channel_telemetry(0).unwrap().processed)
            );
            // Another launch goes on with it.
            let mut kernel = host.launch::<Ticker>(launch).unwrap();
            kernel.restore(&last, LONG).unwrap();
            assert_eq!(kernel.read_state(1, LONG).unwrap(), last.state(1).unwrap());
            kernel.activate(LONG).unwrap();
            for channel in 0..2 {
                let next = last.state(channel).unwrap().messages + 1;
                let channel = kernel.channel(channel).unwrap();
                channel.send(0, LONG).unwrap();
                assert_eq!(channel.recv(LONG).unwrap().messages, next);
            }
            let active = kernel.restore(&last, LONG).unwrap_err();
            assert_eq!(active, RestoreError::State(StateError::Active { kernel: "ticker" }));
            kernel.terminate(LONG).unwrap();
        }
    });
}

#[test]
fn a_file_is_of_its_kernel_version_and_state() {
    let (folder, host) = (Folder::new("snapshot-file"), cpu());
    let path = folder.0.join("adder.snapshot");
    let mut one = adder(&host, always());
    assert_eq!(add(&mut one, [3, 4]), Some(7));
    one.snapshot(LONG).unwrap().save(&path, 6).unwrap();
    // Over an older one.
    assert_eq!(add(&mut one, [5]), Some(12));
    one.snapshot(LONG).unwrap().save(&path, 7).unwrap();
    assert_eq!(folder.files(), 1, "nothing is left beside it");
    let snapshot = Snapshot::<Adder>::load(&path, 7).unwrap();
    assert_eq!((snapshot.handled(0), snapshot.state(0)), (Some(3), Some([3, 12])));
    let launch = LaunchConfig::default();
    let mut other =
        Supervisor::launch_from(&host, launch.clone(), always(), snapshot.clone(), LONG).unwrap();
    assert_eq!(add(&mut other, [8]), Some(20));

    let wrong = SnapshotFileError::Version { path: path.clone(), found: 7, own: 8 };
    assert_eq!(Snapshot::<Adder>::load(&path, 8).unwrap_err(), wrong);
    let wrong = SnapshotFileError::StateBytes { path: path.clone(), found: 16, own: 8 };
    assert_eq!(Snapshot::<Small>::load(&path, 7).unwrap_err(), wrong);
    let found = "adder".to_owned();
    let wrong = SnapshotFileError::Kernel { path: path.clone(), found, own: "ticker" };
    assert_eq!(Snapshot::<Ticker>::load(&path, 7).unwrap_err(), wrong);
    let wrong = Supervisor::launch_from(&host, launch.channels(2), always(), snapshot, LONG);
    let channels = RestoreError::Channels { kernel: "adder", found: 1, own: 2 };
    assert_eq!(wrong.unwrap_err(), RestartError::Restore(channels));

    let mut bytes = fs::read(&path).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    let damaged = folder.0.join("damaged");
    fs::write(&damaged, bytes).unwrap();
    let wrong = Snapshot::<Adder>::load(&damaged, 7).unwrap_err();
    assert_eq!(wrong, SnapshotFileError::Damaged { path: damaged });
    assert!(wrong.to_string().contains("checksum"), "{wrong}");
}

/// The kernel goes on, and what was at the path stays.
#[test]
fn a_file_that_cannot_be_written_or_read_is_told() {
    let (folder, host) = (Folder::new("snapshot-refused"), cpu());
    let mut one = adder(&host, always());
    assert_eq!(add(&mut one, [3]), Some(3));
    let snapshot = one.snapshot(LONG).unwrap().clone();
    let refused = |path: &Path, found: Result<(), SnapshotFileError>, asked: &str| {
        let error = found.unwrap_err();
        let SnapshotFileError::Io { path: named, doing, kind, .. } = &error else {
            panic!("{error}")
        };
        assert_eq!((named.as_path(), *doing), (path, asked));
        assert!(error.to_string().contains(&path.display().to_string()), "{error}");
        *kind
    };
    let absent = folder.0.join("absent").join("adder.snapshot");
    let load = |path: &Path| Snapshot::<Adder>::load(path, 1).map(drop);
    assert_eq!(refused(&absent, snapshot.save(&absent, 1), "written"), ErrorKind::NotFound);
    assert_eq!(refused(&absent, load(&absent), "read"), ErrorKind::NotFound);
    // A folder does not give way.
    let taken = folder.0.join("taken");
    fs::create_dir_all(taken.join("inner")).unwrap();
    refused(&taken, snapshot.save(&taken, 1), "written");
    refused(&taken, load(&taken), "read");
    refused(Path::new("/"), snapshot.save("/", 1), "written");
    assert_eq!(folder.files(), 1, "nothing is left beside it");
    assert!(taken.join("inner").is_dir());
    assert_eq!(add(&mut one, [4]), Some(7));
}

/// Of each fault it is told to the message what the state knows of, and what was answered.
#[test]
fn it_is_launched_again_with_its_last_snapshot() {
    let host = cpu();
    for (mode, memory) in WAYS {
        let launch = LaunchConfig::default().mode(mode).memory(memory).capacity(64);
        is_launched_again(Supervisor::launch(&host, launch, always(), LONG).unwrap());
    }
}

fn is_launched_again(mut one: Supervisor<Adder>) {
    // What the kernel has added up, what its last snapshot has, and messages that the launch has handled.
    let (mut total, mut kept, mut handled) = (0, 0, 0);
    for n in 0..20 {
        let mut adds = |one: &mut Supervisor<Adder>, count: u64, handled: &mut u64| {
            for number in 100..100 + count {
                total += number;
                *handled += 1;
                assert_eq!(add(one, [number]), Some(total));
            }
            total
        };
        let sum = adds(&mut one, n % 4, &mut handled);
        let mut in_state = 0;
        if n % 5 != 4 {
            let snapshot = one.snapshot(LONG).unwrap();
            assert_eq!((snapshot.handled(0), snapshot.state(0).unwrap()[1]), (Some(handled), sum));
            (kept, in_state) = (sum, handled);
        }
        adds(&mut one, n % 3, &mut handled);
        // Two more behind the one that it cannot bear; they may be refused, if the fault is known by then.
        let kernel = one.kernel().unwrap();
        let sent = (0..3).take_while(|k| kernel.try_send(13 + k).is_ok()).count() as u64;
        assert!(sent >= 1);
        let end = kernel.recv(LONG).unwrap_err();
        assert!(matches!(end, RecvTimeoutError::Fault(DeviceFault::HandlerPanicked { .. })));

        let Restart { channels, reopened, fault, .. } = one.restart(LONG).unwrap();
        assert_eq!((RecvTimeoutError::Fault(fault), reopened), (end, false));
        let [lost] = channels.try_into().unwrap();
        assert_eq!(lost.not_in_state(), in_state..handled + sent, "{n}");
        assert_eq!(lost.not_received(), handled..handled + sent, "{n}");
        assert_eq!(one.restart(LONG), Err(RestartError::NotLost { kernel: "adder" }));
        (total, handled) = (kept, 1);
        assert_eq!(add(&mut one, [0]), Some(total), "{n}");
    }
}

#[test]
fn on_every_device() {
    on_each_device_alone(here!("on_every_device"), |host| {
        if host.device().kind == ring_host::DeviceKind::Cuda
            && !bears_panics::<Ticker>("supervision")
        {
            return;
        }
        let launch = LaunchConfig::default().kernels(of_examples::<Ticker>());
        let mut one = Supervisor::<Ticker>::launch(host, launch, always(), LONG).unwrap();
        for n in 0..10 {
            let kernel = one.kernel().unwrap();
            for _ in 0..3 {
                kernel.send(0, LONG).unwrap();
                kernel.recv(LONG).unwrap();
            }
            let messages = one.snapshot(LONG).unwrap().state(0).unwrap().messages;
            assert_eq!(messages, 3 * (n + 1));
            let kernel = one.kernel().unwrap();
            kernel.send(1, LONG).unwrap(); // the next tick panics
            kernel.recv(LONG).unwrap();
            let end = kernel.recv(LONG).unwrap_err();
            let restart = one.restart(LONG).unwrap();
            assert_eq!(RecvTimeoutError::Fault(restart.fault), end);
            assert_eq!(restart.channels[0].not_in_state(), 3..4, "{n}");
            assert_eq!(restart.channels[0].not_received(), 4..4, "{n}");
        }
        one.into_kernel().unwrap().terminate(LONG).unwrap();
    });
}

#[test]
fn it_gives_up_when_its_policy_says_so() {
    let host = cpu();
    let policy = RestartPolicy::default().at_most(2, HOUR).pause(Duration::from_millis(1));
    let mut one = adder(&host, policy.from_zero());
    add(&mut one, [1, 2]);
    one.snapshot(LONG).unwrap();
    for _ in 0..2 {
        assert_eq!(add(&mut one, [13]), None);
        let restart = one.restart(LONG).unwrap();
        assert_eq!(restart.channels[0].in_state, 0, "from zero");
        assert_eq!(add(&mut one, [5]), Some(5));
    }
    assert_eq!(add(&mut one, [13]), None);
    let error = one.restart(LONG).unwrap_err();
    let RestartError::GaveUp { restarts: 2, within: HOUR, fault } = &error else {
        panic!("{error}")
    };
    assert!(error.to_string().contains("2 times"), "{error}");
    // The lost kernel is still there to be asked.
    let refused = one.kernel().unwrap().send(1, LONG).unwrap_err();
    assert_eq!(refused, SendTimeoutError::Fault { message: 1, fault: fault.clone() });

    let never = RestartPolicy::default().at_most(0, HOUR);
    let mut one = adder(&host, never);
    add(&mut one, [13]);
    assert!(matches!(one.restart(LONG), Err(RestartError::GaveUp { restarts: 0, .. })));
}

/// Restarts that are long ago do not count.
#[test]
fn only_restarts_within_the_time_count() {
    let host = cpu();
    let short = Duration::from_millis(5);
    let mut one = adder(&host, RestartPolicy::default().at_most(1, short));
    for _ in 0..3 {
        assert_eq!(add(&mut one, [13]), None);
        std::thread::sleep(2 * short);
        one.restart(LONG).unwrap();
    }
}

/// A launch that is refused leaves no kernel, says why, and may be tried again; then what was lost is told.
#[test]
fn a_launch_that_is_refused_is_tried_again() {
    // The first two are of the launch below; a restart tries twice, and in between a trial of the device.
    let device = Quirks::of(Cpu::open()).refused_launches(3..=60);
    let host = Runtime::over(device, RuntimeConfig::default()).unwrap();
    let launch = LaunchConfig::default().mode(Mode::Persistent);
    let mut one = Supervisor::<Adder>::launch(&host, launch, always(), LONG).unwrap();
    add(&mut one, [1]);
    one.snapshot(LONG).unwrap();
    assert_eq!(add(&mut one, [2, 13]), Some(3));
    let refused = one.restart(LONG).unwrap_err();
    assert!(matches!(refused, RestartError::Recover(_) | RestartError::Launch(_)), "{refused}");
    assert_eq!(one.kernel().unwrap_err(), refused);
    let mut tries = 0;
    let restart = until("a launch that is taken", || {
        tries += 1;
        one.restart(LONG).ok()
    });
    assert!(tries > 1);
    assert_eq!(restart.channels[0].not_in_state(), 1..3);
    assert_eq!(add(&mut one, [4]), Some(5));
}

/// Kernels without a state are launched again, too; and a device that was reset is opened anew.
#[test]
fn after_a_reset_of_the_device() {
    let device = Quirks::of(Cpu::open()).reset_after(100);
    let host = Runtime::over(device, RuntimeConfig::default()).unwrap();
    let launch = LaunchConfig::default().capacity(64);
    let mut one = Supervisor::<Echo>::launch(&host, launch, always(), LONG).unwrap();
    let mut received = 0;
    let restart = until("the reset", || {
        let kernel = one.kernel().unwrap();
        let request = EchoMessage::from_seed(received);
        if kernel.send(request, LONG).is_ok() && kernel.recv(LONG) == Ok(request.answer()) {
            received += 1;
            return None;
        }
        Some(one.restart(LONG).unwrap())
    });
    assert!(restart.reopened, "{restart:?}");
    assert_eq!(restart.channels[0].received, received);
    let request = EchoMessage::from_seed(7);
    one.kernel().unwrap().send(request, LONG).unwrap();
    assert_eq!(one.kernel().unwrap().recv(LONG), Ok(request.answer()));
}
