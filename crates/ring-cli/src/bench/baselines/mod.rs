//! What the runtime is compared with, on the same GPU in the same run: plain kernels, launches,
//! graphs and copies, by raw driver calls on a stream of their own.
//!
//! None of it runs while a kernel of the runtime is resident: the driver blocks calls then.

pub mod between;
pub mod copies;
pub mod flag;
mod gpu;
pub mod head_tail;
pub mod launch;

pub use gpu::{Gpu, entries};
