//! Numbers that threads bring together: added up, compared, and passed from one to another.

/// What threads of a warp, a block or a grid can add up and compare.
pub trait Number: sealed::Sealed + Copy {
    /// Zero.
    #[doc(hidden)]
    const ZERO: Self;
    /// No number is less.
    #[doc(hidden)]
    const LEAST: Self;
    /// No number is greater.
    #[doc(hidden)]
    const GREATEST: Self;
    /// The sum, wrapping.
    #[doc(hidden)]
    fn plus(self, other: Self) -> Self;
    /// The lesser one.
    #[doc(hidden)]
    fn lesser(self, other: Self) -> Self;
    /// The greater one.
    #[doc(hidden)]
    fn greater(self, other: Self) -> Self;
    /// As a word.
    #[doc(hidden)]
    fn to_word(self) -> u64;
    /// Of the word that `to_word` made.
    #[doc(hidden)]
    fn from_word(word: u64) -> Self;
    /// What `pass` makes of its words of 32 bits, one or two.
    #[doc(hidden)]
    fn passed(self, pass: impl Fn(u32) -> u32) -> Self;
}

mod sealed {
    pub trait Sealed {}
}

/// How [`Number::passed`] is for numbers of so many bits.
macro_rules! passed {
    (32) => {
        #[inline(always)]
        fn passed(self, pass: impl Fn(u32) -> u32) -> Self {
            Self::from_word(pass(self.to_word() as u32).into())
        }
    };
    (64) => {
        #[inline(always)]
        fn passed(self, pass: impl Fn(u32) -> u32) -> Self {
            let word = self.to_word();
            let (low, high) = (pass(word as u32), pass((word >> 32) as u32));
            Self::from_word(u64::from(low) | u64::from(high) << 32)
        }
    };
}

macro_rules! integers {
    ($($t:ty: $bits:tt)*) => {$(
        impl sealed::Sealed for $t {}
        impl Number for $t {
            const ZERO: $t = 0;
            const LEAST: $t = <$t>::MIN;
            const GREATEST: $t = <$t>::MAX;
            #[inline(always)]
            fn plus(self, other: $t) -> $t {
                self.wrapping_add(other)
            }
            #[inline(always)]
            fn lesser(self, other: $t) -> $t {
                if self < other { self } else { other }
            }
            #[inline(always)]
            fn greater(self, other: $t) -> $t {
                if self > other { self } else { other }
            }
            #[inline(always)]
            fn to_word(self) -> u64 {
                self as u64
            }
            #[inline(always)]
            fn from_word(word: u64) -> $t {
                word as $t
            }
            passed!($bits);
        }
    )*};
}
integers!(u32: 32 i32: 32 u64: 64 i64: 64);

macro_rules! floats {
    ($($t:ty: $bits:tt)*) => {$(
        impl sealed::Sealed for $t {}
        impl Number for $t {
            const ZERO: $t = 0.0;
            const LEAST: $t = <$t>::NEG_INFINITY;
            const GREATEST: $t = <$t>::INFINITY;
            #[inline(always)]
            fn plus(self, other: $t) -> $t {
                self + other
            }
            #[inline(always)]
            fn lesser(self, other: $t) -> $t {
                self.min(other)
            }
            #[inline(always)]
            fn greater(self, other: $t) -> $t {
                self.max(other)
            }
            #[inline(always)]
            fn to_word(self) -> u64 {
                self.to_bits().into()
            }
            #[inline(always)]
            fn from_word(word: u64) -> $t {
                <$t>::from_bits(word as _)
            }
            passed!($bits);
        }
    )*};
}
floats!(f32: 32 f64: 64);

/// Two sums, or two least or greatest numbers, at once.
impl Number for [f32; 2] {
    const ZERO: [f32; 2] = [0.0; 2];
    const LEAST: [f32; 2] = [f32::NEG_INFINITY; 2];
    const GREATEST: [f32; 2] = [f32::INFINITY; 2];
    #[inline(always)]
    fn plus(self, other: [f32; 2]) -> [f32; 2] {
        [self[0] + other[0], self[1] + other[1]]
    }
    #[inline(always)]
    fn lesser(self, other: [f32; 2]) -> [f32; 2] {
        [self[0].min(other[0]), self[1].min(other[1])]
    }
    #[inline(always)]
    fn greater(self, other: [f32; 2]) -> [f32; 2] {
        [self[0].max(other[0]), self[1].max(other[1])]
    }
    #[inline(always)]
    fn to_word(self) -> u64 {
        u64::from(self[0].to_bits()) | u64::from(self[1].to_bits()) << 32
    }
    #[inline(always)]
    fn from_word(word: u64) -> [f32; 2] {
        [f32::from_bits(word as u32), f32::from_bits((word >> 32) as u32)]
    }
    passed!(64);
}

impl sealed::Sealed for [f32; 2] {}

#[cfg(test)]
mod tests {
    use super::Number;

    fn survives<T: Number + PartialEq + core::fmt::Debug>(numbers: &[T]) {
        for number in numbers {
            assert_eq!(T::from_word(number.to_word()), *number);
            assert_eq!(number.passed(|word| !word).passed(|word| !word), *number);
            assert_eq!(number.plus(T::ZERO), *number);
            assert_eq!(number.lesser(T::GREATEST), *number);
            assert_eq!(number.greater(T::LEAST), *number);
        }
    }

    #[test]
    fn words_have_all_of_a_number() {
        survives(&[0u32, 7, u32::MAX]);
        survives(&[0i32, -7, i32::MIN, i32::MAX]);
        survives(&[0u64, 7 << 40, u64::MAX]);
        survives(&[0i64, -7, i64::MIN, i64::MAX]);
        survives(&[0.0f32, -1.5, f32::MAX, f32::NEG_INFINITY]);
        survives(&[0.0f64, -1.5, f64::MAX, f64::NEG_INFINITY]);
        survives(&[[0.0f32, -1.5], [f32::MAX, 3.0]]);
    }
}
