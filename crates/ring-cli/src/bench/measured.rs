//! The measured kernels: how to make their messages and check their answers quickly.

use crate::kernels::KernelSource;
use ring_bench::kernels::{
    DIGEST_WORDS, Digest, Echo16, Echo64Block, Echo64Warp, Echo256, Echo1024, Echo4096, Grid64,
    Grid64Writes, Meet64, Meet64Writes, Pass64, Sink64, Sum64, Times8,
};
use ring_host::kernels::{Echo, EchoMessage};
use ring_host::{Kernel, Kernels, LaunchConfig, LaunchError, Runtime};

// SAFETY: `cargo xtask ptx` made it of `ring-bench`, whose kernel types are launched with it.
/// The kernels of `ring-bench`, built by `cargo xtask ptx` and checked in.
pub const SHIPPED: Kernels = unsafe { Kernels::new(include_str!("kernels.ptx")) };

/// Does the same with each of its kernels that is measured.
macro_rules! each_own {
    ($do:ident) => {
        $do!(
            Echo16,
            Echo64Warp,
            Echo64Block,
            Grid64,
            Grid64Writes,
            Meet64,
            Meet64Writes,
            Echo256,
            Echo1024,
            Echo4096,
            Digest,
            Sum64,
            Pass64,
            Times8,
            Sink64
        )
    };
}

/// Entries of those kernels.
pub fn entries() -> impl Iterator<Item = &'static str> {
    macro_rules! entries {
        ($($kernel:ty),+) => { [$(<$kernel>::ENTRY),+] };
    }
    each_own!(entries).into_iter()
}

/// Loads them all: once a kernel is resident the driver loads nothing.
pub fn prepare(runtime: &Runtime, source: &KernelSource) -> Result<(), LaunchError> {
    macro_rules! prepare {
        ($($kernel:ty),+) => {
            $(runtime.prepare::<$kernel>(&own::<$kernel>(source, LaunchConfig::default()))?;)+
        };
    }
    each_own!(prepare);
    Ok(())
}

/// The launch of one of them, with the code that it needs.
pub fn own<K: Kernel>(source: &KernelSource, launch: LaunchConfig) -> LaunchConfig {
    launch.kernels(source.with_entry(K::ENTRY, SHIPPED))
}

/// The same with the code that is checked in.
pub fn shipped(launch: LaunchConfig) -> LaunchConfig {
    launch.kernels(SHIPPED)
}

/// A kernel that is measured: message `i` differs from all others in its bytes, and so is its
/// answer.
pub trait Measured: Kernel<Request: Send, Response: Send> {
    /// Whether it is one of `ring-bench`, not built into `ring-host`.
    const OWN: bool = true;

    /// Whether most of a message is the same in all, so that it stays in an array and is sent from there. Others are made
    /// in the ring.
    const HAVE_MUCH_IN_COMMON: bool = false;

    /// Message `i`.
    fn message(i: u64) -> Self::Request;

    /// Makes a message of another number message `i`.
    #[inline]
    fn number(request: &mut Self::Request, i: u64) {
        *request = Self::message(i);
    }

    /// Whether `response` answers message `i`, every bit of it.
    fn answers(response: &Self::Response, i: u64) -> bool;

    /// The launch, with the code that it needs.
    fn launch(source: &KernelSource, launch: LaunchConfig) -> LaunchConfig {
        match Self::OWN {
            true => own::<Self>(source, launch),
            false => launch,
        }
    }
}

impl Measured for Echo {
    const OWN: bool = false;

    #[inline]
    fn message(i: u64) -> EchoMessage {
        EchoMessage { words: [i; 8] }
    }

    #[inline]
    fn answers(response: &EchoMessage, i: u64) -> bool {
        response.words.iter().fold(0, |x, word| x | (word ^ i.wrapping_add(1))) == 0
    }
}

macro_rules! echoes {
    ($($kernel:ty: [$word:ty; $words:literal];)+) => {$(
        impl Measured for $kernel {
            #[inline]
            fn message(i: u64) -> [$word; $words] {
                [i as $word; $words]
            }

            #[inline]
            fn answers(response: &[$word; $words], i: u64) -> bool {
                let expected = (i as $word).wrapping_add(1);
                response.iter().fold(0, |x, word| x | (word ^ expected)) == 0
            }
        }
    )+};
}
echoes! {
    Echo16: [u64; 2];
    Echo64Warp: [u32; 16];
    Echo64Block: [u32; 16];
    Echo256: [u32; 64];
    Echo1024: [u32; 256];
    Echo4096: [u32; 1024];
}

/// Word `k` of each message for [`Digest`], but for the first, which is its number.
const fn pattern(k: usize) -> u64 {
    (k as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// The sum of all words that messages have in common.
const COMMON: u64 = {
    let (mut sum, mut k) = (0u64, 1);
    while k < DIGEST_WORDS {
        sum = sum.wrapping_add(pattern(k));
        k += 1;
    }
    sum
};

impl Measured for Digest {
    const HAVE_MUCH_IN_COMMON: bool = true;

    fn message(i: u64) -> [u64; DIGEST_WORDS] {
        let mut request = std::array::from_fn(pattern);
        Self::number(&mut request, i);
        request
    }

    #[inline]
    fn number(request: &mut [u64; DIGEST_WORDS], i: u64) {
        request[0] = i;
    }

    #[inline]
    fn answers(response: &[u64; 2], i: u64) -> bool {
        *response == [i, COMMON.wrapping_add(i)]
    }
}

/// Word `k` of message `i` is `i + k`. A channel's first message is number 0.
impl Measured for Sum64 {
    #[inline]
    fn message(i: u64) -> [u64; 8] {
        std::array::from_fn(|k| i.wrapping_add(k as u64))
    }

    #[inline]
    fn answers(response: &[u64; 8], i: u64) -> bool {
        let messages = i.wrapping_add(1);
        let sum = (u128::from(i) * u128::from(messages) / 2) as u64;
        let expected = |k: u64| sum.wrapping_add(messages.wrapping_mul(k));
        (0..).zip(response).fold(0, |x, (k, word)| x | (word ^ expected(k))) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ring_bench::kernels::Sums;

    #[test]
    fn a_digest_is_distinguished_from_that_of_any_other_message() {
        let mut request = Digest::message(0);
        Digest::number(&mut request, 7);
        let answer = Digest::answer(&request);
        assert!(Digest::answers(&answer, 7) && !Digest::answers(&answer, 8));
        for k in [0, 1, 255, 511] {
            let mut other = request;
            other[k] ^= 1 << 40;
            assert!(!Digest::answers(&Digest::answer(&other), 7), "word {k}");
        }
    }

    #[test]
    fn an_echo_with_one_wrong_bit_is_no_answer() {
        let mut request = Echo::message(0);
        Echo::number(&mut request, u64::MAX);
        let mut answer = request.answer();
        assert!(Echo::answers(&answer, u64::MAX) && !Echo::answers(&answer, 0));
        answer.words[5] ^= 1;
        assert!(!Echo::answers(&answer, u64::MAX));
        let mut request = Echo1024::message(0);
        Echo1024::number(&mut request, 1 << 40 | 5);
        assert!(Echo1024::answers(&request.map(|word| word + 1), 1 << 40 | 5));
        assert!(!Echo1024::answers(&request, 5));
    }

    #[test]
    fn a_sum_tells_a_message_that_was_lost_doubled_or_changed() {
        let answered = |numbers: &[u64], changed: u64| {
            let mut sums: Sums = bytemuck::Zeroable::zeroed();
            let answers = numbers.iter().map(|i| {
                let mut request = Sum64::message(*i);
                request[5] ^= changed;
                sums.add(&request)
            });
            answers.zip(0..).take_while(|(answer, i)| Sum64::answers(answer, *i)).count()
        };
        assert_eq!(answered(&[0, 1, 2, 3, 4, 5, 6, 7, 8], 0), 9);
        assert_eq!(answered(&[0, 1, 2, 4, 5], 0), 3, "lost");
        assert_eq!(answered(&[0, 1, 2, 2, 3], 0), 3, "doubled");
        assert_eq!(answered(&[0, 2, 1, 3], 0), 1, "not in order");
        assert_eq!(answered(&[0, 1], 1 << 40), 0, "changed");
    }

    #[test]
    fn every_kernel_that_is_launched_is_in_the_module() {
        let image = SHIPPED.image().unwrap();
        for entry in entries() {
            image.check_entry(entry).unwrap();
        }
    }
}
