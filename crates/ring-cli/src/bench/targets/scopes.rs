//! The targets of every scope and size. Bounds in microseconds, in messages and in bytes a second are for an H200.

use super::{Asked, Ratio, Sense, million_a_second, rated, timed, worst};
use crate::bench::report::{Report, Throughput};
use crate::bench::ring::scopes::{CHANNELS, SWEEP};
use crate::bench::section::Section;
use crate::bench::spread::of_runs;

/// Bytes of the messages whose bytes a second count.
const LARGE: [usize; 3] = [256, 1024, 4096];

/// All of them.
pub fn scopes(report: &Report) -> [Asked; 8] {
    use Sense::{AtLeast, AtMost};
    let (block, order) = (trip(report, "echo_64_block"), trip(report, "sum_64"));
    let (blocks, orders) = (millions(report, "echo_64_block"), millions(report, "sum_64"));
    let inline = worst(AtMost, ["add_10", "add_25"].map(|id| trip(report, id)).into_iter());
    let payload = trip(report, "add_100");
    let [one, eight] = [1, CHANNELS].map(|channels| {
        worst(AtLeast, LARGE.map(|bytes| gigabytes(report, channels, bytes)).into_iter())
    });
    [
        ("scope_block", "block scope, 64 bytes, p50, us", AtMost, 2.8, block),
        ("scope_block_rate", "block scope, 64 bytes, M messages/s", AtLeast, 10.0, blocks),
        ("scope_order", "in order, 64 bytes, p50, us", AtMost, 2.6, order),
        ("scope_order_rate", "in order, 64 bytes, M messages/s", AtLeast, 6.0, orders),
        ("scope_add", "vector_add of 10 and 25, p50, us, the slower", AtMost, 3.0, inline),
        ("scope_add_payload", "vector_add of 100, p50, us", AtMost, 5.0, payload),
        ("scope_bytes_1", "256 to 4096 bytes, 1 channel, least GB/s", AtLeast, 10.0, one),
        ("scope_bytes_8", "256 to 4096 bytes, 8 channels, least GB/s", AtLeast, 40.0, eight),
    ]
}

/// The median round trip of a row.
fn trip(report: &Report, id: &str) -> Result<Ratio, String> {
    let (row, value) = timed(report, (Section::Scopes, &report.scopes), id)?;
    let found = Ratio { value, figures: format!("{value:.3} us, {}", row.name), spread: None };
    Ok(found.within(of_runs(&row.rounds.p50)))
}

/// Million messages a second of a kernel on one channel.
fn millions(report: &Report, name: &str) -> Result<Ratio, String> {
    let is = |row: &Throughput| row.shape.channels == 1 && row.name == name;
    million_a_second(report, (Section::Scopes, SWEEP), is)
}

/// GB of messages a second of that size, and as many of answers.
fn gigabytes(report: &Report, channels: u32, bytes: usize) -> Result<Ratio, String> {
    let is = |row: &Throughput| (row.shape.channels, row.shape.bytes) == (channels, bytes);
    rated(report, (Section::Scopes, SWEEP), (1e9 / bytes as f64, "GB/s each way"), is)
}
