//! Sending and receiving. No heap; to a persistent kernel in mapped memory no lock and no driver call
//! either, while messages flow. Any other kernel is driven by these calls.

use crate::deadline::{CHECK_EVERY, Deadline, wait};
use crate::error::{
    ChannelError, DeviceFault, RecvTimeoutError, SendTimeoutError, TryRecvError, TrySendError,
};
use crate::kernel::core::KernelCore;
use crate::memory::plan::Direction;
use ring_device::Kernel;
use ring_shared::ring::{CONTROL, Control, Corrupt, PushError};
use ring_shared::{Consumer, Producer};
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Instant;

#[cfg(feature = "async")]
pub mod asynchronous;

/// Idle polls between two looks at the clock, to see whether the kernel should be checked.
const LOOKS_PER_CHECK: u32 = 256;

/// Counts idle polls: a caller that only ever tries must also learn of a fault.
#[derive(Debug)]
struct IdlePolls {
    looks: u32,
    checked: Instant,
}

impl IdlePolls {
    fn new() -> IdlePolls {
        IdlePolls { looks: 0, checked: Instant::now() }
    }

    #[inline]
    fn note(&mut self, core: &KernelCore) -> Result<(), DeviceFault> {
        self.looks = self.looks.wrapping_add(1);
        if self.looks.is_multiple_of(LOOKS_PER_CHECK) { self.check(core) } else { Ok(()) }
    }

    /// The next idle poll looks at the clock: polls have become rare.
    #[cfg(feature = "async")]
    fn force_check(&mut self) {
        self.looks |= LOOKS_PER_CHECK - 1;
    }

    #[cold]
    fn check(&mut self, core: &KernelCore) -> Result<(), DeviceFault> {
        let now = Instant::now();
        if now - self.checked < CHECK_EVERY {
            return Ok(());
        }
        self.checked = now;
        core.check()
    }
}

/// The sending half of a channel. Not `Clone`: a ring has one producer.
#[derive(Debug)]
pub struct Sender<K: Kernel> {
    core: Arc<KernelCore>,
    channel: u32,
    producer: Producer,
    idle_polls: IdlePolls,
    of: PhantomData<fn(K)>,
}

impl<K: Kernel> Sender<K> {
    /// Sends a request if there is a free slot now. An error gives it back.
    ///
    /// ```
    /// # use ring_host::{Device, LaunchConfig, Runtime, TrySendError, kernels::{Echo, EchoMessage}};
    /// # use std::time::Duration;
    /// # let second = Duration::from_secs(1);
    /// # let mut kernel = Runtime::open(Device::Cpu)?.launch::<Echo>(LaunchConfig::default())?;
    /// # kernel.activate(second)?;
    /// let mut request = EchoMessage::from_seed(7);
    /// while let Err(error) = kernel.try_send(request) {
    ///     let TrySendError::Full(back) = error else { return Err(error.into()) };
    ///     request = back; // there is time for something else now
    /// }
    /// # kernel.terminate(second)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn try_send(&mut self, request: K::Request) -> Result<(), TrySendError<K::Request>> {
        self.offer(&request).map_err(|refused| refused.map(|()| request))
    }

    /// Sends a request, waiting until the deadline for a free slot, and for a payload write that timed
    /// out. An error gives it back.
    #[inline]
    pub fn send(
        &mut self,
        request: K::Request,
        deadline: impl Into<Deadline>,
    ) -> Result<(), SendTimeoutError<K::Request>> {
        let Err(refused) = self.offer(&request) else { return Ok(()) };
        let sent = self.send_waiting(refused, &request, deadline.into());
        sent.map_err(|error| error.map(|()| request))
    }

    /// Sends a request where it is: it may be large.
    #[inline]
    fn offer(&mut self, request: &K::Request) -> Result<(), TrySendError<()>> {
        if !self.core.device.is_active() {
            self.core.device.admit()?;
        }
        let received = self.note_received();
        match self.producer.push(request, received) {
            Ok(()) => {
                self.core.after_send();
                Ok(())
            }
            Err(PushError::Full) => {
                self.core.after_idle_poll();
                self.idle_polls.note(&self.core)?;
                Err(TrySendError::Full(()))
            }
            Err(PushError::Corrupt(corrupt)) => Err(self.corrupt(corrupt).into()),
        }
    }

    #[cold]
    fn send_waiting(
        &mut self,
        refused: TrySendError<()>,
        request: &K::Request,
        deadline: Deadline,
    ) -> Result<(), SendTimeoutError<()>> {
        let mut waited_for = refused.waits_for()?;
        let core = Arc::clone(&self.core);
        let look = || match self.offer(request) {
            Ok(()) => Ok(Some(())),
            Err(refused) => refused.waits_for().map(|what| {
                waited_for = what;
                None
            }),
        };
        let fault = |fault| SendTimeoutError::Fault { message: (), fault };
        let sent = wait(deadline, core.device.patience, look, || core.check().map_err(fault))?;
        sent.ok_or_else(|| SendTimeoutError::Timeout {
            message: (),
            kernel: self.core.device.name,
            channel: self.channel,
            waited: deadline.waited(),
            waited_for,
        })
    }

    /// Requests that the ring has room for, those included that wait in it.
    #[inline]
    pub fn capacity(&self) -> usize {
        self.core.device.region().capacity() as usize
    }

    /// Requests that are in the ring, as far as the host knows: the device tells what it has taken when it
    /// finds no more, and at the latest every quarter of the ring.
    #[inline]
    pub fn len(&self) -> usize {
        let consumed = self.core.device.region().channel(self.channel).consumed();
        let taken = consumed.max(self.core.device.received(self.channel));
        (self.producer.next().saturating_sub(taken) as usize).min(self.capacity())
    }

    /// Whether the host knows that the device has taken every request.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether there is no room for another request, as far as the host knows.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.len() == self.capacity()
    }

    /// Sends as many of the requests as there are free slots, in order; how many that is. A full ring is
    /// told as 0.
    #[inline]
    pub fn try_send_batch(&mut self, requests: &[K::Request]) -> Result<usize, TrySendError<()>> {
        if !self.core.device.is_active() {
            self.core.device.admit()?;
        }
        let received = self.note_received();
        let sent = self.producer.push_slice(requests, received);
        self.sent(sent)
    }

    /// Sends up to `most` requests, as many as there are free slots, in order; how many that is, 0 if the
    /// ring is full.
    /// The `k`th is what `request(k)` makes, which goes straight into the ring. If `request`
    /// panics, none of this call's requests is sent.
    ///
    /// ```
    /// # use ring_host::{Device, LaunchConfig, Runtime, kernels::{Echo, EchoMessage}};
    /// # use std::time::Duration;
    /// # let second = Duration::from_secs(1);
    /// # let mut kernel = Runtime::open(Device::Cpu)?.launch::<Echo>(LaunchConfig::default())?;
    /// # kernel.activate(second)?;
    /// let sent = kernel.try_send_each(3, |k| EchoMessage::from_seed(k as u64))?;
    /// assert_eq!(sent, 3);
    /// for k in 0..3 {
    ///     assert_eq!(kernel.recv(second)?, EchoMessage::from_seed(k).answer());
    /// }
    /// # kernel.terminate(second)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn try_send_each(
        &mut self,
        most: usize,
        request: impl FnMut(usize) -> K::Request,
    ) -> Result<usize, TrySendError<()>> {
        if !self.core.device.is_active() {
            self.core.device.admit()?;
        }
        let received = self.note_received();
        let sent = self.producer.push_each(most, received, request);
        self.sent(sent)
    }

    /// After as many as `sent` were accepted, or none.
    #[inline]
    fn sent(&mut self, sent: Result<usize, Corrupt>) -> Result<usize, TrySendError<()>> {
        let sent = sent.map_err(|corrupt| self.corrupt(corrupt))?;
        if sent == 0 {
            self.core.after_idle_poll();
            self.idle_polls.note(&self.core)?;
        } else {
            self.core.after_send();
        }
        Ok(sent)
    }

    /// What the receiving half has received: credit for the device, and proof of consumption.
    #[inline]
    fn note_received(&mut self) -> u64 {
        let received = self.core.device.received(self.channel);
        self.producer.note_consumed(received);
        received
    }

    #[cold]
    fn corrupt(&self, corrupt: Corrupt) -> DeviceFault {
        self.core.device.corrupt(self.channel, corrupt)
    }
}

/// The receiving half of a channel. Not `Clone`: a ring has one consumer.
#[derive(Debug)]
pub struct Receiver<K: Kernel> {
    core: Arc<KernelCore>,
    channel: u32,
    consumer: Consumer,
    /// What was published to the sending half.
    published: u64,
    /// The end was returned, and nothing follows it: a channel that panicked may still publish answers from before.
    over: bool,
    idle_polls: IdlePolls,
    of: PhantomData<fn() -> K>,
}

impl<K: Kernel> Receiver<K> {
    /// The next response, or [`Empty`](TryRecvError::Empty) if there is none yet. Responses come in the
    /// order of their requests, also those that were there before the kernel was terminated or lost.
    #[inline]
    pub fn try_recv(&mut self) -> Result<K::Response, TryRecvError> {
        match self.pop()? {
            Some(response) => Ok(response),
            None => match self.nothing() {
                TryRecvError::Empty => Err(TryRecvError::Empty),
                // What was answered before the end is here by now.
                end => match self.pop()? {
                    Some(response) => Ok(response),
                    None => {
                        self.over = true;
                        Err(end)
                    }
                },
            },
        }
    }

    #[inline]
    fn pop(&mut self) -> Result<Option<K::Response>, DeviceFault> {
        if self.over {
            return Ok(None);
        }
        let popped = self.consumer.pop();
        self.note();
        popped.map_err(|corrupt| self.corrupt(corrupt))
    }

    /// The next response, waiting for it until the deadline; also if the kernel is not active, since
    /// another thread may activate it. The error says so if it was not.
    #[inline]
    pub fn recv(&mut self, deadline: impl Into<Deadline>) -> Result<K::Response, RecvTimeoutError> {
        if let Some(response) = self.look()? {
            return Ok(response);
        }
        let (deadline, core) = (deadline.into(), Arc::clone(&self.core));
        // A fault is returned by the next look, which first takes what was answered before it.
        let check = || {
            let _ = core.check();
            Ok(())
        };
        let found = wait(deadline, core.device.patience, || self.look(), check)?;
        found.ok_or_else(|| RecvTimeoutError::Timeout {
            kernel: self.core.device.name,
            channel: self.channel,
            waited: deadline.waited(),
            state: self.core.device.state(),
        })
    }

    /// The next response, if there is one.
    #[inline]
    fn look(&mut self) -> Result<Option<K::Response>, RecvTimeoutError> {
        match self.try_recv() {
            Ok(response) => Ok(Some(response)),
            Err(error) => RecvTimeoutError::unless_empty(error).map(|()| None),
        }
    }

    /// The responses that are there, one after the other, until there is none. Why there is no more, the
    /// next [`try_recv`](Self::try_recv) tells.
    ///
    /// ```
    /// # use ring_host::{Device, LaunchConfig, Runtime, kernels::{Echo, EchoMessage}};
    /// # use std::time::Duration;
    /// # let second = Duration::from_secs(1);
    /// # let mut kernel = Runtime::open(Device::Cpu)?.launch::<Echo>(LaunchConfig::default())?;
    /// # kernel.activate(second)?;
    /// kernel.try_send_batch(&[0, 1, 2].map(EchoMessage::from_seed))?;
    /// let mut answers = Vec::new();
    /// while answers.len() < 3 {
    ///     answers.extend(kernel.channel(0)?.try_iter());
    /// }
    /// assert_eq!(answers, [0, 1, 2].map(|seed| EchoMessage::from_seed(seed).answer()));
    /// # kernel.terminate(second)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn try_iter(&mut self) -> TryIter<'_, K> {
        TryIter { receiver: self }
    }

    /// Responses that the ring has room for.
    #[inline]
    pub fn capacity(&self) -> usize {
        self.core.device.region().capacity() as usize
    }

    /// Responses that are in the ring, as far as the host knows; the last one may need a moment more until
    /// it can be received.
    #[inline]
    pub fn len(&self) -> usize {
        if self.over {
            return 0;
        }
        let bell = &self.core.device.region().channel(self.channel).response_bell;
        let tail = Control::from_words(bell.atoms[CONTROL].load()).tail;
        let there = tail.wrapping_sub(self.consumer.next() as u32) as usize;
        there.min(self.capacity()) // the device's word: bounded
    }

    /// Whether no response is in the ring, as far as the host knows.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether the device has no room for another response until one is received, as far as the host
    /// knows.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.len() == self.capacity()
    }

    /// As many responses as are there and fit, in order; how many that is. An empty ring is told as 0.
    #[inline]
    pub fn try_recv_batch(&mut self, responses: &mut [K::Response]) -> Result<usize, TryRecvError> {
        self.take(responses.len(), |consumer| consumer.pop_slice(responses))
    }

    /// Shows up to `most` responses, as many as are there, in order, to `each`; how many that is, 0 if the
    /// ring is empty.
    /// Each is received before it is shown: if `each` panics, the next call goes on behind it.
    ///
    /// ```
    /// # use ring_host::{Device, LaunchConfig, Runtime, kernels::{Echo, EchoMessage}};
    /// # use std::time::Duration;
    /// # let second = Duration::from_secs(1);
    /// # let mut kernel = Runtime::open(Device::Cpu)?.launch::<Echo>(LaunchConfig::default())?;
    /// # kernel.activate(second)?;
    /// let mut left = kernel.try_send_batch(&[0, 1, 2].map(EchoMessage::from_seed))?;
    /// let mut expected = [0, 1, 2].map(EchoMessage::from_seed).into_iter();
    /// while left > 0 {
    ///     left -= kernel.try_recv_each(8, |response| {
    ///         assert_eq!(Some(*response), expected.next().map(|request| request.answer()));
    ///     })?;
    /// }
    /// # kernel.terminate(second)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn try_recv_each(
        &mut self,
        most: usize,
        mut each: impl FnMut(&K::Response),
    ) -> Result<usize, TryRecvError> {
        self.take(most, |consumer| consumer.pop_each(most, &mut each))
    }

    /// Takes up to `most` responses by `pop`; when there is none, tells why if it will stay so.
    #[inline]
    fn take(
        &mut self,
        most: usize,
        mut pop: impl FnMut(&mut Consumer) -> Result<usize, Corrupt>,
    ) -> Result<usize, TryRecvError> {
        let taken = if self.over { Ok(0) } else { pop(&mut self.consumer) };
        self.note();
        match taken.map_err(|corrupt| self.corrupt(corrupt))? {
            0 if most > 0 => {}
            n => return Ok(n),
        }
        let end = match self.nothing() {
            TryRecvError::Empty => return Ok(0),
            end => end,
        };
        // What was answered before the end is here by now.
        let taken = if self.over { Ok(0) } else { pop(&mut self.consumer) };
        self.note();
        match taken.map_err(|corrupt| self.corrupt(corrupt))? {
            0 => {
                self.over = true;
                Err(end)
            }
            n => Ok(n),
        }
    }

    /// Tells the sending half how far we are, if it does not know: it reads that line for every
    /// request, perhaps on another core.
    #[inline]
    fn note(&mut self) {
        if self.published != self.consumer.next() {
            self.published = self.consumer.next();
            self.core.device.publish_received(self.channel, self.published);
        }
    }

    /// Why nothing is there: `Empty` for now, all else for ever.
    #[inline]
    fn nothing(&mut self) -> TryRecvError {
        self.core.after_idle_poll();
        match self.idle_polls.note(&self.core) {
            Err(fault) => fault.into(),
            Ok(()) if self.core.device.is_active() => TryRecvError::Empty,
            Ok(()) => self.core.device.end().unwrap_or(TryRecvError::Empty),
        }
    }

    #[cold]
    fn corrupt(&mut self, corrupt: Corrupt) -> DeviceFault {
        self.over = true;
        self.core.device.corrupt(self.channel, corrupt)
    }
}

/// The responses that are there: see [`Receiver::try_iter`].
#[derive(Debug)]
#[must_use = "iterators do nothing unless consumed"]
pub struct TryIter<'a, K: Kernel> {
    receiver: &'a mut Receiver<K>,
}

impl<K: Kernel> Iterator for TryIter<'_, K> {
    type Item = K::Response;

    #[inline]
    fn next(&mut self) -> Option<K::Response> {
        self.receiver.try_recv().ok()
    }
}

/// A channel: requests out, responses back, in order.
#[derive(Debug)]
pub struct Channel<K: Kernel> {
    pub(crate) sender: Sender<K>,
    pub(crate) receiver: Receiver<K>,
}

impl<K: Kernel> Channel<K> {
    pub(crate) fn new(core: &Arc<KernelCore>, channel: u32) -> Channel<K> {
        let (requests, responses) = (
            core.device.region().ring(channel, Direction::Requests),
            core.device.region().ring(channel, Direction::Responses),
        );
        let (producer, consumer) = (Producer::new(requests), Consumer::new(responses));
        Channel {
            sender: Sender {
                core: Arc::clone(core),
                channel,
                producer,
                idle_polls: IdlePolls::new(),
                of: PhantomData,
            },
            receiver: Receiver {
                core: Arc::clone(core),
                channel,
                published: consumer.next(),
                over: false,
                consumer,
                idle_polls: IdlePolls::new(),
                of: PhantomData,
            },
        }
    }

    /// Requests sent whose answers were not received.
    pub fn unanswered(&self) -> u64 {
        self.sender.producer.next().saturating_sub(self.receiver.consumer.next())
    }

    /// Messages that each of its two rings has room for.
    pub fn capacity(&self) -> usize {
        self.sender.capacity()
    }

    /// See [`Receiver::try_iter`].
    pub fn try_iter(&mut self) -> TryIter<'_, K> {
        self.receiver.try_iter()
    }

    /// Both halves, borrowed: for scoped threads.
    pub fn split(&mut self) -> (&mut Sender<K>, &mut Receiver<K>) {
        (&mut self.sender, &mut self.receiver)
    }

    /// Both halves, owned.
    pub fn into_split(self) -> (Sender<K>, Receiver<K>) {
        (self.sender, self.receiver)
    }
}

/// The calls of both halves on something that has a channel, named once for channels and kernels. There may be none;
/// then a request is given back with the reason.
macro_rules! messages {
    ($(#[$doc:meta])* impl $t:ident, by |$it:ident| $channel:expr) => {
        $(#[$doc])*
        impl<K: Kernel> $t<K> {
            /// See [`Sender::try_send`](crate::Sender::try_send).
            #[inline]
            pub fn try_send(
                &mut self,
                request: K::Request,
            ) -> Result<(), TrySendError<K::Request>> {
                let $it = self;
                match $channel {
                    Ok(channel) => channel.sender.try_send(request),
                    Err(error) => Err(TrySendError::Channel { message: request, error }),
                }
            }

            /// See [`Sender::send`](crate::Sender::send).
            #[inline]
            pub fn send(
                &mut self,
                request: K::Request,
                deadline: impl Into<Deadline>,
            ) -> Result<(), SendTimeoutError<K::Request>> {
                let $it = self;
                match $channel {
                    Ok(channel) => channel.sender.send(request, deadline),
                    Err(error) => Err(SendTimeoutError::Channel { message: request, error }),
                }
            }

            messages! { $it $channel,
                /// See [`Sender::try_send_batch`](crate::Sender::try_send_batch).
                fn try_send_batch(requests: &[K::Request]) -> usize, TrySendError<()> => sender;
                /// See [`Sender::try_send_each`](crate::Sender::try_send_each).
                fn try_send_each(most: usize, request: impl FnMut(usize) -> K::Request)
                    -> usize, TrySendError<()> => sender;
                /// See [`Receiver::try_recv`](crate::Receiver::try_recv).
                fn try_recv() -> K::Response, TryRecvError => receiver;
                /// See [`Receiver::recv`](crate::Receiver::recv).
                fn recv(deadline: impl Into<Deadline>)
                    -> K::Response, RecvTimeoutError => receiver;
                /// See [`Receiver::try_recv_batch`](crate::Receiver::try_recv_batch).
                fn try_recv_batch(responses: &mut [K::Response])
                    -> usize, TryRecvError => receiver;
                /// See [`Receiver::try_recv_each`](crate::Receiver::try_recv_each).
                fn try_recv_each(most: usize, each: impl FnMut(&K::Response))
                    -> usize, TryRecvError => receiver;
            }
        }
    };
    ($it:ident $channel:expr, $($(#[$doc:meta])*
        fn $name:ident($($arg:ident: $t:ty),*) -> $ok:ty, $error:ty => $half:ident;)+) => {
        $($(#[$doc])* #[inline] pub fn $name(&mut self, $($arg: $t),*) -> Result<$ok, $error> {
            let $it = self;
            $channel?.$half.$name($($arg),*)
        })+
    };
}
pub(crate) use messages;

messages! {
    /// As on the halves.
    impl Channel, by |channel| Ok::<_, ChannelError>(channel)
}

#[cfg(test)]
mod tests {
    use crate::kernels::{Echo, EchoMessage};
    use crate::{Device, LaunchConfig, Runtime};
    use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
    use std::time::{Duration, Instant};

    const PATIENCE: Duration = Duration::from_secs(20);

    /// Closures that panic now and then: each request is answered once, in order, and each answer is
    /// shown once, also those of runs that come round the ring's end.
    #[test]
    fn panics_lose_nothing() {
        let host = Runtime::open(Device::Cpu).unwrap();
        let mut kernel = host.launch::<Echo>(LaunchConfig::default()).unwrap();
        kernel.activate(PATIENCE).unwrap();
        let (mut sent, mut shown, mut calls) = (0u64, 0u64, 0u32);
        let begun = Instant::now();
        while shown < 3000 {
            assert!(begun.elapsed() < PATIENCE, "{shown} shown of {sent}");
            calls += 1;
            let (most, first) = (1 + calls as usize % 50, sent);
            let pushed = catch_unwind(AssertUnwindSafe(|| {
                kernel.try_send_each(most, |k| {
                    if calls.is_multiple_of(3) && k == most / 2 {
                        resume_unwind(Box::new(()));
                    }
                    EchoMessage::from_seed(first + k as u64)
                })
            }));
            // Of a run that panicked none was sent.
            sent += pushed.map_or(0, |pushed| pushed.unwrap() as u64);
            let popped = catch_unwind(AssertUnwindSafe(|| {
                kernel.try_recv_each(most, |answer| {
                    assert_eq!(*answer, EchoMessage::from_seed(shown).answer());
                    shown += 1;
                    if shown.is_multiple_of(7) {
                        resume_unwind(Box::new(()));
                    }
                })
            }));
            match popped {
                Ok(popped) => drop(popped.unwrap()),
                Err(panic) if panic.is::<()>() => {}
                Err(panic) => resume_unwind(panic),
            }
        }
        while shown < sent {
            assert_eq!(kernel.recv(PATIENCE).unwrap(), EchoMessage::from_seed(shown).answer());
            shown += 1;
        }
        let summary = kernel.terminate(PATIENCE).unwrap();
        assert_eq!((summary.processed, summary.unhandled), (sent, 0));
    }
}
