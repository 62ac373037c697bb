//! Errors of a build. Each names what is wrong, the value, and a remedy.

use crate::RustCudaError;
use crate::pins::NIGHTLY;
use ring_ptx::ABI_GLOBAL;
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// A whole kernel, to begin with.
const KERNEL: &str = "ring_device::ring_kernel! { pub struct Square; fn handle(request: &u64) -> u64 { \
                      request.wrapping_mul(*request) } }";

/// The command that installs a toolchain with what is needed.
fn install(name: &str) -> String {
    format!("rustup toolchain install {name} --profile minimal --component rust-src")
}

/// Names with commas between.
fn listed(names: &[String]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

/// What can be done about a toolchain without the source of `core`.
fn source_of(name: &str, sysroot: &Path, rustup: Option<&str>) -> String {
    match rustup {
        Some(rustup) => format!(
            "toolchain {name} has no source of `core` to compile for the GPU\n  \
             try: rustup component add rust-src --toolchain {rustup}"
        ),
        None => format!(
            "toolchain {name} in {} has no source of `core` to compile for the GPU, and rustup, which \
             did not install it, cannot add it\n  try: {}, and choose no other toolchain\n   or: put \
             the source's folder `library` at {}",
            sysroot.display(),
            install(NIGHTLY),
            sysroot.join("lib/rustlib/src/rust/library").display()
        ),
    }
}

/// Why there is no PTX.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum BuildError {
    /// There is no such folder.
    #[error("there is no folder {}\n  try: the folder of the crate with the kernels", .0.display())]
    NoFolder(PathBuf),
    /// The folder holds no Cargo.toml.
    #[error(
        "there is no Cargo.toml in {path}\n  try: the folder of the crate with the kernels, or \
         `cargo init --lib {path}`",
        path = .0.display()
    )]
    NoCargoToml(PathBuf),
    /// Its Cargo.toml is that of no package.
    #[error(
        "{} has no [package] with a name\n  try: the folder of the crate with the kernels, not of its \
         workspace",
        .0.display()
    )]
    NoPackage(PathBuf),
    /// Cargo does not read its Cargo.toml.
    #[error("cargo does not take {}:\n{said}\n  try: mend that first", path.display())]
    Cargo {
        /// The Cargo.toml.
        path: PathBuf,
        /// What cargo says.
        said: String,
    },
    /// No architecture that is served.
    #[error(
        "'{name}' is no GPU architecture from sm_70 on\n  try: sm_70, which serves all newer ones too; or \
         sm_80, sm_90, sm_100a"
    )]
    Arch {
        /// What was given.
        name: String,
    },
    /// No compiler of kernels.
    #[error("'{name}' is no compiler of kernels\n  try: upstream, or rust-cuda")]
    Compiler {
        /// What was given.
        name: String,
    },
    /// An architecture that the toolchain does not know.
    #[error(
        "the toolchain does not know the GPU architecture {name}; it knows {}\n  try: sm_70, which serves \
         all newer ones too",
        known.join(", ")
    )]
    UnknownArch {
        /// What was given.
        name: String,
        /// Those that it knows.
        known: Vec<String>,
    },
    /// A name of files that is no plain name.
    #[error("'{0}' is no name of files\n  try: kernels; out_dir chooses the folder")]
    FileName(String),
    /// rustup keeps no toolchains here.
    #[error(
        "rustup keeps no toolchains here (there is no {})\n  try: https://rustup.rs, then {}\n   or: \
         RING_TOOLCHAIN=FOLDER, the sysroot of a nightly with rust-src",
        folder.display(),
        install(name)
    )]
    NoRustup {
        /// The folder where they would be.
        folder: PathBuf,
        /// The toolchain wanted.
        name: String,
    },
    /// The toolchain is not installed.
    #[error(
        "toolchain {name} is not installed; there is: {}\n  try: {}",
        listed(installed),
        install(name)
    )]
    NoToolchain {
        /// Its name.
        name: String,
        /// Names of those that are.
        installed: Vec<String>,
    },
    /// The toolchain has no source of `core`.
    #[error("{}", source_of(name, sysroot, rustup.as_deref()))]
    NoSource {
        /// Its name, or its folder's.
        name: String,
        /// Its folder.
        sysroot: PathBuf,
        /// The name by which rustup can add the source to it, if it can.
        rustup: Option<String>,
    },
    /// The toolchain does not compile with unstable flags.
    #[error(
        "toolchain {name} is Rust {release}, but PTX needs a nightly\n  try: {}",
        install(NIGHTLY)
    )]
    NotNightly {
        /// Its name, or its folder.
        name: String,
        /// Its version.
        release: String,
    },
    /// The folder holds no toolchain that runs.
    #[error(
        "no Rust compiler and cargo run in {}: {why}\n  try: a sysroot, as `rustc --print sysroot` says \
         it; or {}",
        sysroot.display(),
        install(NIGHTLY)
    )]
    NoCompiler {
        /// The folder.
        sysroot: PathBuf,
        /// Why.
        why: String,
    },
    /// A program did not start.
    #[error("{} did not start: {source}\n  try: {}", program.display(), install(NIGHTLY))]
    NotStarted {
        /// The program.
        program: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The crate does not compile.
    #[error("{}\n`{command}` failed; what is wrong is above", said.trim_end())]
    Compile {
        /// The command, as one would type it.
        command: String,
        /// All that the compiler said.
        said: String,
    },
    /// The crate uses nothing of ring-device, and so has no kernel.
    #[error(
        "{package} declares no kernel: write one with ring_kernel!, with ring-device as a dependency\n  \
         try: in its src/lib.rs: {KERNEL}"
    )]
    NoKernel {
        /// The package.
        package: String,
    },
    /// The build left no PTX, or more than one.
    #[error(
        "the build left {found} PTX modules, not 1\n  try: remove its target folder, and \
         profile.release.package from Cargo.toml"
    )]
    Modules {
        /// How many.
        found: usize,
    },
    /// The PTX has no entry point.
    #[error(
        "the PTX of {package} has no entry point: did you forget ring_kernel!?\n  try: {KERNEL}"
    )]
    NoEntry {
        /// The package.
        package: String,
    },
    /// The PTX has no ABI version.
    #[error(
        "the PTX of {package} does not define {ABI_GLOBAL}\n  try: ring-device as a dependency, of the \
         version of ring-host"
    )]
    NoAbi {
        /// The package.
        package: String,
    },
    /// The PTX names a folder of this machine.
    #[error(
        "line {line} of the PTX names {}, a folder of this machine\n  try: kernels without file!() and \
         env!()",
        folder.display()
    )]
    NamesFolder {
        /// The line, counted from 1.
        line: usize,
        /// The folder.
        folder: PathBuf,
    },
    /// The PTX asks for another GPU or a newer driver than was chosen.
    #[error(
        "the PTX asks for {found}, but {chosen} was chosen\n  try: a newer arch, or no target features of \
         your own"
    )]
    Header {
        /// What it asks for.
        found: String,
        /// What was chosen.
        chosen: String,
    },
    /// Rust-CUDA made no PTX.
    #[error(transparent)]
    RustCuda(#[from] RustCudaError),
    /// A file could not be read or written.
    #[error("{}: {source}\n  try: a folder that can be written to", path.display())]
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

#[cfg(test)]
mod tests;
