//! How a kernel is launched: in every mode and memory, with rings of every size; and launches that are
//! refused.

use super::platforms::Platform;
use proptest::prelude::*;
use ring_host::error::{Budget, DriverReason};
use ring_host::image::ImageError;
use ring_host::{
    Budgets, Cooperative, Kernel, KernelHandle, LaunchConfig, LaunchError, Memory, Mode,
    Processing, Runtime,
};
use ring_tests::WAYS;
use std::time::Duration;

/// How the kernel is launched, and what the model has to know of it.
#[derive(Clone, Debug)]
pub struct Launched {
    pub launch: LaunchConfig,
    pub way: (Mode, Memory),
    pub channels: u32,
    pub capacity: u32,
    /// Doorbell lines of a kernel that can have several.
    pub window: u32,
}

pub fn launches() -> impl Strategy<Value = Launched> {
    let mut ways = vec![(Mode::Auto, Memory::Auto)];
    ways.extend(WAYS);
    let processing = [Processing::Continuous, Processing::Batch, Processing::Adaptive];
    let budgets = (1..2000u64, prop_oneof![3 => Just(u64::MAX), 1 => 1..200u64], 1..200u64);
    let start = prop_oneof![Just(0), (1u64 << 32) - 60..1 << 32, Just(1 << 40)];
    let channels = prop_oneof![6 => Just(1u32), 2 => Just(2), 1 => Just(3)];
    let rings = (
        prop::sample::select(vec![1u32, 2, 8, 64, 1024]),
        prop::sample::select(vec![1u32, 2, 4, 64]),
    );
    (
        prop::sample::select(ways),
        rings,
        budgets,
        prop::sample::select(processing.to_vec()),
        prop_oneof![Just(u32::MAX), 1..9u32],
        start,
        channels,
    )
        .prop_map(
            |(
                way,
                (capacity, lines),
                (time, iterations, idle),
                processing,
                most,
                start,
                channels,
            )| {
                let (time, idle) = (Duration::from_micros(time), Duration::from_micros(idle));
                let window = lines.min(capacity);
                let launch = LaunchConfig::default()
                    .mode(way.0)
                    .memory(way.1)
                    .capacity(capacity)
                    .window(window)
                    .threads(64)
                    .channels(channels)
                    .budgets(Budgets { time, iterations, idle })
                    .processing(processing)
                    .max_messages(most)
                    .start_index(start);
                Launched { launch, way, channels, capacity, window }
            },
        )
}

impl Launched {
    /// The same in that mode and memory.
    pub fn by(mut self, mode: Mode, memory: Memory) -> Launched {
        self.way = (mode, memory);
        self.launch = self.launch.mode(mode).memory(memory);
        self
    }

    /// The same with rings for many messages.
    pub fn roomy(mut self) -> Launched {
        self.capacity = self.capacity.max(64);
        self.launch = self.launch.capacity(self.capacity);
        self
    }

    /// The same with launches that a watchdog may find too long.
    pub fn lasting(mut self) -> Launched {
        let long = Duration::from_millis(200);
        self.launch = self.launch.budgets(Budgets { time: long, iterations: u64::MAX, idle: long });
        self
    }

    /// The same with other things chosen.
    pub fn with(mut self, change: impl FnOnce(LaunchConfig) -> LaunchConfig) -> Launched {
        self.launch = change(self.launch);
        self
    }
}

/// Prepares and launches a kernel. None if the platform refuses, as it may: which, is tested elsewhere.
pub fn launch<K: Kernel>(
    platform: &Platform,
    host: &Runtime,
    launched: &Launched,
) -> Option<KernelHandle<K>> {
    let prepared = host.prepare::<K>(&launched.launch);
    let kernel = host.launch::<K>(launched.launch.clone());
    match (prepared, kernel) {
        (Ok(()), Ok(kernel)) => {
            assert_eq!(kernel.channels(), launched.channels);
            let (mode, memory, choice) = (launched.way.0, launched.way.1, kernel.selection());
            assert!(mode == Mode::Auto || mode == choice.mode, "{choice}");
            assert!(memory == Memory::Auto || memory == choice.memory, "{choice}");
            let resident = (choice.mode, choice.memory) == (Mode::Persistent, Memory::Mapped);
            assert_eq!(kernel.window(), if resident { launched.window } else { 1 }, "{choice}");
            Some(kernel)
        }
        (Err(LaunchError::Unfit { .. }), Err(LaunchError::Unfit { .. })) if platform.lacks => None,
        (_, Err(error)) if platform.lacks && is_made_up(&error) => None,
        (prepared, kernel) => {
            panic!("{prepared:?} when prepared, {:?} when launched", kernel.map(drop))
        }
    }
}

/// Whether it is the error of an emulated platform.
fn is_made_up(error: &LaunchError) -> bool {
    let error = match error {
        LaunchError::Driver(error) => error,
        LaunchError::Image { source: ImageError::Driver(error), .. } => error,
        _ => return false,
    };
    matches!(error.reason, DriverReason::Emulated(_))
}

/// What is wrong with a launch.
#[derive(Clone, Copy, Debug)]
pub enum Flaw {
    Capacity,
    Window,
    StartIndex,
    Slot,
    Budget,
    MaxMessages,
    Threads,
    Channels,
    Cooperative,
}

pub fn flaws() -> impl Strategy<Value = Flaw> {
    use Flaw::*;
    let all =
        [Capacity, Window, StartIndex, Slot, Budget, MaxMessages, Threads, Channels, Cooperative];
    prop::sample::select(all.to_vec())
}

/// A launch with that flaw is refused, by `prepare` as by `launch`, and says why.
pub fn refused<K: Kernel>(host: &Runtime, launched: &Launched, flaw: Flaw) {
    let launch = launched.launch.clone();
    let flawed = match flaw {
        Flaw::Capacity => launch.capacity(3),
        Flaw::Window => launch.window(0),
        Flaw::StartIndex => launch.start_index(u64::MAX),
        Flaw::Slot => launch.slot_bytes(1),
        Flaw::Budget => launch.budgets(Budgets { iterations: 0, ..Budgets::default() }),
        Flaw::MaxMessages => launch.max_messages(0),
        Flaw::Threads => launch.threads(33),
        Flaw::Channels => launch.channels(0),
        Flaw::Cooperative => launch.cooperative(Cooperative::Always),
    };
    if matches!(flaw, Flaw::Cooperative) && host.device().cooperative_launch {
        return; // nothing is wrong with it
    }
    let errors = [host.prepare::<K>(&flawed), host.launch::<K>(flawed).map(drop)];
    for error in errors.map(Result::unwrap_err) {
        let as_expected = match flaw {
            Flaw::Capacity => matches!(error, LaunchError::Capacity(3)),
            Flaw::Window => matches!(error, LaunchError::Window { lines: 0, .. }),
            Flaw::StartIndex => matches!(error, LaunchError::StartIndex(u64::MAX)),
            Flaw::Slot => matches!(error, LaunchError::Slot { slot: 1, .. }),
            Flaw::Budget => matches!(error, LaunchError::Budget(Budget::Iterations)),
            Flaw::MaxMessages => matches!(error, LaunchError::MaxMessages),
            Flaw::Threads => matches!(error, LaunchError::Threads { threads: 33, .. }),
            Flaw::Channels => matches!(error, LaunchError::Channels { channels: 0, .. }),
            Flaw::Cooperative => matches!(error, LaunchError::NotCooperative(_)),
        };
        assert!(as_expected, "{flaw:?}: {error}");
    }
}
