//! `cargo xtask budget`: how many crates `ring-host` costs its user, and how long its build takes.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use anyhow::{bail, ensure};

use crate::{Result, Workspace, shell};

/// The most crates, ring-host itself included.
pub const CRATES: usize = 40;
/// The longest build from nothing, on two cores.
pub const BUILD: Duration = Duration::from_secs(60);

/// Counts the crates and, unless told not to, times `cargo build --release -p ring-host` from nothing.
///
/// # Errors
/// When either is over its budget.
pub fn run(ws: &Workspace, time: bool) -> Result {
    let mut cargo = shell::stable_cargo(ws.root());
    cargo.args(["tree", "-p", "ring-host", "-e", "normal,build", "--prefix", "none"]);
    let crates = unique(&shell::output(&mut cargo)?);
    println!("budget: ring-host builds {} crates, {CRATES} at most", crates.len());
    if crates.len() > CRATES {
        let names: Vec<&str> = crates.iter().map(String::as_str).collect();
        bail!("{} crates: {}", crates.len(), names.join(", "));
    }
    if !time {
        return Ok(());
    }
    let target = ws.target("budget");
    if target.exists() {
        fs_err::remove_dir_all(&target)?;
    }
    shell::run(shell::stable_cargo(ws.root()).arg("fetch").arg("--quiet"))?;
    let start = Instant::now();
    let mut cargo = shell::stable_cargo(ws.root());
    cargo.args(["build", "--quiet", "--release", "-p", "ring-host", "--target-dir"]).arg(&target);
    shell::run(&mut cargo)?;
    let taken = start.elapsed();
    println!(
        "budget: built from nothing in {:.1} s, {} s at most",
        taken.as_secs_f64(),
        BUILD.as_secs()
    );
    ensure!(
        taken <= BUILD,
        "the build took {:.1} s\n  try: cargo xtask budget --no-time, where the machine is slow or busy",
        taken.as_secs_f64()
    );
    Ok(())
}

/// `name version` of each line of `cargo tree --prefix none`, once each.
fn unique(tree: &str) -> BTreeSet<String> {
    let words = |line: &str| line.split_whitespace().take(2).collect::<Vec<_>>().join(" ");
    tree.lines().map(words).filter(|name| name.contains(" v")).collect()
}

#[cfg(test)]
mod tests {
    use super::unique;

    #[test]
    fn repeated_and_marked_crates_count_once() {
        let tree = "ring-host v0.1.0 (/a)\ncudarc v0.19.10\nlibc v0.2.1\n\nlibc v0.2.1 (*)\n";
        assert_eq!(unique(tree).len(), 3);
    }
}
