//! What senders go by, in one word that they read for every message: the kernel's state, and whether messages
//! wait for a payload write whose own wait ended early.

use crate::sync::{AtomicU32, Mutex, unpoisoned};
use ring_shared::layout::State;
use std::sync::atomic::Ordering;

/// In the word beside a state: a write is under way that nobody waits for any more. A message sent now could
/// be handled before it lands.
const WRITING: u32 = 1 << 8;

/// The gate through which messages go.
#[derive(Debug)]
pub(crate) struct Gate {
    word: AtomicU32,
    /// Held while it is looked whether the write has landed, so that another one is not taken for it.
    looking: Mutex<()>,
}

impl Gate {
    pub fn new(state: State) -> Gate {
        Gate { word: AtomicU32::new(state as u32), looking: Mutex::new(()) }
    }

    /// Whether messages may be sent.
    #[inline]
    pub fn is_open(&self) -> bool {
        // SYNC: acquires `reopens` on another thread: the write that it saw landed is there.
        self.word.load(Ordering::Acquire) == State::Active as u32
    }

    pub fn state(&self) -> State {
        let word = self.word.load(Ordering::Relaxed) & !WRITING;
        State::from_u32(word).unwrap_or(State::Faulted)
    }

    /// Changes the state. To become active the kernel must have been waited for to have no write under way.
    pub fn set(&self, state: State) {
        // SYNC: acquires and releases `set` on other threads: whoever writes over `Faulted` finds the fault
        // that was remembered before it, and puts it back (`DeviceKernel::set_state`).
        self.word.swap(state as u32, Ordering::AcqRel);
    }

    /// Messages wait from now on: a write of the caller's is under way that it waits for no longer.
    pub fn close(&self) {
        let _looking = unpoisoned(self.looking.lock());
        self.word.fetch_or(WRITING, Ordering::Relaxed); // the lock orders it before `reopens`
    }

    /// Whether messages waited for a write only; if it `has_landed`, they need no longer.
    #[cold]
    pub fn reopens<E>(&self, has_landed: impl FnOnce() -> Result<bool, E>) -> Result<Reopens, E> {
        let _looking = unpoisoned(self.looking.lock());
        // A kernel that is not active takes no messages, whatever is written.
        if self.word.load(Ordering::Relaxed) == State::Active as u32 | WRITING {
            if !has_landed()? {
                return Ok(Reopens::Later);
            }
            // SYNC: released to `is_open`: what we saw landed is there for whoever finds it open.
            self.word.fetch_and(!WRITING, Ordering::Release);
        }
        Ok(if self.is_open() { Reopens::Now } else { Reopens::Never })
    }
}

/// Whether a gate that was found closed opens without a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reopens {
    /// It is open.
    Now,
    /// When the write has landed.
    Later,
    /// The kernel is not active.
    Never,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reopens(gate: &Gate, landed: bool) -> Reopens {
        gate.reopens(|| Ok::<_, ()>(landed)).unwrap()
    }

    #[test]
    fn it_opens_when_the_write_has_landed_and_not_before() {
        let gate = Gate::new(State::Launched);
        assert!(!gate.is_open());
        gate.set(State::Active);
        assert!(gate.is_open());
        gate.close();
        assert!(!gate.is_open());
        assert_eq!(gate.state(), State::Active, "the kernel is what it was");
        assert_eq!(reopens(&gate, false), Reopens::Later);
        assert!(!gate.is_open());
        assert_eq!(gate.reopens(|| Err(7)), Err(7));
        assert_eq!(reopens(&gate, true), Reopens::Now);
        assert!(gate.is_open());
    }

    #[test]
    fn a_state_without_messages_stays_closed() {
        for state in [State::Launched, State::Inactive, State::Terminated, State::Faulted] {
            let gate = Gate::new(state);
            let not_asked = || -> Result<bool, ()> { unreachable!("nothing is under way") };
            assert_eq!(gate.reopens(not_asked), Ok(Reopens::Never));
            gate.close();
            assert_eq!(gate.state(), state);
            assert_eq!(gate.reopens(not_asked), Ok(Reopens::Never), "not active comes first");
            assert!(!gate.is_open());
        }
    }
}
