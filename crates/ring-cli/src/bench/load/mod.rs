//! Latency under load, between one message in flight and saturation.
//!
//! [`closed`] keeps a number of messages in flight on one channel, [`channels`] one message on each of several
//! channels, both by the loop of [`in_flight`]. [`open`] sends messages when they are due by a [`schedule`], and counts
//! their times from then on: a stall of the sender is not hidden. Loops write to a [`log`], of which times are computed
//! afterwards; [`watch`] ends every wait. All of it lands in [`rows`].

mod channels;
mod clock;
mod closed;
#[cfg(test)]
mod fake;
mod in_flight;
mod log;
mod open;
pub mod rows;
mod schedule;
mod single;
mod watch;

use super::context::Context;
use super::report::Report;
use super::settings::Settings;
use rows::UnderLoad;

/// Steps of [`measure`].
pub fn steps(settings: &Settings) -> u64 {
    2 * settings.rounds + settings.repeats
}

/// Measures all.
pub fn measure(context: &Context<'_>, report: &mut Report) {
    let closed = closed::measure(context);
    let open = open::measure(context);
    let channels = channels::measure(context);
    report.load = Some(UnderLoad { device: context.device(), closed, open, channels });
}
