//! A kernel's code as the CPU device runs it.

use crate::device::Program;
use crate::device::image::Image;
use ring_device::{BlockMemory, Hooks, Kernel, ThreadBlock, run, unwound};
use ring_shared::layout::ControlBlock;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Kernel `K`, compiled for both kinds of device.
pub(crate) fn program<K: Kernel>(image: &Image) -> Program<'_> {
    Program {
        entry: K::ENTRY,
        image,
        shared_bytes: ring_device::shared_bytes::<K>,
        prefers_l1: K::PREFERS_L1,
        cpu: cpu_entry::<K>,
    }
}

/// Kernel `K` on one CPU thread.
///
/// # Safety
/// `parameter` is the address of a control block as `ring_device::run` needs it.
unsafe fn cpu_entry<K: Kernel>(
    parameter: u64,
    index: (u32, u32),
    memory: &mut BlockMemory,
    hooks: Hooks,
) {
    let on_cpu = const {
        match K::ON_CPU {
            Some(on_cpu) => on_cpu,
            None => run::<K>,
        }
    };
    let control = std::ptr::with_exposed_provenance::<ControlBlock>(parameter as usize);
    let mut shared = vec![[0; 2]; K::SHARED_BYTES / 16];
    let block = ThreadBlock::new(index, memory, hooks).with_shared(&mut shared);
    // SAFETY: the caller's promise; the block is this thread's.
    let done = catch_unwind(AssertUnwindSafe(|| unsafe { on_cpu(&block, control) }));
    if let Err(panic) = done {
        std::mem::forget(panic); // its drop could panic too, and then nobody would report it
        // SAFETY: the block that `run` was called with, which calls a handler only when it has found its channel.
        unsafe { unwound(&block) };
    }
}
