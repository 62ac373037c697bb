//! Measurements of this runtime, through its public interface.

pub mod compute;
pub mod graphs;
pub mod grids;
pub mod growth;
pub mod latency;
pub mod many;
pub mod modes;
mod pipe;
pub mod scopes;
pub mod throughput;

pub use pipe::{BATCH, RingPipe};

use super::context::{Context, ended, wrong};
use super::drive::{Load, together};
use super::measured::Measured;
use super::report::{Found, Shape, Throughput, Whose};
use super::turns::Rated;
use ring_host::{Channel, Kernel, KernelHandle, LaunchConfig};

impl Shape {
    /// That of the default launch of kernel `K`.
    pub fn of<K: Kernel>() -> Shape {
        let capacity = LaunchConfig::default().slots::<K>();
        Shape {
            channels: 1,
            bytes: size_of::<K::Request>(),
            answer_bytes: size_of::<K::Response>(),
            threads: LaunchConfig::DEFAULT_THREADS,
            batch: BATCH,
            depth: 2 * u64::from(capacity),
            capacity,
        }
    }

    /// With so many channels.
    pub fn channels(self, channels: u32) -> Shape {
        Shape { channels, ..self }
    }

    /// With so many slots a ring: messages on their way may fill both.
    pub fn capacity(self, capacity: u32) -> Shape {
        Shape { capacity, depth: 2 * u64::from(capacity), ..self }
    }

    fn launch(&self) -> LaunchConfig {
        let Shape { channels, threads, capacity, .. } = *self;
        LaunchConfig::default().channels(channels).threads(threads).capacity(capacity)
    }
}

/// A row of kernel `K` on the GPU.
pub fn rated<K: Measured>(sweep: &'static str, shape: Shape) -> Rated {
    let row = Throughput::new(sweep, (K::NAME, Whose::Ours), "cuda", shape);
    Rated { row, rate: |context, shape| rate::<K>(context, shape, &context.load()) }
}

/// Takes all channels out of a kernel.
pub fn channels<K: Measured>(kernel: &mut KernelHandle<K>) -> Found<Vec<Channel<K>>> {
    (0..kernel.channels()).map(|channel| kernel.take_channel(channel).map_err(wrong)).collect()
}

/// Messages a second, once, by a kernel launched for that; host thread `k` on channel `k`.
pub fn rate<K: Measured>(context: &Context<'_>, shape: &Shape, load: &Load) -> Found<f64> {
    let mut kernel = context.active::<K>(shape.launch())?;
    let mut pipes: Vec<_> = channels(&mut kernel)?.into_iter().map(RingPipe::new).collect();
    let load = shape.load(load);
    together(&mut pipes, &warm_up(&load), context.cores)?;
    let rate = together(&mut pipes, &load, context.cores)?;
    drop(pipes);
    ended(kernel)?;
    context.check_interrupt()?; // else it may have been cut short
    Ok(rate)
}

/// What goes before that load and does not count: caches, page tables and clocks settle.
fn warm_up(load: &Load) -> Load {
    Load { time: load.time / 10, messages: (load.messages / 10).min(1_000_000), ..*load }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ring_host::kernels::Echo;

    #[test]
    fn the_defaults_are_those_of_a_launch() {
        let default = LaunchConfig::default().threads(LaunchConfig::DEFAULT_THREADS);
        let ours = Shape::of::<Echo>().launch();
        assert_eq!(ours.slots::<Echo>(), default.slots::<Echo>());
        let capacity = default.slots::<Echo>();
        assert_eq!(format!("{ours:?}"), format!("{:?}", default.capacity(capacity)));
    }
}
