//! PageRank by messages: a graph of kernels, to which the host sends spans of edges, iteration after iteration
//! (`ring_whole_device_kernels::rank_links`).

use crate::graph::{Edges, by_degree, by_vertex, numbers};
use crate::{DAMPING, Done, LONG, filled};
use ring_host::{
    Buffer, BufferRef, Graph, GraphBuilder, Kernel, LaunchConfig, Node, PortReader, PortReceiver,
    Route, Runtime, Sender,
};
use ring_whole_device_kernels::rank_links::{
    AGGREGATORS, CHECKERS, Contribution, ContributionSender, ConvergenceChecker, GROUP, HEAD, Head,
    Iterated, Mark, ONE, RUNS, RankAggregator, Row, Run, RunSplitter, SPAN, Span, base, board_len,
    part, row,
};
use std::time::{Duration, Instant};

/// How many channels there are of senders, aggregators and checkers, and how long the links are from senders to aggregators.
#[derive(Clone, Copy, Debug)]
pub struct Channels {
    /// Run `r` of a span goes to sender `r % senders`.
    pub senders: u32,
    /// Group `g` of the vertices is aggregator `g % aggregators`'s, which adds what they get.
    pub aggregators: u32,
    /// The vertices of aggregator `a` are checker `a % checkers`'s, which makes their new ranks.
    pub checkers: u32,
    /// Slots of each link from a sender to an aggregator.
    pub slots: u32,
}

/// Slots of each link from the splitter to a sender.
const RUN_SLOTS: u32 = 4096;

/// Slots of each link from an aggregator to a checker. An aggregator takes as many contributions at a time as have room here if each of
/// them is a mark, though few are: a short link would hold up all of them.
const MARK_SLOTS: u32 = 4096;

/// As many as are fast on an H200: 113 blocks in all.
impl Default for Channels {
    fn default() -> Channels {
        Channels { senders: 32, aggregators: 64, checkers: 16, slots: 1 << 13 }
    }
}

impl Channels {
    /// Bytes that the links take, of one kernel to another each.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let [senders, aggregators, checkers] =
            [self.senders, self.aggregators, self.checkers].map(|n| n as usize);
        senders * RUN_SLOTS as usize * size_of::<Run>()
            + senders * aggregators * self.slots as usize * size_of::<Contribution>()
            + aggregators * checkers * MARK_SLOTS as usize * size_of::<Mark>()
    }

    /// Whether the kernels can do with so many, and if not, why.
    fn check(&self) -> Result<(), String> {
        let most = [
            ("senders", self.senders, RUNS),
            ("aggregators", self.aggregators, AGGREGATORS),
            // Each has an aggregator, so that it has something to tell.
            ("checkers", self.checkers, CHECKERS.min(self.aggregators)),
        ];
        match most.into_iter().find(|(_, n, most)| !(1..=*most).contains(n)) {
            Some((of, n, most)) => Err(format!("{n} {of}: there must be 1 to {most}")),
            None => Ok(()),
        }
    }
}

/// What came of it.
#[derive(Debug)]
pub struct Found {
    /// The ranks, in units of one over [`ONE`].
    pub ranks: Vec<u64>,
    /// What the last iteration has come to.
    pub last: Iterated,
    /// How long each iteration took, from its first message to its answer, in rising order.
    pub times: Vec<Duration>,
}

impl Found {
    /// The ranks as numbers.
    pub fn ranks(&self) -> Vec<f32> {
        as_numbers(&self.ranks)
    }
}

/// Ranks in units of one over [`ONE`] as numbers.
#[must_use]
pub fn as_numbers(ranks: &[u64]) -> Vec<f32> {
    ranks.iter().map(|rank| number(*rank) as f32).collect()
}

/// What a number of units is.
#[must_use]
pub fn number(units: u64) -> f64 {
    units as f64 / ONE as f64
}

/// A graph as the kernels want it. Vertices are numbered so that each group of them, and each aggregator, has as many of those with many
/// edges.
#[derive(Debug)]
struct Layout {
    /// The vertex of the graph that each new one is.
    order: Vec<u32>,
    /// The edges by source, and then by target.
    edges: Vec<u64>,
    /// The board before the first iteration.
    board: Vec<u64>,
    /// Ranks of vertices without edges, in all.
    dangling: u64,
}

/// What part of a rank goes along edges, in units of 2^-64.
fn damping() -> u64 {
    (f64::from(DAMPING) * 2f64.powi(64)) as u64
}

/// The places that vertices have, the first one first, if groups are dealt one each by turns.
fn dealt(vertices: usize) -> impl Iterator<Item = usize> {
    let group = GROUP as usize;
    (0..group).flat_map(move |k| (k..vertices).step_by(group))
}

impl Layout {
    fn new(graph: &Edges, channels: Channels) -> Layout {
        let n = graph.vertices() as usize;
        let degrees = graph.out_degrees();
        let mut order = vec![0; n];
        let by_degree = by_degree(&graph.in_degrees());
        by_degree.into_iter().zip(dealt(n)).for_each(|(old, new)| order[new] = old);
        let name = numbers(&order);
        let edge = |(source, target): &(u32, u32)| {
            u64::from(name[*source as usize]) << 32 | u64::from(name[*target as usize])
        };
        let mut edges: Vec<u64> = graph.edges().iter().map(edge).collect();
        edges.sort_unstable();

        let even = ONE / n as u64;
        let mut board = vec![0; board_len(n)];
        let mut dangling = 0;
        for (v, old) in order.iter().enumerate() {
            let its = match degrees[*old as usize] {
                0 => 0,
                degree => u64::MAX / u64::from(degree),
            };
            dangling += if its == 0 { even } else { 0 };
            board[row(Row::Parts, n) + v] = its;
            board[row(Row::Ranks, n) + v] = even;
            board[row(Row::Shares, n) + v] = part(even, its);
        }
        let head = Head {
            senders: channels.senders.into(),
            aggregators: channels.aggregators.into(),
            checkers: channels.checkers.into(),
            damping: damping(),
            ..Head::default()
        };
        board[..HEAD].copy_from_slice(&bytemuck::cast::<Head, [u64; HEAD]>(head));
        Layout { order, edges, board, dangling }
    }
}

/// The kernels that rank a graph, declared and linked.
#[derive(Debug)]
pub struct Links {
    channels: Channels,
    graph: GraphBuilder,
    splitter: Node<RunSplitter>,
    iterated: PortReader<Iterated>,
}

impl Links {
    /// With so many channels. `launch` says for an entry point how its kernel is launched.
    ///
    /// # Errors
    /// When the kernels cannot do with so many channels.
    pub fn new(
        launch: impl Fn(&'static str) -> LaunchConfig,
        channels: Channels,
    ) -> Result<Links, String> {
        channels.check()?;
        let mut links = GraphBuilder::new();
        let splitter = links.kernel::<RunSplitter>(launch(RunSplitter::ENTRY));
        let of = |entry, channels| launch(entry).channels(channels);
        let sender =
            links.kernel::<ContributionSender>(of(ContributionSender::ENTRY, channels.senders));
        let aggregator =
            links.kernel::<RankAggregator>(of(RankAggregator::ENTRY, channels.aggregators));
        let checker =
            links.kernel::<ConvergenceChecker>(of(ConvergenceChecker::ENTRY, channels.checkers));
        links.feed(splitter);
        links.link_with(splitter, RunSplitter::RUNS, sender, Route::ByKey, RUN_SLOTS);
        let to = ContributionSender::CONTRIBUTIONS;
        links.link_with(sender, to, aggregator, Route::ByKey, channels.slots);
        links.link_with(aggregator, RankAggregator::MARKS, checker, Route::ByKey, MARK_SLOTS);
        let iterated = links.read(checker, ConvergenceChecker::ITERATED);
        Ok(Links { channels, graph: links, splitter, iterated })
    }

    /// What is to be launched.
    #[must_use]
    pub fn graph(&self) -> &GraphBuilder {
        &self.graph
    }
}

/// A graph in buffers of a runtime, as the kernels rank it.
#[derive(Debug)]
pub struct Board {
    layout: Layout,
    edges: Buffer<u64>,
    board: Buffer<u64>,
}

impl Board {
    /// Of a graph, for so many channels.
    ///
    /// # Errors
    /// When there is no room for its buffers, or a copy fails.
    pub fn new(host: &Runtime, graph: &Edges, channels: Channels) -> Done<Board> {
        let layout = Layout::new(graph, channels);
        let (edges, board) = (filled(host, &layout.edges)?, filled(host, &layout.board)?);
        Ok(Board { layout, edges, board })
    }

    /// The ranks of the graph's vertices, in units of one over [`ONE`].
    ///
    /// # Errors
    /// When a copy fails.
    pub fn ranks(&self) -> Done<Vec<u64>> {
        let mut found = vec![0; self.layout.order.len()];
        self.board.download(row(Row::Ranks, found.len()), &mut found, LONG)?;
        Ok(by_vertex(&self.layout.order, found))
    }
}

/// The launched kernels, and the graph that they rank.
#[derive(Debug)]
pub struct Ranker<'a> {
    links: Graph,
    splitter: Sender<RunSplitter>,
    iterated: Vec<PortReceiver<Iterated>>,
    board: &'a Board,
    all: BufferRef<u64>,
    /// What the last iteration has come to.
    last: Iterated,
}

impl<'a> Ranker<'a> {
    /// Begins to rank a graph of these channels by kernels that were launched as declared: no iteration was yet.
    ///
    /// # Errors
    /// When the kernels are not those, or a copy fails.
    pub fn new(declared: &Links, mut links: Graph, board: &'a Board) -> Done<Ranker<'a>> {
        board.board.upload(0, &board.layout.board, LONG)?;
        links.activate(LONG)?;
        let splitter = links.sender(declared.splitter, 0)?;
        let checkers = 0..declared.channels.checkers;
        let iterated = checkers
            .map(|c| links.receiver(declared.iterated, c))
            .collect::<Result<Vec<_>, _>>()?;
        let all = board.edges.reference().slice(0..board.layout.edges.len());
        let all = all.ok_or("too many edges")?;
        let last = Iterated { dangling: board.layout.dangling, ..Iterated::default() };
        Ok(Ranker { links, splitter, iterated, board, all, last })
    }

    /// One iteration, and what it has come to.
    ///
    /// # Errors
    /// When the kernels take no message, or do not answer.
    pub fn iterate(&mut self) -> Done<Iterated> {
        let base = base(damping(), self.last.dangling, self.board.layout.order.len() as u64);
        let board = self.board.board.reference();
        send(&mut self.splitter, Span { edges: self.all, board, base })?;
        let mut sum = Iterated::default();
        for of_checker in &mut self.iterated {
            let Iterated { iterations, change, dangling } = of_checker.recv(LONG)?;
            sum.iterations = iterations;
            sum.change += change;
            sum.dangling += dangling;
        }
        self.last = sum;
        Ok(sum)
    }

    /// Ends the kernels.
    ///
    /// # Errors
    /// When they do not end.
    pub fn end(mut self) -> Done<()> {
        self.links.drain(LONG)?;
        self.links.terminate(LONG)?;
        Ok(())
    }
}

/// Ranks a graph's vertices: so many iterations, or until the ranks change by no more than `tolerance` in one, in all (L1).
///
/// # Errors
/// When the kernels are not launched, or do not answer.
pub fn rank(
    host: &Runtime,
    launch: &LaunchConfig,
    graph: &Edges,
    channels: Channels,
    (iterations, tolerance): (u32, f64),
) -> Done<Found> {
    let declared = Links::new(|_| launch.clone(), channels)?;
    let links = host.launch_graph(declared.graph())?;
    let board = Board::new(host, graph, channels)?;
    let mut ranker = Ranker::new(&declared, links, &board)?;
    let mut times = Vec::new();
    while ranker.last.iterations < u64::from(iterations) {
        let begun = Instant::now();
        let last = ranker.iterate()?;
        times.push(begun.elapsed());
        if number(last.change) <= tolerance {
            break;
        }
    }
    times.sort_unstable();
    let last = ranker.last;
    ranker.end()?;
    Ok(Found { ranks: board.ranks()?, last, times })
}

/// Sends all edges in spans, and behind them the last span, which has none.
fn send(to: &mut Sender<RunSplitter>, all: Span) -> Done<()> {
    let (n, span) = (all.edges.len(), SPAN as usize);
    for first in (0..n).step_by(span).chain([n]) {
        let edges = all.edges.slice(first..(first + span).min(n)).ok_or("no such edges")?;
        to.send(Span { edges, ..all }, LONG)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::Kind;
    use crate::{ITERATIONS, OF_VERTEX, error};

    fn launch() -> LaunchConfig {
        LaunchConfig::default()
            .kernels(ring_tests::kernels::of_whole_device::<ContributionSender>())
    }

    /// Links have room for what one run may emit, at least.
    const FEW: [Channels; 3] = [
        Channels { senders: 1, aggregators: 1, checkers: 1, slots: 256 },
        Channels { senders: 2, aggregators: 3, checkers: 2, slots: 1024 },
        Channels { senders: 4, aggregators: 2, checkers: 1, slots: 4096 },
    ];

    #[test]
    fn ranks_by_messages_are_those_of_the_reference_on_every_device() {
        ring_tests::kernels::on_each_device_of_whole_device(|host| {
            for kind in [Kind::Uniform, Kind::Rmat] {
                for log in [4, 8, 10] {
                    let graph = Edges::generate(kind, log, OF_VERTEX, 5).unwrap();
                    let right = graph.reference(DAMPING.into(), ITERATIONS);
                    let found = FEW.map(|channels| {
                        rank(host, &launch(), &graph, channels, (ITERATIONS, -1.0)).unwrap()
                    });
                    for Found { ranks, last, times } in &found {
                        assert_eq!(last.iterations, ITERATIONS.into());
                        assert_eq!(times.len(), ITERATIONS as usize);
                        assert_eq!(
                            (ranks, *last),
                            (&found[0].ranks, found[0].last),
                            "to the last bit"
                        );
                    }
                    let error = error(&found[0].ranks(), &right);
                    assert!(error < 1e-6, "{kind:?} of 2^{log}: {error:.1e}");
                    // No vertex has lost more than a unit for each edge and for its own rank.
                    let lost = ONE.abs_diff(found[0].ranks.iter().sum());
                    let most = (graph.edges().len() as u64 + 4 * u64::from(graph.vertices())) * 8;
                    assert!(lost < most, "{kind:?} of 2^{log}: {lost} units");
                }
            }
        });
    }

    #[test]
    fn it_stops_where_the_ranks_change_by_no_more_than_is_tolerated() {
        let graph = Edges::generate(Kind::Rmat, 8, OF_VERTEX, 3).unwrap();
        assert!(graph.edges().iter().all(|edge| edge.0 < graph.vertices()));
        ring_tests::kernels::on_each_device_of_whole_device(|host| {
            let found = rank(host, &launch(), &graph, FEW[1], (100, 1e-9)).unwrap();
            assert!((5..100).contains(&found.last.iterations), "{:?}", found.last);
            assert!(
                number(found.last.change) <= 1e-9 && found.last.dangling > 0,
                "{:?}",
                found.last
            );
            let error = error(&found.ranks(), &graph.reference(DAMPING.into(), 200));
            assert!(error < 1e-6, "{error:.1e}");
        });
    }

    #[test]
    fn a_graph_without_edges_is_ranked_evenly() {
        let graph = Edges::new(7, Vec::new()).unwrap();
        ring_tests::kernels::on_each_device_of_whole_device(|host| {
            let found = rank(host, &launch(), &graph, FEW[2], (3, -1.0)).unwrap();
            assert!(found.ranks.iter().all(|rank| rank.abs_diff(ONE / 7) < 10), "{found:?}");
            assert_eq!(found.last.dangling, found.ranks.iter().sum());
        });
    }

    #[test]
    fn groups_are_dealt_one_vertex_each_by_turns() {
        let group = GROUP as usize;
        for n in [1, 31, 32, 33, 100, 1024] {
            let places: Vec<usize> = dealt(n).collect();
            let groups = n.div_ceil(group);
            assert!(places[..groups].iter().enumerate().all(|(g, place)| *place == g * group));
            let mut sorted = places;
            sorted.sort_unstable();
            assert!(sorted.into_iter().eq(0..n), "{n}");
        }
    }

    #[test]
    fn more_channels_than_the_kernels_can_do_with_are_refused_by_name_and_number() {
        let refused = |change: fn(&mut Channels)| {
            let mut channels = FEW[1];
            change(&mut channels);
            channels.check().unwrap_err()
        };
        assert_eq!(refused(|of| of.senders = 0), "0 senders: there must be 1 to 224");
        assert_eq!(refused(|of| of.senders = 225), "225 senders: there must be 1 to 224");
        assert_eq!(refused(|of| of.aggregators = 300), "300 aggregators: there must be 1 to 224");
        assert_eq!(refused(|of| of.checkers = 4), "4 checkers: there must be 1 to 3");
        let many = |of: &mut Channels| (of.aggregators, of.checkers) = (100, 33);
        assert_eq!(refused(many), "33 checkers: there must be 1 to 32");
        assert!(FEW.iter().all(|channels| channels.check().is_ok()));
    }

    #[test]
    fn senders_and_aggregators_beyond_the_limits_are_refused_before_anything_is_emitted() {
        let good = Head { senders: 2, aggregators: 3, checkers: 1, ..Head::default() };
        let heads = [
            Head { senders: 0, ..good },
            Head { senders: u64::from(RUNS) + 1, ..good },
            Head { senders: 1 << 32 | 2, ..good },
            Head { aggregators: 0, ..good },
            Head { aggregators: u64::from(AGGREGATORS) + 1, ..good },
            Head { aggregators: 1 << 32 | 3, ..good },
            good,
        ];
        ring_tests::kernels::on_each_device_of_whole_device(|host| {
            let mut links = GraphBuilder::new();
            let splitter = links.kernel::<RunSplitter>(launch());
            let sender = links.kernel::<ContributionSender>(launch());
            links.feed(splitter);
            links.feed(sender);
            let runs = links.read(splitter, RunSplitter::RUNS);
            let marks = links.read(sender, ContributionSender::CONTRIBUTIONS);
            let mut links = host.launch_graph(&links).unwrap();
            let boards = heads.map(|head| {
                let mut board = vec![0; board_len(40)];
                board[..HEAD].copy_from_slice(&bytemuck::cast::<Head, [u64; HEAD]>(head));
                filled(host, &board).unwrap()
            });
            let edges = filled(host, &[0u64]).unwrap().reference().slice(0..0).unwrap();
            links.activate(LONG).unwrap();
            let mut runs = links.receiver(runs, 0).unwrap();
            let mut marks = links.receiver(marks, 0).unwrap();
            let mut to_splitter = links.sender(splitter, 0).unwrap();
            let mut to_sender = links.sender(sender, 0).unwrap();
            for board in boards.each_ref().map(Buffer::reference) {
                to_splitter.send(Span { edges, board, base: 1 }, LONG).unwrap();
                let run = Run { edges, board, base: 1, sender: 0, padding: 0 };
                to_sender.send(run, LONG).unwrap();
            }
            let of_runs: Vec<Run> = (0..8).map(|_| runs.recv(LONG).unwrap()).collect();
            assert!(of_runs.iter().map(|run| run.sender).eq([0, 1, 0, 1, 0, 1, 0, 1]));
            let of_marks: Vec<_> = (0..12).map(|_| marks.recv(LONG).unwrap().target).collect();
            assert!(of_marks.chunks(3).all(|targets| targets == [0, GROUP, 2 * GROUP]));
            links.drain(LONG).unwrap();
            let refused = [
                links.kernel(splitter).unwrap().telemetry().refused,
                links.kernel(sender).unwrap().telemetry().refused,
            ];
            assert_eq!(refused, [3, 3]);
            links.terminate(LONG).unwrap();
        });
    }

    #[test]
    fn a_board_with_an_invalid_head_is_refused_and_stays_as_it_is() {
        let good = Head { senders: 1, aggregators: 3, checkers: 2, ..Head::default() };
        let heads = [
            (good, 3),
            (Head { aggregators: 0, ..good }, 0),
            (Head { aggregators: u64::MAX, ..good }, 0),
            (Head { aggregators: 1 << 20, ..good }, 0),
            (Head { checkers: 0, ..good }, 0),
            (Head { checkers: u64::from(CHECKERS) + 1, ..good }, 0),
            (Head { checkers: 1 << 40 | 1, ..good }, 0),
        ];
        ring_tests::kernels::on_each_device_of_whole_device(|host| {
            let mut links = GraphBuilder::new();
            let checker = links.kernel::<ConvergenceChecker>(launch());
            links.feed(checker);
            links.read(checker, ConvergenceChecker::ITERATED);
            let mut links = host.launch_graph(&links).unwrap();
            let mut boards = Vec::new();
            for (head, aggregator) in heads {
                let mut board = vec![0; board_len(40)];
                board[..HEAD].copy_from_slice(&bytemuck::cast::<Head, [u64; HEAD]>(head));
                boards.push((filled(host, &board).unwrap(), board, aggregator));
            }
            links.activate(LONG).unwrap();
            let mut to = links.sender(checker, 0).unwrap();
            for (board, _, aggregator) in &boards {
                let board = board.reference();
                let mark = Mark { board, base: 1, aggregator: *aggregator, padding: 0 };
                to.send(mark, LONG).unwrap();
            }
            links.drain(LONG).unwrap();
            let telemetry = links.kernel(checker).unwrap().telemetry();
            assert_eq!(telemetry.refused, heads.len() as u64);
            links.terminate(LONG).unwrap();
            for (board, words, _) in &boards {
                let mut found = vec![u64::MAX; words.len()];
                board.download(0, &mut found, LONG).unwrap();
                assert_eq!(&found, words);
            }
        });
    }
}
