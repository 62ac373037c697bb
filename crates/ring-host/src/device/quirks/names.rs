use super::{Driver, Quirks, USUAL_WATCHDOG};
use crate::device::UnknownName;
use std::sync::Arc;
use std::time::Duration;

/// Defines the names that [`Quirks::named`] knows: each line is a name, what is taken away, and the method that
/// takes it.
macro_rules! names {
    ($($name:literal, $says:literal => $take:ident($($argument:expr)?);)+) => {
        /// What [`Quirks::named`] knows: name, and what is taken away.
        pub const NAMES: [(&str, &str); KNOWN.len()] = [$(($name, $says)),+];

        /// The names alone.
        const KNOWN: &[&str] = &[$($name),+];

        impl Quirks {
            fn also(self, name: &str) -> Result<Quirks, UnknownName> {
                match name {
                    $($name => Ok(self.$take($($argument)?)),)+
                    _ => Err(UnknownName { what: "quirk", name: name.to_owned(), known: KNOWN }),
                }
            }
        }
    };
}
names! {
    "wsl2", "what was reported of WSL2, in sum" => and_wsl2();
    "no-pinned", "pinned memory is refused" => no_pinned();
    "pinned-limit", "pinned memory is refused beyond 4 MiB" => pinned_limit(4 << 20);
    "unmapped", "kernels do not see pinned memory" => unmapped();
    "calls-block", "calls wait until no launch is running" => calls_block();
    "held-launches", "launches are held back until it is asked how they go" => held_launches();
    "slow-launches", "launches but by a graph take 100 us longer"
        => slow_launches(Duration::from_micros(100));
    "no-cooperative", "no cooperative launch" => no_cooperative();
    "no-managed", "managed memory cannot be used by both sides at the same time"
        => no_concurrent_managed();
    "watchdog", "a launch that runs for 2 s is a fault of the device" => watchdog(USUAL_WATCHDOG);
    "invalid-handles", "every 10th launch or copy fails" => invalid_handles(10);
    "device-fault", "the device faults when a kernel has handled 1000 messages"
        => fault_after(1000);
    "failing-copies", "copies fail from the 200th on" => failing_copies(200);
    "failing-copies-beside", "copies beside a launch fail from the 2000th copy on"
        => failing_copies_beside(2000);
    "late-copies", "copies land some calls later, in order but torn" => late_copies(1);
    "no-graphs", "launches cannot be replayed as graphs" => no_graphs();
    "failing-graphs", "launches by a graph fail from the 50th on" => failing_graphs(50);
    "device-reset", "the device is reset when a kernel has handled 1000 messages"
        => reset_after(1000);
    "silent-host", "leases are not renewed, as if the host had died" => silent_host();
    "refused-allocation", "the first memory that is asked for is refused"
        => refused_allocations(1..=1);
    "refused-launches", "the second launch is refused, and the third" => refused_launches(2..=3);
    "no-peers", "kernels do not reach the memory of other devices" => no_peers();
    "quick-pages", "some pages of pinned memory are said to be read sooner" => quick_pages();
}

impl Quirks {
    /// The device without what a list of [`NAMES`] says, with commas between.
    ///
    /// ```
    /// # use ring_host::device::{Driver, Quirks, cpu::Cpu};
    /// let quirks = Quirks::named(Cpu::open(), "no-cooperative,watchdog").unwrap();
    /// assert!(!quirks.info().cooperative_launch && quirks.info().watchdog);
    /// let error = Quirks::named(Cpu::open(), "no-luck").unwrap_err();
    /// assert!(error.to_string().starts_with("unknown quirk 'no-luck'; use wsl2, "));
    /// ```
    pub fn named(driver: Arc<dyn Driver>, names: &str) -> Result<Quirks, UnknownName> {
        names.split(',').map(str::trim).try_fold(Quirks::of(driver), Quirks::also)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::cpu::Cpu;

    #[test]
    fn every_name_is_known_alone_and_in_a_list() {
        for (name, says) in NAMES {
            assert!(Quirks::named(Cpu::open(), name).is_ok() && !says.is_empty(), "{name}");
        }
        assert!(Quirks::named(Cpu::open(), &KNOWN.join(", ")).is_ok());
        for (names, unknown) in [("", ""), ("wsl2,", ""), ("wsl3,no-pinned", "wsl3")] {
            let error = Quirks::named(Cpu::open(), names).unwrap_err();
            assert_eq!((error.what, &*error.name), ("quirk", unknown));
        }
    }
}
