//! Ports: the typed outputs of a kernel that emits messages to other kernels, or to the host, in place of answers.

use crate::block::{Cooperate, Threads};
use crate::context::Output;
#[doc(inline)]
pub use crate::emissions::PortShape;
use crate::emissions::{Stages, stage_atoms};
use crate::kernel::{Emitters, Kernel, Scope};
use crate::thread_block::ThreadBlock;
use core::fmt;
use core::marker::PhantomData;
use core::ops::Deref;
use ring_shared::Message;
pub use ring_shared::layout::MAX_PORTS;

/// A kernel with ports, or with none, whose handler answers nothing. [`ring_kernel!`](crate::ring_kernel) implements it.
pub trait WithPorts: Kernel {
    /// Its ports, by their numbers.
    const PORTS: &'static [PortShape];

    /// The key of a message of port `port`.
    ///
    /// # Safety
    /// `message` is an aligned message of that port.
    #[doc(hidden)]
    unsafe fn key(port: usize, message: *const u8) -> u32;
}

/// Port `P` of a kernel. [`ring_kernel!`](crate::ring_kernel) implements it.
pub trait HasPort<const P: usize>: WithPorts {
    /// What is sent there.
    type Message: Message;
}

/// Names port `P` of kernel `K`: a constant of the kernel's type, with the name that the port was given.
pub struct Port<K, const P: usize>(PhantomData<fn() -> K>);

impl<K, const P: usize> Port<K, P> {
    #[doc(hidden)]
    pub const NEW: Port<K, P> = Port(PhantomData);

    /// The port's number.
    pub const fn index(self) -> usize {
        P
    }
}

impl<K, const P: usize> Clone for Port<K, P> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K, const P: usize> Copy for Port<K, P> {}

impl<K, const P: usize> fmt::Debug for Port<K, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Port").field(&P).finish()
    }
}

/// Most bytes of a request and of all that a handler may emit for it.
pub const MAX_STAGE_BYTES: usize = 16 * 1024;

/// What is checked of a kernel's ports where it is declared. Panics at compile time.
#[doc(hidden)]
#[track_caller]
pub const fn check<K: WithPorts>() {
    assert!(K::PORTS.len() <= MAX_PORTS, "a kernel has at most 8 ports");
    assert!(
        16 * stage_atoms(K::Request::SLOT_ATOMS, K::PORTS) <= MAX_STAGE_BYTES,
        "a request and all that may be emitted for it must fit 16 KiB: declare fewer messages a step, or smaller ones"
    );
}

/// What is asked of port `P` where it is emitted to. Panics at compile time.
#[track_caller]
const fn check_port<K: HasPort<P>, const P: usize>() {
    check::<K>();
    let atoms = <K::Message as Message>::SLOT_ATOMS;
    assert!(P < K::PORTS.len() && K::PORTS[P].atoms == atoms, "a port of another message");
}

/// A message that was [placed](Ports::place): its threads set it as an [`Output`].
#[derive(Debug)]
pub struct Placed<'a, M> {
    output: Output<M>,
    of: PhantomData<&'a mut M>,
}

impl<M> Deref for Placed<'_, M> {
    type Target = Output<M>;

    #[inline(always)]
    fn deref(&self) -> &Output<M> {
        &self.output
    }
}

/// Where a handler emits messages. Threads that handle a message together call it together.
#[derive(Debug)]
pub struct Ports<'a, K> {
    block: ThreadBlock<'a>,
    stage: *mut u8,
    /// A byte for each port: how many were emitted there.
    counts: u64,
    has_overflown: bool,
    of: PhantomData<&'a mut K>,
}

impl<'a, K: WithPorts> Ports<'a, K> {
    const EMITTERS: Emitters = <K::Scope as Scope<K>>::EMITTERS;

    /// Whether one thread handles the request by itself.
    const IS_ALONE: bool = matches!(Self::EMITTERS, Emitters::Thread);

    /// # Safety
    /// `stage` is a stage of `K`, which only the calling thread, or those that [handle with it](Scope::EMITTERS), use while this
    /// lives.
    #[inline(always)]
    unsafe fn new(block: ThreadBlock<'a>, stage: *mut u8) -> Self {
        Ports { block, stage, counts: 0, has_overflown: false, of: PhantomData }
    }

    /// The index of the calling thread among those that handle the message together, and how many they are.
    #[inline(always)]
    fn thread(&self) -> (u32, u32) {
        match Self::EMITTERS {
            Emitters::Thread => (0, 1),
            Emitters::Warp => (self.block.lane(), Threads::WARP),
            Emitters::Block => (self.block.thread(), self.block.threads()),
        }
    }

    /// Emits a message. Messages of a port keep the order of the requests, and for one request that of these calls. Of more
    /// than the kernel declares for the port none is sent: its channel ends (`DeviceFault` on the host).
    ///
    /// Where a warp or the block handles the request, all its threads call this together, with equal messages: one message is
    /// emitted, which the first thread writes.
    #[inline(always)]
    pub fn emit<const P: usize>(&mut self, _: Port<K, P>, message: <K as HasPort<P>>::Message)
    where
        K: HasPort<P>,
    {
        const { check_port::<K, P>() };
        let n = self.emitted::<P>();
        if n < K::PORTS[P].most {
            let at = Stages::message(K::Request::SLOT_ATOMS, K::PORTS, P, n);
            let to = self.stage.wrapping_add(at).cast::<<K as HasPort<P>>::Message>();
            if Self::IS_ALONE {
                // SAFETY: room for message `n` of port `P` in the stage, at a multiple of 16, of this thread alone.
                unsafe { to.write(message) };
            } else if self.thread().0 == 0 {
                // SAFETY: the same room. Others that handle the request may write there, if they have not made the same
                // calls: as atomic words, too.
                unsafe { Output::new(to.cast()) }.set_all(message);
            }
            self.counts += 1 << (8 * P);
        } else {
            self.has_overflown = true;
        }
    }

    /// Emits `n` messages, the `k`th of which is `message(k)`: as many calls of [`emit`](Self::emit), but for who makes them. Where a
    /// warp or the block handles the request, each of its threads makes some of them, and all must reach this call with the same
    /// `n`. If there is no room for all none is made.
    ///
    /// ```
    /// ring_device::ring_kernel! {
    ///     /// Emits the first of the multiples of a number.
    ///     pub struct Multiples {
    ///         ports: {
    ///             /// A message each.
    ///             EACH: [u32; 64],
    ///         },
    ///     }
    ///
    ///     fn handle(_: &WarpContext, request: &u32, out: &mut Ports) {
    ///         out.emit_each(Multiples::EACH, 64, |k| request.wrapping_mul(k));
    ///     }
    /// }
    /// ```
    #[inline(always)]
    pub fn emit_each<const P: usize>(
        &mut self,
        _: Port<K, P>,
        n: u32,
        mut message: impl FnMut(u32) -> <K as HasPort<P>>::Message,
    ) where
        K: HasPort<P>,
    {
        const { check_port::<K, P>() };
        let first = self.emitted::<P>();
        if n > K::PORTS[P].most - first {
            self.has_overflown = true;
            return;
        }
        self.counts += u64::from(n) << (8 * P);
        let (mut k, step) = self.thread();
        while k < n {
            let at = Stages::message(K::Request::SLOT_ATOMS, K::PORTS, P, first + k);
            // SAFETY: room for message `first + k` of port `P` in the stage, at a multiple of 16, which only threads that handle the
            // request touch, as atomic words.
            let place: Output<_> = unsafe { Output::new(self.stage.wrapping_add(at)) };
            place.set_all(message(k));
            k += step;
        }
    }

    /// Emits a message that is made in its place, word by word: what is not set is zero. It is counted now, among those of
    /// [`emit`](Self::emit), and may be set until the handler returns. Of more than the kernel declares for the port none is sent, as
    /// there, wherever they are set.
    ///
    /// Where a warp or the block handles the request, all its threads must reach this call, which waits for all of them, and each
    /// sets what it has.
    ///
    /// ```
    /// ring_device::ring_kernel! {
    ///     /// Makes a table of the multiples of a number.
    ///     pub struct Multiples {
    ///         ports: {
    ///             /// The first 64.
    ///             TABLES: [[u32; 64]; 1],
    ///         },
    ///     }
    ///
    ///     fn handle(ctx: &WarpContext, request: &u32, out: &mut Ports) {
    ///         let table = out.place(Multiples::TABLES);
    ///         for i in (ctx.thread()..64).step_by(ctx.threads()) {
    ///             table.set(0, i, request.wrapping_mul(i as u32));
    ///         }
    ///     }
    /// }
    /// ```
    #[inline(always)]
    pub fn place<const P: usize>(&mut self, _: Port<K, P>) -> Placed<'a, <K as HasPort<P>>::Message>
    where
        K: HasPort<P>,
    {
        const { check_port::<K, P>() };
        let (n, most) = (self.emitted::<P>(), K::PORTS[P].most);
        let fits = n < most;
        self.counts += u64::from(fits) << (8 * P);
        self.has_overflown |= !fits;
        // One too many lies over the last: neither is sent.
        let at = Stages::message(K::Request::SLOT_ATOMS, K::PORTS, P, n.min(most - 1));
        let at = self.stage.wrapping_add(at);
        // SAFETY: room for a message of port `P` in the stage, at a multiple of 16, which only the threads that handle the request
        // touch, one after the other if it is one, or else as atomic words, until the handler has returned: `'a` is not longer.
        let output = unsafe { Output::new(at) };
        if Self::IS_ALONE {
            // SAFETY: the same room, of this thread alone.
            unsafe { at.cast::<<K as HasPort<P>>::Message>().write_bytes(0, 1) };
        } else {
            let (first, step) = self.thread();
            output.zero(first, step);
            self.sync(); // no thread sets what another has yet to zero
        }
        Placed { output, of: PhantomData }
    }

    /// How many were emitted to port `P`.
    #[inline(always)]
    fn emitted<const P: usize>(&self) -> u32 {
        (self.counts >> (8 * P)) as u32 & 0xff
    }

    /// Waits for all threads that handle the message together.
    #[inline(always)]
    fn sync(&self) {
        match Self::EMITTERS {
            Emitters::Thread => {}
            Emitters::Warp => self.block.warp_sync(),
            Emitters::Block => self.block.sync(),
        }
    }

    /// Writes how many were emitted; false for a thread that has emitted too many.
    ///
    /// # Safety
    /// As for [`new`](Self::new).
    #[inline(always)]
    unsafe fn finish(self) -> bool {
        let at = Stages::counts(K::Request::SLOT_ATOMS, K::PORTS);
        if Self::IS_ALONE || self.thread().0 == 0 {
            // SAFETY: the stage has an atom there, which only this thread writes.
            unsafe { self.stage.wrapping_add(at).cast::<u64>().write(self.counts) };
        }
        !self.has_overflown
    }
}

/// Calls `handle` with a request and with where to emit messages, which then are in `stage`; false for a thread that has emitted too
/// many.
///
/// # Safety
/// `request` is a request, at a multiple of 16, which nobody writes now, and `stage` a stage of `K`, likewise, which may be the one that
/// has the request. Only the calling thread uses them now, or those that [handle with it](Scope::EMITTERS), all of which are here.
#[inline(always)]
pub(crate) unsafe fn handle_request<K: WithPorts>(
    block: ThreadBlock<'_>,
    request: *const u8,
    stage: *mut u8,
    handle: impl FnOnce(&K::Request, &mut Ports<'_, K>),
) -> bool {
    // SAFETY: the caller's promise.
    let mut out = unsafe { Ports::new(block, stage) };
    // SAFETY: plain bytes, aligned, which nobody writes now: messages lie behind them.
    handle(unsafe { &*request.cast() }, &mut out);
    // SAFETY: the caller's promise.
    unsafe { out.finish() }
}

/// Handles the `n` requests in `stages` one after the other, each as [`handle_request`] does, with `between` before all but the first.
/// False for a thread that has emitted too many for one of them.
///
/// # Safety
/// As for [`handle_request`], of each of them.
#[inline(always)]
pub(crate) unsafe fn handle_in_turn<K: WithPorts>(
    block: ThreadBlock<'_>,
    stages: Stages,
    n: u32,
    between: impl Fn(),
    mut handle: impl FnMut(&K::Request, &mut Ports<'_, K>),
) -> bool {
    let stride = Stages::stride(K::Request::SLOT_ATOMS, K::PORTS);
    let (mut m, mut fits) = (0, true);
    while m < n {
        if m > 0 {
            between();
        }
        let stage = stages.stage(stride, m);
        // SAFETY: stage `m < n`; the caller's promise.
        fits &= unsafe { handle_request::<K>(block, stage, stage, &mut handle) };
        m += 1;
    }
    fits
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::context::Payload;
    use crate::{BlockMemory, Hooks, ring_kernel};
    use std::boxed::Box;

    /// Emits the given number of messages to two ports, of which one has room for two, and one for one.
    macro_rules! emitters {
        ($($name:ident: $($context:ident)?;)*) => {$(
            ring_kernel! {
                /// Of one scope.
                pub struct $name {
                    ports: { SHORT: [[u16; 7]; 2], LONG: [[u32; 6]; 1] },
                }

                fn handle($(_: &$context,)? n: &u64, out: &mut Ports) {
                    for k in 0..*n as u16 {
                        if k % 2 == 0 {
                            out.emit($name::SHORT, [k + 1; 7]);
                        } else {
                            assert!(out.place($name::SHORT).set(0, 2, 0x0010_0010u32 * u32::from(k)));
                        }
                        let long = out.place($name::LONG);
                        assert!(long.set(0, 5, 7u32) && !long.set(0, 6, 7u32));
                    }
                }
            }
        )*};
    }
    emitters! {
        ByThread: ;
        ByWarp: WarpContext;
        ByBlock: BlockContext;
    }

    /// Emits the given number of messages at once, behind one.
    macro_rules! emitters_of_each {
        ($($name:ident: $($context:ident)?;)*) => {$(
            ring_kernel! {
                /// Of one scope.
                pub struct $name {
                    ports: { SHORT: [[u16; 7]; 2], LONG: [[u32; 6]; 1] },
                }

                fn handle($(_: &$context,)? n: &u64, out: &mut Ports) {
                    out.emit($name::SHORT, [7; 7]);
                    out.emit_each($name::SHORT, *n as u32, |k| [k as u16 + 1; 7]);
                    out.emit_each($name::LONG, 0, |_| unreachable!());
                }
            }
        )*};
    }
    emitters_of_each! {
        EachByThread: ;
        EachByWarp: WarpContext;
        EachByBlock: BlockContext;
    }

    #[repr(align(16))]
    struct Aligned([[u64; 2]; 8]);

    /// What a stage holds behind its request, between the same words in front and behind, when `n` were emitted to it.
    fn stage_of<K: WithPorts<Request = u64>>(n: u64) -> (bool, [u64; 10]) {
        const OTHER: [u64; 2] = [u64::MAX; 2];
        // The request; two short messages; a long one; the counts.
        let mut memory = Aligned([OTHER; 1 + (1 + 2 + 2 + 1) + 1]);
        memory.0[1][0] = n;
        // SAFETY: atomics and cells of integers.
        let mut block: Box<BlockMemory> = unsafe { Box::new_zeroed().assume_init() };
        let block = ThreadBlock::new(
            (0, 1),
            &mut block,
            Hooks { now: || 0, rest: |_| {}, unwind: || unreachable!() },
        );
        let at = memory.0.as_mut_ptr().cast::<u8>().wrapping_add(16);
        // SAFETY: no bytes.
        let payload = unsafe { Payload::new((0, 0), false, &block.memory().signals.uses_payload) };
        let (stages, mut fits) = (Stages::new(at), None);
        let then = |its| assert!(fits.replace(its).is_none(), "told once");
        // SAFETY: a stage of `K`, with a request, of this thread alone.
        unsafe { <K::Scope as Scope<K>>::emit(block, payload, stages, 1, then) };
        let fits = fits.expect("told");
        assert_eq!((memory.0[0], memory.0[7]), (OTHER, OTHER), "beside the stage");
        let mut words = [0; 10];
        words.copy_from_slice(memory.0[2..7].as_flattened());
        (fits, words)
    }

    fn emits_inside_its_stage<K: WithPorts<Request = u64>>() {
        let halves = |words: &[u64]| -> [u16; 7] {
            core::array::from_fn(|k| (words[k / 4] >> (16 * (k % 4))) as u16)
        };
        let (fits, none) = stage_of::<K>(0);
        assert!(fits && none[8] == 0);
        let (fits, one) = stage_of::<K>(1);
        assert!(fits, "one of each");
        assert_eq!((halves(&one[..2]), one[8]), ([1; 7], 0x101));
        assert_eq!(one[4..7], [0, 0, 7 << 32], "what is not set is zero");
        let (fits, two) = stage_of::<K>(2);
        assert!(!fits, "the long one does not fit twice");
        assert_eq!((halves(&two[2..4]), two[8]), ([0, 0, 0, 0, 16, 16, 0], 0x102));
        let (fits, many) = stage_of::<K>(300);
        assert!(!fits);
        assert_eq!(many[8], 0x102);
    }

    #[test]
    fn a_thread_emits_inside_its_stage() {
        emits_inside_its_stage::<ByThread>();
    }

    #[test]
    fn a_warp_emits_inside_its_stage() {
        emits_inside_its_stage::<ByWarp>();
    }

    #[test]
    fn a_block_emits_inside_its_stage() {
        emits_inside_its_stage::<ByBlock>();
    }

    fn emits_each_inside_its_stage<K: WithPorts<Request = u64>>() {
        let first = |words: &[u64; 10]| [words[0] as u16, words[2] as u16];
        for (n, is_there) in [(0, [7, 0xffff]), (1, [7, 1])] {
            let (fits, words) = stage_of::<K>(n);
            assert!(fits);
            assert_eq!((first(&words), words[8]), (is_there, n + 1));
        }
        for n in [2, 3, 255, 256, u32::MAX.into()] {
            let (fits, words) = stage_of::<K>(n);
            assert!(!fits, "{n} and one are too many");
            assert_eq!((first(&words), words[8]), ([7, 0xffff], 1), "{n}: none of them is there");
        }
    }

    #[test]
    fn messages_emitted_at_once_stay_inside_their_stage() {
        emits_each_inside_its_stage::<EachByThread>();
        emits_each_inside_its_stage::<EachByWarp>();
        emits_each_inside_its_stage::<EachByBlock>();
    }
}
