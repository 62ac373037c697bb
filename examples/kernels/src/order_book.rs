//! A limit order book: what is on offer stays on the device, and a message carries one order.

use bytemuck::{Pod, Zeroable};

/// Prices are ticks below this.
pub const TICKS: usize = 256;

/// Whether an order buys or sells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Side {
    /// Buys at its price or below.
    Buy = 0,
    /// Sells at its price or above.
    Sell = 1,
}

/// An order, 16 bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct Order {
    /// A [`Side`]; any other number is refused.
    pub side: u32,
    /// The limit in ticks, below [`TICKS`].
    pub price: u32,
    /// How many.
    pub quantity: u32,
    /// Zero.
    pub reserved: u32,
}

/// What became of an order, 16 bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct Fill {
    /// How many were traded at once; the rest waits in the book.
    pub filled: u32,
    /// What they cost in all, in ticks, wrapping.
    pub cost: u32,
    /// The highest price bid afterwards, or [`TICKS`] if none is.
    pub bid: u32,
    /// The lowest price asked afterwards, or [`TICKS`] if none is.
    pub ask: u32,
}

/// The book of a channel: quantities by price.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct BookState {
    /// Wanted at each price.
    pub bids: [u32; TICKS],
    /// On offer at each price.
    pub asks: [u32; TICKS],
    /// Traded so far.
    pub traded: u64,
    /// One more than the highest price bid, or 0 if none is.
    pub best_bid: u32,
    /// How far the lowest price asked is below [`TICKS`], or 0 if none is.
    pub best_ask: u32,
}

ring_device::ring_kernel! {
    /// Matches orders against a book, in the order in which they come.
    pub struct Book {
        name: "book",
        threads: 64,
        slot_bytes: 16,
    }

    fn handle(ctx: &ThreadContext, book: &mut BookState, order: &Order) -> Fill {
        if order.price as usize >= TICKS || order.side > 1 {
            ctx.refuse();
            return book.top(0, 0);
        }
        book.take(order)
    }
}

impl BookState {
    /// Matches an order of a known side and price, and keeps what is left of it.
    pub fn take(&mut self, order: &Order) -> Fill {
        let (limit, buys) = (order.price, order.side == Side::Buy as u32);
        let (mut left, mut cost) = (order.quantity, 0u32);
        while left > 0 {
            // Best price first; what is sold out there gives way to the next.
            let price = if buys { self.ask() } else { self.bid() };
            let beyond = if buys { price > limit } else { price < limit };
            let others = if buys { &mut self.asks } else { &mut self.bids };
            let Some(there) = others.get_mut(price as usize).filter(|_| !beyond) else { break };
            let traded = left.min(*there);
            *there -= traded;
            left -= traded;
            cost = cost.wrapping_add(traded.wrapping_mul(price));
            if *there == 0 {
                let best = if buys { &mut self.best_ask } else { &mut self.best_bid };
                *best -= 1;
            }
        }
        let filled = order.quantity - left;
        self.traded += u64::from(filled);
        let own = if buys { &mut self.bids } else { &mut self.asks };
        if let Some(waiting) = own.get_mut(limit as usize).filter(|_| left > 0) {
            *waiting = waiting.saturating_add(left);
            match buys {
                true => self.best_bid = self.best_bid.max(limit + 1),
                false => self.best_ask = self.best_ask.max(TICKS as u32 - limit),
            }
        }
        self.top(filled, cost)
    }

    /// The answer, with the best prices as they are.
    fn top(&mut self, filled: u32, cost: u32) -> Fill {
        let none = TICKS as u32;
        // Levels that were sold out before are passed over now.
        while self.best_bid > 0 && self.bids.get(self.best_bid as usize - 1) == Some(&0) {
            self.best_bid -= 1;
        }
        while self.best_ask > 0 && self.asks.get(TICKS - self.best_ask as usize) == Some(&0) {
            self.best_ask -= 1;
        }
        let bid = if self.best_bid > 0 { self.best_bid - 1 } else { none };
        Fill { filled, cost, bid, ask: none - self.best_ask }
    }

    /// The price to buy at, or [`TICKS`] if there is none.
    fn ask(&self) -> u32 {
        TICKS as u32 - self.best_ask
    }

    /// The price to sell at; past all prices if there is none.
    fn bid(&self) -> u32 {
        self.best_bid.wrapping_sub(1)
    }
}
