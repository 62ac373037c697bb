//! A client's channel to a kernel that another process serves.

use crate::error::{
    ConnectError, RecvTimeoutError, SendTimeoutError, ServiceError, Standing, TryRecvError,
    TrySendError, Unknown,
};
use crate::frame::Description;
use crate::idle::Idle;
use crate::protocol::client::{ClientSession, Next, Phase};
use crate::split::{self, RemoteReceiver, RemoteSender};
use crate::transport::{Connection, EngineError};
use crate::waits;
use ring_host::{Deadline, Kernel};
use std::fmt;
use std::marker::PhantomData;
use std::time::{Duration, Instant};

/// What can be chosen of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientConfig {
    window: u32,
    looks_for: Duration,
}

impl Default for ClientConfig {
    fn default() -> ClientConfig {
        ClientConfig { window: 1024, looks_for: Duration::from_millis(10) }
    }
}

impl ClientConfig {
    /// How many requests may be under way at a time, a power of two: 1024 by default, 65,536 at most, and no more than the server allows. Other numbers become the next
    /// power of two.
    pub fn window(mut self, requests: u32) -> ClientConfig {
        self.window = requests.clamp(1, 1 << 16).next_power_of_two();
        self
    }

    /// How long a wait looks without pause when nothing comes, before it sleeps for 200 us between looks: 10 ms by default.
    pub fn look_for(mut self, looks_for: Duration) -> ClientConfig {
        self.looks_for = looks_for;
        self
    }
}

/// A channel to a kernel that another process or host serves: requests go in, answers come out in order.
///
/// Each request is answered once. Where a connection breaks, it goes on where it was when there is one again. Where the server is gone, what was
/// sent and not answered is told as [`Unknown`](TryRecvError::Unknown), one by one, in its turn among the answers; it may have been handled, or not. The channel then goes
/// on with the next server of that name.
///
/// It does nothing by itself: what comes is looked for when something is sent or received.
pub struct RemoteChannel<K: Kernel> {
    service: String,
    session: ClientSession,
    connection: Box<dyn Connection>,
    /// How its waits pass the time.
    idle: Idle,
    /// The engine has failed: nothing more comes.
    failed: Option<EngineError>,
    kernel: PhantomData<fn() -> K>,
}

/// Frames that are read in one look.
const FRAMES: usize = 64;

impl<K: Kernel> RemoteChannel<K> {
    /// Opens a channel by a connection; waits until the server has taken this client.
    ///
    /// # Errors
    /// When no server answers before the deadline, this client is not permitted to call it, or it refuses.
    pub fn open(
        connection: impl Connection + 'static,
        config: ClientConfig,
        deadline: impl Into<Deadline>,
    ) -> Result<RemoteChannel<K>, ConnectError> {
        let deadline = deadline.into();
        let mut channel = RemoteChannel {
            service: connection.service().to_owned(),
            session: ClientSession::new(connection.client(), Description::of::<K>(), config.window),
            connection: Box::new(connection),
            idle: Idle::new(config.looks_for),
            failed: None,
            kernel: PhantomData,
        };
        loop {
            let has_come = channel.turn();
            if let Some(error) = channel.over() {
                return Err(error.into());
            }
            match channel.session.phase() {
                Phase::Open(_) => return Ok(channel),
                Phase::Opening if deadline.passed() => {
                    let (service, waited) = (channel.service.clone(), deadline.waited());
                    let silence = channel.connection.silence();
                    return Err(ConnectError::unanswered(service, waited, silence));
                }
                _ if has_come => channel.idle.found(),
                _ => channel.idle.pause(),
            }
        }
    }

    /// Sends a request, if there is room for it.
    ///
    /// # Errors
    /// When there is none, or the service cannot be called any more. The error gives the request back.
    pub fn try_send(&mut self, request: K::Request) -> Result<(), TrySendError<K::Request>> {
        if self.session.room() == 0 {
            self.turn();
        }
        if let Some(error) = self.over() {
            return Err(TrySendError::Service { message: request, error });
        }
        let Some(slot) = self.session.slot() else { return Err(TrySendError::Full(request)) };
        slot.copy_from_slice(bytemuck::bytes_of(&request));
        self.session.push();
        self.transmit(Instant::now());
        Ok(())
    }

    /// Sends a request, when there is room for it.
    ///
    /// # Errors
    /// As for [`try_send`](Self::try_send), when there is none before the deadline. Who has as many requests under way as there may be and takes no answers
    /// waits in vain.
    pub fn send(
        &mut self,
        request: K::Request,
        deadline: impl Into<Deadline>,
    ) -> Result<(), SendTimeoutError<K::Request>> {
        waits::send(self, request, deadline.into())
    }

    /// Sends as many of the requests as there is room for, in order; how many that is. They go by as few frames as hold them.
    ///
    /// # Errors
    /// When the service cannot be called any more.
    pub fn try_send_batch(&mut self, requests: &[K::Request]) -> Result<usize, TrySendError<()>> {
        if self.session.room() < requests.len() as u64 {
            self.turn();
        }
        if let Some(error) = self.over() {
            return Err(TrySendError::Service { message: (), error });
        }
        let mut sent = 0;
        for request in requests {
            let Some(slot) = self.session.slot() else { break };
            slot.copy_from_slice(bytemuck::bytes_of(request));
            self.session.push();
            sent += 1;
        }
        self.transmit(Instant::now());
        Ok(sent)
    }

    /// The next answer, if it is there.
    ///
    /// # Errors
    /// When it is not there; when the next request will have none; when the service cannot be called any more and there is nothing more to receive.
    pub fn try_recv(&mut self) -> Result<K::Response, TryRecvError> {
        if self.session.ready() == 0 {
            self.turn();
        }
        self.take()
    }

    /// The next answer, when it is there.
    ///
    /// # Errors
    /// As for [`try_recv`](Self::try_recv), when it is not there before the deadline. It is not lost, and comes another time.
    pub fn recv(&mut self, deadline: impl Into<Deadline>) -> Result<K::Response, RecvTimeoutError> {
        waits::recv(self, deadline.into())
    }

    /// As many answers as are there and fit, in order; how many that is, 0 if none is there. It ends in front of a request that will have none, which is
    /// told if it comes first.
    ///
    /// # Errors
    /// As for [`try_recv`](Self::try_recv), if the first is no answer.
    pub fn try_recv_batch(&mut self, answers: &mut [K::Response]) -> Result<usize, TryRecvError> {
        if self.session.ready() < answers.len() as u64 {
            self.turn();
        }
        let mut received = 0;
        for answer in answers {
            if received > 0 && !self.session.is_answer_next() {
                break;
            }
            match self.take() {
                Ok(next) => *answer = next,
                Err(TryRecvError::Empty) => break,
                Err(error) => return Err(error),
            }
            received += 1;
        }
        Ok(received)
    }

    /// The channel in two halves, for two threads: each looks at what has come, and one waits while the other does.
    pub fn into_split(self) -> (RemoteSender<K>, RemoteReceiver<K>) {
        split::halves(self)
    }

    /// The service that is called.
    pub fn service(&self) -> &str {
        &self.service
    }

    /// How many requests may be under way at a time: as many as this client has room for and the server allows.
    pub fn capacity(&self) -> usize {
        self.session.window() as usize
    }

    /// How many requests were sent whose answers have not been received.
    pub fn unanswered(&self) -> u64 {
        self.session.unanswered()
    }

    /// How the connection stands: whether there is a server, and when it was heard last.
    pub fn standing(&self) -> Standing {
        let (heard, ended) = self.session.heard();
        Standing {
            is_open: matches!(self.session.phase(), Phase::Open(_)),
            silent_for: heard.map(|heard| heard.elapsed()),
            ended: ended.map(str::to_owned),
        }
    }

    /// Whether there is room for a request.
    #[cfg(feature = "async")]
    pub(crate) fn has_room(&mut self) -> Result<bool, ServiceError> {
        if self.session.room() == 0 {
            self.turn();
        }
        self.over().map_or(Ok(self.session.room() > 0), Err)
    }

    /// Whether all requests were sent, as far as the engine tells.
    #[cfg(feature = "async")]
    pub(crate) fn is_flushed(&mut self) -> Result<bool, ServiceError> {
        if !self.session.is_sent() {
            self.turn();
        }
        self.over().map_or(Ok(self.session.is_sent()), Err)
    }

    /// How its waits pass the time.
    pub(crate) fn idle(&mut self) -> &mut Idle {
        &mut self.idle
    }

    fn take(&mut self) -> Result<K::Response, TryRecvError> {
        let mut answer = bytemuck::Zeroable::zeroed();
        match self.session.take(bytemuck::bytes_of_mut(&mut answer)) {
            Next::Answer => Ok(answer),
            Next::Unknown(number) => Err(Unknown { service: self.service.clone(), number }.into()),
            Next::Nothing => Err(self.over().map_or(TryRecvError::Empty, TryRecvError::Service)),
        }
    }

    /// Why nothing more can be sent, and nothing more comes; none if that may go on.
    fn over(&self) -> Option<ServiceError> {
        let service = || self.service.clone();
        match (self.session.phase(), &self.failed) {
            (Phase::Refused(refusal), _) => {
                Some(ServiceError::Refused { service: service(), refusal: (**refusal).clone() })
            }
            (_, Some(error)) => {
                Some(ServiceError::Engine { service: service(), error: error.clone() })
            }
            _ => None,
        }
    }

    /// Looks at what has come, and sends what is to be sent; whether there was anything.
    fn turn(&mut self) -> bool {
        let now = Instant::now();
        let mut does = false;
        for _ in 0..FRAMES {
            let session = &mut self.session;
            match self.connection.receive(&mut |bytes| session.receive(bytes, now)) {
                Ok(true) => does = true,
                Ok(false) => break,
                Err(error) => {
                    self.failed = Some(error);
                    return true;
                }
            }
        }
        does | self.transmit(now)
    }

    fn transmit(&mut self, now: Instant) -> bool {
        if self.failed.is_some() {
            return false;
        }
        self.session.transmit(&mut *self.connection, now).unwrap_or_else(|error| {
            self.failed = Some(error);
            true
        })
    }
}

/// Tells the server that the client will not come back: what is under way is handled, and its answers are nobody's.
impl<K: Kernel> Drop for RemoteChannel<K> {
    fn drop(&mut self) {
        self.session.leave(&mut *self.connection);
    }
}

impl<K: Kernel> fmt::Debug for RemoteChannel<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteChannel")
            .field("service", &self.service)
            .field("kernel", &K::NAME)
            .field("unanswered", &self.unanswered())
            .field("standing", &self.standing())
            .finish_non_exhaustive()
    }
}
