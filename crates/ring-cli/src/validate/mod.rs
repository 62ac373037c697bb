//! `ring validate`: sums, round trips, and a soak, on one device; or a soak through several.

mod around;
mod inputs;
mod report;
mod round_trip;
mod session;
mod soak;
mod tally;
mod vectors;
mod way;
mod word;

use crate::args::{Emulate, Validate};
use crate::failure::Failure;
use crate::host;
use crate::interrupt::Interrupt;
use crate::kernels::KernelSource;
use crate::progress::Progress;
use crate::text::{plural, wrapped};
use report::Case;
use ring_host::kernels::{Echo, VectorAdd};
use ring_host::{Channel, Error, Kernel, KernelFiles, KernelHandle, Runtime};
use session::Session;
use soak::Soaked;
use std::io::Write;
use way::Ways;

/// Checks before the soak.
const CASES: usize = vectors::CASES.len() + 1;

/// Opens the device and runs every check on it, reporting to `out`. An error if one failed.
pub fn run(options: &Validate, out: &mut impl Write) -> Result<(), Failure> {
    let (device, interrupt) = (options.device, Interrupt::listen());
    if let Some(list) = &options.devices {
        return around::run(list, options, interrupt, out);
    }
    let failure = |source| Failure::Open { device, source };
    let emulation = options.emulate.as_ref().and_then(Emulate::names);
    let kernels = KernelSource::read(&options.ptx, device, vec![KernelFiles::BUILT_IN_ENTRY])?;
    let found = host::open(device, emulation, kernels.built_in()).map_err(failure)?;
    kernels.check(found.info.kind, &found.why)?;
    let host = found.runtime.map_err(failure)?;
    let kernels = kernels.in_words(found.info.kind);
    let (name, kind) = (&found.info.name, host::kind(&found.info));
    writeln!(out, "{}", report::device(name, kind, &found.why, &kernels))?;

    let (mut cases, mut ways) = (Vec::new(), Ways::default());
    let all_run = add_vectors(&host, options, interrupt, &mut cases, &mut ways)
        .and_then(|()| make_round_trips(&host, options, interrupt, &mut cases, &mut ways));
    if !cases.is_empty() {
        write!(out, "{}", report::cases(&cases))?;
    }
    let (passed, sums) = passed_sums(&cases);
    if all_run.is_ok() {
        writeln!(out, "{}: {passed}/{sums} passed\n", VectorAdd::NAME)?;
    }
    write!(out, "{}", ways.unprinted())?;
    let mut results: Vec<bool> = cases.iter().map(|case| case.passed.is_ok()).collect();
    all_run.or_else(|failure| stopped(failure, &results, out))?;

    let mut left_out = results.len() < CASES;
    if options.messages == 0 {
        writeln!(out, "{}", report::NO_SOAK)?;
    } else if !left_out {
        let soaked = soak_channels(&host, options, interrupt, out, &mut ways);
        let soaked =
            soaked.or_else(|failure| stopped(failure, &results, out).map(|()| Some(false)))?;
        left_out = soaked.is_none();
        results.extend(soaked);
        write!(out, "{}", ways.unprinted())?;
    }
    let failed = failed(&results);
    if left_out {
        let (passed, of) = (results.len() - failed, plural(results.len() as u64, "check"));
        writeln!(out, "interrupted; until then {passed} of {of} passed")?;
        return Err(Failure::Interrupted);
    }
    if failed > 0 {
        return Err(Failure::Checks { failed, of: results.len() });
    }
    writeln!(out, "passed  all {} checks", results.len())?;
    Ok(())
}

fn failed(results: &[bool]) -> usize {
    results.iter().filter(|&&passed| !passed).count()
}

/// What stops the checks when one has failed before follows from that: it is reported, and the
/// failure is that one's.
fn stopped(failure: Failure, results: &[bool], out: &mut impl Write) -> Result<(), Failure> {
    match failed(results) {
        0 => Err(failure),
        failed => {
            writeln!(out, "{}", wrapped("stopped ", &failure.to_string()))?;
            Err(Failure::Checks { failed, of: results.len() })
        }
    }
}

/// Cases of vectors: those that passed, and all.
fn passed_sums(cases: &[Case]) -> (usize, usize) {
    let sums = cases.iter().filter(|case| case.name == VectorAdd::NAME);
    (sums.clone().filter(|case| case.passed.is_ok()).count(), sums.count())
}

fn add_vectors(
    host: &Runtime,
    options: &Validate,
    interrupt: Interrupt,
    cases: &mut Vec<Case>,
    ways: &mut Ways,
) -> Result<(), Failure> {
    for elements in vectors::CASES {
        if interrupt.requested() {
            return Ok(());
        }
        let session = session::with::<VectorAdd, _>(host, options, |kernel| {
            let add = |a: &_, b: &_, c: &mut _, deadline| kernel.add(a, b, c, deadline);
            let (latency, passed) = vectors::check(elements, options.timeout, add);
            (latency.count(), latency, passed)
        })?;
        let Session { result: latency, passed, way } = session;
        let place = vectors::place(elements);
        cases.push(Case { name: VectorAdd::NAME, elements, place, latency, passed });
        ways.add(way);
    }
    Ok(())
}

fn make_round_trips(
    host: &Runtime,
    options: &Validate,
    interrupt: Interrupt,
    cases: &mut Vec<Case>,
    ways: &mut Ways,
) -> Result<(), Failure> {
    if interrupt.requested() {
        return Ok(());
    }
    let session = session::with::<Echo, _>(host, options, |kernel| {
        round_trip::check(options.timeout, |request, deadline| -> Result<_, Error> {
            kernel.send(*request, deadline)?;
            Ok(kernel.recv(deadline)?)
        })
    })?;
    let Session { result: latency, passed, way } = session;
    cases.push(Case { name: "echo (64 bytes)", elements: 8, place: "inline", latency, passed });
    ways.add(way);
    Ok(())
}

/// Whether the soak passed; none if it was interrupted, and nothing was wrong until then.
fn soak_channels(
    host: &Runtime,
    options: &Validate,
    interrupt: Interrupt,
    out: &mut impl Write,
    ways: &mut Ways,
) -> Result<Option<bool>, Failure> {
    let (messages, timeout) = (options.messages, options.timeout);
    let session = session::with::<Echo, _>(host, options, |kernel| {
        let ports = match take_channels(kernel) {
            Ok(ports) => ports,
            Err(error) => return (0, Soaked::default(), Err(error.to_string())),
        };
        let progress = &mut Progress::new(messages);
        let (soaked, ended) = soak::soak(ports, messages, timeout, interrupt, progress);
        let passed = match ended {
            Err(error) => Err(error.to_string()),
            Ok(()) if !soaked.sound => Err(report::unsound(&soaked, messages, timeout)),
            Ok(()) => Ok(()),
        };
        (soaked.sent, soaked, passed)
    })?;
    let Session { result: soaked, passed, way } = session;
    write!(out, "{}", report::soak(&soaked, messages, options.kernel.channels, &passed))?;
    ways.add(way);
    Ok(match passed {
        Ok(()) if soaked.interrupted => None,
        passed => Some(passed.is_ok()),
    })
}

fn take_channels(kernel: &mut KernelHandle<Echo>) -> Result<Vec<Channel<Echo>>, Error> {
    (0..kernel.channels()).map(|channel| Ok(kernel.take_channel(channel)?)).collect()
}
