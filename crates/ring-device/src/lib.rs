//! The device side of a ring kernel: the loop that stays on the GPU, and what runs inside it.
//!
//! A kernel is a type that implements [`Kernel`] and one handler trait. The same source is compiled
//! to PTX, where a block of threads runs it, and for the host, where one thread does:
//!
//! ```
//! use ring_device::{Kernel, Thread, ThreadContext, ThreadHandler};
//!
//! struct Square;
//!
//! impl Kernel for Square {
//!     const NAME: &'static str = "square";
//!     const ENTRY: &'static str = "my_square";
//!     type Request = u64;
//!     type Response = u64;
//!     type Scope = Thread;
//! }
//!
//! impl ThreadHandler for Square {
//!     fn handle(_: &ThreadContext, request: &u64) -> u64 {
//!         request * request
//!     }
//! }
//! ```
//!
//! Where to look: [`kernel`] (what a user writes), [`context`] (what a handler sees), `dispatch`
//! (the resident loop: wait, handle, answer, obey), `team` (the threads that run one lane: a GPU
//! block or one CPU thread), [`kernels`] (the built-in ones).
//!
//! Nothing here allocates, formats or panics; the PTX is checked for it.
#![no_std]
#![cfg_attr(target_arch = "nvptx64", allow(internal_features))]
#![cfg_attr(
    target_arch = "nvptx64",
    feature(abi_unadjusted, asm_experimental_arch, link_llvm_intrinsics, stdarch_nvptx)
)]
#![cfg_attr(all(target_arch = "nvptx64", feature = "entries"), feature(abi_ptx))]

pub mod context;
mod dispatch;
pub mod kernel;
pub mod kernels;
mod team;

#[cfg(all(target_arch = "nvptx64", feature = "entries"))]
mod entries;

pub use context::{BlockContext, Output, Payload, ThreadContext, WarpContext, Word, Words};
#[cfg(target_arch = "nvptx64")]
pub use dispatch::enter;
pub use dispatch::run;
pub use kernel::{Block, BlockHandler, Kernel, Scope, Thread, ThreadHandler, Warp, WarpHandler};
pub use kernels::{Echo, VectorAdd};
#[cfg(not(target_arch = "nvptx64"))]
pub use team::Hooks;
pub use team::{Team, TeamMemory};

/// Fewest threads of a lane's block on a GPU: one warp, which polls.
pub const MIN_THREADS: u32 = 32;
