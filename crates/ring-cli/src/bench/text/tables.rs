//! Tables of what was measured; nothing where nothing was.

use super::heading;
use crate::bench::report::{Found, Report, Throughput};
use crate::bench::stats::{Rates, Times};
use crate::table::{Align, Table};
use crate::text::{grouped, plural, wrapped};
use std::fmt::Write;

/// Microseconds in no more than six columns: without fractions from a thousand on, in seconds from a million.
fn short(us: f64) -> String {
    match us {
        ..1e3 => format!("{us:.2}"),
        ..1e6 => format!("{us:.0}"),
        _ => format!("{:.1}s", us / 1e6),
    }
}

fn percentiles(times: &Times) -> [String; 6] {
    [0.0, 50.0, 90.0, 99.0, 99.9, 100.0]
        .map(|percent| times.percentile(percent).map_or("-".to_owned(), short))
}

/// Round trips.
pub fn latency(report: &Report) -> String {
    if report.latency.is_empty() {
        return String::new();
    }
    let mut table = Table::new([
        ("round trip, us", Align::Left),
        ("n", Align::Right),
        ("min", Align::Right),
        ("p50", Align::Right),
        ("p90", Align::Right),
        ("p99", Align::Right),
        ("p99.9", Align::Right),
        ("max", Align::Right),
    ]);
    for row in &report.latency {
        let name = format!("{}: {}", row.device, row.name);
        match &row.times {
            Ok(times) => {
                let [min, p50, p90, p99, p999, max] = percentiles(times);
                table.row([name, grouped(times.count()), min, p50, p90, p99, p999, max]);
            }
            Err(stop) => {
                let none = || "-".to_owned();
                table.row([name, none(), none(), none(), none(), none(), none(), none()]);
                table.note(stop.why());
            }
        }
    }
    let mut text = heading("Latency") + &table.to_string();
    for row in report.latency.iter().filter(|row| row.by_page && !row.rounds.is_empty()) {
        let medians = row.rounds.iter().map(|round| format!("{:.2}", round.p50));
        let medians: Vec<String> = medians.collect();
        let line = format!("p50 of each round, in a page of its own: {}", medians.join(" "));
        let _ = writeln!(text, "{}", wrapped("", &format!("{}: {line}", row.name)));
    }
    for row in &report.on_device {
        let found = match &row.us {
            Ok(us) => format!("{us:.3} us, by the device's clock"),
            Err(stop) => format!("- ({})", stop.why()),
        };
        let _ = writeln!(text, "{}", wrapped("", &format!("{}: {found}", row.name)));
    }
    text
}

fn millions(rate: Option<f64>) -> String {
    rate.map_or_else(|| "-".to_owned(), |rate| format!("{:.2}", rate / 1e6))
}

/// Median, least and most, in millions a second.
fn spread(rate: &Found<Rates>) -> [String; 3] {
    match rate {
        Ok(rates) => [rates.median(), rates.min(), rates.max()].map(millions),
        Err(_) => std::array::from_fn(|_| "-".to_owned()),
    }
}

/// What is varied in a sweep, in words.
const SWEEPS: [(&str, &str); 9] = [
    ("head_tail", "beside head and tail"),
    ("channels", "channels"),
    ("size", "message size, 1 channel"),
    ("size_wide", "message size, 4 channels"),
    ("batch", "what the host hands over at a time"),
    ("depth", "messages on their way"),
    ("scope", "scope"),
    ("threads", "threads of a block"),
    ("cpu", "CPU device, two threads"),
];

/// Messages a second, a table a sweep. `block` are the threads of one, `depth` the messages on their way at
/// most.
pub fn throughput(report: &Report) -> String {
    let mut text = String::new();
    for (sweep, title) in SWEEPS {
        let mut table = Table::new([
            ("", Align::Left),
            ("channels", Align::Right),
            ("bytes", Align::Right),
            ("block", Align::Right),
            ("batch", Align::Right),
            ("depth", Align::Right),
            ("slots", Align::Right),
            ("M/s", Align::Right),
            ("min", Align::Right),
            ("max", Align::Right),
        ]);
        let rows: Vec<&Throughput> = report.sweep(sweep).collect();
        for row in &rows {
            let [median, min, max] = spread(&row.rate);
            let shape = &row.shape;
            table.row([
                row.name.to_owned(),
                shape.channels.to_string(),
                shape.bytes.to_string(),
                shape.threads.to_string(),
                shape.batch.to_string(),
                shape.depth.to_string(),
                shape.capacity.to_string(),
                median,
                min,
                max,
            ]);
            if let Err(stop) = &row.rate {
                table.note(stop.why());
            }
        }
        if !rows.is_empty() {
            text += &(heading(&format!("Throughput, million messages a second: {title}"))
                + &table.to_string());
        }
    }
    text
}

/// Bytes a second beside plain copies.
pub fn bandwidth(report: &Report) -> String {
    if report.copies.is_empty() {
        return String::new();
    }
    let mut table = Table::new([
        ("requests of 4096 bytes", Align::Left),
        ("channels", Align::Right),
        ("slots", Align::Right),
        ("GB/s", Align::Right),
        ("M/s", Align::Right),
    ]);
    for row in &report.copies {
        let rate = row.rate.as_ref().ok().and_then(Rates::median);
        let rate = rate.map_or_else(|| "-".to_owned(), |rate| format!("{:.1}", rate / 1e9));
        let none = String::new;
        table.row([format!("cuMemcpyAsync {}", row.name), none(), none(), rate, none()]);
        row.rate.as_ref().err().into_iter().for_each(|stop| table.note(stop.why()));
    }
    for row in report.sweep("bandwidth") {
        let rate = row.gigabytes().map_or_else(|| "-".to_owned(), |rate| format!("{rate:.1}"));
        let [median, ..] = spread(&row.rate);
        let (channels, slots) = (row.shape.channels.to_string(), row.shape.capacity.to_string());
        table.row([row.name.to_owned(), channels, slots, rate, median]);
        row.rate.as_ref().err().into_iter().for_each(|stop| table.note(stop.why()));
    }
    heading("Bandwidth to the device") + &table.to_string()
}

/// Modes and memories.
pub fn ways(report: &Report) -> String {
    if report.ways.is_empty() {
        return String::new();
    }
    let mut table = Table::new([
        ("mode", Align::Left),
        ("memory", Align::Left),
        ("p50 us", Align::Right),
        ("p99 us", Align::Right),
        ("from rest", Align::Right),
        ("M/s", Align::Right),
        ("launches", Align::Right),
    ]);
    for way in &report.ways {
        let at = |percent| way.times.as_ref().map_or("-".to_owned(), |times| times.shown(percent));
        let at_rest = way.at_rest.as_ref().and_then(|times| times.as_ref().ok());
        let [median, ..] = spread(&way.rate);
        table.row([
            way.mode.to_string(),
            way.memory.to_string(),
            at(50.0),
            at(99.0),
            at_rest.map_or("-".to_owned(), |times| times.shown(50.0)),
            median,
            grouped(way.launches),
        ]);
        let why = [way.times.as_ref().err(), way.at_rest.as_ref().and_then(|t| t.as_ref().err())];
        why.into_iter().flatten().for_each(|stop| table.note(stop.why()));
    }
    heading("Modes and memories") + &table.to_string()
}

/// Kernels at once.
pub fn many(report: &Report) -> String {
    let Some(many) = &report.many else { return String::new() };
    let mut text = heading("Kernels at once");
    match (&many.alone, &many.each) {
        (Ok(alone), Ok(each)) => {
            let p50s = each.iter().filter_map(|times| times.percentile(50.0));
            let slowest = p50s.clone().max_by(f64::total_cmp).unwrap_or(0.0);
            let fastest = p50s.min_by(f64::total_cmp).unwrap_or(0.0);
            let line = format!(
                "one alone: p50 {} us, p99 {} us; {} at once, driven by {}: p50 {fastest:.2} to \
                 {slowest:.2} us",
                alone.shown(50.0),
                alone.shown(99.0),
                each.len(),
                plural(many.hosts as u64, "host thread"),
            );
            text += &wrapped("", &line);
        }
        (Err(stop), _) | (_, Err(stop)) => text += &wrapped("", stop.why()),
    }
    text + "\n"
}

/// Many messages, large rings.
pub fn growth(report: &Report) -> String {
    if report.growth.is_empty() {
        return String::new();
    }
    let mut table = Table::new([
        ("messages", Align::Right),
        ("slots", Align::Right),
        ("M/s", Align::Right),
        ("min", Align::Right),
        ("max", Align::Right),
        ("memory KiB, before", Align::Right),
        ("after", Align::Right),
    ]);
    for row in &report.growth {
        let [median, min, max] = spread(&row.rate);
        let [before, after] = row.resident_kib.map(grouped);
        let (messages, slots) = (grouped(row.messages), grouped(row.capacity.into()));
        table.row([messages, slots, median, min, max, before, after]);
        row.rate.as_ref().err().into_iter().for_each(|stop| table.note(stop.why()));
    }
    heading("Growth") + &table.to_string()
}
