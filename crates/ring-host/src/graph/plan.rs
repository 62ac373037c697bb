//! The checks of a graph, and where each of its rings lies.

use super::builder::{DeclaredLink, GraphBuilder, Route, Target};
use super::links::{LinkInfo, LinkPath};
use super::trace::events::TracedRing;
use crate::device::{Driver, NoPeer};
use crate::error::GraphError;
use crate::memory::links::{
    Consumer, GraphMemory, KernelLinks, LinkShape, Place, PortRings, RingEnds, Told, table_bytes,
};
use ring_shared::layout::{Far, LINE, Link, PortLinks, Routing};
use ring_shared::ring::MAX_CAPACITY;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// A ring from one channel to another, or to the host.
#[derive(Clone, Copy, Debug)]
struct PlannedRing {
    shape: LinkShape,
    far: Far,
    /// Where it lies, in what the device `holder` has.
    place: Place,
    holder: usize,
    /// The device of the kernel that writes it.
    from: usize,
}

/// What a device has for a graph.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    /// Most bytes of shared memory of a GPU's block; CPU threads have none.
    pub shared: Option<u32>,
    /// Free bytes of device memory.
    pub free: usize,
}

impl Room {
    fn is_gpu(&self) -> bool {
        self.shared.is_some()
    }
}

/// Bytes that a graph needs on a device.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Needs {
    pub pinned: usize,
    pub device: usize,
}

/// Whether two devices reach the memory of each other, and if not, why.
pub(super) type Peers<'a> = &'a dyn Fn(usize, usize) -> Result<(), NoPeer>;

/// The rings of one channel, as numbers in the plan's list: those that it reads, and those that it writes, by ports.
#[derive(Clone, Debug, Default)]
struct ChannelRings {
    inputs: Vec<usize>,
    outputs: Vec<usize>,
    ports: Vec<PortLinks>,
}

/// Where rings lie that the host reads, with their numbers, and what they are like.
pub(super) type ReadRings = (Vec<(usize, usize)>, LinkShape);

/// The rings of a channel by their numbers in a trace: those that it reads, and behind them those that it writes.
#[derive(Clone, Debug)]
pub(super) struct ChannelEnds {
    pub inputs: usize,
    pub rings: Vec<usize>,
}

/// Where everything lies.
#[derive(Debug)]
pub(super) struct GraphPlan {
    rings: Vec<PlannedRing>,
    /// For each kernel, for each channel.
    channels: Vec<Vec<ChannelRings>>,
    /// For each kernel, for each channel, where its table lies.
    tables: Vec<Arc<[usize]>>,
    /// For each link that the host reads, where its rings lie, by channels, with their numbers, and what they are like.
    reads: Vec<Option<ReadRings>>,
    is_fed: Vec<bool>,
    /// For each kernel, the number of its device.
    devices: Vec<usize>,
    /// For each kernel, the names of its ports.
    ports: Vec<Vec<&'static str>>,
    /// For each device.
    pub needs: Vec<Needs>,
    /// For each link, as it is told of.
    pub links: Vec<LinkInfo>,
    /// The kernels, each before those that it feeds.
    pub order: Vec<usize>,
}

impl GraphPlan {
    /// For a graph that was [checked](check), with the `order` found there, and whose kernels have as many channels as can be
    /// resident, on devices that have such `rooms`. Rings between kernels that nobody chose slots for have as many as fit half of the
    /// free bytes on each device.
    pub fn fitting(
        graph: &GraphBuilder,
        order: &[usize],
        rooms: &[Room],
        peers: Peers<'_>,
    ) -> Result<GraphPlan, GraphError> {
        let mut slots = GraphBuilder::DEFAULT_SLOTS;
        loop {
            let plan = GraphPlan::new(graph, order.to_vec(), rooms, peers, slots)?;
            let mut each = plan.needs.iter().zip(rooms);
            let fits = each.all(|(needs, room)| needs.device <= room.free / 2);
            if fits || slots <= GraphBuilder::LEAST_SLOTS {
                return Ok(plan);
            }
            slots /= 2;
        }
    }

    /// The same with so many `slots` of such rings.
    fn new(
        graph: &GraphBuilder,
        order: Vec<usize>,
        rooms: &[Room],
        peers: Peers<'_>,
        slots: u32,
    ) -> Result<GraphPlan, GraphError> {
        let channels: Vec<Vec<ChannelRings>> = graph
            .members
            .iter()
            .map(|member| vec![ChannelRings::default(); member.channels() as usize])
            .collect();
        let mut plan = GraphPlan {
            rings: Vec::new(),
            channels,
            tables: Vec::new(),
            reads: vec![None; graph.links.len()],
            is_fed: graph.members.iter().map(|member| member.is_fed).collect(),
            devices: graph.members.iter().map(|member| member.device).collect(),
            ports: graph
                .members
                .iter()
                .map(|member| member.kernel.ports().iter().map(|port| port.name).collect())
                .collect(),
            needs: vec![Needs::default(); rooms.len()],
            links: Vec::new(),
            order,
        };
        for from in 0..graph.members.len() {
            for port in 0..graph.members[from].kernel.ports().len() {
                let is_it = |link: &DeclaredLink| (link.from, link.port) == (from, port);
                let number = graph.links.iter().position(is_it);
                let number = number.expect("every port has a link");
                plan.place(graph, number, slots, (rooms, peers));
            }
        }
        plan.place_tables(graph, rooms)?;
        Ok(plan)
    }

    /// Places the rings of a link, of so many slots if nobody chose.
    fn place(
        &mut self,
        graph: &GraphBuilder,
        number: usize,
        slots: u32,
        (rooms, peers): (&[Room], Peers<'_>),
    ) {
        let link = graph.links[number];
        let member = &graph.members[link.from];
        let port = member.kernel.ports()[link.port];
        let capacity = link.slots.unwrap_or(slots);
        let shape = LinkShape { capacity, slot_bytes: port.slot_bytes() as u32 };
        let (from, reader) = (member.device, link.reader(graph));
        let to = reader.map_or(from, |reader| reader.device);
        let path = match (reader, peers(from, to)) {
            (None, _) => LinkPath::Host,
            (Some(_), _) if from == to => LinkPath::Device,
            (Some(_), Ok(())) => LinkPath::Peer,
            (Some(_), Err(why)) => LinkPath::Pinned(why),
        };
        let holder = match path {
            // CPU threads see the pinned memory of a GPU, and a GPU sees none of theirs.
            LinkPath::Pinned(NoPeer::Kinds) if rooms[from].is_gpu() => from,
            _ => to,
        };
        let (mut read, before) = (Vec::new(), self.rings.len());
        for channel in 0..self.channels[link.from].len() {
            let first = self.channels[link.from][channel].outputs.len();
            let (consumers, routing) = match link.to {
                Target::Host => (vec![None], Routing::All),
                Target::Kernel { index, route } => {
                    let all = 0..self.channels[index].len();
                    let some = |channels: Vec<usize>| {
                        channels.into_iter().map(|to| Some((index, to))).collect::<Vec<_>>()
                    };
                    match route {
                        Route::Pairwise => (some(vec![channel]), Routing::All),
                        Route::ByKey => (some(all.collect()), Routing::ByKey),
                        Route::ByIndex => (some(all.collect()), Routing::ByIndex),
                        Route::ToAll => (some(all.collect()), Routing::All),
                    }
                }
            };
            for consumer in consumers {
                let (far, place) = self.place_ring(&path, shape, (from, holder));
                let number = self.rings.len();
                self.rings.push(PlannedRing { shape, far, place, holder, from });
                self.channels[link.from][channel].outputs.push(number);
                match (consumer, place) {
                    (Some((kernel, channel)), _) => {
                        self.channels[kernel][channel].inputs.push(number);
                    }
                    (None, Place::Pinned(at)) => read.push((at, number)),
                    (None, _) => {} // never: the host reads pinned memory
                }
            }
            let rings = &mut self.channels[link.from][channel];
            let count = rings.outputs.len() - first;
            let clamped = |n: usize| u16::try_from(n).unwrap_or(u16::MAX);
            rings.ports.push(PortLinks { first: clamped(first), count: clamped(count), routing });
        }
        if link.to == Target::Host {
            self.reads[number] = Some((read, shape));
        }
        self.links.push(LinkInfo {
            from: (member.kernel.name(), from, port.name),
            to: reader.map(|reader| (reader.kernel.name(), reader.device)),
            rings: self.rings.len() - before,
            slots: capacity,
            path,
        });
    }

    /// Places a ring from a kernel on one device, which another one holds, or the same.
    fn place_ring(
        &mut self,
        path: &LinkPath,
        shape: LinkShape,
        (from, holder): (usize, usize),
    ) -> (Far, Place) {
        let bytes = shape.bytes().unwrap_or(usize::MAX / 2);
        let take = |of: &mut usize, bytes: usize| {
            let at = *of;
            *of = at.saturating_add(bytes);
            at
        };
        match path {
            LinkPath::Device => {
                (Far::Channel, Place::Device(take(&mut self.needs[holder].device, bytes)))
            }
            LinkPath::Peer => {
                let at = take(&mut self.needs[holder].device, bytes);
                let credit = take(&mut self.needs[from].device, LINE);
                (Far::Peer, Place::Split(at, credit))
            }
            LinkPath::Pinned(_) | LinkPath::Host => {
                (Far::Host, Place::Pinned(take(&mut self.needs[holder].pinned, bytes)))
            }
        }
    }

    /// Places what each channel is told, and checks that it has room for its rings.
    fn place_tables(&mut self, graph: &GraphBuilder, rooms: &[Room]) -> Result<(), GraphError> {
        for (member, channels) in graph.members.iter().zip(&self.channels) {
            let (shared, needs) = (rooms[member.device].shared, &mut self.needs[member.device]);
            let mut tables = Vec::new();
            let block = shared.map(|bytes| (member.kernel.wants(&member.launch).1, bytes));
            for rings in channels {
                let inputs = rings.inputs.len() + usize::from(member.is_fed);
                let outputs = rings.outputs.len();
                let most = u16::MAX as usize;
                if inputs + outputs > most
                    || member.kernel.messages_a_chunk([inputs, outputs], block) == 0
                {
                    let kernel = member.kernel.name();
                    return Err(GraphError::TooManyLinks { kernel, inputs, outputs });
                }
                tables.push(needs.pinned);
                needs.pinned = needs.pinned.saturating_add(table_bytes(inputs, outputs));
            }
            self.tables.push(tables.into());
        }
        Ok(())
    }

    /// Writes what each channel is told, but for the rings by which the host feeds it.
    pub fn write(&self, memory: &GraphMemory, drivers: &[&dyn Driver]) -> Result<(), GraphError> {
        let describe = |link: &Link, number: usize, device: usize| {
            let PlannedRing { shape, far, place, holder, from } = self.rings[number];
            let other = (device != holder).then(|| drivers[device]);
            let placement = memory[holder].placement((place, shape), &memory[from], other);
            let unseen = |source| GraphError::Unseen { device, of: holder, source };
            link.ring.describe(&placement.map_err(unseen)?);
            link.far.store(far.to_u32(), Relaxed);
            Ok::<_, GraphError>(())
        };
        for (kernel, channels) in self.channels.iter().enumerate() {
            let device = self.devices[kernel];
            let memory = &memory[device];
            for (rings, table) in channels.iter().zip(self.tables[kernel].iter().copied()) {
                let fed = usize::from(self.is_fed[kernel]);
                let links = memory.links(table);
                links.inputs.store((rings.inputs.len() + fed) as u32, Relaxed);
                links.outputs.store(rings.outputs.len() as u32, Relaxed);
                for (word, port) in links.ports.iter().zip(&rings.ports) {
                    word.store(port.to_word(), Relaxed);
                }
                for (k, number) in rings.inputs.iter().chain(&rings.outputs).enumerate() {
                    describe(memory.link(table, fed + k), *number, device)?;
                }
            }
        }
        Ok(())
    }

    /// The rings of a kernel's ports, by channels.
    fn ports_of(&self, kernel: usize, graph: &GraphBuilder) -> Arc<[PortRings]> {
        let (consumers, mut all) = (self.consumers(), Vec::new());
        let (device, fed) = (self.devices[kernel], usize::from(self.is_fed[kernel]));
        for (port, shape) in graph.members[kernel].kernel.ports().iter().enumerate() {
            let is_it = |link: &&DeclaredLink| (link.from, link.port) == (kernel, port);
            let link = graph.links.iter().find(is_it).expect("every port has a link");
            let to = link.reader(graph).map(|reader| reader.kernel.name());
            let each = self.channels[kernel].iter().zip(self.tables[kernel].iter()).zip(0..);
            for ((rings, &table), channel) in each {
                let PortLinks { first, count, .. } = rings.ports[port];
                let outputs = usize::from(first)..usize::from(first) + usize::from(count);
                let ends = outputs.clone().map(|output| {
                    let number = rings.outputs[output];
                    let link = fed + rings.inputs.len() + output;
                    let producer = Told { device, table, link };
                    let consumer = match (consumers[number], self.rings[number].place) {
                        (None, Place::Pinned(at)) => Consumer::Host(at),
                        (consumer, _) => Consumer::Channel(consumer.unwrap_or(producer)),
                    };
                    RingEnds { producer, consumer }
                });
                all.push(PortRings {
                    channel,
                    port: (port, shape.name),
                    message_bytes: shape.bytes,
                    to,
                    shape: self.rings[rings.outputs[outputs.start]].shape,
                    rings: ends.collect(),
                });
            }
        }
        all.into()
    }

    /// For each ring, where its consumer says how far it is, if the host is not that.
    fn consumers(&self) -> Vec<Option<Told>> {
        let mut consumers = vec![None; self.rings.len()];
        for (kernel, channels) in self.channels.iter().enumerate() {
            let (device, fed) = (self.devices[kernel], usize::from(self.is_fed[kernel]));
            for (rings, &table) in channels.iter().zip(self.tables[kernel].iter()) {
                for (k, number) in rings.inputs.iter().enumerate() {
                    consumers[*number] = Some(Told { device, table, link: fed + k });
                }
            }
        }
        consumers
    }

    /// The rings as a trace tells of them, and for each kernel, for each channel, which it has. Those by which the host feeds kernels come
    /// last.
    pub fn traced(&self) -> (Vec<TracedRing>, Vec<Vec<ChannelEnds>>) {
        let mut rings = vec![TracedRing { from: None, to: None }; self.rings.len()];
        let ends = self.channels.iter().enumerate().map(|(kernel, channels)| {
            let each = channels.iter().zip(0..).map(|(of, channel)| {
                for (links, name) in of.ports.iter().zip(&self.ports[kernel]) {
                    let first = usize::from(links.first);
                    for number in &of.outputs[first..first + usize::from(links.count)] {
                        rings[*number].from = Some((kernel, channel, *name));
                    }
                }
                let to = Some((kernel, channel));
                of.inputs.iter().for_each(|number| rings[*number].to = to);
                let fed = self.is_fed[kernel].then_some(rings.len());
                rings.extend(fed.map(|_| TracedRing { from: None, to }));
                let inputs = of.inputs.len() + usize::from(self.is_fed[kernel]);
                let numbers = fed.iter().chain(&of.inputs).chain(&of.outputs);
                ChannelEnds { inputs, rings: numbers.copied().collect() }
            });
            each.collect()
        });
        let ends = ends.collect();
        (rings, ends)
    }

    /// The links of a kernel.
    pub fn links_of(
        &self,
        kernel: usize,
        graph: &GraphBuilder,
        memory: &GraphMemory,
    ) -> KernelLinks {
        KernelLinks {
            ports: self.ports_of(kernel, graph),
            memory: Arc::clone(memory),
            device: self.devices[kernel],
            tables: Arc::clone(&self.tables[kernel]),
            is_fed: self.is_fed[kernel],
        }
    }

    /// Where the rings of a link that the host reads lie in pinned memory, by channels, and what they are like.
    pub fn into_reads(self) -> Vec<Option<ReadRings>> {
        self.reads
    }
}

/// Checks what depends on how many devices there are, and on nothing else of them; the kernels, each before those that it feeds.
pub(super) fn check(graph: &GraphBuilder, devices: usize) -> Result<Vec<usize>, GraphError> {
    if let Some(wrong) = &graph.wrong {
        return Err(wrong.clone());
    }
    if graph.members.is_empty() {
        return Err(GraphError::Empty);
    }
    check_members(graph, devices)?;
    check_links(graph)?;
    order(graph)
}

/// Checks each kernel for itself.
fn check_members(graph: &GraphBuilder, devices: usize) -> Result<(), GraphError> {
    for (index, member) in graph.members.iter().enumerate() {
        let kernel = member.kernel.name();
        let device = member.device;
        if device >= devices {
            return Err(GraphError::NoDevice { kernel, device, devices });
        }
        if !member.launch.may_be_resident() {
            let (mode, memory) = member.launch.asked();
            return Err(GraphError::NotResident { kernel, mode, memory });
        }
        let feeds = |link: &DeclaredLink| matches!(link.to, Target::Kernel { index: to, .. } if to == index);
        if !member.is_fed && !graph.links.iter().any(feeds) {
            return Err(GraphError::Unfed { kernel });
        }
        for (number, port) in member.kernel.ports().iter().enumerate() {
            let is_it = |link: &&DeclaredLink| (link.from, link.port) == (index, number);
            let port = port.name;
            match graph.links.iter().filter(is_it).count() {
                0 => return Err(GraphError::Unread { kernel, port }),
                1 => {}
                _ => return Err(GraphError::ReadTwice { kernel, port }),
            }
        }
    }
    Ok(())
}

/// Checks each link for itself.
fn check_links(graph: &GraphBuilder) -> Result<(), GraphError> {
    for link in &graph.links {
        let member = &graph.members[link.from];
        let shape = member.kernel.ports()[link.port];
        let (kernel, port) = (member.kernel.name(), shape.name);
        let capacity = link.slots.unwrap_or(GraphBuilder::LEAST_SLOTS);
        if !capacity.is_power_of_two() || capacity > MAX_CAPACITY {
            return Err(GraphError::Capacity(capacity));
        }
        if capacity < shape.most {
            return Err(GraphError::Short { kernel, port, most: shape.most, capacity });
        }
        let Target::Kernel { index, route } = link.to else { continue };
        let to = &graph.members[index];
        let channels = member.channels();
        let to_channels = to.channels();
        match route {
            Route::ByKey | Route::ByIndex if !shape.has_key => {
                return Err(GraphError::NoKey { kernel, port });
            }
            Route::Pairwise if channels != to_channels => {
                let to = to.kernel.name();
                return Err(GraphError::Pairwise { kernel, port, channels, to, to_channels });
            }
            _ => {}
        }
    }
    Ok(())
}

/// The kernels, each before those that it feeds.
fn order(graph: &GraphBuilder) -> Result<Vec<usize>, GraphError> {
    let n = graph.members.len();
    let feeds = |from: usize, to: usize| {
        let is_it = |link: &DeclaredLink| {
            link.from == from && matches!(link.to, Target::Kernel { index, .. } if index == to)
        };
        graph.links.iter().any(is_it)
    };
    let (mut order, mut left): (Vec<usize>, Vec<usize>) = (Vec::new(), (0..n).collect());
    while !left.is_empty() {
        let is_ready = |to: &usize| !left.iter().any(|from| feeds(*from, *to));
        let Some(at) = left.iter().position(is_ready) else {
            // Each that is left is fed by one that is left: going back from one to the next comes round.
            let mut path = vec![left[0]];
            loop {
                let to = path[path.len() - 1];
                let from = left.iter().copied().find(|from| feeds(*from, to));
                let from = from.expect("each is fed by one that is left");
                if let Some(begin) = path.iter().position(|kernel| *kernel == from) {
                    let name = |kernel: &usize| graph.members[*kernel].kernel.name();
                    let kernels = path[begin..].iter().rev().map(name).collect();
                    return Err(GraphError::Cycle { kernels });
                }
                path.push(from);
            }
        };
        order.push(left.remove(at));
    }
    Ok(order)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::launch::LaunchConfig;
    use ring_device::Kernel;

    ring_device::ring_kernel! {
        /// Passes numbers on.
        pub struct Relay {
            ports: { ON: [u64; 1] },
        }

        fn handle(number: &u64, out: &mut Ports) {
            out.emit(Relay::ON, *number);
        }
    }

    /// Slots of the rings between two kernels, beside so many free bytes, and of the one that the host reads.
    fn slots(chosen: Option<u32>, free: usize) -> (u32, u32) {
        let mut graph = GraphBuilder::new();
        let [first, last] = [1, 2].map(|_| graph.kernel::<Relay>(LaunchConfig::default()));
        graph.feed(first);
        match chosen {
            None => graph.link(first, Relay::ON, last, Route::Pairwise),
            Some(slots) => graph.link_with(first, Relay::ON, last, Route::Pairwise, slots),
        };
        graph.read(last, Relay::ON);
        let order = check(&graph, 1).unwrap();
        let room = Room { shared: None, free };
        let plan = GraphPlan::fitting(&graph, &order, &[room], &|_, _| Ok(())).unwrap();
        let of = |far| plan.rings.iter().find(|ring| ring.far == far).unwrap().shape.capacity;
        (of(Far::Channel), of(Far::Host))
    }

    #[test]
    fn links_have_as_many_slots_as_fit_half_of_what_is_free() {
        let bytes = |slots| LinkShape { capacity: slots, slot_bytes: 16 }.bytes().unwrap();
        for slots_of in [16_384, 8192, 4096, 2048, 1024] {
            assert_eq!(slots(None, 2 * bytes(slots_of)), (slots_of, GraphBuilder::READ_SLOTS));
            let less = (slots_of / 2).max(GraphBuilder::LEAST_SLOTS);
            assert_eq!(slots(None, 2 * bytes(slots_of) - 1).0, less);
        }
        assert_eq!(slots(None, usize::MAX).0, GraphBuilder::DEFAULT_SLOTS);
        assert_eq!(slots(None, 0).0, GraphBuilder::LEAST_SLOTS);
    }

    #[test]
    fn slots_that_were_chosen_stay() {
        assert_eq!(slots(Some(65_536), 0).0, 65_536);
        assert_eq!(slots(Some(16), usize::MAX).0, 16);
    }

    #[test]
    fn more_links_than_a_block_has_memory_for_are_refused_by_what_the_device_gives() {
        let plan = |channels: u32, shared: u32| {
            let mut graph = GraphBuilder::new();
            let first = graph.kernel::<Relay>(LaunchConfig::default());
            let last = graph.kernel::<Relay>(LaunchConfig::default().channels(channels));
            graph.feed(first).link(first, Relay::ON, last, Route::ToAll);
            graph.read(last, Relay::ON);
            let order = check(&graph, 1).unwrap();
            let room = Room { shared: Some(shared), free: usize::MAX };
            GraphPlan::fitting(&graph, &order, &[room], &|_, _| Ok(())).map(|_| ())
        };
        let [small, large] = [48 << 10, 227 << 10];
        assert!(plan(100, small).is_ok() && plan(300, large).is_ok());
        let refused = GraphError::TooManyLinks { kernel: Relay::NAME, inputs: 1, outputs: 300 };
        assert_eq!(plan(300, small).unwrap_err().to_string(), refused.to_string());
        assert!(matches!(plan(3000, large), Err(GraphError::TooManyLinks { outputs: 3000, .. })));
    }
}
