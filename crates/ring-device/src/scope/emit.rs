//! Each message is handled by one thread, which emits messages to the kernel's ports.

use crate::block::{Cooperate, Threads};
use crate::context::{Payload, ThreadContext};
use crate::emissions::{PortShape, Stages};
use crate::kernel::{Group, Messages, Scope, sealed::Sealed};
use crate::ports::{Ports, WithPorts, handle_request};
use crate::thread_block::ThreadBlock;
use ring_shared::Message;
use ring_shared::atomics::Atom;

/// A handler that one thread runs, many messages at once, and that emits messages to ports.
pub trait EmitHandler: WithPorts {
    /// Handles one request.
    fn handle(ctx: &ThreadContext<'_>, request: &Self::Request, out: &mut Ports<'_, Self>);
}

/// Each message is handled by one thread, which emits messages ([`EmitHandler`]).
#[derive(Debug)]
pub struct Emit;

impl Sealed for Emit {}

/// What all scopes of kernels with ports have in common.
macro_rules! with_ports {
    ($K:ident) => {
        const GROUP: Group = Group::Block;
        const STAGE: (usize, usize) =
            ($K::Request::SLOT_ATOMS + $K::Response::SLOT_ATOMS, $K::Request::SLOT_ATOMS);
        const PORTS: Option<&'static [PortShape]> = Some(<$K as WithPorts>::PORTS);

        #[inline(always)]
        unsafe fn key(port: usize, message: *const u8) -> u32 {
            // SAFETY: the caller's promise.
            unsafe { <$K as WithPorts>::key(port, message) }
        }

        #[inline(always)]
        fn parallelism(_: ThreadBlock<'_>) -> u32 {
            1
        }

        /// Never called: such a kernel answers nothing.
        unsafe fn handle(_: ThreadBlock<'_>, _: Payload<'_>, _: Messages, _: u32) {}

        #[inline(always)]
        fn handle_in_place(
            _: ThreadBlock<'_>,
            _: Payload<'_>,
            _: &[Atom],
            _: &[Atom],
            _: u32,
        ) -> bool {
            false
        }
    };
}
pub(super) use with_ports;

impl<K: EmitHandler> Scope<K> for Emit {
    const STATE_BYTES: usize = 0;
    with_ports!(K);

    #[inline(always)]
    unsafe fn emit(
        block: ThreadBlock<'_>,
        payload: Payload<'_>,
        stages: Stages,
        n: u32,
        then: impl FnOnce(bool),
    ) {
        let stride = Stages::stride(K::Request::SLOT_ATOMS, K::PORTS);
        let (mut m, mut fits) = (block.lane(), true);
        if m >= n {
            return;
        }
        while m < n {
            let stage = stages.stage(stride, m);
            // SAFETY: stage `m < n`, with a request; each stage has one thread.
            fits &= unsafe { <Self as Scope<K>>::emit_one(block, payload, stage, stage) };
            m += Threads::WARP;
        }
        then(fits);
    }

    #[inline(always)]
    unsafe fn emit_one(
        block: ThreadBlock<'_>,
        payload: Payload<'_>,
        request: *const u8,
        stage: *mut u8,
    ) -> bool {
        let handle = |request: &K::Request, out: &mut Ports<'_, K>| {
            K::handle(
                &ThreadContext::new(block, payload, block.shared(K::SHARED_BYTES)),
                request,
                out,
            );
        };
        // SAFETY: the caller's promise.
        unsafe { handle_request::<K>(block, request, stage, handle) }
    }
}
