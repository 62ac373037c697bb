//! A kernel of scope `Grid` on several devices: a grid on each, which handle each message together.

mod handle;
mod launch;

pub use handle::Grids;
