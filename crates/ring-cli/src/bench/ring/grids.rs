//! Grids of two devices that handle a message together: what it takes, and what a barrier of both takes.

use super::compute;
use crate::bench::context::{Context, ended_grids, wrong};
use crate::bench::measured::own;
use crate::bench::report::{Found, Latency, Report, Whose};
use crate::bench::settings::{Settings, TIMEOUT};
use crate::bench::stats::Times;
use crate::bench::turns::Trips;
use ring_bench::kernels::{Meet64, Meet64Writes};
use ring_host::{Buffer, BufferRef, Devices, GridHandler, Grids, LaunchConfig};
use std::time::{Duration, Instant};

/// A message, and an answer.
type Words = [u32; 16];

/// Barriers of the rows with some.
pub const BARRIERS: u32 = 4;

/// One message at a time, by a block for each multiprocessor of both devices.
const TRIPS: [Trips; 4] = [
    ("grids", "64 bytes, grids of both devices", |context, _, times| {
        round::<Meet64>(context, (0, false), times)
    }),
    ("grids_4", "64 bytes, grids of both, 4 barriers", |context, _, times| {
        round::<Meet64>(context, (BARRIERS, false), times)
    }),
    ("grids_writes", "64 bytes, grids of both, each block writes", |context, _, times| {
        round::<Meet64Writes>(context, (0, true), times)
    }),
    ("grids_writes_4", "64 bytes, grids of both, 4 barriers, writes", |context, _, times| {
        round::<Meet64Writes>(context, (BARRIERS, true), times)
    }),
];

/// Measures all: each round of every row in turn.
pub fn measure(context: &Context<'_>, report: &mut Report) {
    let trips = context.trips("grids of two devices", context.settings.rounds, &TRIPS);
    let computed = compute::of_two(context.is_cpu());
    let computed = context.trips("PageRank by two devices", context.settings.rounds, &computed);
    let rows = trips.into_iter().chain(computed);
    report.peers.extend(rows.map(|row| Latency { whose: Whose::Ours, ..row }));
}

/// Steps of it.
pub fn steps(settings: &Settings) -> u64 {
    2 * settings.rounds
}

/// Of each device a word for each block, which the blocks of the other one write.
fn words(devices: &Devices, blocks: u32) -> Found<[Buffer<u32>; 2]> {
    let own = [0, 1].map(|device| devices[device].buffer(blocks as usize));
    let [first, second] = own.map(|buffer| buffer.map_err(wrong));
    let (first, second) = (first?, second?);
    let lend = |buffer: &_, to| devices.lend(buffer, to).map_err(wrong);
    Ok([lend(&second, 0)?, lend(&first, 1)?])
}

/// A round of messages to grids launched for that, which meet so many times; each block writes to the other device before, if `writes`.
fn round<K>(context: &Context<'_>, (barriers, writes): (u32, bool), times: &mut Times) -> Found<()>
where
    K: GridHandler<Request = Words, Response = Words>,
{
    let launch = own::<K>(context.kernels, LaunchConfig::default());
    let mut grids = context.grids::<K>(launch)?;
    let blocks = grids.kernels().iter().map(|kernel| kernel.blocks()).max().unwrap_or(0);
    let others = if writes { Some(words(context.devices, blocks)?) } else { None };
    let references = others.as_ref().map_or([[0; 4]; 2], |others| {
        others.each_ref().map(|words| bytemuck::cast::<BufferRef<u32>, _>(words.reference()))
    });
    context.timed(times, |i| {
        let requests = references.map(|reference| {
            let mut request = [i as u32; 16];
            request[0] = barriers;
            request[4..8].copy_from_slice(&reference);
            request
        });
        exchange(&mut grids, &requests)
    })?;
    ended_grids(grids)
}

/// Sends a message and waits for both answers; how long that took.
fn exchange<K>(grids: &mut Grids<K>, requests: &[Words; 2]) -> Found<Duration>
where
    K: GridHandler<Request = Words, Response = Words>,
{
    let mut answers = [Words::default(); 2];
    let begun = Instant::now();
    grids.send(requests, TIMEOUT).map_err(wrong)?;
    grids.recv(&mut answers, TIMEOUT).map_err(wrong)?;
    let time = begun.elapsed();
    match answers == requests.map(|request| request.map(|word| word.wrapping_add(1))) {
        true => Ok(time),
        false => Err(wrong(format!("the answers to {requests:x?} are wrong: {answers:x?}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::example;
    use crate::interrupt::Interrupt;

    #[test]
    fn a_message_is_timed_by_grids_of_every_kind() {
        example::with(Interrupt::never(), |context| {
            let work = |id: &str, round: &dyn Fn(&mut Times) -> Found<()>| {
                let mut times = Times::new();
                round(&mut times).unwrap_or_else(|stop| panic!("{id}: {stop:?}"));
                assert!(times.count() > 0, "{id}");
            };
            for (id, _, round) in TRIPS {
                work(id, &|times| round(context, 0, times));
            }
            for (id, _, round) in compute::of_two(true) {
                for _ in 0..2 {
                    work(id, &|times| round(context, 0, times));
                }
            }
        });
    }
}
