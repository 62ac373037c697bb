//! How long 64 bytes take from one process to another and back, over loopback: by zenoh alone, and by this crate's engine on it.
//!
//! `cargo run --release -p ring-net --features zenoh --example zenoh_ping_pong [round trips]`
//!
//! Each measurement starts this program once more, as the side that answers.

use ring_net::{
    network::{Endpoints, QUEUE_FRAMES, connect_as, listen},
    transport::{ClientId, Connection, Listener},
};
use std::{
    env,
    error::Error,
    io::{BufRead, BufReader, Read},
    net::TcpListener,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};
use zenoh::{
    Wait,
    qos::{CongestionControl, Priority},
    sample::Sample,
};

type Outcome<T> = Result<T, Box<dyn Error>>;

/// Bytes of each message.
const BYTES: usize = 64;
/// Round trips that are not counted, before those that are.
const WARM_UP: usize = 1000;
/// Longest that an answer is waited for before the message is sent again.
const PATIENCE: Duration = Duration::from_secs(1);
/// The client of the engine.
const CLIENT: ClientId = ClientId(1);

/// How zenoh's publishers are declared.
#[derive(Clone, Copy)]
struct Setting {
    name: &'static str,
    priority: Priority,
    express: bool,
}

const SETTINGS: [Setting; 4] = [
    Setting { name: "data, batched", priority: Priority::Data, express: false },
    Setting { name: "data, express", priority: Priority::Data, express: true },
    Setting { name: "real-time, batched", priority: Priority::RealTime, express: false },
    Setting { name: "real-time, express", priority: Priority::RealTime, express: true },
];

fn main() -> Outcome<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["answer", "engine", endpoint] => answer_by_engine(endpoint),
        ["answer", setting, endpoint] => {
            answer_by_zenoh(SETTINGS[setting.parse::<usize>()?], endpoint)
        }
        [] => measure(20_000),
        [round_trips] => measure(round_trips.parse()?),
        _ => Err("usage: zenoh_ping_pong [round trips]".into()),
    }
}

fn measure(round_trips: usize) -> Outcome<()> {
    println!("{round_trips} round trips of {BYTES} bytes between two processes, in µs");
    println!("{:34} {:>8} {:>8} {:>6}", "", "p50", "p99", "lost");
    for (index, setting) in SETTINGS.into_iter().enumerate() {
        let (_child, endpoint) = start(&index.to_string())?;
        let (times, lost) = ask_by_zenoh(setting, &endpoint, round_trips)?;
        print(&format!("zenoh alone, {}", setting.name), times, lost);
    }
    let (_child, endpoint) = start("engine")?;
    let (times, lost) = ask_by_engine(&endpoint, round_trips)?;
    print("NetworkConnection, polled", times, lost);
    Ok(())
}

fn print(what: &str, mut times: Vec<Duration>, lost: usize) {
    times.sort_unstable();
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize].as_secs_f64() * 1e6;
    println!("{what:34} {:8.1} {:8.1} {lost:6}", at(0.5), at(0.99));
}

/// Ended, with its pipes, when dropped.
struct Answerer(Child);

impl Drop for Answerer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts the side that answers, and waits until it does.
fn start(how: &str) -> Outcome<(Answerer, String)> {
    let free = TcpListener::bind("127.0.0.1:0")?;
    let endpoint = format!("tcp/{}", free.local_addr()?);
    drop(free);
    let child = Command::new(env::current_exe()?)
        .args(["answer", how, &endpoint])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut answerer = Answerer(child);
    let mut line = String::new();
    let stdout =
        answerer.0.stdout.take().ok_or("no standard output of the process that answers")?;
    BufReader::new(stdout).read_line(&mut line)?;
    if line.trim() != "ready" {
        return Err("the process that answers did not start: see above why".into());
    }
    Ok((answerer, endpoint))
}

/// Ends this process as soon as the one that started it is gone.
fn end_with_parent() {
    thread::spawn(|| {
        let _ = std::io::stdin().read(&mut [0]);
        std::process::exit(0);
    });
}

fn answer_by_zenoh(setting: Setting, endpoint: &str) -> Outcome<()> {
    end_with_parent();
    let session = zenoh::open(Endpoints::at(endpoint).config()?).wait().map_err(in_words)?;
    let publisher = session
        .declare_publisher("pong")
        .congestion_control(CongestionControl::Drop)
        .priority(setting.priority)
        .express(setting.express)
        .wait()
        .map_err(in_words)?;
    let _subscriber = session
        .declare_subscriber("ping")
        .callback(move |sample: Sample| {
            let _ = publisher.put(sample.payload().clone()).wait();
        })
        .wait()
        .map_err(in_words)?;
    println!("ready");
    loop {
        thread::park();
    }
}

fn ask_by_zenoh(
    setting: Setting,
    endpoint: &str,
    round_trips: usize,
) -> Outcome<(Vec<Duration>, usize)> {
    let session = zenoh::open(Endpoints::to(endpoint).config()?).wait().map_err(in_words)?;
    let answers = session.declare_subscriber("pong").wait().map_err(in_words)?;
    let publisher = session
        .declare_publisher("ping")
        .congestion_control(CongestionControl::Drop)
        .priority(setting.priority)
        .express(setting.express)
        .wait()
        .map_err(in_words)?;
    let (mut times, mut lost) = (Vec::with_capacity(round_trips), 0);
    while times.len() < WARM_UP + round_trips {
        let start = Instant::now();
        publisher.put([7_u8; BYTES]).wait().map_err(in_words)?;
        match answers.recv_timeout(PATIENCE).map_err(in_words)? {
            Some(_) => times.push(start.elapsed()),
            None => again(&mut lost)?,
        }
    }
    Ok((times.split_off(WARM_UP), lost))
}

fn answer_by_engine(endpoint: &str) -> Outcome<()> {
    end_with_parent();
    let mut server = listen("ping-pong", Endpoints::at(endpoint).config()?)?;
    println!("ready");
    let mut frame = Vec::with_capacity(BYTES);
    loop {
        let came = server.receive(&mut |bytes| {
            frame.clear();
            frame.extend_from_slice(bytes);
        })?;
        if came {
            server.send(CLIENT, frame.len(), &mut |memory| memory.copy_from_slice(&frame))?;
        } else {
            pause();
        }
    }
}

fn ask_by_engine(endpoint: &str, round_trips: usize) -> Outcome<(Vec<Duration>, usize)> {
    let mut client =
        connect_as("ping-pong", CLIENT, Endpoints::to(endpoint).config()?, QUEUE_FRAMES)?;
    let (mut times, mut lost) = (Vec::with_capacity(round_trips), 0);
    while times.len() < WARM_UP + round_trips {
        let start = Instant::now();
        client.send(BYTES, &mut |memory| memory.fill(7))?;
        loop {
            if client.receive(&mut |_| ())? {
                times.push(start.elapsed());
                break;
            }
            if start.elapsed() > PATIENCE {
                again(&mut lost)?;
                break;
            }
            pause();
        }
    }
    Ok((times.split_off(WARM_UP), lost))
}

/// Between two looks whether something has come.
fn pause() {
    for _ in 0..20 {
        std::hint::spin_loop();
    }
    thread::yield_now();
}

/// Counts a message that was lost, and gives up after too many of them.
fn again(lost: &mut usize) -> Outcome<()> {
    *lost += 1;
    if *lost > 20 {
        return Err(format!("{lost} messages were lost: is the process that answers alive?").into());
    }
    Ok(())
}

fn in_words(error: zenoh::Error) -> String {
    error.to_string()
}
