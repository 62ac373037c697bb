//! What happens while a launch runs. The channel calls [`now`] and [`rest`]; each call may be a step.

use super::beside;
use super::field::{Edit, Field};
use super::host::Host;
use crate::Lie;
use core::mem::offset_of;
use libfuzzer_sys::arbitrary::{self, Arbitrary};
use ring_shared::layout::{ChannelBlock, Command, HostLine, State};
use ring_shared::ring::{CONTROL, Control, stamp};
use std::cell::RefCell;
use std::sync::atomic::Ordering::Relaxed;

/// Calls before the first step: until then the channel has read what a launch begins with.
const BEGINNING: u32 = 2;

/// Calls that a channel may still make after a command to leave. It looks at the command at least once
/// a ring's length.
const PATIENCE: u32 = 20_000;

/// A request's first atom.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub enum Message {
    /// Any words.
    Words([u64; 2]),
    /// Vectors to add: how many elements, in the message or not, and where, seen from the last place in
    /// the arena that has room for them. Where there are buffers, a reference to so many elements of one of them.
    Vectors(u8, bool, Lie),
    /// A reference into the arena: where, seen from its end, and how much, seen from what is left there. Where there are
    /// buffers, lies in place of a reference to the first.
    Payload(Lie, Lie),
}

impl Message {
    fn words(self, host: &Host) -> [u64; 2] {
        let payload = host.payload_bytes();
        match (self, &host.buffers) {
            (Message::Words(words), _) => words,
            (Message::Vectors(count, which, at), Some(buffers)) => {
                buffers.part(which.into(), count.into(), at)
            }
            (Message::Payload(named, part), Some(buffers)) => buffers.whole(0, named, part),
            (Message::Vectors(len, inline, at), None) => {
                let last = payload.saturating_sub(12 * u64::from(len));
                [u64::from(len) | u64::from(!inline) << 32, at.apply(last)]
            }
            (Message::Payload(at, words), None) => {
                let at = at.apply(payload);
                [at, words.apply(payload.saturating_sub(at) / 4)]
            }
        }
    }
}

/// What the host does.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub enum Act {
    /// Writes any control atom: tail, first in slots, credit; in the line of a message so many ahead.
    Control(Lie, Lie, Lie, u8),
    /// Sends an inline message, as it should; but for the credit.
    Inline(Message, Option<Lie>),
    /// Sends so many in slots, as it should; but for the credit.
    Slots(u8, Message, Option<Lie>),
    /// Gives credit by its line.
    Credit(Lie),
    /// Commands a state.
    Command(u8, Lie),
    /// Writes anything anywhere.
    Edit(Edit),
}

/// What the host does, and after how many calls.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub struct Step {
    pub(super) quiet: u8,
    pub(super) nanoseconds: u32,
    pub(super) act: Act,
}

/// The steps of a launch, and its host.
#[derive(Debug)]
pub struct Script {
    host: Host,
    steps: Vec<Step>,
    next: usize,
    quiet: u32,
    clock: u64,
    /// Calls since the command to leave.
    over: Option<u32>,
}

thread_local! {
    static SCRIPT: RefCell<Option<Script>> = const { RefCell::new(None) };
}

/// A launch begins.
pub fn begin(script: Script) {
    SCRIPT.set(Some(script));
}

/// A launch has ended.
pub fn end() -> Host {
    SCRIPT.take().expect("a script").host
}

/// The channel looks at the clock.
pub fn now() -> u64 {
    SCRIPT.with_borrow_mut(|script| {
        let script = script.as_mut().expect("a script");
        script.call();
        script.clock
    })
}

/// The channel found nothing.
pub fn rest(looks: u32) {
    SCRIPT.with_borrow_mut(|script| script.as_mut().expect("a script").call());
    beside::first_waits(looks);
}

impl Script {
    /// That of a launch.
    pub fn new(host: Host, steps: Vec<Step>) -> Script {
        // Not from zero: a zeroed word would be a time long ago.
        Script { host, steps, next: 0, quiet: BEGINNING, clock: 3_600_000_000_000, over: None }
    }

    fn call(&mut self) {
        self.clock += 1;
        if let Some(calls) = &mut self.over {
            *calls += 1;
            assert!(*calls < PATIENCE, "the channel does not leave on command");
        }
        if self.quiet > 0 {
            self.quiet -= 1;
            return;
        }
        match self.steps.get(self.next).copied() {
            Some(step) => {
                self.next += 1;
                self.quiet = u32::from(step.quiet % 32);
                if step.quiet >= 128 {
                    self.host.tell_lies(false);
                }
                self.clock += u64::from(step.nanoseconds);
                self.act(step.act);
            }
            None => {
                // From now on the steps are repeated, but for the command.
                self.next = 0;
                self.quiet = u32::from(self.steps.is_empty());
                if self.over.is_none() {
                    self.over = Some(0);
                    self.command(State::Terminated as u32, Lie::Near(1));
                }
            }
        }
    }

    fn command(&mut self, state: u32, epoch: Lie) {
        // SAFETY: the host's control block, all atomics and padding.
        let word = unsafe { &(*self.host.control()).host.command };
        let epoch = epoch.apply32(Command::from_word(word.load(Relaxed)).epoch);
        self.host.write(offset_of!(HostLine, command), Command { epoch, state }.to_word());
    }

    fn act(&mut self, act: Act) {
        let head = self.host.own().request_credit.consumed.load(Relaxed);
        match act {
            Act::Control(tail, first, credit, ahead) => {
                let control = Control {
                    credit: credit.apply(head) as u32,
                    early: credit.apply(head) as u32 >> 16 ^ u32::from(ahead), // any number will do
                    first: first.apply(head) as u32,
                    tail: tail.apply(head) as u32,
                };
                self.publish(head.wrapping_add(ahead.into()), control);
            }
            Act::Inline(message, credit) => {
                let [a, b] = message.words(&self.host);
                let stamp = u64::from(stamp(head)) << 32;
                for k in 0..CONTROL {
                    // Twelve bytes an atom: the second begins with the fourth word.
                    let words = match k {
                        0 => [a, b & u64::from(u32::MAX) | stamp],
                        1 => [b >> 32, stamp],
                        _ => [a.wrapping_mul(k as u64), stamp],
                    };
                    self.write_atom(head, k, words);
                }
                let credit = credit.map_or(head, |lie| lie.apply(head)) as u32;
                let tail = (head as u32).wrapping_add(1);
                self.publish(head, Control { credit, early: 0, first: tail, tail });
            }
            Act::Slots(n, message, credit) => {
                let words = message.words(&self.host);
                (0..u64::from(n.min(64))).for_each(|k| self.host.send(head.wrapping_add(k), words));
                let tail = (head as u32).wrapping_add(n.into());
                let credit = credit.map_or(head, |lie| lie.apply(head)) as u32;
                let control = Control { credit, early: 0, first: head as u32, tail };
                self.publish(head, control);
                self.publish(0, control);
            }
            Act::Credit(lie) => {
                let at = self.host.own_offset() + offset_of!(ChannelBlock, response_credit);
                self.host.write(at, lie.apply(head));
            }
            Act::Command(state, epoch) if self.over.is_none() => self.command(state.into(), epoch),
            Act::Command(..) => {}
            // Edits do not undo the command to leave.
            Act::Edit(Edit::Lie(Field::Kernel(_), ..)) if self.over.is_some() => {}
            Act::Edit(edit) => self.host.edit(&edit, false),
        }
    }

    /// Writes the control atom of the line of request `index`.
    fn publish(&mut self, index: u64, control: Control) {
        self.write_atom(index, CONTROL, control.to_words());
    }

    /// Writes an atom of the line of request `index`.
    fn write_atom(&mut self, index: u64, atom: usize, [lo, hi]: [u64; 2]) {
        let at = self.host.line_offset(0, index) + 16 * atom;
        self.host.write(at, lo);
        self.host.write(at + 8, hi);
    }
}
