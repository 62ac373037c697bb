//! A handler's calls to the host: threads of a warp that call at the same time make one call together, and each waits for its own answer.

use crate::block::{Cooperate, Threads};
use crate::context::{BlockContext, ThreadContext, WarpContext};
use crate::handlers::{HasBody, HasTag, functions_of_kernels};
use crate::kernel::Kernel;
use crate::thread_block::ThreadBlock;
use core::ptr::{NonNull, with_exposed_provenance, with_exposed_provenance_mut};
use core::sync::atomic::Ordering::{Acquire, Relaxed};
use core::time::Duration;
use ring_shared::Message;
use ring_shared::calls::{CALL_SLOTS, CallSlots};
use ring_shared::layout::{Command, ControlBlock, State};

/// Why a call to the host gave no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostCallError {
    /// It was not answered in time. The host may still come to it, and its answer is lost then.
    Timeout,
    /// The kernel is told to leave the device: it was terminated, or is kept away for a while by `Runtime::quiesce`.
    Stopped,
    /// The host has read the call and gives no answer.
    Refused,
}

/// A kernel whose handlers call the host: one that is declared with `calls`.
pub trait CallsHost: Kernel {
    /// What the host is asked, with which of the functions is meant.
    #[doc(hidden)]
    type Call: HasTag;
    /// What the host answers.
    #[doc(hidden)]
    type Answer: HasBody;
}

functions_of_kernels! {
    /// A function of the host that handlers of kernel `K` call with a `Q`, and that gives an `R`: a constant of the kernel's type, which
    /// has the name of the function.
    HostFn
}

impl<K: CallsHost, Q: Message, R: Message> HostFn<K, Q, R> {
    /// What a call asks, if it is one of this function.
    #[doc(hidden)]
    #[inline]
    pub fn request(self, call: &K::Call) -> Option<Q> {
        (call.tag() == self.tag.into()).then(|| *call.body())
    }

    /// An answer of this function.
    #[doc(hidden)]
    #[inline]
    pub fn answer(self, answer: R) -> K::Answer {
        HasBody::of(answer)
    }
}

/// The shape of the call slots of such a kernel.
#[doc(hidden)]
pub const fn shape_of<K: CallsHost>() -> u64 {
    CallSlots::<K::Call, K::Answer>::SHAPE
}

macro_rules! calls {
    ($($context:ident)*) => {$(
        impl $context<'_> {
            /// Asks a function of the host, and waits until it has answered or that long has passed: about 2 us where the host's thread is
            /// looking. Each thread that calls has an answer of its own; threads of a warp that come here together share the way, so
            /// that 32 calls take hardly longer than one. While it waits, this warp handles nothing else.
            ///
            /// # Errors
            /// When the host has not answered in time, as when nobody there serves the kernel's calls; when it refuses; when the kernel is
            /// told to leave the device.
            #[inline(always)]
            pub fn call<K: CallsHost, Q: Message, R: Message>(
                &self,
                function: HostFn<K, Q, R>,
                request: Q,
                within: Duration,
            ) -> Result<R, HostCallError> {
                let request = K::Call::of(function.tag, request);
                let answer = ask::<K>(self.block(), self.payload().is_declared(), &request, within)?;
                Ok(*answer.body())
            }
        }
    )*};
}
calls!(ThreadContext WarpContext BlockContext);

/// Looks for an answer between two at the clock and at the host's command, which take as long.
const TURNS: u32 = 8;

/// A call to the host of each thread that comes here. `is_declared`: what the handler reads and writes beside messages matters.
#[inline(always)]
fn ask<K: CallsHost>(
    block: ThreadBlock<'_>,
    is_declared: bool,
    request: &K::Call,
    within: Duration,
) -> Result<K::Answer, HostCallError> {
    let calls = &block.memory().calls;
    let is_same_shape = calls.shape.get() == CallSlots::<K::Call, K::Answer>::SHAPE;
    let at = NonNull::new(with_exposed_provenance_mut(calls.slots.get() as usize));
    let Some(at) = at.filter(|_| is_same_shape) else {
        return Err(HostCallError::Refused); // a function of another kernel
    };
    // SAFETY: the host gave the channel as many bytes there, zeroed, for slots of that shape, and they stay for as long as it runs.
    let slots = unsafe { CallSlots::<K::Call, K::Answer>::from_raw(at) };
    let mut waiting = Waiting { turns: 0, within: nanoseconds(within), end: u64::MAX };
    if is_declared {
        block.fence(); // what the handler wrote is seen by the host
    }
    let callers = block.converged();
    let (first, caller) = (callers.trailing_zeros(), block.lane());
    let mut call = 0;
    if caller == first {
        call = match take(block, slots, &mut waiting) {
            Ok(call) => call,
            Err(HostCallError::Timeout) => LATE,
            Err(_) => STOPPED,
        };
        if call < STOPPED {
            slots.announce(call, callers);
        }
    }
    call = block.pass_on(callers, call, first);
    if call >= STOPPED {
        return Err(if call == LATE { HostCallError::Timeout } else { HostCallError::Stopped });
    }
    slots.ask(call, caller, request);
    let answer = await_answer(block, slots, (call, caller), waiting)?;
    if is_declared {
        block.fence(); // what the host wrote before is seen
    }
    answer.ok_or(HostCallError::Refused)
}

/// Cycles from a call to the first look for its answer. A look takes a microsecond and shows what was there half of that before; the next
/// one begins behind it, for of two looks under way each takes longer. So the first comes when a host that was looking has answered: in a
/// C++ program on an H200 that is 1.0 us after the call, and ring-host takes somewhat longer.
const FIRST_LOOK: u64 = 1200;

/// Waits for the answer of the calling thread; none if the host refuses.
#[inline(always)]
fn await_answer<Q: Message, R: Message>(
    block: ThreadBlock<'_>,
    slots: CallSlots<Q, R>,
    (call, caller): (u64, u32),
    mut waiting: Waiting,
) -> Result<Option<R>, HostCallError> {
    if Threads::WARP > 1 {
        let began = block.ticks();
        while block.ticks().wrapping_sub(began) < FIRST_LOOK {}
    }
    loop {
        if let Some(answer) = slots.answered(call, &slots.look(call, caller)) {
            return Ok(answer);
        }
        waiting.go_on(block)?;
    }
}

/// In place of a call's number: no slot was free in time, or the kernel is told to leave.
const LATE: u64 = u64::MAX;
const STOPPED: u64 = u64::MAX - 1;

/// The thread that calls for a warp: the next call, when its slot is free.
#[inline(always)]
fn take<Q: Message, R: Message>(
    block: ThreadBlock<'_>,
    slots: CallSlots<Q, R>,
    waiting: &mut Waiting,
) -> Result<u64, HostCallError> {
    let calls = &block.memory().calls;
    loop {
        let next = calls.next.load(Relaxed);
        if next.wrapping_sub(calls.released.get()) < u64::from(CALL_SLOTS) {
            if block.compare_and_swap(&calls.next, next, next + 1) {
                return Ok(next);
            }
            continue; // another warp's
        }
        // SYNC: acquires `CallSlots::release`: the host reads and writes nothing more in the slots below.
        let released = slots.released().load(Acquire);
        // Another warp's look may have been later, and is then asked for again.
        if released <= next {
            calls.released.set(released);
        }
        waiting.go_on(block)?;
    }
}

/// How long a thread has waited, and may.
#[derive(Clone, Copy)]
struct Waiting {
    turns: u32,
    /// In nanoseconds.
    within: u64,
    /// When it ends: known from the first look at the clock on, which takes as long as some looks for an answer.
    end: u64,
}

impl Waiting {
    /// Behind looks that found nothing: whether there is time for more.
    #[inline(always)]
    fn go_on(&mut self, block: ThreadBlock<'_>) -> Result<(), HostCallError> {
        self.turns = self.turns.saturating_add(1);
        if self.turns == 1 {
            self.end = block.now().saturating_add(self.within);
        } else if self.turns.is_multiple_of(TURNS) {
            let control = block.memory().life.control.get() as usize;
            // SAFETY: `run` stored the address of the control block, all atomics and padding, before any handler was called.
            let host = unsafe { &(*with_exposed_provenance::<ControlBlock>(control)).host };
            let command = Command::from_word(host.command.load(Relaxed));
            if command.state == State::Terminated as u32 {
                return Err(HostCallError::Stopped);
            }
            if block.now() >= self.end {
                return Err(HostCallError::Timeout);
            }
        }
        if Threads::WARP == 1 {
            block.pause(self.turns, true);
        }
        Ok(())
    }
}

/// As many nanoseconds.
#[inline(always)]
const fn nanoseconds(time: Duration) -> u64 {
    time.as_secs().saturating_mul(1_000_000_000).saturating_add(time.subsec_nanos() as u64)
}
