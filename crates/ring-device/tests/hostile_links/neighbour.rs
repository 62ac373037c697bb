//! Neighbours that write what they like to the lines and slots that are theirs: those of a channel's inputs as their producers,
//! and the credit lines of its outputs as their consumers.

use crate::guarded::GuardedRing;
use crate::node::Rings;
use crate::rig::Dice;
use ring_shared::layout::Routing;
use ring_shared::ring::{CONTROL, Control, payload_of, stamp_of, stamped};
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// What the neighbours write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// Lies that might be true: messages that nobody has made, credit that comes late and goes back. No channel can tell.
    Possible,
    /// Anything.
    Any,
}

/// All neighbours of a channel.
pub struct Neighbours {
    rings: Arc<Rings>,
    dice: Dice,
    manner: Manner,
    /// Whether a message of the channel's requests fits a line.
    fits_line: bool,
    /// What each has last written, so what must still be there: the line and the slots of an input, the credit of an output.
    lines: Vec<[[u64; 2]; CONTROL + 1]>,
    slots: Vec<Vec<Vec<[u64; 2]>>>,
    credits: Vec<u64>,
    /// The most that each has told, if all of it was possible: messages of an input, and consumed ones of an output.
    told: Vec<u64>,
    granted: Vec<u64>,
    /// Requests that have ever lain whole in a slot or, with one stamp, in a line; and those that a handler has got.
    made: HashSet<Vec<u64>>,
    handled: Vec<Vec<u64>>,
}

impl Neighbours {
    /// Before the first has written anything.
    pub fn new(rings: Arc<Rings>, seed: u64, manner: Manner, fits_line: bool) -> Neighbours {
        let (inputs, outputs) = (&rings.inputs, &rings.outputs);
        Neighbours {
            lines: inputs.iter().map(GuardedRing::line).collect(),
            slots: inputs
                .iter()
                .map(|ring| (0..ring.capacity).map(|k| ring.slot(k)).collect())
                .collect(),
            credits: outputs.iter().map(GuardedRing::consumed).collect(),
            told: inputs.iter().map(GuardedRing::start).collect(),
            granted: outputs.iter().map(GuardedRing::start).collect(),
            // Slots are zero before the first message.
            made: inputs.iter().map(|ring| vec![0; 2 * ring.atoms as usize]).collect(),
            handled: Vec::new(),
            dice: Dice(seed),
            manner,
            fits_line,
            rings,
        }
    }

    /// One of them writes something.
    pub fn act(&mut self) {
        let (inputs, outputs) = (self.rings.inputs.len() as u64, self.rings.outputs.len() as u64);
        let who = self.dice.roll(inputs + outputs);
        if let Some(output) = who.checked_sub(inputs) {
            return self.grant(output as usize);
        }
        let input = who as usize;
        match self.dice.roll(8) {
            0 => self.write_slot(input),
            1 | 2 => self.write_stamps(input),
            _ => self.write_control(input),
        }
    }

    /// A handler has got that request.
    pub fn note_handled(&mut self, request: &[u64]) {
        self.handled.push(request.to_vec());
    }

    /// 64 bits.
    fn word(&mut self) -> u64 {
        match self.dice.roll(6) {
            0 => u64::MAX,
            1 => 0,
            _ => {
                self.dice.roll(1 << 31) << 42
                    ^ self.dice.roll(1 << 31) << 21
                    ^ self.dice.roll(1 << 31)
            }
        }
    }

    /// A number close to `base`, or to one that lies a ring's length or half of all numbers away, or any other.
    fn near(&mut self, base: u32, capacity: u32) -> u32 {
        let half = 1 << 31;
        let far = [0, capacity, capacity.wrapping_neg(), 2 * capacity, half, u32::MAX - base];
        match self.dice.roll(16) {
            0 => self.word() as u32,
            _ => base.wrapping_add(self.dice.pick(&far)).wrapping_add(self.dice.pick(&[
                0,
                0,
                1,
                2,
                u32::MAX,
            ])),
        }
    }

    /// The producer of an input: some bytes of a slot.
    fn write_slot(&mut self, input: usize) {
        let ring = self.rings.inputs[input].ring();
        let slot = self.dice.roll(ring.capacity().into());
        for (k, atom) in ring.slot(slot).iter().enumerate() {
            let words = [self.word(), self.word()];
            atom.publish(words);
            self.slots[input][slot as usize][k] = words;
        }
        self.made.insert(self.slots[input][slot as usize].concat());
    }

    /// Payload and stamps, of which all or some are right.
    fn write_stamps(&mut self, input: usize) {
        let (ring, capacity) = (self.rings.inputs[input].ring(), self.rings.inputs[input].capacity);
        let next = self.rings.inputs[input].consumed() as u32;
        let stamp = self.near(next.wrapping_add(1), capacity);
        for k in 0..CONTROL {
            let stamp = if self.dice.roll(12) == 0 { self.near(stamp, capacity) } else { stamp };
            let payload = [self.word() as u32, self.word() as u32, self.word() as u32];
            self.lines[input][k] = stamped(payload, stamp);
            ring.line(0).atoms[k].publish(self.lines[input][k]);
        }
        let [first, second, ..] = self.lines[input];
        if self.fits_line && stamp_of(first) == stamp_of(second) {
            let ([a, b, c], [d, ..]) = (payload_of(first), payload_of(second));
            let [a, b, c, d] = [a, b, c, d].map(u64::from);
            self.made.insert(vec![a | b << 32, c | d << 32]);
        }
    }

    /// The control atom of an input's line.
    fn write_control(&mut self, input: usize) {
        let (consumed, capacity) =
            (self.rings.inputs[input].consumed(), self.rings.inputs[input].capacity);
        let base = consumed as u32;
        let (credit, early) = (self.word() as u32, self.word() as u32);
        let possible = self.manner == Manner::Possible || self.dice.roll(4) != 0;
        let control = if possible {
            // No more ahead of what is consumed than the ring is long, and a run that begins no later than there; or none.
            let tail = consumed + self.dice.roll(u64::from(capacity) + 1);
            let is_run = !self.fits_line || self.dice.roll(3) != 0;
            let back = u64::from(capacity) - (tail - consumed);
            let first = if is_run { consumed.wrapping_sub(self.dice.roll(back + 1)) } else { tail };
            self.told[input] = self.told[input].max(tail);
            Control { credit, early, first: first as u32, tail: tail as u32 }
        } else {
            let tail = self.near(base, capacity);
            let first = match self.dice.roll(2) {
                0 => self.near(base, capacity),
                _ => self.near(tail, capacity),
            };
            Control { credit, early, first, tail }
        };
        self.lines[input][CONTROL] = match (possible, self.dice.roll(8)) {
            // One half is that of another control: torn.
            (false, 0) => [self.word(), control.to_words()[1]],
            (false, 1) => [control.to_words()[0], self.word()],
            _ => control.to_words(),
        };
        let words = self.lines[input][CONTROL];
        self.rings.inputs[input].ring().line(0).atoms[CONTROL].publish(words);
    }

    /// The consumer of an output: its credit.
    fn grant(&mut self, output: usize) {
        let ring = &self.rings.outputs[output];
        let (start, sent, capacity) = (ring.start(), sent(ring), u64::from(ring.capacity));
        let possible = self.manner == Manner::Possible || self.dice.roll(8) != 0;
        let credit = if possible {
            let late = self.dice.roll(capacity + 1).min(sent - start);
            sent - if self.dice.roll(2) == 0 { late } else { 0 }
        } else {
            let (far, near) = ([0, capacity, 1 << 32, 1 << 31, 1 << 63], [0, 1, 2, u64::MAX]);
            let distance = self.dice.pick(&far).wrapping_add(self.dice.pick(&near));
            match self.dice.roll(8) {
                0 => self.word(),
                1 => start.wrapping_sub(distance),
                2 => sent.wrapping_sub(distance),
                _ => sent.wrapping_add(distance),
            }
        };
        if possible {
            self.granted[output] = self.granted[output].max(credit);
        }
        self.credits[output] = credit;
        self.rings.outputs[output].ring().credit().consumed.store(credit, Relaxed);
    }

    /// Fails unless all that the neighbours have written is still there, since nobody else may write it; unless handlers got
    /// whole requests, that a neighbour told of; and unless all that is in the channel's outputs was made by its handler for that
    /// output, by `seal` and `key`, into room that was granted.
    pub fn check(&self, seal: impl Fn(u64) -> u64, key: impl Fn(u64) -> u32) {
        let torn = self.handled.iter().find(|request| !self.made.contains(*request));
        assert_eq!(torn, None, "no neighbour has made that request");
        for (k, ring) in self.rings.inputs.iter().enumerate() {
            assert_eq!(ring.line(), self.lines[k], "input {k}: its line is its producer's");
            for slot in 0..ring.capacity {
                let written = &self.slots[k][slot as usize];
                assert_eq!(ring.slot(slot), *written, "input {k}: slot {slot} is its producer's");
            }
            let (consumed, told) = (ring.consumed(), self.told[k]);
            if self.manner == Manner::Possible {
                assert!(consumed <= told, "input {k}: {consumed} consumed of {told} told of");
            }
        }
        let count = self.rings.outputs.len() as u32;
        for (k, ring) in self.rings.outputs.iter().enumerate() {
            assert_eq!(
                ring.consumed(),
                self.credits[k],
                "output {k}: its credit is its consumer's"
            );
            let (sent, granted) = (sent(ring), self.granted[k] + u64::from(ring.capacity));
            if self.manner == Manner::Possible {
                assert!(sent <= granted, "output {k}: {sent} sent, with room up to {granted}");
            }
            for slot in 0..ring.capacity {
                let [message, sealed] = ring.slot(slot)[0];
                if [message, sealed] == [0; 2] {
                    continue; // never written
                }
                assert_eq!(sealed, seal(message), "output {k}: slot {slot} is no message");
                let to = match self.rings.routing {
                    Routing::All => k as u32,
                    Routing::ByKey => key(message) % count,
                    Routing::ByIndex => key(message),
                };
                assert_eq!(to, k as u32, "output {k}: slot {slot} has another's message");
            }
        }
    }
}

/// Index behind the last message that the channel has sent to an output.
pub fn sent(ring: &GuardedRing) -> u64 {
    let tail = Control::from_words(ring.line()[CONTROL]).tail;
    ring.start() + u64::from(tail.wrapping_sub(ring.start() as u32))
}
