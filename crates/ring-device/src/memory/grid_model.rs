//! An exhaustive model of how the blocks of a grid meet ([`grid`](super::grid)): every order of their steps, over two launches of some
//! messages, with as many barriers in each block's handler as a script says.
//!
//! Where all blocks have the same, no block goes on from a barrier before all have come there, and block 0 answers when the handler has
//! returned in all. Where a block has one too few or too many, all blocks end, and block 0 tells the host. From each state that can be
//! reached, an end can be.

extern crate std;

use super::grid::Meeting;
use super::meeting::Progress;
use super::model::explore;
use std::vec::Vec;

/// What block 0 has told last, with the stamp of that.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Told {
    Nothing,
    Message(u32),
    End(u32),
    Lost,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Step {
    /// Block 0 has a message to tell of, or ends the launch; another block waits for what is told.
    Between,
    /// The handler is before its barrier of that number for this message, or returns.
    Handle(u32),
    /// It has come to that barrier, and waits for the others.
    Wait(u32),
    /// Of block 0: its handler has returned, and it waits for the others.
    Await,
    /// It has left the last launch.
    Left,
    /// It has found that the blocks do not meet.
    Gone,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Block {
    step: Step,
    stamp: u32,
    meetings: u32,
    /// The blocks that it has seen at its last meeting, a bit each.
    seen: u32,
    /// Barriers and messages.
    barriers: u64,
    messages: u64,
    launches: u32,
}

impl Block {
    fn at(&self) -> Progress {
        Progress { stamp: self.stamp, meetings: self.meetings }
    }

    fn go(&mut self, at: Progress, step: Step) {
        (self.stamp, self.meetings, self.step) = (at.stamp, at.meetings, step);
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State<const BLOCKS: usize> {
    /// Places of each block for what it brings to meetings: two, and one to see the model fail.
    places: u32,
    /// Blocks that go on from a meeting unseen: none, and one to see the model fail.
    unseen: u32,
    /// What lies there: the meeting's number, and its kind.
    brought: [[Option<(u32, Meeting)>; 2]; BLOCKS],
    lost: bool,
    told: Told,
    /// Messages that block 0 has answered.
    answered: u64,
    blocks: [Block; BLOCKS],
}

/// Launches, and messages in each.
const LAUNCHES: u32 = 2;
const MESSAGES: u64 = 2;

/// Barriers of each block's handler, for each message of all launches.
type Script<const BLOCKS: usize> = [[u32; (LAUNCHES as u64 * MESSAGES) as usize]; BLOCKS];

impl<const BLOCKS: usize> State<BLOCKS> {
    fn begin(places: u32, unseen: u32) -> Self {
        let block = Block {
            step: Step::Between,
            stamp: 0,
            meetings: 0,
            seen: 0,
            barriers: 0,
            messages: 0,
            launches: 0,
        };
        State {
            places,
            unseen,
            brought: [[None; 2]; BLOCKS],
            lost: false,
            told: Told::Nothing,
            answered: 0,
            blocks: [block; BLOCKS],
        }
    }

    fn is_end(&self) -> bool {
        let all = |step| self.blocks.iter().all(|block| block.step == step);
        all(Step::Left) || all(Step::Gone)
    }

    /// Block `b` ends: what the others find.
    fn give_up(&mut self, b: usize) {
        self.blocks[b].step = Step::Gone;
        self.lost = true;
        if b == 0 {
            self.told = Told::Lost;
        }
    }

    /// Block `b` comes to its next meeting.
    fn come(&mut self, b: usize, kind: Meeting) {
        let block = &mut self.blocks[b];
        block.meetings = block.at().meeting().meetings;
        block.seen = 1 << b;
        self.brought[b][(block.meetings % self.places) as usize] = Some((block.meetings, kind));
    }

    /// All states that a look of block `b` at one of the others leads to, or at what else may have happened, while it waits for them at
    /// a meeting; `met` if it has seen all.
    fn meet(&self, b: usize, kind: Meeting, met: Self, then: &mut impl FnMut(Self)) {
        let own = self.blocks[b];
        if own.seen.count_ones() + self.unseen >= BLOCKS as u32 {
            return then(met);
        }
        if self.lost {
            let mut gone = self.clone();
            gone.give_up(b);
            then(gone);
        }
        for (other, brought) in self.brought.iter().enumerate() {
            let mut next = self.clone();
            match brought[(own.meetings % self.places) as usize] {
                Some((number, came)) if own.seen >> other & 1 == 0 && number == own.meetings => {
                    match kind.meets(came as u32) {
                        true => next.blocks[b].seen |= 1 << other,
                        false => next.give_up(b),
                    }
                    then(next);
                }
                _ => {}
            }
        }
    }

    /// All states that a step of block `b` leads to.
    fn steps_of(&self, b: usize, script: &Script<BLOCKS>, then: &mut impl FnMut(Self)) {
        let own = self.blocks[b];
        let mut next = self.clone();
        match own.step {
            Step::Left | Step::Gone => {}
            Step::Between if b == 0 => {
                let of_launch = own.messages - u64::from(own.launches) * MESSAGES;
                if of_launch < MESSAGES {
                    next.blocks[0].go(own.at().next(), Step::Handle(0));
                    next.blocks[0].messages += 1;
                    next.told = Told::Message(next.blocks[0].stamp);
                } else {
                    let block = &mut next.blocks[0];
                    block.go(own.at().next(), Step::Between);
                    block.launches += 1;
                    next.told = Told::End(block.stamp);
                    if block.launches == LAUNCHES {
                        block.step = Step::Left;
                    } else if self.blocks[1..].iter().any(|block| block.launches < own.launches) {
                        return; // a launch begins when the one before is over in all blocks
                    }
                }
                // The next launch begins when all have left this one.
                let is_over = self.blocks.iter().all(|block| block.launches >= own.launches);
                if is_over {
                    then(next);
                }
            }
            Step::Between => {
                let block = &mut next.blocks[b];
                let at = own.at().next();
                match self.told {
                    Told::Message(stamp) if stamp == at.stamp => {
                        block.go(at, Step::Handle(0));
                        block.messages += 1;
                    }
                    Told::End(stamp) if stamp == at.stamp => {
                        let launches = own.launches + 1;
                        let step = if launches == LAUNCHES { Step::Left } else { Step::Between };
                        block.go(at, step);
                        block.launches = launches;
                    }
                    Told::Lost => block.step = Step::Gone,
                    _ => return,
                }
                then(next);
            }
            Step::Handle(k) if k < script[b][own.messages as usize - 1] => {
                next.blocks[b].barriers += 1;
                next.blocks[b].step = Step::Wait(k);
                next.come(b, Meeting::Barrier);
                then(next);
            }
            Step::Handle(_) => {
                next.blocks[b].step = if b == 0 { Step::Await } else { Step::Between };
                next.come(b, Meeting::Return);
                then(next);
            }
            Step::Wait(k) => {
                next.blocks[b].step = Step::Handle(k + 1);
                self.meet(b, Meeting::Barrier, next, then);
            }
            Step::Await => {
                next.blocks[0].step = Step::Between;
                next.answered += 1;
                self.meet(0, Meeting::Return, next, then);
            }
        }
    }

    /// Whether the blocks have met as the script, the same for all, says.
    fn is_right(&self) -> bool {
        let [first, others @ ..] = &self.blocks[..] else { return false };
        // Who has gone on from a barrier is behind all who have come there.
        let passed = |block: &Block| match block.step {
            Step::Wait(_) => block.barriers - 1,
            _ => block.barriers,
        };
        let met = self
            .blocks
            .iter()
            .all(|block| self.blocks.iter().all(|other| passed(block) <= other.barriers));
        let handles = |block: &Block| matches!(block.step, Step::Handle(_) | Step::Wait(_));
        let returned = |block: &Block| block.messages - u64::from(handles(block));
        let answered = others.iter().all(|other| self.answered <= returned(other));
        let in_turn = others.iter().all(|other| other.messages <= first.messages);
        let gone = self.blocks.iter().any(|block| block.step == Step::Gone);
        met && answered && in_turn && !gone && !self.lost
    }
}

/// Goes through all states of so many blocks with that script; `is_right` must hold in each. How many there are.
fn states<const BLOCKS: usize>(
    script: &Script<BLOCKS>,
    is_right: impl Fn(&State<BLOCKS>) -> bool,
) -> Option<usize> {
    states_from(State::begin(2, 0), script, is_right)
}

/// The same from a state.
fn states_from<const BLOCKS: usize>(
    begin: State<BLOCKS>,
    script: &Script<BLOCKS>,
    is_right: impl Fn(&State<BLOCKS>) -> bool,
) -> Option<usize> {
    let after = |state: &State<BLOCKS>| {
        let mut next = Vec::new();
        for b in 0..BLOCKS {
            state.steps_of(b, script, &mut |state| next.push(state));
        }
        next.iter().all(&is_right).then_some(next)
    };
    explore(begin, after, State::is_end)
}

#[test]
fn blocks_with_the_same_barriers_meet_at_each_and_all_are_answered() {
    for script in [[0; 4], [1; 4], [2, 0, 1, 3]] {
        let n = states(&[script; 2], State::is_right).expect("two blocks meet");
        assert!(n > 10, "{n} states");
        assert!(states(&[script; 3], State::is_right).expect("three blocks meet") > n);
    }
}

/// A block with other barriers than the rest for one message, whichever block and message that is: nobody waits for ever, and the message
/// is not answered.
#[test]
fn a_block_that_misses_a_barrier_ends_all() {
    for (message, wrong, right) in [(0, 1, 2), (1, 2, 1), (2, 0, 1), (3, 3, 1), (3, 0, 2)] {
        for astray in 0..3 {
            let mut script = [[1, 1, 1, 1]; 3];
            for (b, barriers) in script.iter_mut().enumerate() {
                barriers[message] = if b == astray { wrong } else { right };
            }
            let is_right = |state: &State<3>| state.answered <= message as u64;
            states(&script, is_right).expect("what went astray is not answered");
        }
    }
}

#[test]
fn the_model_tells_who_goes_on_too_early() {
    assert!(states_from(State::begin(2, 1), &[[1; 4]; 2], State::is_right).is_none());
    assert!(states(&[[1; 4]; 2], State::is_right).is_some());
}

/// A block that has seen all at a barrier goes on to the next one, and leaves behind who has not seen it yet.
#[test]
#[should_panic(expected = "no end follows from")]
fn the_model_tells_that_one_place_is_too_few() {
    states_from(State::begin(1, 0), &[[2; 4]; 2], State::is_right);
}
