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
pub(crate) use self::assembly::*;
#[cfg(all(target_arch = "nvptx64", feature = "rust-cuda"))]
pub(crate) use self::rust_cuda::*;
#[cfg(all(target_arch = "nvptx64", not(feature = "rust-cuda")))]
pub(crate) use self::upstream::*;

/// Both halves of a `u64`, from thread `from` of the warp.
#[cfg(target_arch = "nvptx64")]
#[inline(always)]
pub(crate) fn shuffle64(value: u64, from: u32) -> u64 {
    let (lo, hi) = (shuffle(value as u32, from), shuffle((value >> 32) as u32, from));
    u64::from(lo) | u64::from(hi) << 32
}
