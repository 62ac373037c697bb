//! The LSTM: 32 features, two layers of 128 units, and 16 outputs.

use crate::tensors::{WeightsError, made, tensor};
use crate::{Done, LONG, sums};
use ring_host::{Buffer, FrozenBuffer, Runtime};
use ring_whole_device_kernels::{LSTM, LSTM_STATE};
use safetensors::SafeTensors;

const UNITS: usize = LSTM[0];
const FEATURES: usize = LSTM[1];
const OUTPUTS: usize = LSTM[2];

/// The weights of a layer: for its inputs, for its hidden state, and a bias, four gates of all units below each other.
#[derive(Clone, Debug, PartialEq)]
struct Layer {
    inputs: Vec<f32>,
    recurrent: Vec<f32>,
    biases: Vec<f32>,
}

/// The weights of both layers, and of the outputs: a matrix and a bias each.
#[derive(Clone, Debug, PartialEq)]
pub struct Weights([Layer; 2], [Vec<f32>; 2]);

impl Weights {
    /// Those of a file that PyTorch has saved of a module of an `LSTM` of 32 features, 128 units and two layers, which it calls `lstm`, and of a
    /// `Linear` of 16 outputs, which it calls `head`.
    ///
    /// # Errors
    /// When the file is not whole, or has not these weights in `F32`, all finite.
    pub fn of_file(bytes: &[u8]) -> Result<Weights, WeightsError> {
        let file = SafeTensors::deserialize(bytes)?;
        let layer = |layer: usize| {
            let inputs = [FEATURES, UNITS][layer];
            let part = |name: &str, shape: &[usize]| {
                tensor(&file, &format!("lstm.{name}_l{layer}"), shape, f32::MAX)
            };
            let biases = [part("bias_ih", &[4 * UNITS])?, part("bias_hh", &[4 * UNITS])?];
            Ok::<_, WeightsError>(Layer {
                inputs: part("weight_ih", &[4 * UNITS, inputs])?,
                recurrent: part("weight_hh", &[4 * UNITS, UNITS])?,
                biases: biases[0].iter().zip(&biases[1]).map(|(a, b)| a + b).collect(),
            })
        };
        let head = |name, shape: &[usize]| tensor(&file, name, shape, f32::MAX);
        let head = [head("head.weight", &[OUTPUTS, UNITS])?, head("head.bias", &[OUTPUTS])?];
        Ok(Weights([layer(0)?, layer(1)?], head))
    }

    /// Some weights.
    #[must_use]
    pub fn made() -> Weights {
        Weights::of_tensors(0)
    }

    /// Others.
    #[must_use]
    pub fn other() -> Weights {
        Weights::of_tensors(30)
    }

    fn of_tensors(first: u64) -> Weights {
        let layers = [0, 1].map(|layer| {
            let (inputs, at) = ([FEATURES, UNITS][layer], first + 3 * layer as u64);
            let scale = 2.0 / ((inputs + UNITS) as f32).sqrt();
            Layer {
                inputs: made(at, 4 * UNITS * inputs, scale),
                recurrent: made(at + 1, 4 * UNITS * UNITS, scale),
                biases: made(at + 2, 4 * UNITS, 0.2),
            }
        });
        let scale = 2.0 / (UNITS as f32).sqrt();
        Weights(layers, [made(first + 6, OUTPUTS * UNITS, scale), made(first + 7, OUTPUTS, 0.2)])
    }

    /// A buffer of them, as the kernel takes them.
    ///
    /// # Errors
    /// When there is no room for it, or the copy fails.
    pub fn buffer(&self, host: &Runtime) -> Done<FrozenBuffer<f32>> {
        let layers =
            self.0.iter().flat_map(|layer| [&layer.inputs, &layer.recurrent, &layer.biases]);
        let all: Vec<f32> = layers.chain(&self.1).flatten().copied().collect();
        Ok(host.frozen_buffer(&all, LONG)?)
    }
}

/// A buffer of the states of so many streams, at their beginning.
///
/// # Errors
/// When there is no room for it.
pub fn states(host: &Runtime, streams: usize) -> Done<Buffer<f32>> {
    Ok(host.buffer(streams * LSTM_STATE)?)
}

/// What the network keeps of a stream, in double precision: the hidden state and the cell state of each layer.
#[derive(Clone, Debug)]
pub struct Reference([[Vec<f64>; 2]; 2]);

impl Default for Reference {
    fn default() -> Self {
        Reference([(); 2].map(|()| [vec![0.0; UNITS], vec![0.0; UNITS]]))
    }
}

impl Reference {
    /// A step; the outputs.
    pub fn step(&mut self, weights: &Weights, x: &[f32; FEATURES]) -> Vec<f64> {
        let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
        let mut x: Vec<f64> = x.iter().map(|x| f64::from(*x)).collect();
        for (layer, [hidden, cells]) in weights.0.iter().zip(&mut self.0) {
            let of_inputs = sums(&layer.inputs, &layer.biases, &x);
            let of_hidden = sums(&layer.recurrent, &[0.0; 4 * UNITS], hidden);
            let gate = |gate: usize, unit: usize| {
                of_inputs[gate * UNITS + unit] + of_hidden[gate * UNITS + unit]
            };
            for unit in 0..UNITS {
                let kept = sigmoid(gate(1, unit)) * cells[unit];
                cells[unit] = kept + sigmoid(gate(0, unit)) * gate(2, unit).tanh();
                hidden[unit] = sigmoid(gate(3, unit)) * cells[unit].tanh();
            }
            x.clone_from(hidden);
        }
        sums(&weights.1[0], &weights.1[1], &self.0[1][0])
    }
}

/// Features of a step of a stream.
#[must_use]
pub fn features(step: usize, stream: usize) -> [f32; FEATURES] {
    let all = made(100 + step as u64 % 1000, FEATURES * (stream + 1), 2.0);
    all[FEATURES * stream..].try_into().expect("as many")
}
