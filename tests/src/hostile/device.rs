//! The device's side: what an honest one would write, and what it should not.

use super::{Bytes, Known, Truth};
use bytemuck::{Zeroable, bytes_of};
use ring_host::State;
use ring_host::device::quirks::{Lines, MemoryProbe};
use ring_shared::Message;
use ring_shared::atomics::Atom;
use ring_shared::layout::{Command, Doorbell};
use ring_shared::ring::{CONTROL, Control, stamp, window};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Relaxed, Release};

/// Writes a device's lines.
pub(super) struct Liar<'a> {
    pub memory_probe: &'a MemoryProbe,
}

impl Liar<'_> {
    /// The channel's lines, if there are any yet: in staged memory, once it is launched.
    fn on<T>(&self, channel: usize, act: impl FnOnce(Lines<'_>) -> T) -> Option<T> {
        self.memory_probe.look(|kernels| Some(act(*kernels.last()?.get(channel)?)))
    }

    /// What an honest device does.
    pub fn work<K: Known>(
        &self,
        truth: &mut Truth,
        script: &mut Bytes<'_>,
        channel: usize,
        launches: u64,
    ) {
        if launches == truth.left && !truth.stays {
            return; // nothing runs
        }
        match script.below(8) {
            0..4 => {
                let (n, inline) = (1 + script.below(40) as u64, script.below(2) == 0);
                self.on(channel, |lines| {
                    answer::<K>(&mut truth.channels[channel], &lines, n, inline)
                });
            }
            4 => drop(self.on(channel, |lines| {
                let channel = &mut truth.channels[channel];
                let consumed = channel.announced;
                channel.consumed.push(consumed);
                lines.request_credit.consumed.store(channel.start.wrapping_add(consumed), Release);
            })),
            5 | 6 => self.acknowledge(truth.channels.len(), 0, None),
            _ => {
                truth.ended |= truth.stays;
                self.leave(truth, launches);
            }
        }
    }

    /// All launches leave.
    pub fn leave(&self, truth: &mut Truth, launches: u64) {
        truth.left = launches;
        for channel in 0..truth.channels.len() {
            self.on(channel, |lines| lines.status.launches_left.store(launches, Release));
        }
        self.memory_probe.end();
    }

    /// Acknowledges the command that comes after so many others, or the one that is there.
    pub fn acknowledge(&self, channels: usize, after: u32, state: Option<State>) {
        for channel in 0..channels {
            self.on(channel, |lines| {
                let Command { epoch, state: commanded } =
                    Command::from_word(lines.command.load(Relaxed));
                let state = state.map_or(commanded, |state| state as u32);
                let word = Command { epoch: epoch.wrapping_add(after), state }.to_word();
                lines.status.acknowledged.store(word, Release);
            });
        }
    }

    /// What no device should do.
    pub fn lie(&self, truth: &mut Truth, script: &mut Bytes<'_>, at: usize) {
        let word = self.on(at, |lines| lines.command.load(Relaxed)).unwrap_or_default();
        let value = value(script, &truth.channels[at], word);
        let channel = &mut truth.channels[at];
        self.on(at, |lines| {
            let status = lines.status;
            let Doorbell { atoms } =
                &lines.response_lines[script.below(lines.response_lines.len())];
            let known = Control::from_words(atoms[CONTROL].load());
            let mut publish = |control: Control| {
                channel.lies.bell = true;
                atoms[CONTROL].publish(control.to_words());
            };
            match script.below(16) {
                0 => {
                    channel.lies.acknowledged = true;
                    status.acknowledged.store(value, Release);
                }
                1 => {
                    channel.lies.acknowledged = true;
                    let epoch = Command::from_word(word).epoch.wrapping_add(script.below(3) as u32);
                    let state = script.below(8) as u32;
                    let word = Command { epoch, state }.to_word();
                    status.acknowledged.store(word, Release);
                }
                2 => {
                    channel.lies.left = true;
                    status.launches_left.store(value, Release);
                }
                3 => status.exit.store(value, Relaxed),
                4 | 5 => {
                    channel.lies.credit = true;
                    channel.consumed.push(value.wrapping_sub(channel.start));
                    lines.request_credit.consumed.store(value, Release);
                }
                6..9 => publish(Control { tail: value as u32, ..known }),
                9 => publish(Control { first: value as u32, ..known }),
                10 => publish(Control { credit: value as u32, ..known }),
                11 => {
                    let k = script.below(CONTROL);
                    channel.lies.bell = true;
                    atoms[k].publish([script.word(), value << 32]);
                }
                12 => {
                    channel.lies.bell = true;
                    atoms[CONTROL].publish([script.word(), value]);
                }
                13 => {
                    channel.lies.slots = true;
                    let k = script.next() as usize % lines.responses.len();
                    lines.responses[k].store([value, script.word()]);
                }
                14 => {
                    let times = [&lines.times.handler, &lines.times.queueing];
                    times[script.below(2)][script.below(32)].store(value, Relaxed);
                }
                _ => others(&lines)[script.below(9)].store(value, Relaxed),
            }
        });
    }
}

/// Answers up to `n` requests of the channel: through slots, but inline as long as that may be, if `inline`.
fn answer<K: Known>(channel: &mut super::Channel, lines: &Lines<'_>, n: u64, inline: bool) {
    let free = channel.capacity.saturating_sub(channel.announced.saturating_sub(channel.received));
    let n = n.min(channel.sent.saturating_sub(channel.announced)).min(free);
    if n == 0 || channel.received > channel.announced {
        return; // nothing is asked, or the host took what was never answered
    }
    let (start, line_count) = (channel.start, lines.response_lines.len());
    let (mut at, read) = (start + channel.announced, start + channel.received);
    channel.announced += n;
    let tail = start + channel.announced;
    let window = u64::from(window(line_count as u32, channel.capacity as u32));
    // A device sends nothing inline behind what is unread in slots.
    let may = |at: u64, run_start| inline && at - read < if run_start == at { window } else { 1 };
    while K::Response::FITS_INLINE && at < tail && may(at, channel.run_start) {
        let line = &lines.response_lines[at as usize & (line_count - 1)];
        write_inline(&line.atoms, &K::answer(at - start), stamp(at));
        channel.run_start = at + 1;
        publish(channel, lines, at, Control::behind_inline(at + 1, tail));
        at += 1;
    }
    if at < tail {
        for index in at..tail {
            let slot = (index & (channel.capacity - 1)) as usize;
            let atoms = &lines.responses[slot * K::Response::SLOT_ATOMS..];
            write_slot(&atoms[..K::Response::SLOT_ATOMS], &K::answer(index - start));
        }
        let control = Control::behind_slots(channel.run_start, read, tail, tail);
        publish(channel, lines, at, control);
        publish(channel, lines, 0, control);
    }
}

/// Writes the control atom of the line of answer `index`.
fn publish(channel: &mut super::Channel, lines: &Lines<'_>, index: u64, control: Control) {
    let at = index as usize & (lines.response_lines.len() - 1);
    lines.response_lines[at].atoms[CONTROL].publish(control.to_words());
    channel.shown[at] = control;
}

fn write_slot<T: Message>(slot: &[Atom], message: &T) {
    for (atom, bytes) in slot.iter().zip(bytes_of(message).chunks(16)) {
        let mut words = <[u64; 2]>::zeroed();
        bytemuck::bytes_of_mut(&mut words)[..bytes.len()].copy_from_slice(bytes);
        atom.store(words);
    }
}

fn write_inline<T: Message>(line: &[Atom], message: &T, stamp: u32) {
    for (atom, bytes) in line.iter().zip(bytes_of(message).chunks(12)) {
        let mut words = [0u32, 0, 0, stamp];
        bytemuck::bytes_of_mut(&mut words)[..bytes.len()].copy_from_slice(bytes);
        atom.publish(bytemuck::cast(words));
    }
}

/// What the host only shows.
fn others<'a>(lines: &Lines<'a>) -> [&'a AtomicU64; 9] {
    let s = lines.status;
    let counters = [&s.processed, &s.refused, &s.errors, &s.depth, &s.heartbeat];
    let [a, b, c, d, e] = counters;
    [a, b, c, d, e, &s.ticks, &s.busy, &s.call, &s.run_start]
}

/// A value to lie with: any, or one close to a truth.
fn value(script: &mut Bytes<'_>, channel: &super::Channel, command: u64) -> u64 {
    let kind = script.below(9);
    let around = script.around();
    let index = |n: u64| channel.start.wrapping_add(n).wrapping_add(around);
    match kind {
        0 => script.word(),
        1 => index(channel.sent),
        2 => index(channel.received),
        3 => index(channel.received.wrapping_add(channel.capacity)),
        4 => index(channel.sent.wrapping_sub(channel.capacity)),
        5 => (1u64 << 32).wrapping_add(around),
        6 => around,
        7 => index(channel.announced.wrapping_add(1 << 31)),
        _ => {
            let Command { epoch, .. } = Command::from_word(command);
            let state = script.next().into();
            let epoch = epoch.wrapping_add(around as u32 & 3);
            Command { epoch, state: if state < 128 { state % 8 } else { state } }.to_word()
        }
    }
}
