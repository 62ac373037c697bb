//! The resident loop: wait, handle, answer, obey. One source for the GPU and the CPU.
//!
//! A block keeps what its threads have in common in [`memory`](crate::memory): the inbox and the outbox of
//! its channel, and the signal that wakes all threads for work. Response `i` goes to index `i` of the ring of
//! responses, so channels answer in order. Work is a [`stream`] where a warp answers messages by itself, and
//! [`window`]s where the whole block does; [`inline`] messages are answered by the warp that sees them.
//!
//! A kernel is launched once and stays, or many times over the same memory: each launch continues
//! where the last one left ([`resume`]), until the host ends it or one of its budgets is spent.

mod await_inline;
mod channel;
mod emit;
mod first;
mod grid;
mod inline;
mod resume;
mod stream;
mod wait;
mod window;

use self::channel::{Channel, launch, publish_exit};
use self::resume::First;
use crate::block::Cooperate;
use crate::buffers::UNREAD;
use crate::kernel::{Kernel, Scope};
use crate::memory::claims::Claims;
use crate::memory::meeting::Trouble;
use crate::memory::outbox::PATIENCE;
use crate::memory::signals::{Decision, Wake};
use crate::shared;
use crate::thread_block::ThreadBlock;
use core::ptr::with_exposed_provenance;
use core::sync::atomic::Ordering::Relaxed;
use ring_shared::layout::{ChannelBlock, Command, ControlBlock, Exit, State};

/// Runs one channel of kernel `K` until the host terminates it or a budget of the launch is spent.
/// Every thread of the channel's block calls it.
///
/// # Safety
/// `control` points to a [`ControlBlock`] that, with everything it names and a [`ChannelBlock`] for
/// every block of the launch right behind it, was set up by `ring-host` for `K` and stays until this
/// returns; `block` is the calling thread's block, in memory no other block uses; no other launch
/// runs over the same memory.
#[inline(always)]
pub unsafe fn run<K: Kernel>(block: &ThreadBlock<'_>, control: *const ControlBlock) {
    if K::SHARED_BYTES > 0 {
        shared::clear(*block, block.shared(K::SHARED_BYTES));
        block.barrier();
    }
    if <K::Scope as Scope<K>>::IS_GRID && block.block_index() > 0 {
        // SAFETY: the caller's promise.
        return unsafe { grid::follow::<K>(*block, control) };
    }
    let channel = Channel::<K>::new(*block);
    let (began, m) = ((block.now(), block.ticks()), block.memory());
    // SAFETY: the caller's promise: the blocks are there.
    unsafe { m.boot.read(**block, control, block.channel()) };
    let blocks = control.wrapping_add(1).cast::<ChannelBlock>();
    let at = blocks.wrapping_add(block.channel() as usize);
    if block.thread() == 0 {
        m.life.panicked.set(false);
        m.grid.reset();
        m.life.buffers.set(UNREAD);
        m.life.control.set(control.expose_provenance() as u64);
        m.life.lines.set(at.expose_provenance() as u64);
        m.calls.slots.set(0); // whose kernel calls nobody has none
    }
    // SAFETY: the caller's promise.
    let first = unsafe { channel.answer_first(at, began.1) };
    block.sync();
    if !resume::is_ours(*block) {
        return; // the host sees the kernel gone without an acknowledgement
    }
    // SAFETY: the caller's promise: the block of each channel, all atomics and padding.
    let lines = unsafe { &*at };
    if resume::is_lost(*block) {
        return resume::skip_launch(*block, lines);
    }
    if <K::Scope as Scope<K>>::IS_GRID {
        grid::enter::<K>(*block);
    }
    // SAFETY: the host wrote a configuration for memory that stays while we run.
    match unsafe { resume::check::<K>(*block, control, at) } {
        // SAFETY: the host laid out what the channel's links name.
        None if Channel::<K>::EMITS => match unsafe { channel.open_links(lines) } {
            None => channel.run_links(began, first),
            Some(why) => resume::refuse(*block, lines, why),
        },
        None => channel.run(began, first),
        Some(why) => resume::refuse(*block, lines, why),
    }
    if <K::Scope as Scope<K>>::IS_GRID {
        grid::dismiss::<K>(*block);
    }
}

/// All that the entry point of kernel `K` does on a GPU: runs the block's channel.
///
/// In a module with ring kernels any other entry point must not panic: the panic handler writes to the channel
/// that the block's memory names, and such an entry point has none.
///
/// # Safety
/// As for [`run`]: `control` is the parameter of a launch by `ring-host`. Called by every thread of the
/// block, at one place of the kernel.
#[cfg(target_arch = "nvptx64")]
#[inline(always)]
pub unsafe fn enter<K: Kernel>(control: *const ControlBlock) {
    // SAFETY: every thread of the block comes here, once. Nothing else of a ring kernel's module has shared memory.
    let block = unsafe { ThreadBlock::of_block() };
    let least = if K::SHARED_BYTES > 0 {
        crate::least_shared_bytes::<K>() as usize
    } else {
        size_of::<crate::BlockMemory>()
    };
    if block.shared_bytes() < least {
        return; // no launch of ours: the host sees the kernel gone without an acknowledgement
    }
    // SAFETY: the caller's promise; the memory is this block's.
    unsafe { run::<K>(&block, control) }
}

/// What a thread of a GPU's block does whose handler panicked, before it exits: it tells the host, and the
/// channels that wait for it. The block's other threads exit at their next barrier, or when they next read
/// what to do.
///
/// # Safety
/// The thread is one of a block in [`run`].
#[cfg(all(target_arch = "nvptx64", not(feature = "rust-cuda")))]
pub(crate) unsafe fn panicked(block: ThreadBlock<'_>) {
    let m = block.memory();
    m.life.panicked.set(true);
    // SAFETY: the caller's promise.
    unsafe { fell_out(block) };
    block.fence_block(); // `panicked` before what sends the others to a barrier
    m.progress.end.set(Decision::HandlerPanicked);
    m.signals.wake.set(Wake::Leave);
    block.fence_block();
}

/// What a thread does whose handler panicked, or whose grid has not met: it tells the host, and the channels or the blocks that wait
/// for its block.
///
/// # Safety
/// The thread is one of a block in [`run`].
pub(crate) unsafe fn fell_out(block: ThreadBlock<'_>) {
    let m = block.memory();
    m.grid.fall_out(*block);
    if m.grid.is_follower(*block) {
        return; // block 0 tells the host
    }
    // SAFETY: `run` stored the address of this channel's block before any handler was called.
    let lines = unsafe { &*with_exposed_provenance::<ChannelBlock>(m.life.lines.get() as usize) };
    // The other channels must not wait for this one.
    lines.status.busy.store(0, Relaxed);
    if block.channel() == 0 {
        lines.status.call.store(launch(block), Relaxed);
    }
    let why = match m.grid.trouble() {
        Some(Trouble::Missed) => Exit::MissedBarrier,
        Some(Trouble::Elsewhere) => Exit::OtherDevice,
        _ => Exit::HandlerPanicked,
    };
    let epoch = Command::from_word(m.life.acknowledged.get()).epoch;
    publish_exit(block, lines, epoch, why);
}

/// What is left to do on a CPU's thread when a handler has unwound it out of [`run`]: the host is told, and who waits for it.
///
/// # Safety
/// `block` is the thread's, in the memory that `run` was called with.
#[cfg(not(target_arch = "nvptx64"))]
pub unsafe fn unwound(block: &ThreadBlock<'_>) {
    // SAFETY: the caller's promise.
    unsafe { fell_out(*block) };
}

impl<K: Kernel> Channel<'_, K> {
    /// All threads: the loop, from a launch's beginning to its end.
    #[inline(always)]
    fn run(&self, began: (u64, u64), first: First) {
        self.begin(began, first);
        if Self::CALLS || K::SHARED_BYTES > 0 {
            // The loop has a handler that calls the host several times, and handlers with memory of their own tend to be long.
            self.limit_registers::<K>();
        }
        let mut answered_staged = false;
        let why = loop {
            let this = self.optimization_barrier();
            // Polling warps must see what thread 0 has set. Behind a staged message only the warp of thread 0 polls.
            if !answered_staged {
                this.sync();
            }
            this.wait();
            let wake = &this.memory().signals.wake;
            answered_staged = this.sync_and(|| Self::STAGES && wake.is(Wake::InlineBoth));
            if answered_staged {
                this.answer_staged();
                continue;
            }
            let mut decision = match wake.get() {
                Wake::Slots if Self::BY_WARP => this.answer_by_warps(),
                wake @ (Wake::Slots | Wake::Inline) if !Self::BY_WARP => {
                    this.answer_by_block(wake == Wake::Inline)
                }
                Wake::Command => Decision::Obey,
                _ => this.memory().signals.decision.get(),
            };
            if decision == Decision::Obey {
                decision = this.obey();
            }
            this.sync();
            if let Some(why) = decision.exit() {
                break why;
            }
            if this.thread() == 0 {
                let m = this.memory();
                m.inbox.claims.set(Claims::open(m.inbox.next.get()));
                m.inbox.missing.set(0);
                m.outbox.committed.store(m.inbox.next.get() as u32, Relaxed);
                if m.signals.wake.get() == Wake::Slots {
                    m.outbox.await_credit(PATIENCE);
                }
                m.signals.wake.set(Wake::None);
            }
        };
        let this = self.optimization_barrier();
        if this.is_first_warp() {
            this.leave(why);
        }
    }

    /// All threads: obey the host's command. Returns whether to continue or to leave.
    #[inline(always)]
    fn obey(&self) -> Decision {
        let m = self.memory();
        let command = m.signals.command.get();
        let state = State::from_u32(Command::from_word(command).state);
        if <K::Scope as Scope<K>>::STATE_BYTES > 0 && self.is_first_warp() {
            // The host may have written the state meanwhile. The command was read by a thread of this warp;
            // a barrier follows.
            self.fence();
        }
        if self.thread() == 0 {
            m.life.acknowledged.set(command);
            match state {
                Some(state @ (State::Active | State::Inactive)) => {
                    m.life.active.set(state == State::Active);
                    self.acknowledge(state);
                }
                Some(State::Terminated) => {}
                // Not a command; the host sees that it is not acknowledged.
                _ => self.add(&m.telemetry.refused, 1),
            }
        }
        if state == Some(State::Terminated) { Decision::Asked } else { Decision::Continue }
    }
}
