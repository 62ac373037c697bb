//! A kernel with a state: an order book that stays on the device. A message is one order of 16 bytes; the
//! book, 2 KiB, is read once, at the end.
//!
//! `cargo run --release -p example-order-book [device [orders]]`, where the device is auto, cpu or cuda.

use ring_example_kernels::{Book, Order, PTX, Side, TICKS};
use ring_host::{Error, Kernels, LaunchConfig, Runtime};
use std::time::{Duration, Instant};

const SECOND: Duration = Duration::from_secs(1);

// SAFETY: the PTX that was made of the crate whose kernel is launched.
const KERNELS: Kernels = unsafe { Kernels::new(PTX) };

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let device = args.next().as_deref().unwrap_or("auto").parse()?;
    let orders = args.next().map_or(Ok(1_000_000), |n| n.parse())?;
    Ok(run(&Runtime::open(device)?, KERNELS, orders)?)
}

/// The `n`th order of a market that goes to and fro around the middle price.
fn order(n: u64) -> Order {
    let random = (n + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
    let side = if random.is_multiple_of(2) { Side::Buy } else { Side::Sell } as u32;
    let price = TICKS as u32 / 2 - 16 + (random >> 1) as u32 % 32;
    Order { side, price, quantity: 1 + (random >> 8) as u32 % 100, reserved: 0 }
}

/// Sends the orders and counts what was traded; then asks the book whether it agrees.
fn run(host: &Runtime, kernels: Kernels, orders: u64) -> Result<(), Error> {
    let mut kernel = host.launch::<Book>(LaunchConfig::default().kernels(kernels))?;
    kernel.activate(SECOND)?;

    let (mut sent, mut received, mut filled) = (0, 0, 0);
    let begun = Instant::now();
    while received < orders {
        let most = (orders - sent).min(64) as usize;
        sent += kernel.try_send_each(most, |k| order(sent + k as u64))? as u64;
        received += kernel.try_recv_each(64, |fill| filled += u64::from(fill.filled))? as u64;
    }
    let time = begun.elapsed();
    kernel.terminate(SECOND)?;

    // The state outlives the kernel's time on the device.
    let book = kernel.read_state(0, SECOND)?;
    let waiting: u64 = book.bids.iter().chain(&book.asks).map(|n| u64::from(*n)).sum();
    let asked: u64 = (0..orders).map(|n| u64::from(order(n).quantity)).sum();
    assert_eq!(book.traded, filled, "the book and the answers disagree");
    assert_eq!(2 * filled + waiting, asked, "each share was traded, or waits");
    let rate = orders as f64 / time.as_secs_f64() / 1e6;
    println!("{}: {orders} orders in {time:.1?} ({rate:.2} million a second)", host.device().name);
    println!("{filled} shares traded, {waiting} wait in the book");
    Ok(())
}

#[test]
fn on_every_device() {
    let kernels = ring_tests::kernels::of_examples::<Book>();
    ring_tests::on_each_device(|host| run(host, kernels, 20_000).unwrap());
}
