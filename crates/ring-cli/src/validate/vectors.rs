//! A + B = C, element by element: in the message, at its limit, and through the payload arena.

use super::inputs;
use crate::times::Times;
use ring_host::Deadline;
use ring_host::kernels::INLINE_ELEMENTS;
use std::fmt;
use std::time::{Duration, Instant};

/// Elements of each case.
pub const CASES: [usize; 3] = [10, INLINE_ELEMENTS, 100];

/// Sums of each case, each with other values.
pub const ROUNDS: u32 = 200;

/// Where a sum of that many elements travels.
pub fn place(elements: usize) -> &'static str {
    if elements <= INLINE_ELEMENTS { "inline" } else { "payload" }
}

/// The first element of `c` that is not the sum, to the bit: its index, what came, and the sum.
fn first_wrong(a: &[f32], b: &[f32], c: &[f32]) -> Option<(usize, f32, f32)> {
    let sums = a.iter().zip(b).map(|(a, b)| a + b);
    let mut elements = c.iter().zip(sums).enumerate();
    let is_wrong = |(_, (got, sum)): &(usize, (&f32, f32))| got.to_bits() != sum.to_bits();
    elements.find(is_wrong).map(|(index, (got, sum))| (index, *got, sum))
}

/// Adds vectors of `elements` elements with `add`, [`ROUNDS`] times, each within `timeout`; stops at
/// the first wrong one.
pub fn check<E: fmt::Display>(
    elements: usize,
    timeout: Duration,
    mut add: impl FnMut(&[f32], &[f32], &mut [f32], Deadline) -> Result<(), E>,
) -> (Times, Result<(), String>) {
    let mut latency = Times::new();
    let (mut a, mut b, mut c) = (vec![0.0; elements], vec![0.0; elements], vec![0.0; elements]);
    for round in 0..ROUNDS {
        inputs::fill(round, &mut a, &mut b);
        c.fill(f32::NAN); // what is not written does not pass for a sum
        let deadline = Deadline::from(timeout);
        let begun = Instant::now();
        let added = add(&a, &b, &mut c, deadline);
        let time = begun.elapsed();
        if let Err(error) = added {
            return (latency, Err(format!("round {round}: {error}")));
        }
        latency.record(time);
        if let Some((index, got, sum)) = first_wrong(&a, &b, &c) {
            let wrong = format!("round {round}, element {index}: got {got:?}, expected {sum:?}");
            return (latency, Err(wrong));
        }
    }
    (latency, Ok(()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn sum(a: &[f32], b: &[f32], c: &mut [f32]) {
        for ((c, a), b) in c.iter_mut().zip(a).zip(b) {
            *c = a + b;
        }
    }

    /// A check of sums that `spoil` may change before they are looked at.
    fn spoilt(elements: usize, mut spoil: impl FnMut(&mut [f32])) -> (u64, Result<(), String>) {
        let (latency, passed) = check(elements, SECOND, |a, b, c, _| {
            sum(a, b, c);
            spoil(c);
            Ok::<_, &str>(())
        });
        (latency.count(), passed)
    }

    #[test]
    fn sums_pass_in_each_case() {
        assert_eq!(CASES, [10, 25, 100]);
        assert_eq!(CASES.map(place), ["inline", "inline", "payload"]);
        for elements in CASES {
            assert_eq!(spoilt(elements, |_| {}), (u64::from(ROUNDS), Ok(())));
        }
    }

    #[test]
    fn the_first_wrong_element_is_named_with_both_values() {
        let (rounds, passed) = spoilt(25, |c| (c[7], c[9]) = (0.5, 0.5));
        assert_eq!(rounds, 1);
        assert_eq!(passed, Err("round 0, element 7: got 0.5, expected 21.0".to_string()));
    }

    #[test]
    fn an_element_that_is_not_written_is_wrong() {
        let (_, passed) = check(100, SECOND, |a, b, c, _| {
            sum(a, b, &mut c[..99]);
            Ok::<_, &str>(())
        });
        let wrong = passed.unwrap_err();
        assert!(wrong.starts_with("round 0, element 99: got NaN"), "{wrong}");
    }

    #[test]
    fn the_answer_of_the_round_before_is_wrong() {
        let mut before = None;
        let (rounds, passed) = spoilt(10, |c| {
            let now = c.to_vec();
            c.copy_from_slice(&before.replace(now.clone()).unwrap_or(now));
        });
        assert_eq!(rounds, 2);
        assert!(passed.unwrap_err().starts_with("round 1, element 0"));
    }

    #[test]
    fn an_error_is_passed_on() {
        let (latency, passed) = check(10, SECOND, |_, _, _, _| Err("no answer"));
        assert_eq!((latency.count(), passed), (0, Err("round 0: no answer".to_string())));
    }
}
