//! The tables of every scope and size.

use super::{Part, rates, trips};
use crate::bench::report::{Latency, Report, Throughput};
use crate::bench::ring::scopes::SWEEP;
use crate::table::{Cell, Column, left};

/// Round trips, and messages and bytes a second.
pub fn scopes(report: &Report) -> Part {
    let rows = || report.sweep(SWEEP);
    let name: Cell<Latency> = |row| row.name.clone();
    let trips = trips(&report.scopes, (left("round trip"), name), Column::page_only);
    let tables = [
        ("Scopes and sizes, us: one message there and back", trips),
        ("Scopes and sizes, million messages a second, and GB/s each way", rates(rows(), true)),
    ];
    let remarks = rows().next().map(launch).into_iter();
    Part::of("Scopes and sizes", tables, remarks.collect())
}

/// How all of them were launched.
fn launch(row: &Throughput) -> String {
    let blocks = match row.shape.threads {
        0 => "CPU threads, one a channel".to_owned(),
        threads => format!("{threads} threads a block"),
    };
    format!("one launch for all, LaunchConfig::default(): {blocks}")
}
