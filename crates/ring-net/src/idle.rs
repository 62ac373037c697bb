//! How a thread passes the time between looks at what an engine brings.

use ring_host::yields_to_another;
use std::time::{Duration, Instant};

/// Looks in a row without a pause where no other thread wants the processor.
const SPINS: u32 = 100;

/// How long a thread sleeps between looks when nothing has come for long.
const SLEEP: Duration = Duration::from_micros(200);

/// Looks as often as it can at first, yields between looks then, and sleeps between them in the end. While other threads want its processor,
/// who may be those that it waits for, it yields at once.
#[derive(Clone, Copy, Debug)]
pub struct Idle {
    looks_for: Duration,
    looks: u32,
    is_crowded: bool,
    since: Option<Instant>,
}

impl Idle {
    /// One that sleeps between looks when nothing has come for so long.
    pub fn new(looks_for: Duration) -> Idle {
        Idle { looks_for, looks: 0, is_crowded: true, since: None }
    }

    /// After how long it sleeps between looks.
    #[cfg(feature = "async")]
    pub fn looks_for(&self) -> Duration {
        self.looks_for
    }

    /// Something has come.
    pub fn found(&mut self) {
        (self.looks, self.since) = (0, None);
    }

    /// Nothing has come.
    pub fn pause(&mut self) {
        self.looks = self.looks.saturating_add(1);
        if self.looks < SPINS && !self.is_crowded {
            return std::hint::spin_loop();
        }
        let begun = Instant::now();
        let since = *self.since.get_or_insert(begun);
        if begun.saturating_duration_since(since) > self.looks_for {
            return std::thread::sleep(SLEEP);
        }
        self.is_crowded = yields_to_another(begun);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_finds_nothing_for_long_sleeps_between_looks_until_something_comes() {
        let mut idle = Idle::new(Duration::ZERO);
        let begun = Instant::now();
        (0..SPINS + 10).for_each(|_| idle.pause());
        assert!(begun.elapsed() >= 9 * SLEEP);
        idle.found();
        assert_eq!((idle.looks, idle.since), (0, None));
    }
}
