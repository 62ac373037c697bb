//! What the author of a kernel writes: its message types, its scope, its handler.

use crate::context::{BlockContext, Output, Payload, ThreadContext};
use crate::team::Team;
use ring_shared::Message;

/// A ring kernel: a name, two message types, and the scope in which its handler runs.
///
/// Response `i` answers request `i`, in order, on every lane.
pub trait Kernel: Sized + 'static {
    /// Name for reports and errors.
    const NAME: &'static str;
    /// Symbol of the entry point in the PTX.
    const ENTRY: &'static str;
    /// Whether the handler reads or writes the payload arena, or any other memory that is not in
    /// the messages. It costs a fence for each batch, and without it what the handler sees of that
    /// memory may be old.
    const USES_PAYLOAD: bool = false;
    /// What the host sends.
    type Request: Message;
    /// What the device answers.
    type Response: Message;
    /// [`Thread`] or [`Block`].
    type Scope: Scope<Self>;
}

/// A handler that one thread runs: most messages a second, many at once.
pub trait ThreadHandler: Kernel {
    /// Answers one request.
    fn handle(ctx: &ThreadContext<'_>, request: &Self::Request) -> Self::Response;
}

/// A handler that all threads of the block run together on one message: largest payloads.
pub trait BlockHandler: Kernel {
    /// Answers one request. Every thread is called with the same request and response; what no
    /// thread writes of the response is zero. All threads must reach the same
    /// [`sync`](BlockContext::sync) calls.
    fn handle(ctx: &BlockContext<'_>, request: &Self::Request, response: &Output<Self::Response>);
}

/// Each message is handled by one thread ([`ThreadHandler`]).
#[derive(Debug)]
pub struct Thread;

/// Each message is handled by the whole block ([`BlockHandler`]).
#[derive(Debug)]
pub struct Block;

/// How a window of messages is handled: [`Thread`] or [`Block`].
pub trait Scope<K: Kernel>: sealed::Sealed {
    /// Whether a polling warp may answer an express message by itself.
    #[doc(hidden)]
    const ALONE: bool;

    /// Messages that the team handles side by side, in the time of one.
    #[doc(hidden)]
    fn at_once(team: &Team<'_>) -> u32;

    /// Handles `n` messages, slots side by side at `input`, into `output`; called by all threads.
    ///
    /// # Safety
    /// `input` holds `n` requests and `output` has room for `n` responses, both in the team's
    /// windows, at 16-byte boundaries; all threads call it, and synchronise before and after.
    #[doc(hidden)]
    unsafe fn window(
        team: &Team<'_>,
        payload: Payload<'_>,
        input: *const u8,
        output: *mut u8,
        n: u32,
    );

    /// Handles one message by the calling thread alone. Only if [`ALONE`](Self::ALONE).
    ///
    /// # Safety
    /// As for `window`, with `n == 1`, but called by one thread.
    #[doc(hidden)]
    unsafe fn alone(team: &Team<'_>, payload: Payload<'_>, input: *const u8, output: *mut u8);
}

impl<K: ThreadHandler> Scope<K> for Thread {
    const ALONE: bool = true;

    #[inline(always)]
    fn at_once(team: &Team<'_>) -> u32 {
        team.threads()
    }

    #[inline(always)]
    unsafe fn window(
        team: &Team<'_>,
        payload: Payload<'_>,
        input: *const u8,
        output: *mut u8,
        n: u32,
    ) {
        let mut m = team.thread();
        while m < n {
            let (request, response) = (
                input.wrapping_add(m as usize * 16 * K::Request::SLOT_ATOMS),
                output.wrapping_add(m as usize * 16 * K::Response::SLOT_ATOMS),
            );
            // SAFETY: slot `m < n` of both windows, which no other thread handles.
            unsafe { <Self as Scope<K>>::alone(team, payload, request, response) };
            m += team.threads();
        }
    }

    #[inline(always)]
    unsafe fn alone(team: &Team<'_>, payload: Payload<'_>, input: *const u8, output: *mut u8) {
        // SAFETY: the caller promised a request there: plain bytes, aligned, nobody writing them.
        let request = unsafe { &*input.cast::<K::Request>() };
        let response = K::handle(&ThreadContext::new(team, payload), request);
        // SAFETY: the caller promised room for a response there, for this thread alone.
        unsafe { output.cast::<K::Response>().write(response) };
    }
}

impl<K: BlockHandler> Scope<K> for Block {
    const ALONE: bool = false;

    #[inline(always)]
    fn at_once(_: &Team<'_>) -> u32 {
        1
    }

    #[inline(always)]
    unsafe fn window(
        team: &Team<'_>,
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

    #[inline(always)]
    unsafe fn alone(_: &Team<'_>, _: Payload<'_>, _: *const u8, _: *mut u8) {}
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::Thread {}
    impl Sealed for super::Block {}
}
