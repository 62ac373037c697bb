//! A channel that many threads call on.
//!
//! Each caller sends by itself, one after the other. Who waits for an answer looks for a while: whether another has received it, and if
//! nobody receives right now, for answers in the ring, of which it gives the others theirs. If none comes for longer, one of those who
//! wait stays to receive for all, and the others are parked. When it has its own answer, or its deadline has passed, the one
//! that has been parked longest takes over.
//!
//! Nobody is left parked while nobody receives: a caller notes that it is about to be parked, and only then tries for the last
//! time to become the one that receives. Whoever stops to receive lets go of the receiver first, and then looks who is
//! parked. See [`Parked::join`].

use super::crowd::{self, Crowd};
use super::parked::Parked;
use super::places::{Given, Places, Received, Sent};
use crate::deadline::{Deadline, park, wait};
use crate::error::{RecvTimeoutError, TryRecvError, TrySendError};
use crate::kernel::channel::{Channel, Receiver, Sender};
use crate::kernel::core::KernelCore;
use crate::sync::{Mutex, MutexGuard, current, lock_briefly, unless_locked};
use ring_device::Kernel;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// For how long a caller looks for its answer before it is parked: parking and waking a thread takes some ten microseconds.
const LOOKS_FOR: Duration = Duration::from_micros(50);

/// Looks in a row, between which a caller lets go of the receiver and looks at the clock.
const LOOKS: u32 = 2;

/// Looks of a caller that finds another receiving, before it tries to receive again.
const LOOKS_AT_OWN: u32 = 16;

/// Why a request was not sent now.
pub(super) enum Refused {
    /// All places have a call whose answer has not come or was not taken.
    NoPlace,
    /// The channel refused it.
    BySender(TrySendError<()>),
}

/// Who sends.
struct Sending<K: Kernel> {
    sender: Sender<K>,
    sent: Sent,
}

/// Who receives.
struct Receiving<K: Kernel> {
    receiver: Receiver<K>,
    received: Received,
}

/// Keeps what one thread writes off the cache lines of another.
#[derive(Debug)]
#[repr(align(128))]
pub(super) struct Apart<T>(pub T);

/// A channel, its callers, and their answers.
pub(super) struct SharedChannel<K: Kernel> {
    pub core: Arc<KernelCore>,
    index: u32,
    sending: Apart<Mutex<Sending<K>>>,
    receiving: Apart<Mutex<Receiving<K>>>,
    places: Places<K::Response>,
    parked: Parked,
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
        let (places, sent, received) = Places::new(calls);
        SharedChannel {
            core: Arc::clone(core),
            index: receiver.channel(),
            sending: Apart(Mutex::new(Sending { sender, sent })),
            receiving: Apart(Mutex::new(Receiving { receiver, received })),
            places,
            parked: Parked::new(calls),
        }
    }

    /// Its index.
    pub fn index(&self) -> u32 {
        self.index
    }

    /// How many calls it has places for.
    pub fn places(&self) -> usize {
        self.places.count()
    }

    /// Sends a request if there is room, and gives the place of its answer.
    pub fn try_submit(&self, request: K::Request) -> Result<u32, Refused> {
        // The places are in the order of the requests, since both are taken under this lock.
        let mut sending = lock_briefly(&self.sending.0);
        let Sending { sender, sent } = &mut *sending;
        let Some(place) = self.places.take(sent) else {
            // What has ended gives no place back either.
            return Err(sender.admitted().map_or_else(Refused::BySender, |_| Refused::NoPlace));
        };
        match sender.try_send(request) {
            Ok(()) => Ok(place),
            Err(refused) => {
                self.places.give_back_last(sent);
                Err(Refused::BySender(refused.without_message()))
            }
        }
    }

    /// The answer of that place if it has come, or why it does not come.
    pub fn look(&self, place: u32) -> Result<Option<K::Response>, RecvTimeoutError> {
        self.look_often(place, 1, 0)
    }

    /// The same, of a caller whose looks have become rare: one that finds nothing looks at the clock, to check the kernel.
    #[cfg(feature = "async")]
    pub fn look_seldom(&self, place: u32) -> Result<Option<K::Response>, RecvTimeoutError> {
        let Some(mut receiving) = self.try_receiving() else {
            return Ok(self.places.collect(place));
        };
        receiving.receiver.idle_polls.force_check();
        self.receive_often(receiving, place, 1)
    }

    /// The same as [`look`](Self::look), so often in a row; or so often whether another has received it, if one receives.
    #[inline]
    fn look_often(
        &self,
        place: u32,
        looks: u32,
        at_own: u32,
    ) -> Result<Option<K::Response>, RecvTimeoutError> {
        let mut answer = self.places.collect(place);
        if answer.is_none() {
            if let Some(receiving) = self.try_receiving() {
                return self.receive_often(receiving, place, looks);
            }
            for _ in 0..at_own {
                std::hint::spin_loop();
                answer = self.places.collect(place);
                if answer.is_some() {
                    break;
                }
            }
        }
        Ok(answer)
    }

    fn receive_often(
        &self,
        mut receiving: MutexGuard<'_, Receiving<K>>,
        place: u32,
        looks: u32,
    ) -> Result<Option<K::Response>, RecvTimeoutError> {
        // It may have been given by who received before.
        let mut found = Ok(self.places.collect(place));
        for _ in 0..looks {
            if !matches!(found, Ok(None)) {
                break;
            }
            found = self.receive(&mut receiving, Some(place));
        }
        self.hand_over(receiving);
        found
    }

    /// Gives all answers that are there to whom they belong, unless somebody does already. Of a caller whose looks have become rare, one
    /// that finds nothing looks at the clock, to check the kernel.
    pub fn receive_some(&self, is_seldom: bool) {
        if let Some(mut receiving) = self.try_receiving() {
            if is_seldom {
                receiving.receiver.idle_polls.force_check();
            }
            // Why there are no more, those learn who wait for them.
            let _ = self.receive(&mut receiving, None);
            self.hand_over(receiving);
        }
    }

    /// The answer of that place, which is free then; after an error it is not.
    pub fn wait(&self, place: u32, deadline: Deadline) -> Result<K::Response, RecvTimeoutError> {
        // The model checker knows no time.
        if cfg!(loom) {
            return self.wait_long(place, deadline);
        }
        match self.look_for_a_while(place, deadline)? {
            Some(answer) => Ok(answer),
            None => self.wait_long(place, deadline),
        }
    }

    /// The answer, if it comes soon.
    fn look_for_a_while(
        &self,
        place: u32,
        deadline: Deadline,
    ) -> Result<Option<K::Response>, RecvTimeoutError> {
        let (mut begun, mut crowd) = (None, Crowd::of_thread(self.core.device.patience));
        loop {
            // Before the first look, too: no answer comes as soon as that.
            crowd.pause();
            let at_own = if crowd.yields() { 0 } else { LOOKS_AT_OWN };
            let found = self.look_often(place, LOOKS, at_own)?;
            if found.is_some() {
                return Ok(found);
            }
            let now = Instant::now();
            let is_long = now - *begun.get_or_insert(now) >= LOOKS_FOR;
            if is_long || deadline.passed_at(now) {
                return Ok(None);
            }
        }
    }

    #[cold]
    fn wait_long(&self, place: u32, deadline: Deadline) -> Result<K::Response, RecvTimeoutError> {
        crowd::is_parked();
        loop {
            if let Some(receiving) = self.try_receiving() {
                return self.stay_to_receive(receiving, place, deadline);
            }
            if let Some(answer) = self.places.collect_or_park(place, current()) {
                return Ok(answer);
            }
            self.parked.join(place);
            if let Some(receiving) = self.try_receiving() {
                self.leave_parked(place);
                return self.stay_to_receive(receiving, place, deadline);
            }
            // It may return at once, by what woke the thread too late for an earlier wait.
            park(deadline);
            self.leave_parked(place);
            if deadline.passed() {
                let answer = self.places.collect(place);
                // It may have been woken to receive.
                self.wake_next();
                return answer.ok_or_else(|| self.late(deadline));
            }
        }
    }

    /// Nobody wants that answer any more.
    pub fn forget(&self, place: u32) {
        self.places.forget(place);
    }

    fn stay_to_receive(
        &self,
        mut receiving: MutexGuard<'_, Receiving<K>>,
        place: u32,
        deadline: Deadline,
    ) -> Result<K::Response, RecvTimeoutError> {
        let found = match self.places.collect(place) {
            Some(answer) => Ok(Some(answer)),
            None => {
                // A fault is returned by the next look, which first takes what was answered before it.
                let check = || {
                    let _ = self.core.check();
                    Ok(())
                };
                let look = || self.receive(&mut receiving, Some(place));
                wait(deadline, self.core.device.patience, look, check)
            }
        };
        self.hand_over(receiving);
        found?.ok_or_else(|| self.late(deadline))
    }

    /// Receives until the answer of the place `own` is there, or none is left.
    fn receive(
        &self,
        receiving: &mut Receiving<K>,
        own: Option<u32>,
    ) -> Result<Option<K::Response>, RecvTimeoutError> {
        loop {
            let answer = match receiving.receiver.try_recv() {
                Ok(answer) => answer,
                Err(TryRecvError::Empty) => return Ok(None),
                Err(end) => return RecvTimeoutError::unless_empty(end).map(|()| None),
            };
            match self.places.give(&mut receiving.received, answer, own) {
                Given::Own(answer) => return Ok(Some(answer)),
                Given::ToAnother(Some(thread)) => thread.unpark(),
                Given::ToAnother(None) => {}
            }
        }
    }

    /// Lets go of the receiver, and wakes who is to have it next.
    fn hand_over(&self, receiving: MutexGuard<'_, Receiving<K>>) {
        drop(receiving);
        self.wake_next();
    }

    /// Wakes the thread that has been parked longest, so that it receives. Those are passed over that have their answers.
    fn wake_next(&self) {
        while let Some(place) = self.parked.next() {
            if let Some(thread) = self.places.woken(place) {
                thread.unpark();
                return;
            }
        }
    }

    /// The thread of a place is not parked any more.
    fn leave_parked(&self, place: u32) {
        self.places.woken(place);
        self.parked.leave(place);
    }

    fn late(&self, deadline: Deadline) -> RecvTimeoutError {
        RecvTimeoutError::Timeout {
            kernel: self.core.device.name,
            channel: self.index,
            waited: deadline.waited(),
            state: self.core.device.state(),
        }
    }

    fn try_receiving(&self) -> Option<MutexGuard<'_, Receiving<K>>> {
        unless_locked(self.receiving.0.try_lock())
    }
}
