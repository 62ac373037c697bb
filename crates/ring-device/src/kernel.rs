//! What the author of a kernel writes: its message types, its scope, its handler.

use crate::context::{BlockContext, Output, Payload, ThreadContext, WarpContext};
use crate::team::{Team, boot};
use bytemuck::Pod;
use core::mem::offset_of;
use core::ptr::{NonNull, with_exposed_provenance_mut};
use ring_shared::Message;
use ring_shared::atomics::Atom;
use ring_shared::layout::ChannelBlock;
#[cfg(not(target_arch = "nvptx64"))]
use ring_shared::slot;

/// Threads of a channel's block where neither kernel nor launch chose.
pub const DEFAULT_THREADS: u32 = 512;

/// Largest state of a channel, in bytes.
pub const MAX_STATE_BYTES: usize = 1 << 24;

/// A ring kernel: a name, two message types, and the scope in which its handler runs.
///
/// Response `i` answers request `i`, in order, on every channel.
pub trait Kernel: Sized + 'static {
    /// Name for reports and errors.
    const NAME: &'static str;
    /// Symbol of the entry point in the PTX.
    const ENTRY: &'static str;
    /// Whether the handler reads or writes the payload arena, or any other memory that is not in
    /// the messages. It costs a fence for each message that comes in the line, and for each batch of
    /// scope [`Block`]; without it what the handler sees of that memory may be old.
    const USES_PAYLOAD: bool = false;
    /// Threads of a channel's block on a GPU where a launch does not say otherwise: a multiple of 32.
    const THREADS: u32 = DEFAULT_THREADS;
    // The compiler shows these lines where a type does not fit.
    /// What the host sends.
    type Request: Message; // #[repr(C)] #[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
    /// What the device answers.
    type Response: Message; // #[repr(C)] #[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
    /// [`Thread`], [`Warp`], [`Block`] or [`InOrder`].
    type Scope: Scope<Self>;
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
        !same(entry, b"ring_team") && !same(entry, b"RING_ABI_VERSION"),
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

/// A handler that one thread runs: most messages a second, many at once. For messages of up to some
/// hundred bytes.
pub trait ThreadHandler: Kernel {
    /// Answers one request.
    fn handle(ctx: &ThreadContext<'_>, request: &Self::Request) -> Self::Response;
}

/// A handler that the 32 threads of a warp run together on one message, many warps side by side: most
/// bytes a second.
pub trait WarpHandler: Kernel {
    /// Answers one request. Every thread of the warp is called with the same request and response;
    /// what no thread writes of the response is zero. All of them must reach the same
    /// [`sync`](WarpContext::sync) and [`sum`](WarpContext::sum) calls. Should one of them panic, what the others
    /// are told by `sum` from then on means nothing, and their answer is dropped.
    fn handle(ctx: &WarpContext<'_>, request: &Self::Request, response: &Output<Self::Response>);
}

/// A handler that all threads of the block run together on one message at a time: for work on the
/// payload arena, or on memory of the block's own.
pub trait BlockHandler: Kernel {
    /// Answers one request. Every thread is called with the same request and response; what no
    /// thread writes of the response is zero. All threads must reach the same
    /// [`sync`](BlockContext::sync) calls.
    fn handle(ctx: &BlockContext<'_>, request: &Self::Request, response: &Output<Self::Response>);
}

/// A handler with a state: one thread of a channel runs it on one message after the other, in order, and
/// keeps the state from message to message. For what has to be exact and in sequence: an order book, a
/// counter, a session. A channel takes some million messages a second so; more channels take more, each with a
/// state of its own.
pub trait InOrderHandler: Kernel<Scope = InOrder> {
    /// What a channel keeps, in device memory: plain bytes, zero at first unless the host writes it. It
    /// stays through deactivation and relaunches, and can be read by the host while the kernel is not
    /// active, and after it was terminated.
    type State: Pod; // #[repr(C)] #[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
    /// Answers one request. If it panics, the channel is lost, and its state with it.
    fn handle(
        ctx: &ThreadContext<'_>,
        state: &mut Self::State,
        request: &Self::Request,
    ) -> Self::Response;
}

/// Each message is handled by one thread ([`ThreadHandler`]).
#[derive(Debug)]
pub struct Thread;

/// Each message is handled by a warp ([`WarpHandler`]).
#[derive(Debug)]
pub struct Warp;

/// Each message is handled by the whole block ([`BlockHandler`]).
#[derive(Debug)]
pub struct Block;

/// Messages of a channel are handled one after the other, with a state ([`InOrderHandler`]).
#[derive(Debug)]
pub struct InOrder;

/// Who handles a message: [`Thread`], [`Warp`], [`Block`] or [`InOrder`].
pub trait Scope<K: Kernel>: sealed::Sealed {
    /// Whether a warp answers messages by itself.
    #[doc(hidden)]
    const ALONE: bool;

    /// Bytes of state that a channel keeps.
    #[doc(hidden)]
    const STATE_BYTES: usize = 0;

    /// Atoms from one message to the next in a warp's stage.
    #[doc(hidden)]
    const STRIDE: usize = K::Request::SLOT_ATOMS + K::Response::SLOT_ATOMS;

    /// Atoms from a request in a stage to where its response goes.
    #[doc(hidden)]
    const ANSWER: usize = K::Request::SLOT_ATOMS;

    /// Messages that a warp handles in the time of one.
    #[doc(hidden)]
    #[inline(always)]
    fn abreast(_: Team<'_>) -> u32 {
        1
    }

    /// Handles the `n` messages of a stage, each as far from the next as [`STRIDE`](Self::STRIDE)
    /// says. Called by all threads of a warp. Only if [`ALONE`](Self::ALONE).
    ///
    /// # Safety
    /// `stage` is `n` times the stride of 16-byte aligned memory of the calling warp alone, with a
    /// request at the beginning of each; the warp synchronises before and after.
    #[doc(hidden)]
    #[inline(always)]
    unsafe fn warp(_: Team<'_>, _: Payload<'_>, _stage: *mut u8, _n: u32) {}

    /// Handles the `n` messages of `requests` straight into `responses`, slots both, if one thread is
    /// all the team and handles each message alone; whether it did.
    #[doc(hidden)]
    #[inline(always)]
    fn straight(
        _: Team<'_>,
        _: Payload<'_>,
        _requests: &[Atom],
        _responses: &[Atom],
        _n: u32,
    ) -> bool {
        false
    }

    /// Handles `n` messages, slots side by side at `input`, into `output`; called by all threads.
    /// Only without [`ALONE`](Self::ALONE).
    ///
    /// # Safety
    /// `input` holds `n` requests and `output` has room for `n` responses, both in the team's
    /// windows, at 16-byte boundaries; all threads call it, and synchronise before and after.
    #[doc(hidden)]
    #[inline(always)]
    unsafe fn window(_: Team<'_>, _: Payload<'_>, _input: *const u8, _output: *mut u8, _n: u32) {}
}

impl<K: ThreadHandler> Scope<K> for Thread {
    const ALONE: bool = true;

    // Odd, so that threads that read the same word of messages side by side use different banks of
    // shared memory.
    const STRIDE: usize = max(K::Request::SLOT_ATOMS, K::Response::SLOT_ATOMS) | 1;

    // The thread that has read a request writes its response over it.
    const ANSWER: usize = 0;

    #[inline(always)]
    fn abreast(team: Team<'_>) -> u32 {
        team.warp_size()
    }

    #[inline(always)]
    unsafe fn warp(team: Team<'_>, payload: Payload<'_>, stage: *mut u8, n: u32) {
        let mut m = team.in_warp();
        while m < n {
            let at = stage.wrapping_add(m as usize * 16 * <Self as Scope<K>>::STRIDE);
            // SAFETY: message `m < n` of the stage, plain bytes, aligned, that only this thread uses
            // now; it is not read any more when the response is written.
            unsafe {
                let response = K::handle(&ThreadContext::new(team, payload), &*at.cast());
                at.cast::<K::Response>().write(response);
            }
            m += team.warp_size();
        }
    }

    #[cfg(not(target_arch = "nvptx64"))]
    fn straight(
        team: Team<'_>,
        payload: Payload<'_>,
        requests: &[Atom],
        responses: &[Atom],
        n: u32,
    ) -> bool {
        let from = requests.chunks_exact(K::Request::SLOT_ATOMS);
        let to = responses.chunks_exact(K::Response::SLOT_ATOMS);
        for (from, to) in from.zip(to).take(n as usize) {
            let mut request = bytemuck::Zeroable::zeroed();
            slot::read(from, &mut request);
            slot::write(to, &K::handle(&ThreadContext::new(team, payload), &request));
        }
        true
    }
}

impl<K: WarpHandler> Scope<K> for Warp {
    const ALONE: bool = true;

    #[inline(always)]
    unsafe fn warp(team: Team<'_>, payload: Payload<'_>, stage: *mut u8, n: u32) {
        let mut m = 0;
        while m < n {
            let at = stage.wrapping_add(m as usize * 16 * <Self as Scope<K>>::STRIDE);
            let output = at.wrapping_add(16 * <Self as Scope<K>>::ANSWER);
            let mut word = team.in_warp() as usize;
            while word < 4 * K::Response::SLOT_ATOMS {
                // SAFETY: a word of the response of message `m < n`; each word has one thread.
                unsafe { output.cast::<u32>().add(word).write(0) };
                word += team.warp_size() as usize;
            }
            team.warp_sync();
            // SAFETY: message `m < n`, plain bytes, aligned, that nobody writes during the handler;
            // its response, zeroed, shared by this warp only.
            unsafe {
                let response = Output::new(output);
                K::handle(&WarpContext::new(team, payload), &*at.cast(), &response);
            }
            m += 1;
        }
    }
}

impl<K: BlockHandler> Scope<K> for Block {
    const ALONE: bool = false;

    #[inline(always)]
    unsafe fn window(
        team: Team<'_>,
        payload: Payload<'_>,
        input: *const u8,
        output: *mut u8,
        n: u32,
    ) {
        let mut word = team.thread() as usize;
        while word < n as usize * 4 * K::Response::SLOT_ATOMS {
            // SAFETY: below the `n` slots of the output window; each word has one thread.
            unsafe { output.cast::<u32>().add(word).write(0) };
            word += team.threads() as usize;
        }
        for m in 0..n as usize {
            team.sync();
            // SAFETY: slot `m < n`, plain bytes, aligned, that nobody writes during the handler.
            let request = unsafe { &*input.add(m * 16 * K::Request::SLOT_ATOMS).cast() };
            // SAFETY: slot `m < n` of the output window, zeroed, shared by this block only.
            let response = unsafe { Output::new(output.add(m * 16 * K::Response::SLOT_ATOMS)) };
            K::handle(&BlockContext::new(team, payload), request, &response);
        }
    }
}

impl<K: InOrderHandler> Scope<K> for InOrder {
    const ALONE: bool = false;
    const STATE_BYTES: usize = {
        assert!(align_of::<K::State>() <= 128, "a state may be aligned to at most 128 bytes");
        assert!(
            size_of::<K::State>() <= MAX_STATE_BYTES,
            "a state must fit MAX_STATE_BYTES; keep more in the payload arena"
        );
        size_of::<K::State>()
    };

    #[inline(always)]
    unsafe fn window(
        team: Team<'_>,
        payload: Payload<'_>,
        input: *const u8,
        output: *mut u8,
        n: u32,
    ) {
        if team.thread() != 0 {
            return;
        }
        let at = team.memory().boot.word(boot::RINGS, offset_of!(ChannelBlock, state));
        let at: *mut K::State = match size_of::<K::State>() {
            0 => NonNull::dangling().as_ptr(),
            _ => with_exposed_provenance_mut(at as usize),
        };
        // SAFETY: `resume::check` found room for it there, at a multiple of 128, which is this channel's own
        // for as long as it runs; plain bytes, which the host has written. Only thread 0 of the channel
        // touches it, and the host only while the channel is not active.
        let state = unsafe { &mut *at };
        for m in 0..n as usize {
            // SAFETY: message `m < n` of the input window, plain bytes, aligned, that nobody writes now.
            let request = unsafe { &*input.add(m * 16 * K::Request::SLOT_ATOMS).cast() };
            let response = K::handle(&ThreadContext::new(team, payload), state, request);
            // SAFETY: slot `m < n` of the output window, aligned, that only this thread touches now.
            unsafe {
                output.add(m * 16 * K::Response::SLOT_ATOMS).cast::<K::Response>().write(response)
            };
        }
    }
}

const fn max(a: usize, b: usize) -> usize {
    if a > b { a } else { b }
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::Thread {}
    impl Sealed for super::Warp {}
    impl Sealed for super::Block {}
    impl Sealed for super::InOrder {}
}
