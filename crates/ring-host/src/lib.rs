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
//!     kernel.send(request, second)?;
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
//! # Beside other CUDA code
//! A resident kernel never ends, so what waits for all kernels of a GPU waits for ever: in this process `cudaFree` and `cudaFreeHost`, the
//! first launch of a kernel that is not loaded yet, `cudaDeviceSynchronize`, and copies on the legacy stream where kernels are on
//! blocking streams (ours are not). Allocations, copies and kernels on streams of their own, events, and `cudaFreeAsync` go on beside
//! ours. For the former, [`Runtime::quiesce`] takes the runtime's kernels off the device for as long as a closure runs.
//!
//! # Features
//! - `cuda` (default): NVIDIA GPUs, through the driver library that is found at run time.
//! - `async`: a channel's halves as `Stream` and `Sink`, and calls and tickets as futures, for tokio or any other
//!   executor (`asynchronous`).
//! - `metrics`: what kernels count, for Prometheus (`metrics`).
//! - `exporter`: the same, served by HTTP on a thread of its own.
//! - `serde`: [`Telemetry`], [`Status`], [`Restart`], [`DeviceInfo`], [`Report`] and whatever else tells or counts can be serialised;
//!   counts, states and choices can be read back, but nothing with an error in it. Times are those of `serde`, in seconds and
//!   nanoseconds; variants have their names in lower case with hyphens; errors are what they say. What one version wrote
//!   another one may not read: types gain fields.
//! - `perfetto`: what a [`Trace`] or a [`GraphTrace`] tells of messages, as a file for Perfetto (`TraceFile`).
//! - `quirks`: devices with things taken away, for tests.
//!
//! # Where to look
//! [`Runtime`] (opening, launching), [`LaunchConfig`] (what can be chosen, and its checks),
//! [`KernelHandle`] (life cycle), [`Channel`] (send and receive), [`Mode`] and [`Memory`], [`probe`] and
//! [`Report`] (what is found out and chosen), [`Telemetry`], [`error`]. Inside: `device` (what a device must
//! be able to do; CUDA and CPU; `Quirks`), `memory` (arenas, and how a kernel's memory is laid out), `drive`
//! (what keeps kernels answering that are not simply resident), `kernel`, and `runtime` on top of them.

#![cfg_attr(docsrs, feature(doc_cfg))]

mod buffers;
mod deadline;
#[cfg(not(feature = "quirks"))]
mod device;
#[cfg(feature = "quirks")]
pub mod device;
mod devices;
mod drive;
pub mod error;
#[cfg(test)]
mod fake;
mod graph;
mod grids;
mod kernel;
mod memory;
#[cfg(feature = "metrics")]
pub mod metrics;
mod mode;
#[cfg(all(test, loom))]
mod models;
mod runtime;
#[cfg(feature = "serde")]
mod serialised;
mod setters;
mod sync;

pub use buffers::buffer::{Buffer, FrozenBuffer};
pub use deadline::Deadline;
#[doc(hidden)]
pub use deadline::yields_to_another; // for ring-net
pub use device::{
    Crowded, Device, DeviceInfo, DeviceKind, Health, NoPeer, Opened, UnknownDevice, UnknownName,
};
pub use device::{image, platform, probe};
pub use devices::Devices;
pub use drive::report::{AskedBy, Evidence, Fallback, Forced, Report, Selection, Why};
pub use error::{
    BufferError, CallError, ChannelError, ControlError, DeviceFault, DevicesError, Error,
    GraphError, GridsError, HostCallsError, LaunchError, NextCallError, Obstacle, OpenError,
    PayloadError, QuiesceError, RecoverError, RecoverGraphError, RecvTimeoutError, Refusal,
    RestartError, RestoreError, SendTimeoutError, SnapshotFileError, StateError, SubmitError,
    TryRecvError, TrySendError, WaitedFor,
};
pub use graph::{
    FeedLoss, Graph, GraphBuilder, GraphEvent, GraphNode, GraphRestart, GraphSnapshot, GraphTrace,
    HandledMessages, LinkInfo, LinkPath, LinkTraffic, Node, PortReader, PortReceiver, RingMessages,
    Route, TracedNode, TracedRing,
};
pub use grids::Grids;
#[cfg(feature = "async")]
pub use kernel::channel::asynchronous::{self, RequestSink, ResponseStream};
pub use kernel::channel::{Channel, Incoming, Receiver, Select, Sender, SharedSender, TryIter};
#[cfg(feature = "async")]
pub use kernel::client::{Answer, Call};
pub use kernel::client::{Client, ClientConfig, DEFAULT_TICKETS, Ticket, Unanswered};
pub use kernel::embedded::Kernels;
pub use kernel::files::{KernelFile, KernelFileError, KernelFiles};
pub use kernel::handle::{KernelHandle, Status, Summary};
#[cfg(feature = "async")]
pub use kernel::host_call_stream::HostCallStream;
pub use kernel::host_calls::{CallServer, HostCall, HostCalls};
pub use kernel::launch::{Cooperative, LaunchConfig};
pub use kernel::shared::SharedKernel;
pub use kernel::snapshot::Snapshot;
pub use kernel::supervisor::{ChannelLoss, Restart, RestartPolicy, Supervisor};
pub use kernel::telemetry::{Histogram, Telemetry};
#[cfg(feature = "perfetto")]
pub use kernel::trace::file::{TraceFile, TracedGraph, TracedKernel};
pub use kernel::trace::times::{DeviceTimes, MessageTimes};
pub use kernel::trace::{Trace, TraceLosses};
pub use mode::{Budgets, Memory, Mode, PayloadMemory};
pub use ring_device::{
    Block, BlockContext, BlockHandler, CallsHost, Emit, EmitBlock, EmitBlockHandler, EmitHandler,
    EmitInOrder, EmitInOrderHandler, EmitWarp, EmitWarpHandler, Grid, GridContext, GridHandler,
    Handler, HasPort, HasState, HostCallError, HostFn, InOrder, InOrderHandler, Kernel,
    MAX_BLOCKS_OF_DEVICES, MAX_GRID_BLOCKS, Number, Output, Payload, Placed, Port, Ports, Scope,
    Tagged, Thread, ThreadContext, ThreadHandler, View, Warp, WarpContext, WarpHandler, WithPorts,
    Word, Words,
};
pub use ring_shared::layout::{Exit, MAX_DEVICES, Processing, State};
pub use ring_shared::{BufferRef, Element, Element32, Message};
pub use runtime::recovery::Recovery;
pub use runtime::{MEMORY_VARIABLE, MODE_VARIABLE, Runtime, RuntimeConfig};

/// The built-in kernels and their messages.
pub mod kernels {
    pub use ring_device::kernels::*;

    /// What [`KernelHandle::add`](crate::KernelHandle::add) of [`VectorAdd`] tells.
    pub mod vector_add {
        pub use crate::kernel::vector_add::AddError;
        pub use ring_device::kernels::VectorError;
    }
}

/// The example in the package's README compiles and runs as it is printed.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
