//! `ring doctor`: what this machine has, how kernels will run on it and why, and what is missing.
//!
//! [`collect`] finds out, [`advice`] says what to do, and [`text`] and [`json`] print both: the same
//! facts, so that they cannot disagree.

mod advice;
mod collect;
#[cfg(test)]
mod example;
mod facts;
mod json;
mod sharing;
mod text;

use crate::args::{Doctor, Emulate};
use crate::failure::Failure;
use std::io::Write;

/// Finds out and reports to `out`. An error if the device asked for was not opened.
pub fn run(options: &Doctor, out: &mut impl Write) -> Result<(), Failure> {
    let facts = collect::collect(options.device, options.emulate.as_ref().and_then(Emulate::names));
    let to_do = advice::of(&facts);
    match options.json {
        true => writeln!(out, "{:#}", json::report(&facts, &to_do))?,
        false => write!(out, "{}", text::report(&facts, &to_do))?,
    }
    match facts.opened() {
        true => Ok(()),
        false => Err(Failure::Unopened(options.device)),
    }
}
