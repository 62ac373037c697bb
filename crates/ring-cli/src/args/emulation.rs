//! Names of what is taken away from a device.

use ring_host::driver::cpu::Cpu;
use ring_host::driver::quirks::NAMES;
use ring_host::driver::{Driver, Quirks};
use std::fmt;
use std::str::FromStr;

/// Names of quirks, with commas between, all known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Emulation(String);

impl Emulation {
    /// The device without what they take away.
    pub fn of<D: Driver>(&self, driver: D) -> Quirks<D> {
        let quirks = Quirks::named(driver, &self.0);
        quirks.unwrap_or_else(|error| unreachable!("the names were checked: {error}"))
    }
}

impl FromStr for Emulation {
    type Err = String;

    fn from_str(names: &str) -> Result<Emulation, String> {
        match Quirks::named(Cpu::open(), names) {
            Ok(_) => Ok(Emulation(names.to_owned())),
            Err(unknown) => Err(format!("there is no '{}'; there are\n{}", unknown.name, known())),
        }
    }
}

impl fmt::Display for Emulation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// All names, one a line, with what they do.
fn known() -> String {
    let width = NAMES.iter().map(|(name, _)| name.len()).max().unwrap_or(0) + 4;
    let line = |(name, does): &(&str, &str)| {
        crate::text::wrapped(&format!("{:<width$}", format!("  {name}")), does)
    };
    NAMES.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_known_names_are_taken_alone_and_together() {
        for (name, does) in NAMES {
            assert_eq!(name.parse::<Emulation>().unwrap().to_string(), name);
            assert!(!does.is_empty());
        }
        assert_eq!("wsl2,watchdog".parse::<Emulation>().unwrap().to_string(), "wsl2,watchdog");
    }

    #[test]
    fn an_unknown_one_is_answered_with_all_and_what_they_do() {
        for names in ["wsl3", "wsl2,wsl3", "wsl3,watchdog"] {
            let error = names.parse::<Emulation>().unwrap_err();
            assert!(error.contains("'wsl3'"), "{error}");
            assert!(error.lines().all(|line| line.chars().count() <= crate::text::WIDTH));
            let words = error.split_whitespace().collect::<Vec<_>>().join(" ");
            let all = NAMES.iter().all(|(name, does)| words.contains(&format!("{name} {does}")));
            assert!(all, "{error}");
        }
    }
}
