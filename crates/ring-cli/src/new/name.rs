//! Names that a package may have.

use std::str::FromStr;

/// The name of a package, and of the folder that it is written to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name(String);

/// Longest name: file systems take some more.
const LONGEST: usize = 64;

/// Names that cargo or the language keep for themselves, or that the project has already.
const TAKEN: &str = "abstract alloc as async await aux become box break build con const continue core crate \
                     deps do dyn else enum examples extern false final fn for gen if impl in incremental \
                     kernels let loop macro match mod move mut nul override priv prn proc_macro pub ref \
                     return ring_builder ring_device ring_host ring_shared self static std struct super \
                     test trait true try type typeof unsafe unsized use virtual where while yield";

impl Name {
    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Name {
    type Err = String;

    fn from_str(name: &str) -> Result<Name, String> {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if !name.chars().all(plain) || !name.starts_with(|c: char| c.is_ascii_alphabetic()) {
            return Err(
                "not a package name: letters, digits, - and _, with a letter first".to_owned()
            );
        }
        if name.len() > LONGEST {
            return Err(format!("{} letters, but a name has {LONGEST} at most", name.len()));
        }
        let lower = name.to_ascii_lowercase().replace('-', "_");
        if TAKEN.split_whitespace().any(|taken| taken == lower) {
            return Err("taken by Rust, cargo or ring; add a word to it".to_owned());
        }
        Ok(Name(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_packages_are_taken() {
        for name in ["my-kernels", "a", "X_1", "ring", "own-kernel", &"x".repeat(64)] {
            assert_eq!(name.parse::<Name>().unwrap().as_str(), name);
        }
    }

    #[test]
    fn others_are_refused_with_what_is_wrong() {
        for (names, why) in [
            (&["", "1st", "-x", "_x", "a b", "a/b", "..", "é", "a.b"][..], "letter first"),
            (&["fn", "Self", "test", "kernels", "ring-host", "proc-macro", "nul"], "taken by"),
            (&[&"x".repeat(65)], "65 letters, but a name has 64 at most"),
        ] {
            for name in names {
                let said = name.parse::<Name>().unwrap_err();
                assert!(said.contains(why), "'{name}': {said}");
            }
        }
    }
}
