//! Latency against channels, with one message in flight on each.

use super::in_flight::{self, Plan};
use super::rows::{Channels, Figures, Round, add_round};
use super::single::SinglePipe;
use crate::bench::context::{Context, ended};
use crate::bench::cores::hosts;
use crate::bench::report::Found;
use crate::bench::ring;
use ring_host::LaunchConfig;
use ring_host::kernels::Echo;

/// Channels. The CPU device has a thread for each, so it has only the first three.
const CHANNELS: [u32; 5] = [1, 2, 4, 8, 16];
const CPU_CHANNELS: usize = 3;

/// All rows: each number of channels by one host thread that serves them in turn, and by as many as
/// [`hosts`] says.
fn rows(is_cpu: bool, cores: usize) -> Vec<Channels> {
    let all = if is_cpu { &CHANNELS[..CPU_CHANNELS] } else { &CHANNELS };
    let row = |channels, threads| Channels { channels, threads, figures: Ok(Figures::new()) };
    let both = |channels: &u32| {
        let threads = hosts(*channels as usize, cores);
        let several = (threads > 1).then(|| row(*channels, threads));
        [row(*channels, 1)].into_iter().chain(several)
    };
    all.iter().flat_map(both).collect()
}

/// Measures all rows in turn, a round of each.
pub fn measure(context: &Context<'_>) -> Vec<Channels> {
    let mut rows = rows(context.is_cpu(), context.cores.count());
    let rounds = context.settings.rounds;
    for round in 1..=rounds {
        context.steps.next(&format!("a message on each channel, round {round} of {rounds}"));
        for row in &mut rows {
            let (channels, threads) = (row.channels, row.threads);
            add_round(context, &mut row.figures, || once(context, channels, threads));
        }
    }
    rows
}

/// A round by a kernel launched for that.
fn once(context: &Context<'_>, channels: u32, threads: usize) -> Found<Round> {
    let plan = Plan::new(context, 1, 1);
    let mut kernel = context.active::<Echo>(LaunchConfig::default().channels(channels))?;
    let pipes = ring::channels(&mut kernel)?.into_iter().map(SinglePipe::new);
    let round = in_flight::keep(context, pipes, &plan, threads)?;
    ended(kernel)?;
    Ok(round)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::example;
    use crate::interrupt::Interrupt;

    #[test]
    fn threads_are_as_many_as_there_are_channels_or_processors() {
        let of = |is_cpu, cores| {
            let rows = rows(is_cpu, cores).into_iter();
            rows.map(|row| (row.channels, row.threads)).collect::<Vec<_>>()
        };
        let all = [(1, 1), (2, 1), (2, 2), (4, 1), (4, 4), (8, 1), (8, 8), (16, 1), (16, 16)];
        assert_eq!(of(false, 16), all);
        assert_eq!(of(false, 6)[5..], [(8, 1), (8, 4), (16, 1), (16, 6)]);
        assert_eq!(of(true, 2), [(1, 1), (2, 1), (2, 2), (4, 1), (4, 2)]);
        assert_eq!(of(true, 1), [(1, 1), (2, 1), (4, 1)]);
    }

    #[test]
    fn every_channel_is_measured_by_one_thread_and_by_two() {
        example::with(Interrupt::never(), |context| {
            for threads in [1, 2] {
                let round = once(context, 2, threads).unwrap();
                assert!(round.times.count() >= 2 && round.rate.is_some(), "{round:?}");
            }
        });
    }
}
