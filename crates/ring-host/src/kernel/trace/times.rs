//! When a message was sent, handled and received.

/// When a message was sent, handled and received. Times are nanoseconds since the [trace's zero](crate::Trace::epoch), by the host's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct MessageTimes {
    /// The channel.
    pub channel: u32,
    /// The message, counted from the launch.
    pub index: u64,
    /// When it was handed to the call that sent it, or to the last of several that tried to. `None` if the record was overwritten.
    pub accepted: Option<i64>,
    /// What the device did, and when. `None` if the record was overwritten.
    pub device: Option<DeviceTimes>,
    /// When the call that received the response had it.
    pub received: i64,
}

/// What a device did with a message, and when: by its own clock, mapped to the host's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct DeviceTimes {
    /// When the last look began that did not show the message, or one before it: so long it waited at most. It may be off by more than the
    /// others are, by a 64th of how long it lies before them.
    pub unseen: i64,
    /// When the handler began.
    pub began: i64,
    /// When the handler ended. The response is written behind it.
    pub ended: i64,
    /// How far `began` and `ended` may be off, at most: in nanoseconds.
    pub error: i64,
    /// Messages that were handled together with it, itself included.
    pub together: u32,
    /// The first of these, counted from the launch.
    pub first: u64,
}
