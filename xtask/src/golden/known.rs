//! What a function's addresses rest on outside of it: the module's variables, what lies in team memory, and
//! what functions are called with.

use super::code::Function;
use super::operand::Operand;
use super::value::{Base, Value, Values};
use std::collections::HashMap;

/// What is known of a module before one of its functions is read.
#[derive(Debug, Default)]
pub struct Known<'a> {
    /// The module's variables: block-shared or not.
    pub variables: HashMap<&'a str, Base>,
    /// The words of team memory in which the host leaves addresses, by offset.
    pub told: Vec<i64>,
    /// Those in which it leaves the addresses of rings' lines.
    pub lines: Vec<i64>,
    /// Addresses that the module's functions keep in team memory, by offset.
    pub kept: HashMap<i64, Value>,
    /// What functions that are no entry points are called with, by parameter.
    pub passed: HashMap<&'a str, Value>,
    /// Nothing is known yet of a word in which no address was seen to be kept; else it holds a number.
    pub undecided: bool,
}

impl<'a> Known<'a> {
    /// Adds what functions keep in team memory and call others with, and follows the addresses of each.
    pub fn learn(&mut self, functions: &[Function<'a>]) -> Vec<Values> {
        // At first only addresses: a register that is used twice, for an address and for what is loaded
        // from a word that is not known yet to hold it, would look like a number.
        self.undecided = true;
        self.settle(functions);
        self.undecided = false;
        self.settle(functions)
    }

    /// Goes on until nothing new is seen.
    fn settle(&mut self, functions: &[Function<'a>]) -> Vec<Values> {
        loop {
            let values: Vec<Values> =
                functions.iter().map(|function| Values::of(function, self)).collect();
            let both = functions.iter().zip(&values);
            if !both.fold(false, |new, (one, values)| self.note(one, values, functions) || new) {
                return values;
            }
        }
    }

    /// Adds what one of them does; whether there was anything new.
    fn note(&mut self, function: &Function<'a>, values: &Values, all: &[Function<'a>]) -> bool {
        let (mut new, mut pending) = (false, HashMap::new());
        for (at, instruction) in function.code.iter().enumerate() {
            match (instruction.name(), instruction.operands.as_slice()) {
                ("st", [Operand::Memory(name, _), what]) if instruction.has("param") => {
                    if let Operand::Name(name) = **name {
                        pending.insert(name, values.anywhere(what).unwrap_or(Value::UNKNOWN));
                    }
                }
                ("st", [_, what]) => {
                    let (Some(to), Some(what)) = (values.address(at), values.anywhere(what)) else {
                        continue;
                    };
                    if to.base == Base::Team && to.is_exact() && what.base != Base::Number {
                        new |= note(&mut self.kept, to.home, what);
                    }
                }
                ("call", operands) => {
                    let callee = operands.iter().find_map(|operand| match operand {
                        Operand::Name(name) => all.iter().find(|function| function.name == *name),
                        _ => None,
                    });
                    let Some(Operand::List(list)) = operands.last() else { continue };
                    for (name, operand) in
                        callee.iter().flat_map(|callee| &callee.parameters).zip(list)
                    {
                        if let Operand::Name(operand) = operand
                            && let Some(value) = pending.get(operand)
                        {
                            new |= note(&mut self.passed, name, *value);
                        }
                    }
                }
                _ => {}
            }
        }
        new
    }
}

fn note<K: std::hash::Hash + Eq>(map: &mut HashMap<K, Value>, key: K, value: Value) -> bool {
    let old = map.get(&key).copied();
    let joined = old.map_or(value, |old| old.or(value));
    old != Some(joined) && map.insert(key, joined) != Some(joined)
}
