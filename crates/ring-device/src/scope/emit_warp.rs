//! Each message is handled by a warp, which emits messages to the kernel's ports.

use super::emit::with_ports;
use crate::block::Cooperate;
use crate::context::{Payload, WarpContext};
use crate::emissions::{PortShape, Stages};
use crate::kernel::{Emitters, Group, Messages, Scope, sealed::Sealed};
use crate::ports::{Ports, WithPorts, handle_in_turn};
use crate::thread_block::ThreadBlock;
use ring_shared::Message;
use ring_shared::atomics::Atom;

/// A handler that the 32 threads of a warp run together on one message, many warps side by side, and that emits messages
/// to ports.
pub trait EmitWarpHandler: WithPorts {
    /// Handles one request. Every thread of the warp is called with the same request. All of them must reach the same calls of
    /// [`place`](Ports::place) and, with equal messages, of [`emit`](Ports::emit), as the same [`sync`](WarpContext::sync) and
    /// [`sum`](WarpContext::sum) calls: such a call emits one message; what the warp's first thread emits is what is sent. Should one
    /// of them panic, nothing of it is sent.
    fn handle(ctx: &WarpContext<'_>, request: &Self::Request, out: &mut Ports<'_, Self>);
}

/// Each message is handled by a warp, which emits messages ([`EmitWarpHandler`]).
#[derive(Debug)]
pub struct EmitWarp;

impl Sealed for EmitWarp {}

impl<K: EmitWarpHandler> Scope<K> for EmitWarp {
    const STATE_BYTES: usize = 0;
    const EMITTERS: Emitters = Emitters::Warp;
    with_ports!(K);

    #[inline(always)]
    unsafe fn emit(
        block: ThreadBlock<'_>,
        payload: Payload<'_>,
        stages: Stages,
        n: u32,
        then: impl FnOnce(bool),
    ) {
        // A handler that has a payload finds there what the ones before left.
        let between = || block.warp_sync();
        let handle = |request: &K::Request, out: &mut Ports<'_, K>| {
            K::handle(
                &WarpContext::new(block, payload, block.shared(K::SHARED_BYTES)),
                request,
                out,
            );
        };
        // SAFETY: `n` stages, with a request in each, of this warp alone, all threads of which are here.
        then(unsafe { handle_in_turn::<K>(block, stages, n, between, handle) });
    }
}
