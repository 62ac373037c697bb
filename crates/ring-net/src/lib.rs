//! Ring kernels as services: one process owns a kernel, on a GPU or on CPU threads, and others call it by the API of a channel.
//!
//! The owner gives a channel to a [`Server`], and a thread of its own calls [`Server::run`]. A client has a [`RemoteChannel`]. Between
//! them is an engine:
//!
//! - `shared_memory`, with the feature `iceoryx2`: processes of one host, on Linux;
//! - `network`, with the feature `zenoh`, or `tls` for encrypted links too: hosts;
//! - or any other one that carries frames: [`transport`] says what it has to do.
//!
//! With the feature `async` a [`RemoteChannel`] becomes a `Stream` of answers and a `Sink` of requests, by `into_async`.
//!
//! Each client's requests are handled once and answered once, in order, whatever the engine loses. Where a server dies, each request that it
//! had is told as [`error::Unknown`]. `docs/services.md` in the repository says what is promised, and what is refused.
//!
//! Inside: `protocol` keeps that promise, as two state machines over `frame`s that know no engine and no clock; `server` and `client` drive
//! them, and `waits` and `split` are what a client's threads do with it; `slots` keeps messages until the other side has them, and `idle` is how both wait.
//!
//! ```
//! # #[cfg(all(feature = "iceoryx2", target_os = "linux"))] {
//! use ring_host::kernels::{Echo, EchoMessage};
//! use ring_host::{Device, LaunchConfig, Runtime};
//! use ring_net::shared_memory::{Config, connect, listen};
//! use ring_net::{ClientConfig, RemoteChannel, Server, ServerConfig};
//! # let name = format!("doc/{}", std::process::id());
//! # let name = name.as_str();
//! # let second = std::time::Duration::from_secs(20);
//!
//! // In the process that owns the kernel:
//! let mut kernel = Runtime::open(Device::Cpu)?.launch::<Echo>(LaunchConfig::default())?;
//! kernel.activate(second)?;
//! let listener = listen(name, &Config::default())?;
//! let mut server = Server::new(kernel.take_channel(0)?, listener, ServerConfig::default());
//!
//! std::thread::scope(|scope| {
//!     let client = scope.spawn(|| {
//!         // In another process:
//!         let connection = connect(name, &Config::default()).unwrap();
//!         let config = ClientConfig::default();
//!         let mut echo = RemoteChannel::<Echo>::open(connection, config, second).unwrap();
//!         echo.send(EchoMessage::from_seed(7), second).unwrap();
//!         assert_eq!(echo.recv(second).unwrap(), EchoMessage::from_seed(7).answer());
//!     });
//!     server.run(|| client.is_finished())
//! })?;
//! server.finish(second)?;
//! kernel.terminate(second)?;
//! # }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#[cfg(feature = "async")]
pub mod asynchronous;
mod boxed;
mod client;
pub mod error;
#[doc(hidden)]
pub mod frame; // for fuzz/
mod idle;
#[cfg(feature = "zenoh")]
pub mod network;
#[doc(hidden)]
pub mod protocol; // for fuzz/
mod refusal;
mod server;
#[cfg(all(feature = "iceoryx2", target_os = "linux"))]
pub mod shared_memory;
mod slots;
mod split;
pub mod transport;
mod waits;

pub use client::{ClientConfig, RemoteChannel};
pub use protocol::server::Counts;
pub use refusal::{Described, Refusal};
pub use server::{ServeError, Server, ServerConfig};
pub use split::{RemoteReceiver, RemoteSender};

/// A number that nobody can guess.
fn random() -> u128 {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).expect("the system gives random numbers");
    u128::from_ne_bytes(bytes)
}

/// The examples in the package's README compile as they are printed.
#[cfg(all(doctest, feature = "iceoryx2", target_os = "linux"))]
#[doc = include_str!("../README.md")]
struct Readme;
