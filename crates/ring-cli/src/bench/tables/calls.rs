//! The table of calls of many threads.

use super::Part;
use super::load::{rate, us};
use crate::bench::calls::Calls;
use crate::bench::report::Report;
use crate::table::{Table, left, right};

/// How long calls took, and how many there were a second.
pub fn calls(report: &Report) -> Part {
    let table = Table::of(
        &report.calls,
        [
            (right("threads"), |row: &Calls| row.threads.to_string()),
            (right("channels"), |row| row.channels.to_string()),
            (left("by"), |row| row.how.in_words()),
            (right("p50"), |row| us(&row.figures, 50.0)),
            (right("p99"), |row| us(&row.figures, 99.0)),
            (right("p99.9"), |row| us(&row.figures, 99.9)),
            (right("M/s"), |row| rate(&row.figures)),
        ],
        |item, row| row.of(item.whose(), &item.figures),
    );
    Part::of("Calls", [("Calls of many threads by one client, us", table)], Vec::new())
}
