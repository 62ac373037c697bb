//! Each message is handled by a warp.

use super::WARP;
use crate::block::{Cooperate, Words};
use crate::context::{Output, Payload, WarpContext};
use crate::kernel::{Group, Kernel, Messages, Scope, sealed::Sealed};
use crate::thread_block::ThreadBlock;
use ring_shared::Message;
use ring_shared::atomics::Atom;

/// A handler that the 32 threads of a warp run together on one message, many warps side by side: most
/// bytes a second.
pub trait WarpHandler: Kernel {
    /// Answers one request. Every thread of the warp is called with the same request and response;
    /// what no thread writes of the response is zero. All of them must reach the same
    /// [`sync`](WarpContext::sync) and [`sum`](WarpContext::sum) calls. Should one of them panic, what
    /// `sum` gives to the others from then on means nothing, and their answer is dropped.
    fn handle(ctx: &WarpContext<'_>, request: &Self::Request, response: &Output<Self::Response>);
}

/// Each message is handled by a warp ([`WarpHandler`]).
#[derive(Debug)]
pub struct Warp;

impl Sealed for Warp {}

impl<K: WarpHandler> Scope<K> for Warp {
    const GROUP: Group = Group::Warp;
    const STATE_BYTES: usize = 0;
    const STAGE: (usize, usize) =
        (K::Request::SLOT_ATOMS + K::Response::SLOT_ATOMS, K::Request::SLOT_ATOMS);

    #[inline(always)]
    fn parallelism(_: ThreadBlock<'_>) -> u32 {
        1
    }

    #[inline(always)]
    unsafe fn handle(block: ThreadBlock<'_>, payload: Payload<'_>, messages: Messages, n: u32) {
        // All of them at once, before the first: each message has a response of its own.
        let atoms = K::Response::SLOT_ATOMS as u32;
        let mut t = block.lane();
        while t < n * atoms {
            let atom = messages.response::<Words>(t / atoms).wrapping_add((t % atoms) as usize);
            // SAFETY: an atom of the response of message `t / atoms < n`, of this warp alone; each has one thread.
            unsafe { atom.write([0; 2]) };
            t += WARP;
        }
        block.warp_sync();
        let mut m = 0;
        while m < n {
            // SAFETY: message `m < n`, plain bytes, aligned, that nobody writes during the handler;
            // its response, zeroed, shared by this warp only.
            unsafe {
                let response = Output::new(messages.response(m));
                K::handle(
                    &WarpContext::new(block, payload, block.shared(K::SHARED_BYTES)),
                    &*messages.request(m),
                    &response,
                );
            }
            m += 1;
        }
    }

    #[inline(always)]
    fn handle_in_place(_: ThreadBlock<'_>, _: Payload<'_>, _: &[Atom], _: &[Atom], _: u32) -> bool {
        false
    }
}
