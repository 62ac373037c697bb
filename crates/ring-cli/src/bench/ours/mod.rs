//! What this runtime does, through its public calls.

pub mod bandwidth;
pub mod growth;
pub mod latency;
pub mod many;
pub mod modes;
mod pipe;
pub mod throughput;

pub use pipe::{BATCH, RingPipe};

use super::bed::{Bed, ended, wrong};
use super::drive::{Load, together};
use super::measured::Measured;
use super::report::{Found, Shape, Throughput, Whose};
use super::stats::Rates;
use ring_host::{Kernel, Lane, Launch, Resident};

/// A launch with the shape of the messages through it.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The launch, without lanes, threads and capacity.
    pub launch: Launch,
    /// How messages are sent.
    pub shape: Shape,
}

impl Setup {
    /// The default launch of kernel `K`.
    pub fn of<K: Kernel>() -> Setup {
        let (launch, threads) = (Launch::default(), Launch::DEFAULT_THREADS);
        let capacity = launch.slots::<K>();
        let shape = Shape {
            lanes: 1,
            bytes: size_of::<K::Request>(),
            answer_bytes: size_of::<K::Response>(),
            threads,
            batch: BATCH,
            depth: 2 * u64::from(capacity),
            capacity,
        };
        Setup { launch, shape }
    }

    /// With so many lanes.
    pub fn lanes(mut self, lanes: u32) -> Setup {
        self.shape.lanes = lanes;
        self
    }

    /// With so many slots a ring: messages on their way may fill both.
    pub fn capacity(mut self, capacity: u32) -> Setup {
        (self.shape.capacity, self.shape.depth) = (capacity, 2 * u64::from(capacity));
        self
    }

    fn launch(&self) -> Launch {
        let Shape { lanes, threads, capacity, .. } = self.shape;
        self.launch.clone().lanes(lanes).threads(threads).capacity(capacity)
    }

    /// A row of a table.
    pub fn row<K: Kernel>(
        &self,
        bed: &Bed<'_>,
        sweep: &'static str,
        rate: Found<Rates>,
    ) -> Throughput {
        let shape = self.shape.clone();
        Throughput { sweep, name: K::NAME, device: bed.device(), whose: Whose::Ours, shape, rate }
    }
}

/// Takes all lanes out of a kernel.
pub fn lanes<K: Measured>(kernel: &mut Resident<K>) -> Found<Vec<Lane<K>>> {
    (0..kernel.lanes()).map(|lane| kernel.take_lane(lane).map_err(wrong)).collect()
}

/// Messages a second, once, by a kernel launched for that; host thread `k` on lane `k`.
pub fn rate<K: Measured>(bed: &Bed<'_>, setup: &Setup, load: &Load) -> Found<f64> {
    let mut kernel = bed.active::<K>(setup.launch())?;
    let mut pipes: Vec<_> = lanes(&mut kernel)?.into_iter().map(RingPipe::new).collect();
    let load = setup.shape.load(load);
    // Caches, page tables and clocks settle.
    let warm = Load { time: load.time / 10, messages: (load.messages / 10).min(1_000_000), ..load };
    together(&mut pipes, &warm, bed.cores).map_err(wrong)?;
    let rate = together(&mut pipes, &load, bed.cores).map_err(wrong)?;
    drop(pipes);
    ended(kernel)?;
    bed.proceed()?; // else it may have been cut short
    Ok(rate)
}

/// The same as often as the settings say.
pub fn rates<K: Measured>(bed: &Bed<'_>, setup: &Setup) -> Found<Rates> {
    let mut rates = Ok(Rates::default());
    for _ in 0..bed.settings.repeats {
        bed.go_on(&mut rates, |rates| {
            rate::<K>(bed, setup, &bed.load()).map(|rate| rates.add(rate))
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
        let default = Launch::default().threads(Launch::DEFAULT_THREADS);
        let ours = Setup::of::<Echo>().launch();
        assert_eq!(ours.slots::<Echo>(), default.slots::<Echo>());
        let capacity = default.slots::<Echo>();
        assert_eq!(format!("{ours:?}"), format!("{:?}", default.capacity(capacity)));
    }
}
