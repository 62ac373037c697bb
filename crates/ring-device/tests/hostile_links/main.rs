//! A channel of a kernel with ports whose neighbours on the device write what they like to what is theirs. It stays inside its
//! rings, handles no message that nobody told of, writes to no room that nobody gave it, never panics and never hangs: it ends
//! because of a corrupt ring, or goes on and obeys the host.
//!
//! Neighbours that play on the channel's own thread, when it rests and inside its handler, do the same for the same seed each
//! time; those on a thread of their own come at any moment.

mod guarded;
mod neighbour;
mod node;
#[path = "../rig/mod.rs"]
mod rig;

use guarded::GuardedRing;
use neighbour::{Manner, Neighbours, sent};
use node::{Node, Play, Rings, play};
use rig::{Dice, until};
use ring_device::{Kernel, ring_kernel};
use ring_shared::layout::{Exit, Routing, State};
use ring_shared::ring::{CONTROL, Control, MAX_START};
use ring_shared::{Message, Outbox};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};

/// The second word of a message whose first is `x`: what is no message has another.
fn seal(x: u64) -> u64 {
    (x ^ 0x5bf0_3635_0d2a_4c19).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1
}

/// The key of such a message: of four channels one, now and then none.
fn key(x: u64) -> u32 {
    if x & 0xff == 0 { u32::MAX } else { (x >> 8) as u32 % 4 }
}

/// What is emitted for a request of such words: none to two messages.
fn emissions(words: &[u64]) -> impl Iterator<Item = [u64; 2]> {
    let sum = words.iter().fold(7, |sum: u64, word| sum.wrapping_mul(31).wrapping_add(*word));
    (0..(sum >> 40) % 3).map(move |k| [sum ^ k, seal(sum ^ k)])
}

ring_kernel! {
    /// A thread for each message.
    struct Spread {
        entry: "test_spread",
        ports: { ON: [[u64; 2]; 2] by |message| key(message[0]) },
    }

    fn handle(request: &[u64; 2], out: &mut Ports) {
        play(Some(request));
        emissions(request).for_each(|message| out.emit(Spread::ON, message));
    }
}

ring_kernel! {
    /// Message after message, with a state.
    struct Ordered {
        entry: "test_ordered",
        ports: { ON: [[u64; 2]; 2] by |message| key(message[0]) },
    }

    fn handle(state: &mut u64, request: &[u64; 2], out: &mut Ports) {
        play(Some(request));
        *state = state.wrapping_add(1);
        emissions(request).for_each(|message| out.emit(Ordered::ON, message));
    }
}

ring_kernel! {
    /// As [`Spread`], of messages that do not fit a line.
    struct Large {
        entry: "test_large",
        ports: { ON: [[u64; 2]; 2] by |message| key(message[0]) },
    }

    fn handle(request: &[u64; 16], out: &mut Ports) {
        play(Some(request));
        emissions(request).for_each(|message| out.emit(Large::ON, message));
    }
}

/// Where indices begin: at none, where their low half comes round, where their upper half is largest.
const STARTS: [u64; 3] = [0, (1 << 32) - 9, MAX_START];

/// Rings for `K`: of so many slots each, their first message of index `start`.
fn rings<K: Kernel>(
    counts: [usize; 2],
    (of_input, of_output): (u32, u32),
    start: u64,
    routing: Routing,
) -> Rings {
    let inputs = (0..counts[0]).map(|_| GuardedRing::new::<K::Request>(of_input, start));
    let outputs = (0..counts[1]).map(|_| GuardedRing::new::<[u64; 2]>(of_output, start));
    Rings { inputs: inputs.collect(), outputs: outputs.collect(), routing }
}

/// Such rings at random.
fn some_rings<K: Kernel>(dice: &mut Dice) -> Rings {
    let routing = dice.pick(&[Routing::All, Routing::ByKey, Routing::ByIndex]);
    let outputs = if routing == Routing::ByIndex { 4 } else { dice.pick(&[1, 3]) };
    let capacities = (dice.pick(&[1, 4, 64]), dice.pick(&[2, 8, 64]));
    rings::<K>([dice.pick(&[1, 3]), outputs], capacities, dice.pick(&STARTS), routing)
}

/// Whether a request fits the one line that a link has.
fn fits_line<K: Kernel>() -> bool {
    K::Request::FITS_INLINE && K::Request::SPAN == 1
}

/// What must hold when a channel among such neighbours has left; how many messages it has handled.
fn check_left(node: &Node, exit: Option<Exit>, neighbours: &Neighbours, manner: Manner) -> u64 {
    let exit = exit.expect("the channel panicked");
    assert!(node.is_whole(), "written beside a ring");
    neighbours.check(seal, key);
    let inputs = node.rings.inputs.iter();
    let consumed: u64 = inputs.map(|ring| ring.consumed().wrapping_sub(ring.start())).sum();
    match exit {
        Exit::Asked => assert_eq!(node.state(), Some(State::Terminated)),
        Exit::CorruptRing if manner == Manner::Any => {
            assert_eq!(node.state(), Some(State::Faulted));
        }
        // Somebody else's message made a handler name a channel that is not there.
        Exit::NoSuchChannel if node.rings.routing == Routing::ByIndex => {
            return node.processed();
        }
        exit => panic!("left by {exit:?}"),
    }
    assert_eq!(consumed, node.processed(), "consumed and handled");
    node.processed()
}

/// A channel among neighbours that play on its thread, and end it after some turns.
fn on_its_thread<K: Kernel>(seed: u64, manner: Manner) -> u64 {
    let mut dice = Dice(seed);
    let turns = 100 + dice.roll(400);
    let rings = Arc::new(some_rings::<K>(&mut dice));
    let all = Neighbours::new(Arc::clone(&rings), dice.0, manner, fits_line::<K>());
    let all = Arc::new(Mutex::new(all));
    let of_thread = Arc::clone(&all);
    let mut node = Node::launch::<K>(rings, |terminator| {
        let mut turn = 0;
        Some(Box::new(move |request: Option<&[u64]>| {
            let mut all = of_thread.lock().expect("its thread has it alone");
            request.into_iter().for_each(|request| all.note_handled(request));
            turn += 1;
            if turn < turns {
                all.act();
            } else if turn == turns {
                terminator.terminate();
            }
        }) as Play)
    });
    let exit = node.left();
    check_left(&node, exit, &all.lock().expect("the thread has ended"), manner)
}

/// A channel among neighbours on a thread of their own.
fn beside_it<K: Kernel>(seed: u64, manner: Manner) -> u64 {
    let mut dice = Dice(seed);
    let rings = Arc::new(some_rings::<K>(&mut dice));
    let mut all = Neighbours::new(Arc::clone(&rings), dice.0, manner, fits_line::<K>());
    let mut node = Node::launch::<K>(rings, |_| None);
    node.until_active(); // it makes its inputs ready before that
    for turn in 0..2000 {
        all.act();
        if turn % 64 == 0 {
            std::thread::yield_now(); // the channel may want this core
        }
    }
    node.terminate();
    let exit = node.left();
    check_left(&node, exit, &all, manner)
}

/// Tries seeds from `first` on, and names the one that fails; each tells how many messages were handled.
fn seeds(first: u64, count: u64, scenario: impl Fn(u64) -> u64) {
    let count = match (cfg!(miri), cfg!(debug_assertions)) {
        (true, _) => 2,
        (_, true) => count / 8,
        _ => count,
    };
    let mut handled = 0;
    for seed in first..first + count {
        match catch_unwind(AssertUnwindSafe(|| scenario(seed))) {
            Ok(messages) => handled += messages,
            Err(panic) => {
                eprintln!("seed {seed}");
                resume_unwind(panic);
            }
        }
    }
    assert!(handled > count, "{handled} messages in {count} channels: the neighbours are too wild");
}

#[test]
fn neighbours_that_write_anything() {
    seeds(0, 1000, |seed| on_its_thread::<Spread>(seed, Manner::Any));
    seeds(10_000, 1000, |seed| on_its_thread::<Ordered>(seed, Manner::Any));
    seeds(20_000, 1000, |seed| on_its_thread::<Large>(seed, Manner::Any));
}

#[test]
fn neighbours_whose_lies_might_be_true() {
    seeds(30_000, 1000, |seed| on_its_thread::<Spread>(seed, Manner::Possible));
    seeds(40_000, 1000, |seed| on_its_thread::<Ordered>(seed, Manner::Possible));
    seeds(50_000, 1000, |seed| on_its_thread::<Large>(seed, Manner::Possible));
}

#[test]
fn neighbours_that_write_at_any_moment() {
    for (k, manner) in [Manner::Any, Manner::Possible].into_iter().enumerate() {
        let first = 60_000 + 30_000 * k as u64;
        seeds(first, 200, |seed| beside_it::<Spread>(seed, manner));
        seeds(first + 10_000, 200, |seed| beside_it::<Ordered>(seed, manner));
        seeds(first + 20_000, 200, |seed| beside_it::<Large>(seed, manner));
    }
}

/// For each way to have rings, and where indices begin.
fn each_way(each: impl Fn([usize; 2], u64, Routing)) {
    for routing in [Routing::All, Routing::ByKey, Routing::ByIndex] {
        for start in STARTS {
            for inputs in [1, 3] {
                let outputs: &[usize] = if routing == Routing::ByIndex { &[4] } else { &[1, 3] };
                outputs.iter().for_each(|outputs| each([inputs, *outputs], start, routing));
            }
        }
    }
}

/// Slots of each ring where one thing only is wrong.
const CAPACITY: u32 = 8;

/// A channel that takes messages.
fn active<K: Kernel>(counts: [usize; 2], start: u64, routing: Routing) -> Node {
    let rings = rings::<K>(counts, (CAPACITY, CAPACITY), start, routing);
    let node = Node::launch::<K>(Arc::new(rings), |_| None);
    node.until_active();
    node
}

/// Fails unless the channel ends by itself, because of a corrupt ring, and has handled `handled` messages.
fn is_corrupt(mut node: Node, handled: u64, what: &str) {
    assert_eq!(node.left(), Some(Exit::CorruptRing), "{what}");
    assert!(node.is_whole(), "{what}");
    assert_eq!((node.state(), node.processed()), (Some(State::Faulted), handled), "{what}");
}

fn impossible_tails<K: Kernel>() {
    each_way(|counts, start, routing| {
        let low = start as u32;
        for (first, tail) in [
            (low, low.wrapping_add(CAPACITY + 1)),
            (low, low.wrapping_add(2 * CAPACITY)),
            (low, low.wrapping_add(u32::MAX / 2)),
            (low.wrapping_add(CAPACITY), low.wrapping_add(CAPACITY + 1)),
            (low.wrapping_sub(CAPACITY), low.wrapping_add(1)),
            (low.wrapping_add(2), low.wrapping_add(1)),
            (low ^ 1 << 31, low.wrapping_add(CAPACITY)),
        ] {
            let node = active::<K>(counts, start, routing);
            let control = Control { credit: 0, early: 0, first, tail };
            let ring = node.rings.inputs.last().expect("an input").ring();
            ring.line(0).atoms[CONTROL].publish(control.to_words());
            is_corrupt(node, 0, &format!("first {first}, tail {tail} at {start}"));
        }
    });
}

#[test]
fn a_tail_that_cannot_be_ends_the_channel() {
    impossible_tails::<Spread>();
    impossible_tails::<Ordered>();
    impossible_tails::<Large>();
}

/// Words of a request that leads to two messages, to the channel with key `to`.
fn request_to(to: u32) -> [u64; 2] {
    let leads = |x: &u64| {
        let emitted: Vec<_> = emissions(&[*x, 0]).collect();
        emitted.len() == 2 && emitted.iter().all(|message| key(message[0]) == to)
    };
    [(0..).map(|k| k << 36 | k).find(leads).expect("one of some hundred"), 0]
}

/// The channel has filled an output and has more to send: what else than nothing its consumer could have taken, it cannot.
fn impossible_credits<K: Kernel<Request = [u64; 2]>>() {
    let request = request_to(0);
    each_way(|counts, start, routing| {
        for credit in [
            start + u64::from(CAPACITY) + 1,
            start + 2 * u64::from(CAPACITY),
            start + (1 << 32),
            start.wrapping_sub(1),
            start.wrapping_add(1 << 63),
            u64::MAX,
        ] {
            let node = active::<K>(counts, start, routing);
            let mut outbox = Outbox::new(node.rings.inputs[0].ring());
            let messages = [request; CAPACITY as usize / 2 + 1];
            assert_eq!(outbox.push_slice(&messages, start), Ok(messages.len()));
            let full = start + u64::from(CAPACITY);
            until("the output is full", || sent(&node.rings.outputs[0]) == full);
            node.rings.outputs[0].ring().credit().consumed.store(credit, Relaxed);
            is_corrupt(node, u64::from(CAPACITY) / 2, &format!("credit {credit} at {start}"));
        }
    });
}

#[test]
fn a_credit_beyond_what_was_sent_ends_the_channel() {
    impossible_credits::<Spread>();
    impossible_credits::<Ordered>();
}

/// Tails of long ago, and such as lie so far ahead that they are taken for that.
#[test]
fn a_tail_behind_tells_of_nothing() {
    each_way(|counts, start, routing| {
        for behind in [1, CAPACITY, CAPACITY + 1, u32::MAX / 2, 1 << 31] {
            let mut node = active::<Spread>(counts, start, routing);
            let tail = (start as u32).wrapping_sub(behind);
            let control = Control { credit: u32::MAX, early: u32::MAX, first: 0, tail };
            node.rings.inputs[0].ring().line(0).atoms[CONTROL].publish(control.to_words());
            node.terminate();
            assert_eq!((node.left(), node.processed()), (Some(Exit::Asked), 0), "{behind} behind");
            assert!(node.is_whole());
        }
    });
}
