//! A wave on a square membrane, by finite differences: the whole device takes a thousand dependent steps in one message. A graph
//! would launch a kernel for each of them.
//!
//! `cargo run --release -p ring-wave -- [device [side [steps]]] [--blocks N] [--threads N]`, where the device is auto, cpu or cuda.

use ring_host::{LaunchConfig, Runtime};
use ring_wave::{Done, Field, KERNELS, LONG};
use ring_whole_device_kernels::{Membrane, Wave};
use std::time::{Duration, Instant};

/// Shades of the picture, from the deepest trough to the highest crest.
const SHADES: &[u8] = b" .:-=+*#%@";

fn main() -> Done<()> {
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

/// Takes the steps in one message, and compares the field with the reference; then as many messages more, for their median time.
fn run(host: &Runtime, launch: LaunchConfig, (side, steps): (u32, u32), more: usize) -> Done<()> {
    let field = Field::new(host, side)?;
    let mut kernel = host.launch::<Wave>(launch)?;
    kernel.activate(LONG)?;
    let mut take = || -> Done<(Membrane, Duration)> {
        let begun = Instant::now();
        kernel.send(field.message(steps), LONG)?;
        let membrane = kernel.recv(LONG)?;
        Ok((membrane, begun.elapsed()))
    };
    let (membrane, first) = take()?;
    let error = field.check(&field.reference(steps), &membrane)?;
    let now = field.now()?;
    let mut times = vec![first];
    for _ in 0..more {
        times.push(take()?.1);
    }
    kernel.terminate(LONG)?;
    times.sort();
    let time = times[times.len() / 2];
    let each = time.as_secs_f64() * 1e6 / f64::from(steps.max(1));
    println!(
        "{}: {steps} steps of {side} x {side} in {time:.1?} (p50 of {} messages)",
        host.device().name,
        times.len()
    );
    println!("{each:.2} us a step; relative error {error:.1e} (L2, against double precision)");
    println!("{}", picture(&now, side as usize));
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
fn a_picture_has_24_lines_of_64_shades() {
    let picture = picture(&[-1.0, 0.0, 0.0, 0.5], 2);
    let lines: Vec<&str> = picture.lines().collect();
    assert!(lines.len() == 24 && lines.iter().all(|line| line.len() == 64), "{picture}");
    assert_eq!(lines[0], " ".repeat(32) + &"+".repeat(32));
    assert_eq!(lines[23], "+".repeat(32) + &"#".repeat(32));
}
