//! Claims: which requests polling warps have taken out of their lines, in one word of the block's memory.
//!
//! Each polling warp looks at lines of its own choice, so requests are claimed in any order, each by one warp: by
//! a compare-and-swap of the word. It holds the index of the first request that nobody has claimed, and a bit for
//! each of the 31 behind it.
//!
//! Whoever needs all to stand still, to answer into a slot or to wake the block, *closes* the word, which can be
//! done when no request behind the first unclaimed one is claimed: then no warp can claim.

use crate::block::cell::Word;

/// What the word holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Claims {
    /// The first unclaimed request: the low half of its index.
    next: u32,
    /// Bit `i % 32` is set if request `i` behind it is claimed; all bits if no request can be.
    ahead: u32,
}

impl Claims {
    /// Nothing is claimed from `next` on.
    #[inline(always)]
    pub const fn open(next: u64) -> Claims {
        Claims { next: next as u32, ahead: 0 }
    }

    /// Nothing can be claimed, and all requests before `next` are.
    #[inline(always)]
    pub const fn closed(next: u64) -> Claims {
        Claims { next: next as u32, ahead: u32::MAX }
    }

    /// The first unclaimed request: `near`, or less than 2^32 behind it.
    #[inline(always)]
    pub fn next(self, near: u64) -> u64 {
        near.wrapping_add(u64::from(self.next.wrapping_sub(near as u32)))
    }

    /// How many requests behind the first unclaimed one are claimed.
    #[inline(always)]
    pub fn claimed_ahead(self) -> u32 {
        self.ahead.count_ones()
    }

    /// Whether no request behind the first unclaimed one is claimed.
    #[inline(always)]
    pub fn is_contiguous(self) -> bool {
        self.ahead == 0
    }

    /// Whether no request can be claimed.
    #[inline(always)]
    pub fn is_closed(self) -> bool {
        self.ahead == u32::MAX
    }

    /// Which of the requests from `base` on can be claimed: bit `k` is the request `k` behind it, of `lines`. They
    /// are not further than 31 behind the first unclaimed one.
    #[inline(always)]
    pub fn unclaimed(self, base: u32, lines: u32) -> u32 {
        let all = (1 << lines) - 1;
        let passed = self.next.wrapping_sub(base) as i32;
        !self.ahead.rotate_right(base) & all << passed.clamp(0, 31) & all
    }

    /// With the first unclaimed request claimed, behind which none is.
    #[inline(always)]
    pub fn after_next(self) -> Claims {
        Claims { next: self.next.wrapping_add(1), ahead: 0 }
    }

    /// With the requests `lines` from `base` on claimed, which [`unclaimed`](Self::unclaimed) gave.
    #[inline(always)]
    pub fn with(self, base: u32, lines: u32) -> Claims {
        let ahead = (self.ahead | lines.rotate_left(base)).rotate_right(self.next);
        let run = (!ahead).trailing_zeros(); // 32 if all are claimed
        let next = self.next.wrapping_add(run);
        let left = if run < 32 { ahead >> run } else { 0 };
        Claims { next, ahead: left.rotate_left(next) }
    }
}

impl Word for Claims {
    #[inline(always)]
    fn to_word(self) -> u64 {
        u64::from(self.ahead) | u64::from(self.next) << 32
    }

    #[inline(always)]
    fn from_word(word: u64) -> Claims {
        Claims { next: (word >> 32) as u32, ahead: word as u32 }
    }
}

#[cfg(test)]
mod tests {
    extern crate alloc;

    use super::*;
    use alloc::collections::BTreeSet;

    /// A model: the first unclaimed request, and those that are claimed behind it.
    #[derive(Debug, Default)]
    struct Model {
        next: u64,
        ahead: BTreeSet<u64>,
    }

    impl Model {
        fn unclaimed(&self, base: u64, lines: u32) -> u32 {
            let free = |k: &u32| {
                let index = base + u64::from(*k);
                index >= self.next && !self.ahead.contains(&index)
            };
            (0..lines).filter(free).map(|k| 1 << k).sum()
        }

        fn claim(&mut self, base: u64, lines: u32) {
            for k in (0..32).filter(|k| lines >> k & 1 == 1) {
                assert!(self.ahead.insert(base + k));
            }
            while self.ahead.remove(&self.next) {
                self.next += 1;
            }
        }
    }

    #[test]
    fn it_is_a_set_of_claimed_requests() {
        const ROUNDS: u64 = if cfg!(miri) { 100 } else { 20_000 };
        for start in [0, 8, 29, (1 << 32) - 3, (1 << 33) - 20, (1 << 63) + 5] {
            let mut seed = start ^ 0x9e37_79b9_7f4a_7c15_u64;
            let mut draw = |n: u64| {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (seed >> 33) % n
            };
            let mut claims = Claims::open(start);
            let mut model = Model { next: start, ..Model::default() };
            for _ in 0..ROUNDS {
                let (mut base, mut lines) = (model.next, 1);
                match draw(8) {
                    0 => {}
                    // A warp may come late, with what it saw long ago.
                    1 => (base, lines) = (model.next.saturating_sub(draw(100)), 1 + draw(4) as u32),
                    _ => (base, lines) = ((model.next & !3) + 4 * draw(8), 4),
                }
                let free = claims.unclaimed(base as u32, lines);
                assert_eq!(free, model.unclaimed(base, lines), "{model:?} {base} {lines}");
                let some = free & draw(16) as u32;
                claims = claims.with(base as u32, some);
                model.claim(base, some);
                assert_eq!(claims.next(start), model.next);
                assert_eq!(claims.claimed_ahead() as usize, model.ahead.len());
                assert_eq!(claims.is_contiguous(), model.ahead.is_empty());
                assert!(!claims.is_closed());
                assert_eq!(Claims::from_word(claims.to_word()), claims);
            }
            assert!(model.next > start + ROUNDS / 20);
        }
    }

    #[test]
    fn nothing_is_claimed_of_a_closed_word() {
        let closed = Claims::closed((1 << 32) + 5);
        assert!(closed.is_closed() && !closed.is_contiguous());
        assert_eq!(closed.next(1 << 32), (1 << 32) + 5);
        for base in 4..40 {
            assert_eq!(closed.unclaimed(base, 4), 0);
        }
    }

    #[test]
    fn claims_never_close_the_word() {
        let mut claims = Claims::open(4);
        for group in (4..36).step_by(4) {
            let free = claims.unclaimed(group, 4);
            claims = claims.with(group, if group == 4 { free & !1 } else { free });
        }
        assert_eq!((claims.next(0), claims.claimed_ahead()), (4, 31));
        assert!(!claims.is_closed());
        assert_eq!(claims.with(4, 1), Claims::open(36));
    }
}
