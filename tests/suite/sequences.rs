//! Random sequences of everything that a user can do, in every mode, memory and emulated platform,
//! against a plain model: each accepted message is answered once and in order, or counted as
//! unhandled when the kernel is terminated.

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use ring_host::driver::cpu::Cpu;
use ring_host::driver::quirks::Quirks;
use ring_host::kernels::{Echo, EchoMessage};
use ring_host::{
    Budgets, Launch, Memory, Mode, Options, Processing, RecvError, Resident, Runtime, SendError,
    State,
};
use ring_tests::{LONG, WAYS, cpu, gpu};
use std::time::Duration;

/// What a user does next.
#[derive(Clone, Debug)]
enum Act {
    Send(u64),
    SendBatch(usize),
    Receive(u64),
    ReceiveBatch(usize),
    ReceiveAll,
    Activate,
    Deactivate,
    Pause(u64),
    Rest,
    Telemetry,
    Terminate,
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let act = prop_oneof![
        6 => (1..40u64).prop_map(Act::Send),
        4 => (1..100usize).prop_map(Act::SendBatch),
        5 => (1..40u64).prop_map(Act::Receive),
        3 => (1..100usize).prop_map(Act::ReceiveBatch),
        3 => Just(Act::ReceiveAll),
        3 => Just(Act::Activate),
        2 => Just(Act::Deactivate),
        2 => (0..400u64).prop_map(Act::Pause),
        1 => Just(Act::Rest),
        1 => Just(Act::Telemetry),
        1 => Just(Act::Terminate),
    ];
    prop::collection::vec(act, 1..24)
}

/// How the kernel is launched.
fn launches() -> impl Strategy<Value = Launch> {
    let mut ways = vec![(Mode::Auto, Memory::Auto)];
    ways.extend(WAYS);
    let processing = [Processing::Continuous, Processing::Batch, Processing::Adaptive];
    let budgets = (1..2000u64, prop_oneof![3 => Just(u64::MAX), 1 => 1..200u64], 1..200u64);
    let start = prop_oneof![Just(0), (1u64 << 32) - 60..1 << 32, Just(1 << 40)];
    (
        prop::sample::select(ways),
        prop::sample::select(vec![1u32, 2, 8, 64, 1024]),
        budgets,
        prop::sample::select(processing.to_vec()),
        prop_oneof![Just(u32::MAX), 1..9u32],
        start,
    )
        .prop_map(
            |((mode, memory), capacity, (time, iterations, idle), processing, most, start)| {
                let (time, idle) = (Duration::from_micros(time), Duration::from_micros(idle));
                Launch::default()
                    .mode(mode)
                    .memory(memory)
                    .capacity(capacity)
                    .threads(64)
                    .budgets(Budgets { time, iterations, idle })
                    .processing(processing)
                    .max_messages(most)
                    .start_index(start)
            },
        )
}

/// A kernel, and what must be true of it.
struct Model {
    kernel: Resident<Echo>,
    active: bool,
    sent: u64,
    received: u64,
}

impl Model {
    fn launch(host: &Runtime, launch: &Launch) -> Option<Model> {
        match host.launch::<Echo>(launch.clone()) {
            Ok(kernel) => Some(Model { kernel, active: false, sent: 0, received: 0 }),
            // A platform may lack what is forced; which, is tested elsewhere.
            Err(ring_host::LaunchError::Unfit { .. }) => None,
            // An emulated driver has begun to fail.
            Err(ring_host::LaunchError::Driver(error)) if error.to_string().contains("quirk") => {
                None
            }
            Err(error) => panic!("{error}"),
        }
    }

    fn request(i: u64) -> EchoMessage {
        EchoMessage::from_seed(i ^ 0x5eed)
    }

    fn send(&mut self, n: u64) {
        for _ in 0..n {
            match self.kernel.try_send(&Self::request(self.sent)) {
                Ok(()) => {
                    assert!(self.active, "accepted although not active");
                    self.sent += 1;
                }
                Err(SendError::Full(back)) => {
                    assert_eq!(back, Self::request(self.sent), "the message is given back");
                    assert!(self.sent > self.received, "full, and nothing is in it");
                    return;
                }
                Err(SendError::NotActive { .. }) => return assert!(!self.active),
                Err(error) => panic!("{error}"),
            }
        }
    }

    fn send_batch(&mut self, n: usize) {
        let requests: Vec<_> = (self.sent..).take(n).map(Self::request).collect();
        match self.kernel.try_send_batch(&requests) {
            Ok(sent) => self.sent += sent as u64,
            Err(SendError::NotActive { .. }) => assert!(!self.active),
            Err(error) => panic!("{error}"),
        }
    }

    fn take(&mut self, response: &EchoMessage) {
        assert!(self.received < self.sent, "an answer to nothing");
        assert_eq!(*response, Self::request(self.received).answer(), "answer {}", self.received);
        self.received += 1;
    }

    fn receive(&mut self, n: u64) {
        for _ in 0..n {
            match self.kernel.try_recv() {
                Ok(Some(response)) => self.take(&response),
                Ok(None) => return,
                Err(error) => panic!("{error}"),
            }
        }
    }

    fn receive_batch(&mut self, n: usize) {
        let mut responses = vec![EchoMessage { words: [0; 8] }; n];
        let got = self.kernel.try_recv_batch(&mut responses).unwrap();
        responses[..got].iter().for_each(|response| self.take(response));
    }

    fn receive_all(&mut self) {
        while self.active && self.received < self.sent {
            let response = self.kernel.recv(LONG).unwrap();
            self.take(&response);
        }
    }

    fn terminate(mut self) {
        let summary = self.kernel.terminate(LONG).unwrap();
        loop {
            match self.kernel.recv(LONG) {
                Ok(response) => self.take(&response),
                Err(RecvError::Terminated { .. }) => break,
                Err(error) => panic!("{error}"),
            }
        }
        assert_eq!(summary.processed, self.received, "what was handled was received");
        assert_eq!(summary.processed + summary.unhandled, self.sent, "and the rest is counted");
        assert_eq!(self.kernel.telemetry().processed, summary.processed);
        assert!(matches!(
            self.kernel.try_send(&Self::request(0)),
            Err(SendError::NotActive { .. })
        ));
    }

    fn act(&mut self, act: &Act) {
        match *act {
            Act::Send(n) => self.send(n),
            Act::SendBatch(n) => self.send_batch(n),
            Act::Receive(n) => self.receive(n),
            Act::ReceiveBatch(n) => self.receive_batch(n),
            Act::ReceiveAll => self.receive_all(),
            Act::Activate => {
                if let Err(error) = self.kernel.activate(LONG) {
                    let (status, telemetry) = (self.kernel.status(), self.kernel.telemetry());
                    panic!(
                        "{error}; {status:?}, {}, {:?}",
                        telemetry.launches,
                        self.kernel.changes().next()
                    );
                }
                self.active = true;
                assert_eq!(self.kernel.status().state, State::Active);
            }
            Act::Deactivate => {
                self.kernel.deactivate(LONG).unwrap();
                self.active = false;
                assert_eq!(self.kernel.status().state, State::Inactive);
            }
            Act::Pause(us) => std::thread::sleep(Duration::from_micros(us)),
            // With answers left in a full ring it would rest only to be launched again.
            Act::Rest if self.kernel.runs_as().0 != Mode::Persistent => {
                self.receive_all();
                self.kernel.rest(LONG).unwrap();
            }
            Act::Rest => {}
            Act::Telemetry => {
                let telemetry = self.kernel.telemetry();
                assert!(telemetry.processed <= self.sent && telemetry.errors == 0);
            }
            Act::Terminate => unreachable!("done by the caller"),
        }
    }
}

/// Plays one sequence, from launch to the last terminate.
fn play(host: &Runtime, launch: &Launch, acts: &[Act]) {
    let Some(mut model) = Model::launch(host, launch) else { return };
    for act in acts {
        if matches!(act, Act::Terminate) {
            model.terminate();
            let Some(again) = Model::launch(host, launch) else { return };
            model = again;
        } else {
            model.act(act);
        }
    }
    if model.active {
        model.receive_all();
    }
    model.terminate();
}

/// How many sequences: `usual` in a release build; so many times as many as the environment says.
fn sequences(usual: u32) -> u32 {
    let times = std::env::var("RING_SEQUENCES").ok().and_then(|n| n.parse::<u32>().ok());
    let usual = if cfg!(debug_assertions) { usual / 10 } else { usual };
    usual.saturating_mul(times.unwrap_or(1))
}

fn run(usual: u32, play: impl Fn(&Launch, &[Act])) {
    let config = Config {
        cases: sequences(usual),
        failure_persistence: None,
        max_shrink_time: 60_000,
        ..Config::default()
    };
    let outcome = TestRunner::new(config).run(&(launches(), acts()), |(launch, acts)| {
        play(&launch, &acts);
        Ok(())
    });
    outcome.unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn on_cpu_threads() {
    let host = cpu();
    run(7000, |launch, acts| play(&host, launch, acts));
}

#[test]
fn on_a_gpu() {
    let Some(host) = gpu() else { return };
    run(300, |launch, acts| play(&host, launch, acts));
}

/// On platforms that keep what they are.
#[test]
fn on_emulated_platforms() {
    let names = ["wsl2", "no-pinned", "held-launches", "no-cooperative", "unmapped", "no-graphs"];
    for names in names {
        let driver = Quirks::named(Cpu::open(), names).unwrap();
        let host = Runtime::over(driver, Options::default()).unwrap();
        run(500, |launch, acts| play(&host, launch, acts));
    }
}

/// On platforms that break while a kernel runs, so that it goes down a rung: each sequence has one
/// of its own.
#[test]
fn while_operations_fail() {
    run(100, |launch, acts| {
        let driver = match acts.len() % 3 {
            0 => Quirks::of(Cpu::open()).invalid_handles(5),
            1 => Quirks::of(Cpu::open()).failing_graphs(3),
            _ => Quirks::named(Cpu::open(), "unmapped")
                .unwrap()
                .failing_copies_beside(1 + 5 * acts.len() as u64),
        };
        let host = Runtime::over(driver, Options::default()).unwrap();
        // What is forced may not be left, and then fails for good: here all may be left.
        play(&host, &launch.clone().mode(Mode::Auto).memory(Memory::Auto), acts);
    });
}
