//! Finding out what a device does, by letting it do it: the runtime's echo kernel, bounded by its own
//! clock, answers stores of the host; calls are made beside it; launches are timed.
//!
//! What is found is kept for the process, unless some of it is not certain: host and device share their
//! processors with others, and a moment without them must not decide how kernels run from then on.

mod stay;

use super::core::RuntimeCore;
use crate::device::image::Image;
use crate::device::probe::{Cause, Lack, Probe};
use crate::device::{Driver, Opened};
use crate::drive::selection::Candidate;
use crate::error::{DriverError, LaunchError, SendTimeoutError};
use crate::kernel::handle::KernelHandle;
use crate::kernel::launch::LaunchConfig;
use crate::memory::arena::Arena;
use crate::memory::links::Partners;
use crate::mode::{Budgets, Memory, Mode, PayloadMemory};
use ring_device::kernels::{Echo, EchoMessage};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long the host waits for anything in a probe. A device that other processes use, too, was seen to answer
/// nothing for 0.5 s.
const LIMIT: Duration = Duration::from_secs(2);

/// Messages a measurement.
const MESSAGES: u32 = 9;

/// Memory of a probe, pinned and on the device, in bytes.
const PROBE_BYTES: usize = 64 << 10;

/// Probes a device, in memory of its own: what is found does not depend on the caller's. Whether a kernel
/// stays is tried so many times at most.
pub(super) fn probe(
    driver: &Arc<dyn Driver>,
    kernels: &Image,
    tries: u32,
) -> Result<Probe, DriverError> {
    let _span = tracing::debug_span!("probe").entered();
    let begun = Instant::now();
    let found = Arena::pinned(driver, PROBE_BYTES);
    let refused = found.as_ref().err().cloned();
    let device = Arena::device(driver, PROBE_BYTES)?;
    let driver = Arc::clone(driver);
    let (pinned, why, kernels) = (found.ok(), Opened::Given, kernels.clone());
    let core = &RuntimeCore::new(driver, (pinned, device), why, kernels);
    let (pinned, maps) = (refused.is_none(), core.driver.info().maps_host_memory);
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
    let (mut resident, mut concurrent_copy) = (Err(no_pinned()), Err(no_pinned()));
    if mapped.is_ok() {
        (resident, concurrent_copy) = stay::tried(core, Memory::Mapped, tries);
    }
    if pinned && resident.is_err() {
        let staged = stay::tried(core, Memory::StagedAsync, tries);
        if mapped.is_err() {
            resident = staged.0;
        }
        concurrent_copy = staged.1;
    }
    let probe = Probe { mapped, resident, concurrent_copy, launch, graph, took: begun.elapsed() };
    let (device, certain) = (core.driver.label(), probe.is_certain());
    tracing::info!(device, certain, ?probe, "device probed");
    Ok(probe)
}

fn start(
    core: &RuntimeCore,
    mode: Mode,
    memory: Memory,
    budgets: Budgets,
) -> Result<KernelHandle<Echo>, Lack> {
    let launch = LaunchConfig::default().capacity(16).threads(64).budgets(budgets);
    let launch = launch.payload_bytes(64).payload_memory(PayloadMemory::Device); // it is tried whether copies wait
    let launch = launch.lease(Duration::MAX); // no thread for that: a probe ends by itself
    let chosen = Candidate::for_probe(mode, memory);
    let mut kernel = core.start::<Echo>(&launch, chosen, Partners::None).map_err(not_launched)?;
    kernel.activate(LIMIT)?;
    Ok(kernel)
}

/// Why there is no measurement of a kernel that was not launched. What the driver refuses is its answer. What
/// else a launch lacks (room beside the kernels that are there, say) it may have later.
fn not_launched(error: LaunchError) -> Lack {
    match error {
        LaunchError::Driver(error) => Lack::No(Cause::Driver(error)),
        LaunchError::Image { source, .. } => Lack::No(Cause::Image(source)),
        LaunchError::Fault(fault) => Lack::No(Cause::Fault(fault)),
        LaunchError::Crowded(crowded) => Lack::Unknown(Cause::Crowded(crowded)),
        LaunchError::State { source, .. } => Lack::Unknown(Cause::Copy(source)),
        LaunchError::Arena { which, needed, free, .. } => {
            Lack::Unknown(Cause::NoRoom { which, needed, free })
        }
        error => {
            tracing::debug!(%error, "kernel of the probe not launched");
            Lack::Unknown(Cause::NotTried)
        }
    }
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
fn launches(core: &RuntimeCore, mode: Mode, memory: Memory) -> Result<Duration, Lack> {
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
    use std::sync::{LazyLock, Mutex, PoisonError};
    use tracing::field::{Field, Visit};
    use tracing::span::{Attributes, Id, Record};
    use tracing::{Dispatch, Event, Level, Metadata, Subscriber};

    /// Without a second subscriber, an event that another thread is the first to log, which has none, is logged for nobody from then on.
    static SECOND: LazyLock<Dispatch> = LazyLock::new(|| Dispatch::new(Log::default()));

    /// What was logged: level and message.
    #[derive(Clone, Default)]
    struct Log(Arc<Mutex<Vec<(Level, String)>>>);

    impl Log {
        fn of(body: impl FnOnce()) -> Vec<(Level, String)> {
            LazyLock::force(&SECOND);
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

    /// Only the user's kernels are logged at the level that users see.
    #[test]
    fn the_kernels_of_a_probe_are_not_logged_as_the_users() {
        let of_kernels = |log: &[(Level, String)], level: Level| {
            let is_about = |message: &str| matches!(message, "launched" | "terminated");
            log.iter().filter(|(l, message)| *l == level && is_about(message)).count()
        };
        let driver: Arc<dyn Driver> = Cpu::open();
        let log = Log::of(|| drop(probe(&driver, &Image::built_in(), 1).unwrap()));
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
