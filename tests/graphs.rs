//! Graphs of kernels: what goes in comes out once, in order, whatever the way.

#[path = "graphs/devices.rs"]
mod devices;
#[path = "graphs/ends.rs"]
mod ends;
#[path = "graphs/grids.rs"]
mod grids;
#[path = "graphs/recovery.rs"]
mod recovery;
#[path = "graphs/replies.rs"]
mod replies;
#[path = "graphs/scopes.rs"]
mod scopes;
#[path = "graphs/snapshots.rs"]
mod snapshots;
#[path = "graphs/tracing.rs"]
mod tracing;
#[path = "graphs/traffic.rs"]
mod traffic;

use ring_example_kernels::{Absorbed, Absorber, Copier, Item, Pass, TOO_MUCH, Tally};
use ring_host::{
    ControlError, DeviceFault, DeviceKind, Exit, GraphBuilder, GraphError, Kernel, LaunchConfig,
    LaunchError, Memory, Mode, PortReceiver, RecvTimeoutError, Route, Runtime, SendTimeoutError,
    Sender,
};
use ring_tests::{LONG, Progress, cpu, kernels};
use std::collections::VecDeque;
use std::time::Duration;

fn config<K: Kernel>() -> LaunchConfig {
    LaunchConfig::default().kernels(kernels::of_examples::<K>())
}

/// Runs a test on every device there is.
fn on_each_device(test: impl Fn(&Runtime)) {
    ring_tests::on_each_device_with::<Pass>(&config::<Pass>(), test);
}

/// Messages a test sends: fewer under Miri.
const MANY: u64 = if cfg!(miri) { 40 } else { 20_000 };

/// Sends what `next` gives, and receives meanwhile, until both are done: `got` is told of each message.
fn pump<M: ring_host::Message>(
    senders: &mut [Sender<Pass>],
    receivers: &mut [PortReceiver<M>],
    mut next: impl FnMut(usize) -> Option<Item>,
    mut got: impl FnMut(usize, &M),
    is_done: impl Fn() -> bool,
) {
    let (mut progress, mut moved) = (Progress::new(), 0u64);
    let mut waiting: Vec<VecDeque<Item>> = senders.iter().map(|_| VecDeque::new()).collect();
    loop {
        for (k, (sender, waiting)) in senders.iter_mut().zip(&mut waiting).enumerate() {
            while waiting.len() < 32
                && let Some(item) = next(k)
            {
                waiting.push_back(item);
            }
            let sent = sender.try_send_batch(waiting.make_contiguous()).unwrap();
            waiting.drain(..sent);
            moved += sent as u64;
        }
        for (k, receiver) in receivers.iter_mut().enumerate() {
            moved += receiver.try_recv_each(64, |message| got(k, message)).unwrap() as u64;
        }
        if is_done() && waiting.iter().all(VecDeque::is_empty) {
            return;
        }
        progress.is_at(moved, "messages");
        std::thread::yield_now();
    }
}

#[test]
fn a_chain_passes_each_message_once_and_in_order() {
    on_each_device(|host| {
        let mut graph = GraphBuilder::new();
        let first = graph.kernel::<Pass>(config::<Pass>());
        let second = graph.kernel::<Tally>(config::<Tally>());
        let third = graph.kernel::<Pass>(config::<Pass>());
        graph.feed(first);
        graph.link_with(first, Pass::ON, second, Route::Pairwise, 8);
        graph.link(second, Tally::COUNTED, third, Route::Pairwise);
        let last = graph.read_with(third, Pass::ON, 16);
        let mut graph = host.launch_graph(&graph).unwrap();
        graph.activate(LONG).unwrap();
        let mut senders = [graph.sender(first, 0).unwrap()];
        let mut receivers = [graph.receiver(last, 0).unwrap()];
        let (mut sent, received) = (0, std::cell::Cell::new(0));
        let next = |_| {
            let number = sent;
            sent += 1;
            (number < MANY).then(|| Item { number, ..Item::default() })
        };
        let got = |_, item: &Item| {
            assert_eq!((item.number, item.hops), (received.get(), 3));
            received.set(received.get() + 1);
            assert_eq!(item.counted, received.get());
        };
        pump(&mut senders, &mut receivers, next, got, || received.get() == MANY);
        graph.drain(LONG).unwrap();
        let summaries = graph.terminate(LONG).unwrap();
        assert!(summaries.iter().all(|s| (s.processed, s.unhandled) == (MANY, 0)), "{summaries:?}");
    });
}

#[test]
fn keys_keep_their_order_and_their_channel() {
    const SOURCES: u64 = 2;
    const CHANNELS: u32 = 3;
    on_each_device(|host| {
        let mut graph = GraphBuilder::new();
        let first = graph.kernel::<Pass>(config::<Pass>().channels(SOURCES as u32));
        let copier = graph.kernel::<Copier>(config::<Copier>().channels(2));
        let tally = graph.kernel::<Tally>(config::<Tally>().channels(CHANNELS));
        graph.feed(first).link_with(first, Pass::ON, copier, Route::ByKey, 64);
        graph.link_with(copier, Copier::COPIES, tally, Route::ByKey, 32);
        let none = graph.read(copier, Copier::NONE);
        let all = graph.read(tally, Tally::COUNTED);
        let mut graph = host.launch_graph(&graph).unwrap();
        graph.activate(LONG).unwrap();
        let mut senders = graph.senders(first).unwrap();
        let mut receivers = graph.receivers(all).unwrap();
        let mut nones = graph.receivers(none).unwrap();
        let copies = |number: u64| (ring_tests::mixed(number) % 4) as u32;
        let key = |number: u64| (ring_tests::mixed(number) >> 32) as u32 % 16;
        let mut sent = [0; SOURCES as usize];
        let next = |k: usize| {
            let number = sent[k];
            sent[k] += 1;
            let item = Item { source: k as u64, number, key: key(number), ..Item::default() };
            (number < MANY / 4).then(|| Item { copies: copies(number), ..item })
        };
        let expected: u64 = SOURCES * (0..MANY / 4).map(|n| u64::from(copies(n))).sum::<u64>();
        // For each source, key and copy, the number that came last; for each channel, how many.
        let mut last = std::collections::HashMap::new();
        let mut counted = [0; CHANNELS as usize];
        let received = std::cell::Cell::new(0);
        let got = |channel: usize, item: &Item| {
            let original = item.key.wrapping_sub(item.copy);
            assert_eq!((original, item.hops), (key(item.number), 3));
            assert_eq!(item.key % CHANNELS, channel as u32);
            counted[channel] += 1;
            assert_eq!(item.counted, counted[channel]);
            // All copies of one number with one key come side by side, for copies have keys of their own.
            let before = last.insert((item.source, original, item.copy), item.number);
            assert!(before.is_none_or(|before| before < item.number), "{item:?} behind {before:?}");
            received.set(received.get() + 1);
        };
        let zeros = std::cell::Cell::new(0);
        {
            let (senders, receivers) = (&mut senders[..], &mut receivers[..]);
            // The other port is read too, or nothing goes on.
            let nones = std::cell::RefCell::new(&mut nones);
            let is_done = || {
                for none in nones.borrow_mut().iter_mut() {
                    let seen = |number: &u64| {
                        assert_eq!(copies(*number), 0);
                        zeros.set(zeros.get() + 1);
                    };
                    none.try_recv_each(64, seen).unwrap();
                }
                received.get() == expected
            };
            pump(senders, receivers, next, got, is_done);
        }
        graph.drain(LONG).unwrap();
        for none in &mut nones {
            while none.try_recv().is_ok() {
                zeros.set(zeros.get() + 1);
            }
        }
        let without = (0..MANY / 4).filter(|n| copies(*n) == 0).count() as u64;
        assert_eq!(zeros.get(), SOURCES * without);
        assert!(receivers.iter_mut().all(|receiver| receiver.try_recv().is_err()), "nothing more");
        graph.terminate(LONG).unwrap();
    });
}

#[test]
fn every_channel_gets_what_goes_to_all_and_fan_in_keeps_each_order() {
    const SOURCES: usize = 3;
    on_each_device(|host| {
        let mut graph = GraphBuilder::new();
        let first = graph.kernel::<Pass>(config::<Pass>().channels(SOURCES as u32));
        let tally = graph.kernel::<Tally>(config::<Tally>().channels(2));
        let sink = graph.kernel::<Absorber>(config::<Absorber>());
        graph.feed(first).link_with(first, Pass::ON, tally, Route::ToAll, 16);
        graph.link(tally, Tally::COUNTED, sink, Route::ToAll);
        let mut graph = host.launch_graph(&graph).unwrap();
        graph.activate(LONG).unwrap();
        let mut senders: Vec<_> =
            (0..SOURCES as u32).map(|k| graph.sender(first, k).unwrap()).collect();
        for number in 1..=MANY / 4 {
            for sender in &mut senders {
                sender.send(Item { number, ..Item::default() }, LONG).unwrap();
            }
        }
        graph.drain(LONG).unwrap();
        let state: Absorbed = graph.kernel(sink).unwrap().read_state(0, LONG).unwrap();
        let (n, all) = (MANY / 4, 2 * SOURCES as u64);
        assert_eq!(state, Absorbed { count: all * n, numbers: all * (n * (n + 1) / 2) });
        graph.terminate(LONG).unwrap();
    });
}

#[test]
fn a_port_that_is_not_read_stops_all_before_it_and_loses_nothing() {
    on_each_device(|host| {
        let mut graph = GraphBuilder::new();
        let first = graph.kernel::<Pass>(config::<Pass>().capacity(8));
        let second = graph.kernel::<Pass>(config::<Pass>());
        graph.feed(first).link_with(first, Pass::ON, second, Route::Pairwise, 4);
        let last = graph.read_with(second, Pass::ON, 2);
        let mut graph = host.launch_graph(&graph).unwrap();
        graph.activate(LONG).unwrap();
        let mut sender = graph.sender(first, 0).unwrap();
        let mut sent = 0;
        let short = Duration::from_millis(if cfg!(miri) { 2000 } else { 200 });
        while sender.send(Item { number: sent, ..Item::default() }, short).is_ok() {
            sent += 1;
        }
        // All rings are full, but for what a consumer has not told yet of a quarter of its ring.
        assert!((8 + 4 + 2 - 3..=8 + 4 + 2).contains(&sent), "{sent}");
        let timeout = graph.drain(short).unwrap_err();
        assert!(matches!(timeout, ControlError::Timeout { .. }), "{timeout}");
        let mut receiver = graph.receiver(last, 0).unwrap();
        for number in 0..sent {
            assert_eq!(receiver.recv(LONG).unwrap().number, number);
        }
        graph.drain(LONG).unwrap();
        // And on it goes.
        graph.activate(LONG).unwrap();
        sender.send(Item { number: 77, ..Item::default() }, LONG).unwrap();
        assert_eq!(receiver.recv(LONG).unwrap().number, 77);
        let summaries = graph.terminate(LONG).unwrap();
        assert!(summaries.iter().all(|s| (s.processed, s.unhandled) == (sent + 1, 0)));
    });
}

#[test]
fn a_kernel_that_is_lost_ends_its_neighbours_by_name() {
    on_each_device(|host| {
        if host.device().compute_capability != (0, 0)
            && !kernels::bears_panics::<Pass>("a lost neighbour")
        {
            return;
        }
        let mut graph = GraphBuilder::new();
        let first = graph.kernel::<Tally>(config::<Tally>());
        let second = graph.kernel::<Pass>(config::<Pass>());
        let third = graph.kernel::<Tally>(config::<Tally>());
        graph.feed(first).link(first, Tally::COUNTED, second, Route::Pairwise);
        graph.link(second, Pass::ON, third, Route::Pairwise);
        let last = graph.read(third, Tally::COUNTED);
        let mut graph = host.launch_graph(&graph).unwrap();
        graph.activate(LONG).unwrap();
        let mut sender = graph.sender(first, 0).unwrap();
        let mut receiver = graph.receiver(last, 0).unwrap();
        sender.send(Item::default(), LONG).unwrap();
        assert_eq!(receiver.recv(LONG).unwrap().hops, 3);
        sender.send(Item { copies: TOO_MUCH, ..Item::default() }, LONG).unwrap();
        let names_it = |fault: &DeviceFault| {
            let DeviceFault::Graph { lost, .. } = fault else { return false };
            matches!(**lost, DeviceFault::HandlerPanicked { kernel: "pass", channel: 0, .. })
        };
        let end = receiver.recv(LONG).unwrap_err();
        assert!(matches!(&end, RecvTimeoutError::Fault(fault) if names_it(fault)), "{end}");
        let end = loop {
            if let Err(end) = sender.send(Item::default(), LONG) {
                break end;
            }
        };
        let SendTimeoutError::Fault { fault, .. } = end else { panic!("{end}") };
        assert!(names_it(&fault), "{fault}");
        assert!(graph.check().is_err() && graph.drain(LONG).is_err());
    });
}

#[test]
fn a_handler_that_emits_too_much_or_to_no_channel_faults_by_name() {
    on_each_device(|host| {
        for (item, expected) in [
            (Item { copies: 4, ..Item::default() }, Exit::EmittedTooMany),
            (Item { copies: 1, key: 2, ..Item::default() }, Exit::NoSuchChannel),
        ] {
            let mut graph = GraphBuilder::new();
            let first = graph.kernel::<Copier>(config::<Copier>());
            let second = graph.kernel::<Tally>(config::<Tally>().channels(2));
            graph.feed(first).link(first, Copier::COPIES, second, Route::ByIndex);
            let none = graph.read(first, Copier::NONE);
            let all = graph.read(second, Tally::COUNTED);
            let mut graph = host.launch_graph(&graph).unwrap();
            graph.activate(LONG).unwrap();
            let mut sender = graph.sender(first, 0).unwrap();
            let mut receivers = [0, 1].map(|k| graph.receiver(all, k).unwrap());
            for key in [0, 1] {
                sender.send(Item { copies: 1, key, ..Item::default() }, LONG).unwrap();
                assert_eq!(receivers[key as usize].recv(LONG).unwrap().key, key);
            }
            sender.send(item, LONG).unwrap();
            let end = graph.receiver(none, 0).unwrap().recv(LONG).unwrap_err();
            let left = DeviceFault::Left { kernel: "copier", channel: 0, exit: expected };
            assert_eq!(end, RecvTimeoutError::Fault(left));
            for receiver in &mut receivers {
                let end = receiver.recv(LONG).unwrap_err();
                assert!(matches!(end, RecvTimeoutError::Fault(DeviceFault::Graph { .. })), "{end}");
            }
        }
    });
}

#[test]
fn what_was_emitted_before_a_handler_emits_too_much_is_sent() {
    // Requests that may be handled together with it, and so are not sent: on a CPU's thread more than by a warp.
    const TOGETHER: u64 = 256;
    on_each_device(|host| {
        let mut graph = GraphBuilder::new();
        let copier = graph.kernel::<Copier>(config::<Copier>());
        graph.feed(copier).read(copier, Copier::NONE);
        let copies = graph.read_with(copier, Copier::COPIES, 4096);
        let mut graph = host.launch_graph(&graph).unwrap();
        let mut sender = graph.sender(copier, 0).unwrap();
        let items: Vec<Item> = (0..1000u64)
            .map(|number| Item {
                number,
                copies: if number == 900 { 4 } else { 1 },
                ..Item::default()
            })
            .collect();
        graph.activate(LONG).unwrap();
        let mut sent = 0;
        while let Some(left @ [_, ..]) = items.get(sent..)
            && let Ok(more) = sender.try_send_batch(left)
        {
            sent += more; // up to all, or the fault
        }
        let (mut receiver, mut came) = (graph.receiver(copies, 0).unwrap(), 0);
        let end = loop {
            match receiver.recv(LONG) {
                Ok(copy) => assert_eq!(copy.number, came),
                Err(end) => break end,
            }
            came += 1;
        };
        let exit = Exit::EmittedTooMany;
        let left = DeviceFault::Left { kernel: "copier", channel: 0, exit };
        assert_eq!(end, RecvTimeoutError::Fault(left));
        assert!((900 - TOGETHER..=900).contains(&came), "{came} of 900 before it");
    });
}

/// A graph of two kernels by that route.
fn two(route: Route, channels: [u32; 2]) -> GraphBuilder {
    let mut graph = GraphBuilder::new();
    let first = graph.kernel::<Pass>(config::<Pass>().channels(channels[0]));
    let second = graph.kernel::<Absorber>(config::<Absorber>().channels(channels[1]));
    graph.feed(first).link(first, Pass::ON, second, route);
    graph
}

/// Why that graph is not launched.
fn refused(host: &Runtime, declare: impl FnOnce(&mut GraphBuilder)) -> GraphError {
    let mut graph = GraphBuilder::new();
    declare(&mut graph);
    host.launch_graph(&graph).map(drop).unwrap_err()
}

#[test]
fn what_cannot_be_is_refused_before_anything_runs() {
    let host = cpu();
    assert_eq!(refused(&host, |_| {}), GraphError::Empty);
    let unread = refused(&host, |graph| {
        let pass = graph.kernel::<Pass>(config::<Pass>());
        graph.feed(pass);
    });
    assert_eq!(unread, GraphError::Unread { kernel: "pass", port: "ON" });
    let unfed = refused(&host, |graph| {
        let pass = graph.kernel::<Pass>(config::<Pass>());
        graph.read(pass, Pass::ON);
    });
    assert_eq!(unfed, GraphError::Unfed { kernel: "pass" });
    let twice = refused(&host, |graph| {
        let pass = graph.kernel::<Pass>(config::<Pass>());
        graph.feed(pass).read(pass, Pass::ON);
        graph.read(pass, Pass::ON);
    });
    assert_eq!(twice, GraphError::ReadTwice { kernel: "pass", port: "ON" });
    let cycle = refused(&host, |graph| {
        let first = graph.kernel::<Pass>(config::<Pass>());
        let second = graph.kernel::<Tally>(config::<Tally>());
        graph.feed(first).link(first, Pass::ON, second, Route::Pairwise);
        graph.link(second, Tally::COUNTED, first, Route::Pairwise);
    });
    let GraphError::Cycle { mut kernels } = cycle else { panic!("{cycle}") };
    kernels.sort_unstable();
    assert_eq!(kernels, ["pass", "tally"]);
    let no_key = refused(&host, |graph| {
        let copier = graph.kernel::<Copier>(config::<Copier>());
        graph.feed(copier).read(copier, Copier::COPIES);
        let numbers = graph.kernel::<Numbers>(LaunchConfig::default());
        graph.link(copier, Copier::NONE, numbers, Route::ByKey);
    });
    assert_eq!(no_key, GraphError::NoKey { kernel: "copier", port: "NONE" });
    let pairwise = host.launch_graph(&two(Route::Pairwise, [2, 3])).map(drop).unwrap_err();
    let (kernel, port, channels, to, to_channels) = ("pass", "ON", 2, "absorber", 3);
    assert_eq!(pairwise, GraphError::Pairwise { kernel, port, channels, to, to_channels });
    for slots in [0, 3, 1 << 21] {
        let capacity = refused(&host, |graph| {
            let pass = graph.kernel::<Pass>(config::<Pass>());
            graph.feed(pass).read_with(pass, Pass::ON, slots);
        });
        assert_eq!(capacity, GraphError::Capacity(slots));
    }
    let short = refused(&host, |graph| {
        let copier = graph.kernel::<Copier>(config::<Copier>());
        graph.feed(copier).read_with(copier, Copier::COPIES, 2);
        graph.read(copier, Copier::NONE);
    });
    let (kernel, port, most, capacity) = ("copier", "COPIES", 3, 2);
    assert_eq!(short, GraphError::Short { kernel, port, most, capacity });
    let event_driven = refused(&host, |graph| {
        let pass = graph.kernel::<Pass>(config::<Pass>().mode(Mode::EventDriven));
        graph.feed(pass).read(pass, Pass::ON);
    });
    let (mode, memory) = (Mode::EventDriven, Memory::Auto);
    assert_eq!(event_driven, GraphError::NotResident { kernel: "pass", mode, memory });
    let narrow = refused(&host, |graph| {
        let pass = graph.kernel::<Pass>(config::<Pass>().threads(32));
        graph.feed(pass).read(pass, Pass::ON);
    });
    let is_it =
        |error: &LaunchError| matches!(error, LaunchError::Threads { threads: 32, least: 64, .. });
    assert!(matches!(&narrow, GraphError::Launch(error) if is_it(error)), "{narrow}");
    let foreign = refused(&host, |graph| {
        let other = GraphBuilder::new().kernel::<Pass>(config::<Pass>());
        let pass = graph.kernel::<Pass>(config::<Pass>());
        graph.feed(pass).read(pass, Pass::ON);
        graph.feed(other);
    });
    assert_eq!(foreign, GraphError::Foreign { kernel: "pass" });
    let links = refused(&host, |graph| {
        let first = graph.kernel::<Pass>(config::<Pass>().channels(200));
        let second = graph.kernel::<Tally>(config::<Tally>());
        let third = graph.kernel::<Absorber>(config::<Absorber>().channels(200));
        graph.feed(first).link(first, Pass::ON, second, Route::ToAll);
        graph.link(second, Tally::COUNTED, third, Route::ToAll);
    });
    let (kernel, inputs, outputs) = ("tally", 200, 200);
    assert_eq!(links, GraphError::TooManyLinks { kernel, inputs, outputs });
    let arena = host.launch_graph(&two(Route::ToAll, [100, 100])).map(drop).unwrap_err();
    assert!(matches!(arena, GraphError::Arena { .. }), "{arena}");
    let crowded = host.launch_graph(&two(Route::Pairwise, [200, 200])).map(drop).unwrap_err();
    assert!(matches!(crowded, GraphError::Launch(LaunchError::Crowded(_))), "{crowded}");
    let alone = host.launch::<Pass>(config::<Pass>()).unwrap_err();
    assert_eq!(alone, LaunchError::Ports { kernel: "pass" });
}

ring_device::ring_kernel! {
    /// Takes numbers. For the CPU device only.
    pub struct Numbers { entry: "ring_echo", }

    fn handle(sum: &mut u64, number: &u64) {
        *sum = sum.wrapping_add(*number);
    }
}

#[test]
fn ends_are_taken_once_and_only_where_they_are() {
    let host = cpu();
    let mut builder = GraphBuilder::new();
    let first = builder.kernel::<Pass>(config::<Pass>());
    let second = builder.kernel::<Pass>(config::<Pass>());
    builder.feed(first).link(first, Pass::ON, second, Route::Pairwise);
    let last = builder.read(second, Pass::ON);
    let mut graph = host.launch_graph(&builder).unwrap();
    assert!(matches!(graph.sender(second, 0), Err(GraphError::NotFed { kernel: "pass" })));
    assert!(matches!(graph.sender(first, 1), Err(GraphError::Channel(_))));
    assert!(matches!(graph.receiver(last, 1), Err(GraphError::Channel(_))));
    let _taken = (graph.sender(first, 0).unwrap(), graph.receiver(last, 0).unwrap());
    assert!(matches!(graph.sender(first, 0), Err(GraphError::Channel(_))));
    assert!(matches!(graph.receiver(last, 0), Err(GraphError::Channel(_))));
    // The same builder launches again.
    let again = host.launch_graph(&builder).unwrap();
    drop((graph, again));
}

/// A kernel of a random graph.
#[derive(Clone, Copy)]
enum Member {
    Pass(ring_host::Node<Pass>),
    Tally(ring_host::Node<Tally>),
}

/// Graphs in which each kernel feeds one that was declared later, by rings of random length and a random route, from kernels of
/// random kinds and channels: all that is sent is absorbed at the end, as often as the routes say.
#[test]
fn random_graphs_lose_and_double_nothing() {
    let seeds = if cfg!(miri) { 0..2 } else { 0..10 };
    on_each_device(|host| {
        // A GPU is shared with other tests, some of which want it idle for a moment.
        let most = if host.device().kind == DeviceKind::Cuda { 6 } else { 10 };
        seeds.clone().take(most).for_each(|seed| random_graph(host, seed));
    });
}

fn random_graph(host: &Runtime, seed: u64) {
    let mut drawn = seed << 32;
    let mut draw = |n: u64| {
        drawn += 1;
        ring_tests::mixed(drawn) % n
    };
    let mut graph = GraphBuilder::new();
    let members: Vec<(Member, u32)> = (0..1 + draw(4))
        .map(|_| {
            let channels = 1 + draw(3) as u32;
            let launch = |launch: LaunchConfig| launch.channels(channels).threads(64).capacity(16);
            let member = match draw(2) {
                0 => Member::Pass(graph.kernel(launch(config::<Pass>()))),
                _ => Member::Tally(graph.kernel(launch(config::<Tally>()))),
            };
            (member, channels)
        })
        .collect();
    let last_channels = 1 + draw(3) as u32;
    let last = graph.kernel::<Absorber>(config::<Absorber>().channels(last_channels).threads(64));
    // How often each message that comes to a kernel comes to the end.
    let mut times = vec![1; members.len() + 1];
    let mut fed = vec![true; members.len()];
    for (k, (member, channels)) in members.iter().enumerate().rev() {
        let to = k + 1 + draw((members.len() - k) as u64) as usize;
        let slots = 1 << draw(6);
        let to_channels = members.get(to).map_or(last_channels, |(_, channels)| *channels);
        let route = match draw(3) {
            0 if *channels == to_channels => Route::Pairwise,
            1 => Route::ToAll,
            _ => Route::ByKey,
        };
        times[k] = times[to] * if route == Route::ToAll { u64::from(to_channels) } else { 1 };
        macro_rules! link {
            ($from:ident, $port:expr) => {
                match members.get(to) {
                    None => graph.link_with($from, $port, last, route, slots),
                    Some((Member::Pass(to), _)) => graph.link_with($from, $port, *to, route, slots),
                    Some((Member::Tally(to), _)) => {
                        graph.link_with($from, $port, *to, route, slots)
                    }
                }
            };
        }
        match *member {
            Member::Pass(from) => link!(from, Pass::ON),
            Member::Tally(from) => link!(from, Tally::COUNTED),
        };
        if let Some(is_fed) = fed.get_mut(to) {
            *is_fed = draw(2) == 0; // some kernels have both
        }
    }
    for (k, (member, _)) in members.iter().enumerate() {
        match *member {
            Member::Pass(node) if fed[k] => _ = graph.feed(node),
            Member::Tally(node) if fed[k] => _ = graph.feed(node),
            _ => {}
        }
    }
    let mut graph = match host.launch_graph(&graph) {
        // What nobody feeds was drawn so.
        Err(GraphError::Unfed { .. }) => return,
        graph => graph.unwrap(),
    };
    graph.activate(LONG).unwrap();
    let (mut count, mut numbers) = (0, 0u64);
    let each = if cfg!(miri) { 5 } else { 300 };
    for (k, (member, channels)) in members.iter().enumerate().filter(|(k, _)| fed[*k]) {
        for channel in 0..*channels {
            macro_rules! send {
                ($node:expr) => {{
                    let mut sender = graph.sender($node, channel).unwrap();
                    for number in 0..each {
                        let key = draw(7) as u32;
                        sender.send(Item { number, key, ..Item::default() }, LONG).unwrap();
                    }
                }};
            }
            match *member {
                Member::Pass(node) => send!(node),
                Member::Tally(node) => send!(node),
            }
            count += times[k] * each;
            numbers += times[k] * (each * (each - 1) / 2);
        }
    }
    graph.drain(LONG).unwrap();
    let mut sum = Absorbed::default();
    for channel in 0..last_channels {
        let state = graph.kernel(last).unwrap().read_state(channel, LONG).unwrap();
        sum.count += state.count;
        sum.numbers += state.numbers;
    }
    assert_eq!(sum, Absorbed { count, numbers }, "seed {seed}");
    graph.terminate(LONG).unwrap();
}

#[test]
fn what_was_not_handled_is_counted() {
    on_each_device(|host| {
        let mut graph = GraphBuilder::new();
        let pass = graph.kernel::<Pass>(config::<Pass>());
        graph.feed(pass);
        let _unread = graph.read_with(pass, Pass::ON, 64);
        let mut graph = host.launch_graph(&graph).unwrap();
        graph.activate(LONG).unwrap();
        let mut sender = graph.sender(pass, 0).unwrap();
        for number in 0..500 {
            sender.send(Item { number, ..Item::default() }, LONG).unwrap();
        }
        let mut progress = Progress::new();
        while graph.status().map(|status| status.processed).sum::<u64>() < 64 {
            progress.is_at(0, "all that has room is handled");
            std::thread::yield_now();
        }
        let summary = graph.terminate(LONG).unwrap()[0];
        assert_eq!((summary.processed, summary.unhandled), (64, 436));
    });
}

#[test]
fn ends_outlive_the_graph() {
    let host = cpu();
    let mut builder = GraphBuilder::new();
    let pass = builder.kernel::<Pass>(config::<Pass>());
    builder.feed(pass);
    let on = builder.read(pass, Pass::ON);
    let mut graph = host.launch_graph(&builder).unwrap();
    graph.activate(LONG).unwrap();
    let (mut sender, mut receiver) =
        (graph.sender(pass, 0).unwrap(), graph.receiver(on, 0).unwrap());
    sender.send(Item { number: 7, ..Item::default() }, LONG).unwrap();
    graph.drain(LONG).unwrap();
    graph.terminate(LONG).unwrap();
    drop((graph, host));
    assert_eq!(receiver.recv(LONG).unwrap().number, 7);
    assert!(matches!(receiver.recv(LONG), Err(RecvTimeoutError::Closed { .. })));
    assert!(matches!(sender.send(Item::default(), LONG), Err(SendTimeoutError::Closed { .. })));
}

#[test]
fn a_graph_that_was_lost_is_launched_again() {
    on_each_device(|host| {
        if host.device().kind == DeviceKind::Cuda && !kernels::bears_panics::<Pass>("a lost graph")
        {
            return;
        }
        let mut builder = GraphBuilder::new();
        let first = builder.kernel::<Tally>(config::<Tally>());
        let second = builder.kernel::<Pass>(config::<Pass>());
        builder.feed(first).link(first, Tally::COUNTED, second, Route::Pairwise);
        let last = builder.read(second, Pass::ON);
        for round in 0..3 {
            let mut graph = host.launch_graph(&builder).unwrap();
            graph.activate(LONG).unwrap();
            let mut sender = graph.sender(first, 0).unwrap();
            let mut receiver = graph.receiver(last, 0).unwrap();
            for number in 0..100 {
                sender.send(Item { number, ..Item::default() }, LONG).unwrap();
                let item = receiver.recv(LONG).unwrap();
                assert_eq!(
                    (item.number, item.counted),
                    (number, number + 1),
                    "{round}: a new state"
                );
            }
            sender.send(Item { copies: TOO_MUCH, ..Item::default() }, LONG).unwrap();
            let end = receiver.recv(LONG).unwrap_err();
            let is_panic =
                |fault: &DeviceFault| matches!(fault, DeviceFault::HandlerPanicked { .. });
            assert!(matches!(&end, RecvTimeoutError::Fault(fault) if is_panic(fault)), "{end}");
        }
    });
}
