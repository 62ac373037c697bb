//! C = A + B, on the device. Short vectors travel in the message itself; long ones lie in the payload
//! arena, memory of the kernel that the message only names.
//!
//! `cargo run --release -p example-vector-add [device [elements]]`

use ring_host::kernels::{INLINE_ELEMENTS, VectorAdd, VectorAddRequest};
use ring_host::{LaunchConfig, Runtime};
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let device = args.next().as_deref().unwrap_or("auto").parse()?;
    let elements = args.next().map_or(Ok(100_000), |n| n.parse())?;
    run(&Runtime::open(device)?, elements)
}

fn run(runtime: &Runtime, elements: usize) -> Result<(), Box<dyn std::error::Error>> {
    // Three vectors of 4-byte elements side by side: A, B and the sum.
    let launch = LaunchConfig::default().payload_bytes(3 * 4 * elements.max(1));
    let mut kernel = runtime.launch::<VectorAdd>(launch)?;
    kernel.activate(SECOND)?;

    // By hand, inline: request and response hold the vectors.
    let (a, b) = vectors(INLINE_ELEMENTS);
    let request = VectorAddRequest::inline(&a, &b)?;
    kernel.send(request, SECOND)?;
    check(&a, &b, &kernel.recv(SECOND)?.c[..INLINE_ELEMENTS]);

    // By hand, through the arena: write, send the message that says where, read when it is answered.
    let (a, b) = vectors(elements);
    let bytes = 4 * elements as u64;
    kernel.write_payload(0, &a, SECOND)?;
    kernel.write_payload(bytes, &b, SECOND)?;
    kernel.send(VectorAddRequest::in_payload(elements as u32, 0), SECOND)?;
    kernel.recv(SECOND)?;
    let mut c = vec![0.0; elements];
    kernel.read_payload(2 * bytes, &mut c, SECOND)?;
    check(&a, &b, &c);

    // Or by the method that chooses between the two, and looks at the answer's status.
    c.fill(0.0);
    kernel.add(&a, &b, &mut c, SECOND)?;
    check(&a, &b, &c);

    println!("{}: sums of {INLINE_ELEMENTS} and {elements} elements", runtime.device().name);
    kernel.terminate(SECOND)?;
    Ok(())
}

fn vectors(elements: usize) -> (Vec<f32>, Vec<f32>) {
    (0..elements).map(|i| (i as f32, 0.5 * i as f32)).unzip()
}

fn check(a: &[f32], b: &[f32], c: &[f32]) {
    assert_eq!(c.len(), a.len());
    for (i, c) in c.iter().enumerate() {
        assert_eq!(*c, a[i] + b[i], "element {i}");
    }
}

#[test]
fn on_every_device() {
    for elements in [1, INLINE_ELEMENTS, 1000, 100_000] {
        ring_tests::on_each_device(|runtime| run(runtime, elements).unwrap());
    }
}
