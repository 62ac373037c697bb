//! What can be wrong with a kernel's code.

use crate::error::DriverError;

/// What is wrong with a PTX.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ImageError {
    /// No bytes.
    #[error("the PTX is empty")]
    Empty,
    /// Not PTX text.
    #[error("this is not PTX: {0}")]
    NotPtx(NotPtx),
    /// Built against another ring-device.
    #[error(
        "the PTX has ABI version {found}, but this host has {}; rebuild it",
        ring_shared::ABI_VERSION
    )]
    Abi {
        /// The version found.
        found: u32,
    },
    /// Says no ABI version.
    #[error("the PTX does not define RING_ABI_VERSION; build it against ring-device")]
    NoAbi,
    /// No such entry.
    #[error(
        "the PTX has no entry '{entry}'; it has: {}; a kernel of your own is launched with its own \
         PTX (LaunchConfig::kernels)",
        listed(has)
    )]
    NoEntry {
        /// The entry asked for.
        entry: &'static str,
        /// Those it has.
        has: Vec<String>,
    },
    /// The entry takes something else than one address.
    #[error("the entry '{entry}' must have one parameter of 8 bytes; it has another signature")]
    Signature {
        /// The entry.
        entry: String,
    },
    /// It is not loaded, and loading blocks until no kernel is resident.
    #[error(
        "the PTX is not loaded yet, and the driver loads nothing while kernels are resident \
         ({resident} are); call Runtime::prepare before the first launch, or terminate them"
    )]
    Busy {
        /// Kernels resident in this process.
        resident: usize,
    },
    /// A driver call failed, whatever the PTX is.
    #[error(transparent)]
    Driver(#[from] DriverError),
    /// The driver could not compile it.
    #[error("the driver refused the PTX ({code}): {log}")]
    Refused {
        /// The driver's code.
        code: i32,
        /// What its compiler said.
        log: String,
    },
}

/// Why bytes are no PTX.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotPtx {
    /// They are no UTF-8.
    #[error("it is not text")]
    NotText,
    /// A driver would read no further.
    #[error("it contains a NUL byte")]
    Nul,
    /// PTX begins with them.
    #[error("it lacks a .version or a .target directive")]
    NoDirective,
}

/// The names, or "none".
fn listed(names: &[String]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}
