//! The report as tables, for a terminal and for the page. A section that was not measured has none.

mod calls;
mod compute;
mod graphs;
mod load;
mod peers;
mod scopes;

use super::report::{Found, Latency, Report, Throughput, Whose};
use super::stats::{Rates, Times};
use super::targets::{self, Target, Verdict};
use crate::table::{Cell, Column, Row, Table, left, right};
use crate::text::{grouped, plural};

/// A part of the report.
#[derive(Clone, Debug)]
pub struct Part {
    /// What it is about.
    pub title: &'static str,
    /// Its tables, each with a title.
    pub tables: Vec<(String, Table)>,
    /// The notes below them.
    pub remarks: Vec<String>,
}

impl Part {
    /// Of those tables that have rows.
    fn of<T: Into<String>>(
        title: &'static str,
        tables: impl IntoIterator<Item = (T, Table)>,
        remarks: Vec<String>,
    ) -> Part {
        let tables = tables.into_iter().filter(|(_, table)| !table.rows.is_empty());
        let tables = tables.map(|(title, table)| (title.into(), table)).collect();
        Part { title, tables, remarks }
    }
}

/// All parts but the targets, in the order in which they are shown.
pub fn parts(report: &Report) -> [Part; 11] {
    [
        latency(report),
        load::load(report),
        calls::calls(report),
        throughput(report),
        scopes::scopes(report),
        graphs::graphs(report),
        peers::peers(report),
        compute::compute(report),
        ways(report),
        many(report),
        growth(report),
    ]
}

/// A figure of so many places; `-` for none.
fn figure(value: Option<f64>, places: usize) -> String {
    value.map_or("-".to_owned(), |value| format!("{value:.places$}"))
}

/// Microseconds in no more than six columns: without fractions from a thousand on, in seconds from a million.
fn short_us(us: Option<f64>) -> String {
    match us {
        None => "-".to_owned(),
        Some(us @ ..1e3) => format!("{us:.2}"),
        Some(us @ ..1e6) => format!("{us:.0}"),
        Some(us) => format!("{:.1}s", us / 1e6),
    }
}

/// A percentile likewise.
fn short(times: &Found<Times>, percent: f64) -> String {
    short_us(times.as_ref().ok().and_then(|times| times.percentile(percent)))
}

/// Microseconds to two places.
fn micros(times: &Found<Times>, percent: f64) -> String {
    figure(times.as_ref().ok().and_then(|times| times.percentile(percent)), 2)
}

/// Median, least or most in that unit, to so many places.
fn rate(rates: &Found<Rates>, of: fn(&Rates) -> Option<f64>, unit: f64, places: usize) -> String {
    figure(rates.as_ref().ok().and_then(of).map(|rate| rate / unit), places)
}

/// The same in millions.
fn millions(rates: &Found<Rates>, of: fn(&Rates) -> Option<f64>) -> String {
    rate(rates, of, 1e6, 2)
}

impl Row {
    /// Says below it why it has no figures.
    fn without<T>(&mut self, found: &Found<T>) {
        self.note = found.as_ref().err().map(|stop| stop.why().to_owned());
    }

    /// The same, of a row that may be the ring's.
    fn of<T>(&mut self, whose: Whose, found: &Found<T>) {
        self.class = if whose == Whose::Ours { "ours" } else { "" };
        self.without(found);
    }
}

/// Round trips in microseconds, a row each; `detail` says where the columns are shown that matter least.
fn trips(rows: &[Latency], name: (Column, Cell<Latency>), detail: fn(Column) -> Column) -> Table {
    Table::of(
        rows,
        [
            name,
            (detail(right("n")), |row| {
                row.times.as_ref().map_or("-".to_owned(), |times| grouped(times.count()))
            }),
            (detail(right("min")), |row| short(&row.times, 0.0)),
            (right("p50"), |row| short(&row.times, 50.0)),
            (right("p90"), |row| short(&row.times, 90.0)),
            (right("p99"), |row| short(&row.times, 99.0)),
            (detail(right("p99.9")), |row| short(&row.times, 99.9)),
            (right("max"), |row| short(&row.times, 100.0)),
        ],
        |item, row| row.of(item.whose, &item.times),
    )
}

/// Round trips.
fn latency(report: &Report) -> Part {
    let name: Cell<Latency> = |row| format!("{}: {}", row.device, row.name);
    let table = trips(&report.latency, (left("round trip, us"), name), |detail| detail);
    let by_page = report.latency.iter().filter(|row| row.by_page() && !row.rounds.p50.is_empty());
    let by_page = by_page.map(|row| {
        let medians: Vec<String> = row.rounds.p50.iter().map(|us| format!("{us:.2}")).collect();
        format!("{}: p50 of each round, in a page of its own: {}", row.name, medians.join(" "))
    });
    let on_device = report.on_device.iter().map(|row| match &row.us {
        Ok(us) => format!("{}: {us:.3} us, by the device's clock", row.name),
        Err(stop) => format!("{}: - ({})", row.name, stop.why()),
    });
    Part::of("Latency", [("Latency", table)], by_page.chain(on_device).collect())
}

/// What is varied in a sweep, in words.
const SWEEPS: [(&str, &str); 9] = [
    ("head_tail", "beside head and tail"),
    ("channels", "channels"),
    ("size", "message size, 1 channel"),
    ("size_wide", "message size, 4 channels"),
    ("batch", "what the host hands over at a time"),
    ("depth", "messages on their way"),
    ("scope", "scope"),
    ("threads", "threads of a block"),
    ("cpu", "CPU device, two threads"),
];

/// Messages a second, a table a sweep, and bytes a second beside plain copies.
fn throughput(report: &Report) -> Part {
    let sweeps = SWEEPS.map(|(sweep, title)| {
        let title = format!("Throughput, million messages a second: {title}");
        (title, rates(report.sweep(sweep), false))
    });
    let copies = Table::of(
        &report.copies,
        [
            (left("plain copies"), |row| format!("cuMemcpyAsync {}", row.name)),
            (right("MiB").page_only(), |row| (row.bytes >> 20).to_string()),
            (right("GB/s"), |row| rate(&row.rate, Rates::median, 1e9, 1)),
            (right("min"), |row| rate(&row.rate, Rates::min, 1e9, 1)),
            (right("max"), |row| rate(&row.rate, Rates::max, 1e9, 1)),
        ],
        |item, row| row.without(&item.rate),
    );
    let bytes = [
        ("Bandwidth to the device".to_owned(), rates(report.sweep("bandwidth"), true)),
        ("Bandwidth of plain copies".to_owned(), copies),
    ];
    Part::of("Throughput", sweeps.into_iter().chain(bytes), Vec::new())
}

/// Rows of a sweep. `block` are the threads of one, `depth` the messages on their way at most. Of `large`
/// messages it is bytes a second that count.
fn rates<'a>(rows: impl Iterator<Item = &'a Throughput>, large: bool) -> Table {
    let page_only_if = |no_room, column: Column| if no_room { column.page_only() } else { column };
    Table::of(
        rows,
        [
            (left(""), |row| row.name.to_owned()),
            (right("chans"), |row| row.shape.channels.to_string()),
            (right("bytes"), |row| row.shape.bytes.to_string()),
            (right("answer").page_only(), |row| row.shape.answer_bytes.to_string()),
            (right("block"), |row| row.shape.threads.to_string()),
            (page_only_if(large, right("batch")), |row| row.shape.batch.to_string()),
            (right("depth"), |row| row.shape.depth.to_string()),
            (right("slots"), |row| row.shape.capacity.to_string()),
            (right("M/s"), |row| millions(&row.rate, Rates::median)),
            (right("min"), |row| millions(&row.rate, Rates::min)),
            (right("max"), |row| millions(&row.rate, Rates::max)),
            (page_only_if(!large, right("GB/s")), |row| figure(row.gigabytes(), 1)),
        ],
        |item, row| row.of(item.whose, &item.rate),
    )
}

/// Modes and memories.
fn ways(report: &Report) -> Part {
    let table = Table::of(
        &report.ways,
        [
            (left("mode"), |way| way.mode.to_string()),
            (left("memory"), |way| way.memory.to_string()),
            (right("p50 us"), |way| micros(&way.times, 50.0)),
            (right("p99 us"), |way| micros(&way.times, 99.0)),
            (right("from rest"), |way| {
                way.at_rest.as_ref().map_or("-".to_owned(), |times| micros(times, 50.0))
            }),
            (right("M/s"), |way| millions(&way.rate, Rates::median)),
            (right("launches"), |way| grouped(way.launches)),
        ],
        // There are round trips from rest only if there are others.
        |way, row| row.without(way.at_rest.as_ref().unwrap_or(&way.times)),
    );
    Part::of("Modes and memories", [("Modes and memories", table)], Vec::new())
}

/// Kernels at once.
fn many(report: &Report) -> Part {
    let remark = report.many.as_ref().map(|many| match (&many.alone, &many.each) {
        (Ok(alone), Ok(each)) => {
            let p50s = each.iter().filter_map(|times| times.percentile(50.0));
            let slowest = p50s.clone().max_by(f64::total_cmp).unwrap_or(0.0);
            let fastest = p50s.min_by(f64::total_cmp).unwrap_or(0.0);
            format!(
                "one alone: p50 {} us, p99 {} us; {} at once, driven by {}: p50 {fastest:.2} to \
                 {slowest:.2} us",
                alone.shown(50.0),
                alone.shown(99.0),
                each.len(),
                plural(many.hosts as u64, "host thread"),
            )
        }
        (Err(stop), _) | (_, Err(stop)) => stop.why().to_owned(),
    });
    Part { title: "Kernels at once", tables: Vec::new(), remarks: remark.into_iter().collect() }
}

/// Many messages, large rings.
fn growth(report: &Report) -> Part {
    let table = Table::of(
        &report.growth,
        [
            (right("messages"), |row| grouped(row.messages)),
            (right("slots"), |row| grouped(row.capacity.into())),
            (right("M/s"), |row| millions(&row.rate, Rates::median)),
            (right("min"), |row| millions(&row.rate, Rates::min)),
            (right("max"), |row| millions(&row.rate, Rates::max)),
            (right("memory KiB, before"), |row| grouped(row.before_kib)),
            (right("after"), |row| grouped(row.after_kib)),
        ],
        |item, row| row.without(&item.rate),
    );
    Part::of("Growth", [("Growth", table)], Vec::new())
}

/// What was asked, and whether it was met.
pub fn targets(report: &Report) -> Part {
    let all = targets::targets(report);
    let table = Table::of(
        all.iter().filter(|target| target.verdict() != Verdict::NeedsGpu),
        [
            (left("target"), |target| target.what.to_owned()),
            (left("asked"), Target::asked),
            (right("measured"), |target| figure(target.measured.as_ref().ok().map(|r| r.value), 3)),
            (left(""), |target| target.verdict().word().to_owned()),
        ],
        |target, row| {
            row.note = Some(target.from());
            row.class = match target.verdict() {
                Verdict::Met => "met",
                Verdict::NotMet => "not",
                Verdict::WithinNoise | Verdict::NotMeasured | Verdict::NeedsGpu => "none",
            };
        },
    );
    let count = |verdict| all.iter().filter(|target| target.verdict() == verdict).count();
    let counted = [Verdict::Met, Verdict::NotMet, Verdict::WithinNoise, Verdict::NotMeasured]
        .map(|verdict| format!("{} {}", count(verdict), verdict.word().to_lowercase()));
    let mut counts = counted.join(", ");
    match count(Verdict::NeedsGpu) {
        0 => {}
        gpu => counts += &format!("; {gpu} more need a GPU"),
    }
    Part::of("Targets", [("Targets", table)], vec![counts])
}
