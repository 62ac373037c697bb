//! `ring bench`, the built binary as a user runs it.

mod common;

use common::{LIMIT, Ran, ring, ring_at};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

fn scratch(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}

/// A quick look at the CPU, all of it: what was printed, and what was written as JSON and as a page. It takes a minute,
/// and the tests of its sections look at the same one.
static QUICK: LazyLock<(Ran, Value, String)> = LazyLock::new(|| {
    let [json, html] = ["json", "html"].map(|kind| scratch(&format!("bench.{kind}")));
    let files = format!("--json {} --html {}", json.display(), html.display());
    let options = format!("bench --quick --device cpu --samples 500 {files}");
    // On a busy machine it may take long.
    let ran = ring_at(Path::new("."), 5 * LIMIT, &options, &[]).ends(0);
    println!("a quick look took {:?}", ran.time);
    let text = std::fs::read_to_string(&json).expect("it was written");
    let report = serde_json::from_str(&text).expect("it is JSON");
    (ran, report, std::fs::read_to_string(&html).expect("it was written"))
});

/// The report and the page of a quick look that printed all that.
fn quick(says: &[&str]) -> (&'static Value, &'static str) {
    let (ran, report, page) = &*QUICK;
    ran.clone().says(says);
    (report, page)
}

/// The rows of the report's table of rates that those sweeps made.
fn rates(sweeps: &[&str]) -> Vec<&'static Value> {
    let (report, _) = quick(&[]);
    let rows = report["throughput"].as_array().expect("a list").iter();
    rows.filter(|row| row["sweep"].as_str().is_some_and(|sweep| sweeps.contains(&sweep))).collect()
}

#[test]
fn a_quick_look_at_the_cpu_is_printed_and_written() {
    let says = [
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
    ];
    let (report, page) = quick(&says);
    let (ran, ..) = &*QUICK;
    assert_eq!(ran.err, "");
    assert!(ran.out.lines().all(|line| line.chars().count() <= 80), "{}", ran.out);
    for (pointer, expected) in [
        ("/device", json!("cpu")),
        ("/machine/kernels", json!("compiled for the host")),
        (
            "/sections",
            json!([
                "load", "calls", "scopes", "graphs", "peers", "compute", "modes", "cpu", "growth"
            ]),
        ),
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
    assert_eq!((targets.len(), of("needs a gpu")), (49, 44), "{targets:#?}");
    // Each of them was measured several times.
    for id in ["cpu_rate", "cpu_trip", "capacity"] {
        let target = targets.iter().find(|target| target["id"] == id).expect("a target");
        assert!(target["spread"].is_array(), "{target:#}");
    }

    assert!(page.starts_with("<!doctype html>") && page.ends_with("</html>\n"));
    assert!(page.contains("<svg") && !page.contains("<script"));
    assert!(page.contains("44 more need a GPU") && !page.contains("bare flag"), "{page}");
}

#[test]
fn sections_are_named_and_chosen() {
    let names = [
        "latency",
        "load",
        "calls",
        "throughput",
        "bandwidth",
        "scopes",
        "graphs",
        "peers",
        "compute",
    ];
    let ran = ring("bench --list").ends(0).says(&names).says(&["modes", "many", "cpu", "growth"]);
    assert!(!ran.out.contains("processor"), "{}", ran.out);
    let ran = ring("bench --quick --device cpu --only many").ends(0);
    let counts = "0 met, 0 not met, 0 within noise, 5 not measured; 44 more need a GPU";
    let ran = ran.says(&["left out many: it needs a GPU", counts]);
    assert!(!ran.out.contains("Growth"), "{}", ran.out);
    assert!(!ran.out.contains("launch and poll"), "a row that needs a GPU:\n{}", ran.out);
    // What is chosen is measured, and nothing else.
    let json = scratch("growth.json");
    ring(&format!("bench --quick --device cpu --only growth --json {}", json.display())).ends(0);
    let report = std::fs::read_to_string(&json).expect("it was written");
    let report: Value = serde_json::from_str(&report).expect("it is JSON");
    assert_eq!((&report["sections"], &report["wrong"]), (&json!(["growth"]), &json!([])));
    for left_out in ["latency", "load", "calls", "scopes", "graphs", "peers", "modes"] {
        assert!(report[left_out].as_array().is_none_or(Vec::is_empty), "{left_out}");
    }
}

#[test]
fn calls_of_many_threads_are_printed_and_written() {
    let says = ["Calls of many threads by one client", "channels of their own", "32 tickets each"];
    let (report, page) = quick(&says);
    let rows = report["calls"].as_array().expect("a list");
    let of = |name: &str| rows.iter().map(|row| row[name].clone()).collect::<Vec<_>>();
    assert_eq!(of("threads"), [1, 1, 4, 4, 2].map(Value::from));
    assert_eq!(of("how")[3..], [json!("call"), json!({ "tickets": 32 })]);
    for row in rows {
        let rate = row["figures"]["rate"]["median"].as_f64();
        assert!(rate.is_some_and(|rate| rate > 0.0), "{row:#}");
    }
    assert!(page.contains("<h2>Calls</h2>"));
}

#[test]
fn latency_under_load_is_printed_and_written() {
    let says = [
        "messages in flight on one channel",
        "64 ring one by one",
        "64 ring batches, <= 512",
        "us from when a message is due: fixed rates",
        "late p50 late p99",
        "one message in flight on each channel",
        "one thread, in turn",
    ];
    let (report, page) = quick(&says);
    let load = &report["load"];
    assert_eq!(load["device"], "cpu");
    let column = |rows: &str, name: &str| -> Vec<Value> {
        let rows = load[rows].as_array().expect("a list");
        rows.iter().map(|row| row[name].clone()).collect()
    };
    assert_eq!(
        column("closed", "in_flight"),
        [1, 2, 4, 8, 16, 32, 64, 64, 256, 1024].map(Value::from)
    );
    let (single, batched) = (json!(1), json!(512));
    assert_eq!(column("closed", "batch")[6..8], [single, batched]);
    assert_eq!(column("open", "offered"), [10_000, 100_000, 1_000_000, 2_000_000].map(Value::from));
    assert!(column("open", "saturated").iter().all(Value::is_boolean));
    // By one host thread, and where there are processors for it by several.
    let mut channels = column("channels", "channels");
    channels.dedup();
    assert_eq!(channels, [1, 2, 4].map(Value::from));
    assert!(column("channels", "threads").contains(&json!(1)));
    for rows in ["closed", "open", "channels"] {
        for figures in column(rows, "figures") {
            for figure in ["p50", "p90", "p99", "p99_9", "max"] {
                let us = figures["times"][figure].as_f64();
                assert!(us.is_some_and(|us| us > 0.0), "{figure} of {rows}: {figures:#}");
            }
        }
    }
    for clock in column("open", "clock") {
        assert!(clock["times"]["p99"].is_number(), "{clock:#}");
    }
    // Each message that was due has a time: 30 ms of 10,000 a second, three times.
    assert_eq!(load["open"][0]["figures"]["times"]["count"], 900);

    for part in [
        "<h2>Latency under load</h2>",
        "Against messages in flight",
        "Against the rate at which messages are due",
        "<circle",
    ] {
        assert!(page.contains(part), "'{part}' is not in the page");
    }
}

#[test]
fn every_scope_and_size_is_printed_and_written() {
    let says = [
        "us: one message there and back",
        "echo, 64 bytes, the block",
        "vector_add, 100, by payload",
        "million messages a second, and GB/s each way",
        "sum_64 1 64 0",
        "one launch for all, LaunchConfig::default(): CPU threads, one a channel",
    ];
    let (report, page) = quick(&says);
    let rows = |name: &str| report[name].as_array().expect("a list").clone();
    let ids: Vec<_> = rows("scopes").iter().map(|row| row["id"].clone()).collect();
    let expected = "echo_64 echo_64_warp echo_64_block sum_64 echo_256 echo_1024 echo_4096 \
                    add_10 add_25 add_100 grid grid_4 grid_sums_4 grid_writes grid_writes_4";
    assert_eq!(ids, expected.split_whitespace().map(Value::from).collect::<Vec<_>>());
    for row in rows("scopes") {
        assert_eq!(row["device"], "cpu");
        for figure in ["p50", "p90", "p99", "max"] {
            let us = row["times"][figure].as_f64();
            assert!(us.is_some_and(|us| us > 0.0), "{figure}: {row:#}");
        }
    }
    let channels: Vec<_> = rates(&["scopes"]).iter().map(|row| row["channels"].clone()).collect();
    assert_eq!(channels, [1, 1, 1, 1, 1, 1, 4, 4, 4, 4].map(Value::from));
    for row in rates(&["scopes"]) {
        assert_eq!(row["device"], "cpu");
        assert!(row["rate"]["median"].as_f64().is_some_and(|rate| rate > 0.0), "{row:#}");
    }

    for part in ["<h2>Scopes and sizes</h2>", "Round trips against size", "<circle"] {
        assert!(page.contains(part), "'{part}' is not in the page");
    }
}

#[test]
fn graphs_are_printed_and_written() {
    let says = [
        "us: one message from the host through kernels and back",
        "two kernels by way of the host",
        "million messages a second: links beside each other",
        "times_8 2 64 0 16384",
        "links from one channel, by key",
        "pass_64 2 64 0 16384",
    ];
    let (report, page) = quick(&says);
    let rows = |name: &str| report[name].as_array().expect("a list").clone();
    let ids: Vec<_> = rows("graphs").iter().map(|row| row["id"].clone()).collect();
    let expected = "echo graph_1 graph_2 graph_3 graph_5 graph_by_host";
    assert_eq!(ids, expected.split_whitespace().map(Value::from).collect::<Vec<_>>());
    for row in rows("graphs") {
        let us = row["times"]["p50"].as_f64();
        assert!(row["device"] == "cpu" && us.is_some_and(|us| us > 0.0), "{row:#}");
    }
    let rates = rates(&["links", "keys"]);
    let sweeps: Vec<_> = rates.iter().map(|row| row["sweep"].clone()).collect();
    let expected = "links links links links links keys keys keys keys";
    assert_eq!(sweeps, expected.split_whitespace().map(Value::from).collect::<Vec<_>>());
    for row in rates {
        assert!(row["rate"]["median"].as_f64().is_some_and(|rate| rate > 0.0), "{row:#}");
    }
    for part in ["<h2>Graphs</h2>", "Round trips against kernels", "Messages against links"] {
        assert!(page.contains(part), "'{part}' is not in the page");
    }
}

#[test]
fn kernels_of_two_devices_are_printed_and_written() {
    let says = [
        "each reaches the memory of the other",
        "kernels of the first, the second, the first",
        "a kernel of each device by way of the host",
        "64 bytes, grids of both, 4 barriers",
        "PageRank, R-MAT 2^10, both devices",
        "Two devices, million messages a second: links beside each other",
        "times_8 2 64 0 16384",
    ];
    let (report, page) = quick(&says);
    let rows = |name: &str| report[name].as_array().expect("a list").clone();
    let ids: Vec<_> = rows("peers").iter().map(|row| row["id"].clone()).collect();
    let expected = "peers_0 peers_000 peers_01 peers_010 peers_by_host grids grids_4 grids_writes grids_writes_4 \
                    page_rank_one page_rank_two";
    assert_eq!(ids, expected.split_whitespace().map(Value::from).collect::<Vec<_>>());
    for row in rows("peers") {
        let us = row["times"]["p50"].as_f64();
        assert!(row["device"] == "cpu" && us.is_some_and(|us| us > 0.0), "{row:#}");
    }
    let rates = rates(&["across"]);
    assert_eq!(rates.len(), 2);
    assert!(rates[0]["rate"]["median"].as_f64().is_some_and(|rate| rate > 0.0), "{rates:#?}");
    assert!(page.contains("<h2>Two devices</h2>"), "{page}");
}

#[test]
fn whole_computations_are_printed_and_written() {
    let says = [
        "us: from a message to its answer",
        "PageRank, R-MAT 2^10, a grid",
        "PageRank, R-MAT 2^10, by messages",
        "wave, 64 x 64, 20 steps",
        "million contributions a second",
        "PageRank, R-MAT 2^12 32 1,024",
        "2 senders, 2 aggregators and 1 checker",
    ];
    let (report, page) = quick(&says);
    let rows = |name: &str| report[name].as_array().expect("a list").clone();
    let ids: Vec<_> = rows("compute").iter().map(|row| row["id"].clone()).collect();
    let expected = "page_rank_rmat page_rank_uniform page_rank_links wave";
    assert_eq!(ids, expected.split_whitespace().map(Value::from).collect::<Vec<_>>());
    for row in rows("compute") {
        assert_eq!(row["device"], "cpu");
        for figure in ["p50", "p90", "p99", "max"] {
            let us = row["times"][figure].as_f64();
            assert!(us.is_some_and(|us| us > 0.0), "{figure}: {row:#}");
        }
    }
    let rates = rates(&["contributions"]);
    assert_eq!(rates.len(), 1);
    assert!(rates[0]["rate"]["median"].as_f64().is_some_and(|rate| rate > 0.0), "{rates:#?}");
    assert!(page.contains("<h2>Whole computations</h2>"), "{page}");
}

#[test]
fn a_wrong_command_line_has_status_2_and_a_missing_device_status_1() {
    ring("bench --only speed").ends(2).complains(&["'speed'", "latency, load, calls, throughput"]);
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
