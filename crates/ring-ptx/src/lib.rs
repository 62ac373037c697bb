//! Reads the text of a PTX module, as compilers write it: statements, header, entry points, the ABI
//! version that a module of ring kernels carries, and what a panic does in it.
//!
//! Host, builder and the rules for checked-in PTX read through this crate, so that they agree. It checks
//! nothing and refuses nothing: what is not there is `None`, whatever the text.
//!
//! ```
//! let ptx = "
//! .version 8.4
//! .target sm_70
//! .visible .global .align 4 .u32 RING_ABI_VERSION = 5;
//! .visible .entry ring_echo( // the only one
//!     .param .u64 ring_echo_param_0
//! )
//! { ret; }
//! ";
//! assert_eq!(ring_ptx::header(ptx).architecture(), Some("sm_70"));
//! assert_eq!(ring_ptx::abi_version(ptx), Some(5));
//! assert!(ring_ptx::entries(ptx).eq(["ring_echo"]));
//! ```
//!
//! Limits: the directives that are read stand at the beginning of a statement, and each on one line.
#![forbid(unsafe_code)]

mod abi;
mod bytes;
mod comments;
mod header;
mod signature;
mod statement;
mod trap;

pub use abi::{ABI_GLOBAL, abi_version};
pub use bytes::bytes;
pub use comments::without_comments;
pub use header::{Header, header};
pub use signature::{Signature, entries, signature};
pub use statement::{Statement, statements};
pub use trap::{ABI_ENTRY, traps_on_panic};

/// The example in the package's README compiles and runs as it is printed.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
