//! Waits of a channel, or of one of its halves, whose other half another thread has.

use crate::client::RemoteChannel;
use crate::error::{RecvTimeoutError, SendTimeoutError, TryRecvError, TrySendError};
use ring_host::{Deadline, Kernel};

/// Who has a channel for a moment at a time.
pub trait Access<K: Kernel> {
    /// Does something with it.
    fn with<T>(&mut self, does: impl FnOnce(&mut RemoteChannel<K>) -> T) -> T;
}

impl<K: Kernel> Access<K> for RemoteChannel<K> {
    fn with<T>(&mut self, does: impl FnOnce(&mut RemoteChannel<K>) -> T) -> T {
        does(self)
    }
}

/// Sends when there is room, until the deadline.
pub fn send<K: Kernel>(
    access: &mut impl Access<K>,
    mut request: K::Request,
    deadline: Deadline,
) -> Result<(), SendTimeoutError<K::Request>> {
    let mut idle = access.with(|channel| *channel.idle());
    idle.found();
    loop {
        request = match access.with(|channel| channel.try_send(request)) {
            Ok(()) => break,
            Err(TrySendError::Service { message, error }) => {
                return Err(SendTimeoutError::Service { message, error });
            }
            Err(TrySendError::Full(request)) => request,
        };
        if deadline.passed() {
            let (service, standing) =
                access.with(|channel| (channel.service().to_owned(), channel.standing()));
            let (message, waited) = (request, deadline.waited());
            return Err(SendTimeoutError::Timeout { message, service, waited, standing });
        }
        idle.pause();
    }
    access.with(|channel| *channel.idle() = idle);
    Ok(())
}

/// Receives when an answer is there, until the deadline.
pub fn recv<K: Kernel>(
    access: &mut impl Access<K>,
    deadline: Deadline,
) -> Result<K::Response, RecvTimeoutError> {
    let mut idle = access.with(|channel| *channel.idle());
    idle.found();
    let received = loop {
        match access.with(RemoteChannel::try_recv) {
            Ok(answer) => break Ok(answer),
            Err(TryRecvError::Unknown(unknown)) => break Err(unknown.into()),
            Err(TryRecvError::Service(error)) => break Err(error.into()),
            Err(TryRecvError::Empty) if deadline.passed() => {
                let (service, standing) =
                    access.with(|channel| (channel.service().to_owned(), channel.standing()));
                break Err(RecvTimeoutError::Timeout {
                    service,
                    waited: deadline.waited(),
                    standing,
                });
            }
            Err(TryRecvError::Empty) => idle.pause(),
        }
    };
    access.with(|channel| *channel.idle() = idle);
    received
}
