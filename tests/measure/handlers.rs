//! What a second handler of a kernel costs a message: round trips and rates of the same handler alone and as one of two, by turns.

use super::{SECONDS, print};
use ring_device::Kernel;
use ring_example_kernels::{Eight, Nine, NineHandler, OneHandler, TwoHandlers};
use ring_host::{Error, KernelHandle, LaunchConfig, Runtime};
use ring_tests::kernels::of_examples;
use ring_tests::mixed;
use std::time::{Duration, Instant};

/// Turns of each, and round trips and time of a turn.
const TURNS: usize = 21;
const ROUND_TRIPS: u64 = 5000;
const STREAM: Duration = Duration::from_millis(50);

/// Before each message a pause up to that, at random: without one, messages fall in with the kernel's looks.
const LONGEST_PAUSE_NS: u64 = 4000;

/// All of it.
pub fn handlers(host: &Runtime) -> Result<(), Error> {
    let launch = LaunchConfig::default();
    let of_one = launch.clone().kernels(of_examples::<OneHandler>());
    let of_nine = launch.clone().kernels(of_examples::<NineHandler>());
    let of_two = launch.kernels(of_examples::<TwoHandlers>());
    host.prepare::<OneHandler>(&of_one)?; // nothing is loaded beside a resident kernel
    host.prepare::<NineHandler>(&of_nine)?;
    host.prepare::<TwoHandlers>(&of_two)?;
    let mut one = host.launch::<OneHandler>(of_one)?;
    let mut nine = host.launch::<NineHandler>(of_nine)?;
    let mut two = host.launch::<TwoHandlers>(of_two)?;
    let alone = |n: u64| (eight(n), eight(n).plus(1));
    let larger = |n: u64| (Nine(eight(n), n), eight(n).plus(1));
    let second = |n: u64| match n % 2 {
        0 => (TwoHandlers::plus_one.request(eight(n)), eight(n).plus(1)),
        _ => (TwoHandlers::plus_two.request(eight(n)), eight(n).plus(2)),
    };
    let answered = |response: &<TwoHandlers as Kernel>::Response| {
        TwoHandlers::plus_one.answer(response).or(TwoHandlers::plus_two.answer(response))
    };
    let mut times: [Vec<f64>; 5] = Default::default();
    let mut rates: [Vec<f64>; 3] = Default::default();
    for _ in 0..TURNS {
        let of_one = turn(&mut one, alone, |response| Some(*response))?;
        let of_nine = turn(&mut nine, larger, |response| Some(response.0))?;
        let of_two = turn(&mut two, second, answered)?;
        let (one, nine, two) = (of_one.0, of_nine.0, of_two.0);
        for (times, time) in times.iter_mut().zip([one, nine, two, two - one, two - nine]) {
            times.push(time);
        }
        for (rates, rate) in rates.iter_mut().zip([of_one.1, of_nine.1, of_two.1]) {
            rates.push(rate);
        }
    }
    for found in times.iter_mut().chain(&mut rates) {
        found.sort_by(f64::total_cmp);
    }
    let names = [
        "one handler of 64 bytes, medians of turns",
        "one handler of 72 bytes",
        "two handlers of 64 bytes",
        "more by two than by one of 64 bytes, turn by turn",
        "more by two than by one of 72 bytes, turn by turn",
    ];
    for (name, times) in names.iter().zip(&times) {
        print(name, times);
    }
    let [one_rate, nine_rate, two_rate] = rates.map(|rates| rates[TURNS / 2]);
    println!(
        "M messages/s: one handler of 64 bytes {one_rate:.2}, of 72 bytes {nine_rate:.2}, \
         two of 64 bytes {two_rate:.2}"
    );
    one.terminate(SECONDS)?;
    nine.terminate(SECONDS)?;
    two.terminate(SECONDS)?;
    Ok(())
}

fn eight(n: u64) -> Eight {
    Eight(std::array::from_fn(|i| mixed(n + i as u64)))
}

/// A kernel's turn: the median of its round trips, in microseconds, and millions of messages a second of a stream.
fn turn<K: Kernel>(
    kernel: &mut KernelHandle<K>,
    message: impl Fn(u64) -> (K::Request, Eight),
    answer: impl Fn(&K::Response) -> Option<Eight>,
) -> Result<(f64, f64), Error> {
    kernel.activate(SECONDS)?;
    let mut times = Vec::with_capacity(ROUND_TRIPS as usize);
    for n in 0..ROUND_TRIPS {
        let (request, expected) = message(n);
        let pause = Duration::from_nanos(mixed(n) % LONGEST_PAUSE_NS);
        let paused = Instant::now();
        while paused.elapsed() < pause {
            std::hint::spin_loop();
        }
        let begun = Instant::now();
        kernel.send(request, SECONDS)?;
        let response = kernel.recv(SECONDS)?;
        times.push(begun.elapsed().as_secs_f64() * 1e6);
        assert_eq!(answer(&response), Some(expected));
    }
    times.sort_by(f64::total_cmp);
    let (begun, mut sent, mut received) = (Instant::now(), 0, 0);
    let requests: Vec<K::Request> = (0..256).map(|n| message(n).0).collect();
    while begun.elapsed() < STREAM || received < sent {
        assert!(begun.elapsed() < SECONDS, "{received} answered of {sent}");
        if begun.elapsed() < STREAM {
            sent += kernel.try_send_batch(&requests)?;
        }
        received += kernel.try_recv_each(1024, |_| ())?;
    }
    let rate = received as f64 / begun.elapsed().as_secs_f64() / 1e6;
    kernel.deactivate(SECONDS)?;
    Ok((times[times.len() / 2], rate))
}
