//! The graph from lines to alerts:
//!
//! ```text
//! lines --> parse --by symbol--> top_of_book --quotes--> watch --> alerts
//!             |                       |
//!             +--> rejected           +--trades--> tape
//! ```

use crate::market::Market;
use crate::{LIMIT, collect};
use ring_example_kernels::pipeline::{Alert, Parse, Symbol, Tape, TopOfBook, Watch};
use ring_host::{Error, GraphBuilder, Kernels, LaunchConfig, Route, Runtime};
use std::collections::HashMap;
use std::thread;
use std::time::Instant;

/// Channels of the book: each keeps the symbols whose orders come to it.
const CHANNELS: u32 = 3;

/// Sends lines of a market, and checks all that comes of them.
pub fn run(runtime: &Runtime, kernels: Kernels, lines: u64) -> Result<(), Error> {
    let one = LaunchConfig::default().kernels(kernels);
    let some = one.clone().channels(CHANNELS);
    let mut graph = GraphBuilder::new();
    let parse = graph.kernel::<Parse>(one.clone());
    let book = graph.kernel::<TopOfBook>(some.clone());
    let watch = graph.kernel::<Watch>(some);
    let tape = graph.kernel::<Tape>(one);
    graph.feed(parse).link(parse, Parse::ORDERS, book, Route::ByKey);
    // The quotes of a symbol come from one channel, and so keep their order too.
    graph.link(book, TopOfBook::QUOTES, watch, Route::Pairwise);
    graph.link(book, TopOfBook::TRADES, tape, Route::ToAll);
    let rejected = graph.read(parse, Parse::REJECTED);
    let alerts = graph.read(watch, Watch::ALERTS);

    let mut graph = runtime.launch_graph(&graph)?;
    graph.activate(LIMIT)?;
    let mut sender = graph.sender(parse, 0)?;
    let rejected = graph.receiver(rejected, 0)?;
    let alerts = (0..CHANNELS).map(|channel| graph.receiver(alerts, channel));
    let alerts = alerts.collect::<Result<Vec<_>, _>>()?;

    let mut market = Market::new(1);
    let begun = Instant::now();
    // A port that nobody reads would stop the kernels before it: each has a thread here.
    let (rejected, alerts, summaries) = thread::scope(|scope| {
        let rejected = scope.spawn(|| collect(rejected));
        let alerts: Vec<_> =
            alerts.into_iter().map(|port| scope.spawn(move || collect(port))).collect();
        for _ in 0..lines {
            sender.send(market.line(), LIMIT)?;
        }
        graph.drain(LIMIT)?; // all is handled then, and terminating loses nothing
        let summaries = graph.terminate(LIMIT)?;
        let mut by_symbol: HashMap<Symbol, Vec<Alert>> = HashMap::new();
        for port in alerts {
            for alert in port.join().expect("it does not panic")? {
                by_symbol.entry(alert.symbol).or_default().push(alert);
            }
        }
        let rejected = rejected.join().expect("it does not panic")?;
        Ok::<_, Error>((rejected, by_symbol, summaries))
    })?;
    let time = begun.elapsed();

    let expected = market.expected();
    assert_eq!(rejected, expected.rejected);
    assert_eq!(alerts, expected.alerts);
    assert_eq!(graph.kernel(tape)?.read_state(0, LIMIT)?, expected.totals);
    for channel in 0..CHANNELS {
        assert_eq!(graph.kernel(book)?.read_state(channel, LIMIT)?.dropped, 0);
        assert_eq!(graph.kernel(watch)?.read_state(channel, LIMIT)?.dropped, 0);
    }
    let processed: Vec<u64> = summaries.iter().map(|summary| summary.processed).collect();
    assert_eq!(processed, [lines, expected.orders, expected.orders, expected.totals.trades]);

    let (orders, trades) = (expected.orders, expected.totals.trades);
    let (rejected, count) = (rejected.len(), alerts.values().map(Vec::len).sum::<usize>());
    println!(
        "{lines} lines in {time:.1?}: {orders} orders, {rejected} rejected, {trades} trades, {count} alerts"
    );
    Ok(())
}
