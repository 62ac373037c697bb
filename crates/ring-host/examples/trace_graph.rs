//! Writes when each of some hundred messages was sent, handled by each kernel of a graph, and received to a file, which
//! <https://ui.perfetto.dev> shows.
//!
//! `cargo run --release -p ring-host --features perfetto --example trace_graph graph.pftrace`

use ring_device::ring_kernel;
use ring_host::{Device, GraphBuilder, LaunchConfig, Route, Runtime, TraceFile};
use std::error::Error;
use std::fs::File;
use std::io::BufWriter;
use std::time::Duration;

ring_kernel! {
    /// Squares numbers.
    pub struct Square {
        traced: true,
        ports: {
            /// The squares.
            SQUARES: [u64; 1],
        },
    }

    fn handle(number: &u64, out: &mut Ports) {
        out.emit(Square::SQUARES, number.wrapping_mul(*number));
    }
}

ring_kernel! {
    /// Sums what it gets.
    pub struct Sum {
        traced: true,
        ports: {
            /// The sums so far.
            SUMS: [u64; 1],
        },
    }

    fn handle(sum: &mut u64, number: &u64, out: &mut Ports) {
        *sum = sum.wrapping_add(*number);
        out.emit(Sum::SUMS, *sum);
    }
}

/// Numbers that are sent at once, again and again.
const AT_ONCE: [u64; 6] = [1, 1, 2, 5, 32, 128];

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("give the path of the file to write")?;
    let second = Duration::from_secs(1);
    let mut graph = GraphBuilder::new();
    let square = graph.kernel::<Square>(LaunchConfig::default().trace(1024));
    let sum = graph.kernel::<Sum>(LaunchConfig::default().trace(1024));
    graph.feed(square).link(square, Square::SQUARES, sum, Route::Pairwise);
    let sums = graph.read(sum, Sum::SUMS);

    let mut graph = Runtime::open(Device::Cpu)?.launch_graph(&graph)?;
    let mut trace = graph.trace().ok_or("it was asked for")?;
    graph.activate(second)?;
    let (mut numbers, mut sums) = (graph.sender(square, 0)?, graph.receiver(sums, 0)?);
    let mut sum = 0;
    for at_once in AT_ONCE {
        let some: Vec<_> = (0..at_once).collect();
        let sent = numbers.try_send_batch(&some)?;
        assert_eq!(sent, some.len(), "the ring has room for all");
        for number in some {
            sum += number * number;
            assert_eq!(sums.recv(second)?, sum);
        }
    }
    graph.terminate(second)?;

    let mut file = TraceFile::new(BufWriter::new(File::create(&path)?))?;
    let tracks = file.graph(trace.kernels(), trace.rings())?;
    let mut written = Ok(());
    trace.read(|event| {
        if written.is_ok() {
            written = file.event(tracks, &event);
        }
    });
    written?;
    file.finish()?;
    println!("{} messages of 1 channels", AT_ONCE.iter().sum::<u64>());
    Ok(())
}
