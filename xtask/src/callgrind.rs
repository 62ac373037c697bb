//! `cargo xtask callgrind`: instructions that the host's end of a ring takes for a message of 64 bytes.
//!
//! They are the same on every machine and in every run, which times are not. Nothing is asserted.

use std::process::Command;

use anyhow::Context;

use crate::{Result, Workspace, shell};

/// The program whose functions are counted; its source says what each does.
const EXAMPLE: &str = "instructions";

/// Counts and prints, or says how to get valgrind where it is missing.
///
/// # Errors
/// When the example does not build, or valgrind's output has no count.
pub fn run(ws: &Workspace) -> Result {
    if Command::new("valgrind").arg("--version").output().is_err() {
        println!("callgrind: skipped, there is no valgrind. To get it: apt-get install valgrind");
        return Ok(());
    }
    let target = ws.target("callgrind");
    let mut cargo = shell::stable_cargo(ws.root());
    cargo.args(["build", "--quiet", "--release", "-p", "ring-shared", "--example", EXAMPLE]);
    shell::run(cargo.arg("--target-dir").arg(&target))?;
    let program = target.join("release/examples").join(EXAMPLE);

    let list = shell::output(&mut shell::command(&program))?;
    let mut words = list.split_whitespace();
    let messages: f64 = words.next().and_then(|n| n.parse().ok()).unwrap_or(1.0);
    println!("instructions a message of 64 bytes (a string instruction counts once a byte)");
    for name in words {
        let mut valgrind = shell::command("valgrind");
        valgrind.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]);
        valgrind.args(["--collect-atstart=no", &format!("--toggle-collect={EXAMPLE}::{name}*")]);
        let said = shell::output(valgrind.arg(&program).arg(name))?;
        let instructions = collected(&said)
            .with_context(|| format!("valgrind did not count `{name}`:\n{said}"))?;
        println!("  {name:<16} {:6.1}", instructions / messages);
    }
    Ok(())
}

/// The number behind `Collected :` in what callgrind says at the end.
fn collected(said: &str) -> Option<f64> {
    let (_, count) = said.split_once("Collected :")?;
    count.split_whitespace().next()?.parse().ok().filter(|count| *count > 0.0)
}

#[cfg(test)]
mod tests {
    use super::collected;

    #[test]
    fn the_count_is_found() {
        assert_eq!(
            collected("==7== Events : Ir\n==7== Collected : 125286\n==7==\n"),
            Some(125286.0)
        );
        assert_eq!(collected("==7== Collected : 0\n"), None, "the function was not found");
        assert_eq!(collected("==7== \n"), None);
    }
}
