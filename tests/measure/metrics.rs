//! What metrics cost: a scrape of many channels, and the round trip of a message while somebody scrapes, beside one while nobody does.

use super::{SECONDS, TURNS, active, answer, median_of_turns, print, times};
use ring_host::metrics::Metrics;
use ring_host::{DeviceKind, Error, LaunchConfig, Runtime};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Channels of the kernel that is scraped.
const CHANNELS: u32 = 64;
const SCRAPES: u64 = 1000;
/// Round trips of a turn, without or with scrapes.
const ROUND_TRIPS: u64 = 5000;
/// Between scrapes: a thousand times as often as Prometheus does.
const BETWEEN: Duration = Duration::from_millis(10);

/// All of it.
pub fn metrics(host: &Runtime) -> Result<(), Error> {
    let registry = Metrics::of(host).into_registry();
    let scrape = || {
        let mut page = String::new();
        prometheus_client::encoding::text::encode(&mut page, &registry).expect("a page");
        page.len()
    };
    let mut kernel = active(host, LaunchConfig::default().channels(CHANNELS))?;
    answer(&mut kernel, 1)?;
    let mut bytes = 0;
    let found = times(SCRAPES, |_| {
        bytes = scrape();
        Ok(())
    })?;
    print(&format!("a scrape of {CHANNELS} channels, {bytes} bytes"), &found);
    if host.device().kind == DeviceKind::Cpu {
        // Its threads, one a channel, would take the processors from each other.
        kernel.terminate(SECONDS)?;
        kernel = active(host, LaunchConfig::default())?;
    }
    let (mut without, mut with, mut more) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..TURNS {
        let mean = |kernel: &mut _| -> Result<f64, Error> {
            let begun = Instant::now();
            (0..ROUND_TRIPS).try_for_each(|i| answer(kernel, i))?;
            Ok(begun.elapsed().as_secs_f64() * 1e6 / ROUND_TRIPS as f64)
        };
        let alone = mean(&mut kernel)?;
        let ends = AtomicBool::new(false);
        let scraped = std::thread::scope(|scope| {
            scope.spawn(|| {
                while !ends.load(Relaxed) {
                    scrape();
                    std::thread::sleep(BETWEEN);
                }
            });
            let scraped = mean(&mut kernel);
            ends.store(true, Relaxed);
            scraped
        })?;
        without.push(alone);
        with.push(scraped);
        more.push((scraped / alone - 1.0) * 100.0);
    }
    for found in [&mut without, &mut with, &mut more] {
        found.sort_by(f64::total_cmp);
    }
    print("round trip, nobody scrapes, means of turns", &without);
    print(&format!("round trip, a scrape each {BETWEEN:?}, means of turns"), &with);
    let [median, low, high] = median_of_turns(&more);
    println!(
        "longer by scrapes, turn by turn: median {median:.2} % ({low:.2} to {high:.2} with 95 %)"
    );
    kernel.terminate(SECONDS)?;
    Ok(())
}
