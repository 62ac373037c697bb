//! `ring call`: requests to a built-in kernel that another process or host serves.

use crate::args::{Call, Served};
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::services;
use crate::text;
use crate::times::Times;
use ring_host::kernels::{Echo, EchoMessage};
use ring_net::error::RecvTimeoutError;
use ring_net::{ClientConfig, RemoteChannel};
use std::collections::VecDeque;
use std::io::Write;
use std::time::Instant;

/// Calls, checks what is answered, and says how long that took.
pub fn run(options: &Call, out: &mut impl Write) -> Result<(), Failure> {
    match options.kernel {
        Served::Echo => echo(options, out),
    }
}

fn echo(options: &Call, out: &mut impl Write) -> Result<(), Failure> {
    let interrupt = Interrupt::listen();
    let service = options.name.as_deref().unwrap_or(options.kernel.name());
    let failed =
        |why: &dyn ToString| Failure::Call { service: service.to_owned(), why: why.to_string() };
    let connection = services::connect(service, &options.connect, options.zenoh.as_deref());
    let connection = connection.map_err(|why| failed(&why))?;
    let config = ClientConfig::default().window(options.depth);
    let channel = RemoteChannel::<Echo>::open(connection, config, options.timeout);
    let mut channel = channel.map_err(|why| failed(&why))?;
    let depth = channel.capacity().min(options.depth.max(1) as usize);
    let begun = Instant::now();
    let (mut sent, mut wrong, mut unknown) = (0, 0, 0);
    let mut times = Times::new();
    let mut under_way = VecDeque::with_capacity(depth);
    while !under_way.is_empty() || sent < options.count && !interrupt.requested() {
        if sent < options.count && under_way.len() < depth && !interrupt.requested() {
            under_way.push_back((sent, Instant::now()));
            let request = EchoMessage::from_seed(sent);
            channel.send(request, options.timeout).map_err(|why| failed(&why))?;
            sent += 1;
            continue;
        }
        let Some((seed, since)) = under_way.pop_front() else { break };
        match channel.recv(options.timeout) {
            Ok(answer) => {
                wrong += u64::from(answer != EchoMessage::from_seed(seed).answer());
                times.record(since.elapsed());
            }
            Err(RecvTimeoutError::Unknown(_)) => unknown += 1,
            Err(why) => return Err(failed(&why)),
        }
    }
    let seconds = begun.elapsed().as_secs_f64();
    let rate = (times.count() as f64 / seconds) as u64;
    writeln!(
        out,
        "{} of {} answered, {wrong} wrong, {unknown} unknown; {depth} under way at a time, {} a second",
        text::grouped(times.count()),
        text::plural(sent, "request"),
        text::grouped(rate),
    )?;
    let [p50, p90, p99, max] = [50.0, 90.0, 99.0, 100.0].map(|percent| times.shown(percent));
    writeln!(out, "there and back, us: p50 {p50}, p90 {p90}, p99 {p99}, max {max}")?;
    match (interrupt.requested() && sent < options.count, wrong + unknown) {
        (true, _) => Err(Failure::Interrupted),
        (false, 0) => Ok(()),
        (false, _) => Err(Failure::Answers { wrong, unknown, of: sent }),
    }
}
