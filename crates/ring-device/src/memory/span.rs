//! How the atoms that a warp reads or writes at once are dealt out to messages, which take one doorbell line each or
//! several.

use crate::block::{Cooperate, Threads};
use ring_shared::ring::CONTROL;

/// Doorbell lines that a message takes in both rings of a kernel, 1 to 4: a constant of the kernel.
#[derive(Clone, Copy)]
pub(crate) struct Span(pub usize);

impl Span {
    /// Messages whose lines a warp reads or writes at once.
    #[inline(always)]
    pub const fn messages(self) -> u32 {
        if Threads::LINES > 1 { (Threads::LINES / self.0) as u32 } else { 1 }
    }

    /// The message that atom `k` belongs to. Behind the last that has all its lines there is part of one more.
    #[inline(always)]
    pub fn message(self, k: usize) -> u32 {
        k as u32 / (8 * self.0 as u32)
    }

    /// The line of its message that atom `k` belongs to.
    #[inline(always)]
    pub fn line(self, k: usize) -> usize {
        (k as u32 / 8 % self.0 as u32) as usize
    }

    /// The atom of a message's payload that atom `k` is, if it is no last atom of a line.
    #[inline(always)]
    pub fn payload(self, k: usize) -> usize {
        (CONTROL as u32 * self.line(k) as u32 + k as u32 % 8) as usize
    }

    /// Bytes from the first message's payload to that of atom `k`, where messages lie `stride` bytes apart: in 64 bits from
    /// the beginning, which costs a GPU fewer registers.
    #[inline(always)]
    pub fn offset(self, k: usize, stride: usize) -> usize {
        stride * (k / (8 * self.0)) + 12 * (CONTROL * (k / 8 % self.0) + k % 8)
    }

    /// Whether atom `k` is a message's control atom.
    #[inline(always)]
    pub fn is_control(self, k: usize) -> bool {
        k as u32 % (8 * self.0 as u32) == CONTROL as u32
    }

    /// The control atom of the `message`th message.
    #[inline(always)]
    pub fn control(self, message: u32) -> usize {
        self.first(message) + CONTROL
    }

    /// The first atom of the `message`th message.
    #[inline(always)]
    pub fn first(self, message: u32) -> usize {
        if Threads::LINES > 1 { 8 * self.0 * message as usize } else { 0 }
    }

    /// Of which messages, a bit each, all lines are among `lines`, a bit each.
    #[inline(always)]
    pub fn whole(self, lines: u32) -> u32 {
        if Threads::LINES == 1 {
            return lines;
        }
        match self.0 {
            1 => lines,
            2 => (lines & lines >> 1 & 1) | (lines >> 1 & lines >> 2 & 2),
            3 => u32::from(lines & 7 == 7),
            _ => u32::from(lines == 15),
        }
    }

    /// Atoms of a message beyond its first line, which a CPU's thread reads and writes one by one.
    #[inline(always)]
    pub fn beyond(self) -> impl Iterator<Item = usize> {
        let end = if Threads::LINES > 1 { 8 } else { 8 * self.0 };
        (8..end).filter(|k| k % 8 != CONTROL)
    }
}
