//! Counts lost, duplicated, reordered and corrupt messages of one channel.

use super::word::WrongWord;
use ring_host::kernels::EchoMessage;
use std::collections::BTreeMap;
use std::fmt;

/// The factor between a seed and a message's first word, and its inverse modulo 2^64.
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
const INVERSE: u64 = inverse(FACTOR);

/// Newton's iteration: each step doubles the bits that are right, from three.
const fn inverse(odd: u64) -> u64 {
    let (mut x, mut step) = (odd, 0);
    while step < 5 {
        x = x.wrapping_mul(2u64.wrapping_sub(odd.wrapping_mul(x)));
        step += 1;
    }
    x
}

/// Compares the answers of a channel with what was sent on it: message `i` of channel `l` has the seed
/// `l + i * channels`, which can be read from an answer, so that a wrong one shows where it belongs.
#[derive(Clone, Debug)]
pub struct Tally {
    channel: u64,
    channels: u64,
    /// The message whose answer is next.
    next: u64,
    /// Messages before `next` whose answers did not come, as ranges: start to end.
    gaps: BTreeMap<u64, u64>,
    missing: u64,
    /// Answers that came twice.
    pub duplicated: u64,
    /// Answers that came after a later message's.
    pub reordered: u64,
    /// Answers to no message of this channel.
    pub corrupt: u64,
    /// The first answer that was not the expected one.
    pub first_wrong: Option<Wrong>,
}

/// An answer that was not the expected one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wrong {
    channel: u64,
    expected: u64,
    got: Got,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Got {
    Message(u64),
    Changed(WrongWord),
    Strange,
}

impl Tally {
    /// For channel `channel` of `channels`, before its first message.
    pub fn new(channel: u64, channels: u64) -> Tally {
        Tally {
            channel,
            channels,
            next: 0,
            gaps: BTreeMap::new(),
            missing: 0,
            duplicated: 0,
            reordered: 0,
            corrupt: 0,
            first_wrong: None,
        }
    }

    /// The `i`-th message of the channel.
    #[inline]
    pub fn message(&self, i: u64) -> EchoMessage {
        EchoMessage::from_seed(self.channel.wrapping_add(i.wrapping_mul(self.channels)))
    }

    /// Counts an answer, when `sent` messages have been sent.
    #[inline]
    pub fn count(&mut self, answer: &EchoMessage, sent: u64) {
        if self.next < sent && same(answer, &self.message(self.next).answer()) {
            self.next += 1;
        } else {
            self.classify(answer, sent);
        }
    }

    /// Messages that came back, in whatever order and state.
    pub fn settled(&self) -> u64 {
        self.next - self.missing + self.corrupt
    }

    /// Of `sent` messages, those that no answer can stand for.
    pub fn lost(&self, sent: u64) -> u64 {
        sent.saturating_sub(self.settled())
    }

    /// Of `sent` messages, each was answered once, in order.
    pub fn sound(&self, sent: u64) -> bool {
        self.first_wrong.is_none() && self.next == sent
    }

    #[cold]
    fn classify(&mut self, answer: &EchoMessage, sent: u64) {
        let got = self.recognise(answer, sent);
        let wrong = Wrong { channel: self.channel, expected: self.next, got };
        self.first_wrong.get_or_insert(wrong);
        match got {
            Got::Changed(_) | Got::Strange => self.corrupt += 1,
            Got::Message(i) if i > self.next => {
                self.gaps.insert(self.next, i);
                self.missing += i - self.next;
                self.next = i + 1;
            }
            Got::Message(i) if self.fill(i) => self.reordered += 1,
            Got::Message(_) => self.duplicated += 1,
        }
    }

    /// The message that `answer` answers, or how it differs from the expected answer.
    fn recognise(&self, answer: &EchoMessage, sent: u64) -> Got {
        let seed = answer.words[0].wrapping_sub(1).wrapping_mul(INVERSE);
        let message = seed.wrapping_sub(self.channel) / self.channels;
        if message < sent && *answer == self.message(message).answer() {
            return Got::Message(message);
        }
        let expected = self.message(self.next).answer();
        WrongWord::first(answer, &expected).map_or(Got::Strange, Got::Changed)
    }

    /// Takes message `i` out of the gaps; whether it was in one.
    fn fill(&mut self, i: u64) -> bool {
        let Some((&start, &end)) = self.gaps.range(..=i).next_back() else { return false };
        if i >= end {
            return false;
        }
        self.gaps.remove(&start);
        if start < i {
            self.gaps.insert(start, i);
        }
        if i + 1 < end {
            self.gaps.insert(i + 1, end);
        }
        self.missing -= 1;
        true
    }
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "channel {}, message {}: ", self.channel, self.expected)?;
        match self.got {
            Got::Message(other) => write!(f, "got the answer to message {other}"),
            Got::Changed(word) => word.fmt(f),
            Got::Strange => f.write_str("got its answer, but it was not sent"),
        }
    }
}

/// `a == b`, all words at once: a comparison that stops at the first difference is slower where
/// there is none.
#[inline]
fn same(a: &EchoMessage, b: &EchoMessage) -> bool {
    a.words.iter().zip(&b.words).fold(0, |differ, (a, b)| differ | (a ^ b)) == 0
}

#[cfg(test)]
mod tests;
