//! Two small networks that answer one request after the other: a perceptron of three layers by a block, and two layers of LSTM by the
//! blocks of a grid, with the state of many streams on the device.
//!
//! Weights stay in the blocks' shared memory from message to message. Each request names them by a frozen buffer: where it names another one
//! than the request before, the blocks read that first. So weights are replaced by the next request that names others.

use bytemuck::{Pod, Zeroable};
use core::mem::offset_of;
use ring_device::math::{mul_add, sigmoid, tanh, unpack_f16};
use ring_device::{
    BlockContext, BufferRef, Four, GridContext, Output, ReadView, SharedSlice, fours, ring_kernel,
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

/// Most units of a block, as many as it can tell the others of at once: there must be 65 blocks, or one on a CPU.
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
    /// 1; or 0 if the weights were refused or have another length, there is no such stream, or the blocks are fewer than 65 and
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
            /// The cell states of the block's units in both layers.
            CELLS: [f32; 2 * UNITS],
        },
        first_block_answers: true,
        uses_payload: true,
    }

    fn handle(ctx: &GridContext, request: &LstmRequest, response: &Output<LstmAnswer>) {
        if MOST_UNITS * (ctx.blocks() - 1) < UNITS && (ctx.blocks() > 1 || ctx.lanes() > 1) {
            return; // on a GPU, or with several blocks, each but the first has two units at most
        }
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
        let units = Units::of(ctx);
        let has_units = units.get(0) < UNITS;
        let mut is_there = false; // in the first warp: the state of the stream
        if has_units {
            let (values, gates) = (ctx.shared(Lstm::VALUES), ctx.shared(Lstm::GATES));
            // Each block has one warp that asks for the state, so that few wait for the same.
            if ctx.warp() == 0 {
                let all = ctx.read_view(&request.state);
                let all = all.filter(|all| first <= all.len() && all.len() - first >= LSTM_STATE);
                bring(ctx, units, all, first);
                is_there = all.is_some();
            }
            if ctx.warp() == ctx.warps() - 1 {
                let mut i = ctx.lane();
                while i < FEATURES {
                    values.set(i, request.x.get(i).copied().unwrap_or(0.0));
                    i += ctx.lanes();
                }
            }
            ctx.sync_block();
            // What the second layer gets of its own hidden state does not wait for the first one.
            each_gate(ctx, units, 2, |gate, layer| {
                let at = 4 * gate.own + gate.gate;
                if layer == 0 {
                    let sum = weights.gate::<0, { ROW[0] }>(ctx, gate, 0, 0);
                    if ctx.lane() == 0 {
                        gates.set(at, gate.of(sum));
                    }
                } else {
                    let of_hidden = weights.gate::<1, UNITS>(ctx, gate, UNITS, HIDDEN[1]);
                    if ctx.lane() == 0 {
                        ctx.shared(Lstm::EARLY).set(at, of_hidden);
                    }
                }
            });
            ctx.sync_block();
        }
        layer(ctx, units, (0, HIDDEN[1]), is_there);
        if has_units {
            each_gate(ctx, units, 1, |gate, _| {
                let sum = weights.gate::<1, UNITS>(ctx, gate, 0, HIDDEN[1]);
                let at = 4 * gate.own + gate.gate;
                if ctx.lane() == 0 {
                    let early = ctx.shared(Lstm::EARLY).get(at).unwrap_or(0.0);
                    ctx.shared(Lstm::GATES).set(at, gate.of(sum + early));
                }
            });
            ctx.sync_block();
        }
        layer(ctx, units, (1, HIDDEN[2]), is_there);
        if ctx.block() == 0 {
            outputs(ctx, weights, response);
        }
        // All blocks have read the stream's state, long before. No answer waits for it to be written: the stream's next step needs it.
        if has_units && is_there {
            keep(ctx, units, request);
        }
    }
}

/// A gate of a unit, which is the `own`-th of its block.
#[derive(Clone, Copy)]
struct Gate {
    unit: usize,
    own: usize,
    gate: usize,
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

/// The units of the calling thread's block: by turns, which takes no division, units go to all blocks but the first, which answers, or to the
/// only one.
#[derive(Clone, Copy)]
struct Units {
    first: u32,
    step: u32,
}

impl Units {
    #[inline(always)]
    fn of(ctx: &GridContext<'_>) -> Units {
        let (blocks, block) = (ctx.blocks() as u32, ctx.block() as u32);
        match (blocks, block) {
            (1, _) => Units { first: 0, step: 1 },
            (_, 0) => Units { first: UNITS as u32, step: 1 },
            _ => Units { first: block - 1, step: blocks - 1 },
        }
    }

    /// The `own`-th of them, if it is below [`UNITS`].
    #[inline(always)]
    fn get(self, own: usize) -> usize {
        self.first.wrapping_add((own as u32).wrapping_mul(self.step)) as usize
    }
}

/// Each warp of the block: does that for some of the gates of its units in so many layers.
#[inline(always)]
fn each_gate(ctx: &GridContext<'_>, units: Units, layers: usize, does: impl Fn(Gate, usize)) {
    let mut job = ctx.warp();
    loop {
        let (of_layer, gate) = (job / 4, job % 4);
        let (own, layer) = (of_layer / layers, of_layer % layers);
        let unit = units.get(own);
        if unit >= UNITS {
            break;
        }
        does(Gate { unit, own, gate }, layer);
        job += ctx.warps();
    }
}

/// All threads of the first warp: both hidden states, and the cell states of the block's units, from the state of the stream, which begins there.
#[inline(always)]
fn bring(ctx: &GridContext<'_>, units: Units, state: Option<ReadView<'_, f32>>, first: usize) {
    let Some(state) = state else { return };
    let (values, cells) = (ctx.shared(Lstm::VALUES), ctx.shared(Lstm::CELLS));
    // On a CPU one thread has all units.
    let most = if ctx.lanes() == 1 { UNITS } else { UNITS / 4 };
    let mut k = ctx.lane();
    while k < most {
        // All are on their way before the first is kept.
        let four = |layer: usize| state.get4(first + UNITS * layer + 4 * k).unwrap_or_default();
        let cell =
            |layer: usize| state.get(first + UNITS * (2 + layer) + units.get(k)).unwrap_or(0.0);
        let (fours, read) = ([four(0), four(1)], [cell(0), cell(1)]);
        if 4 * k < UNITS {
            values.set4(HIDDEN[0] + 4 * k, fours[0]);
            values.set4(HIDDEN[2] + 4 * k, fours[1]);
        }
        if units.get(k) < UNITS {
            cells.set(k, read[0]);
            cells.set(UNITS + k, read[1]);
        }
        k += ctx.lanes();
    }
}

/// All threads of the grid, behind a barrier of the block: the cell state and the hidden state of a layer, of whose units the gates are there. All
/// blocks get the hidden state of all units, from `to` on. Where the first warp of a block finds no state of the stream it is no number.
#[inline(always)]
fn layer(ctx: &GridContext<'_>, units: Units, (layer, to): (usize, usize), is_there: bool) {
    let (values, cells) = (ctx.shared(Lstm::VALUES), ctx.shared(Lstm::CELLS));
    let mut value = f32::NAN;
    let mut own = ctx.thread();
    while units.get(own) < UNITS {
        let at = UNITS * layer + own;
        let [input, forget, cell, output] =
            ctx.shared(Lstm::GATES).get4(4 * own).unwrap_or_default();
        let cell = mul_add(forget, cells.get(at).unwrap_or(0.0), input * cell);
        cells.set(at, cell);
        value = if is_there { output * tanh(cell) } else { f32::NAN };
        values.set(to + units.get(own), value);
        own += ctx.threads();
    }
    let brought = [value, ctx.shuffle(value, 1)];
    let blocks = ctx.blocks();
    ctx.gather(brought, |block, [first, second]| {
        // With one block, which has all units, there is nothing to bring.
        let unit = block.wrapping_sub(1);
        if blocks > 1 && unit < UNITS {
            values.set(to + unit, first);
            if unit + blocks - 1 < UNITS {
                values.set(to + unit + blocks - 1, second);
            }
        }
    });
}

/// All threads of the first warp: the hidden states and the cell states of the block's units go to the state of the stream, which is there.
#[inline(always)]
fn keep(ctx: &GridContext<'_>, units: Units, request: &LstmRequest) {
    let Some(state) = ctx.view(&request.state) else { return };
    let first = LSTM_STATE * request.stream as usize;
    let (values, cells) = (ctx.shared(Lstm::VALUES), ctx.shared(Lstm::CELLS));
    let mut job = ctx.lane();
    loop {
        let (part, own) = (job % 4, job / 4);
        let unit = units.get(own);
        if unit >= UNITS {
            break;
        }
        let value = match part {
            0 | 1 => values.get(HIDDEN[1 + part] + unit),
            _ => cells.get(UNITS * (part - 2) + own),
        };
        state.set(first + UNITS * part + unit, value.unwrap_or(0.0));
        job += ctx.lanes();
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

    /// A warp: what a gate gets of `COUNT` inputs, the first of which would lie at `from` if it were the layer's first; with its bias if the
    /// layer's last is among them.
    #[inline(always)]
    fn gate<const LAYER: usize, const COUNT: usize>(
        self,
        ctx: &GridContext<'_>,
        gate: Gate,
        first: usize,
        from: usize,
    ) -> f32 {
        // Whether they are there is asked once, and not for each of them.
        let values = ctx.shared(Lstm::VALUES).array::<COUNT>(from + first);
        let held = match self {
            Weights::Held(weights, _) => {
                weights.array::<COUNT>(in_block::<LAYER>(gate.own, gate.gate, first))
            }
            Weights::OfBuffer(..) => None,
        };
        let mut own = [0.0; 4];
        let mut i = 4 * ctx.lane();
        while i < COUNT {
            let x = values.and_then(|values| values.get4(i)).unwrap_or_default();
            let w = match self {
                Weights::Held(..) => held.and_then(|held| held.get4(i)).unwrap_or_default(),
                Weights::OfBuffer(..) => self.four::<LAYER>(gate, first + i),
            };
            own = core::array::from_fn(|k| mul_add(w[k], x[k], own[k]));
            i += 4 * ctx.lanes();
        }
        let sum = ctx.sum_warp(total(own));
        if first + COUNT == ROW[LAYER] { sum + self.bias::<LAYER>(gate) } else { sum }
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
#[inline(always)]
fn load_lstm(ctx: &GridContext<'_>, reference: &BufferRef<f32>) -> bool {
    let Some(weights) = lstm_weights(ctx, reference) else { return false };
    load_layer::<0>(ctx, weights);
    load_layer::<1>(ctx, weights);
    if ctx.block() == 0 {
        load_outputs(ctx, weights);
    }
    if ctx.thread() == 0 {
        ctx.shared(Lstm::HELD).set4(0, bytemuck::cast(*reference));
    }
    true
}

/// Those of the outputs, all of them.
#[inline(always)]
fn load_outputs(ctx: &GridContext<'_>, weights: Weights<'_>) {
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
}

/// A layer of them.
#[inline(always)]
fn load_layer<const LAYER: usize>(ctx: &GridContext<'_>, weights: Weights<'_>) {
    let (held, units) = (ctx.shared(Lstm::WEIGHTS), Units::of(ctx));
    let mut own = 0;
    while own < MOST_UNITS && units.get(own) < UNITS {
        let of = |gate: usize| Gate { unit: units.get(own), own, gate };
        let fours = ROW[LAYER] / 4;
        let mut k = ctx.thread();
        while k < 4 * fours {
            let (gate, i) = (k / fours, 4 * (k % fours));
            held.set4(in_block::<LAYER>(own, gate, i), weights.four::<LAYER>(of(gate), i));
            k += ctx.threads();
        }
        let mut gate = ctx.thread();
        while gate < 4 {
            held.set(bias_in_block::<LAYER>(own, gate), weights.bias::<LAYER>(of(gate)));
            gate += ctx.threads();
        }
        own += 1;
    }
}
