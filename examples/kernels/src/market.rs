//! A stream of trades of many keys, and what can be asked about each: one kernel with several handlers.

use bytemuck::{Pod, Zeroable};

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
    /// The highest.
    pub high: f32,
    /// The lowest.
    pub low: f32,
    /// Trades so far.
    pub trades: u32,
    /// How much in all; it wraps around.
    pub volume: u64,
}

/// What a channel of [`Market`] keeps.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
pub struct MarketState {
    /// By key.
    pub quotes: [Quote; KEYS],
}

ring_device::ring_kernel! {
    /// Takes trades and answers questions, each in its turn.
    pub struct Market {
        name: "market",
        threads: 64,
    }

    /// Takes a trade; gives the trades of its key so far, 0 if that is not kept.
    fn trade(state: &mut MarketState, trade: &Trade) -> u32 {
        let Some(quote) = state.quotes.get_mut(trade.key as usize) else { return 0 };
        let is_first = quote.trades == 0;
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
}
