//! Tables of the page.

use super::escaped;
use crate::bench::report::{Found, Report, Stop, Way, Whose};
use crate::bench::stats::{Rates, Times};
use crate::bench::targets::{Target, Verdict};
use crate::text::grouped;
use ring_host::{Memory, Mode};

/// A row of a table: its class, and what its cells hold.
struct Row {
    class: &'static str,
    cells: Vec<String>,
}

fn row(class: &'static str, cells: impl IntoIterator<Item = String>) -> Row {
    Row { class, cells: cells.into_iter().collect() }
}

/// A table. Where the page is too narrow for its columns, each cell stands by itself below the first of
/// its row, and says its heading.
fn table(class: &str, headings: &[&str], rows: impl IntoIterator<Item = Row>) -> String {
    let cell = |(k, cell): (usize, String)| match headings.get(k).map(|heading| heading.trim()) {
        Some(heading) if k > 0 && !heading.is_empty() => {
            format!("<td data-label=\"{heading}\">{cell}</td>")
        }
        _ => format!("<td>{cell}</td>"),
    };
    let line = |Row { class, cells }: Row| {
        let cells: String = cells.into_iter().enumerate().map(cell).collect();
        format!("<tr class=\"{class}\">{cells}</tr>\n")
    };
    let rows: String = rows.into_iter().map(line).collect();
    if rows.is_empty() {
        return rows;
    }
    // Two spaces before a heading: words stand below it, not figures.
    let heading = |heading: &&str| match heading.strip_prefix("  ") {
        Some(words) => format!("<th class=\"left\">{words}</th>"),
        None => format!("<th>{heading}</th>"),
    };
    let headings: String = headings.iter().map(heading).collect();
    format!(
        "<div class=\"scroll\"><table class=\"{class}\">\n<tr class=\"head\">{headings}</tr>\n\
         {rows}</table></div>\n"
    )
}

/// What went wrong, before all else.
pub fn wrong(wrong: &[(String, String)]) -> String {
    if wrong.is_empty() {
        return String::new();
    }
    let line = |(what, why): &(String, String)| row("", [escaped(what), escaped(why)]);
    let table = table("", &["measured", "what was wrong"], wrong.iter().map(line));
    format!("<section class=\"wrong\">\n<h2>Something went wrong</h2>\n{table}</section>\n")
}

/// What was asked, and whether it was met.
pub fn targets(all: &[Target]) -> String {
    let line = |target: &Target| {
        let class = match target.verdict() {
            Verdict::Met => "met",
            Verdict::NotMet => "not",
            Verdict::WithinNoise | Verdict::NotMeasured | Verdict::NeedsGpu => "none",
        };
        let measured = target.measured.as_ref();
        let ratio = measured.map_or("-".to_owned(), |ratio| format!("{:.3}", ratio.value));
        let verdict = format!("<span class=\"{class}\">{}</span>", target.verdict().word());
        let (what, asked) = (escaped(target.what), escaped(&target.asked()));
        row("", [what, asked, ratio, verdict, escaped(&target.from())])
    };
    let headings = ["ratio", "asked", "measured", "", "  from"];
    let (without, listed): (Vec<_>, Vec<_>) =
        all.iter().partition(|target| target.verdict() == Verdict::NeedsGpu);
    let note = match without.len() {
        0 => String::new(),
        gpu => format!("<p class=\"note\">{gpu} more need a GPU</p>\n"),
    };
    table("targets", &headings, listed.into_iter().map(line)) + &note
}

/// Round trips in figures.
pub fn latency(report: &Report) -> String {
    let line = |latency: &crate::bench::report::Latency| {
        let class = if latency.whose == Whose::Ours { "ours" } else { "" };
        let name = format!("{}: {}", latency.device, escaped(&latency.name));
        match &latency.times {
            Ok(times) => {
                let at = [0.0, 50.0, 90.0, 99.0, 99.9, 100.0].map(|p| times.shown(p));
                row(class, [name, grouped(times.count())].into_iter().chain(at))
            }
            Err(stop) => row(class, [name, reason(stop)]),
        }
    };
    let headings =
        ["round trip, microseconds", "samples", "min", "p50", "p90", "p99", "p99.9", "max"];
    let on_device = report.on_device.iter().map(|found| match &found.us {
        Ok(us) => row("", [escaped(found.name), format!("{us:.3}")]),
        Err(stop) => row("", [escaped(found.name), reason(stop)]),
    });
    table("", &headings, report.latency.iter().map(line))
        + &table("", &["by the device's clock", "microseconds"], on_device)
}

/// Why there is no figure.
fn reason(stop: &Stop) -> String {
    format!("<span class=\"reason\">{}</span>", escaped(stop.why()))
}

fn spread(rate: &Found<Rates>, unit: f64) -> [String; 3] {
    match rate {
        Ok(rates) => [rates.median(), rates.min(), rates.max()]
            .map(|rate| rate.map_or_else(|| "-".to_owned(), |rate| format!("{:.2}", rate / unit))),
        Err(stop) => [reason(stop), String::new(), String::new()],
    }
}

/// Rates in figures.
pub fn throughput(report: &Report) -> String {
    let line = |found: &crate::bench::report::Throughput| {
        let class = if found.whose == Whose::Ours { "ours" } else { "" };
        let shape = &found.shape;
        let bandwidth = found.gigabytes().map_or_else(|| "-".to_owned(), |gb| format!("{gb:.2}"));
        let cells = [
            format!("{}: {}", escaped(found.sweep), escaped(found.name)),
            shape.channels.to_string(),
            shape.bytes.to_string(),
            shape.answer_bytes.to_string(),
            shape.threads.to_string(),
            shape.batch.to_string(),
            grouped(shape.depth),
            grouped(shape.capacity.into()),
        ];
        row(class, cells.into_iter().chain(spread(&found.rate, 1e6)).chain([bandwidth]))
    };
    let headings = [
        "sweep",
        "channels",
        "bytes",
        "answer",
        "threads",
        "batch",
        "in flight",
        "slots",
        "M/s",
        "min",
        "max",
        "GB/s",
    ];
    let copies = report.copies.iter().map(|copies| {
        let name = format!("cuMemcpyAsync, {} MiB, {}", copies.bytes >> 20, copies.name);
        row("", [name].into_iter().chain(spread(&copies.rate, 1e9)))
    });
    table("", &headings, report.throughput.iter().map(line))
        + &table("", &["plain copies", "GB/s", "min", "max"], copies)
}

/// Modes by memories.
pub fn ways(report: &Report) -> String {
    let memories = [Memory::Mapped, Memory::StagedAsync, Memory::StagedSync];
    let line = |mode: Mode| {
        let cell = |memory: Memory| {
            let way = report.ways.iter().find(|way| (way.mode, way.memory) == (mode, memory));
            way.map_or_else(|| "-".to_owned(), way_cell)
        };
        row("", [format!("<b>{mode}</b>")].into_iter().chain(memories.map(cell)))
    };
    if report.ways.is_empty() {
        return String::new();
    }
    let rows = [Mode::Persistent, Mode::EventDriven, Mode::Graph].map(line);
    table("ways", &["", "mapped", "staged-async", "staged-sync"], rows)
}

fn way_cell(way: &Way) -> String {
    let times = match &way.times {
        Ok(times) => times,
        Err(Stop::Refused(why)) => {
            return format!("<span class=\"none\">refused: {}</span>", escaped(why));
        }
        Err(stop) => return format!("<span class=\"not\">{}</span>", escaped(stop.why())),
    };
    let [rate, ..] = spread(&way.rate, 1e6);
    let at_rest = match &way.at_rest {
        Some(Ok(times)) => format!("; from rest {} us", times.shown(50.0)),
        Some(Err(stop)) => format!("; from rest: {}", escaped(stop.why())),
        None => String::new(),
    };
    let shown = |times: &Times, percent| times.shown(percent);
    format!(
        "<span class=\"big\">{} us</span> <span class=\"small\">p50<br>p99 {} us{at_rest}<br>{rate} \
         M messages/s<br>{} launches</span>",
        shown(times, 50.0),
        shown(times, 99.0),
        grouped(way.launches)
    )
}

/// What it was measured on, and how.
pub fn machine(report: &Report) -> String {
    let facts = report.machine.facts().into_iter();
    let mut rows: Vec<Row> =
        facts.map(|(name, fact)| row("", [name.into(), escaped(&fact)])).collect();
    let settings = &report.settings;
    let how = format!(
        "up to {} round trips of each kind in {} rounds, {} before each not timed; rates: median of \
         {} runs of {} ms; took {:.0} s",
        grouped(settings.samples),
        settings.rounds,
        settings.warm_up,
        settings.repeats,
        settings.run.as_millis(),
        report.took
    );
    rows.push(row("", ["measured".to_owned(), how]));
    for (section, why) in &report.skipped {
        rows.push(row("", [format!("left out: {section}"), escaped(why)]));
    }
    table("facts", &["", ""], rows)
}
