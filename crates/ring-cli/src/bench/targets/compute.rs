//! The target of whole computations. The bound in messages a second is for an H200.

use super::{Asked, Sense, million_a_second};
use crate::bench::report::{Report, Throughput};
use crate::bench::ring::compute::{LARGEST, SWEEP};
use crate::bench::section::Section;

/// All of them.
pub fn compute(report: &Report) -> [Asked; 1] {
    let is = |row: &Throughput| row.name == LARGEST;
    let rate = million_a_second(report, (Section::Compute, SWEEP), is);
    let what = "PageRank, 2^20, M contributions/s";
    [("compute_page_rank", what, Sense::AtLeast, 1000.0, rate)]
}
