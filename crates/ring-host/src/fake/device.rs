//! The device's side of a kernel on a fake device: its memory, and what a kernel would do to it.

use crate::kernel::core::KernelCore;
use crate::memory::plan::Direction;
use ring_device::kernels::EchoMessage;
use ring_shared::layout::{ChannelBlock, Command, ControlBlock, Exit, State};
use ring_shared::ring::{CONTROL, Control, Ring, widen};
use ring_shared::{Inbox, Message, Outbox};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

/// The device's memory, and what a kernel would do to it.
pub(super) struct Device {
    control: usize,
    channels: u32,
    /// Keeps the memory.
    _core: Arc<KernelCore>,
}

impl Device {
    pub fn new(core: &Arc<KernelCore>) -> Device {
        Device {
            control: core.device.region().parameter() as usize,
            channels: core.device.region().plan.channels,
            _core: Arc::clone(core),
        }
    }

    pub fn control(&self) -> &ControlBlock {
        // SAFETY: laid out there by the region, which `_shared` keeps; atomics only.
        unsafe { &*std::ptr::with_exposed_provenance::<ControlBlock>(self.control) }
    }

    pub fn channel(&self, channel: u32) -> &ChannelBlock {
        assert!(channel < self.channels);
        let first = std::ptr::from_ref(self.control()).wrapping_add(1).cast::<ChannelBlock>();
        // SAFETY: the channels' blocks are right behind the control block, as many as there are channels.
        unsafe { &*first.wrapping_add(channel as usize) }
    }

    /// The command as the device sees it.
    pub fn command(&self) -> Command {
        Command::from_word(self.control().host.command.load(Relaxed))
    }

    /// All channels acknowledge the command that the device sees.
    pub fn obey(&self) {
        let Command { epoch, state } = self.command();
        if let Some(state) = State::from_u32(state) {
            self.obey_as(epoch, state);
        }
    }

    /// The host orders that, as another of its threads might; in mapped memory.
    pub fn order(&self, state: State) {
        self._core.device.publish_command(state);
    }

    /// All channels acknowledge that.
    pub fn obey_as(&self, epoch: u32, state: State) {
        (0..self.channels).for_each(|channel| self.says(channel, epoch, state));
    }

    /// A channel acknowledges that.
    pub fn says(&self, channel: u32, epoch: u32, state: State) {
        let word = Command { epoch, state: state as u32 }.to_word();
        self.channel(channel).status.acknowledged.store(word, Release);
    }

    /// A channel is lost to a panic.
    pub fn panics(&self, channel: u32) {
        let status = &self.channel(channel).status;
        let epoch = Command::from_word(status.acknowledged.load(Relaxed)).epoch;
        status.exit.store(Exit::HandlerPanicked as u64, Relaxed);
        self.says(channel, epoch, State::Faulted);
    }

    /// All channels have left so many launches.
    pub fn leave(&self, launches: u64) {
        (0..self.channels).for_each(|channel| {
            self.channel(channel).status.launches_left.store(launches, Release)
        });
    }

    /// A channel's ring, as the device sees it.
    fn ring(&self, channel: u32, direction: Direction) -> Ring {
        let block = self.channel(channel);
        let (bell, credit, at) = match direction {
            Direction::Requests => (&block.request_bell, &block.request_credit, &block.request),
            Direction::Responses => (&block.response_bell, &block.response_credit, &block.response),
        };
        let slots = at.slots.load(Relaxed) as usize;
        let slots = NonNull::new(std::ptr::with_exposed_provenance_mut(slots)).expect("slots");
        let (capacity, start) = (at.capacity.load(Relaxed), at.start.load(Relaxed));
        let parts = (NonNull::from(bell), NonNull::from(credit), slots);
        // SAFETY: as the region laid it out, which `_shared` keeps.
        let ring = unsafe {
            Ring::from_raw(parts, (1, 1), (capacity, EchoMessage::SLOT_ATOMS as u32), start)
        };
        ring.expect("a ring")
    }

    /// A worker that answers a channel's requests, from the first one on.
    pub fn worker(&self, channel: u32) -> Worker {
        let requests = Inbox::new(self.ring(channel, Direction::Requests));
        let answers = Outbox::new(self.ring(channel, Direction::Responses));
        let block = std::ptr::from_ref(self.channel(channel)).expose_provenance();
        Worker { requests, answers, block, _core: Arc::clone(&self._core) }
    }
}

/// Answers a channel's requests as a kernel would.
pub(super) struct Worker {
    requests: Inbox,
    answers: Outbox,
    block: usize,
    /// Keeps the memory.
    _core: Arc<KernelCore>,
}

impl Worker {
    /// Takes what there is, up to `most` and to what has room for its answers; answers it, and says so.
    /// How many that is.
    pub fn work(&mut self, most: usize) -> usize {
        // SAFETY: the channel's block, which `_shared` keeps; atomics only.
        let block = unsafe { &*std::ptr::with_exposed_provenance::<ChannelBlock>(self.block) };
        let capacity = u64::from(block.response.capacity.load(Relaxed));
        let known = self.answers.consumed();
        let told = Control::from_words(block.request_bell.atoms[CONTROL].load()).credit;
        self.answers.note_consumed(widen(told, known));
        self.answers.note_consumed(block.response_credit.consumed.load(Acquire));
        let room = capacity - (self.answers.next() - self.answers.consumed());
        let mut taken = vec![EchoMessage::from_seed(0); most.min(room as usize)];
        let n = self.requests.pop_slice(&mut taken).expect("an honest host");
        let answers: Vec<_> = taken[..n].iter().map(EchoMessage::answer).collect();
        let sent = self.answers.push_slice(&answers, self.requests.next());
        assert_eq!(sent, Ok(n), "the answers");
        self.requests.publish();
        let handled = self.requests.next() - block.request.start.load(Relaxed);
        block.status.processed.store(handled, Relaxed);
        n
    }
}
