//! Sending and receiving. No heap; to a persistent kernel in mapped memory no lock and no driver call
//! either, while messages flow. Any other kernel is driven by these calls.

use crate::deadline::{CHECK_EVERY, Deadline, wait};
use crate::error::{DeviceFault, RecvError, SendError};
use crate::kernel::core::Shared;
use ring_device::Kernel;
use ring_shared::ring::{Corrupt, PushError};
use ring_shared::{Consumer, Producer};
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

#[cfg(feature = "async")]
pub mod asynchronous;

/// Fruitless looks between two looks at the clock, to see whether the kernel should be checked.
const LOOKS_PER_CHECK: u32 = 256;

/// Counts fruitless looks: who only ever tries must also learn of a fault.
#[derive(Debug)]
struct Fruitless {
    looks: u32,
    checked: Instant,
}

impl Fruitless {
    fn new() -> Fruitless {
        Fruitless { looks: 0, checked: Instant::now() }
    }

    #[inline]
    fn note(&mut self, shared: &Shared) -> Result<(), DeviceFault> {
        self.looks = self.looks.wrapping_add(1);
        if self.looks.is_multiple_of(LOOKS_PER_CHECK) { self.check(shared) } else { Ok(()) }
    }

    /// The next fruitless look is followed by a look at the clock: looks have become rare.
    #[cfg(feature = "async")]
    fn hurry(&mut self) {
        self.looks |= LOOKS_PER_CHECK - 1;
    }

    #[cold]
    fn check(&mut self, shared: &Shared) -> Result<(), DeviceFault> {
        let now = Instant::now();
        if now - self.checked < CHECK_EVERY {
            return Ok(());
        }
        self.checked = now;
        shared.check()
    }
}

/// The sending half of a channel. Not `Clone`: a ring has one producer.
#[derive(Debug)]
pub struct Sender<K: Kernel> {
    shared: Arc<Shared>,
    channel: u32,
    producer: Producer,
    fruitless: Fruitless,
    of: PhantomData<fn(K)>,
}

impl<K: Kernel> Sender<K> {
    /// Sends a request if there is a free slot; `Full` gives it back.
    #[inline]
    pub fn try_send(&mut self, request: &K::Request) -> Result<(), SendError<K::Request>> {
        if !self.shared.is_active() {
            self.shared.admit()?;
        }
        let received = self.note_received();
        match self.producer.push(request, received) {
            Ok(()) => {
                self.shared.sent();
                Ok(())
            }
            Err(PushError::Full) => {
                self.shared.drive();
                self.fruitless.note(&self.shared)?;
                Err(SendError::Full(*request))
            }
            Err(PushError::Corrupt(corrupt)) => Err(self.corrupt(corrupt).into()),
        }
    }

    /// Sends a request, waiting for a free slot until the deadline; then `Full` gives it back. Waits
    /// likewise for a payload write that timed out ([`SendError::Writing`]).
    #[inline]
    pub fn send(
        &mut self,
        request: &K::Request,
        deadline: impl Into<Deadline>,
    ) -> Result<(), SendError<K::Request>> {
        match self.try_send(request) {
            Err(SendError::Full(_) | SendError::Writing { .. }) => {
                self.send_waiting(request, deadline.into())
            }
            done => done,
        }
    }

    #[cold]
    fn send_waiting(
        &mut self,
        request: &K::Request,
        deadline: Deadline,
    ) -> Result<(), SendError<K::Request>> {
        let shared = Arc::clone(&self.shared);
        let mut waits_for = SendError::Full(*request);
        let sent = wait(
            deadline,
            shared.patience,
            || match self.try_send(request) {
                Ok(()) => Ok(Some(())),
                Err(error @ (SendError::Full(_) | SendError::Writing { .. })) => {
                    waits_for = error;
                    Ok(None)
                }
                Err(error) => Err(error),
            },
            || shared.check().map_err(SendError::Fault),
        )?;
        sent.ok_or(waits_for)
    }

    /// Sends as many of the requests as there are free slots, in order; how many that is.
    #[inline]
    pub fn try_send_batch(
        &mut self,
        requests: &[K::Request],
    ) -> Result<usize, SendError<K::Request>> {
        if !self.shared.is_active() {
            self.shared.admit()?;
        }
        let received = self.note_received();
        let sent = self.producer.push_slice(requests, received);
        self.sent(sent)
    }

    /// Sends up to `most` requests, as many as there are free slots, in order; how many that is.
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
    ) -> Result<usize, SendError<K::Request>> {
        if !self.shared.is_active() {
            self.shared.admit()?;
        }
        let received = self.note_received();
        let sent = self.producer.push_each(most, received, request);
        self.sent(sent)
    }

    /// After as many as `sent` were accepted, or none.
    #[inline]
    fn sent(&mut self, sent: Result<usize, Corrupt>) -> Result<usize, SendError<K::Request>> {
        let sent = sent.map_err(|corrupt| self.corrupt(corrupt))?;
        if sent == 0 {
            self.shared.drive();
            self.fruitless.note(&self.shared)?;
        } else {
            self.shared.sent();
        }
        Ok(sent)
    }

    /// What the receiving half has received: credit for the device, and proof of consumption.
    #[inline]
    fn note_received(&mut self) -> u64 {
        let received = self.shared.received(self.channel);
        self.producer.note_consumed(received);
        received
    }

    #[cold]
    fn corrupt(&self, corrupt: Corrupt) -> DeviceFault {
        self.shared.corrupt(self.channel, corrupt)
    }
}

/// The receiving half of a channel. Not `Clone`: a ring has one consumer.
#[derive(Debug)]
pub struct Receiver<K: Kernel> {
    shared: Arc<Shared>,
    channel: u32,
    consumer: Consumer,
    /// What the sending half was told.
    noted: u64,
    /// The end was told, and nothing follows it: a channel that panicked may still publish answers from before.
    over: bool,
    fruitless: Fruitless,
    of: PhantomData<fn() -> K>,
}

impl<K: Kernel> Receiver<K> {
    /// The next response, if there is one. Responses come in the order of their requests, also
    /// those that were there before the kernel was terminated or lost.
    #[inline]
    pub fn try_recv(&mut self) -> Result<Option<K::Response>, RecvError> {
        match self.pop()? {
            None => match self.nothing() {
                Ok(()) => Ok(None),
                // What was answered before the end is here by now.
                Err(end) => match self.pop()? {
                    None => {
                        self.over = true;
                        Err(end)
                    }
                    some => Ok(some),
                },
            },
            some => Ok(some),
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
    pub fn recv(&mut self, deadline: impl Into<Deadline>) -> Result<K::Response, RecvError> {
        if let Some(response) = self.try_recv()? {
            return Ok(response);
        }
        let (deadline, shared) = (deadline.into(), Arc::clone(&self.shared));
        // A fault is told by the next look, which first takes what was answered before it.
        let check = || {
            let _ = shared.check();
            Ok(())
        };
        let found = wait(deadline, shared.patience, || self.try_recv(), check)?;
        found.ok_or_else(|| RecvError::Timeout {
            kernel: self.shared.kernel,
            channel: self.channel,
            waited: deadline.waited(),
            state: self.shared.state(),
        })
    }

    /// As many responses as are there and fit, in order; how many that is.
    #[inline]
    pub fn try_recv_batch(&mut self, responses: &mut [K::Response]) -> Result<usize, RecvError> {
        self.take(responses.len(), |consumer| consumer.pop_slice(responses))
    }

    /// Shows up to `most` responses, as many as are there, in order, to `each`; how many that is.
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
    ) -> Result<usize, RecvError> {
        self.take(most, |consumer| consumer.pop_each(most, &mut each))
    }

    /// Takes up to `most` responses by `pop`; when there is none, tells why if it will stay so.
    #[inline]
    fn take(
        &mut self,
        most: usize,
        mut pop: impl FnMut(&mut Consumer) -> Result<usize, Corrupt>,
    ) -> Result<usize, RecvError> {
        let taken = if self.over { Ok(0) } else { pop(&mut self.consumer) };
        self.note();
        match taken.map_err(|corrupt| self.corrupt(corrupt))? {
            0 if most > 0 => {}
            n => return Ok(n),
        }
        let Err(end) = self.nothing() else { return Ok(0) };
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

    /// Appends responses that are there to a fixed-capacity vector, until it is full; how many.
    #[inline]
    pub fn try_recv_into<const N: usize>(
        &mut self,
        responses: &mut heapless::Vec<K::Response, N>,
    ) -> Result<usize, RecvError> {
        let before = responses.len();
        while !responses.is_full() {
            match self.try_recv() {
                Ok(Some(response)) => drop(responses.push(response)),
                Ok(None) => break,
                Err(_) if responses.len() > before => break, // reported by the next call
                Err(error) => return Err(error),
            }
        }
        Ok(responses.len() - before)
    }

    /// Tells the sending half how far we are, if it does not know: it reads that line for every
    /// request, perhaps on another core.
    #[inline]
    fn note(&mut self) {
        if self.noted != self.consumer.next() {
            self.noted = self.consumer.next();
            // SYNC: releases our reads of the response slots to `Sender::note_received`.
            self.shared.received[self.channel as usize].0.store(self.noted, Ordering::Release);
        }
    }

    /// Nothing is there: for now, or (an error) for ever.
    #[inline]
    fn nothing(&mut self) -> Result<(), RecvError> {
        self.shared.drive();
        self.fruitless.note(&self.shared)?;
        match self.shared.is_active() {
            true => Ok(()),
            false => self.shared.end_of().map_or(Ok(()), Err),
        }
    }

    #[cold]
    fn corrupt(&mut self, corrupt: Corrupt) -> DeviceFault {
        self.over = true;
        self.shared.corrupt(self.channel, corrupt)
    }
}

/// A channel: requests out, responses back, in order.
#[derive(Debug)]
pub struct Channel<K: Kernel> {
    pub(crate) sender: Sender<K>,
    pub(crate) receiver: Receiver<K>,
}

impl<K: Kernel> Channel<K> {
    pub(crate) fn new(shared: &Arc<Shared>, channel: u32) -> Channel<K> {
        let (requests, responses) =
            (shared.region().ring(channel, 0), shared.region().ring(channel, 1));
        let (producer, consumer) = (Producer::new(requests), Consumer::new(responses));
        Channel {
            sender: Sender {
                shared: Arc::clone(shared),
                channel,
                producer,
                fruitless: Fruitless::new(),
                of: PhantomData,
            },
            receiver: Receiver {
                shared: Arc::clone(shared),
                channel,
                noted: consumer.next(),
                over: false,
                consumer,
                fruitless: Fruitless::new(),
                of: PhantomData,
            },
        }
    }

    /// Requests sent whose answers were not received.
    pub fn unanswered(&self) -> u64 {
        self.sender.producer.next().saturating_sub(self.receiver.consumer.next())
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

/// The calls of both halves on something that has a channel, named once for channels and kernels.
macro_rules! messages {
    ($(#[$doc:meta])* impl $t:ident, by |$it:ident| $channel:expr) => {
        $(#[$doc])*
        impl<K: Kernel> $t<K> {
            messages! { $it $channel,
                /// See [`Sender::try_send`](crate::Sender::try_send).
                fn try_send(request: &K::Request) -> (), SendError<K::Request> => sender;
                /// See [`Sender::send`](crate::Sender::send).
                fn send(request: &K::Request, deadline: impl Into<Deadline>)
                    -> (), SendError<K::Request> => sender;
                /// See [`Sender::try_send_batch`](crate::Sender::try_send_batch).
                fn try_send_batch(requests: &[K::Request])
                    -> usize, SendError<K::Request> => sender;
                /// See [`Sender::try_send_each`](crate::Sender::try_send_each).
                fn try_send_each(most: usize, request: impl FnMut(usize) -> K::Request)
                    -> usize, SendError<K::Request> => sender;
                /// See [`Receiver::try_recv`](crate::Receiver::try_recv).
                fn try_recv() -> Option<K::Response>, RecvError => receiver;
                /// See [`Receiver::recv`](crate::Receiver::recv).
                fn recv(deadline: impl Into<Deadline>) -> K::Response, RecvError => receiver;
                /// See [`Receiver::try_recv_batch`](crate::Receiver::try_recv_batch).
                fn try_recv_batch(responses: &mut [K::Response])
                    -> usize, RecvError => receiver;
                /// See [`Receiver::try_recv_each`](crate::Receiver::try_recv_each).
                fn try_recv_each(most: usize, each: impl FnMut(&K::Response))
                    -> usize, RecvError => receiver;
            }
        }
    };
    ($it:ident $channel:expr, $($(#[$doc:meta])*
        fn $name:ident($($arg:ident: $t:ty),*) -> $ok:ty, $error:ty => $half:ident;)+) => {
        $($(#[$doc])* #[inline] pub fn $name(&mut self, $($arg: $t),*) -> Result<$ok, $error> {
            let $it = self;
            $channel.$half.$name($($arg),*)
        })+
    };
}
pub(crate) use messages;

messages! {
    /// As on the halves.
    impl Channel, by |channel| channel
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
