//! Two small networks that answer request after request: how long each answer takes.
//!
//! `cargo run --release -p ring-inference -- [device [requests]] [--blocks N] [--threads N]`, where the device is auto, cpu or cuda, and blocks and threads
//! are those of the LSTM's grid.

use ring_host::{Device, LaunchConfig, Runtime};
use ring_inference::{Done, KERNELS, LONG, lstm, mlp};
use ring_whole_device_kernels::{Lstm, LstmRequest, Mlp, MlpRequest};
use std::time::{Duration, Instant};

fn main() -> Done<()> {
    let mut words = Vec::new();
    let (mut blocks, mut threads) = (None, None);
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let mut value = || args.next().ok_or(format!("{arg} wants a value"));
        match arg.as_str() {
            "--blocks" => blocks = Some(value()?.parse()?),
            "--threads" => threads = Some(value()?.parse()?),
            _ => words.push(arg),
        }
    }
    let device: Device = words.first().map_or("auto", String::as_str).parse()?;
    let requests = words.get(1).map_or(Ok(20_000), |requests| requests.parse())?;
    let host = Runtime::open(device)?;
    println!("{}; one request in flight, {requests} of them", host.device().name);
    perceptron(&host, requests)?;
    let is_gpu = host.device().kind == ring_host::DeviceKind::Cuda;
    let mut launch = LaunchConfig::default().kernels(KERNELS);
    launch = launch.blocks(blocks.unwrap_or(if is_gpu { 128 } else { 1 }));
    if let Some(threads) = threads {
        launch = launch.threads(threads);
    }
    streams(&host, launch, requests)
}

/// Asks the perceptron, and compares the first answers with the reference.
fn perceptron(host: &Runtime, requests: usize) -> Done<()> {
    let weights = mlp::Weights::made();
    let buffer = weights.buffer(host)?;
    let mut kernel = host.launch::<Mlp>(LaunchConfig::default().kernels(KERNELS))?;
    kernel.activate(LONG)?;
    let (rounded, mut off, mut times) = (weights.rounded(), [0.0f64; 2], Vec::new());
    for request in 0..requests {
        let x = mlp::inputs(request);
        let asked = MlpRequest { x, weights: buffer.reference() };
        let begun = Instant::now();
        kernel.send(asked, LONG)?;
        let answer = kernel.recv(LONG)?;
        times.push(begun.elapsed());
        if answer.done == 0 {
            return Err("the weights were refused".into());
        }
        if request < 20 {
            for (off, weights) in off.iter_mut().zip([&rounded, &weights]) {
                *off = off.max(distance(&answer.y, &weights.reference(&x)));
            }
        }
    }
    kernel.terminate(LONG)?;
    tell("perceptron 64-256-256-16, weights of 16 bits, a block of 512", times);
    println!("    off by {:.1e}, and by {:.1e} of what weights of 32 bits give", off[0], off[1]);
    Ok(())
}

/// Takes steps of a stream, and compares the first answers with the reference.
fn streams(host: &Runtime, launch: LaunchConfig, requests: usize) -> Done<()> {
    let weights = lstm::Weights::made();
    let (buffer, states) = (weights.buffer(host)?, lstm::states(host, 1024)?);
    let mut kernel = host.launch::<Lstm>(launch)?;
    kernel.activate(LONG)?;
    let (mut reference, mut off, mut times) = (lstm::Reference::default(), 0.0f64, Vec::new());
    for step in 0..requests {
        let x = lstm::features(step, 0);
        let asked =
            LstmRequest { x, weights: buffer.reference(), state: states.reference(), stream: 0 };
        let begun = Instant::now();
        kernel.send(asked, LONG)?;
        let answer = kernel.recv(LONG)?;
        times.push(begun.elapsed());
        if answer.done == 0 {
            return Err("the weights were refused, or there are too few blocks".into());
        }
        if step < 20 {
            off = off.max(distance(&answer.y, &reference.step(&weights, &x)));
        }
    }
    kernel.terminate(LONG)?;
    tell("LSTM 2 x 128, 32 features, 32 bits, a stream", times);
    println!("    off by {off:.1e}");
    Ok(())
}

/// The largest difference.
fn distance(found: &[f32], expected: &[f64]) -> f64 {
    let both = found.iter().zip(expected);
    both.map(|(found, expected)| (f64::from(*found) - expected).abs()).fold(0.0, f64::max)
}

/// Prints how long answers took.
fn tell(what: &str, mut times: Vec<Duration>) {
    times.sort();
    let at = |part: f64| times[((times.len() - 1) as f64 * part) as usize].as_secs_f64() * 1e6;
    println!("{what}");
    println!(
        "    p50 {:.2} us, p99 {:.2}, p99.9 {:.2}, p99.99 {:.2}, max {:.2}",
        at(0.5),
        at(0.99),
        at(0.999),
        at(0.9999),
        at(1.0)
    );
}
