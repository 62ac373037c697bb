//! A kernel's memory as loom watches it, and a small host. What is said between host and channel are atomics;
//! all else that both touch (slots, counters, what a launch leaves for the next, configuration) are plain
//! cells, which loom fails a model for touching without having acquired what was written there.

use loom::cell::UnsafeCell;
use loom::thread::{self, JoinHandle, yield_now};
use ring_device::{BlockMemory, Hooks, Kernel, ThreadBlock, ring_kernel, run};
use ring_shared::atomics::Atom;
use ring_shared::atomics::model::{Kind, Shared, share};
pub use ring_shared::layout::Budgets;
use ring_shared::layout::{
    ChannelBlock, ChannelSetup, Command, ControlBlock, Doorbell, Exit, HostLine, KernelSetup,
    Placement, Processing, State, StatusLine, UNLIMITED,
};
use ring_shared::{Inbox, Outbox, Ring};
use std::cell::RefCell;
use std::mem::offset_of;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr::NonNull;
use std::rc::Rc;
use std::sync::atomic::Ordering::{Relaxed, Release};

/// Indices begin where their low half is about to come round, so that it does in the models.
pub const START: u64 = (1 << 32) - 1;

/// Most messages of a model.
pub const MOST: usize = 4;

/// Nanoseconds of the channels' clock, which stands still: no heartbeat is due.
const NOW: u64 = 1 << 40;

pub fn check(preemptions: usize, model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound.get_or_insert(preemptions);
    builder.max_branches = 20_000; // a launch reads much before it begins
    let begun = std::time::Instant::now();
    let n = std::sync::Arc::new(std::sync::atomic::AtomicU64::new(0));
    let count = n.clone();
    let bound = builder.preemption_bound;
    builder.check(move || {
        count.fetch_add(1, Relaxed);
        model();
    });
    eprintln!(
        "{:?}: {} executions, {bound:?} preemptions, {:?}",
        std::thread::current().name(),
        n.load(Relaxed),
        begun.elapsed()
    );
}

/// Plain memory beside the ring that host and handlers touch.
#[derive(Default)]
pub struct Plain {
    /// Written by the host before message `i` is sent, read by its handler.
    asked: [UnsafeCell<u32>; MOST],
    /// Times that the handler of message `i` ran; read by the host with its answer.
    pub handled: [UnsafeCell<u32>; MOST],
    /// The host's while the kernel is not active, else the channel's.
    pub state: UnsafeCell<u32>,
}

/// Adds one.
pub fn count(cell: &UnsafeCell<u32>) {
    // SAFETY: loom fails the model if another thread is here too.
    cell.with_mut(|at| unsafe { *at += 1 });
}

pub fn read(cell: &UnsafeCell<u32>) -> u32 {
    // SAFETY: loom fails the model if another thread writes it meanwhile.
    cell.with(|at| unsafe { *at })
}

std::thread_local! {
    // Loom runs all threads of a model on the one that began it.
    static PLAIN: RefCell<Option<Rc<[Plain]>>> = const { RefCell::new(None) };
}

fn plain(channel: usize) -> impl std::ops::Deref<Target = Plain> {
    struct Of(Rc<[Plain]>, usize);
    impl std::ops::Deref for Of {
        type Target = Plain;
        fn deref(&self) -> &Plain {
            &self.0[self.1]
        }
    }
    Of(PLAIN.with_borrow(|plain| plain.clone().expect("a model that runs")), channel)
}

/// The bit of a message that its handler panics over.
const PANIC: u64 = 1 << 63;

/// The message number `i` of a channel.
fn message(channel: usize, i: usize) -> u64 {
    (channel as u64) << 32 | i as u64
}

fn handle(request: &u64) -> u64 {
    let (plain, i) = (plain((*request >> 32 & 1) as usize), *request as u32 as usize);
    assert_eq!(read(&plain.asked[i]), 1, "a message seen before what was written before it");
    count(&plain.handled[i]);
    count(&plain.state);
    if request & PANIC != 0 {
        resume_unwind(Box::new(())); // without the hook, which would print each
    }
    !request
}

ring_kernel! {
    /// Answers with the complement.
    pub struct Alone {
        name: "alone",
        entry: "test_alone",
    }

    fn handle(request: &u64) -> u64 {
        handle(request)
    }
}

ring_kernel! {
    /// The same, one message after the other, every answer through a slot.
    pub struct Sequence {
        name: "sequence",
        entry: "test_sequence",
    }

    fn handle(state: &mut u64, request: &u64) -> u64 {
        *state += 1;
        handle(request)
    }
}

#[repr(C)]
struct Memory {
    control: ControlBlock,
    blocks: [ChannelBlock; 2],
    slots: [[[Atom; MOST]; 2]; 2],
    state: [u64; 2 * 16],
}

/// A kernel on no device yet, and the host's side of it.
pub struct Rig<K> {
    watched: Vec<Shared>,
    launches: Vec<JoinHandle<()>>,
    submitted: u64,
    epoch: u32,
    channels: u32,
    /// Messages of each channel that were answered before the model begins.
    skipped: u64,
    memory: NonNull<Memory>,
    kernel: std::marker::PhantomData<K>,
}

/// The host's ends of a channel.
pub struct Ends {
    pub sender: Sender,
    pub receiver: Receiver,
}

/// The sending half.
pub struct Sender {
    producer: Outbox,
    channel: usize,
    sent: usize,
}

/// The receiving half.
pub struct Receiver {
    consumer: Inbox,
    channel: usize,
    got: usize,
}

pub const ENDLESS: Budgets = Budgets::UNLIMITED;

/// What the word at so many bytes of a channel's block is. What pads lines, and the histograms, which channel
/// after channel has for itself, are not watched.
fn of_channel(channels: u32, at: usize) -> Option<Kind> {
    let line = |begin: usize| at.checked_sub(begin).filter(|at| *at < 128);
    // Of the doorbells the one atom that a message takes, and the control atom.
    let bell = |at: Option<usize>| at.is_some_and(|at| !(16..112).contains(&at));
    let status = |field: usize| at == offset_of!(ChannelBlock, status) + field;
    let atomic = bell(line(offset_of!(ChannelBlock, request_bell)))
        || bell(line(offset_of!(ChannelBlock, response_bell)))
        || at == offset_of!(ChannelBlock, request_credit)
        || at == offset_of!(ChannelBlock, response_credit)
        || status(offset_of!(StatusLine, acknowledged))
        || status(offset_of!(StatusLine, launches_left))
        || channels > 1 && status(offset_of!(StatusLine, busy))
        || channels > 1 && status(offset_of!(StatusLine, call));
    let status = line(offset_of!(ChannelBlock, status)).is_some_and(|at| at < 104);
    let cell = status || at < 112;
    match atomic {
        true => Some(Kind::Atomic),
        false => cell.then_some(Kind::Cell),
    }
}

/// The last words of a channel whose handler panicked, as `cpu_entry` of `ring-host` writes them.
fn panicked(block: &ChannelBlock) {
    let status = &block.status;
    let epoch = Command::from_word(status.acknowledged.load(Relaxed)).epoch;
    let left = status.launches_left.load(Relaxed) + 1;
    status.exit.store(Exit::HandlerPanicked as u64, Relaxed);
    let word = Command { epoch, state: State::Faulted as u32 }.to_word();
    status.acknowledged.store(word, Release);
    status.launches_left.store(left, Release);
}

impl<K: Kernel<Request = u64, Response = u64>> Rig<K> {
    pub fn new(channels: u32, capacity: u32, budgets: Budgets) -> Rig<K> {
        // SAFETY: integers, and atomics of integers.
        let memory: Box<Memory> = unsafe { Box::new_zeroed().assume_init() };
        let memory = NonNull::from(Box::leak(memory));
        let kernel = std::marker::PhantomData;
        let (watched, launches) = (Vec::new(), Vec::new());
        let (submitted, epoch, skipped) = (0, 0, 0);
        let mut rig =
            Rig { watched, launches, submitted, epoch, channels, skipped, memory, kernel };
        rig.memory().control.initialise(&KernelSetup {
            channels,
            memory_bytes: size_of::<Memory>() as u64,
            payload: (0, 0),
            buffers: 0,
            budgets,
            processing: Processing::Continuous,
            max_messages: 1,
            lease: UNLIMITED,
            trace: 0,
        });
        for channel in 0..channels {
            let block = rig.channel(channel);
            let at = std::ptr::from_ref(block).expose_provenance() as u64;
            let [requests, responses] = &rig.memory().slots[channel as usize];
            let address = |slots: &[Atom; MOST]| slots.as_ptr().expose_provenance() as u64;
            let state = &rig.memory().state[16 * channel as usize..][..16];
            block.initialise(&ChannelSetup {
                requests: Placement::of_requests(at, address(requests), capacity, 16)
                    .starting_at(START),
                responses: Placement::of_responses(at, address(responses), capacity, 16)
                    .starting_at(START),
                state: (state.as_ptr().expose_provenance() as u64, 128),
                links: 0,
            });
        }
        let memory = rig.memory();
        let host = |at| match at {
            at if at == offset_of!(HostLine, command) => Some(Kind::Atomic),
            0..24 | 128..192 => Some(Kind::Cell),
            _ => None,
        };
        let mut watched = vec![share(&memory.control, host)];
        for channel in 0..channels as usize {
            watched.push(share(&memory.blocks[channel], |at| of_channel(channels, at)));
            for slots in &memory.slots[channel] {
                watched.push(share(&slots[..], |_| Some(Kind::Cell)));
            }
        }
        rig.watched = watched;
        PLAIN.set(Some((0..channels).map(|_| Plain::default()).collect()));
        rig
    }

    fn memory(&self) -> &Memory {
        // SAFETY: the memory stays until the rig is dropped; all that is shared of it is atomics.
        unsafe { self.memory.as_ref() }
    }

    pub fn channel(&self, channel: u32) -> &ChannelBlock {
        &self.memory().blocks[..self.channels as usize][channel as usize]
    }

    fn rings(&self, channel: u32, capacity: u32) -> [Ring; 2] {
        let block = self.channel(channel);
        let slots = &self.memory().slots[channel as usize];
        let ring = |bell: &Doorbell, credit, slots: &[Atom; MOST]| {
            let parts = (NonNull::from(bell), NonNull::from(credit), NonNull::from(slots).cast());
            // SAFETY: parts of the rig's memory, which the models keep longer than its rings.
            unsafe { Ring::from_raw(parts, (1, 1), (capacity, 1), START) }.expect("a sound ring")
        };
        [
            ring(&block.request_bell, &block.request_credit, &slots[0]),
            ring(&block.response_bell, &block.response_credit, &slots[1]),
        ]
    }

    pub fn ends(&self, channel: u32, capacity: u32) -> Ends {
        let [requests, responses] = self.rings(channel, capacity);
        let (producer, consumer, channel) =
            (Outbox::new(requests), Inbox::new(responses), channel as usize);
        let (sender, receiver) =
            (Sender { producer, channel, sent: 0 }, Receiver { consumer, channel, got: 0 });
        Ends { sender, receiver }
    }

    /// Goes on as if `n` messages of the channel had been answered through slots, and received. Only before the
    /// first launch.
    pub fn skip(&mut self, ends: &mut Ends, n: u64) {
        let head = START + n;
        ends.receiver.consumer.fast_forward(n);
        ends.sender.producer.fast_forward(n, head);
        let block = self.channel(ends.sender.channel as u32);
        block.request_credit.consumed.store(head, Relaxed);
        block.status.processed.store(n, Relaxed);
        self.skipped = n;
    }

    /// Only while no launch is on the device.
    pub fn budgets(&self, budgets: Budgets) {
        self.memory().control.config.set_budgets(budgets);
    }

    /// Submits `launches` that follow each other, as a driver runs them: a thread a channel, and the next when
    /// the last is over. With two channels one launch only, since their threads do not wait for each other.
    pub fn launch(&mut self, launches: u64) {
        assert!(self.channels == 1 || launches == 1);
        self.submitted += launches;
        for channel in 0..self.channels {
            let control = self.memory.as_ptr().expose_provenance();
            self.launches.push(thread::spawn(move || {
                let control = std::ptr::with_exposed_provenance::<ControlBlock>(control);
                for _ in 0..launches {
                    // SAFETY: integers, and atomics and cells of integers.
                    let mut memory: Box<BlockMemory> = unsafe { Box::new_zeroed().assume_init() };
                    let hooks =
                        Hooks { now: || NOW, rest: |_| yield_now(), unwind: || unreachable!() };
                    let block = ThreadBlock::new((channel, 1), &mut memory, hooks);
                    // SAFETY: the rig's memory, set up for `K`, which outlives its launches; the models
                    // submit no launch before the last has left.
                    let done =
                        catch_unwind(AssertUnwindSafe(|| unsafe { run::<K>(&block, control) }));
                    if let Err(panic) = done {
                        if !panic.is::<()>() {
                            resume_unwind(panic); // an assertion, or loom's own
                        }
                        // SAFETY: this channel's block, behind the control block.
                        panicked(unsafe {
                            &*control.add(1).cast::<ChannelBlock>().add(channel as usize)
                        });
                    }
                }
            }));
        }
    }

    /// Commands `state`.
    pub fn order(&mut self, state: State) -> Command {
        self.epoch += 1;
        let command = Command { epoch: self.epoch, state: state as u32 };
        self.memory().control.host.give(command);
        command
    }

    /// Commands `state`, and waits until every channel has acknowledged, or yielded with that. Does not wait if
    /// nothing is on the device and nothing is to be launched. `ends` are those of the channels that are driven.
    pub fn ask(&mut self, state: State, ends: &[&Ends]) {
        let command = self.order(state);
        let yielded = Command { state: State::Yielded as u32, ..command };
        for channel in 0..self.channels {
            until(|| {
                ends.iter().for_each(|ends| self.step(ends));
                let acknowledged = self.channel(channel).status.acknowledgement();
                let there = state == State::Active || !self.rests();
                !there || acknowledged == command || acknowledged == yielded
            });
        }
    }

    /// A step of what drives an event-driven kernel: launches it if it rests and there is something to do.
    pub fn step(&mut self, ends: &Ends) {
        let host = Command::from_word(self.memory().control.host.command.load(Relaxed));
        if !self.rests() || host.state != State::Active as u32 {
            return;
        }
        let block = self.channel(ends.sender.channel as u32);
        let acknowledged = Command::from_word(block.status.acknowledged.load(Relaxed));
        if acknowledged.epoch != host.epoch || block.consumed() < ends.sender.producer.next() {
            self.launch(1);
        }
    }

    /// Whether all launches have left.
    pub fn rests(&self) -> bool {
        (0..self.channels)
            .all(|channel| self.channel(channel).status.launches_left() == self.submitted)
    }

    /// As `KernelHandle::terminate`; then checks all counts: exactly the messages sent were handled, once
    /// each, or are still in the ring.
    pub fn end(mut self, ends: &mut [Ends]) {
        self.ask(State::Terminated, &[]);
        until(|| self.rests());
        for ends in ends {
            let (processed, unhandled) = self.summary(ends);
            assert_eq!(processed + unhandled, ends.sent() as u64, "a message lost or doubled");
            while ends.receiver.take() {}
            assert_eq!(ends.got() as u64, processed, "one answer for each message handled");
            let plain = plain(ends.sender.channel);
            for (i, handled) in plain.handled.iter().enumerate() {
                assert_eq!(read(handled), u32::from(i < processed as usize), "message {i}");
            }
            let exit = self.exit(ends.sender.channel as u32);
            assert!(exit.is_some_and(|exit| exit == Exit::Asked || exit.is_yield()), "{exit:?}");
        }
        self.over();
    }

    /// Why the channel left.
    pub fn exit(&self, channel: u32) -> Option<Exit> {
        Exit::from_u32(self.channel(channel).status.exit.load(Relaxed) as u32)
    }

    /// Messages handled, and those accepted that no handler has seen, of a channel that takes none.
    pub fn summary(&self, ends: &Ends) -> (u64, u64) {
        let block = self.channel(ends.sender.channel as u32);
        let consumed = block.consumed();
        let processed = block.status.processed.load(Relaxed);
        assert_eq!(processed, consumed - START, "counter and credit");
        (processed - self.skipped, ends.sender.producer.next() - consumed)
    }

    /// Waits for all threads of all launches.
    pub fn join(&mut self) {
        for launch in self.launches.drain(..) {
            launch.join().expect("the channel's assertions");
        }
    }

    /// All launches have left: gives the memory to another kernel, joins all threads and ends loom's watch.
    pub fn over(mut self) {
        for channel in 0..self.channels {
            let status = &self.channel(channel).status;
            for word in [&status.processed, &status.busy, &status.call, &status.exit] {
                word.store(0, Relaxed);
            }
        }
        self.join();
        PLAIN.set(None);
        self.watched.clear();
        // SAFETY: leaked by `new`, and nobody uses it any more.
        drop(unsafe { Box::from_raw(self.memory.as_ptr()) });
    }
}

impl Sender {
    /// Sends one message, inline if it may be; whether there was room. Responses up to `received` were
    /// taken.
    pub fn push(&mut self, received: u64) -> bool {
        self.producer.note_consumed(received);
        let has_room = self.producer.has_room(received).expect("an honest channel");
        if has_room {
            let message = self.message();
            self.producer.push(&message, received).expect("there is room");
        }
        has_room
    }

    /// Sends one message, inline, that its handler panics over.
    pub fn push_panic(&mut self) {
        let message = self.message() | PANIC;
        self.producer.push(&message, START).expect("nothing is under way");
    }

    /// Sends one message through the one slot of a ring, as soon as the channel's credit says that it is free;
    /// whether it was.
    pub fn push_slot(&mut self) -> bool {
        let has_room = self.producer.has_room(START).expect("an honest channel");
        if has_room {
            let message = self.message();
            assert_eq!(self.producer.push_slice(&[message, 0], START), Ok(1));
        }
        has_room
    }

    /// The next message, after what its handler is to see.
    fn message(&mut self) -> u64 {
        count(&plain(self.channel).asked[self.sent]);
        self.sent += 1;
        message(self.channel, self.sent - 1)
    }
}

impl Receiver {
    /// Index after the last response that was taken.
    pub fn next(&self) -> u64 {
        self.consumer.next()
    }

    /// Takes an answer, if there is one, and checks it.
    pub fn take(&mut self) -> bool {
        let Some(answer) = self.consumer.pop::<u64>().expect("an honest channel") else {
            return false;
        };
        assert_eq!(answer, !message(self.channel, self.got), "lost, doubled or out of order");
        assert_eq!(read(&plain(self.channel).handled[self.got]), 1, "what the handler wrote");
        self.got += 1;
        true
    }
}

impl Ends {
    /// Sends one message, inline if it may be; whether there was room.
    pub fn push(&mut self) -> bool {
        self.sender.push(self.receiver.next())
    }

    /// Sends two messages through slots.
    pub fn push_two(&mut self) {
        let two = [self.sender.message(), self.sender.message()];
        let pushed = self.sender.producer.push_slice(&two, self.receiver.next());
        assert_eq!(pushed, Ok(2), "the models send what there is room for");
    }

    /// Messages sent.
    pub fn sent(&self) -> usize {
        self.sender.sent
    }

    /// Answers taken.
    pub fn got(&self) -> usize {
        self.receiver.got
    }

    /// Takes answers until `n` were taken in all.
    pub fn take_until(&mut self, n: usize) {
        while self.got() < n {
            until(|| self.receiver.take());
        }
    }
}

/// Times that the handler of the channel's message `i` ran.
pub fn handled(channel: usize, i: usize) -> u32 {
    read(&plain(channel).handled[i])
}

/// The host's cell of channel `channel`'s state.
pub fn state<T>(channel: usize, then: impl FnOnce(&UnsafeCell<u32>) -> T) -> T {
    then(&plain(channel).state)
}

/// Waits until `done`.
pub fn until(mut done: impl FnMut() -> bool) {
    while !done() {
        yield_now();
    }
}
