//! The tables of every scope and size.

use super::{Part, grouped, rates, short};
use crate::bench::report::{Latency, Report, Throughput};
use crate::bench::ring::scopes::SWEEP;
use crate::table::{Table, left, right};

/// Round trips, and messages and bytes a second.
pub fn scopes(report: &Report) -> Part {
    let rows = || report.sweep(SWEEP);
    let tables = [
        ("Scopes and sizes, us: one message there and back", trips(&report.scopes)),
        ("Scopes and sizes, million messages a second, and GB/s each way", rates(rows(), true)),
    ];
    let remarks = rows().next().map(launch).into_iter();
    Part::of("Scopes and sizes", tables, remarks.collect())
}

fn trips(rows: &[Latency]) -> Table {
    Table::of(
        rows,
        [
            (left("round trip"), |row| row.name.clone()),
            (right("n").page_only(), |row| {
                row.times.as_ref().map_or("-".to_owned(), |times| grouped(times.count()))
            }),
            (right("min").page_only(), |row| short(&row.times, 0.0)),
            (right("p50"), |row| short(&row.times, 50.0)),
            (right("p90"), |row| short(&row.times, 90.0)),
            (right("p99"), |row| short(&row.times, 99.0)),
            (right("p99.9").page_only(), |row| short(&row.times, 99.9)),
            (right("max"), |row| short(&row.times, 100.0)),
        ],
        |item, row| row.of(item.whose, &item.times),
    )
}

/// How all of them were launched.
fn launch(row: &Throughput) -> String {
    let blocks = match row.shape.threads {
        0 => "CPU threads, one a channel".to_owned(),
        threads => format!("{threads} threads a block"),
    };
    format!("one launch for all, LaunchConfig::default(): {blocks}")
}
