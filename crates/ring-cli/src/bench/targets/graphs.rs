//! The targets of kernels that talk. Bounds in microseconds and in messages a second are for an H200.

use super::{Asked, Ratio, Sense, million_a_second, ratio, timed, worst};
use crate::bench::report::{Latency, Report, Throughput};
use crate::bench::ring::graphs::{BY_KEY, KEYS, LINKS, MANY, MANY_NEED, SLOTS};
use crate::bench::section::Section;
use crate::bench::spread::{in_turn, of_runs};
use ring_bench::kernels::Times8;
use ring_host::Kernel;

/// All of them.
pub fn graphs(report: &Report) -> [Asked; 6] {
    use Sense::{AtLeast, AtMost};
    let [one, eight, many] = [1, 8, MANY].map(|links| beside(report, links));
    let keys = worst(AtLeast, BY_KEY.map(|channels| by_key(report, channels)).into_iter());
    [
        ("graph_more", "each kernel more in a chain, p50, us", AtMost, 0.45, more(report)),
        ("graph_by_host", "2 kernels / by way of the host, p50", AtMost, 0.65, by_host(report)),
        ("graph_links_1", "1 link, 64 bytes, M messages/s", AtLeast, 400.0, one),
        ("graph_links_8", "8 links, 64 bytes, M messages/s", AtLeast, 3200.0, eight),
        ("graph_links_56", "56 links (12,000 x 56/66), M messages/s", AtLeast, 10_182.0, many),
        ("graph_by_key", "by key to 1 to 64, the slowest, M messages/s", AtLeast, 300.0, keys),
    ]
}

/// A row of round trips, and its median.
fn trip<'a>(report: &'a Report, id: &str) -> Result<(&'a Latency, f64), String> {
    timed(report, (Section::Graphs, &report.graphs), id)
}

/// What each kernel behind the first adds, to the fifth.
fn more(report: &Report) -> Result<Ratio, String> {
    let ((one, least), (five, most)) = (trip(report, "graph_1")?, trip(report, "graph_5")?);
    let each = |one: f64, five: f64| (five - one) / 4.0;
    let figures = format!("({most:.3} - {least:.3}) / 4 us, five kernels and one");
    let rounds = one.rounds.p50.iter().zip(&five.rounds.p50);
    let runs: Vec<f64> = rounds.map(|(one, five)| each(*one, *five)).collect();
    let found = Ratio { value: each(least, most), figures, spread: None };
    Ok(found.within(of_runs(&runs)))
}

/// A link between two kernels beside the host between them.
fn by_host(report: &Report) -> Result<Ratio, String> {
    let (chain, host) = (trip(report, "graph_2")?, trip(report, "graph_by_host")?);
    let found = ratio(Some(chain.1), Some(host.1), "us")?;
    Ok(found.within(in_turn(&chain.0.rounds.p50, &host.0.rounds.p50)))
}

/// So many links beside each other, of as many slots as a link has by default.
fn beside(report: &Report, links: u32) -> Result<Ratio, String> {
    let multiprocessors = report.machine.device.multiprocessors;
    if links == MANY && report.sweep(LINKS).next().is_some() && multiprocessors < MANY_NEED {
        return Err(format!("{MANY} links need {MANY_NEED} multiprocessors of {multiprocessors}"));
    }
    let is = |row: &Throughput| {
        let Throughput { name, shape, .. } = row;
        *name == Times8::NAME && (shape.channels, shape.capacity) == (links, SLOTS[0])
    };
    million_a_second(report, (Section::Graphs, LINKS), is)
}

/// Links from one channel to so many.
fn by_key(report: &Report, channels: u32) -> Result<Ratio, String> {
    let is = |row: &Throughput| row.name == Times8::NAME && row.shape.channels == channels;
    let found = million_a_second(report, (Section::Graphs, KEYS), is)?;
    Ok(Ratio { figures: format!("{} to {channels}", found.figures), ..found })
}
