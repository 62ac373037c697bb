//! What the author of a kernel writes: its message types, and the scope in which its handler runs.

use crate::block::HasThreads;
use crate::context::Payload;
use crate::emissions::{PortShape, Stages};
use crate::memory::scratch::MAX_SHARED_BYTES;
use crate::thread_block::ThreadBlock;
use ring_shared::Message;
use ring_shared::atomics::Atom;
#[cfg(not(target_arch = "nvptx64"))]
use ring_shared::layout::ControlBlock;

/// Threads of a channel's block where neither kernel nor launch chose.
pub const DEFAULT_THREADS: u32 = 512;

/// As many, of a kernel whose handlers call the host so: half of it where they do, for a thread that waits for the host needs more
/// registers than there are for 512.
#[doc(hidden)]
pub const fn default_threads(calls: u64) -> u32 {
    if calls > 0 { DEFAULT_THREADS / 2 } else { DEFAULT_THREADS }
}

/// A kernel's code for one thread of a CPU: `ring_device::run` of that kernel, with what that asks of its caller.
#[doc(hidden)]
#[cfg(not(target_arch = "nvptx64"))]
pub type OnCpu = unsafe fn(block: &ThreadBlock<'_>, control: *const ControlBlock);

/// A ring kernel: a name, two message types, and the scope in which its handler runs.
///
/// Response `i` answers request `i`, in order, on every channel.
pub trait Kernel: Sized + 'static {
    /// Name for reports and errors.
    const NAME: &'static str;
    /// Symbol of the entry point in the PTX.
    const ENTRY: &'static str;
    /// Whether the handler reads or writes the payload arena, buffers, or any other memory that is not in
    /// the messages. It costs a fence for each message that comes in the line, and for each batch of
    /// scope [`Block`](crate::Block). Without it what the handler sees of that memory may be old, and every view of a
    /// buffer is refused.
    const USES_PAYLOAD: bool = false;
    /// Whether a GPU's multiprocessor that has a block of this kernel leaves its L1 cache as much memory as it can: 192 KiB in
    /// place of 28 on compute capability 9.0. That pays where a handler reads much device memory here and there, as one that
    /// follows the edges of a graph does. No other block that needs block-shared memory has room beside it then, and all ring
    /// kernels' blocks do: such a kernel has its multiprocessors for itself.
    const PREFERS_L1: bool = false;
    /// Of scope [`Grid`](crate::Grid): whether a message is answered as soon as the handler has returned in block 0, while other blocks may still
    /// be at it, and not when it has returned in all. The next message begins when it has, in any case. So what is left to do for a message
    /// keeps no answer waiting, as to write what only later messages need: blocks do it behind the last barrier of the handler, and block 0 does not.
    /// Messages that come in batches are answered when all blocks have returned.
    ///
    /// When such an answer is there the host sees what block 0 has written for the message, and other blocks before the last barrier. What they have
    /// written since it sees when the next message is answered, or the kernel is inactive; the next message's handlers see it in any
    /// case. Until then no buffer that was given back is used for something else. Where another block panics or misses a barrier behind
    /// an answer the kernel is lost as ever, but that answer is there.
    const FIRST_BLOCK_ANSWERS: bool = false;
    /// Threads of a channel's block on a GPU where a launch does not say otherwise: a multiple of 32.
    const THREADS: u32 = DEFAULT_THREADS;
    /// Bytes of block-shared memory that its handlers have, by `shared` in [`ring_kernel!`](crate::ring_kernel).
    #[doc(hidden)]
    const SHARED_BYTES: usize = 0;
    /// The shape of a channel's [call slots](ring_shared::calls); 0 if its handlers do not call the host.
    #[doc(hidden)]
    const CALLS: u64 = 0;
    /// What a CPU's thread runs, where that is compiled in the kernel's crate, once for all crates that launch the kernel:
    /// [`ring_kernel!`](crate::ring_kernel) has it so.
    #[doc(hidden)]
    #[cfg(not(target_arch = "nvptx64"))]
    const ON_CPU: Option<OnCpu> = None;
    /// Whether its channels can note when they handled each message, for
    /// `LaunchConfig::trace`. It takes code in the loop that polls, also where no trace is asked for: a message with few others in flight is
    /// answered some 5 % later on an H200.
    const TRACED: bool = false;
    // The compiler shows these lines where a type does not fit.
    /// What the host sends.
    type Request: Message; // #[repr(C)] #[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
    /// What the device answers.
    type Response: Message; // #[repr(C)] #[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
    /// Which threads handle a message: one of the scopes in the table of [`ring_kernel!`](crate::ring_kernel).
    type Scope: Scope<Self>;
}

impl<K: Kernel> HasThreads for K {
    const THREADS: u32 = <K as Kernel>::THREADS;
}

/// What is checked of a kernel where it is declared, and not only where it is launched. Panics at compile
/// time, with what is wrong, at the caller: the kernel's declaration. What is asked of the types of messages
/// and states is in [`fits`](crate::fits).
#[doc(hidden)]
#[track_caller]
pub const fn check<K: Kernel>() {
    assert!(
        K::THREADS >= 32 && K::THREADS <= 1024 && K::THREADS.is_multiple_of(32),
        "threads must be a multiple of 32, from 32 to 1024"
    );
    assert!(
        K::CALLS == 0
            || (<K::Scope as Scope<K>>::PORTS.is_none() && !<K::Scope as Scope<K>>::IS_GRID),
        "`calls` is for kernels without ports whose handlers are run by a thread, a warp or a block"
    );
    assert!(
        !K::FIRST_BLOCK_ANSWERS || <K::Scope as Scope<K>>::IS_GRID,
        "`first_block_answers` is for kernels whose handler takes `ctx: &GridContext`"
    );
    assert!(
        K::SHARED_BYTES <= MAX_SHARED_BYTES,
        "`shared` takes more than MAX_SHARED_BYTES, 187,392 bytes, which is what a GPU's block can have beside its messages"
    );
    assert!(
        K::SHARED_BYTES == 0 || !cfg!(all(target_arch = "nvptx64", feature = "rust-cuda")),
        "Rust-CUDA gives a block no memory of the launch's: `shared` is for kernels that rustc compiles"
    );
    let entry = K::ENTRY.as_bytes();
    assert!(!entry.is_empty(), "the entry has no name");
    let mut i = 0;
    while i < entry.len() {
        let starts = entry[i].is_ascii_alphabetic() || entry[i] == b'_';
        assert!(
            starts || (i > 0 && entry[i].is_ascii_digit()),
            "the entry is no symbol of PTX: letters, digits and _, with no digit first; give another by \
             `entry: \"...\"`"
        );
        i += 1;
    }
    assert!(
        !same(entry, b"gpu_launch_sized_workgroup_mem")
            && !same(entry, b"ring_block")
            && !same(entry, b"RING_ABI_VERSION"),
        "the entry has a name that ring keeps for itself; give another by `entry: \"...\"`"
    );
}

const fn same(a: &[u8], b: &[u8]) -> bool {
    let mut i = 0;
    while i < a.len() && i < b.len() && a[i] == b[i] {
        i += 1;
    }
    a.len() == b.len() && i == a.len()
}

/// Which threads handle a message: one of the scopes in the table of [`ring_kernel!`](crate::ring_kernel). A scope
/// is all of one file of `scope`.
pub trait Scope<K: Kernel>: sealed::Sealed {
    /// Which threads work together: each group has messages of its own.
    #[doc(hidden)]
    const GROUP: Group;

    /// Bytes of state that a channel keeps.
    #[doc(hidden)]
    const STATE_BYTES: usize;

    /// How messages lie in the memory of a warp, if that is the group: atoms from one to the next, and from
    /// a request to where its response goes.
    #[doc(hidden)]
    const STAGE: (usize, usize);

    /// The ports, if the kernel emits messages and answers none.
    #[doc(hidden)]
    const PORTS: Option<&'static [PortShape]> = None;

    /// Whether those messages are handled one after the other.
    #[doc(hidden)]
    const EMITS_IN_ORDER: bool = false;

    /// Which threads handle such a message together, and emit together.
    #[doc(hidden)]
    const EMITTERS: Emitters = Emitters::Thread;
    /// Warps of a block on a GPU, at least: where there are ports, one looks at the rings, and others handle messages.
    #[doc(hidden)]
    const LEAST_WARPS: u32 =
        if Self::PORTS.is_some() && !matches!(Self::EMITTERS, Emitters::Block) { 2 } else { 1 };

    /// The key of a message of port `port`.
    ///
    /// # Safety
    /// `message` is an aligned message of that port, of a kernel with ports.
    #[doc(hidden)]
    #[inline(always)]
    unsafe fn key(port: usize, message: *const u8) -> u32 {
        let _ = (port, message);
        0
    }

    /// All threads of a warp, or of the block if these [handle together](Self::EMITTERS): handles the `n` requests in `stages`, each
    /// of which then says what was emitted. Each thread that has handled some calls `then`, before other threads are waited for, with
    /// false if its handler emitted more than the kernel declares.
    ///
    /// # Safety
    /// The kernel has ports. `stages` has room for `n`, with a request in each, in memory of these threads alone, which
    /// synchronise before and after. If the kernel [emits in order](Self::EMITS_IN_ORDER), no other warp of the channel calls it
    /// meanwhile, and what the one before has written is seen.
    #[doc(hidden)]
    #[inline(always)]
    unsafe fn emit(
        block: ThreadBlock<'_>,
        payload: Payload<'_>,
        stages: Stages,
        n: u32,
        then: impl FnOnce(bool),
    ) {
        let _ = (block, payload, stages, n, then);
    }

    /// One thread, where [one thread](Emitters::Thread) handles a request and they are not [in order](Self::EMITS_IN_ORDER): handles
    /// a request; `stage` then says what was emitted. False if the handler emitted more than the kernel declares.
    ///
    /// # Safety
    /// `request` is a request, at a multiple of 16, that nobody writes meanwhile, and `stage` a stage of this thread alone, which may
    /// be the one that has the request.
    #[doc(hidden)]
    #[inline(always)]
    unsafe fn emit_one(
        block: ThreadBlock<'_>,
        payload: Payload<'_>,
        request: *const u8,
        stage: *mut u8,
    ) -> bool {
        let _ = (block, payload, request, stage);
        true
    }

    /// Whether all blocks of the launch handle each message, and not one block of a channel.
    #[doc(hidden)]
    const IS_GRID: bool = false;

    /// All threads of a block but the first of a grid: handle what block 0 tells of, until the launch ends.
    ///
    /// # Safety
    /// There is room for a request and twelve bytes more, and for a response, which nobody but this block uses, both aligned to 16
    /// bytes; what the boot names is there, and stays.
    #[doc(hidden)]
    #[inline(always)]
    unsafe fn follow(block: ThreadBlock<'_>, payload: Payload<'_>, room: (*mut u8, *mut u8)) {
        let _ = (block, payload, room);
    }

    /// A warp: the block is about to handle this message, and nothing else first; nobody else does anything meanwhile.
    ///
    /// # Safety
    /// `messages` has one request, which nobody writes until it is handled.
    #[doc(hidden)]
    #[inline(always)]
    unsafe fn announce(block: ThreadBlock<'_>, messages: Messages) {
        let _ = (block, messages);
    }

    /// Nanoseconds from one tick of the state to the next; 0 for none.
    #[doc(hidden)]
    const TICKS_APART: u64 = 0;

    /// Thread 0, between two messages: gives the state a tick.
    ///
    /// # Safety
    /// The channel is active, and nobody handles a message meanwhile. What those before it have written to the state is seen.
    #[doc(hidden)]
    #[inline(always)]
    unsafe fn tick(block: ThreadBlock<'_>, payload: Payload<'_>) {
        let _ = (block, payload);
    }

    /// Messages that a group handles in the time of one.
    #[doc(hidden)]
    fn parallelism(block: ThreadBlock<'_>) -> u32;

    /// Before `n` messages are handled, while their requests are brought to the block's window: threads `first..` of `step`,
    /// each some of the work. A barrier follows.
    ///
    /// # Safety
    /// `messages` has room for `n` responses side by side, which nobody else uses; each of the threads passes another `first`.
    #[doc(hidden)]
    #[inline(always)]
    unsafe fn prepare(messages: Messages, n: u32, first: u32, step: u32) {
        let _ = (messages, n, first, step);
    }

    /// Handles `n` messages. Called by all threads of a group.
    ///
    /// # Safety
    /// If the group is the block, [`prepare`](Self::prepare) was called. `messages` has room for `n` of them, in memory of the calling group alone, at 16-byte boundaries, with a
    /// request in each; the group synchronises before and after.
    #[doc(hidden)]
    unsafe fn handle(block: ThreadBlock<'_>, payload: Payload<'_>, messages: Messages, n: u32);

    /// All threads of the block: handles one message, calls `answer`, which begins with a barrier, and does what is left to do behind it.
    ///
    /// # Safety
    /// As for [`handle`](Self::handle), of one message.
    #[doc(hidden)]
    #[inline(always)]
    unsafe fn handle_one(
        block: ThreadBlock<'_>,
        payload: Payload<'_>,
        messages: Messages,
        answer: impl FnOnce(),
    ) {
        // SAFETY: the caller's promise.
        unsafe { Self::handle(block, payload, messages, 1) };
        answer();
    }

    /// Handles the `n` messages of `requests` directly into `responses`, slots both, if one thread is
    /// all the block and handles each message alone; whether it did.
    #[doc(hidden)]
    fn handle_in_place(
        block: ThreadBlock<'_>,
        payload: Payload<'_>,
        requests: &[Atom],
        responses: &[Atom],
        n: u32,
    ) -> bool;
}

/// Threads that handle messages together.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// Each warp has messages of its own.
    Warp,
    /// The block has messages together.
    Block,
    /// Thread 0 has all messages of the channel, one after the other.
    One,
}

/// Threads that handle a message of a kernel with ports together, and emit together.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Emitters {
    /// One thread.
    Thread,
    /// All threads of a warp.
    Warp,
    /// All threads of the block.
    Block,
}

impl Emitters {
    /// How many of a block's warps bring messages to where they are handled, if it had no other work for them.
    pub(crate) const fn warps(self, warps: usize) -> usize {
        match self {
            Emitters::Thread | Emitters::Warp => warps,
            Emitters::Block => 1,
        }
    }
}

/// Where the messages of a group lie: the first request and the first response, and bytes to the next.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct Messages {
    pub(crate) requests: *mut u8,
    pub(crate) responses: *mut u8,
    pub(crate) request_stride: usize,
    pub(crate) response_stride: usize,
}

impl Messages {
    /// Request `m`.
    #[inline(always)]
    pub(crate) fn request<Q>(&self, m: u32) -> *const Q {
        self.requests.wrapping_add(m as usize * self.request_stride).cast()
    }

    /// Response `m`.
    #[inline(always)]
    pub(crate) fn response<R>(&self, m: u32) -> *mut R {
        self.responses.wrapping_add(m as usize * self.response_stride).cast()
    }
}

pub(crate) mod sealed {
    pub trait Sealed {}
}
