//! What was tried, found and chosen, and why: kept so that it can be read afterwards.

use crate::device::platform::WslSign;
use crate::drive::mode::{Memory, Mode};
use crate::runtime::probe::Probe;
use std::fmt;

/// A mode and a memory that were not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The mode.
    pub mode: Mode,
    /// The memory.
    pub memory: Memory,
    /// Why not.
    pub why: String,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} in {} memory: {}", self.mode, self.memory, self.why)
    }
}

/// How a kernel is run, and why so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The mode; never `Auto`.
    pub mode: Mode,
    /// The memory; never `Auto`.
    pub memory: Memory,
    /// Why these.
    pub why: String,
    /// What would have been taken before them, and why it was not.
    pub refused: Vec<Refusal>,
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} in {} memory ({})", self.mode, self.memory, self.why)?;
        self.refused.iter().try_for_each(|refusal| write!(f, "; not {refusal}"))
    }
}

/// A change of mode or memory after an operation failed while the kernel ran.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Mode and memory before.
    pub from: (Mode, Memory),
    /// Mode and memory since.
    pub to: (Mode, Memory),
    /// What failed.
    pub why: String,
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (from, to) = (self.from, self.to);
        write!(f, "{} in {} memory, then {} in {}: {}", from.0, from.1, to.0, to.1, self.why)
    }
}

/// What was found out when a device was opened, and what `Auto` chooses from it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Report {
    /// Signs that this is WSL2. They word reports, and decide nothing.
    pub wsl: Vec<WslSign>,
    /// Bytes of pinned memory that were had, or why none were.
    pub pinned: Result<usize, String>,
    /// What the probe found.
    pub probe: Probe,
    /// What the environment forces: variable and value.
    pub forced: Vec<(&'static str, String)>,
    /// What `Auto` chooses for a kernel that uses payload; or why nothing serves.
    pub choice: Result<Choice, String>,
}
