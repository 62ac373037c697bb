//! An exhaustive model of how the blocks of a grid meet ([`grid`](super::grid)): every order of their steps, over two launches of some
//! messages, with as many barriers in each block's handler as a script says.
//!
//! Where all blocks have the same, no block goes on from a barrier before all have come there, and block 0 answers when the handler has
//! returned in all. Where a block has one too few or too many, all blocks end, and block 0 tells the host. From each state that can be
//! reached, an end can be.

extern crate std;

use super::grid::Progress;
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
    /// The same; a look has shown that the handler has returned somewhere.
    Late(u32),
    /// Of block 0: its handler has returned, and it waits for the others.
    Await,
    /// The same; a look has shown that another block waits at a barrier.
    LateAwait,
    /// It has left the last launch.
    Left,
    /// It has found that the blocks do not meet.
    Gone,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Block {
    step: Step,
    stamp: u32,
    barriers: u64,
    messages: u64,
    launches: u32,
}

impl Block {
    fn at(&self) -> Progress {
        Progress { stamp: self.stamp, barriers: self.barriers, messages: self.messages }
    }

    fn go(&mut self, at: Progress, step: Step) {
        (self.stamp, self.messages, self.step) = (at.stamp, at.messages, step);
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State<const BLOCKS: usize> {
    /// By how many arrivals too few blocks go on from a barrier: to see the model fail.
    too_few: u64,
    arrived: u64,
    returned: u64,
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
    fn begin(too_few: u64) -> Self {
        let block = Block { step: Step::Between, stamp: 0, barriers: 0, messages: 0, launches: 0 };
        let blocks = [block; BLOCKS];
        State {
            too_few,
            arrived: 0,
            returned: 0,
            lost: false,
            told: Told::Nothing,
            answered: 0,
            blocks,
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

    /// Whether all blocks have come to block `b`'s last barrier, as the counter shows it.
    fn is_met(&self, b: usize) -> bool {
        self.arrived + self.too_few >= self.blocks[b].barriers * BLOCKS as u64
    }

    /// Whether all other blocks have returned, as the counter shows it to block 0.
    fn has_returned(&self) -> bool {
        self.returned == self.blocks[0].messages * (BLOCKS as u64 - 1)
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
                    next.told = Told::Message(next.blocks[0].stamp);
                } else {
                    let block = &mut next.blocks[0];
                    block.go(own.at().end(), Step::Between);
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
                let (message, end) = (own.at().next(), own.at().end());
                match self.told {
                    Told::Message(stamp) if stamp == message.stamp => {
                        block.go(message, Step::Handle(0));
                    }
                    Told::End(stamp) if stamp == end.stamp => {
                        let launches = own.launches + 1;
                        let step = if launches == LAUNCHES { Step::Left } else { Step::Between };
                        block.go(end, step);
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
                next.arrived += 1;
                then(next);
            }
            Step::Handle(_) => {
                if b > 0 {
                    next.returned += 1;
                }
                next.blocks[b].step = if b == 0 { Step::Await } else { Step::Between };
                then(next);
            }
            Step::Wait(k) | Step::Late(k) if self.is_met(b) => {
                next.blocks[b].step = Step::Handle(k + 1);
                then(next);
            }
            Step::Wait(k) => {
                if self.lost {
                    let mut gone = self.clone();
                    gone.give_up(b);
                    then(gone);
                }
                if self.returned != (own.messages - 1) * (BLOCKS as u64 - 1) {
                    next.blocks[b].step = Step::Late(k);
                    then(next);
                }
            }
            Step::Await | Step::LateAwait if self.has_returned() => {
                next.blocks[0].step = Step::Between;
                next.answered += 1;
                then(next);
            }
            Step::Await => {
                if self.lost {
                    let mut gone = self.clone();
                    gone.give_up(0);
                    then(gone);
                }
                if self.arrived > own.barriers * BLOCKS as u64 {
                    next.blocks[0].step = Step::LateAwait;
                    then(next);
                }
            }
            Step::Late(_) | Step::LateAwait => {
                next.give_up(b);
                then(next);
            }
        }
    }

    /// Whether the blocks have met as the script, the same for all, says.
    fn is_right(&self) -> bool {
        let [first, others @ ..] = &self.blocks[..] else { return false };
        // Who has gone on from a barrier is behind all who have come there.
        let passed = |block: &Block| match block.step {
            Step::Wait(_) | Step::Late(_) => block.barriers - 1,
            _ => block.barriers,
        };
        let met = self
            .blocks
            .iter()
            .all(|block| self.blocks.iter().all(|other| passed(block) <= other.barriers));
        let handles =
            |block: &Block| matches!(block.step, Step::Handle(_) | Step::Wait(_) | Step::Late(_));
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
    states_from(State::begin(0), script, is_right)
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
    assert!(states_from(State::begin(1), &[[1; 4]; 2], State::is_right).is_none());
    assert!(states(&[[1; 4]; 2], State::is_right).is_some());
}
