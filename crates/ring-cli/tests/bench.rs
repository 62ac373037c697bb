//! `ring bench`, the built binary as a user runs it.

mod common;

use common::{LIMIT, ring, ring_at};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

fn scratch(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}

#[test]
fn a_quick_look_at_the_cpu_is_printed_and_written() {
    let (json, html) = (scratch("bench.json"), scratch("bench.html"));
    let files = format!("--json {} --html {}", json.display(), html.display());
    let options = format!("bench --quick --device cpu --samples 500 {files}");
    // On a busy machine it may take long.
    let ran = ring_at(Path::new("."), 5 * LIMIT, &options, &[]).ends(0).says(&[
        "device cpu: CPU threads",
        "kernels compiled for the host",
        "processors",
        "up to 500 round trips timed of each kind",
        "cpu: echo ",
        "rtrb (chunks) 1 64",
        "persistent staged-sync - -",
        "80,000 65,536",
        "CPU device / rtrb, messages a second >= 1",
        "left out latency: it needs a GPU",
        "not measured",
    ]);
    assert_eq!(ran.err, "");
    println!("a quick look took {:?}", ran.time);
    assert!(ran.out.lines().all(|line| line.chars().count() <= 80), "{}", ran.out);

    let text = std::fs::read_to_string(&json).expect("it was written");
    let report: Value = serde_json::from_str(&text).expect("it is JSON");
    for (pointer, expected) in [
        ("/device", json!("cpu")),
        ("/machine/kernels", json!("compiled for the host")),
        ("/sections", json!(["modes", "cpu", "growth"])),
        ("/settings/quick", json!(true)),
        ("/settings/samples", json!(500)),
        ("/latency/0/id", json!("ring")),
        ("/modes/0/mode", json!("persistent")),
        ("/many", json!(null)),
        ("/wrong", json!([])),
    ] {
        assert_eq!(report.pointer(pointer), Some(&expected), "{pointer}");
    }
    // A machine that is busy makes fewer in the time that each round may take.
    let counted = report["latency"][0]["times"]["count"].as_u64().expect("a number");
    assert!((1..=500).contains(&counted), "{counted}");
    for above_zero in ["/latency/0/times/p50", "/throughput/0/rate/median", "/growth/0/rate/min"] {
        let found = report.pointer(above_zero).and_then(Value::as_f64);
        assert!(found.is_some_and(|figure| figure > 0.0), "{above_zero}: {found:?}");
    }
    assert_eq!(report["modes"].as_array().map(Vec::len), Some(9));
    let targets = report["targets"].as_array().expect("a list");
    let of = |verdict| targets.iter().filter(|target| target["verdict"] == verdict).count();
    assert_eq!((targets.len(), of("needs a gpu")), (13, 8), "{targets:#?}");
    // Each of them was measured several times.
    for id in ["cpu_rate", "cpu_trip", "capacity"] {
        let target = targets.iter().find(|target| target["id"] == id).expect("a target");
        assert!(target["spread"].is_array(), "{target:#}");
    }

    let page = std::fs::read_to_string(&html).expect("it was written");
    assert!(page.starts_with("<!doctype html>") && page.ends_with("</html>\n"));
    assert!(page.contains("<svg") && !page.contains("<script"));
    assert!(page.contains("8 more need a GPU") && !page.contains("bare flag"), "{page}");
}

#[test]
fn sections_are_named_and_chosen() {
    let names = ["latency", "throughput", "bandwidth", "modes", "many", "cpu", "growth"];
    let ran = ring("bench --list").ends(0).says(&names);
    assert!(!ran.out.contains("processor"), "{}", ran.out);
    let ran = ring("bench --quick --device cpu --only many").ends(0);
    let counts = "0 met, 0 not met, 0 within noise, 5 not measured; 8 more need a GPU";
    let ran = ran.says(&["left out many: it needs a GPU", counts]);
    assert!(!ran.out.contains("Growth"), "{}", ran.out);
    assert!(!ran.out.contains("launch and poll"), "a row that needs a GPU:\n{}", ran.out);
}

#[test]
fn a_wrong_command_line_has_status_2_and_a_missing_device_status_1() {
    ring("bench --only speed").ends(2).complains(&["'speed'", "latency, throughput"]);
    ring("bench --samples 5").ends(2).complains(&["5 is not in"]);
    ring("bench --device cuda:99").ends(1).complains(&["cannot open device cuda:99"]);
}

#[test]
fn a_file_that_cannot_be_written_is_named() {
    let path = scratch("no/such/folder/x.json");
    for option in ["--json", "--html"] {
        let options = format!("bench --quick --device cpu --only cpu {option} {}", path.display());
        let ran = ring(&options).ends(1).complains(&["cannot write", "x.json", "folder"]);
        assert_eq!(ran.out, "", "nothing is measured before that is known");
    }
    let folder = env!("CARGO_TARGET_TMPDIR");
    let ran = ring(&format!("bench --quick --device cpu --only cpu --html {folder}")).ends(1);
    let ran = ran.complains(&["cannot write", folder]);
    assert_eq!(ran.out, "");
}

#[test]
fn a_bench_that_does_not_begin_leaves_files_as_they_were() {
    let (there, new) = (scratch("there.json"), scratch("new.html"));
    std::fs::write(&there, "kept").expect("a file can be written");
    let _ = std::fs::remove_file(&new);
    let (json, html) = (there.display(), new.display());
    ring(&format!("bench --device cuda:99 --json {json} --html {html}")).ends(1);
    assert_eq!(std::fs::read_to_string(&there).expect("it is still there"), "kept");
    assert!(!new.exists(), "a file was left that nothing was written to");
}
