//! Traces of graphs: of each message when it was written to a ring and when it was taken from there, by one clock, along all rings.

use super::{config, on_each_device};
use crate::devices::on_two_devices;
use ring_example_kernels::{Item, Pass, TracedCopier, TracedPass, TracedTally, TracedTogether};
use ring_host::{
    Graph, GraphBuilder, GraphError, GraphEvent, GraphTrace, Kernel, LaunchConfig, LaunchError,
    Message, PortReceiver, RingMessages, Route, Runtime, Sender, TraceLosses, WithPorts,
};
use ring_tests::{LONG, Progress, until};
use std::collections::BTreeMap;

/// Records of each trace ring, where none is to be lost.
const RECORDS: u32 = 1 << 15;

/// Messages that are sent together.
const MANY: u64 = if cfg!(miri) { 20 } else { 3000 };

fn traced<K: Kernel>() -> LaunchConfig {
    config::<K>().trace(RECORDS)
}

/// When something was, and how far that may be off.
type When = (i64, i64);

/// What a trace has told: of each message, by its ring and its index, when it was written and when it was taken.
#[derive(Default)]
struct Told {
    written: BTreeMap<(usize, u64), When>,
    taken: BTreeMap<(usize, u64), When>,
    /// Of each kernel, how many batches, and how many messages they had.
    batches: BTreeMap<usize, (u64, u64)>,
}

fn note(map: &mut BTreeMap<(usize, u64), When>, messages: RingMessages, when: When) {
    assert!(messages.n > 0, "{messages:?}");
    for k in 0..u64::from(messages.n) {
        let before = map.insert((messages.ring, messages.first + k), when);
        assert_eq!(before, None, "told of again: {messages:?}");
    }
}

impl Told {
    fn read(&mut self, trace: &mut GraphTrace) {
        let (rings, mut events) = (trace.rings().to_vec(), Vec::new());
        trace.read(|event| events.push(event));
        for event in events {
            match event {
                GraphEvent::Sent { messages, at } => {
                    assert_eq!(rings[messages.ring].from, None);
                    note(&mut self.written, messages, (at, 0));
                }
                GraphEvent::Received { messages, at } => {
                    assert_eq!(rings[messages.ring].to, None);
                    note(&mut self.taken, messages, (at, 0));
                }
                GraphEvent::Handled(batch) => {
                    let (kernel, channel) = (batch.kernel, batch.channel);
                    assert!([batch.unseen, batch.began, batch.ended].is_sorted(), "{batch:?}");
                    assert!(batch.error > 0, "{batch:?}");
                    assert_eq!(rings[batch.taken.ring].to, Some((kernel, channel)), "{batch:?}");
                    note(&mut self.taken, batch.taken, (batch.began, batch.error));
                    for emitted in &batch.emitted {
                        let from = rings[emitted.ring].from.map(|from| (from.0, from.1));
                        assert_eq!(from, Some((kernel, channel)), "{batch:?}");
                        note(&mut self.written, *emitted, (batch.ended, batch.error));
                    }
                    let (batches, messages) = self.batches.entry(kernel).or_default();
                    *batches += 1;
                    *messages += u64::from(batch.taken.n);
                }
                other => panic!("{other:?}"),
            }
        }
    }

    /// Reads until so many messages were received by the host: then all of them were told of.
    fn read_to(&mut self, trace: &mut GraphTrace, received: usize) {
        until("the trace tells of all", || {
            self.read(trace);
            let to_host = |ring: usize| trace.rings()[ring].to.is_none();
            let is_all = self.taken.keys().filter(|(ring, _)| to_host(*ring)).count() == received;
            (is_all && self.written.len() == self.taken.len()).then_some(())
        });
        assert_eq!(trace.losses(), TraceLosses::default());
        self.check(trace);
    }

    /// Each message was written once and taken once, in this order; those of each ring are all there.
    fn check(&self, trace: &GraphTrace) {
        assert!(self.written.keys().eq(self.taken.keys()));
        for ((message, written), taken) in self.written.iter().zip(self.taken.values()) {
            let (at, error) = (taken.0 - written.0, taken.1 + written.1);
            assert!(at + error >= 0, "{message:?} was written at {written:?}, taken at {taken:?}");
        }
        for ring in 0..trace.rings().len() {
            let indices =
                self.written.range((ring, 0)..(ring + 1, 0)).map(|((_, index), _)| *index);
            assert!(indices.eq(0..self.count(|of| of == ring)), "ring {ring}");
        }
        assert_eq!(trace.clock_resets(), 0);
    }

    /// Messages of some rings.
    fn count(&self, is_one: impl Fn(usize) -> bool) -> u64 {
        self.written.keys().filter(|(ring, _)| is_one(*ring)).count() as u64
    }

    /// Messages that the kernel of that number has sent by a port.
    fn sent_by(&self, trace: &GraphTrace, kernel: usize, port: &str) -> u64 {
        self.count(|ring| {
            trace.rings()[ring].from.is_some_and(|from| (from.0, from.2) == (kernel, port))
        })
    }
}

/// Sends so many messages and receives as many, with as many on their way as there is room for; `trace` is read meanwhile.
fn flood<K: WithPorts, M: Message>(
    (senders, receivers): (&mut [Sender<K>], &mut [PortReceiver<M>]),
    (sends, receives): (u64, u64),
    message: impl Fn(u64) -> K::Request,
    mut meanwhile: impl FnMut(),
) {
    let (mut progress, mut received) = (Progress::new(), 0);
    let mut sent = vec![0; senders.len()];
    while received < receives || sent.iter().any(|sent| *sent < sends) {
        for (sender, sent) in senders.iter_mut().zip(&mut sent) {
            let some: Vec<_> = (*sent..sends.min(*sent + 100)).map(&message).collect();
            *sent += sender.try_send_batch(&some).unwrap() as u64;
        }
        for receiver in receivers.iter_mut() {
            received += receiver.try_recv_each(1000, |_| {}).unwrap() as u64;
        }
        meanwhile();
        progress.is_at(sent.iter().sum::<u64>() + received, "messages");
        std::thread::yield_now();
    }
}

/// Two kernels of which the first is fed, and the second is read.
fn pair(launch: LaunchConfig, host: &Runtime) -> (Graph, Sender<TracedPass>, PortReceiver<u64>) {
    let mut declared = GraphBuilder::new();
    let first = declared.kernel::<TracedPass>(launch);
    let second = declared.kernel::<TracedPass>(traced::<TracedPass>());
    declared.feed(first).link(first, TracedPass::ON, second, Route::Pairwise);
    let read = declared.read(second, TracedPass::ON);
    let mut graph = host.launch_graph(&declared).unwrap();
    graph.activate(LONG).unwrap();
    let (sender, receiver) = (graph.sender(first, 0).unwrap(), graph.receiver(read, 0).unwrap());
    (graph, sender, receiver)
}

#[test]
fn one_message_after_another_is_followed_from_the_host_to_the_host() {
    const N: u64 = if cfg!(miri) { 5 } else { 300 };
    on_each_device(|host| {
        // Indices come round 2^32.
        let launch = traced::<TracedPass>().start_index((3 << 32) - N / 2);
        let (mut graph, mut sender, mut receiver) = pair(launch, host);
        let (mut trace, mut told) = (graph.trace().unwrap(), Told::default());
        let names: Vec<_> = trace.kernels().iter().map(|kernel| kernel.name).collect();
        assert_eq!(names, ["traced_pass", "traced_pass"]);
        let ends =
            |from, to| trace.rings().iter().filter(|of| (of.from, of.to) == (from, to)).count();
        let on = |kernel| Some((kernel, 0, "ON"));
        assert_eq!(
            (
                trace.rings().len(),
                ends(None, Some((0, 0))),
                ends(on(0), Some((1, 0))),
                ends(on(1), None)
            ),
            (3, 1, 1, 1),
            "{:?}",
            trace.rings()
        );
        for number in 0..N {
            sender.send(number, LONG).unwrap();
            assert_eq!(receiver.recv(LONG).unwrap(), number);
        }
        graph.drain(LONG).unwrap();
        told.read_to(&mut trace, N as usize);
        assert_eq!(told.written.len() as u64, 3 * N);
        assert_eq!(told.batches, BTreeMap::from([(0, (N, N)), (1, (N, N))]));
        graph.terminate(LONG).unwrap();
    });
}

#[test]
fn what_a_handler_emits_is_followed_to_each_ring_it_goes_to() {
    on_each_device(|host| {
        let mut declared = GraphBuilder::new();
        let copier = declared.kernel::<TracedCopier>(traced::<TracedCopier>().channels(2));
        let tally = declared.kernel::<TracedTally>(traced::<TracedTally>().channels(2));
        let last = declared.kernel::<TracedTogether>(traced::<TracedTogether>());
        declared.feed(copier).link(copier, TracedCopier::COPIES, tally, Route::ByKey);
        declared.link(tally, TracedTally::COUNTED, last, Route::ToAll);
        let read = declared.read(last, TracedTogether::ON);
        let none = declared.read(copier, TracedCopier::NONE);
        let mut graph = host.launch_graph(&declared).unwrap();
        let (mut trace, mut told) = (graph.trace().unwrap(), Told::default());
        graph.activate(LONG).unwrap();
        let (mut senders, mut receivers) =
            (graph.senders(copier).unwrap(), graph.receivers(read).unwrap());
        let item = |number: u64| Item {
            number,
            key: (number * 7) as u32,
            copies: (number % 4) as u32,
            ..Item::default()
        };
        // One by one, and then many.
        let single = 8;
        for number in 0..single {
            senders[0].send(item(number), LONG).unwrap();
            for _ in 0..number % 4 {
                receivers[0].recv(LONG).unwrap();
            }
        }
        let copies = |n: u64| (0..n).map(|number| number % 4).sum::<u64>();
        let mut nones = graph.receivers(none).unwrap();
        let mut left_out = 0;
        let all = 2 * copies(MANY);
        flood((&mut senders, &mut receivers), (MANY, all), item, || {
            for receiver in &mut nones {
                left_out += receiver.try_recv_each(1000, |_| {}).unwrap() as u64;
            }
            told.read(&mut trace);
        });
        graph.drain(LONG).unwrap();
        for receiver in &mut nones {
            left_out += receiver.try_recv_each(usize::MAX, |_| {}).unwrap() as u64;
        }
        let (copied, sent) = (copies(single) + all, single + 2 * MANY);
        assert_eq!(left_out, sent.div_ceil(4));
        told.read_to(&mut trace, (copied + left_out) as usize);
        for (kernel, port, n) in [
            (0, "COPIES", copied),
            (0, "NONE", left_out),
            (1, "COUNTED", copied),
            (2, "ON", copied),
        ] {
            assert_eq!(told.sent_by(&trace, kernel, port), n, "{kernel} {port}");
        }
        let messages: Vec<_> = told.batches.values().map(|(_, messages)| *messages).collect();
        assert_eq!(messages, [sent, copied, copied]);
        assert!(told.batches[&0].0 < sent, "none were handled together");
        graph.terminate(LONG).unwrap();
    });
}

/// More outputs than a warp has threads.
#[test]
fn a_channel_with_many_outputs_notes_those_that_got_messages() {
    const CHANNELS: u32 = if cfg!(miri) { 3 } else { 37 };
    on_each_device(|host| {
        let mut declared = GraphBuilder::new();
        let first = declared.kernel::<TracedPass>(traced::<TracedPass>());
        let launch = config::<TracedPass>().trace(4096).channels(CHANNELS).threads(64);
        let second = declared.kernel::<TracedPass>(launch);
        declared.feed(first).link_with(first, TracedPass::ON, second, Route::ByKey, 256);
        let read = declared.read_with(second, TracedPass::ON, 1024);
        let mut graph = host.launch_graph(&declared).unwrap();
        let (mut trace, mut told) = (graph.trace().unwrap(), Told::default());
        graph.activate(LONG).unwrap();
        let mut senders = [graph.sender(first, 0).unwrap()];
        let mut receivers = graph.receivers(read).unwrap();
        for number in 0..u64::from(CHANNELS) {
            senders[0].send(number, LONG).unwrap();
            assert_eq!(receivers[number as usize].recv(LONG).unwrap(), number);
        }
        let spread = |number: u64| number.wrapping_mul(0x9e37_79b9) >> 7;
        flood((&mut senders, &mut receivers), (MANY, MANY), spread, || told.read(&mut trace));
        graph.drain(LONG).unwrap();
        let all = MANY + u64::from(CHANNELS);
        told.read_to(&mut trace, all as usize);
        assert_eq!(told.written.len() as u64, 3 * all);
        let used = |ring: usize| told.written.contains_key(&(ring, 0));
        let rings = (0..trace.rings().len()).filter(|ring| used(*ring)).count();
        assert_eq!(rings, 1 + 2 * CHANNELS as usize);
        graph.terminate(LONG).unwrap();
    });
}

/// Each device has a clock of its own, and the host sends to the first only, and receives from the last.
#[test]
fn messages_are_followed_across_devices() {
    const N: u64 = if cfg!(miri) { 5 } else { 300 };
    on_two_devices(|devices, _| {
        let mut declared = GraphBuilder::new();
        let [first, second, third] =
            [0, 1, 0].map(|_| declared.kernel::<TracedPass>(traced::<TracedPass>()));
        declared.place(second, 1).place(third, 1);
        declared.feed(first).link(first, TracedPass::ON, second, Route::Pairwise);
        declared.link(second, TracedPass::ON, third, Route::Pairwise);
        let read = declared.read(third, TracedPass::ON);
        let mut graph = devices.launch_graph(&declared).unwrap();
        let (mut trace, mut told) = (graph.trace().unwrap(), Told::default());
        graph.activate(LONG).unwrap();
        let mut senders = [graph.sender(first, 0).unwrap()];
        let mut receivers = [graph.receiver(read, 0).unwrap()];
        for number in 0..N {
            senders[0].send(number, LONG).unwrap();
            assert_eq!(receivers[0].recv(LONG).unwrap(), number);
        }
        flood(
            (&mut senders, &mut receivers),
            (MANY, MANY),
            |number| number,
            || {
                told.read(&mut trace);
            },
        );
        graph.drain(LONG).unwrap();
        told.read_to(&mut trace, (N + MANY) as usize);
        assert_eq!(told.written.len() as u64, 4 * (N + MANY));
        graph.terminate(LONG).unwrap();
    });
}

#[test]
fn what_nobody_reads_is_overwritten_and_counted() {
    const N: u64 = if cfg!(miri) { 60 } else { 1000 };
    on_each_device(|host| {
        let (mut graph, mut sender, mut receiver) = pair(traced::<TracedPass>().trace(16), host);
        let mut trace = graph.trace().unwrap();
        for number in 0..N {
            sender.send(number, LONG).unwrap();
            receiver.recv(LONG).unwrap();
        }
        graph.terminate(LONG).unwrap();
        let mut handled = [0; 2];
        trace.read(|event| {
            if let GraphEvent::Handled(batch) = event {
                assert_eq!(batch.emitted.len(), 1, "{batch:?}");
                assert_eq!(batch.taken.first, batch.emitted[0].first, "{batch:?}");
                handled[batch.kernel] += 1;
            }
        });
        let losses = trace.losses();
        assert!((1..=8).contains(&handled[0]), "{handled:?}");
        assert_eq!((handled[1], losses.received), (N, 0));
        // Two records for each message; one of them may be left of the oldest.
        let lost = 2 * (N - handled[0]);
        assert!(losses.sent >= N - 16 && (lost - 1..=lost).contains(&losses.handled), "{losses:?}");
    });
}

#[test]
fn a_trace_is_there_only_where_it_was_asked_for_and_can_be() {
    on_each_device(|host| {
        let mut declared = GraphBuilder::new();
        let [first, second] = [config::<TracedPass>(), traced::<TracedPass>()]
            .map(|launch| declared.kernel::<TracedPass>(launch));
        declared.feed(first).link(first, TracedPass::ON, second, Route::Pairwise);
        let read = declared.read(second, TracedPass::ON);
        let mut graph = host.launch_graph(&declared).unwrap();
        graph.activate(LONG).unwrap();
        let (mut sender, mut receiver) =
            (graph.sender(first, 0).unwrap(), graph.receiver(read, 0).unwrap());
        sender.send(7, LONG).unwrap();
        assert_eq!(receiver.recv(LONG).unwrap(), 7);
        // No clock is known: nothing comes in.
        let (mut trace, mut received) = (graph.trace().unwrap(), 0);
        graph.drain(LONG).unwrap();
        trace.read(|event| match event {
            GraphEvent::Received { messages, .. } => received += messages.n,
            other => panic!("{other:?}"),
        });
        assert_eq!(received, 1);
        graph.terminate(LONG).unwrap();

        let mut declared = GraphBuilder::new();
        let pass = declared.kernel::<TracedPass>(config::<TracedPass>());
        declared.feed(pass).read(pass, TracedPass::ON);
        assert!(host.launch_graph(&declared).unwrap().trace().is_none());

        let mut declared = GraphBuilder::new();
        let pass = declared.kernel::<Pass>(config::<Pass>().trace(64));
        declared.feed(pass).read(pass, Pass::ON);
        match host.launch_graph(&declared) {
            Err(GraphError::Launch(LaunchError::NotTraced { kernel: "pass" })) => {}
            other => panic!("{other:?}"),
        }
    });
}
