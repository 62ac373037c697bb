//! A channel of a kernel with ports on a thread of its own, its links in guarded memory.

use crate::guarded::{Guarded, GuardedRing};
use crate::rig::until;
use ring_device::{BlockMemory, Hooks, Kernel, ThreadBlock, run};
use ring_shared::Message;
use ring_shared::atomics::Atom;
use ring_shared::layout::{
    Budgets, ChannelBlock, ChannelSetup, Command, ControlBlock, Exit, Far, KernelSetup, Link,
    Links, Placement, PortLinks, Processing, Routing, State, UNLIMITED,
};
use std::cell::{Cell, RefCell};
use std::mem::offset_of;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::JoinHandle;

/// What the neighbours do whenever the channel's thread lets them: inside a handler, which has got that request, or not.
pub type Play = Box<dyn FnMut(Option<&[u64]>) + Send>;

thread_local! {
    static PLAY: RefCell<Option<Play>> = const { RefCell::new(None) };
    static NOW: Cell<u64> = const { Cell::new(1 << 40) };
}

/// The neighbours' turn on the channel's thread, if they have one: after a look that found nothing, and inside a handler.
pub fn play(request: Option<&[u64]>) {
    PLAY.with_borrow_mut(|play| match play {
        Some(play) => play(request),
        None => std::thread::yield_now(),
    });
}

/// A clock that counts how often it is asked, so that what a channel does depends on nothing but what it finds.
fn now() -> u64 {
    NOW.with(|now| now.replace(now.get() + 1))
}

/// The rings of a channel.
pub struct Rings {
    pub inputs: Vec<GuardedRing>,
    pub outputs: Vec<GuardedRing>,
    pub routing: Routing,
}

/// Atoms of the largest request.
const MOST_ATOMS: usize = 8;

/// What kernel and host share, in this order.
#[repr(C)]
struct Shared {
    control: ControlBlock,
    block: ChannelBlock,
    /// Slots of requests and of responses: nobody's in a graph that the host does not feed.
    slots: [[Atom; MOST_ATOMS]; 2],
    state: [AtomicU64; 16],
}

/// The channel's memory but for its links' rings.
struct Memory {
    guarded: Guarded,
}

impl Memory {
    fn shared(&self) -> &Shared {
        // SAFETY: the first part is as large, zeroed before; atomics only.
        unsafe { self.guarded.part(0).cast().as_ref() }
    }

    fn new<K: Kernel>(rings: &Rings) -> Memory {
        let ends = rings.inputs.len() + rings.outputs.len();
        let table = Link::offset(ends);
        let memory = Memory { guarded: Guarded::new(&[size_of::<Shared>(), table]) };
        let (shared, base) = (memory.shared(), memory.guarded.address(0));
        shared.control.initialise(&KernelSetup {
            channels: 1,
            memory_bytes: size_of::<Shared>() as u64,
            payload: (0, 0),
            buffers: 0,
            budgets: Budgets::UNLIMITED,
            processing: Processing::Batch,
            max_messages: 100,
            lease: UNLIMITED,
            trace: 0,
        });
        let (at, request) = (|offset: usize| base + offset as u64, 16 * K::Request::SLOT_ATOMS);
        let (block, slots) = (at(offset_of!(Shared, block)), offset_of!(Shared, slots));
        shared.block.initialise(&ChannelSetup {
            requests: Placement::of_requests(block, at(slots), 1, request as u32),
            responses: Placement::of_responses(block, at(slots + 16 * MOST_ATOMS), 1, 16),
            state: (at(offset_of!(Shared, state)), 128),
            links: memory.guarded.address(1),
        });
        // SAFETY: the second part has room for it and the links behind it, zeroed before; atomics only.
        let links = unsafe { memory.guarded.part(1).cast::<Links>().as_ref() };
        links.inputs.store(rings.inputs.len() as u32, Relaxed);
        links.outputs.store(rings.outputs.len() as u32, Relaxed);
        let count = rings.outputs.len() as u16;
        let port = PortLinks { first: 0, count, routing: rings.routing };
        links.ports[0].store(port.to_word(), Relaxed);
        for (k, ring) in rings.inputs.iter().chain(&rings.outputs).enumerate() {
            let at = Link::offset(k);
            // SAFETY: as above.
            ring.describe(unsafe { memory.guarded.part(1).add(at).cast().as_ref() }, Far::Channel);
        }
        memory
    }
}

/// A channel that runs.
pub struct Node {
    memory: Arc<Memory>,
    pub rings: Arc<Rings>,
    thread: Option<JoinHandle<()>>,
}

/// By what neighbours that play on the channel's thread end it.
pub struct Terminator(Arc<Memory>);

impl Terminator {
    /// The host's command to leave.
    pub fn terminate(&self) {
        let command = Command { epoch: 2, state: State::Terminated as u32 };
        self.0.shared().control.host.give(command);
    }
}

impl Node {
    /// Launches a channel of `K`, which is to be active, with neighbours that play on its thread, if they do.
    pub fn launch<K: Kernel>(
        rings: Arc<Rings>,
        play_of: impl FnOnce(Terminator) -> Option<Play>,
    ) -> Node {
        let memory = Arc::new(Memory::new::<K>(&rings));
        let host = &memory.shared().control.host;
        host.give(Command { epoch: 1, state: State::Active as u32 });
        let neighbours = play_of(Terminator(Arc::clone(&memory)));
        let kept = (Arc::clone(&memory), Arc::clone(&rings));
        let thread = std::thread::spawn(move || {
            let (memory, _rings) = kept;
            PLAY.set(neighbours);
            let mut block = Box::new(const { BlockMemory::new() });
            // SAFETY: integers, and atomics and cells of integers: any bytes are valid. A block finds what another has left.
            unsafe { std::ptr::write_bytes(std::ptr::from_mut(&mut *block), 0xa5, 1) };
            let block = ThreadBlock::new(
                (0, 1),
                &mut block,
                Hooks { now, rest: |_| play(None), unwind: || unreachable!() },
            );
            let control = memory.guarded.address(0) as usize;
            // SAFETY: memory set up for `K`, kept by this thread; it is launched once.
            unsafe { run::<K>(&block, std::ptr::with_exposed_provenance(control)) };
        });
        Node { memory, rings, thread: Some(thread) }
    }

    fn block(&self) -> &ChannelBlock {
        &self.memory.shared().block
    }

    /// Waits until the channel takes messages.
    pub fn until_active(&self) {
        let asked = Command { epoch: 1, state: State::Active as u32 };
        until("the channel is active", || {
            self.block().status.acknowledgement() == asked || self.has_ended()
        });
    }

    /// Whether its thread has ended.
    pub fn has_ended(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Commands it to leave.
    pub fn terminate(&self) {
        Terminator(Arc::clone(&self.memory)).terminate();
    }

    /// Waits until it has left; why it did, or `None` if it panicked.
    pub fn left(&mut self) -> Option<Exit> {
        until("the channel leaves", || self.has_ended());
        self.thread.take().expect("it is joined once").join().ok()?;
        Exit::from_u32(self.block().status.exit.load(Relaxed) as u32)
    }

    /// The state that it says it is in.
    pub fn state(&self) -> Option<State> {
        State::from_u32(self.block().status.acknowledgement().state)
    }

    /// Messages that it has handled, as it says.
    pub fn processed(&self) -> u64 {
        self.block().status.processed.load(Relaxed)
    }

    /// Whether nobody has written beside a part of its memory, or of its rings.
    pub fn is_whole(&self) -> bool {
        let mut rings = self.rings.inputs.iter().chain(&self.rings.outputs);
        self.memory.guarded.is_whole() && rings.all(GuardedRing::is_whole)
    }
}
