//! A channel that is used one message at a time.

use crate::bench::drive::Pipe;
use crate::bench::measured::Measured;
use ring_host::kernels::Echo;
use ring_host::{Channel, TryRecvError, TrySendError};

/// A channel with its messages: each call of this sends or takes one, however many it may.
#[derive(Debug)]
pub struct SinglePipe {
    channel: Channel<Echo>,
    /// Number of the next message.
    next: u64,
    /// Answers that were taken.
    got: u64,
}

impl SinglePipe {
    /// A channel that nothing was sent on.
    pub fn new(channel: Channel<Echo>) -> SinglePipe {
        SinglePipe { channel, next: 0, got: 0 }
    }
}

impl Pipe for SinglePipe {
    #[inline]
    fn send(&mut self, _: usize) -> Result<usize, String> {
        match self.channel.try_send(Echo::message(self.next)) {
            Ok(()) => {
                self.next += 1;
                Ok(1)
            }
            Err(TrySendError::Full(_)) => Ok(0),
            Err(error) => Err(error.to_string()),
        }
    }

    #[inline]
    fn receive(&mut self, _: usize) -> Result<usize, String> {
        match self.channel.try_recv() {
            Ok(response) if Echo::answers(&response, self.got) => {
                self.got += 1;
                Ok(1)
            }
            Ok(_) => Err(format!("the answer to message {} is wrong", self.got)),
            Err(TryRecvError::Empty) => Ok(0),
            Err(error) => Err(error.to_string()),
        }
    }
}
