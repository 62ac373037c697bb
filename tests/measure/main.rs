//! Prints the figures that docs/results keeps: round trip, launch cycles, and what calls cost
//! while kernels are resident. `measure [auto|cpu|cuda:N] [cycles|services|handlers|host-calls|metrics|restarts|traces|graph-traces]`; nothing is asserted but answers.
//! What is fast beside what else is `ring bench`.

mod graph_traces;
mod handlers;
mod host_calls;
mod metrics;
mod restarts;
mod services;
mod traces;

use ring_host::kernels::{Echo, EchoMessage, VectorAdd};
use ring_host::{Device, Error, KernelHandle, LaunchConfig, PayloadMemory, Runtime};
use ring_tests::kernels::config;
use ring_tests::with_ptx;
use std::time::{Duration, Instant};

const SECONDS: Duration = Duration::from_secs(10);

/// Turns of a comparison of two ways, one of each.
const TURNS: usize = 41;

fn main() -> Result<(), Error> {
    let mut arguments = std::env::args().skip(1);
    let device: Device = arguments.next().as_deref().unwrap_or("auto").parse()?;
    let what = arguments.next();
    let cycles = what.as_deref().and_then(|n| n.parse().ok()).unwrap_or(1000);
    let opened = Instant::now();
    let host = Runtime::open_with(device, config())?;
    println!("device: {} (opened in {:.1?})", host.device().name, opened.elapsed());
    match what.as_deref() {
        Some("services") => return services::services(&host),
        Some("handlers") => return handlers::handlers(&host),
        Some("host-calls") => return host_calls::host_calls(&host),
        Some("metrics") => return metrics::metrics(&host),
        Some("restarts") => return restarts::restarts(&host),
        Some("traces") => return traces::traces(&host),
        Some("graph-traces") => return graph_traces::graph_traces(&host),
        _ => {}
    }
    for threads in [64, 256, 512] {
        round_trips(&host, threads)?;
    }
    launch_cycles(&host, cycles)?;
    beside_residents(&host, device)?;
    services::services(&host)?;
    handlers::handlers(&host)?;
    host_calls::host_calls(&host)?;
    metrics::metrics(&host)?;
    restarts::restarts(&host)?;
    traces::traces(&host)?;
    graph_traces::graph_traces(&host)
}

fn active(host: &Runtime, launch: LaunchConfig) -> Result<KernelHandle<Echo>, Error> {
    let mut kernel = host.launch::<Echo>(launch)?;
    kernel.activate(SECONDS)?;
    Ok(kernel)
}

fn answer(kernel: &mut KernelHandle<Echo>, i: u64) -> Result<(), Error> {
    let request = EchoMessage::from_seed(i);
    kernel.send(request, SECONDS)?;
    assert_eq!(kernel.recv(SECONDS)?, request.answer());
    Ok(())
}

/// Times of `n` calls, sorted, in microseconds, after a tenth as many that are not counted.
fn times(n: u64, mut call: impl FnMut(u64) -> Result<(), Error>) -> Result<Vec<f64>, Error> {
    let mut times = Vec::with_capacity(n as usize);
    for i in 0..n + n / 10 {
        let begun = Instant::now();
        call(i)?;
        if i >= n / 10 {
            times.push(begun.elapsed().as_secs_f64() * 1e6);
        }
    }
    times.sort_by(f64::total_cmp);
    Ok(times)
}

/// Of what a comparison's turns found, sorted: the median, and an interval that has it with 95 %.
fn median_of_turns(turns: &[f64]) -> [f64; 3] {
    const { assert!(TURNS == 41, "the interval is that of so many") };
    let median = TURNS / 2;
    [turns[median], turns[median - 6], turns[median + 6]]
}

fn print(what: &str, times: &[f64]) {
    let at = |part: f64| times[((times.len() - 1) as f64 * part) as usize];
    let (n, min, p50, p99, max) = (times.len(), at(0.0), at(0.5), at(0.99), at(1.0));
    println!("{what}: n {n}, min {min:.2}, p50 {p50:.2}, p99 {p99:.2}, max {max:.2} us");
}

fn round_trips(host: &Runtime, threads: u32) -> Result<(), Error> {
    let mut kernel = active(host, LaunchConfig::default().threads(threads))?;
    println!("pinned memory of a kernel with default rings: {} bytes", kernel.pinned_bytes());
    let times = times(100_000, |i| answer(&mut kernel, i))?;
    print(&format!("round trip, 64-byte message, {threads} threads"), &times);
    Ok(())
}

/// Resident set of this process in KiB.
fn resident_set() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: u64 = statm.split(' ').nth(1).and_then(|n| n.parse().ok()).unwrap_or(0);
    pages * 4
}

fn launch_cycles(host: &Runtime, cycles: u64) -> Result<(), Error> {
    let mut cycle = |i| -> Result<(), Error> {
        let mut kernel = active(host, LaunchConfig::default())?;
        answer(&mut kernel, i)?;
        kernel.deactivate(SECONDS)?;
        kernel.terminate(SECONDS)?;
        Ok(())
    };
    let warm = times(cycles.min(100), &mut cycle)?;
    let before = resident_set();
    let all = times(cycles, &mut cycle)?;
    let after = resident_set();
    print("launch, activate, one message, deactivate, terminate (first)", &warm);
    print("launch, activate, one message, deactivate, terminate", &all);
    println!("resident set: {before} KiB before {cycles} cycles, {after} KiB after");
    Ok(())
}

fn beside_residents(host: &Runtime, device: Device) -> Result<(), Error> {
    let mut kernels = Vec::new();
    for _ in 0..16 {
        kernels.push(active(host, LaunchConfig::default())?);
    }
    for (i, kernel) in kernels.iter_mut().enumerate() {
        for k in 0..1000 {
            answer(kernel, i as u64 * 1000 + k)?;
        }
    }
    println!("16 kernels resident, each answered 1000 messages; beside them:");
    let one = times(20_000, |i| answer(&mut kernels[7], i))?;
    print("  round trip of one of them", &one);
    let launch = times(100, |_| {
        let mut kernel = host.launch::<VectorAdd>(LaunchConfig::default())?;
        kernel.activate(SECONDS)?;
        drop(kernel);
        Ok(())
    })?;
    print("  launch, activate and drop another", &launch);
    let launch = times(20, |_| {
        let mut kernel = active(host, LaunchConfig::default().channels(2))?;
        kernel.terminate(SECONDS)?;
        Ok(())
    })?;
    print("  launch, activate and terminate another of two channels", &launch);
    for (mode, memory) in ring_tests::WAYS {
        let launch = times(20, |i| {
            let mut kernel = active(host, LaunchConfig::default().mode(mode).memory(memory))?;
            answer(&mut kernel, i)?;
            kernel.terminate(SECONDS)?;
            Ok(())
        })?;
        print(&format!("  launch, one message, terminate another, {mode} in {memory}"), &launch);
    }
    for memory in [PayloadMemory::Mapped, PayloadMemory::Device] {
        let mut other = host.launch::<VectorAdd>(LaunchConfig::default().payload_memory(memory))?;
        let mut words = [7u32; 16];
        let copy = times(100, |_| {
            other.write_payload(0, &words, SECONDS)?;
            Ok(other.read_payload(0, &mut words, SECONDS)?)
        })?;
        print(&format!("  64 bytes into the payload and back, {memory}"), &copy);
    }
    let query = times(1000, |i| {
        kernels[i as usize % 16].status();
        Ok(())
    })?;
    print("  status of one", &query);
    let open = times(20, |_| {
        let mut kernel = active(&Runtime::open_with(device, config())?, LaunchConfig::default())?;
        answer(&mut kernel, 1)
    })?;
    print("  open, launch, drop of another runtime", &open);
    // A module that was not loaded before: the runtime's, with a comment that makes it new.
    let ptx = format!("{}\n// {}\n", config().kernels.ptx(), std::process::id());
    let begun = Instant::now();
    let prepared = host.prepare::<Echo>(&with_ptx(LaunchConfig::default(), ptx.into_bytes()));
    println!("  load of a module not seen before: {prepared:?} after {:.1?}", begun.elapsed());
    for (i, kernel) in kernels.iter_mut().enumerate() {
        answer(kernel, i as u64)?;
    }
    println!("  and all 16 still answer");
    Ok(())
}
