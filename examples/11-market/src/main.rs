//! A stream of trades of 10,000 keys: some threads send trades, others ask what is known of a key, and one watches. The state is the
//! kernel's: no thread locks anything for it. Windows end by the kernel's ticks, and no thread counts time for it.
//!
//! Each key belongs to one channel, which a client finds by the key, so the trades of a key are in order.
//!
//! `cargo run --release -p example-market [device [trades]]`, where the device is auto, cpu or cuda.

use bytemuck::Zeroable;
use ring_example_kernels::{KEYS, Market, MarketState, PTX, Trade};
use ring_host::{Client, Kernels, LaunchConfig, Runtime};
use std::time::Duration;

type Failure = Box<dyn std::error::Error + Send + Sync>;

const LIMIT: Duration = Duration::from_secs(10);

/// Threads that send trades.
const FEEDS: u64 = 3;

/// Channels, each with the keys that fall to it.
const CHANNELS: u32 = 4;

// SAFETY: the PTX that was made of the crate whose kernels are launched.
const KERNELS: Kernels = unsafe { Kernels::new(PTX) };

fn main() -> Result<(), Failure> {
    let mut args = std::env::args().skip(1);
    let device = args.next().as_deref().unwrap_or("auto").parse()?;
    let trades = args.next().map_or(Ok(100_000), |n| n.parse())?;
    run(&Runtime::open(device)?, KERNELS, trades)
}

fn run(runtime: &Runtime, kernels: Kernels, trades: u64) -> Result<(), Failure> {
    println!("{}", runtime.device().name);
    let launch = LaunchConfig::default().channels(CHANNELS).kernels(kernels);
    let mut kernel = runtime.launch::<Market>(launch)?;
    kernel.activate(LIMIT)?;
    let (client, shared) = (kernel.client()?, kernel.share());
    let (taken, asked) = std::thread::scope(|scope| {
        let feeds: Vec<_> = (0..FEEDS)
            .map(|feed| {
                let client = client.clone();
                scope.spawn(move || feed_trades(&client, feed, trades / FEEDS))
            })
            .collect();
        let (client, shared) = (&client, &shared);
        let is_fed = || feeds.iter().all(|feed| feed.is_finished());
        // What this thread asks is answered between trades.
        let mut asked = 0u64;
        while !is_fed() {
            let key = (asked % KEYS as u64) as u32;
            let quote = client.ask_by_key(&key, Market::quote, key, LIMIT)?;
            assert!((quote.low..=quote.high).contains(&quote.last), "{key}: {quote:?}");
            asked += 1;
            if asked.is_multiple_of(10_000) {
                println!("  {} messages so far", shared.telemetry().processed);
            }
        }
        let mut taken = 0;
        for feed in feeds {
            taken += feed.join().expect("a feed")?;
        }
        Ok::<_, Failure>((taken, asked))
    })?;

    // The state of each channel as it is between two messages, of the active kernel.
    let (mut trades_known, mut windows) = (0, 0);
    let mut state: Box<MarketState> = Box::new(Zeroable::zeroed());
    for channel in 0..CHANNELS {
        shared.read_state_into(channel, &mut state, LIMIT)?;
        trades_known += state.quotes.iter().map(|quote| u64::from(quote.trades)).sum::<u64>();
        windows = windows.max(state.windows);
    }
    println!("{taken} trades taken, {asked} quotes given, {windows} windows over");
    assert_eq!(trades_known, taken);
    kernel.terminate(LIMIT)?;
    Ok(())
}

/// Sends so many trades of one feed, some at a time; how many the kernel has taken.
fn feed_trades(client: &Client<Market>, feed: u64, trades: u64) -> Result<u64, Failure> {
    const AT_A_TIME: u64 = 16;
    let mut taken = 0;
    for begin in (0..trades).step_by(AT_A_TIME as usize) {
        let of_trade = |i: u64| {
            let key = ((i * 7919 + feed * 104_729) % KEYS as u64) as u32;
            (key, Market::trade.request(Trade { key, price: (i % 1000) as f32, volume: 1 }))
        };
        let mut tickets = [const { None }; AT_A_TIME as usize];
        for (ticket, i) in tickets.iter_mut().zip(begin..trades) {
            let (key, request) = of_trade(i);
            *ticket = Some(client.submit_by_key(&key, request, LIMIT)?);
        }
        for ticket in tickets.into_iter().flatten() {
            let response = ticket.wait(LIMIT)?;
            taken += u64::from(Market::trade.answer(&response).is_some_and(|trades| trades > 0));
        }
    }
    Ok(taken)
}

#[test]
fn on_every_device() {
    let kernels = ring_tests::kernels::of_examples::<Market>();
    ring_tests::on_each_device(|host| run(host, kernels, 9_999).unwrap());
}
