//! Opening the links of a channel: its ends of the rings that the host has laid out.

use crate::block::{Cooperate, Threads};
use crate::dispatch::channel::Channel;
use crate::kernel::{Kernel, Scope};
use crate::memory::flow::Layout;
use crate::memory::links::{begin_input, begin_output};
use crate::memory::signals::Decision;
use core::ptr::with_exposed_provenance;
use core::sync::atomic::Ordering::Relaxed;
use ring_shared::Message;
use ring_shared::layout::{ChannelBlock, Exit, Far, Link, Links, PortLinks, Routing};

/// Most workers where messages are handled one after the other: one handles, and others bring and write. More would only wait
/// for their turn.
const WORKERS_IN_ORDER: u32 = 4;

impl<K: Kernel> Channel<'_, K> {
    /// All threads, before the channel begins: makes its ends of its links. Why it cannot run, if so.
    ///
    /// # Safety
    /// `lines` is the channel's block; what its links name is there and stays.
    #[inline(always)]
    pub unsafe fn open_links(&self, lines: &ChannelBlock) -> Option<Exit> {
        let at = lines.links.load(Relaxed) as usize;
        if at == 0 {
            return Some(Exit::BadConfig); // not launched as one of a graph
        }
        // SAFETY: the caller's promise; cells only.
        let links: &Links = unsafe { &*with_exposed_provenance(at) };
        let (inputs, outputs) = (links.inputs.load(Relaxed), links.outputs.load(Relaxed));
        let most_ends = u64::from(inputs) + u64::from(outputs) <= u64::from(u16::MAX);
        let mut areas = self.areas((inputs, outputs));
        if <K::Scope as Scope<K>>::EMITS_IN_ORDER {
            areas.workers = areas.workers.min(WORKERS_IN_ORDER);
        }
        let has_warps = Threads::WARP == 1 || self.warps() >= <K::Scope as Scope<K>>::LEAST_WARPS;
        if !most_ends || areas.chunk == 0 || !has_warps {
            return Some(Exit::BadConfig);
        }
        if self.thread() == 0 {
            let most = self.memory().boot_max_messages();
            let mut layout = Layout::new((inputs, outputs), areas, most);
            if Self::TOGETHER {
                layout.most = layout.areas.chunk; // between two chunks the first warp tells of one, and looks at the host
            }
            let mut port = 0;
            while port < Self::PORTS.len() {
                let mut port_links = PortLinks::from_word(links.ports[port].load(Relaxed));
                if port_links.count == 1 && port_links.routing == Routing::ByKey {
                    port_links.routing = Routing::All; // there is nothing to choose
                }
                layout.ports[port] = port_links;
                port += 1;
            }
            // SAFETY: the beginning of the scratch memory, aligned, which nobody uses before the barrier.
            unsafe { self.memory().scratch.bytes(0).cast::<Layout>().write(layout) };
            self.flow().begin(at as u64);
        }
        self.sync();
        let (layout, flow) = (self.layout(), self.flow());
        let link = |k: u32| {
            let at = at + Link::offset(k as usize);
            // SAFETY: the caller's promise: so many are behind the head; cells only.
            unsafe { &*with_exposed_provenance::<Link>(at) }
        };
        let mut fits = true;
        let note = |far: Option<Far>| match far {
            Some(Far::Channel) => {}
            Some(Far::Host | Far::Peer) => flow.leaves_device.set(true),
            None => flow.wrong.set(Decision::BadConfig),
        };
        let mut k = self.thread();
        while k < inputs {
            // SAFETY: one of the inputs that the areas have room for; each has one thread. The host laid the ring out.
            note(unsafe { begin_input(self.input(k), link(k), K::Request::SLOT_ATOMS) });
            k += self.threads();
        }
        let (mut port, mut before) = (0, 0);
        while port < Self::PORTS.len() {
            let PortLinks { first, count, .. } = layout.ports[port];
            let end = u32::from(first) + u32::from(count);
            // Side by side, in the order of the ports, and all of them.
            fits &= count > 0 && end <= outputs && u32::from(first) == before;
            before = end;
            let mut k = u32::from(first) + self.thread();
            while k < end && end <= outputs {
                let of = &Self::PORTS[port];
                // SAFETY: likewise, of the outputs; no two ports have the same.
                note(unsafe { begin_output(self.output(k), link(inputs + k), of) });
                k += self.threads();
            }
            port += 1;
        }
        if !fits || before != outputs {
            flow.wrong.set(Decision::BadConfig);
        }
        self.sync();
        flow.wrong.get().exit()
    }
}
