//! What was asked of the runtime, against what was measured.

use super::report::{Growth, Report, Throughput, Whose};
use ring_bench::kernels::Digest;

/// Which side of the bound is right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sense {
    /// At most.
    AtMost,
    /// At least.
    AtLeast,
}

/// Something that was asked for: a ratio, and its bound.
#[derive(Clone, Debug)]
pub struct Target {
    /// Its name for programs.
    pub id: &'static str,
    /// What is divided by what.
    pub what: &'static str,
    /// Which side of the bound is right.
    pub sense: Sense,
    /// The bound.
    pub bound: f64,
    /// The ratio with the figures it was made of; or why there is none.
    pub measured: Result<(f64, String), String>,
}

/// The outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// As asked, or better.
    Met,
    /// Not as asked.
    NotMet,
    /// There is no figure.
    NotMeasured,
}

impl Verdict {
    /// In words.
    pub fn word(self) -> &'static str {
        match self {
            Verdict::Met => "met",
            Verdict::NotMet => "NOT MET",
            Verdict::NotMeasured => "not measured",
        }
    }
}

impl Target {
    /// Whether it was met. The ratio is compared as it is, not as it is printed.
    pub fn verdict(&self) -> Verdict {
        let Ok((ratio, _)) = &self.measured else { return Verdict::NotMeasured };
        let met = match self.sense {
            Sense::AtMost => *ratio <= self.bound,
            Sense::AtLeast => *ratio >= self.bound,
        };
        if met { Verdict::Met } else { Verdict::NotMet }
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

/// All targets.
pub fn targets(report: &Report) -> Vec<Target> {
    use Sense::{AtLeast, AtMost};
    let new = |id, what, sense, bound, measured| Target { id, what, sense, bound, measured };
    let trip = |other, percent| times(report, "cuda", "ring", &[other], percent);
    vec![
        new("flag_p50", "round trip / bare flag, p50", AtMost, 0.65, trip("flag", 50.0)),
        new("flag_p99", "round trip / bare flag, p99", AtMost, 0.9, trip("flag", 99.0)),
        new("launch", "round trip / launch and poll, p50", AtMost, 0.25, trip("launch", 50.0)),
        new("graph", "round trip / graph launch and poll, p50", AtMost, 0.35, trip("graph", 50.0)),
        new("one_lane", "1 lane / head and tail, 1 pair", AtLeast, 1.05, lanes(report, 1)),
        new("eight_lanes", "8 lanes / head and tail, 8 pairs", AtLeast, 1.0, lanes(report, 8)),
        new("bandwidth", "4 KiB messages in / cuMemcpyAsync", AtLeast, 0.8, bandwidth(report)),
        new("many", "each of 16 kernels / one alone, p50", AtMost, 1.5, many(report)),
        new("cpu_rate", "CPU device / rtrb, messages a second", AtLeast, 1.0, cpu_rate(report)),
        new(
            "cpu_trip",
            "CPU device / rtrb, round trip, p50",
            AtMost,
            1.0,
            times(report, "cpu", "ring", &["rtrb", "rtrb_chunks"], 50.0),
        ),
        new("messages", "slowest / fastest, 1e6 to 1e9 messages", AtLeast, 0.9, messages(report)),
        new("capacity", "slowest / fastest, 256 to 65,536 slots", AtLeast, 0.9, slots(report)),
        new("memory", "memory after / before, 1e6 to 1e9 messages", AtMost, 1.01, memory(report)),
    ]
}

/// The ratio, with both figures.
fn ratio(ours: Option<f64>, theirs: Option<f64>, unit: &str) -> Result<(f64, String), String> {
    match (ours, theirs) {
        (Some(ours), Some(theirs)) if theirs > 0.0 => {
            let figures = format!("{ours:.3} / {theirs:.3} {unit}");
            Ok((ours / theirs, figures.trim_end().to_owned()))
        }
        (None, _) => Err("ours was not measured".to_owned()),
        _ => Err("what it is compared with was not measured".to_owned()),
    }
}

/// Of several others the fastest.
fn times(
    report: &Report,
    device: &str,
    ours: &str,
    others: &[&str],
    percent: f64,
) -> Result<(f64, String), String> {
    let at = |id: &&str| report.times(device, id)?.percentile(percent);
    ratio(at(&ours), others.iter().filter_map(at).min_by(f64::total_cmp), "us")
}

fn best<'a>(rows: impl Iterator<Item = &'a Throughput>) -> Option<f64> {
    rows.filter_map(Throughput::millions).max_by(f64::total_cmp)
}

fn lanes(report: &Report, lanes: u32) -> Result<(f64, String), String> {
    let of = |whose| {
        let rows = report.sweep("head_tail");
        best(rows.filter(move |row| row.whose == whose && row.shape.lanes == lanes))
    };
    let cores = report.machine.cores;
    let (value, mut figures) = ratio(of(Whose::Ours), of(Whose::Baseline), "M/s")?;
    if (lanes as usize) > cores {
        figures += &format!("; {lanes} host threads shared {cores} processors");
    }
    Ok((value, figures))
}

fn bandwidth(report: &Report) -> Result<(f64, String), String> {
    // The default launch only.
    let slots = super::ours::Setup::of::<Digest>().shape.capacity;
    let rows = report.sweep("bandwidth").filter(|row| row.shape.capacity == slots);
    let ours = rows.filter_map(Throughput::gigabytes).max_by(f64::total_cmp);
    let copies = report.copies.first().and_then(|copies| copies.rate.as_ref().ok()?.median());
    ratio(ours, copies.map(|rate| rate / 1e9), "GB/s")
}

fn many(report: &Report) -> Result<(f64, String), String> {
    let many = report.many.as_ref();
    let alone = many.and_then(|many| many.alone.as_ref().ok()?.percentile(50.0));
    let p50s = many.and_then(|many| many.each.as_ref().ok());
    let slowest =
        p50s.and_then(|each| each.iter().filter_map(|t| t.percentile(50.0)).max_by(f64::total_cmp));
    ratio(slowest, alone, "us, the slowest")
}

fn cpu_rate(report: &Report) -> Result<(f64, String), String> {
    let of = |name: &'static str| {
        best(report.sweep("cpu").filter(move |row| row.name.starts_with(name)))
    };
    ratio(of("echo"), of("rtrb"), "M/s")
}

/// The slowest and the fastest row.
fn flat(rows: &[Growth]) -> Result<(f64, String), String> {
    let rates = rows.iter().filter_map(|row| row.rate.as_ref().ok()?.median());
    let rates = rates.map(|rate| rate / 1e6);
    let (least, most) = (rates.clone().min_by(f64::total_cmp), rates.max_by(f64::total_cmp));
    ratio(least, most, "M/s")
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

fn messages(report: &Report) -> Result<(f64, String), String> {
    flat(far_enough(report)?)
}

fn slots(report: &Report) -> Result<(f64, String), String> {
    flat(report.growth_rows().1)
}

fn memory(report: &Report) -> Result<(f64, String), String> {
    let rows = far_enough(report)?;
    let after = |row: Option<&Growth>| Some(row?.resident_kib[1] as f64).filter(|kib| *kib > 0.0);
    ratio(after(rows.last()), after(rows.first()), "KiB")
}

#[cfg(test)]
mod tests;
