//! The targets of latency under load. Bounds in microseconds and in messages a second are for an H200.

use super::{Asked, Ratio, Sense, like_an_h200, not_measured, of_rates, ratio, worst};
use crate::bench::load::rows::{Carrier, Channels, Figures, Open, UnderLoad};
use crate::bench::report::{Found, Report};
use crate::bench::section::Section;
use crate::bench::spread::{in_turn, of_runs};
use std::ops::RangeInclusive;

/// All of them.
pub fn load(report: &Report) -> [Asked; 10] {
    use Sense::{AtLeast, AtMost};
    let load = measured(report);
    let of = |measure: fn(&UnderLoad) -> Result<Ratio, String>| load.clone().and_then(measure);
    let one = of(|load| in_flight(load, true, 1..=1));
    let few = of(|load| in_flight(load, true, 2..=32));
    let [n64, n256, n1024] = [
        of(|load| in_flight(load, false, 64..=64)),
        of(|load| in_flight(load, false, 256..=256)),
        of(|load| in_flight(load, false, 1024..=1024)),
    ];
    let (due_5, due_10) = (of(|load| due(load, 0..=5)), of(|load| due(load, 10..=10)));
    let (rate, tail, channels) = (of(rate), of(tail), of(channels));
    [
        ("load_1", "1 in flight, p50, us", AtMost, 1.97, one),
        ("load_32", "2 to 32 in flight, p50, us, the slowest", AtMost, 3.0, few),
        ("load_rate_32", "32 in flight, million messages a second", AtLeast, 10.0, rate),
        ("load_64", "64 in flight, batches, p50, us", AtMost, 5.5, n64),
        ("load_256", "256 in flight, batches, p50, us", AtMost, 9.0, n256),
        ("load_1024", "1024 in flight, batches, p50, us", AtMost, 16.0, n1024),
        ("load_due_5m", "due up to 5 M/s, p50, us, the slowest", AtMost, 3.2, due_5),
        ("load_due_10m", "due at 10 M/s, p50, us", AtMost, 5.0, due_10),
        ("load_tail", "due up to 10 M/s, p99 / bound, the worst", AtMost, 1.0, tail),
        ("load_channels", "8 channels, 8 threads / 1 channel, p50", AtMost, 1.15, channels),
    ]
}

/// What was measured on a GPU that the bounds are for.
fn measured(report: &Report) -> Result<&UnderLoad, String> {
    let load = report.load.as_ref().ok_or_else(|| not_measured(Section::Load))?;
    like_an_h200(report, load.device).map(|()| load)
}

/// What was measured `at` a row.
pub(super) fn known<'a>(at: &str, figures: &'a Found<Figures>) -> Result<&'a Figures, String> {
    figures.as_ref().map_err(|stop| format!("{at}: {}", stop.why()))
}

/// A percentile in microseconds.
pub(super) fn us(at: &str, figures: &Figures, percent: f64) -> Result<f64, String> {
    figures.times.percentile(percent).ok_or_else(|| format!("{at}: not measured"))
}

/// The median time of a row.
fn median(at: String, figures: &Found<Figures>) -> Result<Ratio, String> {
    let figures = known(&at, figures)?;
    let value = us(&at, figures, 50.0)?;
    let found = Ratio { value, figures: format!("{value:.3} us, {at}"), spread: None };
    Ok(found.within(of_runs(&figures.rounds.p50)))
}

/// The slowest of the ring's rows with so many in flight.
fn in_flight(
    load: &UnderLoad,
    single: bool,
    numbers: RangeInclusive<u64>,
) -> Result<Ratio, String> {
    let rows = load.closed(Carrier::Ring, single).filter(|row| numbers.contains(&row.in_flight));
    worst(
        Sense::AtMost,
        rows.map(|row| median(format!("{} in flight", row.in_flight), &row.figures)),
    )
}

/// Rows of so many million messages due a second.
fn rates(load: &UnderLoad, millions: RangeInclusive<u64>) -> impl Iterator<Item = &Open> {
    let (least, most) = (millions.start() * 1_000_000, millions.end() * 1_000_000);
    load.open.iter().filter(move |row| (least..=most).contains(&row.offered))
}

fn due_words(row: &Open) -> String {
    format!("{} M/s due", row.offered as f64 / 1e6)
}

fn due(load: &UnderLoad, millions: RangeInclusive<u64>) -> Result<Ratio, String> {
    worst(Sense::AtMost, rates(load, millions).map(|row| median(due_words(row), &row.figures)))
}

/// The rate of 32 messages in flight, one by one.
fn rate(load: &UnderLoad) -> Result<Ratio, String> {
    let row = load.closed(Carrier::Ring, true).find(|row| row.in_flight == 32);
    let figures = &row.ok_or("not measured")?.figures;
    of_rates("one host thread", &known("32 in flight", figures)?.rate, (1e6, "M/s"))
}

/// A message is not later than the median by more than another median, or by what the host thread is late by itself.
fn tail(load: &UnderLoad) -> Result<Ratio, String> {
    let of = |row: &Open| {
        let at = due_words(row);
        let (figures, clock) = (known(&at, &row.figures)?, known(&at, &row.clock)?);
        let (p50, p99) = (us(&at, figures, 50.0)?, us(&at, figures, 99.0)?);
        let late = us(&at, clock, 99.0)?;
        let most = p50.max(late);
        let figures_of = format!(
            "p99 {p99:.3} / {:.3} us: p50 {p50:.3} and {most:.3}, the more of it and the clock's \
             p99 {late:.3}; {at}",
            p50 + most
        );
        let ratio = |p50: f64, p99: f64, late: f64| p99 / (p50 + p50.max(late));
        let found = Ratio { value: ratio(p50, p99, late), figures: figures_of, spread: None };
        let rounds = figures.rounds.p50.iter().zip(&figures.rounds.p99).zip(&clock.rounds.p99);
        let runs: Vec<f64> = rounds.map(|((p50, p99), late)| ratio(*p50, *p99, *late)).collect();
        Ok(found.within(of_runs(&runs)))
    };
    worst(Sense::AtMost, rates(load, 0..=10).map(of))
}

/// One message on each of 8 channels, as many host threads as there may be, beside one channel.
fn channels(load: &UnderLoad) -> Result<Ratio, String> {
    let rows = |channels| load.channels.iter().filter(move |row| row.channels == channels);
    let eight = rows(8).max_by_key(|row| row.threads);
    let figures = |row: Option<&Channels>| row.and_then(|row| row.figures.as_ref().ok().cloned());
    let (ours, one) = (figures(eight), figures(rows(1).next()));
    let p50 = |figures: &Option<Figures>| figures.as_ref()?.times.percentile(50.0);
    let mut found = ratio(p50(&ours), p50(&one), "us")?;
    if let Some(Channels { threads: threads @ ..8, .. }) = eight {
        found.figures += &format!("; {threads} host threads");
    }
    let spread = ours.zip(one).and_then(|(a, b)| in_turn(&a.rounds.p50, &b.rounds.p50));
    Ok(found.within(spread))
}
