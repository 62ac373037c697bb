//! The right to one answer.

use super::channels::Channels;
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
    channels: Arc<Channels<K>>,
    channel: usize,
    place: u32,
    /// The answer was taken, and the place is another call's.
    is_over: bool,
}

impl<K: Kernel> Ticket<K> {
    pub(super) fn new(channels: Arc<Channels<K>>, channel: usize, place: u32) -> Ticket<K> {
        Ticket { channels, channel, place, is_over: false }
    }

    /// Waits for the answer until the deadline.
    ///
    /// # Errors
    /// When there is none by then, or there will be none. The error gives the ticket back.
    pub fn wait(mut self, deadline: impl Into<Deadline>) -> Result<K::Response, Unanswered<K>> {
        match self.channels.each[self.channel].wait(self.place, deadline.into()) {
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
    pub fn try_take(mut self) -> Result<Result<K::Response, Ticket<K>>, Unanswered<K>> {
        match self.channels.each[self.channel].look(self.place) {
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
            self.channels.each[self.channel].forget(self.place);
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
