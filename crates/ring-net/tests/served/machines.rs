//! A server and a client on two machines: network namespaces, which share nothing but a link between them.

use crate::kernel::{Caller, Counting, LONG, served_again};
use crate::killed::serve_until_killed;
use ring_net::network::{Endpoints, connect};
use ring_net::{ClientConfig, RemoteChannel};
use std::process::{Child, Command};
use std::time::Instant;

/// Which machine this process is.
const ROLE: &str = "RING_NET_MACHINE";

/// Where the server listens, of all interfaces of its machine.
const ENDPOINT: &str = "tcp/10.231.7.1:7447";

/// Requests.
const ALL: u64 = 20_000;

/// Two namespaces with an interface each, which are joined.
struct Machines([String; 2]);

impl Machines {
    /// None if this process may not have them.
    fn new() -> Option<Machines> {
        let names = ["a", "b"].map(|side| format!("ring-{side}-{}", std::process::id()));
        let made = names.iter().all(|name| ip(&format!("netns add {name}")));
        let machines = Machines(names);
        if !made {
            return None;
        }
        let [a, b] = &machines.0;
        // An interface has a name of 15 bytes at most; both are in no other namespace.
        assert!(ip(&format!("-n {a} link add ring0 type veth peer name ring0 netns {b}")));
        for (name, address) in [(a, "10.231.7.1/24"), (b, "10.231.7.2/24")] {
            assert!(ip(&format!("-n {name} address add {address} dev ring0")));
            assert!(ip(&format!("-n {name} link set ring0 up")));
        }
        Some(machines)
    }

    /// Runs a test of this program on a machine.
    fn run(&self, machine: usize, test: &str) -> Running {
        let program = std::env::current_exe().unwrap();
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.0[machine]]).arg(program);
        command.args(["--exact", test, "--nocapture"]).env(ROLE, test);
        Running(command.spawn().unwrap())
    }
}

impl Drop for Machines {
    fn drop(&mut self) {
        for name in &self.0 {
            ip(&format!("netns delete {name}"));
        }
    }
}

/// A process that does not outlive the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Whether `ip` is there and did what it was told.
fn ip(options: &str) -> bool {
    let status =
        Command::new("ip").args(options.split(' ')).stderr(std::process::Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

fn is(test: &str) -> bool {
    std::env::var(ROLE).is_ok_and(|role| role == test)
}

#[test]
fn server() {
    if is("machines::server") {
        serve_until_killed(served_again("far", ENDPOINT));
    }
}

#[test]
fn client() {
    if !is("machines::client") {
        return;
    }
    let connection = connect("far", Endpoints::to(ENDPOINT).config().unwrap()).unwrap();
    let channel = RemoteChannel::<Counting>::open(connection, ClientConfig::default(), LONG);
    let mut caller = Caller::new(channel.unwrap(), 2, ALL);
    let begun = Instant::now();
    while !caller.is_done() {
        caller.step();
        assert!(begun.elapsed() < LONG, "it stands at {}", caller.answered);
        std::thread::yield_now();
    }
    assert_eq!((caller.answered, caller.unknown.len()), (ALL, 0));
}

#[test]
fn a_kernel_is_called_from_another_machine() {
    let Some(machines) = Machines::new() else {
        println!("not run: this process may not make network namespaces, or there is no `ip`");
        return;
    };
    let _server = machines.run(0, "machines::server");
    let mut client = machines.run(1, "machines::client");
    assert!(client.0.wait().unwrap().success());
}
