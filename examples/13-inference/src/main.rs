//! Two small networks that answer request after request: how long each answer takes.
//!
//! `cargo run --release -p ring-inference -- [device [requests]] [--mlp FILE] [--lstm FILE] [--blocks N] [--threads N] [--replace RATE]`, where the
//! device is auto, cpu or cuda, the files are of safetensors with the weights, which are made on the spot without them, and blocks and
//! threads are those of the LSTM's grid. With a rate it does something else: the perceptron gets so many requests a second, while all of
//! its weights, 64 MiB, stay and while they are replaced.

use ring_host::{Device, DeviceKind, Kernel, KernelHandle, LaunchConfig, Runtime};
use ring_inference::replacing::{self, Load, Replaced};
use ring_inference::{Done, KERNELS, LONG, lstm, mlp};
use ring_whole_device_kernels::{Lstm, LstmRequest, Mlp, MlpRequest};
use std::collections::VecDeque;
use std::fmt::Debug;
use std::fs;
use std::hint::{black_box, spin_loop};
use std::time::{Duration, Instant};

/// Inputs that requests have by turns.
const INPUTS: usize = 1000;

/// Streams that take steps by turns.
const STREAMS: usize = 1024;

fn main() -> Done<()> {
    let mut words = Vec::new();
    let (mut blocks, mut threads, mut rate) = (None, None, None);
    let (mut perceptron, mut network) = (mlp::Weights::made(), lstm::Weights::made());
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let mut value = || args.next().ok_or(format!("{arg} wants a value"));
        match arg.as_str() {
            "--mlp" => perceptron = mlp::Weights::of_file(&fs::read(value()?)?)?,
            "--lstm" => network = lstm::Weights::of_file(&fs::read(value()?)?)?,
            "--blocks" => blocks = Some(value()?.parse()?),
            "--replace" => rate = Some(value()?.parse()?),
            "--threads" => threads = Some(value()?.parse()?),
            _ => words.push(arg),
        }
    }
    let device: Device = words.first().map_or("auto", String::as_str).parse()?;
    let requests = words.get(1).map_or(Ok(20_000), |requests| requests.parse())?;
    let host = Runtime::open(device)?;
    if let Some(rate) = rate {
        return replace(&host, rate, requests);
    }
    println!("{}; one request in flight, {requests} of them", host.device().name);
    ask_perceptron(&host, &perceptron, requests)?;
    let is_gpu = host.device().kind == DeviceKind::Cuda;
    let mut launch = LaunchConfig::default().kernels(KERNELS);
    launch = launch.blocks(blocks.unwrap_or(if is_gpu { 129 } else { 1 }));
    if let Some(threads) = threads {
        launch = launch.threads(threads);
    }
    ask_lstm(&host, launch, &network, requests)?;
    ask_batches(&host, &network, requests)
}

/// Asks the perceptron, and compares the first answers with the reference.
fn ask_perceptron(host: &Runtime, weights: &mlp::Weights, requests: usize) -> Done<()> {
    let buffer = weights.buffer(host)?;
    let mut kernel = host.launch::<Mlp>(LaunchConfig::default().kernels(KERNELS))?;
    kernel.activate(LONG)?;
    let (rounded, mut off, mut times) = (weights.rounded(), [0.0f64; 2], Vec::new());
    let inputs: Vec<_> = (0..INPUTS).map(mlp::inputs).collect();
    let of = |request: usize| inputs[request % INPUTS];
    for request in 0..requests {
        let x = of(request);
        let asked = MlpRequest { x, weights: buffer.reference() };
        let answer = timed(&mut kernel, asked, &mut times)?;
        if answer.done == 0 {
            return Err("the weights were refused".into());
        }
        if request < 20 {
            for (off, weights) in off.iter_mut().zip([&rounded, weights]) {
                *off = off.max(distance(&answer.y, &weights.reference(&x)));
            }
        }
    }
    tell("perceptron 64-256-256-16, weights of 16 bits, a block of 512", times);
    println!("    off by {:.1e}, and by {:.1e} of what weights of 32 bits give", off[0], off[1]);
    let reference = buffer.reference();
    by_pause(host, &mut kernel, |n| MlpRequest { x: of(n), weights: reference })?;
    kernel.terminate(LONG)?;
    let (words, mut times) = (weights.words(), Vec::new());
    for request in 0..requests.min(20_000) {
        let (x, begun) = (of(request), Instant::now());
        black_box(mlp::plain(black_box(&words), black_box(&x)));
        times.push(begun.elapsed());
    }
    tell("    the same by a plain function on this CPU", times);
    Ok(())
}

/// Prints how long an answer takes where the host waits so long before it sends the next request: the device looks for requests at a
/// rhythm of its own, with which a host that sends at once may be in step. The CPU device has none.
fn by_pause<K: Kernel>(
    host: &Runtime,
    kernel: &mut KernelHandle<K>,
    request: impl Fn(usize) -> K::Request,
) -> Done<()>
where
    K::Request: Debug,
{
    if host.device().kind != DeviceKind::Cuda {
        return Ok(());
    }
    let mut asked = |pause: &mut dyn FnMut() -> Duration| -> Done<Vec<Duration>> {
        let mut times = Vec::new();
        for n in 0..10_000 {
            let (begun, pause) = (Instant::now(), pause());
            while begun.elapsed() < pause {
                spin_loop();
            }
            timed(kernel, request(n), &mut times)?;
        }
        times.sort();
        Ok(times)
    };
    let us = |time: Duration| time.as_secs_f64() * 1e6;
    print!("    p50 by the pause before a request, from 0 to 2 us:");
    for pause in (0..=20).map(|pause| Duration::from_nanos(100 * pause)) {
        let times = asked(&mut || pause)?;
        print!(" {:.2}", us(times[times.len() / 2]));
    }
    let mut drawn = 1u64;
    let times = asked(&mut || {
        drawn = drawn.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        Duration::from_nanos((drawn >> 33) % 2000)
    })?;
    let mean = us(times.iter().sum::<Duration>()) / times.len() as f64;
    println!(
        "\n    where each pause is drawn from these: p50 {:.2} us, mean {mean:.2}",
        us(times[times.len() / 2])
    );
    Ok(())
}

/// Asks the perceptron so often a second, while its weights stay and while they are replaced.
fn replace(host: &Runtime, rate: f64, requests: usize) -> Done<()> {
    let is_gpu = host.device().kind == DeviceKind::Cuda;
    let (channels, senders) = if is_gpu { (32, 4) } else { (1, 1) };
    println!(
        "{}; {rate} requests a second to {channels} channels, {requests} in all",
        host.device().name
    );
    for replaces in [false, true] {
        let requests = requests as u64;
        let load = Load { channels, senders, rate, requests, replaces, bytes: 64 << 20 };
        let Replaced { replaced, wrong, times, longest } = replacing::run(host, load)?;
        let late = times.iter().filter(|time| **time > 1_000_000).count();
        println!(
            "64 MiB of weights replaced {replaced} times, at most {longest:.1?} each: {wrong} answers wrong, {late} later than 1 ms",
        );
        tell(
            "from when a request was due to its answer",
            times.into_iter().map(|time| Duration::from_nanos(time.into())).collect(),
        );
        if wrong > 0 {
            return Err("answers were wrong".into());
        }
    }
    Ok(())
}

/// Takes steps of a stream, and compares the first answers with the reference.
fn ask_lstm(
    host: &Runtime,
    launch: LaunchConfig,
    weights: &lstm::Weights,
    requests: usize,
) -> Done<()> {
    let (buffer, states) = (weights.buffer(host)?, lstm::states(host, 1)?);
    let mut kernel = host.launch::<Lstm>(launch)?;
    kernel.activate(LONG)?;
    let (mut reference, mut off, mut times) = (lstm::Reference::default(), 0.0f64, Vec::new());
    let inputs: Vec<_> = (0..INPUTS).map(|step| lstm::features(step, 0)).collect();
    let of = |request: usize| inputs[request % INPUTS];
    for step in 0..requests {
        let x = of(step);
        let asked =
            LstmRequest { x, weights: buffer.reference(), state: states.reference(), stream: 0 };
        let answer = timed(&mut kernel, asked, &mut times)?;
        if answer.done == 0 {
            return Err("the weights were refused, or there are too few blocks".into());
        }
        if step < 20 {
            off = off.max(distance(&answer.y, &reference.step(weights, &x)));
        }
    }
    tell("LSTM 2 x 128, 32 features, 32 bits, a stream", times);
    println!("    off by {off:.1e}");
    let (weights, state) = (buffer.reference(), states.reference());
    by_pause(host, &mut kernel, |n| LstmRequest { x: of(n), weights, state, stream: 0 })?;
    for in_flight in [8, 64] {
        let states = lstm::states(host, STREAMS)?;
        let state = states.reference();
        steps(&mut kernel, (requests, in_flight), |request| {
            let stream = (request % STREAMS) as u32;
            LstmRequest { x: of(request), weights, state, stream }
        })?;
    }
    kernel.terminate(LONG)?;
    Ok(())
}

/// Takes steps of many streams by turns, of which so many are in flight; prints how many a second, and how long each took.
fn steps(
    kernel: &mut KernelHandle<Lstm>,
    (requests, in_flight): (usize, usize),
    request: impl Fn(usize) -> LstmRequest,
) -> Done<()> {
    let send = |kernel: &mut KernelHandle<Lstm>, n| Ok(kernel.send(request(n), LONG)?);
    let recv = |kernel: &mut KernelHandle<Lstm>| match kernel.recv(LONG)?.done {
        0 => Err("a step was refused".into()),
        _ => Ok(()),
    };
    let (took, times) = keep_in_flight(kernel, (requests, in_flight), send, recv)?;
    let rate = requests as f64 / took.as_secs_f64();
    tell(
        &format!("    {STREAMS} streams by turns, {in_flight} steps in flight: {rate:.0} a second"),
        times,
    );
    Ok(())
}

/// Sends so many requests, by number, of which so many are in flight, and receives their answers in that order; how long all took, and
/// each of them.
fn keep_in_flight<K>(
    kernel: &mut K,
    (requests, in_flight): (usize, usize),
    send: impl Fn(&mut K, usize) -> Done<()>,
    mut recv: impl FnMut(&mut K) -> Done<()>,
) -> Done<(Duration, Vec<Duration>)> {
    let begun = Instant::now();
    let (mut sent, mut times) = (VecDeque::new(), Vec::new());
    for n in 0..requests + in_flight {
        if n >= in_flight {
            recv(kernel)?;
            times.extend(sent.pop_front().map(|begun: Instant| begun.elapsed()));
        }
        if n < requests {
            sent.push_back(Instant::now());
            send(kernel, n)?;
        }
    }
    Ok((begun.elapsed(), times))
}

/// Takes steps of many streams together, one batch after the other and two under way, and compares the first answers with the reference.
fn ask_batches(host: &Runtime, weights: &lstm::Weights, requests: usize) -> Done<()> {
    let is_gpu = host.device().kind == DeviceKind::Cuda;
    let (blocks, sizes): (u32, &[usize]) = match is_gpu {
        true => (128, &[1, 8, 64, 256, 512, 768, 1000, 1024]),
        false => (1, &[1, 8, 64]),
    };
    let buffer = weights.buffer(host)?;
    println!("LSTM, 32 bits, streams that take their steps together, a message for all of them");
    for size in sizes.iter().copied() {
        let launch = LaunchConfig::default().kernels(KERNELS).blocks(blocks);
        let mut kernel = lstm::Batches::launch(host, launch, (size, size))?;
        let streams: Vec<u32> = (0..size as u32).collect();
        let features = |step| (0..size).map(|stream| lstm::features(step, stream)).collect();
        let inputs: Vec<Vec<_>> = (0..10).map(features).collect();
        let (mut outputs, mut off) = (Vec::new(), 0.0f64);
        let mut references = [0, size / 2, size - 1].map(|k| (k, lstm::Reference::default()));
        for inputs in &inputs {
            kernel.send(buffer.reference(), &streams, inputs)?;
            kernel.recv(&mut outputs)?;
            for (stream, reference) in &mut references {
                let expected = reference.step(weights, &inputs[*stream]);
                off = off.max(distance(&outputs[*stream], &expected));
            }
        }
        let batches = if is_gpu { requests.min(2000) } else { (requests / size).clamp(10, 100) };
        for in_flight in 1..=lstm::BATCHES {
            let send = |kernel: &mut lstm::Batches, n: usize| {
                kernel.send(buffer.reference(), &streams, &inputs[n % inputs.len()])
            };
            let recv = |kernel: &mut lstm::Batches| kernel.recv(&mut outputs);
            let (took, times) = keep_in_flight(&mut kernel, (batches, in_flight), send, recv)?;
            let rate = (size * batches) as f64 / took.as_secs_f64();
            tell(&format!("    {size} streams, {in_flight} under way: {rate:.0} a second"), times);
        }
        println!("    off by {off:.1e}");
        kernel.terminate()?;
    }
    Ok(())
}

/// Sends a request and waits for its answer; notes how long that took.
fn timed<K: Kernel>(
    kernel: &mut KernelHandle<K>,
    request: K::Request,
    times: &mut Vec<Duration>,
) -> Done<K::Response>
where
    K::Request: Debug,
{
    let begun = Instant::now();
    kernel.send(request, LONG)?;
    let answer = kernel.recv(LONG)?;
    times.push(begun.elapsed());
    Ok(answer)
}

/// The largest difference.
fn distance(found: &[f32], expected: &[f64]) -> f64 {
    let both = found.iter().zip(expected);
    both.map(|(found, expected)| (f64::from(*found) - expected).abs()).fold(0.0, f64::max)
}

/// Prints how long answers took.
fn tell(what: &str, mut times: Vec<Duration>) {
    println!("{what}");
    if times.is_empty() {
        return;
    }
    times.sort();
    let at = |part: f64| times[((times.len() - 1) as f64 * part) as usize].as_secs_f64() * 1e6;
    println!(
        "    p50 {:.2} us, p99 {:.2}, p99.9 {:.2}, p99.99 {:.2}, max {:.2}",
        at(0.5),
        at(0.99),
        at(0.999),
        at(0.9999),
        at(1.0)
    );
}
