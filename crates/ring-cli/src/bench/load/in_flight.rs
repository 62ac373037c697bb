//! The loop that keeps a number of messages in flight: an answer is taken, and the next message is sent.
//!
//! The reading of the clock right after answers were taken is the one right before as many messages are sent:
//! so one reading a sweep ends the times of some messages and begins those of others.

use super::clock::{Clock, Monotonic};
use super::log::Log;
use super::rows::Round;
use super::watch::Watch;
use crate::bench::context::{Context, wrong};
use crate::bench::drive::Pipe;
use crate::bench::report::{Found, Stop};
use crate::bench::settings::TIMEOUT;
use crate::bench::stats::Times;

/// How messages are kept in flight.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Messages in flight on each pipe.
    pub in_flight: u64,
    /// Most messages handed over, and most answers taken, at a time.
    pub batch: usize,
    /// Messages that are not timed, behind the first in flight.
    pub warm_up: u64,
    /// Messages of each pipe that are timed.
    pub samples: u64,
    /// When the loop ends with fewer, in nanoseconds.
    pub limit: u64,
}

/// Sweeps of all messages in flight that are timed at least.
const FLIGHTS: u64 = 16;

impl Plan {
    /// That of a round of the settings.
    pub fn new(context: &Context<'_>, in_flight: u64, batch: usize) -> Plan {
        let settings = context.settings;
        let samples = settings.per_round().max(FLIGHTS * in_flight);
        let (warm_up, limit) = (settings.warm_up, settings.load_limit.as_nanos() as u64);
        Plan { in_flight, batch, warm_up, samples, limit }
    }

    /// Answers before the first that counts.
    fn skip(&self) -> u64 {
        self.in_flight + self.warm_up
    }
}

/// A pipe, and when its answers came.
#[derive(Debug)]
struct Flow<P> {
    pipe: P,
    log: Log,
}

/// Keeps messages in flight on all pipes, which are dealt out to so many host threads, each on a processor of its
/// own as long as there are some.
pub fn keep<P: Pipe + Send>(
    context: &Context<'_>,
    pipes: impl IntoIterator<Item = P>,
    plan: &Plan,
    threads: usize,
) -> Found<Round> {
    let flow = |pipe| Flow { pipe, log: Log::new(plan.skip() + plan.samples) };
    let mut flows: Vec<Flow<P>> = pipes.into_iter().map(flow).collect();
    let share = flows.len().div_ceil(threads.max(1)).max(1);
    let watch = || Watch::new(context.yield_after(), context.interrupt);
    let work = |mine| drive(mine, plan, &Monotonic::start(), &mut watch());
    context.cores.at_once(flows.chunks_mut(share), work)?;
    context.check_interrupt()?; // else it may have been cut short
    let (mut times, mut rate) = (Times::new(), 0.0);
    for Flow { log, .. } in &flows {
        times.add(&log.closed_times(plan.in_flight, plan.skip()));
        rate += log.rate(plan.skip()).unwrap_or(0.0);
    }
    match times.count() {
        0 => Err(Stop::Refused("too few answers came in the time of a round".to_owned())),
        _ => Ok(Round { times, rate: Some(rate).filter(|rate| *rate > 0.0) }),
    }
}

/// Keeps messages in flight until all logs are full or the time is over, and takes what is left.
fn drive<P: Pipe>(
    flows: &mut [Flow<P>],
    plan: &Plan,
    clock: &impl Clock,
    watch: &mut Watch,
) -> Found<()> {
    for flow in &mut *flows {
        send(&mut flow.pipe, plan.in_flight as usize, plan.batch, watch)?;
    }
    let (mut unfilled, mut now) = (flows.len(), 0);
    while unfilled > 0 && !watch.interrupted() {
        let mut moved = false;
        for flow in &mut *flows {
            let answers = flow.pipe.receive(plan.batch).map_err(wrong)?;
            if answers > 0 {
                now = clock.now();
                send(&mut flow.pipe, answers, plan.batch, watch)?;
                unfilled -= usize::from(flow.log.add(now, answers));
                moved = true;
            }
        }
        if !moved {
            watch.idle()?;
        } else if now >= plan.limit && over(flows, plan, now) {
            break;
        } else {
            watch.moved();
        }
    }
    flows.iter_mut().try_for_each(|flow| drain(&mut flow.pipe, plan, watch))
}

/// Whether the time is over: at the limit there is something to count, or there will not be.
#[cold]
fn over<P>(flows: &[Flow<P>], plan: &Plan, now: u64) -> bool {
    let counts = flows.iter().all(|flow| flow.log.total() > plan.skip());
    counts || now >= plan.limit + TIMEOUT.as_nanos() as u64
}

/// Sends so many messages.
#[inline]
fn send(pipe: &mut impl Pipe, messages: usize, batch: usize, watch: &mut Watch) -> Found<()> {
    let mut left = messages;
    while left > 0 {
        let sent = pipe.send(left.min(batch)).map_err(wrong)?;
        left -= sent;
        if sent == 0 {
            watch.idle()?;
        }
    }
    Ok(())
}

/// Takes the answers that are still on their way.
fn drain(pipe: &mut impl Pipe, plan: &Plan, watch: &mut Watch) -> Found<()> {
    let mut left = plan.in_flight as usize;
    while left > 0 {
        match pipe.receive(left.min(plan.batch)).map_err(wrong)? {
            0 => watch.idle()?,
            answers => {
                left -= answers;
                watch.moved();
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::load::fake::{FakeClock, FakePipe};
    use crate::interrupt::Interrupt;

    fn plan(in_flight: u64, batch: usize) -> Plan {
        Plan { in_flight, batch, warm_up: 10, samples: 1_000, limit: 1_000_000_000 }
    }

    fn flows(clock: &FakeClock, channels: usize, plan: &Plan) -> Vec<Flow<FakePipe>> {
        let flow = |_| Flow {
            pipe: FakePipe::new(clock, 2_000),
            log: Log::new(plan.skip() + plan.samples),
        };
        (0..channels).map(flow).collect()
    }

    #[test]
    fn as_many_messages_are_in_flight_as_asked_for_and_all_are_answered() {
        for (in_flight, batch) in [(1, 1), (8, 1), (64, 16)] {
            let (clock, plan) = (FakeClock::new(), plan(in_flight, batch));
            let mut flows = flows(&clock, 1, &plan);
            drive(&mut flows, &plan, &clock, &mut Watch::new(1_000, Interrupt::never())).unwrap();
            let Flow { pipe, log } = &flows[0];
            assert_eq!((pipe.deepest() as u64, pipe.in_flight()), (in_flight, 0), "{plan:?}");
            assert!(log.total() >= plan.skip() + plan.samples, "{plan:?}");
            let times = log.closed_times(in_flight, plan.skip());
            assert!(times.count() >= plan.samples, "{plan:?}");
            assert!(times.percentile(0.0) >= Some(2.0), "none is shorter than the way: {times:?}");
        }
    }

    #[test]
    fn each_of_several_channels_has_its_messages_in_flight() {
        let (clock, plan) = (FakeClock::new(), plan(1, 1));
        let mut flows = flows(&clock, 4, &plan);
        drive(&mut flows, &plan, &clock, &mut Watch::new(1_000, Interrupt::never())).unwrap();
        for Flow { pipe, log } in &flows {
            assert_eq!((pipe.deepest(), pipe.in_flight()), (1, 0));
            assert!(log.total() >= plan.skip() + plan.samples);
        }
    }

    #[test]
    fn it_ends_by_time_or_by_an_interrupt_with_all_answered() {
        let clock = FakeClock::new();
        let short = Plan { samples: 1 << 20, limit: 50_000, ..plan(4, 1) };
        let mut timed = flows(&clock, 1, &short);
        drive(&mut timed, &short, &clock, &mut Watch::new(1_000, Interrupt::never())).unwrap();
        let counted = timed[0].log.total();
        assert!(counted > short.skip() && counted < short.samples, "{counted}");
        let mut interrupted = flows(&clock, 1, &short);
        let mut watch = Watch::new(1_000, Interrupt::come());
        drive(&mut interrupted, &short, &clock, &mut watch).unwrap();
        assert_eq!((timed[0].pipe.in_flight(), interrupted[0].pipe.in_flight()), (0, 0));
    }
}
