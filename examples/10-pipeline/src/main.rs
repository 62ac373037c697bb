//! Two graphs of kernels, which send messages to each other on the device; the host feeds the first kernel and reads what comes
//! out at the end.
//!
//! 1. Lines of text become orders, which go by their symbols to the channels of a book; from there come trades, and quotes
//!    that a fourth kernel makes alerts of (`trading.rs`).
//! 2. Lines of text become words, which go by their hashes to channels that count them (`words.rs`).
//!
//! `cargo run --release -p example-pipeline [device [lines]]`, where the device is auto, cpu or cuda.

mod market;
mod trading;
mod words;

use ring_example_kernels::PTX;
use ring_host::{Error, Kernels, Message, PortReceiver, RecvTimeoutError, Runtime};
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(10);

// SAFETY: the PTX that was made of the crate whose kernels are launched.
const KERNELS: Kernels = unsafe { Kernels::new(PTX) };

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let device = args.next().as_deref().unwrap_or("auto").parse()?;
    let lines = args.next().map_or(Ok(100_000), |n| n.parse())?;
    Ok(run(&Runtime::open(device)?, KERNELS, lines)?)
}

/// Runs both graphs, one after the other.
fn run(runtime: &Runtime, kernels: Kernels, lines: u64) -> Result<(), Error> {
    println!("{}", runtime.device().name);
    trading::run(runtime, kernels, lines)?;
    words::run(runtime, kernels, 1 + lines / 1000)
}

/// Everything that comes to a port until its kernel is terminated.
fn collect<M: Message>(mut port: PortReceiver<M>) -> Result<Vec<M>, RecvTimeoutError> {
    let mut messages = Vec::new();
    loop {
        match port.recv(LIMIT) {
            Ok(message) => messages.push(message),
            Err(RecvTimeoutError::Closed { .. }) => return Ok(messages),
            Err(error) => return Err(error),
        }
    }
}

#[test]
fn on_every_device() {
    let kernels = ring_tests::kernels::of_examples::<ring_example_kernels::pipeline::Parse>();
    ring_tests::on_each_device(|host| run(host, kernels, 20_000).unwrap());
}
