//! What each error says.

use super::BuildError;
use crate::pins;
use std::fmt;

/// A whole kernel, to begin with.
const KERNEL: &str = "ring_device::ring_kernel! { pub struct Square; fn handle(request: &u64) -> u64 { \
                      request.wrapping_mul(*request) } }";

/// The command that installs a toolchain with what is needed.
fn install(name: &str) -> String {
    format!("rustup toolchain install {name} --profile minimal --component rust-src")
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            #[cfg(feature = "rust-cuda")]
            BuildError::RustCuda(said) => f.write_str(said),
            BuildError::NoFolder(path) => write!(
                f,
                "there is no folder {}\n  try: the folder of the crate with the kernels",
                path.display()
            ),
            BuildError::NoCargoToml(path) => write!(
                f,
                "there is no Cargo.toml in {}\n  try: the folder of the crate with the kernels, or \
                 `cargo init --lib {0}`",
                path.display()
            ),
            BuildError::NoPackage(path) => write!(
                f,
                "{} has no [package] with a name\n  try: the folder of the crate with the kernels, \
                 not of its workspace",
                path.display()
            ),
            BuildError::Arch { name } => write!(
                f,
                "'{name}' is no GPU architecture from sm_70 on\n  try: sm_70, which serves all newer \
                 ones too; or sm_80, sm_90, sm_100a"
            ),
            BuildError::UnknownArch { name, known } => write!(
                f,
                "the toolchain does not know the GPU architecture {name}; it knows {}\n  try: sm_70, \
                 which serves all newer ones too",
                known.join(", ")
            ),
            BuildError::FileName(name) => {
                write!(
                    f,
                    "'{name}' is no name of files\n  try: kernels; out_dir chooses the folder"
                )
            }
            BuildError::NoRustup { folder, name } => write!(
                f,
                "rustup keeps no toolchains here (there is no {})\n  try: https://rustup.rs, then {}\n   \
                 or: RING_TOOLCHAIN=FOLDER, the sysroot of a nightly with rust-src",
                folder.display(),
                install(name)
            ),
            BuildError::NoToolchain { name, installed } => {
                let has = if installed.is_empty() { "none".into() } else { installed.join(", ") };
                write!(
                    f,
                    "toolchain {name} is not installed; there is: {has}\n  try: {}",
                    install(name)
                )
            }
            BuildError::NoSource { name, rustup: Some(rustup), .. } => write!(
                f,
                "toolchain {name} has no source of `core` to compile for the GPU\n  \
                 try: rustup component add rust-src --toolchain {rustup}"
            ),
            BuildError::NoSource { name, sysroot, rustup: None } => write!(
                f,
                "toolchain {name} in {} has no source of `core` to compile for the GPU, and rustup, which \
                 did not install it, cannot add it\n  try: {}, and choose no other toolchain\n   or: put \
                 the source's folder `library` at {}",
                sysroot.display(),
                install(pins::NIGHTLY),
                sysroot.join("lib/rustlib/src/rust/library").display()
            ),
            BuildError::NotNightly { name, release } => write!(
                f,
                "toolchain {name} is Rust {release}, but PTX needs a nightly\n  try: {}",
                install(pins::NIGHTLY)
            ),
            BuildError::NoCompiler { sysroot, why } => write!(
                f,
                "no Rust compiler and cargo run in {}: {why}\n  try: a sysroot, as `rustc --print \
                 sysroot` says it; or {}",
                sysroot.display(),
                install(pins::NIGHTLY)
            ),
            BuildError::NotStarted { program, source } => write!(
                f,
                "{} did not start: {source}\n  try: {}",
                program.display(),
                install(pins::NIGHTLY)
            ),
            BuildError::Compile { command, said } => {
                write!(f, "{}\n`{command}` failed; what is wrong is above", said.trim_end())
            }
            BuildError::NoKernel { package } => write!(
                f,
                "{package} declares no kernel: write one with ring_kernel!, with ring-device as a \
                 dependency\n  try: in its src/lib.rs: {KERNEL}"
            ),
            BuildError::Modules { found } => write!(
                f,
                "the build left {found} PTX modules, not 1\n  try: remove its target folder, and \
                 profile.release.package from Cargo.toml"
            ),
            BuildError::NoEntry { package } => write!(
                f,
                "the PTX of {package} has no entry point: did you forget ring_kernel!?\n  \
                 try: {KERNEL}"
            ),
            BuildError::NoAbi { package } => write!(
                f,
                "the PTX of {package} does not define {}\n  try: ring-device as a dependency, of the \
                 version of ring-host",
                pins::ABI_GLOBAL
            ),
            BuildError::NamesFolder { line, folder } => write!(
                f,
                "line {line} of the PTX names {}, a folder of this machine\n  try: kernels without \
                 file!() and env!()",
                folder.display()
            ),
            BuildError::Header { found, chosen } => write!(
                f,
                "the PTX asks for {found}, but {chosen} was chosen\n  try: a newer arch, or no target \
                 features of your own"
            ),
            BuildError::Io { path, source } => {
                write!(f, "{}: {source}\n  try: a folder that can be written to", path.display())
            }
        }
    }
}
