//! A long load on a graph: two sources, copies of copies by key over four channels, and eight channels that check on the device
//! that the messages of each stream come in order, with none left out or doubled. Now and then the graph is drained, all is
//! counted, and it goes on. `soak_graph [auto|cpu|cuda:0] [MESSAGES] [SEED]`, where messages between kernels count as well. On two
//! devices, `cpu,cpu` or `cuda:0,cuda:1`, the second four channels are on the second one, so that links go both ways.

use ring_example_kernels::{Copier, Item, Verified, Verifier};
use ring_host::{
    Device, Devices, Graph, GraphBuilder, Kernel, LaunchConfig, Node, Route, Sender, TrySendError,
};
use ring_tests::kernels::{config, of_examples};
use ring_tests::{LONG, mixed};
use std::error::Error;
use std::time::{Duration, Instant};

/// Channels of the first kernel, and streams of messages that the host sends on each.
const SOURCES: usize = 2;
const KEYS: usize = 16;

/// Messages on links and from the host for each message of the host: itself, three copies, nine copies of copies.
const EACH: u64 = 1 + 3 + 9;

/// How often it is said how far it is.
const SAY_EVERY: Duration = Duration::from_secs(1);

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let devices = arguments.next().unwrap_or("auto".into());
    let devices: Vec<Device> = devices.split(',').map(str::parse).collect::<Result<_, _>>()?;
    let messages: u64 = arguments.next().map_or(Ok(10_000_000), |n| n.parse())?;
    let seed: u64 = arguments.next().map_or(Ok(1), |n| n.parse())?;
    let devices = Devices::open_with(&devices, config())?;
    let names: Vec<&str> = devices.iter().map(|host| host.device().name.as_str()).collect();
    println!("{}, {messages} messages, seed {seed}", names.join(" and "));

    let mut graph = GraphBuilder::new();
    let first = graph.kernel::<Copier>(example::<Copier>().channels(SOURCES as u32));
    let second = graph.kernel::<Copier>(example::<Copier>().channels(4));
    let verifier = graph.kernel::<Verifier>(example::<Verifier>().channels(8));
    graph.place(second, devices.len() - 1);
    graph.feed(first).link(first, Copier::COPIES, second, Route::ByKey);
    graph.link(second, Copier::COPIES, verifier, Route::ByKey);
    graph.read(first, Copier::NONE);
    graph.read(second, Copier::NONE);
    let mut graph = devices.launch_graph(&graph)?;
    graph.links().iter().for_each(|link| println!("{link}"));
    graph.activate(LONG)?;
    let mut senders = graph.senders(first)?;

    let (begun, mut said) = (Instant::now(), Instant::now());
    let (mut sent, mut drains, mut drawn) = (0u64, 0u64, seed << 32);
    let mut next = [[0u64; KEYS]; SOURCES];
    while sent * EACH < messages {
        drawn += 1;
        let (dice, left) = (mixed(drawn), messages.div_ceil(EACH) - sent);
        let source = (dice & 1) as usize;
        let n = ((dice >> 1) % 512 + 1).min(left) as usize;
        let items: Vec<Item> = (0..n as u64)
            .map(|k| item(source, mixed(drawn ^ (k + 1) << 40), &mut next[source]))
            .collect();
        send(&mut senders[source], &items)?;
        sent += n as u64;
        // Some hundred times in all.
        if dice >> 32 < (1 << 32) / (messages / EACH / 256 / 200).max(1) {
            drain(&mut graph, verifier, sent)?;
            drains += 1;
            graph.activate(LONG)?;
        }
        if said.elapsed() > SAY_EVERY {
            said = Instant::now();
            println!(
                "{:6.1} s: {} messages, {drains} drains",
                begun.elapsed().as_secs_f64(),
                sent * EACH
            );
        }
    }
    drain(&mut graph, verifier, sent)?;
    graph.terminate(LONG)?;
    println!("{:6.1} s: {} messages, {drains} drains", begun.elapsed().as_secs_f64(), sent * EACH);
    println!("passed: none lost, doubled or reordered, by source, key and copy");
    Ok(())
}

/// The next message of a source, with a key that `dice` chooses.
fn item(source: usize, dice: u64, next: &mut [u64; KEYS]) -> Item {
    let key = dice % KEYS as u64;
    let number = &mut next[key as usize];
    *number += 1;
    let (number, source) = (*number - 1, source as u64);
    Item { source, number, key: key as u32, copies: 3, rest: [key, 0], ..Item::default() }
}

fn send(sender: &mut Sender<Copier>, items: &[Item]) -> Result<(), TrySendError<()>> {
    let (mut sent, mut since) = (0, Instant::now());
    while sent < items.len() {
        let n = sender.try_send_batch(&items[sent..])?;
        if n > 0 {
            since = Instant::now();
        } else {
            std::thread::yield_now();
        }
        assert!(since.elapsed() < LONG, "nothing was taken for {LONG:?}");
        sent += n;
    }
    Ok(())
}

/// Drains the graph, and checks all that has come to its end.
fn drain(graph: &mut Graph, verifier: Node<Verifier>, sent: u64) -> Result<(), Box<dyn Error>> {
    graph.drain(LONG)?;
    let (mut count, mut wrong) = (0, 0);
    let mut node = graph.kernel(verifier)?;
    for channel in 0..node.channels() {
        let mut state: Box<Verified> = Box::new(bytemuck::Zeroable::zeroed());
        node.read_state_into(channel, &mut state, LONG)?;
        (count, wrong) = (count + state.count, wrong + state.wrong);
    }
    match (count == 9 * sent, wrong) {
        (true, 0) => Ok(()),
        _ => Err(format!("{count} of {} messages, {wrong} not in their order", 9 * sent).into()),
    }
}

/// The launch of a kernel of the examples.
fn example<K: Kernel>() -> LaunchConfig {
    LaunchConfig::default().kernels(of_examples::<K>())
}
