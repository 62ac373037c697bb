//! Messages that wait for a payload write whose own wait ended early.

use super::rig::{Rig, check};
use crate::drive::gate::{Gate, Reopens};
use crate::mode::{Memory, Mode};
use loom::cell::UnsafeCell;
use loom::sync::atomic::AtomicU64;
use loom::thread::{self, yield_now};
use ring_shared::layout::State;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

/// The payload, and how far the copies into it are.
struct Model {
    gate: Gate,
    payload: UnsafeCell<u64>,
    begun: AtomicU64,
    landed: AtomicU64,
    /// Writes that were given up by their caller.
    given_up: AtomicU64,
}

impl Model {
    /// A sender tries; whether a message would be taken, and what its handler then finds.
    fn try_send(&self) -> Option<u64> {
        let given_up = self.given_up.load(Acquire);
        let has_landed = || Ok::<_, ()>(self.landed.load(Acquire) == self.begun.load(Acquire));
        if !self.gate.is_open() && self.gate.reopens(has_landed) != Ok(Reopens::Now) {
            return None;
        }
        // Before a write is given up the caller is at it, and messages go their way.
        // SAFETY: loom fails the model if the copy is made meanwhile.
        (given_up == 2).then(|| self.payload.with(|at| unsafe { *at }))
    }
}

/// Two writes, each given up before it landed, and two senders: none takes the first for the second, and what
/// one of them saw landed is there for the other.
#[test]
fn no_message_passes_a_write() {
    check(2, || {
        let gate = Gate::new(State::Launched);
        gate.set(State::Active);
        let zero = || AtomicU64::new(0);
        let (begun, landed, given_up) = (zero(), zero(), zero());
        let payload = UnsafeCell::new(0);
        let model = Arc::new(Model { gate, payload, begun, landed, given_up });
        let copying = {
            let model = Arc::clone(&model);
            thread::spawn(move || {
                for n in 1..=2 {
                    while model.begun.load(Acquire) < n {
                        yield_now();
                    }
                    // SAFETY: loom fails the model if somebody reads it meanwhile.
                    model.payload.with_mut(|at| unsafe { *at = n });
                    // SYNC: released to `has_landed`.
                    model.landed.store(n, Release);
                }
            })
        };
        let sending = {
            let model = Arc::clone(&model);
            thread::spawn(move || model.try_send())
        };
        for n in 1..=2 {
            while model.landed.load(Acquire) != model.begun.load(Relaxed) {
                yield_now(); // as a write waits for one before it
            }
            model.begun.store(n, Release);
            model.gate.close();
            model.given_up.store(n, Release);
        }
        let found = loop {
            match model.try_send() {
                Some(found) => break found,
                None => yield_now(),
            }
        };
        assert_eq!(found, 2);
        assert!(sending.join().unwrap().is_none_or(|found| found == 2));
        copying.join().unwrap();
    });
}

/// A state that one thread sets while another notes a fault: the fault stays, whichever comes last.
#[test]
fn a_fault_stays() {
    check(2, || {
        let rig = Rig::new((Mode::Persistent, Memory::Mapped), false, false);
        let core = rig.kernel.core();
        let setting = {
            let core = Arc::clone(core);
            thread::spawn(move || core.device.set_state(State::Active))
        };
        core.device.fail(core.device.refused());
        setting.join().unwrap();
        rig.place.end();
        assert_eq!((core.device.state(), core.device.is_active()), (State::Faulted, false));
    });
}
