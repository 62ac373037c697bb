//! The built-in kernels of `ring-device` as one PTX module. Kernels of your own go here too.
#![no_std]

pub use ring_device::*;
