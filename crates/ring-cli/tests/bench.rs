//! `ring bench`, the built binary as a user runs it.

mod common;

use common::ring;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::Duration;

fn scratch(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}

#[test]
fn a_quick_look_at_the_cpu_is_printed_and_written() {
    let (json, html) = (scratch("bench.json"), scratch("bench.html"));
    let files = format!("--json {} --html {}", json.display(), html.display());
    let ran = ring(&format!("bench --quick --device cpu --samples 500 {files}")).ends(0).says(&[
        "device cpu: CPU threads",
        "processors",
        "cpu: echo 500",
        "rtrb (chunks) 1 64",
        "persistent staged-sync - -",
        "250,000 65,536",
        "CPU device / rtrb, messages a second >= 1",
        "left out latency: it needs a GPU",
        "not measured",
    ]);
    assert_eq!(ran.err, "");
    assert!(ran.time < Duration::from_secs(50), "{:?}", ran.time);
    assert!(ran.out.lines().all(|line| line.chars().count() <= 80), "{}", ran.out);

    let text = std::fs::read_to_string(&json).expect("it was written");
    let report: Value = serde_json::from_str(&text).expect("it is JSON");
    for (pointer, expected) in [
        ("/device", json!("cpu")),
        ("/sections", json!(["modes", "cpu", "growth"])),
        ("/settings/quick", json!(true)),
        ("/settings/samples", json!(500)),
        ("/latency/0/id", json!("ring")),
        ("/latency/0/times/count", json!(500)),
        ("/modes/0/mode", json!("persistent")),
        ("/many", json!(null)),
        ("/wrong", json!([])),
    ] {
        assert_eq!(report.pointer(pointer), Some(&expected), "{pointer}");
    }
    for above_zero in ["/latency/0/times/p50", "/throughput/0/rate/median", "/growth/0/rate/min"] {
        let found = report.pointer(above_zero).and_then(Value::as_f64);
        assert!(found.is_some_and(|figure| figure > 0.0), "{above_zero}: {found:?}");
    }
    assert_eq!(report["modes"].as_array().map(Vec::len), Some(9));
    assert_eq!(report["targets"].as_array().map(Vec::len), Some(13));

    let page = std::fs::read_to_string(&html).expect("it was written");
    assert!(page.starts_with("<!doctype html>") && page.ends_with("</html>\n"));
    assert!(page.contains("<svg") && !page.contains("<script"));
}

#[test]
fn sections_are_named_and_chosen() {
    let names = ["latency", "throughput", "bandwidth", "modes", "many", "cpu", "growth"];
    let ran = ring("bench --list").ends(0).says(&names);
    assert!(ran.time < Duration::from_secs(5) && !ran.out.contains("processor"), "{}", ran.out);
    let ran = ring("bench --quick --device cpu --only many").ends(0);
    let ran = ran.says(&["left out many: it needs a GPU", "0 met, 0 not met, 13 not measured"]);
    assert!(!ran.out.contains("Growth"), "{}", ran.out);
}

#[test]
fn a_wrong_command_line_has_status_2_and_a_missing_device_status_1() {
    ring("bench --only speed").ends(2).complains(&["no section 'speed'", "latency, throughput"]);
    ring("bench --samples 5").ends(2).complains(&["5 is not in"]);
    ring("bench --device cuda:99").ends(1).complains(&["cannot open device cuda:99"]);
}

#[test]
fn a_file_that_cannot_be_written_is_named() {
    let path = scratch("no/such/folder/x.json");
    let options = format!("bench --quick --device cpu --only many --json {}", path.display());
    ring(&options).ends(1).complains(&["cannot write", "x.json", "folder"]);
}
