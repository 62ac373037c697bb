//! Sending and receiving. No heap; to a persistent kernel in mapped memory no lock and no driver call
//! either, while messages flow. Any other kernel is driven by these calls.

use crate::deadline::{CHECK_EVERY, Deadline, wait};
use crate::error::{DeviceFault, RecvError, SendError};
use crate::shared::Shared;
use ring_device::Kernel;
use ring_shared::ring::{Corrupt, PushError};
use ring_shared::{Consumer, Producer};
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

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

/// The sending half of a lane. Not `Clone`: a ring has one producer.
#[derive(Debug)]
pub struct Sender<K: Kernel> {
    shared: Arc<Shared>,
    lane: u32,
    producer: Producer,
    fruitless: Fruitless,
    of: PhantomData<fn(K)>,
}

impl<K: Kernel> Sender<K> {
    /// Sends a request if there is a free slot; `Full` gives it back.
    #[inline]
    pub fn try_send(&mut self, request: &K::Request) -> Result<(), SendError<K::Request>> {
        if !self.shared.is_active() {
            return Err(self.shared.refusal());
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

    /// Sends a request, waiting for a free slot until the deadline; then `Full` gives it back.
    #[inline]
    pub fn send(
        &mut self,
        request: &K::Request,
        deadline: impl Into<Deadline>,
    ) -> Result<(), SendError<K::Request>> {
        match self.try_send(request) {
            Err(SendError::Full(_)) => self.send_waiting(request, deadline.into()),
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
        let sent = wait(
            deadline,
            shared.patience,
            || match self.try_send(request) {
                Ok(()) => Ok(Some(())),
                Err(SendError::Full(_)) => Ok(None),
                Err(error) => Err(error),
            },
            || shared.check().map_err(SendError::Fault),
        )?;
        sent.ok_or(SendError::Full(*request))
    }

    /// Sends as many of the requests as there are free slots, in order; how many that is.
    #[inline]
    pub fn try_send_batch(
        &mut self,
        requests: &[K::Request],
    ) -> Result<usize, SendError<K::Request>> {
        if !self.shared.is_active() {
            return Err(self.shared.refusal());
        }
        let received = self.note_received();
        let sent = self.producer.push_slice(requests, received);
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
        let received = self.shared.received(self.lane);
        self.producer.note_consumed(received);
        received
    }

    #[cold]
    fn corrupt(&self, corrupt: Corrupt) -> DeviceFault {
        self.shared.corrupt(self.lane, corrupt)
    }
}

/// The receiving half of a lane. Not `Clone`: a ring has one consumer.
#[derive(Debug)]
pub struct Receiver<K: Kernel> {
    shared: Arc<Shared>,
    lane: u32,
    consumer: Consumer,
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
                Err(end) => self.pop()?.map(Some).ok_or(end),
            },
            some => Ok(some),
        }
    }

    #[inline]
    fn pop(&mut self) -> Result<Option<K::Response>, DeviceFault> {
        let popped = self.consumer.pop();
        self.note();
        popped.map_err(|corrupt| self.corrupt(corrupt))
    }

    /// The next response, waiting for it until the deadline.
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
        let (kernel, lane) = (self.shared.kernel, self.lane);
        found.ok_or_else(|| RecvError::Timeout { kernel, lane, waited: deadline.waited() })
    }

    /// As many responses as are there and fit, in order; how many that is.
    #[inline]
    pub fn try_recv_batch(&mut self, responses: &mut [K::Response]) -> Result<usize, RecvError> {
        match self.pop_slice(responses)? {
            0 if !responses.is_empty() => match self.nothing() {
                Ok(()) => Ok(0),
                Err(end) => match self.pop_slice(responses)? {
                    0 => Err(end),
                    n => Ok(n),
                },
            },
            n => Ok(n),
        }
    }

    #[inline]
    fn pop_slice(&mut self, responses: &mut [K::Response]) -> Result<usize, DeviceFault> {
        let popped = self.consumer.pop_slice(responses);
        self.note();
        popped.map_err(|corrupt| self.corrupt(corrupt))
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

    /// Tells the sending half how far we are.
    #[inline]
    fn note(&self) {
        // SYNC: releases our reads of the response slots to `Sender::note_received`.
        let received = &self.shared.received[self.lane as usize].0;
        received.store(self.consumer.next(), Ordering::Release);
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
    fn corrupt(&self, corrupt: Corrupt) -> DeviceFault {
        self.shared.corrupt(self.lane, corrupt)
    }
}

/// A lane: requests out, responses back, in order.
#[derive(Debug)]
pub struct Lane<K: Kernel> {
    pub(crate) sender: Sender<K>,
    pub(crate) receiver: Receiver<K>,
}

impl<K: Kernel> Lane<K> {
    pub(crate) fn new(shared: &Arc<Shared>, lane: u32) -> Lane<K> {
        let (requests, responses) = (shared.region().ring(lane, 0), shared.region().ring(lane, 1));
        let (producer, consumer) = (Producer::new(requests), Consumer::new(responses));
        Lane {
            sender: Sender {
                shared: Arc::clone(shared),
                lane,
                producer,
                fruitless: Fruitless::new(),
                of: PhantomData,
            },
            receiver: Receiver {
                shared: Arc::clone(shared),
                lane,
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

/// The calls of both halves on something that has a lane, named once for lanes and kernels.
macro_rules! messages {
    ($(#[$doc:meta])* impl $t:ident, by |$it:ident| $lane:expr) => {
        $(#[$doc])*
        impl<K: Kernel> $t<K> {
            messages! { $it $lane,
                /// See [`Sender::try_send`](crate::Sender::try_send).
                fn try_send(request: &K::Request) -> (), SendError<K::Request> => sender;
                /// See [`Sender::send`](crate::Sender::send).
                fn send(request: &K::Request, deadline: impl Into<Deadline>)
                    -> (), SendError<K::Request> => sender;
                /// See [`Sender::try_send_batch`](crate::Sender::try_send_batch).
                fn try_send_batch(requests: &[K::Request])
                    -> usize, SendError<K::Request> => sender;
                /// See [`Receiver::try_recv`](crate::Receiver::try_recv).
                fn try_recv() -> Option<K::Response>, RecvError => receiver;
                /// See [`Receiver::recv`](crate::Receiver::recv).
                fn recv(deadline: impl Into<Deadline>) -> K::Response, RecvError => receiver;
                /// See [`Receiver::try_recv_batch`](crate::Receiver::try_recv_batch).
                fn try_recv_batch(responses: &mut [K::Response])
                    -> usize, RecvError => receiver;
            }
        }
    };
    ($it:ident $lane:expr, $($(#[$doc:meta])*
        fn $name:ident($($arg:ident: $t:ty),*) -> $ok:ty, $error:ty => $half:ident;)+) => {
        $($(#[$doc])* #[inline] pub fn $name(&mut self, $($arg: $t),*) -> Result<$ok, $error> {
            let $it = self;
            $lane.$half.$name($($arg),*)
        })+
    };
}
pub(crate) use messages;

messages! {
    /// As on the halves.
    impl Lane, by |lane| lane
}
