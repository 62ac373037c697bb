//! What can be chosen of a launch, and its checks.

use crate::device::image::Image;
use crate::device::{DeviceInfo, DeviceKind, Limits};
use crate::drive::DriveConfig;
use crate::drive::selection::{Candidate, Needs};
use crate::error::{BlockLimit, ChannelLimit, LaunchError, ThreadLimit, WindowLimit};
use crate::kernel::embedded::Kernels;
use crate::memory::plan::Plan;
use crate::mode::{Budgets, Memory, Mode, PayloadMemory, nanoseconds};
use crate::setters::setters;
use ring_device::kernel::DEFAULT_THREADS;
use ring_device::{Kernel, MAX_GRID_BLOCKS, MIN_THREADS, Scope, least_shared_bytes};
use ring_shared::Message;
use ring_shared::layout::{self, Processing, UNLIMITED};
use ring_shared::message::span_of_pair;
use ring_shared::ring::{MAX_CAPACITY, MAX_LINES, MAX_START};
use ring_shared::trace::MAX_RECORDS;
use std::borrow::Cow;
use std::time::Duration;

/// After how long without a message a kernel in staged-async memory leaves, also a persistent one, to
/// be launched again by the next: if copies fail it cannot be told to.
const SILENCE: Duration = Duration::from_millis(100);

/// The shortest lease: a host that is merely busy must be able to renew it.
const LEAST_LEASE: Duration = Duration::from_millis(100);

/// Whether all blocks of a launch, its channels or those of a grid, are launched at once or not at all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum Cooperative {
    /// Yes, if there are several blocks and the device can. A kernel of scope [`Grid`](ring_device::Grid) is refused if it cannot.
    #[default]
    Auto,
    /// Yes, or the launch is refused.
    Always,
    /// No. The blocks are still checked against what can be resident at once.
    Never,
}

/// Most bytes and slots of a ring whose capacity was not chosen.
const DEFAULT_RING: (usize, u32) = (4 << 20, 1 << 15);

/// Bytes of the payload arena of a kernel that uses it, if nobody chose.
const DEFAULT_PAYLOAD: usize = 64 * 1024;

/// Slots of a ring for messages of so many bytes, if nobody chose.
fn default_capacity(bytes: usize) -> u32 {
    let (most_bytes, most) = DEFAULT_RING;
    let fit = most_bytes / bytes.max(1).next_multiple_of(16);
    most.min(1 << fit.max(1).ilog2())
}

/// How a kernel is launched. The default serves one host thread.
#[derive(Clone, Debug)]
pub struct LaunchConfig {
    channels: u32,
    blocks: Option<u32>,
    threads: Option<u32>,
    capacity: Option<u32>,
    window: Option<u32>,
    slot_bytes: Option<usize>,
    payload_bytes: Option<usize>,
    payload_memory: PayloadMemory,
    cooperative: Cooperative,
    start_index: u64,
    mode: Mode,
    memory: Memory,
    budgets: Budgets,
    processing: Processing,
    max_messages: u32,
    lease: Duration,
    trace: Option<u32>,
    code: Option<Code>,
}

/// A launch's own code.
#[derive(Clone, Debug)]
enum Code {
    Kernels(Kernels),
    Ptx(Cow<'static, [u8]>),
}

impl Default for LaunchConfig {
    /// One channel of as many threads as the kernel says (512), rings of 4 MiB or 32,768 slots, whichever is less, windows of
    /// 128 messages, 64 KiB of payload for a kernel that uses it; a lease of 10 s; mode and memory as the probe finds best.
    fn default() -> LaunchConfig {
        LaunchConfig {
            channels: 1,
            blocks: None,
            threads: None,
            capacity: None,
            window: None,
            slot_bytes: None,
            payload_bytes: None,
            payload_memory: PayloadMemory::Auto,
            cooperative: Cooperative::Auto,
            start_index: 0,
            mode: Mode::Auto,
            memory: Memory::Auto,
            budgets: Budgets::default(),
            processing: Processing::Batch,
            max_messages: u32::MAX,
            lease: LaunchConfig::DEFAULT_LEASE,
            trace: None,
            code: None,
        }
    }
}

setters! { of LaunchConfig;
    /// Channels: independent pairs of rings, each answered by a block of its own.
    channels(channels: u32) => channels = channels;

    /// Blocks of a kernel of scope [`Grid`](ring_device::Grid), all of which handle each message of its one channel: 1024 at most, and
    /// no more than can be resident at once. By default one for each multiprocessor. A kernel of another scope has one for each
    /// channel.
    blocks(blocks: u32) => blocks = Some(blocks);

    /// Threads of a channel's block, a multiple of 32; of a kernel with ports 64 at least, unless the whole block handles each
    /// message. The CPU device uses one all the same.
    threads(threads: u32) => threads = Some(threads);

    /// Slots of each ring, a power of two. By default as many as 4 MiB hold of the larger message, but
    /// no more than 32,768: enough for full speed also of eight channels. Where the runtime's memory is
    /// short, fewer: a kernel takes two thirds of what is left of it at most.
    capacity(capacity: u32) => capacity = Some(capacity);

    /// Messages for which each ring has doorbell lines, a power of two: so many may be inline and unread at once in a channel
    /// each way, and those in flight beyond them go through slots; for a batch, and as long as messages in slots are
    /// unread, half of them. By default 128, or the ring's capacity if that is less;
    /// where the runtime's memory is short, fewer. With 1 only a message that is alone in flight is inline, and only if it
    /// fits one line, in 84 bytes.
    ///
    /// Where there are several, each takes 128 bytes for requests and as many for responses, or two to four times that if
    /// the larger of both has 85 to 336 bytes: by default 32 to 128 KiB a channel. Only a persistent kernel in mapped memory
    /// has several: any other has one, whatever was asked for.
    /// [`KernelHandle::window`](crate::KernelHandle::window) tells.
    window(lines: u32) => window = Some(lines);

    /// Demands that messages fit slots of so many bytes; without it slots are made to measure.
    slot_bytes(bytes: usize) => slot_bytes = Some(bytes);

    /// Bytes of the payload arena.
    payload_bytes(bytes: usize) => payload_bytes = Some(bytes);

    /// Where the payload arena lies. By default small ones, of at most 64 KiB
    /// ([`PayloadMemory::AUTO_MAPPED`]), lie in mapped memory where the rings do: then
    /// [`write_payload`](crate::KernelHandle::write_payload) and [`read_payload`](crate::KernelHandle::read_payload)
    /// take the time of their stores and loads. Larger ones, and those that pinned memory has no room for, lie in device
    /// memory, and are copied. A handler that reads the same words again and again is faster with
    /// [`PayloadMemory::Device`]. [`KernelHandle::payload_memory`](crate::KernelHandle::payload_memory) tells.
    payload_memory(memory: PayloadMemory) => payload_memory = memory;

    /// Whether all channels are launched at once or not at all.
    cooperative(cooperative: Cooperative) => cooperative = cooperative;

    /// Index of the first message: for tests of what happens after billions of messages.
    #[doc(hidden)]
    start_index(start_index: u64) => start_index = start_index;

    /// How the kernel is kept answering.
    mode(mode: Mode) => mode = mode;

    /// Where its rings lie.
    memory(memory: Memory) => memory = memory;

    /// What one launch of an event-driven kernel may spend.
    budgets(budgets: Budgets) => budgets = budgets;

    /// How many messages an iteration takes.
    processing(processing: Processing) => processing = processing;

    /// Most messages of an iteration, at least 1; by default what the device's windows hold.
    max_messages(max_messages: u32) => max_messages = max_messages;

    /// Notes of each message when it was sent, handled and received, in rings of so many records for each channel: one for its sender, one
    /// for its receiver, one for its device, 64 bytes a record. A power of two, up to 2^20. What was noted,
    /// [`KernelHandle::trace`](crate::KernelHandle::trace) tells, and of kernels of a graph [`Graph::trace`](crate::Graph::trace); what nobody
    /// reads in time is overwritten, and counted. By default nothing is
    /// noted. It needs mapped memory, and a kernel that is declared with
    /// [`traced: true`](ring_device::Kernel::TRACED).
    trace(records: u32) => trace = Some(records);

    /// How long a kernel in mapped memory stays on the device after its host has died or was stopped; 100 ms
    /// at least. While the process lives a thread of it renews all leases, ten times in their time. A
    /// kernel whose lease is over is lost ([`Exit::LeaseOver`](crate::Exit)), of several channels perhaps not
    /// all: each looks for itself. Where a debugger may stop the program for longer, choose more, or
    /// `Duration::MAX` for ever. In staged memory a kernel leaves when nothing has come for 100 ms anyway.
    lease(lease: Duration) => lease = lease;
}

impl LaunchConfig {
    /// Threads of a channel's block, if neither launch nor kernel chose.
    pub const DEFAULT_THREADS: u32 = DEFAULT_THREADS;

    /// How long a kernel stays on the device after its host has died or was stopped, if nobody chose.
    pub const DEFAULT_LEASE: Duration = Duration::from_secs(10);

    /// Slots of each ring of kernel `K`, as chosen, or by default.
    pub fn slots<K: Kernel>(&self) -> u32 {
        let bytes = size_of::<K::Request>().max(size_of::<K::Response>());
        self.capacity.unwrap_or_else(|| default_capacity(bytes))
    }

    /// Kernels of your own in place of the built-in ones, as [`include_kernels!`](crate::include_kernels)
    /// gives them. They are checked on every device; the CPU device then runs the handler compiled for
    /// the host.
    pub fn kernels(self, kernels: Kernels) -> LaunchConfig {
        LaunchConfig { code: Some(Code::Kernels(kernels)), ..self }
    }

    /// PTX of your own in place of the built-in kernels. It is checked on every device; the CPU
    /// device then runs the handler compiled for the host.
    ///
    /// # Safety
    /// A GPU will run this code with access to all memory it can reach, the host's pinned memory
    /// included. Its entry must be what `ring_device::run` makes of this kernel type, and must
    /// touch nothing else.
    pub unsafe fn ptx(self, ptx: impl Into<Cow<'static, [u8]>>) -> LaunchConfig {
        LaunchConfig { code: Some(Code::Ptx(ptx.into())), ..self }
    }

    /// Whether the slots of the rings were chosen.
    pub(crate) fn has_capacity(&self) -> bool {
        self.capacity.is_some()
    }

    /// Whether the doorbell lines of the rings were chosen.
    pub(crate) fn has_window(&self) -> bool {
        self.window.is_some()
    }

    /// Where the payload was asked for.
    pub(crate) fn asked_payload(&self) -> PayloadMemory {
        self.payload_memory
    }

    /// Bytes of the payload arena of kernel `K`, as chosen, or by default.
    fn payload<K: Kernel>(&self) -> usize {
        self.payload_bytes.unwrap_or(if K::USES_PAYLOAD { DEFAULT_PAYLOAD } else { 0 })
    }

    /// What of kernel `K`'s memory decides where it can run.
    pub(crate) fn needs<K: Kernel>(&self) -> Needs {
        let mapped = self.payload_memory == PayloadMemory::Mapped;
        let has_state = <K::Scope as Scope<K>>::STATE_BYTES > 0;
        Needs {
            copies: K::USES_PAYLOAD && !mapped || has_state,
            calls: K::CALLS > 0,
            trace: self.trace.is_some(),
            mapped_payload: mapped && self.payload::<K>() > 0,
        }
    }

    /// Mode and memory asked for.
    pub(crate) fn asked(&self) -> (Mode, Memory) {
        (self.mode, self.memory)
    }

    /// Whether it may be persistent in mapped memory, as what kernels meet on their devices has to be.
    pub(crate) fn may_be_resident(&self) -> bool {
        matches!(self.mode, Mode::Auto | Mode::Persistent)
            && matches!(self.memory, Memory::Auto | Memory::Mapped)
    }

    /// What a launch may spend in that mode and memory, as the device counts it.
    pub(crate) fn wire_budgets(&self, mode: Mode, memory: Memory) -> layout::Budgets {
        let Budgets { time, iterations, idle } = self.budgets;
        let own = layout::Budgets { time: nanoseconds(time), iterations, idle: nanoseconds(idle) };
        let none = layout::Budgets::UNLIMITED;
        match (mode, memory) {
            (Mode::Persistent, Memory::Mapped) => none,
            (Mode::Persistent, _) => layout::Budgets { idle: nanoseconds(SILENCE), ..none },
            (_, Memory::StagedSync) => layout::Budgets { idle: 0, ..own }, // nothing comes meanwhile
            // If copies fail it must leave by itself here too.
            (_, Memory::StagedAsync) => {
                layout::Budgets { idle: own.idle.min(nanoseconds(SILENCE)), ..own }
            }
            _ => own,
        }
    }

    /// How the kernel is driven that was chosen to run so.
    pub(crate) fn drive_config(&self, chosen: &Candidate) -> DriveConfig {
        let (mode, memory) = (chosen.selection.mode, chosen.selection.memory);
        let Candidate { mode_is_free, memory_is_free, calls_block, .. } = *chosen;
        DriveConfig {
            mode,
            memory,
            mode_is_free,
            memory_is_free,
            calls_block,
            budgets: self.wire_budgets(mode, memory),
            fallback: self.wire_budgets(Mode::EventDriven, Memory::Mapped),
        }
    }

    /// How long the host may be silent, in that memory.
    pub(crate) fn lease_in(&self, memory: Memory) -> Option<Duration> {
        let bounded = memory == Memory::Mapped && nanoseconds(self.lease) != UNLIMITED;
        bounded.then_some(self.lease)
    }

    /// Channels.
    pub(crate) fn channel_count(&self) -> u32 {
        self.channels
    }

    /// Threads of each block.
    pub(crate) fn threads_of<K: Kernel>(&self) -> u32 {
        self.threads.unwrap_or(K::THREADS)
    }

    /// Blocks of the launch.
    pub(crate) fn blocks_of<K: Kernel>(&self, device: &DeviceInfo) -> u32 {
        match <K::Scope as Scope<K>>::IS_GRID {
            true => self.blocks.unwrap_or_else(|| device.multiprocessors.clamp(1, MAX_GRID_BLOCKS)),
            false => self.channels,
        }
    }

    /// The checked code: the launch's own, or the runtime's. The built-in kernels are not asked for the
    /// entry: CPU threads also run handlers that have none there, and a GPU refuses those when it loads.
    pub(crate) fn image<K: Kernel>(&self, of_runtime: &Image) -> Result<Image, LaunchError> {
        let check = |image: Image| image.check_entry(K::ENTRY).map(|()| image);
        let image = match &self.code {
            None if of_runtime.is_built_in() => Ok(of_runtime.clone()),
            None => check(of_runtime.clone()),
            Some(Code::Kernels(kernels)) => kernels.image().and_then(check),
            Some(Code::Ptx(ptx)) => Image::new(ptx.clone()).and_then(check),
        };
        image.map_err(|source| LaunchError::Image { kernel: K::NAME, source })
    }

    /// Checks what depends on the device only, before anything is loaded. The plan is for a persistent
    /// kernel in mapped memory.
    pub(crate) fn check_device<K: Kernel>(&self, device: &DeviceInfo) -> Result<Plan, LaunchError> {
        const { assert!(K::CALLS < 64, "no shape of call slots") }; // it goes into the low bits of an address
        let bytes = size_of::<K::Request>().max(size_of::<K::Response>());
        let capacity = self.slots::<K>();
        if !capacity.is_power_of_two() || capacity > MAX_CAPACITY {
            return Err(LaunchError::Capacity(capacity));
        }
        let lines = self.lines(capacity)?;
        if self.start_index > MAX_START {
            return Err(LaunchError::StartIndex(self.start_index));
        }
        if let Some(slot) = self.slot_bytes.filter(|slot| bytes > *slot) {
            return Err(LaunchError::Slot { bytes, slot });
        }
        check_shared::<K>(device)?;
        if let Some(zero) = self.budgets.zero() {
            return Err(LaunchError::Budget(zero));
        }
        if self.max_messages == 0 {
            return Err(LaunchError::MaxMessages);
        }
        if self.lease < LEAST_LEASE {
            return Err(LaunchError::Lease { lease: self.lease, least: LEAST_LEASE });
        }
        if let Some(records) = self.trace.filter(|n| !n.is_power_of_two() || *n > MAX_RECORDS) {
            return Err(LaunchError::Trace { records, limit: MAX_RECORDS });
        }
        if self.trace.is_some() && !K::TRACED {
            return Err(LaunchError::NotTraced { kernel: K::NAME });
        }
        self.check_threads::<K>(device.max_threads, ThreadLimit::Device)?;
        self.check_channels(device.max_channels, ChannelLimit::Grid)?;
        self.check_grid::<K>(device)?;
        if self.cooperative == Cooperative::Always && !device.cooperative_launch {
            return Err(LaunchError::NotCooperative(device.name.clone()));
        }
        Ok(Plan {
            memory: Memory::Mapped,
            channels: self.channels,
            capacity,
            lines,
            span: span_of_pair::<K::Request, K::Response>() as u32,
            start: self.start_index,
            slot_atoms: [K::Request::SLOT_ATOMS as u32, K::Response::SLOT_ATOMS as u32],
            answer_stamps: K::Response::INLINE_ATOMS,
            payload_bytes: self.payload::<K>(),
            payload_memory: self.payload_memory,
            state_bytes: <K::Scope as Scope<K>>::STATE_BYTES,
            calls: K::CALLS,
            trace: self.trace.unwrap_or(0),
            buffers: 0,
            budgets: self.wire_budgets(Mode::Persistent, Memory::Mapped),
            processing: self.processing,
            max_messages: self.max_messages,
            lease: UNLIMITED,
        })
    }

    /// Checks what depends on the loaded kernel.
    pub(crate) fn check_kernel<K: Kernel>(
        &self,
        limits: Limits,
        device: &DeviceInfo,
    ) -> Result<(), LaunchError> {
        self.check_threads::<K>(limits.threads, ThreadLimit::Kernel)?;
        if !<K::Scope as Scope<K>>::IS_GRID {
            return self.check_channels(limits.blocks, ChannelLimit::Residency);
        }
        let (blocks, limit) = (self.blocks_of::<K>(device), limits.blocks);
        match blocks <= limit {
            true => Ok(()),
            false => Err(LaunchError::Blocks { blocks, limit, why: BlockLimit::Residency }),
        }
    }

    /// Checks what is chosen of a grid, or of a kernel that is none.
    fn check_grid<K: Kernel>(&self, device: &DeviceInfo) -> Result<(), LaunchError> {
        let (kernel, channels) = (K::NAME, self.channels);
        if !<K::Scope as Scope<K>>::IS_GRID {
            return match self.blocks {
                Some(blocks) => Err(LaunchError::NoGrid { kernel, blocks }),
                None => Ok(()),
            };
        }
        if channels != 1 {
            return Err(LaunchError::GridChannels { kernel, channels });
        }
        let blocks = self.blocks_of::<K>(device);
        let (limit, why) = match device.max_channels < MAX_GRID_BLOCKS {
            true => (device.max_channels, BlockLimit::Device),
            false => (MAX_GRID_BLOCKS, BlockLimit::Grid),
        };
        if !(1..=limit).contains(&blocks) {
            return Err(LaunchError::Blocks { blocks, limit, why });
        }
        if blocks > 1 && !device.cooperative_launch && self.cooperative != Cooperative::Never {
            return Err(LaunchError::NotCooperative(device.name.clone()));
        }
        Ok(())
    }

    /// Doorbell lines of a ring of so many slots.
    fn lines(&self, capacity: u32) -> Result<u32, LaunchError> {
        let (limit, why) = match capacity < MAX_LINES {
            true => (capacity, WindowLimit::Capacity),
            false => (MAX_LINES, WindowLimit::Ring),
        };
        let lines = self.window.unwrap_or(limit);
        match lines.is_power_of_two() && lines <= limit {
            true => Ok(lines),
            false => Err(LaunchError::Window { lines, limit, why }),
        }
    }

    fn check_threads<K: Kernel>(&self, limit: u32, why: ThreadLimit) -> Result<(), LaunchError> {
        let threads = self.threads_of::<K>();
        let least = <K::Scope as Scope<K>>::LEAST_WARPS * MIN_THREADS;
        match threads.is_multiple_of(MIN_THREADS) && (least..=limit).contains(&threads) {
            true => Ok(()),
            false => Err(LaunchError::Threads { threads, least, limit, why }),
        }
    }

    fn check_channels(&self, limit: u32, why: ChannelLimit) -> Result<(), LaunchError> {
        match (1..=limit).contains(&self.channels) {
            true => Ok(()),
            false => Err(LaunchError::Channels { channels: self.channels, limit, why }),
        }
    }

    /// Whether the launch is cooperative on this device.
    pub(crate) fn is_cooperative<K: Kernel>(&self, device: &DeviceInfo) -> bool {
        match self.cooperative {
            Cooperative::Auto => self.blocks_of::<K>(device) > 1 && device.cooperative_launch,
            Cooperative::Always => true,
            Cooperative::Never => false,
        }
    }
}

/// Checks that a block of that device can have what the kernel declares of block-shared memory.
fn check_shared<K: Kernel>(device: &DeviceInfo) -> Result<(), LaunchError> {
    let (needed, limit) = (least_shared_bytes::<K>(), device.shared_bytes);
    match K::SHARED_BYTES == 0 || device.kind == DeviceKind::Cpu || needed <= limit {
        true => Ok(()),
        false => {
            let (kernel, declared) = (K::NAME, K::SHARED_BYTES);
            Err(LaunchError::SharedMemory { kernel, declared, needed, limit })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Runtime;
    use crate::device::Device;

    ring_device::ring_kernel! {
        /// Has memory of its own for its handlers.
        struct Large {
            name: "large",
            shared: { ALL: [f32; 25_000] },
        }

        fn handle(_request: &u32) -> u32 {
            0
        }
    }

    #[test]
    fn a_device_with_less_block_shared_memory_than_a_kernel_declares_is_refused_with_the_numbers() {
        let runtime = Runtime::open(Device::Cpu).unwrap();
        let cpu = runtime.device().clone();
        assert_eq!((cpu.shared_bytes, check_shared::<Large>(&cpu).is_ok()), (0, true));
        // What a block needs, and a byte less: 100,000 bytes behind 44 KiB of the runtime's own.
        for (shared_bytes, fits) in [(145_056, true), (145_055, false), (49_152, false)] {
            let gpu = DeviceInfo { kind: DeviceKind::Cuda, shared_bytes, ..cpu.clone() };
            let found = check_shared::<Large>(&gpu);
            assert_eq!(found.is_ok(), fits, "{shared_bytes}");
            if let Err(error) = found {
                let says = format!(
                    "kernel large declares 100000 bytes of block-shared memory and needs 145056 with its own, but the device gives a \
                     block {shared_bytes}; declare less (`shared` in ring_kernel!)"
                );
                assert_eq!(error.to_string(), says);
            }
            assert!(check_shared::<ring_device::Echo>(&gpu).is_ok());
        }
    }
}
