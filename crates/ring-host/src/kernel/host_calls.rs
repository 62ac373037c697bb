//! Calls of a kernel's handlers to the host: taken by one owner, answered by any thread.

use crate::deadline::{Deadline, wait};
use crate::error::{HostCallsError, NextCallError};
use crate::kernel::core::KernelCore;
use crate::kernel::handle::KernelHandle;
use crate::sync::{AtomicBool, AtomicU32};
use ring_device::{CallsHost, HostFn, Message};
use ring_shared::calls::{CALL_SLOTS, CallSlots};
use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

/// How long the thread of a [`CallServer`] looks for calls before it looks whether it is to end.
const SERVED: Duration = Duration::from_millis(10);

/// How many callers of each call slot have no answer yet. Set by the owner, when the call is seen; counted down by who answers.
type Unanswered = [AtomicU32; CALL_SLOTS as usize];

/// The call slots of a kernel's channel.
type Slots<K> = CallSlots<<K as CallsHost>::Call, <K as CallsHost>::Answer>;

/// The call slots of all channels.
struct Board<K: CallsHost> {
    slots: Box<[(Slots<K>, Unanswered)]>,
    /// Keeps their memory.
    core: Arc<KernelCore>,
}

/// Where the owner is in a channel's calls.
#[derive(Clone, Copy, Debug)]
struct Cursor {
    /// The call that is looked at.
    next: u64,
    /// Its callers that were not given out yet, a bit each.
    left: u32,
    /// Calls below this are over.
    released: u64,
    /// The callers of each slot's call.
    callers: [u32; CALL_SLOTS as usize],
}

/// The calls that handlers of a kernel make to the host, one after the other: by [`KernelHandle::host_calls`]. What is taken out is
/// answered by whom it is given to, in any order, on any thread. Until then the handler waits, for as long as it said.
///
/// `into_stream` makes a `Stream` of it (feature `async`).
///
/// ```
/// # use ring_host::{Device, LaunchConfig, Runtime};
/// # use std::time::Duration;
/// ring_device::ring_kernel! {
///     /// What ten of a currency cost at the rate of now.
///     pub struct Exchange {
///         calls: {
///             /// The rate of a currency.
///             fn rate(u32) -> f32;
///         },
///     }
///
///     fn handle(ctx: &ThreadContext, currency: &u32) -> f32 {
///         let rate = ctx.call(Exchange::rate, *currency, core::time::Duration::from_millis(500));
///         rate.map_or(f32::NAN, |rate| 10.0 * rate)
///     }
/// }
/// # let second = Duration::from_secs(1);
/// let mut kernel = Runtime::open(Device::Cpu)?.launch::<Exchange>(LaunchConfig::default())?;
/// let calls = kernel.host_calls()?;
/// let server = calls.serve(|call| {
///     call.on(Exchange::rate, |currency| currency as f32 / 2.0);
/// })?;
/// kernel.activate(second)?;
/// kernel.send(3, second)?;
/// assert_eq!(kernel.recv(second)?, 15.0);
/// kernel.terminate(second)?;
/// drop(server);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct HostCalls<K: CallsHost> {
    board: Arc<Board<K>>,
    cursors: Box<[Cursor]>,
    /// The channel that is looked at first.
    turn: usize,
}

/// A call of one thread of a handler. One that is dropped without an answer is refused
/// ([`HostCallError::Refused`](ring_device::HostCallError::Refused)).
#[must_use = "a call that is dropped is refused"]
pub struct HostCall<K: CallsHost> {
    board: Arc<Board<K>>,
    channel: u32,
    call: u64,
    caller: u32,
    request: K::Call,
    is_answered: bool,
}

/// A thread that answers a kernel's calls: by [`HostCalls::serve`]. It ends when this is dropped, or when the kernel can call no more.
#[derive(Debug)]
pub struct CallServer {
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl<K: CallsHost> KernelHandle<K> {
    /// The calls of this kernel's handlers to the host. There is one owner of them; calls that nobody takes end at their deadlines.
    ///
    /// # Errors
    /// When they were asked for before.
    pub fn host_calls(&mut self) -> Result<HostCalls<K>, HostCallsError> {
        const {
            assert!(
                K::CALLS == Slots::<K>::SHAPE,
                "a kernel has the calls that it is declared with"
            )
        };
        let core = self.core();
        if !core.take_calls() {
            return Err(HostCallsError::Taken { kernel: K::NAME });
        }
        let region = core.device.region();
        let slots = (0..region.plan.channels).map(|channel| {
            // SAFETY: laid out there for calls of this kernel, zeroed before the launch, accessed as such slots only; the region stays
            // for as long as the board, which has the core.
            let slots = unsafe { CallSlots::from_raw(region.calls(channel)) };
            (slots, std::array::from_fn(|_| AtomicU32::new(0)))
        });
        let board = Board { slots: slots.collect(), core: Arc::clone(core) };
        let cursor = Cursor { next: 0, left: 0, released: 0, callers: [0; CALL_SLOTS as usize] };
        let cursors = vec![cursor; region.plan.channels as usize].into();
        Ok(HostCalls { board: Arc::new(board), cursors, turn: 0 })
    }
}

impl<K: CallsHost> HostCalls<K> {
    /// The kernel.
    #[cfg(feature = "async")]
    pub(crate) fn core(&self) -> &KernelCore {
        &self.board.core
    }

    /// A call, if there is one. Channels take turns.
    #[inline]
    pub fn try_next(&mut self) -> Option<HostCall<K>> {
        let channels = self.cursors.len();
        for k in 0..channels {
            let at = self.turn + k;
            let at = if at < channels { at } else { at - channels };
            let (slots, unanswered) = &self.board.slots[at];
            let cursor = &mut self.cursors[at];
            if cursor.left == 0 && !cursor.see(slots, unanswered) {
                continue;
            }
            let (call, caller) = (cursor.next, cursor.left.trailing_zeros());
            // The header may be seen before it; what a device writes that is lost never comes.
            let Some(request) = slots.asked(call, caller) else { continue };
            cursor.left &= cursor.left - 1;
            if cursor.left == 0 {
                cursor.next += 1;
                self.turn = if at + 1 < channels { at + 1 } else { 0 };
            } else {
                self.turn = at;
            }
            let (board, channel) = (Arc::clone(&self.board), at as u32);
            return Some(HostCall { board, channel, call, caller, request, is_answered: false });
        }
        None
    }

    /// The next call.
    ///
    /// # Errors
    /// When none has come before the deadline, or the kernel can call no more: it was terminated, or is lost.
    pub fn next(&mut self, deadline: impl Into<Deadline>) -> Result<HostCall<K>, NextCallError> {
        let (deadline, board) = (deadline.into(), Arc::clone(&self.board));
        let core = &board.core;
        let check = || match core.check() {
            Err(fault) => Err(NextCallError::Fault(fault)),
            Ok(()) if core.device.has_ended() => Err(NextCallError::Ended { kernel: K::NAME }),
            Ok(()) => Ok(()),
        };
        let found = wait(deadline, core.device.patience, || Ok(self.try_next()), check)?;
        let waited = || deadline.waited();
        found.ok_or_else(|| NextCallError::Timeout { kernel: K::NAME, waited: waited() })
    }

    /// Answers calls on a thread of its own, one after the other, by `answer`. While it waits for calls it looks for them, as long as it
    /// pays, and keeps a processor busy: that is why a call takes two microseconds.
    ///
    /// If `answer` panics, the call is refused, and the thread ends: later calls end at their deadlines.
    ///
    /// # Errors
    /// When the thread cannot be made.
    pub fn serve(
        mut self,
        mut answer: impl FnMut(HostCall<K>) + Send + 'static,
    ) -> io::Result<CallServer> {
        let ends = Arc::new(AtomicBool::new(false));
        let end = Arc::clone(&ends);
        let thread = Builder::new().name(format!("ring calls {}", K::NAME)).spawn(move || {
            while !end.load(Ordering::Relaxed) {
                let next = self.try_next().map_or_else(|| self.next(SERVED), Ok);
                match next {
                    Ok(call) => answer(call),
                    Err(NextCallError::Timeout { .. }) => {}
                    Err(error) => {
                        tracing::debug!(kernel = K::NAME, %error, "calls are no longer answered");
                        break;
                    }
                }
            }
        })?;
        Ok(CallServer { ends, thread: Some(thread) })
    }
}

impl Cursor {
    /// Gives back the slots of calls that are over; whether there is another call, which is then the one that is looked at.
    #[inline]
    fn see<Q: Message, R: Message>(
        &mut self,
        slots: &CallSlots<Q, R>,
        unanswered: &Unanswered,
    ) -> bool {
        let slot = |call: u64| (call % u64::from(CALL_SLOTS)) as usize;
        // SYNC: acquires `HostCall::end`: all answers are written.
        while self.released < self.next
            && unanswered[slot(self.released)].load(Ordering::Acquire) == 0
        {
            slots.release(self.released, self.callers[slot(self.released)]);
            self.released += 1;
        }
        if self.next - self.released >= u64::from(CALL_SLOTS) {
            return false; // the device may not call, whatever is written there
        }
        let Some(callers) = slots.announced(self.next) else { return false };
        self.callers[slot(self.next)] = callers;
        unanswered[slot(self.next)].store(callers.count_ones(), Ordering::Relaxed);
        self.left = callers;
        if callers == 0 {
            self.next += 1; // no kernel of ours calls for nobody
        }
        callers != 0
    }
}

impl<K: CallsHost> HostCall<K> {
    /// Which channel's handler calls.
    pub fn channel(&self) -> u32 {
        self.channel
    }

    /// What is asked, if that function is called.
    #[inline]
    pub fn request<Q: Message, R: Message>(&self, function: HostFn<K, Q, R>) -> Option<Q> {
        function.request(&self.request)
    }

    /// Answers it. A caller of another function than that is refused.
    #[inline]
    pub fn answer<Q: Message, R: Message>(mut self, function: HostFn<K, Q, R>, answer: R) {
        if self.request(function).is_some() {
            self.is_answered = true;
            self.write(Some(&function.answer(answer)));
        }
    }

    /// Answers it by `answer`, if that function is called; else gives it back, for another function.
    #[inline]
    pub fn on<Q: Message, R: Message>(
        self,
        function: HostFn<K, Q, R>,
        answer: impl FnOnce(Q) -> R,
    ) -> Option<HostCall<K>> {
        match self.request(function) {
            Some(request) => {
                self.answer(function, answer(request));
                None
            }
            None => Some(self),
        }
    }

    /// Once: the answer, or none if it is refused.
    #[inline]
    fn write(&self, answer: Option<&K::Answer>) {
        let (slots, unanswered) = &self.board.slots[self.channel as usize];
        slots.answer(self.call, self.caller, answer);
        // SYNC: released to `Cursor::see`.
        unanswered[(self.call % u64::from(CALL_SLOTS)) as usize].fetch_sub(1, Ordering::Release);
    }
}

impl<K: CallsHost> Drop for HostCall<K> {
    #[inline]
    fn drop(&mut self) {
        if !self.is_answered {
            self.write(None);
        }
    }
}

impl<K: CallsHost> fmt::Debug for HostCalls<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostCalls").field("kernel", &K::NAME).finish_non_exhaustive()
    }
}

impl<K: CallsHost> fmt::Debug for HostCall<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { channel, call, caller, .. } = self;
        write!(f, "call {call} of {}, channel {channel}, thread {caller} of its warp", K::NAME)
    }
}

impl CallServer {
    /// Whether the thread has ended: the kernel can call no more, or a closure has panicked.
    pub fn is_finished(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Ends the thread, and waits until it has; the panic of the closure, if that was why it ended.
    ///
    /// # Errors
    /// When the closure has panicked.
    pub fn stop(mut self) -> std::thread::Result<()> {
        self.end()
    }

    fn end(&mut self) -> std::thread::Result<()> {
        self.ends.store(true, Ordering::Relaxed);
        self.thread.take().map_or(Ok(()), JoinHandle::join)
    }
}

impl Drop for CallServer {
    fn drop(&mut self) {
        let _ = self.end(); // a panic was reported when it happened
    }
}
