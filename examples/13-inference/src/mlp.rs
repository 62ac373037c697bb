//! The perceptron: 64 inputs, two hidden layers of 256, 16 outputs.

use crate::tensors::{WeightsError, made, tensor};
use crate::{Done, LONG, sums};
use half::f16;
use ring_host::{Buffer, Runtime};
use ring_whole_device_kernels::MLP;
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

    /// A buffer of these words.
    ///
    /// # Errors
    /// When there is no room for it, or the copy fails.
    pub fn buffer(&self, host: &Runtime) -> Done<Buffer<u32>> {
        let words = self.words();
        let buffer = host.buffer(words.len())?;
        buffer.upload(0, &words, LONG)?;
        Ok(buffer)
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

/// Inputs of a request.
#[must_use]
pub fn inputs(request: usize) -> [f32; MLP[0]] {
    made(2000 + request as u64 % 1000, MLP[0], 2.0).try_into().expect("as many")
}
