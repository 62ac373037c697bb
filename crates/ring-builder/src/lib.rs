//! Compiles a crate of ring kernels to PTX.
//!
//! In `build.rs`, for kernels in the folder `kernels` beside it:
//!
//! ```no_run
//! if let Err(error) = ring_builder::Builder::new("kernels").build() {
//!     eprintln!("{error}");
//!     std::process::exit(1);
//! }
//! ```
//!
//! The host then says `ring_host::include_kernels!()`. Outside of a build script the files come to lie
//! in the crate's folder, or where [`Builder::out_dir`] says.
//!
//! It needs the pinned nightly ([`pins::NIGHTLY`]) with `rust-src`, or another that is named, and no
//! CUDA toolkit. What is missing or wrong is a [`BuildError`] that says what to do. Kernels and the
//! host's other crates stay with the stable toolchain.
//!
//! # What is promised of the PTX
//! It has an entry point and the ABI version, asks for no newer GPU or driver than chosen, and names no
//! folder of this machine. The files are written only if they changed.
//!
//! # Where to look
//! [`builder`] (what can be chosen), [`compile`] (the one run of cargo), [`toolchain`] (which nightly),
//! [`ptx`] (what is checked), `manifest` and `script` (what is written beside it, and told to
//! cargo). `cargo` asks cargo about packages. [`rust_cuda`] is the other compiler. This crate depends on little,
//! and on nothing that ring-host's tree lacks but a digest and a reader of JSON, so that a build script costs
//! little.

pub mod arch;
pub mod builder;
pub mod cargo;
pub mod compile;
pub mod digest;
pub mod environment;
pub mod error;
mod files;
mod manifest;
mod package;
pub mod pins;
pub mod ptx;
pub mod rust_cuda;
mod script;
#[cfg(test)]
mod testing;
pub mod toolchain;

pub use arch::Arch;
pub use builder::{Builder, Built, Compiler};
pub use error::BuildError;
pub use rust_cuda::RustCudaError;
pub use toolchain::Toolchain;

/// The example in the package's README compiles and runs as it is printed.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
