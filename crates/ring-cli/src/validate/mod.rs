//! `ring validate`: sums, round trips, and a soak, on one device.

mod inputs;
mod report;
mod round_trip;
mod session;
mod soak;
mod tally;
mod vectors;
mod word;

use crate::args::Validate;
use crate::failure::Failure;
use crate::progress::Progress;
use report::Case;
use ring_host::kernels::{Echo, VectorAdd};
use ring_host::{DeviceKind, Error, Kernel, Lane, Resident, Runtime};
use soak::Soaked;
use std::io::Write;

/// Opens the device and runs every check on it, reporting to `out`. An error if one failed.
pub fn run(options: &Validate, out: &mut impl Write) -> Result<(), Failure> {
    let device = options.device;
    let host = Runtime::open(device).map_err(|source| Failure::Open { device, source })?;
    let kind = match host.device().kind {
        DeviceKind::Cpu => "cpu",
        DeviceKind::Cuda => "cuda",
        _ => "of another kind",
    };
    writeln!(out, "{}", report::device(&host.device().name, kind, host.why()))?;

    let mut cases = Vec::new();
    let all_run = add_vectors(&host, options, &mut cases)
        .and_then(|()| make_round_trips(&host, options, &mut cases));
    if !cases.is_empty() {
        write!(out, "{}", report::cases(&cases))?;
    }
    all_run?;
    let sums = cases.iter().filter(|case| case.name == VectorAdd::NAME);
    let passed = sums.clone().filter(|case| case.passed.is_ok()).count();
    writeln!(out, "{}: {passed}/{} passed\n", VectorAdd::NAME, sums.count())?;

    let mut results: Vec<bool> = cases.iter().map(|case| case.passed.is_ok()).collect();
    if options.messages == 0 {
        writeln!(out, "soak    skipped (--messages 0)")?;
    } else {
        results.push(soak_lanes(&host, options, out)?);
    }
    let failed = results.iter().filter(|&&passed| !passed).count();
    if failed > 0 {
        return Err(Failure::Checks { failed, of: results.len() });
    }
    writeln!(out, "passed  all {} checks", results.len())?;
    Ok(())
}

fn add_vectors(host: &Runtime, options: &Validate, cases: &mut Vec<Case>) -> Result<(), Failure> {
    for elements in vectors::CASES {
        let (latency, passed) = session::with::<VectorAdd, _>(host, options, |kernel| {
            let add = |a: &_, b: &_, c: &mut _, deadline| kernel.add(a, b, c, deadline);
            let (latency, passed) = vectors::check(elements, options.timeout, add);
            (latency.count(), latency, passed)
        })?;
        let place = vectors::place(elements);
        cases.push(Case { name: VectorAdd::NAME, elements, place, latency, passed });
    }
    Ok(())
}

fn make_round_trips(
    host: &Runtime,
    options: &Validate,
    cases: &mut Vec<Case>,
) -> Result<(), Failure> {
    let (latency, passed) = session::with::<Echo, _>(host, options, |kernel| {
        round_trip::check(options.timeout, |request, deadline| -> Result<_, Error> {
            kernel.send(request, deadline)?;
            Ok(kernel.recv(deadline)?)
        })
    })?;
    cases.push(Case { name: "echo (64 bytes)", elements: 8, place: "inline", latency, passed });
    Ok(())
}

/// Whether the soak passed.
fn soak_lanes(host: &Runtime, options: &Validate, out: &mut impl Write) -> Result<bool, Failure> {
    let (messages, timeout) = (options.messages, options.timeout);
    let (soaked, passed) = session::with::<Echo, _>(host, options, |kernel| {
        let ports = match take_lanes(kernel) {
            Ok(ports) => ports,
            Err(error) => return (0, Soaked::default(), Err(error.to_string())),
        };
        let (soaked, ended) = soak::soak(ports, messages, timeout, &mut Progress::new(messages));
        let passed = match ended {
            Err(error) => Err(error.to_string()),
            Ok(()) if !soaked.sound => Err(report::unsound(&soaked, messages, timeout)),
            Ok(()) => Ok(()),
        };
        (messages, soaked, passed)
    })?;
    write!(out, "{}", report::soak(&soaked, messages, options.lanes, &passed))?;
    Ok(passed.is_ok())
}

fn take_lanes(kernel: &mut Resident<Echo>) -> Result<Vec<Lane<Echo>>, Error> {
    (0..kernel.lanes()).map(|lane| Ok(kernel.take_lane(lane)?)).collect()
}
