//! Test vectors, one kind of value for each way in which a sum can go wrong.

/// Fills `a` and `b` for that round. No two rounds are alike, and no sum is a NaN.
pub fn fill(round: u32, a: &mut [f32], b: &mut [f32]) {
    let mut state = round;
    for (i, (a, b)) in (0..).zip(a.iter_mut().zip(b)) {
        (*a, *b) = match round % 4 {
            // Small whole numbers: a shift by one element shows.
            0 => ((round + i) as f32, (round + 2 * i) as f32),
            // Fractions of both signs: the sum is rounded.
            1 => (fraction(&mut state), fraction(&mut state)),
            // Large and small: most digits are lost or cancel.
            2 => (fraction(&mut state) * 1e30, fraction(&mut state) * 1e23),
            // Below the normal range, where some hardware flushes to zero.
            _ => (fraction(&mut state) * 1e-38, fraction(&mut state) * 1e-39),
        };
    }
}

/// The next number in -1.0..1.0 of a series without end.
fn fraction(state: &mut u32) -> f32 {
    *state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
    (*state >> 8) as f32 / (1 << 23) as f32 - 1.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    const N: usize = 100;

    fn sums(round: u32) -> Vec<f32> {
        let (mut a, mut b) = ([f32::NAN; N], [f32::NAN; N]);
        fill(round, &mut a, &mut b);
        a.iter().zip(b).map(|(a, b)| a + b).collect()
    }

    #[test]
    fn no_two_rounds_are_alike_and_all_sums_are_finite() {
        let mut seen = HashSet::new();
        for round in 0..200 {
            let sums = sums(round);
            assert!(sums.iter().all(|sum| sum.is_finite()), "round {round}");
            assert!(seen.insert(sums.iter().map(|sum| sum.to_bits()).collect::<Vec<_>>()));
        }
    }

    #[test]
    fn neighbours_differ_and_both_signs_occur() {
        for round in 0..8 {
            let sums = sums(round);
            assert!(sums.windows(2).all(|pair| pair[0] != pair[1]), "round {round}");
            assert!(round % 4 == 0 || sums.iter().any(|&sum| sum < 0.0), "round {round}");
        }
    }

    #[test]
    fn subnormal_sums_occur() {
        assert!(sums(3).iter().filter(|sum| sum.is_subnormal()).count() > N / 4);
    }
}
