//! An order book that one process owns, on a GPU or on CPU threads, and others trade on.
//!
//! In one terminal `cargo run --release -p example-service serve [device]`, in others `cargo run --release -p example-service trade [orders]`.
//! Between two machines, the first of which has the address 10.0.0.1, with `--features network` before `serve auto tcp/10.0.0.1:7447` and
//! `trade 100000 tcp/10.0.0.1:7447`. Whoever reaches that address may trade: docs/services.md says how zenoh keeps others out.

use ring_example_kernels::{Book, Order, PTX, Side, TICKS};
use ring_host::{KernelHandle, Kernels, LaunchConfig, Runtime};
use ring_net::error::RecvTimeoutError;
use ring_net::transport::{Connection, Listener};
use ring_net::{ClientConfig, RemoteChannel, Server, ServerConfig};
use std::time::{Duration, Instant};

const LIMIT: Duration = Duration::from_secs(10);

/// What processes call the service by.
const NAME: &str = "book";

// SAFETY: the PTX that was made of the crate whose kernel is launched.
const KERNELS: Kernels = unsafe { Kernels::new(PTX) };

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let arg = |n: usize| args.get(n).map(String::as_str);
    match arg(0) {
        Some("serve") => {
            let runtime = Runtime::open(arg(1).unwrap_or("auto").parse()?)?;
            let kernel = launch(&runtime)?;
            let listener = listen(NAME, arg(2))?;
            println!("{NAME} is served on {}", runtime.device().name);
            serve(kernel, listener, || false)
        }
        Some("trade") => {
            let orders = arg(1).map_or(Ok(100_000), str::parse)?;
            trade(connect(NAME, arg(2))?, orders)
        }
        _ => Err("say `serve [device [endpoint]]` or `trade [orders [endpoint]]`".into()),
    }
}

/// The book, ready for orders. On a GPU the driver may take a while to compile it for the first time.
fn launch(runtime: &Runtime) -> Result<KernelHandle<Book>> {
    let mut kernel = runtime.launch::<Book>(LaunchConfig::default().kernels(KERNELS))?;
    kernel.activate(LIMIT)?;
    Ok(kernel)
}

/// Has all clients' orders matched in the order in which they come.
fn serve(
    mut kernel: KernelHandle<Book>,
    listener: Box<dyn Listener>,
    ends: impl FnMut() -> bool,
) -> Result<()> {
    let mut server = Server::new(kernel.take_channel(0)?, listener, ServerConfig::default());
    server.run(ends)?;
    let counts = server.counts();
    server.finish(LIMIT)?;
    kernel.terminate(LIMIT)?;
    let book = kernel.read_state(0, LIMIT)?;
    println!("{} orders of {} clients, {} traded", counts.requests, counts.opened, book.traded);
    Ok(())
}

/// Sends orders and counts what was traded of them. A server that dies meanwhile is told, and orders go on with the next one.
fn trade(connection: Box<dyn Connection>, orders: u64) -> Result<()> {
    let mut book = RemoteChannel::<Book>::open(connection, ClientConfig::default(), LIMIT)?;
    let (mut sent, mut filled, mut unknown) = (0, 0, 0);
    let begun = Instant::now();
    for _ in 0..orders {
        // A few dozen are on their way at a time.
        while sent < orders && book.unanswered() < 64 {
            book.send(order(sent), LIMIT)?;
            sent += 1;
        }
        match book.recv(LIMIT) {
            Ok(fill) => filled += u64::from(fill.filled),
            Err(RecvTimeoutError::Unknown(order)) => {
                unknown += 1;
                println!("{order}");
            }
            Err(error) => return Err(error.into()),
        }
    }
    let rate = orders as f64 / begun.elapsed().as_secs_f64();
    println!("{orders} orders, {rate:.0} a second: {filled} filled at once, {unknown} unknown");
    Ok(())
}

/// The `n`th order of a market that goes to and fro around the middle price.
fn order(n: u64) -> Order {
    let random = (n + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
    let side = if random.is_multiple_of(2) { Side::Buy } else { Side::Sell } as u32;
    let price = TICKS as u32 / 2 - 16 + (random >> 1) as u32 % 32;
    Order { side, price, quantity: 1 + (random >> 8) as u32 % 100, reserved: 0 }
}

/// Listens to processes of this host, or at an endpoint.
fn listen(name: &str, endpoint: Option<&str>) -> Result<Box<dyn Listener>> {
    match endpoint {
        #[cfg(target_os = "linux")]
        None => Ok(Box::new(ring_net::shared_memory::listen(name, &Default::default())?)),
        #[cfg(feature = "network")]
        Some(endpoint) => {
            let endpoints = ring_net::network::Endpoints::at(endpoint);
            Ok(Box::new(ring_net::network::listen(name, endpoints.config()?)?))
        }
        #[allow(
            unreachable_patterns,
            reason = "it depends on the system and the features which ones there are"
        )]
        _ => Err(format!("this program cannot serve {name} so: see its features").into()),
    }
}

/// Connects to a process of this host, or to an endpoint.
fn connect(name: &str, endpoint: Option<&str>) -> Result<Box<dyn Connection>> {
    match endpoint {
        #[cfg(target_os = "linux")]
        None => Ok(Box::new(ring_net::shared_memory::connect(name, &Default::default())?)),
        #[cfg(feature = "network")]
        Some(endpoint) => {
            let endpoints = ring_net::network::Endpoints::to(endpoint);
            Ok(Box::new(ring_net::network::connect(name, endpoints.config()?)?))
        }
        #[allow(
            unreachable_patterns,
            reason = "it depends on the system and the features which ones there are"
        )]
        _ => Err(format!("this program cannot call {name} so: see its features").into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[allow(dead_code, reason = "where there is no engine, there is no test")]
    fn trades(runtime: &Runtime, endpoint: Option<&str>) {
        let name = format!("{NAME}-{}-{:?}", std::process::id(), runtime.device().kind);
        let kernel = launch(runtime).unwrap();
        let listener = listen(&name, endpoint).unwrap();
        std::thread::scope(|scope| {
            let traders: Vec<_> = (0..3)
                .map(|_| scope.spawn(|| trade(connect(&name, endpoint).unwrap(), 2000).unwrap()))
                .collect();
            serve(kernel, listener, || traders.iter().all(|trader| trader.is_finished())).unwrap();
        });
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn on_every_device() {
        trades(&ring_tests::cpu(), None);
        if let Some(gpu) = ring_tests::gpu() {
            trades(&gpu, None);
        }
    }

    #[cfg(feature = "network")]
    #[test]
    fn at_an_endpoint() {
        let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = format!("tcp/{}", socket.local_addr().unwrap());
        drop(socket);
        trades(&ring_tests::cpu(), Some(&endpoint));
    }
}
