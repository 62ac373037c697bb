//! Functions of `f32`, for which core has no names yet: on a GPU by the card's instructions where these are exact enough, on a CPU
//! by [libm](https://docs.rs/libm).
//!
//! | function | on a GPU | off by at most, in units in the last place, GPU and CPU |
//! |---|---|---|
//! | [`sqrt`], [`fma`] | an instruction | 0.5: rounded as IEEE 754 has it |
//! | [`mul_add`] | an instruction | 0.5 on a GPU; two roundings on a CPU |
//! | [`rsqrt`], [`recip`] | an instruction | 2 |
//! | [`exp2`] | an instruction | 3 |
//! | [`exp`] | by `exp2` | 3 |
//! | [`tanh`], [`sigmoid`] | by `exp` | 4 |
//! | [`unpack_f16`] | an instruction each | 0 |
//! | [`ln`], [`log2`] | libm | 2 |
//! | [`sin`], [`cos`] | in `f64` | 1 |
//!
//! These are bounds of what is measured over many arguments (`tests/suite/tools.rs`), not of what is proven. A kernel whose answers must be the
//! same to the last bit on a GPU and on a CPU keeps to `sqrt`, `fma` and Rust's own operators.
//!
//! ```
//! use ring_device::math;
//!
//! ring_device::ring_kernel! {
//!     /// The length of a vector.
//!     pub struct Length;
//!
//!     fn handle(request: &[f32; 3]) -> f32 {
//!         let [x, y, z] = *request;
//!         math::sqrt(math::fma(x, x, math::fma(y, y, z * z)))
//!     }
//! }
//! # assert_eq!(math::sqrt(math::fma(3.0, 3.0, 16.0)), 5.0);
//! ```

#[cfg(target_arch = "nvptx64")]
use crate::block::intrinsics as card;

/// What a card has instructions for, by libm.
#[cfg(not(target_arch = "nvptx64"))]
mod card {
    pub use libm::{exp2f as exp2, fmaf as fma, sqrtf as sqrt};

    #[inline(always)]
    pub fn rsqrt(x: f32) -> f32 {
        1.0 / sqrt(x)
    }

    #[inline(always)]
    pub fn recip(x: f32) -> f32 {
        1.0 / x
    }

    #[inline(always)]
    pub fn unpack_f16(word: u32) -> [f32; 2] {
        // By a name and not by `map`, which a long caller calls and does not inline: so four words in a row are converted by vectors.
        [of_f16(word & 0xffff), of_f16(word >> 16)]
    }

    /// The number that the low 16 bits are; the others are zero.
    #[inline(always)]
    fn of_f16(half: u32) -> f32 {
        let (sign, magnitude) = ((half & 0x8000) << 16, half & 0x7fff);
        // The exponent's bias is 112 more in 32 bits; numbers below the least normal one come out as they should.
        let scaled = f32::from_bits(magnitude << 13) * f32::from_bits((112 + 127) << 23);
        // What is infinite or no number in 16 bits has the greatest exponent here too.
        let special = if magnitude < 0x7c00 { 0 } else { 0x7f80_0000 };
        f32::from_bits(sign | scaled.to_bits() | special)
    }
}

/// The two numbers of 16 bits (IEEE 754 binary16) in a word, the lower half's first. Each is an `f32` exactly.
#[inline(always)]
pub fn unpack_f16(word: u32) -> [f32; 2] {
    card::unpack_f16(word)
}

/// The square root; NaN of a negative number.
#[inline(always)]
pub fn sqrt(x: f32) -> f32 {
    card::sqrt(x)
}

/// One divided by the square root; infinite of zero, NaN of a negative number.
#[inline(always)]
pub fn rsqrt(x: f32) -> f32 {
    card::rsqrt(x)
}

/// One divided by `x`: an instruction on a GPU, where a division takes some ten.
#[inline(always)]
pub fn recip(x: f32) -> f32 {
    card::recip(x)
}

/// `x y + z`, rounded once.
#[inline(always)]
pub fn fma(x: f32, y: f32, z: f32) -> f32 {
    card::fma(x, y, z)
}

/// `x y + z` as the device has it soonest: rounded once by an instruction of a GPU, and on a CPU, where [`fma`] may take many times as
/// long as both, rounded behind the product and behind the sum. So the last bit may differ between the two.
#[inline(always)]
pub fn mul_add(x: f32, y: f32, z: f32) -> f32 {
    if cfg!(target_arch = "nvptx64") { fma(x, y, z) } else { x * y + z }
}

/// 2 to the power of `x`.
#[inline(always)]
pub fn exp2(x: f32) -> f32 {
    card::exp2(x)
}

/// e to the power of `x`.
#[inline(always)]
pub fn exp(x: f32) -> f32 {
    if cfg!(not(target_arch = "nvptx64")) {
        return libm::expf(x);
    }
    reduced_exp(x)
}

/// `exp` by `exp2` of the part of the exponent behind its point: that of the whole of it would lose as many bits as the rest before the
/// point has.
#[inline(always)]
fn reduced_exp(x: f32) -> f32 {
    /// ln 2, of which the first part has few enough bits that its product with an exponent is exact.
    const LN_2: [f32; 2] = [0.693_359_4, -2.121_944_4e-4];
    /// Added to a number below 2^22, it leaves the nearest whole number in the low bits.
    const ROUND: f32 = 12_582_912.0;
    let x = x.clamp(-150.0, 150.0); // beyond, the result is zero or infinite in any case
    let rounded = fma(x, core::f32::consts::LOG2_E, ROUND);
    let whole = rounded - ROUND;
    let rest = fma(-whole, LN_2[1], fma(-whole, LN_2[0], x));
    let exponent = rounded.to_bits().wrapping_sub(ROUND.to_bits()) as i32;
    // In two parts: a power of two that is below the least number, or above the greatest, is not one by itself.
    let half = exponent >> 1;
    let power = |exponent: i32| f32::from_bits(((exponent + 127) << 23) as u32);
    exp2(rest * core::f32::consts::LOG2_E) * power(half) * power(exponent - half)
}

/// The hyperbolic tangent.
#[inline(always)]
pub fn tanh(x: f32) -> f32 {
    let of = x.abs();
    if of < 0.6 {
        // What is left of the series behind `x`, by a polynomial with the least greatest error there is up to 0.6.
        let t = x * x;
        let p = fma(-5.905_855e-3, t, 2.080_537_4e-2);
        let p = fma(p, t, -5.378_668e-2);
        let p = fma(p, t, 1.333_195_9e-1);
        let p = fma(p, t, -3.333_33e-1);
        return fma(p * t, x, x).copysign(x);
    }
    fma(-2.0, recip(exp(2.0 * of) + 1.0), 1.0).copysign(x)
}

/// The logistic function, 1 / (1 + e^-x).
#[inline(always)]
pub fn sigmoid(x: f32) -> f32 {
    recip(1.0 + exp(-x))
}

/// The natural logarithm; NaN of a negative number.
#[inline(always)]
pub fn ln(x: f32) -> f32 {
    libm::logf(x)
}

/// The logarithm to base 2; NaN of a negative number.
#[inline(always)]
pub fn log2(x: f32) -> f32 {
    libm::log2f(x)
}

/// The sine of an angle in radians; NaN of one beyond 2^28, which is some 10^8 times round.
#[inline(always)]
pub fn sin(x: f32) -> f32 {
    let (quadrant, rest) = quadrant_of(x);
    of_quadrant(quadrant, rest)
}

/// The cosine of an angle in radians; NaN of one beyond 2^28.
#[inline(always)]
pub fn cos(x: f32) -> f32 {
    let (quadrant, rest) = quadrant_of(x);
    of_quadrant(quadrant.wrapping_add(1), rest)
}

/// To which multiple of a right angle an angle is nearest, in the low two bits, and how far it is from there.
#[inline(always)]
fn quadrant_of(x: f32) -> (u64, f64) {
    /// A right angle, of which the first part has so few bits that its product with a number of right angles is exact.
    const RIGHT: [f64; 2] = [1.570_796_310_901_641_8, 1.589_325_477_352_819_7e-8];
    /// Added to a number below 2^51, it leaves the nearest whole number in the low bits.
    const ROUND: f64 = 6_755_399_441_055_744.0;
    let x = if x.abs() <= 268_435_456.0 { f64::from(x) } else { f64::NAN };
    let rounded = x * core::f64::consts::FRAC_2_PI + ROUND;
    let whole = rounded - ROUND;
    (rounded.to_bits(), x - whole * RIGHT[0] - whole * RIGHT[1])
}

/// The sine of a number of right angles and a rest of half of one at most: by polynomials with the least greatest errors there are.
#[inline(always)]
fn of_quadrant(quadrant: u64, x: f64) -> f32 {
    let t = x * x;
    let value = match quadrant & 1 {
        0 => {
            let p = -1.983_933_407_227_528e-4 + t * 2.718_304_144_728_577_6e-6;
            let p = -0.166_666_666_416_064_78 + t * (8.333_329_383_539_468e-3 + t * p);
            x + x * t * p
        }
        _ => {
            let p = 2.479_904_003_059_030_4e-5 + t * -2.718_002_688_802_817_5e-7;
            let p = 0.041_666_666_561_996_815 + t * (-1.388_888_107_417_510_2e-3 + t * p);
            1.0 + t * (-0.499_999_999_995_446_6 + t * p)
        }
    };
    (if quadrant & 2 == 0 { value } else { -value }) as f32
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;

    /// How far `found` is from what it should be, in units in the last place of that; numbers below the least normal one have its.
    fn ulps(found: f32, exact: f64) -> f64 {
        if found.is_nan() || exact.is_nan() || exact.abs() > f32::MAX.into() || found.is_infinite()
        {
            let same =
                found.is_nan() == exact.is_nan() && (exact.is_nan() || found == exact as f32);
            return if same { 0.0 } else { f64::INFINITY };
        }
        let exponent = exact.abs().max(f32::MIN_POSITIVE.into()).log2().floor();
        (f64::from(found) - exact).abs() / (exponent - 23.0).exp2()
    }

    /// The greatest of these over numbers of all sizes up to some, of either sign.
    fn worst(greatest: f32, of: fn(f32) -> f32, exact: fn(f64) -> f64) -> (f64, f32) {
        let step = greatest.to_bits() as usize / if cfg!(miri) { 20 } else { 20_000 };
        let of = |x: f32| (ulps(of(x), exact(x.into())), x);
        let sizes = (0..=greatest.to_bits()).step_by(step).map(f32::from_bits);
        let all = sizes.flat_map(|x| [of(x), of(-x)]);
        all.fold((0.0, 0.0), |a, b| if b.0 > a.0 { b } else { a })
    }

    #[track_caller]
    fn is_within(most: f64, (found, at): (f64, f32)) {
        assert!(found <= most, "off by {found} at {at}, {most} at most");
    }

    #[test]
    fn each_is_as_exact_as_is_told() {
        is_within(0.501, worst(f32::MAX, sqrt, f64::sqrt));
        is_within(2.0, worst(f32::MAX, rsqrt, |x| 1.0 / x.sqrt()));
        is_within(2.0, worst(f32::MAX, recip, |x| 1.0 / x));
        is_within(3.0, worst(160.0, exp2, f64::exp2));
        is_within(3.0, worst(110.0, exp, f64::exp));
        is_within(3.0, worst(110.0, reduced_exp, f64::exp));
        is_within(4.0, worst(100.0, tanh, f64::tanh));
        is_within(4.0, worst(80.0, sigmoid, |x| 1.0 / (1.0 + (-x).exp())));
        is_within(2.0, worst(f32::MAX, ln, f64::ln));
        is_within(2.0, worst(f32::MAX, log2, f64::log2));
        is_within(1.0, worst(268_435_456.0, sin, f64::sin));
        is_within(1.0, worst(268_435_456.0, cos, f64::cos));
    }

    #[test]
    fn each_number_of_16_bits_is_unpacked() {
        for bits in (0..=u16::MAX).step_by(if cfg!(miri) { 997 } else { 1 }) {
            let (sign, exponent, fraction) = (bits >> 15, bits >> 10 & 31, bits & 0x3ff);
            let size = match exponent {
                0 => f64::from(fraction) * f64::exp2(-24.0),
                31 if fraction == 0 => f64::INFINITY,
                31 => f64::NAN,
                _ => f64::from(1024 + fraction) * f64::exp2(f64::from(exponent) - 25.0),
            };
            let exact = if sign == 1 { -size } else { size } as f32;
            let [low, high] = unpack_f16(u32::from(bits) | 0x1234_0000);
            let [_, same] = unpack_f16(u32::from(bits) << 16);
            assert_eq!(high, unpack_f16(0x1234)[0]);
            for found in [low, same] {
                let is_same = found.to_bits() == exact.to_bits();
                assert!(is_same || found.is_nan() && exact.is_nan(), "{bits:#x}: {found}, {exact}");
            }
        }
    }

    #[test]
    fn a_sum_of_a_product_is_rounded_once_or_twice() {
        let x = 1.0 + f32::EPSILON;
        assert_eq!(fma(x, x, -1.0), 2.0 * f32::EPSILON + f32::EPSILON * f32::EPSILON);
        assert_eq!(mul_add(x, x, -1.0), 2.0 * f32::EPSILON); // this is a CPU
    }

    #[test]
    fn what_is_no_number_stays_so_and_ends_are_kept() {
        for f in [sqrt, rsqrt, recip, exp2, exp, reduced_exp, tanh, sigmoid, ln, log2, sin, cos] {
            assert!(f(f32::NAN).is_nan());
        }
        for f in [exp, reduced_exp] {
            assert_eq!([f(f32::NEG_INFINITY), f(f32::INFINITY)], [0.0, f32::INFINITY]);
            assert_eq!([f(-1e30), f(1e30), f(0.0)], [0.0, f32::INFINITY, 1.0]);
        }
        assert_eq!([tanh(f32::NEG_INFINITY), tanh(f32::INFINITY)], [-1.0, 1.0]);
        assert_eq!(tanh(-0.0).to_bits(), (-0.0f32).to_bits());
        assert_eq!([sigmoid(f32::NEG_INFINITY), sigmoid(f32::INFINITY)], [0.0, 1.0]);
        assert_eq!(fma(f32::MAX, 2.0, f32::NEG_INFINITY), f32::NEG_INFINITY);
    }
}
