//! A handler that panics: what the program sees, what is lost, and how it goes on. One kernel is lost, and
//! others go on, on CPU threads and on a GPU alike.
//!
//! `cargo run --release -p example-recovery [device [count]]`

mod exchange;

use exchange::exchange;
use ring_example_kernels::{Fragile, PTX};
use ring_host::kernels::{Echo, EchoMessage};
use ring_host::{Error, Kernels, LaunchConfig, Runtime, TryRecvError};
use std::time::Duration;

/// The request that the handler cannot bear.
const BAD: u64 = 13;

const LIMIT: Duration = Duration::from_secs(10);

// SAFETY: the PTX that was made of the crate whose kernel is launched.
const KERNELS: Kernels = unsafe { Kernels::new(PTX) };

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let device = args.next().as_deref().unwrap_or("auto").parse()?;
    let count = args.next().map_or(Ok(100), |n| n.parse())?;
    Ok(run(&Runtime::open(device)?, KERNELS, count)?)
}

/// Requests 0..count, one of which the handler cannot bear. Keep what was not answered: only you can
/// know whether it may be sent twice.
fn run(runtime: &Runtime, kernels: Kernels, count: u64) -> Result<(), Error> {
    let launch = LaunchConfig::default().kernels(kernels);
    runtime.prepare::<Fragile>(&launch)?; // a GPU loads nothing beside a resident kernel
    let mut beside = runtime.launch::<Echo>(Default::default())?;
    beside.activate(LIMIT)?;
    let mut kernel = runtime.launch::<Fragile>(launch.clone())?;
    kernel.activate(LIMIT)?;

    let (answered, fault) = exchange(&mut kernel, 0..count)?;
    let Some(fault) = fault else {
        println!("{count} requests answered: {BAD} was not among them");
        return Ok(());
    };
    // Answers come in order: what is not among the first `answered` was not answered, but may have been
    // handled. Nothing of that is silent: the fault ended it, and every later call gives it again.
    println!("{fault}\nrequests 0..{answered} were answered, {answered}..{count} were not");
    assert!(answered <= BAD);
    assert_eq!(kernel.try_recv(), Err(TryRecvError::Fault(fault.clone())));

    let request = EchoMessage::from_seed(7);
    beside.send(request, LIMIT)?;
    assert_eq!(beside.recv(LIMIT)?, request.answer());
    println!("the kernel beside it goes on");

    // Launch what was lost anew, and send the rest, less the bad one.
    let mut kernel = runtime.launch::<Fragile>(launch)?;
    kernel.activate(LIMIT)?;
    let rest = (answered..count).filter(|request| *request != BAD);
    let (answered, fault) = exchange(&mut kernel, rest)?;
    assert!(fault.is_none(), "{fault:?}");
    println!("a fresh launch answered the other {answered}");
    Ok(())
}

#[test]
fn on_every_device() {
    use ring_tests::kernels::{bears_panics, of_examples};
    let kernels = of_examples::<Fragile>();
    for count in [1, BAD, BAD + 1, 100] {
        run(&ring_tests::cpu(), kernels, count).unwrap();
    }
    if let Some(gpu) = ring_tests::gpu().filter(|_| bears_panics::<Fragile>("example-recovery")) {
        run(&gpu, kernels, 100).unwrap();
    }
}
