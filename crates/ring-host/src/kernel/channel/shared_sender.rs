//! A sending half for several threads.

use super::sender::{Sender, wait_to_send};
use crate::deadline::Deadline;
use crate::error::{SendTimeoutError, TrySendError};
use crate::kernel::core::KernelCore;
use crate::sync::{Mutex, MutexGuard, lock_briefly, unpoisoned};
use ring_device::Kernel;
use std::fmt;
use std::sync::Arc;

/// The sending half of a channel for several threads, whose requests go on one after the other: clones share it. Made by
/// [`Sender::into_shared`]. The answers come to the channel's one receiving half, in the order in which the requests were sent; where
/// each thread wants its own, [`KernelHandle::client`](crate::KernelHandle::client) is what to take.
///
/// Each call locks it for as long as sending takes, and never while it waits for room. No call allocates.
///
/// ```
/// # use ring_host::{Device, LaunchConfig, Runtime, kernels::{Echo, EchoMessage}};
/// # use std::time::Duration;
/// # let second = Duration::from_secs(1);
/// # let mut kernel = Runtime::open(Device::Cpu)?.launch::<Echo>(LaunchConfig::default())?;
/// # kernel.activate(second)?;
/// let (sender, mut receiver) = kernel.take_channel(0)?.into_split();
/// let sender = sender.into_shared();
/// std::thread::scope(|scope| {
///     for thread in 0..4 {
///         let sender = sender.clone();
///         scope.spawn(move || sender.send(EchoMessage::from_seed(thread), second).unwrap());
///     }
///     for _ in 0..4 {
///         receiver.recv(second).unwrap();
///     }
/// });
/// # kernel.terminate(second)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct SharedSender<K: Kernel> {
    shared: Arc<Shared<K>>,
}

struct Shared<K: Kernel> {
    core: Arc<KernelCore>,
    channel: u32,
    sender: Mutex<Sender<K>>,
}

impl<K: Kernel> Clone for SharedSender<K> {
    fn clone(&self) -> SharedSender<K> {
        SharedSender { shared: Arc::clone(&self.shared) }
    }
}

impl<K: Kernel> fmt::Debug for SharedSender<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedSender")
            .field("channel", &self.shared.channel)
            .finish_non_exhaustive()
    }
}

impl<K: Kernel> Sender<K> {
    /// The same half, for several threads.
    pub fn into_shared(self) -> SharedSender<K> {
        let (core, channel) = (Arc::clone(&self.core), self.channel);
        SharedSender { shared: Arc::new(Shared { core, channel, sender: Mutex::new(self) }) }
    }
}

impl<K: Kernel> SharedSender<K> {
    /// See [`Sender::try_send`].
    #[inline]
    pub fn try_send(&self, request: K::Request) -> Result<(), TrySendError<K::Request>> {
        self.lock().try_send(request)
    }

    /// See [`Sender::send`].
    #[inline]
    pub fn send(
        &self,
        request: K::Request,
        deadline: impl Into<Deadline>,
    ) -> Result<(), SendTimeoutError<K::Request>> {
        let offer = || self.lock().offer(&request);
        let Err(refused) = offer() else { return Ok(()) };
        let Shared { core, channel, .. } = &*self.shared;
        let sent = wait_to_send((core, *channel), refused, deadline.into(), offer);
        sent.map_err(|error| error.map(|()| request))
    }

    /// See [`Sender::try_send_batch`]: what is sent of one call is not mixed with what others send.
    #[inline]
    pub fn try_send_batch(&self, requests: &[K::Request]) -> Result<usize, TrySendError<()>> {
        self.lock().try_send_batch(requests)
    }

    /// The half again, for one thread.
    ///
    /// # Errors
    /// While there is another clone, which then still has it.
    pub fn into_sender(self) -> Result<Sender<K>, SharedSender<K>> {
        let own = |shared: Shared<K>| unpoisoned(shared.sender.into_inner());
        Arc::try_unwrap(self.shared).map(own).map_err(|shared| SharedSender { shared })
    }

    fn lock(&self) -> MutexGuard<'_, Sender<K>> {
        lock_briefly(&self.shared.sender)
    }
}
