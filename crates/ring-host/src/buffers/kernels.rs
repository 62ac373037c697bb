//! The kernels of a runtime, and which of them may still use a buffer that was given back.

use crate::deadline::{Deadline, Patience, wait};
use crate::drive::scheduler::Hold;
use crate::error::BufferError;
use crate::kernel::core::KernelCore;
use crate::sync::lock;
use ring_shared::atomics::{Ordering, fence};
use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, Weak};

/// What the memory of a kernel keeps that may view buffers: buffers, until nothing of the kernel is on the device.
#[derive(Debug)]
pub(crate) struct Presence<T> {
    pub _used: Arc<T>,
}

/// Tells whether a presence is still there.
type Watch = Weak<dyn Debug + Send + Sync>;

/// A kernel's messages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Messages {
    /// It answers each request, and has no ports: when the answer was received, the request is over, but for the next field.
    pub answers: bool,
    /// Other blocks may still handle a request whose answer was received (`Kernel::FIRST_BLOCK_ANSWERS`): until the next one is
    /// answered, or the kernel rests.
    pub first_block_answers: bool,
    /// Bytes of a request, and of a response.
    #[cfg_attr(not(feature = "metrics"), expect(dead_code, reason = "for metrics"))]
    pub bytes: [usize; 2],
}

/// A kernel of the runtime.
#[derive(Clone, Debug)]
struct Kernel {
    core: Weak<KernelCore>,
    /// What its memory keeps if it may view buffers.
    presence: Option<Watch>,
    messages: Messages,
    /// Its number among the launches of the runtime, from 1.
    number: u64,
}

/// A kernel that is not gone.
#[derive(Debug)]
pub(crate) struct Live {
    pub core: Arc<KernelCore>,
    pub messages: Messages,
    /// Its number among the launches of its runtime, from 1.
    #[cfg_attr(not(feature = "metrics"), expect(dead_code, reason = "for metrics"))]
    pub number: u64,
}

impl Kernel {
    /// Whether it is known that it will never use memory again.
    fn is_gone(&self) -> bool {
        self.core.strong_count() == 0
            && self.presence.as_ref().is_none_or(|presence| presence.strong_count() == 0)
    }
}

/// The kernels that a runtime has launched and that are not gone, in the order of their launches.
#[derive(Debug, Default)]
pub(crate) struct Kernels {
    each: Mutex<Vec<Kernel>>,
    /// How many were launched.
    launched: AtomicU64,
}

impl Kernels {
    /// Adds a kernel, with what its memory keeps if it may view buffers.
    pub fn add(
        &self,
        core: &Arc<KernelCore>,
        presence: Option<&Arc<dyn Debug + Send + Sync>>,
        messages: Messages,
    ) {
        let (core, presence) = (Arc::downgrade(core), presence.map(Arc::downgrade));
        let mut kernels = lock(&self.each);
        kernels.retain(|kernel| !kernel.is_gone());
        let number = self.launched.fetch_add(1, Relaxed) + 1;
        kernels.push(Kernel { core, presence, messages, number });
    }

    /// What was sent by now to each that may view buffers.
    pub(super) fn sent(&self) -> Vec<Sent> {
        let kernels = lock(&self.each);
        let views = kernels.iter().filter(|kernel| kernel.presence.is_some() && !kernel.is_gone());
        views.map(Sent::new).collect()
    }

    /// Those that are not gone.
    pub fn live(&self) -> Vec<Live> {
        let live = |&Kernel { ref core, messages, number, .. }: &Kernel| {
            Some(Live { core: core.upgrade()?, messages, number })
        };
        lock(&self.each).iter().filter_map(live).collect()
    }

    /// What a handle and its channels have in common, of each of them.
    pub fn live_cores(&self) -> Vec<Arc<KernelCore>> {
        self.live().into_iter().map(|live| live.core).collect()
    }
}

/// Keeps launches of `kernels` away, where copies cannot be made beside them, until the result is dropped.
pub(super) fn hold(
    kernels: &[Arc<KernelCore>],
    deadline: Deadline,
) -> Result<Vec<Hold<'_>>, BufferError> {
    let mut holds = Vec::new();
    for core in kernels {
        let Some(hold) = core.drive.hold() else { continue };
        // One that is lost is launched no more.
        let look =
            || Ok::<_, BufferError>(core.drive.rests(&core.device).unwrap_or(true).then_some(()));
        let done = wait(deadline, Patience::Yield, look, || Ok(()))?;
        done.ok_or_else(|| BufferError::Timeout { bytes: 0, waited: deadline.waited() })?;
        holds.push(hold);
    }
    Ok(holds)
}

/// What was sent to a kernel until some moment.
#[derive(Debug)]
pub(super) struct Sent {
    kernel: Kernel,
    /// For each channel, the index behind the last request. `None` if what becomes of requests is not seen.
    before: Option<Box<[u64]>>,
}

impl Sent {
    fn new(kernel: &Kernel) -> Sent {
        let core = kernel.core.upgrade().filter(|_| kernel.messages.answers);
        let before = core.map(|core| {
            let channels = 0..core.device.region().plan.channels;
            channels.map(|channel| core.device.sent(channel)).collect()
        });
        Sent { kernel: kernel.clone(), before }
    }

    /// Whether the kernel is through with all of it: the host has received the answers, and no block still handles what was
    /// answered, or the kernel has left the device.
    pub fn is_over(&self) -> bool {
        let is_there = |presence: &Watch| presence.strong_count() > 0;
        if !self.kernel.presence.as_ref().is_some_and(is_there) {
            // SYNC: acquires the release by which the last holder of the kernel's memory let go of the presence, after it
            // had seen that nothing of the kernel was on the device.
            fence(Ordering::Acquire);
            return true;
        }
        // Its handle is gone and its memory is not: it may still run.
        let Some(core) = self.kernel.core.upgrade() else { return false };
        let start = core.device.region().plan.start;
        let is_through = |before: &[u64]| {
            let has_answered = |more| {
                let mut channels = (0..).zip(before);
                channels.all(|(channel, &before)| {
                    before == start || core.device.received(channel) >= before + more
                })
            };
            match self.kernel.messages.first_block_answers {
                // In this order: what was answered before the kernel rests is handled no more.
                true => has_answered(1) || has_answered(0) && core.is_at_rest(),
                false => has_answered(0),
            }
        };
        core.device.has_ended() || self.before.as_deref().is_some_and(is_through)
    }
}
