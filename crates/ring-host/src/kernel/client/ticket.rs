//! The right to one answer.

use super::shared_channel::SharedChannel;
use crate::deadline::Deadline;
use crate::error::RecvTimeoutError;
use ring_device::Kernel;
use std::fmt;
use std::sync::Arc;

/// The answer to come of a request that [`Client::submit`](crate::Client::submit) has sent.
///
/// Dropping it gives up the answer; the request may be handled still. Until the answer is taken or the ticket is dropped it is one of
/// the channel's [tickets](crate::ClientConfig::tickets).
#[derive(Debug)]
#[must_use = "the answer is given up with the ticket"]
pub struct Ticket<K: Kernel> {
    pub(super) channel: Arc<SharedChannel<K>>,
    place: u32,
    /// The answer was taken, and the place is another call's.
    is_over: bool,
}

impl<K: Kernel> Ticket<K> {
    pub(super) fn new(channel: Arc<SharedChannel<K>>, place: u32) -> Ticket<K> {
        Ticket { channel, place, is_over: false }
    }

    /// Waits for the answer until the deadline.
    ///
    /// # Errors
    /// When there is none by then, or there will be none. The error gives the ticket back.
    pub fn wait(mut self, deadline: impl Into<Deadline>) -> Result<K::Response, Unanswered<K>> {
        // The clock need not be read if it is there.
        let answer = match self.channel.look(self.place) {
            Ok(Some(answer)) => Ok(answer),
            Ok(None) => self.channel.wait(self.place, deadline.into()),
            Err(error) => Err(error),
        };
        match answer {
            Ok(answer) => {
                self.is_over = true;
                Ok(answer)
            }
            Err(error) => Err(Unanswered { ticket: self, error }),
        }
    }

    /// The answer, if it is there; else the ticket.
    ///
    /// # Errors
    /// When there will be none. The error gives the ticket back.
    pub fn try_take(self) -> Result<Result<K::Response, Ticket<K>>, Unanswered<K>> {
        self.take_by(|channel, place| channel.look(place))
    }

    /// The answer, if the look finds it; else the ticket.
    pub(super) fn take_by(
        mut self,
        look: impl FnOnce(&SharedChannel<K>, u32) -> Result<Option<K::Response>, RecvTimeoutError>,
    ) -> Result<Result<K::Response, Ticket<K>>, Unanswered<K>> {
        match look(&self.channel, self.place) {
            Ok(Some(answer)) => {
                self.is_over = true;
                Ok(Ok(answer))
            }
            Ok(None) => Ok(Err(self)),
            Err(error) => Err(Unanswered { ticket: self, error }),
        }
    }
}

impl<K: Kernel> Drop for Ticket<K> {
    fn drop(&mut self) {
        if !self.is_over {
            self.channel.forget(self.place);
        }
    }
}

/// Why a ticket has no answer, and the ticket.
#[derive(Debug, thiserror::Error)]
pub struct Unanswered<K: Kernel> {
    ticket: Ticket<K>,
    #[source]
    error: RecvTimeoutError,
}

impl<K: Kernel> Unanswered<K> {
    /// Why.
    pub fn error(&self) -> &RecvTimeoutError {
        &self.error
    }

    /// The ticket, to wait again.
    pub fn into_ticket(self) -> Ticket<K> {
        self.ticket
    }
}

impl<K: Kernel> fmt::Display for Unanswered<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl<K: Kernel> From<Unanswered<K>> for RecvTimeoutError {
    fn from(unanswered: Unanswered<K>) -> RecvTimeoutError {
        unanswered.error
    }
}
