//! The report as tables, for a terminal and for the page. A section that was not measured has none.

use super::report::{Found, Report, Stop, Throughput, Whose};
use super::stats::{Rates, Times};
use super::targets::{self, Verdict};
use crate::table::{Row, Table, left, right};
use crate::text::{grouped, plural};

/// A part of the report.
#[derive(Clone, Debug, Default)]
pub struct Part {
    /// What it is about.
    pub title: &'static str,
    /// Its tables, each with a title.
    pub tables: Vec<(String, Table)>,
    /// The notes below them.
    pub remarks: Vec<String>,
}

impl Part {
    fn new(title: &'static str) -> Part {
        Part { title, ..Part::default() }
    }

    /// Adds a table, unless it has no rows.
    fn push(&mut self, title: impl Into<String>, table: Table) {
        if !table.rows.is_empty() {
            self.tables.push((title.into(), table));
        }
    }
}

/// All parts but the targets, in the order in which they are shown.
pub fn parts(report: &Report) -> [Part; 5] {
    [latency(report), throughput(report), ways(report), many(report), growth(report)]
}

const NONE: &str = "-";

/// A figure of so many places; `-` for none.
fn figure(value: Option<f64>, places: usize) -> String {
    value.map_or(NONE.to_owned(), |value| format!("{value:.places$}"))
}

/// Microseconds in no more than six columns: without fractions from a thousand on, in seconds from a million.
fn short(us: f64) -> String {
    match us {
        ..1e3 => format!("{us:.2}"),
        ..1e6 => format!("{us:.0}"),
        _ => format!("{:.1}s", us / 1e6),
    }
}

/// Median, least and most, in so many.
fn spread(rate: &Found<Rates>, unit: f64, places: usize) -> [String; 3] {
    let rates = rate.as_ref().ok();
    [Rates::median, Rates::min, Rates::max]
        .map(|of| figure(rates.and_then(of).map(|rate| rate / unit), places))
}

impl Row {
    /// Says below it why it has no figures.
    fn without<'a>(&mut self, stops: impl IntoIterator<Item = &'a Stop>) -> &mut Row {
        let why: Vec<&str> = stops.into_iter().map(Stop::why).collect();
        self.note = (!why.is_empty()).then(|| why.join("; "));
        self
    }

    fn of(&mut self, whose: Whose) -> &mut Row {
        self.class = if whose == Whose::Ours { "ours" } else { "" };
        self
    }
}

/// Round trips.
fn latency(report: &Report) -> Part {
    let mut part = Part::new("Latency");
    let figures = ["n", "min", "p50", "p90", "p99", "p99.9", "max"].map(right);
    let mut table = Table::new([vec![left("round trip, us")], figures.into()].concat());
    for row in &report.latency {
        let times = row.times.as_ref().ok();
        let at = |percent| times.and_then(|times| times.percentile(percent));
        let shown = |percent| at(percent).map_or(NONE.to_owned(), short);
        let count = times.map_or(NONE.to_owned(), |times| grouped(times.count()));
        let figures = [0.0, 50.0, 90.0, 99.0, 99.9, 100.0].map(shown);
        let name = format!("{}: {}", row.device, row.name);
        let line = table.row([name, count].into_iter().chain(figures));
        line.of(row.whose).without(row.times.as_ref().err());
    }
    part.push("Latency", table);
    for row in report.latency.iter().filter(|row| row.by_page() && !row.rounds.p50.is_empty()) {
        let medians: Vec<String> = row.rounds.p50.iter().map(|us| format!("{us:.2}")).collect();
        let medians = medians.join(" ");
        part.remarks
            .push(format!("{}: p50 of each round, in a page of its own: {medians}", row.name));
    }
    part.remarks.extend(report.on_device.iter().map(|row| match &row.us {
        Ok(us) => format!("{}: {us:.3} us, by the device's clock", row.name),
        Err(stop) => format!("{}: - ({})", row.name, stop.why()),
    }));
    part
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
    let mut part = Part::new("Throughput");
    for (sweep, title) in SWEEPS {
        let table = rates(report.sweep(sweep), false);
        part.push(format!("Throughput, million messages a second: {title}"), table);
    }
    let figures = [right("MiB").page_only(), right("GB/s"), right("min"), right("max")];
    let mut copies = Table::new([vec![left("plain copies")], figures.into()].concat());
    for row in &report.copies {
        let name = format!("cuMemcpyAsync {}", row.name);
        let size = (row.bytes >> 20).to_string();
        let line = copies.row([name, size].into_iter().chain(spread(&row.rate, 1e9, 1)));
        line.without(row.rate.as_ref().err());
    }
    part.push("Bandwidth to the device", rates(report.sweep("bandwidth"), true));
    part.push("Bandwidth of plain copies", copies);
    part
}

/// Rows of a sweep. `block` are the threads of one, `depth` the messages on their way at most. Of `large`
/// messages it is bytes a second that count.
fn rates<'a>(rows: impl Iterator<Item = &'a Throughput>, large: bool) -> Table {
    let (mut answer, mut gigabytes, mut batch) = (right("answer"), right("GB/s"), right("batch"));
    answer = answer.page_only();
    match large {
        true => batch = batch.page_only(),
        false => gigabytes = gigabytes.page_only(),
    }
    let [channels, bytes, block] = ["chans", "bytes", "block"].map(right);
    let [depth, slots, median, min, max] = ["depth", "slots", "M/s", "min", "max"].map(right);
    let mut table = Table::new([
        left(""),
        channels,
        bytes,
        answer,
        block,
        batch,
        depth,
        slots,
        median,
        min,
        max,
        gigabytes,
    ]);
    for row in rows {
        let shape = &row.shape;
        let numbers = [
            u64::from(shape.channels),
            shape.bytes as u64,
            shape.answer_bytes as u64,
            shape.threads.into(),
            shape.batch as u64,
            shape.depth,
            shape.capacity.into(),
        ];
        let name =
            [row.name.to_owned()].into_iter().chain(numbers.map(|number| number.to_string()));
        let figures = spread(&row.rate, 1e6, 2).into_iter().chain([figure(row.gigabytes(), 1)]);
        let line = table.row(name.chain(figures));
        line.of(row.whose).without(row.rate.as_ref().err());
    }
    table
}

/// Modes and memories.
fn ways(report: &Report) -> Part {
    let mut part = Part::new("Modes and memories");
    let figures = ["p50 us", "p99 us", "from rest", "M/s", "launches"].map(right);
    let mut table = Table::new([vec![left("mode"), left("memory")], figures.into()].concat());
    for way in &report.ways {
        let shown = |times: Option<&Times>, percent| {
            times.map_or(NONE.to_owned(), |times| times.shown(percent))
        };
        let (times, at_rest) = (way.times.as_ref(), way.at_rest.as_ref().map(Result::as_ref));
        let at = |percent| shown(times.ok(), percent);
        let [median, ..] = spread(&way.rate, 1e6, 2);
        let from_rest = shown(at_rest.and_then(Result::ok), 50.0);
        let (mode, memory) = (way.mode.to_string(), way.memory.to_string());
        let launches = grouped(way.launches);
        let line = table.row([mode, memory, at(50.0), at(99.0), from_rest, median, launches]);
        line.without(times.err().into_iter().chain(at_rest.and_then(Result::err)));
    }
    part.push("Modes and memories", table);
    part
}

/// Kernels at once.
fn many(report: &Report) -> Part {
    let mut part = Part::new("Kernels at once");
    part.remarks.extend(report.many.as_ref().map(|many| match (&many.alone, &many.each) {
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
    }));
    part
}

/// Many messages, large rings.
fn growth(report: &Report) -> Part {
    let mut part = Part::new("Growth");
    let headings = ["messages", "slots", "M/s", "min", "max", "memory KiB, before", "after"];
    let mut table = Table::new(headings.map(right));
    for row in &report.growth {
        let numbers = [row.messages, row.capacity.into()].map(grouped).into_iter();
        let memory = [row.before_kib, row.after_kib].map(grouped);
        let line = table.row(numbers.chain(spread(&row.rate, 1e6, 2)).chain(memory));
        line.without(row.rate.as_ref().err());
    }
    part.push("Growth", table);
    part
}

/// What was asked, and whether it was met.
pub fn targets(report: &Report) -> Part {
    let mut part = Part::new("Targets");
    let mut table = Table::new([left("target"), left("asked"), right("measured"), left("")]);
    let all = targets::targets(report);
    for target in all.iter().filter(|target| target.verdict() != Verdict::NeedsGpu) {
        let ratio = figure(target.measured.as_ref().ok().map(|ratio| ratio.value), 3);
        let verdict = target.verdict();
        let row =
            table.row([target.what.to_owned(), target.asked(), ratio, verdict.word().to_owned()]);
        row.note = Some(target.from());
        row.class = match verdict {
            Verdict::Met => "met",
            Verdict::NotMet => "not",
            Verdict::WithinNoise | Verdict::NotMeasured | Verdict::NeedsGpu => "none",
        };
    }
    part.push("Targets", table);
    let count = |verdict| all.iter().filter(|target| target.verdict() == verdict).count();
    let mut counts = format!(
        "{} met, {} not met, {} within noise, {} not measured",
        count(Verdict::Met),
        count(Verdict::NotMet),
        count(Verdict::WithinNoise),
        count(Verdict::NotMeasured)
    );
    match count(Verdict::NeedsGpu) {
        0 => {}
        gpu => counts += &format!("; {gpu} more need a GPU"),
    }
    part.remarks.push(counts);
    part
}
