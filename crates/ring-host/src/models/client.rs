//! Calls of several threads: each gets its own answer, and nobody is left parked while nobody receives.

use super::rig::{Alone, LONG, Rig, check};
use crate::Client;
use crate::kernel::client::ClientConfig;
use crate::mode::{Memory, Mode};
use loom::thread;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::Ordering::Release;

/// The kernel answers what `calling` calls, on this thread and on another.
fn calls(preemptions: usize, calling: fn(&Client<Alone>, u64)) {
    check(preemptions, move || {
        let mut rig = Rig::new((Mode::Persistent, Memory::Mapped), true, false);
        let config = ClientConfig::default().tickets(NonZeroU32::new(2).unwrap());
        let client = rig.kernel.client_with(config).unwrap();
        let (mut channel, place) = (rig.channel(), Arc::clone(&rig.place));
        let playing = thread::spawn(move || {
            channel.stay();
            place.ended.store(1, Release);
        });
        let other = client.clone();
        let called = thread::spawn(move || calling(&other, 1));
        calling(&client, 2);
        called.join().unwrap();
        let summary = rig.kernel.terminate(LONG).unwrap();
        assert_eq!(summary.processed + summary.unhandled, 2, "a message lost or doubled");
        playing.join().unwrap();
    });
}

/// One of both receives, and hands over when it has its own answer.
#[test]
fn two_callers() {
    calls(1, |client, request| assert_eq!(client.call(request, LONG), Ok(!request)));
}

/// Nobody waits for one of the answers, which is received with the others.
#[test]
fn an_answer_that_is_given_up() {
    calls(1, |client, request| {
        let given_up = client.submit(request, LONG).unwrap();
        if request == 1 {
            drop(given_up);
        } else {
            assert_eq!(given_up.wait(LONG).unwrap(), !request);
        }
    });
}
