//! Handlers of every scope, with messages that fit the line and messages that do not.

mod rig;

use rig::traffic::{NEAR_END, Numbered, Traffic, many_launches};
use rig::{Budgets, ENDLESS, MS, Rig, until};
use ring_device::{
    Block, BlockContext, BlockHandler, InOrder, InOrderHandler, Kernel, Output, Thread,
    ThreadContext, ThreadHandler, Warp, WarpContext, WarpHandler,
};
use ring_shared::layout::{Exit, Processing, State};
use ring_shared::ring::CONTROL;
use std::sync::atomic::Ordering::{Acquire, Relaxed};

/// Declares a kernel of the given scope and messages.
macro_rules! kernel {
    ($name:ident, $scope:ty, $request:ty, $response:ty) => {
        struct $name;
        impl Kernel for $name {
            const NAME: &'static str = stringify!($name);
            const ENTRY: &'static str = concat!("test_", stringify!($name));
            type Request = $request;
            type Response = $response;
            type Scope = $scope;
        }
    };
}

/// Numbers that differ from message to message and from word to word.
fn words<const N: usize>(i: u64) -> [u32; N] {
    std::array::from_fn(|k| (i as u32 + 1) << 8 | k as u32)
}

/// The response of all kernels here that have no state, if it has one word.
fn sum(request: &[u32]) -> u32 {
    request.iter().fold(1, |sum, word| sum + word)
}

// The request does not fit the line.
kernel!(FromLong, Thread, [u32; 24], u32);
// The response does not fit the line.
kernel!(ToLong, Thread, u64, [u32; 24]);
kernel!(ByWarp, Warp, [u32; 4], u32);
kernel!(ByWarpLong, Warp, [u32; 80], [u32; 80]);
kernel!(ByBlock, Block, [u32; 4], u32);
// 40 messages are more than a window holds.
kernel!(ByBlockLong, Block, [u32; 128], [u32; 128]);
kernel!(Running, InOrder, u64, u64);
kernel!(RunningLong, InOrder, [u32; 24], [u32; 24]);

impl ThreadHandler for FromLong {
    fn handle(_: &ThreadContext<'_>, request: &[u32; 24]) -> u32 {
        sum(request)
    }
}

impl Numbered for FromLong {
    fn request(i: u64) -> [u32; 24] {
        words(i)
    }

    fn check(i: u64, response: &u32) {
        assert_eq!(*response, sum(&words::<24>(i)), "response {i}");
    }
}

impl ThreadHandler for ToLong {
    fn handle(_: &ThreadContext<'_>, request: &u64) -> [u32; 24] {
        words(*request)
    }
}

impl Numbered for ToLong {
    fn request(i: u64) -> u64 {
        i
    }

    fn check(i: u64, response: &[u32; 24]) {
        assert_eq!(*response, words(i), "response {i}");
    }
}

impl WarpHandler for ByWarp {
    fn handle(ctx: &WarpContext<'_>, request: &[u32; 4], response: &Output<u32>) {
        if ctx.thread() == 0 {
            response.set(0, 0, sum(request));
        }
    }
}

impl Numbered for ByWarp {
    fn request(i: u64) -> [u32; 4] {
        words(i)
    }

    fn check(i: u64, response: &u32) {
        assert_eq!(*response, sum(&words::<4>(i)), "response {i}");
    }
}

impl WarpHandler for ByWarpLong {
    fn handle(ctx: &WarpContext<'_>, request: &[u32; 80], response: &Output<[u32; 80]>) {
        for (k, word) in request.iter().enumerate().skip(ctx.thread()).step_by(ctx.threads()) {
            response.set(0, k, word + 1);
        }
    }
}

impl Numbered for ByWarpLong {
    fn request(i: u64) -> [u32; 80] {
        words(i)
    }

    fn check(i: u64, response: &[u32; 80]) {
        assert_eq!(response.map(|word| word - 1), words(i), "response {i}");
    }
}

impl BlockHandler for ByBlock {
    fn handle(ctx: &BlockContext<'_>, request: &[u32; 4], response: &Output<u32>) {
        if ctx.thread() == 0 {
            response.set(0, 0, sum(request));
        }
    }
}

impl Numbered for ByBlock {
    fn request(i: u64) -> [u32; 4] {
        words(i)
    }

    fn check(i: u64, response: &u32) {
        assert_eq!(*response, sum(&words::<4>(i)), "response {i}");
    }
}

impl BlockHandler for ByBlockLong {
    fn handle(ctx: &BlockContext<'_>, request: &[u32; 128], response: &Output<[u32; 128]>) {
        for (k, word) in request.iter().enumerate().skip(ctx.thread()).step_by(ctx.threads()) {
            response.set(0, k, word + 1);
        }
    }
}

impl Numbered for ByBlockLong {
    fn request(i: u64) -> [u32; 128] {
        words(i)
    }

    fn check(i: u64, response: &[u32; 128]) {
        assert_eq!(response.map(|word| word - 1), words(i), "response {i}");
    }
}

/// How many messages there were, and their sum.
impl InOrderHandler for Running {
    type State = [u64; 2];

    fn handle(_: &ThreadContext<'_>, state: &mut [u64; 2], request: &u64) -> u64 {
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

/// How many messages there were, beside what came.
impl InOrderHandler for RunningLong {
    type State = u64;

    fn handle(_: &ThreadContext<'_>, state: &mut u64, request: &[u32; 24]) -> [u32; 24] {
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

/// Runs the same for every kernel.
macro_rules! each {
    ($test:ident $(, $argument:expr)*) => {
        $test::<FromLong>($($argument),*);
        $test::<ToLong>($($argument),*);
        $test::<ByWarp>($($argument),*);
        $test::<ByWarpLong>($($argument),*);
        $test::<ByBlock>($($argument),*);
        $test::<ByBlockLong>($($argument),*);
        $test::<Running>($($argument),*);
        $test::<RunningLong>($($argument),*);
    };
}

#[test]
fn each_message_once_with_the_host_quiet_during_a_launch() {
    each!(many_launches, 1, 1, NEAR_END, false);
    each!(many_launches, 2, 2, 0, false);
}

#[test]
fn each_message_once_with_the_host_busy_during_a_launch() {
    each!(many_launches, 3, 1, NEAR_END, true);
    each!(many_launches, 4, 2, 1 << 40, true);
}

/// A kernel of one lane that is active, on the device until it is asked to leave.
fn resident<K: Numbered>(capacity: u32, start: u64) -> (Rig<K>, rig::Running, Traffic<K>) {
    let mut rig = Rig::<K>::new(1, capacity, start);
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
fn end<K: Numbered>(mut rig: Rig<K>, running: rig::Running, messages: u64) {
    rig.command(State::Terminated);
    running.join();
    rig.check_left();
    assert_eq!((rig.exit(0), rig.processed(0)), (Exit::Asked, messages));
}

fn one_after_the_other<K: Numbered>() {
    let (rig, running, mut traffic) = resident::<K>(4, NEAR_END);
    for _ in 0..60 {
        assert!(traffic.one());
        answer(&mut traffic);
    }
    end(rig, running, 60);
}

#[test]
fn messages_one_after_the_other() {
    each!(one_after_the_other);
}

/// More than a window holds, and then what is left of the ring.
fn a_ring_full<K: Numbered>(mode: Processing) {
    let mut rig = Rig::<K>::new(1, 64, NEAR_END);
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
    end(rig, running, sent);
}

#[test]
fn a_ring_full_of_messages() {
    each!(a_ring_full, Processing::Batch);
    each!(a_ring_full, Processing::Adaptive);
    each!(a_ring_full, Processing::Continuous);
}

/// The host reads no answer: the lane answers as many as there is room for, and obeys meanwhile.
fn no_room<K: Numbered>() {
    let (mut rig, running, mut traffic) = resident::<K>(4, 0);
    assert_eq!(traffic.some(4), 4);
    let consumed = |rig: &Rig<K>| rig.lane(0).request_credit.consumed.load(Acquire);
    until("four answers", || consumed(&rig) == 4);
    traffic.ends.producer.note_consumed(4);
    assert_eq!(traffic.some(3), 3);
    rig.obeyed(State::Inactive);
    rig.obeyed(State::Active);
    assert_eq!(consumed(&rig), 4, "no answer without room");
    traffic.take_some(4);
    assert_eq!(traffic.got, 4);
    traffic.ends.consumer.publish();
    while traffic.got < 7 {
        answer(&mut traffic);
    }
    end(rig, running, 7);
}

#[test]
fn answers_without_room_wait_and_commands_do_not() {
    each!(no_room);
}

/// As above, but the host says by its doorbell only that it has read, and the message comes alone.
fn room_by_the_doorbell<K: Numbered>() {
    let (rig, running, mut traffic) = resident::<K>(4, 0);
    assert_eq!(traffic.some(4), 4);
    while traffic.got < 4 {
        answer(&mut traffic);
    }
    // The line of credits is not renewed: the next message's doorbell says it.
    for _ in 0..3 {
        assert!(traffic.one());
        answer(&mut traffic);
    }
    end(rig, running, 7);
}

#[test]
fn credit_that_comes_by_the_doorbell_counts() {
    each!(room_by_the_doorbell);
}

/// A lane that waits for room leaves when its time is over, and a later launch answers the rest.
fn no_room_and_no_time<K: Numbered>() {
    let mut rig = Rig::<K>::new(1, 4, 0);
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

/// A credit line that cannot be ends a lane that waits for room.
fn impossible_credit<K: Numbered>() {
    let (rig, running, mut traffic) = resident::<K>(4, 1000);
    assert_eq!(traffic.some(4), 4);
    until("four answers", || rig.lane(0).request_credit.consumed.load(Acquire) == 1004);
    rig.lane(0).response_credit.consumed.store(7, Relaxed);
    traffic.ends.producer.note_consumed(1004);
    assert_eq!(traffic.some(4), 4);
    running.join();
    assert_eq!((rig.exit(0), rig.processed(0)), (Exit::CorruptRing, 4));
}

#[test]
fn an_impossible_credit_ends_a_lane_that_waits_for_room() {
    each!(impossible_credit);
}

/// A doorbell whose tail is further ahead than the ring is long.
fn impossible_tail<K: Numbered>() {
    let (rig, running, mut traffic) = resident::<K>(4, 0);
    assert_eq!(traffic.some(4), 4);
    while traffic.got < 4 {
        answer(&mut traffic);
    }
    let bell = &rig.lane(0).request_bell.atoms[CONTROL];
    let [credit, _] = bell.observe();
    bell.publish([credit, 9 << 32 | 3]);
    running.join();
    assert_eq!((rig.exit(0), rig.processed(0)), (Exit::CorruptRing, 4));
}

#[test]
fn an_impossible_tail_ends_a_lane() {
    each!(impossible_tail);
}

#[test]
fn a_state_without_room_for_it_is_refused() {
    let mut rig = Rig::<Running>::new(1, 4, 0);
    rig.command(State::Active);
    rig.lane(0).state_bytes.store(15, Relaxed);
    assert_eq!(rig.whole(), Exit::BadConfig);
    let mut rig = Rig::<Running>::new(1, 4, 0);
    rig.command(State::Active);
    rig.lane(0).state_bytes.store(17, Relaxed);
    rig.budgets(Budgets { idle: 0, ..ENDLESS });
    assert_eq!(rig.whole(), Exit::Idle);
}
