//! The option `--emulate`: names of quirks, and the list of them.

use ring_host::device::cpu::Cpu;
use ring_host::device::quirks::NAMES;
use ring_host::device::{Driver, Quirks};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// Values that ask for the list.
const LIST: [&str; 3] = ["?", "list", "help"];

/// What `--emulate` asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Emulate {
    /// The quirks of these names.
    Names(Emulation),
    /// Only print the names of all quirks.
    List,
}

impl Emulate {
    /// What is to be taken away, if it is not the list that is asked for.
    pub fn names(&self) -> Option<&Emulation> {
        match self {
            Emulate::Names(names) => Some(names),
            Emulate::List => None,
        }
    }
}

impl FromStr for Emulate {
    type Err = String;

    fn from_str(text: &str) -> Result<Emulate, String> {
        match LIST.contains(&text) {
            true => Ok(Emulate::List),
            false => text.parse().map(Emulate::Names),
        }
    }
}

impl fmt::Display for Emulate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Emulate::Names(names) => names.fmt(f),
            Emulate::List => f.write_str(LIST[0]),
        }
    }
}

/// Names of quirks, with commas between, all known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Emulation(String);

impl Emulation {
    /// The device without what they take away.
    pub fn of(&self, driver: Arc<dyn Driver>) -> Quirks {
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
pub fn known() -> String {
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
    fn the_list_is_asked_for_by_words_that_are_no_names() {
        for word in LIST {
            assert_eq!(word.parse(), Ok(Emulate::List));
            assert!(NAMES.iter().all(|(name, _)| *name != word));
            assert!(format!("wsl2,{word}").parse::<Emulate>().is_err());
        }
        let both: Emulate = "wsl2,watchdog".parse().unwrap();
        assert_eq!(
            (both.to_string(), Emulate::List.to_string()),
            ("wsl2,watchdog".into(), "?".into())
        );
        assert_eq!((both.names().is_some(), Emulate::List.names()), (true, None));
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
