//! Sending as a `Sink`.

use super::waiting::Waiting;
use crate::error::TrySendError;
use crate::kernel::channel::Sender;
use futures_sink::Sink;
use ring_device::Kernel;
use std::pin::Pin;
use std::task::{Context, Poll};

/// The requests of a channel. It holds none back: what it accepts is in the ring. It is ready while the
/// ring has room. Closing it does nothing: the kernel stays, and so does the sink.
///
/// An error of `start_send` gives the message back as `Some`: [`TrySendError::Full`] if there is no room,
/// which is so only without a `poll_ready` that was ready. One of `poll_ready` has no message: `None`.
#[derive(Debug)]
#[must_use = "sinks do nothing unless polled"]
pub struct RequestSink<K: Kernel> {
    sender: Sender<K>,
    waiting: Waiting,
}

impl<K: Kernel> Sender<K> {
    /// The same channel, for an executor.
    pub fn into_sink(self) -> RequestSink<K> {
        let waiting = Waiting::new(self.core.device.patience);
        RequestSink { sender: self, waiting }
    }

    /// Whether the next request has room; until it is sent that stays so. If not, what a fruitless send
    /// does is done.
    #[inline]
    fn has_room(&mut self) -> Result<bool, TrySendError<()>> {
        let received = match self.admitted() {
            Err(TrySendError::Writing { .. }) => return Ok(false),
            admitted => admitted?,
        };
        let has_room = self.outbox.has_room(received);
        if !has_room.map_err(|corrupt| self.corrupt(corrupt))? {
            self.idle_polls.note(&self.core)?;
            return Ok(false);
        }
        Ok(true)
    }
}

impl<K: Kernel> RequestSink<K> {
    /// The half again. All that the sink accepted is in the ring.
    pub fn into_sender(self) -> Sender<K> {
        self.sender
    }
}

impl<K: Kernel> Sink<K::Request> for RequestSink<K> {
    type Error = TrySendError<Option<K::Request>>;

    #[inline]
    fn poll_ready(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), Self::Error>> {
        let it = self.get_mut();
        if it.waiting.is_others_turn(context, &mut it.sender.idle_polls) {
            return Poll::Pending;
        }
        if it.sender.has_room().map_err(|error| error.map(|()| None))? {
            it.waiting.found();
            return Poll::Ready(Ok(()));
        }
        it.waiting.found_nothing(context, it.sender.core.device.received(it.sender.channel));
        Poll::Pending
    }

    #[inline]
    fn start_send(self: Pin<&mut Self>, request: K::Request) -> Result<(), Self::Error> {
        self.get_mut().sender.try_send(request).map_err(|error| error.map(Some))
    }

    /// Ready at once: what was accepted is in the ring.
    #[inline]
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    /// As `poll_flush`.
    fn poll_close(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), Self::Error>> {
        self.poll_flush(context)
    }
}
