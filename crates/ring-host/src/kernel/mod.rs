//! A kernel as its user has it: how it is launched, commanded, sent to and received from.

pub(crate) mod away;
pub(crate) mod channel;
pub(crate) mod client;
pub(crate) mod core;
pub(crate) mod embedded;
pub(crate) mod files;
pub(crate) mod handle;
#[cfg(feature = "async")]
pub(crate) mod host_call_stream;
pub(crate) mod host_calls;
pub(crate) mod launch;
mod payload;
pub(crate) mod shared;
pub(crate) mod snapshot;
pub(crate) mod state;
pub(crate) mod supervisor;
pub(crate) mod telemetry;
pub(crate) mod trace;
mod turns;
pub(crate) mod vector_add;
