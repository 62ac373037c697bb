//! The table of calls of many threads.

use super::Part;
use super::load::{rate, us};
use crate::bench::calls::Calls;
use crate::bench::report::Report;
use crate::table::{Table, left, right};

const PAUSED: &str = "one thread pauses for up to 4 us before each message, at random: else it meets the kernel's look at \
                      the same point each time";

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
            (right("M/s"), |row| if row.pauses() { "-".to_owned() } else { rate(&row.figures) }),
        ],
        |item, row| row.of(item.whose(), &item.figures),
    );
    let paused = report.calls.iter().any(Calls::pauses).then(|| PAUSED.to_owned());
    let tables = [("Calls of many threads by one client, us", table)];
    Part::of("Calls", tables, paused.into_iter().collect())
}
