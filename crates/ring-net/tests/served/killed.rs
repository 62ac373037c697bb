//! Servers that are killed while a client calls, and clients that are killed while they call; each in a process of its own.

use crate::kernel::{Caller, Counting, LONG, launch, serve};
use ring_net::transport::{Connection, Listener};
use ring_net::{ClientConfig, RemoteChannel};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Where another process of this program serves, and nothing else.
pub const SERVES: &str = "RING_NET_SERVES";

/// As which client another process of this program calls, and what; and that it does nothing else.
pub const CALLS: &str = "RING_NET_CALLS";

/// Serves until the process is killed, or for long.
pub fn serve_until_killed(listener: impl Listener + 'static) {
    let (_runtime, mut kernel) = launch();
    let begun = Instant::now();
    serve(&mut kernel, listener).run(|| begun.elapsed() > 4 * LONG).unwrap();
}

/// Calls until the process is killed, or for long.
pub fn call_until_killed<C: Connection + 'static>(said: &str, connect: impl FnOnce(&str) -> C) {
    let (client, place) = said.split_once(' ').unwrap();
    let channel = RemoteChannel::<Counting>::open(connect(place), ClientConfig::default(), LONG);
    let mut caller = Caller::new(channel.unwrap(), client.parse().unwrap(), u64::MAX);
    let begun = Instant::now();
    while begun.elapsed() < 4 * LONG {
        caller.step();
        std::thread::yield_now();
    }
}

/// A process that runs one test of this program, which serves or calls at a place.
pub struct Process(Child);

impl Process {
    fn start(test: &str, what: &str, place: &str) -> Process {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", test, "--nocapture"]).env(what, place).stdout(Stdio::null());
        Process(command.spawn().unwrap())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A client calls so often, while the server is killed so often and started again.
fn kills(connection: impl Connection + 'static, start: impl Fn() -> Process, all: u64, kills: u64) {
    let mut server = start();
    let channel = RemoteChannel::<Counting>::open(connection, ClientConfig::default(), LONG);
    let mut caller = Caller::new(channel.unwrap(), 5, all);
    let mut killed = 0;
    let mut progress = (Instant::now(), 0);
    while !caller.is_done() {
        caller.step();
        let done = caller.answered + caller.unknown.len() as u64;
        if done != progress.1 {
            progress = (Instant::now(), done);
        }
        assert!(progress.0.elapsed() < LONG, "it stands at {done}: {}", caller.channel.standing());
        if killed < kills && caller.answered >= all / (2 * kills) * (killed + 1) {
            killed += 1;
            drop(server);
            std::thread::sleep(Duration::from_millis(5));
            server = start();
        }
        std::thread::yield_now();
    }
    assert_eq!(killed, kills);
    let unknown = caller.unknown.len() as u64;
    assert!(unknown <= kills * 64, "no more than a server's window, each time: {unknown}");
}

/// A client calls, while so many others are killed, each amid its requests. All those that the server has taken are handled.
fn kills_clients(
    listener: impl Listener + 'static,
    connect: impl FnOnce() -> Box<dyn Connection> + Send,
    start: impl Fn(u64) -> Process,
    kills: u64,
) {
    let (_runtime, mut kernel) = launch();
    let mut server = serve(&mut kernel, listener);
    let mut caller = std::thread::scope(|scope| {
        let open = scope.spawn(|| {
            RemoteChannel::<Counting>::open(connect(), ClientConfig::default(), LONG).unwrap()
        });
        server.run(|| open.is_finished()).unwrap();
        Caller::new(open.join().unwrap(), 0, u64::MAX)
    });
    for kill in 1..=kills {
        let other = start(kill);
        let (begun, before) = (Instant::now(), (server.counts().requests, caller.sent));
        let mut others = 0;
        // It has more under way than it may, again and again.
        while server.counts().opened <= kill || others < 1000 {
            server.poll().unwrap();
            caller.step();
            others = (server.counts().requests - before.0).saturating_sub(caller.sent - before.1);
            assert!(begun.elapsed() < LONG, "{others} requests of client {kill} have come");
            std::thread::yield_now();
        }
        drop(other);
        let answered = caller.answered;
        while caller.answered < answered + 1000 {
            server.poll().unwrap();
            caller.step();
            assert!(begun.elapsed() < LONG, "{}", caller.channel.standing());
            std::thread::yield_now();
        }
    }
    assert_eq!(caller.unknown, [0; 0]);
    let counts = server.counts();
    assert_eq!((counts.opened, counts.refused, counts.garbage), (kills + 1, 0, 0), "{counts:?}");
    // What the killed ones had under way is handled, and its answers are nobody's.
    server.finish(LONG).unwrap();
}

#[cfg(all(feature = "iceoryx2", target_os = "linux"))]
mod shared_memory {
    use super::{
        CALLS, Process, SERVES, call_until_killed, kills, kills_clients, serve_until_killed,
    };
    use ring_net::shared_memory::{Config, connect, listen};

    #[test]
    fn another_process() {
        if let Ok(name) = std::env::var(SERVES) {
            serve_until_killed(listen(&name, &Config::default()).unwrap());
        } else if let Ok(said) = std::env::var(CALLS) {
            call_until_killed(&said, |name| connect(name, &Config::default()).unwrap());
        }
    }

    #[test]
    fn what_a_killed_process_had_is_unknown_and_nothing_else() {
        let name = format!("killed-{}", std::process::id());
        let start = || Process::start("killed::shared_memory::another_process", SERVES, &name);
        kills(connect(&name, &Config::default()).unwrap(), start, 400_000, 10);
    }

    #[test]
    fn clients_that_are_killed_hinder_no_other_one() {
        let name = format!("killed-clients-{}", std::process::id());
        let start = |client| {
            let said = format!("{client} {name}");
            Process::start("killed::shared_memory::another_process", CALLS, &said)
        };
        let listener = listen(&name, &Config::default()).unwrap();
        let connect = || Box::new(connect(&name, &Config::default()).unwrap()) as _;
        kills_clients(listener, connect, start, 10);
    }
}

#[cfg(feature = "zenoh")]
mod network {
    use super::{
        CALLS, Process, SERVES, call_until_killed, kills, kills_clients, serve_until_killed,
    };
    use crate::kernel::{free_endpoint, served_again};
    use ring_net::network::{Endpoints, connect};

    #[test]
    fn another_process() {
        if let Ok(endpoint) = std::env::var(SERVES) {
            serve_until_killed(served_again("killed", &endpoint));
        } else if let Ok(said) = std::env::var(CALLS) {
            call_until_killed(&said, |endpoint| {
                connect("killed", Endpoints::to(endpoint).config().unwrap()).unwrap()
            });
        }
    }

    #[test]
    fn what_a_killed_process_had_is_unknown_and_nothing_else() {
        let endpoint = free_endpoint();
        let start = || Process::start("killed::network::another_process", SERVES, &endpoint);
        kills(
            connect("killed", Endpoints::to(&endpoint).config().unwrap()).unwrap(),
            start,
            100_000,
            3,
        );
    }
    #[test]
    fn clients_that_are_killed_hinder_no_other_one() {
        let endpoint = free_endpoint();
        let start = |client| {
            let said = format!("{client} {endpoint}");
            Process::start("killed::network::another_process", CALLS, &said)
        };
        let listener = served_again("killed", &endpoint);
        let connect = || {
            Box::new(connect("killed", Endpoints::to(&endpoint).config().unwrap()).unwrap()) as _
        };
        kills_clients(listener, connect, start, 3);
    }
}
