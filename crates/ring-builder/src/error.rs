//! What can go wrong: each says what, which value, and the command that puts it right.

mod words;

use std::io;
use std::path::{Path, PathBuf};

/// Why there is no PTX.
#[derive(Debug)]
#[non_exhaustive]
pub enum BuildError {
    /// There is no such folder.
    NoFolder(PathBuf),
    /// The folder holds no Cargo.toml.
    NoCargoToml(PathBuf),
    /// Its Cargo.toml has no package with a name.
    NoPackage(PathBuf),
    /// No architecture that is served.
    Arch {
        /// What was given.
        name: String,
    },
    /// An architecture that the toolchain does not know.
    UnknownArch {
        /// What was given.
        name: String,
        /// Those that it knows.
        known: Vec<String>,
    },
    /// A name of files that is no plain name.
    FileName(String),
    /// rustup keeps no toolchains here.
    NoRustup {
        /// The folder where they would be.
        folder: PathBuf,
        /// The toolchain wanted.
        name: String,
    },
    /// The toolchain is not installed.
    NoToolchain {
        /// Its name.
        name: String,
        /// Names of those that are.
        installed: Vec<String>,
    },
    /// The toolchain has no source of `core`.
    NoSource {
        /// Its name, or its folder's.
        name: String,
        /// Its folder.
        sysroot: PathBuf,
        /// The name by which rustup can add the source to it, if it can.
        rustup: Option<String>,
    },
    /// The toolchain does not compile with unstable flags.
    NotNightly {
        /// Its name, or its folder.
        name: String,
        /// Its version.
        release: String,
    },
    /// The folder holds no toolchain that runs.
    NoCompiler {
        /// The folder.
        sysroot: PathBuf,
        /// Why.
        why: String,
    },
    /// A program did not start.
    NotStarted {
        /// The program.
        program: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The crate does not compile.
    Compile {
        /// The command, as one would type it.
        command: String,
        /// All that the compiler said.
        said: String,
    },
    /// The crate uses nothing of ring-device, and so has no kernel.
    NoKernel {
        /// The package.
        package: String,
    },
    /// The build left no PTX, or more than one.
    Modules {
        /// How many.
        found: usize,
    },
    /// The PTX has no entry point.
    NoEntry {
        /// The package.
        package: String,
    },
    /// The PTX has no ABI version.
    NoAbi {
        /// The package.
        package: String,
    },
    /// The PTX names a folder of this machine.
    NamesFolder {
        /// The line, counted from 1.
        line: usize,
        /// The folder.
        folder: PathBuf,
    },
    /// The PTX asks for another GPU or a newer driver than was chosen.
    Header {
        /// What it asks for.
        found: String,
        /// What was chosen.
        chosen: String,
    },
    /// Rust-CUDA made no PTX.
    #[cfg(feature = "rust-cuda")]
    RustCuda(String),
    /// A file could not be read or written.
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl BuildError {
    pub(crate) fn io(path: &Path) -> impl FnOnce(io::Error) -> BuildError {
        let path = path.to_owned();
        |source| BuildError::Io { path, source }
    }
}

impl std::error::Error for BuildError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            BuildError::NotStarted { source, .. } | BuildError::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;
