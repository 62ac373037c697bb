//! What is told of how much has gone through the links of a graph.

use crate::recovery::Chain;
use crate::{config, on_each_device};
use ring_example_kernels::{Absorber, Copier, Item, Pass};
use ring_host::{GraphBuilder, LinkTraffic, Route};
use ring_tests::{LONG, until};

/// Of each link: sent, taken, and waiting.
fn counts(traffic: &[LinkTraffic]) -> Vec<[u64; 3]> {
    traffic.iter().map(|link| [link.sent, link.taken, link.waiting]).collect()
}

/// Of each link: how often who writes it waited for room.
fn stalls(traffic: &[LinkTraffic]) -> Vec<u64> {
    traffic.iter().map(|link| link.stalls).collect()
}

#[test]
fn of_a_drained_graph_the_counts_are_exact() {
    on_each_device(|host| {
        let mut declared = GraphBuilder::new();
        let pass = declared.kernel::<Pass>(config::<Pass>());
        let copier = declared.kernel::<Copier>(config::<Copier>().channels(2));
        let sink = declared.kernel::<Absorber>(config::<Absorber>());
        declared.feed(pass).feed(copier).link(pass, Pass::ON, copier, Route::ByKey);
        declared.link(copier, Copier::COPIES, sink, Route::ToAll);
        let none = declared.read(copier, Copier::NONE);
        let mut graph = host.launch_graph(&declared).unwrap();
        assert_eq!(counts(&graph.traffic()), [[0; 3]; 3]);
        for round in 1..=3 {
            graph.activate(LONG).unwrap();
            if round == 1 {
                let (mut first, mut second) =
                    (graph.sender(pass, 0).unwrap(), graph.sender(copier, 1).unwrap());
                for number in 0..20 {
                    let item = Item {
                        number,
                        key: number as u32,
                        copies: (number % 3) as u32,
                        ..Item::default()
                    };
                    first.send(item, LONG).unwrap();
                    second.send(item, LONG).unwrap();
                }
            }
            graph.drain(LONG).unwrap();
            // 0, 1 and 2 copies of 7, 7 and 6 messages, each twice.
            let traffic = graph.traffic();
            assert_eq!(counts(&traffic), [[20, 20, 0], [38, 38, 0], [14, 0, 14]], "round {round}");
            let names: Vec<_> = traffic.iter().map(|link| (link.from, link.to)).collect();
            let of_links = graph.links().iter();
            let of_links =
                of_links.map(|link| ((link.from.0, link.from.2), link.to.map(|to| to.0)));
            assert_eq!(names, of_links.collect::<Vec<_>>());
        }
        let mut receivers = graph.receivers(none).unwrap();
        let received: usize = receivers
            .iter_mut()
            .map(|receiver| std::iter::from_fn(|| receiver.try_recv().ok()).count())
            .sum();
        assert_eq!((received, counts(&graph.traffic())[2]), (14, [14, 14, 0]));
        graph.terminate(LONG).unwrap();
        assert_eq!(counts(&graph.traffic()), [[20, 20, 0], [38, 38, 0], [14, 14, 0]]);
        assert_eq!(stalls(&graph.traffic()), [0; 3]);
    });
}

/// While the kernels run: each says it now and then.
#[test]
fn a_link_that_is_full_is_told_of() {
    on_each_device(|host| {
        let chain = Chain::of_slots(4);
        let mut graph = host.launch_graph(&chain.declared).unwrap();
        let mut ends = chain.ends(&mut graph);
        // Four in each of three links, and some that the host has sent.
        for number in 0..20 {
            ends.0.send(Item { number, ..Item::default() }, LONG).unwrap();
        }
        until("all links are full", || {
            let traffic = graph.traffic();
            let is_full = |link: &LinkTraffic| (link.fullest, link.slots) == (4, 4);
            traffic.iter().all(is_full).then_some(())
        });
        until("all kernels wait for room", || {
            stalls(&graph.traffic()).iter().all(|stalls| *stalls > 0).then_some(())
        });
        assert_eq!(graph.traffic()[2].stalls, 1, "nothing was received from there");
        for number in 0..20 {
            assert_eq!(ends.1.recv(LONG).unwrap().number, number);
        }
        until("all links are empty", || {
            let traffic = graph.traffic();
            traffic.iter().all(|link| (link.sent, link.taken) == (20, 20)).then_some(())
        });
        // Each wait but the first is behind a message that was sent when one was received.
        assert!((1..=17).contains(&graph.traffic()[2].stalls), "{:?}", graph.traffic());
        graph.terminate(LONG).unwrap();
    });
}

/// A kernel of so many inputs looks at each of its rings by itself.
#[test]
fn of_many_rings_the_one_without_room_is_told() {
    on_each_device(|host| {
        let mut declared = GraphBuilder::new();
        let first = declared.kernel::<Pass>(config::<Pass>().channels(3));
        let last = declared.kernel::<Pass>(config::<Pass>());
        declared.feed(first).link(first, Pass::ON, last, Route::ToAll);
        let read = declared.read_with(last, Pass::ON, 4);
        let mut graph = host.launch_graph(&declared).unwrap();
        graph.activate(LONG).unwrap();
        for sender in &mut graph.senders(first).unwrap() {
            (0..3).for_each(|_| sender.send(Item::default(), LONG).unwrap());
        }
        let mut receiver = graph.receiver(read, 0).unwrap();
        for received in 0..6 {
            // For each message but the first four, before there is room for it.
            let expected = [0, (1 + received).min(5)];
            until("it waits", || (stalls(&graph.traffic()) == expected).then_some(()));
            receiver.recv(LONG).unwrap();
        }
        for _ in 0..3 {
            receiver.recv(LONG).unwrap();
        }
        graph.drain(LONG).unwrap();
        assert_eq!(counts(&graph.traffic()), [[9, 9, 0], [9, 9, 0]]);
        assert_eq!(stalls(&graph.traffic()), [0, 5]);
        graph.terminate(LONG).unwrap();
    });
}
