//! The device side of `ring bench`.
//!
//! [`kernels`] are ring kernels, for messages of the sizes that are measured; they run on the CPU
//! device as well. [`baselines`] are what they are measured against in the same run: plain kernels
//! without a ring, and the structs through which the host drives them. Compiled for the GPU, the crate
//! is one PTX module with all of them.
//!
//! Each baseline that waits for the host also leaves by the device's own clock, so that neither a
//! dead host nor a fault in the bench keeps a multiprocessor.
#![no_std]
#![cfg_attr(target_arch = "nvptx64", feature(abi_ptx, asm_experimental_arch, stdarch_nvptx))]

pub mod baselines;
pub mod kernels;

#[cfg(target_arch = "nvptx64")]
mod entries;
#[cfg(target_arch = "nvptx64")]
mod intrinsics;
