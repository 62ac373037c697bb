//! A stream of trades of many keys, and what can be asked about each: one kernel with several handlers, and windows that end as time
//! passes.

use bytemuck::{Pod, Zeroable};
use core::time::Duration;

/// Keys that are kept.
pub const KEYS: usize = 10_000;

/// A trade.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
pub struct Trade {
    /// Of which key; one that is not kept changes nothing.
    pub key: u32,
    /// At which price.
    pub price: f32,
    /// How much.
    pub volume: u32,
}

/// What is known of a key. All zeros before its first trade.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
pub struct Quote {
    /// The last price.
    pub last: f32,
    /// The highest of the window in which the last trade was.
    pub high: f32,
    /// The lowest of that window.
    pub low: f32,
    /// Trades so far.
    pub trades: u32,
    /// How much in all; it wraps around.
    pub volume: u64,
    /// Number of that window.
    pub window: u64,
}

/// What a channel of [`Market`] keeps.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
pub struct MarketState {
    /// Windows that are over: one more with each tick.
    pub windows: u64,
    /// By key.
    pub quotes: [Quote; KEYS],
}

ring_device::ring_kernel! {
    /// Takes trades and answers questions, each in its turn.
    pub struct Market {
        name: "market",
        threads: 64,
        tick_every: Market::WINDOW,
    }

    /// Takes a trade; gives the trades of its key so far, 0 if that is not kept.
    fn trade(state: &mut MarketState, trade: &Trade) -> u32 {
        let Some(quote) = state.quotes.get_mut(trade.key as usize) else { return 0 };
        let is_first = quote.trades == 0 || quote.window != state.windows;
        quote.window = state.windows;
        quote.last = trade.price;
        quote.high = if is_first || trade.price > quote.high { trade.price } else { quote.high };
        quote.low = if is_first || trade.price < quote.low { trade.price } else { quote.low };
        quote.trades = quote.trades.wrapping_add(1);
        quote.volume = quote.volume.wrapping_add(trade.volume.into());
        quote.trades
    }

    /// Gives what is known of a key, all zeros if it is not kept.
    fn quote(state: &mut MarketState, key: &u32) -> Quote {
        state.quotes.get(*key as usize).copied().unwrap_or(Quote::zeroed())
    }

    /// A window is over.
    fn tick(state: &mut MarketState) {
        state.windows = state.windows.wrapping_add(1);
    }
}

impl Market {
    /// How long a window is.
    pub const WINDOW: Duration = Duration::from_millis(10);
}
