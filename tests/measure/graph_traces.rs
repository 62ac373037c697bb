//! What the trace of a graph costs, beside the same graph without one; and whether the times that it tells are in order.

use super::traces::{RECORDS, Reads, RoundTrip, closed, compare, in_batches};
use super::{SECONDS, print};
use ring_example_kernels::TracedPass;
use ring_host::{
    Error, Graph, GraphBuilder, GraphEvent, GraphTrace, LaunchConfig, PortReceiver, RingMessages,
    Route, Runtime, Sender, TraceLosses,
};
use ring_tests::kernels::of_examples;
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// Messages whose order is looked at.
const ORDERED: u64 = 200_000;

/// Two kernels of which the first is fed, and the second is read.
struct Chain {
    graph: Graph,
    sender: Sender<TracedPass>,
    receiver: PortReceiver<u64>,
}

impl Chain {
    fn new(host: &Runtime, launch: &LaunchConfig) -> Result<Chain, Error> {
        let mut declared = GraphBuilder::new();
        let [first, last] = [(); 2].map(|()| declared.kernel::<TracedPass>(launch.clone()));
        declared.feed(first).link(first, TracedPass::ON, last, Route::Pairwise);
        let read = declared.read(last, TracedPass::ON);
        let mut graph = host.launch_graph(&declared)?;
        graph.activate(SECONDS)?;
        let (sender, receiver) = (graph.sender(first, 0)?, graph.receiver(read, 0)?);
        Ok(Chain { graph, sender, receiver })
    }
}

impl RoundTrip for Chain {
    fn send(&mut self, i: u64) -> Result<(), Error> {
        Ok(self.sender.send(i, SECONDS)?)
    }

    fn recv(&mut self, i: u64) -> Result<(), Error> {
        assert_eq!(self.receiver.recv(SECONDS)?, i);
        Ok(())
    }

    fn send_some(&mut self, first: u64, most: usize) -> Result<usize, Error> {
        Ok(self.sender.try_send_each(most, |k| first + k as u64)?)
    }

    fn recv_some(&mut self, most: usize) -> Result<usize, Error> {
        Ok(self.receiver.try_recv_each(most, |_| {})?)
    }
}

impl Reads for GraphTrace {
    fn read(&mut self) -> u64 {
        let mut told = 0;
        GraphTrace::read(self, |_| told += 1);
        told
    }

    fn lost(&self) -> TraceLosses {
        self.losses()
    }
}

/// All of it.
pub fn graph_traces(host: &Runtime) -> Result<(), Error> {
    let launch = LaunchConfig::default().kernels(of_examples::<TracedPass>());
    host.prepare::<TracedPass>(&launch)?;
    let mut plain = Chain::new(host, &launch)?;
    let mut traced = Chain::new(host, &launch.trace(RECORDS))?;
    let mut trace = traced.graph.trace().expect("it was asked for");
    order(&mut traced, &mut trace)?;
    for at_once in [1, 8, 32] {
        let turn = |chain: &mut Chain| closed(chain, at_once);
        let what = format!("two kernels, {at_once} in flight, us a message");
        compare(&what, (&mut plain, &mut traced), turn, &mut trace)?;
    }
    let turn = |chain: &mut Chain| in_batches(chain, 256);
    let what = "two kernels, batches of 256, us a message";
    compare(what, (&mut plain, &mut traced), turn, &mut trace)?;
    traced.graph.terminate(SECONDS)?;
    plain.graph.terminate(SECONDS)?;
    Ok(())
}

/// Looks at the times of many messages along all three rings, one in flight.
fn order(chain: &mut Chain, trace: &mut GraphTrace) -> Result<(), Error> {
    let rings = trace.rings().len();
    // Of each message when it was written to a ring.
    let mut written: HashMap<(usize, u64), i64> = HashMap::new();
    let mut taken: HashMap<(usize, u64), i64> = HashMap::new();
    let (mut disordered, mut errors, mut ways) = (0u64, Vec::new(), vec![Vec::new(); rings]);
    let mut told = 0u64;
    for i in 0..ORDERED {
        chain.send(i)?;
        chain.recv(i)?;
        if i % 1000 != 999 {
            continue;
        }
        let end = Instant::now() + Duration::from_secs(1);
        while told < rings as u64 * (i + 1) && Instant::now() < end {
            let note = |map: &mut HashMap<_, _>, of: RingMessages, at: i64| {
                (0..u64::from(of.n)).for_each(|k| _ = map.insert((of.ring, of.first + k), at));
            };
            trace.read(|event| match event {
                GraphEvent::Sent { messages, at } => note(&mut written, messages, at),
                GraphEvent::Received { messages, at } => note(&mut taken, messages, at),
                GraphEvent::Handled(batch) => {
                    errors.push(batch.error as f64 / 1000.0);
                    note(&mut taken, batch.taken, batch.began);
                    batch.emitted.iter().for_each(|of| note(&mut written, *of, batch.ended));
                }
                _ => {}
            });
            taken.retain(|message, at| {
                let Some(before) = written.remove(message) else { return true };
                told += 1;
                disordered += u64::from(before > *at);
                ways[message.0].push((*at - before) as f64 / 1000.0);
                false
            });
        }
    }
    println!(
        "{ORDERED} messages one by one through two kernels: {told} times told that one was written to a ring and taken from it, {disordered} of them in the wrong order, {:?}, the clock began anew {} times",
        trace.losses(),
        trace.clock_resets()
    );
    errors.sort_by(f64::total_cmp);
    print("  the error that is told", &errors);
    for (ring, way) in trace.rings().to_vec().iter().zip(&mut ways) {
        let name =
            |kernel: Option<usize>| kernel.map_or("host".to_owned(), |k| format!("kernel {k}"));
        let (from, to) = (ring.from.map(|from| from.0), ring.to.map(|to| to.0));
        way.sort_by(f64::total_cmp);
        print(&format!("  from {} to {}", name(from), name(to)), way);
    }
    Ok(())
}
