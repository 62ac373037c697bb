//! A channel in two halves.

use crate::client::RemoteChannel;
use crate::error::{RecvTimeoutError, SendTimeoutError, Standing, TryRecvError, TrySendError};
use crate::waits::{self, Access};
use ring_host::{Deadline, Kernel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The half of a [`RemoteChannel`] that sends.
#[derive(Debug)]
pub struct RemoteSender<K: Kernel>(Shared<K>);

/// The half of a [`RemoteChannel`] that receives.
#[derive(Debug)]
pub struct RemoteReceiver<K: Kernel>(Shared<K>);

/// Both halves of a channel.
pub fn halves<K: Kernel>(channel: RemoteChannel<K>) -> (RemoteSender<K>, RemoteReceiver<K>) {
    let shared = Arc::new(Mutex::new(channel));
    (RemoteSender(Shared(Arc::clone(&shared))), RemoteReceiver(Shared(shared)))
}

/// A channel that two threads have. It is locked for a look, and never while one of them waits.
#[derive(Debug)]
struct Shared<K: Kernel>(Arc<Mutex<RemoteChannel<K>>>);

impl<K: Kernel> Shared<K> {
    fn lock(&self) -> MutexGuard<'_, RemoteChannel<K>> {
        // Nothing of a channel's own panics with half of its work done.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Kernel> Access<K> for Shared<K> {
    fn with<T>(&mut self, does: impl FnOnce(&mut RemoteChannel<K>) -> T) -> T {
        does(&mut self.lock())
    }
}

impl<K: Kernel> RemoteSender<K> {
    /// As [`RemoteChannel::try_send`].
    ///
    /// # Errors
    /// As there.
    pub fn try_send(&mut self, request: K::Request) -> Result<(), TrySendError<K::Request>> {
        self.0.lock().try_send(request)
    }

    /// As [`RemoteChannel::send`]; the other half may receive meanwhile, which makes room.
    ///
    /// # Errors
    /// As there.
    pub fn send(
        &mut self,
        request: K::Request,
        deadline: impl Into<Deadline>,
    ) -> Result<(), SendTimeoutError<K::Request>> {
        waits::send(&mut self.0, request, deadline.into())
    }

    /// As [`RemoteChannel::try_send_batch`].
    ///
    /// # Errors
    /// As there.
    pub fn try_send_batch(&mut self, requests: &[K::Request]) -> Result<usize, TrySendError<()>> {
        self.0.lock().try_send_batch(requests)
    }

    /// As [`RemoteChannel::capacity`].
    pub fn capacity(&self) -> usize {
        self.0.lock().capacity()
    }

    /// As [`RemoteChannel::standing`].
    pub fn standing(&self) -> Standing {
        self.0.lock().standing()
    }
}

impl<K: Kernel> RemoteReceiver<K> {
    /// As [`RemoteChannel::try_recv`].
    ///
    /// # Errors
    /// As there.
    pub fn try_recv(&mut self) -> Result<K::Response, TryRecvError> {
        self.0.lock().try_recv()
    }

    /// As [`RemoteChannel::recv`]; the other half may send meanwhile.
    ///
    /// # Errors
    /// As there.
    pub fn recv(&mut self, deadline: impl Into<Deadline>) -> Result<K::Response, RecvTimeoutError> {
        waits::recv(&mut self.0, deadline.into())
    }

    /// As [`RemoteChannel::try_recv_batch`].
    ///
    /// # Errors
    /// As there.
    pub fn try_recv_batch(&mut self, answers: &mut [K::Response]) -> Result<usize, TryRecvError> {
        self.0.lock().try_recv_batch(answers)
    }

    /// As [`RemoteChannel::unanswered`].
    pub fn unanswered(&self) -> u64 {
        self.0.lock().unanswered()
    }
}
