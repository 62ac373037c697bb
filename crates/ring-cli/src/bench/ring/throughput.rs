//! Messages a second against everything that can be chosen.

use super::{BATCH, Setup, rates};
use crate::bench::context::Context;
use crate::bench::report::Throughput;
use ring_bench::kernels::{Echo16, Echo64Block, Echo64Warp, Echo256, Echo1024, Echo4096};
use ring_host::kernels::Echo;

const CHANNELS: [u32; 5] = [1, 2, 4, 8, 16];
const WIDE: u32 = 4;
const THREADS: [u32; 5] = [64, 128, 256, 512, 1024];
const BATCHES: [usize; 4] = [1, 8, 64, BATCH];
const DEPTHS: [u64; 5] = [1, 16, 256, 4096, 32_768];

/// Steps of [`sweeps`].
pub const STEPS: u64 =
    (CHANNELS.len() + 2 * 5 + BATCHES.len() + DEPTHS.len() + 3 + THREADS.len()) as u64;

/// Measures all sweeps.
pub fn sweeps(context: &Context<'_>, rows: &mut Vec<Throughput>) {
    let echo = Setup::of::<Echo>;
    for channels in CHANNELS {
        context.steps.next(&format!("throughput, {channels} channels"));
        let setup = echo().channels(channels);
        rows.push(setup.row::<Echo>(context, "channels", rates::<Echo>(context, &setup)));
    }
    for (channels, sweep) in [(1, "size"), (WIDE, "size_wide")] {
        macro_rules! sizes {
            ($($kernel:ty)+) => {$({
                let setup = Setup::of::<$kernel>().channels(channels);
                let bytes = setup.shape.bytes;
                context.steps.next(&format!("throughput, {bytes} bytes, {channels} channels"));
                rows.push(setup.row::<$kernel>(context, sweep, rates::<$kernel>(context, &setup)));
            })+};
        }
        sizes!(Echo16 Echo Echo256 Echo1024 Echo4096);
    }
    for batch in BATCHES {
        context.steps.next(&format!("throughput, batches of {batch}"));
        let mut setup = echo();
        setup.shape.batch = batch;
        rows.push(setup.row::<Echo>(context, "batch", rates::<Echo>(context, &setup)));
    }
    for depth in DEPTHS {
        context.steps.next(&format!("throughput, depth {depth}"));
        let mut setup = echo();
        setup.shape.depth = depth;
        rows.push(setup.row::<Echo>(context, "depth", rates::<Echo>(context, &setup)));
    }
    context.steps.next("throughput, scope thread");
    let setup = echo();
    rows.push(setup.row::<Echo>(context, "scope", rates::<Echo>(context, &setup)));
    context.steps.next("throughput, scope warp");
    let setup = Setup::of::<Echo64Warp>();
    rows.push(setup.row::<Echo64Warp>(context, "scope", rates::<Echo64Warp>(context, &setup)));
    context.steps.next("throughput, scope block");
    let setup = Setup::of::<Echo64Block>();
    rows.push(setup.row::<Echo64Block>(context, "scope", rates::<Echo64Block>(context, &setup)));
    for threads in THREADS {
        context.steps.next(&format!("throughput, {threads} threads"));
        let mut setup = echo();
        setup.shape.threads = threads;
        rows.push(setup.row::<Echo>(context, "threads", rates::<Echo>(context, &setup)));
    }
}
