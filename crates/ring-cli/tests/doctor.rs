//! `ring doctor`, the built binary as a user runs it.

mod common;

use common::{ring, ring_in};
use ring_host::device::quirks::NAMES;
use serde_json::{Value, json};

fn json(options: &str) -> Value {
    let ran = ring(&format!("doctor --json {options}")).ends(0);
    serde_json::from_str(&ran.out).unwrap_or_else(|error| panic!("{error}:\n{}", ran.out))
}

fn ids(report: &Value) -> Vec<&str> {
    let to_do = report["to_do"].as_array().expect("a list");
    to_do.iter().map(|advice| advice["id"].as_str().expect("a name")).collect()
}

#[test]
fn the_cpu_lacks_nothing() {
    let ran = ring("doctor --device cpu").ends(0).says(&[
        "Driver library libcuda.so.1 LD_LIBRARY_PATH",
        "/usr/lib/wsl/lib (the Windows driver under WSL2)",
        "the dynamic linker may know more",
        "device cpu: CPU threads",
        "pinned memory 67,108,864 bytes",
        "resident kernel 9 answers",
        "kernels run persistent in mapped memory; the best that works",
        "refused persistent in staged-sync memory: ",
        "What to do - nothing: this machine runs persistent kernels",
    ]);
    assert_eq!(ran.err, "");
    println!("the doctor took {:?}", ran.time);
    assert!(ran.out.lines().all(|line| line.chars().count() <= 80), "{}", ran.out);
}

#[test]
fn the_same_facts_come_as_json() {
    let report = json("--device cpu");
    for (pointer, expected) in [
        ("/opened", json!(true)),
        ("/asked/device", json!("cpu")),
        ("/device/kind", json!("cpu")),
        ("/probe/pinned/bytes", json!(67_108_864)),
        ("/probe/resident/answers", json!(9)),
        ("/choice/mode", json!("persistent")),
        ("/choice/memory", json!("mapped")),
        ("/to_do", json!([])),
    ] {
        assert_eq!(report.pointer(pointer), Some(&expected), "{pointer}");
    }
    let times =
        ["resident/median_us", "copy_beside_resident/us", "message_by_launch/us", "took_us"];
    for time in times {
        let found = report.pointer(&format!("/probe/{time}")).and_then(Value::as_f64);
        assert!(found.is_some_and(|us| us > 0.0), "{time}: {report:#}");
    }
}

#[test]
fn whatever_the_machine_has_is_reported() {
    ring("doctor").ends(0).says(&["asked for auto", "kernels run", "What to do"]);
    let report = json("");
    assert_eq!(report["opened"], true);
    if report["gpus"]["count"].is_null() {
        assert_eq!(report["device"]["kind"], "cpu", "{report:#}");
        assert!(!ids(&report).is_empty(), "{report:#}");
    }
}

#[test]
fn what_wsl2_lacks_is_shown_with_what_to_do() {
    ring("doctor --device cpu --emulate wsl2").ends(0).says(&[
        "emulated wsl2",
        "cooperative launch no",
        "pinned memory no: ",
        "in staged-sync memory; the best that works",
        "refused persistent, event-driven or graph in mapped memory",
        "- pinned memory was refused, so messages are copied: raise",
        "`ulimit -l`",
        "RuntimeConfig::pinned_bytes",
        "- a watchdog ends kernels",
        "under 2 s",
    ]);
    let report = json("--device cpu --emulate wsl2");
    assert_eq!(report["asked"]["emulate"], "wsl2");
    assert_eq!(report["choice"]["memory"], "staged-sync");
    assert_eq!(report["probe"]["pinned"]["bytes"], Value::Null);
    assert_eq!(ids(&report), ["pinned_memory", "watchdog", "cooperative_launch"]);
}

#[test]
fn each_thing_taken_away_is_named() {
    for (name, _) in NAMES {
        let expected: &[&str] = match name {
            "wsl2" => &["pinned_memory", "watchdog", "cooperative_launch"],
            "no-pinned" | "pinned-limit" => &["pinned_memory"],
            "unmapped" => &["mapped_memory"],
            "calls-block" => &["calls_block"],
            "watchdog" => &["watchdog"],
            "no-cooperative" => &["cooperative_launch"],
            "no-graphs" => &["graph"],
            // Seen only after a while, or not at all.
            "held-launches" | "slow-launches" | "no-managed" | "device-fault" | "device-reset"
            | "silent-host" => &[],
            _ => continue,
        };
        let report = json(&format!("--device cpu --emulate {name}"));
        assert_eq!(ids(&report), expected, "{name}: {report:#}");
    }
}

#[test]
fn what_the_environment_forces_is_reported() {
    let forced = [("RING_MODE", "graph")];
    let ran = ring_in("doctor --device cpu", &forced).ends(0);
    ran.says(&["environment RING_MODE=graph", "forced by RING_MODE", "as the environment says"]);
    let forced = [("RING_MODE", "persistent"), ("RING_MEMORY", "staged-sync")];
    let ran = ring_in("doctor --device cpu", &forced).ends(0);
    ran.says(&[
        "no kernel runs",
        "what the environment forces does not work here: unset RING_MODE",
    ]);
    let ran = ring_in("doctor --device cpu", &[("RING_MEMORY", "pinned")]).ends(1);
    ran.says(&["device cpu: CPU threads", "not opened", "'pinned'", "RING_MEMORY has a value"])
        .complains(&["cannot open device cpu"]);
}

#[test]
fn a_device_that_is_not_there_has_status_1_and_all_is_printed() {
    let ran = ring("doctor --device cuda:99").ends(1);
    let ran = ran.says(&["Machine", "asked for cuda:99", "What to do"]);
    ran.complains(&["cannot open device cuda:99"]);
    let ran = ring("doctor --device cuda:99 --json").ends(1);
    let report: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!((&report["opened"], &report["device"]), (&json!(false), &Value::Null));
    assert_eq!(ids(&report).len(), 1, "{report:#}");
}

#[test]
fn the_folders_of_the_environment_are_looked_at_first() {
    let ran = ring_in("doctor --device cpu", &[("LD_LIBRARY_PATH", "/ring/one:/ring/two")]);
    let parts = "LD_LIBRARY_PATH set; its folders come first not in /ring/one (LD_LIBRARY_PATH) \
                 not in /ring/two (LD_LIBRARY_PATH) not in /usr/lib/";
    ran.ends(0).says(&[parts]);
}

#[test]
fn a_wrong_command_line_has_status_2() {
    ring("doctor --device gpu").ends(2).complains(&["auto, cpu, cuda or cuda:N"]);
    ring("doctor --emulate wsl3").ends(2).complains(&["there is no 'wsl3'", "wsl2", "no-graphs"]);
}

#[test]
fn what_can_be_taken_away_is_listed_and_nothing_else_is_done() {
    let all = NAMES.map(|(name, does)| format!("{name} {does}"));
    let all = all.each_ref().map(String::as_str);
    for asked in ["doctor --emulate ?", "doctor --json --emulate list", "validate --emulate help"] {
        let ran = ring(asked).ends(0).says(&all);
        assert_eq!(ran.err, "", "{asked}");
        assert_eq!(
            ran.out.lines().next().map(str::trim_start).map(|l| l.starts_with("wsl2")),
            Some(true),
            "{}",
            ran.out
        );
        assert!(ran.out.lines().all(|line| line.chars().count() <= 80), "{}", ran.out);
    }
}

#[test]
fn the_doctor_does_not_send_to_the_doctor() {
    for options in
        ["doctor", "doctor --json", "doctor --device cuda:99", "doctor --device cuda:99 --json"]
    {
        let ran = ring(options);
        let all =
            format!("{}{}", ran.out, ran.err).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(!all.contains("ring doctor"), "{options}: {all}");
    }
}
