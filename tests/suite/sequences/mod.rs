//! Random sequences of everything that a user can do, in every mode, memory and emulated platform,
//! against plain models: exactly once, in order, the right state, the right error.
//!
//! | public operation | model |
//! |---|---|
//! | `Runtime`: `prepare`, `launch`, refused launches | [`launches`] |
//! | `KernelHandle`: `activate`, `deactivate`, `terminate`, also twice, too late, and with no time | [`life`] |
//! | `KernelHandle`: `status`, `summary`, `selection`, `runs_as`, `fallbacks`, `launches`, `is_resting`, `rest` | [`life`], [`channels`] |
//! | `KernelHandle`: `channel`, `take_channel`, `channels`, `telemetry`, `channel_telemetry`, drop | [`channels`] |
//! | `KernelHandle`, `Channel`, `Sender`, `Receiver`: every send and receive; `unanswered` | [`track`], by [`ends`] |
//! | `RequestSink`, `ResponseStream`: polls, there and back | [`track`], by [`ends`] |
//! | `Channel`: `split`, `into_split`; halves on threads | [`channels`], [`threads`] |
//! | `KernelHandle`: `write_payload`, `read_payload`, `payload_bytes`, `payload_memory`, `add` | [`payload`] |
//! | `KernelHandle`: `read_state`, `read_state_into`, `write_state` | [`state`] |
//!
//! A failure names the shortest sequence that fails, and the command that plays all of them again.

mod channels;
mod ends;
mod launches;
mod life;
mod payload;
mod platforms;
pub(crate) mod seed;
mod state;
mod threads;
mod track;

use crate::faults::in_child;
use launches::{Launched, launches};
use platforms::{Break, Platform, breaks};
use proptest::prelude::*;
use ring_host::Runtime;
use ring_tests::gpu;
use seed::{SEED, run, seed};
use std::fmt::Debug;
use std::ops::Range;

/// How many acts a sequence has; on a platform that breaks, so many that it does.
const SHORT: Range<usize> = 1..24;
const LONG: Range<usize> = 200..400;

/// `usual` acts, and, about twice a sequence, one that is the `end` of a kernel.
fn mixed<A: Debug>(
    count: Range<usize>,
    usual: impl Strategy<Value = A>,
    end: impl Strategy<Value = A>,
) -> impl Strategy<Value = Vec<A>> {
    prop::collection::vec(prop_oneof![count.end as u32 / 2 => usual, 1 => end], count)
}

/// Plays sequences of `acts` on every emulated platform, `few` on one that breaks: it is opened anew for
/// each, which takes longer than the sequence.
fn emulated<A: Debug, S: Strategy<Value = A>>(
    (test, few): (&str, u32),
    acts: impl Fn(Range<usize>) -> S,
    play: impl Fn(&Platform, &Runtime, &Launched, &A),
) {
    for platform in Platform::emulated() {
        let (count, length) = if platform.breaks { (few, LONG) } else { (100, SHORT) };
        run((test, platform.name), count, (launches(), acts(length)), |(launch, acts)| {
            let launch = if platform.breaks { launch.roomy() } else { launch };
            play(&platform, &platform.host(), &launch, &acts);
        });
    }
}

/// Plays sequences of `acts` on devices that break, each soon.
fn breaking<A: Debug>(
    (test, count): (&str, u32),
    acts: impl Strategy<Value = A>,
    play: impl Fn(&Platform, &Runtime, &Launched, &A),
) {
    let platform = Break::platform();
    run((test, platform.name), count, (breaks(), launches(), acts), |(breaks, launch, acts)| {
        let Some(host) = breaks.host() else { return };
        play(&platform, &host, &breaks.launched(launch), &acts);
    });
}

/// Plays sequences of `acts` on one platform.
fn on<A: Debug>(
    platform: &Platform,
    (test, count): (&str, u32),
    acts: impl Strategy<Value = A>,
    play: impl Fn(&Platform, &Runtime, &Launched, &A),
) {
    run((test, platform.name), count, (launches(), acts), |(launch, acts)| {
        play(platform, &platform.host(), &launch, &acts);
    });
}

macro_rules! sequences {
    ($model:ident, $count:literal, $few:literal, $acts:expr, $play:expr) => {
        mod $model {
            use super::*;

            #[test]
            fn on_cpu_threads() {
                let test = (here!("on_cpu_threads"), $count);
                on(&Platform::cpu(), test, $acts(SHORT), $play);
            }

            #[test]
            fn on_emulated_platforms() {
                emulated((here!("on_emulated_platforms"), $few / 5), $acts, $play);
            }

            #[test]
            fn while_operations_fail() {
                breaking((here!("while_operations_fail"), $few), $acts(SHORT), $play);
            }

            /// In a process of its own: the driver loads nothing while another test's kernel is resident.
            #[test]
            fn on_a_gpu() {
                if gpu().is_none() {
                    return;
                }
                let (test, seed) = (here!("on_a_gpu"), format!("{:016x}", seed()));
                in_child(test, &[(SEED, &seed)], || {
                    let platform = Platform::gpu(gpu().expect("it was there"));
                    on(&platform, (test, $count / 10), $acts(SHORT), $play);
                });
            }
        }
    };
}

sequences!(of_channels, 4000, 30, channels::acts, |platform, host, launch, acts| {
    channels::play(platform, host, launch, acts);
});

sequences!(of_payload, 800, 15, |length| (payload::arenas(), payload::acts(length)), |platform,
                                                                                      host,
                                                                                      launch,
                                                                                      (
    arena,
    acts,
)| {
    payload::play(platform, host, (launch, *arena), acts)
});

sequences!(of_state, 1000, 15, state::acts, |platform, host, launch, acts| {
    state::play(platform, host, launch, acts);
});
