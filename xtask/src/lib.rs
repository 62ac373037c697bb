//! Developer tasks of ring, run as `cargo xtask TASK`.
//!
//! The device code is Rust compiled to PTX by one pinned nightly, and the PTX is checked in, so that a
//! user of `ring-host` needs no nightly. This crate holds everything that keeps that honest:
//!
//! - [`setup`] gets the pinned nightly's `rust-src` and NVIDIA's `ptxas` into the target folder,
//! - [`build`] compiles `ring-device` to PTX, and to cubins of that, and [`check`] compares them with what is checked in,
//! - [`installed`] gets cargo's tools that the jobs need,
//! - [`inputs`] and [`manifest`] tell, without a nightly, whether sources changed and the PTX did not,
//! - [`golden`] reads the PTX for what a ring kernel must not contain,
//! - [`assemble`] runs `ptxas` over it, and [`resources`] keeps the table of what each kernel takes,
//! - [`rust_cuda`] compiles the same by the other compiler, and compares,
//! - [`sanitize`] runs loom over the ring, the resident loop and the host, and the sanitizers over the CPU device,
//! - [`undefined`] runs Miri, or where it is missing cargo-careful and valgrind,
//! - [`fuzz`] runs the targets of `fuzz/`,
//! - [`mutants`] changes the code bit by bit, and looks whether a test fails,
//! - [`callgrind`] counts the instructions that `ring-shared` takes for a message,
//! - [`deny`] checks licences, versions and origins of all dependencies,
//! - [`hosts`] checks the code for other hosts, and runs tests on an emulated one,
//! - [`perfetto`] has Perfetto read the traces of messages,
//! - [`picture`] draws the README's picture,
//! - [`book`] builds the documents as a site,
//! - [`semver`] compares the public interfaces with those of the last version,
//! - [`docs_rs`] builds the documentation as docs.rs does,
//! - [`package`] packages what is published, and tries it,
//! - [`budget`] counts the crates of `ring-host` and times its build.
//!
//! What compiles a crate to PTX is `ring-builder`, the same that users' build scripts call.
//!
//! It is a library so that `xtask/tests` can check the PTX with a stable toolchain alone.

pub mod assemble;
pub mod book;
pub mod budget;
pub mod build;
pub mod callgrind;
pub mod check;
pub mod cli;
pub mod deny;
pub mod docs_rs;
pub mod fuzz;
pub mod golden;
pub mod hosts;
pub mod inputs;
pub mod installed;
pub mod lock;
pub mod manifest;
pub mod mutants;
pub mod package;
pub mod perfetto;
pub mod picture;
pub mod pins;
pub mod resources;
pub mod rust_cuda;
pub mod sanitize;
pub mod semver;
pub mod setup;
pub mod shell;
pub mod toolchain;
pub mod undefined;
pub mod workspace;

pub use workspace::Workspace;

/// What a task ends with: an error says what is wrong, and behind `try:` what to do.
pub type Result<T = ()> = anyhow::Result<T>;
