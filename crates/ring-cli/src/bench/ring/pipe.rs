//! A channel of the runtime as a [`Pipe`].

use crate::bench::drive::Pipe;
use crate::bench::measured::Measured;
use ring_host::{Channel, TrySendError};

/// Most messages handed over at a time.
pub const BATCH: usize = 512;

/// Most bytes of the array of messages of which most is the same in all: it stays in a first-level cache.
const BYTES: usize = 32 << 10;

/// A channel with its messages.
#[derive(Debug)]
pub struct RingPipe<K: Measured> {
    channel: Channel<K>,
    /// Messages of which most is the same in all.
    requests: Box<[K::Request]>,
    /// What of `requests` was numbered and not sent.
    made: std::ops::Range<usize>,
    /// Number of the next message.
    next: u64,
    /// Answers that were taken.
    got: u64,
}

impl<K: Measured> RingPipe<K> {
    /// A channel that nothing was sent on.
    pub fn new(channel: Channel<K>) -> RingPipe<K> {
        let large = (BYTES / size_of::<K::Request>()).clamp(1, BATCH);
        let requests = vec![K::message(0); if K::HAVE_MUCH_IN_COMMON { large } else { 0 }].into();
        RingPipe { channel, requests, made: 0..0, next: 0, got: 0 }
    }

    #[inline]
    fn send_made(&mut self, most: usize) -> Result<usize, TrySendError<()>> {
        let next = self.next;
        let sent = self.channel.try_send_each(most, |k| K::message(next + k as u64))?;
        self.next += sent as u64;
        Ok(sent)
    }

    #[inline]
    fn send_numbered(&mut self, most: usize) -> Result<usize, TrySendError<()>> {
        if self.made.is_empty() {
            self.made = 0..most.min(self.requests.len());
            for request in &mut self.requests[self.made.clone()] {
                K::number(request, self.next);
                self.next += 1;
            }
        }
        let end = self.made.end.min(self.made.start + most);
        let sent = self.channel.try_send_batch(&self.requests[self.made.start..end])?;
        self.made.start += sent;
        Ok(sent)
    }
}

impl<K: Measured> Pipe for RingPipe<K> {
    #[inline]
    fn send(&mut self, most: usize) -> Result<usize, String> {
        let sent =
            if K::HAVE_MUCH_IN_COMMON { self.send_numbered(most) } else { self.send_made(most) };
        sent.map_err(|error| error.to_string())
    }

    #[inline]
    fn receive(&mut self, most: usize) -> Result<usize, String> {
        let (mut i, mut right) = (self.got, true);
        let received = self.channel.try_recv_each(most, |response| {
            right &= K::answers(response, i);
            i += 1;
        });
        if !right {
            return Err(format!("an answer from message {} on is wrong", self.got));
        }
        self.got = i;
        received.map_err(|error| error.to_string())
    }
}
