//! Servers in processes of their own that are killed while a client calls.

use crate::kernel::{Caller, Counting, LONG, launch, serve};
use ring_net::transport::{Connection, Listener};
use ring_net::{ClientConfig, RemoteChannel};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Where another process of this program serves, and nothing else.
pub const SERVES: &str = "RING_NET_SERVES";

/// Serves until the process is killed, or for long.
pub fn serve_until_killed(listener: impl Listener + 'static) {
    let (_runtime, mut kernel) = launch();
    let begun = Instant::now();
    serve(&mut kernel, listener).run(|| begun.elapsed() > 4 * LONG).unwrap();
}

/// A process that runs one test of this program, which serves at a place.
pub struct Process(Child);

impl Process {
    fn start(test: &str, place: &str) -> Process {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", test, "--nocapture"]).env(SERVES, place).stdout(Stdio::null());
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

#[cfg(all(feature = "iceoryx2", target_os = "linux"))]
mod shared_memory {
    use super::{Process, SERVES, kills, serve_until_killed};
    use ring_net::shared_memory::{Config, connect, listen};

    #[test]
    fn another_process() {
        if let Ok(name) = std::env::var(SERVES) {
            serve_until_killed(listen(&name, &Config::default()).unwrap());
        }
    }

    #[test]
    fn what_a_killed_process_had_is_unknown_and_nothing_else() {
        let name = format!("killed-{}", std::process::id());
        let start = || Process::start("killed::shared_memory::another_process", &name);
        kills(connect(&name, &Config::default()).unwrap(), start, 400_000, 10);
    }
}

#[cfg(feature = "zenoh")]
mod network {
    use super::{Process, SERVES, kills, serve_until_killed};
    use crate::kernel::{free_endpoint, served_again};
    use ring_net::network::{Endpoints, connect};

    #[test]
    fn another_process() {
        if let Ok(endpoint) = std::env::var(SERVES) {
            serve_until_killed(served_again("killed", &endpoint));
        }
    }

    #[test]
    fn what_a_killed_process_had_is_unknown_and_nothing_else() {
        let endpoint = free_endpoint();
        let start = || Process::start("killed::network::another_process", &endpoint);
        kills(
            connect("killed", Endpoints::to(&endpoint).config().unwrap()).unwrap(),
            start,
            100_000,
            3,
        );
    }
}
