//! The perceptron: 64 inputs, two hidden layers of 256, 16 outputs.

use crate::tensors::{WeightsError, made, tensor};
use crate::{Done, LONG, sums};
use half::f16;
use ring_device::math::unpack_f16;
use ring_host::{FrozenBuffer, Runtime};
use ring_whole_device_kernels::{MLP, MLP_WEIGHT_WORDS};
use safetensors::SafeTensors;

/// Its weights and biases, layer by layer: a matrix of a row for each value that comes out, and a bias for each.
#[derive(Clone, Debug, PartialEq)]
pub struct Weights([(Vec<f32>, Vec<f32>); 3]);

impl Weights {
    /// Those of a file that PyTorch has saved of a `Sequential` of `Linear`, `ReLU`, `Linear`, `ReLU` and `Linear`.
    ///
    /// # Errors
    /// When the file is not whole, or has not these weights in `F32`, finite, and such that numbers of 16 bits hold them.
    pub fn of_file(bytes: &[u8]) -> Result<Weights, WeightsError> {
        let file = SafeTensors::deserialize(bytes)?;
        let layer = |layer: usize| {
            let (rows, inputs) = (MLP[layer + 1], MLP[layer]);
            let name = |what| format!("{}.{what}", 2 * layer);
            let weights = tensor(&file, &name("weight"), &[rows, inputs], f16::MAX.to_f32())?;
            Ok::<_, WeightsError>((weights, tensor(&file, &name("bias"), &[rows], f32::MAX)?))
        };
        Ok(Weights([layer(0)?, layer(1)?, layer(2)?]))
    }

    /// Some weights.
    #[must_use]
    pub fn made() -> Weights {
        Weights::of_tensors(10)
    }

    /// Others.
    #[must_use]
    pub fn other() -> Weights {
        Weights::of_tensors(20)
    }

    fn of_tensors(first: u64) -> Weights {
        Weights([0, 1, 2].map(|layer| {
            let (rows, inputs) = (MLP[layer + 1], MLP[layer]);
            let (at, scale) = (first + 2 * layer as u64, 2.0 / (inputs as f32).sqrt());
            (made(at, rows * inputs, scale), made(at + 1, rows, 0.2))
        }))
    }

    /// The same, each weight rounded to 16 bits as the kernel has it.
    #[must_use]
    pub fn rounded(&self) -> Weights {
        let round = |weight: &f32| f16::from_f32(*weight).to_f32();
        let layer = |(weights, biases): &(Vec<f32>, Vec<f32>)| {
            (weights.iter().map(round).collect(), biases.clone())
        };
        Weights(self.0.each_ref().map(layer))
    }

    /// The words that the kernel takes: two weights of 16 bits in each, and behind all of them the biases.
    #[must_use]
    pub fn words(&self) -> Vec<u32> {
        let half = |weight: f32| u32::from(f16::from_f32(weight).to_bits());
        let weights = self.0.iter().flat_map(|(weights, _)| weights.chunks_exact(2));
        let biases = self.0.iter().flat_map(|(_, biases)| biases.iter().map(|bias| bias.to_bits()));
        weights.map(|two| half(two[0]) | half(two[1]) << 16).chain(biases).collect()
    }

    /// A frozen buffer of these words.
    ///
    /// # Errors
    /// When there is no room for it, or the copy fails.
    pub fn buffer(&self, host: &Runtime) -> Done<FrozenBuffer<u32>> {
        Ok(host.frozen_buffer(&self.words(), LONG)?)
    }

    /// What the network gives, in double precision.
    #[must_use]
    pub fn reference(&self, x: &[f32; MLP[0]]) -> Vec<f64> {
        let x = x.iter().map(|x| f64::from(*x)).collect();
        self.0.iter().enumerate().fold(x, |x: Vec<f64>, (layer, (weights, biases))| {
            let least = if layer < 2 { 0.0 } else { f64::NEG_INFINITY };
            sums(weights, biases, &x).into_iter().map(|sum| sum.max(least)).collect()
        })
    }
}

/// What the kernel computes by the `words` of some [`Weights`], as a plain function of a CPU.
///
/// # Panics
/// When these are not as many words as weights have.
#[must_use]
pub fn plain(words: &[u32], x: &[f32; MLP[0]]) -> [f32; MLP[3]] {
    let (weights, biases) = words.split_at(MLP_WEIGHT_WORDS);
    let (first, weights) = weights.split_at(MLP[0] * MLP[1] / 2);
    let (second, third) = weights.split_at(MLP[1] * MLP[2] / 2);
    let (mut a, mut b, mut y) = ([0.0; MLP[1]], [0.0; MLP[2]], [0.0; MLP[3]]);
    layer(first, &biases[..MLP[1]], x, &mut a);
    a = a.map(|value: f32| value.max(0.0));
    layer(second, &biases[MLP[1]..MLP[1] + MLP[2]], &a, &mut b);
    b = b.map(|value: f32| value.max(0.0));
    layer(third, &biases[MLP[1] + MLP[2]..], &b, &mut y);
    y
}

/// A layer of it.
fn layer(weights: &[u32], biases: &[u32], x: &[f32], y: &mut [f32]) {
    for ((row, bias), y) in weights.chunks_exact(x.len() / 2).zip(biases).zip(y) {
        let mut sums = [0.0_f32; 4];
        for (words, x) in row.chunks_exact(4).zip(x.chunks_exact(8)) {
            for k in 0..4 {
                let [even, odd] = unpack_f16(words[k]);
                sums[k] += even * x[2 * k];
                sums[k] += odd * x[2 * k + 1];
            }
        }
        *y = (sums[0] + sums[1]) + (sums[2] + sums[3]) + f32::from_bits(*bias);
    }
}

/// Inputs of a request.
#[must_use]
pub fn inputs(request: usize) -> [f32; MLP[0]] {
    made(2000 + request as u64 % 1000, MLP[0], 2.0).try_into().expect("as many")
}
