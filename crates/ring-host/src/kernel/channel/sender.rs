//! The sending half of a channel.

use super::idle_polls::IdlePolls;
use crate::deadline::{Deadline, wait};
use crate::error::{DeviceFault, SendTimeoutError, TrySendError};
use crate::kernel::core::KernelCore;
use ring_device::Kernel;
use ring_shared::Outbox;
use ring_shared::ring::{Corrupt, PushError};
use std::marker::PhantomData;
use std::sync::Arc;

/// The sending half of a channel. Not `Clone`: a ring has one producer.
#[derive(Debug)]
pub struct Sender<K: Kernel> {
    pub(super) core: Arc<KernelCore>,
    pub(super) channel: u32,
    pub(super) outbox: Outbox,
    /// There was no room since something was sent, which has been counted.
    pub(super) is_stalled: bool,
    /// If there is a trace: when it was last asked to send, in nanoseconds of the trace.
    pub(super) asked: u64,
    pub(super) idle_polls: IdlePolls,
    pub(super) of: PhantomData<fn(K)>,
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
    pub(super) fn offer(&mut self, request: &K::Request) -> Result<(), TrySendError<()>> {
        let received = self.admitted()?;
        match self.outbox.push(request, received) {
            Ok(()) => {
                self.note_sent(1);
                Ok(())
            }
            Err(PushError::Full) => {
                self.note_full()?;
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
        let (core, channel) = (Arc::clone(&self.core), self.channel);
        wait_to_send((&core, channel), refused, deadline, || self.offer(request))
    }

    /// Requests that the ring has room for, those included that wait in it.
    #[inline]
    pub fn capacity(&self) -> usize {
        self.core.device.region().plan.capacity as usize
    }

    /// Requests that are in the ring, as far as the host knows: the device tells what it has taken when it
    /// finds no more, and at the latest every quarter of the ring.
    #[inline]
    pub fn len(&self) -> usize {
        let taken = self.core.device.taken(self.channel);
        (self.outbox.next().saturating_sub(taken) as usize).min(self.capacity())
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
    /// told as 0. Few requests, that all fit the channel's window ([`LaunchConfig::window`](crate::LaunchConfig::window)),
    /// go inline one by one, and are answered sooner.
    #[inline]
    pub fn try_send_batch(&mut self, requests: &[K::Request]) -> Result<usize, TrySendError<()>> {
        let received = self.admitted()?;
        let sent = match self.outbox.push_slice_inline(requests, received) {
            Ok(true) => Ok(requests.len()),
            Ok(false) => self.outbox.push_slice(requests, received),
            Err(corrupt) => Err(corrupt),
        };
        self.sent(sent)
    }

    /// Sends up to `most` requests, as many as there are free slots, in order; how many that is, 0 if the
    /// ring is full.
    /// The `k`th is what `request(k)` makes, which goes straight into the ring; or inline, as with
    /// [`try_send_batch`](Self::try_send_batch). If `request` panics, none of this call's requests is sent.
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
        mut request: impl FnMut(usize) -> K::Request,
    ) -> Result<usize, TrySendError<()>> {
        let received = self.admitted()?;
        let sent = match self.outbox.push_each_inline(most, received, &mut request) {
            Ok(true) => Ok(most),
            Ok(false) => self.outbox.push_each(most, received, request),
            Err(corrupt) => Err(corrupt),
        };
        self.sent(sent)
    }

    /// After as many as `sent` were accepted, or none.
    #[inline]
    fn sent(&mut self, sent: Result<usize, Corrupt>) -> Result<usize, TrySendError<()>> {
        let sent = sent.map_err(|corrupt| self.corrupt(corrupt))?;
        if sent == 0 {
            self.note_full()?;
        } else {
            self.note_sent(sent as u64);
        }
        Ok(sent)
    }

    /// After so many were accepted, all inline or all in slots.
    #[inline]
    fn note_sent(&mut self, n: u64) {
        self.is_stalled = false;
        if let Some(trace) = self.core.device.traces.sent(self.channel) {
            trace.note(self.outbox.next().wrapping_sub(n), n, self.asked);
        }
        let counts = self.core.device.sends(self.channel);
        counts.sent.add(n);
        if self.outbox.ends_in_slots() {
            counts.in_slots.add(n);
        }
        self.core.after_send();
    }

    /// After there was no room.
    #[inline]
    fn note_full(&mut self) -> Result<(), DeviceFault> {
        if !std::mem::replace(&mut self.is_stalled, true) {
            self.core.device.sends(self.channel).stalls.add(1);
        }
        self.idle_polls.note(&self.core)
    }

    /// What the receiving half has received, if messages are taken; else why not.
    #[inline]
    pub(crate) fn admitted(&mut self) -> Result<u64, TrySendError<()>> {
        if !self.core.device.is_active() {
            self.core.device.admit()?;
        }
        let traces = &self.core.device.traces;
        if traces.is_on() {
            self.asked = traces.now();
        }
        Ok(self.note_received())
    }

    /// What the receiving half has received: credit for the device, and proof of consumption.
    #[inline]
    fn note_received(&mut self) -> u64 {
        let received = self.core.device.received(self.channel);
        self.outbox.note_consumed(received);
        received
    }

    #[cold]
    pub(super) fn corrupt(&self, corrupt: Corrupt) -> DeviceFault {
        self.core.device.corrupt(self.channel, corrupt)
    }
}

/// Offers a request to a channel again and again, after it was refused once, until it is taken or the deadline has passed.
#[cold]
pub(super) fn wait_to_send(
    (core, channel): (&KernelCore, u32),
    refused: TrySendError<()>,
    deadline: Deadline,
    mut offer: impl FnMut() -> Result<(), TrySendError<()>>,
) -> Result<(), SendTimeoutError<()>> {
    let mut waited_for = refused.waits_for()?;
    let look = || match offer() {
        Ok(()) => Ok(Some(())),
        Err(refused) => refused.waits_for().map(|what| {
            waited_for = what;
            None
        }),
    };
    let fault = |fault| SendTimeoutError::Fault { message: (), fault };
    let sent = wait(deadline, core.device.patience, look, || core.check().map_err(fault))?;
    let (kernel, waited) = (core.device.name, deadline.waited());
    sent.ok_or(SendTimeoutError::Timeout { message: (), kernel, channel, waited, waited_for })
}
