//! Receiving as a `Stream`.

use super::waiting::Waiting;
use crate::error::{DeviceFault, TryRecvError};
use crate::kernel::channel::Receiver;
use crate::memory::plan::Direction;
use futures_core::stream::{FusedStream, Stream};
use ring_device::Kernel;
use std::pin::Pin;
use std::task::{Context, Poll};

/// The responses of a channel, in the order of their requests. It ends after the kernel was terminated and
/// all its answers were taken. A fault comes once, after what was answered before it; then it ends too.
#[derive(Debug)]
#[must_use = "streams do nothing unless polled"]
pub struct ResponseStream<K: Kernel> {
    pub(super) receiver: Receiver<K>,
    pub(super) waiting: Waiting,
    has_ended: bool,
}

impl<K: Kernel> Receiver<K> {
    /// The same channel, for an executor.
    pub fn into_stream(self) -> ResponseStream<K> {
        let waiting = Waiting::new(self.core.device.patience);
        ResponseStream { receiver: self, waiting, has_ended: false }
    }

    /// How far the sending half is, modulo 2^32, by what it told the device.
    pub(super) fn sent(&self) -> u64 {
        let received = self.inbox.next();
        let ring = self.core.device.region().ring(self.channel, Direction::Requests);
        u64::from((received as u32).wrapping_add(ring.told_from(received)))
    }
}

impl<K: Kernel> ResponseStream<K> {
    /// The half again, behind the last response that the stream gave.
    pub fn into_receiver(self) -> Receiver<K> {
        self.receiver
    }
}

impl<K: Kernel> Stream for ResponseStream<K> {
    type Item = Result<K::Response, DeviceFault>;

    #[inline]
    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let it = self.get_mut();
        if it.has_ended {
            return Poll::Ready(None);
        }
        if it.waiting.is_others_turn(context, &mut it.receiver.idle_polls) {
            return Poll::Pending;
        }
        match it.receiver.try_recv() {
            Ok(response) => {
                it.waiting.found();
                Poll::Ready(Some(Ok(response)))
            }
            Err(TryRecvError::Empty) => {
                it.waiting.found_nothing(context, it.receiver.sent());
                Poll::Pending
            }
            Err(end) => {
                it.has_ended = true;
                Poll::Ready(match end {
                    TryRecvError::Fault(fault) => Some(Err(fault)),
                    _ => None, // it was asked for
                })
            }
        }
    }
}

impl<K: Kernel> FusedStream for ResponseStream<K> {
    fn is_terminated(&self) -> bool {
        self.has_ended
    }
}
