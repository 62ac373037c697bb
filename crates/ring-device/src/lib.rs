//! The device side of a ring kernel: the loop that stays on the GPU, and what runs inside it.
//!
//! A kernel is a type that implements [`Kernel`] and one handler trait. The same source is compiled
//! to PTX, where a block of threads runs it, and for the host, where one thread does:
//!
//! ```
//! ring_device::ring_kernel! {
//!     /// Squares a number.
//!     pub struct Square;
//!
//!     fn handle(request: &u64) -> u64 {
//!         request.wrapping_mul(*request)
//!     }
//! }
//! ```
//!
//! [`ring_kernel!`] writes the implementations, and the entry point of the PTX, which comes about in no other way.
//!
//! Where to look: [`macro@ring_kernel`] and [`kernel`] (what a user writes), [`context`] (what a handler sees), `dispatch`
//! (the resident loop: wait, handle, answer, obey), `scope` (who handles a message), `memory` (what a block knows of
//! its channel), `block` (what its threads can do together: a GPU's block or one CPU thread), [`kernels`] (the built-in ones).
//!
//! Nothing here allocates, formats or panics; the PTX is checked for it.
#![no_std]
#![cfg_attr(target_arch = "nvptx64", allow(internal_features))]
#![cfg_attr(
    target_arch = "nvptx64",
    feature(abi_unadjusted, asm_experimental_arch, link_llvm_intrinsics)
)]
#![cfg_attr(
    all(target_arch = "nvptx64", not(feature = "rust-cuda")),
    feature(core_intrinsics, gpu_intrinsics, gpu_launch_sized_workgroup_mem, stdarch_nvptx)
)]
#![cfg_attr(
    all(target_arch = "nvptx64", feature = "entries", not(feature = "rust-cuda")),
    feature(abi_ptx)
)]
// The released `#[kernel]` asks whether the target is one that is gone.
#![cfg_attr(feature = "rust-cuda", allow(unexpected_cfgs))]

mod block;
mod buffers;
mod call_macros;
pub mod calls;
pub mod context;
mod dispatch;
mod emissions;
#[doc(hidden)]
pub mod fits;
pub mod grid_context;
mod handler_macros;
pub mod handlers;
pub mod kernel;
pub mod kernels;
mod macros;
pub mod math;
mod memory;
#[cfg(all(target_arch = "nvptx64", not(feature = "rust-cuda")))]
mod module;
pub mod number;
mod port_macros;
pub mod ports;
mod reduce;
#[cfg(feature = "rust-cuda")]
mod rust_cuda;
mod scope;
pub mod shared;
mod shared_macros;
mod stages;
mod thread_block;

#[cfg(all(target_arch = "nvptx64", feature = "entries", not(feature = "rust-cuda")))]
mod entries;
#[cfg(all(target_arch = "nvptx64", feature = "entries", not(feature = "rust-cuda")))]
mod page_probe;

#[cfg(not(target_arch = "nvptx64"))]
pub use block::Hooks;
pub use buffers::{Adder, Elements, Four, Fours, ReadView, View, fours};
pub use bytemuck;
pub use calls::{CallsHost, HostCallError, HostFn};
pub use context::{BlockContext, Output, Payload, ThreadContext, WarpContext, Word, Words};
#[cfg(feature = "rust-cuda")]
#[doc(hidden)]
pub use cuda_std;
#[cfg(target_arch = "nvptx64")]
#[doc(hidden)]
pub use dispatch::enter;
pub use dispatch::run;
#[cfg(not(target_arch = "nvptx64"))]
#[doc(hidden)]
pub use dispatch::unwound;
pub use grid_context::GridContext;
pub use handlers::{Handler, Tagged};
pub use kernel::{Kernel, Scope};
pub use kernels::{Echo, VectorAdd};
pub use memory::BlockMemory;
pub use memory::devices::{MAX_BLOCKS_OF_DEVICES, MEETING_BYTES};
pub use memory::meeting::MAX_GRID_BLOCKS;
pub use memory::scratch::MAX_SHARED_BYTES;
pub use number::Number;
pub use ports::{HasPort, Placed, Port, Ports, WithPorts};
pub use ring_shared::layout::ControlBlock;
pub use ring_shared::{BufferRef, Element, Element32, ElementAdd, ElementAtomic, Message};
pub use scope::{
    Block, BlockHandler, Emit, EmitBlock, EmitBlockHandler, EmitHandler, EmitInOrder,
    EmitInOrderHandler, EmitWarp, EmitWarpHandler, Grid, GridHandler, HasState, InOrder,
    InOrderHandler, MAX_STATE_BYTES, Thread, ThreadHandler, Warp, WarpHandler,
};
pub use shared::{Shared, SharedArray, SharedSlice};
pub use stages::{least_shared_bytes, messages_a_chunk, shared_bytes};
pub use thread_block::ThreadBlock;

/// Fewest threads of a channel's block on a GPU: one warp, which polls.
pub const MIN_THREADS: u32 = 32;

/// The example in the package's README compiles and runs as it is printed.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
