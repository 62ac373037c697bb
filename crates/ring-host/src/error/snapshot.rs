//! Errors of snapshots and of kernels that are launched again.

use super::{ControlError, DeviceFault, LaunchError, RecoverError, StateError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Why a snapshot was not written to a file, or not read from one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SnapshotFileError {
    /// The operating system refused it.
    #[error("the snapshot {} cannot be {doing}: {message}", path.display())]
    Io {
        /// Of the snapshot.
        path: PathBuf,
        /// `written` or `read`.
        doing: &'static str,
        /// What kind of error it was, as [`StorageFull`](io::ErrorKind::StorageFull).
        kind: io::ErrorKind,
        /// What the system said.
        message: String,
    },
    /// It is another kind of file.
    #[error("{} is no snapshot: it does not begin as one does", path.display())]
    NoSnapshot {
        /// Of the file.
        path: PathBuf,
    },
    /// It was written by a version of ring-host that lays out such files in another way.
    #[error("the snapshot {} has format {found}, and this ring-host reads format {own}", path.display())]
    Format {
        /// Of the file.
        path: PathBuf,
        /// Its format.
        found: u32,
        /// The one that is read.
        own: u32,
    },
    /// It is of kernels of another ABI.
    #[error("the snapshot {} is of ABI {found}, and this ring-host has ABI {own}", path.display())]
    Abi {
        /// Of the file.
        path: PathBuf,
        /// Its ABI.
        found: u32,
        /// This ring-host's.
        own: u32,
    },
    /// It is of another kernel.
    #[error("the snapshot {} is of kernel {found}, and was to be of {own}", path.display())]
    Kernel {
        /// Of the file.
        path: PathBuf,
        /// The name of its kernel.
        found: String,
        /// The one that was asked for.
        own: &'static str,
    },
    /// It is of a graph that is declared in another way.
    #[error("the snapshot {} is of a graph of {found} {what}, and this one has {own}", path.display())]
    Graph {
        /// Of the file.
        path: PathBuf,
        /// What there are more or fewer of.
        what: &'static str,
        /// How many there are in the file.
        found: u32,
        /// How many the graph has.
        own: u32,
    },
    /// Its state means something else.
    #[error("the snapshot {} has version {found}, and version {own} was asked for", path.display())]
    Version {
        /// Of the file.
        path: PathBuf,
        /// Its version.
        found: u32,
        /// The one that was asked for.
        own: u32,
    },
    /// Its state is of another type.
    #[error("the snapshot {} has a state of {found} bytes, and the kernel's has {own}", path.display())]
    StateBytes {
        /// Of the file.
        path: PathBuf,
        /// Bytes of its state.
        found: u64,
        /// Bytes of the kernel's.
        own: u64,
    },
    /// It ends too early.
    #[error("the snapshot {} is cut short", path.display())]
    Short {
        /// Of the file.
        path: PathBuf,
    },
    /// It goes on behind its end.
    #[error("the snapshot {} has more bytes than it should", path.display())]
    Long {
        /// Of the file.
        path: PathBuf,
    },
    /// Its bytes are not those that were written.
    #[error("the snapshot {} is damaged: its checksum is another, or a number in it cannot be", path.display())]
    Damaged {
        /// Of the file.
        path: PathBuf,
    },
}

impl SnapshotFileError {
    #[cold]
    pub(crate) fn io(doing: &'static str, path: &Path, error: &io::Error) -> SnapshotFileError {
        let (path, kind, message) = (path.to_path_buf(), error.kind(), error.to_string());
        SnapshotFileError::Io { path, doing, kind, message }
    }
}

/// Why a kernel or a graph did not get the states of a snapshot.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RestoreError {
    /// The snapshot is of a launch with more or fewer channels.
    #[error("the snapshot is of {found} channels, and kernel {kernel} was launched with {own}")]
    Channels {
        /// The kernel.
        kernel: &'static str,
        /// Channels of the snapshot.
        found: u32,
        /// Channels of the kernel.
        own: u32,
    },
    /// The snapshot is of another graph.
    #[error(
        "the snapshot is of another graph: take it of this one, or load it with the `GraphBuilder` that this one was launched from"
    )]
    OtherGraph,
    /// A state was not written.
    #[error(transparent)]
    State(#[from] StateError),
}

/// Why a [`Supervisor`](crate::Supervisor) has no kernel that answers.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RestartError {
    /// Nothing is wrong with it.
    #[error("kernel {kernel} is not lost, and goes on")]
    NotLost {
        /// The kernel.
        kernel: &'static str,
    },
    /// It was lost, and is not launched again yet.
    #[error(transparent)]
    Lost(DeviceFault),
    /// It was lost too often.
    #[error(
        "{fault}; it was launched again {restarts} times within {within:?}, which is all that was allowed"
    )]
    GaveUp {
        /// What happened last.
        fault: DeviceFault,
        /// How often it had been launched again.
        restarts: u32,
        /// Within which time.
        within: Duration,
    },
    /// The device does not serve again.
    #[error(transparent)]
    Recover(#[from] RecoverError),
    /// It was not launched.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// It did not get its state.
    #[error(transparent)]
    Restore(#[from] RestoreError),
    /// It was not activated.
    #[error(transparent)]
    Control(#[from] ControlError),
    /// No snapshot was taken.
    #[error(transparent)]
    Snapshot(#[from] StateError),
}
