//! The plots of kernels that talk.

use super::{TRIPS, grid, plot, sweep, trips};
use crate::bench::report::{Report, Throughput};
use crate::bench::ring::graphs::{CHAINS, KEYS, LINKS, SLOTS};
use crate::bench::stats::Rates;
use crate::text::grouped;
use ring_bench::kernels::{Pass64, Times8};
use ring_host::Kernel;

/// Round trips against the kernels of a chain, and messages a second against links.
pub fn graphs(report: &Report) -> String {
    let trips = trips(&report.graphs, "a chain", CHAINS);
    grid([plot("Round trips against kernels", "kernels of a chain", TRIPS, trips), rates(report)])
}

fn rates(report: &Report) -> String {
    let line = |name: &str, rows: &mut dyn Iterator<Item = &Throughput>| {
        let rows = rows.filter_map(|row| Some((row, row.rate.as_ref().ok()?)));
        let rows: Vec<(&Throughput, &Rates)> = rows.collect();
        sweep(&rows, name, |row| f64::from(row.shape.channels), |_, rate| rate / 1e6)
    };
    let beside = SLOTS.map(|slots| {
        let is = |row: &&Throughput| row.name == Times8::NAME && row.shape.capacity == slots;
        let name = format!("beside each other, {} slots", grouped(slots.into()));
        line(&name, &mut report.sweep(LINKS).filter(is))
    });
    let names = [Times8::NAME, Pass64::NAME];
    let keys = names.map(|name| {
        let rows = &mut report.sweep(KEYS).filter(|row| row.name == name);
        line(&format!("from one channel of {name}, by key"), rows)
    });
    let y = "million messages a second (by factors)";
    plot("Messages against links", "links", (y, true), beside.into_iter().chain(keys))
}
