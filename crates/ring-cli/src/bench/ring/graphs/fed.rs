//! A launched graph that the host feeds and whose last kernels count.

use crate::bench::context::{Context, ended_graph, wrong};
use crate::bench::drive::{Load, Pipe, drive};
use crate::bench::report::Found;
use crate::bench::ring::warm_up;
use crate::bench::settings::TIMEOUT;
use ring_bench::kernels::{Sink64, Times8};
use ring_host::{Graph, GraphBuilder, Node, PortReader, PortReceiver, Sender};
use std::time::{Duration, Instant};

/// How long it may take until all that is on the way is handled: of threads that share few processors, long.
const DRAINED: Duration = Duration::from_secs(60);

/// What the host has of a part of a graph: what it feeds, the last kernel, and what that finds wrong.
pub type Ends = (Node<Times8>, Node<Sink64>, PortReader<u64>);

/// A graph, inactive and drained but for a run.
pub struct Fed {
    graph: Graph,
    source: Source,
    sinks: Vec<Node<Sink64>>,
    /// For each channel of them.
    wrong: Vec<PortReceiver<u64>>,
    /// Messages that come to them of each that the host sends.
    times: u64,
}

impl Fed {
    /// Launches it.
    pub fn launch(
        context: &Context<'_>,
        graph: &GraphBuilder,
        parts: &[Ends],
        times: u64,
    ) -> Found<Fed> {
        let mut graph = context.graph(graph)?;
        let (mut senders, mut sinks, mut receivers) = (Vec::new(), Vec::new(), Vec::new());
        for &(first, sink, port) in parts {
            senders.extend(graph.senders(first).map_err(wrong)?);
            sinks.push(sink);
            receivers.extend(graph.receivers(port).map_err(wrong)?);
        }
        let source = Source { senders, next: 0, sent: 0, told: 0 };
        Ok(Fed { graph, source, sinks, wrong: receivers, times })
    }

    /// Messages a second that come to the sinks, once, after a run that is not counted.
    pub fn rate(mut self, context: &Context<'_>, load: &Load) -> Found<f64> {
        context.cores.on(0, || {
            self.run(&warm_up(load))?;
            let rate = self.run(load)?;
            ended_graph(self.graph)?;
            context.check_interrupt()?; // else it may have been cut short
            Ok(rate)
        })
    }

    /// Messages a second of a run: from before the first is sent until all are handled.
    fn run(&mut self, load: &Load) -> Found<f64> {
        self.graph.activate(TIMEOUT).map_err(wrong)?;
        let begun = Instant::now();
        let sent = drive(&mut self.source, load, begun).map_err(wrong);
        let drained = sent.and_then(|sent| self.graph.drain(DRAINED).map_err(wrong).map(|()| sent));
        let time = begun.elapsed();
        // That many are wrong may be the very reason why it was not drained.
        self.check_words()?;
        let sent = drained?;
        self.check_count()?;
        Ok((sent * self.times) as f64 / time.as_secs_f64().max(1e-9))
    }

    /// An error if a sink has told of a message.
    fn check_words(&mut self) -> Found<()> {
        match self.wrong.iter_mut().find_map(|channel| channel.try_recv().ok()) {
            None => Ok(()),
            Some(word) => {
                Err(wrong(format!("a message came whose words differ, the first {word:#x}")))
            }
        }
    }

    /// An error if other than all messages have come to the sinks.
    fn check_count(&mut self) -> Found<()> {
        let mut came = 0;
        for sink in &self.sinks {
            came += self.graph.kernel(*sink).map_err(wrong)?.summary().processed;
        }
        match self.source.sent * self.times {
            expected if came == expected => Ok(()),
            expected => {
                Err(wrong(format!("{came} of {expected} messages came to the last kernels")))
            }
        }
    }
}

/// Sends messages that have no answers: what is sent is done, as far as it knows.
struct Source {
    /// Of each channel, and whose turn it is.
    senders: Vec<Sender<Times8>>,
    next: usize,
    /// Messages that were sent.
    sent: u64,
    /// Of these, those that it has told of.
    told: u64,
}

impl Pipe for Source {
    #[inline]
    fn send(&mut self, most: usize) -> Result<usize, String> {
        let next = self.sent;
        self.next = (self.next + 1) % self.senders.len();
        let sender = &mut self.senders[self.next];
        let sent = sender.try_send_each(most, |k| [next.wrapping_add(k as u64); 8]);
        let sent = sent.map_err(|error| error.to_string())?;
        self.sent += sent as u64;
        Ok(sent)
    }

    #[inline]
    fn receive(&mut self, _: usize) -> Result<usize, String> {
        let new = self.sent - self.told;
        self.told = self.sent;
        Ok(new as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::super::kernel;
    use super::*;
    use crate::bench::example;
    use crate::interrupt::Interrupt;
    use ring_bench::kernels::TIMES;
    use ring_host::Route;

    /// Makes a graph of two kernels of which so many messages are expected for each, and lets `work` run it for a while.
    fn with(times: u64, work: impl FnOnce(Fed, &Load)) {
        example::with(Interrupt::never(), |context| {
            let mut graph = GraphBuilder::new();
            let first = kernel::<Times8>(context, &mut graph, 1);
            let sink = kernel::<Sink64>(context, &mut graph, 1);
            graph.feed(first).link(first, Times8::OUT, sink, Route::Pairwise);
            let wrong = graph.read(sink, Sink64::WRONG);
            let fed = Fed::launch(context, &graph, &[(first, sink, wrong)], times).unwrap();
            work(fed, &Load { messages: 1000, ..context.load() });
        });
    }

    #[test]
    fn a_run_is_counted_and_so_is_one_behind_it() {
        with(TIMES, |mut fed, load| {
            for runs in 1..=2 {
                assert!(fed.run(load).unwrap() > 0.0);
                assert_eq!(fed.source.sent, 1000 * runs);
            }
        });
    }

    #[test]
    fn a_message_with_words_that_differ_is_an_error() {
        with(TIMES, |mut fed, load| {
            fed.graph.activate(TIMEOUT).unwrap();
            fed.source.senders[0].send([1, 1, 1, 1, 1, 1, 1, 2], TIMEOUT).unwrap();
            let told = "a message came whose words differ, the first 0x8";
            assert_eq!(fed.run(load), Err(wrong(told)));
        });
    }

    #[test]
    fn a_message_too_few_is_an_error() {
        with(TIMES + 1, |mut fed, load| {
            let told = "8000 of 9000 messages came to the last kernels";
            assert_eq!(fed.run(load), Err(wrong(told)));
        });
    }
}
