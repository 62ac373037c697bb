//! How long 64 bytes take to another process and back: by iceoryx2 as it is, by this crate's engine on it, and by iceoryx2 where another thread
//! of that process answers, as a kernel on the CPU does: the least that a call of a served one takes on two cores.
//!
//! `cargo run --release -p ring-net --features iceoryx2 --example engine_ping_pong`. It starts itself again as the other process. Two threads
//! yield the processor after every 100 polls, so they need a core each; three do so after each poll.

use iceoryx2::prelude::{NodeBuilder, Service, ServiceName, ipc, ipc_threadsafe};
use ring_net::shared_memory::{Config, connect_as, listen};
use ring_net::transport::{ClientId, Connection, EngineError, Listener};
use std::cell::RefCell;
use std::error::Error;
use std::hint::spin_loop;
use std::process::{Child, Command};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::thread::yield_now;
use std::time::{Duration, Instant};

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

const BYTES: usize = 64;
const WARM_UP: usize = 10_000;
const ROUNDS: usize = 100_000;

/// Polls before each yield, where there are two threads, and where there are three.
const POLLS: u32 = 100;
const POLLS_OF_THREE: u32 = 1;
const CLIENT: ClientId = ClientId(1);

/// The longest wait for one frame.
const LIMIT: Duration = Duration::from_secs(10);

const ROLE: &str = "ENGINE_PING_PONG_ROLE";
const NAME: &str = "ENGINE_PING_PONG_NAME";

/// Sent instead of a number, it ends the other process.
const END: u64 = u64::MAX;

/// The other process, which ends by itself when it is told, or nothing has come for [`LIMIT`].
struct Other(Child);

impl Drop for Other {
    fn drop(&mut self) {
        let _ = self.0.wait();
    }
}

/// Polls until there is something.
fn poll<T>(polls: u32, mut get: impl FnMut() -> Outcome<Option<T>>) -> Outcome<T> {
    let begun = Instant::now();
    loop {
        for _ in 0..polls {
            if let Some(got) = get()? {
                return Ok(got);
            }
            spin_loop();
        }
        if begun.elapsed() > LIMIT {
            return Err(format!("nothing came within {LIMIT:?}").into());
        }
        yield_now();
    }
}

/// Sends a number and waits for it, again and again, and prints how long that takes.
fn measure(
    what: &str,
    polls: u32,
    mut send: impl FnMut(u64) -> Outcome<bool>,
    mut receive: impl FnMut() -> Outcome<Option<u64>>,
) -> Outcome {
    // The first frame waits until the other process is there.
    poll(polls, || Ok(send(0)?.then_some(())))?;
    poll(polls, &mut receive)?;
    let mut times = Vec::with_capacity(WARM_UP + ROUNDS);
    for round in 1..=(WARM_UP + ROUNDS) as u64 {
        let begun = Instant::now();
        if !send(round)? {
            return Err("no room for a frame".into());
        }
        let back = poll(polls, &mut receive)?;
        if back != round {
            return Err(format!("sent {round}, and got {back} back").into());
        }
        times.push(begun.elapsed());
    }
    poll(polls, || Ok(send(END)?.then_some(())))?;
    let times = &mut times[WARM_UP..];
    times.sort_unstable();
    let at = |percent: usize| times[times.len() * percent / 100].as_nanos();
    println!("{what:38} p50 {:6} ns, p99 {:6} ns", at(50), at(99));
    Ok(())
}

/// Sends back what `answer` makes of what comes, until that is [`END`].
fn echo(
    polls: u32,
    mut answer: impl FnMut(u64) -> Outcome<u64>,
    mut send: impl FnMut(u64) -> Outcome<bool>,
    mut receive: impl FnMut() -> Outcome<Option<u64>>,
) -> Outcome {
    loop {
        let number = poll(polls, &mut receive)?;
        if number == END {
            return Ok(());
        }
        let number = answer(number)?;
        poll(polls, || Ok(send(number)?.then_some(())))?;
    }
}

fn number_of(bytes: &[u8]) -> u64 {
    bytes.first_chunk().map_or(0, |first| u64::from_le_bytes(*first))
}

/// A cache line that one thread writes and another polls.
#[repr(align(64))]
#[derive(Default)]
struct Line {
    /// Written last, so that who sees it sees the others.
    number: AtomicU64,
    rest: [AtomicU64; BYTES / 8 - 1],
}

impl Line {
    fn write(&self, number: u64) {
        self.rest.iter().for_each(|word| word.store(number, Relaxed));
        self.number.store(number, Release); // SYNC: with the acquire of `read`
    }

    /// What it holds, if that is not the number `last`.
    fn read(&self, last: u64) -> Option<u64> {
        let number = self.number.load(Acquire); // SYNC: with the release of `write`
        let is_whole = || self.rest.iter().all(|word| word.load(Relaxed) == number);
        (number != last && is_whole()).then_some(number)
    }
}

/// By iceoryx2 as it is. It is told what to print in the process that measures.
fn plain<S: Service>(what: Option<&str>, name: &str) -> Outcome {
    by_iceoryx2::<S>(what, name, POLLS, Ok)
}

/// By iceoryx2, where a third thread answers, to which the second one hands each message by a cache line, and which answers by another.
fn by_another_thread(what: Option<&str>, name: &str) -> Outcome {
    type Engine = ipc_threadsafe::Service;
    if what.is_some() {
        return by_iceoryx2::<Engine>(what, name, POLLS_OF_THREE, Ok);
    }
    let [there, back] = &<[Line; 2]>::default();
    std::thread::scope(|scope| {
        // The scope waits for it: it ends when it is told, or nothing has come for long.
        let answers = scope.spawn(move || {
            let mut last = 0;
            while let Ok(number) = poll(POLLS_OF_THREE, || Ok(there.read(last))) {
                back.write(number);
                last = number;
                if number == END {
                    break;
                }
            }
        });
        let mut last = 0;
        let served = by_iceoryx2::<Engine>(None, name, POLLS_OF_THREE, |number| {
            // A first message has the number that lines begin with, and is not handed on.
            if number != 0 {
                there.write(number);
                last = poll(POLLS_OF_THREE, || Ok(back.read(last)))?;
            }
            Ok(number)
        });
        there.write(END);
        served.and_then(|()| answers.join().map_err(|_| "the third thread panicked".into()))
    })
}

fn by_iceoryx2<S: Service>(
    what: Option<&str>,
    name: &str,
    polls: u32,
    answer: impl FnMut(u64) -> Outcome<u64>,
) -> Outcome {
    let node = NodeBuilder::new().create::<S>()?;
    let service = |way: &str| -> Outcome<_> {
        let service = ServiceName::new(&format!("{name}/{way}"))?;
        Ok(node.service_builder(&service).publish_subscribe::<[u8; BYTES]>().open_or_create()?)
    };
    let (out, back) = match what {
        Some(_) => (service("there")?, service("back")?),
        None => (service("back")?, service("there")?),
    };
    let receiver = back.subscriber_builder().create()?;
    let sender = out.publisher_builder().create()?;
    let send = |number: u64| {
        let mut bytes = [0; BYTES];
        bytes[..8].copy_from_slice(&number.to_le_bytes());
        Ok(sender.loan_uninit()?.write_payload(bytes).send()? != 0)
    };
    let receive = || Ok(receiver.receive()?.map(|sample| number_of(&sample[..])));
    match what {
        Some(what) => measure(what, polls, send, receive),
        None => echo(polls, answer, send, receive),
    }
}

fn fill(number: u64) -> impl FnMut(&mut [u8]) {
    move |place| place[..8].copy_from_slice(&number.to_le_bytes())
}

/// The number that `receive` shows.
fn shown(
    receive: impl FnOnce(&mut dyn FnMut(&[u8])) -> Result<bool, EngineError>,
) -> Outcome<Option<u64>> {
    let mut number = None;
    receive(&mut |bytes| number = Some(number_of(bytes)))?;
    Ok(number)
}

/// By this crate's engine: the process that measures is the client.
fn ours(what: Option<&str>, name: &str) -> Outcome {
    let config = Config::default();
    if let Some(what) = what {
        let client = RefCell::new(connect_as(name, CLIENT, &config)?);
        let send = |number| Ok(client.borrow_mut().send(BYTES, &mut fill(number))?);
        measure(what, POLLS, send, || shown(|read| client.borrow_mut().receive(read)))
    } else {
        let server = RefCell::new(listen(name, &config)?);
        let send = |number| Ok(server.borrow_mut().send(CLIENT, BYTES, &mut fill(number))?);
        echo(POLLS, Ok, send, || shown(|read| server.borrow_mut().receive(read)))
    }
}

fn main() -> Outcome {
    type Way = fn(Option<&str>, &str) -> Outcome;
    let ways: [(&str, &str, Way); 4] = [
        ("plain", "iceoryx2 (ipc)", plain::<ipc::Service>),
        ("plain-threadsafe", "iceoryx2 (ipc_threadsafe)", plain::<ipc_threadsafe::Service>),
        ("another-thread", "iceoryx2, a third thread answers", by_another_thread),
        ("ours", "SharedConnection and SharedListener", ours),
    ];
    if let (Ok(role), Ok(name)) = (std::env::var(ROLE), std::env::var(NAME)) {
        let (.., run) = ways.into_iter().find(|way| way.0 == role).ok_or("no such role")?;
        return run(None, &name);
    }
    println!("{BYTES} bytes to another process and back, {ROUNDS} times");
    for (role, what, run) in ways {
        let name = format!("engine-ping-pong/{}/{role}", std::process::id());
        let mut other = Command::new(std::env::current_exe()?);
        let _other = Other(other.env(ROLE, role).env(NAME, &name).spawn()?);
        run(Some(what), &name)?;
    }
    Ok(())
}
