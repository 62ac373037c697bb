//! Two small networks that answer one request after the other: a perceptron of three layers by a block, and two layers of LSTM by the
//! blocks of a grid, with the state of many streams on the device.
//!
//! Weights stay in the blocks' shared memory from message to message. Each request names them by a frozen buffer: where it names another one
//! than the request before, the blocks read that first. So weights are replaced by the next request that names others.

use bytemuck::{Pod, Zeroable};
use core::mem::offset_of;
use core::ops::Range;
use ring_device::math::{mul_add, sigmoid, tanh, unpack_f16};
use ring_device::{
    BlockContext, BufferRef, Four, GridContext, Output, SharedSlice, View, fours, ring_kernel,
};

/// Inputs of the perceptron, values of its two hidden layers, and outputs.
pub const MLP: [usize; 4] = [64, 256, 256, 16];

/// Words of the weights of each layer: two numbers of 16 bits each.
const MLP_WORDS: [usize; 3] = [MLP[0] * MLP[1] / 2, MLP[1] * MLP[2] / 2, MLP[2] * MLP[3] / 2];

/// Words of the weights, which come first in their buffer: matrix by matrix, row by row, a row for each value that comes out.
pub const MLP_WEIGHT_WORDS: usize = MLP_WORDS[0] + MLP_WORDS[1] + MLP_WORDS[2];

/// Biases, which come behind, as the bits of an `f32` each.
pub const MLP_BIASES: usize = MLP[1] + MLP[2] + MLP[3];

/// Words of a buffer of weights and biases.
pub const MLP_BUFFER_WORDS: usize = MLP_WEIGHT_WORDS + MLP_BIASES;

/// What goes into the perceptron. So aligned it is read by fours.
#[repr(C, align(16))]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub struct MlpRequest {
    /// The inputs.
    pub x: [f32; MLP[0]],
    /// Weights, two of 16 bits in a word, and biases: a frozen buffer.
    pub weights: BufferRef<u32>,
}

/// What comes out.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
pub struct MlpAnswer {
    /// The outputs.
    pub y: [f32; MLP[3]],
    /// 1; or 0 if the weights were refused, or are not [`MLP_BUFFER_WORDS`] long.
    pub done: u32,
    /// Not used: whole atoms.
    pub unused: [u32; 3],
}

/// Parts that a sum of products is made of, each by another thread.
const PARTS: usize = 4;

ring_kernel! {
    /// A perceptron of three layers, 64 to 256 to 256 to 16, by one block: weights of 16 bits, all else of 32, zero in place of what is
    /// negative behind the first two layers.
    pub struct Mlp {
        name: "mlp",
        shared: {
            /// The weights. Those of the first two layers lie so that threads side by side read side by side: eight inputs of row
            /// after row, and then the next eight.
            WEIGHTS: [u32; MLP_WEIGHT_WORDS],
            /// The biases.
            BIASES: [f32; MLP_BIASES],
            /// The reference to the buffer that they are of.
            HELD: [u32; 4],
            /// The values of the hidden layers.
            VALUES: [f32; MLP[1] + MLP[2]],
            /// Parts of sums.
            SUMS: [f32; PARTS * MLP[1]],
        },
        uses_payload: true,
    }

    fn handle(ctx: &BlockContext, request: &MlpRequest, response: &Output<MlpAnswer>) {
        if !holds(ctx.shared(Mlp::HELD), &request.weights) {
            if !load_mlp(ctx, &request.weights) {
                return;
            }
            ctx.sync();
        }
        const IN: [usize; 2] = [MLP[0], MLP[1]];
        let values = ctx.shared(Mlp::VALUES);
        let (parts, _) = request.x.as_chunks::<{ MLP[0] / PARTS }>();
        hidden::<{ IN[0] }, { span(IN[0]) }, _>(ctx, (0, 0), 0, |part| {
            let inputs = parts.get(part)?;
            Some(|i: usize| core::array::from_fn(|k| inputs[i + k]))
        });
        let second = (MLP_WORDS[0], MLP[1]);
        hidden::<{ IN[1] }, { span(IN[1]) }, _>(ctx, second, MLP[1], |part| {
            let inputs = values.array::<{ IN[1] / PARTS }>(part * (IN[1] / PARTS))?;
            Some(move |i| inputs.get4(i).unwrap_or_default())
        });
        output(ctx, response);
        if ctx.thread() == 0 {
            response.set(offset_of!(MlpAnswer, done), 0, 1u32);
        }
    }
}

/// Whether those weights are in the block's memory.
#[inline(always)]
pub(crate) fn holds<T: ring_device::Element>(
    held: SharedSlice<'_, u32>,
    weights: &BufferRef<T>,
) -> bool {
    held.get4(0) == Some(bytemuck::cast(*weights))
}

/// All threads of the block: brings the weights to its memory; whether they are there.
fn load_mlp(ctx: &BlockContext<'_>, reference: &BufferRef<u32>) -> bool {
    let words = ctx.frozen(reference).filter(|words| words.len() == MLP_BUFFER_WORDS);
    let by_fours = words.and_then(fours);
    let is_missing = ctx.max(u32::from(by_fours.is_none())) != 0; // and all have seen what is held
    let Some((words, by_fours)) = words.zip(by_fours).filter(|_| !is_missing) else {
        if ctx.thread() == 0 {
            ctx.refuse();
        }
        return false;
    };
    let weights = ctx.shared(Mlp::WEIGHTS);
    let mut at = 0;
    let mut layer = 0;
    while layer < 2 {
        let (eights, rows) = (MLP[layer] / 8, MLP[layer + 1]);
        let mut i = ctx.thread();
        while i < eights * rows {
            let (row, eight) = (i / eights, i % eights);
            weights.set4(at + 4 * (eight * rows + row), four_of(by_fours, at + 4 * i));
            i += ctx.threads();
        }
        at += 4 * eights * rows;
        layer += 1;
    }
    let mut i = at + 4 * ctx.thread();
    while i < MLP_WEIGHT_WORDS {
        weights.set4(i, four_of(by_fours, i));
        i += 4 * ctx.threads();
    }
    let biases = ctx.shared(Mlp::BIASES);
    let mut i = ctx.thread();
    while i < MLP_BIASES {
        biases.set(i, f32::from_bits(words.get(MLP_WEIGHT_WORDS + i).copied().unwrap_or(0)));
        i += ctx.threads();
    }
    if ctx.thread() == 0 {
        ctx.shared(Mlp::HELD).set4(0, bytemuck::cast(*reference));
    }
    true
}

/// Elements `i` to `i + 3`, of which the first is a multiple of 4.
#[inline(always)]
pub(crate) fn four_of<T: Copy + Default>(by_fours: &[Four<T>], i: usize) -> [T; 4] {
    by_fours.get(i / 4).map_or_else(Default::default, |four| four.0)
}

/// Eight products, added to four sums.
#[inline(always)]
fn eight(sums: &mut [f32; 4], weights: [u32; 4], [a, b]: [[f32; 4]; 2]) {
    let (even, odd) = ([a[0], a[2], b[0], b[2]], [a[1], a[3], b[1], b[3]]);
    let mut k = 0;
    while k < 4 {
        let [first, second] = unpack_f16(weights[k]);
        sums[k] = mul_add(second, odd[k], mul_add(first, even[k], sums[k]));
        k += 1;
    }
}

#[inline(always)]
pub(crate) fn total([a, b, c, d]: [f32; 4]) -> f32 {
    (a + b) + (c + d)
}

/// Of the inputs of a hidden layer, how many eights each part of a sum has.
const fn eights(inputs: usize) -> usize {
    inputs / 8 / PARTS
}

/// Words of the block's memory from the first weight of such a part of a sum to the last one of the same part of the row that lies half of all rows
/// behind.
const fn span(inputs: usize) -> usize {
    4 * MLP[1] * (eights(inputs) - 1) + 4 * MLP[1] / 2 + 4
}

/// All threads of the block: a hidden layer of `IN` inputs, whose weights and biases begin there; its values go to those from `to` on. A thread
/// has two rows, for which it reads the inputs once: `of_part` gives those of a part of a sum, four from such a one on. `SPAN` is [`span`]
/// of `IN`.
#[inline(always)]
fn hidden<const IN: usize, const SPAN: usize, Inputs: Fn(usize) -> [f32; 4]>(
    ctx: &BlockContext<'_>,
    (weights_at, biases_at): (usize, usize),
    to: usize,
    of_part: impl Fn(usize) -> Option<Inputs>,
) {
    const OUT: usize = MLP[1];
    const HALF: usize = OUT / 2;
    let (weights, values) = (ctx.shared(Mlp::WEIGHTS), ctx.shared(Mlp::VALUES));
    let sums = ctx.shared(Mlp::SUMS);
    let mut job = ctx.thread();
    while job < PARTS * HALF {
        let (row, part) = (job % HALF, job / HALF);
        let first = part * eights(IN);
        // Whether they are there is asked once, and not for each of them.
        let weights = weights.array::<SPAN>(weights_at + 4 * (first * OUT + row));
        let Some((weights, inputs)) = weights.zip(of_part(part)) else { break };
        let mut own = [[0.0; 4]; 2];
        let mut k = 0;
        while k < eights(IN) {
            let weights = |row| weights.get4(4 * (k * OUT + row)).unwrap_or_default();
            let inputs = [inputs(8 * k), inputs(8 * k + 4)];
            eight(&mut own[0], weights(0), inputs);
            eight(&mut own[1], weights(HALF), inputs);
            k += 1;
        }
        sums.set(part * OUT + row, total(own[0]));
        sums.set(part * OUT + HALF + row, total(own[1]));
        job += ctx.threads();
    }
    ctx.sync();
    let biases = ctx.shared(Mlp::BIASES);
    let mut row = ctx.thread();
    while row < OUT {
        let of = |part: usize| sums.get(part * OUT + row).unwrap_or(0.0);
        let sum = total(core::array::from_fn(of));
        values.set(to + row, (biases.get(biases_at + row).unwrap_or(0.0) + sum).max(0.0));
        row += ctx.threads();
    }
    ctx.sync();
}

/// All threads of the block: the last layer, a warp for each output.
#[inline(always)]
fn output(ctx: &BlockContext<'_>, response: &Output<MlpAnswer>) {
    const IN: usize = MLP[2];
    const AT: usize = MLP_WORDS[0] + MLP_WORDS[1];
    let (weights, values) = (ctx.shared(Mlp::WEIGHTS), ctx.shared(Mlp::VALUES));
    let biases = ctx.shared(Mlp::BIASES);
    let warps = ctx.threads() / ctx.lanes();
    let mut row = ctx.warp();
    while row < MLP[3] {
        let mut own = [0.0; 4];
        let mut at = ctx.lane();
        while at < IN / 8 {
            let of_row = weights.get4(AT + 4 * (row * (IN / 8) + at)).unwrap_or_default();
            let from = MLP[1] + 8 * at;
            let input = |i| values.get4(from + i).unwrap_or_default();
            eight(&mut own, of_row, [input(0), input(4)]);
            at += ctx.lanes();
        }
        let sum = ctx.sum_warp(total(own));
        if ctx.lane() == 0 {
            let bias = biases.get(MLP[1] + MLP[2] + row).unwrap_or(0.0);
            response.set(offset_of!(MlpAnswer, y), row, bias + sum);
        }
        row += warps;
    }
}

/// Units of each layer of the LSTM, inputs of the first layer, and outputs.
pub const LSTM: [usize; 3] = [128, 32, 16];

pub(crate) const UNITS: usize = LSTM[0];
pub(crate) const FEATURES: usize = LSTM[1];
pub(crate) const OUTPUTS: usize = LSTM[2];

/// Length of a row of weights of each layer: its inputs, and its hidden state.
pub(crate) const ROW: [usize; 2] = [FEATURES + UNITS, UNITS + UNITS];

/// Floats of the weights of a layer: a row for the inputs for each of four gates (input, forget, cell, output) of each unit,
/// gate by gate, the same for the hidden state, and a bias each.
pub const LSTM_LAYER: [usize; 2] = [4 * UNITS * (ROW[0] + 1), 4 * UNITS * (ROW[1] + 1)];

/// Floats of the weights of the outputs, a row and a bias for each.
pub const LSTM_OUTPUT: usize = OUTPUTS * (UNITS + 1);

/// Where those begin in the buffer of weights.
pub(crate) const OUTPUT_AT: usize = LSTM_LAYER[0] + LSTM_LAYER[1];

/// Floats of a buffer of weights: layer by layer, and of the outputs.
pub const LSTM_BUFFER: usize = OUTPUT_AT + LSTM_OUTPUT;

/// Floats of the state of a stream: of each layer its hidden state, and then of each its cell state.
pub const LSTM_STATE: usize = 4 * UNITS;

/// Floats in a block's memory for each of its units.
const OF_UNIT: usize = 4 * (ROW[0] + ROW[1]) + 8;

/// Most units of a block, as many as it can tell the others of at once: there must be 64 blocks, or one on a CPU.
const MOST_UNITS: usize = 2;

/// A step of a stream.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub struct LstmRequest {
    /// The inputs.
    pub x: [f32; FEATURES],
    /// The weights, [`LSTM_BUFFER`] of them: a frozen buffer.
    pub weights: BufferRef<f32>,
    /// The states of the streams, each [`LSTM_STATE`] long: zero at first.
    pub state: BufferRef<f32>,
    /// Which stream it is.
    pub stream: u32,
}

/// What comes out.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
pub struct LstmAnswer {
    /// The outputs.
    pub y: [f32; OUTPUTS],
    /// 1; or 0 if the weights were refused or have another length, there is no such stream, or the blocks are fewer than 64 and
    /// not one on a CPU. It is 0 too if a value is no number.
    pub done: u32,
}

/// Where hidden states lie in a block's memory, behind the inputs: that of the first layer before the step and behind it, and that of the second
/// layer, which is replaced by the next one.
const HIDDEN: [usize; 3] = [FEATURES, FEATURES + UNITS, FEATURES + 2 * UNITS];

ring_kernel! {
    /// Two layers of LSTM, 128 units each, and 16 sums of the second one's hidden state, by the blocks of a grid: each has some units of both
    /// layers, a warp for each gate of a unit at a time.
    pub struct Lstm {
        name: "lstm",
        threads: 256,
        shared: {
            /// For each unit of the block its four rows of each layer, and the biases.
            WEIGHTS: [f32; MOST_UNITS * OF_UNIT],
            /// The weights of the outputs.
            OUTPUT: [f32; LSTM_OUTPUT],
            /// The reference to the buffer that they are of.
            HELD: [u32; 4],
            /// The inputs, and hidden states.
            VALUES: [f32; FEATURES + 3 * UNITS],
            /// Of each of the block's units its gates.
            GATES: [f32; 4 * UNITS],
            /// What the gates of the second layer get of its hidden state.
            EARLY: [f32; 4 * UNITS],
            /// The cell states of both layers.
            CELLS: [f32; 2 * UNITS],
        },
        uses_payload: true,
    }

    fn handle(ctx: &GridContext, request: &LstmRequest, response: &Output<LstmAnswer>) {
        if UNITS.div_ceil(ctx.blocks()) > MOST_UNITS && (ctx.blocks() > 1 || ctx.lanes() > 1) {
            return; // on a GPU, or with several blocks, each has two units at most
        }
        let units = ctx.share(UNITS);
        let weights = if cfg!(target_arch = "nvptx64") {
            if !holds(ctx.shared(Lstm::HELD), &request.weights) && !load_lstm(ctx, &request.weights) {
                return;
            }
            Weights::Held(ctx.shared(Lstm::WEIGHTS), ctx.shared(Lstm::OUTPUT))
        } else {
            // A CPU has one memory: a copy of the weights for each block would only need more of it.
            let Some(of_buffer) = lstm_weights(ctx, &request.weights) else { return };
            of_buffer
        };
        let first = LSTM_STATE * request.stream as usize;
        let state = ctx.view(&request.state);
        let state = state.filter(|state| first <= state.len() && state.len() - first >= LSTM_STATE);
        let (values, cells) = (ctx.shared(Lstm::VALUES), ctx.shared(Lstm::CELLS));
        if let Some(state) = state {
            let mut i = ctx.thread();
            while i < UNITS {
                // All four are on their way before the first is kept.
                let of = |part: usize| state.get(first + UNITS * part + i).unwrap_or(0.0);
                let read = [of(0), of(1), of(2), of(3)];
                values.set(HIDDEN[0] + i, read[0]);
                values.set(HIDDEN[2] + i, read[1]);
                cells.set(i, read[2]);
                cells.set(UNITS + i, read[3]);
                i += ctx.threads();
            }
        }
        let mut i = ctx.thread();
        while i < FEATURES {
            values.set(i, request.x.get(i).copied().unwrap_or(0.0));
            i += ctx.threads();
        }
        ctx.sync_block();
        let (gates, early) = (ctx.shared(Lstm::GATES), ctx.shared(Lstm::EARLY));
        // What the second layer gets of its own hidden state does not wait for the first one.
        each_gate(ctx, &units, 2, |gate| {
            let at = 4 * gate.own + gate.gate;
            if gate.layer == 0 {
                let sum = weights.gate::<0>(ctx, gate, 0..ROW[0], 0);
                if ctx.lane() == 0 {
                    gates.set(at, gate.of(sum));
                }
            } else {
                let of_hidden = weights.gate::<1>(ctx, gate, UNITS..ROW[1], HIDDEN[1]);
                if ctx.lane() == 0 {
                    early.set(at, of_hidden);
                }
            }
        });
        ctx.sync_block();
        let is_there = state.is_some();
        layer(ctx, &units, (0, HIDDEN[1]), is_there);
        each_gate(ctx, &units, 1, |gate| {
            let sum = weights.gate::<1>(ctx, gate, 0..UNITS, HIDDEN[1]);
            let at = 4 * gate.own + gate.gate;
            if ctx.lane() == 0 {
                gates.set(at, gate.of(sum + early.get(at).unwrap_or(0.0)));
            }
        });
        ctx.sync_block();
        layer(ctx, &units, (1, HIDDEN[2]), is_there);
        // All blocks have read the stream's state, long before: the next one may be written there.
        keep(ctx, &units, state, first);
        if ctx.block() == 0 {
            outputs(ctx, weights, response);
        }
    }
}

/// A gate of a unit, which is the `own`-th of its block.
#[derive(Clone, Copy)]
struct Gate {
    unit: usize,
    own: usize,
    gate: usize,
    layer: usize,
}

impl Gate {
    /// What the gate makes of its sum.
    #[inline(always)]
    fn of(self, sum: f32) -> f32 {
        if self.gate == CELL { tanh(sum) } else { sigmoid(sum) }
    }
}

/// Which of the four gates (input, forget, cell, output) is the one of the cell.
const CELL: usize = 2;

/// Each warp of the block: does that for some of the gates of its units in so many layers.
#[inline(always)]
fn each_gate(ctx: &GridContext<'_>, units: &Range<usize>, layers: usize, does: impl Fn(Gate)) {
    let warps = ctx.threads() / ctx.lanes();
    let mut job = ctx.thread() / ctx.lanes();
    while job < 4 * units.len() * layers {
        let (of_layer, gate) = (job / 4, job % 4);
        let (own, layer) = (of_layer / layers, of_layer % layers);
        does(Gate { unit: units.start + own, own, gate, layer });
        job += warps;
    }
}

/// All threads of the grid, behind a barrier of the block: the cell state and the hidden state of a layer, of whose units the gates are there. All
/// blocks get the hidden state of all units, from `to` on; where a block finds no state of the stream it is no number.
#[inline(always)]
fn layer(ctx: &GridContext<'_>, units: &Range<usize>, (layer, to): (usize, usize), is_there: bool) {
    let (values, cells) = (ctx.shared(Lstm::VALUES), ctx.shared(Lstm::CELLS));
    let mut value = f32::NAN;
    let mut own = ctx.thread();
    while own < units.len() {
        let at = UNITS * layer + units.start + own;
        let [input, forget, cell, output] =
            ctx.shared(Lstm::GATES).get4(4 * own).unwrap_or_default();
        let before = cells.get(at).unwrap_or(0.0);
        let cell = mul_add(forget, before, input * cell);
        cells.set(at, cell);
        value = if is_there { output * tanh(cell) } else { f32::NAN };
        values.set(to + units.start + own, value);
        own += ctx.threads();
    }
    let brought = [value, ctx.shuffle(value, 1)];
    ctx.gather(brought, |block, [first, second]| {
        let units = ctx.share_of(block, UNITS);
        // With one block, which has all units, there is nothing to bring.
        if units.len() <= MOST_UNITS {
            values.set(to + units.start, first);
            if units.len() == 2 {
                values.set(to + units.start + 1, second);
            }
        }
    });
}

/// All threads of the block: the hidden states and the cell states of the block's units go to the state of the stream, if there is one, which
/// begins there.
#[inline(always)]
fn keep(ctx: &GridContext<'_>, units: &Range<usize>, state: Option<View<'_, f32>>, first: usize) {
    let Some(state) = state else { return };
    let (values, cells) = (ctx.shared(Lstm::VALUES), ctx.shared(Lstm::CELLS));
    let mut job = ctx.thread();
    while job < 4 * units.len() {
        let (part, unit) = (job % 4, units.start + job / 4);
        let value = match part {
            0 | 1 => values.get(HIDDEN[1 + part] + unit),
            _ => cells.get(UNITS * (part - 2) + unit),
        };
        state.set(first + UNITS * part + unit, value.unwrap_or(0.0));
        job += ctx.threads();
    }
}

/// All threads of block 0: the outputs, half a warp for each.
#[inline(always)]
fn outputs(ctx: &GridContext<'_>, weights: Weights<'_>, response: &Output<LstmAnswer>) {
    let values = ctx.shared(Lstm::VALUES);
    let parts = ctx.lanes().min(16);
    let (mut row, part) = (ctx.thread() / parts, ctx.thread() % parts);
    let mut is_done = true;
    while row < OUTPUTS {
        let mut own = [0.0; 4];
        let mut i = 4 * part;
        while i < UNITS {
            let w = weights.of_output(row * UNITS + i);
            let x = values.get4(HIDDEN[2] + i).unwrap_or_default();
            own = core::array::from_fn(|k| mul_add(w[k], x[k], own[k]));
            i += 4 * parts;
        }
        let y = ctx.sum_of(total(own), parts) + weights.output_bias(row);
        is_done &= !y.is_nan();
        if part == 0 {
            response.set(offset_of!(LstmAnswer, y), row, y);
        }
        row += ctx.threads() / parts;
    }
    // A value that is no number makes each output none.
    if ctx.thread() == 0 && is_done {
        response.set(offset_of!(LstmAnswer, done), 0, 1u32);
    }
}

/// The weights, in the block's memory, or in their buffer, by fours and one by one.
#[derive(Clone, Copy)]
enum Weights<'a> {
    Held(SharedSlice<'a, f32>, SharedSlice<'a, f32>),
    OfBuffer(&'a [Four<f32>], &'a [f32]),
}

impl Weights<'_> {
    /// Four weights of that gate, for inputs from `i` on; the first are the layer's own, and behind them is its hidden state.
    #[inline(always)]
    fn four<const LAYER: usize>(self, gate: Gate, i: usize) -> [f32; 4] {
        match self {
            Weights::Held(weights, _) => {
                weights.get4(in_block::<LAYER>(gate.own, gate.gate, i)).unwrap_or_default()
            }
            Weights::OfBuffer(by_fours, _) => {
                four_of(by_fours, in_buffer::<LAYER>(gate.unit, gate.gate, i))
            }
        }
    }

    /// Its bias.
    #[inline(always)]
    fn bias<const LAYER: usize>(self, gate: Gate) -> f32 {
        match self {
            Weights::Held(weights, _) => {
                weights.get(bias_in_block::<LAYER>(gate.own, gate.gate)).unwrap_or(0.0)
            }
            Weights::OfBuffer(_, weights) => {
                let at = bias_in_buffer::<LAYER>(gate.unit, gate.gate);
                weights.get(at).copied().unwrap_or(0.0)
            }
        }
    }

    /// Four weights of outputs.
    #[inline(always)]
    fn of_output(self, i: usize) -> [f32; 4] {
        match self {
            Weights::Held(_, output) => output.get4(i).unwrap_or_default(),
            Weights::OfBuffer(by_fours, _) => four_of(by_fours, OUTPUT_AT + i),
        }
    }

    /// The bias of one.
    #[inline(always)]
    fn output_bias(self, row: usize) -> f32 {
        let at = OUTPUTS * UNITS + row;
        match self {
            Weights::Held(_, output) => output.get(at).unwrap_or(0.0),
            Weights::OfBuffer(_, weights) => weights.get(OUTPUT_AT + at).copied().unwrap_or(0.0),
        }
    }

    /// A warp: what a gate gets of those inputs, which lie at `from` if the first of all were 0 there; with its bias if the last of the inputs
    /// is among them.
    #[inline(always)]
    fn gate<const LAYER: usize>(
        self,
        ctx: &GridContext<'_>,
        gate: Gate,
        inputs: Range<usize>,
        from: usize,
    ) -> f32 {
        let values = ctx.shared(Lstm::VALUES);
        let mut own = [0.0; 4];
        let mut i = inputs.start + 4 * ctx.lane();
        while i < inputs.end {
            let x = values.get4(from + i).unwrap_or_default();
            let w = self.four::<LAYER>(gate, i);
            own = core::array::from_fn(|k| mul_add(w[k], x[k], own[k]));
            i += 4 * ctx.lanes();
        }
        let sum = ctx.sum_warp(total(own));
        if inputs.end == ROW[LAYER] { sum + self.bias::<LAYER>(gate) } else { sum }
    }
}

/// Where the weight of input `i` of that gate is in the buffer.
#[inline(always)]
pub(crate) const fn in_buffer<const LAYER: usize>(unit: usize, gate: usize, i: usize) -> usize {
    let inputs = ROW[LAYER] - UNITS;
    let row = gate * UNITS + unit;
    let first = if LAYER == 0 { 0 } else { LSTM_LAYER[0] };
    if i < inputs {
        first + row * inputs + i
    } else {
        first + 4 * UNITS * inputs + row * UNITS + (i - inputs)
    }
}

/// Where its bias is.
#[inline(always)]
pub(crate) const fn bias_in_buffer<const LAYER: usize>(unit: usize, gate: usize) -> usize {
    let first = if LAYER == 0 { 0 } else { LSTM_LAYER[0] };
    first + 4 * UNITS * ROW[LAYER] + gate * UNITS + unit
}

/// Where the weight of input `i` of a gate is in the memory of a block, of which it is the `own`-th unit's.
#[inline(always)]
const fn in_block<const LAYER: usize>(own: usize, gate: usize, i: usize) -> usize {
    OF_UNIT * own + LAYER * 4 * ROW[0] + gate * ROW[LAYER] + i
}

/// Where its bias is.
#[inline(always)]
const fn bias_in_block<const LAYER: usize>(own: usize, gate: usize) -> usize {
    OF_UNIT * own + 4 * (ROW[0] + ROW[1]) + 4 * LAYER + gate
}

/// All threads of the grid: the weights in their buffer, if all blocks find them there; else the message is counted as refused.
#[inline(always)]
fn lstm_weights<'a>(ctx: &GridContext<'a>, reference: &BufferRef<f32>) -> Option<Weights<'a>> {
    let weights = ctx.frozen(reference).filter(|weights| weights.len() == LSTM_BUFFER);
    let found = weights.and_then(|weights| Some(Weights::OfBuffer(fours(weights)?, weights)));
    if ctx.max(u32::from(found.is_none())) == 0 {
        return found;
    }
    if ctx.index() == 0 {
        ctx.refuse();
    }
    None
}

/// All threads of the grid: each block brings the weights of its units to its memory; whether all have.
fn load_lstm(ctx: &GridContext<'_>, reference: &BufferRef<f32>) -> bool {
    let units = ctx.share(UNITS);
    let Some(weights) = lstm_weights(ctx, reference) else { return false };
    load_layer::<0>(ctx, &units, weights);
    load_layer::<1>(ctx, &units, weights);
    let output = ctx.shared(Lstm::OUTPUT);
    let mut i = 4 * ctx.thread();
    while i < OUTPUTS * UNITS {
        output.set4(i, weights.of_output(i));
        i += 4 * ctx.threads();
    }
    let mut row = ctx.thread();
    while row < OUTPUTS {
        output.set(OUTPUTS * UNITS + row, weights.output_bias(row));
        row += ctx.threads();
    }
    if ctx.thread() == 0 {
        ctx.shared(Lstm::HELD).set4(0, bytemuck::cast(*reference));
    }
    true
}

/// A layer of them.
#[inline(always)]
fn load_layer<const LAYER: usize>(
    ctx: &GridContext<'_>,
    units: &Range<usize>,
    weights: Weights<'_>,
) {
    let held = ctx.shared(Lstm::WEIGHTS);
    let of = |own: usize, gate: usize| Gate { unit: units.start + own, own, gate, layer: LAYER };
    let fours = ROW[LAYER] / 4;
    let mut k = ctx.thread();
    while k < units.len() * 4 * fours {
        let (own, gate, i) = (k / (4 * fours), k / fours % 4, 4 * (k % fours));
        held.set4(in_block::<LAYER>(own, gate, i), weights.four::<LAYER>(of(own, gate), i));
        k += ctx.threads();
    }
    let mut k = ctx.thread();
    while k < 4 * units.len() {
        let (own, gate) = (k / 4, k % 4);
        held.set(bias_in_block::<LAYER>(own, gate), weights.bias::<LAYER>(of(own, gate)));
        k += ctx.threads();
    }
}
