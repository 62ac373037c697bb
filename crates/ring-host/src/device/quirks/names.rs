use super::{Driver, Quirks, USUAL_WATCHDOG};
use crate::device::UnknownName;
use std::sync::Arc;
use std::time::Duration;

/// What [`Quirks::named`] knows: name, and what is taken away.
pub const NAMES: [(&str, &str); 21] = [
    ("wsl2", "what was reported of WSL2, in sum"),
    ("no-pinned", "pinned memory is refused"),
    ("pinned-limit", "pinned memory is refused beyond 4 MiB"),
    ("unmapped", "kernels do not see pinned memory"),
    ("calls-block", "calls wait until no launch is running"),
    ("held-launches", "launches are held back until it is asked how they go"),
    ("slow-launches", "launches but by a graph take 100 us longer"),
    ("no-cooperative", "no cooperative launch"),
    ("no-managed", "managed memory cannot be used by both sides at the same time"),
    ("watchdog", "a launch that runs for 2 s is a fault of the device"),
    ("invalid-handles", "every 10th launch or copy fails"),
    ("device-fault", "the device faults when a kernel has handled 1000 messages"),
    ("failing-copies", "copies fail from the 200th on"),
    ("failing-copies-beside", "copies beside a launch fail from the 2000th copy on"),
    ("late-copies", "copies land some calls later, in order but torn"),
    ("no-graphs", "launches cannot be replayed as graphs"),
    ("failing-graphs", "launches by a graph fail from the 50th on"),
    ("device-reset", "the device is reset when a kernel has handled 1000 messages"),
    ("silent-host", "leases are not renewed, as if the host had died"),
    ("refused-allocation", "the first memory that is asked for is refused"),
    ("refused-launches", "the second launch is refused, and the third"),
];

/// The names alone.
const KNOWN: [&str; NAMES.len()] = {
    let (mut known, mut i) = ([""; NAMES.len()], 0);
    while i < known.len() {
        known[i] = NAMES[i].0;
        i += 1;
    }
    known
};

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

    fn also(self, name: &str) -> Result<Quirks, UnknownName> {
        Ok(match name {
            "wsl2" => self.and_wsl2(),
            "no-pinned" => self.no_pinned(),
            "pinned-limit" => self.pinned_limit(4 << 20),
            "unmapped" => self.unmapped(),
            "calls-block" => self.calls_block(),
            "held-launches" => self.held_launches(),
            "slow-launches" => self.slow_launches(Duration::from_micros(100)),
            "no-cooperative" => self.no_cooperative(),
            "no-managed" => self.no_concurrent_managed(),
            "watchdog" => self.watchdog(USUAL_WATCHDOG),
            "invalid-handles" => self.invalid_handles(10),
            "device-fault" => self.fault_after(1000),
            "failing-copies" => self.failing_copies(200),
            "failing-copies-beside" => self.failing_copies_beside(2000),
            "late-copies" => self.late_copies(1),
            "no-graphs" => self.no_graphs(),
            "failing-graphs" => self.failing_graphs(50),
            "device-reset" => self.reset_after(1000),
            "silent-host" => self.silent_host(),
            "refused-allocation" => self.refused_allocations(1..=1),
            "refused-launches" => self.refused_launches(2..=3),
            _ => {
                let (what, name) = ("quirk", name.to_owned());
                return Err(UnknownName { what, name, known: &KNOWN });
            }
        })
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
