//! Ticks of a state: when it last had one.

use crate::block::cell::Cell;

/// When the channel's state last had a tick. Set by thread 0.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Ticks {
    /// Nanoseconds of the clock that all channels share.
    last: Cell<u64>,
}

impl Ticks {
    /// Begins a launch, at `began`. The launch before left `last`, 0 if it is the first. Returns what the next launch is left.
    #[inline(always)]
    pub fn begin(&self, began: u64, last: u64) -> u64 {
        let last = if last == 0 { began } else { last };
        self.last.set(last);
        last
    }

    /// Whether a tick is due `now`, where there is one each `every` nanoseconds; the next is counted from now then. Those that were
    /// missed are not made up for.
    #[inline(always)]
    pub fn is_due(&self, now: u64, every: u64) -> bool {
        let due = now.wrapping_sub(self.last.get()) >= every;
        if due {
            self.last.set(now);
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use crate::memory::BlockMemory;

    #[test]
    fn they_go_on_from_launch_to_launch() {
        let memory = BlockMemory::new();
        let ticks = &memory.ticks;
        assert_eq!(ticks.begin(1000, 0), 1000);
        assert!(!ticks.is_due(1099, 100));
        assert_eq!(ticks.begin(1080, 1000), 1000);
        assert!(ticks.is_due(1100, 100));
        assert!(!ticks.is_due(1199, 100));
        assert!(ticks.is_due(5000, 100), "one for all that were missed");
        assert!(!ticks.is_due(5001, 100));
    }
}
