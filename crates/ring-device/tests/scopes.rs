//! Handlers of every scope, with messages that fit the line and messages that do not.

mod rig;

use rig::traffic::{NEAR_END, Numbered, Traffic, many_launches, windows};
use rig::{Budgets, Clock, ENDLESS, Gate, LINES, MS, Next, Rig, gated, now, until};
use ring_device::{Kernel, ring_kernel};
use ring_shared::layout::{Exit, Processing, State};
use ring_shared::ring::CONTROL;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed};

/// Numbers that differ from message to message and from word to word.
fn words<const N: usize>(i: u64) -> [u32; N] {
    std::array::from_fn(|k| (i as u32 + 1) << 8 | k as u32)
}

/// The response of all kernels here that have no state: each word depends on all of the request, on their
/// order, and on its own place.
fn respond<const N: usize, const M: usize>(request: &[u32; N]) -> [u32; M] {
    let all = request.iter().fold(1, |all: u32, word| all.wrapping_mul(31).wrapping_add(*word));
    std::array::from_fn(|k| all.wrapping_add(k as u32))
}

/// Declares a kernel with requests and responses of so many words, and its handler.
macro_rules! responds {
    ($name:ident, $scope:ident, $request:literal, $response:literal) => {
        responds!(@ $scope, $name, $request, $response);

        impl Numbered for $name {
            fn request(i: u64) -> [u32; $request] {
                words(i)
            }

            fn check(i: u64, response: &[u32; $response]) {
                assert_eq!(*response, respond(&Self::request(i)), "response {i}");
            }
        }
    };
    (@ Thread, $name:ident, $request:literal, $response:literal) => {
        ring_kernel! {
            struct $name;

            fn handle(request: &[u32; $request]) -> [u32; $response] {
                respond(request)
            }
        }
    };
    (@ Warp, $name:ident, $request:literal, $response:literal) => {
        responds!(@@ WarpContext, $name, $request, $response);
    };
    (@ Block, $name:ident, $request:literal, $response:literal) => {
        responds!(@@ BlockContext, $name, $request, $response);
    };
    (@@ $context:ident, $name:ident, $request:literal, $response:literal) => {
        ring_kernel! {
            struct $name;

            fn handle(ctx: &$context, request: &[u32; $request], response: &Output<[u32; $response]>) {
                let words: [u32; $response] = respond(request);
                for k in (ctx.thread()..words.len()).step_by(ctx.threads()) {
                    response.set(0, k, words[k]);
                }
            }
        }
    };
}

// The request does not fit the line.
responds!(FromLong, Thread, 24, 1);
// The response does not fit the line.
responds!(ToLong, Thread, 2, 24);
responds!(ByWarp, Warp, 4, 1);
responds!(ByWarpLong, Warp, 80, 80);
responds!(ByWarpOut, Warp, 2, 256);
responds!(ByBlock, Block, 4, 1);
// 40 messages are about as many as a window of the block holds, and 64 are more.
responds!(ByBlockLong, Block, 128, 128);
responds!(ByBlockIn, Block, 128, 1);
responds!(ByBlockOut, Block, 2, 128);

ring_kernel! {
    /// How many messages there were, and their sum.
    struct Running;

    fn handle(state: &mut [u64; 2], request: &u64) -> u64 {
        *state = [state[0] + 1, state[1] + request];
        state[0] << 32 | state[1]
    }
}

impl Numbered for Running {
    fn request(i: u64) -> u64 {
        i
    }

    fn check(i: u64, response: &u64) {
        assert_eq!(*response, ((i + 1) << 32) + i * (i + 1) / 2, "response {i}");
    }
}

ring_kernel! {
    /// How many messages there were, beside what came.
    struct RunningLong;

    fn handle(state: &mut u64, request: &[u32; 24]) -> [u32; 24] {
        *state += 1;
        let mut response = *request;
        response[23] = *state as u32;
        response
    }
}

impl Numbered for RunningLong {
    fn request(i: u64) -> [u32; 24] {
        words(i)
    }

    fn check(i: u64, response: &[u32; 24]) {
        let mut expected = words::<24>(i);
        expected[23] = i as u32 + 1;
        assert_eq!(*response, expected, "response {i}");
    }
}

/// Runs the same for every kernel, with so many lines; with each number of them.
macro_rules! each {
    (by $lines:expr, $test:ident $(, $argument:expr)*) => {
        $test::<FromLong>($lines $(, $argument)*);
        $test::<ToLong>($lines $(, $argument)*);
        $test::<ByWarp>($lines $(, $argument)*);
        $test::<ByWarpLong>($lines $(, $argument)*);
        $test::<ByWarpOut>($lines $(, $argument)*);
        $test::<ByBlock>($lines $(, $argument)*);
        $test::<ByBlockLong>($lines $(, $argument)*);
        $test::<ByBlockIn>($lines $(, $argument)*);
        $test::<ByBlockOut>($lines $(, $argument)*);
        $test::<Running>($lines $(, $argument)*);
        $test::<RunningLong>($lines $(, $argument)*);
    };
    ($test:ident $(, $argument:expr)*) => {
        for lines in LINES {
            each!(by lines, $test $(, $argument)*);
        }
    };
}

#[test]
fn each_message_once_with_the_host_quiet_during_a_launch() {
    each!(many_launches, 1, 1, NEAR_END, false);
    each!(many_launches, 2, 2, 0, false);
}

fn host_busy(lines: u32) {
    each!(by lines, many_launches, 3, 1, NEAR_END, true);
    each!(by lines, many_launches, 4, 2, 1 << 40, true);
}

#[test]
fn each_message_once_with_the_host_busy_during_a_launch() {
    host_busy(1);
}

#[test]
fn each_message_once_with_the_host_busy_during_a_launch_over_several_lines() {
    LINES[1..].iter().copied().for_each(host_busy);
}

/// A kernel of one channel that is active, on the device until it is asked to leave.
fn resident<K: Numbered>(
    lines: u32,
    capacity: u32,
    start: u64,
) -> (Rig<K>, rig::Running, Traffic<K>) {
    let mut rig = Rig::<K>::new(1, (capacity, lines), start);
    rig.command(State::Active);
    let traffic = Traffic::new(rig.ends(0), u64::MAX);
    let running = rig.launch();
    (rig, running, traffic)
}

/// Takes a response that comes within the longest wait.
fn answer<K: Numbered>(traffic: &mut Traffic<K>) {
    until("an answer", || traffic.take());
}

/// Ends a kernel that stays.
fn end<K: Numbered>(rig: &mut Rig<K>, running: rig::Running, messages: u64) {
    rig.command(State::Terminated);
    running.join();
    rig.check_left();
    assert_eq!((rig.exit(0), rig.processed(0)), (Exit::Asked, messages));
    assert_eq!(rig.channel(0).status.refused.load(Relaxed), 0, "commands and messages refused");
}

fn one_after_the_other<K: Numbered>(lines: u32) {
    let (mut rig, running, mut traffic) = resident::<K>(lines, 4, NEAR_END);
    for _ in 0..60 {
        assert!(traffic.one());
        answer(&mut traffic);
    }
    end(&mut rig, running, 60);
}

#[test]
fn messages_one_after_the_other() {
    each!(one_after_the_other);
}

/// More than a window holds, and then what is left of the ring.
fn a_ring_full<K: Numbered>(lines: u32, mode: Processing) {
    let mut rig = Rig::<K>::new(1, (64, lines), NEAR_END);
    rig.command(State::Active);
    rig.processing(mode as u32, u32::MAX);
    let mut traffic = Traffic::<K>::new(rig.ends(0), u64::MAX);
    assert_eq!(traffic.some(40), 40);
    let running = rig.launch();
    for n in [24, 64, 3, 61] {
        traffic.some(n);
        while traffic.got < traffic.sent {
            answer(&mut traffic);
        }
        traffic.ends.consumer.publish();
    }
    let sent = traffic.sent;
    end(&mut rig, running, sent);
}

#[test]
fn a_ring_full_of_messages() {
    each!(a_ring_full, Processing::Batch);
    each!(a_ring_full, Processing::Adaptive);
    each!(a_ring_full, Processing::Continuous);
}

/// The host reads no answer: the channel answers as many as there is room for, and acknowledges meanwhile. `n` more
/// wait for the host's credit line.
fn no_room<K: Numbered>(lines: u32, n: u64) {
    let (mut rig, running, mut traffic) = resident::<K>(lines, 4, 0);
    assert_eq!(traffic.some(4), 4);
    rig.consumes(0, 4);
    traffic.ends.producer.note_consumed(4);
    assert_eq!(traffic.some(n), n);
    rig.command_and_wait(State::Inactive);
    rig.command_and_wait(State::Active);
    for _ in 0..3 {
        let beat = || rig.channel(0).status.heartbeat.load(Relaxed);
        let last = beat();
        until("a heartbeat", || beat() > last);
    }
    assert_eq!(rig.channel(0).request_credit.consumed.load(Acquire), 4, "no answer without room");
    traffic.take_some(4);
    assert_eq!(traffic.got, 4);
    traffic.ends.consumer.publish();
    while traffic.got < 4 + n {
        answer(&mut traffic);
    }
    end(&mut rig, running, 4 + n);
}

#[test]
fn answers_without_room_wait_and_commands_do_not() {
    each!(no_room, 1);
    each!(no_room, 3);
}

/// One message after the other, whose answers nobody reads: they stay, the line is not written over.
fn unread<K: Numbered>(lines: u32) {
    let (mut rig, running, mut traffic) = resident::<K>(lines, 8, 5);
    for i in 1..=8 {
        assert!(traffic.one());
        rig.consumes(0, 5 + i);
    }
    while traffic.got < 8 {
        answer(&mut traffic);
    }
    end(&mut rig, running, 8);
}

#[test]
fn answers_that_nobody_reads_go_to_slots() {
    each!(unread);
}

/// The same, a launch without idle time for each message: none waits for the host to read answers before it.
fn unread_by_launches<K: Numbered>(lines: u32) {
    let mut rig = Rig::<K>::new(1, (8, lines), 5);
    rig.command(State::Active);
    rig.budgets(Budgets { idle: 0, ..ENDLESS });
    let mut traffic = Traffic::<K>::new(rig.ends(0), u64::MAX);
    for i in 1..=8 {
        traffic.ends.producer.note_consumed(5 + i - 1);
        assert!(traffic.one());
        assert_eq!(rig.whole(), Exit::Idle);
        assert_eq!(rig.processed(0), i, "{}, {lines} lines", K::NAME);
    }
    traffic.take_some(8);
    assert_eq!(traffic.got, 8);
}

#[test]
fn answers_that_nobody_reads_hold_up_no_launch() {
    each!(unread_by_launches);
}

/// Requests are given back to the host before the channel waits for room, be they ever so few.
fn credit_before_waiting<K: Numbered>(lines: u32) {
    let (mut rig, running, mut traffic) = resident::<K>(lines, 16, 0);
    assert_eq!(traffic.some(14), 14);
    rig.consumes(0, 14);
    traffic.ends.producer.note_consumed(14);
    assert_eq!(traffic.some(5), 5);
    rig.consumes(0, 16);
    while traffic.got < 19 {
        answer(&mut traffic);
        traffic.ends.consumer.publish();
    }
    end(&mut rig, running, 19);
}

#[test]
fn a_channel_without_room_has_given_back_what_it_read() {
    each!(credit_before_waiting);
}

/// Without idle time a launch answers what there is, in windows of any size, and leaves.
fn all_there_is<K: Numbered>(lines: u32, mode: Processing, max: u32) {
    let mut rig = Rig::<K>::new(1, (64, lines), 3);
    rig.command(State::Active);
    rig.processing(mode as u32, max);
    rig.budgets(Budgets { idle: 0, ..ENDLESS });
    let mut traffic = Traffic::<K>::new(rig.ends(0), u64::MAX);
    assert_eq!(traffic.some(20), 20);
    assert_eq!(rig.whole(), Exit::Idle);
    assert_eq!(rig.processed(0), 20, "{}, {mode:?}", K::NAME);
    traffic.take_some(20);
    assert_eq!(traffic.got, 20);
}

#[test]
fn what_there_is_is_answered_without_idle_time() {
    each!(all_there_is, Processing::Continuous, 1);
    each!(all_there_is, Processing::Batch, 3);
    each!(all_there_is, Processing::Adaptive, u32::MAX);
}

/// The host says by its doorbell only that it has read answers, fewer than it would renew its credit line
/// for. That line is behind from then on, and old doorbells too. A channel that waits for room looks at the line of its
/// next request and at the first: with several, the credit in a line behind those counts when it comes to that one.
fn room_by_the_doorbell<K: Numbered>(lines: u32) {
    let (mut rig, running, mut traffic) = resident::<K>(lines, 16, 0);
    assert_eq!(traffic.some(16), 16);
    rig.consumes(0, 16);
    traffic.ends.producer.note_consumed(16);
    // With one line always one more than there is room for.
    for n in [if lines == 1 { 2 } else { 1 }, 1, 1] {
        assert!(traffic.take());
        assert_eq!(rig.channel(0).response_credit.consumed.load(Relaxed), 0);
        assert_eq!((0..n).filter(|_| traffic.one()).count(), n);
        rig.consumes(0, 16 + traffic.got);
    }
    let sent = traffic.sent;
    while traffic.got < sent {
        answer(&mut traffic);
    }
    end(&mut rig, running, sent);
}

#[test]
fn credit_that_comes_by_the_doorbell_counts() {
    each!(room_by_the_doorbell);
}

/// A channel that waits for room leaves when its time is over, and a later launch answers the rest.
fn no_room_and_no_time<K: Numbered>(lines: u32) {
    let mut rig = Rig::<K>::new(1, (4, lines), 0);
    rig.command(State::Active);
    let mut traffic = Traffic::<K>::new(rig.ends(0), u64::MAX);
    assert_eq!(traffic.some(4), 4);
    rig.budgets(Budgets { idle: MS, ..ENDLESS });
    assert_eq!(rig.whole(), Exit::Idle);
    traffic.ends.producer.note_consumed(4);
    assert_eq!(traffic.some(4), 4);
    assert_eq!(rig.whole(), Exit::Idle);
    assert_eq!(rig.processed(0), 4);
    rig.budgets(Budgets { time: MS, ..ENDLESS });
    assert_eq!(rig.whole(), Exit::TimeSpent);
    assert_eq!(rig.processed(0), 4);
    traffic.take_some(8);
    traffic.ends.consumer.publish();
    rig.budgets(Budgets { idle: 0, ..ENDLESS });
    assert_eq!(rig.whole(), Exit::Idle);
    traffic.take_some(8);
    traffic.ends.consumer.publish();
    assert_eq!((traffic.got, rig.processed(0)), (8, 8));
}

#[test]
fn a_launch_without_room_ends_by_its_budgets() {
    each!(no_room_and_no_time);
}

/// A credit line that cannot be ends a channel that waits for room, for one message or for several.
fn impossible_credit<K: Numbered>(lines: u32, n: u64) {
    let (rig, running, mut traffic) = resident::<K>(lines, 4, 1000);
    assert_eq!(traffic.some(4), 4);
    rig.consumes(0, 1004);
    rig.channel(0).response_credit.consumed.store(7, Relaxed);
    traffic.ends.producer.note_consumed(1004);
    assert_eq!(traffic.some(n), n);
    running.join();
    assert_eq!((rig.exit(0), rig.processed(0)), (Exit::CorruptRing, 4));
}

#[test]
fn an_impossible_credit_ends_a_channel_that_waits_for_room() {
    each!(impossible_credit, 1);
    each!(impossible_credit, 4);
}

/// A doorbell whose tail is further ahead than the ring is long.
fn impossible_tail<K: Numbered>(lines: u32) {
    let (rig, running, mut traffic) = resident::<K>(lines, 4, 0);
    assert_eq!(traffic.some(4), 4);
    while traffic.got < 4 {
        answer(&mut traffic);
    }
    let bell = &rig.line(0, 0, 4).atoms[CONTROL];
    let [credit, _] = bell.observe();
    bell.publish([credit, 9 << 32 | 3]);
    running.join();
    assert_eq!((rig.exit(0), rig.processed(0)), (Exit::CorruptRing, 4));
}

#[test]
fn an_impossible_tail_ends_a_channel() {
    each!(impossible_tail);
}

#[test]
fn a_state_without_room_for_it_is_refused() {
    let mut rig = Rig::<Running>::new(1, 4, 0);
    rig.command(State::Active);
    rig.channel(0).state_bytes.store(15, Relaxed);
    assert_eq!(rig.whole(), Exit::BadConfig);
    let mut rig = Rig::<Running>::new(1, 4, 0);
    rig.command(State::Active);
    rig.channel(0).state_bytes.store(17, Relaxed);
    rig.budgets(Budgets { idle: 0, ..ENDLESS });
    assert_eq!(rig.whole(), Exit::Idle);
}

#[test]
fn windows_are_as_large_as_the_mode_says() {
    each!(windows);
    LINES.into_iter().for_each(windows::<Next>);
}

gated!(GatedAlone, Thread, ALONE);
gated!(GatedInOrder, InOrder, IN_ORDER);
gated!(HeldInOrder, InOrder, HELD_IN_ORDER);

fn acknowledges_after_each<K: Kernel<Request = u64, Response = u64>>(
    lines: u32,
    gate: &Gate,
    clock: Clock,
) {
    gate.close();
    let mut rig = Rig::<K>::new(1, (64, lines), 0);
    rig.clock = Some(clock);
    rig.processing(Processing::Continuous as u32, 1);
    rig.command(State::Active);
    let mut ends = rig.ends(0);
    assert_eq!(ends.push_slice(&(0..60).collect::<Vec<u64>>()), 60);
    let running = rig.launch();
    gate.open(1);
    until("a message", || ends.pop::<u64>().is_some());
    // The channel has the second message by now, or sees the command before.
    let epoch = rig.command(State::Inactive);
    gate.open(u64::MAX);
    until("acknowledged", || rig.acknowledged(0) == (epoch, Some(State::Inactive)));
    let processed = rig.processed(0);
    assert!((1..=2).contains(&processed), "{processed}");
    assert_eq!(rig.channel(0).status.depth.load(Relaxed), 60 - processed);
    rig.command_and_wait(State::Terminated);
    running.join();
    rig.check_left();
}

#[test]
fn continuous_acknowledges_after_each_message() {
    // With a clock that stands still there are no heartbeats, at which a channel looks for commands too.
    let clocks: [Clock; 2] = [Arc::new(|_| now()), Arc::new(|_| 1 << 41)];
    for lines in LINES {
        for clock in &clocks {
            acknowledges_after_each::<GatedAlone>(lines, &ALONE, Arc::clone(clock));
            acknowledges_after_each::<GatedInOrder>(lines, &IN_ORDER, Arc::clone(clock));
        }
    }
}

/// Adaptive windows double while messages are left behind, and halve when none are.
fn halves<K: Kernel<Request = u64, Response = u64>>(gate: &Gate) {
    let mut rig = Rig::<K>::new(1, 64, 0);
    rig.processing(Processing::Adaptive as u32, 100);
    rig.command(State::Active);
    rig.budgets(Budgets { iterations: 1 + 4, ..ENDLESS });
    let mut ends = rig.ends(0);
    assert_eq!(ends.push_slice(&(0..7).collect::<Vec<u64>>()), 7);
    let running = rig.launch();
    gate.open(3);
    for answer in 0..3 {
        until("two windows", || ends.pop::<u64>() == Some(answer));
    }
    // The third window, of the four that are left, is held: what comes now comes behind it.
    assert_eq!(ends.push_slice(&(7..20).collect::<Vec<u64>>()), 13);
    gate.open(u64::MAX);
    running.join();
    assert_eq!((rig.exit(0), rig.processed(0)), (Exit::IterationsSpent, 7 + 2));
}

#[test]
fn adaptive_windows_halve_when_nothing_is_left_behind() {
    halves::<HeldInOrder>(&HELD_IN_ORDER);
}

/// No time of a channel lies in a later bucket than that of the time that all took.
fn times<K: Numbered>(lines: u32) {
    let began = now();
    let (mut rig, running, mut traffic) = resident::<K>(lines, 16, 0);
    for n in 1..9 {
        assert_eq!(traffic.some(n), n);
        while traffic.got < traffic.sent {
            answer(&mut traffic);
        }
        assert!(traffic.one());
        answer(&mut traffic);
        traffic.ends.consumer.publish();
    }
    let sent = traffic.sent;
    end(&mut rig, running, sent);
    let most = (now() - began).ilog2() as usize;
    let last = |of: &[AtomicU64]| of.iter().rposition(|n| n.load(Relaxed) > 0).unwrap();
    let times = &rig.channel(0).times;
    assert!(last(&times.handler) <= most, "{}: handlers", K::NAME);
    assert!(last(&times.queueing) <= most, "{}: queueing", K::NAME);
}

#[test]
fn no_message_takes_longer_than_all_of_them() {
    each!(times);
}
