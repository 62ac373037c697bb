//! Where addresses come from: what each register of a function may hold, told without running it.
//!
//! A register holds a number, or an address that was made from one of a few [`Base`]s by adding
//! numbers. That is all that rules about memory need: a compiler may name registers as it likes, move
//! them, and add in any order.

use super::code::{Function, Instruction};
use super::known::Known;
use super::operand::Operand;
use ring_device::BlockMemory;

/// What an address was made from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Base {
    /// No address.
    Number,
    /// The parameter of the entry point: of a ring kernel, its control block, which the host sees.
    Parameter,
    /// The block's block-shared memory.
    Block,
    /// Other block-shared memory.
    Shared,
    /// A variable of the module in device memory.
    Image,
    /// An address that the host left in the word of block memory with that offset.
    Told(i64),
    /// What half of an entry of the table of buffers holds, all 16 bytes of it.
    Entry,
    /// The address of a buffer.
    Buffer,
    /// The address of a ring's line, likewise.
    Line(i64),
    /// Several addresses of memory that the host sees: of lines, or of the blocks of control and channels.
    Lines,
    /// Several of these, or something that was not followed.
    Unknown,
}

impl Base {
    /// Whether the host sees what lies there, line by line.
    fn is_of_lines(self) -> bool {
        matches!(self, Base::Parameter | Base::Line(_) | Base::Lines)
    }
}

/// `base + home + k * stride` for some `k`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Value {
    /// What it was made from.
    pub base: Base,
    /// The sum of all constants.
    pub home: i64,
    /// What the rest is a multiple of; 0 if there is none.
    pub stride: u64,
}

impl Value {
    const fn number(home: i64, stride: u64) -> Self {
        Value { base: Base::Number, home, stride }
    }

    /// Nobody knows.
    pub const UNKNOWN: Value = Value { base: Base::Unknown, home: 0, stride: 1 };
    const ANY: Value = Value::number(0, 1);

    /// Whether the offset is exactly its home.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        self.stride == 0
    }

    fn plus(self, other: Value) -> Value {
        let base = match (self.base, other.base) {
            (base, Base::Number) | (Base::Number, base) => base,
            _ => Base::Unknown,
        };
        let stride = gcd(self.stride, other.stride);
        Value { base, home: self.home.wrapping_add(other.home), stride }
    }

    fn times(self, n: i64) -> Value {
        if self.base != Base::Number {
            return Value::ANY; // an address that is multiplied is none any more
        }
        let stride = self.stride.checked_mul(n.unsigned_abs()).unwrap_or(1);
        Value::number(self.home.wrapping_mul(n), stride)
    }

    /// What a mask leaves of it: a multiple of the lowest bit that either may have.
    fn masked(self, mask: i64) -> Value {
        let own = self.home.trailing_zeros().min(self.stride.trailing_zeros());
        let own = if self.base == Base::Number { own } else { 0 };
        match own.max(mask.trailing_zeros()) {
            64.. => Value::number(0, 0),
            zeros => Value::number(0, 1 << zeros),
        }
    }

    /// Either of two.
    #[must_use]
    pub fn or(self, other: Value) -> Value {
        let null = |value: Value| value == Value::number(0, 0);
        let base = match (self.base, other.base) {
            (a, b) if a == b => a,
            // Nobody reads or writes at null.
            (base, Base::Number) if null(other) => return Value { base, ..self },
            (Base::Number, base) if null(self) => return Value { base, ..other },
            (a, b) if a.is_of_lines() && b.is_of_lines() => {
                // What is left to tell is whether it is an atom.
                let parts = [self.home, other.home].map(i64::unsigned_abs);
                let stride = parts.into_iter().fold(gcd(self.stride, other.stride), gcd);
                return Value { base: Base::Lines, home: 0, stride: gcd(stride, 16) };
            }
            _ => Base::Unknown,
        };
        let apart = self.home.wrapping_sub(other.home).unsigned_abs();
        let stride = gcd(gcd(self.stride, other.stride), apart);
        Value { base, home: self.home.min(other.home), stride }
    }

    /// What is left of it in 32 bits.
    fn cut(self) -> Value {
        let home = i64::from(self.home as u32);
        match (self.base, self.stride) {
            (Base::Number, 0) => Value::number(home, 0),
            (Base::Number, stride) => Value::number(home, gcd(stride, 1 << 32)),
            _ => Value::ANY,
        }
    }
}

fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// How often a register's value may change before its home stays as it is: a pointer that a loop moves
/// backwards would never come to rest.
const PATIENCE: u32 = 8;

/// What each register of a function may hold: anywhere, and between two branches what was written there
/// last.
#[derive(Debug)]
pub struct Values {
    anywhere: Vec<Option<Value>>,
    /// And in which straight piece of code.
    here: Vec<(usize, Value)>,
    piece: usize,
    /// The address of each instruction that has one.
    addresses: Vec<Option<Value>>,
}

impl Values {
    /// Follows the addresses of `function`.
    #[must_use]
    pub fn of(function: &Function<'_>, known: &Known<'_>) -> Self {
        let mut values = Values {
            anywhere: vec![None; function.registers],
            here: vec![(0, Value::ANY); function.registers],
            piece: 0,
            addresses: vec![None; function.code.len()],
        };
        let mut begins = vec![false; function.code.len()];
        for instruction in &function.code {
            let jumps = matches!(instruction.name(), "bra" | "brx");
            instruction.next.iter().filter(|_| jumps).for_each(|next| begins[*next] = true);
        }
        let mut changes = vec![0; function.registers];
        while values.pass(function, known, &begins, &mut changes) {}
        values
    }

    /// Goes through the function once; whether anything was new.
    fn pass(
        &mut self,
        function: &Function<'_>,
        known: &Known<'_>,
        begins: &[bool],
        changes: &mut [u32],
    ) -> bool {
        let mut changed = false;
        for (at, instruction) in function.code.iter().enumerate() {
            if begins[at] || at == 0 {
                self.piece += 1;
            }
            let address =
                instruction.operands.iter().find(|one| matches!(one, Operand::Memory(..)));
            self.addresses[at] = address.and_then(|address| self.get(address, known));
            let results = self.results(function, instruction, known);
            for (register, new) in instruction.writes().zip(results) {
                let Some(new) = new else { continue };
                if instruction.guard.is_none() {
                    self.here[register] = (self.piece, new);
                }
                let old = self.anywhere[register];
                let mut joined = old.map_or(new, |old| old.or(new));
                if changes[register] > PATIENCE
                    && let Some(old) = old
                {
                    joined.home = old.home;
                }
                if old != Some(joined) {
                    self.anywhere[register] = Some(joined);
                    changes[register] += 1;
                    changed = true;
                }
            }
        }
        changed
    }

    /// The address at which instruction `at` reads or writes.
    #[must_use]
    pub fn address(&self, at: usize) -> Option<Value> {
        self.addresses[at]
    }

    /// What `operand` may be; nothing before anything was seen to write it.
    fn get(&self, operand: &Operand<'_>, known: &Known<'_>) -> Option<Value> {
        Some(match operand {
            Operand::Register(register) => match self.here[*register] {
                (piece, value) if piece == self.piece => value,
                _ => self.anywhere[*register]?,
            },
            Operand::Number(number) => Value::number(*number, 0),
            Operand::Name(name) => match known.variables.get(name) {
                Some(base) => Value { base: *base, home: 0, stride: 0 },
                None => Value::ANY,
            },
            Operand::Memory(base, offset) => self.get(base, known)?.plus(Value::number(*offset, 0)),
            Operand::List(_) => Value::ANY,
        })
    }

    /// What a register may hold anywhere.
    #[must_use]
    pub fn anywhere(&self, operand: &Operand<'_>) -> Option<Value> {
        match operand {
            Operand::Register(register) => self.anywhere[*register],
            _ => Some(Value::ANY),
        }
    }

    /// What an instruction's results may be, each of them.
    fn results(
        &self,
        function: &Function<'_>,
        instruction: &Instruction<'_>,
        known: &Known<'_>,
    ) -> [Option<Value>; 4] {
        if let Some(Operand::List(_)) = instruction.operands.first() {
            let whole = instruction.operands.get(1).and_then(|whole| self.get(whole, known));
            let is_entry = |whole: Value| instruction.name() == "mov" && whole.base == Base::Entry;
            if whole.is_some_and(is_entry) {
                let address = Value { base: Base::Buffer, home: 0, stride: 0 };
                return [Some(address), Some(Value::ANY), None, None];
            }
            return [Some(Value::ANY); 4]; // parts of a number
        }
        [self.result(function, instruction, known), None, None, None]
    }

    fn result(
        &self,
        function: &Function<'_>,
        instruction: &Instruction<'_>,
        known: &Known<'_>,
    ) -> Option<Value> {
        let get = |n: usize| match instruction.operands.get(n) {
            Some(operand) => self.get(operand, known),
            None => Some(Value::ANY),
        };
        let wide = instruction.has("wide");
        let narrow = |value: Value| {
            let is = ["b32", "u32", "s32"].iter().any(|part| instruction.has(part));
            if is && !wide { value.cut() } else { value }
        };
        let scaled = |a: Value, b: Value| match (a.is_exact(), b.is_exact()) {
            (_, true) => a.times(b.home),
            (true, _) => b.times(a.home),
            _ => Value::ANY,
        };
        Some(match instruction.name() {
            "mov" | "cvta" => get(1)?,
            // Where block-shared memory begins fits a word.
            "cvt" => match get(1)? {
                value if value.base == Base::Block && instruction.has("u64") => value,
                value => narrow(value),
            },
            // All threads of a block have the same.
            "shfl" => match get(1)? {
                value if value.base == Base::Block => value,
                _ => Value::ANY,
            },
            "add" => narrow(get(1)?.plus(get(2)?)),
            "sub" => match (get(1)?, get(2)?) {
                (a, b) if b.base == Base::Number => narrow(a.plus(b.times(-1))),
                _ => Value::ANY, // how far two addresses are apart
            },
            "mul" | "mul24" => narrow(scaled(get(1)?, get(2)?)),
            "mad" => narrow(scaled(get(1)?, get(2)?).plus(get(3)?)),
            "shl" => match get(2)? {
                by if by.is_exact() && (0..63).contains(&by.home) => {
                    narrow(get(1)?.times(1 << by.home))
                }
                _ => Value::ANY,
            },
            "and" => match (get(1)?, get(2)?) {
                (value, mask) | (mask, value) if mask.is_exact() && mask.base == Base::Number => {
                    value.masked(mask.home)
                }
                _ => Value::ANY,
            },
            "selp" | "min" | "max" => match (get(1), get(2)) {
                (Some(a), Some(b)) => a.or(b),
                (a, b) => a.or(b)?,
            },
            "ld" => self.loaded(function, instruction, known)?,
            _ => Value::ANY,
        })
    }

    /// What a load brings.
    fn loaded(
        &self,
        function: &Function<'_>,
        instruction: &Instruction<'_>,
        known: &Known<'_>,
    ) -> Option<Value> {
        let from = instruction.operands.get(1)?;
        if instruction.has("param") {
            let Operand::Memory(name, _) = from else { return Some(Value::ANY) };
            let Operand::Name(name) = **name else { return Some(Value::ANY) };
            if !function.entry {
                return Some(known.passed.get(name).copied().unwrap_or(Value::ANY));
            }
            let base = if function.parameters.first() == Some(&name) {
                Base::Parameter
            } else {
                Base::Unknown
            };
            return Some(Value { base, home: 0, stride: 0 });
        }
        let at = self.get(from, known)?;
        Some(match at.base {
            Base::Block if is_of_devices(at) => {
                Value { base: Base::Told(BlockMemory::DEVICES[0] as i64), home: 0, stride: 0 }
            }
            Base::Block if at.is_exact() => match known.kept.get(&at.home) {
                Some(kept) => *kept,
                None if known.lines.contains(&at.home) => {
                    Value { base: Base::Line(at.home), home: 0, stride: 0 }
                }
                None if known.told.contains(&at.home) => {
                    Value { base: Base::Told(at.home), home: 0, stride: 0 }
                }
                None if known.undecided => return None,
                None => Value::ANY,
            },
            Base::Told(told)
                if usize::try_from(told) == Ok(BlockMemory::BUFFERS) && instruction.has("b128") =>
            {
                Value { base: Base::Entry, home: 0, stride: 0 }
            }
            _ => Value::ANY,
        })
    }
}

/// Whether a word of block memory is one of those with the addresses where the grids of several devices meet.
fn is_of_devices(at: Value) -> bool {
    let [first, behind] = BlockMemory::DEVICES.map(|at| at as i64);
    (first..behind).contains(&at.home) && at.home % 8 == 0 && at.stride.is_multiple_of(8)
}

#[cfg(test)]
mod tests {
    use super::super::code::functions;
    use super::super::known::Known;
    use super::{Base, Value};
    use ring_ptx::without_comments;

    /// The address of the last store of an entry point with that body. `block` is the block's memory, and
    /// at 64 of it lies an address that the host left.
    fn address(body: &str) -> Option<Value> {
        let ptx = format!(".visible .entry k(.param .u64 k_param_0)\n{{\n{body}\nret;\n}}\n");
        let text = without_comments(&ptx);
        let all = functions(&text);
        let mut known = Known { told: vec![64], lines: vec![128], ..Known::default() };
        known.variables.insert("memory", Base::Block);
        let values = known.learn(&all);
        let at = all[0].code.iter().rposition(|one| one.name() == "st").unwrap();
        values[0].address(at)
    }

    fn at(base: Base, home: i64, stride: u64) -> Option<Value> {
        Some(Value { base, home, stride })
    }

    const PARAMETER: &str = "ld.param.b64 %c, [k_param_0]; mov.u32 %b, %ctaid.x;";
    const BLOCK: &str = "{ .reg .u64 %a; mov.u64 %a, memory; cvta.shared.u64 %t, %a; }";

    #[test]
    fn sums_products_and_copies_are_followed() {
        for body in [
            "mad.lo.s64 %l, %b, 1280, %c; add.s64 %m, %l, 256; st.b64 [%m+8], 0;",
            "mul.wide.u32 %n, %b, 1280; add.s64 %m, %n, 264; add.s64 %l, %m, %c; st.b64 [%l], 0;",
            "cvta.to.global.u64 %g, %c; mul.lo.s64 %n, %b, 1280; sub.s64 %m, %g, -256; add.s64 %l, %m, %n; st.b64 [%l+8], 0;",
        ] {
            assert_eq!(
                address(&format!("{PARAMETER} {body}")),
                at(Base::Parameter, 264, 1280),
                "{body}"
            );
        }
        let index = "mov.u32 %k, %tid.x; shl.b32 %m, %k, 4; cvt.u64.u32 %n, %m;";
        let body = format!("{index} add.s64 %p, %t, %n; st.b64 [%p+96], 0;");
        assert_eq!(address(&format!("{BLOCK} {body}")), at(Base::Block, 96, 16));
        // A mask takes bits away, and adds none.
        for (mask, stride) in [(112, 16), (96, 32), (7, 16)] {
            let body =
                format!("{index} and.b64 %o, %n, {mask}; add.s64 %p, %t, %o; st.b64 [%p+96], 0;");
            assert_eq!(address(&format!("{BLOCK} {body}")), at(Base::Block, 96, stride), "{mask}");
        }
        let body = "and.b64 %o, %t, 127; st.b64 [%o], 0;";
        assert_eq!(address(&format!("{BLOCK} {body}")), at(Base::Number, 0, 1));
    }

    #[test]
    fn addresses_in_the_team_s_memory_are_followed() {
        let slot = "ld.b64 %s, [%t+64]; ld.b64 %i, [%t]; shl.b64 %o, %i, 6; add.s64 %a, %s, %o; st.b64 [%a], 0;";
        assert_eq!(address(&format!("{BLOCK} {slot}")), at(Base::Told(64), 0, 64));
        let kept = "st.b64 [%t+8], %c; ld.b64 %k, [%t+8]; st.b64 [%k+16], 0;";
        assert_eq!(address(&format!("{PARAMETER} {BLOCK} {kept}")), at(Base::Parameter, 16, 0));
        // Any other word is a number.
        let other = "ld.b64 %s, [%t+72]; st.b64 [%s], 0;";
        assert_eq!(address(&format!("{BLOCK} {other}")).unwrap().base, Base::Number);
    }

    #[test]
    fn either_of_two_is_known_as_far_as_they_agree() {
        let loops = "add.s64 %p, %c, 384;\n$L1:\nst.b64 [%p], 0; add.s64 %p, %p, 16; @%q bra $L1;";
        assert_eq!(address(&format!("{PARAMETER} {loops}")), at(Base::Parameter, 384, 16));
        // Null is no address of something else, another base is.
        let null = "selp.b64 %p, 0, %c, %q; st.b64 [%p], 0;";
        assert_eq!(address(&format!("{PARAMETER} {null}")), at(Base::Parameter, 0, 0));
        let mixed = "selp.b64 %p, %t, %c, %q; st.b64 [%p], 0;";
        let base = address(&format!("{PARAMETER} {BLOCK} {mixed}")).unwrap().base;
        assert_eq!(base, Base::Unknown);
        // Of lines it is known whether it is an atom.
        let line = "ld.b64 %l, [%t+128]; add.s64 %k, %l, 32;";
        for (other, stride) in [(48, 16), (52, 4)] {
            let body =
                format!("{line} add.s64 %m, %c, {other}; selp.b64 %p, %k, %m, %q; st.b64 [%p], 0;");
            assert_eq!(address(&format!("{PARAMETER} {BLOCK} {body}")), at(Base::Lines, 0, stride));
        }
        // A pointer that goes back for ever.
        let back = "mov.b64 %p, %c;\n$L1:\nst.b64 [%p], 0; add.s64 %p, %p, -8; @%q bra $L1;";
        assert_eq!(address(&format!("{PARAMETER} {back}")).unwrap().stride, 8);
    }
}
