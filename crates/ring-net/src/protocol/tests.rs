//! Clients and a server over an engine that loses frames, doubles them and holds them back, and a server that is killed.

use super::client::{ClientSession, Next, Phase};
use super::server::{Choices, Sessions};
use crate::frame::{Description, Frame, Kind};
use crate::refusal::Refusal;
use crate::transport::{ClientId, Connection, EngineError, Fill, Listener};
use ring_host::kernels::Echo;
use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::rc::Rc;
use std::time::{Duration, Instant};

/// Numbers that look drawn at random, the same each time.
struct Drawn(Cell<u64>);

impl Drawn {
    fn next(&self) -> u64 {
        let mut x = self.0.get();
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        self.0.set(x);
        x.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16
    }

    /// One of `of`.
    fn is(&self, of: u64) -> bool {
        of > 0 && self.next().is_multiple_of(of)
    }
}

/// How often the engine loses a frame, doubles it, lets it wait for others, or has no room: one of so many; 0 is never.
#[derive(Clone, Copy, Default)]
struct Faults {
    loses: u64,
    doubles: u64,
    holds: u64,
    is_full: u64,
}

/// What is on its way.
struct Ways {
    up: VecDeque<Vec<u8>>,
    down: HashMap<ClientId, VecDeque<Vec<u8>>>,
    faults: Faults,
}

/// The engine, of which both sides have an end.
struct Engine {
    ways: RefCell<Ways>,
    drawn: Drawn,
    /// How often the server has given back what is kept for a client.
    forgotten: Cell<usize>,
}

impl Engine {
    fn put(&self, to: Option<ClientId>, len: usize, fill: Fill<'_>) -> bool {
        let mut ways = self.ways.borrow_mut();
        let faults = ways.faults;
        if self.drawn.is(faults.is_full) {
            return false;
        }
        let mut frame = vec![0xee; len];
        fill(&mut frame);
        let way = match to {
            None => &mut ways.up,
            Some(client) => ways.down.entry(client).or_default(),
        };
        if self.drawn.is(faults.loses) {
            return true;
        }
        if self.drawn.is(faults.doubles) {
            way.push_back(frame.clone());
        }
        let at = if self.drawn.is(faults.holds) {
            self.drawn.next() as usize % (way.len() + 1)
        } else {
            way.len()
        };
        way.insert(at, frame);
        true
    }
}

/// An end of the engine. Tests run on one thread, and no end leaves it.
struct End(Rc<Engine>, ClientId);

// SAFETY: tests' ends stay on the thread that made them: nothing here is sent to another one.
unsafe impl Send for End {}

/// Bytes of frames that may be on their way: 12 requests, or 8 answers, which is a frame of them.
const ON_THEIR_WAY: usize = 12 * 16;

impl Connection for End {
    fn service(&self) -> &str {
        "test"
    }

    fn client(&self) -> ClientId {
        self.1
    }

    fn bytes_on_their_way(&self) -> usize {
        ON_THEIR_WAY
    }

    fn frame_bytes(&self) -> usize {
        1024
    }

    fn send(&mut self, len: usize, fill: Fill<'_>) -> Result<bool, EngineError> {
        Ok(self.0.put(None, len, fill))
    }

    fn receive(&mut self, read: &mut dyn FnMut(&[u8])) -> Result<bool, EngineError> {
        let frame = self.0.ways.borrow_mut().down.get_mut(&self.1).and_then(VecDeque::pop_front);
        Ok(frame.map(|frame| read(&frame)).is_some())
    }

    fn rename(&mut self, client: ClientId) -> Result<(), EngineError> {
        self.0.ways.borrow_mut().down.remove(&self.1);
        self.1 = client;
        Ok(())
    }
}

impl Listener for End {
    fn service(&self) -> &str {
        "test"
    }

    fn frame_bytes(&self) -> usize {
        1024
    }

    fn bytes_on_their_way(&self) -> usize {
        ON_THEIR_WAY
    }

    fn send(&mut self, to: ClientId, len: usize, fill: Fill<'_>) -> Result<bool, EngineError> {
        Ok(self.0.put(Some(to), len, fill))
    }

    fn receive(&mut self, read: &mut dyn FnMut(&[u8])) -> Result<bool, EngineError> {
        let frame = self.0.ways.borrow_mut().up.pop_front();
        Ok(frame.map(|frame| read(&frame)).is_some())
    }

    fn forget(&mut self, _: ClientId) {
        self.0.forgotten.set(self.0.forgotten.get() + 1);
    }
}

/// A request of 16 bytes: whose it is, and its number. The answer has the number doubled behind it.
fn request(client: u64, number: u64) -> [u8; 16] {
    bytemuck::cast([client, number])
}

fn answer(request: &[u8]) -> [u8; 24] {
    let [client, number]: [u64; 2] = bytemuck::pod_read_unaligned(request);
    bytemuck::cast([client, number, 2 * number])
}

fn description() -> Description {
    Description { bytes: [16, 24], ..Description::of::<Echo>() }
}

const CHOICES: Choices =
    Choices { clients: 64, window: 32, batch: 8, keeps: Duration::from_secs(3600) };

/// A client, and what it has had.
struct Caller {
    session: ClientSession,
    end: End,
    index: u64,
    sent: u64,
    answered: u64,
    unknown: Vec<u64>,
    /// It takes nothing.
    is_slow: bool,
}

/// A server, a kernel behind it, and clients.
struct World {
    engine: Rc<Engine>,
    now: Instant,
    server: Sessions,
    end: End,
    choices: Choices,
    kernel: VecDeque<[u8; 16]>,
    room: usize,
    /// The kernel answers nothing.
    is_held: bool,
    /// How often each request was handled, by client and number.
    handled: HashMap<(u64, u64), u32>,
    callers: Vec<Caller>,
}

impl World {
    fn new(seed: u64, faults: Faults, callers: u64, choices: Choices) -> World {
        let ways = Ways { up: VecDeque::new(), down: HashMap::new(), faults };
        let engine = Rc::new(Engine {
            ways: RefCell::new(ways),
            drawn: Drawn(Cell::new(seed | 1)),
            forgotten: Cell::new(0),
        });
        let now = Instant::now();
        let caller = |index| {
            let id = ClientId(crate::random());
            Caller {
                session: ClientSession::new(id, description(), 64),
                end: End(Rc::clone(&engine), id),
                index,
                sent: 0,
                answered: 0,
                unknown: Vec::new(),
                is_slow: false,
            }
        };
        World {
            now,
            server: Sessions::new(description(), choices, now),
            end: End(Rc::clone(&engine), ClientId(0)),
            choices,
            kernel: VecDeque::new(),
            room: 40,
            is_held: false,
            handled: HashMap::new(),
            callers: (0..callers).map(caller).collect(),
            engine,
        }
    }

    /// The server is killed: what it and its kernel had is gone, but for frames on their way. Another one begins.
    fn kill(&mut self) {
        self.kernel.clear();
        self.server = Sessions::new(description(), self.choices, self.now);
    }

    /// Each has a turn, and a millisecond passes; each caller sends until it has sent `all`.
    fn step(&mut self, all: u64) {
        self.now += Duration::from_millis(1);
        let drawn = &Rc::clone(&self.engine).drawn;
        for caller in &mut self.callers {
            let frames = drawn.next() % 4;
            for _ in 0..frames {
                let (session, now) = (&mut caller.session, self.now);
                let _ =
                    Connection::receive(&mut caller.end, &mut |bytes| session.receive(bytes, now));
            }
            for _ in 0..drawn.next() % 12 {
                if caller.sent < all
                    && let Some(slot) = caller.session.slot()
                {
                    slot.copy_from_slice(&request(caller.index, caller.sent));
                    assert_eq!(caller.session.push(), caller.sent);
                    caller.sent += 1;
                }
            }
            caller.session.transmit(&mut caller.end, self.now).unwrap();
            while !caller.is_slow {
                let mut read = [0; 24];
                let next = caller.answered + caller.unknown.len() as u64;
                match caller.session.take(&mut read) {
                    Next::Nothing => break,
                    Next::Unknown(number) => {
                        assert_eq!(number, next, "in order");
                        caller.unknown.push(number);
                    }
                    Next::Answer => {
                        assert_eq!(read, answer(&request(caller.index, next)), "in order");
                        caller.answered += 1;
                    }
                }
            }
        }
        let (kernel, room, handled) = (&mut self.kernel, self.room, &mut self.handled);
        let mut give = |messages: &[u8]| {
            let messages = messages.chunks_exact(16);
            let taken = messages.len().min(room - kernel.len());
            for message in messages.take(taken) {
                let message: [u8; 16] = message.try_into().unwrap();
                *handled
                    .entry(bytemuck::cast_slice::<_, [u64; 2]>(&[message])[0].into())
                    .or_default() += 1;
                kernel.push_back(message);
            }
            taken
        };
        for _ in 0..drawn.next() % 16 {
            let mut frame = None;
            Listener::receive(&mut self.end, &mut |bytes| frame = Some(bytes.to_vec())).unwrap();
            let Some(frame) = frame else { break };
            self.server.receive(&frame, self.now, &mut give);
        }
        self.server.give(5, &mut give);
        for _ in 0..if self.is_held { 0 } else { drawn.next() % 40 } {
            let Some(message) = self.kernel.pop_front() else { break };
            self.server.answer(&answer(&message));
        }
        self.server.transmit(self.now, &mut self.end).unwrap();
        self.server.sweep(self.now);
    }

    fn are_done(&self, all: u64) -> bool {
        self.callers.iter().filter(|caller| !caller.is_slow).all(|caller| caller.done() == all)
    }

    /// Steps until all requests of all callers are answered or unknown.
    fn finish(&mut self, all: u64) {
        for _ in 0..1_000_000 {
            if self.are_done(all) {
                return;
            }
            self.step(all);
        }
        panic!(
            "nothing comes to an end: {:?}",
            self.callers.iter().map(Caller::done).collect::<Vec<_>>()
        );
    }

    /// What was answered was handled once; what is unknown once, or not at all.
    fn check(&self, all: u64) {
        for caller in &self.callers {
            for number in 0..all {
                let times = self.handled.get(&(caller.index, number)).copied().unwrap_or(0);
                let most = 1;
                let least = u32::from(!caller.unknown.contains(&number));
                assert!(
                    (least..=most).contains(&times),
                    "client {} request {number}: handled {times} times",
                    caller.index
                );
            }
        }
    }
}

impl Caller {
    fn done(&self) -> u64 {
        self.answered + self.unknown.len() as u64
    }
}

const ALL_FAULTS: Faults = Faults { loses: 10, doubles: 10, holds: 10, is_full: 10 };

#[test]
fn each_request_is_answered_once_and_in_order_whatever_the_engine_loses() {
    let each = [
        Faults::default(),
        Faults { loses: 5, ..Faults::default() },
        Faults { doubles: 3, ..Faults::default() },
        Faults { holds: 3, ..Faults::default() },
        Faults { is_full: 2, ..Faults::default() },
        ALL_FAULTS,
    ];
    for (seed, faults) in (1..).zip(each) {
        let mut world = World::new(seed * 977, faults, 5, CHOICES);
        world.finish(2000);
        world.check(2000);
        for caller in &world.callers {
            assert_eq!(caller.unknown, [0; 0], "no server has ended");
        }
        let counts = world.server.counts();
        assert_eq!((counts.clients, counts.requests, counts.answers), (5, 10_000, 10_000));
        assert_eq!((counts.garbage, world.server.unanswered()), (0, 0), "{counts:?}");
        if faults.loses + faults.doubles + faults.holds == 0 {
            assert_eq!((counts.sent_again, counts.not_taken), (0, 0), "{counts:?}");
        }
    }
}

#[test]
fn answers_wait_until_those_before_have_come_and_no_longer() {
    let mut world = World::new(11, Faults::default(), 1, CHOICES);
    world.finish(10);
    let begun = world.now;
    let mut caller = world.callers.pop().unwrap();
    for number in 10..22 {
        caller.session.slot().unwrap().copy_from_slice(&request(0, number));
        caller.session.push();
        caller.sent += 1;
        caller.session.transmit(&mut caller.end, world.now).unwrap();
    }
    // The client looks at nothing that comes.
    for _ in 0..6 {
        world.step(0);
    }
    assert_eq!(world.server.counts().answers, 22);
    let answers = |bytes: &Vec<u8>| {
        let (frame, _) = Frame::parse(bytes).unwrap();
        if frame.kind == Kind::Answers { frame.count } else { 0 }
    };
    let on_their_way: u32 =
        world.engine.ways.borrow().down[&caller.session.id()].iter().map(answers).sum();
    assert_eq!(on_their_way as usize, ON_THEIR_WAY / 24);
    // Then it does, and tells what has come; it would ask for what is missing 20 ms later only.
    world.callers.push(caller);
    world.finish(22);
    assert!(world.now - begun < Duration::from_millis(20), "{:?}", world.now - begun);
    assert_eq!(world.server.counts().sent_again, 0);
    world.check(22);
}

#[test]
fn what_a_killed_server_had_is_unknown_and_nothing_else() {
    for faults in [Faults::default(), ALL_FAULTS] {
        let mut world = World::new(4711, faults, 3, CHOICES);
        let mut unknown = 0;
        let mut total = 0;
        while !world.are_done(5000) {
            for _ in 0..world.engine.drawn.next() % 60 {
                world.step(5000);
            }
            world.kill();
            total += 1;
        }
        world.check(5000);
        for caller in &world.callers {
            unknown += caller.unknown.len() as u64;
        }
        // No more than were on their way, of each client, each time.
        assert!(
            unknown > 0 && unknown <= total * 3 * u64::from(CHOICES.window),
            "{unknown} of {total}"
        );
    }
}

#[test]
fn a_request_that_was_not_sent_when_a_server_was_killed_goes_to_the_next_one() {
    let mut world = World::new(3, Faults::default(), 1, CHOICES);
    while *world.callers[0].session.phase() == Phase::Opening {
        world.step(0);
    }
    // Nothing can be sent; then the server is gone.
    world.engine.ways.borrow_mut().faults.is_full = 1;
    for _ in 0..10 {
        world.step(7);
    }
    world.kill();
    world.engine.ways.borrow_mut().faults.is_full = 0;
    world.finish(7);
    assert_eq!((world.callers[0].answered, world.callers[0].unknown.len()), (7, 0));
    world.check(7);
}

#[test]
fn a_server_that_ends_says_what_it_has_not_taken() {
    let mut world = World::new(5, Faults::default(), 2, CHOICES);
    world.finish(100);
    // Requests that a server does not read any more.
    for caller in &mut world.callers {
        let slot = caller.session.slot().unwrap();
        slot.copy_from_slice(&request(caller.index, 100));
        caller.session.push();
        caller.sent += 1;
        caller.session.transmit(&mut caller.end, world.now).unwrap();
    }
    world.engine.ways.borrow_mut().up.clear();
    let long = "and more ".repeat(1000);
    world.server.end(&format!("it is \x1b[31mtired {long}"), world.now, &mut world.end).unwrap();
    let caller = &mut world.callers[0];
    let (session, now) = (&mut caller.session, world.now);
    while Connection::receive(&mut caller.end, &mut |bytes| session.receive(bytes, now)).unwrap() {}
    let why = session.heard().1.unwrap();
    assert!(why.starts_with("it is ?[31mtired and more") && why.len() == 256, "{why}");
    assert_eq!(*session.phase(), Phase::Opening);
    world.kill();
    world.finish(101);
    world.check(101);
    for caller in &world.callers {
        assert_eq!(caller.unknown.len(), 0, "the server had not taken it");
    }
}

#[test]
fn answers_for_which_there_was_no_room_are_sent_before_the_end() {
    let mut world = World::new(15, Faults::default(), 1, CHOICES);
    world.finish(10);
    world.is_held = true;
    for _ in 0..30 {
        world.step(20);
    }
    assert_eq!(world.kernel.len(), 10);
    for message in world.kernel.drain(..) {
        world.server.answer(&answer(&message));
    }
    // There is no room for a frame, and a moment later there is.
    world.engine.ways.borrow_mut().faults.is_full = 1;
    world.server.transmit(world.now, &mut world.end).unwrap();
    world.engine.ways.borrow_mut().faults.is_full = 0;
    world.server.end("it is tired", world.now, &mut world.end).unwrap();
    world.finish(20);
    world.check(20);
    assert_eq!((world.callers[0].answered, world.callers[0].unknown.len()), (20, 0));
}

#[test]
fn what_a_kernel_has_not_got_when_its_server_ends_goes_to_the_next_one() {
    let mut world = World::new(12, Faults::default(), 2, CHOICES);
    world.finish(10);
    // The kernel takes nothing, so that requests wait in the server.
    world.room = 0;
    for _ in 0..30 {
        world.step(20);
    }
    assert_eq!(world.server.unanswered(), 20);
    world.server.end("its kernel has failed", world.now, &mut world.end).unwrap();
    // It may be asked to go on none the less, and has clients again.
    world.room = 40;
    world.finish(20);
    world.check(20);
    for caller in &world.callers {
        assert_eq!((caller.answered, caller.unknown.len()), (20, 0));
    }
    assert_eq!(world.server.counts().opened, 4);
}

#[test]
fn answers_of_a_kernel_that_has_outlived_its_clients_are_nobodys() {
    let mut world = World::new(13, Faults::default(), 2, CHOICES);
    world.finish(10);
    world.is_held = true;
    for _ in 0..30 {
        world.step(20);
    }
    world.is_held = false;
    let given = world.kernel.len();
    assert_eq!(given, 20);
    world.server.end("it is tired", world.now, &mut world.end).unwrap();
    for _ in 0..given {
        let message = world.kernel.pop_front().unwrap();
        world.server.answer(&answer(&message));
    }
    assert_eq!((world.server.unanswered(), world.server.counts().clients), (0, 0));
    world.server.transmit(world.now, &mut world.end).unwrap();
    world.finish(20);
    world.check(20);
}

#[test]
fn a_client_that_takes_nothing_hinders_no_other_one() {
    let mut world = World::new(6, Faults::default(), 3, CHOICES);
    world.callers[1].is_slow = true;
    world.finish(3000);
    let slow = &mut world.callers[1];
    assert_eq!(slow.sent, 32, "the window of the server");
    assert_eq!(slow.session.slot(), None);
    assert_eq!(slow.session.ready(), 32);
    slow.is_slow = false;
    world.finish(3000);
    world.check(3000);
}

#[test]
fn clients_are_refused_with_the_reason() {
    let mut world = World::new(7, Faults::default(), 3, Choices { clients: 2, ..CHOICES });
    for _ in 0..300 {
        world.step(1);
    }
    let refused = |caller: &&Caller| {
        *caller.session.phase() == Phase::Refused(Box::new(Refusal::TooManyClients))
    };
    assert_eq!(world.callers.iter().filter(refused).count(), 1);
    assert_eq!(world.callers.iter().filter(|caller| caller.answered == 1).count(), 2);
    // One that leaves makes room for another.
    let at = world.callers.iter().position(|caller| caller.answered == 1).unwrap();
    let caller = &mut world.callers[at];
    caller.session.leave(&mut caller.end);
    world.step(1);
    let other = Description { bytes: [16, 32], ..description() };
    for (wanted, is_taken) in [(other, false), (description(), true)] {
        let id = ClientId(crate::random());
        let mut session = ClientSession::new(id, wanted, 64);
        let mut end = End(Rc::clone(&world.engine), id);
        session.transmit(&mut end, world.now).unwrap();
        for _ in 0..10 {
            world.step(1);
        }
        while Connection::receive(&mut end, &mut |bytes| session.receive(bytes, world.now)).unwrap()
        {
        }
        match session.phase() {
            Phase::Open(_) => assert!(is_taken),
            Phase::Refused(refusal) => {
                assert!(!is_taken && refusal.to_string().contains("of 32 bytes"), "{refusal}");
            }
            Phase::Opening => panic!("no answer"),
        }
    }
}

#[test]
fn a_session_is_kept_for_a_while_and_what_was_on_its_way_is_unknown_then() {
    let choices = Choices { keeps: Duration::from_millis(100), ..CHOICES };
    let mut world = World::new(8, Faults::default(), 1, choices);
    world.finish(5);
    // The client sends one more and does nothing for long; its answer is lost.
    let caller = &mut world.callers[0];
    caller.session.slot().unwrap().copy_from_slice(&request(0, 5));
    caller.session.push();
    caller.sent += 1;
    caller.session.transmit(&mut caller.end, world.now).unwrap();
    let caller = world.callers.pop().unwrap();
    for _ in 0..300 {
        world.step(0);
    }
    assert_eq!(world.server.counts().given_up, 1);
    world.engine.ways.borrow_mut().down.clear();
    world.callers.push(caller);
    world.finish(8);
    assert_eq!(world.callers[0].unknown, [5]);
    world.check(8);
}

#[test]
fn garbage_is_counted_and_hurts_nobody() {
    let mut world = World::new(9, ALL_FAULTS, 2, CHOICES);
    let all = 1500;
    while !world.are_done(all) {
        let mut bytes: Vec<u8> =
            (0..world.engine.drawn.next() % 200).map(|_| world.engine.drawn.next() as u8).collect();
        // Some begin as frames do, some are a client's own and then changed, with numbers that fit nothing.
        let drawn = world.engine.drawn.next();
        let own = &world.callers[0].session;
        let session = if let Phase::Open(session) = own.phase() { *session } else { 0 };
        let kinds = [
            Kind::Open,
            Kind::Requests,
            Kind::Ask,
            Kind::Answers,
            Kind::Opened,
            Kind::Ended,
            Kind::State,
            Kind::Stranger,
        ];
        if drawn.is_multiple_of(2) && bytes.len() >= crate::frame::HEADER_BYTES {
            let frame = Frame {
                kind: kinds[drawn as usize / 2 % kinds.len()],
                count: (drawn >> 8) as u32 % 5,
                client: if drawn >> 20 & 1 == 0 { own.id() } else { ClientId(drawn.into()) },
                session: session ^ 1,
                first: drawn,
                received: drawn >> 7,
            };
            frame.write(&mut bytes);
        }
        let mut ways = world.engine.ways.borrow_mut();
        match drawn >> 30 & 1 {
            0 => ways.up.push_back(bytes),
            _ => ways.down.entry(world.callers[0].session.id()).or_default().push_back(bytes),
        }
        drop(ways);
        world.step(all);
    }
    world.check(all);
    assert!(world.server.counts().garbage > 0);
    for caller in &world.callers {
        assert_eq!(caller.unknown, [0; 0]);
    }
}

#[test]
fn numbers_at_the_end_of_all_numbers_are_garbage() {
    let mut world = World::new(10, Faults::default(), 1, CHOICES);
    world.finish(3);
    let Phase::Open(session) = *world.callers[0].session.phase() else { panic!("it is open") };
    let client = world.callers[0].session.id();
    let mut give = |messages: &[u8]| messages.len() / 16;
    let mut garbage = 0;
    for (kind, id, first, received) in [
        (Kind::Open, ClientId(1), u64::MAX, 0),
        (Kind::Open, ClientId(2), 1 << 63, 0),
        (Kind::Requests, client, u64::MAX, 3),
        (Kind::Requests, client, 3 + 32, 3),
        (Kind::Requests, client, 3, u64::MAX),
        (Kind::Ask, client, 3, 4),
    ] {
        let mut bytes = vec![0; crate::frame::HEADER_BYTES];
        match kind {
            Kind::Open => bytes.extend(bytemuck::bytes_of(&description())),
            _ => bytes.extend([0; 16]),
        }
        let frame = Frame { first, received, count: 1, ..Frame::new(kind, id, session) };
        frame.write(&mut bytes);
        world.server.receive(&bytes, world.now, &mut give);
        garbage += 1;
        assert_eq!(world.server.counts().garbage, garbage, "{frame:?}");
    }
    world.finish(100);
    world.check(100);
}

#[test]
fn little_is_kept_for_clients_that_have_no_session() {
    let mut world = World::new(14, Faults::default(), 1, CHOICES);
    world.finish(3);
    let before = world.engine.forgotten.get();
    let mut give = |_: &[u8]| panic!("nothing of theirs is taken");
    for stranger in 0..1000 {
        let mut bytes = [0; crate::frame::HEADER_BYTES];
        Frame::new(Kind::Ask, ClientId(stranger), 1).write(&mut bytes);
        world.server.receive(&bytes, world.now, &mut give);
        world.server.transmit(world.now, &mut world.end).unwrap();
    }
    // All within a moment, so that only the last ones may not have had their answers.
    assert_eq!(world.engine.forgotten.get() - before, 1000 - 2 * CHOICES.clients);
    world.now += Duration::from_secs(3);
    world.server.transmit(world.now, &mut world.end).unwrap();
    assert_eq!(world.engine.forgotten.get() - before, 1000);
    world.finish(100);
    world.check(100);
}
