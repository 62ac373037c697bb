//! Two queues and a thread that answers, measured as the CPU device is.

use crate::bench::context::{Context, wrong};
use crate::bench::drive::{Load, Pipe, drive};
use crate::bench::report::Found;
use crate::bench::settings::TIMEOUT;
use crate::bench::stats::Times;
use std::hint::spin_loop;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// A message of 64 bytes.
pub type Words = [u64; 8];

/// Messages that a queue holds, and that are on their way at most.
pub const CAPACITY: u32 = 4096;

/// The answer to a message: what [`Echo`](ring_host::kernels::Echo) gives.
#[inline]
pub fn answer(words: Words) -> Words {
    words.map(|word| word.wrapping_add(1))
}

/// A queue from one thread to another that someone else made.
pub trait Queue {
    /// Its name for programs.
    const ID: &'static str;
    /// What it is.
    const NAME: &'static str;
    /// Messages handed over at a time.
    const BATCH: usize = 1;
    /// The end that messages go into.
    type Push: Send;
    /// The end that they come out of.
    type Pop: Send;

    /// A queue of so many slots.
    fn new(capacity: usize) -> (Self::Push, Self::Pop);
    /// Puts a message in; whether there was room.
    fn put(to: &mut Self::Push, words: Words) -> bool;
    /// Takes a message out, if there is one.
    fn take(from: &mut Self::Pop) -> Option<Words>;

    /// Puts messages in as long as there is room, at most so many; how many. The `k`th is what
    /// `message(k)` makes.
    #[inline]
    fn push(to: &mut Self::Push, most: usize, message: impl Fn(usize) -> Words) -> usize {
        let mut n = 0;
        while n < most && Self::put(to, message(n)) {
            n += 1;
        }
        n
    }

    /// Takes messages out as long as there are some, at most so many; how many.
    #[inline]
    fn pop(from: &mut Self::Pop, most: usize, mut take: impl FnMut(Words)) -> usize {
        let mut n = 0;
        while n < most
            && let Some(words) = Self::take(from)
        {
            take(words);
            n += 1;
        }
        n
    }

    /// Answers messages as long as there are some; how many. There is room for as many answers as
    /// [`CAPACITY`] messages.
    #[inline]
    fn echo(from: &mut Self::Pop, to: &mut Self::Push) -> usize {
        let mut n = 0;
        while let Some(words) = Self::take(from)
            && Self::put(to, answer(words))
        {
            n += 1;
        }
        n
    }
}

/// One end of both queues.
struct Ends<Q: Queue> {
    push: Q::Push,
    pop: Q::Pop,
    sent: u64,
    got: u64,
}

impl<Q: Queue> Pipe for Ends<Q> {
    #[inline]
    fn send(&mut self, most: usize) -> Result<usize, String> {
        let next = self.sent;
        let n = Q::push(&mut self.push, most, |k| [next + k as u64; 8]);
        self.sent += n as u64;
        Ok(n)
    }

    #[inline]
    fn receive(&mut self, most: usize) -> Result<usize, String> {
        let (next, mut wrong) = (&mut self.got, 0);
        let n = Q::pop(&mut self.pop, most, |words| {
            *next += 1;
            wrong |= words.iter().fold(0, |x, word| x | (word ^ *next));
        });
        match wrong {
            0 => Ok(n),
            _ => Err(format!("an answer up to message {} is wrong", self.got)),
        }
    }
}

/// Idle looks after which a thread gives its processor to others, as on the CPU device.
const SPINS: u32 = 200;

/// Lets a thread on the second processor answer during `work`.
fn with<Q: Queue, T>(
    context: &Context<'_>,
    work: impl FnOnce(&mut Ends<Q>) -> Found<T>,
) -> Found<T> {
    let (push, mut from) = Q::new(CAPACITY as usize);
    let (mut to, pop) = Q::new(CAPACITY as usize);
    let stop = AtomicBool::new(false);
    let mut ends: Ends<Q> = Ends { push, pop, sent: 0, got: 0 };
    thread::scope(|scope| {
        scope.spawn(|| {
            context.cores.pin(1);
            let mut looks = 0;
            loop {
                if Q::echo(&mut from, &mut to) > 0 {
                    looks = 0;
                    continue;
                }
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                rest(&mut looks);
            }
        });
        let done = work(&mut ends);
        stop.store(true, Ordering::Relaxed);
        done
    })
}

#[inline]
fn rest(looks: &mut u32) {
    *looks = looks.saturating_add(1);
    if *looks < SPINS { spin_loop() } else { thread::yield_now() }
}

/// A round of round trips.
pub fn round<Q: Queue>(context: &Context<'_>, times: &mut Times) -> Found<()> {
    with::<Q, _>(context, |ends| context.timed(times, |_| trip(ends).map_err(wrong)))
}

fn trip(pipe: &mut impl Pipe) -> Result<Duration, String> {
    let begun = Instant::now();
    if pipe.send(1)? != 1 {
        return Err("an empty queue takes no message".to_owned());
    }
    let (mut looks, mut all) = (0, 0u32);
    while pipe.receive(1)? == 0 {
        rest(&mut looks);
        all = all.wrapping_add(1);
        if all.is_multiple_of(4096) && begun.elapsed() > TIMEOUT {
            return Err(format!("no answer within {TIMEOUT:?}"));
        }
    }
    Ok(begun.elapsed())
}

/// Messages a second, once.
pub fn rate<Q: Queue>(context: &Context<'_>) -> Found<f64> {
    let load = Load { depth: CAPACITY.into(), ..context.load() };
    let measure = |ends: &mut Ends<Q>| {
        let warm = Load { time: load.time / 10, ..load };
        drive(ends, &warm, Instant::now()).map_err(wrong)?;
        let begun = Instant::now();
        let messages = drive(ends, &load, begun).map_err(wrong)?;
        context.check_interrupt()?; // else it may have been cut short
        Ok(messages as f64 / begun.elapsed().as_secs_f64())
    };
    with::<Q, _>(context, |ends| context.cores.on(0, || measure(ends)))
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// All messages come back, whatever the room.
    pub fn carries<Q: Queue>() {
        let (push, mut from) = Q::new(4);
        let (mut to, pop) = Q::new(4);
        let mut ends: Ends<Q> = Ends { push, pop, sent: 0, got: 0 };
        let mut got = 0;
        for _ in 0..10 {
            let room = (4 - (ends.sent - got)) as usize;
            assert_eq!(ends.send(room.min(3)), Ok(room.min(3)));
            assert_eq!(Q::echo(&mut from, &mut to), room.min(3));
            got += ends.receive(2).unwrap() as u64;
        }
        while got < ends.sent {
            got += ends.receive(100).unwrap() as u64;
        }
        assert_eq!((ends.receive(1), Q::echo(&mut from, &mut to)), (Ok(0), 0));
        assert_eq!(ends.send(9), Ok(4), "no more than there is room for");
    }
}
