//! Throughput and memory as the number of messages and the size of the rings grow.

use super::rate;
use crate::bench::context::Context;
use crate::bench::drive::Load;
use crate::bench::report::{Growth, Shape};
use crate::bench::stats::Rates;
use ring_host::kernels::Echo;
use std::time::Duration;

/// Messages of each row.
const MESSAGES: [u64; 4] = [1_000_000, 10_000_000, 100_000_000, 1_000_000_000];

/// Slots of each row.
const CAPACITIES: [u32; 5] = [256, 1024, 4096, 16_384, 65_536];

/// Messages of the rows of capacities, and fewer where that takes long.
const OF_CAPACITY: [u64; 2] = [4_000_000, 80_000];

/// No row takes longer.
const LIMIT: Duration = Duration::from_secs(120);

/// Steps of [`growth`].
pub const STEPS: u64 = (MESSAGES.len() + CAPACITIES.len()) as u64;

/// Measures all rows: messages first, then capacities.
pub fn growth(context: &Context<'_>) -> Vec<Growth> {
    // The first kernel touches memory that all later ones use again: that is no growth.
    let first = Load { messages: 100_000, time: LIMIT, ..context.load() };
    let _ = rate::<Echo>(context, &Shape::of::<Echo>(), &first);
    let mut rows = Vec::new();
    for messages in MESSAGES {
        context.steps.next(&format!("{messages} messages"));
        if context.settings.growth || messages <= most(context) {
            // Short runs end before clocks and caches have settled, so they are repeated.
            let often = messages <= 10_000_000 && !in_haste(context);
            let repeats = if often { context.settings.repeats } else { 1 };
            rows.push(row(context, messages, repeats, Shape::of::<Echo>()));
        }
    }
    for capacity in CAPACITIES {
        context.steps.next(&format!("{capacity} slots"));
        let messages = OF_CAPACITY[usize::from(in_haste(context))];
        let shape = Shape::of::<Echo>().capacity(capacity);
        rows.push(row(context, messages, context.settings.repeats, shape));
    }
    rows
}

/// Whether the bench is to be quick on a slow device.
fn in_haste(context: &Context<'_>) -> bool {
    context.is_cpu() && context.settings.quick
}

/// Messages that go within a second or two.
fn most(context: &Context<'_>) -> u64 {
    match (context.is_cpu(), context.settings.quick) {
        (true, true) => 1_000_000,
        (false, false) => 100_000_000,
        _ => 10_000_000,
    }
}

fn row(context: &Context<'_>, messages: u64, repeats: u64, shape: Shape) -> Growth {
    let load = Load { messages, time: LIMIT, ..context.load() };
    let before_kib = resident_kib();
    let mut rate = Ok(Rates::default());
    for _ in 0..repeats {
        context.sample(&mut rate, || super::rate::<Echo>(context, &shape, &load));
    }
    let after_kib = resident_kib();
    Growth { messages, capacity: shape.capacity, rate, before_kib, after_kib }
}

/// Memory of this process in KiB, as Linux counts it; 0 elsewhere.
fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}
