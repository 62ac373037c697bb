//! The only door to atomics: core's on the CPU, loom's under the model checker, PTX on the GPU, and
//! cuda_std's there when Rust-CUDA compiles it.
//!
//! Between host and device only naturally aligned loads and stores are atomic (PCIe carries no
//! read-modify-write for us), so nothing here exchanges or adds. On the GPU, core's loads, stores
//! and fences become `.sys` instructions; the 16-byte access of an [`Atom`], and what has another
//! [`MemoryScope`], needs assembly.

mod atom;
pub(crate) mod element;
#[cfg(loom)]
#[doc(hidden)]
pub mod model;
// On a CPU it is compiled for its types only.
#[cfg(feature = "rust-cuda")]
#[cfg_attr(not(target_arch = "nvptx64"), allow(dead_code))]
mod rust_cuda;
mod scope;
pub(crate) mod wide;

pub use atom::Atom;
pub use core::sync::atomic::Ordering;
#[cfg(not(any(loom, all(target_arch = "nvptx64", feature = "rust-cuda"))))]
pub use core::sync::atomic::{AtomicU32, AtomicU64, fence};
#[cfg(loom)]
pub use loom::sync::atomic::fence;
#[cfg(loom)]
pub use model::{AtomicU32, AtomicU64};
#[cfg(all(target_arch = "nvptx64", feature = "rust-cuda"))]
pub use rust_cuda::{AtomicU32, AtomicU64, fence};
pub use scope::{Gpu, MemoryScope, System};
