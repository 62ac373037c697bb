//! The tables of kernels that talk.

use super::{Part, figure, millions, trips};
use crate::bench::report::{Latency, Report, Throughput};
use crate::bench::ring::graphs::{KEYS, LINKS};
use crate::bench::stats::Rates;
use crate::table::{Cell, Column, Table, left, right};

/// Round trips through chains, and messages a second over links.
pub fn graphs(report: &Report) -> Part {
    let name: Cell<Latency> = |row| row.name.clone();
    let trips = trips(&report.graphs, (left("through"), name), Column::page_only);
    let tables = [
        ("Graphs, us: one message from the host through kernels and back", trips),
        ("Graphs, million messages a second: links beside each other", rates(report, LINKS)),
        ("Graphs, million messages a second: links from one channel, by key", rates(report, KEYS)),
    ];
    let paused = report.graphs.first().map(|_| PAUSED.to_owned());
    let counts = report.sweep(LINKS).chain(report.sweep(KEYS)).next().map(|_| COUNTS.to_owned());
    Part::of("Graphs", tables, paused.into_iter().chain(counts).collect())
}

const PAUSED: &str = "a message through kernels of a graph is sent up to 4 us after the one before is back, at random: else \
                      it falls into step with the looks of the first kernel at the host's memory";

const COUNTS: &str = "what counts are messages that the last kernel handled, from before the host sent the first \
                      until the graph was drained; times_8 emits eight for each, pass_64 one";

/// Rows of a sweep: the kernel that emits to the links, and how many there are.
pub fn rates(report: &Report, sweep: &str) -> Table {
    let rows: Vec<&Throughput> = report.sweep(sweep).collect();
    Table::of(
        rows,
        [
            (left("from"), |row| row.name.to_owned()),
            (right("links"), |row| row.shape.channels.to_string()),
            (right("bytes"), |row| row.shape.bytes.to_string()),
            (right("block"), |row| row.shape.threads.to_string()),
            (right("slots"), |row| row.shape.capacity.to_string()),
            (right("M/s"), |row| millions(&row.rate, Rates::median)),
            (right("min"), |row| millions(&row.rate, Rates::min)),
            (right("max"), |row| millions(&row.rate, Rates::max)),
            (right("GB/s"), |row| figure(row.gigabytes(), 1)),
        ],
        |item, row| row.of(item.whose, &item.rate),
    )
}
