//! The halves of a channel as `Stream` and `Sink`, for tokio or any other executor (feature `async`).
//!
//! [`Sender::into_sink`](crate::Sender::into_sink) and
//! [`Receiver::into_stream`](crate::Receiver::into_stream) make them; `into_sender` and `into_receiver`
//! give the halves back, with nothing lost on the way. No poll waits for the device, and none takes heap;
//! a kernel that is not persistent is driven by the polls, with the driver calls that this takes.
//!
//! ```
//! use futures_util::{SinkExt, StreamExt};
//! use ring_host::{Device, LaunchConfig, Runtime, kernels::{Echo, EchoMessage}};
//! use std::time::Duration;
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let second = Duration::from_secs(1);
//!     let mut kernel = Runtime::open(Device::Cpu)?.launch::<Echo>(LaunchConfig::default())?;
//!     kernel.activate(second)?;
//!     let (sender, receiver) = kernel.take_channel(0)?.into_split();
//!     let (mut requests, mut responses) = (sender.into_sink(), receiver.into_stream());
//!     futures_executor::block_on(async {
//!         for seed in 0..3 {
//!             requests.send(EchoMessage::from_seed(seed)).await?;
//!         }
//!         for seed in 0..3 {
//!             let response = responses.next().await.expect("it is not terminated")?;
//!             assert_eq!(response, EchoMessage::from_seed(seed).answer());
//!         }
//!         kernel.terminate(second)?;
//!         assert!(responses.next().await.is_none(), "terminated, and all was taken");
//!         Ok(())
//!     })
//! }
//! ```
//!
//! # How a task waits
//! A device writes memory and interrupts nobody, so somebody must look. A poll that finds nothing
//! wakes its own task, for [`EAGER`] from the first such poll on: other tasks run in between, and a busy
//! channel is answered within microseconds. After that a thread of the process, a watch, wakes the task
//! every [`PERIOD`] or so, and once it has waited for [`LONG`] another one does every [`LONG_PERIOD`]:
//! then nothing has come for so long that the next answer may cost that much, and waiting costs little.
//! A poll after the channel's other half has sent or received begins anew: it wakes its own task at first.
//! The watches are started when they are needed first, and sleep while nobody waits. Each wakes [`MOST`]
//! halves at most; further ones wake themselves. A half that always finds something lets other tasks
//! run after every [`RUN`] messages.
//!
//! # Deadlines
//! The executor has the clock: `tokio::time::timeout(limit, responses.next())`. A `next` or `send` that
//! is dropped half-way loses nothing. A kernel that is lost ends the stream with its fault within some
//! milliseconds.
//!
//! The calls on a kernel's handle (`activate`, `terminate`, ...) do block, until their deadline.

mod sink;
mod stream;
#[cfg(test)]
mod tests;
pub(crate) mod waiting;
mod watch;

pub use sink::RequestSink;
pub use stream::ResponseStream;
pub use waiting::{EAGER, LONG, RUN};
pub use watch::{LONG_PERIOD, MOST, PERIOD};
