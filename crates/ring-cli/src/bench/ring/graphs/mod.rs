//! Kernels that talk: one message through a chain of them, and messages a second over links.

mod chains;
mod fed;
mod links;

use crate::bench::context::Context;
use crate::bench::measured::own;
use crate::bench::report::Report;
use crate::bench::settings::Settings;
use ring_host::{GraphBuilder, LaunchConfig, Node, WithPorts};

pub use chains::CHAINS;
pub use links::{ACROSS, BY_KEY, KEYS, LINKS, MANY, MANY_ACROSS, MANY_NEED, SLOTS};

/// Words of a message.
type Words = [u64; 8];

/// Steps of [`measure`].
pub fn steps(settings: &Settings) -> u64 {
    settings.rounds + 2 * settings.repeats
}

/// Measures all: each round of every row in turn.
pub fn measure(context: &Context<'_>, report: &mut Report) {
    report.graphs = chains::trips(context);
    report.throughput.extend(links::rates(context));
}

/// Measures kernels of two devices likewise.
pub fn measure_across(context: &Context<'_>, report: &mut Report) {
    report.peers = chains::across(context);
    let repeats = context.settings.repeats;
    let rates = context.rates("peers, links", repeats, links::across(context));
    report.throughput.extend(rates);
}

/// Steps of it.
pub fn steps_across(settings: &Settings) -> u64 {
    settings.rounds + settings.repeats
}

/// A kernel of a graph by the default launch, with so many channels.
fn kernel<K: WithPorts>(context: &Context<'_>, graph: &mut GraphBuilder, channels: u32) -> Node<K> {
    graph.kernel::<K>(own::<K>(context.kernels, LaunchConfig::default().channels(channels)))
}
