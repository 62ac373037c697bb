//! The plots of latency under load.

use super::super::svg::{Draw, Plot, Series, short};
use super::grid;
use crate::bench::load::rows::{Carrier, Figures, UnderLoad};
use crate::bench::report::{Found, Report};

/// What is plotted of each row.
const PERCENTILES: [f64; 2] = [50.0, 99.0];

/// Latency against messages in flight, and against the rate offered.
pub fn load(report: &Report) -> String {
    report.load.as_ref().map_or_else(String::new, |load| grid([in_flight(load), offered(load)]))
}

/// A line of one percentile; x counts by factors.
fn line<'a>(
    name: &str,
    percent: f64,
    rows: impl Iterator<Item = (u64, &'a Found<Figures>)>,
) -> Series {
    let name = format!("{name}, p{percent}");
    let point = |(x, figures): (u64, &Found<Figures>)| {
        let us = figures.as_ref().ok()?.times.percentile(percent)?;
        let x = x as f64;
        Some((x.log10(), us, format!("{name}: {us:.2} us at {}", short(x))))
    };
    let points = rows.filter_map(point).collect();
    Series::new(name, Draw::Dotted, points)
}

fn plot(
    title: &str,
    x: &'static str,
    xs: Vec<u64>,
    series: impl Iterator<Item = Series>,
) -> String {
    let tick = |x: u64| ((x as f64).log10(), short(x as f64));
    Plot {
        title: title.to_owned(),
        x,
        y: "microseconds (by factors)",
        ticks: xs.into_iter().map(tick).collect(),
        log: true,
        series: series.filter(|series| !series.points.is_empty()).collect(),
    }
    .figure()
}

fn in_flight(load: &UnderLoad) -> String {
    let lines = [
        ("ring, one by one", Carrier::Ring, true),
        ("ring, batches", Carrier::Ring, false),
        ("head and tail, one by one", Carrier::HeadTail, true),
        ("head and tail, batches", Carrier::HeadTail, false),
    ];
    let series = lines.into_iter().flat_map(|(name, carrier, single)| {
        let rows = move || load.closed(carrier, single).map(|row| (row.in_flight, &row.figures));
        PERCENTILES.map(|percent| line(name, percent, rows()))
    });
    let mut xs: Vec<u64> = load.closed.iter().map(|row| row.in_flight).collect();
    xs.sort_unstable();
    xs.dedup();
    plot("Against messages in flight", "messages in flight, by factors", xs, series)
}

fn offered(load: &UnderLoad) -> String {
    let rows = || load.open.iter().map(|row| (row.offered, &row.figures));
    let clocks = || load.open.iter().map(|row| (row.offered, &row.clock));
    let ring = PERCENTILES.map(|percent| line("ring, from when it is due", percent, rows()));
    let clock = PERCENTILES.map(|percent| line("the clock alone", percent, clocks()));
    let xs = load.open.iter().map(|row| row.offered).collect();
    let title = "Against the rate at which messages are due";
    plot(title, "messages due a second, by factors", xs, ring.into_iter().chain(clock))
}
