//! Which nightly compiles device code: finding it, and running its cargo.

use crate::{Arch, BuildError, environment, pins};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Names the toolchain, or its sysroot, for whoever builds; it wins over what a program chose.
pub const VARIABLE: &str = "RING_TOOLCHAIN";

/// What rustup writes into a toolchain that it installs, and reads to add components to it.
const RUSTUPS: &str = "lib/rustlib/multirust-channel-manifest.toml";

/// An installed toolchain.
#[derive(Debug, Clone)]
pub struct Toolchain {
    name: String,
    sysroot: PathBuf,
    release: String,
    commit: String,
}

impl Toolchain {
    /// The toolchain at `sysroot`.
    ///
    /// # Errors
    /// When no rustc and cargo run there.
    pub fn at(sysroot: &Path) -> Result<Toolchain, BuildError> {
        let failed = |why: String| BuildError::NoCompiler { sysroot: sysroot.to_owned(), why };
        let program = |name: &str| sysroot.join("bin").join(name);
        let output = environment::command(program("rustc")).arg("-vV").output();
        let output = output.map_err(|error| failed(format!("rustc: {error}")))?;
        let said = String::from_utf8_lossy(&output.stdout);
        let value = |key: &str| said.lines().find_map(|line| line.strip_prefix(key));
        let (Some(release), Some(commit)) = (value("release: "), value("commit-hash: ")) else {
            return Err(failed(String::from_utf8_lossy(&output.stderr).trim().to_owned()));
        };
        if !program("cargo").with_extension(std::env::consts::EXE_EXTENSION).is_file() {
            return Err(failed("it has no cargo".to_owned()));
        }
        Ok(Toolchain {
            name: sysroot.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            sysroot: sysroot.to_owned(),
            release: release.to_owned(),
            commit: commit.to_owned(),
        })
    }

    /// The name by which `rustup component add` takes it. There is none for a folder that rustup did not
    /// install: rustup refuses to add to it, linked or not.
    #[must_use]
    pub fn rustup_name(&self) -> Option<String> {
        rustup_name(&home(), &self.sysroot)
    }

    /// Its folder.
    #[must_use]
    pub fn sysroot(&self) -> &Path {
        &self.sysroot
    }

    /// Its version, as `rustc -vV` says it.
    #[must_use]
    pub fn release(&self) -> &str {
        &self.release
    }

    /// Its commit.
    #[must_use]
    pub fn commit(&self) -> &str {
        &self.commit
    }

    /// Whether it is the pinned one, under whatever name.
    #[must_use]
    pub fn is_pinned(&self) -> bool {
        self.commit == pins::RUSTC_COMMIT
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

    /// Checks that it has code for an architecture. Its rustc would ignore one that it does not know.
    pub(crate) fn check_arch(&self, arch: Arch) -> Result<(), BuildError> {
        let mut rustc = environment::command(self.sysroot.join("bin/rustc"));
        rustc.args(["--print", "target-cpus", "--target", pins::TARGET]);
        let output = rustc.output().map_err(|source| BuildError::NotStarted {
            program: self.sysroot.join("bin/rustc"),
            source,
        })?;
        let said = String::from_utf8_lossy(&output.stdout);
        let words = said.lines().filter_map(|line| line.split_whitespace().next());
        let known: Vec<String> =
            words.filter(|word| word.parse::<Arch>().is_ok()).map(str::to_owned).collect();
        let name = arch.to_string();
        if known.contains(&name) { Ok(()) } else { Err(BuildError::UnknownArch { name, known }) }
    }

    /// Its cargo in `folder`, told to use its own rustc whatever rust-toolchain.toml says.
    #[must_use]
    pub fn cargo(&self, folder: &Path) -> Command {
        let bin = self.sysroot.join("bin");
        let mut path = vec![bin.clone()];
        path.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()));
        let mut cargo = environment::command(bin.join("cargo"));
        cargo.current_dir(folder);
        cargo.env("RUSTC", bin.join("rustc")).env("RUSTDOC", bin.join("rustdoc"));
        if let Ok(path) = std::env::join_paths(path) {
            cargo.env("PATH", path);
        }
        cargo
    }

    /// The same, if it can compile for the device. rustup keeps its toolchains in `home`.
    fn ready(self, home: &Path) -> Result<Toolchain, BuildError> {
        if !self.release.contains("nightly") && !self.release.contains("dev") {
            return Err(BuildError::NotNightly { name: self.name, release: self.release });
        }
        if !self.has_source() {
            let rustup = rustup_name(home, &self.sysroot);
            return Err(BuildError::NoSource { name: self.name, sysroot: self.sysroot, rustup });
        }
        Ok(self)
    }
}

/// Where rustup keeps toolchains.
pub(crate) fn home() -> PathBuf {
    let rustup = std::env::var_os("RUSTUP_HOME").map(PathBuf::from).unwrap_or_else(|| {
        let home = std::env::var_os("HOME").or_else(|| std::env::var_os("USERPROFILE"));
        PathBuf::from(home.unwrap_or_default()).join(".rustup")
    });
    rustup.join("toolchains")
}

/// Every installed toolchain of the pinned commit, the one named after the pin first.
pub fn installed() -> impl Iterator<Item = Toolchain> {
    pinned(&home())
}

fn pinned(home: &Path) -> impl Iterator<Item = Toolchain> + use<> {
    let mut names = names(home);
    names.sort_by_key(|name| {
        (!name.starts_with(pins::NIGHTLY), !name.starts_with("nightly"), name.clone())
    });
    let home = home.to_owned();
    let toolchains = names.into_iter().filter_map(move |name| Toolchain::at(&home.join(name)).ok());
    toolchains.filter(Toolchain::is_pinned)
}

/// Names of the toolchains that rustup keeps, sorted.
fn names(home: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(home).into_iter().flatten().flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// The toolchain to compile with: the one that [`VARIABLE`] names, else `wanted`, else the pinned one.
/// A name is one of rustup's; with a separator in it, it is a sysroot.
///
/// # Errors
/// When it is not there, or cannot compile for the device; the error says what to do.
pub fn find(wanted: Option<&str>) -> Result<Toolchain, BuildError> {
    find_in(&home(), chosen(wanted).as_deref())
}

/// What was chosen: the variable goes before what a program wants.
pub(crate) fn chosen(wanted: Option<&str>) -> Option<String> {
    let forced = std::env::var(VARIABLE).ok().filter(|name| !name.is_empty());
    forced.or_else(|| wanted.map(str::to_owned))
}

/// Whether it is the folder of a toolchain, and no name of rustup's.
fn is_sysroot(name: &str) -> bool {
    name.contains(['/', '\\'])
}

/// The toolchain of that name of those that rustup keeps in `home`, or the one at that sysroot; none if there is no
/// such name.
pub(crate) fn named(home: &Path, name: &str) -> Result<Option<Toolchain>, BuildError> {
    if is_sysroot(name) {
        let sysroot = std::path::absolute(name).map_err(BuildError::io(Path::new(name)))?;
        return Toolchain::at(&sysroot).map(Some);
    }
    let folder = names(home).into_iter().find(|folder| is_named(folder, name));
    folder.map(|folder| Toolchain::at(&home.join(folder))).transpose()
}

fn find_in(home: &Path, wanted: Option<&str>) -> Result<Toolchain, BuildError> {
    let name = wanted.unwrap_or(pins::NIGHTLY);
    if !home.is_dir() && !is_sysroot(name) {
        return Err(BuildError::NoRustup { folder: home.to_owned(), name: name.to_owned() });
    }
    let mut found: Vec<Toolchain> = match wanted {
        None => pinned(home).collect(),
        Some(name) => named(home, name)?.into_iter().collect(),
    };
    if found.is_empty() {
        return Err(BuildError::NoToolchain { name: name.to_owned(), installed: names(home) });
    }
    let best = found.iter().position(Toolchain::has_source).unwrap_or(0);
    let best = found.swap_remove(best);
    // Known to the user by the name asked for, unless it was found by its commit or at a sysroot.
    let name = if is_named(&best.name, name) { name.to_owned() } else { best.name.clone() };
    Toolchain { name, ..best }.ready(home)
}

/// The name of the toolchain at `sysroot`, or of the one that a link there leads to, if rustup keeps it
/// in `home` and has installed it.
fn rustup_name(home: &Path, sysroot: &Path) -> Option<String> {
    let (home, sysroot) = (home.canonicalize().ok()?, sysroot.canonicalize().ok()?);
    let is_rustups = sysroot.parent() == Some(&home) && sysroot.join(RUSTUPS).is_file();
    let name = sysroot.file_name()?.to_str()?;
    is_rustups.then(|| name.to_owned())
}

/// Whether rustup's folder is that of `name`: it adds the host's triple.
fn is_named(folder: &str, name: &str) -> bool {
    let Some(rest) = folder.strip_prefix(name) else { return false };
    let triple = rest.strip_prefix('-');
    rest.is_empty() || triple.is_some_and(|rest| rest.starts_with(|c: char| c.is_alphabetic()))
}

#[cfg(test)]
mod tests;
