//! The ways through a function: what can be reached from where, and past what.

use super::code::{Function, Instruction};
use super::operand::{Operand, Register};
use std::collections::{HashMap, HashSet};

/// The ways through a function.
#[derive(Debug)]
pub struct Ways<'a> {
    function: &'a Function<'a>,
    /// From which instructions each may be reached at once.
    before: Vec<Vec<usize>>,
    /// The nearest instruction that is on every way to each from the beginning.
    above: Vec<Option<usize>>,
    /// Predicates that are written at one place, and on which more than one branch hangs.
    repeated: HashSet<Register>,
    /// Predicates that say how a register compares to a number, both written at one place.
    compares: HashMap<Register, (Register, &'a str, i64)>,
}

impl<'a> Ways<'a> {
    /// The ways through `function`.
    #[must_use]
    pub fn of(function: &'a Function<'a>) -> Self {
        let mut before = vec![Vec::new(); function.code.len()];
        let (mut writes, mut guards) = (vec![0; function.registers], vec![0; function.registers]);
        for (at, instruction) in function.code.iter().enumerate() {
            instruction.next.iter().for_each(|next| before[*next].push(at));
            instruction.writes().for_each(|register| writes[register] += 1);
            instruction.guard.iter().for_each(|(register, _)| guards[*register] += 1);
        }
        let once = |register: &Register| writes[*register] == 1;
        let repeated = (0..writes.len()).filter(|one| once(one) && guards[*one] > 1).collect();
        let compare = |one: &Instruction<'a>| match one.operands.as_slice() {
            [Operand::Register(is), Operand::Register(of), Operand::Number(n)]
                if one.name() == "setp" && once(is) && once(of) =>
            {
                Some((*is, (*of, one.opcode[1], *n)))
            }
            _ => None,
        };
        let compares = function.code.iter().filter_map(compare).collect();
        let above = above(function, &before);
        Ways { function, before, above, repeated, compares }
    }

    /// The instructions that `is` names and that can be reached from behind `from` on ways that `ends`
    /// does not end.
    ///
    /// Ways that no thread can go are not followed, as far as branches tell. A branch whose predicate is
    /// known at `from`, since every way there takes another branch on it, goes only one way until the
    /// predicate is written again: what a thread does under `if leader` is followed into the next
    /// `if leader`. And a thread that does something as thread 0 has gone every branch before as thread 0.
    pub fn reached(
        &self,
        from: usize,
        is: impl Fn(usize) -> bool,
        ends: impl Fn(usize) -> bool,
    ) -> Vec<usize> {
        self.reached_where(&HashMap::new(), from, is, ends)
    }

    /// The same on ways where the predicates `given` have these values throughout.
    pub fn reached_where(
        &self,
        given: &HashMap<Register, bool>,
        from: usize,
        is: impl Fn(usize) -> bool,
        ends: impl Fn(usize) -> bool,
    ) -> Vec<usize> {
        let facts = self.facts(from, |predicate| self.repeated.contains(&predicate));
        let all = facts.len().checked_sub(1).map_or(0, |last| u64::MAX >> (63 - last));
        let (mut seen, mut found) = (HashSet::new(), Vec::new());
        let mut open: Vec<(usize, u64)> =
            self.function.code[from].next.iter().map(|next| (*next, all)).collect();
        while let Some((at, mut valid)) = open.pop() {
            if ends(at) || !seen.insert((at, valid)) {
                continue;
            }
            if is(at) {
                found.push(at);
                continue;
            }
            let instruction = &self.function.code[at];
            let fact = |register: Register| facts.iter().position(|fact| fact.0 == register);
            for k in instruction.writes().filter_map(fact) {
                valid &= !(1 << k);
            }
            let known = |register| {
                let fact = fact(register).filter(|k| valid & 1 << k != 0).map(|k| facts[k].1);
                fact.or_else(|| given.get(&register).copied())
            };
            open.extend(self.next(at, known).iter().map(|next| (*next, valid)));
        }
        let passed: HashSet<usize> = seen.into_iter().map(|(at, _)| at).collect();
        found.retain(|to| self.leads(from, *to, |at| passed.contains(&at) && !is(at)));
        found
    }

    /// The predicates that compare with zero what one of the instructions `loads`, with the values that they have where
    /// that is not zero.
    #[must_use]
    pub fn where_not_zero(&self, loads: impl Fn(usize) -> bool) -> HashMap<Register, bool> {
        let code = self.function.code.iter().enumerate();
        let loaded: HashSet<Register> =
            code.filter(|(at, _)| loads(*at)).flat_map(|(_, one)| one.writes()).collect();
        let value = |how: &str| match how {
            "eq" => Some(false),
            "ne" => Some(true),
            _ => None,
        };
        let compares =
            self.compares.iter().filter(|(_, (of, _, n))| loaded.contains(of) && *n == 0);
        compares.filter_map(|(is, (_, how, _))| Some((*is, value(how)?))).collect()
    }

    /// Where a thread may go behind `at` for which predicates are as far `known` as they are.
    fn next(&self, at: usize, known: impl Fn(Register) -> Option<bool>) -> &[usize] {
        let instruction = &self.function.code[at];
        let guard = instruction.guard.filter(|_| instruction.name() == "bra");
        let taken = guard.and_then(|(register, wanted)| Some(known(register)? == wanted));
        match (taken, instruction.next.as_slice()) {
            (Some(false), [over, _]) => std::slice::from_ref(over),
            (Some(true), [_, to]) => std::slice::from_ref(to),
            (_, next) => next,
        }
    }

    /// Whether a way back from `to` leads to `from` over instructions that `may` be passed, for a thread
    /// that is one of those that come to `to`.
    fn leads(&self, from: usize, to: usize, may: impl Fn(usize) -> bool) -> bool {
        let mut equal: Vec<(Register, i64)> = Vec::new();
        for (predicate, holds) in self.facts(to, |predicate| self.compares.contains_key(&predicate))
        {
            if let Some((register, "eq", n)) | Some((register, "ne", n)) =
                self.compares.get(&predicate).filter(|(_, how, _)| (*how == "eq") == holds)
                && equal.len() < 64
            {
                equal.push((*register, *n));
            }
        }
        let all = equal.len().checked_sub(1).map_or(0, |last| u64::MAX >> (63 - last));
        let (mut seen, mut open) = (HashSet::new(), vec![(to, all)]);
        while let Some((behind, valid)) = open.pop() {
            for &at in &self.before[behind] {
                let known = |predicate| {
                    let (register, how, n) = self.compares.get(&predicate)?;
                    let k = equal.iter().position(|equal| equal.0 == *register)?;
                    let value = (valid & 1 << k != 0).then_some(equal[k].1)?;
                    compare(value, how, *n)
                };
                if !self.next(at, known).contains(&behind) {
                    continue;
                }
                if at == from {
                    return true;
                }
                let mut valid = valid;
                for register in self.function.code[at].writes() {
                    if let Some(k) = equal.iter().position(|equal| equal.0 == register) {
                        valid &= !(1 << k);
                    }
                }
                if may(at) && seen.insert((at, valid)) {
                    open.push((at, valid));
                }
            }
        }
        false
    }

    /// Those `of` the predicates whose values are known at `at`, with the values, 64 at most.
    fn facts(&self, at: usize, of: impl Fn(Register) -> bool) -> Vec<(Register, bool)> {
        let (mut found, mut below) = (Vec::new(), at);
        while let Some(branch) = self.above[below] {
            let instruction = &self.function.code[branch];
            if let (Some((register, wanted)), "bra", [over, to]) =
                (instruction.guard, instruction.name(), instruction.next.as_slice())
                && self.before[below] == [branch]
                && over != to
                && of(register)
                && found.len() < 64
            {
                found.push((register, (below == *to) == wanted));
            }
            below = branch;
        }
        found
    }
}

/// How a number compares to another, as `setp` says it of unsigned ones or of any.
fn compare(a: i64, how: &str, b: i64) -> Option<bool> {
    Some(match how {
        "eq" => a == b,
        "ne" => a != b,
        _ if a < 0 || b < 0 => return None,
        "lt" | "lo" => a < b,
        "le" | "ls" => a <= b,
        "gt" | "hi" => a > b,
        "ge" | "hs" => a >= b,
        _ => return None,
    })
}

/// For each instruction the nearest one that is on every way to it: Cooper, Harvey and Kennedy's
/// algorithm.
fn above(function: &Function<'_>, before: &[Vec<usize>]) -> Vec<Option<usize>> {
    let count = function.code.len();
    let (mut order, mut seen, mut open) =
        (Vec::with_capacity(count), vec![false; count], Vec::new());
    if count > 0 {
        (seen[0], open) = (true, vec![(0, 0)]);
    }
    while let Some((at, k)) = open.pop() {
        match function.code[at].next.get(k) {
            Some(&next) => {
                open.push((at, k + 1));
                if !std::mem::replace(&mut seen[next], true) {
                    open.push((next, 0));
                }
            }
            None => order.push(at),
        }
    }
    let mut rank = vec![0; count];
    order.iter().enumerate().for_each(|(k, at)| rank[*at] = k);
    let mut above: Vec<Option<usize>> = vec![None; count];
    let mut changed = true;
    while std::mem::take(&mut changed) {
        for &at in order.iter().rev().skip(1) {
            let known = before[at].iter().filter(|one| **one == 0 || above[**one].is_some());
            let joined = known.copied().reduce(|mut a, mut b| {
                while a != b {
                    match (rank[a] < rank[b], above[a], above[b]) {
                        (true, Some(up), _) => a = up,
                        (false, _, Some(up)) => b = up,
                        _ => return 0,
                    }
                }
                a
            });
            if above[at] != joined {
                (above[at], changed) = (joined, true);
            }
        }
    }
    above
}
