//! Each message is handled by the whole block.

use super::zero;
use crate::context::{BlockContext, Output, Payload};
use crate::kernel::{Group, Kernel, Messages, Scope, sealed::Sealed};
use crate::thread_block::ThreadBlock;
use ring_shared::Message;
use ring_shared::atomics::Atom;

/// A handler that all threads of the block run together on one message at a time: for work on the
/// payload arena, or on memory of the block's own.
pub trait BlockHandler: Kernel {
    /// Answers one request. Every thread is called with the same request and response; what no
    /// thread writes of the response is zero. All threads must reach the same
    /// [`sync`](BlockContext::sync) calls. If the kernel uses a payload, all have handled the message before; else some
    /// may still be at it.
    fn handle(ctx: &BlockContext<'_>, request: &Self::Request, response: &Output<Self::Response>);
}

/// Each message is handled by the whole block ([`BlockHandler`]).
#[derive(Debug)]
pub struct Block;

impl Sealed for Block {}

impl<K: BlockHandler> Scope<K> for Block {
    const GROUP: Group = Group::Block;
    const STATE_BYTES: usize = 0;
    const STAGE: (usize, usize) =
        (K::Request::SLOT_ATOMS + K::Response::SLOT_ATOMS, K::Request::SLOT_ATOMS);

    #[inline(always)]
    fn parallelism(_: ThreadBlock<'_>) -> u32 {
        1
    }

    #[inline(always)]
    unsafe fn prepare(messages: Messages, n: u32, first: u32, step: u32) {
        let words = n as usize * 4 * K::Response::SLOT_ATOMS;
        // SAFETY: the caller's promise.
        unsafe { zero(messages.response(0), words, first, step) };
    }

    #[inline(always)]
    unsafe fn handle(block: ThreadBlock<'_>, payload: Payload<'_>, messages: Messages, n: u32) {
        let mut m = 0;
        while m < n {
            // A handler that has a payload finds there what the ones before left; others share nothing.
            if K::USES_PAYLOAD && m > 0 {
                block.sync();
            }
            let request: *const K::Request = messages.request(m);
            // SAFETY: it is inside the block's memory. The compiler does not see that, and an `Option<&T>` of a part of the
            // request would be compared with null for each message.
            unsafe { core::hint::assert_unchecked(!request.is_null()) };
            // SAFETY: message `m < n`, plain bytes, aligned, that nobody writes during the handler.
            let request = unsafe { &*request };
            // SAFETY: response `m < n`, zeroed, shared by this block only.
            let response = unsafe { Output::new(messages.response(m)) };
            K::handle(
                &BlockContext::new(block, payload, block.shared(K::SHARED_BYTES)),
                request,
                &response,
            );
            m += 1;
        }
    }

    #[inline(always)]
    fn handle_in_place(_: ThreadBlock<'_>, _: Payload<'_>, _: &[Atom], _: &[Atom], _: u32) -> bool {
        false
    }
}
