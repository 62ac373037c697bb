//! The host beside a device that writes what it should not: the bytes are a script of both, as in
//! `tests/suite/hostile/idle.rs`, which plays random ones.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ring_tests::hostile::Bed;
use std::sync::LazyLock;

/// Opened once: the probe takes longer than thousands of scripts.
static BED: LazyLock<Bed> = LazyLock::new(Bed::new);

fuzz_target!(|script: &[u8]| BED.play(script));
