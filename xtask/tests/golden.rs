//! Reads the checked-in PTX. The rules, and tests that show each of them fail, are in `xtask::golden`.

use xtask::pins::MODULES;
use xtask::{Workspace, golden, workspace};

#[test]
fn the_checked_in_ptx_keeps_every_rule() {
    let ws = Workspace::locate().unwrap();
    for module in MODULES {
        let ptx = workspace::read(&ws.ptx(module))
            .unwrap_or_else(|error| panic!("{error}\n  try: cargo xtask ptx"));
        let violations = golden::check(module, &ptx);
        let violations: Vec<String> = violations.iter().map(ToString::to_string).collect();
        assert!(violations.is_empty(), "{}:\n{}", module.ptx, violations.join("\n"));
    }
}
