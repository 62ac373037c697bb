//! Each message is handled by the whole block, which emits messages to the kernel's ports.

use super::emit::with_ports;
use crate::context::{BlockContext, Payload};
use crate::emissions::{PortShape, Stages};
use crate::kernel::{Emitters, Group, Messages, Scope, sealed::Sealed};
use crate::ports::{Ports, WithPorts, handle_in_turn};
use crate::thread_block::ThreadBlock;
use ring_shared::Message;
use ring_shared::atomics::Atom;

/// A handler that all threads of the block run together on one message at a time, and that emits messages to ports: for
/// work on the payload arena, or on memory of the block's own.
pub trait EmitBlockHandler: WithPorts {
    /// Handles one request. Every thread is called with the same request. All of them must reach the same calls of
    /// [`place`](Ports::place) and, with equal messages, of [`emit`](Ports::emit), as the same [`sync`](BlockContext::sync) calls:
    /// such a call emits one message; what the block's first thread emits is what is sent. If the kernel uses a payload, all have
    /// handled the message before; else some may still be at it.
    fn handle(ctx: &BlockContext<'_>, request: &Self::Request, out: &mut Ports<'_, Self>);
}

/// Each message is handled by the whole block, which emits messages ([`EmitBlockHandler`]).
#[derive(Debug)]
pub struct EmitBlock;

impl Sealed for EmitBlock {}

impl<K: EmitBlockHandler> Scope<K> for EmitBlock {
    const STATE_BYTES: usize = 0;
    const EMITTERS: Emitters = Emitters::Block;
    with_ports!(K);

    #[inline(always)]
    unsafe fn emit(
        block: ThreadBlock<'_>,
        payload: Payload<'_>,
        stages: Stages,
        n: u32,
        then: impl FnOnce(bool),
    ) {
        // A handler that has a payload finds there what the ones before left; others share nothing.
        let between = || {
            if K::USES_PAYLOAD {
                block.sync();
            }
        };
        let handle = |request: &K::Request, out: &mut Ports<'_, K>| {
            K::handle(
                &BlockContext::new(block, payload, block.shared(K::SHARED_BYTES)),
                request,
                out,
            );
        };
        // SAFETY: `n` stages, with a request in each, of this block alone, all threads of which come here.
        then(unsafe { handle_in_turn::<K>(block, stages, n, between, handle) });
    }
}
