//! Why Rust-CUDA made no PTX. Each names what is missing or wrong, and the command that mends it.

use super::{COMPONENTS, CUDA, LLVM, NIGHTLY, REPOSITORY, REVISION};
use std::path::PathBuf;
use thiserror::Error;

/// The command that installs the nightly with all that is needed of it.
fn install() -> String {
    let components: Vec<String> =
        COMPONENTS.iter().map(|name| format!("--component {name}")).collect();
    format!("rustup toolchain install {NIGHTLY} --profile minimal {}", components.join(" "))
}

/// Where the commands are that build an LLVM of that age.
const BUILD_LLVM: &str = "build LLVM 7.1 from its release's source and set LLVM_CONFIG to its \
                          llvm-config; rust-cuda/Containerfile of the ring repository has the commands, and \
                          is an image with all of it";

/// A version of CUDA, as `cuda.h` numbers it, in words.
pub(super) fn cuda_version(number: u32) -> String {
    format!("{}.{}", number / 1000, number % 1000 / 10)
}

/// The versions that serve.
fn cuda_range() -> String {
    format!("{} or newer, but older than {}", cuda_version(CUDA.start), cuda_version(CUDA.end))
}

/// Why Rust-CUDA made no PTX.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RustCudaError {
    /// Its nightly is not installed, or what was chosen in its place is not.
    #[error(
        "toolchain {name} is not installed; Rust-CUDA is a plugin of {NIGHTLY}\n  try: {}",
        install()
    )]
    NoToolchain {
        /// What was looked for.
        name: String,
    },
    /// Another toolchain was chosen.
    #[error(
        "Rust-CUDA is a plugin of {NIGHTLY}, but toolchain {name} was chosen, of commit {commit}\n  try: no \
         --toolchain and no RING_TOOLCHAIN, and {}",
        install()
    )]
    WrongToolchain {
        /// What was chosen.
        name: String,
        /// Its commit.
        commit: String,
    },
    /// The nightly lacks a component.
    #[error(
        "toolchain {name} has no {component}, which Rust-CUDA needs\n  try: rustup component add {component} \
         --toolchain {name}"
    )]
    NoComponent {
        /// The toolchain.
        name: String,
        /// The component, by rustup's name.
        component: &'static str,
    },
    /// No LLVM.
    #[error(
        "Rust-CUDA is linked with LLVM {LLVM}x, and there is no llvm-config of it: LLVM_CONFIG is not set, and \
         neither llvm-config-7 nor llvm-config runs\n  try: {BUILD_LLVM}"
    )]
    NoLlvm,
    /// An LLVM of another version.
    #[error(
        "Rust-CUDA is linked with LLVM {LLVM}x, but {} is of LLVM {version}\n  try: {BUILD_LLVM}",
        program.display()
    )]
    WrongLlvm {
        /// The llvm-config.
        program: PathBuf,
        /// What it says.
        version: String,
    },
    /// No CUDA toolkit.
    #[error(
        "Rust-CUDA needs a CUDA toolkit with libNVVM, and CUDA_PATH names none (no include/cuda.h there, nor in \
         {})\n  try: the packages cuda-nvcc-12-8 and cuda-cudart-dev-12-8 of NVIDIA's repository for your \
         system (https://developer.nvidia.com/cuda-downloads), and CUDA_PATH if they went elsewhere; ring needs \
         none with its own compiler",
        places.join(", ")
    )]
    NoCuda {
        /// Where it was looked for besides.
        places: Vec<&'static str>,
    },
    /// A toolkit without a part of it.
    #[error(
        "the CUDA toolkit in {} has no {part}, which Rust-CUDA needs\n  try: the package {package} of NVIDIA's \
         repository (https://developer.nvidia.com/cuda-downloads), or CUDA_PATH=FOLDER for another toolkit",
        cuda.display()
    )]
    NoPart {
        /// The toolkit.
        cuda: PathBuf,
        /// The file.
        part: &'static str,
        /// What brings it.
        package: &'static str,
    },
    /// A toolkit of another version.
    #[error(
        "the CUDA toolkit in {path} is {}, but Rust-CUDA's kernels need {}\n  try: one of those beside it, and \
         CUDA_PATH=FOLDER",
        cuda_version(*version),
        cuda_range(),
        path = path.display()
    )]
    WrongCuda {
        /// The toolkit.
        path: PathBuf,
        /// Its version, as `cuda.h` numbers it.
        version: u32,
    },
    /// The kernels depend on another cuda_std.
    #[error(
        "cuda_std would come from {found}, but its compiler is {REPOSITORY} at revision {REVISION}\n  try: \
         cuda_std = \"0.2.2\" in Cargo.toml, which is taken from there, or no cuda_std of your own"
    )]
    Revision {
        /// Where it would come from.
        found: String,
    },
    /// The crate or the compiler did not compile.
    #[error("{said}\n`{command}` of Rust-CUDA failed; what is wrong is above")]
    Failed {
        /// The command, as one would type it.
        command: String,
        /// All that it said.
        said: String,
    },
}
