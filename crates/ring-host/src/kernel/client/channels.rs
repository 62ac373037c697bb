//! The channels that a client calls on: sending on one of them, with what is waited for and what is not.

use super::shared_channel::{Apart, Refused, SharedChannel};
use super::spread::{number_for_call, number_to_keep};
use crate::deadline::{Deadline, wait};
use crate::error::{SendTimeoutError, SubmitError, TrySendError};
use ring_device::Kernel;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

/// What all clones of a client have.
#[derive(Debug)]
pub(super) struct Channels<K: Kernel> {
    pub each: Box<[Arc<SharedChannel<K>>]>,
    /// Calls that name no key, if their channel goes by turns.
    pub next: Option<Apart<AtomicUsize>>,
    pub waits_for_activation: bool,
}

impl<K: Kernel> Channels<K> {
    /// The index of the channel of a request that names no key, and whose answer the thread does not wait for.
    #[inline]
    pub fn of_request(&self) -> usize {
        self.turn().unwrap_or_else(|| number_to_keep() % self.each.len())
    }

    /// The same of a call that waits for its answer; and the number that the thread has to [keep](super::spread::keep) if
    /// it ends without one.
    #[inline]
    pub fn of_call(&self) -> (usize, Option<usize>) {
        self.turn().map_or_else(
            || {
                let number = number_for_call();
                (number % self.each.len(), Some(number))
            },
            |turn| (turn, None),
        )
    }

    /// Whose turn it is, if calls go by turns, or if there is one channel only.
    #[inline]
    fn turn(&self) -> Option<usize> {
        match (self.each.len(), &self.next) {
            (1, _) => Some(0),
            (count, Some(next)) => Some(next.0.fetch_add(1, Relaxed) % count),
            (_, None) => None,
        }
    }

    /// Sends a request on one of them, waiting for room until the deadline, and gives the place of its answer. The clock is
    /// read when the request was sent, or could not be at once.
    #[inline]
    pub fn send(
        &self,
        channel: usize,
        request: K::Request,
        deadline: impl Into<Deadline>,
    ) -> Result<(u32, Deadline), SubmitError<K::Request>> {
        let channel = &self.each[channel];
        let sent = channel.try_submit(request);
        let deadline = deadline.into();
        match sent {
            Ok(place) => Ok((place, deadline)),
            Err(refused) => self.send_waiting(channel, request, refused, deadline),
        }
    }

    #[cold]
    fn send_waiting(
        &self,
        channel: &SharedChannel<K>,
        request: K::Request,
        mut refused: Refused,
        deadline: Deadline,
    ) -> Result<(u32, Deadline), SubmitError<K::Request>> {
        let look = || {
            if !self.may_pass(&refused) {
                return Err(None);
            }
            // Whoever holds what there is no room for may be waiting for nothing; answers make room.
            channel.receive_some(false);
            Ok(match channel.try_submit(request) {
                Ok(place) => Some(place),
                Err(again) => {
                    refused = again;
                    None
                }
            })
        };
        let check = || channel.core.check().map_err(Some);
        match wait(deadline, channel.core.device.patience, look, check) {
            Ok(Some(place)) => Ok((place, deadline)),
            Err(Some(fault)) => {
                Err(SubmitError::NotSent(SendTimeoutError::Fault { message: request, fault }))
            }
            Ok(None) | Err(None) => Err(refused.into_error(channel, request, deadline.waited())),
        }
    }

    /// Whether what refused a request may pass by itself, and is waited for.
    pub fn may_pass(&self, refused: &Refused) -> bool {
        match refused {
            Refused::NoPlace => true,
            Refused::BySender(TrySendError::Full(_) | TrySendError::Writing { .. }) => true,
            Refused::BySender(TrySendError::NotActive { .. }) => self.waits_for_activation,
            Refused::BySender(_) => false,
        }
    }
}

impl Refused {
    /// The error of a request that was not sent, after waiting so long.
    #[cold]
    pub fn into_error<K: Kernel>(
        self,
        channel: &SharedChannel<K>,
        message: K::Request,
        waited: Duration,
    ) -> SubmitError<K::Request> {
        let (kernel, tickets) = (channel.core.device.name, channel.places());
        let channel = channel.index();
        match self {
            Refused::NoPlace => SubmitError::NoTicket { message, kernel, channel, tickets, waited },
            Refused::BySender(refused) => SubmitError::NotSent(match refused.waits_for() {
                Ok(waited_for) => {
                    SendTimeoutError::Timeout { message, kernel, channel, waited, waited_for }
                }
                Err(error) => error.map(|()| message),
            }),
        }
    }
}
