//! Calls of a kernel from any number of threads: a request, and its answer.
//!
//! [`Client`] is what threads share and [`Ticket`] an answer to come; `shared_channel` is a channel that many call on, `places` knows
//! whose each answer is, and `parked` who waits. `crowd` tells when threads
//! that wait do best to yield, and `spread` on which channel each calls. A channel of one's own stays the way without a lock.

#[cfg(feature = "async")]
mod asynchronous;
mod channels;
mod crowd;
mod parked;
mod places;
mod shared_channel;
mod spread;
mod ticket;

#[cfg(feature = "async")]
pub use asynchronous::{Answer, Call};
pub use ticket::{Ticket, Unanswered};

use self::channels::Channels;
use self::shared_channel::{Apart, SharedChannel};
use crate::deadline::Deadline;
use crate::error::{CallError, ChannelError, SubmitError};
use crate::kernel::channel::Channel;
use crate::kernel::core::KernelCore;
use crate::setters::setters;
use ring_device::handlers::HasTag;
use ring_device::{Handler, Kernel, Message};
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher, Hash};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

/// Calls of one channel under way at a time, by default.
pub const DEFAULT_TICKETS: NonZeroU32 = NonZeroU32::new(1024).unwrap();

/// What can be chosen of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientConfig {
    tickets: NonZeroU32,
    waits_for_activation: bool,
    by_turns: bool,
}

impl Default for ClientConfig {
    fn default() -> ClientConfig {
        ClientConfig { tickets: DEFAULT_TICKETS, waits_for_activation: false, by_turns: false }
    }
}

setters! { of ClientConfig;
    /// How many calls of each channel may be under way at a time: sent and not answered, or answered and not taken.
    /// [`DEFAULT_TICKETS`] by default. A client allocates room for so many answers of each channel when it is made.
    tickets(most: NonZeroU32) => tickets = most;
    /// Calls of a kernel that is not active wait until it is, or until their deadline. By default they are refused at once.
    wait_for_activation() => waits_for_activation = true;
    /// Each call without a key goes to the next channel: for few threads with many calls under way whose handler takes long. By default
    /// threads are spread over the channels, and the requests of a thread are handled in the order in which it sent them: a
    /// thread stays with one channel. Only where threads take turns on a processor, one that does nothing but wait for each answer before
    /// it calls again goes by the processor's channel, so that threads on different processors do not slow each other.
    by_turns() => by_turns = true;
}

/// Calls a kernel, from any number of threads: clones share the same channels. By
/// [`KernelHandle::client`](crate::KernelHandle::client).
///
/// It may outlive the kernel; calls then end with the error that a channel gives. No lock is held while anything is waited for,
/// but by one caller that receives for all. Who waits looks for some 50 us, and is parked then. No call allocates. Give the kernel as many
/// [channels](crate::LaunchConfig::channels) as processors call it: callers of one channel wait for each other.
///
/// ```
/// # use ring_host::{Device, LaunchConfig, Runtime, kernels::{Echo, EchoMessage}};
/// # use std::time::Duration;
/// # let second = Duration::from_secs(1);
/// let mut kernel = Runtime::open(Device::Cpu)?.launch::<Echo>(LaunchConfig::default())?;
/// kernel.activate(second)?;
/// let client = kernel.client()?;
/// std::thread::scope(|scope| {
///     for thread in 0..4 {
///         let client = client.clone();
///         scope.spawn(move || {
///             let request = EchoMessage::from_seed(thread);
///             assert_eq!(client.call(request, second).unwrap(), request.answer());
///         });
///     }
/// });
/// # kernel.terminate(second)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Client<K: Kernel> {
    channels: Arc<Channels<K>>,
}

impl<K: Kernel> Clone for Client<K> {
    fn clone(&self) -> Client<K> {
        Client { channels: Arc::clone(&self.channels) }
    }
}

impl<K: Kernel> Client<K> {
    /// A client of those channels, of which there is one at least.
    pub(crate) fn new(
        core: &Arc<KernelCore>,
        channels: impl Iterator<Item = Channel<K>>,
        config: ClientConfig,
    ) -> Result<Client<K>, ChannelError> {
        let tickets = config.tickets.get();
        let shared = |channel| Arc::new(SharedChannel::new(core, channel, tickets));
        let each: Box<[Arc<SharedChannel<K>>]> = channels.map(shared).collect();
        if each.is_empty() {
            return Err(ChannelError::Taken(0));
        }
        let ClientConfig { waits_for_activation, by_turns, .. } = config;
        let next = by_turns.then(|| Apart(AtomicUsize::new(0)));
        Ok(Client { channels: Arc::new(Channels { each, next, waits_for_activation }) })
    }

    /// Sends a request on the thread's channel, or by [turns](ClientConfig::by_turns), and waits for its answer.
    ///
    /// # Errors
    /// When it could not be sent, which gives it back, or was not answered before the deadline. A request that was sent may be
    /// handled still; its answer is then nobody's.
    pub fn call(
        &self,
        request: K::Request,
        deadline: impl Into<Deadline>,
    ) -> Result<K::Response, CallError<K::Request>> {
        let (channel, number) = self.channels.of_call();
        self.call_on(channel, number, request, deadline)
    }

    /// The same on the channel of a key: calls with equal keys are handled in the order in which they were sent.
    ///
    /// # Errors
    /// As for [`call`](Self::call).
    pub fn call_by_key(
        &self,
        key: &impl Hash,
        request: K::Request,
        deadline: impl Into<Deadline>,
    ) -> Result<K::Response, CallError<K::Request>> {
        self.call_on(self.of_key(key), None, request, deadline)
    }

    /// Asks one of several handlers, as [`call`](Self::call) does, and gives what that handler answers.
    ///
    /// ```
    /// ring_device::ring_kernel! {
    ///     /// An account.
    ///     struct Account;
    ///
    ///     /// Pays in; gives the balance.
    ///     fn pay_in(balance: &mut u64, amount: &u64) -> u64 {
    ///         *balance = balance.wrapping_add(*amount);
    ///         *balance
    ///     }
    ///
    ///     /// 1 if there is as much, else 0.
    ///     fn covers(balance: &mut u64, amount: &u64) -> u32 {
    ///         u32::from(*balance >= *amount)
    ///     }
    /// }
    /// # use ring_host::{Device, LaunchConfig, Runtime};
    /// # let second = std::time::Duration::from_secs(1);
    /// # let mut kernel = Runtime::open(Device::Cpu)?.launch::<Account>(LaunchConfig::default())?;
    /// # kernel.activate(second)?;
    /// let client = kernel.client()?;
    /// assert_eq!(client.ask(Account::pay_in, 100, second).unwrap(), 100);
    /// assert_eq!(client.ask(Account::covers, 101, second).unwrap(), 0);
    /// # kernel.terminate(second)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As for [`call`](Self::call); and when the answer is not from that handler, which no kernel does by itself.
    pub fn ask<Q: Message, R: Message>(
        &self,
        handler: Handler<K, Q, R>,
        request: Q,
        deadline: impl Into<Deadline>,
    ) -> Result<R, CallError<K::Request>>
    where
        K: Kernel<Request: HasTag, Response: HasTag>,
    {
        answer_of(handler, &self.call(handler.request(request), deadline)?)
    }

    /// The same on the channel of a key, as [`call_by_key`](Self::call_by_key) chooses it.
    ///
    /// # Errors
    /// As for [`ask`](Self::ask).
    pub fn ask_by_key<Q: Message, R: Message>(
        &self,
        key: &impl Hash,
        handler: Handler<K, Q, R>,
        request: Q,
        deadline: impl Into<Deadline>,
    ) -> Result<R, CallError<K::Request>>
    where
        K: Kernel<Request: HasTag, Response: HasTag>,
    {
        answer_of(handler, &self.call_by_key(key, handler.request(request), deadline)?)
    }

    /// Sends a request on the thread's channel, or by [turns](ClientConfig::by_turns), and gives the ticket for its answer: for many calls under way at a
    /// time. With a deadline of [`Duration::ZERO`](std::time::Duration::ZERO) it does not wait for room.
    ///
    /// ```
    /// # use ring_host::{Device, LaunchConfig, Runtime, kernels::{Echo, EchoMessage}};
    /// # use std::time::Duration;
    /// # let second = Duration::from_secs(1);
    /// # let mut kernel = Runtime::open(Device::Cpu)?.launch::<Echo>(LaunchConfig::default())?;
    /// # kernel.activate(second)?;
    /// # let client = kernel.client()?;
    /// let requests = [0, 1, 2].map(EchoMessage::from_seed);
    /// let tickets = requests.map(|request| client.submit(request, second).unwrap());
    /// for (request, ticket) in requests.into_iter().zip(tickets) {
    ///     assert_eq!(ticket.wait(second)?, request.answer());
    /// }
    /// # kernel.terminate(second)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// When it could not be sent before the deadline; the error gives it back.
    pub fn submit(
        &self,
        request: K::Request,
        deadline: impl Into<Deadline>,
    ) -> Result<Ticket<K>, SubmitError<K::Request>> {
        self.submit_on(self.channels.of_request(), request, deadline)
    }

    /// The same on the channel of a key, as [`call_by_key`](Self::call_by_key) chooses it.
    ///
    /// # Errors
    /// As for [`submit`](Self::submit).
    pub fn submit_by_key(
        &self,
        key: &impl Hash,
        request: K::Request,
        deadline: impl Into<Deadline>,
    ) -> Result<Ticket<K>, SubmitError<K::Request>> {
        self.submit_on(self.of_key(key), request, deadline)
    }

    /// How many channels it calls on.
    pub fn channels(&self) -> usize {
        self.channels.each.len()
    }

    /// A call on that channel, which the thread came to by that number, if by any.
    #[inline]
    fn call_on(
        &self,
        channel: usize,
        number: Option<usize>,
        request: K::Request,
        deadline: impl Into<Deadline>,
    ) -> Result<K::Response, CallError<K::Request>> {
        let (place, deadline) =
            self.channels.send(channel, request, deadline).map_err(CallError::NotSent)?;
        let channel = &self.channels.each[channel];
        channel.wait(place, deadline).map_err(|error| {
            channel.forget(place);
            // The request may be handled still, and the thread's next ones only behind it.
            number.into_iter().for_each(spread::keep);
            CallError::NotAnswered(error)
        })
    }

    fn submit_on(
        &self,
        channel: usize,
        request: K::Request,
        deadline: impl Into<Deadline>,
    ) -> Result<Ticket<K>, SubmitError<K::Request>> {
        let (place, _) = self.channels.send(channel, request, deadline)?;
        Ok(Ticket::new(Arc::clone(&self.channels.each[channel]), place))
    }

    fn of_key(&self, key: &impl Hash) -> usize {
        let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(key);
        (hash % self.channels.each.len() as u64) as usize
    }
}

/// What a handler has answered that was asked.
fn answer_of<K, Q: Message, R: Message>(
    handler: Handler<K, Q, R>,
    response: &K::Response,
) -> Result<R, CallError<K::Request>>
where
    K: Kernel<Request: HasTag, Response: HasTag>,
{
    let (kernel, name) = (K::NAME, handler.name());
    handler.answer(response).ok_or(CallError::NotFromHandler { kernel, handler: name })
}

#[cfg(test)]
mod tests {
    use super::{crowd, spread};
    use crate::error::CallError;
    use crate::{Device, LaunchConfig, Runtime};
    use std::time::Duration;

    ring_device::ring_kernel! {
        /// Takes its time. For the CPU device only.
        struct Late {
            name: "late",
            entry: "ring_echo",
        }

        fn handle(request: &u64) -> u64 {
            std::thread::sleep(Duration::from_millis(5));
            *request
        }
    }

    /// What was sent may be handled still, and what the thread sends from now on only behind it, on whichever channel that was.
    #[test]
    fn a_thread_whose_call_was_not_answered_stays_with_its_channel() {
        let long = Duration::from_secs(60);
        let host = Runtime::open(Device::Cpu).unwrap();
        let mut kernel = host.launch::<Late>(LaunchConfig::default().channels(2)).unwrap();
        kernel.activate(long).unwrap();
        let client = kernel.client().unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let own = spread::number_for_call();
                crowd::appear();
                assert_eq!(client.call(3, long).unwrap(), 3);
                crowd::is_parked();
                assert_eq!(spread::number_for_call(), own, "it was answered");
                // On a busy machine the answer may be there before the thread looks at the clock.
                let not_answered = |call| matches!(call, Err(CallError::NotAnswered(_)));
                crowd::appear();
                while !not_answered(client.call(4, Duration::from_millis(1))) {
                    crowd::appear();
                }
                crowd::is_parked();
                let kept = spread::number_for_call();
                crowd::appear();
                assert_eq!([spread::number_for_call(), spread::number_to_keep()], [kept; 2]);
            });
        });
        kernel.terminate(long).unwrap();
    }
}
