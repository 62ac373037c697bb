//! Checks and times round trips, one message at a time.

use super::word::WrongWord;
use crate::times::Times;
use ring_host::Deadline;
use ring_host::kernels::EchoMessage;
use std::fmt;
use std::time::{Duration, Instant};

/// Round trips that are timed.
pub const ROUNDS: u64 = 20_000;

/// Round trips before those, not timed: caches and clocks settle.
pub const WARM_UP: u64 = 1_000;

/// From then on all are timed, however few there were.
const WARM_UP_LIMIT: Duration = Duration::from_millis(200);

/// No new round trip is begun after this, however few there were.
const LIMIT: Duration = Duration::from_secs(2);

/// Makes round trips with `exchange`, each within `timeout`, and checks each answer; stops at the
/// first wrong one. The number is how many were made, timed or not.
pub fn check<E: fmt::Display>(
    timeout: Duration,
    mut exchange: impl FnMut(&EchoMessage, Deadline) -> Result<EchoMessage, E>,
) -> (u64, Times, Result<(), String>) {
    let mut latency = Times::new();
    let start = Instant::now();
    for i in 0..WARM_UP + ROUNDS {
        let (request, deadline) = (EchoMessage::from_seed(i), Deadline::from(timeout));
        let begun = Instant::now();
        let answer = exchange(&request, deadline);
        let now = Instant::now();
        let wrong = match answer {
            Ok(answer) => WrongWord::first(&answer, &request.answer()),
            Err(error) => return (i, latency, Err(format!("round {i}: {error}"))),
        };
        if let Some(wrong) = wrong {
            return (i + 1, latency, Err(format!("round {i}: {wrong}")));
        }
        if i >= WARM_UP || now - start >= WARM_UP_LIMIT {
            latency.record(now - begun);
        }
        if now - start >= LIMIT {
            return (i + 1, latency, Ok(()));
        }
    }
    (WARM_UP + ROUNDS, latency, Ok(()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn sound_answers_are_timed_after_the_warm_up() {
        let (made, latency, passed) = check(SECOND, |request, _| Ok::<_, &str>(request.answer()));
        assert_eq!((latency.count(), passed), (ROUNDS, Ok(())));
        assert_eq!(made, WARM_UP + ROUNDS);
    }

    #[test]
    fn a_wrong_answer_is_named() {
        let (made, _, passed) = check(SECOND, |request, _| {
            let mut answer = request.answer();
            answer.words[3] += u64::from(*request == EchoMessage::from_seed(2));
            Ok::<_, &str>(answer)
        });
        assert_eq!(made, 3);
        assert!(passed.unwrap_err().starts_with("round 2: word 3: got 0x"));
    }

    #[test]
    fn an_error_is_passed_on() {
        let (made, latency, passed) = check(SECOND, |_, _| Err("no message within 1s"));
        assert_eq!((made, latency.count()), (0, 0));
        assert_eq!(passed, Err("round 0: no message within 1s".to_string()));
    }

    #[test]
    fn a_slow_device_is_given_two_seconds() {
        let (made, latency, passed) = check(SECOND, |request, _| {
            std::thread::sleep(LIMIT / 3);
            Ok::<_, &str>(request.answer())
        });
        assert_eq!((made, latency.count(), passed), (3, 3, Ok(())));
    }
}
