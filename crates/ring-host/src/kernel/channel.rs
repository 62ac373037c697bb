//! Sending and receiving. No heap; to a persistent kernel in mapped memory no lock and no driver call
//! either, while messages flow. Any other kernel is driven by these calls.

#[cfg(feature = "async")]
pub mod asynchronous;
pub(crate) mod idle_polls;
mod receiver;
pub(crate) mod select;
mod sender;
mod shared_sender;

pub use receiver::{Receiver, TryIter};
pub use select::{Incoming, Select};
pub use sender::Sender;
pub use shared_sender::SharedSender;

use self::idle_polls::IdlePolls;
use crate::deadline::Deadline;
use crate::error::{ChannelError, RecvTimeoutError, SendTimeoutError, TryRecvError, TrySendError};
use crate::kernel::core::KernelCore;
use crate::memory::plan::Direction;
use ring_device::Kernel;
use ring_shared::{Inbox, Outbox};
use std::marker::PhantomData;
use std::sync::Arc;

/// A channel: requests out, responses back, in order.
#[derive(Debug)]
pub struct Channel<K: Kernel> {
    pub(crate) sender: Sender<K>,
    pub(crate) receiver: Receiver<K>,
}

impl<K: Kernel> Channel<K> {
    pub(crate) fn new(core: &Arc<KernelCore>, channel: u32) -> Channel<K> {
        let (requests, responses) = (
            core.device.region().ring(channel, Direction::Requests),
            core.device.region().ring(channel, Direction::Responses),
        );
        let (outbox, inbox) = (Outbox::new(requests), Inbox::new(responses));
        Channel {
            sender: Sender {
                core: Arc::clone(core),
                channel,
                outbox,
                is_stalled: false,
                asked: 0,
                idle_polls: IdlePolls::new(),
                of: PhantomData,
            },
            receiver: Receiver {
                core: Arc::clone(core),
                channel,
                published: inbox.next(),
                over: false,
                inbox,
                idle_polls: IdlePolls::new(),
                of: PhantomData,
            },
        }
    }

    /// Requests sent whose answers were not received.
    pub fn unanswered(&self) -> u64 {
        self.sender.outbox.next().saturating_sub(self.receiver.inbox.next())
    }

    /// Messages that each of its two rings has room for.
    pub fn capacity(&self) -> usize {
        self.sender.capacity()
    }

    /// See [`Receiver::try_iter`].
    pub fn try_iter(&mut self) -> TryIter<'_, K> {
        self.receiver.try_iter()
    }

    /// Both halves, borrowed: for scoped threads.
    pub fn split(&mut self) -> (&mut Sender<K>, &mut Receiver<K>) {
        (&mut self.sender, &mut self.receiver)
    }

    /// Both halves, owned.
    pub fn into_split(self) -> (Sender<K>, Receiver<K>) {
        (self.sender, self.receiver)
    }
}

/// The calls of both halves on something that has a channel, named once for channels and kernels. There may be none;
/// then a request is given back with the reason.
macro_rules! messages {
    ($(#[$doc:meta])* impl $t:ident, by |$it:ident| $channel:expr) => {
        $(#[$doc])*
        impl<K: Kernel> $t<K> {
            /// See [`Sender::try_send`](crate::Sender::try_send).
            #[inline]
            pub fn try_send(
                &mut self,
                request: K::Request,
            ) -> Result<(), TrySendError<K::Request>> {
                let $it = self;
                match $channel {
                    Ok(channel) => channel.sender.try_send(request),
                    Err(error) => Err(TrySendError::Channel { message: request, error }),
                }
            }

            /// See [`Sender::send`](crate::Sender::send).
            #[inline]
            pub fn send(
                &mut self,
                request: K::Request,
                deadline: impl Into<Deadline>,
            ) -> Result<(), SendTimeoutError<K::Request>> {
                let $it = self;
                match $channel {
                    Ok(channel) => channel.sender.send(request, deadline),
                    Err(error) => Err(SendTimeoutError::Channel { message: request, error }),
                }
            }

            messages! { $it $channel,
                /// See [`Sender::try_send_batch`](crate::Sender::try_send_batch).
                fn try_send_batch(requests: &[K::Request]) -> usize, TrySendError<()> => sender;
                /// See [`Sender::try_send_each`](crate::Sender::try_send_each).
                fn try_send_each(most: usize, request: impl FnMut(usize) -> K::Request)
                    -> usize, TrySendError<()> => sender;
                /// See [`Receiver::try_recv`](crate::Receiver::try_recv).
                fn try_recv() -> K::Response, TryRecvError => receiver;
                /// See [`Receiver::recv`](crate::Receiver::recv).
                fn recv(deadline: impl Into<Deadline>)
                    -> K::Response, RecvTimeoutError => receiver;
                /// See [`Receiver::try_recv_batch`](crate::Receiver::try_recv_batch).
                fn try_recv_batch(responses: &mut [K::Response])
                    -> usize, TryRecvError => receiver;
                /// See [`Receiver::try_recv_each`](crate::Receiver::try_recv_each).
                fn try_recv_each(most: usize, each: impl FnMut(&K::Response))
                    -> usize, TryRecvError => receiver;
            }
        }
    };
    ($it:ident $channel:expr, $($(#[$doc:meta])*
        fn $name:ident($($arg:ident: $t:ty),*) -> $ok:ty, $error:ty => $half:ident;)+) => {
        $($(#[$doc])* #[inline] pub fn $name(&mut self, $($arg: $t),*) -> Result<$ok, $error> {
            let $it = self;
            $channel?.$half.$name($($arg),*)
        })+
    };
}
pub(crate) use messages;

messages! {
    /// As on the halves.
    impl Channel, by |channel| Ok::<_, ChannelError>(channel)
}

#[cfg(test)]
mod tests {
    use crate::kernels::{Echo, EchoMessage};
    use crate::{Device, LaunchConfig, Runtime};
    use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
    use std::time::{Duration, Instant};

    const PATIENCE: Duration = Duration::from_secs(20);

    /// Closures that panic now and then: each request is answered once, in order, and each answer is
    /// shown once, also those of runs that come round the ring's end.
    #[test]
    fn panics_lose_nothing() {
        let host = Runtime::open(Device::Cpu).unwrap();
        let mut kernel = host.launch::<Echo>(LaunchConfig::default()).unwrap();
        kernel.activate(PATIENCE).unwrap();
        let (mut sent, mut shown, mut calls) = (0u64, 0u64, 0u32);
        let begun = Instant::now();
        let count = if cfg!(miri) { 20 } else { 3000 }; // Miri takes seconds for each
        while shown < count {
            assert!(begun.elapsed() < PATIENCE, "{shown} shown of {sent}");
            calls += 1;
            let (most, first) = (1 + calls as usize % 50, sent);
            let pushed = catch_unwind(AssertUnwindSafe(|| {
                kernel.try_send_each(most, |k| {
                    if calls.is_multiple_of(3) && k == most / 2 {
                        resume_unwind(Box::new(()));
                    }
                    EchoMessage::from_seed(first + k as u64)
                })
            }));
            // Of a run that panicked none was sent.
            sent += pushed.map_or(0, |pushed| pushed.unwrap() as u64);
            let popped = catch_unwind(AssertUnwindSafe(|| {
                kernel.try_recv_each(most, |answer| {
                    assert_eq!(*answer, EchoMessage::from_seed(shown).answer());
                    shown += 1;
                    if shown.is_multiple_of(7) {
                        resume_unwind(Box::new(()));
                    }
                })
            }));
            match popped {
                Ok(popped) => drop(popped.unwrap()),
                Err(panic) if panic.is::<()>() => {}
                Err(panic) => resume_unwind(panic),
            }
        }
        while shown < sent {
            assert_eq!(kernel.recv(PATIENCE).unwrap(), EchoMessage::from_seed(shown).answer());
            shown += 1;
        }
        let summary = kernel.terminate(PATIENCE).unwrap();
        assert_eq!((summary.processed, summary.unhandled), (sent, 0));
    }
}
