//! Writes when each of some hundred messages was sent, handled and received to a file, which <https://ui.perfetto.dev> shows.
//!
//! `cargo run --release -p ring-host --features perfetto --example trace_file square.pftrace`

use ring_device::ring_kernel;
use ring_host::{Device, LaunchConfig, Memory, Runtime, TraceFile};
use std::error::Error;
use std::fs::File;
use std::io::BufWriter;
use std::time::Duration;

ring_kernel! {
    /// Squares a number.
    pub struct Square { traced: true, }

    fn handle(request: &u64) -> u64 {
        request.wrapping_mul(*request)
    }
}

/// Channels of the kernel.
const CHANNELS: u32 = 2;

/// Messages that are sent at once, again and again on each channel.
const AT_ONCE: [u64; 6] = [1, 1, 2, 5, 32, 128];

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("give the path of the file to write")?;
    let second = Duration::from_secs(1);
    let launch = LaunchConfig::default().memory(Memory::Mapped).channels(CHANNELS).trace(1024);
    let mut kernel = Runtime::open(Device::Cpu)?.launch::<Square>(launch)?;
    let mut trace = kernel.trace().ok_or("it was asked for")?;
    kernel.activate(second)?;
    for at_once in AT_ONCE {
        let requests: Vec<_> = (0..at_once).collect();
        for channel in 0..CHANNELS {
            let channel = kernel.channel(channel)?;
            let sent = channel.try_send_batch(&requests)?;
            assert_eq!(sent, requests.len(), "the ring has room for all");
            for request in &requests {
                assert_eq!(channel.recv(second)?, request * request);
            }
        }
    }
    kernel.terminate(second)?;

    let mut file = TraceFile::new(BufWriter::new(File::create(&path)?))?;
    let square = file.kernel("Square", CHANNELS)?;
    let (mut messages, mut written) = (0, Ok(()));
    trace.read(|message| {
        if written.is_ok() {
            messages += 1;
            written = file.message(square, &message);
        }
    });
    written?;
    file.finish()?;
    println!("{messages} messages of {CHANNELS} channels");
    Ok(())
}
