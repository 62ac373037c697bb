//! What a channel counts. That its histograms add up is checked by the rig after every launch.

mod rig;

use rig::{Budgets, ENDLESS, Gate, Rig, until};
use ring_device::kernels::{VectorAddRequest, VectorAddResponse, status};
use ring_device::{Kernel, VectorAdd, ring_kernel};
use ring_shared::layout::{BUCKETS, State, Times};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed};

ring_kernel! {
    /// Refuses odd numbers.
    struct Picky {
        name: "picky",
        entry: "test_picky",
    }

    fn handle(ctx: &ThreadContext, request: &u64) -> u64 {
        if request % 2 == 1 {
            ctx.refuse();
        }
        *request
    }
}

/// The clock of the channels of [`Timed`], in nanoseconds.
static TIME: AtomicU64 = AtomicU64::new(1 << 40);

ring_kernel! {
    /// Takes as many nanoseconds as the request says.
    struct Timed {
        name: "timed",
        entry: "test_timed",
    }

    fn handle(request: &u64) -> u64 {
        TIME.fetch_add(*request, Relaxed);
        *request
    }
}

fn slowest(of: &[std::sync::atomic::AtomicU64; BUCKETS]) -> usize {
    of.iter().rposition(|n| n.load(Relaxed) > 0).unwrap_or(0)
}

#[test]
fn refusals_are_counted_over_launches() {
    let mut rig = Rig::<Picky>::new(1, 8, 3);
    rig.command(State::Active);
    rig.budgets(Budgets { idle: 0, ..ENDLESS });
    let mut ends = rig.ends(0);
    for launch in 1..=5u64 {
        assert_eq!(ends.push_slice(&[0u64, 1, 2, 3]), 4);
        rig.whole();
        assert_eq!(ends.drain::<u64>().len(), 4);
        assert_eq!(rig.channel(0).status.refused.load(Relaxed), 2 * launch);
    }
    assert!(ends.push(7u64), "inline");
    rig.whole();
    assert_eq!(rig.channel(0).status.refused.load(Relaxed), 11);
}

#[test]
fn a_block_refuses_a_message_once() {
    let mut rig = Rig::<VectorAdd>::new(1, 8, 0);
    rig.command(State::Active);
    rig.budgets(Budgets { idle: 0, ..ENDLESS });
    let mut ends = rig.ends(0);
    let good = VectorAddRequest::inline(&[1.0], &[2.0]).unwrap();
    let (empty, outside) =
        (VectorAddRequest { len: 0, ..good }, VectorAddRequest::in_payload(4, 0));
    assert_eq!(ends.push_slice(&[good, empty, outside, good]), 4);
    rig.whole();
    let statuses: Vec<u32> =
        ends.drain::<VectorAddResponse>().iter().map(|answer| answer.status).collect();
    let expected = [status::INLINE, status::BAD_LENGTH, status::BAD_PAYLOAD, status::INLINE];
    assert_eq!(statuses, expected);
    assert_eq!(rig.channel(0).status.refused.load(Relaxed), 2);
}

/// A reference is checked before any address is made of it.
#[test]
fn a_reference_beyond_all_addresses_is_refused() {
    let mut rig = Rig::<VectorAdd>::new(1, 8, 0);
    rig.command(State::Active);
    rig.budgets(Budgets { idle: 0, ..ENDLESS });
    let arena = [const { std::sync::atomic::AtomicU64::new(0) }; 4];
    let config = &rig.control().config;
    config.payload.store(arena.as_ptr().expose_provenance() as u64, Relaxed);
    config.payload_bytes.store(32, Relaxed);
    let mut ends = rig.ends(0);
    let at = |offset| VectorAddRequest::in_payload(1, offset);
    assert_eq!(ends.push_slice(&[at(20), at(24), at(!0 << 20), at(!0 - 15)]), 4);
    rig.whole();
    let statuses: Vec<u32> =
        ends.drain::<VectorAddResponse>().iter().map(|answer| answer.status).collect();
    let bad = status::BAD_PAYLOAD;
    assert_eq!(statuses, [status::PAYLOAD, bad, bad, bad]);
}

#[test]
fn commands_not_understood_are_counted_and_not_acknowledged() {
    let mut rig = Rig::<Picky>::new(1, 8, 0);
    let running = rig.launch();
    rig.command_and_wait(State::Active);
    rig.command(State::Faulted);
    rig.command(State::Launched);
    until("one of them is counted", || rig.channel(0).status.refused.load(Relaxed) > 0);
    rig.command_and_wait(State::Terminated);
    running.join();
    rig.check_left();
    // Two were written, but the channel may have seen only the second.
    assert!((1..=2).contains(&rig.channel(0).status.refused.load(Relaxed)));
}

#[test]
fn times_are_in_their_buckets() {
    let mut rig = Rig::<Timed>::new(1, 8, 0);
    rig.clock = Some(Arc::new(|_| TIME.load(Relaxed)));
    rig.command(State::Active);
    rig.budgets(Budgets { idle: 0, ..ENDLESS });
    let mut ends = rig.ends(0);
    for (took, bucket) in [(0, 0), (1, 0), (2, 1), (1023, 9), (1024, 10), (1 << 21, 21)] {
        assert!(ends.push(took));
        rig.whole();
        let Times { handler, queueing } = &rig.channel(0).times;
        assert_eq!((slowest(handler), slowest(queueing)), (bucket, 0), "{took} ns");
        assert_eq!(ends.drain::<u64>(), [took]);
    }
}

/// Where a slow handler waits, and its channel's clock.
struct Pace {
    gate: Gate,
    time: AtomicU64,
}

impl Pace {
    const fn new() -> Pace {
        Pace { gate: Gate::new(), time: AtomicU64::new(1 << 40) }
    }

    /// The handler of message `i`, which takes 2 to the power of `took[i]` nanoseconds, or no time.
    fn handle(&self, i: u64, took: &[u32]) -> u64 {
        self.gate.pass(i);
        self.time.fetch_add(took.get(i as usize).map_or(0, |took| 1 << took), Relaxed);
        i
    }

    /// Sends two messages while the handler of message `i` waits, and lets those below `open` be answered.
    fn send_during(&self, i: u64, ends: &mut rig::Ends, first: u64, open: u64) {
        until("a message is handled", || self.gate.begun.load(Acquire) == i + 1);
        assert_eq!(ends.push_slice(&[first, first + 1]), 2);
        self.gate.open(open);
    }

    /// Lets all go on, and ends the kernel when all before index `end` are answered; how many waited how
    /// long.
    fn end(&self, mut rig: Rig<impl Kernel>, running: rig::Running, end: u64) -> Vec<u64> {
        self.gate.open(u64::MAX);
        rig.consumes(0, end);
        rig.command(State::Terminated);
        running.join();
        rig.check_left();
        rig.channel(0).times.queueing.iter().map(|n| n.load(Relaxed)).collect()
    }
}

/// Declares a kernel of that pace.
macro_rules! paced {
    ($name:ident, $pace:ident, $took:expr) => {
        static $pace: Pace = Pace::new();
        ring_kernel! {
            struct $name;

            fn handle(request: &u64) -> u64 {
                $pace.handle(*request, &$took)
            }
        }
    };
}

paced!(InPairs, IN_PAIRS, [24, 0, 16]);
paced!(OneByOne, ONE_BY_ONE, [24, 20, 16]);

/// A message has waited since the last look that did not show it: those that come while others are
/// handled, for as long as these take, and not for what was before.
#[test]
fn messages_wait_since_the_last_look_that_did_not_show_them() {
    // So that the last two are in two chunks.
    let mut rig = Rig::<InPairs>::new(1, 8, 3);
    rig.clock = Some(Arc::new(|_| IN_PAIRS.time.load(Relaxed)));
    rig.command(State::Active);
    let mut ends = rig.ends(0);
    assert_eq!(ends.push_slice(&[0u64, 1]), 2);
    let running = rig.launch();
    for i in [0, 2] {
        IN_PAIRS.send_during(i, &mut ends, i + 2, i + 2);
    }
    let waited = IN_PAIRS.end(rig, running, 9);
    assert_eq!([waited[0], waited[24], waited[16]], [2, 2, 2]);
}

/// Nor are those forgotten that have waited longer, while more and more come behind them.
#[test]
fn a_message_that_waits_for_its_window_has_waited_since_it_came() {
    let mut rig = Rig::<OneByOne>::new(1, 16, 0);
    rig.clock = Some(Arc::new(|_| ONE_BY_ONE.time.load(Relaxed)));
    rig.processing(ring_shared::layout::Processing::Continuous as u32, 1);
    rig.command(State::Active);
    let mut ends = rig.ends(0);
    assert_eq!(ends.push_slice(&[0u64, 1, 2, 3]), 4);
    let running = rig.launch();
    for i in 0..3 {
        ONE_BY_ONE.send_during(i, &mut ends, 2 * i + 4, i + 1);
    }
    let waited = ONE_BY_ONE.end(rig, running, 10);
    assert_eq!(waited[24], 3, "messages 1 to 3, since before the first was handled: {waited:?}");
}

#[test]
fn times_and_heartbeat_are_renewed_while_a_launch_stays() {
    let mut rig = Rig::<Picky>::new(1, 8, 0);
    rig.command(State::Active);
    let mut ends = rig.ends(0);
    let running = rig.launch();
    assert!(ends.push(0u64));
    until("an answer", || ends.pop::<u64>().is_some());
    let sum = || rig.channel(0).times.handler.iter().map(|n| n.load(Relaxed)).sum::<u64>();
    until("the histogram", || sum() == 1);
    let beat = rig.channel(0).status.heartbeat.load(Relaxed);
    until("a heartbeat", || rig.channel(0).status.heartbeat.load(Relaxed) > beat);
    assert_eq!(rig.channel(0).status.processed.load(Relaxed), 1);
    assert!(rig.channel(0).status.ticks.load(Relaxed) > 0);
    rig.command(State::Terminated);
    running.join();
    rig.check_left();
}
