//! The tables of whole computations.

use super::{Part, millions, trips};
use crate::bench::report::{Latency, Report, Throughput};
use crate::bench::ring::compute::{SWEEP, channels};
use crate::bench::stats::Rates;
use crate::table::{Cell, Column, Table, left, right};
use crate::text::{grouped, plural};

/// Messages that are computations, and contributions a second.
pub fn compute(report: &Report) -> Part {
    let name: Cell<Latency> = |row| row.name.clone();
    let trips = trips(&report.compute, (left("computed"), name), Column::page_only);
    let tables = [
        ("Whole computations, us: from a message to its answer", trips),
        ("Whole computations, million contributions a second", rates(report)),
    ];
    let what = report.compute.first().map(|_| WHAT.to_owned());
    let by_what = report.sweep(SWEEP).next().map(by_what);
    Part::of("Whole computations", tables, what.into_iter().chain(by_what).collect())
}

const WHAT: &str = "PageRank, 16 edges a vertex: a grid's message is 20 iterations; by messages it is one, in which each edge is a \
                    message from kernel to kernel. What each round begins with is compared with a reference \
                    in double precision";

/// What contributions go through.
fn by_what(row: &Throughput) -> String {
    let of = channels(row.device == "cpu");
    let [senders, aggregators, checkers] =
        [(of.senders, "sender"), (of.aggregators, "aggregator"), (of.checkers, "checker")]
            .map(|(n, name)| plural(n.into(), name));
    format!(
        "contributions, each a message from a sender to an aggregator: the edges of the graph in the median time \
         of an iteration, by {senders}, {aggregators} and {checkers}"
    )
}

fn rates(report: &Report) -> Table {
    let rows: Vec<&Throughput> = report.sweep(SWEEP).collect();
    Table::of(
        rows,
        [
            (left("by messages"), |row| row.name.to_owned()),
            (right("bytes"), |row| row.shape.bytes.to_string()),
            (right("slots"), |row| grouped(row.shape.capacity.into())),
            (right("M/s"), |row| millions(&row.rate, Rates::median)),
            (right("min"), |row| millions(&row.rate, Rates::min)),
            (right("max"), |row| millions(&row.rate, Rates::max)),
        ],
        |item, row| row.of(item.whose, &item.rate),
    )
}
