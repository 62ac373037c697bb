//! Halves of channels on threads of their own for a while, also while the kernel is deactivated.

use super::life::{Life, Order};
use super::track::Track;
use ring_host::kernels::Echo;
use ring_host::{DeviceFault, KernelHandle, Receiver, RecvTimeoutError, SendTimeoutError, Sender};
use ring_tests::Progress;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

/// After how long a thread looks whether it should go on waiting.
const A_WHILE: Duration = Duration::from_millis(5);

/// No count yet.
const NOT_YET: u64 = u64::MAX;

/// A channel's halves, and what went through them.
pub type Pair<'a> = (&'a mut Sender<Echo>, &'a mut Receiver<Echo>, &'a mut Track);

/// Sends `n` requests and receives all answers on every channel, each half on a thread of its own, while
/// the kernel is deactivated and activated again so many times.
///
/// The kernel is active before and, unless it is lost, after.
pub fn together(
    channels: Vec<Pair<'_>>,
    n: u64,
    life: &mut Life,
    pauses: Option<(&mut KernelHandle<Echo>, u32)>,
) {
    let may_pause = pauses.is_some();
    let faults: Vec<DeviceFault> = thread::scope(|scope| {
        let mut halves = Vec::new();
        let mut counts = Vec::new();
        for (sender, receiver, track) in channels {
            let counted = std::sync::Arc::new(AtomicU64::new(NOT_YET));
            let (channel, first, done) = (track.channel, track.sent, counted.clone());
            halves.push(scope.spawn(move || {
                let sent = send(sender, channel, first..first + n, may_pause);
                done.store(sent.0, SeqCst);
                sent.1
            }));
            let limit = first + n;
            counts.push(scope.spawn(move || {
                // What is accepted is known afterwards; till then it may be all.
                track.sent = limit;
                let fault = receive(receiver, track, &counted);
                (track, counted, fault)
            }));
        }
        if let Some((kernel, pauses)) = pauses {
            for _ in 0..pauses {
                life.order(kernel, (Order::Deactivate, true));
                life.order(kernel, (Order::Activate, true));
            }
        }
        let sent = halves.into_iter().filter_map(|half| half.join().expect("it sends"));
        let mut faults: Vec<_> = sent.collect();
        for half in counts {
            let (track, counted, fault) = half.join().expect("it receives");
            track.sent = counted.load(SeqCst);
            assert!(track.received <= track.sent, "more answers than requests");
            assert!(fault.is_some() || track.received == track.sent);
            faults.extend(fault);
        }
        faults
    });
    faults.into_iter().for_each(|fault| life.lose(fault));
}

/// Sends requests `of` channel `channel`: the index after the last that was accepted, and why it was.
fn send(
    sender: &mut Sender<Echo>,
    channel: u32,
    of: std::ops::Range<u64>,
    may_pause: bool,
) -> (u64, Option<DeviceFault>) {
    let mut progress = Progress::new();
    for i in of.clone() {
        let request = Track::request(channel, i);
        loop {
            progress.is_at(i, format_args!("more than {i} of {of:?} sent"));
            match sender.send(request, A_WHILE) {
                Ok(()) => break,
                Err(SendTimeoutError::Timeout { message: back, .. }) => assert_eq!(back, request),
                Err(SendTimeoutError::NotActive { .. }) if may_pause => thread::yield_now(),
                Err(SendTimeoutError::Fault { fault, .. }) => return (i, Some(fault)),
                Err(error) => panic!("{error}"),
            }
        }
    }
    (of.end, None)
}

/// Receives until as many have come as were sent, once that is known.
fn receive(
    receiver: &mut Receiver<Echo>,
    track: &mut Track,
    sent: &AtomicU64,
) -> Option<DeviceFault> {
    let mut progress = Progress::new();
    while track.received != sent.load(SeqCst) {
        progress.is_at(track.received, format_args!("more than {} received", track.received));
        match receiver.recv(A_WHILE) {
            Ok(response) => track.take(&response),
            Err(RecvTimeoutError::Timeout { .. }) => {}
            Err(RecvTimeoutError::Fault(fault)) => {
                track.over = true;
                // How many were sent is needed all the same.
                while sent.load(SeqCst) == NOT_YET {
                    progress.is_at(track.received, "a lost kernel, and who sends learns of it");
                    thread::yield_now();
                }
                return Some(fault);
            }
            Err(error) => panic!("{error}"),
        }
    }
    None
}
