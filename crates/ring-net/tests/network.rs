//! The engine between hosts, between two sessions and between two processes, over loopback.
#![allow(missing_docs)]

use ring_net::{
    network::{
        ConnectError, Dropped, Endpoints, ListenError, MAX_NAME_BYTES, NameError,
        NetworkConnection, NetworkListener, QUEUE_FRAMES, connect_as, listen, listen_with_queue,
        services,
    },
    transport::{ClientId, Connection, Listener, MAX_FRAME_BYTES, Silence},
};
use std::{
    env,
    io::{self, BufRead, BufReader},
    net::{Shutdown, TcpListener, TcpStream},
    num::NonZeroUsize,
    process::{Child, Command, Stdio},
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};
use zenoh::{Wait, qos::CongestionControl};

/// Longest that a test waits for something that is to happen.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long something is not to happen.
const QUIET: Duration = Duration::from_millis(300);
/// The endpoint of a server that runs in a process of its own.
const SERVER_AT: &str = "RING_NET_TEST_SERVER_AT";
/// The endpoint of the server of a client that runs in a process of its own.
const CLIENT_TO: &str = "RING_NET_TEST_CLIENT_TO";

const ALICE: ClientId = ClientId(0xa11ce);
const BOB: ClientId = ClientId(0xb0b << 100);

/// A TCP endpoint on loopback that nobody listens on.
fn free_endpoint() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    format!("tcp/{}", listener.local_addr().unwrap())
}

fn at(endpoint: &str) -> zenoh::Config {
    Endpoints::at(endpoint).config().unwrap()
}

fn to(endpoint: &str) -> zenoh::Config {
    Endpoints::to(endpoint).config().unwrap()
}

/// Repeats it until it says something, for [`PATIENCE`] at most.
fn until<T>(what: &str, mut attempt: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(done) = attempt() {
            return done;
        }
        assert!(start.elapsed() < PATIENCE, "{what} did not happen within {PATIENCE:?}");
        thread::sleep(Duration::from_micros(200));
    }
}

fn put(frame: &[u8]) -> impl FnMut(&mut [u8]) {
    move |memory| memory.copy_from_slice(frame)
}

fn client_sends(client: &mut NetworkConnection, frame: &[u8]) {
    until("sending to the server", || {
        client.send(frame.len(), &mut put(frame)).unwrap().then_some(())
    });
}

fn server_sends(server: &mut NetworkListener, to: ClientId, frame: &[u8]) {
    until("sending to a client", || {
        server.send(to, frame.len(), &mut put(frame)).unwrap().then_some(())
    });
}

fn client_has(client: &mut NetworkConnection) -> Option<Vec<u8>> {
    let mut frame = Vec::new();
    client.receive(&mut |bytes| frame = bytes.to_vec()).unwrap().then_some(frame)
}

fn server_has(server: &mut NetworkListener) -> Option<Vec<u8>> {
    let mut frame = Vec::new();
    server.receive(&mut |bytes| frame = bytes.to_vec()).unwrap().then_some(frame)
}

fn client_gets(client: &mut NetworkConnection) -> Vec<u8> {
    until("a frame from the server", || client_has(client))
}

fn server_gets(server: &mut NetworkListener) -> Vec<u8> {
    until("a frame from a client", || server_has(server))
}

#[test]
fn frames_go_both_ways_in_order() {
    let endpoint = free_endpoint();
    let mut server = listen("echo", at(&endpoint)).unwrap();
    let mut alice = connect_as("echo", ALICE, to(&endpoint), QUEUE_FRAMES).unwrap();
    let mut bob = connect_as("echo", BOB, to(&endpoint), QUEUE_FRAMES).unwrap();
    // Of every length that matters: none, one that fits a batch, and one that has to be cut in pieces.
    for len in [0, 1, 64, 4096, 65_000, MAX_FRAME_BYTES] {
        for (id, client) in [(ALICE, &mut alice), (BOB, &mut bob)] {
            let frame: Vec<u8> = (0..len).map(|i| (i % 251) as u8).collect();
            client_sends(client, &frame);
            assert_eq!(server_gets(&mut server), frame);
            server_sends(&mut server, id, &frame);
            assert_eq!(client_gets(client), frame);
        }
    }
    // Of a burst some may be dropped, but those that come do so in order.
    let mut last = None;
    for round in 0..50_u32 {
        for i in 0..100 {
            client_sends(&mut alice, &(round * 100 + i).to_le_bytes());
        }
        let first = u32::from_le_bytes(server_gets(&mut server).try_into().unwrap());
        assert!(last < Some(first), "{first} came after {last:?}");
        last = Some(first);
        while let Some(frame) = server_has(&mut server) {
            let next = u32::from_le_bytes(frame.try_into().unwrap());
            assert!(last < Some(next), "{next} came after {last:?}");
            last = Some(next);
        }
    }
    assert_eq!((server.dropped().too_long, alice.dropped()), (0, Dropped::default()));
    // Neither got what was for the other.
    thread::sleep(QUIET);
    assert_eq!(client_has(&mut alice), None);
    assert_eq!(client_has(&mut bob), None);
}

#[test]
fn nothing_is_sent_to_who_is_not_there() {
    let endpoint = free_endpoint();
    let mut alice = connect_as("later", ALICE, to(&endpoint), QUEUE_FRAMES).unwrap();
    assert_eq!(alice.send(1, &mut |_| panic!("nobody is there")), Ok(false));
    let mut server = listen("later", at(&endpoint)).unwrap();
    // The client finds the server that came after it.
    client_sends(&mut alice, b"hello");
    assert_eq!(server_gets(&mut server), b"hello");
    assert_eq!(server.send(BOB, 1, &mut |_| panic!("nobody is there")), Ok(false));
    server_sends(&mut server, ALICE, b"welcome");
    assert_eq!(client_gets(&mut alice), b"welcome");
    // Forgotten is what is kept for a client, not the client.
    server.forget(ALICE);
    server.forget(BOB);
    server_sends(&mut server, ALICE, b"again");
    assert_eq!(client_gets(&mut alice), b"again");
    drop(alice);
    until("losing a client that has gone", || {
        (!server.send(ALICE, 1, &mut |_| ()).unwrap()).then_some(())
    });
}

#[test]
fn a_renamed_client_gets_the_frames_of_its_new_name_only() {
    let endpoint = free_endpoint();
    let mut server = listen("rename", at(&endpoint)).unwrap();
    let mut client = connect_as("rename", ALICE, to(&endpoint), QUEUE_FRAMES).unwrap();
    server_sends(&mut server, ALICE, b"to alice");
    thread::sleep(QUIET);
    client.rename(BOB).unwrap();
    server_sends(&mut server, BOB, b"to bob");
    assert_eq!(client_gets(&mut client), b"to bob");
    until("losing the former name", || {
        (!server.send(ALICE, 1, &mut |_| ()).unwrap()).then_some(())
    });
    client_sends(&mut client, b"from bob");
    assert_eq!(server_gets(&mut server), b"from bob");
    assert_eq!(client_has(&mut client), None);
}

#[test]
fn a_second_server_of_a_name_is_refused() {
    let endpoint = free_endpoint();
    let first = listen("single", at(&endpoint)).unwrap();
    let refused = listen("single", to(&endpoint)).unwrap_err();
    assert!(
        matches!(&refused, ListenError::AlreadyServed { name, .. } if name == "single"),
        "{refused}"
    );
    // The endpoint is taken, too.
    let taken = listen("other", at(&endpoint)).unwrap_err();
    assert!(matches!(&taken, ListenError::Engine(_)), "{taken}");
    let other = listen("other", to(&endpoint)).unwrap();
    assert_eq!(services(to(&endpoint)).unwrap(), ["single"], "of whom it connects to");
    drop(other);
    drop(first);
    let again = listen("single", at(&endpoint)).unwrap();
    assert_eq!(services(to(&endpoint)).unwrap(), ["single"]);
    drop(again);
    assert_eq!(services(to(&endpoint)).unwrap(), [""; 0]);
}

#[test]
fn names_are_refused() {
    for (name, character) in
        [("a/b", '/'), ("*", '*'), ("a$b", '$'), ("what?", '?'), ("a#", '#'), ("@a", '@')]
    {
        let expected = NameError::Character { name: name.to_owned(), character };
        let refused = connect_as(name, ALICE, zenoh::Config::default(), QUEUE_FRAMES).unwrap_err();
        assert_eq!(refused, ConnectError::Name(expected.clone()));
        let refused = listen(name, zenoh::Config::default()).unwrap_err();
        assert_eq!(refused, ListenError::Name(expected));
    }
    let refused = connect_as("", ALICE, zenoh::Config::default(), QUEUE_FRAMES).unwrap_err();
    assert_eq!(refused, ConnectError::Name(NameError::Empty));
    let bytes = MAX_NAME_BYTES + 1;
    let refused =
        connect_as(&"n".repeat(bytes), ALICE, zenoh::Config::default(), QUEUE_FRAMES).unwrap_err();
    assert_eq!(refused, ConnectError::Name(NameError::TooLong { bytes }));
    // What only looks odd is a name.
    let endpoint = free_endpoint();
    for name in ["a@b", "Größe 1", "x.y-z", &"n".repeat(MAX_NAME_BYTES)] {
        let server = listen(name, at(&endpoint)).unwrap();
        assert_eq!(services(to(&endpoint)).unwrap(), [name]);
        drop(server);
    }
}

#[test]
fn endpoints_are_refused() {
    let refused = Endpoints::at("not an endpoint").config().unwrap_err();
    assert!(refused.said.contains("not an endpoint"), "{refused}");
    let refused =
        connect_as("a", ALICE, to("carrier-pigeon/127.0.0.1:1"), QUEUE_FRAMES).unwrap_err();
    assert!(matches!(&refused, ConnectError::Engine(_)), "{refused}");
}

#[test]
fn what_is_no_frame_is_dropped() {
    let endpoint = free_endpoint();
    let mut server = listen("strict", at(&endpoint)).unwrap();
    let mut alice = connect_as("strict", ALICE, to(&endpoint), QUEUE_FRAMES).unwrap();
    client_sends(&mut alice, b"first");
    assert_eq!(server_gets(&mut server), b"first");
    // Too long for the sender.
    let refused = alice.send(MAX_FRAME_BYTES + 1, &mut |_| panic!("it is too long")).unwrap_err();
    assert!(refused.to_string().contains("65537"), "{refused}");
    let refused = server.send(ALICE, MAX_FRAME_BYTES + 1, &mut |_| panic!("too long")).unwrap_err();
    assert!(refused.to_string().contains("65536"), "{refused}");
    // A stranger who sends what no client would, and waits for room for it.
    let stranger = zenoh::open(to(&endpoint)).wait().unwrap();
    let says = |key: &str, bytes: Vec<u8>| {
        stranger
            .put(format!("ring/strict/requests/{key}"), bytes)
            .congestion_control(CongestionControl::Block)
            .wait()
            .unwrap();
    };
    let key = ALICE.to_string();
    // Longer than a frame, and far longer than zenoh puts together.
    says(&key, vec![7; MAX_FRAME_BYTES + 1]);
    says(&key, vec![7; 64 * MAX_FRAME_BYTES]);
    stranger.delete(format!("ring/strict/requests/{key}")).wait().unwrap();
    // Keys that are no service's.
    says(&format!("{key}/more"), vec![7; 8]);
    // Bytes are bytes: who the client is, the frame says to the protocol.
    says("nobody", vec![7; 8]);
    assert_eq!(server_gets(&mut server), [7; 8]);
    client_sends(&mut alice, b"last");
    assert_eq!(server_gets(&mut server), b"last");
    until("counting the frame that is too long", || {
        (server.dropped() == Dropped { queue_full: 0, too_long: 1 }).then_some(())
    });
    thread::sleep(QUIET);
    assert_eq!(server_has(&mut server), None);
}

#[test]
fn frames_beyond_the_queue_are_dropped() {
    let endpoint = free_endpoint();
    let four = NonZeroUsize::new(4).unwrap();
    let mut server = listen_with_queue("narrow", at(&endpoint), four).unwrap();
    let mut alice = connect_as("narrow", ALICE, to(&endpoint), four).unwrap();
    for i in 0..10 {
        client_sends(&mut alice, &[i]);
        server_sends(&mut server, ALICE, &[i]);
        // So that the link has room for each.
        thread::sleep(Duration::from_millis(20));
    }
    // None is taken before the last one has come.
    let six = Dropped { queue_full: 6, too_long: 0 };
    until("dropping six frames each way", || {
        (server.dropped() == six && alice.dropped() == six).then_some(())
    });
    for i in 0..4 {
        assert_eq!(server_gets(&mut server), [i]);
        assert_eq!(client_gets(&mut alice), [i]);
    }
    assert_eq!(server_has(&mut server), None);
}

#[test]
fn a_router_stands_between() {
    let endpoint = free_endpoint();
    let mut hub = at(&endpoint);
    hub.insert_json5("mode", "\"router\"").unwrap();
    let _router = zenoh::open(hub).wait().unwrap();
    let through = || {
        let mut config = to(&endpoint);
        config.insert_json5("mode", "\"client\"").unwrap();
        config
    };
    let mut server = listen("far", through()).unwrap();
    let mut alice = connect_as("far", ALICE, through(), QUEUE_FRAMES).unwrap();
    client_sends(&mut alice, b"there");
    assert_eq!(server_gets(&mut server), b"there");
    server_sends(&mut server, ALICE, b"and back");
    assert_eq!(client_gets(&mut alice), b"and back");
    let refused = listen("far", through()).unwrap_err();
    assert!(matches!(&refused, ListenError::AlreadyServed { .. }), "{refused}");
    assert_eq!(services(through()).unwrap(), ["far"]);
}

#[test]
fn of_two_servers_that_start_together_one_at_most_is_taken() {
    for _ in 0..5 {
        let endpoint = free_endpoint();
        let (one, other) = (at(&endpoint), to(&endpoint));
        let first = thread::spawn(move || listen("twins", one));
        let second = listen("twins", other);
        let first = first.join().unwrap();
        assert!(first.is_err() || second.is_err(), "both serve");
        for refused in [first.err(), second.err()].into_iter().flatten() {
            assert!(matches!(&refused, ListenError::AlreadyServed { .. }), "{refused}");
        }
    }
}

/// Not a test of its own: a client that another test runs in a process of its own. It says its name, and then only waits.
#[test]
fn client_process() {
    let Ok(endpoint) = env::var(CLIENT_TO) else { return };
    let mut client = connect_as("patient", BOB, to(&endpoint), QUEUE_FRAMES).unwrap();
    client_sends(&mut client, b"bob");
    println!("connected");
    thread::sleep(Duration::from_secs(60));
}

/// The process is stopped, so that it takes nothing from its socket.
#[cfg(unix)]
#[test]
fn a_client_that_takes_nothing_does_not_hold_up_the_server() {
    let endpoint = free_endpoint();
    let mut server = listen("patient", at(&endpoint)).unwrap();
    let mut alice = connect_as("patient", ALICE, to(&endpoint), QUEUE_FRAMES).unwrap();
    let bob = start("client_process", CLIENT_TO, &endpoint, "connected");
    assert_eq!(server_gets(&mut server), b"bob");
    let stopped = Command::new("kill").args(["-STOP", &bob.0.id().to_string()]).status().unwrap();
    assert!(stopped.success());
    // Far more than its socket and the queue of its link take.
    let frame = vec![7; MAX_FRAME_BYTES];
    let start = Instant::now();
    let mut longest = Duration::ZERO;
    for _ in 0..1000 {
        let before = Instant::now();
        server.send(BOB, frame.len(), &mut put(&frame)).unwrap();
        longest = longest.max(before.elapsed());
    }
    // Nor does it matter who else is sent to meanwhile.
    for client in 0..1000 {
        let before = Instant::now();
        assert_eq!(server.send(ClientId(client), 1, &mut |_| ()), Ok(false));
        server.forget(ClientId(client));
        longest = longest.max(before.elapsed());
    }
    println!("the sends took {:?}, the longest {longest:?}", start.elapsed());
    assert!(start.elapsed() < Duration::from_secs(5), "the server was held up");
    client_sends(&mut alice, b"hello");
    assert_eq!(server_gets(&mut server), b"hello");
    server_sends(&mut server, ALICE, b"welcome");
    assert_eq!(client_gets(&mut alice), b"welcome");
}

/// Not a test of its own: the server that another test runs in a process of its own. It sends each frame back, with its process's
/// identity, until it is killed; or for a minute.
#[test]
fn server_process() {
    let Ok(endpoint) = env::var(SERVER_AT) else { return };
    let mut server = listen("phoenix", at(&endpoint)).unwrap();
    println!("serving");
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(60) {
        let Some(frame) = server_has(&mut server) else {
            thread::sleep(Duration::from_micros(100));
            continue;
        };
        let mut answer = std::process::id().to_le_bytes().to_vec();
        answer.extend_from_slice(&frame);
        server.send(ALICE, answer.len(), &mut put(&answer)).unwrap();
    }
}

/// Kills the process when dropped.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        // By SIGKILL on Unix.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs a test of this file in a process of its own, and waits until it says that.
fn start(test: &str, variable: &str, endpoint: &str, says: &'static str) -> Killed {
    let mut child = Command::new(env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(variable, endpoint)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let process = Killed(child);
    let (tell, told) = mpsc::channel();
    thread::spawn(move || {
        for line in lines.map_while(Result::ok) {
            if line.contains(says) {
                let _ = tell.send(());
            }
        }
    });
    told.recv_timeout(PATIENCE).expect("the process did not come up");
    process
}

/// Sends a frame over and over, as a protocol above would, until it comes back from that process.
fn comes_back_from(client: &mut NetworkConnection, server: &Killed, frame: &[u8]) -> Duration {
    let start = Instant::now();
    until("an answer from the server process", || {
        client.send(frame.len(), &mut put(frame)).unwrap();
        let sent = Instant::now();
        while sent.elapsed() < Duration::from_millis(20) {
            if let Some(answer) = client_has(client) {
                let (from, echo) = answer.split_at(4);
                if from == server.0.id().to_le_bytes() && echo == frame {
                    return Some(());
                }
            }
            thread::sleep(Duration::from_micros(100));
        }
        None
    });
    start.elapsed()
}

#[test]
fn a_client_reaches_the_server_that_was_killed_and_started_again() {
    let endpoint = free_endpoint();
    let server = start("server_process", SERVER_AT, &endpoint, "serving");
    let mut client = connect_as("phoenix", ALICE, to(&endpoint), QUEUE_FRAMES).unwrap();
    comes_back_from(&mut client, &server, b"first");
    drop(server);
    for round in 0..3_u8 {
        until("losing the server that was killed", || {
            (!client.send(1, &mut |_| ()).unwrap()).then_some(())
        });
        // The name is free again at once, as is the endpoint.
        let server = start("server_process", SERVER_AT, &endpoint, "serving");
        let took = comes_back_from(&mut client, &server, &[round; 100]);
        println!("reached the new server {took:?} after it served");
    }
}

/// Passes bytes on, both ways, between that connection and an endpoint.
fn pass_on(near: TcpStream, endpoint: &str) {
    let far = TcpStream::connect(endpoint.strip_prefix("tcp/").unwrap()).unwrap();
    for (mut from, mut to) in [(near.try_clone().unwrap(), far.try_clone().unwrap()), (far, near)] {
        thread::spawn(move || {
            let _ = io::copy(&mut from, &mut to);
            let _ = to.shutdown(Shutdown::Both);
        });
    }
}

/// As after a server's session was closed while the client connected: zenoh keeps that connection.
#[test]
fn a_client_that_nobody_hears_opens_another_session() {
    let [mute, served] = [free_endpoint(), free_endpoint()];
    let _mute = zenoh::open(at(&mute)).wait().unwrap();
    let mut server = listen("elsewhere", at(&served)).unwrap();
    let gate = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("tcp/{}", gate.local_addr().unwrap());
    thread::spawn(move || {
        for (number, near) in gate.incoming().enumerate() {
            pass_on(near.unwrap(), if number == 0 { &mute } else { &served });
        }
    });
    let mut client = connect_as("elsewhere", ALICE, to(&endpoint), QUEUE_FRAMES).unwrap();
    until("being connected", || match client.silence() {
        Silence::NotConnected(said) => said.contains("is connected, but").then_some(()),
        said => panic!("{said:?}"),
    });
    client_sends(&mut client, b"here");
    assert_eq!(server_gets(&mut server), b"here");
    server_sends(&mut server, ALICE, b"there");
    assert_eq!(client_gets(&mut client), b"there");
}
