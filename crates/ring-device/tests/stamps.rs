//! Stamps of inline answers come round after 2^32 messages, so a channel overwrites old ones before.

mod rig;

use rig::{Budgets, Dice, ENDLESS, LINES, Next, Rig};
use ring_shared::layout::{Exit, State};
use ring_shared::ring::{CONTROL, SCRUB};
use std::sync::atomic::Ordering::{Relaxed, Release};

const START: u64 = 5;

/// Index after the first answer, which goes inline, and its stamp.
const STAMPED: u64 = START + 1;

/// A channel with so many lines.
struct Channel {
    rig: Rig<Next>,
    ends: rig::Ends,
    lines: u64,
    /// The stamps of each line.
    stamps: Vec<u32>,
    /// The index from which on answers are counted until a line is overwritten.
    counted: u64,
}

impl Channel {
    /// A channel at rest whose first answer went inline, and whose next are those after index `head`: all
    /// between went through slots, and were received.
    fn at(lines: u32, head: u64) -> Channel {
        let mut rig = Rig::<Next>::new(1, (8, lines), START);
        rig.command(State::Active);
        rig.budgets(Budgets { idle: 0, ..ENDLESS });
        let mut ends = rig.ends(0);
        assert!(ends.push(1u64));
        assert_eq!(rig.whole(), Exit::Idle);
        assert_eq!(ends.drain::<u64>(), [2], "received by the line");
        let mut stamps = vec![START as u32; lines as usize];
        stamps[START as usize % lines as usize] = STAMPED as u32;
        // A single line was overwritten by that answer. Of several, one after the other is, whatever was inline.
        let counted = if lines == 1 { STAMPED } else { START };
        let mut channel = Channel { rig, ends, lines: lines.into(), stamps, counted };
        channel.go_on(head);
        channel
    }

    /// Goes on as if all messages up to index `head` had been answered and received.
    fn go_on(&mut self, head: u64) {
        let ahead = head - self.ends.consumer.next();
        self.ends.consumer.fast_forward(ahead);
        self.ends.producer.fast_forward(ahead, head);
        let block = self.rig.channel(0);
        block.request_credit.consumed.store(head, Release);
        block.status.processed.store(head - START, Relaxed);
    }

    /// Answers two messages through slots, in a launch of their own.
    fn two(&mut self) {
        assert_eq!(self.ends.push_slice(&[10u64, 20]), 2);
        self.rig.launch().join();
        assert_eq!(self.rig.exit(0), Exit::Idle);
        assert_eq!(self.ends.drain::<u64>(), [11, 21]);
    }

    /// Messages from one line that is overwritten to the next.
    fn step(&self) -> u64 {
        SCRUB / self.lines
    }

    /// The line whose turn it was at `tail` has the stamp of an answer that was received: the one before `head`.
    fn overwrote(&mut self, tail: u64, head: u64) {
        self.counted = if self.lines == 1 { tail } else { self.counted + self.step() };
        let line = self.counted / self.step() % self.lines;
        self.stamps[line as usize] = head as u32;
    }

    fn scrubbed(&self) -> u64 {
        self.rig.channel(0).status.scrubbed.load(Relaxed)
    }

    /// Each line has the stamps that it should have, all the same; the index is that up to which lines were overwritten.
    fn check(&self, scrubbed: u64) {
        for (line, expected) in (0..).zip(&self.stamps) {
            let atoms = &self.rig.line(0, 1, line).atoms[..CONTROL];
            let stamps: Vec<u32> = atoms.iter().map(|atom| (atom.load()[1] >> 32) as u32).collect();
            assert_eq!(stamps, [*expected; CONTROL], "line {line} of {}", self.lines);
        }
        assert_eq!(self.scrubbed(), scrubbed);
    }
}

#[test]
fn a_channel_overwrites_stamps_before_they_come_round() {
    for lines in LINES {
        let step = SCRUB / u64::from(lines);
        // Up to so many answers behind it, it stays.
        let mut channel = Channel::at(lines, STAMPED);
        channel.go_on(channel.counted + step - 2);
        channel.two();
        channel.check(START);
        // One more and a line goes; what is there instead is the stamp of an answer that was received.
        let head = channel.counted + step + 2;
        channel.go_on(head);
        channel.two();
        channel.overwrote(head + 2, head);
        channel.check(channel.counted);
        // The next launch knows of it, and waits as long again.
        let later = channel.counted + step - 2;
        channel.go_on(later);
        channel.two();
        channel.check(channel.counted);
        channel.go_on(later + 3);
        channel.two();
        channel.overwrote(later + 5, later + 3);
        channel.check(channel.counted);
    }
}

#[test]
fn one_answer_more_than_that_is_enough() {
    for lines in LINES {
        let mut channel = Channel::at(lines, STAMPED);
        let head = channel.counted + SCRUB / u64::from(lines) - 1;
        channel.go_on(head);
        channel.two();
        channel.overwrote(head + 2, head);
        channel.check(channel.counted);
    }
}

/// In steps as short as those of the largest ring: no stamp is older than half of all that there are.
#[test]
fn every_line_has_its_turn() {
    let mut dice = Dice(7);
    for lines in LINES {
        let mut channel = Channel::at(lines, STAMPED);
        let (step, mut head) = (channel.step(), STAMPED);
        while head < 5 * SCRUB {
            let (longest, before) = (step.min(16 << 20) / 16, channel.scrubbed());
            head += 1 + dice.roll(longest) + if lines == 1 { step - longest } else { 0 };
            channel.go_on(head);
            channel.two();
            let scrubbed = channel.scrubbed();
            if scrubbed != before {
                // The two may be announced one by one.
                assert!(lines > 1 || (head + 1..=head + 2).contains(&scrubbed), "{scrubbed}");
                channel.overwrote(scrubbed, head);
            }
            channel.check(if scrubbed == START { START } else { channel.counted });
            head += 2;
            for (line, stamp) in channel.stamps.iter().enumerate() {
                let age = (head as u32).wrapping_sub(*stamp);
                assert!(age < 1 << 31, "line {line} of {lines}: {age} answers ago");
            }
        }
    }
}
