//! A wave on a square membrane, by finite differences: the whole device takes a thousand dependent steps in one message. A graph
//! would launch a kernel for each of them.
//!
//! `cargo run --release -p example-wave -- [device [side [steps]]] [--blocks N] [--threads N]`, where the device is auto, cpu or cuda.

use ring_example_kernels::{Membrane, PTX, Steps, Wave};
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
    run(&Runtime::open(device)?, launch, (side, steps), 20)
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

/// The sum of the squares.
fn squares(field: impl Iterator<Item = f64>) -> f64 {
    field.map(|x| x * x).sum()
}

/// By how much a field is off (L2), as a part of what the field at the beginning has in all. No point may be off by a thousandth.
fn off(field: &[f32], right: &[f64], begin: &[f32]) -> f64 {
    let each = field.iter().zip(right).map(|(x, y)| f64::from(*x) - y);
    assert!(each.clone().all(|off| off.abs() <= 1e-3), "a point is off");
    (squares(each) / squares(begin.iter().copied().map(f64::from))).sqrt()
}

/// Takes the steps in one message, and compares the field with the reference; then as many messages more, for their median time.
fn run(host: &Runtime, launch: LaunchConfig, (side, steps): (u32, u32), more: usize) -> Done {
    let points = side as usize * side as usize;
    let begin = drop_of(side as usize);
    let (now, before) = (host.buffer::<f32>(points)?, host.buffer::<f32>(points)?);
    let spare = [host.buffer::<f32>(points)?, host.buffer::<f32>(points)?];
    now.upload(0, &begin, LONG)?;
    before.upload(0, &begin, LONG)?;

    let mut kernel = host.launch::<Wave>(launch)?;
    kernel.activate(LONG)?;
    let message = Steps {
        now: now.reference(),
        before: before.reference(),
        spare: spare.each_ref().map(|buffer| buffer.reference()),
        side,
        steps,
        courant: COURANT,
        unused: 0,
    };
    let mut take = || -> Result<(Membrane, Duration), Box<dyn std::error::Error>> {
        let begun = Instant::now();
        kernel.send(message, LONG)?;
        let membrane = kernel.recv(LONG)?;
        assert_eq!(membrane.done, 1, "the kernel refused the buffers");
        Ok((membrane, begun.elapsed()))
    };
    let (membrane, first) = take()?;
    let (mut field, mut last) = (vec![0.0; points], vec![0.0; points]);
    now.download(0, &mut field, LONG)?;
    before.download(0, &mut last, LONG)?;
    let mut times = vec![first];
    for _ in 0..more {
        times.push(take()?.1);
    }
    kernel.terminate(LONG)?;
    times.sort();
    let time = times[times.len() / 2];

    let right = reference(&begin, side as usize, steps);
    let error = off(&field, &right, &begin);
    let right_before = reference(&begin, side as usize, steps.saturating_sub(1));
    let error_before = off(&last, &right_before, &begin);
    let each = time.as_secs_f64() * 1e6 / f64::from(steps.max(1));
    println!(
        "{}: {steps} steps of {side} x {side} in {time:.1?} (p50 of {} messages)",
        host.device().name,
        times.len()
    );
    println!("{each:.2} us a step; relative error {error:.1e} (L2, against double precision)");
    println!("{}", picture(&field, side as usize));
    assert!(error < 1e-3, "the field is {error:.1e} off");
    assert!(error_before < 1e-3, "the field before is {error_before:.1e} off");
    let summed = squares(field.iter().copied().map(f64::from));
    assert!(
        (membrane.squares - summed).abs() <= 1e-9 * summed,
        "{} is not {summed}",
        membrane.squares
    );
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
        // Tiles beside and below each other, and the path of sides that are no multiple of 4; next to no points.
        for side in [3, 4, 5, 61, 64, 120, 124, 128, 129, 256] {
            // Rounds of all numbers of steps, odd and even numbers of rounds.
            for steps in [0, 1, 3, 4, 5, 33, 200] {
                run(host, launch.clone(), (side, steps), 0).unwrap();
            }
        }
        // More blocks than tiles, and one warp for all tiles.
        run(host, launch.clone().blocks(16), (28, 33), 0).unwrap();
        run(host, launch.clone().blocks(1).threads(32), (500, 21), 0).unwrap();
    });
}
