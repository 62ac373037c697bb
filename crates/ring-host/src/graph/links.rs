//! What is told of a graph's links: where each lies, and why there.

use crate::device::NoPeer;
use std::fmt;

/// Where the rings of a link lie.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum LinkPath {
    /// In the memory of the device that both kernels are on.
    Device,
    /// From one device to another: line and slots in the memory of the one that reads, credit in that of the one that writes.
    Peer,
    /// From one device to another, in pinned memory, because one does not reach the memory of the other.
    Pinned(NoPeer),
    /// In pinned memory: the host reads it.
    Host,
}

impl fmt::Display for LinkPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LinkPath::Device => f.write_str("in the device's memory"),
            LinkPath::Peer => f.write_str("in the memory of both devices"),
            LinkPath::Pinned(why) => write!(f, "in pinned memory: {why}"),
            LinkPath::Host => f.write_str("in pinned memory, to the host"),
        }
    }
}

/// A link of a launched graph.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct LinkInfo {
    /// The kernel that writes it, the number of its device, and its port.
    pub from: (&'static str, usize, &'static str),
    /// The kernel that reads it, and the number of its device; `None` if the host does.
    pub to: Option<(&'static str, usize)>,
    /// How many rings it has.
    pub rings: usize,
    /// Slots of each.
    pub slots: u32,
    /// Where they lie.
    pub path: LinkPath,
}

impl fmt::Display for LinkInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kernel, device, port) = self.from;
        write!(f, "{kernel}.{port} on device {device} -> ")?;
        match self.to {
            Some((kernel, device)) => write!(f, "{kernel} on device {device}")?,
            None => f.write_str("host")?,
        }
        write!(f, ": {} rings of {} slots, {}", self.rings, self.slots, self.path)
    }
}
