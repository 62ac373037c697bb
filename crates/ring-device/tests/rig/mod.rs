//! A host of its own for the tests: control block, channel blocks and slots on the heap, channels on
//! threads, every wait bounded.
#![allow(dead_code, unused_imports, unused_macros)] // each test file uses a part

pub mod traffic;

use ring_device::{BlockMemory, Hooks, Kernel, Scope, ThreadBlock, ring_kernel, run};
pub use ring_shared::layout::Budgets;
use ring_shared::layout::{
    ChannelBlock, ChannelSetup, Command, ControlBlock, Doorbell, Exit, KernelSetup, Placement,
    Processing, State, UNLIMITED,
};
use ring_shared::message::span_of_pair;
use ring_shared::ring::{MAX_LINES, MAX_SPAN, span_in};
use ring_shared::{Inbox, Message, Outbox, Ring};
use std::alloc::Layout;
use std::cell::RefCell;
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The longest wait of a test.
const LONG: Duration = Duration::from_secs(60);

/// A millisecond in nanoseconds.
pub const MS: u64 = 1_000_000;

/// Nanoseconds of the clock that channels see.
pub fn now() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    // Not from zero: a zeroed word is long ago.
    START.get_or_init(Instant::now).elapsed().as_nanos() as u64 + 3_600_000_000_000
}

/// A clock of a test's own, asked by the channel of that number.
pub type Clock = Arc<dyn Fn(u32) -> u64 + Send + Sync>;

/// What a test does when a channel, which has that number, has found nothing for the `n`th time.
pub type Rest = Arc<dyn Fn(u32, u32) + Send + Sync>;

/// What a channel's thread has of its rig: the channel, and hooks of the test's own.
type Own = (u32, Option<Clock>, Option<Rest>);

thread_local! {
    static OWN: RefCell<Own> = const { RefCell::new((0, None, None)) };
}

/// The time that a channel's thread sees.
fn channel_now() -> u64 {
    OWN.with_borrow(|(channel, clock, _)| clock.as_ref().map_or_else(now, |clock| clock(*channel)))
}

/// How a channel's thread rests.
fn channel_rest(n: u32) {
    OWN.with_borrow(|(channel, _, rest)| match rest {
        Some(rest) => rest(*channel, n),
        None if n > 16 => std::thread::yield_now(),
        None => {}
    });
}

/// Waits until `done`, or fails.
pub fn until(what: &str, mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < LONG, "{what}: not in {LONG:?}");
        std::thread::yield_now();
    }
}

/// Where a handler waits.
pub struct Gate {
    /// Messages below this may be answered.
    pub below: AtomicU64,
    /// The message after the last that a handler has begun with; 0 before the first.
    pub begun: AtomicU64,
}

impl Gate {
    pub const fn new() -> Gate {
        Gate { below: AtomicU64::new(0), begun: AtomicU64::new(0) }
    }

    pub fn close(&self) {
        self.open(0);
        self.begun.store(0, Release);
    }

    /// Messages below that may be answered.
    pub fn open(&self, below: u64) {
        self.below.store(below, Release);
    }

    /// The handler of message `i`, which it gives back.
    pub fn pass(&self, i: u64) -> u64 {
        self.begun.store(i + 1, Release);
        until("the gate opens", || self.below.load(Acquire) > i);
        i
    }
}

/// Declares a kernel that answers with the message, and waits with it at a gate of its own.
macro_rules! gated {
    ($name:ident, Thread, $gate:ident) => {
        static $gate: crate::rig::Gate = crate::rig::Gate::new();
        ring_device::ring_kernel! {
            struct $name;

            fn handle(request: &u64) -> u64 {
                $gate.pass(*request)
            }
        }
    };
    ($name:ident, InOrder, $gate:ident) => {
        static $gate: crate::rig::Gate = crate::rig::Gate::new();
        ring_device::ring_kernel! {
            struct $name;

            fn handle(_: &mut (), request: &u64) -> u64 {
                $gate.pass(*request)
            }
        }
    };
}
pub(crate) use gated;

ring_kernel! {
    /// Answers with one more.
    pub struct Next;

    fn handle(request: &u64) -> u64 {
        request + 1
    }
}

ring_kernel! {
    /// As [`Next`], one message after the other.
    pub struct NextInOrder;

    fn handle(_: &mut (), request: &u64) -> u64 {
        request + 1
    }
}

pub const ENDLESS: Budgets = Budgets::UNLIMITED;

/// Doorbell lines of a ring: one, the least that are several, and the most.
pub const LINES: [u32; 3] = [1, 2, MAX_LINES];

/// How the rings of a channel are cut.
#[derive(Clone, Copy)]
pub struct Rings {
    /// Slots for requests and for responses.
    pub capacity: [u32; 2],
    /// Doorbell lines of each; several are behind the slots.
    pub lines: u32,
    /// One line is there too, and so are the credit lines, not in the channels' blocks.
    pub elsewhere: bool,
}

impl From<u32> for Rings {
    /// So many slots each, and one line.
    fn from(capacity: u32) -> Rings {
        Rings::from((capacity, 1))
    }
}

impl From<(u32, u32)> for Rings {
    /// So many slots and so many lines each.
    fn from((capacity, lines): (u32, u32)) -> Rings {
        Rings { capacity: [capacity; 2], lines, elsewhere: false }
    }
}

/// A kernel's memory.
pub struct Rig<K> {
    base: NonNull<u8>,
    layout: Layout,
    pub channels: u32,
    rings: Rings,
    start: u64,
    pub launches: u64,
    epoch: u32,
    /// What channels take for the time from the next launch on, if not [`now`].
    pub clock: Option<Clock>,
    /// How channels rest from the next launch on, if not by yielding.
    pub rest: Option<Rest>,
    kernel: PhantomData<K>,
}

impl<K: Kernel> Rig<K> {
    /// Room for the credit line and the doorbell lines of a channel's two rings.
    const LINES: usize = 2 * Self::OF_RING;

    /// The same of one of them.
    const OF_RING: usize = 128 * (1 + MAX_LINES as usize * MAX_SPAN as usize);

    /// Room for a channel's state: whole lines.
    const STATE: usize = <K::Scope as Scope<K>>::STATE_BYTES.next_multiple_of(128);

    pub fn new(channels: u32, rings: impl Into<Rings>, start: u64) -> Rig<K> {
        let rings = rings.into();
        let capacity = rings.capacity;
        let slots =
            Self::slot_bytes(0) * capacity[0] as usize + Self::slot_bytes(1) * capacity[1] as usize;
        let channel =
            size_of::<ChannelBlock>() + slots.next_multiple_of(128) + Self::LINES + Self::STATE;
        let bytes = size_of::<ControlBlock>() + channels as usize * channel;
        let layout = Layout::from_size_align(bytes, 128).unwrap().pad_to_align();
        // SAFETY: not of size zero.
        let base = NonNull::new(unsafe { std::alloc::alloc_zeroed(layout) }).unwrap();
        base.as_ptr().expose_provenance();
        let kernel = PhantomData;
        let (launches, epoch, clock, rest) = (0, 0, None, None);
        let rig =
            Rig { base, layout, channels, rings, start, launches, epoch, clock, rest, kernel };
        rig.control().initialise(&KernelSetup {
            channels,
            memory_bytes: bytes as u64,
            payload: (0, 0),
            buffers: 0,
            budgets: ENDLESS,
            processing: Processing::Batch,
            max_messages: u32::MAX,
            lease: UNLIMITED,
            trace: 0,
        });
        for channel in 0..channels {
            let block = rig.channel(channel);
            let state = rig.state(channel).as_ptr().addr() as u64;
            block.initialise(&ChannelSetup {
                requests: rig.placement(channel, 0),
                responses: rig.placement(channel, 1),
                state: (state, <K::Scope as Scope<K>>::STATE_BYTES as u64),
                links: 0,
            });
            rig.rings(channel).iter().for_each(Ring::reset);
        }
        rig
    }

    pub fn control(&self) -> &ControlBlock {
        // SAFETY: zeroed atomics at the beginning of the memory, which is 128-byte aligned.
        unsafe { self.base.cast().as_ref() }
    }

    pub fn channel(&self, channel: u32) -> &ChannelBlock {
        assert!(channel < self.channels);
        // SAFETY: the blocks lie right behind the control block.
        unsafe { self.base.cast::<ControlBlock>().add(1).cast().add(channel as usize).as_ref() }
    }

    /// A channel's state, at the end of the memory.
    fn state(&self, channel: u32) -> NonNull<u8> {
        let at = self.layout.size() - (self.channels - channel) as usize * Self::STATE;
        // SAFETY: inside the memory by its layout, or at its end where there is no state.
        unsafe { self.base.add(at) }
    }

    fn slot_bytes(which: usize) -> usize {
        16 * [K::Request::SLOT_ATOMS, K::Response::SLOT_ATOMS][which]
    }

    /// Where the slots of requests and of responses begin, and lines that are nobody's or, elsewhere, the
    /// rings'.
    fn parts(&self, channel: u32) -> [NonNull<u8>; 3] {
        let blocks = size_of::<ControlBlock>() + self.channels as usize * size_of::<ChannelBlock>();
        let bytes =
            [0, 1].map(|which| Self::slot_bytes(which) * self.rings.capacity[which] as usize);
        let own = (bytes[0] + bytes[1]).next_multiple_of(128) + Self::LINES;
        let requests = blocks + channel as usize * own;
        let responses = requests + bytes[0];
        // SAFETY: inside the memory by its layout.
        let at = |at| unsafe { self.base.add(at) };
        [at(requests), at(responses), at(requests + own - Self::LINES)]
    }

    /// Where a channel's ring lies: 0 for requests, 1 for responses.
    pub fn placement(&self, channel: u32, which: usize) -> Placement {
        let address = |at: NonNull<u8>| at.as_ptr().addr() as u64;
        let (parts, block) = (self.parts(channel), std::ptr::from_ref(self.channel(channel)));
        let of = [Placement::of_requests, Placement::of_responses][which];
        let (slots, bytes) = (address(parts[which]), Self::slot_bytes(which) as u32);
        let own = of(block.addr() as u64, slots, self.rings.capacity[which], bytes);
        let credit = address(parts[2]) + (Self::OF_RING * which) as u64;
        let Rings { lines, elsewhere, .. } = self.rings;
        let placed = if elsewhere { Placement { credit, ..own } } else { own };
        let placed = match elsewhere || lines > 1 {
            true => placed.with_lines(credit + 128, lines, Self::span(lines)),
            false => placed,
        };
        placed.starting_at(self.start)
    }

    /// Doorbell lines of a message in rings that have lines for so many.
    fn span(lines: u32) -> u32 {
        span_in(lines, span_of_pair::<K::Request, K::Response>() as u32)
    }

    /// The rings of requests and of responses.
    fn rings(&self, channel: u32) -> [Ring; 2] {
        [0, 1].map(|which| {
            let placed = self.placement(channel, which);
            let at = |address: u64| {
                let offset = address as usize - self.base.as_ptr().addr();
                assert!(offset < self.layout.size());
                // SAFETY: inside the memory.
                unsafe { self.base.add(offset) }
            };
            let parts =
                (at(placed.lines).cast(), at(placed.credit).cast(), at(placed.slots).cast());
            let atoms = placed.slot_bytes / 16;
            // SAFETY: parts of the rig's memory, which the tests keep longer than its rings.
            unsafe {
                let lines = (placed.line_count, placed.span);
                Ring::from_raw(parts, lines, (placed.capacity, atoms), self.start)
            }
            .unwrap()
        })
    }

    /// The first doorbell line of message `index`, by the descriptor of a channel's ring: 0 of requests, 1 of responses.
    pub fn line(&self, channel: u32, which: usize, index: u64) -> &Doorbell {
        let block = self.channel(channel);
        let ring = [&block.request, &block.response][which];
        let (at, n) = (ring.lines.load(Relaxed) as usize, ring.line_count.load(Relaxed) as usize);
        let bytes = 128 * ring.span.load(Relaxed) as usize;
        let offset = at - self.base.as_ptr().addr() + bytes * (index as usize & (n - 1));
        assert!(offset + 128 <= self.layout.size());
        // SAFETY: inside the memory, at one of the ring's lines, which hold atomics only.
        unsafe { self.base.add(offset).cast().as_ref() }
    }

    /// The host's ends of a channel.
    pub fn ends(&self, channel: u32) -> Ends {
        Ends {
            producer: Outbox::new(self.rings(channel)[0]),
            consumer: Inbox::new(self.rings(channel)[1]),
        }
    }

    pub fn budgets(&self, budgets: Budgets) {
        self.control().config.set_budgets(budgets);
    }

    pub fn processing(&self, number: u32, max_messages: u32) {
        self.control().config.processing.store(number, Relaxed);
        self.control().config.max_messages.store(max_messages, Relaxed);
    }

    /// Commands `state`, and says of which epoch that is.
    pub fn command(&mut self, state: State) -> u32 {
        self.epoch += 1;
        let word = Command { epoch: self.epoch, state: state as u32 }.to_word();
        self.control().host.command.store(word, Release);
        self.epoch
    }

    pub fn acknowledged(&self, channel: u32) -> (u32, Option<State>) {
        let word = Command::from_word(self.channel(channel).status.acknowledged.load(Acquire));
        (word.epoch, State::from_u32(word.state))
    }

    /// Commands `state` to a launch that runs, and waits for its channels.
    pub fn command_and_wait(&mut self, state: State) {
        let epoch = self.command(state);
        for channel in 0..self.channels {
            until("acknowledged", || self.acknowledged(channel) == (epoch, Some(state)));
        }
    }

    /// Starts a launch: a thread a channel.
    pub fn launch(&mut self) -> Running {
        self.launches += 1;
        let address = self.base.as_ptr().addr();
        // As on a GPU, where block-shared memory holds what somebody left in it.
        let left = if self.launches.is_multiple_of(2) { 0xa5 } else { 0 };
        let channel = |channel| {
            let own = (channel, self.clock.clone(), self.rest.clone());
            std::thread::spawn(move || {
                OWN.set(own);
                let control = std::ptr::with_exposed_provenance::<ControlBlock>(address);
                let mut memory = Box::new(const { BlockMemory::new() });
                // SAFETY: integers, and atomics and cells of integers: any bytes are valid.
                unsafe { std::ptr::write_bytes(std::ptr::from_mut(&mut *memory), left, 1) };
                let block = ThreadBlock::new(
                    (channel, 1),
                    &mut memory,
                    Hooks { now: channel_now, rest: channel_rest, unwind: || unreachable!() },
                );
                // SAFETY: the rig's memory, set up for `K`, which outlives its launches; the rig
                // starts no launch before the last has been joined.
                unsafe { run::<K>(&block, control) };
            })
        };
        Running((0..self.channels).map(channel).collect())
    }

    /// A whole launch; how channel 0 left it.
    pub fn whole(&mut self) -> Exit {
        self.launch().join();
        self.check_left();
        self.exit(0)
    }

    /// What every channel must have written when it left.
    pub fn check_left(&self) {
        for channel in 0..self.channels {
            let (block, exit) = (self.channel(channel), self.exit(channel));
            let status = &block.status;
            assert_eq!(status.launches_left.load(Acquire), self.launches, "channel {channel}");
            let state = match exit {
                Exit::Asked => State::Terminated,
                exit if exit.is_yield() => State::Yielded,
                _ => State::Faulted,
            };
            assert_eq!(self.acknowledged(channel).1, Some(state), "{exit:?}");
            let consumed = self.rings(channel)[0].credit().consumed.load(Relaxed);
            assert_eq!(status.processed.load(Relaxed), consumed - self.start);
            if state != State::Faulted {
                let sum = |times: &[std::sync::atomic::AtomicU64]| -> u64 {
                    times.iter().map(|n| n.load(Relaxed)).sum()
                };
                let processed = status.processed.load(Relaxed);
                assert_eq!(sum(&block.times.handler), processed, "handler times");
                assert_eq!(sum(&block.times.queueing), processed, "queueing times");
            }
        }
    }

    pub fn exit(&self, channel: u32) -> Exit {
        Exit::from_u32(self.channel(channel).status.exit.load(Relaxed) as u32).unwrap()
    }

    /// Waits until a channel has consumed all requests below index `end`, and no more.
    pub fn consumes(&self, channel: u32, end: u64) {
        let consumed = &self.channel(channel).request_credit.consumed;
        until("requests are consumed", || consumed.load(Acquire) == end);
    }

    pub fn processed(&self, channel: u32) -> u64 {
        self.channel(channel).status.processed.load(Acquire)
    }
}

impl<K> Drop for Rig<K> {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            // SAFETY: of that layout; all channels were joined, or a test would be panicking.
            unsafe { std::alloc::dealloc(self.base.as_ptr(), self.layout) };
        }
    }
}

/// A launch.
pub struct Running(Vec<JoinHandle<()>>);

impl Running {
    pub fn ended(&self) -> bool {
        self.0.iter().all(JoinHandle::is_finished)
    }

    pub fn join(self) {
        until("the launch ends", || self.ended());
        self.0.into_iter().for_each(|channel| channel.join().unwrap());
    }
}

/// The host's ends of a channel.
pub struct Ends {
    pub producer: Outbox,
    pub consumer: Inbox,
}

impl Ends {
    /// Sends one message, inline if it may be.
    pub fn push<T: Message>(&mut self, message: T) -> bool {
        self.producer.note_consumed(self.consumer.next());
        self.producer.push(&message, self.consumer.next()).is_ok()
    }

    /// Sends messages through slots (if there are two or more).
    pub fn push_slice<T: Message>(&mut self, messages: &[T]) -> usize {
        self.producer.note_consumed(self.consumer.next());
        self.producer.push_slice(messages, self.consumer.next()).unwrap()
    }

    pub fn pop<T: Message>(&mut self) -> Option<T> {
        self.consumer.pop().unwrap()
    }

    /// Takes all answers there are, and publishes that to the channel.
    pub fn drain<T: Message>(&mut self) -> Vec<T> {
        let answers = std::iter::from_fn(|| self.pop()).collect();
        self.consumer.publish();
        answers
    }
}

/// Numbers that look random.
pub struct Dice(pub u64);

impl Dice {
    pub fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (self.0 >> 33) % sides
    }

    pub fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.roll(of.len() as u64) as usize]
    }
}
