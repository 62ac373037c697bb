//! The tables of kernels of two devices.

use super::graphs::rates;
use super::{Part, trips};
use crate::bench::report::{Latency, Report};
use crate::bench::ring::graphs::ACROSS;
use crate::table::{Cell, Column, left};

/// Round trips through kernels of both devices, and messages a second over links from one to the other.
pub fn peers(report: &Report) -> Part {
    let name: Cell<Latency> = |row| row.name.clone();
    let trips = trips(&report.peers, (left("through"), name), Column::page_only);
    let tables = [
        ("Two devices, us: one message from the host through kernels and back", trips),
        ("Two devices, million messages a second: links beside each other", rates(report, ACROSS)),
    ];
    Part::of("Two devices", tables, Vec::new())
}
