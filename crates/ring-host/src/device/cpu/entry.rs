//! A kernel's code as the CPU device runs it.

use crate::device::Program;
use crate::device::image::Image;
use ring_device::{BlockMemory, Hooks, Kernel, ThreadBlock, run};
use ring_shared::layout::{ChannelBlock, Command, ControlBlock, Exit, State};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;

/// Kernel `K`, compiled for both kinds of device.
pub(crate) fn program<K: Kernel>(image: &Image) -> Program<'_> {
    Program {
        entry: K::ENTRY,
        image,
        shared_bytes: ring_device::shared_bytes::<K>,
        cpu: cpu_entry::<K>,
    }
}

/// Kernel `K` on one CPU thread.
///
/// # Safety
/// `parameter` is the address of a control block as `ring_device::run` needs it.
unsafe fn cpu_entry<K: Kernel>(
    parameter: u64,
    channel: u32,
    memory: &mut BlockMemory,
    hooks: Hooks,
) {
    let control = std::ptr::with_exposed_provenance::<ControlBlock>(parameter as usize);
    let block = ThreadBlock::new(channel, memory, hooks);
    // SAFETY: the caller's promise; the block is this thread's.
    let done = catch_unwind(AssertUnwindSafe(|| unsafe { run::<K>(&block, control) }));
    if let Err(panic) = done {
        std::mem::forget(panic); // its drop could panic too, and then nobody would report it
        // SAFETY: this channel's block, behind the control block; the channel was in range, or `run` had
        // returned.
        let status =
            unsafe { &(*control.add(1).cast::<ChannelBlock>().add(channel as usize)).status };
        let epoch = Command::from_word(status.acknowledged.load(Ordering::Relaxed)).epoch;
        let left = status.launches_left.load(Ordering::Relaxed).wrapping_add(1);
        // The other channels must not wait for this one.
        status.busy.store(0, Ordering::Relaxed);
        if channel == 0 {
            status.call.store(left, Ordering::Relaxed);
        }
        status.exit.store(Exit::HandlerPanicked as u64, Ordering::Relaxed);
        let word = Command { epoch, state: State::Faulted as u32 }.to_word();
        // SYNC: released to the host's acquire of `acknowledged`.
        status.acknowledged.store(word, Ordering::Release);
        // SYNC: released to the host's acquire of `launches_left`.
        status.launches_left.store(left, Ordering::Release);
    }
}
