//! The other compiler: Rust-CUDA, by its cuda_builder. `docs/building-kernels.md` says what it needs.
//!
//! cuda_builder comes from git and links libNVVM, and what it runs is a plugin of one nightly's rustc that is linked
//! with LLVM 7. So it is no dependency of this crate. It is compiled when it is asked for, by that nightly, in a
//! workspace that lies in the target folder and has the user's crate for a dependency (`workspace`); `tools` finds
//! what that takes.

pub mod error;
mod tools;
mod workspace;

pub use error::RustCudaError;

use crate::compile::{self, Compiled, without_noise};
use crate::package::Package;
use crate::ptx::with_limited_registers;
use crate::{Arch, BuildError, digest, pins};
use std::path::{Path, PathBuf};
use tools::Tools;
pub use tools::{CUDA_FOLDERS, CUDA_VARIABLES, LLVM_VARIABLE};
use workspace::Workspace;

/// The nightly that Rust-CUDA is a plugin of, as rustup knows it.
pub const NIGHTLY: &str = "nightly-2026-04-02";
/// Its commit.
pub const RUSTC_COMMIT: &str = "7e46c5f6fb87f8cf4353e058479cef15d1d952b4";
/// What it must have beside a compiler, by rustup's names.
pub const COMPONENTS: [&str; 3] = ["rustc-dev", "rust-src", "llvm-tools"];
/// Where Rust-CUDA comes from.
pub const REPOSITORY: &str = "https://github.com/Rust-GPU/rust-cuda";
/// Its revision, of 2026-04-20.
pub const REVISION: &str = "946c91f080770f30d42d7c706ac8185969274073";
/// The LLVM that it is linked with.
pub const LLVM: &str = "7.";
/// CUDA's versions that serve, as `cuda.h` numbers them: 12.4 is the first that knows accesses of 16 bytes at system
/// scope, and 13 makes nothing for sm_70.
pub const CUDA: std::ops::Range<u32> = 12_040..13_000;

/// What Rust-CUDA made.
#[derive(Debug)]
pub struct Made {
    /// The module.
    pub compiled: Compiled,
    /// The nightly's folder.
    pub sysroot: PathBuf,
    /// What it was made with, for the manifest.
    pub made_with: Vec<(&'static str, String)>,
}

/// Compiles a package with those of its features for `arch`. Everything is built in `target`.
///
/// # Errors
/// When a tool is missing or another than the pinned one, or the package does not compile.
pub fn compile(
    package: &Package,
    features: &[String],
    arch: Arch,
    toolchain: Option<&str>,
    target: &Path,
) -> Result<Made, BuildError> {
    let tools = Tools::find(toolchain)?;
    // Another revision's compiler must not be taken for this one's, nor one that another LLVM or CUDA went into.
    let mark = digest::sha256(&format!("{REVISION} {tools:?}"));
    let target = target.join(format!("rust-cuda-{}", mark.get(..8).unwrap_or(&mark)));
    let workspace = Workspace::write(&target, package, features)?;
    // What cargo said, if it did what was asked.
    let run = |options: &[&str]| -> Result<String, RustCudaError> {
        let mut cargo = tools.cargo(workspace.folder());
        let output = cargo.args(options).env("CARGO_TARGET_DIR", &target).output();
        let said = match &output {
            // cuda_builder says `#![no_std]` for every crate, which has said so itself.
            Ok(output) => {
                without_noise(&String::from_utf8_lossy(&output.stderr), "<crate attribute>")
            }
            Err(error) => error.to_string(),
        };
        match output.is_ok_and(|output| output.status.success()) {
            true => Ok(said),
            false => {
                let command = format!("cargo {}", options.join(" "));
                Err(RustCudaError::Failed { command, said: said.trim_end().to_owned() })
            }
        }
    };
    run(&["fetch", "--quiet"])?;
    workspace.check_revision()?;
    let ptx = target.join("kernels.ptx");
    let arguments = ["run", "--quiet", "--release", "-p", "ring-rust-cuda-builder", "--"];
    let (virtual_arch, file) = (virtual_arch(arch), ptx.to_string_lossy());
    let warnings = run(&[&arguments[..], &[&virtual_arch, &file]].concat())?;
    let read = |path: &Path| std::fs::read_to_string(path).map_err(BuildError::io(path));
    let list = target.join(pins::TARGET).join("release/ring_rust_cuda_kernels.d");
    let mut sources = compile::sources(&read(&list)?);
    sources.retain(|source| !source.starts_with(&target));
    let ptx = read(&ptx)?;
    let ptx = with_limited_registers(ptx.trim_end_matches('\0')); // libNVVM ends it as C does
    Ok(Made {
        compiled: Compiled { ptx, warnings, sources },
        sysroot: tools.sysroot().to_owned(),
        made_with: tools.versions(),
    })
}

/// What NVVM calls an architecture: `compute_70`, where ptxas says `sm_70`.
fn virtual_arch(arch: Arch) -> String {
    arch.to_string().replace("sm_", "compute_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn architectures_are_named_as_nvvm_does() {
        assert_eq!(virtual_arch(Arch::OLDEST), "compute_70");
        assert_eq!(virtual_arch("sm_90a".parse().unwrap()), "compute_90a");
    }
}
