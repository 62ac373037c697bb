//! Kernels that stay on the GPU and answer messages, without a driver call in between.
//!
//! A [`Runtime`] opens a device: an NVIDIA GPU, or CPU threads that run the same handlers. A
//! launched kernel is [`KernelHandle`]: it polls rings in memory that both sides see until it is
//! terminated. Sending and receiving take no lock, no heap, and no driver call. Where a machine does
//! not let kernels stay, or not share memory, other [modes](Mode) and [memories](Memory) are chosen;
//! there sends and receives launch and copy, still without heap.
//!
//! ```
//! use ring_host::{Device, LaunchConfig, Runtime, kernels::{Echo, EchoMessage}};
//! use std::time::Duration;
//!
//! fn main() -> Result<(), ring_host::Error> {
//!     let second = Duration::from_secs(1);
//!     let host = Runtime::open(Device::Cpu)?; // or Auto: a GPU if there is one
//!     let mut kernel = host.launch::<Echo>(LaunchConfig::default())?;
//!     kernel.activate(second)?;
//!     let request = EchoMessage::from_seed(7);
//!     kernel.send(&request, second)?;
//!     assert_eq!(kernel.recv(second)?, request.answer());
//!     let summary = kernel.terminate(second)?;
//!     assert_eq!((summary.processed, summary.unhandled), (1, 0));
//!     Ok(())
//! }
//! ```
//!
//! # Guarantees
//! - Exactly once, in order, per channel: a message is refused and given back, or delivered.
//! - Every wait has a deadline. Memory is never freed under a kernel that may still run.
//! - Whatever the device writes, the host stays in bounds and says what was wrong.
//!
//! # Features
//! - `cuda` (default): NVIDIA GPUs, through the driver library that is found at run time.
//! - `async`: a channel's halves as `Stream` and `Sink`, for tokio or any other executor
//!   (`channel::asynchronous`).
//! - `quirks`: devices with things taken away, for tests.
//!
//! # Where to look
//! [`resident`] (life cycle), [`channel`] (send and receive), [`launch`] (what can be chosen, and
//! its checks), [`mode`], [`probe`] and `choice` (what is found out and chosen), `pump` and `staging`
//! (what drives kernels that are not simply resident), [`telemetry`], `driver` (what a device must be
//! able to do; CUDA and CPU; `Quirks`), `region` (how a kernel's shared memory is laid out), [`error`].

mod arena;
pub mod channel;
mod choice;
pub mod deadline;
pub mod device;
#[cfg(not(feature = "quirks"))]
mod driver;
#[cfg(feature = "quirks")]
pub mod driver;
pub mod error;
#[cfg(test)]
mod fake;
mod findings;
mod gate;
pub mod image;
mod included;
pub mod launch;
mod lease;
mod lingering;
pub mod mode;
#[cfg(all(test, loom))]
mod models;
pub mod payload;
pub mod platform;
pub mod probe;
mod pump;
pub mod recovery;
mod region;
pub mod report;
pub mod resident;
pub mod runtime;
mod shared;
mod staging;
pub mod state;
mod sync;
pub mod telemetry;
mod vector_add;

#[cfg(feature = "async")]
pub use channel::asynchronous::{RequestSink, ResponseStream};
pub use channel::{Channel, Receiver, Sender};
pub use deadline::Deadline;
pub use device::{Device, DeviceInfo, DeviceKind, UnknownDevice, UnknownName};
pub use driver::Crowded;
pub use error::{
    AddError, ChannelError, ControlError, DeviceFault, Error, LaunchError, OpenError, PayloadError,
    RecoverError, RecvError, SendError, StateError,
};
pub use included::Kernels;
pub use launch::{Cooperative, LaunchConfig};
pub use mode::{Budgets, Memory, Mode};
pub use recovery::Recovery;
pub use report::{Change, Choice, Refusal, Report};
pub use resident::{KernelHandle, Status, Summary};
pub use ring_device::{
    Block, BlockContext, BlockHandler, InOrder, InOrderHandler, Kernel, Output, Payload, Scope,
    Thread, ThreadContext, ThreadHandler, Warp, WarpContext, WarpHandler, Word, Words,
};
pub use ring_shared::Message;
pub use ring_shared::layout::{Exit, Processing, State};
pub use runtime::{Runtime, RuntimeConfig};
pub use telemetry::{Histogram, Telemetry};

/// The built-in kernels and their messages.
pub mod kernels {
    pub use ring_device::kernels::*;
}
