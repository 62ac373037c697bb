//! The calls of a channel's ends, wherever they are: on the kernel, on a channel, on its halves, or as sink
//! and stream. What is answered must not depend on which is called.

use futures_util::{Sink, Stream};
use ring_host::kernels::{Echo, EchoMessage};
use ring_host::{
    Channel, Kernel, KernelHandle, Receiver, RequestSink, ResponseStream, Sender, TrySendError,
};
use ring_tests::CallError;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

type Sent<T> = Result<T, CallError<EchoMessage>>;
type Received<T> = Result<T, CallError>;

/// How many of a batch were sent; its messages stay with the caller.
type SentOf = Result<usize, CallError>;

/// Messages that `drain` takes at most.
pub const ROOM: usize = 8;

/// Both ends of a channel.
pub trait Ends {
    fn try_send(&mut self, request: EchoMessage) -> Sent<()>;
    fn send(&mut self, request: EchoMessage, limit: Duration) -> Sent<()>;
    fn try_send_batch(&mut self, requests: &[EchoMessage]) -> SentOf;
    fn try_send_each(
        &mut self,
        most: usize,
        request: &mut dyn FnMut(usize) -> EchoMessage,
    ) -> SentOf;
    fn try_recv(&mut self) -> Received<EchoMessage>;
    fn recv(&mut self, limit: Duration) -> Received<EchoMessage>;
    fn try_recv_batch(&mut self, responses: &mut [EchoMessage]) -> Received<usize>;
    fn try_recv_each(&mut self, most: usize, each: &mut dyn FnMut(&EchoMessage))
    -> Received<usize>;
    /// What is there, up to [`ROOM`].
    fn drain(&mut self) -> Vec<EchoMessage>;
    /// Requests sent whose answers were not received, if that is known.
    fn owed(&mut self) -> Option<u64>;
    /// Whether several requests are sent by one call.
    fn at_once(&self) -> bool {
        true
    }
}

macro_rules! ends {
    ($t:ty, |$it:ident| $sending:expr, $receiving:expr, $receiver:expr, $owed:expr) => {
        impl Ends for $t {
            fn try_send(&mut self, request: EchoMessage) -> Sent<()> {
                let $it = self;
                Ok($sending.try_send(request)?)
            }
            fn send(&mut self, request: EchoMessage, limit: Duration) -> Sent<()> {
                let $it = self;
                Ok($sending.send(request, limit)?)
            }
            fn try_send_batch(&mut self, requests: &[EchoMessage]) -> SentOf {
                let $it = self;
                Ok($sending.try_send_batch(requests)?)
            }
            fn try_send_each(
                &mut self,
                most: usize,
                request: &mut dyn FnMut(usize) -> EchoMessage,
            ) -> SentOf {
                let $it = self;
                Ok($sending.try_send_each(most, request)?)
            }
            fn try_recv(&mut self) -> Received<EchoMessage> {
                let $it = self;
                Ok($receiving.try_recv()?)
            }
            fn recv(&mut self, limit: Duration) -> Received<EchoMessage> {
                let $it = self;
                Ok($receiving.recv(limit)?)
            }
            fn try_recv_batch(&mut self, responses: &mut [EchoMessage]) -> Received<usize> {
                let $it = self;
                Ok($receiving.try_recv_batch(responses)?)
            }
            fn try_recv_each(
                &mut self,
                most: usize,
                each: &mut dyn FnMut(&EchoMessage),
            ) -> Received<usize> {
                let $it = self;
                Ok($receiving.try_recv_each(most, each)?)
            }
            fn drain(&mut self) -> Vec<EchoMessage> {
                let $it = self;
                $receiver.try_iter().take(ROOM).collect()
            }
            fn owed(&mut self) -> Option<u64> {
                let $it = self;
                $owed
            }
        }
    };
}

ends!(
    KernelHandle<Echo>,
    |kernel| kernel,
    kernel,
    kernel.channel(0).unwrap().split().1,
    Some(kernel.channel(0).unwrap().unanswered())
);
ends!(Channel<Echo>, |channel| channel, channel, channel.split().1, Some(channel.unanswered()));
ends!(
    (&mut Sender<Echo>, &mut Receiver<Echo>),
    |halves| halves.0,
    halves.1,
    halves.1,
    none(halves)
);

/// Halves do not know of each other.
fn none(_: &mut (&mut Sender<Echo>, &mut Receiver<Echo>)) -> Option<u64> {
    None
}

/// The ends for an executor, of which there is none: what a poll does not find is not waited for.
pub struct Flow {
    sink: RequestSink<Echo>,
    stream: ResponseStream<Echo>,
    /// A stream returns its end once, a half again and again.
    end: Option<CallError>,
}

impl Flow {
    pub fn of(sender: Sender<Echo>, receiver: Receiver<Echo>) -> Flow {
        Flow { sink: sender.into_sink(), stream: receiver.into_stream(), end: None }
    }

    pub fn into_halves(self) -> (Sender<Echo>, Receiver<Echo>) {
        (self.sink.into_sender(), self.stream.into_receiver())
    }
}

/// Polls twice: a poll may leave the turn to other tasks.
fn twice<T>(mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>) -> Poll<T> {
    let mut context = Context::from_waker(Waker::noop());
    match poll(&mut context) {
        Poll::Pending => poll(&mut context),
        ready => ready,
    }
}

/// An error of a sink that was not given the message.
fn of_sink(
    error: TrySendError<Option<EchoMessage>>,
    request: EchoMessage,
) -> CallError<EchoMessage> {
    error.map(|none| none.map_or(request, |_| panic!("a message that it was not given"))).into()
}

impl Ends for Flow {
    fn try_send(&mut self, request: EchoMessage) -> Sent<()> {
        match twice(|context| Pin::new(&mut self.sink).poll_ready(context)) {
            Poll::Ready(Ok(())) => {
                let sent = Pin::new(&mut self.sink).start_send(request);
                sent.map_err(|error| error.map(|back| back.expect("it gives it back")))?;
            }
            Poll::Ready(Err(error)) => return Err(of_sink(error, request)),
            Poll::Pending => return Err(CallError::Full(request)),
        }
        match twice(|context| Pin::new(&mut self.sink).poll_flush(context)) {
            Poll::Ready(flushed) => flushed.map_err(|error| of_sink(error, request)),
            Poll::Pending => panic!("what was accepted is in the ring"),
        }
    }

    fn send(&mut self, request: EchoMessage, limit: Duration) -> Sent<()> {
        let begun = Instant::now();
        loop {
            match self.try_send(request) {
                Err(CallError::Full(_)) if begun.elapsed() < limit => std::thread::yield_now(),
                done => return done,
            }
        }
    }

    fn try_send_batch(&mut self, requests: &[EchoMessage]) -> SentOf {
        self.try_send_each(requests.len(), &mut |k| requests[k])
    }

    fn try_send_each(
        &mut self,
        most: usize,
        request: &mut dyn FnMut(usize) -> EchoMessage,
    ) -> SentOf {
        // As on a half, a request is made only when there is room, and an inactive kernel refuses none too.
        for k in 0.. {
            match twice(|context| Pin::new(&mut self.sink).poll_ready(context)) {
                Poll::Ready(Ok(())) if k < most => {
                    self.try_send(request(k)).map_err(CallError::without_message)?;
                }
                Poll::Ready(Err(error)) if k == 0 => return Err(error.without_message().into()),
                _ => return Ok(k),
            }
        }
        Ok(most)
    }

    fn try_recv(&mut self) -> Received<EchoMessage> {
        if let Some(end) = &self.end {
            return Err(end.clone());
        }
        let found = match twice(|context| Pin::new(&mut self.stream).poll_next(context)) {
            Poll::Ready(Some(found)) => found.map_err(CallError::Fault),
            Poll::Ready(None) => Err(CallError::Closed { kernel: Echo::NAME }),
            Poll::Pending => return Err(CallError::Empty),
        };
        self.end = found.as_ref().err().cloned();
        found
    }

    fn recv(&mut self, limit: Duration) -> Received<EchoMessage> {
        let begun = Instant::now();
        loop {
            match self.try_recv() {
                Err(CallError::Empty) if begun.elapsed() < limit => std::thread::yield_now(),
                Err(CallError::Empty) => return Err(CallError::Late { kernel: Echo::NAME }),
                found => return found,
            }
        }
    }

    fn try_recv_batch(&mut self, responses: &mut [EchoMessage]) -> Received<usize> {
        let mut taken = 0;
        self.try_recv_each(responses.len(), &mut |response| {
            responses[taken] = *response;
            taken += 1;
        })
    }

    fn try_recv_each(
        &mut self,
        most: usize,
        each: &mut dyn FnMut(&EchoMessage),
    ) -> Received<usize> {
        for k in 0..most {
            match self.try_recv() {
                Ok(response) => each(&response),
                Err(error) if k == 0 && error != CallError::Empty => return Err(error),
                Err(_) => return Ok(k),
            }
        }
        Ok(most)
    }

    fn drain(&mut self) -> Vec<EchoMessage> {
        std::iter::from_fn(|| self.try_recv().ok()).take(ROOM).collect()
    }

    fn owed(&mut self) -> Option<u64> {
        None
    }

    fn at_once(&self) -> bool {
        false
    }
}
