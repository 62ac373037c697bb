//! A wave equation by a grid: many steps in one message.

use super::{not_made, once, timed};
use crate::bench::context::{Context, ended, wrong};
use crate::bench::report::Found;
use crate::bench::ring::latency::exchange;
use crate::bench::stats::Times;
use ring_host::{Kernel, KernelHandle, LaunchConfig};
use ring_wave::{Field, KERNELS, Reference};
use ring_whole_device_kernels::{Membrane, Wave};
use std::cell::OnceCell;
use std::time::Duration;

/// A membrane that takes its steps in messages.
pub struct WaveRun {
    side: u32,
    steps: u32,
    /// Its field in buffers, and what that should be after the steps of one message.
    loaded: OnceCell<(Field, Reference)>,
}

impl WaveRun {
    /// Of `side` x `side` points, of which a message takes so many steps.
    pub fn new(side: u32, steps: u32) -> WaveRun {
        WaveRun { side, steps, loaded: OnceCell::new() }
    }

    /// A round by a kernel launched for that. The field after the first message is compared with the reference.
    pub fn round(&self, context: &Context<'_>, times: &mut Times) -> Found<()> {
        let steps = self.steps;
        context.check_interrupt()?;
        let (field, right) = once(&self.loaded, || {
            let field = Field::new(context.runtime, self.side).map_err(not_made)?;
            let right = field.reference(steps);
            Ok((field, right))
        })?;
        let kernels = context.kernels.with_entry(Wave::ENTRY, KERNELS);
        let mut kernel = context.grid::<Wave>(LaunchConfig::default().kernels(kernels))?;
        field.reset().map_err(wrong)?;
        let (answer, _) = moved(&mut kernel, field, steps)?;
        field.check(right, &answer).map_err(wrong)?;
        timed(context, times, |_| moved(&mut kernel, field, steps).map(|(_, time)| time))?;
        ended(kernel)
    }
}

/// Moves the field on; what the kernel answered, and how long that took.
fn moved(
    kernel: &mut KernelHandle<Wave>,
    field: &Field,
    steps: u32,
) -> Found<(Membrane, Duration)> {
    let (answer, time) = exchange(kernel, field.message(steps))?;
    match answer.done == 1 && answer.squares.is_finite() {
        true => Ok((answer, time)),
        false => Err(wrong(format!("{answer:?} is no answer to {steps} steps"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::example;
    use crate::bench::report::Stop;
    use crate::interrupt::Interrupt;

    #[test]
    fn another_field_and_a_refused_message_are_wrong() {
        example::with(Interrupt::never(), |context| {
            let mut membrane = WaveRun::new(32, 5);
            let why = |membrane: &WaveRun| match membrane.round(context, &mut Times::new()) {
                Err(Stop::Wrong(why)) => why,
                other => panic!("{other:?}"),
            };
            assert_eq!(membrane.round(context, &mut Times::new()), Ok(()));
            let (field, right) = membrane.loaded.get_mut().unwrap();
            *right = field.reference(6);
            assert!(why(&membrane).starts_with("the field is "));
            // A membrane of two points side by side is refused by the kernel.
            assert!(why(&WaveRun::new(2, 5)).contains("done: 0"));
        });
    }
}
