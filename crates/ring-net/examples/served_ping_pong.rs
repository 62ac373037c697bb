//! What calls take to a kernel that another process serves: one at a time, in batches, and by 100 clients of whom one takes no answers.
//!
//! `cargo run --release -p ring-net --features iceoryx2,zenoh --example served_ping_pong [cpu | cuda]`

use ring_host::kernels::{Echo, EchoMessage};
use ring_host::{Device, LaunchConfig, Runtime};
use ring_net::network::{self, Endpoints};
use ring_net::shared_memory::{self, Config};
use ring_net::transport::Listener;
use ring_net::{ClientConfig, RemoteChannel, Server, ServerConfig};
use std::error::Error;
use std::os::unix::process::parent_id;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

type Result<T> = std::result::Result<T, Box<dyn Error>>;
type Echoes = RemoteChannel<Echo>;

const LIMIT: Duration = Duration::from_secs(20);

/// No server lives longer, whatever becomes of the process that started it.
const LIFE: Duration = Duration::from_secs(120);

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let device = args.next().unwrap_or_else(|| "cpu".to_owned());
    if let Some(place) = args.next() {
        return serve(device.parse()?, &place);
    }
    let name = format!("ping-pong/{}", std::process::id());
    let endpoint = format!("tcp/{}", std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?);
    alone(device.parse()?)?;
    for (engine, place) in [("shared memory", &name), ("zenoh, loopback", &endpoint)] {
        let _server =
            Process(Command::new(std::env::current_exe()?).args([&device, place]).spawn()?);
        println!("{engine}");
        let mut echo = open(place)?;
        one_by_one(&mut echo, 20_000)?;
        [16, 64, 256].into_iter().try_for_each(|batch| batches(&mut echo, batch))?;
        drop(echo);
        hundred(place)?;
    }
    Ok(())
}

/// A process that ends with this value.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn serve(device: Device, place: &str) -> Result<()> {
    let mut kernel = Runtime::open(device)?.launch::<Echo>(LaunchConfig::default())?;
    kernel.activate(LIMIT)?;
    let listener: Box<dyn Listener> = match place.starts_with("tcp/") {
        true => Box::new(network::listen("ping-pong", Endpoints::at(place).config()?)?),
        false => Box::new(shared_memory::listen(place, &Config::default())?),
    };
    let mut server = Server::new(kernel.take_channel(0)?, listener, ServerConfig::default());
    let (begun, parent) = (Instant::now(), parent_id());
    server.run(|| begun.elapsed() > LIFE || parent_id() != parent)?;
    Ok(())
}

fn open(place: &str) -> Result<Echoes> {
    let config = ClientConfig::default();
    Ok(match place.starts_with("tcp/") {
        true => {
            let connection = network::connect("ping-pong", Endpoints::to(place).config()?)?;
            Echoes::open(connection, config, LIMIT)?
        }
        false => Echoes::open(shared_memory::connect(place, &Config::default())?, config, LIMIT)?,
    })
}

fn print(what: &str, mut times: Vec<Duration>) {
    times.sort();
    let [p50, p99] = [50, 99].map(|percent| times[times.len() * percent / 100]);
    println!("  {what}: p50 {p50:.2?}, p99 {p99:.2?}");
}

/// The kernel in the process of its caller.
fn alone(device: Device) -> Result<()> {
    let mut kernel = Runtime::open(device)?.launch::<Echo>(LaunchConfig::default())?;
    kernel.activate(LIMIT)?;
    let mut times = Vec::new();
    for seed in 0..20_000 {
        let begun = Instant::now();
        kernel.send(EchoMessage::from_seed(seed), LIMIT)?;
        assert_eq!(kernel.recv(LIMIT)?, EchoMessage::from_seed(seed).answer());
        times.push(begun.elapsed());
    }
    print("in one process, one at a time", times);
    kernel.terminate(LIMIT)?;
    Ok(())
}

fn one_by_one(echo: &mut Echoes, count: u64) -> Result<()> {
    let mut times = Vec::new();
    for seed in 0..count {
        let begun = Instant::now();
        echo.send(EchoMessage::from_seed(seed), LIMIT)?;
        assert_eq!(echo.recv(LIMIT)?, EchoMessage::from_seed(seed).answer());
        times.push(begun.elapsed());
    }
    print("one at a time", times);
    Ok(())
}

fn batches(echo: &mut Echoes, batch: usize) -> Result<()> {
    let (begun, count) = (Instant::now(), 1_000_000);
    let (mut sent, mut received) = (0, 0);
    let mut requests = vec![EchoMessage::from_seed(0); batch];
    let mut answers = requests.clone();
    while received < count && begun.elapsed() < LIMIT {
        if sent < count && sent - received + batch as u64 <= echo.capacity() as u64 {
            for (request, seed) in requests.iter_mut().zip(sent..) {
                *request = EchoMessage::from_seed(seed);
            }
            sent += echo.try_send_batch(&requests)? as u64;
        }
        let taken = echo.try_recv_batch(&mut answers)?;
        for (answer, seed) in answers[..taken].iter().zip(received..) {
            assert_eq!(*answer, EchoMessage::from_seed(seed).answer());
        }
        received += taken as u64;
        if taken == 0 {
            std::thread::yield_now();
        }
    }
    let rate = received as f64 / begun.elapsed().as_secs_f64() / 1e6;
    println!("  batches of {batch}: {rate:.2} million messages a second");
    while received < sent {
        echo.recv(LIMIT)?;
        received += 1;
    }
    Ok(())
}

/// 99 clients of one thread, each with a request under way, without and with another one that sends as much as it may and takes no answers.
fn hundred(place: &str) -> Result<()> {
    let mut clients = (0..99).map(|_| open(place)).collect::<Result<Vec<_>>>()?;
    let mut slow = open(place)?;
    for with_slow in [false, true] {
        let mut times = Vec::new();
        let mut since = vec![None; clients.len()];
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(2) {
            for (client, since) in clients.iter_mut().zip(&mut since) {
                match since {
                    None => {
                        *since = Some(Instant::now());
                        client.send(EchoMessage::from_seed(1), LIMIT)?;
                    }
                    Some(sent) => {
                        if client.try_recv().is_ok() {
                            times.push(sent.elapsed());
                            *since = None;
                        }
                    }
                }
            }
            if with_slow {
                let _ = slow.try_send(EchoMessage::from_seed(2));
            }
            std::thread::yield_now();
        }
        for client in
            clients.iter_mut().zip(since).filter_map(|(client, since)| since.map(|_| client))
        {
            client.recv(LIMIT)?;
        }
        let slow = if with_slow { "one that takes nothing beside them" } else { "alone" };
        print(&format!("99 clients, {slow}, {} answers", times.len()), times);
    }
    Ok(())
}
