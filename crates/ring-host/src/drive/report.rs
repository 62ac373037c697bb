//! What was tried, found and chosen, and why: kept so that it can be read afterwards.

use crate::device::image::Loaded;
use crate::device::platform::WslSign;
use crate::device::probe::{Lack, Probe, QuickPages};
use crate::error::{DriverError, NoPinned, Obstacle, Refusal};
use crate::mode::{Memory, Mode};
use std::fmt;
use std::time::Duration;

/// Who asked for a mode and a memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum AskedBy {
    /// Nobody: what works best is taken.
    Nobody,
    /// The launch.
    Launch,
    /// The environment ([`MODE_VARIABLE`](crate::MODE_VARIABLE), [`MEMORY_VARIABLE`](crate::MEMORY_VARIABLE)).
    Environment {
        /// Whether it forces the mode.
        mode: bool,
        /// Whether it forces the memory.
        memory: bool,
    },
    /// The runtime itself, to find out whether it works.
    Probe,
}

impl fmt::Display for AskedBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            AskedBy::Nobody => "the best that works",
            AskedBy::Launch => "asked for",
            AskedBy::Environment { mode: true, memory: true } => {
                "forced by RING_MODE and RING_MEMORY"
            }
            AskedBy::Environment { mode: true, .. } => "forced by RING_MODE",
            AskedBy::Environment { .. } => "forced by RING_MEMORY",
            AskedBy::Probe => "tried by the runtime",
        })
    }
}

/// What was found out about a mode and a memory.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum Evidence {
    /// A resident kernel answered in so much time, in the median.
    Resident(Duration),
    /// A message took so long, by a graph and by a launch.
    Graph {
        /// By a graph.
        graph: Duration,
        /// By a launch.
        launch: Duration,
    },
    /// Graphs can be launched.
    Graphs,
    /// A message by launch took so long.
    Launch(Duration),
    /// Launches were not timed.
    NotTimed(Lack),
    /// It could not be told whether it works; it is tried.
    Doubt(Obstacle),
    /// Nothing yet.
    Nothing,
}

impl fmt::Display for Evidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Evidence::Resident(median) => write!(f, "a resident kernel answered in {median:.1?}"),
            Evidence::Graph { graph, launch } => {
                write!(f, "a message by graph took {graph:.1?}, by launch {launch:.1?}")
            }
            Evidence::Graphs => f.write_str("graphs can be launched"),
            Evidence::Launch(launch) => write!(f, "a message by launch took {launch:.1?}"),
            Evidence::NotTimed(lack) => write!(f, "launches were not timed: {lack}"),
            Evidence::Doubt(obstacle) => write!(f, "it is tried although {obstacle}"),
            Evidence::Nothing => f.write_str("nothing is known yet"),
        }
    }
}

/// Why a mode and a memory were taken.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Why {
    /// Who asked for them.
    pub asked: AskedBy,
    /// What was found out about them.
    pub found: Evidence,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.asked, self.found)
    }
}

/// How a kernel is run, and why so.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Selection {
    /// The mode; never `Auto`.
    pub mode: Mode,
    /// The memory; never `Auto`.
    pub memory: Memory,
    /// Why these.
    pub why: Why,
    /// What would have been taken before them, and why it was not.
    pub refused: Vec<Refusal>,
}

impl fmt::Display for Selection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} in {} memory ({})", self.mode, self.memory, self.why)?;
        self.refused.iter().try_for_each(|refusal| write!(f, "; not {refusal}"))
    }
}

/// A change of mode or memory after an operation failed while the kernel ran.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Fallback {
    /// Mode and memory before.
    pub from: (Mode, Memory),
    /// Mode and memory since.
    pub to: (Mode, Memory),
    /// What failed.
    pub why: DriverError,
}

impl fmt::Display for Fallback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (from, to) = (self.from, self.to);
        write!(f, "{} in {} memory, then {} in {}: {}", from.0, from.1, to.0, to.1, self.why)
    }
}

/// What the environment forces upon every launch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Forced {
    /// By [`MODE_VARIABLE`](crate::MODE_VARIABLE).
    pub mode: Option<Mode>,
    /// By [`MEMORY_VARIABLE`](crate::MEMORY_VARIABLE).
    pub memory: Option<Memory>,
}

impl Forced {
    /// Whether it forces nothing.
    pub fn is_empty(&self) -> bool {
        *self == Forced::default()
    }
}

/// What was found out when a device was opened, and what `Auto` chooses from it.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Report {
    /// Signs that this is WSL2. They word reports, and decide nothing.
    pub wsl: Vec<WslSign>,
    /// As what the device loaded the runtime's kernels
    /// ([`RuntimeConfig::kernels`](crate::RuntimeConfig::kernels)).
    pub loaded: Loaded,
    /// Bytes of pinned memory that were had, or why none were.
    pub pinned: Result<usize, NoPinned>,
    /// Whether the device reads some pages of pinned memory sooner than others, so that request lines lie there.
    pub quick_pages: QuickPages,
    /// What the probe found.
    pub probe: Probe,
    /// What the environment forces.
    pub forced: Forced,
    /// What `Auto` chooses for a kernel that uses payload; or why nothing serves.
    pub selection: Result<Selection, Vec<Refusal>>,
}
