//! A kernel whose channel is a thread of the model, and a place for its launches and copies.

use crate::deadline::Patience;
use crate::device::{
    CopyLane, Demand, Grid, LaunchSlot, Launched, MemoryCopy, Occupancy, Resources, RunState,
    Sealed, Ticks,
};
use crate::drive::device_kernel::DeviceKernel;
use crate::drive::report::{AskedBy, Evidence, Selection, Why};
use crate::drive::staging::rig;
use crate::drive::{Drive, DriveConfig};
use crate::error::{DriverError, TryRecvError};
use crate::kernel::channel::Receiver;
use crate::kernel::core::KernelCore;
use crate::kernel::handle::KernelHandle;
use crate::memory::plan::Direction;
use crate::memory::region::Region;
use crate::mode::{Memory, Mode};
use loom::sync::atomic::AtomicU64;
use loom::thread::yield_now;
use ring_device::ring_kernel;
use ring_shared::atomics::Atom;
use ring_shared::atomics::model::{Kind, Shared as Watched, share};
use ring_shared::layout::{Budgets, ChannelBlock, Command, HostLine, State, StatusLine};
use ring_shared::ring::widen;
use ring_shared::{Inbox, Outbox};
use std::collections::VecDeque;
use std::mem::offset_of;
use std::slice;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::time::Duration;

/// Indices begin where their low half is about to come round, so that it does in the models.
pub const START: u64 = (1 << 32) - 1;

/// No deadline passes in a model.
pub const LONG: Duration = Duration::MAX;

pub fn check(preemptions: usize, model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound.get_or_insert(preemptions);
    builder.max_branches = 20_000;
    let begun = std::time::Instant::now();
    let n = Arc::new(std::sync::atomic::AtomicU64::new(0));
    let (count, bound) = (Arc::clone(&n), builder.preemption_bound);
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

ring_kernel! {
    /// Answers with the complement.
    pub struct Alone {
        name: "alone",
        entry: "test_alone",
    }

    fn handle(request: &u64) -> u64 {
        !request
    }
}

#[derive(Debug)]
struct Copy {
    to: *mut Atom,
    from: *const Atom,
    atoms: usize,
}

impl Copy {
    /// Copies all atoms, the last one first if `backwards`.
    fn land(&self, backwards: bool) {
        for k in 0..self.atoms {
            let k = if backwards { self.atoms - 1 - k } else { k };
            // SAFETY: atom `k` of both ranges, which stay until this has landed.
            unsafe { (*self.to.add(k)).publish((*self.from.add(k)).observe()) };
        }
    }
}

/// A place whose launches a thread of the model plays, and whose copies land when somebody asks for them.
#[derive(Debug)]
pub struct Place {
    pub asked: AtomicU64,
    pub ended: AtomicU64,
    /// Nothing more will be asked for.
    stop: AtomicU64,
    /// Only the scheduler begins copies and asks for them, under its lock: no business of loom's.
    copies: std::sync::Mutex<VecDeque<Copy>>,
    backwards: bool,
}

// SAFETY: the copies' addresses are of a region that outlives its place; loom runs one thread at a time.
unsafe impl Send for Place {}
// SAFETY: as above.
unsafe impl Sync for Place {}

impl Place {
    fn new(backwards: bool) -> Arc<Place> {
        let zero = || AtomicU64::new(0);
        let (asked, ended, stop, copies) = (zero(), zero(), zero(), Default::default());
        Arc::new(Place { asked, ended, stop, copies, backwards })
    }

    /// Waits until launch `n`, from 0, is to run; false if it never will.
    pub fn wait_for(&self, n: u64) -> bool {
        loop {
            if self.asked.load(Acquire) > n {
                return true;
            }
            if self.stop.load(Acquire) > 0 {
                return false;
            }
            yield_now();
        }
    }

    /// All launches have ended.
    pub fn end(&self) {
        self.ended.store(self.asked.load(Relaxed), Release);
    }

    pub fn stop(&self) {
        self.stop.store(1, Release);
    }

    fn begin(&self, to: *mut u8, from: *const u8, bytes: usize) {
        let copy = Copy { to: to.cast(), from: from.cast(), atoms: bytes / size_of::<Atom>() };
        self.copies.lock().unwrap().push_back(copy);
    }
}

impl Sealed for Place {}

impl LaunchSlot for Place {
    unsafe fn launch(&self, _: bool) -> Result<Launched, DriverError> {
        // SYNC: released to `wait_for`: what the host wrote before the launch.
        self.asked.store(self.asked.load(Relaxed) + 1, Release);
        Ok(Launched::Yes)
    }
    fn state(&self) -> RunState {
        // SYNC: acquires the channel's release after its last access.
        match self.ended.load(Acquire) == self.asked.load(Relaxed) {
            true => RunState::Ended,
            false => RunState::Running,
        }
    }

    fn is_over(&self) -> bool {
        true // the models join all threads first
    }
}

impl CopyLane for Place {
    fn copies(&self) -> RunState {
        loop {
            // Not locked while loom may switch to another thread.
            let copy = self.copies.lock().unwrap().pop_front();
            match copy {
                Some(copy) => copy.land(self.backwards),
                None => return RunState::Ended,
            }
        }
    }

    unsafe fn copy(&self, copy: MemoryCopy) -> Result<(), DriverError> {
        let (to, from) = copy.ends();
        self.begin(to, from, copy.bytes);
        Ok(())
    }
}

/// What the word at so many bytes of a channel's block is, where both sides use it: of the doorbells the control
/// atom, and, if messages are `inline`, the one atom that such a message takes.
fn of_channel(at: usize, inline: bool) -> Option<Kind> {
    let line = |begin: usize| at.checked_sub(begin).filter(|at| *at < 128);
    let first = if inline { 16 } else { 0 };
    let bell = |at: Option<usize>| at.is_some_and(|at| !(first..112).contains(&at));
    let status = |field: usize| at == offset_of!(ChannelBlock, status) + field;
    let atomic = bell(line(offset_of!(ChannelBlock, request_bell)))
        || bell(line(offset_of!(ChannelBlock, response_bell)))
        || at == offset_of!(ChannelBlock, request_credit)
        || at == offset_of!(ChannelBlock, response_credit)
        || status(offset_of!(StatusLine, acknowledged))
        || status(offset_of!(StatusLine, processed))
        || status(offset_of!(StatusLine, launches_left));
    atomic.then_some(Kind::Atomic)
}

/// Lets loom watch what both sides use of the device's copy (0) or the host's (1).
fn watch(region: &Region, copy: usize, inline: bool) -> [Watched; 4] {
    let at = |offset| match copy {
        0 => rig::on_device::<u8>(region, offset),
        _ => region.host_at(offset),
    };
    let command = |at| (at == offset_of!(HostLine, command)).then_some(Kind::Atomic);
    let slots = |direction| {
        let slots = at(region.slots_at(0, direction)).cast::<Atom>();
        // SAFETY: so many slots of one atom each, which stay as long as the region.
        let slots = unsafe { slice::from_raw_parts(slots.as_ptr(), region.plan.capacity as usize) };
        share(slots, |_| Some(Kind::Cell))
    };
    // SAFETY: both are laid out there, of atomics only.
    let (host, channel) = unsafe {
        let channel = at(region.channel_at(0)).cast::<ChannelBlock>();
        (at(0).cast::<HostLine>().as_ref(), channel.as_ref())
    };
    [
        share(host, command),
        share(channel, |at| of_channel(at, inline)),
        slots(Direction::Requests),
        slots(Direction::Responses),
    ]
}

/// A kernel that is active, and on no device yet; loom watches its memory until this is dropped.
pub struct Rig {
    pub kernel: KernelHandle<Alone>,
    pub place: Arc<Place>,
    _watched: Vec<Watched>,
}

impl Rig {
    /// A kernel with rings of two slots, copied `backwards` where they are; messages may be `inline`.
    pub fn new((mode, memory): (Mode, Memory), inline: bool, backwards: bool) -> Rig {
        let capacity = 2;
        let region = rig::region(memory, capacity, START);
        let (relaxed, place) = (Relaxed, Place::new(backwards));
        // As if it had been activated before.
        let active = Command { epoch: 0, state: State::Active as u32 }.to_word();
        region.control().host.command.store(active, relaxed);
        region.channel(0).status.acknowledged.store(active, relaxed);
        if memory != Memory::Mapped {
            let bytes = rig::shared_bytes(&region);
            // SAFETY: both copies are so long; nobody else knows them yet.
            unsafe {
                let to = rig::on_device::<u8>(&region, 0);
                to.as_ptr().copy_from_nonoverlapping(region.host_at::<u8>(0).as_ptr(), bytes);
            }
        }
        // The device's copy, and the host's where it is another.
        let mut watched = Vec::new();
        let copies = if memory == Memory::Mapped { 1 } else { 2 };
        for copy in 0..copies {
            watched.extend(watch(&region, copy, inline));
        }
        let kernel = Rig::kernel(region, mode, memory, &place);
        Rig { kernel, place, _watched: watched }
    }

    fn kernel(
        region: Region,
        mode: Mode,
        memory: Memory,
        place: &Arc<Place>,
    ) -> KernelHandle<Alone> {
        let budgets = Budgets::UNLIMITED;
        let config = DriveConfig {
            mode,
            memory,
            mode_is_free: false,
            memory_is_free: false,
            calls_block: false,
            budgets,
            fallback: budgets,
        };
        let drive = Drive::new(config, &region, &**place).unwrap();
        let block = Resources { blocks: 1, ..Resources::default() };
        let demand = Demand { kernel: "model", blocks: 1, block, relaunched: false };
        let share = Occupancy::new(1, block).reserve(demand).unwrap();
        let clock = (Ticks::Time, Patience::Yield);
        let launch_slot = Arc::clone(place);
        let grid = Grid { blocks: 1, threads: 1, cooperative: false };
        let device = DeviceKernel::new(
            ("alone", "model".into()),
            clock,
            (region, None),
            (grid, launch_slot, share),
        );
        let core = Arc::new(KernelCore::new(device, drive));
        if config.is_resident() {
            // SAFETY: a thread of the model plays it.
            let _ = unsafe { core.device.launch_slot().launch(false) }.unwrap();
        } else if mode == Mode::Persistent {
            // Nothing is sent before the channel has said that it is active, so it was launched.
            while !core.drive.is_launched(&core.device).unwrap() {}
        }
        core.device.set_state(State::Active);
        let why = Why { asked: AskedBy::Probe, found: Evidence::Nothing };
        let selection = Selection { mode, memory, why, refused: Vec::new() };
        KernelHandle::new(core, selection, false)
    }

    pub fn channel(&self) -> Channel {
        Channel::new(self.kernel.core())
    }
}

/// The device's side of the channel.
pub struct Channel {
    core: Arc<KernelCore>,
    requests: Inbox,
    responses: Outbox,
    processed: u64,
}

impl Channel {
    fn new(core: &Arc<KernelCore>) -> Channel {
        let ring = |direction| rig::ring(core.device.region(), direction);
        let (requests, responses) =
            (Inbox::new(ring(Direction::Requests)), Outbox::new(ring(Direction::Responses)));
        Channel { core: Arc::clone(core), requests, responses, processed: 0 }
    }

    fn block(&self) -> &ChannelBlock {
        rig::block(self.core.device.region())
    }

    pub fn command(&self) -> Command {
        // SAFETY: the host's line in the device's copy, of atomics only.
        let host = unsafe { rig::on_device::<HostLine>(self.core.device.region(), 0).as_ref() };
        // SYNC: acquires `HostLine::give`.
        Command::from_word(host.command.load(Acquire))
    }

    /// Answers a message, if there is one and room for its answer.
    pub fn answer(&mut self) -> bool {
        let credit = widen(self.requests.credit(), self.responses.consumed());
        self.responses.note_consumed(credit);
        if !self.responses.has_room(self.requests.next()).expect("an honest host") {
            return false;
        }
        let Some(request) = self.requests.pop::<u64>().expect("an honest host") else {
            return false;
        };
        self.responses.push(&!request, self.requests.next()).expect("there is room");
        self.processed += 1;
        true
    }

    /// Answers two messages, if they are there, by slots.
    pub fn answer_two(&mut self) -> bool {
        let mut two = [0u64; 2];
        let n = self.requests.pop_slice(&mut two).expect("an honest host");
        let answers = two.map(|request| !request);
        let done = self.responses.push_slice(&answers[..n], self.requests.next());
        assert_eq!(done, Ok(n), "both come at once");
        self.processed += n as u64;
        n > 0
    }

    /// Tells that it has obeyed an order, with all counters.
    pub fn acknowledge(&self, epoch: u32, state: State) {
        let (block, word) = (self.block(), Command { epoch, state: state as u32 }.to_word());
        block.status.processed.store(self.processed, Relaxed);
        // SYNC: released to the host's acquire of it, as by a channel's `publish_consumed`.
        block.request_credit.consumed.store(self.requests.next(), Release);
        // SYNC: released to the host's acquire in `StatusLine::acknowledgement`, as by a channel's `part`.
        block.status.acknowledged.store(word, Release);
    }

    /// Says why it is about to leave.
    pub fn say_exit(&self, exit: u64) {
        self.block().status.exit.store(exit, Relaxed);
    }

    /// Has left that many launches.
    pub fn leave(&self, launches: u64) {
        // SYNC: released to the host's acquire in `StatusLine::launches_left`, as by a channel's `part`.
        self.block().status.launches_left.store(launches, Release);
    }

    /// Answers until it is told to leave.
    pub fn stay(&mut self) {
        let told = loop {
            let command = self.command();
            if command.state == State::Terminated as u32 {
                break command;
            }
            if !self.answer() {
                yield_now();
            }
        };
        self.acknowledge(told.epoch, State::Terminated);
        self.leave(1);
    }
}

/// The receiving half, and what it has received.
pub struct Receiving {
    receiver: Receiver<Alone>,
    pub received: u64,
    pub end: Option<TryRecvError>,
}

impl Receiving {
    pub fn new(receiver: Receiver<Alone>) -> Receiving {
        Receiving { receiver, received: 0, end: None }
    }

    /// Looks once. Nothing follows the end.
    fn look(&mut self) {
        match (self.receiver.try_recv(), &self.end) {
            (Ok(answer), None) => {
                assert_eq!(answer, !self.received, "lost, doubled or out of order");
                self.received += 1;
            }
            (Err(TryRecvError::Empty), None) => yield_now(),
            (Err(end), None) => self.end = Some(end),
            (found, Some(end)) => assert_eq!(found, Err(end.clone()), "it follows the end"),
        }
    }

    /// Looks so many times: on a thread of its own, where more would keep others waiting for ever.
    pub fn looks(mut self, n: usize) -> Receiving {
        (0..n).for_each(|_| self.look());
        self
    }

    /// Receives what is left up to the end, which must come, and looks on.
    pub fn to_the_end(mut self) -> (u64, TryRecvError) {
        while self.end.is_none() {
            self.look();
        }
        self = self.looks(2);
        (self.received, self.end.expect("it came"))
    }
}
