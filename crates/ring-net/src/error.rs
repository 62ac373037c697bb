//! Why something could not be sent or received.

use crate::refusal::Refusal;
use crate::transport::{EngineError, Silence};
use std::fmt;
use std::time::Duration;

/// How a client's connection stands.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Standing {
    /// A server has taken this client, and has not ended as far as the client knows.
    pub is_open: bool,
    /// How long ago something came from a server; none if nothing ever did.
    pub silent_for: Option<Duration>,
    /// What the last server said when it ended.
    pub ended: Option<String>,
}

impl fmt::Display for Standing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.is_open, self.silent_for) {
            (_, None) => f.write_str("no server has answered yet"),
            (true, Some(silent)) => write!(f, "its server was heard {silent:?} ago"),
            (false, Some(silent)) => {
                write!(f, "its server has ended")?;
                if let Some(why) = &self.ended {
                    write!(f, " ({why})")?;
                }
                write!(f, ", and since {silent:?} no other one has answered")
            }
        }
    }
}

/// Why a service cannot be called any more by a channel.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ServiceError {
    /// The server does not take this client.
    #[error("service {service}: {refusal}")]
    Refused {
        /// The service.
        service: String,
        /// Why.
        refusal: Refusal,
    },
    /// The engine failed.
    #[error("service {service}: {error}")]
    Engine {
        /// The service.
        service: String,
        /// What it said.
        error: EngineError,
    },
}

/// Why a channel could not be opened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// No server answered.
    #[error("service {service}: no server answered within {waited:?}; {said}")]
    NoServer {
        /// The service.
        service: String,
        /// How long was waited.
        waited: Duration,
        /// What the engine knows of it, or what is to be looked at.
        said: String,
    },
    /// It is served, but not to this client.
    #[error("service {service}: no permission: {said}")]
    NotPermitted {
        /// The service.
        service: String,
        /// By whom it is served, and what to do.
        said: String,
    },
    /// It cannot be called.
    #[error(transparent)]
    Service(#[from] ServiceError),
}

impl ConnectError {
    /// No server of that service answered for so long.
    pub(crate) fn unanswered(service: String, waited: Duration, silence: Silence) -> ConnectError {
        let said = match silence {
            Silence::NotPermitted(said) => return ConnectError::NotPermitted { service, said },
            Silence::NotConnected(said) => said,
            Silence::Unexplained => {
                "is it served, by the same engine, and may this process reach it?".to_owned()
            }
        };
        ConnectError::NoServer { service, waited, said }
    }
}

/// Why a request was not sent at once. Each gives it back: see [`into_inner`](Self::into_inner). For a batch, whose requests stay with the caller, `T` is
/// `()`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TrySendError<T> {
    /// As many requests are under way as there may be.
    #[error(
        "as many requests are under way as there may be; receive answers, or send with a deadline"
    )]
    Full(T),
    /// The service cannot be called any more.
    #[error("{error}")]
    Service {
        /// The request.
        message: T,
        /// Why.
        error: ServiceError,
    },
}

/// Why a request was not sent before the deadline. Each gives it back: see [`into_inner`](Self::into_inner).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SendTimeoutError<T> {
    /// As many requests are under way as there may be, still.
    #[error(
        "service {service}: no room for another request within {waited:?}, {standing}; receive answers, or wait longer"
    )]
    Timeout {
        /// The request.
        message: T,
        /// The service.
        service: String,
        /// How long was waited.
        waited: Duration,
        /// How the connection stands.
        standing: Standing,
    },
    /// The service cannot be called any more.
    #[error("{error}")]
    Service {
        /// The request.
        message: T,
        /// Why.
        error: ServiceError,
    },
}

/// The next request has no answer: the server that had it is gone. It may have been handled, or not.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "service {service}: the server that had request {number} is gone; whether it was handled is unknown"
)]
pub struct Unknown {
    /// The service.
    pub service: String,
    /// Which request: so many were sent on this channel before it.
    pub number: u64,
}

/// Why no answer was received at once.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TryRecvError {
    /// None is there now.
    #[error("no answer is there now; try again, or receive with a deadline")]
    Empty,
    /// The next request has none. What follows is received by the next call.
    #[error(transparent)]
    Unknown(#[from] Unknown),
    /// All answers were received, and the service cannot be called any more.
    #[error(transparent)]
    Service(#[from] ServiceError),
}

/// Why no answer was received before the deadline.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RecvTimeoutError {
    /// None came.
    #[error("service {service}: no answer within {waited:?}, {standing}")]
    Timeout {
        /// The service.
        service: String,
        /// How long was waited.
        waited: Duration,
        /// How the connection stands.
        standing: Standing,
    },
    /// The next request has none. What follows is received by the next call.
    #[error(transparent)]
    Unknown(#[from] Unknown),
    /// All answers were received, and the service cannot be called any more.
    #[error(transparent)]
    Service(#[from] ServiceError),
}

impl<T> TrySendError<T> {
    /// The request that was not sent.
    pub fn into_inner(self) -> T {
        match self {
            TrySendError::Full(message) | TrySendError::Service { message, .. } => message,
        }
    }
}

impl<T> SendTimeoutError<T> {
    /// The request that was not sent.
    pub fn into_inner(self) -> T {
        match self {
            SendTimeoutError::Timeout { message, .. }
            | SendTimeoutError::Service { message, .. } => message,
        }
    }
}
