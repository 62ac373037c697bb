//! Sends numbers to the kernel `Square` and checks each answer.

use {{crate}}::Square;

use ring_host::{Device, LaunchConfig, Runtime};
use std::error::Error;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// How it is called.
const USAGE: &str = concat!(env!("CARGO_PKG_NAME"), " [auto|cpu|cuda] [messages]");

/// The longest wait for an answer: on a machine with much else to do a CPU thread waits for its turn.
const LONGEST: Duration = Duration::from_secs(30);

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let device = arguments.next().unwrap_or_else(|| "auto".to_owned());
    let messages = arguments.next().unwrap_or_else(|| "1000000".to_owned());
    match run(&device, &messages) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}\nusage: {USAGE}");
            ExitCode::FAILURE
        }
    }
}

fn run(device: &str, messages: &str) -> Result<(), Box<dyn Error>> {
    let Ok(count) = messages.parse() else {
        return Err(format!("'{messages}' is no number of messages").into());
    };
    let runtime = Runtime::open(choose(device.parse()?)?)?;
    println!("device: {}", runtime.device().name);
    let time = answers(&runtime, count)?;
    let rate = count as f64 / time.as_secs_f64() / 1e6;
    println!("{count} answers, all right, in {time:.1?}: {rate:.1} million a second");
    Ok(())
}

/// Without PTX there are CPU threads.
fn choose(device: Device) -> Result<Device, String> {
    match device {
        Device::Cuda(_) if cfg!(not(feature = "gpu")) => {
            Err("these kernels are not compiled for a GPU; build with --features gpu".to_owned())
        }
        Device::Auto if cfg!(not(feature = "gpu")) => Ok(Device::Cpu),
        device => Ok(device),
    }
}

/// The kernels that build.rs compiled, if it did.
fn launch() -> LaunchConfig {
    #[cfg(feature = "gpu")]
    return LaunchConfig::default().kernels(ring_host::include_kernels!());
    #[cfg(not(feature = "gpu"))]
    LaunchConfig::default()
}

/// Sends so many messages and checks that each was answered once, in order, with its square.
fn answers(runtime: &Runtime, count: u64) -> Result<Duration, Box<dyn Error>> {
    let mut kernel = runtime.launch::<Square>(launch())?;
    kernel.activate(LONGEST)?;
    let begun = Instant::now();
    let (mut sent, mut received, mut wrong) = (0, 0, 0);
    let mut last = begun;
    while received < count {
        let room = (count - sent).min(1024) as usize;
        sent += kernel.try_send_each(room, |k| sent + k as u64)? as u64;
        let came = kernel.try_recv_each(1024, |answer| {
            wrong += u64::from(*answer != received.wrapping_mul(received));
            received += 1;
        })?;
        if came > 0 {
            last = Instant::now();
        } else if last.elapsed() > LONGEST {
            return Err(format!("no answer for {LONGEST:?}, after {received} of {count}").into());
        }
    }
    let time = begun.elapsed();
    kernel.terminate(LONGEST)?;
    if wrong > 0 {
        return Err(format!("{wrong} of {count} answers are wrong").into());
    }
    Ok(time)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_answer_is_right() {
        let runtime = Runtime::open(Device::Cpu).unwrap();
        answers(&runtime, 10_000).unwrap();
    }

    #[test]
    fn what_cannot_be_is_said() {
        let said = |device, messages| run(device, messages).unwrap_err().to_string();
        assert!(said("cpu", "many").contains("'many'"));
        assert!(said("gpu", "1").contains("'gpu'"));
    }
}
