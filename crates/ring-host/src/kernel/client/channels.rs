//! The channels that a client calls on: sending on one of them, with what is waited for and what is not.

use super::shared_channel::{Refused, SharedChannel};
use crate::deadline::{Deadline, wait};
use crate::error::{SendTimeoutError, SubmitError, TrySendError};
use ring_device::Kernel;
use std::sync::atomic::AtomicUsize;

/// What all clones of a client have.
#[derive(Debug)]
pub(super) struct Channels<K: Kernel> {
    pub each: Box<[SharedChannel<K>]>,
    /// Calls that name no key, whose channel goes by the remainder.
    pub next: AtomicUsize,
    pub waits_for_activation: bool,
}

impl<K: Kernel> Channels<K> {
    /// Sends a request on one of them, waiting for room until the deadline, and gives the place of its answer.
    pub fn send(
        &self,
        channel: usize,
        request: K::Request,
        deadline: Deadline,
    ) -> Result<u32, SubmitError<K::Request>> {
        let channel = &self.each[channel];
        let mut refused = match channel.try_submit(request) {
            Ok(place) => return Ok(place),
            Err(refused) => refused,
        };
        let look = || {
            if !self.may_pass(&refused) {
                return Err(None);
            }
            // Whoever holds what there is no room for may be waiting for nothing; answers make room.
            channel.receive_some();
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
            Ok(Some(place)) => Ok(place),
            Err(Some(fault)) => {
                Err(SubmitError::NotSent(SendTimeoutError::Fault { message: request, fault }))
            }
            Ok(None) | Err(None) => Err(late(channel, request, refused, deadline)),
        }
    }

    /// Whether what refused a request may pass by itself, and is waited for.
    fn may_pass(&self, refused: &Refused) -> bool {
        match refused {
            Refused::NoPlace => true,
            Refused::BySender(TrySendError::Full(_) | TrySendError::Writing { .. }) => true,
            Refused::BySender(TrySendError::NotActive { .. }) => self.waits_for_activation,
            Refused::BySender(_) => false,
        }
    }
}

/// The error of a request that was not sent, by what refused it last.
#[cold]
fn late<K: Kernel>(
    channel: &SharedChannel<K>,
    message: K::Request,
    refused: Refused,
    deadline: Deadline,
) -> SubmitError<K::Request> {
    let (kernel, tickets) = (channel.core.device.name, channel.places());
    let (channel, waited) = (channel.index(), deadline.waited());
    match refused {
        Refused::NoPlace => SubmitError::NoTicket { message, kernel, channel, tickets, waited },
        Refused::BySender(refused) => SubmitError::NotSent(match refused.waits_for() {
            Ok(waited_for) => {
                SendTimeoutError::Timeout { message, kernel, channel, waited, waited_for }
            }
            Err(error) => error.map(|()| message),
        }),
    }
}
