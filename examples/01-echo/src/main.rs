//! Hello, kernel: messages go to a kernel that stays on the device, and come back.
//!
//! `cargo run --release -p example-echo [device [count]]`, where the device is auto, cpu or cuda.

use ring_host::kernels::{Echo, EchoMessage};
use ring_host::{Error, LaunchConfig, Runtime};
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let device = args.next().as_deref().unwrap_or("auto").parse()?;
    let count = args.next().map_or(Ok(1000), |n| n.parse())?;
    Ok(run(&Runtime::open(device)?, count)?)
}

fn run(runtime: &Runtime, count: u64) -> Result<(), Error> {
    let mut kernel = runtime.launch::<Echo>(LaunchConfig::default())?;
    kernel.activate(SECOND)?; // from now on it takes messages
    for seed in 0..count {
        let request = EchoMessage::from_seed(seed);
        kernel.send(request, SECOND)?;
        assert_eq!(kernel.recv(SECOND)?, request.answer());
    }
    let summary = kernel.terminate(SECOND)?;
    println!("{}: {} messages answered", runtime.device().name, summary.processed);
    Ok(())
}

#[test]
fn on_every_device() {
    ring_tests::on_each_device(|runtime| run(runtime, 1000).unwrap());
}
