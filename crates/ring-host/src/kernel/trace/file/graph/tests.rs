use crate::graph::trace::events::{
    GraphEvent, HandledMessages, RingMessages, TracedNode, TracedRing,
};
use crate::kernel::trace::file::TraceFile;
use crate::kernel::trace::file::format::{EventType, TrackDescriptor};
use crate::kernel::trace::file::lanes::MOST_LANES;
use crate::kernel::trace::file::packets::{LAST, MOST_KEPT};
use crate::kernel::trace::file::tests::{Event, Read, path, read};
use crate::kernel::trace::times::MessageTimes;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, ErrorKind, Write};

const fn node(name: &'static str, channels: u32) -> TracedNode {
    TracedNode { name, channels }
}

fn messages(ring: usize, first: u64, n: u32) -> RingMessages {
    RingMessages { ring, first, n }
}

fn sent(ring: usize, first: u64, n: u32, at: i64) -> GraphEvent {
    GraphEvent::Sent { messages: messages(ring, first, n), at }
}

fn received(ring: usize, first: u64, n: u32, at: i64) -> GraphEvent {
    GraphEvent::Received { messages: messages(ring, first, n), at }
}

/// What channel 0 of a kernel has done from `began` on for 100 ns.
fn handled<const N: usize>(
    kernel: usize,
    taken: RingMessages,
    began: i64,
    emitted: [RingMessages; N],
) -> GraphEvent {
    GraphEvent::Handled(HandledMessages {
        kernel,
        channel: 0,
        taken,
        unseen: began - 30,
        began,
        ended: began + 100,
        error: 5,
        emitted: emitted.into(),
    })
}

/// The host sends to `a` (ring 0), `a` to `b` (ring 1), and `b` to the host (ring 2).
const CHAIN: ([TracedNode; 2], [TracedRing; 3]) = (
    [node("a", 1), node("b", 1)],
    [
        TracedRing { from: None, to: Some((0, 0)) },
        TracedRing { from: Some((0, 0, "next")), to: Some((1, 0)) },
        TracedRing { from: Some((1, 0, "results")), to: None },
    ],
);

fn write<W: Write>(
    writer: W,
    (kernels, rings): (&[TracedNode], &[TracedRing]),
    events: &[GraphEvent],
) -> io::Result<W> {
    let mut file = TraceFile::new(writer)?;
    let graph = file.graph(kernels, rings)?;
    events.iter().try_for_each(|event| file.event(graph, event))?;
    file.finish()
}

/// What is written of the chain.
fn written(events: &[GraphEvent]) -> Read {
    read(&write(Vec::new(), (&CHAIN.0, &CHAIN.1), events).unwrap())
}

/// The arrows that Perfetto draws, by the tracks and the times of the events that they lead from and to, and how many are the same.
fn arrows(found: &Read) -> BTreeMap<(String, i64, String, i64), usize> {
    let mut open: BTreeMap<u64, &Event> = BTreeMap::new();
    let mut arrows = BTreeMap::new();
    for event in &found.events {
        for flow in &event.ends {
            let Some(from) = open.remove(flow) else { continue };
            let arrow = (from.track.clone(), from.at, event.track.clone(), event.at);
            *arrows.entry(arrow).or_default() += 1;
        }
        for flow in &event.flows {
            assert!(open.insert(*flow, event).is_none(), "{event:?}");
        }
    }
    arrows
}

/// Ids as a set, of which each is there once.
fn set(ids: &[u64]) -> BTreeSet<u64> {
    let set: BTreeSet<_> = ids.iter().copied().collect();
    assert_eq!(set.len(), ids.len());
    set
}

#[test]
fn a_graph_has_tracks_for_its_kernels_and_for_the_rings_of_the_host() {
    let kernels = [node("a", 2), node("b", 1)];
    let rings = [
        TracedRing { from: Some((1, 0, "results")), to: None },
        TracedRing { from: None, to: Some((0, 1)) },
        TracedRing { from: Some((0, 1, "next")), to: Some((1, 0)) },
        TracedRing { from: Some((0, 1, "errors")), to: None },
    ];
    let mut file = TraceFile::new(Vec::new()).unwrap();
    file.kernel("plain", 0).unwrap();
    let graphs = [&kernels[..], &kernels[..1]]
        .map(|kernels| file.graph(kernels, if kernels.len() == 2 { &rings } else { &[] }).unwrap());
    assert_ne!(graphs[0], graphs[1]);
    file.kernel("plain", 0).unwrap();
    let began = HandledMessages {
        kernel: 0,
        channel: 1,
        taken: messages(1, 0, 1),
        unseen: 0,
        began: 1,
        ended: 2,
        error: 0,
        emitted: Vec::new(),
    };
    file.event(graphs[0], &GraphEvent::Handled(began)).unwrap();
    let found = read(&file.finish().unwrap());
    let tracks = found.tracks.iter();
    let tracks: Vec<_> = tracks
        .map(|(id, track)| (path(&found.tracks, *id), TrackDescriptor::sibling_order_rank(track)))
        .collect();
    let expected = [
        ("plain", 0),
        ("a", 1),
        ("a/channel 0", 0),
        ("a/channel 1", 1),
        ("b", 2),
        ("b/channel 0", 0),
        ("b/channel 0/host receives results", LAST),
        ("a/channel 1/host sends", 0),
        ("a/channel 1/host receives errors", LAST),
        ("a", 3),
        ("a/channel 0", 0),
        ("a/channel 1", 1),
        ("plain", 4),
        ("a/channel 1/device 0", 1),
    ];
    let expected = expected.map(|(path, rank)| (path.to_owned(), rank));
    assert_eq!(tracks, expected);
}

#[test]
fn arrows_lead_from_send_to_slices_to_receive_in_whatever_order_events_are_told() {
    let events = [
        sent(0, 10, 2, 0),
        sent(0, 12, 1, 0),
        handled(0, messages(0, 10, 3), 200, [messages(1, 20, 2)]),
        handled(1, messages(1, 20, 1), 400, [messages(2, 30, 1)]),
        handled(1, messages(1, 21, 1), 600, []),
        received(2, 30, 1, 800),
    ];
    let [a, b] = ["a/channel 0/device 0", "b/channel 0/device 0"].map(str::to_owned);
    let sends = "a/channel 0/host sends".to_owned();
    let receives = "b/channel 0/host receives results".to_owned();
    let expected = BTreeMap::from([
        ((sends.clone(), 0, a.clone(), 200), 3),
        ((a.clone(), 200, b.clone(), 400), 1),
        ((a.clone(), 200, b.clone(), 600), 1),
        ((b.clone(), 400, receives.clone(), 800), 1),
    ]);
    // Kernel after kernel, the last first.
    let backwards = [5, 3, 4, 2, 1, 0].map(|i: usize| events[i].clone());
    for events in [&events, &backwards] {
        let found = written(events);
        assert_eq!(arrows(&found), expected);
        let begun = found.events.iter().filter(|event| event.kind != EventType::SliceEnd);
        let begun: Vec<_> = begun.collect();
        let [send, slice, first, second, receive] = &begun[..] else { panic!("{begun:?}") };
        assert_eq!(set(&send.flows), set(&slice.ends));
        assert_eq!(set(&slice.flows), set(&[&first.ends[..], &second.ends].concat()));
        assert_eq!(set(&first.flows), set(&receive.ends));
        let none = [&send.ends, &second.flows, &receive.flows];
        assert!(none.iter().all(|flows| flows.is_empty()), "{none:?}");
    }
    let found = written(&events);
    let named = |event: &Event| (event.track.clone(), event.name.clone(), event.at);
    let names: Vec<_> = found.events.iter().map(named).collect();
    let expected = [
        (&sends, "send 3", 0),
        (&a, "handle 3", 200),
        (&a, "", 300),
        (&b, "handle", 400),
        (&b, "", 500),
        (&b, "handle", 600),
        (&b, "", 700),
        (&receives, "receive", 800),
    ];
    assert_eq!(names, expected.map(|(track, name, at)| (track.clone(), name.to_owned(), at)));
    let notes = |at: usize| {
        found.events[at].notes.iter().map(|(name, n)| (&**name, *n)).collect::<Vec<_>>()
    };
    assert_eq!(notes(0), [("message", 10)]);
    let of = |message, emitted| {
        [("message", message), ("error_ns", 5), ("waited_ns", 30), ("emitted", emitted)]
    };
    assert_eq!(notes(1), of(10, 2));
    assert_eq!(notes(5), of(21, 0));
    assert_eq!(notes(7), [("message", 30)]);
}

#[test]
fn what_was_emitted_to_several_rings_leads_to_all_of_them() {
    let kernels = [node("a", 1), node("b", 1), node("c", 1)];
    let rings = [
        TracedRing { from: None, to: Some((0, 0)) },
        TracedRing { from: Some((0, 0, "left")), to: Some((1, 0)) },
        TracedRing { from: Some((0, 0, "right")), to: Some((2, 0)) },
        TracedRing { from: Some((0, 0, "told")), to: None },
    ];
    let emitted = [messages(1, 0, 3), messages(2, 0, 2), messages(3, 0, 1)];
    let events = [
        handled(2, messages(2, 0, 2), 400, []),
        handled(1, messages(1, 0, 3), 400, []),
        received(3, 0, 1, 500),
        handled(0, messages(0, 0, 1), 200, emitted),
        sent(0, 0, 1, 100),
    ];
    let found = read(&write(Vec::new(), (&kernels, &rings), &events).unwrap());
    let a = "a/channel 0/device 0".to_owned();
    let expected = BTreeMap::from([
        (("a/channel 0/host sends".to_owned(), 100, a.clone(), 200), 1),
        ((a.clone(), 200, "b/channel 0/device 0".to_owned(), 400), 3),
        ((a.clone(), 200, "c/channel 0/device 0".to_owned(), 400), 2),
        ((a, 200, "a/channel 0/host receives told".to_owned(), 500), 1),
    ]);
    assert_eq!(arrows(&found), expected);
    let slices = found.slices();
    let (.., event) = slices.iter().find(|(_, began, ..)| *began == 200).unwrap();
    assert!(event.notes.contains(&("emitted".to_owned(), 6)));
}

#[test]
fn what_was_sent_comes_before_a_slice_at_the_same_time_and_the_slice_before_what_was_received() {
    let mut at_once = handled(0, messages(0, 0, 1), 200, [messages(1, 0, 1)]);
    let GraphEvent::Handled(handled) = &mut at_once else { unreachable!() };
    handled.ended = 200;
    let kernels = [node("a", 1)];
    let rings = [
        TracedRing { from: None, to: Some((0, 0)) },
        TracedRing { from: Some((0, 0, "results")), to: None },
    ];
    let events = [sent(0, 0, 1, 200), at_once, received(1, 0, 1, 200)];
    let found = read(&write(Vec::new(), (&kernels, &rings), &events).unwrap());
    assert_eq!(arrows(&found).len(), 2);
}

#[test]
fn a_slice_that_overlaps_goes_on_the_next_track_of_its_channel() {
    let begins = [200, 250, 300, 320];
    let slices = |begins: &[i64]| {
        let event = |(i, began): (u64, &i64)| handled(0, messages(0, i, 1), *began, []);
        let events: Vec<_> = (0..).zip(begins).map(event).collect();
        written(&events).slices()
    };
    let lanes: Vec<_> =
        slices(&begins).into_iter().map(|(track, began, ..)| (track, began)).collect();
    let lane = |i: usize| format!("device {i}");
    assert_eq!(lanes, [(lane(0), 200), (lane(1), 250), (lane(0), 300), (lane(2), 320)]);
    // Beyond so many tracks they begin later.
    let overlapping: Vec<_> = (0..=MOST_LANES as i64).map(|i| 200 + i).collect();
    let slices = slices(&overlapping);
    let (track, began, ended, event) = slices.last().unwrap();
    assert_eq!((&**track, *began, *ended), ("device 0", 300, 300 + 64));
    assert_eq!(event.notes.last(), Some(&("moved_ns".to_owned(), 100 - 64)));
}

#[test]
fn no_two_messages_of_a_trace_have_the_same_flow() {
    let n = 3000;
    let mut file = TraceFile::new(Vec::new()).unwrap();
    let kernel = file.kernel("k", 1).unwrap();
    for index in 0..n.into() {
        let times =
            MessageTimes { channel: 0, index, accepted: Some(0), device: None, received: 9 };
        file.message(kernel, &times).unwrap();
    }
    let rings = [TracedRing { from: None, to: Some((0, 0)) }; 3];
    for _ in 0..3 {
        let graph = file.graph(&CHAIN.0, &rings).unwrap();
        for ring in 0..rings.len() {
            file.event(graph, &sent(ring, 0, n, 0)).unwrap();
            // Numbers that wrap do no harm.
            file.event(graph, &sent(ring, u64::MAX - 9, 10, 1)).unwrap();
        }
    }
    let found = read(&file.finish().unwrap());
    let flows: Vec<_> = found.events.iter().flat_map(|event| event.flows.clone()).collect();
    let all = set(&flows);
    assert_eq!(all.len(), n as usize + 9 * (n as usize + 10));
    let counted = all.iter().take(n as usize).copied();
    assert_eq!(Vec::from_iter(counted), Vec::from_iter(1..=n.into()));
    assert!(all.iter().skip(n as usize).all(|flow| flow >> 63 == 1));
}

#[test]
fn of_many_messages_only_the_first_have_arrows() {
    let most = MOST_KEPT as u32;
    let events = [
        sent(0, 0, u32::MAX, 0),
        sent(0, u32::MAX.into(), 1, 0),
        handled(
            0,
            messages(0, 0, u32::MAX),
            200,
            [messages(1, 0, most - 1), messages(1, most.into(), u32::MAX), messages(1, 9, 1)],
        ),
        handled(1, messages(1, 0, most + 1), 400, [messages(2, 0, most)]),
        received(2, 0, most, 600),
        received(2, most.into(), 1, 600),
    ];
    let found = written(&events);
    let begun = found.events.iter().filter(|event| event.kind != EventType::SliceEnd);
    let told = begun.map(|event| (&*event.name, event.flows.len(), event.ends.len()));
    let expected = [
        ("send 4294967295", MOST_KEPT, 0),
        ("send", 1, 0),
        ("handle 4294967295", MOST_KEPT, MOST_KEPT),
        ("handle 4097", MOST_KEPT, MOST_KEPT),
        ("receive 4096", 0, MOST_KEPT),
        ("receive", 0, 1),
    ];
    assert_eq!(told.collect::<Vec<_>>(), expected);
    let [emitted, sent] = [2, 0].map(|at| &found.events[at]);
    assert_eq!(set(&sent.flows), set(&emitted.ends), "the first of them");
    let notes = &emitted.notes;
    let sum = i64::from(most - 1) + i64::from(u32::MAX) + 1;
    assert!(notes.contains(&("emitted".to_owned(), sum)), "{notes:?}");
}

#[test]
fn messages_of_a_moment_are_one_event_until_they_are_too_many() {
    let events = [
        sent(0, 0, 4000, 0),
        sent(0, 4000, 96, 0),
        sent(0, 4096, 1, 0),
        sent(0, 4097, 1, 1),
        sent(0, 4098, 4096, 1),
    ];
    let found = written(&events);
    let told = found.events.iter().map(|event| (&*event.name, event.flows.len(), event.notes[0].1));
    let expected =
        [("send 4096", 4096, 0), ("send", 1, 4096), ("send", 1, 4097), ("send 4096", 4096, 4098)];
    assert_eq!(told.collect::<Vec<_>>(), expected);
}

#[test]
fn numbers_of_nothing_are_errors_and_nothing_is_written_of_them() {
    let mut at_channel = handled(0, messages(0, 0, 1), 200, []);
    let GraphEvent::Handled(handled_there) = &mut at_channel else { unreachable!() };
    handled_there.channel = 1;
    let wrong = [
        (sent(3, 0, 1, 0), "messages of ring 3 of a graph with 3 rings"),
        (sent(1, 0, 1, 0), "ring 1 of 3 is written by channel 0 of kernel 0, not by the host"),
        (received(7, 0, 1, 0), "messages of ring 7 of a graph with 3 rings"),
        (received(0, 0, 1, 0), "ring 0 of 3 is read by channel 0 of kernel 0, not by the host"),
        (handled(2, messages(0, 0, 1), 200, []), "kernel 2 of a graph with 2 kernels"),
        (at_channel, "channel 1 of kernel 0, which has 1 channels"),
        (handled(0, messages(4, 0, 1), 200, []), "messages of ring 4 of a graph with 3 rings"),
        (
            handled(1, messages(0, 0, 1), 200, []),
            "ring 0 of 3 is read by channel 0 of kernel 0, not by channel 0 of kernel 1",
        ),
        (
            handled(1, messages(2, 0, 1), 200, []),
            "ring 2 of 3 is read by the host, not by channel 0 of kernel 1",
        ),
        (
            handled(0, messages(0, 0, 1), 200, [messages(1, 0, 1), messages(3, 0, 1)]),
            "messages of ring 3 of a graph with 3 rings",
        ),
        (
            handled(0, messages(0, 0, 1), 200, [messages(2, 0, 1)]),
            "ring 2 of 3 is written by channel 0 of kernel 1, not by channel 0 of kernel 0",
        ),
    ];
    let mut file = TraceFile::new(Vec::new()).unwrap();
    let graph = file.graph(&CHAIN.0, &CHAIN.1).unwrap();
    for (event, said) in wrong {
        let error = file.event(graph, &event).unwrap_err();
        assert_eq!((error.kind(), error.to_string()), (ErrorKind::InvalidInput, said.to_owned()));
    }
    let mut other = TraceFile::new(Vec::new()).unwrap();
    let error = other.event(graph, &sent(0, 0, 1, 0)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert_eq!(error.to_string(), "an event of graph 0 of a trace with 0 graphs");
    let bytes = file.finish().unwrap();
    assert_eq!(bytes, write(Vec::new(), (&CHAIN.0, &CHAIN.1), &[]).unwrap());
}

#[test]
fn channels_have_numbers_of_their_own_in_each_kernel() {
    // Channel 1 of the second kernel reads what channel 0 of the first writes, and no other does.
    let kernels = [node("a", 1), node("b", 2)];
    let rings = [
        TracedRing { from: None, to: Some((0, 0)) },
        TracedRing { from: Some((0, 0, "next")), to: Some((1, 1)) },
    ];
    let of = |channel| {
        let mut event = handled(1, messages(1, 0, 1), 200, []);
        let GraphEvent::Handled(handled) = &mut event else { unreachable!() };
        handled.channel = channel;
        write(Vec::new(), (&kernels, &rings), &[event])
    };
    assert_eq!(read(&of(1).unwrap()).events[0].track, "b/channel 1/device 0");
    let said = "ring 1 of 2 is read by channel 1 of kernel 1, not by channel 0 of kernel 1";
    assert_eq!(of(0).unwrap_err().to_string(), said);
}

#[test]
fn rings_of_kernels_that_are_not_there_are_errors() {
    let wrong = [
        (None, None, "ring 1 of 2 leads from the host to the host"),
        (None, Some((2, 0)), "kernel 2 of a graph with 2 kernels"),
        (None, Some((1, 1)), "channel 1 of kernel 1, which has 1 channels"),
        (Some((3, 0, "p")), None, "kernel 3 of a graph with 2 kernels"),
        (Some((4, 0, "p")), Some((0, 0)), "kernel 4 of a graph with 2 kernels"),
        (Some((0, 0, "p")), Some((5, 0)), "kernel 5 of a graph with 2 kernels"),
    ];
    let mut file = TraceFile::new(Vec::new()).unwrap();
    for (from, to, said) in wrong {
        let rings = [CHAIN.1[0], TracedRing { from, to }];
        let error = file.graph(&CHAIN.0, &rings).unwrap_err();
        assert_eq!((error.kind(), error.to_string()), (ErrorKind::InvalidInput, said.to_owned()));
    }
    // What comes then is as it would have been.
    let graph = file.graph(&CHAIN.0, &CHAIN.1).unwrap();
    file.event(graph, &sent(0, 0, 1, 0)).unwrap();
    assert_eq!(read(&file.finish().unwrap()).events[0].track, "a/channel 0/host sends");
}

/// A writer of which one call fails and those behind it do not.
struct FailsOnce {
    calls: usize,
    fails: usize,
}

impl Write for FailsOnce {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.flush()?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.calls += 1;
        if self.calls - 1 == self.fails { Err(ErrorKind::StorageFull.into()) } else { Ok(()) }
    }
}

#[test]
fn errors_of_the_writer_are_passed_on_wherever_they_come() {
    let events = [
        sent(0, 0, 1, 0),
        sent(0, 1, 1, 200),
        handled(0, messages(0, 0, 2), 200, [messages(1, 0, 1)]),
        handled(1, messages(1, 0, 1), 400, [messages(2, 0, 2)]),
        received(2, 0, 1, 600),
        received(2, 1, 1, 700),
        sent(0, 2, 1, 800),
    ];
    let calls = |fails| {
        let writer = FailsOnce { calls: 0, fails };
        write(writer, (&CHAIN.0, &CHAIN.1), &events).map(|writer| writer.calls)
    };
    let all = calls(usize::MAX).unwrap();
    assert!(all > 15);
    for fails in 0..all {
        let error = calls(fails).expect_err("an error was lost");
        assert_eq!(error.kind(), ErrorKind::StorageFull, "{fails}");
    }
    assert_eq!(calls(all).unwrap(), all);
}
