//! Each message is handled by one thread.

use super::WARP;
use crate::block::Cooperate;
use crate::context::{Payload, ThreadContext};
use crate::kernel::{Group, Kernel, Messages, Scope, sealed::Sealed};
use crate::thread_block::ThreadBlock;
use ring_shared::Message;
use ring_shared::atomics::Atom;

/// A handler that one thread runs: most messages a second, many at once. For messages of up to some
/// hundred bytes.
pub trait ThreadHandler: Kernel {
    /// Answers one request.
    fn handle(ctx: &ThreadContext<'_>, request: &Self::Request) -> Self::Response;
}

/// Each message is handled by one thread ([`ThreadHandler`]).
#[derive(Debug)]
pub struct Thread;

impl Sealed for Thread {}

impl<K: ThreadHandler> Scope<K> for Thread {
    const GROUP: Group = Group::Warp;
    const STATE_BYTES: usize = 0;

    /// An odd stride, so that threads that read the same word of messages side by side use different banks
    /// of shared memory. The thread that has read a request writes its response over it.
    const STAGE: (usize, usize) = {
        let (request, response) = (K::Request::SLOT_ATOMS, K::Response::SLOT_ATOMS);
        (if request > response { request | 1 } else { response | 1 }, 0)
    };

    #[inline(always)]
    fn parallelism(_: ThreadBlock<'_>) -> u32 {
        WARP
    }

    #[inline(always)]
    unsafe fn handle(block: ThreadBlock<'_>, payload: Payload<'_>, messages: Messages, n: u32) {
        let mut m = block.lane();
        while m < n {
            // SAFETY: message `m < n`, plain bytes, aligned, that only this thread uses now; the request is not
            // read any more when the response is written over it.
            unsafe {
                let request = &*messages.request(m);
                let response = K::handle(
                    &ThreadContext::new(block, payload, block.shared(K::SHARED_BYTES)),
                    request,
                );
                messages.response::<K::Response>(m).write(response);
            }
            m += WARP;
        }
    }

    // In line with the loop of a channel, each message would pass through the stack: 8 % fewer messages a second.
    #[cfg_attr(not(target_arch = "nvptx64"), inline(never))]
    #[cfg_attr(target_arch = "nvptx64", inline(always))]
    fn handle_in_place(
        block: ThreadBlock<'_>,
        payload: Payload<'_>,
        requests: &[Atom],
        responses: &[Atom],
        n: u32,
    ) -> bool {
        #[cfg(not(target_arch = "nvptx64"))]
        {
            use ring_shared::{atomics::System, slot};
            let from = requests.chunks_exact(K::Request::SLOT_ATOMS);
            let to = responses.chunks_exact(K::Response::SLOT_ATOMS);
            for (from, to) in from.zip(to).take(n as usize) {
                let mut request = bytemuck::Zeroable::zeroed();
                slot::read::<_, System>(from, &mut request);
                slot::write::<_, System>(
                    to,
                    &K::handle(
                        &ThreadContext::new(block, payload, block.shared(K::SHARED_BYTES)),
                        &request,
                    ),
                );
            }
            true
        }
        #[cfg(target_arch = "nvptx64")]
        {
            let _ = (block, payload, requests, responses, n);
            false
        }
    }
}
