//! Snapshots of a graph: each is of one moment at which nothing lies between its kernels, and what came behind it is told by index.

use crate::on_each_device;
use crate::recovery::Chain;
use ring_example_kernels::{Item, Pass, TOO_MUCH};
use ring_host::{
    ControlError, DeviceKind, Devices, Graph, GraphSnapshot, LaunchConfig, PortReceiver,
    RecoverGraphError, RecvTimeoutError, RestoreError, SendTimeoutError, Sender, SnapshotFileError,
    StateError,
};
use ring_tests::{LONG, Progress, StopOnDrop, cpu, cpu_with, kernels};
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Both kernels that count have counted so many.
fn counted(snapshot: &GraphSnapshot, chain: &Chain, counted: u64) {
    let states = [chain.first, chain.third].map(|node| snapshot.state(node, 0));
    assert_eq!(states, [Some(counted); 2]);
}

/// Likewise, and all of these were sent and emitted by this launch.
fn is_of(snapshot: &GraphSnapshot, chain: &Chain, all: u64) {
    counted(snapshot, chain, all);
    let counts = (snapshot.sent(chain.first, 0), snapshot.emitted(chain.last, 0));
    assert_eq!(counts, (Some(all), Some(all)));
}

/// Sends and receives `count` messages, one by one; the first is the one behind so many.
fn pass(
    ends: &mut (Sender<ring_example_kernels::Tally>, PortReceiver<Item>),
    before: u64,
    count: u64,
) {
    for number in before..before + count {
        ends.0.send(Item { number, ..Item::default() }, LONG).unwrap();
        let item = ends.1.recv(LONG).unwrap();
        assert_eq!((item.number, item.counted, item.hops), (number, number + 1, 3));
    }
}

fn file(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("ring-graph-{}-{name}.snapshot", std::process::id()))
}

#[test]
fn a_snapshot_of_an_active_graph_is_of_one_moment() {
    on_each_device(|host| {
        let chain = Chain::of_slots(16);
        let mut graph = host.launch_graph(&chain.declared).unwrap();
        let (mut sender, mut receiver) = chain.ends(&mut graph);
        let [sends_no_more, receives_no_more] = [const { AtomicBool::new(false) }; 2];
        let [accepted, received] = [const { AtomicU64::new(0) }; 2];
        let rounds = if cfg!(miri) { 2 } else { 30 };
        std::thread::scope(|scope| {
            // Or a failure below would never end.
            let [sends, receives] = [&sends_no_more, &receives_no_more].map(StopOnDrop);
            let (no_sends, no_receives) = (&sends_no_more, &receives_no_more);
            let (accepted, received) = (&accepted, &received);
            let sending = scope.spawn(move || {
                let mut number = 0;
                while !no_sends.load(Relaxed) {
                    match sender.send(Item { number, ..Item::default() }, LONG) {
                        Ok(()) => number += 1,
                        Err(SendTimeoutError::NotActive { message, .. }) => {
                            assert_eq!(message.number, number, "it is given back");
                            std::thread::yield_now();
                        }
                        Err(error) => panic!("{error}"),
                    }
                    accepted.store(number, Relaxed);
                }
            });
            scope.spawn(move || {
                let mut number = 0;
                let mut take = || {
                    while let Ok(item) = receiver.try_recv() {
                        assert_eq!((item.number, item.counted), (number, number + 1));
                        number += 1;
                        received.store(number, Relaxed);
                    }
                };
                while !no_receives.load(Relaxed) {
                    take();
                    std::thread::yield_now();
                }
            });
            let mut last = 0;
            for _ in 0..rounds {
                let mut progress = Progress::new();
                while received.load(Relaxed) <= last {
                    progress.is_at(0, "messages pass behind a snapshot");
                    std::thread::yield_now();
                }
                let snapshot = graph.snapshot(LONG).unwrap();
                let all = snapshot.state(chain.first, 0).unwrap();
                is_of(&snapshot, &chain, all);
                assert!(all > last);
                assert_eq!(snapshot.handled(chain.third, 0), Some(all));
                last = all;
            }
            drop(sends);
            sending.join().unwrap();
            graph.drain(LONG).unwrap(); // what is on the way is still received
            drop(receives);
        });
        // Of a graph that is not active, which stays as it is.
        let snapshot = graph.snapshot(LONG).unwrap();
        is_of(&snapshot, &chain, accepted.load(Relaxed));
        let state = graph.kernel(chain.first).unwrap().status().state;
        assert_ne!(state, ring_host::State::Active);
        graph.terminate(LONG).unwrap();
        let left = graph.snapshot(LONG).unwrap_err();
        assert!(matches!(left, StateError::Control(ControlError::Terminated { .. })), "{left}");
    });
}

#[test]
fn a_graph_that_was_lost_goes_on_from_its_snapshot_and_tells_what_it_lacks() {
    on_each_device(|host| {
        if host.device().kind == DeviceKind::Cuda && !kernels::bears_panics::<Pass>("a recovery") {
            return;
        }
        let devices: Devices = host.clone().into();
        let chain = Chain::of_slots(16);
        let mut graph = host.launch_graph(&chain.declared).unwrap();
        let mut before = 0;
        for round in 1..=3 {
            let mut ends = chain.ends(&mut graph);
            pass(&mut ends, before, 10);
            let snapshot = graph.snapshot(LONG).unwrap();
            before += 10;
            counted(&snapshot, &chain, before);
            // Ten of them are of this launch.
            assert_eq!(snapshot.sent(chain.first, 0), Some(10), "round {round}");
            pass(&mut ends, before, round);
            ends.0.send(Item { copies: TOO_MUCH, ..Item::default() }, LONG).unwrap();
            lost(&mut ends);
            let restart = graph.recover_from(&devices, &snapshot, LONG).unwrap();
            let [fed] = &restart.fed[..] else { panic!("{restart:?}") };
            assert_eq!((fed.kernel, fed.channel), ("tally", 0));
            assert_eq!(fed.not_in_state(), 10..11 + round);
            assert_eq!(restart.kernels[2].processed, 10 + round);
        }
        // One of an earlier launch knows nothing of what was sent since.
        let mut ends = chain.ends(&mut graph);
        pass(&mut ends, before, 5);
        before += 5;
        let snapshot = graph.snapshot(LONG).unwrap();
        graph.recover_from(&devices, &snapshot, LONG).unwrap();
        let mut ends_2 = chain.ends(&mut graph);
        pass(&mut ends_2, before, 2);
        let restart = graph.recover_from(&devices, &snapshot, LONG).unwrap();
        assert_eq!(restart.fed[0].not_in_state(), 0..2);
        lost(&mut ends);
        pass(&mut chain.ends(&mut graph), before, 3);
        graph.terminate(LONG).unwrap();
    });
}

/// Waits for the end of a launch.
fn lost(ends: &mut (Sender<ring_example_kernels::Tally>, PortReceiver<Item>)) {
    let end = ends.1.recv(LONG);
    let is_end = matches!(end, Err(RecvTimeoutError::Fault(_) | RecvTimeoutError::Closed { .. }));
    assert!(is_end, "{end:?}");
}

#[test]
fn a_graph_goes_on_from_a_file_of_another_launch() {
    let (chain, host, path) = (Chain::of_slots(16), cpu(), file("goes-on"));
    let mut graph = host.launch_graph(&chain.declared).unwrap();
    pass(&mut chain.ends(&mut graph), 0, 7);
    graph.snapshot(LONG).unwrap().save(&path, 4).unwrap();
    graph.terminate(LONG).unwrap();

    // As another process would declare it.
    let chain = Chain::of_slots(64);
    let mut graph = host.launch_graph(&chain.declared).unwrap();
    let error = GraphSnapshot::load(&path, 5, &chain.declared).unwrap_err();
    assert!(matches!(error, SnapshotFileError::Version { found: 4, own: 5, .. }), "{error}");
    let snapshot = GraphSnapshot::load(&path, 4, &chain.declared).unwrap();
    is_of(&snapshot, &chain, 7);
    graph.restore(&snapshot, LONG).unwrap();
    pass(&mut chain.ends(&mut graph), 7, 3);
    let error = graph.restore(&snapshot, LONG).unwrap_err();
    assert!(matches!(error, RestoreError::State(StateError::Active { .. })), "{error}");
    pass_on(&mut graph);
    let lost = graph.recover_from(&host.clone().into(), &snapshot, LONG).unwrap();
    assert_eq!(lost.fed[0].not_in_state(), 0..3, "the file knows of no message of this launch");
    pass(&mut chain.ends(&mut graph), 7, 3);
    fs::remove_file(path).unwrap();
}

/// The graph is active.
fn pass_on(graph: &mut Graph) {
    assert!(graph.status().all(|status| status.state == ring_host::State::Active));
}

#[test]
fn a_snapshot_of_another_graph_changes_nothing() {
    let (chain, other, host) = (Chain::of_slots(16), Chain::of_slots(16), cpu());
    let mut graph = host.launch_graph(&chain.declared).unwrap();
    let mut ends = chain.ends(&mut graph);
    pass(&mut ends, 0, 2);
    let mut second = host.launch_graph(&other.declared).unwrap();
    let snapshot = second.snapshot(LONG).unwrap();
    let error = graph.restore(&snapshot, LONG).unwrap_err();
    assert_eq!(error, RestoreError::OtherGraph);
    let error = graph.recover_from(&host.clone().into(), &snapshot, LONG).unwrap_err();
    assert_eq!(error, RecoverGraphError::Restore(RestoreError::OtherGraph));
    assert_eq!(snapshot.sent(chain.first, 0), None);
    assert_eq!(snapshot.emitted(chain.last, 0), None);
    assert_eq!(snapshot.state(chain.first, 0), None);
    assert_eq!(snapshot.state(other.first, 1), None, "there is no such channel");
    pass(&mut ends, 2, 2);

    let mut three = Chain::of_slots(16);
    three.declared.kernel::<Pass>(LaunchConfig::default());
    let path = file("other");
    snapshot.save(&path, 0).unwrap();
    let error = GraphSnapshot::load(&path, 0, &three.declared).unwrap_err();
    let said =
        format!("the snapshot {} is of a graph of 3 kernels, and this one has 4", path.display());
    assert_eq!(error.to_string(), said);
    fs::remove_file(path).unwrap();
}

/// The host does not read a port, and its ring is full.
#[test]
fn a_snapshot_that_is_late_lets_the_graph_go_on() {
    let (chain, host) = (Chain::of_slots(4), cpu());
    let mut graph = host.launch_graph(&chain.declared).unwrap();
    let mut ends = chain.ends(&mut graph);
    for number in 0..10 {
        ends.0.send(Item { number, ..Item::default() }, LONG).unwrap();
    }
    let error = graph.snapshot(Duration::from_millis(20)).unwrap_err();
    assert!(matches!(error, StateError::Control(ControlError::Timeout { .. })), "{error}");
    for number in 0..10 {
        assert_eq!(ends.1.recv(LONG).unwrap().number, number);
    }
    pass(&mut ends, 10, 3);
    is_of(&graph.snapshot(LONG).unwrap(), &chain, 13);
    pass(&mut ends, 13, 1);
}

/// It is told again of what was lost when it is recovered at last.
#[test]
fn what_was_lost_is_told_when_a_launch_succeeds() {
    let (chain, host, small) = (Chain::of_slots(16), cpu(), cpu_with(1 << 20, 0));
    let mut graph = host.launch_graph(&chain.declared).unwrap();
    let mut ends = chain.ends(&mut graph);
    pass(&mut ends, 0, 4);
    let snapshot = graph.snapshot(LONG).unwrap();
    pass(&mut ends, 4, 2);
    for _ in 0..2 {
        let error = graph.recover_from(&small.clone().into(), &snapshot, LONG).unwrap_err();
        assert!(matches!(error, RecoverGraphError::Launch(_)), "{error}");
        let error = graph.snapshot(LONG).unwrap_err();
        assert!(matches!(error, StateError::Control(ControlError::Fault(_))), "{error}");
    }
    let restart = graph.recover_from(&host.clone().into(), &snapshot, LONG).unwrap();
    assert_eq!(restart.fed[0].not_in_state(), 4..6);
    pass(&mut chain.ends(&mut graph), 4, 1);
}
