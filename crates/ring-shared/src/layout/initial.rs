//! A kernel's blocks as they are before its first launch. The host, tests and fuzzers all begin here.

use super::{
    ChannelBlock, ConfigLine, ControlBlock, Placement, Processing, RingDescriptor, TRACED,
    UNLIMITED,
};
use crate::atomics::Ordering::Relaxed;
use crate::{ABI_VERSION, MAGIC};

/// What one launch may spend; [`UNLIMITED`] is never spent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budgets {
    /// Nanoseconds that it may run.
    pub time: u64,
    /// Looks and batches that it may make.
    pub iterations: u64,
    /// Nanoseconds without a message on any channel.
    pub idle: u64,
}

impl Budgets {
    /// None is ever spent.
    pub const UNLIMITED: Budgets =
        Budgets { time: UNLIMITED, iterations: UNLIMITED, idle: UNLIMITED };
}

/// What a control block says before the first launch.
#[derive(Clone, Copy, Debug)]
pub struct KernelSetup {
    /// Number of channels, whose blocks lie behind the control block.
    pub channels: u32,
    /// Bytes of the memory that both sides see, from the control block on.
    pub memory_bytes: u64,
    /// Device address of the payload arena, and its bytes; 0 and 0 for none.
    pub payload: (u64, u64),
    /// Device address of the table of buffers; 0 for none.
    pub buffers: u64,
    /// Budgets of a launch.
    pub budgets: Budgets,
    /// How many messages an iteration takes.
    pub processing: Processing,
    /// Most messages of an iteration, at least 1.
    pub max_messages: u32,
    /// Nanoseconds that a channel stays without a sign of the host, or [`UNLIMITED`].
    pub lease: u64,
    /// Where the trace rings are, as [`ConfigLine::trace`] says it; 0 for none.
    pub trace: u64,
}

/// What a channel's block says before the first launch.
#[derive(Clone, Copy, Debug)]
pub struct ChannelSetup {
    /// Where the ring of requests lies.
    pub requests: Placement,
    /// Where the ring of responses lies.
    pub responses: Placement,
    /// Device address of the channel's state, and its bytes; 0 and 0 for none.
    pub state: (u64, u64),
    /// Device address of its [`Links`](super::Links); 0 for none.
    pub links: u64,
}

impl ControlBlock {
    /// Makes zeroed memory the control block of a kernel that was never launched.
    pub fn initialise(&self, setup: &KernelSetup) {
        self.host.magic.store(MAGIC, Relaxed);
        self.host.abi_version.store(ABI_VERSION, Relaxed);
        self.host.channels.store(setup.channels, Relaxed);
        let (config, (payload, payload_bytes)) = (&self.config, setup.payload);
        config.payload.store(payload, Relaxed);
        config.payload_bytes.store(payload_bytes, Relaxed);
        config.buffers.store(setup.buffers, Relaxed);
        let traced = if setup.trace == 0 { 0 } else { TRACED };
        config.processing.store(setup.processing as u32 | traced, Relaxed);
        config.trace.store(setup.trace, Relaxed);
        config.max_messages.store(setup.max_messages, Relaxed);
        config.lease.store(setup.lease, Relaxed);
        config.memory_bytes.store(setup.memory_bytes, Relaxed);
        config.set_budgets(setup.budgets);
    }
}

impl ConfigLine {
    /// Sets what a launch may spend. Only while none is on the device.
    pub fn set_budgets(&self, budgets: Budgets) {
        self.time.store(budgets.time, Relaxed);
        self.iterations.store(budgets.iterations, Relaxed);
        self.idle.store(budgets.idle, Relaxed);
    }
}

impl ChannelBlock {
    /// Makes zeroed memory the block of a channel that was never launched, with its lines as before the
    /// first message.
    pub fn initialise(&self, setup: &ChannelSetup) {
        let (requests, responses) = (&setup.requests, &setup.responses);
        self.request.describe(requests);
        self.response.describe(responses);
        self.state.store(setup.state.0, Relaxed);
        self.state_bytes.store(setup.state.1, Relaxed);
        self.links.store(setup.links, Relaxed);
        self.request_bell.reset(requests.start);
        self.request_credit.reset(requests.start);
        self.response_bell.reset(responses.start);
        self.response_credit.reset(responses.start);
        self.status.run_start.store(responses.start, Relaxed);
        self.status.scrubbed.store(responses.start, Relaxed);
    }
}

impl RingDescriptor {
    /// Says where a ring lies.
    pub fn describe(&self, placement: &Placement) {
        self.lines.store(placement.lines, Relaxed);
        self.credit.store(placement.credit, Relaxed);
        self.slots.store(placement.slots, Relaxed);
        self.start.store(placement.start, Relaxed);
        self.capacity.store(placement.capacity, Relaxed);
        self.slot_bytes.store(placement.slot_bytes, Relaxed);
        self.line_count.store(placement.line_count, Relaxed);
        self.span.store(placement.span, Relaxed);
    }
}
