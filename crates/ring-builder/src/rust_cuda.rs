//! The other compiler: Rust-CUDA, by its cuda_builder. `docs/building-kernels.md` says what it needs.
//!
//! The crate with the kernels must be of the types `cdylib` and `rlib`, and depend on ring-device; its
//! feature `rust-cuda` is switched on here. cuda_builder runs the cargo that is on the path, so all that
//! runs it, this build script or program too, is compiled by Rust-CUDA's nightly.

use cuda_builder::{CudaBuilder, CudaBuilderError, NvvmArch};
use std::fmt;
use std::path::Path;

/// Switches Rust-CUDA on in ring-device, and so in what its macros make.
const FEATURE: &str = "ring-device/rust-cuda";

/// Compiles the crate in `crate_dir` for `arch` (`sm_70` or newer) and writes its PTX to `ptx`. In a build
/// script it tells cargo to watch the folder.
pub(crate) fn build(
    crate_dir: &Path,
    features: &[String],
    arch: &str,
    ptx: &Path,
) -> Result<(), RustCudaError> {
    let features = features.iter().map(String::as_str).chain([FEATURE]);
    CudaBuilder::new(crate_dir)
        .arch(virtual_arch(arch)?)
        .build_args(&["--features", &features.collect::<Vec<_>>().join(",")])
        .copy_to(ptx)
        .build()
        .map_err(RustCudaError::Build)?;
    Ok(())
}

/// What NVVM calls an architecture: `compute_70`, where ptxas says `sm_70`.
fn virtual_arch(arch: &str) -> Result<NvvmArch, RustCudaError> {
    let number = arch.strip_prefix("sm_").unwrap_or_default();
    format!("compute_{number}").parse().map_err(|_| RustCudaError::Arch(arch.to_owned()))
}

/// Why Rust-CUDA made no PTX.
#[derive(Debug)]
pub(crate) enum RustCudaError {
    /// An architecture that it does not know.
    Arch(String),
    /// What cuda_builder said; the compiler has printed why.
    Build(CudaBuilderError),
}

impl fmt::Display for RustCudaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RustCudaError::Arch(name) => {
                write!(f, "Rust-CUDA knows no architecture '{name}'\n  try: sm_70, sm_80, sm_90")
            }
            RustCudaError::Build(error) => write!(f, "Rust-CUDA: {error}; what is wrong is above"),
        }
    }
}

impl std::error::Error for RustCudaError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn architectures_are_named_as_nvvm_does() {
        assert_eq!(virtual_arch("sm_70").unwrap(), NvvmArch::Compute70);
        assert_eq!(virtual_arch("sm_90a").unwrap(), NvvmArch::Compute90a);
        for wrong in ["", "70", "sm_", "sm_71", "compute_70"] {
            assert!(virtual_arch(wrong).unwrap_err().to_string().contains(wrong));
        }
    }
}
