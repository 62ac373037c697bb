//! What a module's PTX must and must not hold, read from the text.
//!
//! Each rule is a function over the module, in a file of its own, with a test that shows it fail.

use crate::pins::Module;
use std::fmt;

pub mod form;
pub mod lines;
pub mod memory;
pub mod panics;

pub use lines::Line;

/// One thing that the PTX must not hold, or lacks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The line, counted from 1; 0 when something is missing from the whole.
    pub line: usize,
    /// The statement.
    pub text: String,
    /// Why it must not be.
    pub why: &'static str,
}

impl Violation {
    fn at(line: &Line<'_>, why: &'static str) -> Self {
        Self { line: line.number, text: line.text.to_owned(), why }
    }

    fn missing(what: impl Into<String>, why: &'static str) -> Self {
        Self { line: 0, text: what.into(), why }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "kernels.ptx: {}: {}", self.why, self.text),
            n => write!(f, "kernels.ptx:{n}: {}: {}", self.why, self.text),
        }
    }
}

/// Every rule over a module's `ptx`.
#[must_use]
pub fn check(module: &Module, ptx: &str) -> Vec<Violation> {
    let lines = lines::statements(ptx);
    let of_panics = [panics::symbols, panics::calls, panics::embedded_text];
    let of_all = [
        memory::scope,
        memory::fences,
        memory::read_modify_write,
        memory::local,
        form::debug,
        form::header,
    ];
    let rules = of_all.iter().chain(of_panics.iter().filter(|_| !module.panics));
    let mut found: Vec<Violation> = rules.flat_map(|rule| rule(&lines)).collect();
    found.extend(form::exports(module, &lines));
    found.sort_by_key(|violation| violation.line);
    found
}
