//! A channel as a `Stream` of answers and a `Sink` of requests, for any executor (feature `async`).
//!
//! No poll waits. While nothing comes, a task is woken again at once for as long as [`ClientConfig::look_for`](crate::ClientConfig::look_for) says, so that
//! other tasks of its thread have their turns between, and every 200 us then.

use crate::client::RemoteChannel;
use crate::error::{ServiceError, TryRecvError, TrySendError, Unknown};
use futures_core::Stream;
use futures_sink::Sink;
use ring_host::Kernel;
use std::mem::take;
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

/// How long a task waits to be woken, when nothing has come for long.
const PAUSE: Duration = Duration::from_micros(200);

/// What a stream gives in place of an answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AnswerError {
    /// The next request has none; the stream goes on behind it.
    #[error(transparent)]
    Unknown(#[from] Unknown),
    /// The service cannot be called any more: the stream ends.
    #[error(transparent)]
    Service(#[from] ServiceError),
}

/// A channel whose requests go into a `Sink` and whose answers come out of a `Stream`; `futures_util::StreamExt::split` makes two halves of it.
///
/// ```
/// # #[cfg(all(feature = "iceoryx2", target_os = "linux"))] {
/// use futures_util::{SinkExt, StreamExt};
/// use ring_host::kernels::{Echo, EchoMessage};
/// use ring_net::{RemoteChannel, error::ServiceError};
///
/// async fn call(channel: RemoteChannel<Echo>) -> Result<(), ServiceError> {
///     let (mut requests, mut answers) = channel.into_async().split();
///     requests.send(EchoMessage::from_seed(7)).await?;
///     while let Some(answer) = answers.next().await {
///         println!("{answer:?}");
///     }
///     Ok(())
/// }
/// # }
/// ```
#[derive(Debug)]
pub struct AsyncChannel<K: Kernel> {
    channel: RemoteChannel<K>,
    /// Since when its task has waited.
    since: Option<Instant>,
    /// The stream has told why it ends.
    is_over: bool,
}

impl<K: Kernel> RemoteChannel<K> {
    /// The channel for tasks of any executor.
    pub fn into_async(self) -> AsyncChannel<K> {
        AsyncChannel { channel: self, since: None, is_over: false }
    }
}

impl<K: Kernel> AsyncChannel<K> {
    /// The channel, as it was before.
    pub fn into_channel(self) -> RemoteChannel<K> {
        self.channel
    }

    /// The task is to be woken soon.
    fn wait<T>(&mut self, context: &Context<'_>) -> Poll<T> {
        let since = *self.since.get_or_insert_with(Instant::now);
        match since.elapsed() < self.channel.idle().looks_for() {
            true => context.waker().wake_by_ref(),
            false => wake_later(context.waker().clone()),
        }
        Poll::Pending
    }

    /// When what is waited for is there, or will never be.
    fn when(
        &mut self,
        is_there: Result<bool, ServiceError>,
        context: &Context<'_>,
    ) -> Poll<Result<(), ServiceError>> {
        match is_there {
            Ok(false) => self.wait(context),
            there => {
                self.since = None;
                Poll::Ready(there.map(drop))
            }
        }
    }
}

/// Who is to be woken next, and whether a thread is there to do so.
static LATER: Mutex<(Vec<Waker>, bool)> = Mutex::new((Vec::new(), false));

/// Wakes a task after a while, by a thread that is there as long as tasks wait.
fn wake_later(waker: Waker) {
    let lock = || LATER.lock().unwrap_or_else(PoisonError::into_inner);
    let mut later = lock();
    later.0.push(waker);
    if later.1 {
        return;
    }
    let wakes = move || loop {
        std::thread::sleep(PAUSE);
        let mut later = lock();
        if later.0.is_empty() {
            later.1 = false;
            return;
        }
        let wakers = take(&mut later.0);
        drop(later);
        wakers.into_iter().for_each(Waker::wake);
    };
    match std::thread::Builder::new().name("ring-net wakes".to_owned()).spawn(wakes) {
        Ok(_) => later.1 = true,
        // Then they are woken at once, and ask again.
        Err(_) => {
            let wakers = take(&mut later.0);
            drop(later);
            wakers.into_iter().for_each(Waker::wake);
        }
    }
}

/// Answers in order. It ends when the service cannot be called any more, which it tells before.
impl<K: Kernel> Stream for AsyncChannel<K> {
    type Item = Result<K::Response, AnswerError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let item = match self.channel.try_recv() {
            Ok(answer) => Ok(answer),
            Err(TryRecvError::Unknown(unknown)) => Err(unknown.into()),
            Err(TryRecvError::Service(_)) if self.is_over => return Poll::Ready(None),
            Err(TryRecvError::Service(error)) => {
                self.is_over = true;
                Err(error.into())
            }
            Err(TryRecvError::Empty) => return self.wait(context),
        };
        self.since = None;
        Poll::Ready(Some(item))
    }
}

/// Requests. Ready when there is room for one; flushed when all are on their way.
impl<K: Kernel> Sink<K::Request> for AsyncChannel<K> {
    type Error = ServiceError;

    fn poll_ready(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), ServiceError>> {
        let has_room = self.channel.has_room();
        self.when(has_room, context)
    }

    /// # Panics
    /// If it was not ready.
    fn start_send(mut self: Pin<&mut Self>, request: K::Request) -> Result<(), ServiceError> {
        match self.channel.try_send(request) {
            Ok(()) => Ok(()),
            Err(TrySendError::Service { error, .. }) => Err(error),
            Err(TrySendError::Full(_)) => panic!("a request is sent to a sink that is not ready"),
        }
    }

    fn poll_flush(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), ServiceError>> {
        let is_flushed = self.channel.is_flushed();
        self.when(is_flushed, context)
    }

    fn poll_close(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), ServiceError>> {
        self.poll_flush(context)
    }
}
