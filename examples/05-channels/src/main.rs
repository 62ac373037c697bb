//! Several channels, two threads each: one sends, the other receives. A channel is a pair of rings with a
//! block of its own on the device; channels share nothing, so neither do these threads.
//!
//! `cargo run --release -p example-channels [device [messages a channel]]`

use ring_host::kernels::{Echo, EchoMessage};
use ring_host::{Error, LaunchConfig, Receiver, Runtime, Sender};
use std::thread;
use std::time::{Duration, Instant};

const CHANNELS: u32 = 3;
const LIMIT: Duration = Duration::from_secs(10);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let device = args.next().as_deref().unwrap_or("auto").parse()?;
    let count = args.next().map_or(Ok(100_000), |n| n.parse())?;
    Ok(run(&Runtime::open(device)?, count)?)
}

fn run(runtime: &Runtime, count: u64) -> Result<(), Error> {
    let mut kernel = runtime.launch::<Echo>(LaunchConfig::default().channels(CHANNELS))?;
    kernel.activate(LIMIT)?;

    let begun = Instant::now();
    let mut threads = Vec::new();
    for channel in 0..CHANNELS {
        // The halves are `Send`, but not `Clone`: a ring has one producer and one consumer.
        let (sender, receiver) = kernel.take_channel(channel)?.into_split();
        let first = u64::from(channel) * count; // other messages on each channel
        threads.push(thread::spawn(move || send(sender, first, count)));
        threads.push(thread::spawn(move || receive(receiver, first, count)));
    }
    for thread in threads {
        thread.join().expect("it does not panic")?;
    }
    let (messages, seconds) = (u64::from(CHANNELS) * count, begun.elapsed().as_secs_f64());

    let summary = kernel.terminate(LIMIT)?;
    assert_eq!((summary.processed, summary.unhandled), (messages, 0));
    let rate = messages as f64 / seconds;
    println!("{}: {messages} messages, {rate:.0} a second", runtime.device().name);
    Ok(())
}

/// A full ring makes `send` wait: the receiving thread makes room.
fn send(mut sender: Sender<Echo>, first: u64, count: u64) -> Result<(), Error> {
    for seed in first..first + count {
        sender.send(EchoMessage::from_seed(seed), LIMIT)?;
    }
    Ok(())
}

/// Answers come in the order of their requests, each once.
fn receive(mut receiver: Receiver<Echo>, first: u64, count: u64) -> Result<(), Error> {
    for seed in first..first + count {
        assert_eq!(receiver.recv(LIMIT)?, EchoMessage::from_seed(seed).answer());
    }
    Ok(())
}

#[test]
fn on_every_device() {
    run(&ring_tests::cpu(), 5000).unwrap();
    if let Some(gpu) = ring_tests::gpu() {
        run(&gpu, 100_000).unwrap();
    }
}
