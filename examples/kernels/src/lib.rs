//! The kernels of the examples that need more than the built-in ones: a device crate like a user's own.
#![no_std]

mod asker;
mod fragile;
mod graph;
mod grid;
mod handlers;
mod ledger;
mod market;
mod order_book;
pub mod pipeline;
mod saxpy;
mod sizes;
mod ticker;
mod tools;
mod traced;

pub use asker::{Asker, Question, Told};
pub use fragile::{Fragile, FragileBlock, FragileInOrder, FragileWarp};
pub use graph::{
    Absorbed, Absorber, BlockCopier, Copier, Counter, Discard, Item, Pass, STREAMS, TOO_MUCH,
    Tally, Verified, Verifier, WarpCopier,
};
pub use grid::{
    Astray, Found, GridSum, Leave, LeftBehind, Meeting, Meetings, Met, Numbers, Passes, Passing,
    Ripple, Rounds,
};
pub use handlers::{Eight, Nine, NineHandler, OneHandler, TwoHandlers};
pub use ledger::{ACCOUNTS, Ledger, LedgerState};
pub use market::{KEYS, Market, MarketState, Quote, Trade};
pub use order_book::{Book, BookState, Fill, Order, Side, TICKS};
pub use saxpy::{Saxpy, SaxpyAnswer, SaxpyRequest};
pub use sizes::{Ten, Two};
pub use ticker::{Ticked, Ticker};
pub use tools::{
    BlockTools, Call, Count, CountRequest, FUNCTIONS, FoundShared, Functions, MostShared, SHARED,
    SharedTools, Together, WarpTools, number,
};
pub use traced::{
    Line, Traced, TracedBlock, TracedCopier, TracedInOrder, TracedPass, TracedTally,
    TracedTogether, TracedWarp,
};

/// Their PTX, built by `cargo xtask ptx` and checked in.
#[cfg(not(target_arch = "nvptx64"))]
pub const PTX: &str = include_str!("../kernels.ptx");
