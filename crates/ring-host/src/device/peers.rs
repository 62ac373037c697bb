//! Whether kernels of one device reach the memory of another one.

use crate::error::DriverError;

/// Why kernels of a device do not reach the memory of another one. Links between the two go by pinned memory then.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoPeer {
    /// One is a GPU, and the other is CPU threads.
    #[error("a GPU and CPU threads have no memory of a device in common")]
    Kinds,
    /// The driver says that the two GPUs are no peers: nothing connects them, or a virtual machine hides it.
    #[error("the driver says that the two GPUs are no peers")]
    Apart,
    /// It says that they are, and does not let one reach the other.
    #[error("the driver does not let one reach the other: {0}")]
    Refused(DriverError),
    /// It was taken away, by [`Quirks`](crate::device::Quirks) if the feature is on.
    #[error("it was taken away")]
    TakenAway,
}
