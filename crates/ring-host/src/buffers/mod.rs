//! Buffers: typed device memory that kernels and the host share. [`buffer`] is what a program has; [`table`] where
//! references are looked up, and what becomes of buffers that were given back; [`kernels`] who may still use one;
//! [`copier`] the copies, none of which is on the path of a message.

pub(crate) mod buffer;
mod copier;
mod generation;
pub(crate) mod kernels;
pub(crate) mod table;
