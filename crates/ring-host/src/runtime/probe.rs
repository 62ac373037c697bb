//! Finding out what a device does, by letting it do it: the built-in echo kernel, bounded by its own
//! clock, answers stores of the host; calls are made beside it; launches are timed.
//!
//! What is found is kept for the process, unless some of it could not be told: host and device share their
//! processors with others, and a moment without them must not decide how kernels run from then on.

mod lack;
mod probed;
mod stay;

pub use lack::{Cause, Lack};
pub use probed::Probed;

use crate::device::Driver;
use crate::device::Opened;
use crate::drive::mode::{Budgets, Memory, Mode};
use crate::drive::selection::Chosen;
use crate::error::{DriverError, SendTimeoutError};
use crate::kernel::handle::KernelHandle;
use crate::kernel::launch::LaunchConfig;
use crate::memory::arena::Arena;
use crate::runtime::Core;
use ring_device::kernels::{Echo, EchoMessage};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long the host waits for anything in a probe. A device that other processes use, too, was seen to answer
/// nothing for 0.5 s.
const LIMIT: Duration = Duration::from_secs(2);

/// Messages a measurement.
const MESSAGES: u32 = 9;

/// Answers of a resident kernel to stores of the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answers {
    /// How many there were.
    pub count: u32,
    /// Median time there and back.
    pub median: Duration,
}

/// What was found out about a device. Each is a measurement, or why there is none.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Probe {
    /// Whether kernels work on pinned memory in place, at least from one launch to the next.
    pub mapped: Result<(), Lack>,
    /// Whether a resident kernel saw what the host wrote meanwhile, and answered.
    pub resident: Result<Answers, Lack>,
    /// Whether a copy of 64 bytes came back beside a resident kernel; its time.
    pub beside: Result<Duration, Lack>,
    /// Median time of a message to a kernel at rest: launch and answer.
    pub launch: Result<Duration, Lack>,
    /// The same by replaying a graph.
    pub graph: Result<Duration, Lack>,
    /// How long all this took.
    pub took: Duration,
}

impl Probe {
    /// Whether everything was found out: what the device does, and what it does not.
    pub fn is_certain(&self) -> bool {
        let lacks = [
            self.mapped.as_ref().err(),
            self.resident.as_ref().err(),
            self.beside.as_ref().err(),
            self.launch.as_ref().err(),
            self.graph.as_ref().err(),
        ];
        lacks.into_iter().flatten().all(Lack::is_certain)
    }
}

/// Memory of a probe, pinned and on the device, in bytes.
const PROBE_BYTES: usize = 64 << 10;

/// Probes a device, in memory of its own: what is found does not depend on the caller's. Whether a kernel
/// stays is tried so many times at most.
fn probe(driver: &Arc<dyn Driver>, tries: u32) -> Result<Probe, DriverError> {
    let _span = tracing::debug_span!("probe").entered();
    let begun = Instant::now();
    let found = Arena::pinned(driver, PROBE_BYTES);
    let refused = found.as_ref().err().cloned();
    let device = Arena::device(driver, PROBE_BYTES)?;
    let core = &Arc::new(Core::new(Arc::clone(driver), found.ok(), device, Opened::Given));
    let (pinned, maps) = (refused.is_none(), driver.info().maps_host_memory);
    let no_pinned = || match &refused {
        Some(error) => Lack::No(Cause::NoPinned(error.clone().into())),
        None => Lack::No(Cause::NotMapped),
    };
    let mut launch = Err(no_pinned());
    let mut mapped = launch.clone().map(|_: Duration| ());
    if pinned && maps {
        launch = launches(core, Mode::EventDriven, Memory::Mapped);
        mapped = launch.clone().map(|_| ());
    }
    let memory = if mapped.is_ok() { Memory::Mapped } else { Memory::StagedSync };
    if mapped.is_err() {
        launch = launches(core, Mode::EventDriven, memory);
    }
    let graph = launches(core, Mode::Graph, memory);
    // In mapped memory the host's stores must be seen in place; in staged memory copies bring them.
    let (mut resident, mut beside) = (Err(no_pinned()), Err(no_pinned()));
    if mapped.is_ok() {
        (resident, beside) = stay::tried(core, Memory::Mapped, tries);
    }
    if pinned && resident.is_err() {
        let staged = stay::tried(core, Memory::StagedAsync, tries);
        if mapped.is_err() {
            resident = staged.0;
        }
        beside = staged.1;
    }
    let probe = Probe { mapped, resident, beside, launch, graph, took: begun.elapsed() };
    tracing::info!(?probe, "device probed");
    Ok(probe)
}

fn start(
    core: &Arc<Core>,
    mode: Mode,
    memory: Memory,
    budgets: Budgets,
) -> Result<KernelHandle<Echo>, Lack> {
    let launch =
        LaunchConfig::default().capacity(16).threads(64).payload_bytes(64).budgets(budgets);
    let launch = launch.lease(Duration::MAX); // no thread for that: a probe ends by itself
    let chosen = Chosen::for_probe(mode, memory);
    let mut kernel = core.start::<Echo>(&launch, chosen)?;
    kernel.activate(LIMIT)?;
    Ok(kernel)
}

/// Message `i` there and back, waiting by `recv`; how long that took.
fn exchange(
    kernel: &mut KernelHandle<Echo>,
    i: u32,
    recv: impl FnOnce(&mut KernelHandle<Echo>) -> Result<EchoMessage, Lack>,
) -> Result<Duration, Lack> {
    let (request, begun) = (EchoMessage::from_seed(i.into()), Instant::now());
    kernel.send(request, LIMIT).map_err(SendTimeoutError::without_message)?;
    let response = recv(kernel)?;
    let time = begun.elapsed();
    match response == request.answer() {
        true => Ok(time),
        false => Err(Lack::No(Cause::WrongAnswer { message: i })),
    }
}

/// Message `i` there and back, however often the kernel is launched for it.
fn answer(kernel: &mut KernelHandle<Echo>, i: u32) -> Result<Duration, Lack> {
    exchange(kernel, i, |kernel| Ok(kernel.recv(LIMIT)?))
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

/// Time of a message to a kernel at rest.
fn launches(core: &Arc<Core>, mode: Mode, memory: Memory) -> Result<Duration, Lack> {
    let budgets = Budgets { idle: Duration::from_micros(20), ..Budgets::default() };
    let mut kernel = start(core, mode, memory, budgets)?;
    let mut times = [Duration::ZERO; MESSAGES as usize];
    for (i, time) in (0..).zip(&mut times) {
        kernel.rest(LIMIT)?;
        *time = answer(&mut kernel, i)?;
    }
    kernel.terminate(LIMIT)?;
    Ok(median(&mut times))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Runtime;
    use crate::device::Device;
    use crate::device::cpu::Cpu;
    use std::fmt::Debug;
    use std::sync::{Mutex, PoisonError};
    use tracing::field::{Field, Visit};
    use tracing::span::{Attributes, Id, Record};
    use tracing::{Event, Level, Metadata, Subscriber};

    /// What was logged: level and message.
    #[derive(Clone, Default)]
    struct Log(Arc<Mutex<Vec<(Level, String)>>>);

    impl Log {
        fn of(body: impl FnOnce()) -> Vec<(Level, String)> {
            let log = Log::default();
            tracing::subscriber::with_default(log.clone(), body);
            let lines = log.0.lock().unwrap_or_else(PoisonError::into_inner);
            lines.clone()
        }
    }

    impl Subscriber for Log {
        fn enabled(&self, _: &Metadata<'_>) -> bool {
            true
        }
        fn new_span(&self, _: &Attributes<'_>) -> Id {
            Id::from_u64(1)
        }
        fn record(&self, _: &Id, _: &Record<'_>) {}
        fn record_follows_from(&self, _: &Id, _: &Id) {}
        fn event(&self, event: &Event<'_>) {
            struct Message(String);
            impl Visit for Message {
                fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
                    if field.name() == "message" {
                        self.0 = format!("{value:?}");
                    }
                }
            }
            let mut message = Message(String::new());
            event.record(&mut message);
            let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            lines.push((*event.metadata().level(), message.0));
        }
        fn enter(&self, _: &Id) {}
        fn exit(&self, _: &Id) {}
    }

    /// Only the user's kernels are told of at the level that users see.
    #[test]
    fn the_kernels_of_a_probe_are_not_logged_as_the_users() {
        let of_kernels = |log: &[(Level, String)], level: Level| {
            let told = |message: &str| matches!(message, "launched" | "terminated");
            log.iter().filter(|(l, message)| *l == level && told(message)).count()
        };
        let driver: Arc<dyn Driver> = Arc::new(Cpu::open());
        let log = Log::of(|| drop(probe(&driver, 1).unwrap()));
        assert_eq!(of_kernels(&log, Level::INFO), 0, "{log:?}");
        assert!(of_kernels(&log, Level::DEBUG) >= 4, "{log:?}");

        let host = Runtime::open(Device::Cpu).unwrap();
        let launch = LaunchConfig::default().mode(Mode::EventDriven).memory(Memory::Mapped);
        let log = Log::of(|| {
            let mut kernel = host.launch::<Echo>(launch).unwrap();
            kernel.terminate(LIMIT).unwrap();
        });
        assert_eq!(of_kernels(&log, Level::INFO), 2, "{log:?}");
    }
}
