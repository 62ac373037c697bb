//! `Graph::recover`: after a fault of one kernel the graph works again, with new ends, states and links.

use crate::{config, on_each_device};
use ring_example_kernels::{Absorber, Item, Pass, TOO_MUCH, Tally};
use ring_host::device::{Quirks, cpu::Cpu};
use ring_host::{
    ControlError, DeviceFault, DeviceKind, Graph, GraphBuilder, GraphError, Node, PortReader,
    PortReceiver, RecoverGraphError, RecvTimeoutError, Route, Runtime, RuntimeConfig,
    SendTimeoutError, Sender, Summary,
};
use ring_tests::{LONG, Progress, cpu, cpu_with, kernels, until};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

/// A chain of three kernels, of which the middle one has a handler that cannot bear all messages.
pub struct Chain {
    pub declared: GraphBuilder,
    pub first: Node<Tally>,
    pub third: Node<Tally>,
    pub last: PortReader<Item>,
}

impl Chain {
    /// By links of so many slots.
    pub fn of_slots(slots: u32) -> Chain {
        let mut declared = GraphBuilder::new();
        let first = declared.kernel::<Tally>(config::<Tally>().capacity(64));
        let second = declared.kernel::<Pass>(config::<Pass>());
        let third = declared.kernel::<Tally>(config::<Tally>());
        declared.feed(first).link_with(first, Tally::COUNTED, second, Route::Pairwise, slots);
        declared.link_with(second, Pass::ON, third, Route::Pairwise, slots);
        let last = declared.read_with(third, Tally::COUNTED, slots);
        Chain { declared, first, third, last }
    }

    /// Activates it and takes its ends.
    pub fn ends(&self, graph: &mut Graph) -> (Sender<Tally>, PortReceiver<Item>) {
        graph.activate(LONG).unwrap();
        (graph.sender(self.first, 0).unwrap(), graph.receiver(self.last, 0).unwrap())
    }
}

/// Sends `count` messages, one after the other, which nobody has counted before.
fn passes_anew(ends: &mut (Sender<Tally>, PortReceiver<Item>), count: u64) {
    for number in 0..count {
        ends.0.send(Item { number, ..Item::default() }, LONG).unwrap();
        let item = ends.1.recv(LONG).unwrap();
        assert_eq!((item.number, item.counted, item.hops), (number, number + 1, 3), "a new state");
    }
}

/// Whether a fault is that of another kernel of the graph, the one with the handler that panicked.
fn names_the_lost(fault: &DeviceFault) -> bool {
    let DeviceFault::Graph { lost, .. } = fault else { return false };
    matches!(**lost, DeviceFault::HandlerPanicked { kernel: "pass", channel: 0, .. })
}

/// The ends of a launch that a fault has ended.
fn are_lost((sender, receiver): &mut (Sender<Tally>, PortReceiver<Item>)) {
    let end = receiver.recv(LONG).unwrap_err();
    assert!(matches!(&end, RecvTimeoutError::Fault(fault) if names_the_lost(fault)), "{end}");
    let end = sender.send(Item::default(), LONG).unwrap_err();
    assert!(
        matches!(&end, SendTimeoutError::Fault { fault, .. } if names_the_lost(fault)),
        "{end}"
    );
}

#[test]
fn a_graph_whose_middle_kernel_panics_is_recovered_as_one() {
    on_each_device(|host| {
        if host.device().kind == DeviceKind::Cuda && !kernels::bears_panics::<Pass>("a recovery") {
            return;
        }
        let chain = Chain::of_slots(16);
        let mut graph = host.launch_graph(&chain.declared).unwrap();
        for round in 0..3 {
            let mut ends = chain.ends(&mut graph);
            let before = 10 * (round + 1);
            passes_anew(&mut ends, before);
            ends.0.send(Item { copies: TOO_MUCH, ..Item::default() }, LONG).unwrap();
            // Those behind it stay on the first link, and then before it.
            let mut sent = before + 1;
            while sent < before + 40 && ends.0.send(Item::default(), LONG).is_ok() {
                sent += 1;
            }
            let mut progress = Progress::new();
            while graph.check().is_ok() {
                progress.is_at(0, "the handler panics");
                std::thread::yield_now();
            }
            let counts = graph.recover(host, LONG).unwrap();
            let [first, second, third] = counts[..] else { panic!("{counts:?}") };
            assert_eq!(first.processed + first.unhandled, sent, "{counts:?}");
            assert!(first.processed <= before + 1 + 16, "no more than the link has room for");
            // The one that was lost may have handled some that it had not reported.
            assert!(second.processed <= before && second.unhandled == 0, "{counts:?}");
            assert_eq!(third, Summary { processed: before, unhandled: 0 });
            are_lost(&mut ends);
        }
        graph.terminate(LONG).unwrap();
    });
}

#[test]
fn a_graph_without_a_fault_is_recovered_too() {
    on_each_device(|host| {
        let chain = Chain::of_slots(16);
        let mut graph = host.launch_graph(&chain.declared).unwrap();
        let nothing = Summary { processed: 0, unhandled: 0 };
        assert_eq!(graph.recover(host, LONG), Ok(vec![nothing; 3]), "before it was active");
        let mut ends = chain.ends(&mut graph);
        passes_anew(&mut ends, 5);
        ends.0.send(Item { number: 5, ..Item::default() }, LONG).unwrap();
        graph.drain(LONG).unwrap();
        let all = Summary { processed: 6, unhandled: 0 };
        assert_eq!(graph.recover(host, LONG), Ok(vec![all; 3]));
        // What had been emitted to the host can still be received.
        assert_eq!(ends.1.recv(LONG).unwrap().number, 5);
        let (sent, received) = (ends.0.send(Item::default(), LONG), ends.1.recv(LONG));
        assert!(matches!(sent, Err(SendTimeoutError::Closed { kernel: "tally", .. })), "{sent:?}");
        assert_eq!(received, Err(RecvTimeoutError::Closed { kernel: "tally" }));
        passes_anew(&mut chain.ends(&mut graph), 7);
        graph.terminate(LONG).unwrap();
        let all = Summary { processed: 7, unhandled: 0 };
        assert_eq!(graph.recover(host, LONG), Ok(vec![all; 3]), "after it was terminated");
        passes_anew(&mut chain.ends(&mut graph), 3);
    });
}

/// Arenas with room for one launch at a time: whatever a launch has taken is given back.
#[test]
fn recoveries_need_no_more_memory_than_a_launch() {
    let chain = Chain::of_slots(1024);
    let host = cpu_with(1 << 20, 180 << 10);
    let second =
        host.launch_graph(&chain.declared).and_then(|_one| host.launch_graph(&chain.declared));
    assert!(second.is_err(), "room for two");
    let mut graph = host.launch_graph(&chain.declared).unwrap();
    for _ in 0..if cfg!(miri) { 2 } else { 20 } {
        passes_anew(&mut chain.ends(&mut graph), 2);
        graph.recover(&host, LONG).unwrap();
    }
    // Ends that are kept keep their memory, and then there is none.
    let ends = chain.ends(&mut graph);
    let error = graph.recover(&host, LONG).unwrap_err();
    assert!(matches!(error, RecoverGraphError::Launch(_)), "{error}");
    drop(ends);
    graph.recover(&host, LONG).unwrap();
    passes_anew(&mut chain.ends(&mut graph), 2);
}

#[test]
fn a_graph_that_cannot_be_launched_again_says_so_until_it_is() {
    let (chain, host, small) = (Chain::of_slots(16), cpu(), cpu_with(1 << 20, 0));
    let mut graph = host.launch_graph(&chain.declared).unwrap();
    passes_anew(&mut chain.ends(&mut graph), 4);
    let error = graph.recover(&small, LONG).unwrap_err();
    assert!(matches!(&error, RecoverGraphError::Launch(GraphError::Arena { .. })), "{error}");
    let fault = DeviceFault::TakenDown { kernel: "tally" };
    let control = ControlError::Fault(fault.clone());
    assert_eq!(graph.check(), Err(fault.clone()));
    assert_eq!(graph.activate(LONG), Err(control.clone()));
    assert_eq!(graph.drain(LONG), Err(control.clone()));
    assert_eq!(graph.terminate(LONG), Err(control));
    assert_eq!(graph.status().count(), 0);
    assert_eq!(graph.sender(chain.first, 0).map(drop), Err(GraphError::Fault(fault.clone())));
    assert_eq!(graph.receiver(chain.last, 0).map(drop), Err(GraphError::Fault(fault.clone())));
    assert_eq!(graph.receivers(chain.last).map(drop), Err(GraphError::Fault(fault.clone())));
    assert_eq!(graph.kernel(chain.first).map(drop), Err(GraphError::Fault(fault)));
    assert_eq!(graph.recover(&small, LONG), Err(error));
    let all = Summary { processed: 4, unhandled: 0 };
    assert_eq!(graph.recover(&host, LONG), Ok(vec![all; 3]), "counted before");
    passes_anew(&mut chain.ends(&mut graph), 3);
}

static BEGUN: AtomicBool = AtomicBool::new(false);
static RELEASED: AtomicBool = AtomicBool::new(false);

ring_device::ring_kernel! {
    /// Passes nothing on before it is [released](RELEASED). For the CPU device only.
    struct Held {
        name: "held",
        entry: "ring_echo",
        ports: { ON: [Item; 1] },
    }

    fn handle(item: &Item, out: &mut Ports) {
        BEGUN.store(true, Relaxed);
        until("its release", || RELEASED.load(Relaxed).then_some(()));
        out.emit(Held::ON, *item);
    }
}

#[test]
fn a_kernel_that_stays_keeps_its_graph_from_being_recovered() {
    let host = cpu();
    let mut declared = GraphBuilder::new();
    let held = declared.kernel::<Held>(ring_host::LaunchConfig::default());
    let sink = declared.kernel::<Absorber>(config::<Absorber>());
    declared.feed(held).link(held, Held::ON, sink, Route::Pairwise);
    let mut graph = host.launch_graph(&declared).unwrap();
    graph.activate(LONG).unwrap();
    graph.sender(held, 0).unwrap().send(Item::default(), LONG).unwrap();
    until("the handler begins", || BEGUN.load(Relaxed).then_some(()));
    for _ in 0..2 {
        let error = graph.recover(&host, Duration::from_millis(20)).unwrap_err();
        let RecoverGraphError::Staying(ControlError::Timeout { kernel, .. }) = error else {
            panic!("{error}")
        };
        assert_eq!(kernel, "held");
    }
    assert!(matches!(graph.activate(LONG), Err(ControlError::Terminated { .. })));
    RELEASED.store(true, Relaxed);
    let counts = graph.recover(&host, LONG).unwrap();
    assert_eq!(counts[0], Summary { processed: 1, unhandled: 0 });
    graph.activate(LONG).unwrap();
    graph.sender(held, 0).unwrap().send(Item { number: 9, ..Item::default() }, LONG).unwrap();
    graph.drain(LONG).unwrap();
    let state = graph.kernel(sink).unwrap().read_state(0, LONG).unwrap();
    assert_eq!((state.count, state.numbers), (1, 9));
}

#[test]
fn after_a_reset_the_runtime_is_to_be_recovered_first() {
    let device = Quirks::of(Cpu::open()).reset_after(100);
    let mut host = Runtime::over(device, RuntimeConfig::default()).unwrap();
    let chain = Chain::of_slots(16);
    let mut graph = host.launch_graph(&chain.declared).unwrap();
    let mut ends = chain.ends(&mut graph);
    let fault = loop {
        match ends.0.send(Item::default(), LONG) {
            Ok(()) => {}
            Err(SendTimeoutError::Fault { fault, .. }) => break fault,
            Err(error) => panic!("{error}"),
        }
        if let Err(RecvTimeoutError::Fault(fault)) = ends.1.recv(LONG) {
            break fault;
        }
    };
    assert!(fault.to_string().contains("709"), "{fault}");
    for _ in 0..2 {
        let error = graph.recover(&host, LONG).unwrap_err();
        assert!(matches!(error, RecoverGraphError::Device(DeviceFault::Device { .. })), "{error}");
        assert!(error.to_string().contains("call `Runtime::recover`"), "{error}");
    }
    assert!(host.recover(LONG).unwrap().reopened);
    assert_eq!(graph.recover(&host, LONG).unwrap().len(), 3);
    passes_anew(&mut chain.ends(&mut graph), 200);
    assert!(ends.0.send(Item::default(), LONG).is_err(), "what was lost stays lost");
    graph.terminate(LONG).unwrap();
}
