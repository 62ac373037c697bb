//! Kernels of a graph whose messages are handled by several threads together: they emit as a thread does.

use super::{MANY, config, on_each_device};
use ring_example_kernels::{BlockCopier, Copier, Item, TOO_MUCH, Tally, WarpCopier};
use ring_host::{
    DeviceFault, DeviceKind, Exit, Graph, GraphBuilder, HasPort, Kernel, LaunchConfig, Node, Port,
    PortReceiver, RecvTimeoutError, Route, Runtime, Sender,
};
use ring_tests::{LONG, Progress, cpu, kernels};

/// A kernel that copies as [`Copier`] does.
trait Copies: Kernel<Request = Item> + HasPort<0, Message = Item> + HasPort<1, Message = u64> {
    const COPIES: Port<Self, 0> = Port::NEW;
    const NONE: Port<Self, 1> = Port::NEW;
    /// What the copies have counted.
    const COUNTED: u64;
    /// Whether every other copy is placed, without the rest.
    const PLACES: bool;
    /// Threads of its block, at least.
    const LEAST_THREADS: u32 = 64;
}

impl Copies for Copier {
    const COUNTED: u64 = 0;
    const PLACES: bool = false;
}

impl Copies for WarpCopier {
    const COUNTED: u64 = 45;
    const PLACES: bool = true;
}

impl Copies for BlockCopier {
    const COUNTED: u64 = 0;
    const PLACES: bool = true;
    const LEAST_THREADS: u32 = 32;
}

ring_device::ring_kernel! {
    /// A thread that places all copies. For the CPU device only.
    pub struct Placer {
        name: "placer",
        entry: "ring_Copier",
        ports: {
            /// The copies.
            PLACED: [Item; 3],
            /// The numbers of those messages of which there was no copy.
            EMPTY: [u64; 1],
        },
    }

    fn handle(item: &Item, out: &mut Ports) {
        for copy in 0..item.copies {
            let key = item.key.wrapping_add(copy);
            let rest = if copy % 2 == 1 { [0; 2] } else { item.rest };
            let lineage = u64::from(copy) + 1;
            let copied = Item { copy, key, lineage, rest, hops: 1, ..*item };
            let placed = out.place(Placer::PLACED);
            for (i, word) in bytemuck::cast::<_, [u32; 16]>(copied).into_iter().enumerate() {
                // What is zero need not be set.
                assert!(word == 0 || placed.set(0, i, word));
            }
        }
        if item.copies == 0 {
            out.place(Placer::EMPTY).set(0, 0, item.number as u32);
        }
    }
}

impl Copies for Placer {
    const COUNTED: u64 = 0;
    const PLACES: bool = true;
}

/// A graph of that kernel alone, which the host feeds and reads.
fn alone<K: Copies>(
    host: &Runtime,
    launch: LaunchConfig,
    test: impl FnOnce(Graph, &mut Sender<K>, &mut PortReceiver<Item>, &mut PortReceiver<u64>),
) {
    let mut graph = GraphBuilder::new();
    let copier: Node<K> = graph.kernel(launch);
    graph.feed(copier);
    let (copies, none) = (graph.read(copier, K::COPIES), graph.read(copier, K::NONE));
    let mut graph = host.launch_graph(&graph).unwrap();
    graph.activate(LONG).unwrap();
    let mut sender = graph.sender(copier, 0).unwrap();
    let mut receivers = (graph.receiver(copies, 0).unwrap(), graph.receiver(none, 0).unwrap());
    test(graph, &mut sender, &mut receivers.0, &mut receivers.1);
}

/// Message `number`: how many copies it wants, and a key.
fn message(number: u64) -> Item {
    let drawn = ring_tests::mixed(number);
    let (copies, key, rest) = ((drawn % 4) as u32, (drawn >> 32) as u32, [drawn, !drawn]);
    Item { number, copies, key, rest, ..Item::default() }
}

/// What comes of it.
fn copies_of<K: Copies>(item: &Item) -> impl Iterator<Item = Item> + use<K> {
    let item = Item { hops: 1, counted: K::COUNTED, ..*item };
    (0..item.copies).map(move |copy| Item {
        copy,
        key: item.key.wrapping_add(copy),
        lineage: u64::from(copy) + 1,
        rest: if K::PLACES && copy % 2 == 1 { [0; 2] } else { item.rest },
        ..item
    })
}

/// Sends `n` messages, at most `ahead` of them before what came of them is read, and checks that all comes in order.
fn all_comes_in_order<K: Copies>(host: &Runtime, threads: u32, n: u64, ahead: u64) {
    alone::<K>(host, config::<K>().threads(threads), |mut graph, sender, copies, none| {
        let (mut progress, mut sent, mut handled) = (Progress::new(), 0, 0);
        let mut waiting = Vec::new();
        while handled < n {
            waiting.clear();
            waiting.extend((sent..n.min(handled + ahead)).map(message));
            sent += sender.try_send_batch(&waiting).unwrap() as u64;
            while handled < sent {
                let item = message(handled);
                if item.copies == 0 {
                    assert_eq!(none.recv(LONG).unwrap(), handled);
                }
                for copy in copies_of::<K>(&item) {
                    assert_eq!(copies.recv(LONG).unwrap(), copy);
                }
                handled += 1;
            }
            progress.is_at(handled, "messages");
        }
        graph.drain(LONG).unwrap();
        assert!(copies.try_recv().is_err() && none.try_recv().is_err(), "nothing more");
        // And on it goes.
        graph.activate(LONG).unwrap();
        sender.send(Item { number: n, ..Item::default() }, LONG).unwrap();
        assert_eq!(none.recv(LONG), Ok(n));
        let summary = graph.terminate(LONG).unwrap()[0];
        assert_eq!((summary.processed, summary.unhandled), (n + 1, 0));
    });
}

/// All of what is asked of such a kernel.
fn copies_as_a_thread_does<K: Copies>(host: &Runtime) {
    for threads in [K::LEAST_THREADS, 96, 256] {
        all_comes_in_order::<K>(host, threads, if cfg!(miri) { 5 } else { 300 }, 1);
        all_comes_in_order::<K>(host, threads, MANY / 4, 700);
        if host.device().kind != DeviceKind::Cuda {
            break; // a CPU's thread is all the block
        }
    }
    faults_by_name::<K>(host);
}

/// The same of a kernel that links may choose a channel for.
fn copies_to_channels<K: Copies>(host: &Runtime) {
    copies_as_a_thread_does::<K>(host);
    names_no_channel::<K>(host);
    panics_by_name::<K>(host);
}

/// One message too many faults: one that comes alone, and one in a batch, of which nothing is sent.
fn faults_by_name<K: Copies>(host: &Runtime) {
    for (before, too_many) in [(0, 4), (40, 4), (0, 5), (40, 5)] {
        alone::<K>(host, config::<K>(), |_graph, sender, copies, none| {
            sender.send(Item { copies: 3, ..Item::default() }, LONG).unwrap();
            (0..3).for_each(|copy| assert_eq!(copies.recv(LONG).unwrap().copy, copy));
            let mut batch = vec![Item { copies: 1, ..Item::default() }; before];
            batch.push(Item { copies: too_many, ..Item::default() });
            assert_eq!(sender.try_send_batch(&batch), Ok(batch.len()));
            let end = none.recv(LONG).unwrap_err();
            let exit = Exit::EmittedTooMany;
            let left = DeviceFault::Left { kernel: K::NAME, channel: 0, exit };
            assert_eq!(end, RecvTimeoutError::Fault(left));
            let whole = std::iter::from_fn(|| copies.recv(LONG).ok());
            assert!(whole.into_iter().all(|item| item.copies == 1), "nothing of too many copies");
        });
    }
}

/// A message to a channel that there is not faults, alone and in a batch.
fn names_no_channel<K: Copies>(host: &Runtime) {
    for before in [0, 40] {
        let mut graph = GraphBuilder::new();
        let copier = graph.kernel::<K>(config::<K>());
        let tally = graph.kernel::<Tally>(config::<Tally>().channels(2));
        graph.feed(copier).link(copier, K::COPIES, tally, Route::ByIndex);
        let none = graph.read(copier, K::NONE);
        let all = graph.read(tally, Tally::COUNTED);
        let mut graph = host.launch_graph(&graph).unwrap();
        graph.activate(LONG).unwrap();
        let mut sender = graph.sender(copier, 0).unwrap();
        let mut receivers = [0, 1].map(|channel| graph.receiver(all, channel).unwrap());
        sender.send(Item { copies: 2, ..Item::default() }, LONG).unwrap();
        for (key, receiver) in receivers.iter_mut().enumerate() {
            assert_eq!(receiver.recv(LONG).unwrap().key, key as u32);
        }
        let mut batch = vec![Item { copies: 1, ..Item::default() }; before];
        batch.push(Item { copies: 2, key: 1, ..Item::default() });
        assert_eq!(sender.try_send_batch(&batch), Ok(batch.len()));
        let end = graph.receiver(none, 0).unwrap().recv(LONG).unwrap_err();
        let exit = Exit::NoSuchChannel;
        let left = DeviceFault::Left { kernel: K::NAME, channel: 0, exit };
        assert_eq!(end, RecvTimeoutError::Fault(left));
    }
}

/// A handler that panics ends its channel.
fn panics_by_name<K: Copies>(host: &Runtime) {
    if host.device().kind == DeviceKind::Cuda && !kernels::bears_panics::<K>(K::NAME) {
        return;
    }
    for before in [0, 40] {
        alone::<K>(host, config::<K>(), |_graph, sender, copies, none| {
            let mut batch = vec![Item { copies: 1, ..Item::default() }; before];
            batch.push(Item { copies: TOO_MUCH, ..Item::default() });
            assert_eq!(sender.try_send_batch(&batch), Ok(batch.len()));
            let end = none.recv(LONG).unwrap_err();
            let RecvTimeoutError::Fault(DeviceFault::HandlerPanicked { kernel, .. }) = end else {
                panic!("{end}")
            };
            assert_eq!(kernel, K::NAME);
            while copies.recv(LONG).is_ok() {}
        });
    }
}

#[test]
fn a_thread_copies() {
    on_each_device(copies_as_a_thread_does::<Copier>);
    copies_as_a_thread_does::<Placer>(&cpu());
}

#[test]
fn a_warp_copies_as_a_thread_does() {
    on_each_device(copies_to_channels::<WarpCopier>);
}

#[test]
fn a_block_copies_as_a_thread_does() {
    on_each_device(copies_to_channels::<BlockCopier>);
}
