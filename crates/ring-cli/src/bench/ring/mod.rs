//! What this runtime does, through its public calls.

pub mod bandwidth;
pub mod growth;
pub mod latency;
pub mod many;
pub mod modes;
mod pipe;
pub mod throughput;

pub use pipe::{BATCH, RingPipe};

use super::context::{Context, ended, wrong};
use super::drive::{Load, together};
use super::measured::Measured;
use super::report::{Found, Shape, Throughput, Whose};
use super::stats::Rates;
use ring_host::{Channel, Kernel, KernelHandle, LaunchConfig};

/// A launch with the shape of the messages through it.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The launch, without channels, threads and capacity.
    pub launch: LaunchConfig,
    /// How messages are sent.
    pub shape: Shape,
}

impl Setup {
    /// The default launch of kernel `K`.
    pub fn of<K: Kernel>() -> Setup {
        let (launch, threads) = (LaunchConfig::default(), LaunchConfig::DEFAULT_THREADS);
        let capacity = launch.slots::<K>();
        let shape = Shape {
            channels: 1,
            bytes: size_of::<K::Request>(),
            answer_bytes: size_of::<K::Response>(),
            threads,
            batch: BATCH,
            depth: 2 * u64::from(capacity),
            capacity,
        };
        Setup { launch, shape }
    }

    /// With so many channels.
    pub fn channels(mut self, channels: u32) -> Setup {
        self.shape.channels = channels;
        self
    }

    /// With so many slots a ring: messages on their way may fill both.
    pub fn capacity(mut self, capacity: u32) -> Setup {
        (self.shape.capacity, self.shape.depth) = (capacity, 2 * u64::from(capacity));
        self
    }

    fn launch(&self) -> LaunchConfig {
        let Shape { channels, threads, capacity, .. } = self.shape;
        self.launch.clone().channels(channels).threads(threads).capacity(capacity)
    }

    /// A row of a table.
    pub fn row<K: Kernel>(
        &self,
        context: &Context<'_>,
        sweep: &'static str,
        rate: Found<Rates>,
    ) -> Throughput {
        let shape = self.shape.clone();
        Throughput {
            sweep,
            name: K::NAME,
            device: context.device(),
            whose: Whose::Ours,
            shape,
            rate,
        }
    }
}

/// Takes all channels out of a kernel.
pub fn channels<K: Measured>(kernel: &mut KernelHandle<K>) -> Found<Vec<Channel<K>>> {
    (0..kernel.channels()).map(|channel| kernel.take_channel(channel).map_err(wrong)).collect()
}

/// Messages a second, once, by a kernel launched for that; host thread `k` on channel `k`.
pub fn rate<K: Measured>(context: &Context<'_>, setup: &Setup, load: &Load) -> Found<f64> {
    let mut kernel = context.active::<K>(setup.launch())?;
    let mut pipes: Vec<_> = channels(&mut kernel)?.into_iter().map(RingPipe::new).collect();
    let load = setup.shape.load(load);
    // Caches, page tables and clocks settle.
    let warm = Load { time: load.time / 10, messages: (load.messages / 10).min(1_000_000), ..load };
    together(&mut pipes, &warm, context.cores).map_err(wrong)?;
    let rate = together(&mut pipes, &load, context.cores).map_err(wrong)?;
    drop(pipes);
    ended(kernel)?;
    context.proceed()?; // else it may have been cut short
    Ok(rate)
}

/// The same as often as the settings say.
pub fn rates<K: Measured>(context: &Context<'_>, setup: &Setup) -> Found<Rates> {
    let mut rates = Ok(Rates::default());
    for _ in 0..context.settings.repeats {
        context.go_on(&mut rates, |rates| {
            rate::<K>(context, setup, &context.load()).map(|rate| rates.add(rate))
        });
    }
    rates
}

#[cfg(test)]
mod tests {
    use super::*;
    use ring_host::kernels::Echo;

    #[test]
    fn the_defaults_are_those_of_a_launch() {
        let default = LaunchConfig::default().threads(LaunchConfig::DEFAULT_THREADS);
        let ours = Setup::of::<Echo>().launch();
        assert_eq!(ours.slots::<Echo>(), default.slots::<Echo>());
        let capacity = default.slots::<Echo>();
        assert_eq!(format!("{ours:?}"), format!("{:?}", default.capacity(capacity)));
    }
}
