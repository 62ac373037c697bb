//! The plots of kernels that talk.

use super::super::svg::{Draw, Series};
use super::{grid, plot, sweep};
use crate::bench::report::{Report, Throughput};
use crate::bench::ring::graphs::{CHAINS, KEYS, LINKS, SLOTS};
use crate::bench::stats::Rates;
use crate::text::grouped;
use ring_bench::kernels::Times8;
use ring_host::Kernel;

/// Round trips against the kernels of a chain, and messages a second against links.
pub fn graphs(report: &Report) -> String {
    grid([trips(report), rates(report)])
}

fn trips(report: &Report) -> String {
    let line = |percent: f64| {
        let name = format!("a chain, p{percent}");
        let point = |(id, kernels): (&str, u32)| {
            let row = report.graphs.iter().find(|row| row.id == id)?;
            let us = row.times.as_ref().ok()?.percentile(percent)?;
            Some((f64::from(kernels).log2(), us, format!("{name}: {us:.2} us at {kernels}")))
        };
        Series::new(name.clone(), Draw::Dotted, CHAINS.into_iter().filter_map(point).collect())
    };
    let y = "microseconds there and back (by factors)";
    plot("Round trips against kernels", "kernels of a chain", (y, true), [50.0, 99.0].map(line))
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
    let keys = line("from one channel, by key", &mut report.sweep(KEYS));
    let y = "million messages a second (by factors)";
    plot("Messages against links", "links", (y, true), beside.into_iter().chain([keys]))
}
