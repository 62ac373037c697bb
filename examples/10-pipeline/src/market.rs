//! Lines as a market might send them, and what is to come of them, worked out without the kernels.

use ring_example_kernels::Side;
use ring_example_kernels::pipeline::{
    Alert, AlertKind, Line, MOVE, Reason, Rejected, Symbol, Totals, VOLUME_STEP,
};
use std::collections::HashMap;

/// What is traded.
const NAMES: [&str; 12] = [
    "ANT", "BEE", "CROW", "DUCK", "EAGLE", "FALCON", "GOOSE", "HERON", "IBIS", "JAY", "KITE7",
    "LINNET22",
];

/// Lines that are no orders.
const WRONG: [(&str, Reason); 6] = [
    ("", Reason::Fields),
    ("ANT,B,1000", Reason::Fields),
    ("NIGHTINGALE,B,1000,5", Reason::Symbol),
    ("BEE,X,1000,5", Reason::Side),
    ("CROW,S,99999999999,5", Reason::Price),
    ("DUCK,S,1000,none", Reason::Quantity),
];

/// What is to come of the lines so far.
#[derive(Debug, Default)]
pub struct Expected {
    /// Lines that are orders.
    pub orders: u64,
    /// The others, in order.
    pub rejected: Vec<Rejected>,
    /// The alerts of each symbol that has some, in order.
    pub alerts: HashMap<Symbol, Vec<Alert>>,
    /// What all trades add up to.
    pub totals: Totals,
}

/// A symbol in the market.
#[derive(Debug)]
struct Stock {
    symbol: Symbol,
    /// Around what price orders are.
    middle: u32,
    /// The best orders that wait: price and quantity.
    bid: Option<(u32, u32)>,
    ask: Option<(u32, u32)>,
    volume: u64,
    /// The price at the first trade, or at the last alert about it.
    compared: Option<u32>,
}

/// Makes lines, the same for the same seed.
#[derive(Debug)]
pub struct Market {
    random: u64,
    stocks: Vec<Stock>,
    expected: Expected,
}

impl Market {
    /// A market in which nothing was traded yet.
    pub fn new(seed: u64) -> Market {
        let stock = |name: &&str| Stock {
            symbol: Symbol::new(name.as_bytes())
                .expect("a name of at most eight letters and digits"),
            middle: 10_000,
            bid: None,
            ask: None,
            volume: 0,
            compared: None,
        };
        let stocks = NAMES.iter().map(stock).collect();
        Market { random: seed, stocks, expected: Expected::default() }
    }

    /// What is to come of the lines so far.
    pub fn expected(&self) -> &Expected {
        &self.expected
    }

    /// The next line.
    pub fn line(&mut self) -> Line {
        if self.below(50) == 0 {
            let (text, reason) = WRONG[self.below(WRONG.len() as u32) as usize];
            let line = Line::new(text).expect("a short text");
            self.expected.rejected.push(Rejected { line, reason: reason as u32 });
            return line;
        }
        let number = self.below(NAMES.len() as u32) as usize;
        let (jumps, jump) = (self.below(100) == 0, 92 + self.below(17));
        let (side, offset) = ([Side::Buy, Side::Sell][self.below(2) as usize], self.below(64));
        let quantity = 1 + self.below(100);
        let stock = &mut self.stocks[number];
        if jumps {
            stock.middle = (stock.middle * jump / 100).clamp(1000, 100_000);
        }
        let price = stock.middle - 32 + offset;
        self.expected.orders += 1;
        stock.order(side, price, quantity, &mut self.expected);
        let side = if side == Side::Buy { 'B' } else { 'S' };
        let line = format!("{},{side},{price},{quantity}", NAMES[number]);
        Line::new(&line).expect("at most 32 bytes")
    }

    /// A random number below `end`.
    fn below(&mut self, end: u32) -> u32 {
        self.random = self.random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        (self.random >> 33) as u32 % end
    }
}

impl Stock {
    /// Adds to `expected` what comes of an order.
    fn order(&mut self, side: Side, price: u32, quantity: u32, expected: &mut Expected) {
        let others = match side {
            Side::Buy => self.ask.take_if(|(ask, _)| *ask <= price),
            Side::Sell => self.bid.take_if(|(bid, _)| *bid >= price),
        };
        let Some((at, waiting)) = others else { return self.wait(side, price, quantity) };
        let traded = quantity.min(waiting);
        if waiting > traded {
            match side {
                Side::Buy => self.ask = Some((at, waiting - traded)),
                Side::Sell => self.bid = Some((at, waiting - traded)),
            }
        }
        if quantity > traded {
            self.wait(side, price, quantity - traded);
        }
        self.trade(at, traded, expected);
    }

    /// Keeps what is left of an order if it is the best one.
    fn wait(&mut self, side: Side, price: u32, quantity: u32) {
        match side {
            Side::Buy if self.bid.is_none_or(|(bid, _)| price > bid) => {
                self.bid = Some((price, quantity));
            }
            Side::Sell if self.ask.is_none_or(|(ask, _)| price < ask) => {
                self.ask = Some((price, quantity));
            }
            _ => {}
        }
    }

    /// Adds a trade and the alerts about it.
    fn trade(&mut self, price: u32, quantity: u32, expected: &mut Expected) {
        let totals = &mut expected.totals;
        totals.trades += 1;
        totals.volume += u64::from(quantity);
        totals.value += u64::from(quantity) * u64::from(price);
        let before = self.volume;
        self.volume += u64::from(quantity);
        let mut alert = |kind: AlertKind| {
            let alert =
                Alert { symbol: self.symbol, volume: self.volume, price, kind: kind as u32 };
            expected.alerts.entry(self.symbol).or_default().push(alert);
        };
        let compared = *self.compared.get_or_insert(price);
        if u64::from(price.abs_diff(compared)) * MOVE > u64::from(compared) {
            self.compared = Some(price);
            alert(AlertKind::Moved);
        }
        if before / VOLUME_STEP < self.volume / VOLUME_STEP {
            alert(AlertKind::Volume);
        }
    }
}
