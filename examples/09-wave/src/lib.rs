//! A wave on a square membrane, by finite differences: many steps in one message to a grid.

use ring_host::{Buffer, Kernels, Runtime};
use ring_whole_device_kernels::{Membrane, PTX, Steps};
use std::time::Duration;

/// The longest wait for an answer.
pub const LONG: Duration = Duration::from_secs(60);

/// The square of the Courant number.
pub const COURANT: f32 = 0.25;

/// By how much a field may be off (L2), as a part of what it has in all at the beginning. No point may be off by more than that.
const MOST_OFF: f64 = 1e-3;

/// The kernel.
// SAFETY: the PTX that was made of the crate whose kernel is launched.
pub const KERNELS: Kernels = unsafe { Kernels::new(PTX) };

/// What was asked for, or why it was not done.
pub type Done<T> = Result<T, Box<dyn std::error::Error>>;

/// A membrane's displacements in buffers of a runtime: a drop beside the middle at the beginning, at rest.
#[derive(Debug)]
pub struct Field {
    side: u32,
    begin: Vec<f32>,
    now: Buffer<f32>,
    before: Buffer<f32>,
    spare: [Buffer<f32>; 2],
}

impl Field {
    /// A membrane of `side` x `side` points at the beginning.
    ///
    /// # Errors
    /// When there is no room for its buffers.
    pub fn new(host: &Runtime, side: u32) -> Done<Field> {
        let points = side as usize * side as usize;
        let buffer = || host.buffer::<f32>(points);
        let (now, before, spare) = (buffer()?, buffer()?, [buffer()?, buffer()?]);
        let field = Field { side, begin: drop_of(side as usize), now, before, spare };
        field.reset()?;
        Ok(field)
    }

    /// Sets it back to the beginning.
    ///
    /// # Errors
    /// When a copy fails.
    pub fn reset(&self) -> Done<()> {
        self.now.upload(0, &self.begin, LONG)?;
        Ok(self.before.upload(0, &self.begin, LONG)?)
    }

    /// The message that moves it on by so many steps.
    #[must_use]
    pub fn message(&self, steps: u32) -> Steps {
        Steps {
            now: self.now.reference(),
            before: self.before.reference(),
            spare: self.spare.each_ref().map(|buffer| buffer.reference()),
            side: self.side,
            steps,
            courant: COURANT,
            unused: 0,
        }
    }

    /// The displacements, row by row.
    ///
    /// # Errors
    /// When a copy fails.
    pub fn now(&self) -> Done<Vec<f32>> {
        read(&self.now)
    }

    /// What it should be after so many steps from the beginning, in double precision.
    #[must_use]
    pub fn reference(&self, steps: u32) -> Reference {
        Reference::new(&self.begin, self.side as usize, steps)
    }

    /// By how much it is off the reference (L2), as a part of what it had in all at the beginning.
    ///
    /// # Errors
    /// When it is off by more than a thousandth, in all or at a point, as it is or as it was a step before; when what the kernel
    /// answered is not of this field; when a copy fails.
    pub fn check(&self, right: &Reference, answer: &Membrane) -> Done<f64> {
        let (now, before) = (self.now()?, read(&self.before)?);
        let error = self.off("the field", &now, &right.now)?;
        self.off("the field before", &before, &right.before)?;
        let summed = squares(now.iter().copied().map(f64::from));
        match answer.done == 1 && (answer.squares - summed).abs() <= 1e-9 * summed {
            true => Ok(error),
            false => Err(format!("{answer:?} is not of a field of {summed}").into()),
        }
    }

    fn off(&self, what: &str, field: &[f32], right: &[f64]) -> Done<f64> {
        let each = field.iter().zip(right).map(|(x, y)| f64::from(*x) - y);
        if let Some(off) = each.clone().find(|off| off.is_nan() || off.abs() > MOST_OFF) {
            return Err(format!("{what} is {off:.1e} off at a point").into());
        }
        let error = (squares(each) / squares(self.begin.iter().copied().map(f64::from))).sqrt();
        match error < MOST_OFF {
            true => Ok(error),
            false => Err(format!("{what} is {error:.1e} off").into()),
        }
    }
}

fn read(buffer: &Buffer<f32>) -> Done<Vec<f32>> {
    let mut points = vec![0.0; buffer.len()];
    buffer.download(0, &mut points, LONG)?;
    Ok(points)
}

/// A drop beside the middle, at rest.
fn drop_of(side: usize) -> Vec<f32> {
    let at = |k: usize, part: f32| (k as f32 / side as f32 - part) * 12.0;
    let point = |row, column| (-at(row, 0.35).powi(2) - at(column, 0.4).powi(2)).exp();
    let is_inner = |k: usize| k > 0 && k + 1 < side;
    let points = (0..side * side).map(|k| (k / side, k % side));
    points.map(|(r, c)| if is_inner(r) && is_inner(c) { point(r, c) } else { 0.0 }).collect()
}

/// Displacements in double precision, computed on the host.
#[derive(Clone, Debug)]
pub struct Reference {
    now: Vec<f64>,
    before: Vec<f64>,
}

impl Reference {
    fn new(field: &[f32], side: usize, steps: u32) -> Reference {
        let mut now: Vec<f64> = field.iter().copied().map(f64::from).collect();
        let mut next = now.clone();
        for _ in 0..steps {
            for row in 1..side - 1 {
                for at in row * side + 1..(row + 1) * side - 1 {
                    let around = now[at - side] + now[at + side] + now[at - 1] + now[at + 1];
                    next[at] =
                        2.0 * now[at] - next[at] + f64::from(COURANT) * (around - 4.0 * now[at]);
                }
            }
            std::mem::swap(&mut now, &mut next);
        }
        Reference { now, before: next }
    }
}

/// The sum of the squares.
fn squares(field: impl Iterator<Item = f64>) -> f64 {
    field.map(|x| x * x).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ring_host::LaunchConfig;
    use ring_whole_device_kernels::Wave;

    #[test]
    fn on_every_device() {
        let kernels = ring_tests::kernels::of_whole_device::<Wave>();
        let launch = LaunchConfig::default().kernels(kernels).blocks(3);
        ring_tests::kernels::on_each_device_of_whole_device(|host| {
            let run = |launch: &LaunchConfig, (side, steps): (u32, u32)| {
                let field = Field::new(host, side).unwrap();
                let mut kernel = host.launch::<Wave>(launch.clone()).unwrap();
                kernel.activate(LONG).unwrap();
                kernel.send(field.message(steps), LONG).unwrap();
                let answer = kernel.recv(LONG).unwrap();
                kernel.terminate(LONG).unwrap();
                let checked = field.check(&field.reference(steps), &answer);
                checked.unwrap_or_else(|error| panic!("{steps} steps of {side}: {error}"));
            };
            // Tiles beside and below each other, and the path of sides that are no multiple of 4; next to no points.
            for side in [3, 4, 5, 61, 64, 120, 124, 128, 129, 256] {
                // Rounds of all numbers of steps, odd and even numbers of rounds.
                for steps in [0, 1, 3, 4, 5, 33, 200] {
                    run(&launch, (side, steps));
                }
            }
            // More blocks than tiles, and one warp for all tiles.
            run(&launch.clone().blocks(16), (28, 33));
            run(&launch.clone().blocks(1).threads(32), (500, 21));
        });
    }

    #[test]
    fn a_field_that_is_off_is_refused_and_so_is_an_answer_of_another() {
        ring_tests::kernels::on_each_device_of_whole_device(|host| {
            let field = Field::new(host, 16).unwrap();
            let squares = squares(field.begin.iter().copied().map(f64::from));
            let answer = Membrane { squares, done: 1, unused: 0 };
            assert_eq!(field.check(&field.reference(0), &answer).unwrap(), 0.0);
            let error = |right, answer: &Membrane| {
                field.check(&field.reference(right), answer).unwrap_err().to_string()
            };
            assert!(error(5, &answer).starts_with("the field is "));
            assert!(error(0, &Membrane { done: 0, ..answer }).contains("is not of a field of"));
            let other = Membrane { squares: squares * 1.001, ..answer };
            assert!(error(0, &other).contains("is not of a field of"));
            field.before.upload(40, &[f32::NAN], LONG).unwrap();
            assert_eq!(error(0, &answer), "the field before is NaN off at a point");
        });
    }
}
