//! The lines that a build script prints for cargo.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Where files go, if this is a build script. Cargo gives `OUT_DIR` to tests and programs too, but a
/// host only to scripts.
pub fn out_dir() -> Option<PathBuf> {
    std::env::var_os("HOST")?;
    std::env::var_os("OUT_DIR").map(PathBuf::from)
}

/// Tells cargo, if it listens.
pub fn tell(lines: impl IntoIterator<Item = String>) {
    if out_dir().is_some() {
        lines.into_iter().for_each(|line| println!("{line}"));
    }
}

/// Variables that choose what compiles.
pub fn watched_variables(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| format!("cargo::rerun-if-env-changed={name}")).collect()
}

/// Files and folders that are watched, with the Cargo.toml of each source's crate, and Cargo.toml and
/// Cargo.lock of the workspace. A file that is not there would make cargo run the script each time.
pub fn watched(sources: &[PathBuf], workspace: &Path) -> Vec<String> {
    let mut files: BTreeSet<PathBuf> = sources.iter().cloned().collect();
    files.extend(["Cargo.toml", "Cargo.lock"].map(|name| workspace.join(name)));
    files.extend(sources.iter().filter_map(|source| {
        let mut above = source.ancestors().skip(1).map(|folder| folder.join("Cargo.toml"));
        above.find(|file| file.is_file())
    }));
    let there = files.into_iter().filter(|file| file.exists());
    there.map(|file| format!("cargo::rerun-if-changed={}", file.display())).collect()
}

/// Warnings of the compiler, as cargo shows those of a build script.
pub fn warnings(said: &str) -> Vec<String> {
    let lines = said.lines().filter(|line| !line.trim().is_empty());
    lines.map(|line| format!("cargo::warning={line}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Scratch;

    #[test]
    fn sources_and_their_manifests_are_watched() {
        let scratch = Scratch::new("watched");
        for file in ["Cargo.toml", "a/Cargo.toml", "b/Cargo.toml"] {
            scratch.put(file, "");
        }
        let sources = ["a/src/lib.rs", "a/src/x/y.rs", "b/src/lib.rs"].map(|f| scratch.put(f, ""));
        let told =
            |file: &str| format!("cargo::rerun-if-changed={}", scratch.0.join(file).display());
        let expected =
            ["Cargo.toml", "a/Cargo.toml", "a/src/lib.rs", "a/src/x/y.rs", "b/Cargo.toml"];
        let mut expected: Vec<String> = expected.map(told).into();
        expected.push(told("b/src/lib.rs"));
        assert_eq!(watched(&sources, &scratch.0), expected, "no lock is there yet");
        scratch.put("Cargo.lock", "");
        assert!(watched(&sources, &scratch.0).contains(&told("Cargo.lock")));
    }

    #[test]
    fn a_test_is_no_build_script() {
        assert_eq!(out_dir(), None);
    }

    #[test]
    fn warnings_are_told_line_by_line() {
        let told = warnings("warning: x\n\n  --> y\n");
        assert_eq!(told, ["cargo::warning=warning: x", "cargo::warning=  --> y"]);
    }
}
