//! Names that a package may have, and folders of such a name.

use std::path::{Path, PathBuf};
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
    /// That of a package which cargo has taken: no rule of ours is asked of it.
    pub fn of_package(name: &str) -> Name {
        Name(name.to_owned())
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name of the package with its kernels.
    pub fn kernels(&self) -> String {
        format!("{}-kernels", self.0)
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

/// The folder of a project; its last part is the package's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Folder {
    path: PathBuf,
    name: Name,
}

impl Folder {
    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it lies in the working folder.
    pub fn is_here(&self) -> bool {
        self.path == Path::new(self.name.as_str())
    }

    /// The package's name.
    pub fn name(&self) -> &Name {
        &self.name
    }
}

impl FromStr for Folder {
    type Err = String;

    fn from_str(path: &str) -> Result<Folder, String> {
        let path = PathBuf::from(path);
        let last = path.file_name().unwrap_or_default().to_string_lossy();
        Ok(Folder { name: last.parse()?, path })
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
    fn a_folder_is_named_as_its_package() {
        for (path, name) in [("a", "a"), ("../x/my-kernels", "my-kernels"), ("/tmp/k1/", "k1")] {
            let folder = path.parse::<Folder>().unwrap();
            assert_eq!((folder.path(), folder.name().as_str()), (Path::new(path), name));
        }
        for path in ["", "/", "..", "a/..", "x/1st", "x/fn"] {
            assert!(path.parse::<Folder>().is_err(), "{path}");
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
