//! The host's threads under loom: receiving while a kernel leaves, is launched again or lost; what is carried
//! between the host's copy of a kernel's memory and the device's; messages that wait for a payload write; calls
//! of several threads. The channel is played: its loop has models of its own, in `ring-device`.
//!
//!     RUSTFLAGS="--cfg loom" cargo test --release -p ring-host --no-default-features --lib models

mod client;
mod copier;
mod gate;
mod receiver;
mod rig;
