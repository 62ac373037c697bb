//! Latency against the rate at which messages are due. A message's time begins when it is due, whether it was
//! sent then or not.

use super::clock::{Clock, Monotonic};
use super::log::Log;
use super::rows::{Open, Round, add_round};
use super::schedule::Schedule;
use super::watch::Watch;
use crate::bench::context::{Context, ended, wrong};
use crate::bench::drive::Pipe;
use crate::bench::report::Found;
use crate::bench::ring::{BATCH, RingPipe};
use crate::bench::stats::Times;
use ring_host::LaunchConfig;
use ring_host::kernels::Echo;
use std::time::Duration;

/// Messages a second. The CPU device has only the first four.
const RATES: [u64; 13] = [
    10_000, 100_000, 1_000_000, 2_000_000, 5_000_000, 7_000_000, 8_000_000, 9_000_000, 10_000_000,
    12_000_000, 15_000_000, 20_000_000, 50_000_000,
];
const CPU_RATES: usize = 4;

/// Most messages of a run: their log stays small beside the memory of a machine.
const MOST: u64 = 1 << 20;

/// How much longer than its schedule a run may take, beside as long again.
const GRACE: Duration = Duration::from_millis(10);

/// Measures all rates in turn, a run of each.
pub fn measure(context: &Context<'_>) -> Vec<Open> {
    let rates = if context.is_cpu() { &RATES[..CPU_RATES] } else { &RATES };
    let mut rows: Vec<Open> = rates.iter().copied().map(Open::new).collect();
    let repeats = context.settings.repeats;
    for round in 1..=repeats {
        context.steps.next(&format!("fixed rates, round {round} of {repeats}"));
        for row in &mut rows {
            let schedule = Schedule::new(row.offered, context.settings.run, MOST);
            add_round(context, &mut row.figures, || once(context, row.offered, &schedule));
            add_round(context, &mut row.clock, || clock_alone(context, &schedule));
        }
    }
    rows.iter_mut().for_each(Open::judge);
    rows
}

/// A run by a kernel launched for that.
fn once(context: &Context<'_>, rate: u64, schedule: &Schedule) -> Found<Round> {
    let mut kernel = context.active::<Echo>(LaunchConfig::default())?;
    let mut pipe = RingPipe::new(kernel.take_channel(0).map_err(wrong)?);
    let warm_up = Schedule::new(rate, context.settings.run / 10, MOST / 10);
    let round = context.cores.on(0, || {
        let mut watch = Watch::new(context.yield_after(), context.interrupt);
        on_time(&mut pipe, &warm_up, &Monotonic::start(), &mut watch)?;
        on_time(&mut pipe, schedule, &Monotonic::start(), &mut watch)
    })?;
    drop(pipe);
    ended(kernel)?;
    context.check_interrupt()?; // else it may have been cut short
    Ok(round)
}

/// Sends what is due and takes what is there until all was answered. What could not be sent by when the run must end is
/// never sent, and counts with the time from when it was due to then: it would have taken longer.
fn on_time(
    pipe: &mut impl Pipe,
    schedule: &Schedule,
    clock: &impl Clock,
    watch: &mut Watch,
) -> Found<Round> {
    let mut log = Log::new(schedule.messages());
    let limit = 2 * schedule.length() + GRACE.as_nanos() as u64;
    let (mut sent, mut got, mut all, mut end) = (0, 0, schedule.messages(), 0);
    let begun = clock.now();
    while got < all {
        let answers = pipe.receive(BATCH).map_err(wrong)?;
        let now = clock.now() - begun; // ends the times of these answers, and says what is due
        log.add(now, answers);
        got += answers as u64;
        let due = schedule.due_by(now).min(all) - sent;
        let new =
            if due > 0 { pipe.send(due.min(BATCH as u64) as usize).map_err(wrong)? } else { 0 };
        sent += new as u64;
        if answers + new > 0 {
            watch.moved();
        } else {
            watch.idle()?;
        }
        if all > sent && (now > limit || watch.interrupted()) {
            (all, end) = (sent, now); // what is on its way is still waited for
        }
    }
    Ok(Round { times: times(&log, schedule, end), rate: log.rate(1) })
}

/// The time of each message of a run, those that were not sent by its `end` included.
fn times(log: &Log, schedule: &Schedule, end: u64) -> Times {
    let never_sent = (log.total()..schedule.messages()).map(|_| end);
    let mut times = Times::new();
    for (i, at) in (0..).zip(log.arrivals().chain(never_sent)) {
        times.record(Duration::from_nanos(at.saturating_sub(schedule.due(i))));
    }
    times
}

/// How late a thread is that looks at the clock and does nothing else, in the same schedule.
fn clock_alone(context: &Context<'_>, schedule: &Schedule) -> Found<Round> {
    let interrupted = || context.interrupt.requested();
    let round = context.cores.on(0, || seen(schedule, &Monotonic::start(), interrupted));
    context.check_interrupt()?;
    Ok(round)
}

/// How long after each message was due the clock was read.
fn seen(schedule: &Schedule, clock: &impl Clock, interrupted: impl Fn() -> bool) -> Round {
    let mut log = Log::new(schedule.messages());
    let begun = clock.now();
    while log.total() < schedule.messages() && !interrupted() {
        let now = clock.now() - begun;
        log.add(now, (schedule.due_by(now) - log.total()) as usize);
    }
    Round { times: times(&log, schedule, 0), rate: log.rate(1) }
}

#[cfg(test)]
mod tests;
