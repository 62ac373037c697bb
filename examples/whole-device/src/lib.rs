//! The kernels of the examples that a whole device computes with: PageRank by a grid, PageRank by messages between kernels, a
//! wave equation, and two small networks. They are a device crate of their own so that `ring bench` loads no others.
#![no_std]

mod inference;
mod lstm_batches;
mod page_rank;
pub mod rank_links;
mod wave;

pub use inference::{
    LSTM, LSTM_BUFFER, LSTM_LAYER, LSTM_OUTPUT, LSTM_STATE, Lstm, LstmAnswer, LstmRequest, MLP,
    MLP_BIASES, MLP_BUFFER_WORDS, MLP_WEIGHT_WORDS, Mlp, MlpAnswer, MlpRequest,
};
pub use lstm_batches::{
    LSTM_BATCH_TEAM, LstmBatch, LstmBatchAnswer, LstmBatchRequest, lstm_batch_room,
};
pub use page_rank::{
    AT_ONCE, FOURS, HalfRanking, NOBODY, PageRank, PageRankOfTwo, Ranked, Ranking, SLICE,
};
pub use wave::{Membrane, Steps, Wave};

/// Their PTX, built by `cargo xtask ptx` and checked in.
#[cfg(not(target_arch = "nvptx64"))]
pub const PTX: &str = include_str!("../kernels.ptx");
