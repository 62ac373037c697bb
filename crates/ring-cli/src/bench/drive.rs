//! The loop that sends and receives, the same for the ring and for all baselines.

use super::context::wrong;
use super::cores::Cores;
use super::report::Found;
use super::settings::TIMEOUT;
use crate::interrupt::Interrupt;
use std::thread;
use std::time::{Duration, Instant};

/// Turns between two looks at the clock.
const TURNS: u32 = 64;

/// What carries messages to someone who answers. It makes and checks them itself.
pub trait Pipe {
    /// Sends the next messages, at most so many; how many.
    fn send(&mut self, most: usize) -> Result<usize, String>;
    /// Takes the next answers, at most so many, and checks each; how many.
    fn receive(&mut self, most: usize) -> Result<usize, String>;
}

/// How a pipe is driven.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// No more messages than this,
    pub messages: u64,
    /// or as many as go within this time.
    pub time: Duration,
    /// Most messages handed over at a time.
    pub batch: usize,
    /// Most messages on their way.
    pub depth: u64,
    /// Idle turns after which the thread gives its processor to others.
    pub yield_after: u32,
    /// No more messages from when this is asked for.
    pub interrupt: Interrupt,
}

/// Sends messages and takes their answers until all have come; how many there were.
pub fn drive(pipe: &mut impl Pipe, load: &Load, begun: Instant) -> Result<u64, String> {
    let (mut sent, mut got, mut all) = (0u64, 0u64, load.messages);
    let (mut turns, mut idle, mut moved) = (0u32, 0u32, begun);
    while got < all {
        let room = (all - sent).min(load.depth.saturating_sub(sent - got));
        let most = room.min(load.batch as u64) as usize;
        let new = if most > 0 { pipe.send(most)? as u64 } else { 0 };
        let answered = pipe.receive(load.batch)? as u64;
        (sent, got) = (sent + new, got + answered);
        if got > sent {
            return Err(format!("{got} answers came to {sent} messages"));
        }
        turns = turns.wrapping_add(1);
        if new + answered > 0 {
            idle = 0;
        } else {
            idle = idle.saturating_add(1);
            if idle > load.yield_after {
                thread::yield_now();
            }
        }
        if turns.is_multiple_of(TURNS) {
            let now = Instant::now();
            if idle < TURNS {
                moved = now;
            } else if now - moved > TIMEOUT {
                return Err(format!("no answer for {TIMEOUT:?}, after {got} of {sent} messages"));
            }
            if now - begun >= load.time || load.interrupt.requested() {
                all = sent; // what is on its way is still waited for
            }
        }
    }
    Ok(got)
}

/// Drives all pipes at once, each by a thread on a processor of its own as long as there are some;
/// messages a second, from when the first began to when the last had its answers.
pub fn together<P: Pipe + Send>(pipes: &mut [P], load: &Load, cores: &Cores) -> Found<f64> {
    let ended = cores.at_once(pipes.iter_mut(), |pipe| {
        let begun = Instant::now();
        let messages = drive(pipe, load, begun).map_err(wrong)?;
        Ok((messages, begun, Instant::now()))
    })?;
    let messages: u64 = ended.iter().map(|(messages, ..)| messages).sum();
    let first = ended.iter().map(|(_, begun, _)| *begun).min();
    let last = ended.iter().map(|(.., end)| *end).max();
    let (Some(first), Some(last)) = (first, last) else { return Err(wrong("no channels")) };
    Ok(messages as f64 / (last - first).as_secs_f64().max(1e-9))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Answers after a turn; wrong from some message on, or never.
    struct Loop {
        sent: u64,
        got: u64,
        wrong_at: u64,
        deepest: u64,
    }

    impl Loop {
        fn new(wrong_at: u64) -> Loop {
            Loop { sent: 0, got: 0, wrong_at, deepest: 0 }
        }
    }

    impl Pipe for Loop {
        fn send(&mut self, most: usize) -> Result<usize, String> {
            self.sent += most as u64;
            self.deepest = self.deepest.max(self.sent - self.got);
            Ok(most)
        }

        fn receive(&mut self, most: usize) -> Result<usize, String> {
            let n = (self.sent - self.got).min(most as u64);
            self.got += n;
            if self.got > self.wrong_at { Err("wrong".to_owned()) } else { Ok(n as usize) }
        }
    }

    fn load() -> Load {
        Load {
            messages: u64::MAX,
            time: Duration::from_millis(5),
            batch: 8,
            depth: 5,
            yield_after: 100,
            interrupt: Interrupt::never(),
        }
    }

    #[test]
    fn it_ends_by_count_or_by_time_with_all_answered() {
        let mut pipe = Loop::new(u64::MAX);
        let counted = Load { messages: 1000, ..load() };
        assert_eq!(drive(&mut pipe, &counted, Instant::now()), Ok(1000));
        assert_eq!((pipe.sent, pipe.got, pipe.deepest), (1000, 1000, 5));
        let messages = drive(&mut pipe, &load(), Instant::now()).unwrap();
        assert!(messages > 0 && pipe.sent == pipe.got && pipe.sent == 1000 + messages);
    }

    #[test]
    fn an_interrupt_ends_it_with_all_answered() {
        let mut pipe = Loop::new(u64::MAX);
        let hour = Duration::from_secs(3600);
        let interrupted = Load { time: hour, interrupt: Interrupt::come(), ..load() };
        let messages = drive(&mut pipe, &interrupted, Instant::now()).unwrap();
        assert!(messages > 0 && pipe.sent == messages && pipe.got == messages);
    }

    #[test]
    fn a_wrong_answer_ends_it() {
        assert_eq!(drive(&mut Loop::new(10), &load(), Instant::now()), Err("wrong".to_owned()));
        let mut pipes = [Loop::new(u64::MAX), Loop::new(10)];
        assert_eq!(together(&mut pipes, &load(), &Cores::find()), Err(wrong("wrong")));
        let mut pipes = [Loop::new(u64::MAX), Loop::new(u64::MAX)];
        assert!(together(&mut pipes, &load(), &Cores::find()).unwrap() > 0.0);
    }
}
