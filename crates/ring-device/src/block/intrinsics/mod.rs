//! The PTX instructions that core has no name for, by the compiler in use: upstream rustc, or Rust-CUDA
//! with the feature `rust-cuda`. The target does not tell the two apart: `nvptx64-nvidia-cuda` is the
//! name, and `target_os = "cuda"` the cfg, of both.

#[cfg(target_arch = "nvptx64")]
mod assembly;
// On a CPU it is compiled for its types only.
#[cfg(feature = "rust-cuda")]
#[cfg_attr(not(target_arch = "nvptx64"), allow(dead_code))]
mod rust_cuda;
#[cfg(all(target_arch = "nvptx64", not(feature = "rust-cuda")))]
mod upstream;
#[cfg(target_arch = "nvptx64")]
mod warp;

#[cfg(target_arch = "nvptx64")]
pub(crate) use self::assembly::*;
#[cfg(all(target_arch = "nvptx64", feature = "rust-cuda"))]
pub(crate) use self::rust_cuda::*;
#[cfg(all(target_arch = "nvptx64", not(feature = "rust-cuda")))]
pub(crate) use self::upstream::*;
#[cfg(target_arch = "nvptx64")]
pub(crate) use self::warp::*;
