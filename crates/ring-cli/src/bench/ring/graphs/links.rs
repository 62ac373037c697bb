//! Messages a second over links: those that come to the last kernel of a graph count.

use super::fed::{Ends, Fed};
use super::{Words, kernel};
use crate::bench::context::Context;
use crate::bench::report::{Found, Shape, Throughput, Whose};
use crate::bench::ring::BATCH;
use crate::bench::turns::{Rate, Rated};
use ring_bench::kernels::{Pass64, Sink64, TIMES, Times8};
use ring_host::{GraphBuilder, HasPort, Kernel, LaunchConfig, Node, Port, Route};

/// The sweep of links beside each other.
pub const LINKS: &str = "links";

/// The sweep of links from one channel.
pub const KEYS: &str = "keys";

/// Slots of a link by default, and of a short one.
pub const SLOTS: [u32; 2] = [GraphBuilder::DEFAULT_SLOTS, 4096];

/// Few links beside each other; on the CPU device, which has a thread for each channel, fewer.
const FEW: [u32; 2] = [1, 8];
const CPU_FEW: [u32; 2] = [1, 2];

/// The sweep of links from one device to another, and how many there are at most.
pub const ACROSS: &str = "across";
pub const MANY_ACROSS: u32 = 64;

/// Links that two channels feed, one behind the other, of which the host feeds the first; and where there are as many as can be.
const GROUP: u32 = 4;
const LARGE_GROUP: u32 = 8;

/// As many links as a large GPU has multiprocessors for.
pub const MANY: u32 = 7 * LARGE_GROUP;

/// Multiprocessors for all of them: one for a channel at each end of each link, and for those that feed them.
pub const MANY_NEED: u32 = MANY / LARGE_GROUP * (2 * LARGE_GROUP + 2);

/// Channels of which one is chosen by key.
pub const BY_KEY: [u32; 4] = [1, 4, 16, 64];
const CPU_BY_KEY: [u32; 2] = [1, 2];

/// Measures all rows of both sweeps.
pub fn rates(context: &Context<'_>) -> Vec<Throughput> {
    let repeats = context.settings.repeats;
    let links = context.rates("graphs, links", repeats, links(context));
    let keys = context.rates("graphs, by key", repeats, keys(context));
    links.chain(keys).collect()
}

fn links(context: &Context<'_>) -> Vec<Rated> {
    let few = if context.is_cpu() { CPU_FEW } else { FEW };
    let [default, short] =
        SLOTS.map(|slots| few.map(|links| (Times8::NAME, links, slots, beside(links))));
    let info = context.runtime.device();
    let has_room = !context.is_cpu() && info.multiprocessors >= MANY_NEED;
    let many = has_room.then_some((Times8::NAME, MANY, SLOTS[0], several as Rate));
    let many_short = has_room.then_some((Times8::NAME, MANY, SLOTS[1], several as Rate));
    let one_for_one = (Pass64::NAME, 1, SLOTS[0], one_for_one as Rate);
    let default = default.into_iter().chain(many);
    let rows = default.chain([one_for_one]).chain(short).chain(many_short);
    rows.map(|row| rated(context, LINKS, row)).collect()
}

fn keys(context: &Context<'_>) -> Vec<Rated> {
    let channels: &[u32] = if context.is_cpu() { &CPU_BY_KEY } else { &BY_KEY };
    let kernels = [(Times8::NAME, by_key as Rate), (Pass64::NAME, by_key_one_for_one as Rate)];
    let row = |(name, rate), n: &u32| rated(context, KEYS, (name, *n, SLOTS[0], rate));
    kernels.into_iter().flat_map(|kernel| channels.iter().map(move |n| row(kernel, n))).collect()
}

/// A row: the kernel that emits to the links, how many there are, of how many slots, and what measures it.
fn rated(
    context: &Context<'_>,
    sweep: &'static str,
    (name, channels, capacity, rate): (&'static str, u32, u32, Rate),
) -> Rated {
    let shape = Shape {
        channels,
        bytes: size_of::<Words>(),
        answer_bytes: 0,
        threads: if context.is_cpu() { 0 } else { LaunchConfig::DEFAULT_THREADS },
        batch: BATCH,
        depth: u64::from(channels) * u64::from(capacity),
        capacity,
    };
    Rated { row: Throughput::new(sweep, (name, Whose::Ours), context.device(), shape), rate }
}

/// How so many links are measured beside each other.
fn beside(links: u32) -> Rate {
    if links == 1 { by_key } else { several } // to one channel, which is each key's
}

/// Links beside each other.
fn several(context: &Context<'_>, shape: &Shape) -> Found<f64> {
    Lines::new(context, shape).several()
}

/// One link from a kernel that emits one message for each, and has two inputs.
fn one_for_one(context: &Context<'_>, shape: &Shape) -> Found<f64> {
    let mut lines = Lines::new(context, shape);
    let first = lines.first();
    let feeders = lines.times_8(first, 2);
    let last = lines.pass(feeders);
    lines.end(first, (last, Pass64::ON), (Route::Pairwise, 1));
    lines.rate(TIMES * TIMES)
}

/// Links from the first device to the second, of which the first has all kernels but the sinks.
pub fn across(context: &Context<'_>) -> Vec<Rated> {
    let few = if context.is_cpu() { CPU_FEW } else { FEW };
    let links = few.into_iter().chain((!context.is_cpu()).then_some(MANY_ACROSS));
    let rate: Rate = |context, shape| {
        let lines = Lines { sinks_on: 1, ..Lines::new(context, shape) };
        if shape.channels == 1 { lines.one() } else { lines.several() }
    };
    links.map(|links| rated(context, ACROSS, (Times8::NAME, links, SLOTS[0], rate))).collect()
}

/// Links from one channel: the key of a message says which.
fn by_key(context: &Context<'_>, shape: &Shape) -> Found<f64> {
    Lines::new(context, shape).one()
}

/// The same from a kernel that emits one message for each.
fn by_key_one_for_one(context: &Context<'_>, shape: &Shape) -> Found<f64> {
    let mut lines = Lines::new(context, shape);
    let first = lines.first();
    let feeder = lines.times_8(first, 1);
    let last = lines.pass(feeder);
    lines.end(first, (last, Pass64::ON), (Route::ByKey, shape.channels));
    lines.rate(TIMES * TIMES)
}

/// Lines of kernels, as they are declared, in each kernels one behind the other. All links have the slots of the row.
struct Lines<'a> {
    context: &'a Context<'a>,
    shape: &'a Shape,
    graph: GraphBuilder,
    /// Of each line.
    ends: Vec<Ends>,
    /// The number of the device that the sinks are on.
    sinks_on: usize,
}

impl<'a> Lines<'a> {
    /// None.
    fn new(context: &'a Context<'a>, shape: &'a Shape) -> Lines<'a> {
        Lines { context, shape, graph: GraphBuilder::new(), ends: Vec::new(), sinks_on: 0 }
    }

    /// The rate of links beside each other, more than one channel can feed: in groups.
    fn several(mut self) -> Found<f64> {
        let most = if self.shape.channels < MANY { GROUP } else { LARGE_GROUP };
        let mut left = self.shape.channels;
        while left > 0 {
            let group = most.min(left);
            let first = self.first();
            let feeder = self.times_8(first, 1);
            let last = self.times_8(feeder, group);
            self.end(first, (last, Times8::OUT), (Route::Pairwise, group));
            left -= group;
        }
        self.rate(TIMES * TIMES * TIMES)
    }

    /// That of links from one channel, by key.
    fn one(mut self) -> Found<f64> {
        let first = self.first();
        let last = self.times_8(first, 1);
        self.end(first, (last, Times8::OUT), (Route::ByKey, self.shape.channels));
        self.rate(TIMES * TIMES)
    }

    /// Begins a line: a kernel of one channel, which the host feeds.
    fn first(&mut self) -> Node<Times8> {
        let first = kernel::<Times8>(self.context, &mut self.graph, 1);
        self.graph.feed(first);
        first
    }

    /// Adds a kernel that makes eight messages of each, by key.
    fn times_8(&mut self, from: Node<Times8>, channels: u32) -> Node<Times8> {
        let to = kernel::<Times8>(self.context, &mut self.graph, channels);
        self.graph.link_with(from, Times8::OUT, to, Route::ByKey, self.shape.capacity);
        to
    }

    /// Adds a kernel of one channel that makes one message of each.
    fn pass(&mut self, from: Node<Times8>) -> Node<Pass64> {
        let to = kernel::<Pass64>(self.context, &mut self.graph, 1);
        self.graph.link_with(from, Times8::OUT, to, Route::ToAll, self.shape.capacity);
        to
    }

    /// Ends a line with a sink of so many channels.
    fn end<K, const P: usize>(
        &mut self,
        first: Node<Times8>,
        (from, port): (Node<K>, Port<K, P>),
        (route, channels): (Route, u32),
    ) where
        K: HasPort<P, Message = Words>,
    {
        let capacity = self.shape.capacity;
        let sink = kernel::<Sink64>(self.context, &mut self.graph, channels);
        self.graph.place(sink, self.sinks_on).link_with(from, port, sink, route, capacity);
        // A step has as many messages as surely have room there, whether any is wrong or not.
        let wrong = self.graph.read_with(sink, Sink64::WRONG, capacity);
        self.ends.push((first, sink, wrong));
    }

    /// Messages a second that come to all sinks, of which `times` come for each that the host sends.
    fn rate(self, times: u64) -> Found<f64> {
        let fed = Fed::launch(self.context, &self.graph, &self.ends, times)?;
        fed.rate(self.context, &self.shape.load(&self.context.load()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::example;
    use crate::bench::report::Stop;
    use crate::interrupt::Interrupt;

    #[test]
    fn each_row_is_measured_and_says_by_what() {
        example::with(Interrupt::never(), |context| {
            let rows: Vec<_> = links(context).into_iter().chain(keys(context)).collect();
            let of = |Throughput { name, shape, .. }: &Throughput| {
                (*name, shape.channels, shape.capacity)
            };
            let of: Vec<_> = rows.iter().map(|rated| of(&rated.row)).collect();
            let expected = [
                ("times_8", 1, 16_384),
                ("times_8", 2, 16_384),
                ("pass_64", 1, 16_384),
                ("times_8", 1, 4096),
                ("times_8", 2, 4096),
                ("times_8", 1, 16_384),
                ("times_8", 2, 16_384),
                ("pass_64", 1, 16_384),
                ("pass_64", 2, 16_384),
            ];
            assert_eq!(of, expected);
            for mut rated in rows {
                rated.once(context);
                let row = rated.row;
                assert!(row.millions().is_some_and(|rate| rate > 0.0), "{row:?}");
            }
        });
    }

    #[test]
    fn more_links_than_one_channel_feeds_are_measured() {
        example::with(Interrupt::never(), |context| {
            let shape = rated(context, LINKS, (Times8::NAME, 3, 256, several)).row.shape;
            assert!(several(context, &shape).unwrap() > 0.0);
        });
    }

    #[test]
    fn nothing_is_measured_once_it_is_interrupted() {
        example::with(Interrupt::come(), |context| {
            let shape = rated(context, KEYS, (Pass64::NAME, 1, SLOTS[0], by_key)).row.shape;
            assert_eq!(by_key(context, &shape), Err(Stop::Interrupted));
        });
    }
}
