//! The part of Perfetto's format that is written: its messages, with those of their fields that are set. A trace is a `Trace`, whose
//! packets may be written one behind the other.

/// The file.
#[cfg(test)]
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Trace {
    #[prost(message, repeated, tag = "1")]
    pub packets: Vec<TracePacket>,
}

/// The key of a packet in it: field 1, with its length before it.
pub(super) const PACKET_KEY: u8 = 1 << 3 | 2;

/// A track, an event, or neither.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct TracePacket {
    /// In nanoseconds.
    #[prost(uint64, optional, tag = "8")]
    pub timestamp: Option<u64>,
    /// Who wrote it: packets of one writer are in order.
    #[prost(uint32, optional, tag = "10")]
    pub trusted_packet_sequence_id: Option<u32>,
    #[prost(message, optional, tag = "11")]
    pub track_event: Option<TrackEvent>,
    /// [`STATE_CLEARED`] in the first.
    #[prost(uint32, optional, tag = "13")]
    pub sequence_flags: Option<u32>,
    #[prost(message, optional, tag = "60")]
    pub track_descriptor: Option<TrackDescriptor>,
    #[prost(bool, optional, tag = "87")]
    pub first_packet_on_sequence: Option<bool>,
}

/// What follows relies on nothing before.
pub(super) const STATE_CLEARED: u32 = 1;

/// A track, by its number.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct TrackDescriptor {
    #[prost(uint64, optional, tag = "1")]
    pub uuid: Option<u64>,
    #[prost(string, optional, tag = "2")]
    pub name: Option<String>,
    #[prost(uint64, optional, tag = "5")]
    pub parent_uuid: Option<u64>,
    /// How the tracks below it are ordered.
    #[prost(int32, optional, tag = "11")]
    pub child_ordering: Option<i32>,
    /// Its place among the tracks of the same parent.
    #[prost(int32, optional, tag = "12")]
    pub sibling_order_rank: Option<i32>,
    /// Whether it is shown together with others of the same name.
    #[prost(int32, optional, tag = "15")]
    pub sibling_merge_behavior: Option<i32>,
}

/// By their ranks.
pub(super) const EXPLICIT: i32 = 3;

/// It is not.
pub(super) const NO_MERGE: i32 = 2;

/// The begin or the end of a slice, or an instant.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct TrackEvent {
    #[prost(message, repeated, tag = "4")]
    pub debug_annotations: Vec<DebugAnnotation>,
    #[prost(enumeration = "EventType", optional, tag = "9")]
    pub r#type: Option<i32>,
    #[prost(uint64, optional, tag = "11")]
    pub track_uuid: Option<u64>,
    #[prost(string, optional, tag = "23")]
    pub name: Option<String>,
    #[prost(fixed64, repeated, packed = "false", tag = "47")]
    pub flow_ids: Vec<u64>,
    #[prost(fixed64, repeated, packed = "false", tag = "48")]
    pub terminating_flow_ids: Vec<u64>,
}

/// What an event is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, prost::Enumeration)]
pub(super) enum EventType {
    Unspecified = 0,
    SliceBegin = 1,
    SliceEnd = 2,
    Instant = 3,
}

/// A number that is shown with an event.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct DebugAnnotation {
    #[prost(int64, optional, tag = "4")]
    pub int_value: Option<i64>,
    #[prost(string, optional, tag = "10")]
    pub name: Option<String>,
}
