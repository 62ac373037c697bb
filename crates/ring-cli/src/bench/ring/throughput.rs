//! Messages a second against everything that can be chosen.

use super::{BATCH, rated};
use crate::bench::context::Context;
use crate::bench::measured::Measured;
use crate::bench::report::{Report, Shape};
use crate::bench::turns::Rated;
use ring_bench::kernels::{Echo16, Echo64Block, Echo64Warp, Echo256, Echo1024, Echo4096};
use ring_host::kernels::Echo;

const CHANNELS: [u32; 5] = [1, 2, 4, 8, 16];
const WIDE: u32 = 4;
const THREADS: [u32; 5] = [64, 128, 256, 512, 1024];
const BATCHES: [usize; 4] = [1, 8, 64, BATCH];
const DEPTHS: [u64; 5] = [1, 16, 256, 4096, 32_768];

/// What is chosen at a point of a sweep, in words, and the row of it.
type Point = (String, Rated);

fn echo(sweep: &'static str, what: String, change: impl FnOnce(&mut Shape)) -> Point {
    let mut shape = Shape::of::<Echo>();
    change(&mut shape);
    (what, rated::<Echo>(sweep, shape))
}

fn size<K: Measured>(sweep: &'static str, channels: u32) -> Point {
    let shape = Shape::of::<K>().channels(channels);
    (format!("{} bytes, {channels} channels", shape.bytes), rated::<K>(sweep, shape))
}

fn scope<K: Measured>(what: &str) -> Point {
    (format!("scope {what}"), rated::<K>("scope", Shape::of::<K>()))
}

fn points() -> Vec<Point> {
    let mut all = Vec::new();
    all.extend(CHANNELS.map(|n| echo("channels", format!("{n} channels"), |s| s.channels = n)));
    for (n, sweep) in [(1, "size"), (WIDE, "size_wide")] {
        all.extend([size::<Echo16>, size::<Echo>, size::<Echo256>].map(|size| size(sweep, n)));
        all.extend([size::<Echo1024>, size::<Echo4096>].map(|size| size(sweep, n)));
    }
    all.extend(BATCHES.map(|n| echo("batch", format!("batches of {n}"), |s| s.batch = n)));
    all.extend(DEPTHS.map(|n| echo("depth", format!("depth {n}"), |s| s.depth = n)));
    all.extend([scope::<Echo>("thread"), scope::<Echo64Warp>("warp")]);
    all.push(scope::<Echo64Block>("block"));
    all.extend(THREADS.map(|n| echo("threads", format!("{n} threads"), |s| s.threads = n)));
    all
}

/// Steps of [`sweeps`], if each point is measured once.
pub fn steps() -> u64 {
    points().len() as u64
}

/// Measures all sweeps.
pub fn sweeps(context: &Context<'_>, report: &mut Report) {
    for (what, row) in points() {
        let what = format!("throughput, {what}");
        report.throughput.extend(context.rates(&what, context.settings.repeats, [row]));
    }
}
