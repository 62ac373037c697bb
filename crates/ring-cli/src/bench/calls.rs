//! Calls of a kernel by one client of many threads, beside a channel of one's own.
//!
//! One thread that waits for each answer pauses before each message, at random. Without a pause its next message meets the kernel at
//! the same point of the kernel's look at the host's memory again and again, which takes a microsecond: then some 50 ns more between
//! two messages make each take 0.8 us longer, or shorter, whatever they were spent on.

use super::context::{Context, ended, wrong};
use super::load::rows::{Figures, Round, add_round};
use super::measured::Measured;
use super::report::{Found, Report, Stop, Whose, found};
use super::settings::{Settings, TIMEOUT};
use super::stats::Times;
use ring_host::kernels::{Echo, EchoMessage};
use ring_host::{Client, KernelHandle, LaunchConfig, Ticket};
use serde::Serialize;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// How a thread has its messages answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum How {
    /// It sends and receives on a channel of its own, and yields its processor between looks.
    Own,
    /// It calls, and waits for the answer.
    Call,
    /// It has so many tickets, and waits for the oldest.
    Tickets(usize),
}

/// Tickets of a thread that has some.
pub const HELD: usize = 32;

/// One thread's longest pause: longer than a round trip.
const LONGEST_PAUSE: Duration = Duration::from_micros(4);

impl How {
    /// In words.
    pub fn in_words(self) -> String {
        match self {
            How::Own => "channels of their own".to_owned(),
            How::Call => "calls".to_owned(),
            How::Tickets(held) => format!("{held} tickets each"),
        }
    }
}

/// Some threads that do that.
#[derive(Clone, Debug, Serialize)]
pub struct Calls {
    /// What they do.
    pub how: How,
    /// How many they are.
    pub threads: usize,
    /// Channels of the kernel.
    pub channels: u32,
    /// `cuda` or `cpu`.
    pub device: &'static str,
    /// How long a message took, of those that are waited for one by one; and messages a second.
    #[serde(serialize_with = "found")]
    pub figures: Found<Figures>,
}

impl Calls {
    /// Whether it is one thread that pauses, so that the rate says nothing.
    pub fn pauses(&self) -> bool {
        pauses(self.how, self.threads)
    }

    /// Whose it is.
    pub fn whose(&self) -> Whose {
        if self.how == How::Own { Whose::Baseline } else { Whose::Ours }
    }

    /// What it is.
    pub fn name(&self) -> String {
        format!("{}, {} threads, {} channels", self.how.in_words(), self.threads, self.channels)
    }
}

/// What, by how many threads, and over how many channels.
const ROWS: [(How, usize, u32); 16] = [
    (How::Own, 1, 1),
    (How::Call, 1, 1),
    (How::Call, 1, 16),
    (How::Call, 1, 32),
    (How::Call, 1, 64),
    (How::Call, 4, 4),
    (How::Call, 16, 16),
    (How::Own, 64, 64),
    (How::Call, 64, 1),
    (How::Call, 64, 16),
    (How::Call, 64, 32),
    (How::Call, 64, 64),
    (How::Tickets(HELD), 1, 1),
    (How::Tickets(HELD), 16, 16),
    (How::Tickets(HELD), 64, 16),
    (How::Tickets(HELD), 64, 64),
];

/// The same on the CPU device, which has a thread for each channel.
const CPU_ROWS: [(How, usize, u32); 5] = [
    (How::Own, 1, 1),
    (How::Call, 1, 1),
    (How::Call, 4, 1),
    (How::Call, 4, 2),
    (How::Tickets(HELD), 2, 2),
];

/// Steps of [`measure`].
pub fn steps(settings: &Settings) -> u64 {
    settings.rounds
}

/// Measures all rows in turn, a round of each.
pub fn measure(context: &Context<'_>, report: &mut Report) {
    let rows: &[_] = if context.is_cpu() { &CPU_ROWS } else { &ROWS };
    let row = |(how, threads, channels): &(How, usize, u32)| Calls {
        how: *how,
        threads: *threads,
        channels: *channels,
        device: context.device(),
        figures: Ok(Figures::new()),
    };
    report.calls = rows.iter().map(row).collect();
    let rounds = context.settings.rounds;
    for round in 1..=rounds {
        context.steps.next(&format!("calls of many threads, round {round} of {rounds}"));
        for Calls { how, threads, channels, figures, .. } in &mut report.calls {
            add_round(context, figures, || once(context, *how, *threads, *channels));
        }
    }
}

/// A round by a kernel launched for that, whose memory is that of the other rows' kernels with as many channels.
fn once(context: &Context<'_>, how: How, threads: usize, channels: u32) -> Found<Round> {
    let launch = LaunchConfig::default().channels(channels);
    // A thread for each channel needs processors that the host's threads have as well.
    let mut kernel = match context.is_cpu() && channels > 1 {
        true => context.grid::<Echo>(launch)?,
        false => context.active::<Echo>(launch)?,
    };
    let pauses = pauses(how, threads);
    let round = match how {
        How::Own => of_their_own(context, &mut kernel, threads, pauses)?,
        How::Call | How::Tickets(_) => {
            let client = kernel.client().map_err(wrong)?;
            let callers = (0..threads).map(|_| client.clone());
            let each =
                context.cores.at_once(callers, |client| call(context, how, &client, pauses))?;
            together(&each)
        }
    };
    ended(kernel)?;
    context.check_interrupt()?; // else it may have been cut short
    match round.rate {
        Some(_) => Ok(round),
        None => Err(Stop::Refused("too few answers came in the time of a round".to_owned())),
    }
}

/// Whether it is one thread that waits for each answer.
fn pauses(how: How, threads: usize) -> bool {
    threads == 1 && !matches!(how, How::Tickets(_))
}

/// What one thread did.
#[derive(Clone, Debug)]
struct Done {
    times: Times,
    /// Messages that were answered within the time that counts.
    messages: u64,
    took: Duration,
}

fn together(each: &[Done]) -> Round {
    let (mut times, mut rate) = (Times::new(), 0.0);
    for Done { times: of_one, messages, took } in each {
        times.add(of_one);
        rate += *messages as f64 / took.as_secs_f64().max(1e-9);
    }
    Round { times, rate: Some(rate).filter(|rate| *rate > 0.0) }
}

/// Threads with a channel each.
fn of_their_own(
    context: &Context<'_>,
    kernel: &mut KernelHandle<Echo>,
    threads: usize,
    pauses: bool,
) -> Found<Round> {
    let channels = (0..threads as u32).map(|index| kernel.take_channel(index).map_err(wrong));
    let channels = channels.collect::<Found<Vec<_>>>()?;
    let each = context.cores.at_once(channels.into_iter(), |mut channel| {
        // Alone on its processor, a thread does best to spin.
        let yields = threads > context.cores.count();
        again_and_again(context, pauses, |request| {
            channel.send(request, TIMEOUT).map_err(wrong)?;
            let begun = Instant::now();
            while yields && channel.split().1.is_empty() && begun.elapsed() < TIMEOUT {
                std::thread::yield_now();
            }
            channel.recv(TIMEOUT).map_err(wrong)
        })
    })?;
    Ok(together(&each))
}

/// A thread that calls.
fn call(context: &Context<'_>, how: How, client: &Client<Echo>, pauses: bool) -> Found<Done> {
    let How::Tickets(held) = how else {
        let exchange = |request| client.call(request, TIMEOUT).map_err(wrong);
        return again_and_again(context, pauses, exchange);
    };
    let mut tickets: VecDeque<(u64, Ticket<Echo>)> = VecDeque::with_capacity(held);
    let take = |tickets: &mut VecDeque<(u64, Ticket<Echo>)>| -> Found<()> {
        let Some((number, ticket)) = tickets.pop_front() else { return Ok(()) };
        let answer = ticket.wait(TIMEOUT).map_err(wrong)?;
        checked(&answer, number)
    };
    let mut done = for_a_while(context, |number, _| {
        if tickets.len() == held {
            take(&mut tickets)?;
        }
        let ticket = client.submit(Echo::message(number), TIMEOUT).map_err(wrong)?;
        tickets.push_back((number, ticket));
        Ok(())
    })?;
    // The last ones are answered behind the time that counts.
    done.messages = done.messages.saturating_sub(tickets.len() as u64);
    while !tickets.is_empty() {
        take(&mut tickets)?;
    }
    Ok(done)
}

/// Has messages answered one by one, and times each; with a pause before each, or right behind the other.
fn again_and_again(
    context: &Context<'_>,
    pauses: bool,
    mut exchange: impl FnMut(EchoMessage) -> Found<EchoMessage>,
) -> Found<Done> {
    let mut last = Instant::now();
    for_a_while(context, |number, times| {
        if pauses {
            let pause = LONGEST_PAUSE.mul_f64(part(number));
            last = spun(Instant::now(), pause);
        }
        checked(&exchange(Echo::message(number))?, number)?;
        let now = Instant::now();
        times.record(now - last);
        last = now;
        Ok(())
    })
}

/// A number from 0 to 1 that differs from message to message, by no pattern that a kernel could fall in with.
fn part(number: u64) -> f64 {
    let mixed = (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ mixed >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93);
    (mixed >> 11) as f64 / (1u64 << 53) as f64
}

/// Spins for so long; when that was over.
fn spun(begun: Instant, pause: Duration) -> Instant {
    loop {
        let now = Instant::now();
        if now - begun >= pause {
            return now;
        }
        std::hint::spin_loop();
    }
}

/// Calls `work` with the numbers of messages until the time of a round is over; the first tenth of it does not count.
fn for_a_while(
    context: &Context<'_>,
    mut work: impl FnMut(u64, &mut Times) -> Found<()>,
) -> Found<Done> {
    let (mut times, mut number) = (Times::new(), 0);
    let mut until = |time: Duration, times: &mut Times| -> Found<(u64, Duration)> {
        let (begun, first) = (Instant::now(), number);
        loop {
            for _ in 0..8 {
                work(number, times)?;
                number += 1;
            }
            let took = begun.elapsed();
            if took >= time || context.interrupt.requested() {
                return Ok((number - first, took));
            }
        }
    };
    until(context.settings.run / 10, &mut Times::new())?;
    let (messages, took) = until(context.settings.run, &mut times)?;
    Ok(Done { times, messages, took })
}

fn checked(answer: &EchoMessage, number: u64) -> Found<()> {
    match Echo::answers(answer, number) {
        true => Ok(()),
        false => Err(wrong(format!("the answer to message {number} is wrong"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::example;
    use crate::interrupt::Interrupt;

    #[test]
    fn every_kind_of_row_is_measured() {
        example::with(Interrupt::never(), |context| {
            for (how, threads, channels) in CPU_ROWS {
                let round = once(context, how, threads, channels).unwrap();
                assert!(round.rate.is_some(), "{how:?}");
                let is_timed = !matches!(how, How::Tickets(_));
                assert_eq!(round.times.count() > 0, is_timed, "{how:?}: {round:?}");
            }
        });
    }

    #[test]
    fn pauses_are_spread_evenly() {
        let mut tenths = [0; 10];
        (0..10_000).for_each(|number| tenths[(part(number) * 10.0) as usize] += 1);
        assert!(tenths.iter().all(|count| (900..1100).contains(count)), "{tenths:?}");
        let begun = Instant::now();
        assert!(spun(begun, LONGEST_PAUSE) - begun >= LONGEST_PAUSE);
    }

    #[test]
    fn a_wrong_answer_is_told() {
        assert!(checked(&Echo::message(3).answer(), 3).is_ok());
        assert!(checked(&Echo::message(3).answer(), 4).is_err());
    }
}
