//! An exhaustive model of how the blocks of grids on several devices meet ([`devices`](super::devices)): every order of their steps, over
//! some messages, with as many barriers of the grid and of all devices in each block's handler as a script says.
//!
//! Where all blocks have the same, no block goes on from a barrier before all have come there, and all messages are answered. Where a
//! block has others, in whatever grid that is, nobody waits for ever: all blocks end or are through, and the message is not answered by all.

extern crate std;

use super::model::explore;
use std::vec::Vec;

/// A barrier of a handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Barrier {
    OfGrid,
    OfDevices,
}

use Barrier::{OfDevices, OfGrid};

const DEVICES: usize = 2;
/// Blocks of each device. The first one answers.
const BLOCKS: usize = 2;
const ALL: usize = DEVICES * BLOCKS;

/// The barriers of each block's handler, message by message.
type Script = [Vec<&'static [Barrier]>; ALL];

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Step {
    /// Before that barrier of the message, or its return.
    Handle(u8),
    /// It has come to that barrier, and waits.
    Wait(u8),
    /// It has returned: the first block waits for the others of its grid, and these for the next message.
    Returned,
    /// All messages are handled.
    Done,
    /// It has found that blocks do not meet.
    Gone,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Block {
    step: Step,
    /// The message that it handles, or waits for.
    message: u8,
    /// Meetings of its grid, and of all devices.
    meetings: [u8; 2],
    /// The blocks that it has seen at its last meeting, a bit each.
    seen: u8,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    /// Places of each block for what it brings to meetings of all devices: two, and one to see the model fail.
    places: u8,
    /// A block looks for the return of other devices, and for blocks of its own that are ahead; or not, to see the model fail.
    looks: [bool; 2],
    blocks: [Block; ALL],
    /// What each block has brought to meetings of its grid: the last one's number, and whether it was a return.
    of_grid: [[(u8, bool); 2]; ALL],
    /// What it has brought to meetings of all devices: number, and message.
    of_devices: [[(u8, u8); 2]; ALL],
    /// Of each device the last message that it has returned from, counted from 1, and the meetings of all devices until then.
    returned: [(u8, u8); DEVICES],
    /// Of each device: it is lost.
    lost: [bool; DEVICES],
}

fn device(block: usize) -> usize {
    block / BLOCKS
}

impl State {
    fn begin(places: u8, looks: [bool; 2]) -> State {
        let block = Block { step: Step::Handle(0), message: 0, meetings: [0; 2], seen: 0 };
        State {
            places,
            looks,
            blocks: [block; ALL],
            of_grid: [[(0, false); 2]; ALL],
            of_devices: [[(0, 0); 2]; ALL],
            returned: [(0, 0); DEVICES],
            lost: [false; DEVICES],
        }
    }

    fn is_end(&self) -> bool {
        self.blocks.iter().all(|block| matches!(block.step, Step::Done | Step::Gone))
    }

    /// Block `b` ends, and all devices are told.
    fn give_up(&mut self, b: usize) {
        self.blocks[b].step = Step::Gone;
        self.lost = [true; DEVICES];
    }

    /// Block `b` comes to a meeting of its grid.
    fn come(&mut self, b: usize, is_return: bool) {
        let [number, _] = &mut self.blocks[b].meetings;
        *number += 1;
        self.of_grid[b][*number as usize % 2] = (*number, is_return);
    }

    /// Who waits at a meeting of its grid, which is a return or not: another block is there, or it cannot take place.
    fn look_at_grid(&self, b: usize, is_return: bool, then: &mut impl FnMut(State)) {
        let own = self.blocks[b];
        let [number, _] = own.meetings;
        for other in (0..ALL).filter(|other| device(*other) == device(b)) {
            let (at, returns) = self.of_grid[other][number as usize % 2];
            if at != number || own.seen >> other & 1 == 1 {
                continue;
            }
            let mut next = self.clone();
            match returns == is_return {
                true => next.blocks[b].seen |= 1 << other,
                false => next.give_up(b),
            }
            then(next);
        }
        self.look_at_loss(b, then);
    }

    /// Who waits may find that its device is lost, or another one.
    fn look_at_loss(&self, b: usize, then: &mut impl FnMut(State)) {
        if self.lost[device(b)] {
            let mut next = self.clone();
            next.blocks[b].step = Step::Gone;
            then(next);
        }
    }

    /// Who waits at a meeting of all devices.
    fn look_at_devices(&self, b: usize, then: &mut impl FnMut(State)) {
        let own = self.blocks[b];
        let [of_grid, number] = own.meetings;
        let place = |number: u8| (number % self.places) as usize;
        for other in 0..ALL {
            let (at, message) = self.of_devices[other][place(number)];
            let mut next = self.clone();
            if at == number && own.seen >> other & 1 == 0 {
                match message == own.message {
                    true => next.blocks[b].seen |= 1 << other,
                    false => next.give_up(b),
                }
                then(next);
            } else if self.looks[1]
                && device(other) == device(b)
                && self.of_grid[other][(of_grid + 1) as usize % 2].0 == of_grid + 1
                && at != number
            {
                next.give_up(b);
                then(next);
            }
        }
        let misses = |&(message, meetings): &(u8, u8)| message > own.message && meetings < number;
        if self.looks[0] && self.returned.iter().any(misses) {
            let mut next = self.clone();
            next.give_up(b);
            then(next);
        }
        self.look_at_loss(b, then);
    }

    /// All states that a step of block `b` leads to.
    fn steps_of(&self, b: usize, script: &Script, then: &mut impl FnMut(State)) {
        let own = self.blocks[b];
        let barriers = script[b].get(own.message as usize).copied().unwrap_or(&[]);
        let of_device = device(b) * BLOCKS..(device(b) + 1) * BLOCKS;
        let all_of_device: u8 = of_device.map(|block| 1 << block).sum();
        let mut next = self.clone();
        match own.step {
            Step::Done | Step::Gone => {}
            Step::Handle(k) => {
                next.blocks[b].seen = 0;
                match barriers.get(k as usize) {
                    Some(OfGrid) => {
                        next.come(b, false);
                        next.blocks[b].step = Step::Wait(k);
                    }
                    Some(OfDevices) => {
                        let [_, number] = &mut next.blocks[b].meetings;
                        *number += 1;
                        let number = *number;
                        let place = (number % self.places) as usize;
                        next.of_devices[b][place] = (number, own.message);
                        next.blocks[b].step = Step::Wait(k);
                    }
                    None => {
                        next.come(b, true);
                        next.blocks[b].step = Step::Returned;
                    }
                }
                then(next);
            }
            Step::Wait(k) => match barriers[k as usize] {
                OfGrid if own.seen == all_of_device => {
                    next.blocks[b].step = Step::Handle(k + 1);
                    then(next);
                }
                OfDevices if own.seen == (1 << ALL) - 1 => {
                    next.blocks[b].step = Step::Handle(k + 1);
                    then(next);
                }
                OfGrid => self.look_at_grid(b, false, then),
                OfDevices => self.look_at_devices(b, then),
            },
            Step::Returned if b.is_multiple_of(BLOCKS) => {
                if own.seen != all_of_device {
                    return self.look_at_grid(b, true, then);
                }
                next.returned[device(b)] = (own.message + 1, own.meetings[1]);
                next.blocks[b].message += 1;
                let is_over = own.message as usize + 1 == script[b].len();
                next.blocks[b].step = if is_over { Step::Done } else { Step::Handle(0) };
                then(next);
            }
            Step::Returned => {
                let first = self.blocks[device(b) * BLOCKS];
                if first.step == Step::Gone {
                    next.blocks[b].step = Step::Gone;
                    then(next);
                } else if first.message > own.message {
                    next.blocks[b].message += 1;
                    let is_over = own.message as usize + 1 == script[b].len();
                    next.blocks[b].step = if is_over { Step::Done } else { Step::Handle(0) };
                    then(next);
                }
            }
        }
    }

    /// Whether nobody has gone on from a meeting of all devices before all have come there.
    fn have_met(&self) -> bool {
        let least = self.blocks.iter().map(|block| block.meetings[1]).min().unwrap_or(0);
        // Who waits at its last one has not passed it.
        self.blocks.iter().all(|block| block.meetings[1] <= least + 1)
    }

    fn is_whole(&self) -> bool {
        self.lost == [false; DEVICES] && self.blocks.iter().all(|block| block.step != Step::Gone)
    }
}

/// Goes through all states with that script; `is_right` must hold in each. How many there are.
fn states(begin: State, script: &Script, is_right: impl Fn(&State) -> bool) -> Option<usize> {
    let after = |state: &State| {
        let mut next = Vec::new();
        for b in 0..ALL {
            state.steps_of(b, script, &mut |state| next.push(state));
        }
        next.iter().all(&is_right).then_some(next)
    };
    explore(begin, after, State::is_end)
}

fn real() -> State {
    State::begin(2, [true; 2])
}

/// The same for all blocks.
fn alike(messages: &[&'static [Barrier]]) -> Script {
    core::array::from_fn(|_| messages.to_vec())
}

#[test]
fn blocks_with_the_same_barriers_meet_at_each_and_all_are_answered() {
    let is_right = |state: &State| state.have_met() && state.is_whole();
    for messages in [
        &[&[][..], &[OfDevices]][..],
        &[&[OfDevices, OfDevices], &[OfDevices]],
        &[&[OfGrid, OfDevices], &[OfDevices, OfGrid]],
    ] {
        let n = states(real(), &alike(messages), is_right);
        assert!(n.expect("all meet") > 100, "{messages:?}");
    }
}

/// A block with other barriers than the rest, whichever block and message that is: nobody waits for ever, and no device has answered
/// more than the messages before.
#[test]
fn a_block_that_misses_a_barrier_ends_all() {
    let scripts: [[&[&'static [Barrier]]; 2]; 5] = [
        [&[&[OfDevices]], &[&[]]],
        [&[&[OfDevices], &[OfDevices]], &[&[OfDevices], &[]]],
        [&[&[OfDevices, OfDevices]], &[&[OfDevices]]],
        [&[&[OfDevices]], &[&[OfGrid, OfDevices]]],
        [&[&[OfGrid, OfDevices]], &[&[OfDevices, OfGrid]]],
    ];
    for [most, astray] in scripts {
        for block in 0..ALL {
            let mut script = alike(most);
            script[block] = astray.to_vec();
            let all = most.len() as u8;
            let is_right = |state: &State| {
                state.have_met() && state.returned.iter().any(|(message, _)| *message < all)
            };
            states(real(), &script, is_right).expect("what went astray is not answered by all");
        }
    }
}

/// A device whose blocks all return from a message that another device's wait in.
#[test]
fn a_device_that_misses_a_barrier_ends_the_others() {
    for messages in [1, 2] {
        let mut script = alike(&[&[OfDevices][..], &[]][..messages]);
        for block in script.iter_mut().take(BLOCKS) {
            block[0] = &[];
        }
        states(real(), &script, State::have_met).expect("nobody goes on too early");
    }
}

#[test]
#[should_panic(expected = "no end follows from")]
fn the_model_tells_that_a_return_is_to_be_looked_for() {
    let mut script = alike(&[&[OfDevices]]);
    for block in script.iter_mut().take(BLOCKS) {
        block[0] = &[];
    }
    states(State::begin(2, [false, true]), &script, State::have_met);
}

#[test]
#[should_panic(expected = "no end follows from")]
fn the_model_tells_that_a_block_ahead_is_to_be_looked_for() {
    let mut script = alike(&[&[OfDevices]]);
    script[1] = std::vec![&[][..]];
    states(State::begin(2, [true, false]), &script, State::have_met);
}

/// A block that has seen all goes on to the next meeting, and leaves behind who has not seen it yet.
#[test]
#[should_panic(expected = "no end follows from")]
fn the_model_tells_that_one_place_is_too_few() {
    states(State::begin(1, [false; 2]), &alike(&[&[OfDevices, OfDevices]]), State::have_met);
}
