//! Kernels that talk, under loom: channels of kernels with ports, each a thread, and the host. Lines, credit and commands are
//! atomics; slots, and what handlers read and write beside the ring, are plain cells.

use crate::rig::{START, check, until};
use loom::cell::UnsafeCell;
use loom::thread::{self, JoinHandle, yield_now};
use ring_device::{BlockMemory, Hooks, Kernel, ThreadBlock, ring_kernel, run};
use ring_shared::atomics::Atom;
use ring_shared::atomics::model::{Kind, Shared, share};
use ring_shared::layout::{
    Budgets, ChannelBlock, ChannelSetup, Command, ControlBlock, CreditLine, Doorbell, Exit, Far,
    HostLine, KernelSetup, Link, Links, Placement, PortLinks, Processing, Routing, State,
    StatusLine, UNLIMITED,
};
use ring_shared::{Inbox, Outbox, Ring};
use std::cell::RefCell;
use std::mem::offset_of;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr::NonNull;
use std::rc::Rc;
use std::sync::atomic::Ordering::{Relaxed, Release};

/// Slots of each ring at most, and messages of a model.
const MOST: usize = 4;

/// A message: its number, and in the upper half which kernel has passed it on, or is to panic over it.
const PANIC: u64 = 1 << 63;

/// What each message's handlers leave beside it: the first kernel reads what the host wrote, the second what the first wrote.
#[derive(Default)]
struct Plain {
    sent: [UnsafeCell<u32>; 2 * MOST],
    passed: [UnsafeCell<u32>; 2 * MOST],
    absorbed: [UnsafeCell<u32>; 2 * MOST],
}

std::thread_local! {
    // Loom runs all threads of a model on the one that began it.
    static PLAIN: RefCell<Option<Rc<Plain>>> = const { RefCell::new(None) };
}

fn plain() -> Rc<Plain> {
    PLAIN.with_borrow(|plain| plain.clone().expect("a model that runs"))
}

fn count(cell: &UnsafeCell<u32>) {
    // SAFETY: loom fails the model if another thread is here too.
    cell.with_mut(|at| unsafe { *at += 1 });
}

fn read(cell: &UnsafeCell<u32>) -> u32 {
    // SAFETY: loom fails the model if another thread writes it meanwhile.
    cell.with(|at| unsafe { *at })
}

fn number(message: u64) -> usize {
    (message & 0xff) as usize
}

ring_kernel! {
    /// Passes each message on.
    pub struct First {
        entry: "test_first",
        ports: { ON: [u64; 1] by |message| *message as u32 },
    }

    fn handle(message: &u64, out: &mut Ports) {
        let (plain, i) = (plain(), number(*message));
        assert_eq!(read(&plain.sent[i]), 1, "a message seen before what was written before it");
        count(&plain.passed[i]);
        out.emit(First::ON, *message);
    }
}

ring_kernel! {
    /// Passes each message on, message after message, or panics over it.
    pub struct Second {
        entry: "test_second",
        ports: { ON: [u64; 1] by |message| *message as u32 },
    }

    fn handle(_: &mut u64, message: &u64, out: &mut Ports) {
        if *message & PANIC != 0 {
            resume_unwind(Box::new(())); // without the hook, which would print each
        }
        let (plain, i) = (plain(), number(*message));
        assert_eq!(read(&plain.passed[i]), 1, "a message seen before its first kernel was done");
        count(&plain.absorbed[i]);
        out.emit(Second::ON, *message);
    }
}

ring_kernel! {
    /// The first of a chain, as a kernel whose messages the whole block handles, and which places what it emits.
    pub struct Together {
        entry: "test_together",
        ports: { ON: [u64; 1] by |message| *message as u32 },
    }

    fn handle(_: &BlockContext, message: &u64, out: &mut Ports) {
        let (plain, i) = (plain(), number(*message));
        assert_eq!(read(&plain.sent[i]), 1, "a message seen before what was written before it");
        count(&plain.passed[i]);
        let placed = out.place(Together::ON);
        placed.set(0, 0, *message as u32);
        placed.set(0, 1, (*message >> 32) as u32);
    }
}

#[repr(C, align(128))]
struct RingMemory {
    line: Doorbell,
    credit: CreditLine,
    slots: [Atom; MOST],
}

#[repr(C)]
struct Memory {
    control: ControlBlock,
    block: ChannelBlock,
    slots: [[Atom; 1]; 2],
    links: Links,
    link: [Link; 4],
    state: [u64; 16],
}

/// A ring between two of the model's threads.
struct Between {
    memory: Box<RingMemory>,
    capacity: u32,
    _watched: Shared,
}

impl Between {
    fn new(capacity: u32) -> Between {
        // SAFETY: atomics of integers.
        let memory: Box<RingMemory> = unsafe { Box::new_zeroed().assume_init() };
        let ring = Between::ring_of(&memory, capacity);
        ring.reset();
        let watched = share(&*memory, |at| match at {
            // Of the line the one atom that a message takes, and the control atom.
            0..16 | 112..128 => Some(Kind::Atomic),
            128 => Some(Kind::Atomic),
            256.. => Some(Kind::Cell),
            _ => None,
        });
        Between { memory, capacity, _watched: watched }
    }

    fn ring_of(memory: &RingMemory, capacity: u32) -> Ring {
        let parts = (
            NonNull::from(&memory.line),
            NonNull::from(&memory.credit),
            NonNull::from(&memory.slots).cast(),
        );
        // SAFETY: parts of memory that the models keep longer than its rings.
        unsafe { Ring::from_raw(parts, (1, 1), (capacity, 1), START) }.expect("a sound ring")
    }

    fn ring(&self) -> Ring {
        Between::ring_of(&self.memory, self.capacity)
    }

    fn describe(&self, link: &Link, far: Far) {
        let address = |at: *const u8| at.expose_provenance() as u64;
        let at = address((&raw const *self.memory).cast());
        link.ring.describe(&Placement {
            lines: at,
            credit: at + 128,
            slots: at + 256,
            start: START,
            capacity: self.capacity,
            slot_bytes: 16,
            line_count: 1,
            span: 1,
        });
        link.far.store(far.to_u32(), Relaxed);
    }
}

/// One channel of a kernel with one port at most.
struct Node {
    memory: NonNull<Memory>,
    watched: Vec<Shared>,
    thread: Option<JoinHandle<()>>,
    epoch: u32,
}

impl Node {
    /// Launches kernel `K` with those inputs and outputs.
    fn new<K: Kernel>(
        inputs: &[(&Between, Far)],
        outputs: &[(&Between, Far)],
        routing: Routing,
    ) -> Node {
        // SAFETY: integers, and atomics of integers.
        let memory: Box<Memory> = unsafe { Box::new_zeroed().assume_init() };
        let memory = NonNull::from(Box::leak(memory));
        // SAFETY: the memory stays until the node is dropped; all that is shared of it is atomics.
        let m = unsafe { memory.as_ref() };
        m.control.initialise(&KernelSetup {
            channels: 1,
            memory_bytes: size_of::<Memory>() as u64,
            payload: (0, 0),
            buffers: 0,
            budgets: Budgets::UNLIMITED,
            processing: Processing::Batch,
            max_messages: 2,
            lease: UNLIMITED,
            trace: 0,
        });
        let address = |at: *const u8| at.expose_provenance() as u64;
        let block = address((&raw const m.block).cast());
        let slots = |k: usize| address((&raw const m.slots[k]).cast());
        m.block.initialise(&ChannelSetup {
            requests: Placement::of_requests(block, slots(0), 1, 16),
            responses: Placement::of_responses(block, slots(1), 1, 16),
            state: (address(m.state.as_ptr().cast()), 128),
            links: address((&raw const m.links).cast()),
        });
        m.links.inputs.store(inputs.len() as u32, Relaxed);
        m.links.outputs.store(outputs.len() as u32, Relaxed);
        let port = PortLinks { first: 0, count: outputs.len() as u16, routing };
        m.links.ports[0].store(port.to_word(), Relaxed);
        for (link, (ring, far)) in m.link.iter().zip(inputs.iter().chain(outputs)) {
            ring.describe(link, *far);
        }
        let host = |at| (at == offset_of!(HostLine, command)).then_some(Kind::Atomic);
        let status = offset_of!(ChannelBlock, status);
        let of_block = |at: usize| {
            let is = |field: usize| at == status + field;
            let atomic = is(offset_of!(StatusLine, acknowledged))
                || is(offset_of!(StatusLine, launches_left));
            atomic.then_some(Kind::Atomic)
        };
        let watched = vec![share(&m.control, host), share(&m.block, of_block)];
        let control = memory.as_ptr().expose_provenance();
        let thread = thread::spawn(move || {
            let control = std::ptr::with_exposed_provenance::<ControlBlock>(control);
            // SAFETY: integers, and atomics and cells of integers.
            let mut memory: Box<BlockMemory> = unsafe { Box::new_zeroed().assume_init() };
            let hooks = Hooks { now: || 1 << 40, rest: |_| yield_now(), unwind: || unreachable!() };
            let block = ThreadBlock::new((0, 1), &mut memory, hooks);
            // SAFETY: memory set up for `K`, which outlives its one launch.
            let done = catch_unwind(AssertUnwindSafe(|| unsafe { run::<K>(&block, control) }));
            if let Err(panic) = done {
                if !panic.is::<()>() {
                    resume_unwind(panic); // an assertion, or loom's own
                }
                // SAFETY: this channel's block, behind the control block.
                let status = unsafe { &(*control.add(1).cast::<ChannelBlock>()).status };
                status.exit.store(Exit::HandlerPanicked as u64, Relaxed);
                let word = Command { epoch: 0, state: State::Faulted as u32 }.to_word();
                status.acknowledged.store(word, Release);
                status.launches_left.store(1, Release);
            }
        });
        Node { memory, watched, thread: Some(thread), epoch: 0 }
    }

    fn memory(&self) -> &Memory {
        // SAFETY: as in `new`.
        unsafe { self.memory.as_ref() }
    }

    /// Commands `state`, and waits until the channel has acknowledged.
    fn ask(&mut self, state: State) {
        self.epoch += 1;
        let command = Command { epoch: self.epoch, state: state as u32 };
        self.memory().control.host.give(command);
        until(|| self.memory().block.status.acknowledgement() == command);
    }

    fn exit(&self) -> Option<Exit> {
        Exit::from_u32(self.memory().block.status.exit.load(Relaxed) as u32)
    }

    /// Waits until the channel has left; how many messages it handled.
    fn left(mut self) -> u64 {
        until(|| self.memory().block.status.launches_left() == 1);
        self.thread.take().expect("it is joined once").join().expect("the channel's assertions");
        let processed = self.memory().block.status.processed.load(Relaxed);
        self.watched.clear();
        // SAFETY: leaked by `new`, and nobody uses it any more.
        drop(unsafe { Box::from_raw(self.memory.as_ptr()) });
        processed
    }

    /// Terminates it.
    fn end(mut self) -> u64 {
        self.ask(State::Terminated);
        assert_eq!(self.exit(), Some(Exit::Asked));
        self.left()
    }
}

fn begin() {
    PLAIN.set(Some(Rc::default()));
}

fn over() {
    PLAIN.set(None);
}

/// Sends message `i`, alone in its line if that may be, else through a slot; whether there was room.
fn send(outbox: &mut Outbox, message: u64) -> bool {
    let has_room = outbox.has_room(START).expect("an honest channel");
    if has_room {
        count(&plain().sent[number(message)]);
        outbox.push(&message, START).expect("there is room");
    }
    has_room
}

/// A chain of two kernels, of which the first is `K`, both active.
fn two_active<K: Kernel>(to_first: &Between, between: &Between, out: &Between) -> [Node; 2] {
    let (inputs, outputs) = ([(between, Far::Channel)], [(out, Far::Host)]);
    let mut second = Node::new::<Second>(&inputs, &outputs, Routing::All);
    second.ask(State::Active);
    let inputs = [(to_first, Far::Host)];
    let mut first = Node::new::<K>(&inputs, &[(between, Far::Channel)], Routing::All);
    first.ask(State::Active);
    [first, second]
}

/// A chain of two kernels, drained and ended: each message comes out once and in order.
fn chain<K: Kernel>(preemptions: usize, messages: u64) {
    check(preemptions, move || {
        begin();
        let (to_first, between, out) = (Between::new(2), Between::new(1), Between::new(2));
        let [mut first, mut second] = two_active::<K>(&to_first, &between, &out);
        let mut outbox = Outbox::new(to_first.ring());
        assert!((0..messages).all(|i| send(&mut outbox, i)));
        first.ask(State::Inactive);
        second.ask(State::Inactive);
        // All that was sent has come out.
        let mut inbox = Inbox::new(out.ring());
        for i in 0..messages {
            assert_eq!(inbox.pop::<u64>(), Ok(Some(i)));
            assert_eq!(read(&plain().absorbed[i as usize]), 1);
        }
        assert_eq!((first.end(), second.end()), (messages, messages));
        over();
    });
}

#[test]
fn a_chain_of_two() {
    chain::<First>(0, 2);
}

#[test]
fn a_chain_of_two_with_one_message() {
    chain::<First>(1, 1);
}

#[test]
fn a_chain_that_a_whole_block_begins() {
    chain::<Together>(0, 2);
}

#[test]
fn a_chain_that_a_whole_block_begins_with_one_message() {
    chain::<Together>(1, 1);
}

/// A full chain that the host reads while it drains: the first kernel's output has one slot, and the host's two.
#[test]
fn a_full_link_drains() {
    check(2, || {
        begin();
        let (to_first, out) = (Between::new(2), Between::new(1));
        let mut first =
            Node::new::<First>(&[(&to_first, Far::Host)], &[(&out, Far::Host)], Routing::All);
        first.ask(State::Active);
        let mut outbox = Outbox::new(to_first.ring());
        assert!(send(&mut outbox, 0) && send(&mut outbox, 1));
        first.epoch += 1;
        let command = Command { epoch: first.epoch, state: State::Inactive as u32 };
        first.memory().control.host.give(command);
        let mut inbox = Inbox::new(out.ring());
        for i in 0..2 {
            until(|| {
                let message = inbox.pop::<u64>().expect("an honest channel");
                assert!(
                    message.is_none_or(|message| message == i),
                    "lost, doubled or out of order"
                );
                message.is_some()
            });
        }
        until(|| first.memory().block.status.acknowledgement() == command);
        assert_eq!(inbox.pop::<u64>(), Ok(None));
        assert_eq!(first.end(), 2);
        over();
    });
}

/// Two producers, each with a ring of its own, feed one kernel.
#[test]
fn a_fan_in_of_two() {
    check(0, || {
        begin();
        let feeds = [Between::new(1), Between::new(1)];
        let (links, out) = ([Between::new(1), Between::new(1)], Between::new(2));
        let inputs = [(&links[0], Far::Channel), (&links[1], Far::Channel)];
        let mut second = Node::new::<Second>(&inputs, &[(&out, Far::Host)], Routing::All);
        second.ask(State::Active);
        let mut firsts: Vec<Node> = feeds
            .iter()
            .zip(&links)
            .map(|(feed, link)| {
                let (feed, link) = ([(feed, Far::Host)], [(link, Far::Channel)]);
                let mut first = Node::new::<First>(&feed, &link, Routing::All);
                first.ask(State::Active);
                first
            })
            .collect();
        for (i, feed) in (0..).zip(&feeds) {
            assert!(send(&mut Outbox::new(feed.ring()), i));
        }
        firsts.iter_mut().for_each(|first| first.ask(State::Inactive));
        second.ask(State::Inactive);
        let mut inbox = Inbox::new(out.ring());
        let mut got = [0, 1].map(|_| inbox.pop::<u64>().unwrap().expect("both have come out"));
        got.sort_unstable();
        assert_eq!(got, [0, 1]);
        assert!(firsts.into_iter().all(|first| first.end() == 1));
        assert_eq!(second.end(), 2);
        over();
    });
}

/// By its key each message goes to one of two kernels.
#[test]
fn a_fan_out_by_key() {
    check(1, || {
        begin();
        let (feed, outs) = (Between::new(2), [Between::new(2), Between::new(2)]);
        let outputs = [(&outs[0], Far::Channel), (&outs[1], Far::Channel)];
        let mut first = Node::new::<First>(&[(&feed, Far::Host)], &outputs, Routing::ByKey);
        first.ask(State::Active);
        let mut outbox = Outbox::new(feed.ring());
        assert!(send(&mut outbox, 0) && send(&mut outbox, 1));
        first.ask(State::Inactive);
        for (i, out) in (0..).zip(&outs) {
            let mut inbox = Inbox::new(out.ring());
            assert_eq!(inbox.pop::<u64>(), Ok(Some(i)));
            assert_eq!(inbox.pop::<u64>(), Ok(None));
        }
        assert_eq!(first.end(), 2);
        over();
    });
}

/// The second kernel panics over a message: what was before it has come out, and the first obeys all the same, with its output
/// full.
#[test]
fn a_fault_behind() {
    check(0, || {
        begin();
        let (to_first, between, out) = (Between::new(4), Between::new(1), Between::new(2));
        let [first, second] = two_active::<First>(&to_first, &between, &out);
        let mut outbox = Outbox::new(to_first.ring());
        assert!(send(&mut outbox, 0) && send(&mut outbox, 1 | PANIC));
        let mut inbox = Inbox::new(out.ring());
        until(|| inbox.pop::<u64>().expect("an honest channel") == Some(0));
        until(|| second.exit() == Some(Exit::HandlerPanicked));
        assert!(send(&mut outbox, 2) && send(&mut outbox, 3));
        assert!(first.end() >= 2);
        second.left();
        assert_eq!(inbox.pop::<u64>(), Ok(None));
        over();
    });
}
