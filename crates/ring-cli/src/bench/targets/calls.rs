//! The targets of calls of many threads. Bounds are for an H200 and sixteen processors.

use super::load::{known, us};
use super::{Asked, Ratio, Sense, like_an_h200, not_measured, of_rates, ratio, worst};
use crate::bench::calls::{Calls, HELD, How};
use crate::bench::load::rows::Figures;
use crate::bench::report::Report;
use crate::bench::section::Section;
use crate::bench::spread::{in_turn, of_runs};

/// Threads that the bounds are for.
const MANY: usize = 64;

/// All of them.
pub fn calls(report: &Report) -> [Asked; 4] {
    use Sense::{AtLeast, AtMost};
    let rate = |how| worst(AtLeast, of_many(report, how).map(|row| rate(row?)));
    let tail = worst(AtMost, of_many(report, How::Call).map(|row| tail(report, row?)));
    [
        ("calls_one", "a call beyond send and receive, p50, us", AtMost, 0.1, beyond(report)),
        (
            "calls_tickets",
            "64 threads with tickets, M/s, the slowest",
            AtLeast,
            10.0,
            rate(How::Tickets(HELD)),
        ),
        ("calls_waiting", "64 threads that wait, M/s, the slowest", AtLeast, 4.0, rate(How::Call)),
        ("calls_tail", "64 threads that wait / one, p99, the worst", AtMost, 3.0, tail),
    ]
}

fn row(report: &Report, how: How, threads: usize, channels: u32) -> Result<&Calls, String> {
    let is = |row: &&Calls| (row.how, row.threads, row.channels) == (how, threads, channels);
    let row = report.calls.iter().find(is).ok_or_else(|| not_measured(Section::Calls))?;
    like_an_h200(report, row.device).map(|()| row)
}

fn figures(row: &Calls) -> Result<&Figures, String> {
    known(&row.name(), &row.figures)
}

/// The rows of many threads with channels enough to spread over.
fn of_many(report: &Report, how: How) -> impl Iterator<Item = Result<&Calls, String>> {
    let is = move |row: &&Calls| row.how == how && row.threads == MANY && row.channels > 1;
    let rows = report.calls.iter().filter(is);
    rows.map(|row| like_an_h200(report, row.device).map(|()| row))
}

/// What a call of one thread takes beyond a message on a channel of its own.
fn beyond(report: &Report) -> Result<Ratio, String> {
    let [own, call] = [How::Own, How::Call].map(|how| row(report, how, 1, 1));
    let (own, call) = (own?, call?);
    let p50 = |row: &Calls| us(&row.name(), figures(row)?, 50.0);
    let (least, most) = (p50(own)?, p50(call)?);
    let rounds = figures(own)?.rounds.p50.iter().zip(&figures(call)?.rounds.p50);
    let runs: Vec<f64> = rounds.map(|(own, call)| call - own).collect();
    let words = format!("{most:.3} - {least:.3} us");
    Ok(Ratio { value: most - least, figures: words, spread: None }.within(of_runs(&runs)))
}

/// Messages a second of a row, in millions.
fn rate(row: &Calls) -> Result<Ratio, String> {
    of_rates(&row.name(), &figures(row)?.rate, (1e6, "M/s"))
}

/// The tail of a row beside that of one thread alone, of a kernel with as many channels.
fn tail(report: &Report, many: &Calls) -> Result<Ratio, String> {
    let one = row(report, How::Call, 1, many.channels)?;
    let p99 = |row: &Calls| us(&row.name(), figures(row)?, 99.0);
    let mut found = ratio(Some(p99(many)?), Some(p99(one)?), "us")?;
    found.figures += &format!(", {} channels", many.channels);
    Ok(found.within(in_turn(&figures(many)?.rounds.p99, &figures(one)?.rounds.p99)))
}
