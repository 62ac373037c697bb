//! Messages of a channel are handled one after the other, with a state, and messages emitted to the kernel's ports.

use super::emit::with_ports;
use super::in_order::{state_bytes, state_of};
use crate::block::Cooperate;
use crate::context::{Payload, ThreadContext};
use crate::emissions::{PortShape, Stages};
use crate::kernel::{Group, Messages, Scope, sealed::Sealed};
use crate::ports::{Ports, WithPorts, handle_in_turn};
use crate::thread_block::ThreadBlock;
use bytemuck::Pod;
use ring_shared::Message;
use ring_shared::atomics::Atom;

/// A handler with a state, as an [`InOrderHandler`](crate::InOrderHandler), that emits messages to ports. A channel with
/// several inputs takes them in turns, some messages of each: messages of one input keep their order.
pub trait EmitInOrderHandler: WithPorts<Scope = EmitInOrder> {
    /// What a channel keeps, as [`InOrderHandler::State`](crate::InOrderHandler::State).
    type State: Pod;
    /// Handles one request. If it panics, the channel is lost, and its state with it.
    fn handle(
        ctx: &ThreadContext<'_>,
        state: &mut Self::State,
        request: &Self::Request,
        out: &mut Ports<'_, Self>,
    );
}

/// Messages of a channel are handled one after the other, with a state, and messages emitted
/// ([`EmitInOrderHandler`]).
#[derive(Debug)]
pub struct EmitInOrder;

impl Sealed for EmitInOrder {}

impl<K: EmitInOrderHandler> Scope<K> for EmitInOrder {
    const STATE_BYTES: usize = state_bytes::<K::State>();
    const EMITS_IN_ORDER: bool = true;
    with_ports!(K);

    #[inline(always)]
    unsafe fn emit(
        block: ThreadBlock<'_>,
        payload: Payload<'_>,
        stages: Stages,
        n: u32,
        then: impl FnOnce(bool),
    ) {
        if !block.is_lane_0() {
            return;
        }
        // SAFETY: the caller's promise: no other thread of the channel is here.
        let state = unsafe { state_of::<K::State>(block) };
        let handle = |request: &K::Request, out: &mut Ports<'_, K>| {
            K::handle(
                &ThreadContext::new(block, payload, block.shared(K::SHARED_BYTES)),
                state,
                request,
                out,
            );
        };
        // SAFETY: `n` stages, with a request in each; nobody else is here.
        then(unsafe { handle_in_turn::<K>(block, stages, n, || {}, handle) });
    }
}
