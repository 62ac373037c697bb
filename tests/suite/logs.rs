//! What the host logs, by a subscriber that keeps each event: level, message, and the values of its fields. A subscriber is for one
//! thread. The host logs on the thread that calls it, which here is the test's own, and the CPU device's threads log nothing.

use ring_host::device::Quirks;
use ring_host::device::cpu::Cpu;
use ring_host::kernels::{Echo, EchoMessage};
use ring_host::{
    ControlError, LaunchConfig, LaunchError, Memory, Mode, RecvTimeoutError, RestartPolicy,
    Runtime, RuntimeConfig, Supervisor,
};
use ring_tests::{LONG, Unlucky, active, exchange, opened, until};
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::{DefaultGuard, set_default};
use tracing::{Dispatch, Event, Level, Metadata, Subscriber};

/// An event that was logged.
#[derive(Clone, Debug)]
struct Logged {
    level: Level,
    target: String,
    /// By their names; the message is one of them.
    fields: BTreeMap<&'static str, String>,
}

impl Logged {
    fn is(&self, level: Level, message: &str) -> bool {
        self.level == level && self.fields["message"] == message
    }
}

impl Visit for Logged {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.fields.insert(field.name(), value.to_owned());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.fields.insert(field.name(), format!("{value:?}"));
    }
}

/// Keeps what the thread logs, until it is dropped.
struct Log {
    events: Kept,
    _default: DefaultGuard,
}

#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Vec<Logged>>>);

impl Subscriber for Kept {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }
    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, event: &Event<'_>) {
        let (level, target) = (*event.metadata().level(), event.metadata().target().to_owned());
        let mut logged = Logged { level, target, fields: BTreeMap::new() };
        event.record(&mut logged);
        self.0.lock().unwrap().push(logged);
    }
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

/// A subscriber that is never anybody's. While there is only one, an event that another thread, which has none, is the first to log
/// is logged for nobody from then on (`tracing-core` asks that thread's subscriber whether anybody wants it).
static SECOND: LazyLock<Dispatch> = LazyLock::new(|| Dispatch::new(Kept::default()));

impl Log {
    fn begin() -> Log {
        LazyLock::force(&SECOND);
        let events = Kept::default();
        let default = set_default(events.clone());
        Log { events, _default: default }
    }

    /// What was logged since the last call; all of it is the host's.
    fn take(&self) -> Vec<Logged> {
        let events = std::mem::take(&mut *self.events.0.lock().unwrap());
        let of_host = |event: &Logged| event.target.split("::").next() == Some("ring_host");
        assert!(events.iter().all(of_host), "{events:#?}");
        events
    }

    fn has(&self, level: Level, message: &str) -> bool {
        self.events.0.lock().unwrap().iter().any(|event| event.is(level, message))
    }
}

/// The fields of each event of that message; some are checked to have the values that are given.
#[track_caller]
fn all_of<'a>(
    events: &'a [Logged],
    (level, message): (Level, &str),
    expected: &[(&str, &str)],
) -> Vec<&'a BTreeMap<&'static str, String>> {
    let found: Vec<_> =
        events.iter().filter(|event| event.is(level, message)).map(|event| &event.fields).collect();
    for fields in &found {
        for (name, value) in expected {
            assert_eq!(
                fields.get(name).map(|found| &**found),
                Some(*value),
                "{name} of {fields:?}"
            );
        }
    }
    found
}

/// The fields of the event of that message; there is one.
#[track_caller]
fn one_of<'a>(
    events: &'a [Logged],
    event: (Level, &str),
    expected: &[(&str, &str)],
) -> &'a BTreeMap<&'static str, String> {
    let found = all_of(events, event, expected);
    let [one] = found[..] else { panic!("{} of {event:?}: {events:#?}", found.len()) };
    one
}

/// None tells of trouble.
#[track_caller]
fn are_calm(events: &[Logged]) {
    assert!(events.iter().all(|event| event.level > Level::WARN), "{events:#?}");
}

fn quirks() -> Quirks {
    Quirks::of(Cpu::open())
}

/// The fault that a receiver finds, in words.
fn fault_of(end: Result<u64, RecvTimeoutError>) -> String {
    match end {
        Err(RecvTimeoutError::Fault(fault)) => fault.to_string(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_event_is_kept_that_a_thread_without_a_subscriber_has_logged_first() {
    let says = || tracing::info!(target: "ring_host", "said");
    let log = Log::begin();
    std::thread::spawn(says).join().unwrap();
    says();
    one_of(&log.take(), (Level::INFO, "said"), &[]);
}

#[test]
fn a_kernel_from_its_launch_to_its_end() {
    let log = Log::begin();
    let mut host = opened(&quirks(), RuntimeConfig::default());
    let device = host.device().name.clone();
    let events = log.take();
    let opened = (Level::INFO, "device opened");
    let why = ("why", "given by the caller");
    assert!(!all_of(&events, opened, &[("device", &device), why]).is_empty(), "{events:#?}");
    // A busy machine has it probed again.
    let probed = all_of(&events, (Level::INFO, "device probed"), &[("device", &device)]);
    assert!(cfg!(miri) || probed.last().unwrap()["certain"] == "true", "{events:#?}");
    // A probe has kernels of its own, which are not the user's.
    let launched = (Level::INFO, "launched");
    assert!(all_of(&events, launched, &[]).is_empty(), "{events:#?}");

    let launch = LaunchConfig::default().mode(Mode::Persistent).memory(Memory::Mapped);
    let mut kernel = host.launch::<Echo>(launch.channels(2).capacity(64)).unwrap();
    let events = log.take();
    let (mode, memory) = kernel.runs_as();
    let (mode, memory) = (mode.to_string(), memory.to_string());
    let fields = one_of(
        &events,
        launched,
        &[
            ("kernel", "echo"),
            ("device", &device),
            ("mode", &mode),
            ("memory", &memory),
            ("channels", "2"),
            ("blocks", "2"),
        ],
    );
    assert!(fields["window"].parse::<u32>().unwrap() > 0, "{fields:?}");
    are_calm(&events);

    kernel.activate(LONG).unwrap();
    let asked = [("kernel", "echo"), ("asked", "Active")];
    let fields = one_of(&log.take(), (Level::DEBUG, "acknowledged"), &asked).clone();
    assert!(fields.contains_key("waited"), "{fields:?}");

    // Messages go their way without any event.
    let count = if cfg!(miri) { 3 } else { 100 };
    (0..count).for_each(|seed| exchange(&mut kernel, seed));
    let events = log.take();
    assert!(events.is_empty(), "{events:#?}");

    kernel.terminate(LONG).unwrap();
    let events = log.take();
    let processed = count.to_string();
    let ended = [("kernel", "echo"), ("processed", &*processed), ("unhandled", "0")];
    one_of(&events, (Level::INFO, "terminated"), &ended);
    are_calm(&events);
    drop(kernel);
    assert!(log.take().is_empty());

    assert!(!host.recover(LONG).unwrap().reopened);
    let recovered = [("device", &*device), ("reopened", "false"), ("set_aside", "0")];
    let events = log.take();
    one_of(&events, (Level::INFO, "device recovered"), &recovered);
    are_calm(&events);
}

#[test]
fn a_kernel_that_is_lost() {
    let log = Log::begin();
    let host = opened(&quirks(), RuntimeConfig::default());
    let mut kernel = host.launch::<Unlucky>(LaunchConfig::default()).unwrap();
    kernel.activate(LONG).unwrap();
    log.take();
    kernel.send(13, LONG).unwrap();
    let fault = fault_of(kernel.recv(LONG));
    assert!(kernel.send(1, LONG).is_err() && kernel.terminate(LONG).is_err());
    // Once, however often it is found.
    let lost = [("kernel", "unlucky"), ("device", &*host.device().name), ("fault", &*fault)];
    one_of(&log.take(), (Level::ERROR, "kernel lost"), &lost);
}

#[test]
fn a_kernel_that_is_launched_again_until_its_supervisor_gives_up() {
    let log = Log::begin();
    let host = opened(&quirks(), RuntimeConfig::default());
    let policy = RestartPolicy::default().at_most(2, 10 * LONG).pause(Duration::ZERO);
    let launch = LaunchConfig::default();
    let mut one = Supervisor::<Unlucky>::launch(&host, launch, policy, LONG).unwrap();
    let lose = |one: &mut Supervisor<Unlucky>| {
        let kernel = one.kernel().unwrap();
        kernel.send(13, LONG).unwrap();
        fault_of(kernel.recv(LONG))
    };
    for restarts in ["1", "2"] {
        log.take();
        let fault = lose(&mut one);
        one.restart(LONG).unwrap();
        let events = log.take();
        one_of(&events, (Level::ERROR, "kernel lost"), &[("kernel", "unlucky"), ("fault", &fault)]);
        one_of(&events, (Level::INFO, "launched"), &[("kernel", "unlucky")]);
        let again = [("kernel", "unlucky"), ("fault", &*fault), ("restarts", restarts)];
        one_of(&events, (Level::WARN, "launched again"), &again);
    }
    let fault = lose(&mut one);
    let error = one.restart(LONG).unwrap_err().to_string();
    let gave_up = [("kernel", "unlucky"), ("fault", &*fault), ("error", &*error)];
    let events = log.take();
    one_of(&events, (Level::ERROR, "not launched again"), &gave_up);
    assert!(!events.iter().any(|event| event.is(Level::WARN, "launched again")), "{events:#?}");
}

#[test]
fn a_launch_that_cannot_be() {
    let log = Log::begin();
    let host = opened(&quirks().no_graphs(), RuntimeConfig::default());
    log.take();
    let error = host.launch::<Echo>(LaunchConfig::default().mode(Mode::Graph)).unwrap_err();
    assert!(matches!(error, LaunchError::Unfit { .. }), "{error}");
    let refused = [("kernel", "echo"), ("error", &*error.to_string())];
    one_of(&log.take(), (Level::WARN, "launch refused"), &refused);
}

/// The driver refuses the first way; the kernel is launched in the next one.
#[test]
fn a_launch_by_another_way() {
    let log = Log::begin();
    let host = opened(&quirks().refused_launches(1..=1), RuntimeConfig::default());
    log.take();
    let kernel = host.launch::<Echo>(LaunchConfig::default()).unwrap();
    let refusal = kernel.selection().refused.last().unwrap();
    let (mode, memory) = (refusal.mode.to_string(), refusal.memory.to_string());
    let failed = [("kernel", "echo"), ("mode", &*mode), ("memory", &*memory)];
    let events = log.take();
    let fields = one_of(&events, (Level::WARN, "launch failed in this mode and memory"), &failed);
    assert!(fields["error"].contains("quirk"), "{fields:?}");
    let (mode, memory) = kernel.runs_as();
    let (mode, memory) = (mode.to_string(), memory.to_string());
    let launched = [("kernel", "echo"), ("mode", &*mode), ("memory", &*memory)];
    one_of(&events, (Level::INFO, "launched"), &launched);
}

#[test]
fn a_kernel_that_goes_on_without_copies_beside_it() {
    let log = Log::begin();
    let host = opened(&quirks().unmapped().failing_copies_beside(1), RuntimeConfig::default());
    let mut kernel = active(&host, LaunchConfig::default().mode(Mode::EventDriven));
    assert_eq!(kernel.selection().memory, Memory::StagedAsync);
    let fell_back = (Level::WARN, "fell back");
    let mut seed = 0;
    until("a copy beside a launch", || {
        exchange(&mut kernel, seed);
        seed += 1;
        log.has(fell_back.0, fell_back.1).then_some(())
    });
    (0..10).for_each(|seed| exchange(&mut kernel, seed));
    let to = [("kernel", "echo"), ("mode", "event-driven"), ("memory", "staged-sync")];
    let events = log.take();
    let fields = one_of(&events, fell_back, &to);
    assert!(fields["error"].contains("copies beside a launch fail by now"), "{fields:?}");
}

/// Each of its launches fails, from the first on: two are followed by another try, the third by none.
#[test]
fn launches_that_fail_again_and_again() {
    let log = Log::begin();
    let host = opened(&quirks().refused_launches(2..), RuntimeConfig::default());
    let launch = LaunchConfig::default().mode(Mode::EventDriven).memory(Memory::Mapped);
    let mut kernel = host.launch::<Echo>(launch).unwrap();
    log.take();
    let ControlError::Fault(fault) = kernel.activate(LONG).unwrap_err() else { panic!("no fault") };
    let events = log.take();
    let retried = all_of(&events, (Level::WARN, "will be retried"), &[("kernel", "echo")]);
    let failures: Vec<_> = retried.iter().map(|fields| &*fields["failures"]).collect();
    assert_eq!(failures, ["1", "2"], "{events:#?}");
    assert!(retried.iter().all(|fields| fields["error"].contains("quirk")), "{retried:?}");
    let lost = [("kernel", "echo"), ("fault", &*fault.to_string())];
    one_of(&events, (Level::ERROR, "kernel lost"), &lost);
}

#[test]
fn a_device_that_was_reset() {
    let log = Log::begin();
    let device = quirks().reset_after(100); // more than a kernel of the probe handles
    let mut host = Runtime::over(device, RuntimeConfig::default()).unwrap();
    let launch = LaunchConfig::default().mode(Mode::Persistent).memory(Memory::Mapped);
    let mut kernel = active(&host, launch);
    let fault = until("the reset", || {
        let request = EchoMessage::from_seed(0);
        kernel
            .send(request, LONG)
            .err()
            .map(|error| error.to_string())
            .or_else(|| kernel.recv(LONG).err().map(|error| error.to_string()))
    });
    drop(kernel);
    log.take();
    assert!(host.recover(LONG).unwrap().reopened, "{fault}");
    let recovered = [("device", &*host.device().name), ("reopened", "true")];
    one_of(&log.take(), (Level::INFO, "device recovered"), &recovered);
}
