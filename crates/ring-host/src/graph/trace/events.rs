//! What the trace of a graph tells: which messages were sent, handled and received, and when.

/// Messages side by side in a ring of a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct RingMessages {
    /// The ring, by its place among [`GraphTrace::rings`](crate::GraphTrace::rings).
    pub ring: usize,
    /// The first of them, counted from the launch.
    pub first: u64,
    /// How many there are.
    pub n: u32,
}

/// A ring of a graph: from a channel of a kernel, or the host, to one of another kernel, or the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct TracedRing {
    /// The kernel whose channel writes it, by its place among [`GraphTrace::kernels`](crate::GraphTrace::kernels), the channel, and its
    /// port; `None` if the host does.
    pub from: Option<(usize, u32, &'static str)>,
    /// The kernel whose channel reads it, and the channel; `None` if the host does.
    pub to: Option<(usize, u32)>,
}

/// A kernel of a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct TracedNode {
    /// Its name.
    pub name: &'static str,
    /// Its channels.
    pub channels: u32,
}

/// What has happened to messages of a graph. Times are nanoseconds since the [trace's zero](crate::GraphTrace::epoch), by the host's clock.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum GraphEvent {
    /// The host has sent messages: they were handed then to the call that sent them, or to the last of several that tried to.
    Sent {
        /// Which.
        messages: RingMessages,
        /// When.
        at: i64,
    },
    /// A kernel has handled messages.
    Handled(HandledMessages),
    /// The host has received messages: the call that received them had them then.
    Received {
        /// Which.
        messages: RingMessages,
        /// When.
        at: i64,
    },
}

/// Messages that a channel of a kernel has handled together, and what its handlers have emitted for them.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct HandledMessages {
    /// The kernel, by its place among [`GraphTrace::kernels`](crate::GraphTrace::kernels).
    pub kernel: usize,
    /// The channel.
    pub channel: u32,
    /// What it took.
    pub taken: RingMessages,
    /// When a look began that did not show them, or not the first of them, the last one before the handlers began: so long they waited at
    /// most. It may be off by more than the others are, by a 64th of how long it lies before them.
    pub unseen: i64,
    /// When the handlers began.
    pub began: i64,
    /// When the handlers ended. What they have emitted is sent behind that.
    pub ended: i64,
    /// How far `began` and `ended` may be off, at most: in nanoseconds.
    pub error: i64,
    /// What was emitted: of each ring that got any.
    pub emitted: Vec<RingMessages>,
}
