//! The pinned nightly: finding it among the installed toolchains, and running its cargo.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{Error, Result, Workspace, pins, shell};

/// The command that a user with a network runs.
pub const INSTALL: &str = "cargo xtask setup";

/// An installed toolchain of the pinned commit.
#[derive(Debug, Clone)]
pub struct Toolchain {
    sysroot: PathBuf,
}

impl Toolchain {
    /// The toolchain at `sysroot`, when its rustc is of the pinned commit.
    #[must_use]
    pub fn at(sysroot: PathBuf) -> Option<Self> {
        let version = shell::output(shell::command(sysroot.join("bin/rustc")).arg("-vV")).ok()?;
        let commit = version.lines().find_map(|line| line.strip_prefix("commit-hash: "))?;
        (commit == pins::RUSTC_COMMIT).then_some(Self { sysroot })
    }

    /// Its folder.
    #[must_use]
    pub fn sysroot(&self) -> &Path {
        &self.sysroot
    }

    /// Whether it has the source of `core`.
    #[must_use]
    pub fn has_source(&self) -> bool {
        self.sysroot.join("lib/rustlib/src/rust/library/core/src/lib.rs").is_file()
    }

    /// Whether it has the program `name` (`cargo-miri`, say).
    #[must_use]
    pub fn has_program(&self, name: &str) -> bool {
        self.sysroot.join("bin").join(name).is_file()
    }

    /// Which `rust-src` it holds, for the manifest.
    #[must_use]
    pub fn source_version(&self) -> String {
        let note = self.sysroot.join(crate::setup::linked::NOTE);
        std::fs::read_to_string(note).map_or_else(
            |_| format!("rustup {}", pins::NIGHTLY),
            |version| format!("debian {}", version.trim()),
        )
    }

    /// Its cargo in `root`, told to use its own rustc whatever rust-toolchain.toml says.
    #[must_use]
    pub fn cargo(&self, root: &Path) -> Command {
        let bin = self.sysroot.join("bin");
        let mut path = vec![bin.clone()];
        path.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()));
        let mut cargo = shell::command(bin.join("cargo"));
        cargo.current_dir(root).env("RUSTC", bin.join("rustc")).env("RUSTDOC", bin.join("rustdoc"));
        if let Ok(path) = std::env::join_paths(path) {
            cargo.env("PATH", path);
        }
        cargo
    }
}

/// Every installed toolchain of the pinned commit, the one named after the pin first.
#[must_use]
pub fn installed() -> Vec<Toolchain> {
    let home = std::env::var_os("RUSTUP_HOME").map(PathBuf::from).or_else(|| {
        let home = std::env::var_os("HOME").or_else(|| std::env::var_os("USERPROFILE"))?;
        Some(PathBuf::from(home).join(".rustup"))
    });
    let Some(entries) = home.and_then(|home| std::fs::read_dir(home.join("toolchains")).ok())
    else {
        return Vec::new();
    };
    let mut folders: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    folders.sort_by_key(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        (!name.starts_with(pins::NIGHTLY), !name.starts_with("nightly"), name)
    });
    folders.into_iter().filter_map(Toolchain::at).collect()
}

/// The pinned nightly with its source, ready to compile device code.
///
/// # Errors
/// When there is none yet; the error says what is missing and how to get it.
pub fn find(ws: &Workspace) -> Result<Toolchain> {
    let installed = installed();
    let linked = Toolchain::at(crate::setup::linked::folder(ws));
    if let Some(ready) = installed.iter().cloned().chain(linked).find(Toolchain::has_source) {
        return Ok(ready);
    }
    let missing = if installed.is_empty() {
        format!("no installed toolchain is rustc {} ({})", pins::RUSTC_RELEASE, pins::RUSTC_COMMIT)
    } else {
        format!("the pinned nightly ({}) is installed without rust-src", pins::NIGHTLY)
    };
    Err(Error::new(missing).hint(format!(
        "{INSTALL}\n   or: rustup toolchain install {} --profile minimal --component rust-src",
        pins::NIGHTLY
    )))
}
