//! The life of a kernel as the model knows it: its state, whether it has ended, and whether it is lost.

use proptest::prelude::*;
use ring_host::{ControlError, DeviceFault, Kernel, KernelHandle, Mode, State, Summary};
use ring_tests::{CallError, LONG};
use std::time::Duration;

/// A command of the host.
#[derive(Clone, Copy, Debug)]
pub enum Order {
    Activate,
    Deactivate,
    Terminate,
}

/// A command that is not the last, and whether there is time to acknowledge it.
pub fn orders() -> impl Strategy<Value = (Order, bool)> {
    let order = prop_oneof![5 => Just(Order::Activate), 3 => Just(Order::Deactivate)];
    (order, prop::bool::weighted(0.9))
}

/// What must be true of a kernel.
pub struct Life {
    pub state: State,
    /// Every channel has acknowledged the last command: counters are exact, if nobody sends.
    pub settled: bool,
    /// `terminate` has returned a summary.
    pub ended: bool,
    /// It was lost, so.
    pub lost: Option<DeviceFault>,
    /// The platform may lose it.
    breaks: bool,
}

impl Life {
    pub fn new(breaks: bool) -> Life {
        Life { state: State::Launched, settled: true, ended: false, lost: None, breaks }
    }

    pub fn is_active(&self) -> bool {
        self.state == State::Active
    }

    /// Whether an operation may fail.
    pub fn may_break(&self) -> bool {
        self.breaks
    }

    /// A call said that the kernel is lost: every later call returns the first fault.
    pub fn lose(&mut self, fault: DeviceFault) {
        assert!(self.breaks, "lost where nothing breaks: {fault}");
        assert_eq!(*self.lost.get_or_insert(fault.clone()), fault, "another fault than the first");
        (self.state, self.settled) = (State::Faulted, false);
    }

    /// A call went well or found nothing: then the kernel is not known to be lost.
    pub fn is_kept(&self) {
        assert_eq!(self.lost, None, "a call that should have returned it");
    }

    /// A message was refused because the kernel is not active.
    pub fn refused<T>(&mut self, name: &str, error: impl Into<CallError<T>>) {
        match error.into() {
            CallError::Fault(fault) => self.lose(fault),
            CallError::Closed { kernel } => {
                self.is_kept();
                assert_eq!((kernel, State::Terminated), (name, self.state));
            }
            CallError::NotActive { kernel, state } => {
                self.is_kept();
                assert_eq!((kernel, state), (name, self.state));
                assert!(!self.is_active(), "refused although active");
            }
            error => panic!("{}", error.without_message()),
        }
    }

    /// Gives a command. With no time to acknowledge it may time out, and then counts all the same, but that a
    /// kernel which was not seen to be activated takes no messages.
    pub fn order<K: Kernel>(
        &mut self,
        kernel: &mut KernelHandle<K>,
        (order, in_time): (Order, bool),
    ) {
        let deadline = if in_time { LONG } else { Duration::ZERO };
        let (target, done) = match order {
            Order::Activate => (State::Active, kernel.activate(deadline)),
            Order::Deactivate => (State::Inactive, kernel.deactivate(deadline)),
            Order::Terminate => {
                let done = kernel.terminate(deadline);
                if let Ok(summary) = &done {
                    assert_eq!(*summary, kernel.summary(), "nothing happens after the end");
                }
                (State::Terminated, done.map(drop))
            }
        };
        let before = (self.state, self.ended);
        match done {
            Ok(()) => {
                self.is_kept();
                assert!(!self.ended && (before.0 != State::Terminated || target == before.0));
                (self.state, self.settled) = (target, true);
                self.ended = target == State::Terminated;
            }
            Err(ControlError::Fault(fault)) => self.lose(fault),
            Err(ControlError::Terminated { kernel }) => {
                self.is_kept();
                assert_eq!(kernel, K::NAME);
                assert!(before.1 || (before.0 == State::Terminated && target != before.0));
            }
            Err(ControlError::Timeout { kernel, channel, asked, .. }) if !in_time => {
                self.is_kept();
                assert_eq!((kernel, asked), (K::NAME, target));
                assert!(channel == 0 || before.0 != State::Faulted);
                self.timed_out(target);
            }
            Err(ControlError::Staying { .. }) if !in_time && target == State::Terminated => {
                self.is_kept();
                self.timed_out(target);
            }
            Err(error) => {
                let (status, launches) = (kernel.status(), kernel.launches());
                let changes: Vec<_> = kernel.fallbacks().collect();
                panic!("{error}; {status:?}, {launches} launches, {changes:?}, {before:?}");
            }
        }
    }

    fn timed_out(&mut self, target: State) {
        self.settled = false;
        if target != State::Active {
            self.state = target;
        }
    }

    /// What can be read at any time.
    pub fn look<K: Kernel>(&mut self, kernel: &KernelHandle<K>) {
        let status = kernel.status();
        // What a send or a look has found out is returned by the next call.
        let unseen = self.breaks && status.state == State::Faulted;
        assert!(status.state == self.state || unseen, "{status:?}, but {:?}", self.state);
        assert!(unseen || !format!("{:?}", status.exit).contains("Corrupt"), "{status:?}");
        assert!(kernel.launches() >= status.launches);
        let changed = kernel.fallbacks().next().is_some();
        let chosen = (kernel.selection().mode, kernel.selection().memory);
        assert!(changed || kernel.runs_as() == chosen, "{:?}", kernel.runs_as());
        if self.ended {
            assert!(kernel.is_resting());
        }
    }

    /// Waits until no launch is on the device, or, with no time, asks for it.
    pub fn rest<K: Kernel>(&mut self, kernel: &mut KernelHandle<K>, in_time: bool) {
        let comes = kernel.runs_as().0 != Mode::Persistent || self.ended;
        let in_time = in_time && comes;
        match kernel.rest(if in_time { LONG } else { Duration::ZERO }) {
            Ok(()) => {}
            Err(ControlError::Fault(fault)) => self.lose(fault),
            Err(ControlError::Staying { kernel, .. }) if !in_time => assert_eq!(kernel, K::NAME),
            Err(error) => panic!("{error}"),
        }
    }

    /// Terminates it for good, and tries what must be refused then. The summary, unless it is lost.
    pub fn end<K: Kernel>(&mut self, kernel: &mut KernelHandle<K>) -> Option<Summary> {
        if !self.ended {
            self.order(kernel, (Order::Terminate, true));
        }
        for again in [Order::Terminate, Order::Activate, Order::Deactivate] {
            self.order(kernel, (again, true));
        }
        self.look(kernel);
        self.lost.is_none().then(|| kernel.summary())
    }
}
