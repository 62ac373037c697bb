//! A channel that finds nothing says so to its host's hook, with a number that grows: by it the host lets the
//! channel look less and less often. What there is to do begins the count anew.

mod rig;

use rig::{Ends, Next, Rig};
use ring_shared::layout::{Command, State};
use std::sync::atomic::Ordering::Release;
use std::sync::{Arc, Mutex};

/// Idle looks after which the test gives the channel something to do.
const IDLE: u32 = 5000;

enum Step {
    /// So many messages: one goes inline, more go through slots.
    Send(u64),
    Order(State),
}

/// What the host does, on the channel's own thread while that rests: nothing here depends on when threads run.
struct Script {
    steps: std::vec::IntoIter<Step>,
    ends: Ends,
    /// The last number that the channel said.
    last: u32,
    /// The last number of each row of idle looks.
    rows: Vec<u32>,
    epoch: u32,
    sent: u64,
}

#[test]
fn what_there_is_to_do_begins_a_new_row_of_fruitless_looks() {
    let mut rig = Rig::<Next>::new(1, 8, 0);
    rig.command(State::Active);
    let steps = vec![
        Step::Send(1),
        Step::Send(3),
        Step::Order(State::Inactive),
        Step::Order(State::Active),
        Step::Send(2),
        Step::Order(State::Terminated),
    ];
    let ends = rig.ends(0);
    let steps = steps.into_iter();
    let script = Script { steps, ends, last: 0, rows: vec![], epoch: 1, sent: 0 };
    let script = Arc::new(Mutex::new(script));
    let (host, block) = (Arc::clone(&script), std::ptr::from_ref(rig.control()).addr());
    rig.rest = Some(Arc::new(move |_, n| {
        // SAFETY: the rig's memory, which outlives its launches.
        let control = unsafe { &*std::ptr::with_exposed_provenance(block) };
        host.lock().unwrap().step(control, n);
    }));
    rig.launch().join();
    rig.check_left();
    let mut script = script.lock().unwrap();
    script.take();
    assert_eq!(rig.processed(0), 6);
    let last = script.last;
    script.rows.push(last);
    assert_eq!(script.rows.len(), 6, "a row for each step: {:?}", script.rows);
    for row in &script.rows {
        // The next look shows what there is, a command too.
        assert_eq!(*row, IDLE, "{:?}", script.rows);
    }
}

impl Script {
    fn step(&mut self, control: &ring_device::ControlBlock, n: u32) {
        if n <= self.last {
            if self.last >= IDLE {
                self.rows.push(self.last);
            }
            assert!(n <= 1, "a new row begins with {n}");
        } else {
            assert_eq!(n, self.last + 1, "one look after the other");
        }
        self.last = n;
        if n != IDLE {
            return;
        }
        self.take();
        match self.steps.next() {
            Some(Step::Send(n)) => {
                let messages: Vec<u64> = (self.sent..self.sent + n).collect();
                assert_eq!(self.ends.push_slice(&messages), n as usize);
                self.sent += n;
            }
            Some(Step::Order(state)) => {
                self.epoch += 1;
                let word = Command { epoch: self.epoch, state: state as u32 }.to_word();
                control.host.command.store(word, Release);
            }
            None => panic!("the channel did not acknowledge"),
        }
    }

    /// Takes the answers to all that was sent before.
    fn take(&mut self) {
        let answers = self.ends.drain::<u64>();
        assert_eq!(answers, (self.sent - answers.len() as u64 + 1..=self.sent).collect::<Vec<_>>());
        assert_eq!(self.ends.consumer.next(), self.sent, "all are answered");
    }
}
