//! The plots of the page.

mod graphs;
mod load;
mod scopes;

pub use graphs::graphs;
pub use load::load;
pub use scopes::scopes;

use super::svg::{Draw, Plot, Series};
use crate::bench::report::{Latency, Report, Throughput, Whose};
use crate::bench::stats::{CURVE, Rates, Times};

/// Steps of a histogram.
const STEPS: usize = 140;

fn grid(figures: impl IntoIterator<Item = String>) -> String {
    let figures: String = figures.into_iter().collect();
    match figures.is_empty() {
        true => figures,
        false => format!("<div class=\"plots\">\n{figures}</div>\n"),
    }
}

/// Histograms and percentiles, of each device.
pub fn latency(report: &Report) -> String {
    let of = |device: &str| -> Vec<(&Latency, &Times)> {
        let rows = report.latency.iter().filter(|row| row.device == device);
        let rows = rows.filter_map(|row| Some((row, row.times.as_ref().ok()?)));
        rows.filter(|(_, times)| times.count() > 0).collect()
    };
    let both = |(device, name): (&str, &str)| {
        let rows = of(device);
        let figures = [histogram(&rows, name), curve(&rows, name)];
        figures.into_iter().flatten().map(|plot| plot.figure()).collect::<String>()
    };
    grid([("cuda", "GPU"), ("cpu", "CPU device")].map(both))
}

/// 1, 2, 5, 10 microseconds and so on, where they are on an axis of logarithms.
fn time_ticks(least: f64, most: f64) -> Vec<(f64, String)> {
    let all = (-3..7).flat_map(|k| [1.0, 2.0, 5.0].map(|m| m * 10f64.powi(k)));
    let inside = all.filter(|us| *us >= least && *us <= most);
    inside.map(|us| (us.ln(), format!("{}", (us * 1000.0).round() / 1000.0))).collect()
}

fn histogram(rows: &[(&Latency, &Times)], device: &str) -> Option<Plot> {
    let least = rows.iter().filter_map(|(_, t)| t.percentile(0.0)).min_by(f64::total_cmp)? * 0.97;
    let most = rows.iter().filter_map(|(_, t)| t.percentile(99.5)).max_by(f64::total_cmp)? * 1.03;
    let step = (most / least).ln() / STEPS as f64;
    let edges: Vec<f64> = (0..=STEPS).map(|k| least * (step * k as f64).exp()).collect();
    let series = rows.iter().map(|(row, times)| {
        let all = times.count() as f64;
        let counts = times.between(&edges);
        let share = |count: &u64| 100.0 * *count as f64 / all;
        // Both ends of each step: the outline of bars.
        let ends = counts.iter().zip(edges.windows(2));
        let points = ends.flat_map(|(count, edge)| {
            [edge[0], edge[1]].map(|us| (us.ln(), share(count), String::new()))
        });
        Series::new(row.name.clone(), Draw::Area, points.collect())
    });
    Some(Plot {
        title: format!("{device}: round trips, histogram"),
        x: "microseconds (to the 99.5th percentile, by factors)",
        y: "% of all",
        ticks: time_ticks(least, most),
        log: false,
        series: series.collect(),
    })
}

/// Percentiles with the tail in full: each step to the right is a tenth of the messages.
fn curve(rows: &[(&Latency, &Times)], device: &str) -> Option<Plot> {
    let far = |percent: f64| -(1.0 - percent.min(99.999) / 100.0).log10();
    let series = rows.iter().map(|(row, times)| {
        let inside = CURVE.iter().filter(|percent| **percent < 100.0);
        // A percentile beyond the last sample says nothing.
        let inside = inside.filter(|p| (100.0 - **p) / 100.0 * times.count() as f64 >= 1.0);
        let point = |percent: &f64| {
            let us = times.percentile(*percent)?;
            Some((far(*percent), us, format!("{}: p{percent} {us:.2} us", row.name)))
        };
        Series::new(row.name.clone(), Draw::Line, inside.filter_map(point).collect())
    });
    let ticks = [0.0, 50.0, 90.0, 99.0, 99.9, 99.99].map(|p| (far(p), format!("{p}")));
    (!rows.is_empty()).then(|| Plot {
        title: format!("{device}: round trips, percentiles"),
        x: "percentile",
        y: "microseconds (by factors)",
        ticks: ticks.into(),
        log: true,
        series: series.collect(),
    })
}

/// A sweep, by what was varied.
fn sweep(
    rows: &[(&Throughput, &Rates)],
    name: &str,
    x: impl Fn(&Throughput) -> f64,
    y: impl Fn(&Throughput, f64) -> f64,
) -> Series {
    let mut rows = rows.to_vec();
    rows.sort_by(|a, b| x(a.0).total_cmp(&x(b.0)));
    let point = |(row, rates): &(&Throughput, &Rates)| {
        let value = y(row, rates.median().unwrap_or(0.0));
        (x(row).log2(), value, format!("{name}: {} at {}", (value * 100.0).round() / 100.0, x(row)))
    };
    let spread = |(row, rates): &(&Throughput, &Rates)| {
        (y(row, rates.min().unwrap_or(0.0)), y(row, rates.max().unwrap_or(0.0)))
    };
    let points = rows.iter().map(point).collect();
    let series = Series::new(name.to_owned(), Draw::Dotted, points);
    Series { spread: rows.iter().map(spread).collect(), ..series }
}

fn ticks(series: &[Series]) -> Vec<(f64, String)> {
    let mut at: Vec<f64> = series.iter().flat_map(|s| s.points.iter().map(|p| p.0)).collect();
    at.sort_by(f64::total_cmp);
    at.dedup();
    at.into_iter().map(|x| (x, format!("{}", x.exp2().round()))).collect()
}

/// Those series that have points, against what counts by factors. `y` is what it is, and whether it does too.
fn plot(
    title: &str,
    x: &'static str,
    (y, log): (&'static str, bool),
    series: impl IntoIterator<Item = Series>,
) -> String {
    let series: Vec<Series> = series.into_iter().filter(|s| !s.points.is_empty()).collect();
    let (title, ticks) = (title.to_owned(), ticks(&series));
    Plot { title, x, y, ticks, log, series }.figure()
}

/// Medians and 99th percentiles of rows of round trips, against what each stands for: `points` are the rows' names for programs, and
/// that. `what` they are.
fn trips<const N: usize>(rows: &[Latency], what: &str, points: [(&str, u32); N]) -> [Series; 2] {
    [50.0, 99.0].map(|percent| {
        let name = format!("{what}, p{percent}");
        let point = |(id, x): (&str, u32)| {
            let row = rows.iter().find(|row| row.id == id)?;
            let us = row.times.as_ref().ok()?.percentile(percent)?;
            Some((f64::from(x).log2(), us, format!("{name}: {us:.2} us at {x}")))
        };
        Series::new(name.clone(), Draw::Dotted, points.into_iter().filter_map(point).collect())
    })
}

/// What [`trips`] are against.
const TRIPS: (&str, bool) = ("microseconds there and back (by factors)", true);

/// Throughput against everything.
pub fn throughput(report: &Report) -> String {
    let rows = |name: &'static str| -> Vec<(&Throughput, &Rates)> {
        report.sweep(name).filter_map(|row| Some((row, row.rate.as_ref().ok()?))).collect()
    };
    let millions = |_: &Throughput, rate: f64| rate / 1e6;
    let gigabytes = |row: &Throughput, rate: f64| rate * row.shape.bytes as f64 / 1e9;
    let channels = |row: &Throughput| f64::from(row.shape.channels);
    let bytes = |row: &Throughput| row.shape.bytes as f64;
    let plot = |title: &str, x, y, series: Vec<Series>| plot(title, x, (y, false), series);
    let (million, gb) = ("million messages a second", "GB/s of requests");
    // Of several ways to run rings with head and tail, the best at each number of pairs.
    let mut theirs = rows("head_tail");
    theirs.retain(|(row, _)| row.whose == Whose::Baseline);
    let median = |rates: &Rates| rates.median().unwrap_or(0.0);
    theirs.sort_by(|a, b| median(b.1).total_cmp(&median(a.1)));
    theirs.sort_by_key(|(row, _)| row.shape.channels);
    theirs.dedup_by_key(|(row, _)| row.shape.channels);
    let one = |name: &'static str, title: &str, x, of: &dyn Fn(&Throughput) -> f64| {
        plot(title, x, million, vec![sweep(&rows(name), "echo, 64 bytes", of, millions)])
    };
    let sizes = |unit: &dyn Fn(&Throughput, f64) -> f64| {
        vec![
            sweep(&rows("size"), "1 channel", bytes, unit),
            sweep(&rows("size_wide"), "4 channels", bytes, unit),
        ]
    };
    grid([
        plot(
            "Against channels",
            "channels, each with a host thread",
            million,
            vec![
                sweep(&rows("channels"), "echo, 64 bytes", channels, millions),
                sweep(&theirs, "rings with head and tail, the best", channels, millions),
            ],
        ),
        plot(
            "Messages against size",
            "bytes of a message and of its answer",
            million,
            sizes(&millions),
        ),
        plot("Bytes against size", "bytes of a message and of its answer", gb, sizes(&gigabytes)),
        one("batch", "Against the host's batch", "messages handed over at a time", &|row| {
            row.shape.batch as f64
        }),
        one("depth", "Against depth", "most messages on their way", &|row| row.shape.depth as f64),
        one("threads", "Against threads of a block", "threads", &|row| {
            f64::from(row.shape.threads)
        }),
        bars(rows("scope"), "By scope, 64 bytes, 1 channel"),
        bars(rows("cpu"), "CPU device and other queues, two threads, 64 bytes"),
    ])
}

/// Rows side by side.
fn bars(rows: Vec<(&Throughput, &Rates)>, title: &str) -> String {
    let names = rows.iter().enumerate().map(|(k, (row, _))| (k as f64, row.name.to_owned()));
    let mut ticks: Vec<(f64, String)> = names.collect();
    let series = rows.iter().enumerate().map(|(k, (row, rates))| {
        let [value, least, most] =
            [rates.median(), rates.min(), rates.max()].map(|rate| rate.unwrap_or(0.0) / 1e6);
        let k = k as f64;
        let corner = |x: f64| (x, value, String::new());
        let (name, points) =
            (format!("{}: {value:.2}", row.name), vec![corner(k - 0.3), corner(k + 0.3)]);
        Series { spread: vec![(least, most)], ..Series::new(name, Draw::Area, points) }
    });
    let series: Vec<Series> = series.collect();
    let (left, right) = (-0.6, rows.len() as f64 - 0.4);
    ticks.insert(0, (left, String::new()));
    ticks.push((right, String::new()));
    let y = "million messages a second";
    Plot { title: title.to_owned(), x: "", y, ticks, log: false, series }.figure()
}

/// The median of each of the kernels at once.
pub fn many(report: &Report) -> String {
    let Some(many) = &report.many else { return String::new() };
    let (Ok(alone), Ok(each)) = (&many.alone, &many.each) else { return String::new() };
    let line = |percent: f64| {
        let point = |(k, times): (usize, &Times)| {
            let us = times.percentile(percent)?;
            Some((k as f64, us, format!("kernel {k}: p{percent} {us:.2} us")))
        };
        let points = each.iter().enumerate().filter_map(point).collect();
        Series::new(format!("each of {}, p{percent}", each.len()), Draw::Dotted, points)
    };
    let p50 = alone.percentile(50.0).unwrap_or(0.0);
    let flat = [0.0, each.len() as f64 - 1.0].map(|x| (x, p50, String::new()));
    let alone = Series::new("one alone, p50".to_owned(), Draw::Line, flat.into());
    let plot = Plot {
        title: format!("{} kernels at once, {} host threads", each.len(), many.hosts),
        x: "kernel",
        y: "microseconds there and back",
        ticks: (0..each.len()).map(|k| (k as f64, k.to_string())).collect(),
        log: false,
        series: vec![line(50.0), line(99.0), alone],
    };
    grid([plot.figure()])
}

/// Rates with many messages, and with large rings.
pub fn growth(report: &Report) -> String {
    type Row = crate::bench::report::Growth;
    let (messages, capacities) = report.growth_rows();
    let plot = |rows: &[Row], title: &str, x, of: &dyn Fn(&Row) -> f64| {
        let rates = rows.iter().filter_map(|row| Some((of(row), row.rate.as_ref().ok()?)));
        let point = |(x, rates): (f64, &Rates)| {
            let rate = rates.median()? / 1e6;
            Some((x.log10(), rate, format!("{x}: {rate:.2} million a second")))
        };
        let points: Vec<_> = rates.filter_map(point).collect();
        let ticks = points.iter().map(|p| (p.0, format!("{}", 10f64.powf(p.0).round())));
        let (ticks, name) = (ticks.collect(), "echo, 64 bytes, 1 channel".to_owned());
        let series = vec![Series::new(name, Draw::Dotted, points)];
        let y = "million messages a second";
        Plot { title: title.to_owned(), x, y, ticks, log: false, series }.figure()
    };
    grid([
        plot(messages, "Against messages sent", "messages", &|row| row.messages as f64),
        plot(capacities, "Against slots of a ring", "slots", &|row| f64::from(row.capacity)),
    ])
}
