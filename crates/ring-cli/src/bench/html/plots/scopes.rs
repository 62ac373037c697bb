//! The plots of every scope and size.

use super::{TRIPS, grid, plot, sweep, trips};
use crate::bench::report::{Report, Throughput};
use crate::bench::ring::scopes::{BY_BYTES, SWEEP};
use crate::bench::stats::Rates;
use crate::text::plural;

const BYTES: &str = "bytes of a message and of its answer";

/// Round trips and bytes a second against the size of messages.
pub fn scopes(report: &Report) -> String {
    let trips = trips(&report.scopes, "echo by a warp", BY_BYTES);
    grid([plot("Round trips against size", BYTES, TRIPS, trips), rates(report)])
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
