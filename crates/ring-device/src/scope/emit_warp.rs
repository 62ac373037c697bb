//! Each message is handled by a warp, which emits messages to the kernel's ports.

use super::emit::with_ports;
use crate::block::Cooperate;
use crate::context::{Payload, WarpContext};
use crate::emissions::{PortShape, Stages};
use crate::kernel::{Emitters, Group, Messages, Scope, sealed::Sealed};
use crate::ports::{Ports, WithPorts, handle_stage};
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
    unsafe fn emit(block: ThreadBlock<'_>, payload: Payload<'_>, stages: Stages, n: u32) -> bool {
        let stride = Stages::stride(K::Request::SLOT_ATOMS, K::PORTS);
        let (mut m, mut fits) = (0, true);
        while m < n {
            if m > 0 {
                block.warp_sync(); // a handler that has a payload finds there what the ones before left
            }
            let stage = stages.stage(stride, m);
            let handle = |request: &K::Request, out: &mut Ports<'_, K>| {
                K::handle(&WarpContext::new(block, payload), request, out);
            };
            // SAFETY: stage `m < n`, with a request, of this warp alone, all threads of which are here.
            fits &= unsafe { handle_stage::<K>(block, stage, handle) };
            m += 1;
        }
        fits
    }
}
