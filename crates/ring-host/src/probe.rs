//! Finding out what a device does, by letting it do it: the built-in echo kernel, bounded by its own
//! clock, answers stores of the host; calls are made beside it; launches are timed.

use crate::arena::Arena;
use crate::choice::Chosen;
use crate::driver::Driver;
use crate::error::DriverError;
use crate::launch::Launch;
use crate::mode::{Budgets, Memory, Mode};
use crate::resident::Resident;
use crate::runtime::Core;
use ring_device::kernels::{Echo, EchoMessage};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// After how long without a message, or in all, the self-test kernel leaves by its own clock.
const PATIENCE: Duration = Duration::from_millis(50);

/// How long the host waits for anything in a probe. A device that other processes use, too, was seen to answer
/// nothing for 0.5 s.
const LIMIT: Duration = Duration::from_secs(2);

/// Messages a measurement.
const MESSAGES: u32 = 9;

/// How often the test of a resident kernel is made if it fails: a busy machine may stop the host for
/// longer than the kernel waits.
const TRIES: u32 = 5;

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
    pub mapped: Result<(), String>,
    /// Whether a resident kernel saw what the host wrote meanwhile, and answered.
    pub resident: Result<Answers, String>,
    /// Whether a copy of 64 bytes came back beside a resident kernel; its time.
    pub beside: Result<Duration, String>,
    /// Median time of a message to a kernel at rest: launch and answer.
    pub launch: Result<Duration, String>,
    /// The same by replaying a graph.
    pub graph: Result<Duration, String>,
    /// How long all this took.
    pub took: Duration,
}

/// Memory of a probe, pinned and on the device, in bytes.
const PROBE_BYTES: usize = 64 << 10;

/// Probes a device, in memory of its own: what is found does not depend on the caller's.
pub(crate) fn probe(driver: &Arc<dyn Driver>) -> Result<Probe, DriverError> {
    let begun = Instant::now();
    let found = Arena::pinned(driver, PROBE_BYTES);
    let refused = found.as_ref().err().map(DriverError::to_string);
    let device = Arena::device(driver, PROBE_BYTES)?;
    let core = &Arc::new(Core::new(Arc::clone(driver), found.ok(), device, "probe".to_owned()));
    let (pinned, maps) = (refused.is_none(), driver.info().maps_host_memory);
    let no_pinned = || match &refused {
        Some(why) => format!("there is no pinned memory: {why}"),
        None => "the device does not map host memory".to_owned(),
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
        (resident, beside) = stay(core, Memory::Mapped);
    }
    if pinned && resident.is_err() {
        let staged = stay(core, Memory::StagedAsync);
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
) -> Result<Resident<Echo>, String> {
    let launch = Launch::default().capacity(16).threads(64).payload_bytes(64).budgets(budgets);
    let launch = launch.lease(Duration::MAX); // no thread for that: a probe ends by itself
    let chosen = Chosen::for_probe(mode, memory);
    let mut kernel = core.start::<Echo>(&launch, chosen).map_err(|error| error.to_string())?;
    kernel.activate(LIMIT).map_err(|error| error.to_string())?;
    Ok(kernel)
}

fn answer(kernel: &mut Resident<Echo>, i: u32) -> Result<Duration, String> {
    let (request, begun) = (EchoMessage::from_seed(i.into()), Instant::now());
    kernel.send(&request, LIMIT).map_err(|error| error.to_string())?;
    let response = kernel.recv(LIMIT).map_err(|error| error.to_string())?;
    let time = begun.elapsed();
    match response == request.answer() {
        true => Ok(time),
        false => Err(format!("the answer to message {i} is wrong")),
    }
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

/// Time of a message to a kernel at rest.
fn launches(core: &Arc<Core>, mode: Mode, memory: Memory) -> Result<Duration, String> {
    let budgets = Budgets { idle: Duration::from_micros(20), ..Budgets::default() };
    let mut kernel = start(core, mode, memory, budgets)?;
    let mut times = [Duration::ZERO; MESSAGES as usize];
    for (i, time) in (0..).zip(&mut times) {
        kernel.rest(LIMIT).map_err(|error| error.to_string())?;
        *time = answer(&mut kernel, i)?;
    }
    kernel.terminate(LIMIT).map_err(|error| error.to_string())?;
    Ok(median(&mut times))
}

/// What was found out beside a resident kernel: whether it answers, and whether copies come back.
type Beside = (Result<Answers, String>, Result<Duration, String>);

/// Lets a kernel stay, a few times if need be. That it answered once is not forgotten.
fn stay(core: &Arc<Core>, memory: Memory) -> Beside {
    let mut found = stay_once(core, memory);
    for _ in 1..TRIES {
        if found.0.is_ok() && found.1.is_ok() {
            break;
        }
        let again = stay_once(core, memory);
        if again.0.is_ok() || found.0.is_err() {
            found = again;
        }
    }
    found
}

fn stay_once(core: &Arc<Core>, memory: Memory) -> Beside {
    let budgets = Budgets { time: PATIENCE, idle: PATIENCE, ..Budgets::default() };
    let answered = || -> Result<(Resident<Echo>, Answers), String> {
        let mut kernel = start(core, Mode::EventDriven, memory, budgets)?;
        // The launch that acknowledged `activate` may be about to leave.
        kernel.rest(LIMIT).map_err(|error| error.to_string())?;
        answer(&mut kernel, 0)?; // launches it; from here on it stays
        let launches = kernel.launches();
        let mut times = [Duration::ZERO; MESSAGES as usize];
        for (i, time) in (1..).zip(&mut times) {
            *time = answer(&mut kernel, i)?;
            if kernel.launches() > launches {
                return Err(format!(
                    "it did not see what the host wrote within {PATIENCE:?}: message {i} took \
                     another launch"
                ));
            }
        }
        Ok((kernel, Answers { count: MESSAGES, median: median(&mut times) }))
    };
    let (mut kernel, answers) = match answered() {
        Ok(answered) => answered,
        Err(why) => return (Err(why.clone()), Err(why)),
    };
    let begun = Instant::now();
    let copied = kernel.write_payload(0, &[7u32; 16], LIMIT).map_err(|error| error.to_string());
    let time = begun.elapsed();
    let stayed = !kernel.is_resting();
    let beside = match copied {
        Err(why) => Err(why),
        Ok(()) if stayed => Ok(time),
        Ok(()) => Err(format!("the call returned after {time:.1?}, when the kernel had left")),
    };
    let _ = kernel.terminate(LIMIT); // if it does not, it leaves by its own clock
    (Ok(answers), beside)
}
