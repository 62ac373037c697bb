//! A wave on a square membrane, by finite differences: the whole device takes a thousand dependent steps in one message. A graph
//! would launch a kernel for each of them.
//!
//! `cargo run --release -p example-wave -- [device [side [steps]]] [--blocks N] [--threads N]`, where the device is auto, cpu or cuda.

use ring_example_kernels::{PTX, Steps, Wave};
use ring_host::{Kernels, LaunchConfig, Runtime};
use std::time::{Duration, Instant};

const LONG: Duration = Duration::from_secs(60);

/// The square of the Courant number.
const COURANT: f32 = 0.25;

/// Shades of the picture, from the deepest trough to the highest crest.
const SHADES: &[u8] = b" .:-=+*#%@";

// SAFETY: the PTX that was made of the crate whose kernel is launched.
const KERNELS: Kernels = unsafe { Kernels::new(PTX) };

type Done = Result<(), Box<dyn std::error::Error>>;

fn main() -> Done {
    let mut words = Vec::new();
    let mut launch = LaunchConfig::default().kernels(KERNELS);
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let mut value = || args.next().ok_or(format!("{arg} wants a value"));
        match arg.as_str() {
            "--blocks" => launch = launch.blocks(value()?.parse()?),
            "--threads" => launch = launch.threads(value()?.parse()?),
            _ => words.push(arg),
        }
    }
    let mut words = words.iter().map(String::as_str);
    let device = words.next().unwrap_or("auto").parse()?;
    let side = words.next().map_or(Ok(512), str::parse)?;
    let steps = words.next().map_or(Ok(1000), str::parse)?;
    run(&Runtime::open(device)?, launch, side, steps)
}

/// A drop beside the middle, at rest.
fn drop_of(side: usize) -> Vec<f32> {
    let at = |k: usize, part: f32| (k as f32 / side as f32 - part) * 12.0;
    let point = |row, column| (-at(row, 0.35).powi(2) - at(column, 0.4).powi(2)).exp();
    let is_inner = |k: usize| k > 0 && k + 1 < side;
    let points = (0..side * side).map(|k| (k / side, k % side));
    points.map(|(r, c)| if is_inner(r) && is_inner(c) { point(r, c) } else { 0.0 }).collect()
}

/// The same steps on the host, in double precision.
fn reference(field: &[f32], side: usize, steps: u32) -> Vec<f64> {
    let mut now: Vec<f64> = field.iter().copied().map(f64::from).collect();
    let mut next = now.clone();
    for _ in 0..steps {
        for row in 1..side - 1 {
            for at in row * side + 1..(row + 1) * side - 1 {
                let around = now[at - side] + now[at + side] + now[at - 1] + now[at + 1];
                next[at] = 2.0 * now[at] - next[at] + f64::from(COURANT) * (around - 4.0 * now[at]);
            }
        }
        std::mem::swap(&mut now, &mut next);
    }
    now
}

/// Takes the steps in one message, and compares the field with the reference.
fn run(host: &Runtime, launch: LaunchConfig, side: u32, steps: u32) -> Done {
    let points = side as usize * side as usize;
    let begin = drop_of(side as usize);
    let (now, before) = (host.buffer::<f32>(points)?, host.buffer::<f32>(points)?);
    now.upload(0, &begin, LONG)?;
    before.upload(0, &begin, LONG)?;

    let mut kernel = host.launch::<Wave>(launch)?;
    kernel.activate(LONG)?;
    let begun = Instant::now();
    let (now_at, before_at) = (now.reference(), before.reference());
    let message =
        Steps { now: now_at, before: before_at, side, steps, courant: COURANT, unused: 0 };
    kernel.send(message, LONG)?;
    let membrane = kernel.recv(LONG)?;
    let time = begun.elapsed();
    assert_eq!(membrane.done, 1, "the kernel refused the buffers");

    // After an odd number of steps the fields have changed places.
    let mut field = vec![0.0; points];
    let last = if steps.is_multiple_of(2) { &now } else { &before };
    last.download(0, &mut field, LONG)?;
    kernel.terminate(LONG)?;

    let right = reference(&begin, side as usize, steps);
    let square = |x: f64| x * x;
    let off: f64 = field.iter().zip(&right).map(|(x, y)| square(f64::from(*x) - y)).sum();
    let all: f64 = right.iter().copied().map(square).sum();
    let error = (off / all).sqrt();
    let each = time.as_secs_f64() * 1e6 / f64::from(steps.max(1));
    println!("{}: {steps} steps of {side} x {side} in {time:.1?}", host.device().name);
    println!("{each:.2} us a step; relative error {error:.1e} (L2, against double precision)");
    println!("{}", picture(&field, side as usize));
    assert!(error < 1e-3, "the field is {error:.1e} off");
    assert!((membrane.squares / all - 1.0).abs() < 1e-3, "{} is not {all}", membrane.squares);
    Ok(())
}

/// The field, in 24 lines of 64 shades.
fn picture(field: &[f32], side: usize) -> String {
    let most = field.iter().fold(f32::MIN_POSITIVE, |most, x| most.max(x.abs()));
    let shade = |x: f32| {
        let part = (x / most + 1.0) / 2.0 * (SHADES.len() - 1) as f32;
        char::from(SHADES[(part.round() as usize).min(SHADES.len() - 1)])
    };
    let line = |l: usize| -> String {
        (0..64).map(|c| shade(field[l * side / 24 * side + c * side / 64])).collect()
    };
    (0..24).map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn on_every_device() {
    let kernels = ring_tests::kernels::of_examples::<Wave>();
    let launch = LaunchConfig::default().kernels(kernels).blocks(3);
    ring_tests::on_each_device(|host| {
        // With rows that are so many fours, and with others; odd and even numbers of steps; next to no points.
        for (side, steps) in [(64, 200), (61, 33), (3, 5), (4, 1)] {
            run(host, launch.clone(), side, steps).unwrap();
        }
    });
}
