//! The engine of shared memory, in one process and between several.
//!
//! A test that needs another process runs this same binary again, with [`ROLE`] set: then only [`other_process`] does anything.

#![cfg(all(feature = "iceoryx2", target_os = "linux"))]

use ring_net::shared_memory::{
    Config, ConnectError, ListenError, MAX_NAME_BYTES, SharedConnection, SharedListener,
    connect_as, listen,
};
use ring_net::transport::{ClientId, Connection, Listener, MAX_FRAME_BYTES};
use std::io::{BufRead, BufReader, Lines, Write};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

const ROLE: &str = "RING_NET_TEST_ROLE";
const NAME: &str = "RING_NET_TEST_NAME";
const CLIENTS: &str = "RING_NET_TEST_CLIENTS";

/// No test waits for anything longer.
const LIMIT: Duration = Duration::from_secs(20);

/// Another process ends by itself after so long.
const LIFE: Duration = Duration::from_secs(60);

/// A name that no other test has.
fn name() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("test/{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

fn id(number: u128) -> ClientId {
    ClientId(number)
}

/// Waits until it is met.
#[track_caller]
fn until(what: &str, mut met: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !met() {
        assert!(begun.elapsed() < LIMIT, "not within {LIMIT:?}: {what}");
        std::thread::yield_now();
    }
}

/// A frame of so many bytes that differs from others.
fn frame(number: usize, len: usize) -> Vec<u8> {
    (0..len).map(|byte| (byte * 7 + number * 13 + len) as u8).collect()
}

fn write(bytes: &[u8]) -> impl FnMut(&mut [u8]) + '_ {
    |place| place.copy_from_slice(bytes)
}

fn ask(client: &mut SharedConnection, bytes: &[u8]) -> bool {
    client.send(bytes.len(), &mut write(bytes)).unwrap()
}

fn answer(server: &mut SharedListener, to: ClientId, bytes: &[u8]) -> bool {
    server.send(to, bytes.len(), &mut write(bytes)).unwrap()
}

fn asked(server: &mut SharedListener) -> Option<Vec<u8>> {
    let mut frame = None;
    let any = server.receive(&mut |bytes| frame = Some(bytes.to_vec())).unwrap();
    assert_eq!(any, frame.is_some());
    frame
}

fn answered(client: &mut SharedConnection) -> Option<Vec<u8>> {
    let mut frame = None;
    let any = client.receive(&mut |bytes| frame = Some(bytes.to_vec())).unwrap();
    assert_eq!(any, frame.is_some());
    frame
}

/// Sends frames of the client's id, every 20 ms, until one comes back.
#[track_caller]
fn echo(client: &mut SharedConnection, own: ClientId) {
    let mut last = None::<Instant>;
    until("an echo", || {
        if last.is_none_or(|last| last.elapsed() > Duration::from_millis(20)) {
            ask(client, &own.0.to_le_bytes());
            last = Some(Instant::now());
        }
        answered(client).is_some()
    });
}

/// Another process, which is killed when this is dropped, and what it says.
struct Other(Child, Lines<BufReader<ChildStdout>>);

impl Drop for Other {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Other {
    /// Starts one, and waits until it is ready.
    fn start(role: &str, name: &str, clients: usize) -> Other {
        Other::start_until("ready", role, name, clients)
    }

    /// Starts one, and waits until it says so.
    fn start_until(said: &str, role: &str, name: &str, clients: usize) -> Other {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "other_process", "--nocapture", "--test-threads=1"])
            .env(ROLE, role)
            .env(NAME, name)
            .env(CLIENTS, clients.to_string())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut other = Other(child, lines);
        // Its output ends when it does, after LIFE at the latest.
        assert!(other.1.any(|line| line.unwrap().ends_with(said)), "the {role} has not started");
        other
    }

    /// SIGKILL, and waits until it is gone.
    fn kill(mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

/// What another process does: nothing in an ordinary run.
#[test]
fn other_process() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let name = std::env::var(NAME).unwrap();
    let clients = std::env::var(CLIENTS).unwrap().parse().unwrap();
    let config = Config { clients, ..Config::default() };
    let end = Instant::now() + LIFE;
    // Whatever it waits for.
    std::thread::spawn(|| {
        sleep(LIFE);
        std::process::exit(1);
    });
    let say = |what| {
        println!("\n{what}");
        std::io::stdout().flush().unwrap();
    };
    let ready = || say("ready");
    say("begun");
    match role.as_str() {
        "server" => {
            let mut server = listen(&name, &config).unwrap();
            ready();
            while Instant::now() < end {
                match asked(&mut server) {
                    Some(frame) => {
                        let client = u128::from_le_bytes(frame[..16].try_into().unwrap());
                        answer(&mut server, id(client), &frame);
                    }
                    None => std::thread::yield_now(),
                }
            }
        }
        "client" => {
            let mut client = connect_as(&name, id(77), &config).unwrap();
            ask(&mut client, &77u128.to_le_bytes());
            ready();
            sleep(end - Instant::now());
        }
        other => panic!("no such role: {other}"),
    }
}

#[test]
fn frames_of_several_sizes_go_both_ways_in_order() {
    let (name, config) = (name(), Config { frame_bytes: MAX_FRAME_BYTES, ..Config::default() });
    let mut server = listen(&name, &config).unwrap();
    let mut client = connect_as(&name, id(5), &config).unwrap();
    let sizes = [0, 1, 16, 63, 64, 65, 1000, 4096, 16 * 1024, MAX_FRAME_BYTES - 1, MAX_FRAME_BYTES];
    for round in 0..20 {
        for (number, len) in sizes.into_iter().enumerate() {
            assert!(ask(&mut client, &frame(number + round, len)));
            assert!(answer(&mut server, id(5), &frame(number + round + 100, len)));
        }
        for (number, len) in sizes.into_iter().enumerate() {
            assert_eq!(asked(&mut server).unwrap(), frame(number + round, len));
            assert_eq!(answered(&mut client).unwrap(), frame(number + round + 100, len));
        }
        assert_eq!(asked(&mut server), None);
        assert_eq!(answered(&mut client), None);
    }
}

#[test]
fn a_frame_begins_at_a_cache_line_and_is_zeros_before_it_is_filled() {
    let (name, config) = (name(), Config::default());
    let mut server = listen(&name, &config).unwrap();
    let mut client = connect_as(&name, id(5), &config).unwrap();
    for _ in 0..200 {
        let sent = client.send(300, &mut |place| {
            assert_eq!((place.as_ptr() as usize % 64, place.len()), (0, 300));
            assert!(place.iter().all(|byte| *byte == 0));
            place.fill(255);
        });
        assert!(sent.unwrap());
        let received = server.receive(&mut |bytes| {
            assert_eq!((bytes.as_ptr() as usize % 64, bytes.len()), (0, 300));
            assert!(bytes.iter().all(|byte| *byte == 255));
        });
        assert!(received.unwrap());
    }
}

#[test]
fn ends_may_move_to_other_threads() {
    let (name, config) = (name(), Config::default());
    let mut server = listen(&name, &config).unwrap();
    let mut client = connect_as(&name, id(5), &config).unwrap();
    std::thread::spawn(move || assert!(ask(&mut client, b"there"))).join().unwrap();
    // The server maps the client's memory only when it looks for a frame. That it is too late now is no error.
    let frame = std::thread::spawn(move || asked(&mut server)).join().unwrap();
    assert!(frame.is_none_or(|frame| frame == b"there"));
}

#[test]
fn frames_are_only_sent_while_there_is_a_server() {
    let (name, config) = (name(), Config::default());
    let mut client = connect_as(&name, id(5), &config).unwrap();
    for round in 0..3 {
        assert!(!ask(&mut client, b"nobody"), "round {round}");
        let mut server = listen(&name, &config).unwrap();
        assert!(ask(&mut client, b"somebody"), "round {round}");
        assert_eq!(asked(&mut server).unwrap(), b"somebody");
        assert!(answer(&mut server, id(5), b"answer"));
        assert_eq!(answered(&mut client).unwrap(), b"answer");
    }
}

#[test]
fn a_second_server_is_refused() {
    let (name, config) = (name(), Config::default());
    let mut first = listen(&name, &config).unwrap();
    let mut client = connect_as(&name, id(5), &config).unwrap();
    let served = ListenError::AlreadyServed { name: name.clone() };
    assert_eq!(listen(&name, &config).unwrap_err(), served);
    assert!(served.to_string().contains(&name));
    assert!(ask(&mut client, b"first"));
    assert_eq!(asked(&mut first).unwrap(), b"first");
    drop(first);
    let mut second = listen(&name, &config).unwrap();
    assert!(ask(&mut client, b"second"));
    assert_eq!(asked(&mut second).unwrap(), b"second");
    drop(second);

    let other = Other::start("server", &name, config.clients);
    assert_eq!(listen(&name, &config).unwrap_err(), served);
    echo(&mut client, id(5));
    drop(other);
}

#[test]
fn a_full_buffer_refuses_frames_and_loses_none() {
    let (name, config) = (name(), Config { frames: 10, ..Config::default() });
    let mut server = listen(&name, &config).unwrap();
    let mut client = connect_as(&name, id(5), &config).unwrap();
    let mut numbers = 0..;
    for _ in 0..5 {
        let mut asks = Vec::new();
        let mut answers = Vec::new();
        loop {
            let frame = frame(numbers.next().unwrap(), 100);
            if !ask(&mut client, &frame) {
                break;
            }
            asks.push(frame);
        }
        loop {
            let frame = frame(numbers.next().unwrap(), 100);
            if !answer(&mut server, id(5), &frame) {
                break;
            }
            answers.push(frame);
        }
        assert_eq!((asks.len(), answers.len()), (10, 10));
        for _ in 0..20 {
            assert!(!ask(&mut client, b"no room"));
            assert!(!answer(&mut server, id(5), b"no room"));
        }
        // One place is free again after one frame.
        assert_eq!(asked(&mut server).unwrap(), asks.remove(0));
        asks.push(frame(numbers.next().unwrap(), 9));
        assert!(ask(&mut client, asks.last().unwrap()));
        assert!(!ask(&mut client, b"no room"));
        asks.iter().for_each(|frame| assert_eq!(asked(&mut server).as_ref(), Some(frame)));
        answers.iter().for_each(|frame| assert_eq!(answered(&mut client).as_ref(), Some(frame)));
        assert_eq!((asked(&mut server), answered(&mut client)), (None, None));
    }
}

#[test]
fn frames_only_reach_whom_they_are_sent_to() {
    let (name, config) = (name(), Config::default());
    let mut server = listen(&name, &config).unwrap();
    let mut one = connect_as(&name, id(1), &config).unwrap();
    let mut two = connect_as(&name, id(2), &config).unwrap();
    assert!(answer(&mut server, id(2), b"two"));
    assert!(answer(&mut server, id(1), b"one"));
    assert!(!answer(&mut server, id(3), b"three"));
    assert_eq!(answered(&mut one).unwrap(), b"one");
    assert_eq!(answered(&mut two).unwrap(), b"two");
    assert_eq!((answered(&mut one), answered(&mut two)), (None, None));

    let taken = connect_as(&name, id(2), &config).unwrap_err();
    assert_eq!(taken, ConnectError::ClientExists { name: name.clone(), client: id(2) });

    one.rename(id(3)).unwrap();
    assert!(!answer(&mut server, id(1), b"one"));
    assert!(answer(&mut server, id(3), b"three"));
    assert_eq!(answered(&mut one).unwrap(), b"three");
    one.rename(id(2)).unwrap_err();
    assert!(answer(&mut server, id(3), b"still three"));
    assert_eq!(answered(&mut one).unwrap(), b"still three");

    server.forget(id(2));
    server.forget(id(99));
    assert!(answer(&mut server, id(2), b"again"));
    assert_eq!(answered(&mut two).unwrap(), b"again");

    drop(two);
    assert!(!answer(&mut server, id(2), b"gone"));
    server.forget(id(2));
    assert!(!answer(&mut server, id(2), b"gone"));
}

#[test]
fn what_is_not_allowed_is_an_error_that_says_so() {
    let config = Config::default();
    let long = "n".repeat(MAX_NAME_BYTES + 1);
    for bad in ["", "a b", "a*", "é", "a\0", &long] {
        let error = connect_as(bad, id(5), &config).unwrap_err();
        assert_eq!(error, ConnectError::InvalidName { name: bad.to_owned() });
        let error = listen(bad, &config).unwrap_err();
        assert_eq!(error, ListenError::InvalidName { name: bad.to_owned() });
        assert!(error.to_string().contains("from 1 to 200"), "{error}");
    }
    // Of the greatest length that is allowed.
    let long = format!("{:n<MAX_NAME_BYTES$}", name());
    let mut server = listen(&long, &config).unwrap();
    let mut client = connect_as(&long, id(u128::MAX), &config).unwrap();
    assert!(answer(&mut server, id(u128::MAX), b"hello"));

    let error = client.send(config.frame_bytes + 1, &mut |_| panic!("not to be filled"));
    let error = error.unwrap_err();
    assert_eq!(error.engine, "iceoryx2");
    assert!(error.said.contains("16385 bytes"), "{error}");
    assert!(ask(&mut client, b"still"));

    let name = name();
    for config in [
        Config { frame_bytes: 0, ..config.clone() },
        Config { frame_bytes: MAX_FRAME_BYTES + 1, ..config.clone() },
        Config { frames: 0, ..config.clone() },
        Config { clients: 0, ..config.clone() },
        Config { clients: usize::MAX, ..config.clone() },
    ] {
        assert!(matches!(
            connect_as(&name, id(5), &config),
            Err(ConnectError::InvalidConfig { .. })
        ));
        assert!(matches!(listen(&name, &config), Err(ListenError::InvalidConfig { .. })));
    }

    let _client = connect_as(&name, id(5), &config).unwrap();
    let greater = Config { clients: 200, ..config.clone() };
    let error = listen(&name, &greater).unwrap_err();
    assert_eq!(error, ListenError::Smaller { name: name.clone(), clients: 200, frames: 64 });
    // A client takes what there is.
    let _other = connect_as(&name, id(6), &greater).unwrap();
    let mut server = listen(&name, &Config { clients: 3, ..config }).unwrap();
    assert!(answer(&mut server, id(6), b"hello"));
}

#[test]
fn a_frame_is_not_sent_when_its_filling_panics() {
    let (name, config) = (name(), Config { frames: 2, ..Config::default() });
    let mut server = listen(&name, &config).unwrap();
    let mut client = connect_as(&name, id(5), &config).unwrap();
    for _ in 0..20 {
        let fill = std::panic::AssertUnwindSafe(|| client.send(8, &mut |_| panic!("on purpose")));
        assert!(std::panic::catch_unwind(fill).is_err());
        assert!(ask(&mut client, b"good"));
        let read = std::panic::AssertUnwindSafe(|| server.receive(&mut |_| panic!("on purpose")));
        assert!(std::panic::catch_unwind(read).is_err());
        assert_eq!(asked(&mut server), None);
    }
}

#[test]
fn a_hundred_clients() {
    let (name, config) = (name(), Config::default());
    let mut server = listen(&name, &config).unwrap();
    let begun = Instant::now();
    let mut clients: Vec<_> =
        (0..100).map(|client| connect_as(&name, id(client), &config).unwrap()).collect();
    println!("100 clients connected in {:?}", begun.elapsed());
    for round in 0..3 {
        for (number, client) in clients.iter_mut().enumerate() {
            assert!(ask(client, &(number as u128).to_le_bytes()));
        }
        let begun = Instant::now();
        let mut seen = 0;
        until("a frame of each client", || {
            if let Some(frame) = asked(&mut server) {
                let client = u128::from_le_bytes(frame.try_into().unwrap());
                assert!(answer(&mut server, id(client), &client.to_le_bytes()));
                seen += 1;
            }
            seen == 100
        });
        println!("round {round}: answered in {:?}", begun.elapsed());
        for (number, client) in clients.iter_mut().enumerate() {
            assert_eq!(answered(client).unwrap(), (number as u128).to_le_bytes());
        }
    }
}

#[test]
fn a_client_too_many_is_refused_and_a_killed_one_keeps_no_place() {
    let (name, config) = (name(), Config { clients: 1, ..Config::default() });
    let mut server = listen(&name, &config).unwrap();
    for _ in 0..3 {
        let other = Other::start("client", &name, 1);
        assert_eq!(asked(&mut server).unwrap(), 77u128.to_le_bytes());
        assert!(answer(&mut server, id(77), b"you"));
        assert_eq!(
            connect_as(&name, id(5), &config).unwrap_err(),
            ConnectError::TooManyClients { name: name.clone(), clients: 1 }
        );
        other.kill();
        // Its id is free again too, though the server has not forgotten it.
        let mut client = connect_as(&name, id(77), &config).unwrap();
        assert!(ask(&mut client, b"new"));
        assert_eq!(asked(&mut server).unwrap(), b"new");
        assert!(answer(&mut server, id(77), b"you, again"));
        assert_eq!(answered(&mut client).unwrap(), b"you, again");
        assert_eq!(answered(&mut client), None);
    }
}

#[test]
fn a_client_reaches_the_server_that_follows_a_killed_one() {
    let (name, config) = (name(), Config::default());
    let mut client = connect_as(&name, id(5), &config).unwrap();
    let mut late = connect_as(&name, id(6), &config).unwrap();
    for round in 0..6 {
        let server = Other::start("server", &name, config.clients);
        echo(&mut client, id(5));
        if round == 2 {
            echo(&mut late, id(6));
        }
        // It is killed while it takes and gives frames.
        for _ in 0..1000 {
            ask(&mut client, &5u128.to_le_bytes());
            answered(&mut client);
        }
        server.kill();
        if round % 2 == 1 {
            // All its memory is with the killed server.
            until("a full buffer", || !ask(&mut client, &5u128.to_le_bytes()));
            assert!(!ask(&mut client, &5u128.to_le_bytes()));
        }
    }
    // In this process too.
    let mut server = listen(&name, &config).unwrap();
    until("room", || ask(&mut client, b"this process"));
    assert_eq!(asked(&mut server).unwrap(), b"this process");
}

#[test]
fn a_process_killed_while_it_connects_or_listens_blocks_nothing() {
    let (name, config) = (name(), Config { clients: 4, ..Config::default() });
    for round in 0..100u64 {
        let role = ["server", "client"][round as usize % 2];
        let other = Other::start_until("begun", role, &name, config.clients);
        sleep(Duration::from_micros(round * 50));
        other.kill();
        if round % 4 == 3 {
            let server = Other::start("server", &name, config.clients);
            echo(&mut connect_as(&name, id(5), &config).unwrap(), id(5));
            server.kill();
        }
    }
    listen(&name, &config).unwrap();
}
