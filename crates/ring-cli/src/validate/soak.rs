//! Many messages on every channel at once: none lost, duplicated, reordered or changed.

mod flow;

use super::tally::Wrong;
use crate::interrupt::Interrupt;
use crate::progress::Progress;
pub use flow::Port;
use flow::{BATCH, Flow};
use ring_host::kernels::EchoMessage;
use std::time::{Duration, Instant};

/// Rounds without a message before the thread gives its core to others, and between two looks at
/// the clock.
const SPINS: u32 = 256;

/// How long is listened for answers that nobody waits for.
const AFTERWARDS: Duration = Duration::from_millis(5);

/// What came of a soak.
#[derive(Clone, Debug, Default)]
pub struct Soaked {
    /// Messages sent.
    pub sent: u64,
    /// Messages never answered.
    pub lost: u64,
    /// Answers that came twice.
    pub duplicated: u64,
    /// Answers that came after a later message's.
    pub reordered: u64,
    /// Answers to no message.
    pub corrupt: u64,
    /// The first answer that was not the expected one.
    pub first_wrong: Option<Wrong>,
    /// From the first message to the last answer.
    pub time: Duration,
    /// Whether all messages were sent and each was answered once, in order.
    pub sound: bool,
    /// Whether it ended before all were sent because that was asked for. Those that were sent are all
    /// there are then.
    pub interrupted: bool,
}

/// Sends `messages`, dealt out to the ports in turn, and checks the answers. Ends with the last
/// answer, or when none has come for `timeout`; when it is interrupted, with the answers to what was sent.
/// An error comes with what was counted until then.
pub fn soak<P: Port>(
    ports: Vec<P>,
    messages: u64,
    timeout: Duration,
    interrupt: Interrupt,
    progress: &mut Progress,
) -> (Soaked, Result<(), P::Error>) {
    let channels = ports.len() as u64;
    let mut flows: Vec<_> = (0..channels)
        .zip(ports)
        .map(|(channel, port)| Flow::new(port, channel, channels, messages))
        .collect();
    let begun = Instant::now();
    let done = exchange(&mut flows, timeout, interrupt, progress);
    let time = done.as_ref().map_or_else(|_| begun.elapsed(), |last| *last - begun);
    let listened = done.and_then(|_| listen(&mut flows));
    let mut soaked = summed(&flows, time);
    soaked.interrupted = flows.iter().map(|flow| flow.total).sum::<u64>() < messages;
    (soaked, listened)
}

/// Until all is settled or nothing moves; when the last message did.
fn exchange<P: Port>(
    flows: &mut [Flow<P>],
    timeout: Duration,
    interrupt: Interrupt,
    progress: &mut Progress,
) -> Result<Instant, P::Error> {
    let mut answers = [EchoMessage { words: [0; 8] }; BATCH];
    let (mut idle, mut moved_at) = (0u32, Instant::now());
    while !flows.iter().all(Flow::settled) {
        if interrupt.requested() {
            flows.iter_mut().for_each(Flow::send_no_more);
        }
        let mut moved = 0;
        for flow in flows.iter_mut() {
            moved += flow.send()?;
            let settled = flow.receive(&mut answers)?;
            progress.add(settled);
            moved += settled;
        }
        if moved > 0 {
            idle = 0;
            continue;
        }
        idle = idle.saturating_add(1);
        if idle < SPINS {
            std::hint::spin_loop();
            continue;
        }
        let now = Instant::now();
        if idle == SPINS {
            moved_at = now;
        } else if now - moved_at >= timeout {
            return Ok(moved_at);
        }
        std::thread::yield_now();
    }
    Ok(Instant::now())
}

/// Counts answers beyond those that were waited for.
fn listen<P: Port>(flows: &mut [Flow<P>]) -> Result<(), P::Error> {
    let mut answers = [EchoMessage { words: [0; 8] }; BATCH];
    let begun = Instant::now();
    while begun.elapsed() < AFTERWARDS {
        for flow in flows.iter_mut() {
            flow.receive(&mut answers)?;
        }
        std::thread::yield_now();
    }
    Ok(())
}

fn summed<P>(flows: &[Flow<P>], time: Duration) -> Soaked {
    let mut soaked = Soaked { time, sound: true, ..Soaked::default() };
    for Flow { tally, sent, total, .. } in flows {
        soaked.sent += sent;
        soaked.lost += tally.lost(*sent);
        soaked.duplicated += tally.duplicated;
        soaked.reordered += tally.reordered;
        soaked.corrupt += tally.corrupt;
        soaked.sound &= sent == total && tally.sound(*total);
        soaked.first_wrong = soaked.first_wrong.or(tally.first_wrong);
    }
    soaked
}

#[cfg(test)]
mod tests;
