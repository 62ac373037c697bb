//! What a scrape reads, before any of it is written: the lines of a metric stand together, whichever kernels they are of.

use crate::buffers::kernels::{Kernels, Live};
use crate::device::Device;
use crate::kernel::telemetry::Telemetry;
use crate::memory::arena::Arena;
use crate::memory::links::{Flowed, KernelLinks};
use crate::mode::{Memory, Mode};
use crate::runtime::core::RuntimeCore;
use ring_shared::layout::{State, UNLIMITED};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// A runtime that is watched. Its memory is not kept for that.
#[derive(Clone, Debug)]
pub(super) struct Watched {
    device: Arc<str>,
    kernels: Arc<Kernels>,
    /// The pinned memory and the device's.
    memories: [(&'static str, Weak<Arena>); 2],
}

/// A port of a channel.
pub(super) struct PortSample {
    /// Its kernel, of all kernels.
    pub kernel: usize,
    pub channel: u32,
    pub port: &'static str,
    /// The kernel that reads it, or the host.
    pub to: &'static str,
    pub message_bytes: usize,
    /// Slots of each of its rings.
    pub slots: u32,
    pub flowed: Flowed,
}

/// Memory of a runtime.
pub(super) struct MemorySample {
    pub device: Arc<str>,
    pub memory: &'static str,
    pub bytes: usize,
    pub free: usize,
}

/// A kernel.
pub(super) struct KernelSample {
    pub device: Arc<str>,
    pub name: &'static str,
    /// Its number among the launches of its runtime.
    pub launch: u64,
    pub mode: Mode,
    pub memory: Memory,
    pub blocks: u32,
    pub threads: u32,
    pub state: State,
    pub launches: u64,
    pub lease: Option<Duration>,
    pub pinned_bytes: usize,
    /// It answers each request.
    pub answers: bool,
    pub message_bytes: [usize; 2],
    pub channels: u32,
    /// Of all channels.
    pub telemetry: Telemetry,
}

/// A channel of a kernel.
pub(super) struct ChannelSample {
    /// Its kernel, of all kernels.
    pub kernel: usize,
    pub channel: u32,
    pub telemetry: Telemetry,
    /// Requests that are sent and not taken, as far as the host knows.
    pub waiting: u64,
}

/// What a scrape reads.
#[derive(Default)]
pub(super) struct Sample {
    pub memories: Vec<MemorySample>,
    pub kernels: Vec<KernelSample>,
    pub channels: Vec<ChannelSample>,
    pub ports: Vec<PortSample>,
}

impl Watched {
    pub fn new(runtime: &RuntimeCore) -> Watched {
        let device = runtime.driver.index().map_or(Device::Cpu, Device::Cuda).to_string().into();
        let pinned = runtime.pinned.as_ref().map_or(Weak::new(), Arc::downgrade);
        let memories = [("pinned", pinned), ("device", Arc::downgrade(&runtime.device))];
        Watched { device, kernels: Arc::clone(runtime.launched()), memories }
    }

    pub fn is_of_same(&self, other: &Watched) -> bool {
        Arc::ptr_eq(&self.kernels, &other.kernels)
    }
}

impl Sample {
    pub fn of(watched: &[Watched]) -> Sample {
        let mut sample = Sample::default();
        for Watched { device, kernels, memories } in watched {
            for (memory, arena) in memories {
                let Some(arena) = arena.upgrade() else { continue };
                let (device, bytes, free) = (Arc::clone(device), arena.bytes(), arena.free());
                sample.memories.push(MemorySample { device, memory, bytes, free });
            }
            kernels.live().into_iter().for_each(|live| sample.add(device, &live));
        }
        sample
    }

    fn add(&mut self, device: &Arc<str>, live: &Live) {
        let Live { core, messages, number } = live;
        let (kernel, (mode, memory)) = (&core.device, core.drive.now());
        let plan = &kernel.region().plan;
        let each: Vec<_> = core.telemetry_of_channels().collect();
        for (channel, telemetry) in (0..).zip(&each) {
            let taken = kernel.taken(channel).saturating_sub(plan.start);
            self.channels.push(ChannelSample {
                kernel: self.kernels.len(),
                channel,
                telemetry: *telemetry,
                waiting: telemetry.sent.saturating_sub(taken).min(plan.capacity.into()),
            });
        }
        for (links, rings) in kernel.region().links.iter().flat_map(KernelLinks::each_port) {
            self.ports.push(PortSample {
                kernel: self.kernels.len(),
                channel: rings.channel,
                port: rings.port.1,
                to: rings.to.unwrap_or("host"),
                message_bytes: rings.message_bytes,
                slots: rings.shape.capacity,
                flowed: rings.flowed(&links.memory),
            });
        }
        self.kernels.push(KernelSample {
            device: Arc::clone(device),
            name: kernel.name,
            launch: *number,
            mode,
            memory,
            blocks: kernel.grid.blocks,
            threads: kernel.grid.threads,
            state: kernel.state(),
            launches: core.launches(),
            lease: (plan.lease != UNLIMITED).then(|| Duration::from_nanos(plan.lease)),
            pinned_bytes: kernel.region().pinned_bytes(),
            answers: messages.answers,
            message_bytes: messages.bytes,
            channels: plan.channels,
            telemetry: Telemetry::together(each),
        });
    }
}
