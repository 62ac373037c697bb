//! A channel that many threads call on.
//!
//! Each caller sends by itself, one after the other. One of those that wait receives, and gives the others their answers;
//! they are parked. When it has its own answer, or its deadline has passed, the one that has been parked longest takes over.
//!
//! Nobody is left parked while nobody receives: a caller notes that it is about to be parked, and only then tries for the last
//! time to become the one that receives. Whoever stops to receive lets go of the receiver first, and then looks who is
//! parked. Both go through the desk's lock: if the look was before the note, the receiver was free before the try.

use super::desk::{Desk, Given};
use crate::deadline::{Deadline, park, wait};
use crate::error::{RecvTimeoutError, TryRecvError, TrySendError};
use crate::kernel::channel::{Channel, Receiver, Sender};
use crate::kernel::core::KernelCore;
use crate::sync::{Mutex, MutexGuard, current, unless_locked, unpoisoned};
use ring_device::Kernel;
use std::fmt;
use std::sync::Arc;

/// Why a request was not sent now.
pub(super) enum Refused {
    /// All places have a call whose answer has not come or was not taken.
    NoPlace,
    /// The channel refused it.
    BySender(TrySendError<()>),
}

/// A channel, its callers, and their answers.
pub(super) struct SharedChannel<K: Kernel> {
    pub core: Arc<KernelCore>,
    index: u32,
    sender: Mutex<Sender<K>>,
    receiver: Mutex<Receiver<K>>,
    desk: Mutex<Desk<K::Response>>,
}

impl<K: Kernel> fmt::Debug for SharedChannel<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedChannel").field("index", &self.index).finish_non_exhaustive()
    }
}

impl<K: Kernel> SharedChannel<K> {
    /// The channel, for so many calls at a time.
    pub fn new(core: &Arc<KernelCore>, channel: Channel<K>, calls: u32) -> SharedChannel<K> {
        let (sender, receiver) = channel.into_split();
        SharedChannel {
            core: Arc::clone(core),
            index: receiver.channel(),
            sender: Mutex::new(sender),
            receiver: Mutex::new(receiver),
            desk: Mutex::new(Desk::new(calls)),
        }
    }

    /// Its index.
    pub fn index(&self) -> u32 {
        self.index
    }

    /// How many calls it has places for.
    pub fn places(&self) -> usize {
        self.desk().places()
    }

    /// Sends a request if there is room, and gives the place of its answer.
    pub fn try_submit(&self, request: K::Request) -> Result<u32, Refused> {
        // The places are in the order of the requests, since both are taken under this lock.
        let mut sender = unpoisoned(self.sender.lock());
        let place = self.desk().take();
        let Some(place) = place else {
            // What has ended gives no place back either.
            return Err(sender.admitted().map_or_else(Refused::BySender, |_| Refused::NoPlace));
        };
        match sender.try_send(request) {
            Ok(()) => Ok(place),
            Err(refused) => {
                self.desk().give_back_last();
                Err(Refused::BySender(refused.without_message()))
            }
        }
    }

    /// The answer of that place if it has come, or why it does not come.
    pub fn look(&self, place: u32) -> Result<Option<K::Response>, RecvTimeoutError> {
        let Some(mut receiver) = self.try_receiver() else { return Ok(self.desk().collect(place)) };
        let there = self.desk().collect(place);
        let found = match there {
            Some(answer) => Ok(Some(answer)),
            None => self.receive(&mut receiver, Some(place)),
        };
        self.hand_over(receiver);
        found
    }

    /// Gives all answers that are there to whom they belong, unless somebody does already.
    pub fn receive_some(&self) {
        if let Some(mut receiver) = self.try_receiver() {
            // Why there are no more, those learn who wait for them.
            let _ = self.receive(&mut receiver, None);
            self.hand_over(receiver);
        }
    }

    /// The answer of that place, which is free then; after an error it is not.
    pub fn wait(&self, place: u32, deadline: Deadline) -> Result<K::Response, RecvTimeoutError> {
        loop {
            if let Some(receiver) = self.try_receiver() {
                return self.wait_as_receiver(receiver, place, deadline);
            }
            if let Some(answer) = self.desk().collect_or_park(place, current()) {
                return Ok(answer);
            }
            if let Some(receiver) = self.try_receiver() {
                return self.wait_as_receiver(receiver, place, deadline);
            }
            // It may return at once, by what woke the thread too late for an earlier wait.
            park(deadline);
            if deadline.passed() {
                return self.leave(place, deadline);
            }
        }
    }

    /// Nobody wants that answer any more.
    pub fn forget(&self, place: u32) {
        self.desk().forget(place);
    }

    fn wait_as_receiver(
        &self,
        mut receiver: MutexGuard<'_, Receiver<K>>,
        place: u32,
        deadline: Deadline,
    ) -> Result<K::Response, RecvTimeoutError> {
        let there = self.stay_and_collect(place);
        let found = match there {
            Some(answer) => Ok(Some(answer)),
            None => {
                // A fault is returned by the next look, which first takes what was answered before it.
                let check = || {
                    let _ = self.core.check();
                    Ok(())
                };
                let look = || self.receive(&mut receiver, Some(place));
                wait(deadline, self.core.device.patience, look, check)
            }
        };
        self.hand_over(receiver);
        found?.ok_or_else(|| self.late(deadline))
    }

    /// Receives until the answer of the place `own` is there, or none is left.
    fn receive(
        &self,
        receiver: &mut Receiver<K>,
        own: Option<u32>,
    ) -> Result<Option<K::Response>, RecvTimeoutError> {
        loop {
            let answer = match receiver.try_recv() {
                Ok(answer) => answer,
                Err(TryRecvError::Empty) => return Ok(None),
                Err(end) => return RecvTimeoutError::unless_empty(end).map(|()| None),
            };
            let given = self.desk().give(answer, own);
            match given {
                Given::Own(answer) => return Ok(Some(answer)),
                Given::ToAnother(Some(thread)) => thread.unpark(),
                Given::ToAnother(None) => {}
            }
        }
    }

    /// The end of a wait whose deadline has passed while another received.
    fn leave(&self, place: u32, deadline: Deadline) -> Result<K::Response, RecvTimeoutError> {
        let answer = self.stay_and_collect(place);
        // It may have been woken to receive.
        self.wake_next();
        answer.ok_or_else(|| self.late(deadline))
    }

    /// Lets go of the receiver, and wakes who is to have it next.
    fn hand_over(&self, receiver: MutexGuard<'_, Receiver<K>>) {
        drop(receiver);
        self.wake_next();
    }

    /// The answer of a place whose thread is not parked any more, if it has come.
    fn stay_and_collect(&self, place: u32) -> Option<K::Response> {
        let mut desk = self.desk();
        desk.stay(place);
        desk.collect(place)
    }

    fn wake_next(&self) {
        let next = self.desk().next();
        if let Some(thread) = next {
            thread.unpark();
        }
    }

    fn late(&self, deadline: Deadline) -> RecvTimeoutError {
        RecvTimeoutError::Timeout {
            kernel: self.core.device.name,
            channel: self.index,
            waited: deadline.waited(),
            state: self.core.device.state(),
        }
    }

    fn try_receiver(&self) -> Option<MutexGuard<'_, Receiver<K>>> {
        unless_locked(self.receiver.try_lock())
    }

    fn desk(&self) -> MutexGuard<'_, Desk<K::Response>> {
        unpoisoned(self.desk.lock())
    }
}
