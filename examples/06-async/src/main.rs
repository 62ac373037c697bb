//! A channel under tokio: requests go into a `Sink`, responses come out of a `Stream`, and another task of
//! the same thread runs beside. No poll blocks; the clock for deadlines is the executor's.
//!
//! `cargo run --release -p example-async [device [count]]`

use futures_util::{SinkExt, StreamExt};
use ring_host::kernels::{Echo, EchoMessage};
use ring_host::{LaunchConfig, RequestSink, ResponseStream, Runtime};
use std::time::Duration;
use tokio::time::{interval, timeout};

const LIMIT: Duration = Duration::from_secs(10);

/// Of whatever fails: the runtime's errors, or time that has run out.
type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let device = args.next().as_deref().unwrap_or("auto").parse()?;
    let count = args.next().map_or(Ok(100_000), |n| n.parse())?;
    run(&Runtime::open(device)?, count).await
}

async fn run(runtime: &Runtime, count: u64) -> Result<()> {
    // These calls wait for the device; in a server, make them before it serves.
    let mut kernel = runtime.launch::<Echo>(LaunchConfig::default())?;
    kernel.activate(LIMIT)?;
    let (sender, receiver) = kernel.take_channel(0)?.into_split();

    let sending = tokio::spawn(send(sender.into_sink(), count));
    let receiving = tokio::spawn(receive(receiver.into_stream(), count));
    let ticking = tokio::spawn(tick());
    sending.await??;
    let mut responses = receiving.await??;

    kernel.terminate(LIMIT)?;
    assert!(responses.next().await.is_none(), "a stream ends with its kernel");
    ticking.abort();
    println!("{}: {count} messages answered", runtime.device().name);
    Ok(())
}

/// Waits in `send` while the ring is full. What was accepted is in the ring: there is nothing to flush.
async fn send(mut requests: RequestSink<Echo>, count: u64) -> Result<()> {
    for seed in 0..count {
        timeout(LIMIT, requests.send(EchoMessage::from_seed(seed))).await??;
    }
    Ok(())
}

/// An answer that is late is an error of `timeout`; the answer is not lost, and comes next time.
async fn receive(mut responses: ResponseStream<Echo>, count: u64) -> Result<ResponseStream<Echo>> {
    for seed in 0..count {
        let response = timeout(LIMIT, responses.next()).await?.expect("it is not terminated")?;
        assert_eq!(response, EchoMessage::from_seed(seed).answer());
    }
    Ok(responses)
}

/// Any other work of the program.
async fn tick() {
    let mut clock = interval(Duration::from_millis(50));
    loop {
        clock.tick().await;
        println!("another task has its turn");
    }
}

#[cfg(test)]
#[tokio::test]
async fn on_every_device() {
    run(&ring_tests::cpu(), 5000).await.unwrap();
    if let Some(gpu) = ring_tests::gpu() {
        run(&gpu, 100_000).await.unwrap();
    }
}
