//! That nothing is told before it is there, however the cells of a copy and the stores of a channel interleave.

use super::rig::{block, region, ring};
use super::*;
use crate::device::{CopyLane, Launched, RunState, Sealed};
use crate::memory::plan::Direction;
use crate::mode::Memory;
use ring_shared::layout::{Command, State};
use ring_shared::{Inbox, Outbox};
use std::collections::VecDeque;
use std::sync::{Mutex, atomic::Ordering::Relaxed};

/// A transfer back beside a launch.
const SOME: Pull = Pull { times: false, last: false };

/// A copy, and which of its atoms have landed.
#[derive(Debug)]
struct Held {
    to: usize,
    from: usize,
    landed: Vec<bool>,
}

/// A place whose copies land when the test says so.
#[derive(Debug, Default)]
struct Hand(Mutex<VecDeque<Held>>);

impl Hand {
    fn hold(&self, to: *mut u8, from: *const u8, bytes: usize) {
        let landed = vec![false; bytes / ATOM];
        let (to, from) = (to.expose_provenance(), from.expose_provenance());
        self.0.lock().unwrap().push_back(Held { to, from, landed });
    }

    /// Lands those atoms of the first copy. It is over when all have.
    fn land(&self, which: impl Fn(usize) -> bool) {
        let mut copies = self.0.lock().unwrap();
        let copy = copies.front_mut().unwrap();
        let (to, from) = (
            std::ptr::with_exposed_provenance::<Atom>(copy.to),
            std::ptr::with_exposed_provenance::<Atom>(copy.from),
        );
        for k in (0..copy.landed.len()).filter(|k| which(*k)) {
            if !std::mem::replace(&mut copy.landed[k], true) {
                // SAFETY: atom `k` of both ranges, which stay as long as the test's region.
                unsafe { (*to.add(k)).publish((*from.add(k)).observe()) };
            }
        }
        if copy.landed.iter().all(|landed| *landed) {
            copies.pop_front();
        }
    }

    fn land_all(&self) {
        while self.copies() == RunState::Running {
            self.land(|_| true);
        }
    }
}

impl Sealed for Hand {}

impl LaunchSlot for Hand {
    unsafe fn launch(&self, _: bool) -> Result<Launched, DriverError> {
        Ok(Launched::Yes)
    }
    fn state(&self) -> RunState {
        RunState::Running
    }

    fn is_over(&self) -> bool {
        true
    }
}

impl CopyLane for Hand {
    fn copies(&self) -> RunState {
        match self.0.lock().unwrap().is_empty() {
            true => RunState::Ended,
            false => RunState::Running,
        }
    }

    unsafe fn copy(&self, copy: MemoryCopy) -> Result<(), DriverError> {
        let (to, from) = copy.ends();
        self.hold(to, from, copy.bytes);
        Ok(())
    }
}

/// A copier with its region, whose channel the test plays.
struct Played {
    region: Region,
    hand: Hand,
    copier: StagingCopier,
}

impl Played {
    fn new() -> Played {
        let region = region(Memory::StagedAsync, 4, 0);
        let mut played =
            Played { copier: StagingCopier::new(&region), hand: Hand::default(), region };
        let sides = Sides { region: &played.region, launch_slot: &played.hand };
        played.copier.push_all(sides).unwrap();
        played.come_home();
        played
    }

    /// Lands all copies, of those too that follow from them.
    fn come_home(&mut self) {
        while !self.copier.is_idle() {
            self.hand.land_all();
            let sides = Sides { region: &self.region, launch_slot: &self.hand };
            self.copier.advance(sides).unwrap();
        }
    }
}

/// The channel answers what is in its ring, acknowledges a command, and has left.
fn answer_and_leave(region: &Region, inline: bool) {
    let mut requests = Inbox::new(ring(region, Direction::Requests));
    let mut responses = Outbox::new(ring(region, Direction::Responses));
    let mut answers = [0u64; 4];
    let n = requests.pop_slice(&mut answers).unwrap();
    assert_eq!(n, 2);
    if inline {
        assert_eq!(responses.push(&answers[0], 2), Ok(()));
        assert_eq!(responses.push(&answers[1], 2), Ok(()));
    } else {
        assert_eq!(responses.push_slice(&answers[..2], 2), Ok(2));
    }
    let channel = block(region);
    channel.request_credit.consumed.store(2, Relaxed);
    channel.status.processed.store(2, Relaxed);
    let word = Command { epoch: 1, state: State::Inactive as u32 }.to_word();
    channel.status.acknowledged.store(word, Relaxed);
    channel.status.launches_left.store(1, Relaxed);
}

/// The channel does all that while its lines are being copied, of which the atoms in `early` have been.
fn all_that_is_told_is_here(early: impl Fn(usize) -> bool, inline: bool, what: &str) {
    let mut played = Played::new();
    let mut requests = Outbox::new(played.region.ring(0, Direction::Requests));
    let mut responses = Inbox::new(played.region.ring(0, Direction::Responses));
    assert_eq!(requests.push_slice(&[10u64, 11], 0), Ok(2));
    assert!(
        played
            .copier
            .push(Sides { region: &played.region, launch_slot: &played.hand }, |_| 0, false)
            .unwrap()
    );
    played.come_home();
    let mut received = 0;
    for transfer in 0..4 {
        let sides = Sides { region: &played.region, launch_slot: &played.hand };
        played.copier.pull(sides, SOME).unwrap();
        if transfer == 0 {
            played.hand.land(&early);
            answer_and_leave(&played.region, inline);
        }
        played.come_home();
        let channel = played.region.channel(0);
        let told =
            channel.status.acknowledgement().epoch == 1 || channel.status.launches_left() == 1;
        while let Some(answer) = responses.pop::<u64>().unwrap() {
            assert_eq!(answer, 10 + received, "{what}");
            received += 1;
        }
        let here = (received, channel.status.processed.load(Relaxed), channel.consumed());
        assert!(!told || here == (2, 2, 2), "{what}: told in transfer {transfer} with {here:?}");
    }
    assert_eq!(played.region.channel(0).status.acknowledgement().epoch, 1, "{what}");
    assert_eq!(played.region.channel(0).status.launches_left(), 1, "{what}");
    assert_eq!(received, 2, "{what}");
}

#[test]
fn a_status_tells_of_nothing_that_is_not_here() {
    for inline in [false, true] {
        for k in 0..BACK_LINES {
            all_that_is_told_is_here(|at| at == k, inline, &format!("atom {k} early"));
            all_that_is_told_is_here(|at| at != k, inline, &format!("atom {k} late"));
            all_that_is_told_is_here(|at| at < k, inline, &format!("atoms from {k} on late"));
            all_that_is_told_is_here(|at| at >= k, inline, &format!("atoms from {k} on early"));
        }
    }
}
