//! Round trips and throughput of every mode in every memory.

use super::latency::{timed, trip};
use super::{RingPipe, channels};
use crate::bench::context::{Context, ended, wrong};
use crate::bench::drive::together;
use crate::bench::report::{Found, Stop, Way};
use crate::bench::settings::TIMEOUT;
use crate::bench::stats::{Rates, Times};
use ring_host::kernels::Echo;
use ring_host::{Budgets, KernelHandle, LaunchConfig, Memory, Mode};
use std::time::Duration;

const MODES: [Mode; 3] = [Mode::Persistent, Mode::EventDriven, Mode::Graph];
const MEMORIES: [Memory; 3] = [Memory::Mapped, Memory::StagedAsync, Memory::StagedSync];

/// Steps of [`ways`].
pub const STEPS: u64 = (MODES.len() * MEMORIES.len()) as u64;

/// How soon a kernel leaves when round trips from rest are timed.
const SOON: Duration = Duration::from_micros(20);

/// Measures all ways.
pub fn ways(context: &Context<'_>) -> Vec<Way> {
    let all = MODES.into_iter().flat_map(|mode| MEMORIES.map(|memory| (mode, memory)));
    all.map(|(mode, memory)| {
        context.steps.next(&format!("{mode} in {memory} memory"));
        way(context, mode, memory)
    })
    .collect()
}

fn way(context: &Context<'_>, mode: Mode, memory: Memory) -> Way {
    let launch = LaunchConfig::default().mode(mode).memory(memory);
    let samples = if context.settings.quick { 1_000 } else { 10_000 };
    let each = (context.settings.warm_up / 4, samples);
    let mut launches = 0;
    let times = round_trips(context, launch.clone(), each, |_| Ok(()));
    let rate = match &times {
        Ok(_) => throughput(context, launch.clone(), &mut launches),
        Err(Stop::Wrong(_)) => Err(Stop::Refused("its round trips failed".to_owned())),
        Err(refused) => Err(refused.clone()),
    };
    let at_rest = (mode != Mode::Persistent && times.is_ok()).then(|| {
        let launch = launch.budgets(Budgets { idle: SOON, ..Budgets::default() });
        let rest = |kernel: &mut KernelHandle<Echo>| kernel.rest(TIMEOUT).map_err(wrong);
        round_trips(context, launch, (20, samples / 10), rest)
    });
    Way { mode, memory, times, at_rest, rate, launches }
}

/// Round trips: so many that are not timed, and so many that are; what is done `before` each is not timed.
fn round_trips(
    context: &Context<'_>,
    launch: LaunchConfig,
    each: (u64, u64),
    before: impl Fn(&mut KernelHandle<Echo>) -> Found<()> + Sync,
) -> Found<Times> {
    let limit = Duration::from_millis(if context.settings.quick { 200 } else { 1_000 });
    let mut times = Times::new();
    let mut kernel = context.active::<Echo>(launch)?;
    context.cores.on(0, || {
        timed(each, limit, &mut times, |i| {
            before(&mut kernel)?;
            trip(&mut kernel, i)
        })
    })?;
    ended(kernel)?;
    Ok(times)
}

fn throughput(context: &Context<'_>, launch: LaunchConfig, launches: &mut u64) -> Found<Rates> {
    let mut rates = Rates::default();
    let mut kernel = context.active::<Echo>(launch)?;
    let mut pipes: Vec<_> = channels(&mut kernel)?.into_iter().map(RingPipe::new).collect();
    for _ in 0..3 {
        let rate = together(&mut pipes, &context.load(), context.cores)?;
        context.check_interrupt()?; // else it may have been cut short
        rates.add(rate);
    }
    *launches = kernel.launches();
    drop(pipes);
    ended(kernel)?;
    Ok(rates)
}
