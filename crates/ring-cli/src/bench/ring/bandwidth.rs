//! Large messages in, small answers out.

use super::{Setup, rate};
use crate::bench::context::Context;
use crate::bench::report::{Found, Throughput};
use crate::bench::stats::Rates;
use ring_bench::kernels::Digest;

/// Channels and slots that are tried. The first three are the default launch's.
pub const SETUPS: [(u32, u32); 5] = [(1, 1024), (2, 1024), (4, 1024), (1, 256), (4, 256)];

/// Rates of each setup while they are being measured.
#[derive(Debug)]
pub struct Bandwidth(Vec<(Setup, Found<Rates>)>);

impl Bandwidth {
    /// Nothing measured yet.
    pub fn new() -> Bandwidth {
        let setup = |(channels, slots)| Setup::of::<Digest>().channels(channels).capacity(slots);
        Bandwidth(SETUPS.map(|each| (setup(each), Ok(Rates::default()))).into())
    }

    /// Measures each once.
    pub fn round(&mut self, context: &Context<'_>) {
        for (setup, rates) in &mut self.0 {
            context.go_on(rates, |rates| {
                rate::<Digest>(context, setup, &context.load()).map(|rate| rates.add(rate))
            });
        }
    }

    /// What was found.
    pub fn rows(self, context: &Context<'_>) -> Vec<Throughput> {
        let row = |(setup, rates): (Setup, _)| setup.row::<Digest>(context, "bandwidth", rates);
        self.0.into_iter().map(row).collect()
    }
}
