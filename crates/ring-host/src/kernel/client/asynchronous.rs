//! Calls for an executor (feature `async`): `client.call_async(request).await`, and `ticket.await`.
//!
//! A task waits as a [`ResponseStream`](crate::ResponseStream) does: see
//! [How a task waits](crate::asynchronous#how-a-task-waits). Whichever task or thread looks receives for all.

use super::Client;
use super::channels::Channels;
use super::shared_channel::SharedChannel;
use super::ticket::{Ticket, Unanswered};
use crate::error::CallError;
use crate::kernel::channel::asynchronous::waiting::Waiting;
use ring_device::Kernel;
use std::future::{Future, IntoFuture};
use std::hash::Hash;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

impl<K: Kernel> Client<K> {
    /// Sends a request when it is polled first, or as soon as there is room, and gives its answer. It waits for as long as it
    /// takes; an executor's `timeout` ends it sooner. Dropped, it gives up the answer; a request that was sent may be handled still.
    ///
    /// ```
    /// # use ring_host::{Device, LaunchConfig, Runtime, kernels::{Echo, EchoMessage}};
    /// # use std::time::Duration;
    /// # let second = Duration::from_secs(1);
    /// # let mut kernel = Runtime::open(Device::Cpu)?.launch::<Echo>(LaunchConfig::default())?;
    /// # kernel.activate(second)?;
    /// let client = kernel.client()?;
    /// let requests = [0, 1, 2].map(EchoMessage::from_seed);
    /// futures_executor::block_on(async {
    ///     let [first, second, third] = requests.map(|request| client.call_async(request));
    ///     let answers = futures_util::future::try_join3(first, second, third).await.unwrap();
    ///     assert_eq!(answers, (requests[0].answer(), requests[1].answer(), requests[2].answer()));
    /// });
    /// # kernel.terminate(second)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn call_async(&self, request: K::Request) -> Call<K> {
        self.call_async_on(self.channels.of_request(), request)
    }

    /// The same on the channel of a key, as [`call_by_key`](Self::call_by_key) chooses it.
    pub fn call_async_by_key(&self, key: &impl Hash, request: K::Request) -> Call<K> {
        self.call_async_on(self.of_key(key), request)
    }

    fn call_async_on(&self, channel: usize, request: K::Request) -> Call<K> {
        let waiting = self.channels.each[channel].waiting();
        let step = Step::Unsent { channels: Arc::clone(&self.channels), channel, request, waiting };
        Call { step }
    }
}

impl<K: Kernel> SharedChannel<K> {
    fn waiting(&self) -> Waiting {
        Waiting::new(self.core.device.patience)
    }
}

/// How far a call is.
enum Step<K: Kernel> {
    /// The request is not sent.
    Unsent { channels: Arc<Channels<K>>, channel: usize, request: K::Request, waiting: Waiting },
    /// It is.
    Sent(Answer<K>),
    /// The call has ended.
    Over,
}

/// A call that was begun by [`Client::call_async`].
#[must_use = "futures do nothing unless polled"]
pub struct Call<K: Kernel> {
    step: Step<K>,
}

impl<K: Kernel> std::fmt::Debug for Call<K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Call")
            .field("sent", &matches!(self.step, Step::Sent(_)))
            .finish_non_exhaustive()
    }
}

/// Nothing in it is pinned.
impl<K: Kernel> Unpin for Call<K> {}

impl<K: Kernel> Future for Call<K> {
    type Output = Result<K::Response, CallError<K::Request>>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let it = self.get_mut();
        if let Step::Unsent { channels, channel, request, waiting } = &mut it.step {
            let shared = &channels.each[*channel];
            match shared.try_submit(*request) {
                Ok(place) => {
                    it.step = Step::Sent(Ticket::new(Arc::clone(shared), place).into_future());
                }
                Err(refused) if channels.may_pass(&refused) => {
                    // Answers make room. Whoever waits for them receives by itself; those of tickets that nobody waits for are
                    // received here.
                    shared.receive_some(waiting.is_watched());
                    waiting.found_nothing(context, 0);
                    return Poll::Pending;
                }
                Err(refused) => {
                    let refused = refused.into_error(shared, *request, Duration::ZERO);
                    it.step = Step::Over;
                    return Poll::Ready(Err(CallError::NotSent(refused)));
                }
            }
        }
        let Step::Sent(answer) = &mut it.step else { panic!("polled after the call had ended") };
        let answered = Pin::new(answer).poll(context);
        answered.map(|answered| {
            it.step = Step::Over;
            answered.map_err(|unanswered| CallError::NotAnswered(unanswered.into()))
        })
    }
}

/// The answer of a [`Ticket`], for an executor.
#[derive(Debug)]
#[must_use = "futures do nothing unless polled"]
pub struct Answer<K: Kernel> {
    /// Until it has ended.
    ticket: Option<Ticket<K>>,
    waiting: Waiting,
}

/// Waits for as long as it takes; an executor's `timeout` ends it sooner. An error gives the ticket back.
impl<K: Kernel> IntoFuture for Ticket<K> {
    type Output = Result<K::Response, Unanswered<K>>;
    type IntoFuture = Answer<K>;

    fn into_future(self) -> Answer<K> {
        let waiting = self.channel.waiting();
        Answer { ticket: Some(self), waiting }
    }
}

impl<K: Kernel> Future for Answer<K> {
    type Output = Result<K::Response, Unanswered<K>>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Answer { ticket, waiting } = self.get_mut();
        let Some(waits) = ticket.take() else { panic!("polled after its answer") };
        let is_seldom = waiting.is_watched();
        let look = |channel: &SharedChannel<K>, place| match is_seldom {
            true => channel.look_seldom(place),
            false => channel.look(place),
        };
        match waits.take_by(look) {
            Ok(Ok(answer)) => Poll::Ready(Ok(answer)),
            Ok(Err(waits)) => {
                *ticket = Some(waits);
                waiting.found_nothing(context, 0);
                Poll::Pending
            }
            Err(unanswered) => Poll::Ready(Err(unanswered)),
        }
    }
}
