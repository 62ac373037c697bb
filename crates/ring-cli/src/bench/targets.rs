//! The performance targets of the runtime, judged by the measurements.

mod calls;
mod compute;
mod graphs;
mod load;
mod peers;
mod scopes;

use super::report::{Growth, Latency, Report, Shape, Throughput, Whose};
use super::section::Section;
use super::spread::{in_turn, of_runs, one_by_one};
use super::stats::Rates;
use ring_bench::kernels::Digest;
use serde::Serialize;
use std::cmp::Ordering;

/// Which side of the bound is right.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Sense {
    /// At most.
    AtMost,
    /// At least.
    AtLeast,
}

/// Something that was asked for: a ratio, or a figure by itself, and its bound.
#[derive(Clone, Debug)]
pub struct Target {
    /// Its name for programs.
    pub id: &'static str,
    /// What is divided by what, or what the figure is.
    pub what: &'static str,
    /// Which side of the bound is right.
    pub sense: Sense,
    /// The bound.
    pub bound: f64,
    /// What was measured, or why nothing was.
    pub measured: Result<Ratio, String>,
    /// Whether nothing was because it takes a GPU, and there is none.
    pub needs_gpu: bool,
}

/// A ratio or a figure by itself, and what it was made of.
#[derive(Clone, Debug)]
pub struct Ratio {
    /// Of medians, if something was measured several times.
    pub value: f64,
    /// The figures, and how they were measured.
    pub figures: String,
    /// Between what bounds single runs lie, if there were several: what the machine does meanwhile
    /// moves them so far.
    pub spread: Option<[f64; 2]>,
}

/// The outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// As asked, or better.
    Met,
    /// Not as asked.
    NotMet,
    /// Some runs are as asked and others are not: this measurement cannot decide.
    WithinNoise,
    /// There is no figure.
    NotMeasured,
    /// There is no figure, and cannot be one without a GPU.
    NeedsGpu,
}

impl Verdict {
    /// In words.
    pub fn word(self) -> &'static str {
        match self {
            Verdict::Met => "met",
            Verdict::NotMet => "NOT MET",
            Verdict::WithinNoise => "within noise",
            Verdict::NotMeasured => "not measured",
            Verdict::NeedsGpu => "needs a GPU",
        }
    }
}

impl Target {
    /// Whether it was met. The ratio is compared as it is, not as it is printed.
    /// If single runs lie on both sides of the bound, the ratio says nothing, wherever it lies itself.
    pub fn verdict(&self) -> Verdict {
        let Ok(ratio) = &self.measured else {
            return if self.needs_gpu { Verdict::NeedsGpu } else { Verdict::NotMeasured };
        };
        let meets = |value: f64| match self.sense {
            Sense::AtMost => value <= self.bound,
            Sense::AtLeast => value >= self.bound,
        };
        match ratio.spread {
            Some([least, most]) if meets(least) != meets(most) => Verdict::WithinNoise,
            _ if meets(ratio.value) => Verdict::Met,
            _ => Verdict::NotMet,
        }
    }

    /// What the ratio was made of, and between what bounds single runs lie; or why there is none.
    pub fn from(&self) -> String {
        match &self.measured {
            Ok(Ratio { figures, spread: Some([least, most]), .. }) => {
                format!("{figures}; runs gave {least:.3} to {most:.3}")
            }
            Ok(ratio) => ratio.figures.clone(),
            Err(why) => why.clone(),
        }
    }

    /// The bound, in words.
    pub fn asked(&self) -> String {
        let sense = match self.sense {
            Sense::AtMost => "<=",
            Sense::AtLeast => ">=",
        };
        format!("{sense} {}", self.bound)
    }
}

/// Name for programs, what is measured, which side of what bound is right, and what was measured.
type Asked = (&'static str, &'static str, Sense, f64, Result<Ratio, String>);

/// All targets.
pub fn targets(report: &Report) -> Vec<Target> {
    use Sense::{AtLeast, AtMost};
    let target = |on_gpu: bool, id, what, sense, bound, measured: Result<Ratio, String>| {
        let needs_gpu = on_gpu && measured.is_err() && !report.machine.is_gpu();
        let measured = if needs_gpu { Err("it needs a GPU".to_owned()) } else { measured };
        Target { id, what, sense, bound, measured, needs_gpu }
    };
    let any = |id, what, sense, bound, measured| target(false, id, what, sense, bound, measured);
    let gpu = |id, what, sense, bound, measured| target(true, id, what, sense, bound, measured);
    let trip = |other, percent| times(report, "cuda", &[other], percent);
    let channels = |count| channels(report, count);
    let cpu_trip = times(report, "cpu", &["rtrb", "rtrb_chunks"], 50.0);
    let mut all = vec![
        gpu("flag_p50", "round trip / bare flag, p50", AtMost, 0.65, trip("flag", 50.0)),
        gpu("flag_p99", "round trip / bare flag, p99", AtMost, 0.9, trip("flag", 99.0)),
        gpu("launch", "round trip / launch and poll, p50", AtMost, 0.25, trip("launch", 50.0)),
        gpu("graph", "round trip / graph launch and poll, p50", AtMost, 0.35, trip("graph", 50.0)),
        gpu("one_channel", "1 channel / head and tail, 1 pair", AtLeast, 1.15, channels(1)),
        gpu("eight_channels", "8 channels / head and tail, 8 pairs", AtLeast, 1.05, channels(8)),
        gpu("bandwidth", "4 KiB messages in / cuMemcpyAsync", AtLeast, 0.8, bandwidth(report)),
        gpu("many", "each of 16 kernels / one alone, p50", AtMost, 1.5, many(report)),
        any("cpu_rate", "CPU device / rtrb, messages a second", AtLeast, 1.0, cpu_rate(report)),
        any("cpu_trip", "CPU device / rtrb, round trip, p50", AtMost, 1.0, cpu_trip),
        any("messages", "slowest / fastest, 1e6 to 1e9 messages", AtLeast, 0.9, messages(report)),
        any("capacity", "slowest / fastest, 256 to 65,536 slots", AtLeast, 0.9, slots(report)),
        any("memory", "memory after / before, 1e6 to 1e9 messages", AtMost, 1.01, memory(report)),
    ];
    let of_an_h200 = load::load(report).into_iter().chain(calls::calls(report));
    let of_an_h200 = of_an_h200.chain(scopes::scopes(report));
    let of_an_h200 = of_an_h200.chain(graphs::graphs(report)).chain(peers::peers(report));
    let of_an_h200 = of_an_h200.chain(compute::compute(report));
    let of_an_h200 =
        of_an_h200.map(|(id, what, sense, bound, measured)| gpu(id, what, sense, bound, measured));
    all.extend(of_an_h200);
    all
}

/// Major compute capability of an H200.
const HOPPER: u32 = 9;

/// Whether what was measured on `device` can be held against bounds for an H200: on a GPU of its generation.
fn like_an_h200(report: &Report, device: &str) -> Result<(), String> {
    match report.machine.device.compute_capability {
        _ if device != "cuda" => Err("it needs a GPU".to_owned()),
        (HOPPER, _) => Ok(()),
        (major, minor) => Err(format!(
            "the bound is for an H200, compute capability {HOPPER}.0; this is {major}.{minor}"
        )),
    }
}

/// The one that is furthest from what is asked; an error if there is none, or one of them is.
fn worst(sense: Sense, all: impl Iterator<Item = Result<Ratio, String>>) -> Result<Ratio, String> {
    let all: Vec<Ratio> = all.collect::<Result<_, _>>()?;
    let by_value = |a: &Ratio, b: &Ratio| a.value.total_cmp(&b.value);
    let worst = match sense {
        Sense::AtMost => all.into_iter().max_by(by_value),
        Sense::AtLeast => all.into_iter().min_by(by_value),
    };
    worst.ok_or_else(|| "not measured".to_owned())
}

/// A row of a section's round trips that was measured on a GPU that the bounds are for, and its median.
fn timed<'a>(
    report: &Report,
    (section, rows): (Section, &'a [Latency]),
    id: &str,
) -> Result<(&'a Latency, f64), String> {
    let row = rows.iter().find(|row| row.id == id).ok_or_else(|| not_measured(section))?;
    like_an_h200(report, row.device)?;
    let name = &row.name;
    let times = row.times.as_ref().map_err(|stop| format!("{name}: {}", stop.why()))?;
    let median = times.percentile(50.0).ok_or_else(|| format!("{name}: not measured"))?;
    Ok((row, median))
}

/// The median rate of the row of a section's sweep that `is` one, likewise, in another unit: so many messages a second
/// are one of it.
fn rated(
    report: &Report,
    (section, sweep): (Section, &str),
    (unit, words): (f64, &str),
    is: impl Fn(&Throughput) -> bool,
) -> Result<Ratio, String> {
    let row = report.sweep(sweep).find(|row| is(row)).ok_or_else(|| not_measured(section))?;
    like_an_h200(report, row.device)?;
    let name = row.name;
    let rates = row.rate.as_ref().map_err(|stop| format!("{name}: {}", stop.why()))?;
    of_rates(name, rates, (unit, words))
}

/// The median of what was measured, in a unit of which one is so many a second.
fn of_rates(name: &str, rates: &Rates, (unit, words): (f64, &str)) -> Result<Ratio, String> {
    let value = rates.median().ok_or_else(|| format!("{name}: not measured"))? / unit;
    let found = Ratio { value, figures: format!("{value:.3} {words}, {name}"), spread: None };
    let runs: Vec<f64> = rates.samples().iter().map(|rate| rate / unit).collect();
    Ok(found.within(of_runs(&runs)))
}

/// The same in millions.
fn million_a_second(
    report: &Report,
    sweep: (Section, &str),
    is: impl Fn(&Throughput) -> bool,
) -> Result<Ratio, String> {
    rated(report, sweep, (1e6, "M/s"), is)
}

fn not_measured(section: Section) -> String {
    format!("the section {section} was not measured")
}

/// The ratio, with both figures.
fn ratio(ours: Option<f64>, theirs: Option<f64>, unit: &str) -> Result<Ratio, String> {
    match (ours, theirs) {
        (Some(ours), Some(theirs)) if theirs > 0.0 => {
            let figures = format!("{ours:.3} / {theirs:.3} {unit}").trim_end().to_owned();
            Ok(Ratio { value: ours / theirs, figures, spread: None })
        }
        (None, _) => Err("ours was not measured".to_owned()),
        _ => Err("what it is compared with was not measured".to_owned()),
    }
}

impl Ratio {
    /// With the bounds that single runs lie between. The ratio itself is never outside.
    fn within(mut self, spread: Option<[f64; 2]>) -> Ratio {
        self.spread = spread.map(|[least, most]| [least.min(self.value), most.max(self.value)]);
        self
    }
}

/// Round trips of the ring beside others, of which the fastest counts, at a percentile: 50 or 99.
fn times(report: &Report, device: &str, others: &[&str], percent: f64) -> Result<Ratio, String> {
    let row = |id: &str| report.latency.iter().find(|row| row.device == device && row.id == id);
    let at = |row: &&Latency| row.times.as_ref().ok()?.percentile(percent);
    let rounds = |row: &Latency| match percent {
        50.0 => row.rounds.p50.clone(),
        _ => row.rounds.p99.clone(),
    };
    let ours = row("ring").filter(|row| at(row).is_some());
    let others = others.iter().filter_map(|id| row(id)).filter(|row| at(row).is_some());
    let theirs = others.min_by(|a, b| at(a).partial_cmp(&at(b)).unwrap_or(Ordering::Equal));
    let found = ratio(ours.as_ref().and_then(at), theirs.as_ref().and_then(at), "us")?;
    let spread = ours.zip(theirs).and_then(|(a, b)| in_turn(&rounds(a), &rounds(b)));
    Ok(found.within(spread))
}

fn best<'a>(rows: impl Iterator<Item = &'a Throughput>) -> Option<&'a Throughput> {
    rows.filter(|row| row.millions().is_some())
        .max_by(|a, b| a.millions().partial_cmp(&b.millions()).unwrap_or(Ordering::Equal))
}

/// Messages a second of two rows that were measured in turn.
fn rates(ours: Option<&Throughput>, theirs: Option<&Throughput>) -> Result<Ratio, String> {
    let millions = |row: Option<&Throughput>| row.and_then(Throughput::millions);
    let found = ratio(millions(ours), millions(theirs), "M/s")?;
    let spread = ours.zip(theirs).and_then(|(a, b)| in_turn(a.runs(), b.runs()));
    Ok(found.within(spread))
}

fn channels(report: &Report, channels: u32) -> Result<Ratio, String> {
    let rows = |whose| {
        let rows = report.sweep("head_tail");
        rows.filter(move |row| row.whose == whose && row.shape.channels == channels)
    };
    let ours = best(rows(Whose::Ours));
    // Rings of other sizes say nothing of the protocol. Of the threads a block each has what suits it.
    let alike = |row: &&Throughput| ours.is_some_and(|ours| ours.shape.has_rings_of(&row.shape));
    let theirs = best(rows(Whose::Baseline).filter(alike));
    let mut found = rates(ours, theirs)?;
    if let (Some(Throughput { shape: ours, .. }), Some(Throughput { shape: theirs, .. })) =
        (ours, theirs)
    {
        let (both, threads) = (ours.in_words(), [ours.threads, theirs.threads]);
        let [ours, theirs] = threads;
        found.figures += &format!("; both {both}; ours {ours} threads a block, theirs {theirs}");
    }
    let cores = report.machine.cores;
    if (channels as usize) > cores {
        found.figures += &format!("; {channels} host threads shared {cores} processors");
    }
    Ok(found)
}

fn bandwidth(report: &Report) -> Result<Ratio, String> {
    // The default launch only.
    let slots = Shape::of::<Digest>().capacity;
    let rows = report.sweep("bandwidth").filter(|row| row.shape.capacity == slots);
    let ours = best(rows);
    let theirs = report.copies.first().and_then(|copies| copies.rate.as_ref().ok());
    let copied = theirs.and_then(|rates| rates.median()).map(|rate| rate / 1e9);
    let found = ratio(ours.and_then(Throughput::gigabytes), copied, "GB/s")?;
    let spread = ours.zip(theirs).and_then(|(ours, theirs)| {
        let bytes = ours.runs().iter().map(|rate| rate * ours.shape.bytes as f64);
        in_turn(&bytes.collect::<Vec<_>>(), theirs.samples())
    });
    Ok(found.within(spread))
}

fn many(report: &Report) -> Result<Ratio, String> {
    let many = report.many.as_ref();
    let alone = many.and_then(|many| many.alone.as_ref().ok()?.percentile(50.0));
    let p50s = many.and_then(|many| many.each.as_ref().ok());
    let slowest =
        p50s.and_then(|each| each.iter().filter_map(|t| t.percentile(50.0)).max_by(f64::total_cmp));
    ratio(slowest, alone, "us, the slowest")
}

fn cpu_rate(report: &Report) -> Result<Ratio, String> {
    let of = |name: &'static str| {
        best(report.sweep("cpu").filter(move |row| row.name.starts_with(name)))
    };
    rates(of("echo"), of("rtrb"))
}

/// The slowest and the fastest row.
fn flat(rows: &[Growth]) -> Result<Ratio, String> {
    let rates = rows.iter().filter_map(|row| row.rate.as_ref().ok());
    let rates = rates.filter_map(|rates| Some((rates.median()? / 1e6, rates.samples())));
    let least = rates.clone().min_by(|a, b| a.0.total_cmp(&b.0));
    let most = rates.max_by(|a, b| a.0.total_cmp(&b.0));
    let found = ratio(least.map(|(rate, _)| rate), most.map(|(rate, _)| rate), "M/s")?;
    // One row was measured after the other.
    Ok(found.within(least.zip(most).and_then(|(least, most)| one_by_one(least.1, most.1))))
}

/// Rows of growing numbers of messages, if they reach as far as was asked.
fn far_enough(report: &Report) -> Result<&[Growth], String> {
    let (rows, _) = report.growth_rows();
    match rows.iter().map(|row| row.messages).max() {
        Some(1_000_000_000..) => Ok(rows),
        Some(_) => Err("--growth sends 1e9 messages".to_owned()),
        None => Err("the section growth was not measured".to_owned()),
    }
}

fn messages(report: &Report) -> Result<Ratio, String> {
    flat(far_enough(report)?)
}

fn slots(report: &Report) -> Result<Ratio, String> {
    flat(report.growth_rows().1)
}

fn memory(report: &Report) -> Result<Ratio, String> {
    let rows = far_enough(report)?;
    let known = |kib: u64| Some(kib as f64).filter(|kib| *kib > 0.0);
    let before = rows.first().and_then(|row| known(row.before_kib));
    ratio(rows.last().and_then(|row| known(row.after_kib)), before, "KiB")
}

#[cfg(test)]
mod tests;
