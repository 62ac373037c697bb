//! What a second handler of a kernel costs a message: round trips and rates of the same handler alone and as one of two, by turns.

use super::{SECONDS, print};
use ring_device::Kernel;
use ring_example_kernels::{Eight, OneHandler, TwoHandlers};
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
    let (of_one, of_two) = (
        launch.clone().kernels(of_examples::<OneHandler>()),
        launch.kernels(of_examples::<TwoHandlers>()),
    );
    host.prepare::<OneHandler>(&of_one)?; // nothing is loaded beside a resident kernel
    host.prepare::<TwoHandlers>(&of_two)?;
    let (mut one, mut two) =
        (host.launch::<OneHandler>(of_one)?, host.launch::<TwoHandlers>(of_two)?);
    let alone = |n: u64| (eight(n), eight(n).plus(1));
    let second = |n: u64| match n % 2 {
        0 => (TwoHandlers::plus_one.request(eight(n)), eight(n).plus(1)),
        _ => (TwoHandlers::plus_two.request(eight(n)), eight(n).plus(2)),
    };
    let answered = |response: &<TwoHandlers as Kernel>::Response| {
        TwoHandlers::plus_one.answer(response).or(TwoHandlers::plus_two.answer(response))
    };
    let (mut ones, mut twos, mut more) = (Vec::new(), Vec::new(), Vec::new());
    let (mut rates_of_one, mut rates_of_two) = (Vec::new(), Vec::new());
    for _ in 0..TURNS {
        let (of_one, rate_of_one) = turn(&mut one, alone, |response| Some(*response))?;
        let (of_two, rate_of_two) = turn(&mut two, second, answered)?;
        ones.push(of_one);
        twos.push(of_two);
        more.push(of_two - of_one);
        rates_of_one.push(rate_of_one);
        rates_of_two.push(rate_of_two);
    }
    for found in [&mut ones, &mut twos, &mut more, &mut rates_of_one, &mut rates_of_two] {
        found.sort_by(f64::total_cmp);
    }
    print("one handler, medians of turns", &ones);
    print("two handlers", &twos);
    print("more by two, turn by turn", &more);
    let (one_rate, two_rate) = (rates_of_one[TURNS / 2], rates_of_two[TURNS / 2]);
    println!("one handler {one_rate:.2} M messages/s, two {two_rate:.2}");
    one.terminate(SECONDS)?;
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
