//! The plots of every scope and size.

use super::super::svg::{Draw, Series};
use super::{grid, plot, sweep};
use crate::bench::report::{Report, Throughput};
use crate::bench::ring::scopes::{BY_BYTES, SWEEP};
use crate::bench::stats::Rates;
use crate::text::plural;

const BYTES: &str = "bytes of a message and of its answer";

/// Round trips and bytes a second against the size of messages.
pub fn scopes(report: &Report) -> String {
    grid([trips(report), rates(report)])
}

fn trips(report: &Report) -> String {
    let line = |percent: f64| {
        let name = format!("echo by a warp, p{percent}");
        let point = |(id, bytes): (&str, u32)| {
            let row = report.scopes.iter().find(|row| row.id == id)?;
            let us = row.times.as_ref().ok()?.percentile(percent)?;
            Some((f64::from(bytes).log2(), us, format!("{name}: {us:.2} us at {bytes}")))
        };
        Series::new(name.clone(), Draw::Dotted, BY_BYTES.into_iter().filter_map(point).collect())
    };
    let y = "microseconds there and back (by factors)";
    plot("Round trips against size", BYTES, (y, true), [50.0, 99.0].map(line))
}

fn rates(report: &Report) -> String {
    let gigabytes = |row: &Throughput, rate: f64| rate * row.shape.bytes as f64 / 1e9;
    let bytes = |row: &Throughput| row.shape.bytes as f64;
    // One kernel of each size.
    let echoes = report.sweep(SWEEP).filter(|row| !matches!(row.name, "sum_64" | "echo_64_block"));
    let echoes: Vec<(&Throughput, &Rates)> =
        echoes.filter_map(|row| Some((row, row.rate.as_ref().ok()?))).collect();
    let mut counts: Vec<u32> = echoes.iter().map(|(row, _)| row.shape.channels).collect();
    counts.dedup();
    let line = |channels: u32| {
        let mut rows = echoes.clone();
        rows.retain(|(row, _)| row.shape.channels == channels);
        sweep(&rows, &plural(channels.into(), "channel"), bytes, gigabytes)
    };
    plot(
        "Bytes each way against size",
        BYTES,
        ("GB/s each way", false),
        counts.into_iter().map(line),
    )
}
