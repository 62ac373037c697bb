//! Weights of two small networks, as files have them and as kernels take them, and what the networks give, in double precision.

pub mod lstm;
pub mod mlp;
pub mod replacing;
pub mod tensors;

use ring_host::Kernels;
use ring_whole_device_kernels::PTX;
use std::time::Duration;

/// The longest wait for an answer.
pub const LONG: Duration = Duration::from_secs(60);

/// The kernels.
// SAFETY: the PTX that was made of the crate whose kernels are launched.
pub const KERNELS: Kernels = unsafe { Kernels::new(PTX) };

/// What was asked for, or why it was not done.
pub type Done<T> = Result<T, Box<dyn std::error::Error>>;

/// A network's layer of sums: of each row of `weights` the products with `x`, and a bias.
fn sums(weights: &[f32], biases: &[f32], x: &[f64]) -> Vec<f64> {
    let rows = weights.chunks_exact(x.len()).zip(biases);
    let product = |(weight, x): (&f32, &f64)| f64::from(*weight) * x;
    rows.map(|(row, bias)| row.iter().zip(x).map(product).sum::<f64>() + f64::from(*bias)).collect()
}
