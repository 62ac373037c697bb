//! The calling thread's block: its threads, and the memory that they share.

use crate::block::{Cooperate, Threads};
use crate::memory::BlockMemory;
#[cfg(target_arch = "nvptx64")]
use crate::memory::scratch::OWN_BYTES;
use crate::memory::scratch::Room;
use core::marker::PhantomData;
use core::ops::Deref;
use core::ptr::with_exposed_provenance;
use core::sync::atomic::Ordering::Relaxed;
use ring_shared::layout::ChannelBlock;

/// A block that runs one channel.
#[derive(Clone, Copy, Debug)]
pub struct ThreadBlock<'a> {
    threads: Threads,
    memory: *const BlockMemory,
    /// What handlers share.
    #[cfg(not(target_arch = "nvptx64"))]
    shared: Room,
    of: PhantomData<&'a BlockMemory>,
}

impl Deref for ThreadBlock<'_> {
    type Target = Threads;

    #[inline(always)]
    fn deref(&self) -> &Threads {
        &self.threads
    }
}

#[cfg(not(target_arch = "nvptx64"))]
impl<'a> ThreadBlock<'a> {
    /// The calling thread as block `index` of so many: that of the channel of this index, or one of those of a kernel of scope
    /// [`Grid`](crate::Grid).
    pub fn new(
        index: (u32, u32),
        memory: &'a mut BlockMemory,
        hooks: crate::Hooks,
    ) -> ThreadBlock<'a> {
        let threads = Threads::new(index, hooks);
        ThreadBlock { threads, memory, shared: Room::NONE, of: PhantomData }
    }

    /// The same block, whose handlers have that memory, if the kernel declares so much.
    pub fn with_shared(mut self, memory: &'a mut [[u64; 2]]) -> ThreadBlock<'a> {
        self.shared = Room { bytes: size_of_val(memory), at: memory.as_mut_ptr().cast() };
        self
    }
}

#[cfg(target_arch = "nvptx64")]
impl ThreadBlock<'static> {
    /// The calling thread's block.
    ///
    /// # Safety
    /// Called by every thread of the block, at one place of the kernel. The block was launched with
    /// [`shared_bytes`](crate::shared_bytes), and uses none of that memory otherwise.
    #[inline(always)]
    pub unsafe fn of_block() -> Self {
        let memory = shared_memory().cast();
        // SAFETY: the caller's promise.
        let threads = unsafe { Threads::of_block() };
        ThreadBlock { threads, memory, of: PhantomData }
    }
}

impl<'a> ThreadBlock<'a> {
    /// Where the memory is that handlers share, and how many bytes of it there are of those that the kernel declares.
    #[inline(always)]
    pub(crate) fn shared(&self, declared: usize) -> Room {
        #[cfg(target_arch = "nvptx64")]
        let room = Room {
            at: self.memory.cast_mut().cast::<u8>().wrapping_add(OWN_BYTES),
            bytes: declared,
        };
        #[cfg(not(target_arch = "nvptx64"))]
        let room = Room { at: self.shared.at, bytes: self.shared.bytes.min(declared) };
        room
    }

    /// What its threads share.
    #[inline(always)]
    pub(crate) fn memory(&self) -> &'a BlockMemory {
        // SAFETY: memory of that size and alignment, which lives as long as the block runs; it holds atomics
        // and cells only, any bytes of which are valid.
        unsafe { &*self.memory }
    }

    /// Bytes of the scratch memory that they share, where the kernel declares so many for its handlers.
    #[inline(always)]
    pub(crate) fn scratch_bytes(&self, declared: usize) -> usize {
        #[cfg(target_arch = "nvptx64")]
        let bytes = self.threads.shared_bytes() - declared;
        #[cfg(not(target_arch = "nvptx64"))]
        let (bytes, _) = (size_of::<BlockMemory>(), declared);
        bytes - core::mem::offset_of!(BlockMemory, scratch)
    }

    /// The same block, of whose calling thread the compiler knows nothing: an optimization barrier.
    #[inline(always)]
    pub(crate) fn optimization_barrier(&self) -> Self {
        let threads = self.threads.optimization_barrier();
        ThreadBlock { threads, ..*self }
    }

    /// The same, where the calling thread is `lane` of the first warp.
    #[inline(always)]
    pub(crate) fn optimization_barrier_of_first_warp(&self, lane: u32) -> Self {
        let threads = self.threads.of_first_warp(lane);
        ThreadBlock { threads, ..*self }
    }

    /// All threads of the block: waits for all of them; what they wrote before is seen after. If a handler has
    /// panicked on a GPU, they end here.
    #[inline(always)]
    pub(crate) fn sync(&self) {
        self.sync_and(|| ());
    }

    /// The same, and what `reads` finds behind the barrier: it is read together with whether a handler has panicked.
    #[inline(always)]
    pub(crate) fn sync_and<T>(&self, reads: impl FnOnce() -> T) -> T {
        self.barrier();
        let found = reads();
        if Threads::WARP == 1 {
            return found; // a handler that panics unwinds the one thread
        }
        let life = &self.memory().life;
        if life.panicked.get() {
            if self.thread() == 0 && !self.memory().grid.is_follower(self.threads) {
                // The committer of a stream may have marked the channel busy after the panic had cleared that.
                let lines = with_exposed_provenance::<ChannelBlock>(life.lines.get() as usize);
                // SAFETY: `run` stored the address of this channel's block before it called a handler.
                unsafe { &(*lines).status }.busy.store(0, Relaxed);
            }
            self.exit();
        }
        found
    }

    /// After a handler: threads of the warp whose handler panicked are gone, and the others follow them.
    #[inline(always)]
    pub(crate) fn exit_if_warp_panicked(&self) {
        if !self.all_run() {
            self.exit();
        }
    }

    /// Whether the calling thread's warp is the block's first, which does what is done by one warp.
    #[inline(always)]
    pub(crate) fn is_first_warp(&self) -> bool {
        self.warp() == 0
    }

    /// Index of the channel that the block runs.
    #[inline(always)]
    pub(crate) fn channel(&self) -> u32 {
        self.block_index()
    }
}

/// The block's shared memory, which the launch has sized. All calls name the same memory, and the compiler knows that it
/// is block-shared: its accesses take 17 cycles less on an H200 than those that the GPU finds to be so.
#[cfg(all(target_arch = "nvptx64", not(feature = "rust-cuda")))]
#[inline(always)]
fn shared_memory() -> *const u8 {
    core::intrinsics::gpu::gpu_launch_sized_workgroup_mem::<BlockMemory>().cast()
}

/// The block's shared memory.
///
/// Call it at one place of a kernel: each place declares memory of its own.
#[cfg(all(target_arch = "nvptx64", feature = "rust-cuda"))]
#[inline(always)]
fn shared_memory() -> *const u8 {
    let at: *const u8;
    // SAFETY: declares memory and takes its generic address.
    unsafe {
        core::arch::asm!("{{ .shared .align 16 .b8 ring_block[{n}]; .reg .u64 %a; mov.u64 %a, ring_block; cvta.shared.u64 {at}, %a; }}",
            n = const size_of::<BlockMemory>(), at = out(reg64) at, options(nostack));
    }
    at
}
