//! How a client and a server keep their promise over engines that lose frames, and processes that end: each request is answered once, in
//! order; or the client is told of it by its number.
//!
//! Neither half waits, reads a clock or knows an engine: times and ends of engines are handed to it. Frames go back to what the other side has
//! (go-back-N): whoever misses one asks, and the other sends again from there on. A client never has more requests
//! on their way than the server has room for, so nothing need be dropped for want of room. An answer is kept until its client has sent a
//! request that it may only send when it has that answer.
//!
//! A server that is started again knows nothing of before, and says so. What the client had sent to the one before and had no answer of
//! is then unknown: it may have been handled, or not. All else is sent to the new one.

pub mod client;
pub mod server;

#[cfg(test)]
mod tests;
