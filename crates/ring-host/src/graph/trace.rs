//! What became of the messages of a graph and when: read from the trace rings of its kernels' channels and of the host's ends.

mod bounds;
pub(crate) mod events;
mod notes;

use super::builder::{GraphBuilder, Member};
use super::launched::Launched;
use crate::device::Ticks;
use crate::drive::traces::HostTrace;
use crate::kernel::core::KernelCore;
use crate::kernel::trace::TraceLosses;
use crate::kernel::trace::clock::{DeviceClock, HostTimes, Measured};
use bounds::{Bounds, Proof};
use events::{GraphEvent, HandledMessages, RingMessages, TracedNode, TracedRing};
use notes::{Noted, Notes};
use ring_shared::trace::{TraceCursor, TraceRing};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

/// Batches of a channel that wait for the device's clock, at most: then the oldest is lost.
const MOST_WAITING: usize = 65_536;

/// What the kernels of a graph and the host's ends noted of messages: by [`Graph::trace`](crate::Graph::trace).
///
/// ```
/// # use ring_host::{Device, GraphBuilder, GraphEvent, LaunchConfig, Runtime};
/// # use std::time::Duration;
/// # let second = Duration::from_secs(1);
/// ring_device::ring_kernel! {
///     /// Squares numbers.
///     pub struct Square { traced: true, ports: { SQUARES: [u64; 1] }, }
///
///     fn handle(number: &u64, out: &mut Ports) {
///         out.emit(Square::SQUARES, number.wrapping_mul(*number));
///     }
/// }
/// let mut graph = GraphBuilder::new();
/// let square = graph.kernel::<Square>(LaunchConfig::default().trace(1024));
/// let squares = graph.feed(square).read(square, Square::SQUARES);
/// let mut graph = Runtime::open(Device::Cpu)?.launch_graph(&graph)?;
/// let mut trace = graph.trace().expect("it was asked for");
/// graph.activate(second)?;
/// let (mut sender, mut receiver) = (graph.sender(square, 0)?, graph.receiver(squares, 0)?);
/// sender.send(7, second)?;
/// assert_eq!(receiver.recv(second)?, 49);
/// graph.terminate(second)?;
/// trace.read(|event| {
///     if let GraphEvent::Handled(batch) = event {
///         println!("took {} ns, +- {}", batch.ended - batch.began, batch.error);
///     }
/// });
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct GraphTrace {
    nodes: Vec<TracedNode>,
    rings: Vec<TracedRing>,
    /// What each ring between two clocks proves of them.
    proofs: Vec<Option<Proof>>,
    channels: Vec<TracedChannel>,
    received: Vec<HostEnd>,
    /// Of devices with a kernel that is traced.
    clocks: Vec<DeviceClock>,
    epoch: Instant,
}

/// A channel of a kernel that is traced.
#[derive(Debug)]
struct TracedChannel {
    core: Arc<KernelCore>,
    kernel: usize,
    channel: u32,
    /// The number of its device's clock.
    clock: usize,
    /// A heartbeat and the ticks at it, by which ticks are measured.
    first_beat: Option<[u64; 2]>,
    notes: Notes,
    /// Not told yet.
    waiting: VecDeque<Noted>,
    /// Of those, lost.
    lost: u64,
    /// If the host feeds it.
    sent: Option<HostEnd>,
}

/// The host's end of a ring.
#[derive(Debug)]
struct HostEnd {
    number: usize,
    trace: TraceRing,
    cursor: TraceCursor,
    /// What the trace ring and its times are of; kept for as long as they are read.
    core: Arc<KernelCore>,
    _memory: Option<Arc<HostTrace>>,
    /// The index of the launch's first message.
    start: u64,
}

impl HostEnd {
    /// What was noted since the last call: which messages, and when after `epoch`.
    fn read(&mut self, epoch: Instant, mut each: impl FnMut(RingMessages, i64)) {
        // Each kernel counts from a moment of its own.
        let zero = self.core.device.traces.epoch().saturating_duration_since(epoch);
        let zero = i64::try_from(zero.as_nanos()).unwrap_or(i64::MAX);
        for _ in 0..self.trace.records() {
            let Some(record) = self.cursor.next(&self.trace) else { return };
            let first = record.index.wrapping_sub(self.start);
            let messages = RingMessages { ring: self.number, first, n: record.n };
            each(messages, (record.at as i64).saturating_add(zero));
        }
    }
}

impl GraphTrace {
    pub(super) fn new(launched: &Launched, graph: &GraphBuilder) -> Option<GraphTrace> {
        let Launched { kernels, reads, rings, ends, .. } = launched;
        let cores = || kernels.iter().map(|kernel| kernel.core());
        let is_traced = |core: &KernelCore| core.device.region().plan.trace > 0;
        let epoch = |core: &KernelCore| core.device.traces.epoch();
        let epoch = cores().filter(|core| is_traced(core)).map(|core| epoch(core)).min()?;
        // A clock for each GPU, and one for all CPU devices, by what has it.
        let (mut clocks, mut owners) = (Vec::new(), Vec::new());
        let mut clock_of = |(core, member): (&Arc<KernelCore>, &Member)| {
            let ticks = core.device.ticks();
            let owner = (ticks != Ticks::Time).then_some(member.device);
            let known = owners.iter().position(|one| *one == owner);
            is_traced(core).then(|| {
                known.unwrap_or_else(|| {
                    owners.push(owner);
                    clocks.push(DeviceClock::of(ticks));
                    clocks.len() - 1
                })
            })
        };
        let clock_of: Vec<Option<usize>> = cores().zip(&graph.members).map(&mut clock_of).collect();
        let proofs = rings.iter().map(|ring| {
            let clock = |kernel: usize| clock_of[kernel];
            match (ring.from.map(|from| clock(from.0)), ring.to.map(|to| clock(to.0))) {
                (None, Some(to)) => Some(Proof::Sent(to?, Bounds::default())),
                (Some(from), None) => Some(Proof::Received(from?, Bounds::default())),
                (Some(from), Some(to)) if from != to => {
                    Some(Proof::Between([from?, to?], Bounds::default()))
                }
                _ => None,
            }
        });
        let proofs = proofs.collect();
        let (mut channels, mut received) = (Vec::new(), Vec::new());
        for (kernel, core) in cores().enumerate() {
            let Some(clock) = clock_of[kernel] else { continue };
            let region = core.device.region();
            for (channel, ends) in (0..).zip(&ends[kernel]) {
                let ring = region.trace(channel)?; // there is one for each channel
                let fed = ends.rings.first().filter(|_| graph.members[kernel].is_fed);
                let start = region.plan.start;
                let sent = fed.zip(core.device.traces.sent(channel)).map(|(&number, trace)| {
                    let (trace, cursor) = (*trace.ring(), TraceCursor::default());
                    let core = Arc::clone(core);
                    HostEnd { number, trace, cursor, core, _memory: None, start }
                });
                channels.push(TracedChannel {
                    core: Arc::clone(core),
                    kernel,
                    channel,
                    clock,
                    first_beat: None,
                    notes: Notes::new(ring, ends, if sent.is_some() { start } else { 0 }),
                    waiting: VecDeque::new(),
                    lost: 0,
                    sent,
                });
            }
        }
        for read in reads.iter().flatten() {
            for ring in &read.rings {
                let Some(memory) = &ring.trace else { continue };
                received.push(HostEnd {
                    number: ring.number,
                    trace: *memory.ring(),
                    cursor: TraceCursor::default(),
                    core: Arc::clone(kernels[read.from].core()),
                    _memory: Some(Arc::clone(memory)),
                    start: 0,
                });
            }
        }
        let nodes = graph
            .members
            .iter()
            .map(|member| TracedNode { name: member.kernel.name(), channels: member.channels() });
        let (nodes, rings) = (nodes.collect(), rings.clone());
        Some(GraphTrace { nodes, rings, proofs, channels, received, clocks, epoch })
    }

    /// The kernels of the graph, in the order in which they were declared.
    pub fn kernels(&self) -> &[TracedNode] {
        &self.nodes
    }

    /// Its rings.
    pub fn rings(&self) -> &[TracedRing] {
        &self.rings
    }

    /// Shows `each` what was noted since the last call: of each channel, and each end of the host's, in the order in which it was noted, one behind the
    /// other. What kernels have handled comes when their device's clock is known by the host's: once the host has sent to a traced kernel
    /// there, or to one whose messages reach it, and has received from one, or from one that its messages reach.
    ///
    /// It is to be called often enough. A kernel's channel has a ring of so many records as its launch asks for; each batch that it handles takes one,
    /// and one for each ring that got messages for it. The host's ends have as many, and each call that sends or receives takes one.
    pub fn read(&mut self, mut each: impl FnMut(GraphEvent)) {
        let GraphTrace { proofs, channels, received, clocks, epoch, .. } = self;
        for of in channels.iter_mut() {
            let ticks = Measured::of(&mut of.first_beat, &of.core);
            of.notes.read(ticks, |noted| {
                if let Some(proof) = &mut proofs[noted.taken.ring] {
                    proof.taken(noted.taken, noted.handled);
                }
                for emitted in &noted.emitted {
                    if let Some(proof) = &mut proofs[emitted.ring] {
                        proof.emitted(*emitted, noted.handled);
                    }
                }
                of.waiting.push_back(noted);
            });
        }
        let mut host = |end: &mut HostEnd, event: fn(RingMessages, i64) -> GraphEvent| {
            let mut proof = proofs[end.number].as_mut();
            end.read(*epoch, |messages, at| {
                if let Some(proof) = &mut proof {
                    proof.host(messages, at);
                }
                each(event(messages, at));
            });
        };
        for end in channels.iter_mut().filter_map(|of| of.sent.as_mut()) {
            host(end, |messages, at| GraphEvent::Sent { messages, at });
        }
        for end in received {
            host(end, |messages, at| GraphEvent::Received { messages, at });
        }
        proofs.iter_mut().flatten().for_each(|proof| proof.teach(clocks));
        for of in channels {
            of.tell(&clocks[of.clock], &mut each);
        }
    }

    /// Records that were overwritten before they were read, and batches that were lost since the host's ends have noted too little.
    pub fn losses(&self) -> TraceLosses {
        let lost = |end: &HostEnd| end.cursor.lost();
        TraceLosses {
            sent: self.channels.iter().filter_map(|of| of.sent.as_ref()).map(lost).sum(),
            handled: self.channels.iter().map(|of| of.notes.lost().saturating_add(of.lost)).sum(),
            received: self.received.iter().map(lost).sum(),
        }
    }

    /// How often the clock of a device and that of the host drifted apart faster than 1 in 1000, or times contradicted each other: the
    /// mapping then began anew.
    pub fn clock_resets(&self) -> u64 {
        self.clocks.iter().map(DeviceClock::resets).sum()
    }

    /// The zero of all times.
    pub fn epoch(&self) -> Instant {
        self.epoch
    }
}

impl TracedChannel {
    /// Tells of what waits, if the clock is known.
    fn tell(&mut self, clock: &DeviceClock, mut each: impl FnMut(GraphEvent)) {
        while let Some(noted) = self.waiting.front() {
            let Some(HostTimes { unseen, began, ended, error }) = clock.times(&noted.handled)
            else {
                break;
            };
            let Some(Noted { taken, emitted, .. }) = self.waiting.pop_front() else { break };
            let (kernel, channel) = (self.kernel, self.channel);
            each(GraphEvent::Handled(HandledMessages {
                kernel,
                channel,
                taken,
                unseen,
                began,
                ended,
                error,
                emitted,
            }));
        }
        let too_many = self.waiting.len().saturating_sub(MOST_WAITING);
        self.waiting.drain(..too_many);
        self.lost += too_many as u64;
    }
}
