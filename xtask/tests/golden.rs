//! Reads the checked-in PTX. The rules, and tests that show each of them fail, are in `xtask::golden`.

use xtask::{Workspace, golden, workspace};

#[test]
fn the_checked_in_ptx_keeps_every_rule() {
    let ws = Workspace::locate().unwrap();
    let ptx = workspace::read(&ws.ptx())
        .unwrap_or_else(|error| panic!("{error}\n  try: cargo xtask ptx"));
    let violations: Vec<String> = golden::check(&ptx).iter().map(ToString::to_string).collect();
    assert!(violations.is_empty(), "\n{}", violations.join("\n"));
}
