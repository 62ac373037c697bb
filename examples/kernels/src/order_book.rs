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

/// The book of a lane: quantities by price.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct BookState {
    /// Wanted at each price.
    pub bids: [u32; TICKS],
    /// On offer at each price.
    pub asks: [u32; TICKS],
    /// Traded so far.
    pub traded: u64,
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
    fn take(&mut self, order: &Order) -> Fill {
        let (limit, buys) = (order.price as usize, order.side == Side::Buy as u32);
        let (mut left, mut cost) = (order.quantity, 0u32);
        let others = if buys { &mut self.asks } else { &mut self.bids };
        for step in 0..TICKS {
            // Best price first: the lowest ask, the highest bid.
            let price = if buys { step } else { TICKS - 1 - step };
            let beyond = if buys { price > limit } else { price < limit };
            if beyond || left == 0 {
                break;
            }
            if let Some(there) = others.get_mut(price) {
                let traded = left.min(*there);
                *there -= traded;
                left -= traded;
                cost = cost.wrapping_add(traded.wrapping_mul(price as u32));
            }
        }
        let own = if buys { &mut self.bids } else { &mut self.asks };
        if let Some(waiting) = own.get_mut(limit) {
            *waiting = waiting.saturating_add(left);
        }
        let filled = order.quantity - left;
        self.traded += u64::from(filled);
        self.top(filled, cost)
    }

    /// The answer, with the best prices as they are.
    fn top(&self, filled: u32, cost: u32) -> Fill {
        let none = TICKS as u32;
        let bid = self.bids.iter().rposition(|there| *there > 0).map_or(none, |tick| tick as u32);
        let ask = self.asks.iter().position(|there| *there > 0).map_or(none, |tick| tick as u32);
        Fill { filled, cost, bid, ask }
    }
}
