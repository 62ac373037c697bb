//! The targets of kernels of two devices. Bounds are for two H200 that NVLink joins.

use super::{Asked, Ratio, Sense, million_a_second, timed};
use crate::bench::report::{Report, Throughput};
use crate::bench::ring::graphs::{ACROSS, MANY_ACROSS};
use crate::bench::ring::grids::BARRIERS;
use crate::bench::section::Section;
use crate::bench::spread::of_runs;

/// All of them.
pub fn peers(report: &Report) -> [Asked; 7] {
    use Sense::{AtLeast, AtMost};
    let [one, eight, many] = [1, 8, MANY_ACROSS].map(|links| across(report, links));
    [
        ("peers_way", "a way to a kernel of another GPU, p50, us", AtMost, 0.7, way(report)),
        ("peers_host", "host, GPU 0, GPU 1, host, p50, us", AtMost, 3.2, through_both(report)),
        ("peers_links_1", "1 link to another GPU, M messages/s", AtLeast, 320.0, one),
        ("peers_links_8", "8 links to another GPU, M messages/s", AtLeast, 2300.0, eight),
        ("peers_links_64", "64 links to another GPU, M messages/s", AtLeast, 5000.0, many),
        (
            "peers_barrier",
            "a barrier of the grids of 2 GPUs, p50, us",
            AtMost,
            3.0,
            barrier(report),
        ),
        ("peers_page_rank", "PageRank, 2^22 vertices, 1 GPU / 2", AtLeast, 1.5, page_rank(report)),
    ]
}

/// Half of what kernels of the second device and of the first add behind one of the first.
fn way(report: &Report) -> Result<Ratio, String> {
    let trip = |id| timed(report, (Section::Peers, &report.peers), id);
    let ((one, least), (three, most)) = (trip("peers_0")?, trip("peers_010")?);
    let half = |one: f64, three: f64| (three - one) / 2.0;
    let figures = format!("({most:.3} - {least:.3}) / 2 us, there and back behind a kernel");
    let rounds = one.rounds.p50.iter().zip(&three.rounds.p50);
    let runs: Vec<f64> = rounds.map(|(one, three)| half(*one, *three)).collect();
    let found = Ratio { value: half(least, most), figures, spread: None };
    Ok(found.within(of_runs(&runs)))
}

/// What a barrier adds to a message that grids of both devices handle, in which each block writes to the other device before.
fn barrier(report: &Report) -> Result<Ratio, String> {
    let trip = |id| timed(report, (Section::Peers, &report.peers), id);
    let ((none, least), (four, most)) = (trip("grids_writes")?, trip("grids_writes_4")?);
    let each = |none: f64, four: f64| (four - none) / f64::from(BARRIERS);
    let figures = format!("({most:.3} - {least:.3}) / {BARRIERS} us");
    let rounds = none.rounds.p50.iter().zip(&four.rounds.p50);
    let runs: Vec<f64> = rounds.map(|(none, four)| each(*none, *four)).collect();
    let found = Ratio { value: each(least, most), figures, spread: None };
    Ok(found.within(of_runs(&runs)))
}

/// How much faster two devices are than one.
fn page_rank(report: &Report) -> Result<Ratio, String> {
    let trip = |id| timed(report, (Section::Peers, &report.peers), id);
    let ((one, slow), (two, fast)) = (trip("page_rank_one")?, trip("page_rank_two")?);
    let figures = format!("{slow:.0} / {fast:.0} us");
    let rounds = one.rounds.p50.iter().zip(&two.rounds.p50);
    let runs: Vec<f64> = rounds.map(|(one, two)| one / two).collect();
    Ok(Ratio { value: slow / fast, figures, spread: None }.within(of_runs(&runs)))
}

/// Through a kernel of each.
fn through_both(report: &Report) -> Result<Ratio, String> {
    let (row, us) = timed(report, (Section::Peers, &report.peers), "peers_01")?;
    let found = Ratio { value: us, figures: format!("{us:.3} us"), spread: None };
    Ok(found.within(of_runs(&row.rounds.p50)))
}

/// So many links beside each other.
fn across(report: &Report, links: u32) -> Result<Ratio, String> {
    let is = |row: &Throughput| row.shape.channels == links;
    million_a_second(report, (Section::Peers, ACROSS), is)
}
