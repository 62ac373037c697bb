//! The tables of latency under load.

use super::{Part, figure, grouped, short_us};
use crate::bench::load::rows::{Channels, Closed, Figures, Open, UnderLoad};
use crate::bench::report::{Found, Report, Whose};
use crate::table::{Table, left, right};

/// A percentile in microseconds.
pub(super) fn us(figures: &Found<Figures>, percent: f64) -> String {
    short_us(figures.as_ref().ok().and_then(|figures| figures.times.percentile(percent)))
}

/// The median rate in millions a second.
pub(super) fn rate(figures: &Found<Figures>) -> String {
    let median = figures.as_ref().ok().and_then(|figures| figures.rate.median());
    figure(median.map(|rate| rate / 1e6), 2)
}

/// Latency against messages in flight, offered rate, and channels.
pub fn load(report: &Report) -> Part {
    let Some(UnderLoad { closed: rows, open: rates, channels: wide, .. }) = &report.load else {
        return Part { title: TITLE, tables: Vec::new(), remarks: Vec::new() };
    };
    let tables = [
        ("Latency under load, us: messages in flight on one channel", closed(rows)),
        ("Latency under load, us from when a message is due: fixed rates", open(rates)),
        ("Latency under load, us: one message in flight on each channel", channels(wide)),
    ];
    let remarks = [(!rates.is_empty(), LATE), (rates.iter().any(|row| row.saturated), SATURATED)];
    let remarks = remarks.into_iter().filter(|(holds, _)| *holds);
    Part::of(TITLE, tables, remarks.map(|(_, text)| text.to_owned()).collect())
}

const TITLE: &str = "Latency under load";

const LATE: &str =
    "late: how long after a message was due a thread knew that does nothing but read the clock";

const SATURATED: &str = "saturated: the rate was not reached, and messages wait for those before them, \
                         the longer the longer the run; what could not be sent counts with its \
                         wait until the end";

fn closed(rows: &[Closed]) -> Table {
    Table::of(
        rows,
        [
            (right("in flight"), |row| grouped(row.in_flight)),
            (left("by"), |row| row.carrier.name().to_owned()),
            (left("sent"), |row| match row.is_single() {
                true => "one by one".to_owned(),
                false => format!("batches, <= {}", row.batch),
            }),
            (right("p50"), |row| us(&row.figures, 50.0)),
            (right("p90"), |row| us(&row.figures, 90.0)),
            (right("p99"), |row| us(&row.figures, 99.0)),
            (right("max"), |row| us(&row.figures, 100.0)),
            (right("M/s"), |row| rate(&row.figures)),
        ],
        |item, row| row.of(item.carrier.whose(), &item.figures),
    )
}

fn open(rows: &[Open]) -> Table {
    Table::of(
        rows,
        [
            (right("due M/s"), |row| format!("{}", row.offered as f64 / 1e6)),
            (right("M/s"), |row| rate(&row.figures)),
            (right("p50"), |row| us(&row.figures, 50.0)),
            (right("p90").page_only(), |row| us(&row.figures, 90.0)),
            (right("p99"), |row| us(&row.figures, 99.0)),
            (right("p99.9"), |row| us(&row.figures, 99.9)),
            (right("max"), |row| us(&row.figures, 100.0)),
            (right("late p50"), |row| us(&row.clock, 50.0)),
            (right("late p99"), |row| us(&row.clock, 99.0)),
            (left(""), |row| if row.saturated { "saturated" } else { "" }.to_owned()),
        ],
        |item, row| row.of(Whose::Ours, &item.figures),
    )
}

fn channels(rows: &[Channels]) -> Table {
    Table::of(
        rows,
        [
            (right("channels"), |row| row.channels.to_string()),
            (right("host threads"), |row| row.threads.to_string()),
            (right("p50"), |row| us(&row.figures, 50.0)),
            (right("p99"), |row| us(&row.figures, 99.0)),
            (right("max"), |row| us(&row.figures, 100.0)),
            (left(""), |row| row.in_words().to_owned()),
        ],
        |item, row| row.of(Whose::Ours, &item.figures),
    )
}
