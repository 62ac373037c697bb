//! When each message of a fixed rate is due.

use std::time::Duration;

const NANOSECONDS: u64 = 1_000_000_000;

/// Messages that are due at a fixed rate. Each due time is computed from the message's number, so that
/// rounding does not add up. Products stay below 2^64 as long as a run is shorter than a minute and no rate is
/// above 10^8.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schedule {
    rate: u64,
    messages: u64,
}

impl Schedule {
    /// `rate` messages a second for so long, one at least, but no more than `most`.
    pub fn new(rate: u64, time: Duration, most: u64) -> Schedule {
        let messages = rate.saturating_mul(time.as_nanos() as u64) / NANOSECONDS;
        Schedule { rate, messages: messages.clamp(1, most) }
    }

    /// Messages in all.
    pub fn messages(&self) -> u64 {
        self.messages
    }

    /// When message `i` is due, in nanoseconds from the start.
    #[inline]
    pub fn due(&self, i: u64) -> u64 {
        i * NANOSECONDS / self.rate
    }

    /// How many messages are due at `time`, in nanoseconds from the start.
    #[inline]
    pub fn due_by(&self, time: u64) -> u64 {
        // Message i is due if i * 10^9 / rate, rounded down, is at most `time`.
        let due = ((time + 1) * self.rate - 1) / NANOSECONDS + 1;
        due.min(self.messages)
    }

    /// How long it takes, in nanoseconds.
    pub fn length(&self) -> u64 {
        self.due(self.messages)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn due_times_do_not_drift() {
        // 7 messages a second have a period that is no whole number of nanoseconds.
        let schedule = Schedule::new(7, Duration::from_secs(1_000), u64::MAX);
        assert_eq!(schedule.messages(), 7_000);
        assert_eq!((schedule.due(0), schedule.due(1)), (0, 142_857_142));
        for second in [1, 10, 999] {
            assert_eq!(schedule.due(7 * second), second * NANOSECONDS);
        }
        let schedule = Schedule::new(3_000_000, Duration::from_secs(1), u64::MAX);
        assert_eq!((schedule.due(3_000_000), schedule.length()), (NANOSECONDS, NANOSECONDS));
    }

    #[test]
    fn as_many_are_due_as_have_due_times_that_are_over() {
        for rate in [1, 7, 10_000, 3_000_000, 50_000_000, 100_000_000] {
            let schedule = Schedule::new(rate, Duration::from_secs(10), 1_000);
            for i in (0..schedule.messages()).step_by(37) {
                let due = schedule.due(i);
                assert_eq!(schedule.due_by(due), i + 1, "message {i} at {rate}");
                assert!(due == 0 || schedule.due_by(due - 1) == i, "message {i} at {rate}");
            }
            assert_eq!(schedule.due_by(30 * NANOSECONDS), schedule.messages(), "{rate}");
        }
    }

    #[test]
    fn there_is_one_message_at_least_and_no_more_than_asked_for() {
        let messages = |rate, most| Schedule::new(rate, Duration::from_millis(1), most).messages();
        assert_eq!(
            (messages(1, 100), messages(50_000, 100), messages(1_000_000, 100)),
            (1, 50, 100)
        );
    }
}
