//! The lines of kernels, read and written behind the backs of host and device: for tests of what
//! either makes of a hostile other side.

use super::allocation_table::{Entry, RingParts};
use super::state::State;
use ring_shared::atomics::{Atom, AtomicU64};
use ring_shared::layout::{ChannelBlock, ControlBlock, CreditLine, Doorbell, StatusLine, Times};
use std::sync::Arc;

/// A way into the memory that host and device share, made by [`Quirks::memory_probe`](super::Quirks::memory_probe).
///
/// It leads to what either side writes while the kernel lives, and to nothing that holds an address
/// or a size: whatever is written through it, both sides stay within their memory.
///
/// ```
/// use ring_host::device::{Quirks, cpu::Cpu};
/// use ring_host::kernels::{Echo, EchoMessage};
/// use ring_host::{LaunchConfig, RuntimeConfig, RecvTimeoutError, Runtime};
/// use std::{sync::atomic::Ordering::Relaxed, time::Duration};
///
/// let quirks = Quirks::of(Cpu::open());
/// let memory_probe = quirks.memory_probe();
/// let host = Runtime::over(quirks, RuntimeConfig::default())?;
/// let kernel = host.launch::<Echo>(LaunchConfig::default())?;
/// memory_probe.look(|kernels| kernels[0][0].status.processed.store(7, Relaxed));
/// assert_eq!(kernel.summary().processed, 7);
/// # Ok::<(), ring_host::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct MemoryProbe(pub(super) Arc<State>);

/// The lines and slots of one channel, as its device sees them.
#[derive(Clone, Copy, Debug)]
pub struct Lines<'a> {
    /// Written by the device.
    pub status: &'a StatusLine,
    /// Written by the device.
    pub request_credit: &'a CreditLine,
    /// Doorbell lines of the ring of responses, written by the device.
    pub response_lines: &'a [Doorbell],
    /// Written by the device.
    pub times: &'a Times,
    /// Slots, written by the device.
    pub responses: &'a [Atom],
    /// The host's command to all channels.
    pub command: &'a AtomicU64,
    /// Doorbell lines of the ring of requests, written by the host.
    pub request_lines: &'a [Doorbell],
    /// Written by the host.
    pub response_credit: &'a CreditLine,
    /// Slots, written by the host.
    pub requests: &'a [Atom],
}

impl MemoryProbe {
    /// Whether the device cannot launch from now on, as while its driver loads code for another thread.
    ///
    /// ```
    /// # use ring_host::{device::{Quirks, cpu::Cpu}, kernels::{Echo, EchoMessage}};
    /// # use ring_host::{LaunchConfig, Mode, RuntimeConfig, RecvTimeoutError, Runtime};
    /// # use std::time::Duration;
    /// let quirks = Quirks::of(Cpu::open());
    /// let memory_probe = quirks.memory_probe();
    /// let host = Runtime::over(quirks, RuntimeConfig::default())?;
    /// let mut kernel = host.launch::<Echo>(LaunchConfig::default().mode(Mode::EventDriven))?;
    /// kernel.activate(Duration::from_secs(9))?;
    /// kernel.rest(Duration::from_secs(9))?;
    /// memory_probe.set_loading(true);
    /// kernel.send(EchoMessage::from_seed(7), Duration::from_secs(9))?;
    /// assert!(matches!(kernel.recv(Duration::from_millis(9)), Err(RecvTimeoutError::Timeout { .. })));
    /// memory_probe.set_loading(false);
    /// assert_eq!(kernel.recv(Duration::from_secs(9))?, EchoMessage::from_seed(7).answer());
    /// # Ok::<(), ring_host::Error>(())
    /// ```
    pub fn set_loading(&self, loading: bool) {
        self.0.set_loading(loading);
    }

    /// Shows the channels of each kernel that was made ready and not given up, the oldest kernel first.
    /// In staged memory that is the device's copy, on CPU threads only, from the first launch on.
    /// Kernels that keep state are shown if the device is idle.
    ///
    /// No memory is given back meanwhile: `look` must not use the device, or it waits for itself.
    pub fn look<T>(&self, look: impl FnOnce(&[Vec<Lines<'_>>]) -> T) -> T {
        let table = self.0.table();
        let channels = |entry| (0..).map_while(move |channel| lines(entry, channel)).collect();
        let kernels: Vec<Vec<Lines<'_>>> = table.entries().map(channels).collect();
        look(&kernels)
    }

    /// Blocks of memory, pinned or the device's, that were taken and not given back.
    pub fn blocks(&self) -> usize {
        self.0.table().blocks()
    }

    /// On an idle device, all launches end that were made so far.
    pub fn end(&self) {
        self.0.end_launches();
    }
}

/// The lines of a channel, if the kernel has it. The entry is borrowed from the allocation table, which is locked.
fn lines(entry: &Entry, channel: usize) -> Option<Lines<'_>> {
    let [requests, responses] = entry.rings.get(channel)?;
    let control = entry.control.host.cast::<ControlBlock>();
    // SAFETY: the entry was found to have a control block with a block for each channel right behind
    // it, all atomics, which stay while the allocation table is locked (`Entry`).
    let (control, block) =
        unsafe { (control.as_ref(), control.add(1).cast::<ChannelBlock>().add(channel).as_ref()) };
    Some(Lines {
        status: &block.status,
        request_credit: &block.request_credit,
        response_lines: doorbells(responses),
        times: &block.times,
        responses: slots(responses),
        command: &control.host.command,
        request_lines: doorbells(requests),
        response_credit: &block.response_credit,
        requests: slots(requests),
    })
}

/// Slots of an entry, which stay as long as it is borrowed.
fn slots(of: &RingParts) -> &[Atom] {
    let n = of.slots.bytes / size_of::<Atom>();
    // SAFETY: the slots of an entry: memory of so many bytes, aligned, that both sides use as atoms,
    // and that stays while the allocation table is locked (`Entry`).
    unsafe { std::slice::from_raw_parts(of.slots.host.cast::<Atom>().as_ptr(), n) }
}

/// Doorbell lines of an entry, which stay as long as it is borrowed.
fn doorbells(of: &RingParts) -> &[Doorbell] {
    let n = of.lines.bytes / size_of::<Doorbell>();
    // SAFETY: as above.
    unsafe { std::slice::from_raw_parts(of.lines.host.cast::<Doorbell>().as_ptr(), n) }
}
