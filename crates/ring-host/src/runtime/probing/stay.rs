//! Whether a kernel stays and answers, and whether calls come back beside it.
//!
//! A kernel that leaves by its own clock before it was to leave proves nothing by itself: the host, or the
//! kernel, may not have got its turn. What proves something is what the kernel did meanwhile, by its own
//! clock: it beats while it looks, at most every 100 us. So a message that was not seen in many beats is not
//! seen at all; and a call that lasts as long as the kernel stays, and no longer, waits for it.

use super::{LIMIT, MESSAGES, answer, exchange, median, start};
use crate::deadline::wait;
use crate::device::probe::{Answers, Cause, Lack};
use crate::error::TryRecvError;
use crate::kernel::handle::KernelHandle;
use crate::mode::{Budgets, Memory, Mode};
use crate::runtime::core::RuntimeCore;
use ring_device::kernels::{Echo, EchoMessage};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// After how long without a message the kernel leaves by its own clock, in the first try. Each try
/// that tells nothing is followed by one of twice the patience.
const PATIENCE: Duration = Duration::from_millis(50);

/// How long it stays in all: less than the two seconds after which the usual watchdog ends it.
const STAY: Duration = Duration::from_millis(1500);

/// Beats of a kernel in which it surely looked at what was written before them.
const SURELY: u32 = 10;

/// Tries that say no before no is the answer.
const TWICE: u32 = 2;

/// What was found out beside a resident kernel: whether it answers, and whether copies come back.
pub(super) type Resident = (Result<Answers, Lack>, Result<Duration, Lack>);

/// Lets a kernel stay, a few times if need be.
pub(super) fn tried(core: &RuntimeCore, memory: Memory, tries: u32) -> Resident {
    let (mut resident, mut copies) = (Tries::new(), Tries::new());
    for n in 0..tries {
        let budgets = Budgets { time: STAY, idle: PATIENCE * (1 << n), ..Budgets::default() };
        let (answers, copy) = once(core, memory, budgets);
        resident.add(answers);
        copies.add(copy);
        if resident.is_settled() && copies.is_settled() {
            break;
        }
    }
    (resident.sum(), copies.sum())
}

/// What several tries found. One that worked counts for all.
struct Tries<T> {
    works: Option<T>,
    /// Tries that said no, and the last of them.
    no: u32,
    last_no: Cause,
    last: Cause,
}

impl<T> Tries<T> {
    fn new() -> Tries<T> {
        Tries { works: None, no: 0, last_no: Cause::NotTried, last: Cause::NotTried }
    }

    fn add(&mut self, found: Result<T, Lack>) {
        match found {
            Ok(found) => self.works = Some(found),
            Err(Lack::No(why)) => {
                self.no += 1;
                self.last.clone_from(&why);
                self.last_no = why;
            }
            Err(Lack::Unknown(why)) => self.last = why,
        }
    }

    fn is_settled(&self) -> bool {
        self.works.is_some() || self.no >= TWICE
    }

    fn sum(self) -> Result<T, Lack> {
        match self.works {
            Some(works) => Ok(works),
            None if self.no >= TWICE => Err(Lack::No(self.last_no)),
            None => Err(Lack::Unknown(self.last)),
        }
    }
}

fn once(core: &RuntimeCore, memory: Memory, budgets: Budgets) -> Resident {
    let (mut kernel, answers) = match answers(core, memory, budgets) {
        Ok(answered) => answered,
        Err(lack) => return (Err(lack.clone()), Err(lack)),
    };
    let copied = copy(&mut kernel, budgets.idle);
    let _ = kernel.terminate(LIMIT); // if it does not, it leaves by its own clock
    (Ok(answers), copied)
}

/// A kernel that has answered, and stays for some more time.
fn answers(
    core: &RuntimeCore,
    memory: Memory,
    budgets: Budgets,
) -> Result<(KernelHandle<Echo>, Answers), Lack> {
    let mut kernel = start(core, Mode::EventDriven, memory, budgets)?;
    // The launch that acknowledged `activate` may be about to leave.
    kernel.rest(LIMIT)?;
    answer(&mut kernel, 0)?; // launches it; from here on it stays
    let launches = kernel.launches();
    let mut times = [Duration::ZERO; MESSAGES as usize];
    for (i, time) in (1..).zip(&mut times) {
        *time = exchange(&mut kernel, i, |kernel| in_place(kernel, i, launches))?;
    }
    Ok((kernel, Answers { count: MESSAGES, median: median(&mut times) }))
}

/// The answer to message `i`, if no other launch than the first so many brings it.
fn in_place(kernel: &mut KernelHandle<Echo>, i: u32, launches: u64) -> Result<EchoMessage, Lack> {
    let core = Arc::clone(kernel.core());
    let (mut beats, mut last) = (0, kernel.status().heartbeat);
    let look = || {
        let beat = kernel.status().heartbeat;
        beats += u32::from(beat != last);
        last = beat;
        let found = match kernel.try_recv() {
            Err(TryRecvError::Empty) => None, // it may have been launched anew
            found => Some(found?),
        };
        if kernel.launches() == launches {
            return Ok(found);
        }
        Err(not_in_place(i, beats))
    };
    match wait(LIMIT.into(), core.device.patience, look, || Ok(()))? {
        Some(found) => Ok(found),
        None => Err(Lack::Unknown(Cause::NoAnswer { message: i, waited: LIMIT })),
    }
}

/// Why message `i` took another launch, after so many beats of the kernel that it did not answer in.
fn not_in_place(i: u32, beats: u32) -> Lack {
    match beats >= SURELY {
        true => Lack::No(Cause::Blind { message: i }),
        false => Lack::Unknown(Cause::LeftEarly { message: i }),
    }
}

/// How long a copy takes that comes back while the kernel stays.
fn copy(kernel: &mut KernelHandle<Echo>, patience: Duration) -> Result<Duration, Lack> {
    let (before, begun) = (kernel.status().heartbeat, Instant::now());
    kernel.write_payload(0, &[7u32; 16], LIMIT)?;
    let took = begun.elapsed();
    if !kernel.is_resting() {
        return Ok(took);
    }
    let stayed = Duration::from_nanos(kernel.status().heartbeat.saturating_sub(before));
    let why = Cause::CallWaited { took };
    Err(Lack::of(waited_for_it(took, stayed, patience), why))
}

/// Whether a call that took so long waited until the kernel, which stayed for so long after the call was
/// made, by its own clock, had left: it lasted for most of the kernel's patience, and came back soon after
/// that. Else the host was not there to make the call, or to see it come back.
fn waited_for_it(took: Duration, stayed: Duration, patience: Duration) -> bool {
    took >= patience / 2 && took <= stayed + patience / 5
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn a_call_waited_if_it_lasted_as_long_as_the_kernel_stayed() {
        let waited = |took: u32, stayed: u32| waited_for_it(took * MS, stayed * MS, 50 * MS);
        assert!(waited(50, 50) && waited(48, 50) && waited(60, 50));
        assert!(!waited(1, 0), "the kernel had left before the call");
        assert!(!waited(80, 50), "the host came back long after the kernel had left");
        assert!(!waited(61, 50) && !waited(24, 50));
    }

    #[test]
    fn a_kernel_is_blind_if_it_looked_often_and_did_not_see() {
        for beats in [0, 1, SURELY - 1] {
            let lack = not_in_place(3, beats);
            assert_eq!(lack, Lack::Unknown(Cause::LeftEarly { message: 3 }));
        }
        assert!(not_in_place(3, SURELY).is_certain());
    }

    #[test]
    fn one_try_that_works_counts_and_no_counts_twice() {
        const NO: Cause = Cause::Blind { message: 1 };
        const BUSY: Cause = Cause::LeftEarly { message: 2 };
        let no = || Err(Lack::No(NO));
        let busy = || Err(Lack::Unknown(BUSY));
        let sum = |tries: &[fn() -> Result<u32, Lack>]| {
            let mut findings = Tries::new();
            tries.iter().for_each(|found| findings.add(found()));
            (findings.is_settled(), findings.sum())
        };
        assert_eq!(sum(&[no, no]), (true, Err(Lack::No(NO))));
        assert_eq!(sum(&[no, busy, no]), (true, Err(Lack::No(NO))));
        assert_eq!(sum(&[no, busy]), (false, Err(Lack::Unknown(BUSY))));
        assert_eq!(sum(&[busy, no]), (false, Err(Lack::Unknown(NO))));
        assert_eq!(sum(&[no, no, || Ok(7)]), (true, Ok(7)));
        assert_eq!(sum(&[]), (false, Err(Lack::Unknown(Cause::NotTried))));
    }
}
