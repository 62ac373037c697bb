//! `ring validate`, the built binary as a user runs it.

mod common;

use common::{ring, ring_in};
use ring_host::device::quirks::NAMES;

const CPU: &str = "validate --device cpu --messages 20000";

#[test]
fn the_cpu_passes() {
    let ran = ring(CPU).ends(0).says(&[
        "device cpu: ",
        "kernels compiled for the host",
        "vector_add: 3/3 passed",
        "ran vector_add and echo: persistent in mapped memory; the best that works",
        "soak 20,000 messages over 1 channel: passed",
        "0 lost, 0 duplicated, 0 reordered, 0 corrupt",
        "passed all 5 checks",
    ]);
    assert_eq!(ran.err, "", "no progress bar where there is no terminal");
    let rows = ran.out.lines().filter(|line| line.starts_with("vector_add ")).count();
    assert_eq!(rows, 3, "{}", ran.out);
    assert!(ran.out.lines().all(|line| line.chars().count() <= 80), "{}", ran.out);
}

#[test]
fn several_small_channels_pass() {
    let ran = ring("validate --device cpu --messages 20001 --channels 3 --capacity 64");
    ran.ends(0).says(&["soak 20,001 messages over 3 channels: passed"]);
}

#[test]
fn a_ring_through_several_devices_passes() {
    let ran = ring("validate --devices cpu,cpu,cpu --messages 20000").ends(0).says(&[
        "device 2 cpu: CPU threads",
        "pass_64.ON on device 2 -> pass_64 on device 0: 1 rings of 16384 slots, in the memory of both devices",
        "pass_64.ON on device 0 -> host: ",
        "soak 20,000 messages over 1 channel: passed",
        "0 lost, 0 duplicated, 0 reordered, 0 corrupt",
        "passed a ring through 3 devices",
    ]);
    assert!(ran.out.lines().all(|line| line.chars().count() <= 80), "{}", ran.out);
    let ran = ring("validate --devices cpu,cpu --messages 20000 --emulate no-peers");
    ran.ends(0).says(&["in pinned memory: it was taken away", "passed a ring through 2 devices"]);
    ring("validate --devices all --messages 20000").ends(0).says(&["passed a ring through"]);
    let none = ring("validate --devices cpu,cpu --messages 0");
    none.ends(0).says(&["soak skipped (--messages 0)", "passed kernels on 2 devices"]);
}

#[test]
fn devices_that_are_not_there_or_come_twice_are_named() {
    let ran = ring("validate --devices cpu,cuda:4711").ends(1);
    assert!(ran.err.contains("device 1, which is cuda:4711: "), "{}", ran.err);
    let ran = ring("validate --devices cpu,cpu --device cpu").ends(2);
    assert!(ran.err.contains("cannot be used with"), "{}", ran.err);
}

#[test]
fn the_soak_can_be_left_out() {
    let ran = ring("validate --device cpu --messages 0");
    ran.ends(0).says(&["3/3 passed", "soak skipped (--messages 0)"]);
}

#[test]
fn whatever_the_machine_has_passes() {
    ring("validate --messages 20000").ends(0).says(&["why", "3/3 passed"]);
}

#[test]
fn each_mode_passes_in_each_memory_that_it_can_have() {
    for mode in ["auto", "persistent", "event-driven", "graph"] {
        for memory in ["auto", "mapped", "staged-async", "staged-sync"] {
            if (mode, memory) == ("persistent", "staged-sync") {
                continue;
            }
            let ran = ring(&format!("{CPU} --mode {mode} --memory {memory}"));
            let ran = ran.ends(0).says(&["vector_add: 3/3 passed", "passed all 5 checks"]);
            let ways = ran.out.lines().filter(|line| line.starts_with("ran "));
            for way in ways {
                assert!(mode == "auto" || way.contains(&format!(": {mode} in ")), "{way}");
                assert!(memory == "auto" || way.contains(&format!(" in {memory} ")), "{way}");
            }
        }
    }
}

#[test]
fn budgets_and_ways_of_processing_pass() {
    for options in [
        "--mode event-driven --time-budget 0.05 --idle-budget 0.01",
        "--mode graph --iterations 1",
        "--mode event-driven --iterations 3 --processing continuous",
        "--processing adaptive --max-messages 5",
        "--processing batch --max-messages 1 --channels 2",
    ] {
        ring(&format!("{CPU} {options}")).ends(0).says(&["passed all 5 checks"]);
    }
}

#[test]
fn devices_with_things_taken_away_pass() {
    // Those that fail have tests of their own below.
    let others = ["device-fault", "device-reset", "invalid-handles"];
    for (name, _) in NAMES.into_iter().filter(|(name, _)| !others.contains(name)) {
        passes_without(name);
    }
}

#[track_caller]
fn passes_without(name: &str) {
    let ran = ring(&format!("{CPU} --emulate {name}"));
    let why = format!("emulating {name}");
    ran.ends(0).says(&[&why, "vector_add: 3/3 passed", "passed all 5 checks"]);
}

#[test]
fn calls_that_fail_now_and_then_pass() {
    passes_without("invalid-handles");
}

#[test]
fn a_million_messages_pass_as_under_wsl2() {
    let ran = ring("validate --device cpu --emulate wsl2");
    let ran = ran.ends(0).says(&["3/3 passed", "soak 1,000,000 messages over 1 channel: passed"]);
    println!("a million messages took {:?}", ran.time);
}

#[test]
fn a_fault_of_the_device_is_reported() {
    let ran = ring(&format!("{CPU} --emulate device-fault")).ends(1);
    let fault = "the device faulted (700: state failed: an illegal memory access was encountered";
    ran.says(&[fault, "every kernel on it is gone"]).complains(&["ring: 1 of ", "checks failed"]);
}

#[test]
fn a_reset_of_the_device_is_reported() {
    let ran = ring(&format!("{CPU} --emulate device-reset")).ends(1);
    ran.says(&["the device faulted (709: "]).complains(&["ring: 1 of ", "checks failed"]);
}

/// In mapped memory nothing is copied, a small payload neither.
#[test]
fn copies_that_fail_for_good_are_reported_where_memory_is_staged() {
    let ran = ring(&format!("{CPU} --memory staged-sync --emulate failing-copies")).ends(1);
    ran.says(&["vector_add", "copies fail"]).complains(&["ring: 1 of ", "failed"]);
}

#[test]
fn a_wrong_command_line_has_status_2() {
    for (options, parts) in [
        ("validate --device gpu", ["gpu", "auto, cpu, cuda or cuda:N"]),
        ("validate --device cuda:x", ["--device", "cuda:x"]),
        ("validate --messages many", ["--messages", "many"]),
        ("validate --timeout 0", ["--timeout", "86400"]),
        ("validate --frobnicate", ["unexpected", "--frobnicate"]),
        ("validate --mode resident", ["'resident'", "event-driven or graph"]),
        ("validate --memory pinned", ["'pinned'", "staged-async or staged-sync"]),
        ("validate --processing all", ["'all'", "batch or adaptive"]),
        ("validate --idle-budget -1", ["-1", "milliseconds"]),
        ("frobnicate", ["unrecognized", "frobnicate"]),
        ("", ["validate", "doctor"]),
    ] {
        ring(&options.replace(" -1", "=-1")).ends(2).complains(&parts);
    }
}

#[test]
fn an_unknown_thing_to_take_away_is_answered_with_all_there_are() {
    let ran = ring("validate --emulate wsl2,wsl3").ends(2).complains(&["'wsl3'"]);
    assert_eq!(ran.out, "", "nothing was opened");
    let all = NAMES.map(|(name, does)| format!("{name} {does}"));
    ran.complains(&all.each_ref().map(String::as_str));
}

#[test]
fn what_the_device_cannot_do_has_status_1_and_names_value_and_limit() {
    for (options, parts) in [
        ("--capacity 0", ["capacity 0 is not a power of two in 1..=", "--capacity"]),
        ("--capacity 3", ["capacity 3 is not a power of two in 1..=", "--capacity"]),
        ("--channels 0", ["0 channels, but there must be 1..=", "--channels"]),
        ("--channels 100000", ["100000 channels, but there must be 1..=", "--channels"]),
        ("--threads 33", ["33 threads", "--threads"]),
        ("--time-budget 0", ["the time budget is zero", "--time-budget"]),
        ("--idle-budget 0", ["the idle budget is zero", "--idle-budget"]),
        ("--iterations 0", ["the iterations budget is zero", "--iterations"]),
        ("--max-messages 0", ["max_messages is 0", "--max-messages out"]),
        (
            "--mode persistent --memory staged-sync",
            ["(mode persistent, memory staged-sync): ", "--mode and --memory"],
        ),
        ("--memory mapped --emulate no-pinned", ["there is no pinned memory", "`ring doctor`"]),
        ("--mode graph --emulate no-graphs", ["no graph could be launched", "--mode"]),
    ] {
        let ran = ring(&format!("validate --device cpu --messages 0 {options}"));
        ran.ends(1).complains(&parts);
    }
}

#[test]
fn the_environment_wins_over_the_command_line() {
    let forced = [("RING_MODE", "event-driven"), ("RING_MEMORY", "staged-sync")];
    let ran = ring_in(&format!("{CPU} --mode graph --memory mapped"), &forced);
    ran.ends(0).says(&[
        "echo: event-driven in staged-sync memory; forced by RING_MODE and RING_MEMORY",
        "3/3 passed",
    ]);
    let ran = ring_in(CPU, &[("RING_MODE", "resident")]).ends(1);
    ran.complains(&["environment variable RING_MODE", "'resident'", "event-driven", "unset"]);
}

#[test]
fn a_device_that_is_not_there_has_status_1() {
    let ran = ring("validate --device cuda:99 --messages 0").ends(1);
    let ran = ran.complains(&["cuda:99", "--device cpu", "`ring doctor`"]);
    let why =
        ["no NVIDIA driver found", "there is no device 99", "found no device", "was built without"];
    assert!(why.iter().any(|why| ran.err.contains(why)), "{}", ran.err);
}
