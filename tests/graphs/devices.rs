//! Graphs on two devices: the same guarantees, whether the devices reach each other's memory or not.

use crate::{MANY, config, pump};
use ring_example_kernels::{Copier, Item, Pass, TOO_MUCH, Tally};
use ring_host::device::{self, Quirks, cpu::Cpu};
use ring_host::image::Image;
use ring_host::{
    ControlError, Device, DeviceFault, DeviceKind, Devices, DevicesError, GraphBuilder, GraphError,
    Health, LaunchConfig, LaunchError, LinkPath, NoPeer, RecoverGraphError, RecvTimeoutError,
    Route, Runtime, RuntimeConfig, SendTimeoutError,
};
use ring_tests::{LONG, Progress, certainly, cpu, cpu_with, gpu, kernels, opened};
use ring_whole_device_kernels::Wave;
use std::sync::OnceLock;
use std::time::Duration;

/// Two CPU devices.
pub(crate) fn two_cpus() -> Devices {
    Devices::of([cpu(), cpu()]).unwrap()
}

/// A CPU device, and one with quirks.
pub(crate) fn with(quirks: impl FnOnce(Quirks) -> Quirks) -> Devices {
    let quirky = quirks(Quirks::of(Cpu::open()));
    Devices::of([cpu(), opened(&quirky, RuntimeConfig::default())]).unwrap()
}

/// The first two GPUs, with the code of all kernels loaded, if there are so many.
pub(crate) fn two_gpus() -> Option<Devices> {
    static TWO: OnceLock<Option<Devices>> = OnceLock::new();
    let two = TWO.get_or_init(|| {
        let two = ring_tests::two_gpus()?;
        for host in &two {
            host.prepare::<Pass>(&config::<Pass>()).unwrap();
        }
        Some(two)
    });
    two.clone()
}

/// Runs a test on two devices: CPU threads that reach each other's memory, both ways, one way, and not at all; CPU
/// threads and a GPU, if there is one; and two GPUs.
/// It is told how a link from the first to the second goes.
pub(crate) fn on_two_devices(test: impl Fn(&Devices, &LinkPath)) {
    let pinned = LinkPath::Pinned(NoPeer::TakenAway);
    test(&two_cpus(), &LinkPath::Peer);
    test(&with(Quirks::no_peers), &pinned);
    if cfg!(miri) {
        return; // the rest differs in what the host says only
    }
    let neither = [0, 1].map(|_| {
        let quirky = Quirks::of(Cpu::open()).no_peers();
        opened(&quirky, RuntimeConfig::default())
    });
    test(&Devices::of(neither).unwrap(), &pinned);
    if let Some(gpu) = gpu() {
        gpu.prepare::<Pass>(&config::<Pass>()).unwrap();
        let kinds = LinkPath::Pinned(NoPeer::Kinds);
        test(&Devices::of([cpu(), gpu.clone()]).unwrap(), &kinds);
        test(&Devices::of([gpu, cpu()]).unwrap(), &kinds);
    }
    if let Some(two) = two_gpus() {
        let code = Image::built_in();
        let path = match two.are_peers(0, 1) {
            Ok(()) => LinkPath::Peer,
            Err(why) => LinkPath::Pinned(why.clone()),
        };
        test(&two, &path);
        // The same without: as on machines whose GPUs are no peers.
        let of = |index| {
            let (driver, _) = device::open(Device::Cuda(index), &code).unwrap();
            Runtime::over(Quirks::of(driver).no_peers(), kernels::config()).unwrap()
        };
        test(&Devices::of([0, 1].map(of)).unwrap(), &pinned);
    }
}

#[test]
fn a_chain_across_devices_passes_each_message_once_and_in_order_through_drains() {
    on_two_devices(|devices, path| {
        let mut graph = GraphBuilder::new();
        let first = graph.kernel::<Pass>(config::<Pass>());
        let second = graph.kernel::<Tally>(config::<Tally>());
        let third = graph.kernel::<Pass>(config::<Pass>());
        graph.feed(first).place(second, 1);
        graph.link_with(first, Pass::ON, second, Route::Pairwise, 8);
        graph.link(second, Tally::COUNTED, third, Route::Pairwise);
        let last = graph.read_with(third, Pass::ON, 16);
        let mut graph = devices.launch_graph(&graph).unwrap();
        let paths: Vec<_> = graph.links().iter().map(|link| link.path.clone()).collect();
        assert_eq!(paths, [path.clone(), path.clone(), LinkPath::Host]);
        let told = graph.links()[0].to_string();
        assert!(
            told.starts_with("pass.ON on device 0 -> tally on device 1: 1 rings of 8 slots, in "),
            "{told}"
        );
        let mut senders = [graph.sender(first, 0).unwrap()];
        let mut receivers = [graph.receiver(last, 0).unwrap()];
        let (rounds, mut sent, received) = (3, 0, std::cell::Cell::new(0));
        for round in 1..=rounds {
            graph.activate(LONG).unwrap();
            let upto = round * MANY / rounds;
            let next = |_| {
                let number = sent;
                sent += u64::from(number < upto);
                (number < upto).then(|| Item { number, ..Item::default() })
            };
            let got = |_, item: &Item| {
                assert_eq!((item.number, item.hops), (received.get(), 3));
                received.set(received.get() + 1);
                assert_eq!(item.counted, received.get());
            };
            pump(&mut senders, &mut receivers, next, got, || received.get() == upto);
            graph.drain(LONG).unwrap();
        }
        let summaries = graph.terminate(LONG).unwrap();
        assert!(summaries.iter().all(|s| (s.processed, s.unhandled) == (MANY, 0)), "{summaries:?}");
    });
}

#[test]
fn keys_go_to_channels_of_another_device_and_keep_their_order() {
    const CHANNELS: u32 = 3;
    on_two_devices(|devices, path| {
        let mut graph = GraphBuilder::new();
        let copier = graph.kernel::<Copier>(config::<Copier>().channels(2));
        let tally = graph.kernel::<Tally>(config::<Tally>().channels(CHANNELS));
        graph.feed(copier).place(tally, 1);
        graph.link_with(copier, Copier::COPIES, tally, Route::ByKey, 32);
        let none = graph.read(copier, Copier::NONE);
        let all = graph.read(tally, Tally::COUNTED);
        let mut graph = devices.launch_graph(&graph).unwrap();
        assert_eq!((graph.links()[0].rings, &graph.links()[0].path), (6, path));
        graph.activate(LONG).unwrap();
        let mut senders = graph.senders(copier).unwrap();
        let mut receivers = graph.receivers(all).unwrap();
        let (mut sent, mut came) = ([0u64; 2], 0);
        let mut last = std::collections::HashMap::new();
        let mut progress = Progress::new();
        let each = MANY / 8;
        while came < 3 * 2 * each {
            for (source, sender) in senders.iter_mut().enumerate() {
                let (number, key) = (sent[source], ring_tests::mixed(sent[source]) as u32 % 16);
                let item =
                    Item { source: source as u64, number, key, copies: 3, ..Item::default() };
                sent[source] += u64::from(number < each && sender.try_send(item).is_ok());
            }
            for (channel, receiver) in receivers.iter_mut().enumerate() {
                let got = |item: &Item| {
                    assert_eq!(item.key % CHANNELS, channel as u32);
                    let before = last.insert((item.source, item.key, item.copy), item.number);
                    assert!(before.is_none_or(|before| before < item.number), "{item:?}");
                };
                came += receiver.try_recv_each(64, got).unwrap() as u64;
            }
            progress.is_at(came, "copies");
        }
        graph.drain(LONG).unwrap();
        assert!(receivers.iter_mut().all(|receiver| receiver.try_recv().is_err()), "nothing more");
        assert!(graph.receivers(none).unwrap().iter_mut().all(|none| none.try_recv().is_err()));
        graph.terminate(LONG).unwrap();
    });
}

/// A chain of three kernels, of which the middle one is on the second device.
fn chain() -> (GraphBuilder, ring_host::Node<Tally>, ring_host::PortReader<Item>) {
    let mut graph = GraphBuilder::new();
    let first = graph.kernel::<Tally>(config::<Tally>().capacity(64));
    let second = graph.kernel::<Pass>(config::<Pass>());
    let third = graph.kernel::<Tally>(config::<Tally>());
    graph.feed(first).place(second, 1);
    graph.link_with(first, Tally::COUNTED, second, Route::Pairwise, 8);
    graph.link_with(second, Pass::ON, third, Route::Pairwise, 8);
    let last = graph.read_with(third, Tally::COUNTED, 8);
    (graph, first, last)
}

/// Whether each device serves.
fn health(devices: &Devices) -> Vec<Health> {
    devices.iter().map(Runtime::health).collect()
}

/// The fault that lies behind that of a kernel of the graph.
fn lost(fault: &DeviceFault) -> &DeviceFault {
    match fault {
        DeviceFault::Graph { lost, .. } => lost,
        fault => fault,
    }
}

#[test]
fn a_kernel_lost_on_one_device_ends_its_neighbours_on_the_other_and_all_are_recovered() {
    on_two_devices(|devices, _| {
        let is_gpu = devices[1].device().kind == DeviceKind::Cuda;
        if is_gpu && !kernels::bears_panics::<Pass>("a neighbour on another device") {
            return;
        }
        let (declared, first, last) = chain();
        let mut graph = devices.launch_graph(&declared).unwrap();
        for _ in 0..2 {
            graph.activate(LONG).unwrap();
            let mut sender = graph.sender(first, 0).unwrap();
            let mut receiver = graph.receiver(last, 0).unwrap();
            for number in 1..=20 {
                sender.send(Item::default(), LONG).unwrap();
                assert_eq!(receiver.recv(LONG).unwrap().counted, number);
            }
            sender.send(Item { copies: TOO_MUCH, ..Item::default() }, LONG).unwrap();
            let is_it =
                |fault| matches!(lost(fault), DeviceFault::HandlerPanicked { kernel: "pass", .. });
            let end = receiver.recv(LONG).unwrap_err();
            assert!(matches!(&end, RecvTimeoutError::Fault(fault) if is_it(fault)), "{end}");
            let end = loop {
                if let Err(end) = sender.send(Item::default(), LONG) {
                    break end;
                }
            };
            let SendTimeoutError::Fault { fault, .. } = end else { panic!("{end}") };
            assert!(is_it(&fault), "{fault}");
            let counts = graph.recover_on(devices, LONG).unwrap();
            // Of the lost one it is what it had reported last.
            assert!(counts[1].processed <= 20 && counts[2].processed == 20, "{counts:?}");
        }
        graph.terminate(LONG).unwrap();
    });
}

#[test]
fn a_device_lost_while_a_link_is_full_ends_the_kernels_of_the_other_by_name() {
    let quirky = Quirks::of(Cpu::open()).fault_after(100);
    let devices = Devices::of([cpu(), opened(&quirky, RuntimeConfig::default())]).unwrap();
    let (declared, first, last) = chain();
    let mut graph = devices.launch_graph(&declared).unwrap();
    graph.activate(LONG).unwrap();
    let mut sender = graph.sender(first, 0).unwrap();
    let mut receiver = graph.receiver(last, 0).unwrap();
    let is_it = |fault: &DeviceFault| matches!(lost(fault), DeviceFault::Device { kernel: "pass", device, .. } if device.starts_with("CPU"));
    let mut sent = 0;
    let short = Duration::from_millis(if cfg!(miri) { 2000 } else { 100 });
    while sent < 95 {
        sender.send(Item::default(), LONG).unwrap();
        receiver.recv(LONG).unwrap();
        sent += 1;
    }
    // Nobody reads: all rings fill, and then the device is found to have faulted.
    let end = loop {
        match sender.send(Item::default(), short) {
            Ok(()) => sent += 1,
            Err(SendTimeoutError::Timeout { .. }) => {
                let _ = receiver.try_recv();
            }
            Err(end) => break end,
        }
        assert!(sent < 1000);
    };
    let SendTimeoutError::Fault { fault, .. } = end else { panic!("{end}") };
    assert!(is_it(&fault), "{fault}");
    let end = loop {
        if let Err(end) = receiver.recv(LONG) {
            break end;
        }
    };
    assert!(matches!(&end, RecvTimeoutError::Fault(fault) if is_it(fault)), "{end}");
    let drained = graph.drain(LONG).unwrap_err();
    assert!(matches!(&drained, ControlError::Fault(fault) if is_it(fault)), "{drained}");
    assert_eq!(health(&devices), [Health::Serving, Health::Lost]);
    // With the devices that it was launched on it cannot come back; with others it does.
    let refused = graph.recover_on(&devices, LONG).unwrap_err();
    assert!(matches!(refused, RecoverGraphError::Device(DeviceFault::Device { .. })), "{refused}");
    let others = Devices::of([devices[0].clone(), cpu()]).unwrap();
    graph.recover_on(&others, LONG).unwrap();
    graph.activate(LONG).unwrap();
    let mut sender = graph.sender(first, 0).unwrap();
    sender.send(Item::default(), LONG).unwrap();
    assert_eq!(graph.receiver(last, 0).unwrap().recv(LONG).unwrap().hops, 3);
    graph.terminate(LONG).unwrap();
}

#[test]
fn a_device_that_is_reset_comes_back_with_its_neighbour() {
    let quirky = Quirks::of(Cpu::open()).reset_after(50);
    let mut devices = Devices::of([cpu(), opened(&quirky, RuntimeConfig::default())]).unwrap();
    let (declared, first, last) = chain();
    let mut graph = devices.launch_graph(&declared).unwrap();
    graph.activate(LONG).unwrap();
    let (mut sender, mut receiver) =
        (graph.sender(first, 0).unwrap(), graph.receiver(last, 0).unwrap());
    while sender.send(Item::default(), LONG).is_ok() && receiver.recv(LONG).is_ok() {}
    assert!(matches!(graph.recover_on(&devices, LONG), Err(RecoverGraphError::Device(_))));
    assert_eq!(health(&devices), [Health::Serving, Health::Reset]);
    let found = devices.recover(LONG).unwrap();
    assert_eq!(health(&devices), [Health::Serving; 2]);
    assert_eq!(found.iter().map(|found| found.reopened).collect::<Vec<_>>(), [false, true]);
    assert_eq!((devices.reach(0, 1), devices.reach(1, 0)), (Ok(()), Ok(())));
    graph.recover_on(&devices, LONG).unwrap();
    graph.activate(LONG).unwrap();
    let (mut sender, mut receiver) =
        (graph.sender(first, 0).unwrap(), graph.receiver(last, 0).unwrap());
    for number in 1..=200 {
        sender.send(Item::default(), LONG).unwrap();
        assert_eq!(receiver.recv(LONG).unwrap().counted, number);
    }
    graph.terminate(LONG).unwrap();
}

#[test]
fn what_devices_cannot_be_is_refused_by_numbers() {
    assert_eq!(Devices::of([]).unwrap_err(), DevicesError::None);
    assert_eq!(
        Devices::open(&[]).unwrap_err().to_string(),
        "no device was named: name one at least"
    );
    let host = cpu();
    let twice = Devices::of([cpu(), host.clone(), host.clone()]).unwrap_err();
    let name = host.device().name.clone();
    assert_eq!(twice, DevicesError::Twice { first: 1, second: 2, name });
    // No machine has so many GPUs; one without a driver says that.
    let absent = Devices::open(&[Device::Cpu, Device::Cuda(4711)]).unwrap_err();
    assert!(matches!(absent, DevicesError::Open { number: 1, device: Device::Cuda(4711), .. }));
    assert!(absent.to_string().starts_with("device 1, which is cuda:4711: "), "{absent}");
    if let Some(gpu) = gpu() {
        // By another name, too.
        for other in [Device::Cuda(0), Device::Auto] {
            let other = certainly(|| Runtime::open_with(other, kernels::config()));
            let twice = Devices::of([gpu.clone(), cpu(), other]).unwrap_err();
            assert!(matches!(twice, DevicesError::Twice { first: 0, second: 2, .. }), "{twice}");
        }
    }
    let (mut graph, first, _) = chain();
    let absent = |devices| {
        let (kernel, device) = ("pass", 1);
        GraphError::NoDevice { kernel, device, devices }
    };
    assert_eq!(host.launch_graph(&graph).unwrap_err(), absent(1));
    graph.place(first, 2);
    let refused = two_cpus().launch_graph(&graph).unwrap_err();
    assert_eq!(refused, GraphError::NoDevice { kernel: "tally", device: 2, devices: 2 });
    assert_eq!(
        refused.to_string(),
        "kernel tally is placed on device 2, but the graph is launched on 2 (numbers from 0)"
    );
}

#[test]
fn a_device_without_room_for_its_links_is_named_and_nothing_stays() {
    let of = |second| Devices::of([cpu(), second]).unwrap();
    for (devices, which) in
        [(of(cpu_with(256 << 10, 1 << 20)), "pinned"), (of(cpu_with(4 << 20, 64 << 10)), "device")]
    {
        let mut graph = GraphBuilder::new();
        let first = graph.kernel::<Pass>(config::<Pass>());
        let second = graph.kernel::<Pass>(config::<Pass>());
        graph.feed(first).place(second, 1);
        graph.link_with(first, Pass::ON, second, Route::Pairwise, 1 << 14);
        graph.read_with(second, Pass::ON, 1 << 14);
        let before: Vec<_> = devices.iter().map(has_room).collect();
        let refused = devices.launch_graph(&graph).unwrap_err();
        let GraphError::OnDevice { number: 1, source, .. } = &refused else { panic!("{refused}") };
        assert!(matches!(**source, GraphError::Arena { .. }), "{refused}");
        let told = refused.to_string();
        assert!(told.starts_with("on device 1 (CPU threads") && told.contains(which), "{told}");
        assert_eq!(devices.iter().map(has_room).collect::<Vec<_>>(), before);
    }
}

#[test]
fn a_device_that_does_not_load_a_kernels_code_is_named() {
    let devices = two_cpus();
    let mut graph = GraphBuilder::new();
    let first = graph.kernel::<Pass>(config::<Pass>());
    let others = LaunchConfig::default().kernels(kernels::of_whole_device::<Wave>()); // it has no such kernel
    let second = graph.kernel::<Pass>(others);
    graph.feed(first).place(second, 1).link(first, Pass::ON, second, Route::Pairwise);
    graph.read(second, Pass::ON);
    let refused = devices.launch_graph(&graph).map(drop).unwrap_err();
    let GraphError::OnDevice { number: 1, source, .. } = &refused else { panic!("{refused}") };
    assert!(matches!(**source, GraphError::Launch(LaunchError::Image { .. })), "{refused:?}");
}

/// Whether there is room for a graph of one kernel still.
fn has_room(host: &Runtime) -> bool {
    let mut graph = GraphBuilder::new();
    let pass = graph.kernel::<Pass>(config::<Pass>().capacity(8));
    graph.feed(pass).read_with(pass, Pass::ON, 8);
    host.launch_graph(&graph).is_ok()
}
