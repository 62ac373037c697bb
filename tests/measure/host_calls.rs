//! What a handler's call to the host takes: of one thread, as that thread measures it; and how many a second of all threads of some
//! channels, combined by warps. And what it costs to ask for the time.

use super::{SECONDS, print};
use ring_example_kernels::{Asker, Question, Ticker, Told};
use ring_host::{Error, HostCall, KernelHandle, LaunchConfig, Runtime};
use ring_tests::kernels::of_examples;
use ring_tests::mixed;
use std::time::{Duration, Instant};

/// Calls of one thread, one after the other.
const CALLS: u64 = 20_000;
/// Before each message a pause up to that, at random: without one, messages fall in with the kernel's looks.
const LONGEST_PAUSE_NS: u64 = 4000;
/// For how long many threads call.
const STREAM: Duration = Duration::from_millis(500);

/// All of it.
pub fn host_calls(host: &Runtime) -> Result<(), Error> {
    let launch = |channels| {
        LaunchConfig::default().channels(channels).kernels(of_examples::<Asker>()).capacity(1024)
    };
    host.prepare::<Asker>(&launch(1))?; // nothing is loaded beside a resident kernel
    host.prepare::<Ticker>(&LaunchConfig::default().kernels(of_examples::<Ticker>()))?;
    one_by_one(host, launch(1))?;
    for channels in [1, 2, 4, 8] {
        many(host, launch(channels))?;
    }
    ticks(host)
}

fn question(number: u64) -> Question {
    Question { number, within: 1_000_000, which: 0 }
}

fn answer(call: HostCall<Asker>) {
    call.on(Asker::double, |number| number.wrapping_mul(2));
}

fn served(host: &Runtime, launch: LaunchConfig) -> Result<KernelHandle<Asker>, Error> {
    let mut kernel = host.launch::<Asker>(launch)?;
    kernel.activate(SECONDS)?;
    Ok(kernel)
}

fn one_by_one(host: &Runtime, launch: LaunchConfig) -> Result<(), Error> {
    let mut kernel = served(host, launch)?;
    let server = kernel.host_calls()?.serve(answer).expect("a thread");
    let (mut times, mut with, mut without) = (Vec::new(), Vec::new(), Vec::new());
    for number in 0..CALLS {
        for (which, around, answer) in [(0, &mut with, 2 * number), (2, &mut without, number)] {
            let pause = Duration::from_nanos(mixed(number + which as u64) % LONGEST_PAUSE_NS);
            let paused = Instant::now();
            while paused.elapsed() < pause {
                std::hint::spin_loop();
            }
            let begun = Instant::now();
            kernel.send(Question { which, ..question(number) }, SECONDS)?;
            let told = kernel.recv(SECONDS)?;
            around.push(begun.elapsed().as_secs_f64() * 1e6);
            assert_eq!((told.how, told.number), (Told::ANSWERED, answer));
            if which == 0 {
                times.push(f64::from(told.waited) / 1e3);
            }
        }
    }
    for times in [&mut times, &mut with, &mut without] {
        times.sort_by(f64::total_cmp);
    }
    print("a call to the host, by the device's clock, which is read twice", &times);
    print("a message whose handler calls, there and back", &with);
    print("a message whose handler does not", &without);
    let median = |times: &[f64]| times[times.len() / 2];
    println!("the call: {:.2} us more, of medians", median(&with) - median(&without));
    kernel.terminate(SECONDS)?;
    drop(server);
    Ok(())
}

/// All channels are kept full of messages; each makes one call.
fn many(host: &Runtime, launch: LaunchConfig) -> Result<(), Error> {
    let mut kernel = served(host, launch)?;
    let server = kernel.host_calls()?.serve(answer).expect("a thread");
    let (begun, mut sent, mut received, mut waited) = (Instant::now(), 0, 0, Vec::new());
    let questions: Vec<_> = (0..1024).map(question).collect();
    while begun.elapsed() < STREAM || received < sent {
        assert!(begun.elapsed() < SECONDS, "{received} answered of {sent}");
        for channel in 0..kernel.channels() {
            let channel = kernel.channel(channel)?;
            if begun.elapsed() < STREAM {
                sent += channel.try_send_batch(&questions)?;
            }
            received += channel.try_recv_each(1024, |told| {
                assert_eq!(told.how, Told::ANSWERED);
                waited.push(f64::from(told.waited) / 1e3);
            })?;
        }
    }
    let rate = received as f64 / begun.elapsed().as_secs_f64() / 1e6;
    waited.sort_by(f64::total_cmp);
    println!("{} channels: {rate:.2} M calls/s", kernel.channels());
    print("  each, by the device's clock", &waited);
    kernel.terminate(SECONDS)?;
    drop(server);
    Ok(())
}

/// How far apart ticks are, of a kernel without messages.
fn ticks(host: &Runtime) -> Result<(), Error> {
    let launch = LaunchConfig::default().kernels(of_examples::<Ticker>());
    let mut kernel = host.launch::<Ticker>(launch)?;
    kernel.activate(SECONDS)?;
    let mut apart = Vec::new();
    let mut seen = 0;
    let begun = Instant::now();
    while apart.len() < 1000 && begun.elapsed() < SECONDS {
        kernel.send(0, SECONDS)?;
        let told = kernel.recv(SECONDS)?;
        if told.ticks != seen && told.apart > 0 {
            apart.push(told.apart as f64 / 1e3);
        }
        seen = told.ticks;
    }
    apart.sort_by(f64::total_cmp);
    print("from one tick to the next, of 200 us", &apart);
    kernel.terminate(SECONDS)?;
    Ok(())
}
