//! The LSTM of [`inference`](crate::inference) for many streams at once: a message names the streams that take a step, each with its inputs,
//! and the blocks of a grid multiply matrices.
//!
//! Eight blocks, a team, have up to 64 streams. Each of them has the weights of 16 units of both layers in its own memory, from message to
//! message. What comes across the bus, and what one layer gives, all blocks of a team need: it goes through memory of the device.

use crate::inference::{
    FEATURES, LSTM_BUFFER, LSTM_STATE, OUTPUT_AT, OUTPUTS, ROW, UNITS, bias_in_buffer, four_of,
    holds, in_buffer, total,
};
use bytemuck::{Pod, Zeroable};
use core::array::from_fn;
use core::mem::offset_of;
use core::ops::Range;
use ring_device::math::{mul_add, sigmoid, tanh};
use ring_device::{
    BufferRef, Elements, Four, Fours, GridContext, Shared, SharedSlice, Words, fours, ring_kernel,
};

/// Blocks of a team, and so parts of the units of a layer: fewer blocks than these cannot take a step, but for those of a CPU.
const PARTS: usize = 8;

/// Units of a part.
const OWN: usize = UNITS / PARTS;

/// Streams that a team has at most.
const TILE: usize = 64;

/// Steps that a team takes at most, and its blocks on a GPU; on a CPU each block is a team.
pub const LSTM_BATCH_TEAM: [usize; 2] = [TILE, PARTS];

/// Of them those whose inputs and outputs a block of the team brings.
const BROUGHT: usize = TILE / PARTS;

/// From a row of inputs and hidden states in a block's memory to the next one: a four longer than the row, so that the same fours of eight
/// rows side by side are in different banks.
const STRIDE: usize = ROW[0] + 4;

/// The same of hidden states alone.
const HIDDEN_STRIDE: usize = UNITS + 4;

/// Inputs for which it is asked once whether they and their weights are there.
const AT_ONCE: usize = 8;

/// A step of many streams.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub struct LstmBatchRequest {
    /// The weights, [`LSTM_BUFFER`] of them: a frozen buffer.
    pub weights: BufferRef<f32>,
    /// The states of the streams, each [`LSTM_STATE`] long: zero at first. They are as those of [`Lstm`](crate::Lstm).
    pub states: BufferRef<f32>,
    /// Room on the device for what the blocks tell each other: [`lstm_batch_room`] of the steps. What is there is of no meaning to anybody
    /// else.
    pub room: BufferRef<u32>,
    /// How many streams take a step: at most 64 for each 8 blocks of the grid, on a CPU for each block.
    pub steps: u32,
    /// Where they are in the payload arena, in bytes, a multiple of 16. There are the streams of the steps, a `u32` each and none of them twice;
    /// behind these, at the next multiple of 16, the 32 features of each, `f32`; and behind them is room for 16 outputs of each.
    pub at: u32,
}

/// Words of the room for so many steps: the stream of each, then the features of each, and then its hidden state of the first layer.
pub const fn lstm_batch_room(steps: usize) -> usize {
    steps.next_multiple_of(4) + (FEATURES + UNITS) * steps
}

/// Whether the steps were taken: their outputs are in the payload arena.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
pub struct LstmBatchAnswer {
    /// 1; or 0 if a buffer or the payload was refused, there is no such stream, or the steps are too many for the blocks. Then no stream has
    /// taken a step.
    pub done: u32,
    /// Not used: whole atoms.
    pub unused: [u32; 3],
}

ring_kernel! {
    /// Two layers of LSTM, 128 units each, and 16 sums of the second one's hidden state, of many streams at once.
    pub struct LstmBatch {
        name: "lstm_batch",
        threads: 256,
        shared: {
            /// The weights of the block's part of the first layer: of each input those of each unit's four gates.
            FIRST: [f32; 4 * OWN * ROW[0]],
            /// Of the second layer.
            SECOND: [f32; 4 * OWN * ROW[1]],
            /// The biases of both, likewise.
            BIASES: [f32; 2 * 4 * OWN],
            /// The reference to the buffer that they are of.
            HELD: [u32; 4],
            /// Where the states begin of the streams that the team has, counted in fours.
            STATES: [u32; TILE],
            /// Of each of them its inputs and the hidden state of the first layer. At last what each lane has added up of the
            /// outputs that the block brings.
            VALUES: [f32; TILE * STRIDE],
            /// The hidden state of the second layer, as it was before.
            HIDDEN: [f32; TILE * HIDDEN_STRIDE],
        },
        uses_payload: true,
    }

    fn handle(ctx: &GridContext, request: &LstmBatchRequest, response: &Output<LstmBatchAnswer>) {
        // A block of a CPU has one thread, and takes all parts itself.
        let is_alone = ctx.lanes() == 1;
        let (teams, team) = match is_alone {
            true => (ctx.blocks(), ctx.block()),
            false => (ctx.blocks() / PARTS, ctx.block() / PARTS),
        };
        let all = request.steps as usize;
        if all > TILE * teams {
            return;
        }
        // Blocks that are no whole team have no steps.
        let steps = if team < teams { share(all, teams, team) } else { 0..0 };
        let part = ctx.block() % PARTS;
        let parts = || if is_alone { 0..PARTS } else { part..part + 1 };
        let payload = InPayload::of(ctx, request);
        let early = payload.map(|payload| payload.first(ctx, &steps, parts()));
        let (weights, buffers) = (Weights::of(ctx, request), Buffers::of(ctx, request));
        let found = payload.zip(early).zip(buffers).zip(weights);
        // Not by `is_some_and`: rustc makes a function of its own of that closure, which has local memory.
        let is_there = match found {
            Some((((payload, early), buffers), _)) => {
                payload.bring(ctx, &buffers, early, (&steps, parts()))
            }
            None => false,
        };
        // A barrier, behind which the team's streams and inputs are in the memory of the device.
        let is_missing = ctx.max(u32::from(!is_there)) != 0;
        let Some((((payload, _), buffers), weights)) = found.filter(|_| !is_missing) else {
            if ctx.index() == 0 {
                ctx.refuse();
            }
            return;
        };
        // Of the parts that a CPU takes by turns no weights stay.
        let loads = is_alone || !holds(ctx.shared(LstmBatch::HELD), &request.weights);
        buffers.load_places(ctx, &steps);
        ctx.sync_block();
        buffers.load_inputs(ctx, &steps);
        buffers.load_hidden(ctx, (0, steps.len()), (LstmBatch::VALUES, FEATURES, STRIDE));
        buffers.load_hidden(ctx, (1, steps.len()), (LstmBatch::HIDDEN, 0, HIDDEN_STRIDE));
        for part in parts() {
            if loads {
                weights.load::<0>(ctx, LstmBatch::FIRST, part);
            }
            ctx.sync_block();
            layer::<0>(ctx, &buffers, &steps, part);
        }
        // All have read the hidden states, and the next ones of the first layer are in the room.
        ctx.sync();
        buffers.load_next(ctx, &steps, parts());
        for part in parts() {
            if loads {
                weights.load::<1>(ctx, LstmBatch::SECOND, part);
            }
            ctx.sync_block();
            layer::<1>(ctx, &buffers, &steps, part);
        }
        ctx.sync();
        for part in parts() {
            outputs(ctx, &payload, (buffers.states, weights), (&steps, part));
        }
        if loads && ctx.thread() == 0 {
            ctx.shared(LstmBatch::HELD).set4(0, bytemuck::cast(request.weights));
        }
        if ctx.index() == 0 {
            response.set(offset_of!(LstmBatchAnswer, done), 0, 1u32);
        }
    }
}

/// What a request names in the payload arena.
#[derive(Clone, Copy)]
struct InPayload<'a> {
    streams: Words<'a, u32>,
    features: Words<'a, f32>,
    outputs: Words<'a, f32>,
}

impl<'a> InPayload<'a> {
    /// It, if all of it is there.
    #[inline(always)]
    fn of(ctx: &GridContext<'a>, request: &LstmBatchRequest) -> Option<InPayload<'a>> {
        let (steps, at) = (u64::from(request.steps), u64::from(request.at));
        // By fours, of which the last one may be read behind the last stream.
        let streams = steps.next_multiple_of(4);
        let (features, outputs) = (FEATURES as u64 * steps, OUTPUTS as u64 * steps);
        let words = |words| at + 4 * words;
        let found = InPayload {
            streams: ctx.payload().words(at, streams)?,
            features: ctx.payload().words(words(streams), features)?,
            outputs: ctx.payload().words(words(streams + features), outputs)?,
        };
        at.is_multiple_of(16).then_some(found)
    }

    /// The first four streams and the first four features that the calling thread brings, which so are on their way across the bus while it
    /// asks for buffers.
    #[inline(always)]
    fn first(&self, ctx: &GridContext<'_>, steps: &Range<usize>, parts: Range<usize>) -> Early {
        let streams = steps.start + first_of_streams(ctx);
        let is_first = parts.start == 0;
        let features = brought(steps, parts);
        let at = features.start + 4 * ctx.thread();
        Early {
            // One block of the team reads them: lines of the host's memory that several blocks read come to one after the other.
            streams: if is_first && streams < steps.end {
                self.streams.get4(streams)
            } else {
                None
            },
            features: if at < features.end { self.features.get4(at) } else { None },
        }
    }

    /// All threads of a block: brings streams and inputs to the memory of the device, for each block of the team would else bring all of
    /// them across the bus. Whether all streams are there that the thread has seen.
    #[inline(always)]
    fn bring(
        &self,
        ctx: &GridContext<'_>,
        buffers: &Buffers<'_>,
        early: Early,
        (steps, parts): (&Range<usize>, Range<usize>),
    ) -> bool {
        let there = buffers.states.len() as usize / (LSTM_STATE / 4);
        let (mut is_there, mut k, mut streams) = (true, first_of_streams(ctx), early.streams);
        while let Some(four) = streams {
            let exists = |nth: usize| (four[nth] as usize) < there || k + nth >= steps.len();
            is_there &= exists(0) && exists(1) && exists(2) && exists(3);
            buffers.room.set(((steps.start + k) / 4) as u32, four);
            k += 4 * ctx.threads();
            streams = if k < steps.len() { self.streams.get4(steps.start + k) } else { None };
        }
        let features = brought(steps, parts);
        let (mut at, mut four) = (features.start + 4 * ctx.thread(), early.features);
        while let Some(values) = four {
            buffers.room.set((buffers.features_at + at / 4) as u32, values.map(f32::to_bits));
            at += 4 * ctx.threads();
            four = if at < features.end { self.features.get4(at) } else { None };
        }
        is_there
    }
}

/// The first step of those whose streams the calling thread reads: other threads than the first ones, which read features, so that both are
/// on their way at once.
#[inline(always)]
fn first_of_streams(ctx: &GridContext<'_>) -> usize {
    let (thread, half) = (ctx.thread(), ctx.threads() / 2);
    4 * if thread < half { thread + ctx.threads() - half } else { thread - half }
}

/// What a thread has read before it needs it, by fours.
#[derive(Clone, Copy)]
struct Early {
    streams: Option<[u32; 4]>,
    features: Option<[f32; 4]>,
}

/// The indices of `0..n` of one of so many teams: by sixteens, whose streams are whole lines of memory, and which warps have at once.
#[inline(always)]
fn share(n: usize, teams: usize, team: usize) -> Range<usize> {
    let each = n.div_ceil(teams).next_multiple_of(16);
    (each * team).min(n)..(each * (team + 1)).min(n)
}

/// Those of a team's steps that a part of its blocks brings.
#[inline(always)]
fn of_parts(steps: &Range<usize>, parts: Range<usize>) -> Range<usize> {
    let at = |part: usize| (steps.start + BROUGHT * part).min(steps.end);
    at(parts.start)..at(parts.end)
}

/// The inputs of these.
#[inline(always)]
fn brought(steps: &Range<usize>, parts: Range<usize>) -> Range<usize> {
    let Range { start, end } = of_parts(steps, parts);
    FEATURES * start..FEATURES * end
}

/// In which row of a block's memory the team's step `k` is: a thread has four steps side by side, [`APART`] rows from each other, so that
/// threads side by side have rows side by side, and those that have no step are all threads of a warp.
#[inline(always)]
fn row_of(k: usize) -> usize {
    k / 4 + APART * (k % 4)
}

/// The buffers that a request names, but for the weights.
#[derive(Clone, Copy)]
struct Buffers<'a> {
    states: Fours<'a, f32>,
    each_state: Elements<'a, f32>,
    room: Fours<'a, u32>,
    each_of_room: Elements<'a, u32>,
    /// Where features and hidden states begin in the room, in fours.
    features_at: usize,
    hidden_at: usize,
}

impl<'a> Buffers<'a> {
    /// They, if all are there.
    #[inline(always)]
    fn of(ctx: &GridContext<'a>, request: &LstmBatchRequest) -> Option<Buffers<'a>> {
        let steps = request.steps as usize;
        let states = ctx.view(&request.states)?;
        let room = ctx.view(&request.room).filter(|room| room.len() >= lstm_batch_room(steps))?;
        let features_at = steps.div_ceil(4);
        Some(Buffers {
            states: states.fours()?,
            each_state: states.elements()?,
            room: room.fours()?,
            each_of_room: room.elements()?,
            features_at,
            hidden_at: features_at + FEATURES / 4 * steps,
        })
    }

    /// All threads of a block: where the states of the team's streams are.
    #[inline(always)]
    fn load_places(&self, ctx: &GridContext<'_>, steps: &Range<usize>) {
        let places = ctx.shared(LstmBatch::STATES);
        let mut k = 4 * ctx.thread();
        while k < steps.len() {
            let streams = self.room.nearest(((steps.start + k) / 4) as u32);
            let begin = streams.map(|stream| stream.wrapping_mul(LSTM_STATE as u32 / 4));
            let mut nth = 0;
            while nth < 4 {
                places.set(row_of(k + nth), begin[nth]);
                nth += 1;
            }
            k += 4 * ctx.threads();
        }
    }

    /// All threads of a block: the inputs of the team's steps.
    #[inline(always)]
    fn load_inputs(&self, ctx: &GridContext<'_>, steps: &Range<usize>) {
        const FOURS: usize = FEATURES / 4;
        let values = ctx.shared(LstmBatch::VALUES);
        let mut i = ctx.thread();
        while i < FOURS * steps.len() {
            let four = self.room.nearest((self.features_at + FOURS * steps.start + i) as u32);
            values.set4(STRIDE * row_of(i / FOURS) + 4 * (i % FOURS), four.map(f32::from_bits));
            i += ctx.threads();
        }
    }

    /// All threads of a block: the hidden states of a layer of the team's streams, from element `at` of each row on.
    #[inline(always)]
    fn load_hidden(
        &self,
        ctx: &GridContext<'_>,
        (layer, n): (usize, usize),
        to: (Shared<LstmBatch, f32>, usize, usize),
    ) {
        let at = |k, four| state(ctx, row_of(k), UNITS / 4 * layer + four);
        load_rows(ctx, n, to, |k, four| self.states.nearest(at(k, four)), |_, _, _| {});
    }

    /// All threads of a block: the next hidden states of the first layer, of which those of some steps go to the states of their streams.
    #[inline(always)]
    fn load_next(&self, ctx: &GridContext<'_>, steps: &Range<usize>, parts: Range<usize>) {
        let own = of_parts(steps, parts);
        let from = |k, four| {
            let at = self.hidden_at + UNITS / 4 * (steps.start + k) + four;
            self.room.nearest(at as u32).map(f32::from_bits)
        };
        let keep = |k, four, values| {
            if own.contains(&(steps.start + k)) {
                self.states.set(state(ctx, row_of(k), four), values);
            }
        };
        load_rows(ctx, steps.len(), (LstmBatch::VALUES, FEATURES, STRIDE), from, keep);
    }
}

/// All threads of a block: hidden states of `n` steps, a warp for each, come to rows of the block's memory, from element `at` of each on,
/// and to `also`.
#[inline(always)]
fn load_rows(
    ctx: &GridContext<'_>,
    n: usize,
    (to, at, stride): (Shared<LstmBatch, f32>, usize, usize),
    from: impl Fn(usize, usize) -> [f32; 4],
    also: impl Fn(usize, usize, [f32; 4]),
) {
    const READS: usize = 8; // under way at once
    let to = ctx.shared(to);
    let warps = ctx.threads() / ctx.lanes();
    let mut first = ctx.thread() / ctx.lanes();
    while first < n {
        let mut four = ctx.lane();
        while four < UNITS / 4 {
            let read: [[f32; 4]; READS] =
                from_fn(|nth| from((first + nth * warps).min(n - 1), four));
            let keep = |nth: usize| {
                let k = first + nth * warps;
                if k < n {
                    to.set4(stride * row_of(k) + at + 4 * four, read[nth]);
                    also(k, four, read[nth]);
                }
            };
            // A loop as long would not be unrolled, and find what is read in local memory.
            keep(0);
            keep(1);
            keep(2);
            keep(3);
            keep(4);
            keep(5);
            keep(6);
            keep(7);
            four += ctx.lanes();
        }
        first += READS * warps;
    }
}

/// The weights, one by one and by fours.
#[derive(Clone, Copy)]
struct Weights<'a>(&'a [f32], &'a [Four<f32>]);

impl<'a> Weights<'a> {
    /// Those that a request names, if they are all there.
    #[inline(always)]
    fn of(ctx: &GridContext<'a>, request: &LstmBatchRequest) -> Option<Weights<'a>> {
        let weights = ctx.frozen(&request.weights).filter(|all| all.len() == LSTM_BUFFER)?;
        Some(Weights(weights, fours(weights)?))
    }

    /// All threads of a block: the weights of a part of a layer.
    #[inline(always)]
    fn load<const LAYER: usize>(
        self,
        ctx: &GridContext<'_>,
        to: Shared<LstmBatch, f32>,
        part: usize,
    ) {
        let (to, biases) = (ctx.shared(to), ctx.shared(LstmBatch::BIASES));
        let of = |at: usize| self.0.get(at).copied().unwrap_or(0.0);
        let mut i = ctx.thread();
        while i < OWN * ROW[LAYER] {
            let (unit, k) = (i / ROW[LAYER], i % ROW[LAYER]);
            let gates = from_fn(|gate| of(in_buffer::<LAYER>(OWN * part + unit, gate, k)));
            to.set4(4 * (OWN * k + unit), gates);
            i += ctx.threads();
        }
        let mut unit = ctx.thread();
        while unit < OWN {
            let gates = from_fn(|gate| of(bias_in_buffer::<LAYER>(OWN * part + unit, gate)));
            biases.set4(4 * (OWN * LAYER + unit), gates);
            unit += ctx.threads();
        }
    }
}

/// All threads of a block: the outputs of its part of the team's steps, a warp for each output.
#[inline(always)]
fn outputs(
    ctx: &GridContext<'_>,
    payload: &InPayload<'_>,
    (states, weights): (Fours<'_, f32>, Weights<'_>),
    (steps, part): (&Range<usize>, usize),
) {
    let own = of_parts(steps, part..part + 1);
    if own.is_empty() {
        return;
    }
    // What each lane adds up of each output.
    const LANES: usize = 32;
    let sums_at = |output: usize| (LANES + 4) * output;
    let values = ctx.shared(LstmBatch::VALUES);
    let warps = ctx.threads() / ctx.lanes();
    let mut output = ctx.thread() / ctx.lanes();
    while output < OUTPUTS {
        let mut sums = [[0.0; 4]; BROUGHT];
        let mut i = 4 * ctx.lane();
        while i < UNITS {
            let w = four_of(weights.1, OUTPUT_AT + output * UNITS + i);
            let hidden: [[f32; 4]; BROUGHT] = from_fn(|step| {
                let row = row_of(BROUGHT * part + step.min(own.len() - 1));
                states.nearest(state(ctx, row, (UNITS + i) / 4))
            });
            let mut step = 0;
            while step < BROUGHT {
                sums[step] = from_fn(|k| mul_add(w[k], hidden[step][k], sums[step][k]));
                step += 1;
            }
            i += 4 * ctx.lanes();
        }
        let mut step = 0;
        while step < BROUGHT {
            values.set(sums_at(OUTPUTS * step + output) + ctx.lane(), total(sums[step]));
            step += 1;
        }
        output += warps;
    }
    ctx.sync_block();
    let mut i = ctx.thread();
    while i < OUTPUTS * own.len() {
        let bias = weights.0.get(OUTPUT_AT + OUTPUTS * UNITS + i % OUTPUTS);
        let mut y = bias.copied().unwrap_or(0.0);
        if let Some(sums) = values.array::<LANES>(sums_at(i)) {
            let mut lane = 0;
            while lane < ctx.lanes() {
                y += sums.get(lane).unwrap_or(0.0);
                lane += 1;
            }
        }
        // Behind the sums.
        values.set(sums_at(OUTPUTS * BROUGHT) + i, y);
        i += ctx.threads();
    }
    ctx.sync_block();
    // The bus carries few long writes faster than many short ones.
    let mut i = 4 * ctx.thread();
    while i < OUTPUTS * own.len() {
        let four = values.get4(sums_at(OUTPUTS * BROUGHT) + i).unwrap_or([f32::NAN; 4]);
        payload.outputs.set4(OUTPUTS * own.start + i, four);
        i += 4 * ctx.threads();
    }
    ctx.sync_block();
}

/// Where that four is of the state of the stream that has that row, in fours. Where there is none it is any.
#[inline(always)]
fn state(ctx: &GridContext<'_>, row: usize, four: usize) -> u32 {
    let begin = ctx.shared(LstmBatch::STATES).get(row).unwrap_or(0);
    begin.wrapping_add(four as u32)
}

/// What a thread adds up: of each of four steps the four gates of a unit.
type Sums = [[f32; 4]; 4];

/// Rows of a thread's steps lie so far apart.
const APART: usize = TILE / 4;

/// All threads of a block: the cell states and the hidden states of a part of a layer, of the team's steps. A thread has a unit of four
/// steps; a warp has eight units side by side, of sixteen steps.
#[inline(always)]
fn layer<const LAYER: usize>(
    ctx: &GridContext<'_>,
    buffers: &Buffers<'_>,
    steps: &Range<usize>,
    part: usize,
) {
    const OF_VALUES: usize = span(APART * STRIDE);
    const OF_HIDDEN: usize = span(APART * HIDDEN_STRIDE);
    let (values, hidden) = (ctx.shared(LstmBatch::VALUES), ctx.shared(LstmBatch::HIDDEN));
    let mut job = ctx.thread();
    while job < OWN * APART {
        let (lane, warp) = (job % 32, job / 32);
        let (unit, row) = (lane % 8 + 8 * (warp % (OWN / 8)), lane / 8 + 4 * (warp / (OWN / 8)));
        job += ctx.threads();
        if 4 * row >= steps.len() {
            continue;
        }
        let own = OWN * part + unit;
        let place = |k| 4 * state(ctx, row + APART * k, 0) + (UNITS * LAYER + own) as u32;
        let cell_at: [u32; 4] = from_fn(|k| place(k) + 2 * UNITS as u32);
        let before = cell_at.map(|at| buffers.each_state.nearest(at));
        let bias = ctx.shared(LstmBatch::BIASES).get4(4 * (OWN * LAYER + unit));
        let mut sums: Sums = [bias.unwrap_or_default(); 4];
        if LAYER == 0 {
            let (weights, inputs) = (ctx.shared(LstmBatch::FIRST), (values, STRIDE * row));
            add::<STRIDE, OF_VALUES>(&mut sums, (weights, 4 * unit), inputs, ROW[0]);
        } else {
            let (weights, at) = (ctx.shared(LstmBatch::SECOND), 4 * unit);
            let inputs = (values, STRIDE * row + FEATURES);
            add::<STRIDE, OF_VALUES>(&mut sums, (weights, at), inputs, UNITS);
            let (at, inputs) = (at + 4 * OWN * UNITS, (hidden, HIDDEN_STRIDE * row));
            add::<HIDDEN_STRIDE, OF_HIDDEN>(&mut sums, (weights, at), inputs, UNITS);
        }
        let end = |k: usize| {
            if 4 * row + k < steps.len() {
                let [input, forget, cell, output] = sums[k];
                let cell = mul_add(sigmoid(forget), before[k], sigmoid(input) * tanh(cell));
                buffers.each_state.set(cell_at[k], cell);
                let hidden = sigmoid(output) * tanh(cell);
                if LAYER == 0 {
                    let step = steps.start + 4 * row + k;
                    let at = 4 * buffers.hidden_at + UNITS * step + own;
                    buffers.each_of_room.set(at as u32, hidden.to_bits());
                } else {
                    buffers.each_state.set(place(k), hidden);
                }
            }
        };
        // A loop as long would not be unrolled, and find its sums in local memory.
        end(0);
        end(1);
        end(2);
        end(3);
    }
}

/// Numbers from the first one of [`AT_ONCE`] inputs to the last one of as many three rows of that distance on.
const fn span(distance: usize) -> usize {
    3 * distance + AT_ONCE
}

/// Adds the products of `count` inputs, of each of four streams, with their weights, whose rows of `X` lie [`APART`] rows apart; `SPAN` is the
/// [`span`] of that.
#[inline(always)]
fn add<const X: usize, const SPAN: usize>(
    sums: &mut Sums,
    (weights, weights_at): (SharedSlice<'_, f32>, usize),
    (inputs, inputs_at): (SharedSlice<'_, f32>, usize),
    count: usize,
) {
    const OF_WEIGHTS: usize = 4 * OWN * (AT_ONCE - 1) + 4;
    let mut at = 0;
    while at < count {
        let weights = weights.array::<OF_WEIGHTS>(weights_at + 4 * OWN * at);
        let Some((weights, inputs)) = weights.zip(inputs.array::<SPAN>(inputs_at + at)) else {
            return;
        };
        let mut k = 0;
        while k < AT_ONCE {
            let x: [[f32; 4]; 4] =
                from_fn(|stream| inputs.get4(APART * X * stream + k).unwrap_or_default());
            let mut nth = 0;
            while nth < 4 {
                let gates = weights.get4(4 * OWN * (k + nth)).unwrap_or_default();
                let mut stream = 0;
                while stream < 4 {
                    let sum = &mut sums[stream];
                    *sum = from_fn(|gate| mul_add(gates[gate], x[stream][nth], sum[gate]));
                    stream += 1;
                }
                nth += 1;
            }
            k += 4;
        }
        at += AT_ONCE;
    }
}
