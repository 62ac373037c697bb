//! A kernel served to clients in other processes.

use crate::frame::Description;
use crate::idle::Idle;
use crate::protocol::server::{Choices, Counts, Sessions};
use crate::transport::{EngineError, Listener};
use ring_host::{Channel, Deadline, DeviceFault, Kernel, TryRecvError, TrySendError};
use std::fmt;
use std::time::{Duration, Instant};

/// What can be chosen of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerConfig {
    clients: usize,
    window: u32,
    keeps: Duration,
    looks_for: Duration,
}

impl Default for ServerConfig {
    fn default() -> ServerConfig {
        ServerConfig {
            clients: 128,
            window: 1024,
            keeps: Duration::from_secs(60),
            looks_for: Duration::from_millis(10),
        }
    }
}

impl ServerConfig {
    /// How many clients may have a session at a time: 128 by default. More are refused.
    pub fn clients(mut self, most: usize) -> ServerConfig {
        self.clients = most.max(1);
        self
    }

    /// How many requests of a client may be under way at a time, a power of two: 1024 by default, and 65,536 at most. Other numbers become the next
    /// power of two. For each client the server keeps room for so many requests and answers.
    pub fn window(mut self, requests: u32) -> ServerConfig {
        self.window = requests.clamp(1, 1 << 16).next_power_of_two();
        self
    }

    /// How long the server keeps the session of a client that sends nothing: a minute by default. What the client had under way is
    /// unknown to it then.
    pub fn keep_silent_clients(mut self, keeps: Duration) -> ServerConfig {
        self.keeps = keeps;
        self
    }

    /// How long [`Server::run`] looks for requests without pause when none come, before it sleeps for 200 us between looks: 10 ms by
    /// default. `Duration::MAX` has it never sleep, so that the first request after a pause is answered as soon as the others, at the cost of a processor.
    pub fn look_for(mut self, looks_for: Duration) -> ServerConfig {
        self.looks_for = looks_for;
        self
    }
}

/// Why a server serves no more.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The kernel answers no more; clients have been told.
    #[error(
        "service {service}: {fault}; clients were told, what they had under way is unknown to them"
    )]
    Kernel {
        /// The service.
        service: String,
        /// What happened.
        fault: DeviceFault,
    },
    /// The kernel was terminated while it was served; clients have been told.
    #[error(
        "service {service}: kernel {kernel} was terminated while it was served; clients were told"
    )]
    Closed {
        /// The service.
        service: String,
        /// The kernel.
        kernel: &'static str,
    },
    /// The engine failed.
    #[error("service {service}: {error}")]
    Engine {
        /// The service.
        service: String,
        /// What it said.
        error: EngineError,
    },
    /// Not all requests that were taken were answered in time; clients have been told which.
    #[error(
        "service {service}: {unanswered} requests were not answered within {waited:?}; is the kernel active?"
    )]
    Unanswered {
        /// The service.
        service: String,
        /// How many.
        unanswered: u64,
        /// How long was waited.
        waited: Duration,
    },
}

/// Serves a channel of a kernel to clients in other processes or on other hosts, as many as
/// [`ServerConfig::clients`] says.
///
/// It does nothing by itself: a thread calls [`run`](Self::run), or [`poll`](Self::poll) again and again. Each client's requests are handled once
/// and answered in order. Requests wait here while the kernel is not active.
/// Dropping it tells clients that it has ended.
pub struct Server<K: Kernel> {
    service: String,
    channel: Channel<K>,
    clients: Clients,
    looks_for: Duration,
}

/// Who is served.
struct Clients {
    sessions: Sessions,
    listener: Box<dyn Listener>,
}

/// Frames that are read before answers are looked for.
const FRAMES: usize = 64;

/// Requests of one client that are given to the kernel before another's.
const BURST: u64 = 64;

/// Answers that are taken before requests are looked for.
const ANSWERS: usize = 1024;

impl<K: Kernel> Server<K> {
    /// Serves that channel to whom a listener hears.
    pub fn new(
        channel: Channel<K>,
        listener: impl Listener + 'static,
        config: ServerConfig,
    ) -> Server<K> {
        let description = Description::of::<K>();
        let ServerConfig { clients, window, keeps, looks_for } = config;
        let batch = description.batch(listener.frame_bytes()).min(window);
        let choices = Choices { clients, window, batch, keeps };
        Server {
            service: listener.service().to_owned(),
            channel,
            clients: Clients {
                sessions: Sessions::new(description, choices, Instant::now()),
                listener: Box::new(listener),
            },
            looks_for,
        }
    }

    /// What was counted since it began.
    pub fn counts(&self) -> Counts {
        self.clients.sessions.counts()
    }

    /// Takes what has come, gives it to the kernel, and sends answers, as much as there is now; whether there was any. It does not wait.
    ///
    /// # Errors
    /// When the kernel answers no more, or the engine fails. Clients are told.
    pub fn poll(&mut self) -> Result<bool, ServeError> {
        self.turn(true)
    }

    /// Polls until `ends` says so, which is asked between polls.
    ///
    /// # Errors
    /// As for [`poll`](Self::poll).
    pub fn run(&mut self, mut ends: impl FnMut() -> bool) -> Result<(), ServeError> {
        let mut idle = Idle::new(self.looks_for);
        while !ends() {
            match self.poll()? {
                true => idle.found(),
                false => idle.pause(),
            }
        }
        Ok(())
    }

    /// Takes no more requests, answers those that it has taken, and tells clients that it ends: what it has not taken is not unknown to them, and goes to the next
    /// server. Gives the channel back.
    ///
    /// # Errors
    /// As for [`poll`](Self::poll), and when not all were answered before the deadline.
    pub fn finish(mut self, deadline: impl Into<Deadline>) -> Result<Channel<K>, ServeError> {
        let deadline = deadline.into();
        let mut idle = Idle::new(self.looks_for);
        while self.clients.sessions.unanswered() > 0 {
            if deadline.passed() {
                let (service, unanswered) =
                    (self.service.clone(), self.clients.sessions.unanswered());
                return Err(ServeError::Unanswered {
                    service,
                    unanswered,
                    waited: deadline.waited(),
                });
            }
            match self.turn(false)? {
                true => idle.found(),
                false => idle.pause(),
            }
        }
        self.clients.end("it was asked to");
        Ok(self.channel)
    }

    fn turn(&mut self, takes: bool) -> Result<bool, ServeError> {
        match self.try_turn(takes) {
            Err(error) => {
                self.clients.end(&error.to_string());
                Err(error)
            }
            turned => turned,
        }
    }

    fn try_turn(&mut self, takes: bool) -> Result<bool, ServeError> {
        let now = Instant::now();
        let Server { service, channel, clients: Clients { sessions, listener }, .. } = self;
        let engine = |error| ServeError::Engine { service: service.clone(), error };
        let mut end = None;
        let mut give = |messages: &[u8]| give(channel, messages, &mut end);
        let mut does = sessions.give(BURST, &mut give);
        for _ in 0..if takes { FRAMES } else { 0 } {
            if !listener
                .receive(&mut |bytes| sessions.receive(bytes, now, &mut give))
                .map_err(engine)?
            {
                break;
            }
            does = true;
        }
        let received =
            channel.try_recv_each(ANSWERS, |answer| sessions.answer(bytemuck::bytes_of(answer)));
        let end = match received {
            Ok(answers) => {
                does |= answers > 0;
                end
            }
            Err(TryRecvError::Fault(fault)) => Some(End::Fault(fault)),
            Err(TryRecvError::Closed { kernel }) => Some(End::Closed(kernel)),
            Err(_) => end,
        };
        does |= sessions.transmit(now, &mut **listener).map_err(engine)?;
        sessions.sweep(now);
        let service = || service.clone();
        match end {
            None => Ok(does),
            Some(End::Fault(fault)) => Err(ServeError::Kernel { service: service(), fault }),
            Some(End::Closed(kernel)) => Err(ServeError::Closed { service: service(), kernel }),
        }
    }
}

/// Why a kernel takes and answers no more.
enum End {
    Fault(DeviceFault),
    Closed(&'static str),
}

/// Gives a kernel as many of the requests that stand there as it takes.
fn give<K: Kernel>(channel: &mut Channel<K>, messages: &[u8], end: &mut Option<End>) -> usize {
    let size = size_of::<K::Request>();
    let request = |k: usize| bytemuck::pod_read_unaligned(&messages[k * size..(k + 1) * size]);
    match channel.try_send_each(messages.len() / size, request) {
        Ok(given) => given,
        Err(TrySendError::Fault { fault, .. }) => {
            *end = Some(End::Fault(fault));
            0
        }
        // It says so itself when its answers are received; and else it takes them later.
        Err(_) => 0,
    }
}

impl Clients {
    /// Tells all, and has none behind it. If that fails, they find that nobody answers.
    fn end(&mut self, why: &str) {
        let _ = self.sessions.end(why, Instant::now(), &mut *self.listener);
    }
}

impl Drop for Clients {
    fn drop(&mut self) {
        self.end("it was dropped");
    }
}

impl<K: Kernel> fmt::Debug for Server<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server")
            .field("service", &self.service)
            .field("kernel", &K::NAME)
            .field("counts", &self.counts())
            .finish_non_exhaustive()
    }
}
