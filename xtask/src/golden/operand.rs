//! What an instruction of PTX reads or writes.

use std::collections::HashMap;

/// A register of one function, numbered as it is met. Inline assembly declares names of its own in
/// braces: those of another pair of braces are other registers.
pub type Register = usize;

/// What an instruction reads or writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Operand<'a> {
    /// A register.
    Register(Register),
    /// A number.
    Number(i64),
    /// A name: a variable, a function, a label, or a special register.
    Name(&'a str),
    /// `[base + offset]`.
    Memory(Box<Operand<'a>>, i64),
    /// `{a, b}`, or `(a, b)` of a call.
    List(Vec<Operand<'a>>),
}

/// The names that are registers in each pair of braces, the innermost last.
#[derive(Debug)]
pub(super) struct Names<'a> {
    scopes: Vec<HashMap<&'a str, Register>>,
    count: usize,
}

impl<'a> Names<'a> {
    /// Those of a function's own braces.
    pub(super) fn new() -> Self {
        Names { scopes: vec![HashMap::new()], count: 0 }
    }

    /// A pair of braces opens.
    pub(super) fn open(&mut self) {
        self.scopes.push(HashMap::new());
    }

    /// It closes.
    pub(super) fn close(&mut self) {
        self.scopes.pop();
    }

    /// Whether these are a function's own braces: there a name may be new with its first use.
    pub(super) fn is_outermost(&self) -> bool {
        self.scopes.len() == 1
    }

    /// How many registers there are.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// A register of the innermost braces.
    pub(super) fn declare(&mut self, name: &'a str) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.insert(name, self.count);
            self.count += 1;
        }
    }

    /// The register of that name.
    pub(super) fn of(&mut self, name: &'a str) -> Register {
        if let Some(known) = self.scopes.iter().rev().find_map(|scope| scope.get(name)) {
            return *known;
        }
        self.count += 1;
        self.scopes[0].insert(name, self.count - 1);
        self.count - 1
    }
}

/// Names with a percent sign that are no registers of the function's own.
const SPECIAL: [&str; 12] = [
    "%tid",
    "%ntid",
    "%ctaid",
    "%nctaid",
    "%laneid",
    "%warpid",
    "%smid",
    "%clock",
    "%clock64",
    "%globaltimer",
    "%activemask",
    "%lanemask_lt",
];

/// The parts of `text` between the commas that are in no brackets.
pub(super) fn list(text: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0;
    text.split(move |c| {
        match c {
            '{' | '(' | '[' => depth += 1,
            '}' | ')' | ']' => depth -= 1,
            _ => {}
        }
        c == ',' && depth == 0
    })
    .map(str::trim)
    .filter(|one| !one.is_empty())
}

/// The operand that `text` is.
pub(super) fn operand<'a>(text: &'a str, names: &mut Names<'a>) -> Operand<'a> {
    let inner = |open, close| text.strip_prefix(open).and_then(|rest| rest.strip_suffix(close));
    if let Some(inside) = inner('[', ']') {
        let (base, offset) = inside.split_once('+').unwrap_or((inside, "0"));
        let offset = offset.trim().parse().unwrap_or(0);
        return Operand::Memory(Box::new(operand(base.trim(), names)), offset);
    }
    if let Some(inside) = inner('{', '}').or_else(|| inner('(', ')')) {
        return Operand::List(list(inside).map(|one| operand(one, names)).collect());
    }
    // `%p|%q` are two results.
    if let Some((a, b)) = text.split_once('|') {
        return Operand::List(vec![operand(a, names), operand(b, names)]);
    }
    let name = text.trim_start_matches('!');
    let special = SPECIAL.contains(&name.split('.').next().unwrap_or_default());
    if name.starts_with('%') && !special {
        return Operand::Register(names.of(name));
    }
    let declared = names.scopes.iter().rev().find_map(|scope| scope.get(name));
    match (declared, number(text)) {
        (Some(register), _) => Operand::Register(*register),
        (None, Some(number)) => Operand::Number(number),
        (None, None) => Operand::Name(name),
    }
}

fn number(text: &str) -> Option<i64> {
    let unsigned = text.trim_end_matches('U');
    match unsigned.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok().map(|n| n as i64),
        None => unsigned.parse::<i64>().ok().or_else(|| Some(unsigned.parse::<u64>().ok()? as i64)),
    }
}
