//! The kernel that tests serve, and what its clients check.

use bytemuck::{Pod, Zeroable};
use ring_device::ring_kernel;
use ring_host::{Device, KernelHandle, LaunchConfig, Runtime};
use ring_net::error::{RecvTimeoutError, TryRecvError};
use ring_net::{RemoteChannel, Server, ServerConfig, transport::Listener};
use std::time::Duration;

/// No wait of a test takes as long, on however busy a machine.
pub const LONG: Duration = Duration::from_secs(60);

/// Most clients of a test.
pub const CLIENTS: usize = 16;

/// The `number`th request of a client.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
pub struct Request {
    pub client: u64,
    pub number: u64,
}

/// The same, and how many of the client's requests the kernel has handled.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
pub struct Answer {
    pub client: u64,
    pub number: u64,
    pub handled: u64,
}

/// How many requests of each client were handled.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub struct Handled {
    pub each: [u64; CLIENTS],
}

ring_kernel! {
    /// Counts the requests of each client.
    pub struct Counting {
        name: "counting",
    }

    fn handle(handled: &mut Handled, request: &Request) -> Answer {
        let mut count = 0;
        if let Some(each) = handled.each.get_mut(request.client as usize) {
            *each = each.wrapping_add(1);
            count = *each;
        }
        Answer { client: request.client, number: request.number, handled: count }
    }
}

/// A kernel on the CPU, active.
pub fn launch() -> (Runtime, KernelHandle<Counting>) {
    let runtime = Runtime::open(Device::Cpu).unwrap();
    let mut kernel = runtime.launch::<Counting>(LaunchConfig::default()).unwrap();
    kernel.activate(LONG).unwrap();
    (runtime, kernel)
}

/// A server of its first channel.
pub fn serve(
    kernel: &mut KernelHandle<Counting>,
    listener: impl Listener + 'static,
) -> Server<Counting> {
    Server::new(kernel.take_channel(0).unwrap(), listener, ServerConfig::default().window(64))
}

/// A client that sends so many requests, and checks what comes.
pub struct Caller {
    pub channel: RemoteChannel<Counting>,
    client: u64,
    all: u64,
    pub sent: u64,
    pub answered: u64,
    pub unknown: Vec<u64>,
    /// What the last answer told, and how many requests were unknown since.
    last: u64,
    since: u64,
}

impl Caller {
    pub fn new(channel: RemoteChannel<Counting>, client: u64, all: u64) -> Caller {
        Caller {
            channel,
            client,
            all,
            sent: 0,
            answered: 0,
            unknown: Vec::new(),
            last: 0,
            since: 0,
        }
    }

    pub fn is_done(&self) -> bool {
        self.answered + self.unknown.len() as u64 == self.all
    }

    /// Sends what there is room for, and takes what is there.
    pub fn step(&mut self) {
        let room = self.all.min(self.sent + 32);
        let requests: Vec<Request> =
            (self.sent..room).map(|number| Request { client: self.client, number }).collect();
        self.sent += self.channel.try_send_batch(&requests).unwrap() as u64;
        loop {
            let next = self.answered + self.unknown.len() as u64;
            match self.channel.try_recv() {
                Ok(answer) => {
                    assert_eq!((answer.client, answer.number), (self.client, next), "in order");
                    self.count(answer.handled);
                    self.answered += 1;
                }
                Err(TryRecvError::Unknown(unknown)) => {
                    assert_eq!(unknown.number, next, "in order");
                    self.unknown.push(unknown.number);
                    self.since += 1;
                }
                Err(TryRecvError::Empty) => return,
                Err(error) => panic!("client {}: {error}", self.client),
            }
        }
    }

    /// Each request since the last answer was handled once, but for those that are unknown: each of them once or not at all, by that kernel or by
    /// one before it.
    fn count(&mut self, handled: u64) {
        let (last, since) = (self.last, self.since);
        let same = (last + 1..=last + 1 + since).contains(&handled);
        let other = (1..=1 + since).contains(&handled);
        assert!(same || other, "{handled} handled, behind {last} with {since} unknown");
        (self.last, self.since) = (handled, 0);
    }
}

/// Whether a wait ended because nothing came.
pub fn is_late(error: &RecvTimeoutError) -> bool {
    matches!(error, RecvTimeoutError::Timeout { .. })
}

/// An endpoint of loopback whose port is free now.
#[cfg(feature = "zenoh")]
pub fn free_endpoint() -> String {
    let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    format!("tcp/{}", socket.local_addr().unwrap())
}

/// Listens there, as soon as the server before has given up its name and its port.
#[cfg(feature = "zenoh")]
pub fn served_again(name: &str, endpoint: &str) -> ring_net::network::NetworkListener {
    use ring_net::network::{Endpoints, listen};
    let begun = std::time::Instant::now();
    loop {
        match listen(name, Endpoints::at(endpoint).config().unwrap()) {
            Ok(listener) => return listener,
            Err(error) if begun.elapsed() > LONG => panic!("{error}"),
            Err(_) => std::thread::sleep(Duration::from_millis(20)),
        }
    }
}
