//! The LSTM: 32 features, two layers of 128 units, and 16 outputs.

use crate::tensors::{WeightsError, made, tensor};
use crate::{Done, LONG, sums};
use ring_host::{
    Buffer, BufferRef, DeviceKind, FrozenBuffer, KernelHandle, LaunchConfig, PayloadMemory, Runtime,
};
use ring_whole_device_kernels::{
    LSTM, LSTM_BATCH_TEAM, LSTM_STATE, LstmBatch, LstmBatchRequest, lstm_batch_room,
};
use safetensors::SafeTensors;
use std::collections::VecDeque;

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

/// Batches that may be under way at once: while the device computes one, the host writes the next.
pub const BATCHES: usize = 2;

/// Many streams that take their steps together, a message for all of them.
#[derive(Debug)]
pub struct Batches {
    kernel: KernelHandle<LstmBatch>,
    states: Buffer<f32>,
    room: Buffer<u32>,
    /// The most steps of a batch.
    most: usize,
    /// Where the next batch goes in the payload arena, in so many parts of it.
    next: usize,
    /// Where those are that were sent, and how many steps each has.
    sent: VecDeque<(u32, usize)>,
}

impl Batches {
    /// So many streams at their beginning, of which at most `most` take a step in a batch.
    ///
    /// # Errors
    /// When there is no room for them, or the kernel cannot be launched so.
    pub fn launch(
        host: &Runtime,
        launch: LaunchConfig,
        (streams, most): (usize, usize),
    ) -> Done<Batches> {
        let launch = launch
            .payload_bytes(BATCHES * Batches::room(most))
            // The host writes inputs there, and no driver copies them: blocks read them across the bus.
            .payload_memory(PayloadMemory::Mapped);
        let mut kernel = host.launch(launch)?;
        let [steps, mut blocks] = LSTM_BATCH_TEAM;
        if host.device().kind == DeviceKind::Cpu {
            blocks = 1;
        }
        let limit = steps * (kernel.blocks() as usize / blocks);
        if most > limit {
            let blocks = kernel.blocks();
            return Err(format!("{most} steps, but {blocks} blocks take at most {limit}").into());
        }
        kernel.activate(LONG)?;
        let (states, room) = (states(host, streams)?, host.buffer(lstm_batch_room(most))?);
        Ok(Batches { kernel, states, room, most, next: 0, sent: VecDeque::new() })
    }

    /// Bytes of the payload arena for such a batch: whole lines.
    fn room(steps: usize) -> usize {
        (Batches::outputs_at(steps) + 4 * steps * OUTPUTS).next_multiple_of(128)
    }

    /// Behind how many bytes of them the features of so many steps are.
    fn features_at(steps: usize) -> usize {
        (4 * steps).next_multiple_of(16)
    }

    /// And their outputs.
    fn outputs_at(steps: usize) -> usize {
        Batches::features_at(steps) + 4 * steps * FEATURES
    }

    /// Sends a step of each of those streams, of which none is named twice, with those inputs.
    ///
    /// # Errors
    /// When there are more streams than a batch may have, or not as many inputs, when [`BATCHES`] are under way, or the kernel cannot
    /// take it.
    pub fn send(
        &mut self,
        weights: BufferRef<f32>,
        streams: &[u32],
        inputs: &[[f32; FEATURES]],
    ) -> Done<()> {
        let steps = streams.len();
        if steps > self.most || steps != inputs.len() {
            let (most, given) = (self.most, inputs.len());
            return Err(format!(
                "{steps} streams with {given} inputs, but must be as many of both, and at most {most}"
            )
            .into());
        }
        if self.sent.len() == BATCHES {
            return Err(format!("{BATCHES} batches are under way: receive one first").into());
        }
        let at = (self.next * Batches::room(self.most)) as u64;
        self.kernel.write_payload(at, streams, LONG)?;
        let features_at = at + Batches::features_at(steps) as u64;
        self.kernel.write_payload(features_at, inputs.as_flattened(), LONG)?;
        let (states, room) = (self.states.reference(), self.room.reference());
        let at = u32::try_from(at)?;
        let request = LstmBatchRequest { weights, states, room, steps: steps as u32, at };
        self.kernel.send(request, LONG)?;
        self.next = (self.next + 1) % BATCHES;
        self.sent.push_back((at, steps));
        Ok(())
    }

    /// Waits for the batch that was sent first; the outputs of its steps.
    ///
    /// # Errors
    /// When none is under way, when the batch was refused, so that no stream has taken a step, or the kernel does not answer.
    pub fn recv(&mut self, outputs: &mut Vec<[f32; OUTPUTS]>) -> Done<()> {
        let (at, steps) = *self.sent.front().ok_or("no batch is under way")?;
        let is_done = self.kernel.recv(LONG)?.done == 1;
        self.sent.pop_front();
        if !is_done {
            return Err(
                "the batch was refused: weights of another length, or no such stream".into()
            );
        }
        outputs.resize(steps, [0.0; OUTPUTS]);
        self.kernel.read_payload(
            u64::from(at) + Batches::outputs_at(steps) as u64,
            outputs.as_flattened_mut(),
            LONG,
        )?;
        Ok(())
    }

    /// Ends the kernel.
    ///
    /// # Errors
    /// When it does not leave the device.
    pub fn terminate(mut self) -> Done<()> {
        self.kernel.terminate(LONG)?;
        Ok(())
    }
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
