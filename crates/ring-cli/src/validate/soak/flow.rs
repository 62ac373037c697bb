//! The progress of one channel through its messages, a batch at a time.

use crate::validate::tally::Tally;
use ring_host::kernels::{Echo, EchoMessage};
use ring_host::{Channel, Error};

/// Messages handed over at a time: both batches stay in a first-level cache.
pub const BATCH: usize = 128;

/// One channel, as the soak sees it.
pub trait Port {
    /// Why it cannot be used any more.
    type Error;
    /// Sends the first few of `messages`; how many, 0 if there is no room.
    fn send(&mut self, messages: &[EchoMessage]) -> Result<usize, Self::Error>;
    /// Receives into the front of `answers`; how many, 0 if none has come.
    fn receive(&mut self, answers: &mut [EchoMessage]) -> Result<usize, Self::Error>;
}

impl Port for Channel<Echo> {
    type Error = Error;

    fn send(&mut self, messages: &[EchoMessage]) -> Result<usize, Error> {
        Ok(self.try_send_batch(messages)?)
    }

    fn receive(&mut self, answers: &mut [EchoMessage]) -> Result<usize, Error> {
        Ok(self.try_recv_batch(answers)?)
    }
}

/// A channel on its way through its messages.
#[derive(Debug)]
pub struct Flow<P> {
    port: P,
    /// What became of its messages.
    pub tally: Tally,
    /// Messages to be sent.
    pub total: u64,
    /// Messages that were sent.
    pub sent: u64,
    batch: [EchoMessage; BATCH],
    /// What of `batch` is to be sent.
    start: usize,
    end: usize,
}

impl<P: Port> Flow<P> {
    /// Channel `channel` of `channels`, with its share of `messages`.
    pub fn new(port: P, channel: u64, channels: u64, messages: u64) -> Flow<P> {
        Flow {
            port,
            tally: Tally::new(channel, channels),
            total: messages / channels + u64::from(channel < messages % channels),
            sent: 0,
            batch: [EchoMessage { words: [0; 8] }; BATCH],
            start: 0,
            end: 0,
        }
    }

    /// Sends what there is room for; how many.
    pub fn send(&mut self) -> Result<u64, P::Error> {
        if self.start == self.end {
            self.start = 0;
            self.end = (self.total - self.sent).min(BATCH as u64) as usize;
            for (message, i) in self.batch[..self.end].iter_mut().zip(self.sent..) {
                *message = self.tally.message(i);
            }
        }
        if self.start == self.end {
            return Ok(0);
        }
        let sent = self.port.send(&self.batch[self.start..self.end])?;
        self.start += sent;
        self.sent += sent as u64;
        Ok(sent as u64)
    }

    /// Leaves it at what was sent.
    pub fn send_no_more(&mut self) {
        (self.start, self.end, self.total) = (0, 0, self.sent);
    }

    /// Receives what has come; how many messages that settled. A repeated answer settles none, so
    /// a device that only repeats itself does not keep the soak going.
    pub fn receive(&mut self, answers: &mut [EchoMessage]) -> Result<u64, P::Error> {
        let before = self.tally.settled();
        let received = self.port.receive(answers)?;
        for answer in &answers[..received] {
            self.tally.count(answer, self.sent);
        }
        Ok(self.tally.settled() - before)
    }

    /// Whether all its messages came back.
    pub fn settled(&self) -> bool {
        self.tally.settled() >= self.total
    }
}
