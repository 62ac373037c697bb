//! The kernels of a crate as one PTX module.
#![no_std]

pub use kernels;
