//! The receiving half of a channel.

use super::idle_polls::IdlePolls;
use super::select::{Incoming, Ready};
use crate::deadline::{Deadline, Patience, wait};
use crate::error::{DeviceFault, RecvTimeoutError, TryRecvError};
use crate::kernel::core::KernelCore;
use ring_device::Kernel;
use ring_shared::Inbox;
use ring_shared::ring::Corrupt;
use std::marker::PhantomData;
use std::sync::Arc;

/// The receiving half of a channel. Not `Clone`: a ring has one consumer.
#[derive(Debug)]
pub struct Receiver<K: Kernel> {
    pub(super) core: Arc<KernelCore>,
    pub(super) channel: u32,
    pub(super) inbox: Inbox,
    /// What was published to the sending half.
    pub(super) published: u64,
    /// The end was returned, and nothing follows it: a channel that panicked may still publish answers from before.
    pub(super) over: bool,
    pub(crate) idle_polls: IdlePolls,
    pub(super) of: PhantomData<fn() -> K>,
}

impl<K: Kernel> Receiver<K> {
    /// The next response, or [`Empty`](TryRecvError::Empty) if there is none yet. Responses come in the
    /// order of their requests, also those that were there before the kernel was terminated or lost.
    #[inline]
    pub fn try_recv(&mut self) -> Result<K::Response, TryRecvError> {
        if !self.over
            && let Some(response) = self.inbox.pop_short()
        {
            self.note();
            return Ok(response);
        }
        self.take_one()
    }

    /// What is there behind a look, or why there is nothing.
    #[inline(never)]
    fn take_one(&mut self) -> Result<K::Response, TryRecvError> {
        self.take(Inbox::pop)
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

    /// The index of its channel.
    pub(crate) fn channel(&self) -> u32 {
        self.channel
    }

    /// Responses that the ring has room for.
    #[inline]
    pub fn capacity(&self) -> usize {
        self.core.device.region().plan.capacity as usize
    }

    /// Responses that are in the ring, as far as the host knows; the last one may need a moment more until
    /// it can be received.
    #[inline]
    pub fn len(&self) -> usize {
        if self.over {
            return 0;
        }
        self.inbox.there() as usize
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
        self.take_some(responses.len(), |inbox| inbox.pop_slice(responses))
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
        self.take_some(most, |inbox| inbox.pop_each(most, &mut each))
    }

    /// Takes up to `most` responses by `pop`; how many that is.
    #[inline]
    fn take_some(
        &mut self,
        most: usize,
        mut pop: impl FnMut(&mut Inbox) -> Result<usize, Corrupt>,
    ) -> Result<usize, TryRecvError> {
        if most == 0 {
            return Ok(0);
        }
        let some = |taken| (taken > 0).then_some(taken);
        match self.take(|inbox| pop(inbox).map(some)) {
            Err(TryRecvError::Empty) => Ok(0),
            taken => taken,
        }
    }

    /// What `pop` takes; when there is nothing, why.
    #[inline]
    fn take<T>(
        &mut self,
        mut pop: impl FnMut(&mut Inbox) -> Result<Option<T>, Corrupt>,
    ) -> Result<T, TryRecvError> {
        if let Some(taken) = self.pop(&mut pop)? {
            return Ok(taken);
        }
        match self.idle_polls.nothing(&self.core) {
            TryRecvError::Empty => Err(TryRecvError::Empty),
            end => self.take_last(pop, end),
        }
    }

    /// What was answered before the `end` is here by now.
    #[cold]
    #[inline(never)]
    fn take_last<T>(
        &mut self,
        pop: impl FnMut(&mut Inbox) -> Result<Option<T>, Corrupt>,
        end: TryRecvError,
    ) -> Result<T, TryRecvError> {
        let taken = self.pop(pop)?;
        self.over |= taken.is_none();
        taken.ok_or(end)
    }

    #[inline]
    fn pop<T>(
        &mut self,
        pop: impl FnOnce(&mut Inbox) -> Result<Option<T>, Corrupt>,
    ) -> Result<Option<T>, DeviceFault> {
        if self.over {
            return Ok(None);
        }
        let popped = pop(&mut self.inbox);
        self.note();
        popped.map_err(|corrupt| self.corrupt(corrupt))
    }

    /// Tells the sending half how far we are, if it does not know: it reads that line for every
    /// request, perhaps on another core.
    #[inline]
    fn note(&mut self) {
        if self.published != self.inbox.next() {
            let traces = &self.core.device.traces;
            if let Some(trace) = traces.received(self.channel) {
                let n = self.inbox.next().wrapping_sub(self.published);
                trace.note(self.published, n, traces.now());
            }
            self.published = self.inbox.next();
            self.core.device.publish_received(self.channel, self.published);
        }
    }

    #[cold]
    fn corrupt(&mut self, corrupt: Corrupt) -> DeviceFault {
        self.over = true;
        self.core.device.corrupt(self.channel, corrupt)
    }
}

impl<K: Kernel> Incoming for Receiver<K> {}

impl<K: Kernel> Ready for Receiver<K> {
    fn is_ready(&mut self) -> bool {
        self.over
            || !self.is_empty()
            || !matches!(self.idle_polls.nothing(&self.core), TryRecvError::Empty)
    }

    fn patience(&self) -> Patience {
        self.core.device.patience
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
