//! What a module's PTX must and must not hold, read from the text.
//!
//! Rules about single statements are functions over the module, each with a test that shows it fail.
//! What memory an access reaches ([`place`], by [`value`]s) decides what it may be ([`allow`]), and what
//! can be reached from where ([`ways`]) where fences must stand ([`order`], [`rules`]). `xtask/tests/mutations.rs`
//! changes the checked-in PTX in every way that these are there to find.

use crate::pins::Module;
use known::Known;
use operand::Operand;
use ring_device::BlockMemory;
use ring_ptx::Statement;
use std::fmt;
use value::Base;

pub mod allow;
pub mod buffers;
pub mod code;
pub mod form;
pub mod grids;
pub mod known;
pub mod link;
pub mod memory;
pub mod operand;
pub mod order;
pub mod panics;
pub mod place;
pub mod plain;
pub mod ports;
pub mod rules;
pub mod value;
pub mod ways;

/// One thing that the PTX must not hold, or lacks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The line, counted from 1; 0 when something is missing from the whole.
    pub line: usize,
    /// The entry point or function that the line is in.
    pub function: Option<String>,
    /// The statement.
    pub text: String,
    /// Why it must not be.
    pub why: &'static str,
}

impl Violation {
    fn at(statement: &Statement<'_>, why: &'static str) -> Self {
        Self { line: statement.line, function: None, text: statement.text.to_owned(), why }
    }

    fn of(instruction: &code::Instruction<'_>, why: &'static str) -> Self {
        Self::at(&Statement { line: instruction.line, text: instruction.text }, why)
    }

    fn missing(what: impl Into<String>, why: &'static str) -> Self {
        Self { line: 0, function: None, text: what.into(), why }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "kernels.ptx: ")?,
            n => write!(f, "kernels.ptx:{n}: ")?,
        }
        if let Some(function) = &self.function {
            write!(f, "{function}: ")?;
        }
        write!(f, "{}: {}", self.why, self.text)
    }
}

/// Every rule over the `ptx` of a module that upstream rustc made.
#[must_use]
pub fn check(module: &Module, ptx: &str) -> Vec<Violation> {
    let lines: Vec<Statement<'_>> = ring_ptx::statements(ptx).collect();
    let mut found = memory::local(&lines);
    found.extend(form::header(ptx));
    found.extend(form::exports(module, ptx));
    with_code(module, ptx, &lines, found)
}

/// The rules that hold for a module whatever compiler made it: about accesses, fences and panics.
#[must_use]
pub fn check_code(module: &Module, ptx: &str) -> Vec<Violation> {
    with_code(module, ptx, &ring_ptx::statements(ptx).collect::<Vec<_>>(), Vec::new())
}

/// Adds what these rules find to what others `found`, and names the function of each.
fn with_code(
    module: &Module,
    ptx: &str,
    lines: &[Statement<'_>],
    mut found: Vec<Violation>,
) -> Vec<Violation> {
    let of_panics = [panics::symbols, panics::calls, panics::embedded_text];
    found.extend(form::debug(lines));
    let rules = of_panics.iter().filter(|_| !module.panics);
    found.extend(rules.flat_map(|rule| rule(lines)));
    let text = ring_ptx::without_comments(ptx);
    let functions = code::functions(&text);
    let function = |line: usize| functions.iter().find(|one| (one.line..=one.end).contains(&line));
    // Where accesses have scopes of their own, `link`, `ports` and `grids` say which these are.
    let has_scopes = |line: usize| {
        function(line).is_some_and(|one| {
            link::scope(one.name).is_some()
                || ports::is_listed(one.name)
                || grids::is_listed(one.name)
        })
    };
    // By place `grids` and `ports` check what they allow.
    let may_change = |line: &&Statement<'_>| {
        function(line.line).is_some_and(|one| {
            grids::is_listed(one.name)
                || buffers::is_change(one.name, line.name(), |part| line.has(part))
        })
    };
    let others: Vec<_> = lines.iter().filter(|line| !may_change(line)).copied().collect();
    found.extend(memory::read_modify_write(&others));
    // What a view of a buffer does is for threads of the GPU; by place it is checked with all other accesses.
    let views = |line: usize| function(line).is_some_and(|one| buffers::is_listed(one.name));
    let is_of_view = |line: &Statement<'_>| views(line.line) && buffers::is_of_view(line);
    let others = lines.iter().filter(|line| !(has_scopes(line.line) || is_of_view(line)));
    let others: Vec<_> = others.copied().collect();
    found.extend(memory::scope(&others));
    found.extend(memory::fences(&others));
    found.extend(accesses(&functions, lines));
    for violation in &mut found {
        violation.function = function(violation.line).map(|one| one.name.to_owned());
    }
    found.sort_by_key(|violation| violation.line);
    found
}

/// Whether the entry point of that name is a kernel with a pair of rings: neither one with ports nor one of those that are
/// compared with them.
#[must_use]
pub fn is_ring_kernel(name: &str) -> bool {
    !plain::is_listed(name) && link::scope(name).is_none() && !ports::is_listed(name)
}

/// The names of a block's shared memory: where the launch sizes it, and where the module declares it.
pub const BLOCK: [&str; 2] = ["gpu_launch_sized_workgroup_mem", "ring_block"];

/// The rules about accesses and fences, function by function.
fn accesses(functions: &[code::Function<'_>], lines: &[Statement<'_>]) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut known = Known::default();
    for line in lines.iter().filter(|line| line.text.starts_with('.')) {
        let Some((head, size)) = line.text.split_once('[') else { continue };
        let name = head.split_whitespace().last().unwrap_or_default();
        let base = match (line.directive(".shared"), line.directive(".global")) {
            (true, _) if BLOCK.contains(&name) => Base::Block,
            (true, _) => Base::Shared,
            (_, true) => Base::Image,
            _ => continue,
        };
        known.variables.insert(name, base);
        // The rules tell the block's words by their offsets on the host.
        let bytes = size.split(']').next().and_then(|bytes| bytes.parse().ok());
        let sized = !line.directive(".extern");
        if base == Base::Block && sized && bytes != Some(size_of::<BlockMemory>()) {
            found.push(Violation::at(line, "block's memory of another size than on the host"));
        }
    }
    let told = [
        BlockMemory::REQUEST_SLOTS,
        BlockMemory::RESPONSE_SLOTS,
        BlockMemory::STATE,
        BlockMemory::GRID,
        BlockMemory::PAYLOAD,
        BlockMemory::BUFFERS,
        BlockMemory::CALLS,
        BlockMemory::TRACE,
    ];
    known.told = told.map(|at| at as i64).to_vec();
    let lines = [
        BlockMemory::REQUEST_LINES,
        BlockMemory::REQUEST_CREDIT,
        BlockMemory::RESPONSE_LINES,
        BlockMemory::RESPONSE_CREDIT,
    ];
    known.lines = lines.map(|at| at as i64).to_vec();
    let values = known.learn(functions);
    for (function, values) in functions.iter().zip(&values) {
        let names_block = function.code.iter().flat_map(|one| &one.operands).any(|operand| {
            let is_block = |operand: &Operand<'_>| matches!(operand, Operand::Name(name) if BLOCK.contains(name));
            is_block(operand) || matches!(operand, Operand::Memory(at, _) if is_block(at))
        });
        if let Some(scope) = link::scope(function.name) {
            found.extend(link::check(function, scope));
            continue;
        }
        if function.entry && !names_block {
            found.extend(plain::check(function));
            continue;
        }
        let accesses = place::accesses(function, values);
        if ports::is_listed(function.name) {
            found.extend(ports::check(function, &accesses));
            continue;
        }
        if grids::is_listed(function.name) {
            found.extend(grids::check(function, &accesses));
        }
        found.extend(allow::check(function, &accesses));
        found.extend(order::check(function, &accesses));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::{check, check_code};
    use crate::pins::BUILT_IN;

    #[test]
    fn each_violation_names_its_function_and_they_are_in_order() {
        let ptx = ".version 8.4\n.target sm_70\n.visible .entry ring_layout_probe()\n{\n.local .b8 \
                   a[8];\n atom.add.u32 %r0, [%rd0], 1;\n st.local.b64 [a], 0;\nret;\n}\n";
        let found = check(&BUILT_IN, ptx);
        assert!(found.is_sorted_by_key(|violation| violation.line), "{found:?}");
        let local: Vec<_> = found.iter().filter(|one| one.why == "local memory").collect();
        assert_eq!(local.len(), 2, "{found:?}");
        let named = |one: &super::Violation| one.function.as_deref() == Some("ring_layout_probe");
        assert!(found.iter().filter(|one| one.line > 3).all(named), "{found:?}");
        assert!(check_code(&BUILT_IN, ptx).iter().all(|one| one.why != "local memory"));
    }
}
