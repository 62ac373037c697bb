//! Ctrl-C, as a user presses it while the built binary works.
#![cfg(unix)]

mod common;

use common::{LIMIT, Ran, read, ring, start, wait};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Command;
use std::sync::mpsc::channel;
use std::time::Instant;

/// Runs `ring`, and presses Ctrl-C when a line of what it prints begins so.
fn interrupted(options: &str, line: &str) -> Ran {
    let begun = Instant::now();
    let mut child = start(Path::new("."), options, &[]);
    let err = read(child.stderr.take());
    let out = BufReader::new(child.stdout.take().expect("the pipe was asked for"));
    let (to, lines) = channel();
    let out = std::thread::spawn(move || {
        let mut all = String::new();
        for line in out.lines() {
            let line = line.expect("what is printed is UTF-8");
            all += &format!("{line}\n");
            let _ = to.send(line); // nobody listens any more after the line that was waited for
        }
        all
    });
    while !lines.recv_timeout(LIMIT).is_ok_and(|printed| printed.starts_with(line)) {
        if begun.elapsed() > LIMIT
            || child.try_wait().expect("the child can be waited for").is_some()
        {
            let _ = child.kill();
            panic!("`ring {options}` printed no line that begins with '{line}' within {LIMIT:?}");
        }
    }
    let kill = Command::new("sh").args(["-c", &format!("kill -INT {}", child.id())]).status();
    assert!(kill.expect("sh can be run").success());
    let status = wait(&mut child, begun, 2 * LIMIT, options);
    let [out, err] = [out, err].map(|reader| reader.join().expect("the output can be read"));
    let ran = Ran { status, out, err, time: begun.elapsed() };
    println!("`ring {options}` was interrupted and ended within {:?}", ran.time);
    ran
}

#[test]
fn a_soak_that_is_interrupted_says_what_it_did() {
    let ran = interrupted("validate --device cpu --messages 1000000000000", "vector_add: 3/3");
    let ran = ran.ends(130).says(&[
        " of 1,000,000,000,000 messages over 1 channel: interrupted",
        "0 lost, 0 duplicated, 0 reordered, 0 corrupt",
        "interrupted; until then 4 of 4 checks passed",
    ]);
    ran.complains(&["ring: interrupted before it was done"]);
}

#[test]
fn a_bench_that_is_interrupted_reports_what_it_measured() {
    let json = Path::new(env!("CARGO_TARGET_TMPDIR")).join("interrupted.json");
    let options = format!("bench --device cpu --json {}", json.display());
    let ran = interrupted(&options, "measured").ends(130);
    let ran = ran.says(&["Targets", "interrupted during: ", "what is above was measured before"]);
    ran.complains(&["ring: interrupted before it was done"]);
    let text = std::fs::read_to_string(&json).expect("it was written");
    let report: serde_json::Value = serde_json::from_str(&text).expect("it is JSON");
    assert!(report["interrupted"].is_string(), "{report:#}");
    // What was not measured is not there, in place of rows without figures.
    for (rows, rate) in [("throughput", "rate"), ("growth", "rate"), ("modes", "times")] {
        for row in report[rows].as_array().expect("a list") {
            assert!(row[rate]["interrupted"].is_null(), "{row:#}");
        }
    }
}

#[test]
fn what_was_done_before_is_a_whole_run() {
    ring("validate --device cpu --messages 1000").ends(0).says(&["passed all 5 checks"]);
}
