//! Kernels for two graphs: lines of text become orders, trades and alerts; and lines of text become words, which are
//! counted.

use crate::order_book::Side;
use bytemuck::{Pod, Zeroable};
use core::fmt::{self, Write};

/// Bytes of a [`Line`].
pub const LINE_BYTES: usize = 64;

/// A line of ASCII text. Its text ends at the first zero.
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
pub struct Line(pub [u8; LINE_BYTES]);

impl Line {
    /// The line of that text, or none if it is too long.
    pub fn new(text: &str) -> Option<Line> {
        let mut line = Line::zeroed();
        line.0.get_mut(..text.len())?.copy_from_slice(text.as_bytes());
        Some(line)
    }

    /// Its text, without the zeros behind it.
    #[inline(always)]
    pub fn text(&self) -> &[u8] {
        self.0.split(|byte| *byte == 0).next().unwrap_or(&[])
    }
}

impl fmt::Debug for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Line(\"{}\")", self.text().escape_ascii())
    }
}

/// The name of what is traded: up to eight ASCII letters and digits, the first in the lowest byte.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Pod, Zeroable)]
pub struct Symbol(pub u64);

impl Symbol {
    /// The symbol of that name, if it may be one.
    #[inline(always)]
    pub fn new(name: &[u8]) -> Option<Symbol> {
        let is_name = (1..=8).contains(&name.len()) && name.iter().all(u8::is_ascii_alphanumeric);
        is_name.then(|| Symbol(packed(name)))
    }

    /// A hash of it.
    #[inline(always)]
    pub fn key(self) -> u32 {
        hash(self.0)
    }
}

impl fmt::Display for Symbol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Text(&[self.0]).fmt(f)
    }
}

/// Writes text that was packed.
struct Text<'a>(&'a [u64]);

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.0.iter().flat_map(|packed| packed.to_le_bytes());
        bytes.take_while(|byte| *byte != 0).try_for_each(|byte| f.write_char(char::from(byte)))
    }
}

/// Up to eight bytes as a number, the first in the lowest byte: a number stays in a register of a GPU, where an array of bytes
/// would lie in local memory.
#[inline(always)]
fn packed(bytes: &[u8]) -> u64 {
    let shifted = bytes.iter().zip((0..64).step_by(8)).map(|(byte, by)| u64::from(*byte) << by);
    shifted.fold(0, |packed, byte| packed | byte)
}

#[inline(always)]
fn hash(number: u64) -> u32 {
    (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u32
}

/// The first entry that fits, from the one that `hash` chooses on; none if there is none. Of a table with open addressing
/// those fit that have the key, or are free.
#[inline(always)]
fn find<T, const N: usize>(
    table: &mut [T; N],
    hash: u32,
    fits: impl Fn(&T) -> bool,
) -> Option<&mut T> {
    let mut places = (0..N).map(|k| (hash as usize % N + k) % N);
    let at = places.find(|at| table.get(*at).is_some_and(&fits))?;
    table.get_mut(at)
}

/// An order, of a line `symbol,side,price,quantity`. The side is `B` or `S`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct SymbolOrder {
    /// What is bought or sold.
    pub symbol: Symbol,
    /// A [`Side`].
    pub side: u32,
    /// The limit, not zero.
    pub price: u32,
    /// How many, not zero.
    pub quantity: u32,
    /// Zero.
    pub reserved: u32,
}

/// Why a line is no order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Reason {
    /// It does not have four fields.
    Fields = 1,
    /// The symbol is empty, longer than eight bytes, or not of letters and digits.
    Symbol,
    /// The side is neither `B` nor `S`.
    Side,
    /// The price is not a number from 1 to `u32::MAX`.
    Price,
    /// The quantity is not a number from 1 to `u32::MAX`.
    Quantity,
}

/// A line that is no order.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct Rejected {
    /// The line as it came.
    pub line: Line,
    /// A [`Reason`].
    pub reason: u32,
}

impl SymbolOrder {
    /// The order in the text of a line.
    #[inline(always)]
    pub fn parse(text: &[u8]) -> Result<SymbolOrder, Reason> {
        let mut fields = text.split(|byte| *byte == b',');
        let mut field = || fields.next();
        let (Some(symbol), Some(side), Some(price), Some(quantity), None) =
            (field(), field(), field(), field(), field())
        else {
            return Err(Reason::Fields);
        };
        let symbol = Symbol::new(symbol).ok_or(Reason::Symbol)?;
        let side = match side {
            b"B" => Side::Buy,
            b"S" => Side::Sell,
            _ => return Err(Reason::Side),
        };
        let price = number(price).ok_or(Reason::Price)?;
        let quantity = number(quantity).ok_or(Reason::Quantity)?;
        Ok(SymbolOrder { symbol, side: side as u32, price, quantity, reserved: 0 })
    }
}

/// A decimal number that is not zero.
#[inline(always)]
fn number(digits: &[u8]) -> Option<u32> {
    let number = digits.iter().try_fold(0u32, |number, byte| {
        let digit = u32::from(byte.wrapping_sub(b'0'));
        if digit < 10 { number.checked_mul(10)?.checked_add(digit) } else { None }
    });
    number.filter(|number| *number > 0)
}

ring_device::ring_kernel! {
    /// Makes orders of lines.
    pub struct Parse {
        name: "parse",
        ports: {
            /// The orders.
            ORDERS: [SymbolOrder; 1] by |order| order.symbol.key(),
            /// Lines that are no orders.
            REJECTED: [Rejected; 1],
        },
    }

    fn handle(line: &Line, out: &mut Ports) {
        match SymbolOrder::parse(line.text()) {
            Ok(order) => out.emit(Parse::ORDERS, order),
            Err(reason) => out.emit(Parse::REJECTED, Rejected { line: *line, reason: reason as u32 }),
        }
    }
}

/// Symbols that a channel of [`TopOfBook`] or [`Watch`] has room for.
pub const SYMBOLS: usize = 16;

/// Orders of one price that wait.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct Level {
    /// Their price.
    pub price: u32,
    /// How many wait; 0 if there is none.
    pub quantity: u32,
}

/// The best orders of a symbol, and what was traded.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct Top {
    /// Which symbol; zero if the entry is free.
    pub symbol: Symbol,
    /// The best order to buy.
    pub bid: Level,
    /// The best order to sell.
    pub ask: Level,
    /// Quantity traded so far.
    pub volume: u64,
    /// Price of the last trade, or 0 if there was none.
    pub last: u32,
    /// Zero.
    pub reserved: u32,
}

/// What a channel of [`TopOfBook`] keeps.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct Tops {
    /// Its symbols.
    pub symbols: [Top; SYMBOLS],
    /// Orders of symbols that it had no room for.
    pub dropped: u64,
}

/// How a symbol stands after an order.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct Quote {
    /// Which symbol.
    pub symbol: Symbol,
    /// Quantity traded so far.
    pub volume: u64,
    /// Price of the last trade, or 0 if there was none.
    pub last: u32,
    /// How many the order traded.
    pub traded: u32,
}

/// A trade.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct Trade {
    /// What was traded.
    pub symbol: Symbol,
    /// For how much apiece.
    pub price: u32,
    /// How many.
    pub quantity: u32,
}

impl Top {
    /// Trades an order against the best one of the other side; how many were traded. The rest waits if it is better than the
    /// best one of its own side, which it then replaces.
    #[inline(always)]
    pub fn take(&mut self, order: &SymbolOrder) -> u32 {
        let buys = order.side == Side::Buy as u32;
        let (own, other) =
            if buys { (&mut self.bid, &mut self.ask) } else { (&mut self.ask, &mut self.bid) };
        let reaches = if buys { order.price >= other.price } else { order.price <= other.price };
        let traded = if reaches { order.quantity.min(other.quantity) } else { 0 };
        other.quantity -= traded;
        if traded > 0 {
            self.last = other.price;
            self.volume = self.volume.wrapping_add(u64::from(traded));
        }
        let left = order.quantity - traded;
        let is_better = if buys { order.price > own.price } else { order.price < own.price };
        if left > 0 && (own.quantity == 0 || is_better) {
            *own = Level { price: order.price, quantity: left };
        }
        traded
    }
}

ring_device::ring_kernel! {
    /// Trades the orders of each symbol, in the order in which they come.
    pub struct TopOfBook {
        name: "top_of_book",
        ports: {
            /// How the symbol stands after each order.
            QUOTES: [Quote; 1],
            /// The trade, if there was one.
            TRADES: [Trade; 1],
        },
    }

    fn handle(tops: &mut Tops, order: &SymbolOrder, out: &mut Ports) {
        let symbol = order.symbol;
        let fits = |top: &Top| top.symbol == symbol || top.symbol == Symbol::default();
        let Some(top) = find(&mut tops.symbols, symbol.key(), fits) else {
            tops.dropped = tops.dropped.wrapping_add(1);
            return;
        };
        top.symbol = symbol;
        let traded = top.take(order);
        let (volume, last) = (top.volume, top.last);
        out.emit(TopOfBook::QUOTES, Quote { symbol, volume, last, traded });
        if traded > 0 {
            out.emit(TopOfBook::TRADES, Trade { symbol, price: last, quantity: traded });
        }
    }
}

/// What an [`Alert`] is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum AlertKind {
    /// The price differs from that of the last such alert, or of the first trade, by more than one part in [`MOVE`] of it.
    Moved = 1,
    /// The quantity traded has passed a multiple of [`VOLUME_STEP`].
    Volume,
}

/// See [`AlertKind::Moved`]: 20 is 5 %.
pub const MOVE: u64 = 20;

/// See [`AlertKind::Volume`].
pub const VOLUME_STEP: u64 = 50_000;

/// What is remarkable about a quote.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct Alert {
    /// Of which symbol.
    pub symbol: Symbol,
    /// Quantity traded so far.
    pub volume: u64,
    /// Price of the last trade.
    pub price: u32,
    /// An [`AlertKind`].
    pub kind: u32,
}

/// What the quotes of a symbol are compared with.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct Baseline {
    /// Which symbol; zero if the entry is free.
    pub symbol: Symbol,
    /// A price; 0 if there is none yet.
    pub price: u32,
    /// How many times [`VOLUME_STEP`] was traded, wrapping.
    pub steps: u32,
}

/// What a channel of [`Watch`] keeps.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct Watched {
    /// Its symbols.
    pub symbols: [Baseline; SYMBOLS],
    /// Quotes of symbols that it had no room for.
    pub dropped: u64,
}

ring_device::ring_kernel! {
    /// Compares quotes with those before, and raises alerts.
    pub struct Watch {
        name: "watch",
        ports: {
            /// None, one, or one of each kind for a quote.
            ALERTS: [Alert; 2],
        },
    }

    fn handle(watched: &mut Watched, quote: &Quote, out: &mut Ports) {
        let Quote { symbol, volume, last: price, .. } = *quote;
        let fits = |base: &Baseline| base.symbol == symbol || base.symbol == Symbol::default();
        let Some(base) = find(&mut watched.symbols, symbol.key(), fits) else {
            watched.dropped = watched.dropped.wrapping_add(1);
            return;
        };
        base.symbol = symbol;
        if base.price == 0 {
            base.price = price;
        }
        if MOVE * u64::from(price.abs_diff(base.price)) > u64::from(base.price) {
            base.price = price;
            out.emit(Watch::ALERTS, Alert { symbol, volume, price, kind: AlertKind::Moved as u32 });
        }
        let steps = (volume / VOLUME_STEP) as u32;
        if steps != base.steps {
            base.steps = steps;
            out.emit(Watch::ALERTS, Alert { symbol, volume, price, kind: AlertKind::Volume as u32 });
        }
    }
}

/// What a [`Tape`] keeps.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct Totals {
    /// Trades.
    pub trades: u64,
    /// The sum of their quantities, wrapping.
    pub volume: u64,
    /// The sum of what they cost, wrapping.
    pub value: u64,
}

ring_device::ring_kernel! {
    /// Adds up the trades of all symbols, and sends nothing.
    pub struct Tape { name: "tape", }

    fn handle(totals: &mut Totals, trade: &Trade) {
        let (price, quantity) = (u64::from(trade.price), u64::from(trade.quantity));
        totals.trades = totals.trades.wrapping_add(1);
        totals.volume = totals.volume.wrapping_add(quantity);
        totals.value = totals.value.wrapping_add(price.wrapping_mul(quantity));
    }
}

/// A word in lower case, of which the first 16 bytes count.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Pod, Zeroable)]
pub struct Word {
    /// Its bytes, eight in a number, the first in the lowest byte.
    pub text: [u64; 2],
    /// A hash of them.
    pub hash: u32,
    /// Zero.
    pub reserved: u32,
}

impl Word {
    /// The word of ASCII letters and digits.
    #[inline(always)]
    pub fn new(bytes: &[u8]) -> Word {
        // Bit 0x40 tells letters from digits; bit 0x20, which digits have, makes a letter lower case.
        let lower = |bytes| {
            let packed = packed(bytes);
            packed | (packed >> 1 & 0x2020_2020_2020_2020)
        };
        let text = [lower(bytes), lower(bytes.get(8..).unwrap_or(&[]))];
        Word { text, hash: hash(text[0] ^ text[1].rotate_left(32)), reserved: 0 }
    }
}

impl fmt::Display for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Text(&self.text).fmt(f)
    }
}

/// Most words that [`Split`] emits of a line.
pub const WORDS: u32 = 16;

ring_device::ring_kernel! {
    /// Makes words of lines: what is neither an ASCII letter nor a digit is between words.
    pub struct Split {
        name: "split",
        ports: {
            /// The words of a line, in order.
            WORDS: [Word; WORDS] by |word| word.hash,
            /// Lines of more than [`WORDS`] words, of which only the first were emitted.
            LONG: [Line; 1],
        },
    }

    fn handle(line: &Line, out: &mut Ports) {
        let between = |byte: &u8| !byte.is_ascii_alphanumeric();
        let mut words = line.text().split(between).filter(|word| !word.is_empty());
        for word in words.by_ref().take(WORDS as usize) {
            out.emit(Split::WORDS, Word::new(word));
        }
        if words.next().is_some() {
            out.emit(Split::LONG, *line);
        }
    }
}

/// How often a word came.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct Count {
    /// The word.
    pub word: Word,
    /// How often, wrapping; 0 if the entry is free.
    pub count: u64,
}

/// Words that a channel of [`WordCount`] has room for.
pub const COUNTS: usize = 256;

/// What a channel of [`WordCount`] keeps.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct Counts {
    /// Its words.
    pub words: [Count; COUNTS],
    /// Words that it had no room for.
    pub dropped: u64,
}

ring_device::ring_kernel! {
    /// Counts words, and sends nothing.
    pub struct WordCount { name: "word_count", }

    fn handle(counts: &mut Counts, word: &Word) {
        let fits = |count: &Count| count.count == 0 || count.word == *word;
        match find(&mut counts.words, word.hash, fits) {
            Some(count) => *count = Count { word: *word, count: count.count.wrapping_add(1) },
            None => counts.dropped = counts.dropped.wrapping_add(1),
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;
    use std::string::ToString;

    #[test]
    fn orders_are_parsed_and_all_else_is_rejected() {
        let order = SymbolOrder {
            symbol: Symbol::new(b"RING2").unwrap(),
            side: Side::Sell as u32,
            price: u32::MAX,
            quantity: 1,
            reserved: 0,
        };
        assert_eq!(SymbolOrder::parse(b"RING2,S,4294967295,01"), Ok(order));
        for (line, reason) in [
            ("", Reason::Fields),
            ("RING,B,1", Reason::Fields),
            ("RING,B,1,1,", Reason::Fields),
            (",B,1,1", Reason::Symbol),
            ("ELEPHANTS,B,1,1", Reason::Symbol),
            ("RI NG,B,1,1", Reason::Symbol),
            ("RING,b,1,1", Reason::Side),
            ("RING,,1,1", Reason::Side),
            ("RING,B,,1", Reason::Price),
            ("RING,B,0,1", Reason::Price),
            ("RING,B,4294967296,1", Reason::Price),
            ("RING,B,99999999999,1", Reason::Price),
            ("RING,B,1,-1", Reason::Quantity),
            ("RING,B,1,1 ", Reason::Quantity),
        ] {
            assert_eq!(SymbolOrder::parse(line.as_bytes()), Err(reason), "{line}");
        }
    }

    #[test]
    fn an_order_trades_with_the_best_one_of_the_other_side() {
        let mut top = Top::default();
        let mut take = |side: Side, price, quantity| {
            let (side, symbol) = (side as u32, Symbol::default());
            let traded = top.take(&SymbolOrder { symbol, side, price, quantity, reserved: 0 });
            (traded, top.bid.quantity, top.ask.quantity, top.last)
        };
        assert_eq!(take(Side::Buy, 100, 5), (0, 5, 0, 0));
        assert_eq!(take(Side::Buy, 99, 7), (0, 5, 0, 0), "not the best");
        assert_eq!(take(Side::Sell, 101, 4), (0, 5, 4, 0));
        assert_eq!(take(Side::Sell, 98, 3), (3, 2, 4, 100));
        assert_eq!(take(Side::Sell, 98, 3), (2, 0, 1, 100), "the rest waits, and is the best");
        assert_eq!(take(Side::Buy, 98, 1), (1, 0, 0, 98));
    }

    #[test]
    fn text_survives_being_packed() {
        let word = |text: &str| Word::new(text.as_bytes()).to_string();
        assert_eq!(word("a"), "a");
        assert_eq!(word("WebAssembly2025"), "webassembly2025");
        assert_eq!(word("UncharacteristicallyLong"), "uncharacteristic");
        assert_eq!(Symbol::new(b"ABCD1234").unwrap().to_string(), "ABCD1234");
        assert_eq!(Line::new("to be").unwrap().text(), b"to be");
        let full = "x".repeat(LINE_BYTES);
        assert_eq!(Line::new(&full).unwrap().text(), full.as_bytes());
        assert_eq!(Line::new(&(full + "x")), None);
    }

    #[test]
    fn a_table_is_full_when_all_its_entries_are_of_others() {
        let mut table = [0u32; 3];
        let mut put = |key: u32| {
            let entry = find(&mut table, key, |entry| *entry == 0 || *entry == key);
            entry.map(|entry| *entry = key).is_some()
        };
        assert_eq!([2, 5, 2, 8, 9, 5].map(&mut put), [true, true, true, true, false, true]);
    }
}
