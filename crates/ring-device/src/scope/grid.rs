//! Each message is handled by all blocks of a grid.

use super::zero;
use crate::block::{Cooperate, Threads};
use crate::context::{Output, Payload};
use crate::grid_context::{GridContext, give_up};
use crate::kernel::{Group, Kernel, Messages, Scope, sealed::Sealed};
use crate::memory::grid::{GridMemory, Meeting, grid_bytes};
use crate::memory::meeting::Progress;
use crate::memory::signals::Wake;
use crate::thread_block::ThreadBlock;
use ring_shared::Message;
use ring_shared::atomics::Atom;

/// A handler that all threads of all blocks of the launch run together on one message: the whole device works on it.
///
/// A kernel of this scope has one channel. Its first block takes the messages; the others wait for it on the device, so that a
/// message costs no launch. It is answered when the handler has returned in all blocks, and the next one begins then; of a kernel with
/// [`FIRST_BLOCK_ANSWERS`](Kernel::FIRST_BLOCK_ANSWERS) it is answered when the handler has returned in block 0.
pub trait GridHandler: Kernel<Scope = Grid> {
    /// Answers one request. Every thread is called with the same request. What threads of block 0 write of the response is
    /// answered, and what none of them writes is zero; what other blocks write there is nothing to anybody.
    ///
    /// All threads of all blocks must reach the same calls of [`sync`](GridContext::sync), [`sum`](GridContext::sum) and
    /// [`max`](GridContext::max), in the same order. Where the handler returns in one block while another one waits in such a call,
    /// the kernel is lost (`Exit::MissedBarrier`), and the host is told.
    fn handle(ctx: &GridContext<'_>, request: &Self::Request, response: &Output<Self::Response>);
}

/// Each message is handled by all blocks of a grid ([`GridHandler`]).
#[derive(Debug)]
pub struct Grid;

impl Sealed for Grid {}

impl<K: GridHandler> Scope<K> for Grid {
    const GROUP: Group = Group::Block;
    const STATE_BYTES: usize = grid_bytes::<K::Request>();
    const STAGE: (usize, usize) =
        (K::Request::SLOT_ATOMS + K::Response::SLOT_ATOMS, K::Request::SLOT_ATOMS);
    const IS_GRID: bool = true;

    #[inline(always)]
    fn parallelism(_: ThreadBlock<'_>) -> u32 {
        1
    }

    #[inline(always)]
    unsafe fn announce(block: ThreadBlock<'_>, messages: Messages) {
        let (threads, cells) = (*block, &block.memory().grid);
        let Some(grid) = cells.memory() else { return }; // `resume::check` has found it
        if K::FIRST_BLOCK_ANSWERS && !cells.have_returned(threads) {
            return; // the block tells them, when its other warps have found that they have
        }
        let warp = (threads, threads.lane(), Threads::WARP);
        // SAFETY: the caller's request, which nobody writes now.
        unsafe {
            grid.tell::<K::Request>(warp, cells.progress().next().stamp, messages.request(0))
        };
        if threads.is_lane_0() {
            cells.has_told.set(true);
        }
    }

    #[inline(always)]
    unsafe fn prepare(messages: Messages, n: u32, first: u32, step: u32) {
        let words = n as usize * 4 * K::Response::SLOT_ATOMS;
        // SAFETY: the caller's promise.
        unsafe { zero(messages.response(0), words, first, step) };
    }

    #[inline(always)]
    unsafe fn handle(block: ThreadBlock<'_>, payload: Payload<'_>, messages: Messages, n: u32) {
        let cells = &block.memory().grid;
        let Some(grid) = cells.memory() else { return }; // `resume::check` has found it
        let mut at = cells.progress();
        let mut m = 0;
        while m < n {
            if m > 0 {
                block.sync();
            }
            // SAFETY: message `m < n`, as the caller promises.
            at = unsafe { begin::<K>(block, (payload, grid), messages, m, at) };
            block.sync();
            at = at.meeting();
            if block.is_first_warp() {
                come(block, grid, at);
            }
            let uses_payload = &block.memory().signals.uses_payload;
            let all = grid.meet(*block, (Meeting::Return, at), K::USES_PAYLOAD, |kind, _| {
                if K::USES_PAYLOAD && kind == Meeting::ReturnUsed as u32 {
                    uses_payload.set(true); // in another block
                }
            });
            if let Err(why) = all {
                give_up(block, why);
            } else if block.is_first_warp()
                && let Some(devices) = cells.devices.all()
            {
                devices.tell_return(*block, at);
            }
            m += 1;
        }
    }

    #[inline(always)]
    unsafe fn handle_one(
        block: ThreadBlock<'_>,
        payload: Payload<'_>,
        messages: Messages,
        answer: impl FnOnce(),
    ) {
        let cells = &block.memory().grid;
        if !K::FIRST_BLOCK_ANSWERS || cells.devices.all().is_some() {
            // SAFETY: the caller's promise.
            unsafe { <Self as Scope<K>>::handle(block, payload, messages, 1) };
            return answer();
        }
        let Some(grid) = cells.memory() else { return };
        // SAFETY: the caller's message.
        let at = unsafe { begin::<K>(block, (payload, grid), messages, 0, cells.progress()) };
        answer();
        let at = at.meeting();
        if block.is_first_warp() {
            come(block, grid, at);
        }
        // The first warp looks for the next message meanwhile, if there is another one.
        if !block.is_first_warp() || block.warps() == 1 {
            await_return::<K>(block, grid, at);
        }
    }

    #[inline(always)]
    fn handle_in_place(_: ThreadBlock<'_>, _: Payload<'_>, _: &[Atom], _: &[Atom], _: u32) -> bool {
        false
    }

    #[inline(always)]
    unsafe fn follow(
        block: ThreadBlock<'_>,
        payload: Payload<'_>,
        (request, response): (*mut u8, *mut u8),
    ) {
        let (threads, cells) = (*block, &block.memory().grid);
        let Some(grid) = cells.memory() else { return };
        let mut at = cells.progress();
        loop {
            if block.is_first_warp() {
                let (stamp, to) = (at.next().stamp, request.cast());
                // SAFETY: the caller's room; the others wait at the barrier.
                let has =
                    unsafe { grid.receive::<K::Request>(threads, stamp, K::USES_PAYLOAD, to) };
                cells.has_request.set(has);
            }
            block.sync();
            if !cells.has_request.get() {
                break;
            }
            // SAFETY: the caller's room, for a whole response, shared by this block only.
            let nothing = unsafe { Output::new(response) };
            let ctx = context::<K>(block, (payload, grid), at.next());
            // SAFETY: a request, plain bytes, aligned, that nobody writes during the handler.
            K::handle(&ctx, unsafe { &*request.cast::<K::Request>() }, &nothing);
            block.sync();
            at = ctx.progress().meeting();
            if block.is_first_warp() {
                let uses_payload = &block.memory().signals.uses_payload;
                let has_used = K::USES_PAYLOAD && threads.agreed(uses_payload.get());
                let meeting = if has_used { Meeting::ReturnUsed } else { Meeting::Return };
                if has_used && block.is_lane_0() {
                    uses_payload.set(false); // no handler runs
                }
                grid.come(threads, at, (meeting, 0), has_used);
            }
        }
        if block.thread() == 0 {
            grid.leave(threads, cells, at.next());
        }
    }
}

/// All threads of block 0: tell the others of message `m`, if they have not been told, and handle it; how far the block has come then, from
/// `at`. A barrier must follow.
///
/// # Safety
/// As for [`Scope::handle`], of a message of those.
#[inline(always)]
unsafe fn begin<K: GridHandler>(
    block: ThreadBlock<'_>,
    (payload, grid): (Payload<'_>, GridMemory<'_>),
    messages: Messages,
    m: u32,
    at: Progress,
) -> Progress {
    let (threads, cells) = (*block, &block.memory().grid);
    let at = at.next();
    if threads.blocks() > 1 && !(m == 0 && cells.has_told.get()) {
        if K::USES_PAYLOAD && m > 0 {
            block.fence_device(); // what this block has written for the message before, which is not answered yet
        }
        let all = (threads, threads.thread(), threads.threads());
        // SAFETY: the caller's request, a slot that nobody writes now.
        unsafe { grid.tell::<K::Request>(all, at.stamp, messages.request(m)) };
    }
    // SAFETY: the caller's response, zeroed, shared by this block only.
    let response = unsafe { Output::new(messages.response(m)) };
    let ctx = context::<K>(block, (payload, grid), at);
    // SAFETY: the caller's request, plain bytes, aligned, that nobody writes during the handler.
    K::handle(&ctx, unsafe { &*messages.request(m) }, &response);
    ctx.progress()
}

/// The first warp of block 0, when the handler has returned in all of its threads: the block comes to that meeting, where blocks return.
#[inline(always)]
fn come(block: ThreadBlock<'_>, grid: GridMemory<'_>, at: Progress) {
    let (threads, cells) = (*block, &block.memory().grid);
    if block.is_lane_0() {
        cells.set_progress(at);
        cells.has_told.set(false);
    }
    grid.come(threads, at, (Meeting::Return, 0), false); // who waits at a barrier finds it
}

/// A warp of block 0, behind an answer: waits until the handler has returned in those of the blocks that it has to wait for, and notes it.
#[inline(always)]
fn await_return<K: Kernel>(block: ThreadBlock<'_>, grid: GridMemory<'_>, at: Progress) {
    let (threads, memory) = (*block, block.memory());
    let mut has_used = false;
    let all = grid.meet_by_warps(threads, at, K::USES_PAYLOAD, |kind| {
        has_used |= kind == Meeting::ReturnUsed as u32;
    });
    if let Err(why) = all {
        give_up(block, why);
        if block.is_lane_0() {
            memory.signals.wake.set(Wake::Leave); // else the first warp would look for messages until it is asked to end
        }
        return;
    }
    block.fence_block(); // what the blocks have released, before the first warp tells them of the next message
    memory.grid.note_return(threads, at);
    if K::USES_PAYLOAD && !threads.all(!has_used) {
        block.fence(); // their stores, before the next answer, which a barrier of the block precedes
    }
}

/// What the handler of a thread of any block sees, which has come so far.
#[inline(always)]
fn context<'a, K: GridHandler>(
    block: ThreadBlock<'a>,
    (payload, grid): (Payload<'a>, GridMemory<'a>),
    at: Progress,
) -> GridContext<'a> {
    let room = (payload, block.shared(K::SHARED_BYTES));
    GridContext::new(block, room, (grid, K::USES_PAYLOAD), at)
}
