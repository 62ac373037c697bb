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

/// What has gone through a link of a launched graph. Each kernel says it of its ends now and then, some 100 us apart, and exactly
/// when it is inactive; what the host receives is known at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct LinkTraffic {
    /// The kernel that writes it, and its port.
    pub from: (&'static str, &'static str),
    /// The kernel that reads it; `None` if the host does.
    pub to: Option<&'static str>,
    /// Messages that were sent: one that goes to several rings counts once for each.
    pub sent: u64,
    /// Messages that were taken.
    pub taken: u64,
    /// Messages that lie in its rings.
    pub waiting: u64,
    /// Messages that lie in the fullest of its rings. If these are as many as the [slots](Self::slots), or nearly so, the kernel that writes
    /// waits for the one that reads.
    pub fullest: u64,
    /// Slots of each ring.
    pub slots: u32,
    /// How often the kernel that writes waited for the one that reads: a channel had a message to handle, and there was no room in a ring for
    /// what its handler may emit. As long as the channel sends nothing there it counts once.
    pub stalls: u64,
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
