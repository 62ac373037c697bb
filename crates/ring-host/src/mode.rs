//! How a kernel is kept answering, where its rings lie, and what a launch may spend.

use crate::device::UnknownName;
use crate::error::{Budget, words};
use ring_shared::layout::UNLIMITED;
use std::str::FromStr;
use std::time::Duration;

/// How a kernel is kept answering.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Mode {
    /// Whatever the probe found to work: the first of the below that does.
    #[default]
    Auto,
    /// Launched once; it stays until it is terminated.
    Persistent,
    /// Launched when there is work. Each launch leaves when a [budget](Budgets) is spent, and is
    /// followed by another while work is pending. Sending and receiving drive it: there is no
    /// thread behind.
    EventDriven,
    /// As `EventDriven`, but each launch replays one captured graph.
    Graph,
}

/// Where a kernel's rings lie.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Memory {
    /// Whatever the probe found to work: the first of the below that does.
    #[default]
    Auto,
    /// In pinned memory that both sides see: no copies.
    Mapped,
    /// In device memory, copied from and to pinned staging beside the running kernel.
    StagedAsync,
    /// In device memory, copied from and to pageable staging between launches.
    StagedSync,
}

/// Where a kernel's payload arena lies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum PayloadMemory {
    /// With the rings if they lie in mapped memory and the arena has at most [`AUTO_MAPPED`](Self::AUTO_MAPPED)
    /// bytes, and pinned memory has room for it; else in device memory.
    #[default]
    Auto,
    /// In pinned memory that both sides see: writing and reading it needs neither a copy nor a driver call, and
    /// a handler reads it over the bus. Only where the rings lie in mapped memory.
    Mapped,
    /// In device memory: a handler reads it fast, and writing and reading it is a copy by the driver.
    Device,
}

impl PayloadMemory {
    /// Bytes of the largest arena that `Auto` puts in mapped memory. So many words a handler reads over the bus in about
    /// the time in which the copy engine would bring them, and each copy costs some ten microseconds before the
    /// first word is there: below this mapped memory is the faster way, above it device memory.
    pub const AUTO_MAPPED: usize = 64 * 1024;
}

macro_rules! names {
    ($t:ident, $what:literal: $($variant:ident $name:literal),+) => {
        words! { $t: $($variant $name),+; }

        impl FromStr for $t {
            type Err = UnknownName;

            fn from_str(name: &str) -> Result<$t, UnknownName> {
                match name {
                    $($name => Ok($t::$variant),)+
                    _ => Err(UnknownName { what: $what, name: name.to_owned(), known: &[$($name),+] }),
                }
            }
        }
    };
}
names!(Mode, "mode": Auto "auto", Persistent "persistent", EventDriven "event-driven", Graph "graph");
names!(Memory, "memory": Auto "auto", Mapped "mapped", StagedAsync "staged-async", StagedSync "staged-sync");
names!(PayloadMemory, "payload memory": Auto "auto", Mapped "mapped", Device "device");

/// What one launch of an event-driven kernel may spend before it leaves the device. None may be
/// zero. A persistent kernel has no budgets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Budgets {
    /// How long it may run; exceeded by one handler call at most.
    pub time: Duration,
    /// How many looks and batches it may make, also when nothing comes; `u64::MAX`: as many as it
    /// likes.
    pub iterations: u64,
    /// How long it waits without a message on any channel.
    pub idle: Duration,
}

impl Default for Budgets {
    /// 5 ms, any number of iterations, 100 us idle: no call that blocks beside a resident kernel is
    /// held up for long, and messages that follow each other need no launch each.
    fn default() -> Budgets {
        let (time, idle) = (Duration::from_millis(5), Duration::from_micros(100));
        Budgets { time, iterations: UNLIMITED, idle }
    }
}

impl Budgets {
    /// The name of a budget that is zero.
    pub(crate) fn zero(&self) -> Option<Budget> {
        match self {
            b if b.time.is_zero() => Some(Budget::Time),
            b if b.iterations == 0 => Some(Budget::Iterations),
            b if b.idle.is_zero() => Some(Budget::Idle),
            _ => None,
        }
    }
}

/// Nanoseconds, or [`UNLIMITED`] if they are too many.
pub(crate) fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(UNLIMITED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_written() {
        for mode in [Mode::Auto, Mode::Persistent, Mode::EventDriven, Mode::Graph] {
            assert_eq!(mode.to_string().parse(), Ok(mode));
        }
        for memory in [Memory::Auto, Memory::Mapped, Memory::StagedAsync, Memory::StagedSync] {
            assert_eq!(memory.to_string().parse(), Ok(memory));
        }
        for memory in [PayloadMemory::Auto, PayloadMemory::Mapped, PayloadMemory::Device] {
            assert_eq!(memory.to_string().parse(), Ok(memory));
        }
        let error = "resident".parse::<Mode>().unwrap_err().to_string();
        assert_eq!(error, "unknown mode 'resident'; use auto, persistent, event-driven or graph");
        assert!("Mapped".parse::<Memory>().unwrap_err().to_string().contains("'Mapped'"));
    }

    #[test]
    fn a_zero_budget_is_named() {
        let d = Budgets::default();
        assert_eq!(d.zero(), None);
        assert_eq!(Budgets { time: Duration::ZERO, ..d }.zero(), Some(Budget::Time));
        assert_eq!(Budgets { iterations: 0, ..d }.zero(), Some(Budget::Iterations));
        assert_eq!(Budgets { idle: Duration::ZERO, ..d }.zero(), Some(Budget::Idle));
        assert_eq!(nanoseconds(Duration::MAX), u64::MAX);
    }
}
