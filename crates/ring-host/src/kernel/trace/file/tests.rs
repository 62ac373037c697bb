use super::TraceFile;
use super::format::{DebugAnnotation, EventType, Trace, TrackDescriptor};
use super::lanes::MOST_LANES;
use super::packets::{LAST, MOST_KEPT, OFFSET};
use crate::kernel::trace::times::{DeviceTimes, MessageTimes};
use prost::Message as _;
use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Write};

/// A message of channel 0, sent 100 ns before it was handled and received 100 ns after that, in a batch of so many; all have as many.
fn message(index: u64, began: i64, ended: i64, together: u32) -> MessageTimes {
    let first = index - index % u64::from(together);
    let device = DeviceTimes { unseen: began - 30, began, ended, error: 5, together, first };
    MessageTimes {
        channel: 0,
        index,
        accepted: Some(began - 100),
        device: Some(device),
        received: ended + 100,
    }
}

/// An event as it is read: its track's path, what it is, its name, its time less the offset, where its flows go on and end.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Event {
    pub track: String,
    pub kind: EventType,
    pub name: String,
    pub at: i64,
    pub flows: Vec<u64>,
    pub ends: Vec<u64>,
    pub notes: Vec<(String, i64)>,
}

/// What was written.
#[derive(Debug)]
pub(super) struct Read {
    pub tracks: BTreeMap<u64, TrackDescriptor>,
    /// In the order in the file.
    pub in_file: Vec<Event>,
    /// In the order in which Perfetto takes them: where times are equal, that in the file counts.
    pub events: Vec<Event>,
}

pub(super) fn read(bytes: &[u8]) -> Read {
    let Trace { packets } = Trace::decode(bytes).unwrap();
    let first = &packets[0];
    assert_eq!((first.sequence_flags, first.first_packet_on_sequence), (Some(1), Some(true)));
    let mut found = Read { tracks: BTreeMap::new(), in_file: Vec::new(), events: Vec::new() };
    for packet in &packets[1..] {
        assert_eq!(packet.trusted_packet_sequence_id, Some(1));
        assert_eq!((packet.sequence_flags, packet.first_packet_on_sequence), (None, None));
        if let Some(track) = &packet.track_descriptor {
            assert!(track.parent_uuid.is_none_or(|parent| found.tracks.contains_key(&parent)));
            assert!(found.tracks.insert(track.uuid.unwrap(), track.clone()).is_none());
        }
        let Some(event) = &packet.track_event else { continue };
        let note = |DebugAnnotation { name, int_value }: &DebugAnnotation| {
            (name.clone().unwrap(), int_value.unwrap())
        };
        found.in_file.push(Event {
            track: path(&found.tracks, event.track_uuid.unwrap()),
            kind: event.r#type(),
            name: event.name().to_owned(),
            at: i64::try_from(packet.timestamp()).unwrap() - OFFSET,
            flows: event.flow_ids.clone(),
            ends: event.terminating_flow_ids.clone(),
            notes: event.debug_annotations.iter().map(note).collect(),
        });
    }
    found.events = found.in_file.clone();
    found.events.sort_by_key(|event| event.at);
    found
}

pub(super) fn path(tracks: &BTreeMap<u64, TrackDescriptor>, track: u64) -> String {
    let track = &tracks[&track];
    let above = track.parent_uuid.map(|parent| path(tracks, parent) + "/");
    above.unwrap_or_default() + track.name()
}

/// What is written of messages of a kernel `k` of one channel.
fn written(messages: impl IntoIterator<Item = MessageTimes>) -> Read {
    let mut file = TraceFile::new(Vec::new()).unwrap();
    let kernel = file.kernel("k", 1).unwrap();
    messages.into_iter().for_each(|message| file.message(kernel, &message).unwrap());
    read(&file.finish().unwrap())
}

impl Read {
    /// Slices, each by its track and its times. Each begin is followed in the file by its end.
    pub fn slices(&self) -> Vec<(String, i64, i64, Event)> {
        let device = self.in_file.iter().filter(|event| event.kind != EventType::Instant);
        let device: Vec<_> = device.collect();
        let slice = |pair: &[&Event]| {
            let [begin, end] = pair else { panic!("{pair:?}") };
            assert_eq!((begin.kind, end.kind), (EventType::SliceBegin, EventType::SliceEnd));
            assert_eq!((&begin.track, end.name.as_str()), (&end.track, ""));
            assert!(begin.at <= end.at, "{pair:?}");
            let track = begin.track.rsplit('/').next().unwrap().to_owned();
            (track, begin.at, end.at, (*begin).clone())
        };
        device.chunks(2).map(slice).collect()
    }
}

#[test]
fn kernels_have_channels_and_these_have_tracks_in_order() {
    let mut file = TraceFile::new(Vec::new()).unwrap();
    let kernels = ["one", "two", "one"].map(|name| file.kernel(name, 2).unwrap());
    assert_ne!(kernels[0], kernels[2]);
    let times = MessageTimes { channel: 1, ..message(0, 500, 600, 1) };
    file.message(kernels[1], &times).unwrap();
    let found = read(&file.finish().unwrap());
    let paths: Vec<_> = found.tracks.keys().map(|track| path(&found.tracks, *track)).collect();
    let of = |kernel: &str| {
        let below = ["", "/channel 0", "/channel 0/host sends", "/channel 0/host receives"];
        let below = below.iter().chain(&["/channel 1"]);
        let below = below.chain(&["/channel 1/host sends", "/channel 1/host receives"]);
        below.map(|below| format!("{kernel}{below}")).collect::<Vec<_>>()
    };
    let lane = vec!["two/channel 1/device 0".to_owned()];
    assert_eq!(paths, [of("one"), of("two"), of("one"), lane].concat());
    let ranks: Vec<_> =
        found.tracks.values().map(TrackDescriptor::sibling_order_rank).skip(7).collect();
    assert_eq!(ranks[..7], [1, 0, 0, LAST, 1, 0, LAST]);
    assert_eq!(ranks.last(), Some(&1), "between what was sent and what was received");
    let tracks: Vec<_> = found.events.iter().map(|event| &*event.track).collect();
    let [sent, device, received] =
        ["host sends", "device 0", "host receives"].map(|name| format!("two/channel 1/{name}"));
    assert_eq!(tracks, [&*sent, &device, &device, &received]);
}

#[test]
fn a_message_is_a_send_a_slice_and_a_receive_with_a_flow() {
    let found = written([message(7, 500, 600, 1)]);
    let of = |name: &str, track: &str, kind, at| Event {
        track: format!("k/channel 0/{track}"),
        kind,
        name: name.to_owned(),
        at,
        flows: Vec::new(),
        ends: Vec::new(),
        notes: vec![("message".to_owned(), 7)],
    };
    let instant = EventType::Instant;
    let send = Event { flows: vec![1], ..of("send", "host sends", instant, 400) };
    let mut begin =
        Event { flows: vec![1], ..of("handle", "device 0", EventType::SliceBegin, 500) };
    begin.notes.extend([("error_ns".to_owned(), 5), ("waited_ns".to_owned(), 30)]);
    let end = Event { notes: Vec::new(), ..of("", "device 0", EventType::SliceEnd, 600) };
    let receive = Event { ends: vec![1], ..of("receive", "host receives", instant, 700) };
    assert_eq!(found.events, [send, begin, end, receive]);
}

#[test]
fn what_is_not_known_is_left_out() {
    let all = message(0, 500, 600, 1);
    let unsent = MessageTimes { accepted: None, ..all };
    let unhandled = MessageTimes { device: None, index: 1, received: 800, ..all };
    let neither = MessageTimes { accepted: None, index: 2, received: 900, ..unhandled };
    let found = written([unsent, unhandled, neither]);
    let events = found.events.iter();
    let events: Vec<_> =
        events.map(|event| (&*event.name, &event.flows[..], &event.ends[..])).collect();
    let expected: [(_, &[u64], &[u64]); 6] = [
        ("send", &[2], &[]),
        ("handle", &[1], &[]),
        ("", &[], &[]),
        ("receive", &[], &[1]),
        ("receive", &[], &[2]),
        // A flow that nothing begins must not end.
        ("receive", &[], &[]),
    ];
    assert_eq!(events, expected);
}

#[test]
fn a_batch_is_one_slice_and_its_messages_have_their_own_flows() {
    // The estimates of its times differ from message to message.
    let batch = (0..32).map(|i| message(i, 500 + i as i64 % 5, 600 - i as i64 % 5, 32));
    let next = (32..40).map(|i| message(i, 500, 600, 8));
    let at_once = |times| MessageTimes { accepted: Some(400), received: 700, ..times };
    let found = written(batch.chain(next).map(at_once));
    let slices = found.slices();
    let [first, second] = &slices[..] else { panic!("{slices:?}") };
    assert_eq!((&*first.3.name, &*second.3.name), ("handle 32", "handle 8"));
    assert_eq!((first.1, first.2), (501, 599), "as the last message says");
    assert_eq!(first.3.flows, Vec::from_iter(1..=32));
    assert_eq!(second.3.flows, Vec::from_iter(33..=40));
    assert_eq!(first.3.notes[0], ("message".to_owned(), 0));
    assert_eq!(second.3.notes[0], ("message".to_owned(), 32));
    // What was sent or received at the same moment is one event.
    let names: Vec<_> = found.events.iter().map(|event| &*event.name).collect();
    assert_eq!(names, ["send 40", "handle 8", "handle 32", "", "", "receive 40"]);
    assert_eq!(found.events[0].flows, Vec::from_iter(1..=40));
    assert_eq!(found.events[5].ends, Vec::from_iter(1..=40));
}

#[test]
fn where_all_is_at_the_same_time_sends_come_first_and_receives_last() {
    let times = |i, together| {
        let times = message(i, 500, 500, together);
        MessageTimes { accepted: Some(500), received: 500, ..times }
    };
    let unhandled = MessageTimes { device: None, ..times(3, 1) };
    let found = written([times(0, 2), times(1, 2), times(2, 1), unhandled]);
    let mut open = Vec::new();
    let mut ended = 0;
    for event in &found.in_file {
        match event.kind {
            EventType::SliceBegin => {
                assert!(event.flows.iter().all(|flow| open.contains(flow)), "{event:?}");
            }
            _ => open.extend(&event.flows),
        }
        open.retain(|flow| !event.ends.contains(flow));
        ended += event.ends.len();
    }
    assert_eq!((ended, open), (4, vec![]));
    assert_eq!(found.slices().len(), 2);
}

#[test]
fn batches_end_where_messages_are_missing_or_another_begins() {
    let flows = |messages: Vec<MessageTimes>| {
        let slices = written(messages).slices();
        slices.into_iter().map(|(.., event)| event.flows.len()).collect::<Vec<_>>()
    };
    let part = |index, first, together| {
        let mut times = message(index, 500, 600, together);
        times.device.as_mut().unwrap().first = first;
        times
    };
    let batch = |first: u64| (first..first + 4).map(move |i| part(i, first, 4));
    assert_eq!(flows(batch(0).chain(batch(4)).collect()), [4, 4], "at the same time");
    assert_eq!(flows(batch(0).chain(batch(7)).collect()), [4, 4]);
    assert_eq!(flows(batch(0).take(3).chain(batch(4)).collect()), [3, 4]);
    assert_eq!(flows(batch(0).take(2).chain(batch(4).skip(1)).collect()), [2, 3]);
    assert_eq!(flows(vec![part(0, 0, 4), part(1, 1, 5)]), [1, 1]);
    // One whose device's record is missing belongs to none.
    let unknown = MessageTimes { device: None, ..part(9, 9, 4) };
    assert_eq!(flows(vec![part(0, 0, 4), unknown, part(1, 0, 4)]), [2]);
}

#[test]
fn a_slice_that_overlaps_goes_on_the_next_track() {
    let times =
        [(500, 600), (550, 650), (600, 700), (640, 660), (650, 650), (650, 650), (100, 120)];
    let messages = (0..).zip(times).map(|(i, (began, ended))| message(i, began, ended, 1));
    let slices = written(messages).slices();
    let lanes: Vec<_> = slices.iter().map(|(track, ..)| &track["device ".len()..]).collect();
    assert_eq!(lanes, ["0", "1", "0", "2", "1", "1", "3"]);
    let kept: Vec<_> = slices.iter().map(|(_, began, ended, _)| (*began, *ended)).collect();
    assert_eq!(kept, times);
}

#[test]
fn beyond_so_many_tracks_slices_begin_later_and_say_so() {
    let most = MOST_LANES as i64;
    let overlapping = (0..=most).map(|i| message(i as u64, 500, 600 + i, 1));
    let found = written(overlapping);
    let slices = found.slices();
    let (track, began, ended, event) = slices.last().unwrap();
    assert_eq!((&**track, *began, *ended), ("device 0", 600, 600 + most));
    assert_eq!(event.notes.last(), Some(&("moved_ns".to_owned(), 100)));
    assert_eq!(found.tracks.len(), MOST_LANES + 4);
}

#[test]
fn of_a_batch_without_end_only_so_much_is_kept() {
    let n = MOST_KEPT as u64 + 10;
    let mut file = TraceFile::new(Vec::new()).unwrap();
    let kernel = file.kernel("k", 1).unwrap();
    for i in 0..n {
        file.message(kernel, &message(i, 500, 600, u32::MAX)).unwrap();
        let batch = file.kernels[0][0].batch.as_ref().unwrap();
        assert!(batch.kept.len() < MOST_KEPT);
        let sent = file.kernels[0][0].sent.kept.as_ref().unwrap();
        assert!(sent.flows.len() <= MOST_KEPT);
    }
    let found = read(&file.finish().unwrap());
    let instants = found.events.iter().filter(|event| event.kind == EventType::Instant);
    let names: Vec<_> = instants.map(|event| &*event.name).collect();
    assert_eq!(names, ["send 4096", "send 10", "receive 4096", "receive 10"]);
    let slices = found.slices();
    let flows: Vec<_> = slices.iter().map(|(.., event)| event.flows.len()).collect();
    assert_eq!(flows, [MOST_KEPT, 10]);
    assert_eq!((&*slices[0].0, &*slices[1].0), ("device 0", "device 1"));
    assert!(slices.iter().all(|(.., event)| event.name == "handle 4294967295"));
}

#[test]
fn times_that_the_format_has_not_become_the_nearest() {
    let mut wild = message(0, -OFFSET, -OFFSET - 50, 1);
    (wild.accepted, wild.received) = (Some(i64::MIN), i64::MAX);
    let found = written([wild]);
    let times: Vec<_> = found.events.iter().map(|event| event.at).collect();
    assert_eq!(times, [-OFFSET, -OFFSET, -OFFSET, i64::MAX - OFFSET]);
}

#[test]
fn a_channel_that_was_not_declared_is_an_error() {
    let mut file = TraceFile::new(Vec::new()).unwrap();
    let kernel = file.kernel("k", 1).unwrap();
    let mut other = TraceFile::new(Vec::new()).unwrap();
    let known = MessageTimes { channel: 1, ..message(0, 500, 600, 1) };
    let error = file.message(kernel, &known).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert_eq!(error.to_string(), "a message of channel 1 of a kernel with 1 channels");
    let error = other.message(kernel, &known).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
}

/// A file on a disk with room for so many bytes, and perhaps not for what it keeps.
struct Full {
    room: usize,
    flushes: bool,
}

impl Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.room.min(bytes.len()) {
            0 => Err(ErrorKind::StorageFull.into()),
            n => {
                self.room -= n;
                Ok(n)
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.flushes { Ok(()) } else { Err(ErrorKind::StorageFull.into()) }
    }
}

#[test]
fn errors_of_the_writer_are_passed_on_wherever_they_come() {
    let write = |writer: Full| {
        let mut file = TraceFile::new(writer)?;
        let kernel = file.kernel("k", 1)?;
        for i in 0..3 {
            file.message(kernel, &message(i, 500, 600, 4))?;
        }
        file.finish().map(|Full { room, .. }| room)
    };
    let much = 1 << 20;
    let all = much - write(Full { room: much, flushes: true }).unwrap();
    assert!(all > 100);
    for room in 0..all {
        let error = write(Full { room, flushes: true }).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::StorageFull, "{room}");
    }
    assert_eq!(write(Full { room: all, flushes: true }).unwrap(), 0);
    assert!(write(Full { room: all, flushes: false }).is_err());
}
