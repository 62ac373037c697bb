//! One seed a run, from which all its sequences follow; printed when one fails.

use proptest::strategy::Strategy;
use proptest::test_runner::{Config, RngSeed, TestRunner};
use std::hash::{BuildHasher, RandomState};
use std::sync::OnceLock;

/// The seed to begin with, in hexadecimal; random without it.
pub const SEED: &str = "RING_SEED";

/// How many times as many sequences as usual.
const TIMES: &str = "RING_SEQUENCES";

/// The seed of this run.
pub fn seed() -> u64 {
    static SEED_OF_RUN: OnceLock<u64> = OnceLock::new();
    *SEED_OF_RUN.get_or_init(|| match std::env::var(SEED) {
        Ok(hex) => u64::from_str_radix(hex.trim_start_matches("0x"), 16)
            .unwrap_or_else(|error| panic!("{SEED}={hex}: {error}")),
        Err(_) => RandomState::new().hash_one(0),
    })
}

/// A seed of its own for each test and platform, the same in every run with that seed (FNV-1a).
fn of(name: &str, on: &str) -> u64 {
    let bytes = name.bytes().chain(on.bytes());
    bytes.fold(seed() ^ 0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    })
}

/// How many sequences: `usual` in a release build; so many times as many as the environment says.
pub(crate) fn count(usual: u32) -> u32 {
    let times = std::env::var(TIMES).ok().and_then(|n| n.parse::<f64>().ok());
    let usual = if cfg!(debug_assertions) { usual / 10 } else { usual };
    ((f64::from(usual) * times.unwrap_or(1.0)) as u32).max(1)
}

/// What to type to play the same sequences again.
fn replay(test: &str) -> String {
    let test = test.split_once("::").map_or(test, |(_, test)| test);
    let times = std::env::var(TIMES).map_or_else(|_| String::new(), |n| format!("{TIMES}={n} "));
    let profile = if cfg!(debug_assertions) { "" } else { " --release" };
    format!(
        "{SEED}={:016x} {times}cargo test -p ring-tests{profile} --test suite {test} -- --exact",
        seed()
    )
}

/// Plays `usual` random sequences of test `test` on the platform `on`. If one fails, the shortest is
/// looked for that does, and shown with the command that replays it.
///
/// # Panics
/// If one fails.
pub fn run<S: Strategy>(
    (test, on): (&str, &str),
    usual: u32,
    sequences: S,
    play: impl Fn(S::Value),
) {
    let config = Config {
        cases: count(usual),
        failure_persistence: None,
        max_shrink_time: 60_000,
        rng_seed: RngSeed::Fixed(of(test, on)),
        ..Config::default()
    };
    let outcome = TestRunner::new(config).run(&sequences, |sequence| {
        play(sequence);
        Ok(())
    });
    outcome.unwrap_or_else(|error| panic!("on {on}: {error}\n\nto replay it:\n{}\n", replay(test)));
}
