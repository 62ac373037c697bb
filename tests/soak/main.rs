//! A long mixed load: four kernels of all scopes, each on several channels, resident at the same time, with random
//! sizes, pauses, deactivations and relaunches; each answer checked, each message accounted for, and the
//! process's and the device's memory watched. Each kernel answers a quarter of the messages at least.
//! `soak [auto|cpu|cuda:0] [MESSAGES] [CHANNELS] [SEED]`.

mod dice;
mod episode;
mod load;
mod memory;

use dice::Dice;
use episode::{Tallies, Tally, episodes};
use load::{Add, Books, Echoes, Squares};
use memory::Memory;
use ring_example_kernels::{Book, FragileWarp};
use ring_host::{Device, Kernel, LaunchConfig, LaunchError, Runtime};
use ring_tests::kernels::{config, of_examples};
use std::error::Error;
use std::time::{Duration, Instant};

/// How often it is said how far it is.
const SAY_EVERY: Duration = Duration::from_secs(1);

/// By how much memory may grow after a tenth of the messages: the allocator's and the driver's own.
const MOST_GROWTH: u64 = 16 << 20;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let device: Device = arguments.next().as_deref().unwrap_or("auto").parse()?;
    let messages: u64 = arguments.next().map_or(Ok(10_000_000), |n| n.parse())?;
    let channels: u32 = arguments.next().map_or(Ok(8), |n| n.parse())?;
    let now =
        || std::time::SystemTime::UNIX_EPOCH.elapsed().map_or(1, |time| time.as_nanos() as u64);
    let seed: u64 = arguments.next().map_or_else(|| Ok(now()), |n| n.parse())?;

    let host = Runtime::open_with(device, config())?;
    prepare(&host)?; // nothing is loaded beside a resident kernel
    println!(
        "device {}, {messages} messages, 4 kernels x {channels} channels, seed {seed}",
        host.device().name
    );
    let tallies = Tallies::new(messages);
    let begun = Instant::now();
    let mut early = None;
    let failed = std::thread::scope(|threads| {
        let mut dice = Dice(seed);
        let mut start = |tally, run: fn(&Runtime, u32, u64, &Tally)| {
            let (host, seed) = (&host, dice.roll());
            threads.spawn(move || run(host, channels, seed, tally))
        };
        let [echoes, sums, squares, books] = &tallies.0;
        let kernels = [
            start(echoes, episodes::<Echoes>),
            start(sums, episodes::<Add>),
            start(squares, episodes::<Squares>),
            start(books, episodes::<Books>),
        ];
        let mut said = Instant::now();
        while !kernels.iter().all(|kernel| kernel.is_finished()) {
            std::thread::sleep(Duration::from_millis(20));
            if tallies.received() > messages / 10 {
                early.get_or_insert_with(|| Memory::now(&host));
            }
            if said.elapsed() > SAY_EVERY {
                said = Instant::now();
                println!(
                    "{:6.1} s: {tallies}, {}",
                    begun.elapsed().as_secs_f64(),
                    Memory::now(&host)
                );
            }
        }
        kernels.into_iter().any(|kernel| kernel.join().is_err())
    });
    let (time, late) = (begun.elapsed(), Memory::now(&host));
    let early = early.unwrap_or(late);
    println!("{:6.1} s: {tallies}", time.as_secs_f64());
    println!("memory after a tenth: {early}; at the end: {late}");
    if failed {
        return Err(
            format!("failed; again with: soak {device} {messages} {channels} {seed}").into()
        );
    }
    if late.grown_since(early) > MOST_GROWTH {
        return Err(format!("memory has grown by {} bytes", late.grown_since(early)).into());
    }
    println!("passed: none lost, doubled, reordered or changed; memory flat");
    Ok(())
}

fn prepare(host: &Runtime) -> Result<(), LaunchError> {
    host.prepare::<Book>(&example::<Book>(LaunchConfig::default()))?;
    host.prepare::<FragileWarp>(&example::<FragileWarp>(LaunchConfig::default()))
}

/// The launch of a kernel of the examples.
fn example<K: Kernel>(launch: LaunchConfig) -> LaunchConfig {
    launch.kernels(of_examples::<K>())
}
