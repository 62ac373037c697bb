//! A kernel served by each engine, in one process and by processes that are killed.

#![cfg(any(all(feature = "iceoryx2", target_os = "linux"), feature = "zenoh"))]

#[cfg(all(feature = "async", feature = "iceoryx2", target_os = "linux"))]
mod asynchronous;
mod breaks;
mod cut;
mod kernel;
mod killed;
#[cfg(all(feature = "zenoh", target_os = "linux"))]
mod machines;
mod refusals;
