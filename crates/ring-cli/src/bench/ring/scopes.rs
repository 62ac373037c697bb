//! Every scope and size: one message there and back, and messages a second.

use super::latency::{exchange, round, round_of};
use super::rated;
use crate::bench::context::{Context, wrong};
use crate::bench::measured::{Measured, own};
use crate::bench::report::{Found, Latency, Report, Shape, Throughput, Whose};
use crate::bench::settings::{Settings, TIMEOUT};
use crate::bench::stats::Times;
use crate::bench::turns::{Rated, Trips};
use ring_bench::kernels::{
    Echo64Block, Echo64Warp, Echo256, Echo1024, Echo4096, Grid64, Grid64Writes, Sum64,
};
use ring_host::kernels::{Echo, INLINE_ELEMENTS, VectorAdd};
use ring_host::{Kernel, LaunchConfig, PayloadMemory};
use std::time::Instant;

/// The sweep of its rates.
pub const SWEEP: &str = "scopes";

/// Channels of the rows with several. The CPU device has a thread for each.
pub const CHANNELS: u32 = 8;
const CPU_CHANNELS: u32 = 4;

/// Round trips at depth 1, all with the default launch.
const TRIPS: [Trips; 15] = [
    ("echo_64", "echo, 64 bytes, a thread", round),
    ("echo_64_warp", "echo, 64 bytes, a warp", measured::<Echo64Warp>),
    ("echo_64_block", "echo, 64 bytes, the block", measured::<Echo64Block>),
    ("sum_64", "sum, 64 bytes, in order", measured::<Sum64>),
    ("echo_256", "echo, 256 bytes, a warp", measured::<Echo256>),
    ("echo_1024", "echo, 1024 bytes, a warp", measured::<Echo1024>),
    ("echo_4096", "echo, 4096 bytes, a warp", measured::<Echo4096>),
    ("add_10", "vector_add, 10 elements", added::<10>),
    ("add_25", "vector_add, 25 elements", added::<25>),
    ("add_100", "vector_add, 100, by payload", added::<100>),
    ("grid", "64 bytes, a grid", grid::<Grid64, 0, 0>),
    ("grid_4", "64 bytes, a grid, 4 barriers", grid::<Grid64, 4, 0>),
    ("grid_sums_4", "64 bytes, a grid, 4 sums", grid::<Grid64, 4, 1>),
    ("grid_writes", "64 bytes, a grid, each block writes", grid::<Grid64Writes, 0, 0>),
    ("grid_writes_4", "64 bytes, a grid, 4 barriers, writes", grid::<Grid64Writes, 4, 0>),
];

/// Round trips of a warp's messages by their bytes, as names for programs.
pub const BY_BYTES: [(&str, u32); 4] =
    [("echo_64_warp", 64), ("echo_256", 256), ("echo_1024", 1024), ("echo_4096", 4096)];

/// Steps of [`measure`].
pub fn steps(settings: &Settings) -> u64 {
    settings.rounds + settings.repeats
}

/// Measures all: each round of every row in turn.
pub fn measure(context: &Context<'_>, report: &mut Report) {
    let trips = context.trips("scopes and sizes, round trips", context.settings.rounds, &TRIPS);
    report.scopes.extend(trips.into_iter().map(|row| Latency { whose: Whose::Ours, ..row }));
    let rates = rows(if context.is_cpu() { CPU_CHANNELS } else { CHANNELS });
    let rates = context.rates("scopes and sizes, rates", context.settings.repeats, rates);
    report.throughput.extend(rates.map(|row| on_device(context, row)));
}

/// Rows of rates, with one channel and with several.
fn rows(several: u32) -> Vec<Rated> {
    let mut all = vec![row::<Echo64Block>(1), row::<Sum64>(1)];
    for channels in [1, several] {
        all.extend([row::<Echo>, row::<Echo256>].map(|row| row(channels)));
        all.extend([row::<Echo1024>, row::<Echo4096>].map(|row| row(channels)));
    }
    all
}

fn row<K: Measured>(channels: u32) -> Rated {
    rated::<K>(SWEEP, Shape::of::<K>().channels(channels))
}

/// A row with the device that it was measured on, which has no blocks of threads if it is the CPU.
fn on_device(context: &Context<'_>, row: Throughput) -> Throughput {
    let threads = if context.is_cpu() { 0 } else { row.shape.threads };
    Throughput { device: context.device(), shape: Shape { threads, ..row.shape }, ..row }
}

/// A round of round trips by a kernel of those that are measured.
fn measured<K: Measured>(context: &Context<'_>, pages: usize, times: &mut Times) -> Found<()> {
    let launch = K::launch(context.kernels, LaunchConfig::default());
    round_of::<K>(context, pages, launch, times, |kernel, i| {
        let (answer, time) = exchange(kernel, K::message(i))?;
        match K::answers(&answer, i) {
            true => Ok(time),
            false => Err(wrong(format!("the answer to message {i} is wrong"))),
        }
    })
}

/// A round of commands to a grid of one block for each multiprocessor, all of which meet at so many barriers, or at so many sums if
/// `SUMS` is not zero. What a payload holds lies in device memory.
fn grid<K, const MEETINGS: u32, const SUMS: u32>(
    context: &Context<'_>,
    pages: usize,
    times: &mut Times,
) -> Found<()>
where
    K: Kernel<Request = [u32; 16], Response = [u32; 16]>,
{
    let launch = LaunchConfig::default().payload_memory(PayloadMemory::Device);
    let launch = own::<K>(context.kernels, launch);
    round_of::<K>(context, pages, launch, times, |kernel, i| {
        let mut request = [i as u32; 16];
        (request[0], request[1]) = (MEETINGS, SUMS);
        let (answer, time) = exchange(kernel, request)?;
        match answer == request.map(|word| word.wrapping_add(1)) {
            true => Ok(time),
            false => Err(wrong(format!("the answer to command {i} is wrong: {answer:x?}"))),
        }
    })
}

/// A round of sums of `N` elements, as the library adds them: in the message, or by the payload arena, which has
/// room for both vectors and their sum, each of a multiple of 8 elements.
fn added<const N: usize>(context: &Context<'_>, pages: usize, times: &mut Times) -> Found<()> {
    let launch = LaunchConfig::default();
    let in_message = N <= INLINE_ELEMENTS;
    let vector_bytes = N.next_multiple_of(8) * size_of::<f32>();
    let launch = if in_message { launch } else { launch.payload_bytes(3 * vector_bytes) };
    let (mut a, mut c) = ([0.0; N], [0.0; N]);
    let b: [f32; N] = std::array::from_fn(|k| 2.0 * k as f32);
    round_of::<VectorAdd>(context, pages, launch, times, |kernel, i| {
        a = std::array::from_fn(|k| element(i, k));
        let begun = Instant::now();
        kernel.add(&a, &b, &mut c, TIMEOUT).map_err(wrong)?;
        let time = begun.elapsed();
        match c.iter().zip(a.iter().zip(&b)).all(|(c, (a, b))| *c == a + b) {
            true => Ok(time),
            false => Err(wrong(format!("sum {i} is wrong: {c:?}"))),
        }
    })
}

/// Element `k` of vector `i`: a whole number that `f32` holds, as does its sum, and another in each vector.
fn element(i: u64, k: usize) -> f32 {
    ((i + k as u64) % (1 << 20)) as f32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::example;
    use crate::interrupt::Interrupt;

    #[test]
    fn all_rows_have_the_default_launch() {
        let default = LaunchConfig::DEFAULT_THREADS;
        assert!(rows(CHANNELS).iter().all(|rated| rated.row.shape.threads == default));
        assert_eq!([Echo64Block::THREADS, Sum64::THREADS, VectorAdd::THREADS], [default; 3]);
        let of = |rated: &Rated| (rated.row.shape.channels, rated.row.shape.bytes);
        let wide: Vec<_> = rows(CHANNELS).iter().map(of).filter(|row| row.0 > 1).collect();
        assert_eq!(wide, [(8, 64), (8, 256), (8, 1024), (8, 4096)]);
    }

    #[test]
    fn vectors_that_follow_each_other_differ_in_every_element() {
        for k in [0, 9, 99] {
            assert_ne!(element(0, k), element(1, k));
            assert_eq!(element((1 << 20) - 1, 1), 0.0);
        }
    }

    #[test]
    fn messages_are_timed_and_sums_too() {
        example::with(Interrupt::never(), |context| {
            for (id, _, round) in TRIPS {
                let mut times = Times::new();
                round(context, 1, &mut times).unwrap_or_else(|stop| panic!("{id}: {stop:?}"));
                assert!(times.count() > 0, "{id}");
            }
        });
    }

    #[test]
    fn sizes_that_are_drawn_are_measured() {
        for (id, bytes) in BY_BYTES {
            let row = TRIPS.iter().find(|(known, ..)| *known == id).unwrap();
            assert!(row.1.contains(&format!("{bytes} bytes, a warp")), "{row:?}");
        }
    }
}
